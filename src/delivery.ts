// Composition root, the part about webhooks: what the outbox needs to send. Called by features.ts.
import type { Assistants } from "./assistants/assistants.ts";
import { createEvaluate } from "./calls/evaluation.ts";
import type { Recordings } from "./calls/recordings.ts";
import type { TranscriptEntry } from "./calls/records.ts";
import type { Config } from "./config.ts";
import type { Logger } from "./core/logger.ts";
import type { Metrics } from "./core/metrics.ts";
import { loadSecret } from "./core/secrets.ts";
import type { System } from "./core/system.ts";
import type { EventBus } from "./events/bus.ts";
import { createOutbound } from "./outbound/request.ts";
import { createInboundAsk } from "./webhooks/inbound.ts";
import { createRelay, type RelayOptions } from "./webhooks/relay.ts";
import { createWebhooks, type Delivery, type WebhookStore } from "./webhooks/webhooks.ts";

export interface DeliveryOptions {
  config: Config;
  store: WebhookStore;
  bus: EventBus;
  assistants: Assistants;
  recordings: Recordings;
  resolveModel: Parameters<typeof createEvaluate>[0]["resolveModel"];
  metrics: Metrics;
  system: System;
  log: Logger;
}

export type WebhookDelivery = ReturnType<typeof createDelivery>;

const API_ROOT = "/api";
const USER_AGENT = "Parley-Webhooks";

export function createDelivery(options: DeliveryOptions) {
  const { config, store, bus, recordings, metrics, system, log } = options;
  const outbound = createOutbound({
    allowPrivateNetworks: config.PARLEY_ALLOW_PRIVATE_NETWORKS, userAgent: USER_AGENT,
  });
  let origin = config.PARLEY_PUBLIC_URL ?? "";
  const webhooks = createWebhooks({
    store,
    system,
    secret: loadSecret(config.PARLEY_SECRET, config.PARLEY_DATA_DIR, system),
    wake: (endpointId) => relay.wake(endpointId),
  });
  const relay = createRelay({
    store,
    outbound,
    signingSecrets: webhooks.signingSecrets,
    recordingUrl: (file) => `${origin}${API_ROOT}${recordings.linkOf(file)}`,
    evaluate: createEvaluateConversation(options),
    retrySeconds: config.PARLEY_WEBHOOK_RETRY_SECONDS,
    attemptMs: config.PARLEY_WEBHOOK_SECONDS_MAX * 1000,
    observe: (outcome, seconds) => metrics.webhook.observe({ outcome }, seconds),
    system,
    log,
  });
  let unwatch = (): void => undefined;
  return {
    webhooks,
    askInbound: createInboundAsk({
      store, outbound, signingSecrets: webhooks.signingSecrets, system, log,
    }),
    /** Nothing is sent before it is known where the server listens: links are absolute. */
    start: (listening: string): void => {
      origin = config.PARLEY_PUBLIC_URL ?? listening;
      unwatch = bus.watch(() => relay.wake(null));
      relay.start();
    },
    close: async () => {
      unwatch();
      await relay.close();
      await outbound.close();
    },
  };
}

/** Evaluates what the body of a conversation's webhook tells was said. */
function createEvaluateConversation(
  { assistants, resolveModel, system, log }: DeliveryOptions,
): RelayOptions["evaluate"] {
  const evaluate = createEvaluate({ resolveModel, system, log });
  return async ({ body }: Delivery) => {
    const { assistant_id: uuid, transcript } = JSON.parse(body) as {
      assistant_id: string; transcript: { role: string; content: string }[];
    };
    const assistant = assistants.findByUuid(uuid);
    if (!assistant) return {};
    const entries = transcript.map(({ role, content }, index): TranscriptEntry => ({
      number: index + 1,
      speaker: role === "assistant" ? "assistant" : "customer",
      text: content,
      startMs: 0,
      endMs: 0,
      interrupted: false,
      functionCalls: [],
    }));
    return (await evaluate(assistant, entries)).values;
  };
}
