// Composition root, the part about webhooks: what the outbox needs to send, and the evaluations of
// chats it sends. Called by features.ts.
import type { Assistants } from "#features/assistants/assistants.ts";
import { createEvaluate } from "#features/calls/evaluation.ts";
import type { Recordings } from "#features/calls/recordings.ts";
import type { TranscriptEntry } from "#features/calls/records.ts";
import type { Config } from "#config/config.ts";
import { createEvaluations, type EvaluationStore } from "#features/conversations/evaluations.ts";
import type { ConversationStore } from "#features/conversations/records.ts";
import type { Logger } from "#core/logger.ts";
import type { Metrics } from "#core/metrics.ts";
import { loadSecret } from "#core/secrets.ts";
import type { System } from "#core/system.ts";
import type { EventBus } from "#events/bus.ts";
import { createOutbound } from "#outbound/request.ts";
import { createInboundAsk } from "#features/webhooks/inbound-webhook.ts";
import { createRelay } from "#features/webhooks/relay.ts";
import { createWebhooks, type WebhookStore } from "#features/webhooks/webhooks.ts";

interface DeliveryOptions {
  config: Config;
  store: WebhookStore;
  conversations: Pick<ConversationStore, "history">;
  evaluations: EvaluationStore;
  bus: EventBus;
  assistants: Assistants;
  recordings: Recordings;
  resolveModel: Parameters<typeof createEvaluate>[0]["resolveModel"];
  metrics: Metrics;
  system: System;
  log: Logger;
}

const API_ROOT = "/api";
const USER_AGENT = "Parley-Webhooks";

export function createDelivery(options: DeliveryOptions) {
  const { config, store, bus, recordings, metrics, system, log } = options;
  const outbound = createOutbound({
    allowPrivateNetworks: config.PARLEY_ALLOW_PRIVATE_NETWORKS, userAgent: USER_AGENT,
  });
  let origin = config.PARLEY_PUBLIC_URL ?? "";
  const evaluations = createChatEvaluations(options);
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
    evaluationOf: evaluations.valuesOf,
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
      unwatch = bus.watch(() => {
        relay.wake(null);
        evaluations.wake();
      });
      evaluations.start();
      relay.start();
    },
    close: async () => {
      unwatch();
      const closed = relay.close();
      evaluations.close();
      await closed;
      await outbound.close();
    },
  };
}

/** Evaluates what was said in conversations that have ended. */
function createChatEvaluations(options: DeliveryOptions) {
  const { assistants, resolveModel, conversations, evaluations, bus, system, log } = options;
  const evaluate = createEvaluate({ resolveModel, system, log });
  return createEvaluations({
    store: evaluations,
    bus, system, log,
    evaluate: async ({ id, accountId, assistantId }, signal) => {
      const assistant = assistants.find(accountId, assistantId);
      if (!assistant) return { values: {}, error: "The assistant was deleted." };
      const entries = conversations.history(id).map((
        { role, content }, index,
      ): TranscriptEntry => ({
        number: index + 1,
        speaker: role === "assistant" ? "assistant" : "customer",
        text: content,
        startMs: 0,
        endMs: 0,
        interrupted: false,
        functionCalls: [],
      }));
      return evaluate(assistant, entries, signal);
    },
  });
}
