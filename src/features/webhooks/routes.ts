// The wire of webhooks: endpoints, deliveries with replay, and the account's events, from which
// receivers can fetch what they missed.
import { Type, type Static } from "@sinclair/typebox";
import { LIMITS } from "#core/limits.ts";
import { about, HttpUrl, named, Nullable, OneOf } from "#core/schema.ts";
import { MASK } from "#core/secrets.ts";
import { isoMicros, isoOrNull } from "#core/system.ts";
import type { EventLog } from "#events/log.ts";
import {
  dataOf, IdOf, listOf, MessageSchema, Moment, savedOf, TIMES,
} from "#http/answers.ts";
import { json } from "#http/exchange.ts";
import { pageEnvelope, pageQuery, PageSchema, PER_PAGE_DEFAULT } from "#http/pagination.ts";
import { keyRoute, seesSecrets, type Route } from "#http/route.ts";
import { assertEvents, EVENTS_TABLE } from "./event-members.ts";
import {
  DELIVERY_STATES, PURPOSES, type Delivery, type DeliveryFilter, type Endpoint, type Webhooks,
} from "./webhooks.ts";

interface WebhookRouteOptions {
  webhooks: Webhooks;
  events: EventLog;
}

const HOOK = "https://example.com/hooks/parley";
const Url = {
  ...HttpUrl("The url must be a valid URL."), ...about("The URL events are sent to.", HOOK),
};
const DISABLED =
  "active or disabled. A disabled endpoint is sent nothing; events are listed as `dead` "
  + "deliveries, which you can replay once it is enabled.";
const IDLE = { description: "The endpoint is disabled" };
const EVENT_TYPES_MAX = 50;
const EventTypes = Type.Array(
  Type.String({ pattern: "^(\\*|[a-z_]{1,64})$" }), {
    minItems: 1, maxItems: EVENT_TYPES_MAX,
    ...about("Event types to send; `*` for all.", ["call_ended", "message_added"]),
  });

const EndpointSchema = Type.Object({
  id: Type.Integer(about("The endpoint's number.", 1)),
  purpose: OneOf(PURPOSES, about(
    "What it receives: the account's events, or one webhook of an assistant.")),
  assistant_id: Nullable(Type.Integer(about("The assistant whose webhook it is; null for the "
    + "account's events.",
    1))),
  url: Type.String(about("The URL it is sent to.", HOOK)),
  events: Type.Array(Type.String(), about("Event types to send; `*` for all.", ["*"])),
  status: OneOf(["active", "disabled"], about(DISABLED)),
  disabled_reason: Nullable(Type.String(about(
    "Why it was disabled automatically; null if it was not.", "It failed for five days."))),
  secret: Type.String(about(
    `Signs deliveries, as Standard Webhooks specifies; read-only keys see ${MASK}.`,
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")),
  failing_since: Nullable(Moment("Since when every attempt has failed, in UTC; null if it works.")),
  ...TIMES,
}, named("WebhookEndpoint", "The URL events are sent to."));
const DeliverySchema = Type.Object({
  id: Type.Integer(about("The delivery's number.", 31)),
  endpoint_id: Type.Integer(about("The endpoint it goes to.", 1)),
  url: Type.String(about("The URL it is sent to.", HOOK)),
  message_id: Type.String(about(
    "The `webhook-id` header: the same at every attempt and replay.", "msg_2b9d")),
  type: Type.String(about("The type of the event.", "call_ended")),
  call_id: Nullable(Type.Integer(about("The call it is about; null if none.", 12))),
  conversation_id: Nullable(Type.String(about(
    "The conversation it is about; null if none.", "0b0e4f0a-6a3f-4c27-9d5d-2f2f3b8a1c11"))),
  state: OneOf(DELIVERY_STATES, about("How far it is.")),
  attempts: Type.Integer(about("The number of attempts.", 1)),
  next_attempt_at: Nullable(Moment("When the next attempt is made, in UTC; null if there is "
    + "none.")),
  last_status: Nullable(Type.Integer(about("The last response status; null if there was no "
    + "response.",
    200))),
  last_error: Nullable(Type.String(about("Why the last attempt failed; null if it did not.",
    "timeout"))),
  response: Nullable(Type.String(about("The beginning of the last response; null if none.", "ok"))),
  replay_of: Nullable(Type.Integer(about("The delivery this replays; null if none.", 30))),
  payload: Type.Unknown(about("The payload.", { type: "call_ended" })),
  created_at: Moment("When the event happened, in UTC."),
  finished_at: Nullable(Moment("When it was delivered or given up, in UTC; null if not yet.")),
}, named("WebhookDelivery", "A delivery of one event to one endpoint."));
const OneEndpoint = dataOf(EndpointSchema);
const ALL_ENDPOINTS = dataOf(listOf(EndpointSchema, "All of them."));
const OneDelivery = savedOf(DeliverySchema);

const ENDPOINT = {
  tag: "Webhooks", errorShape: "message", notFound: "Webhook endpoint not found",
} as const;
const DELIVERY = {
  tag: "Webhooks", errorShape: "message", notFound: "Webhook delivery not found",
} as const;
const ofEndpoint = { id: IdOf("endpoint", "GET /user/webhook-endpoints") };
const ofDelivery = { id: IdOf("delivery", "GET /user/webhook-deliveries") };

const wireDelivery = (delivery: Delivery): Static<typeof DeliverySchema> => ({
  id: delivery.id,
  endpoint_id: delivery.endpointId,
  url: delivery.url,
  message_id: delivery.messageId,
  type: delivery.type,
  call_id: delivery.callId,
  conversation_id: delivery.conversationUuid,
  state: delivery.state,
  attempts: delivery.attempts,
  next_attempt_at: delivery.state === "pending" ? isoMicros(delivery.nextAt) : null,
  last_status: delivery.lastStatus,
  last_error: delivery.lastError,
  response: delivery.response,
  replay_of: delivery.replayOf,
  payload: JSON.parse(delivery.body) as unknown,
  created_at: isoMicros(delivery.createdAt),
  finished_at: isoOrNull(delivery.finishedAt),
});

export function webhookRoutes(options: WebhookRouteOptions): Route[] {
  return [
    ...endpointRoutes(options), ...endpointActions(options), ...deliveryRoutes(options),
    eventsRoute(options),
  ];
}

function createWireEndpoint(webhooks: Webhooks) {
  return (endpoint: Endpoint, showsSecrets: boolean): Static<typeof EndpointSchema> => ({
    id: endpoint.id,
    purpose: endpoint.purpose,
    assistant_id: endpoint.assistantId,
    url: endpoint.url,
    events: endpoint.events,
    status: endpoint.status,
    disabled_reason: endpoint.disabledReason,
    secret: showsSecrets ? webhooks.secretOf(endpoint) : MASK,
    failing_since: isoOrNull(endpoint.failingSince),
    created_at: isoMicros(endpoint.createdAt),
    updated_at: isoMicros(endpoint.updatedAt),
  });
}

const REMOVED = {
  200: { description: "Removed", schema: MessageSchema },
  422: { description: "It is an assistant's: its webhook is turned off on the assistant" },
};

function endpointRoutes({ webhooks }: WebhookRouteOptions): Route[] {
  const wire = createWireEndpoint(webhooks);
  return [
    keyRoute({
      ...ENDPOINT,
      method: "GET",
      path: "/user/webhook-endpoints",
      summary: "List webhook endpoints",
      responses: { 200: { description: "The list", schema: ALL_ENDPOINTS } },
      handle: async ({ caller }) => json(200, {
        data: (await webhooks.list(caller.accountId))
          .map((endpoint) => wire(endpoint, seesSecrets(caller))),
      }),
    }),
    keyRoute({
      ...ENDPOINT,
      method: "GET",
      path: "/user/webhook-endpoints/{id}",
      params: ofEndpoint,
      summary: "Read a webhook endpoint",
      responses: { 200: { description: "The endpoint", schema: OneEndpoint } },
      handle: async ({ caller, id }) => json(200, {
        data: wire(await webhooks.get(caller.accountId, id), seesSecrets(caller)),
      }),
    }),
    keyRoute({
      ...ENDPOINT,
      method: "POST",
      path: "/user/webhook-endpoints",
      summary: "Create a webhook endpoint",
      body: Type.Object({ url: Url, events: Type.Optional(EventTypes) }),
      responses: { 201: { description: "The endpoint, with its secret", schema: OneEndpoint } },
      handle: async ({ caller, body: { url, events = ["*"] } }) => {
        assertEvents(events);
        const made = await webhooks.create(caller.accountId, { url, events });
        return json(201, { data: wire(made, true) });
      },
    }),
    keyRoute({
      ...ENDPOINT,
      method: "PUT",
      path: "/user/webhook-endpoints/{id}",
      params: ofEndpoint,
      summary: "Update a webhook endpoint; reactivating it sends waiting deliveries at once",
      body: Type.Object({
        url: Type.Optional(Url),
        events: Type.Optional(EventTypes),
        status: Type.Optional(OneOf(["active", "disabled"], about(DISABLED))),
      }),
      responses: { 200: { description: "The endpoint", schema: OneEndpoint } },
      handle: async ({ caller, id, body }) => {
        assertEvents(body.events ?? []);
        return json(200, { data: wire(await webhooks.update(caller.accountId, id, body), true) });
      },
    }),
    keyRoute({
      ...ENDPOINT,
      method: "DELETE",
      path: "/user/webhook-endpoints/{id}",
      params: ofEndpoint,
      summary: "Delete a webhook endpoint with its deliveries",
      responses: REMOVED,
      handle: async ({ caller, id }) => {
        await webhooks.remove(caller.accountId, id);
        return json(200, { message: "Webhook endpoint deleted successfully" });
      },
    }),
  ];
}

function endpointActions({ webhooks }: WebhookRouteOptions): Route[] {
  const wire = createWireEndpoint(webhooks);
  return [
    keyRoute({
      ...ENDPOINT,
      method: "POST",
      path: "/user/webhook-endpoints/{id}/rotate-secret",
      isRepeatable: true,
      params: ofEndpoint,
      summary: "Rotate the signing secret; the old one also signs for one more day",
      responses: { 200: { description: "The endpoint", schema: OneEndpoint } },
      handle: async ({ caller, id }) => json(200, {
        data: wire(await webhooks.update(caller.accountId, id, { rotates: true }), true),
      }),
    }),
    keyRoute({
      ...ENDPOINT,
      method: "POST",
      path: "/user/webhook-endpoints/{id}/test",
      params: ofEndpoint,
      summary: "Send a test event",
      responses: { 202: { description: "The delivery was queued", schema: OneDelivery }, 409: IDLE },
      handle: async ({ caller, id }) => json(202, {
        message: "Test message queued", data: wireDelivery(await webhooks.test(caller.accountId, id)),
      }),
    }),
  ];
}

const ListQuery = Type.Object({
  ...pageQuery(),
  state: Type.Optional(OneOf(DELIVERY_STATES, about("Only deliveries in this state."))),
  type: Type.Optional(Type.String({
    maxLength: 64, ...about("Only deliveries of this event type.", "call_ended"),
  })),
  endpoint_id: Type.Optional(Type.Integer(about("Only deliveries to this endpoint.", 1))),
  call_id: Type.Optional(Type.Integer(about("Only deliveries about this call.", 12))),
});

const filterOf = (query: Static<typeof ListQuery>): DeliveryFilter => ({
  state: query.state, type: query.type, endpointId: query.endpoint_id, callId: query.call_id,
});

function deliveryRoutes({ webhooks }: WebhookRouteOptions): Route[] {
  return [
    keyRoute({
      ...DELIVERY,
      method: "GET",
      path: "/user/webhook-deliveries",
      summary: "List webhook deliveries, newest first",
      query: ListQuery,
      responses: { 200: { description: "A page", schema: PageSchema(DeliverySchema) } },
      handle: async ({ caller, query, http, baseUrl }) => {
        const { page = 1, per_page: perPage = PER_PAGE_DEFAULT } = query;
        const { items, total } = await webhooks.deliveries(
          caller.accountId, filterOf(query), { page, perPage });
        return json(200, pageEnvelope({ items: items.map(wireDelivery), total }, {
          path: `${baseUrl}/user/webhook-deliveries`, query: http.query, page, perPage,
        }));
      },
    }),
    keyRoute({
      ...DELIVERY,
      method: "GET",
      path: "/user/webhook-deliveries/{id}",
      params: ofDelivery,
      summary: "Read a webhook delivery",
      responses: {
        200: { description: "The delivery", schema: dataOf(DeliverySchema) },
      },
      handle: async ({ caller, id }) =>
        json(200, { data: wireDelivery(await webhooks.delivery(caller.accountId, id)) }),
    }),
    keyRoute({
      ...DELIVERY,
      method: "POST",
      path: "/user/webhook-deliveries/{id}/replay",
      params: ofDelivery,
      summary: "Replay a delivery, after those waiting for its endpoint",
      responses: { 202: { description: "The delivery was queued", schema: OneDelivery }, 409: IDLE },
      handle: async ({ caller, id }) => json(202, {
        message: "Delivery queued", data: wireDelivery(await webhooks.replay(caller.accountId, id)),
      }),
    }),
  ];
}

function eventsRoute({ events }: WebhookRouteOptions): Route {
  return keyRoute({
    tag: "Webhooks",
    errorShape: "message",
    method: "GET",
    path: "/user/events",
    summary: "List events after a position",
    description: "Events of the account in order, after a position: the `id` of webhooks and streams. "
      + `What each has, here beside \`type\` and in webhooks in \`data\`:\n\n${EVENTS_TABLE}`,
    query: Type.Object({
      after: Type.Optional(Type.Integer({
        minimum: 0, ...about("The `id` of the last event you have. Defaults to the start.", 42),
      })),
      limit: Type.Optional(Type.Integer({
        minimum: 1, maximum: LIMITS.eventsPageRowsMax,
        ...about("The maximum number of events. Default: 100.", 100),
      })),
    }),
    responses: {
      200: {
        description: "A page of events. `gap` is true if events right after the position have been "
          + "deleted by retention",
        schema: Type.Object({
          data: Type.Array(Type.Object(
            {
              id: Type.String(about("Its position in the account's log.", "43")),
              type: Type.String(about("What happened.", "call_ended")),
              created_at: Moment("When it happened, in UTC."),
            },
            { additionalProperties: true },
          ), about("Events in order, each with its type's fields.")),
          next: Type.String(about("What to send as `after` next.", "43")),
          has_more: Type.Boolean(about("Whether more events are available.", false)),
          gap: Type.Boolean(about(
            "Whether events right after the position have been deleted by retention.", false)),
        }),
      },
    },
    handle: async ({ caller, query }) => {
      const { after = 0, limit = 100 } = query;
      // Read before the page, so that events committed meanwhile are not skipped.
      const newest = await events.newestOfAccount(caller.accountId);
      const found = await events.ofAccount(caller.accountId, after, limit + 1);
      const page = found.slice(0, limit);
      const first = page[0]?.accountSequence ?? newest + 1;
      return json(200, {
        data: page.map(({ accountSequence, json: text, createdAt }) => ({
          created_at: isoMicros(createdAt), ...JSON.parse(text) as { type: string },
          id: String(accountSequence),
        })),
        next: String(page.at(-1)?.accountSequence ?? Math.max(after, newest)),
        has_more: found.length > limit,
        gap: first > after + 1 && newest > after,
      });
    },
  });
}
