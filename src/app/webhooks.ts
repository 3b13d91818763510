// Composition root, the part about webhooks: what the outbox needs to send, and the evaluations
// that deliveries wait for. Called by features.ts.
import type { Nodes } from "#cluster/nodes.ts";
import type { Wire } from "#cluster/wire.ts";
import type { Assistants } from "#features/assistants/assistants.ts";
import type { Evaluate } from "#features/calls/evaluation.ts";
import type { Recordings } from "#features/calls/records/recordings.ts";
import { createEvaluations } from "#features/conversations/evaluations.ts";
import { createChatEvaluation } from "#features/webhooks/evaluation.ts";
import { createInboundAsk } from "#features/webhooks/inbound-webhook.ts";
import { createRelay } from "#features/webhooks/relay.ts";
import { createWebhooks } from "#features/webhooks/webhooks.ts";
import type { Config } from "#config/config.ts";
import { LIMITS } from "#core/limits.ts";
import type { Logger } from "#core/logger.ts";
import type { Metrics } from "#core/metrics.ts";
import { evenClock, type System } from "#core/system.ts";
import type { EventBus } from "#events/bus.ts";
import { API_ROOT } from "#http/api.ts";
import { createOutbound } from "#outbound/request.ts";
import type { Storage } from "#storage/storage.ts";

interface DeliveryOptions {
  config: Config;
  storage: Pick<Storage, "webhooks" | "conversations" | "evaluations">;
  nodes: Pick<Nodes, "hasClock" | "holds" | "nodeId">;
  wire: Wire | null;
  secret: string;
  bus: EventBus;
  assistants: Pick<Assistants, "find">;
  recordings: Pick<Recordings, "linkOf">;
  evaluate: Evaluate;
  metrics: Metrics;
  system: System;
  log: Logger;
}

/** The topic on which a node learns that an endpoint it owns has something to send. */
const wakes = (nodeId: number): string => `wakes.${nodeId}`;

const USER_AGENT = "Parley-Webhooks";

export function createDelivery(options: DeliveryOptions) {
  const { config, storage, secret, bus, assistants, recordings, metrics, system, log } = options;
  const { nodes, wire, storage: { webhooks: store } } = options;
  const outbound = createOutbound({
    allowPrivateNetworks: config.PARLEY_ALLOW_PRIVATE_NETWORKS, userAgent: USER_AGENT,
  });
  let origin = config.PARLEY_PUBLIC_URL ?? "";
  const evaluations = createEvaluations({
    store: storage.evaluations, isOurs: nodes.hasClock, bus, system, log,
    atOnceMax: config.PARLEY_EVALUATIONS_MAX,
    evaluate: createChatEvaluation({
      findAssistant: assistants.find,
      history: storage.conversations.history,
      evaluate: options.evaluate,
    }),
  });
  const webhooks = createWebhooks({
    store, system, secret, endpointsMax: config.PARLEY_WEBHOOK_ENDPOINTS_MAX,
    wake: (endpointId) => relay.wake(endpointId),
  });
  const { signingSecrets } = webhooks;
  const relay = createRelay({
    store, outbound, signingSecrets, system, log,
    node: nodes,
    wakeOther: (nodeId, endpointId) =>
      wire?.publish(wakes(nodeId), Buffer.from(String(endpointId))),
    apiUrl: () => origin + API_ROOT, recordingUrl: recordings.linkOf,
    evaluationOf: evaluations.valuesOf,
    retrySeconds: config.PARLEY_WEBHOOK_RETRY_SECONDS,
    attemptMs: config.PARLEY_WEBHOOK_SECONDS_MAX * 1000,
    isClockEven: evenClock(system),
    atOnceMax: config.PARLEY_WEBHOOKS_MAX,
    observe: (outcome, seconds) => metrics.webhook.observe({ outcome }, seconds),
  });
  const ends: (() => void)[] = [];
  let wake = (): void => undefined;
  return {
    webhooks,
    askInbound: createInboundAsk({ store, outbound, signingSecrets, system, log }),
    /** Nothing is sent before the server's address is known, because links are absolute. */
    start: (reachedAt: string): void => {
      origin = reachedAt;
      wake = () => {
        relay.wake(null);
        evaluations.wake();
      };
      ends.push(bus.watch((events) => {
        if (events.some(({ hasWebhooks }) => hasWebhooks)) relay.wake(null);
        if (events.some(({ type }) => type === "conversation_ended")) evaluations.wake();
      }));
      if (wire) {
        const looks = system.every(LIMITS.outboxLookMs, relay.look);
        ends.push(looks.cancel, wire.subscribe(wakes(nodes.nodeId), (data) =>
          relay.wake(Number(Buffer.from(data).toString()))));
      }
      evaluations.start();
      relay.start();
    },
    look: async (): Promise<void> => wake(),
    /** Takes over the deliveries of nodes that are gone. */
    lookAll: (): void => relay.look(),
    evaluated: evaluations.settled,
    close: async () => {
      for (const end of ends) end();
      wake = () => undefined;
      const closed = relay.close();
      await evaluations.close();
      await closed;
      await outbound.close();
    },
  };
}
