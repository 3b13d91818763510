// Webhooks: endpoints, their secrets, and the deliveries to them. Records → store port → factory.
// The storage writes deliveries in the transaction of the fact they report
// (storage/webhooks/outbox.ts); relay.ts sends them.
import { createHmac } from "node:crypto";
import { Fault } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import { pageOf } from "#core/paging.ts";
import { deletedInSteps } from "#core/steps.ts";
import { isoMicros, type Instant, type System } from "#core/system.ts";
import { DAY_MICROS } from "#core/zones.ts";

export const PURPOSES = ["account", "post_call", "conversation_ended", "inbound_call"] as const;
export type Purpose = (typeof PURPOSES)[number];

export interface Endpoint {
  id: number;
  accountId: number;
  /** The assistant whose webhooks go here; their URL is set there. */
  assistantId: number | null;
  purpose: Purpose;
  url: string;
  /** Types of events; `*` is all. */
  events: string[];
  status: "active" | "disabled";
  disabledReason: string | null;
  secretVersion: number;
  rotatedAt: Instant | null;
  failingSince: Instant | null;
  createdAt: Instant;
  updatedAt: Instant;
}

export const DELIVERY_STATES = ["pending", "delivered", "dead"] as const;
export type DeliveryState = (typeof DELIVERY_STATES)[number];

export interface Delivery {
  id: number;
  accountId: number;
  endpointId: number;
  url: string;
  messageId: string;
  type: string;
  callId: number | null;
  conversationUuid: string | null;
  recordingFile: string | null;
  needsEvaluation: boolean;
  state: DeliveryState;
  attempts: number;
  nextAt: Instant;
  lastStatus: number | null;
  lastError: string | null;
  response: string | null;
  replayOf: number | null;
  createdAt: Instant;
  finishedAt: Instant | null;
  body: string;
}

/** The outcome of one attempt. */
export interface Attempt {
  accountId: number;
  deliveryId: number;
  /** `retry`: again at `nextAt`. */
  outcome: DeliveryState | "retry";
  nextAt: Instant;
  status: number | null;
  error: string | null;
  response: string | null;
  /** Why the endpoint is disabled; null: it is not. Its waiting messages are then given up. */
  disables: string | null;
  /** As used for the attempt: its outcome means nothing for another URL or secret. */
  endpoint: Pick<Endpoint, "url" | "secretVersion">;
  now: Instant;
}

/** The first waiting delivery of an endpoint. */
export interface Head {
  delivery: Delivery;
  endpoint: Endpoint;
  /** The living node that sends to it; null: any node may take it. */
  ownerId: number | null;
}

export interface DeliveryFilter {
  state?: DeliveryState | undefined;
  type?: string | undefined;
  endpointId?: number | undefined;
  callId?: number | undefined;
}

/** Each method is one transaction; writes resolve once they are durable. */
export interface WebhookStore {
  endpoint(accountId: number, endpointId: number): Promise<Endpoint | null>;
  endpoints(accountId: number): Promise<Endpoint[]>;
  /** Null: the account has as many as it may. */
  createEndpoint(args: {
    accountId: number; url: string; events: string[]; max: number; now: Instant;
  }): Promise<Endpoint | null>;
  /** An assistant's endpoint, created when it is first needed. */
  assistantEndpoint(args: {
    accountId: number; assistantId: number; purpose: Purpose; url: string; now: Instant;
  }): Promise<Endpoint>;
  /** Absent members stay unchanged. A reactivated endpoint resumes its waiting messages at once. */
  updateEndpoint(args: {
    accountId: number; endpointId: number; url?: string | undefined; events?: string[] | undefined;
    status?: Endpoint["status"] | undefined; rotates?: boolean; now: Instant;
  }): Promise<Endpoint | null>;
  /**
   * Disables it and removes up to `rows` of its deliveries; the endpoint is removed with the last.
   * Null: there is no such endpoint, or it belongs to an assistant.
   */
  deleteEndpoint(args: { accountId: number; endpointId: number; rows: number }):
    Promise<{ isGone: boolean } | null>;
  delivery(accountId: number, deliveryId: number): Promise<Delivery | null>;
  deliveries(
    accountId: number, filter: DeliveryFilter, offset: number, rows: number,
  ): Promise<Delivery[]>;
  countDeliveries(accountId: number, filter: DeliveryFilter): Promise<number>;
  /** Queues the same message again, behind those that wait. Null: there is no such delivery. */
  replay(args: { accountId: number; deliveryId: number; now: Instant }): Promise<Delivery | null>;
  /** Queues a message for one endpoint, unrelated to an event. */
  enqueue(args: {
    accountId: number; endpointId: number; type: string; body: Record<string, unknown>;
    now: Instant;
  }): Promise<Delivery | null>;
  /** Endpoints with waiting deliveries after this id, and the newest id of all. */
  waiting(afterId: number): Promise<{ endpointIds: number[]; newestId: number }>;
  /** The next delivery of an endpoint; null: none waits, or the endpoint is disabled. */
  head(endpointId: number): Promise<Head | null>;
  /** Resolves to the node that now owns the endpoint: this one, unless another had it. */
  take(args: { accountId: number; endpointId: number }): Promise<number>;
  /** Does nothing when another node owns the endpoint by now. */
  record(attempt: Attempt): Promise<void>;
  /**
   * Makes up to `rows` of the messages dead that wait for a disabled endpoint, oldest first;
   * resolves to how many.
   */
  giveUp(args: { accountId: number; endpointId: number; rows: number; now: Instant }):
    Promise<number>;
  /** Stores the completed body. */
  prepared(args: { accountId: number; deliveryId: number; body: string }): Promise<void>;
  /** Removes finished deliveries, oldest first; resolves to how many. */
  trim(args: { deliveredBefore: Instant; deadBefore: Instant; rows: number }): Promise<number>;
}

interface WebhooksOptions {
  store: WebhookStore;
  system: System;
  /** The server's; secrets of endpoints are derived from it. */
  secret: string;
  /** Most endpoints that one account may have. */
  endpointsMax: number;
  /** A new message may be waiting at the endpoint; null: at any endpoint. */
  wake(endpointId: number | null): void;
}

export type Webhooks = ReturnType<typeof createWebhooks>;

function found<T>(value: T | null): T {
  if (value === null) throw new Fault(404, "Webhook endpoint not found");
  return value;
}

/** A message to be sent now would wait for as long as the endpoint is disabled. */
function assertEnabled({ status }: Pick<Endpoint, "status">): void {
  if (status === "disabled") {
    throw new Fault(409, "The webhook endpoint is disabled: enable it first.");
  }
}

export function createWebhooks(options: WebhooksOptions) {
  return { ...createSecrets(options), ...createEndpoints(options), ...createDeliveries(options) };
}

function createSecrets({ secret, system }: WebhooksOptions) {
  const secretOf = ({ id }: Endpoint, version: number): string =>
    `whsec_${createHmac("sha256", secret).update(`webhook:${id}:${version}`).digest("base64")}`;
  return {
    /** The secret in force. */
    secretOf: (endpoint: Endpoint): string => secretOf(endpoint, endpoint.secretVersion),
    /** Secrets that sign now: for a day after a rotation, the previous one as well. */
    signingSecrets: (endpoint: Endpoint): string[] => {
      const { rotatedAt, secretVersion } = endpoint;
      const isFresh = rotatedAt !== null && system.now() - rotatedAt < DAY_MICROS;
      return [secretVersion, ...(isFresh ? [secretVersion - 1] : [])]
        .map((version) => secretOf(endpoint, version));
    },
  };
}

/** Methods with an id throw Fault 404 for what the account does not have. */
function createEndpoints({ store, system, wake, endpointsMax }: WebhooksOptions) {
  const get = async (accountId: number, id: number): Promise<Endpoint> =>
    found(await store.endpoint(accountId, id));
  return {
    list: (accountId: number): Promise<Endpoint[]> => store.endpoints(accountId),
    get,
    /** Throws Fault 422 when there are too many. */
    create: async (accountId: number, { url, events }: { url: string; events: string[] }) => {
      const endpoint = await store.createEndpoint({
        accountId, url, events, max: endpointsMax, now: system.now(),
      });
      if (endpoint) return endpoint;
      throw new Fault(
        422, `An account may not have more than ${endpointsMax} webhook endpoints.`);
    },
    update: async (
      accountId: number,
      endpointId: number,
      changes: { url?: string; events?: string[]; status?: Endpoint["status"]; rotates?: boolean },
    ): Promise<Endpoint> => {
      const { purpose } = await get(accountId, endpointId);
      if (purpose !== "account" && (changes.url ?? changes.events) !== undefined) {
        throw new Fault(422, "The URL of an assistant's webhook is set on the assistant.");
      }
      const endpoint = found(await store.updateEndpoint({
        accountId, endpointId, ...changes, now: system.now(),
      }));
      wake(endpointId);
      return endpoint;
    },
    /** Also removes its deliveries. */
    remove: async (accountId: number, endpointId: number): Promise<void> => {
      if ((await get(accountId, endpointId)).purpose !== "account") {
        throw new Fault(422, "The webhook of an assistant is turned off on the assistant.");
      }
      const rows = LIMITS.deliveriesPerWrite;
      await deletedInSteps(() => store.deleteEndpoint({ accountId, endpointId, rows }));
    },
    /** Throws Fault 409 while it is disabled. */
    test: async (accountId: number, endpointId: number): Promise<Delivery> => {
      assertEnabled(await get(accountId, endpointId));
      const now = system.now();
      const body = { type: "test", test: true, timestamp: isoMicros(now), data: {} };
      const delivery = found(
        await store.enqueue({ accountId, endpointId, type: "test", body, now }));
      wake(endpointId);
      return delivery;
    },
  };
}

function createDeliveries({ store, system, wake }: WebhooksOptions) {
  const present = (delivery: Delivery | null): Delivery => {
    if (!delivery) throw new Fault(404, "Webhook delivery not found");
    return delivery;
  };
  /** Throws Fault 404. */
  const get = async (accountId: number, deliveryId: number): Promise<Delivery> =>
    present(await store.delivery(accountId, deliveryId));
  return {
    deliveries: (
      accountId: number, filter: DeliveryFilter, place: { page: number; perPage: number },
    ) => pageOf(place, (offset, rows) => store.deliveries(accountId, filter, offset, rows),
      () => store.countDeliveries(accountId, filter)),
    delivery: get,
    /** Throws Fault 404, or 409 while its endpoint is disabled. */
    replay: async (accountId: number, deliveryId: number): Promise<Delivery> => {
      const { endpointId } = await get(accountId, deliveryId);
      assertEnabled(found(await store.endpoint(accountId, endpointId)));
      const delivery = present(
        await store.replay({ accountId, deliveryId, now: system.now() }));
      wake(delivery.endpointId);
      return delivery;
    },
    /** Resolves to how many were removed. */
    trim: (rows: number): Promise<number> => store.trim({
      deliveredBefore: system.now() - LIMITS.deliveredDays * DAY_MICROS,
      deadBefore: system.now() - LIMITS.deadDeliveryDays * DAY_MICROS,
      rows,
    }),
  };
}

/** Headers of Standard Webhooks (https://www.standardwebhooks.com) for one attempt. */
export function signatureHeaders(
  messageId: string, body: string, secrets: string[], now: Instant,
): Record<string, string> {
  const timestamp = String(Math.floor(now / 1_000_000));
  const signed = `${messageId}.${timestamp}.${body}`;
  const signatures = secrets.map((secret) => {
    const key = Buffer.from(secret.slice("whsec_".length), "base64");
    return `v1,${createHmac("sha256", key).update(signed).digest("base64")}`;
  });
  return {
    "webhook-id": messageId,
    "webhook-timestamp": timestamp,
    "webhook-signature": signatures.join(" "),
  };
}
