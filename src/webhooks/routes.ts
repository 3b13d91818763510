// The wire of webhooks: endpoints, deliveries with replay, and the account's events to pull for
// whoever missed some.
import { Type, type Static } from "@sinclair/typebox";
import { LIMITS } from "../core/limits.ts";
import { HttpUrl } from "../core/schema.ts";
import { isoMicros } from "../core/system.ts";
import type { EventLog } from "../events/log.ts";
import { json } from "../http/exchange.ts";
import { pageEnvelope, pageQuery, PageSchema } from "../http/pagination.ts";
import { keyRoute, type Route } from "../http/route.ts";
import {
  DELIVERY_STATES, PURPOSES, type Delivery, type DeliveryFilter, type Endpoint, type Webhooks,
} from "./webhooks.ts";

export interface WebhookRouteOptions {
  webhooks: Webhooks;
  events: EventLog;
}

const literals = <T extends string>(values: readonly T[]) =>
  Type.Union(values.map((value) => Type.Literal(value)));
const Nullable = <T extends Parameters<typeof Type.Union>[0][number]>(schema: T) =>
  Type.Union([schema, Type.Null()]);

const Url = HttpUrl("The url must be a valid URL.");
const EVENT_TYPES_MAX = 50;
const EventTypes = Type.Array(
  Type.String({ pattern: "^(\\*|[a-z_]{1,64})$" }), { minItems: 1, maxItems: EVENT_TYPES_MAX });
const PER_PAGE_DEFAULT = 15;

const EndpointSchema = Type.Object({
  id: Type.Integer(),
  purpose: literals(PURPOSES),
  assistant_id: Nullable(Type.Integer()),
  url: Type.String(),
  events: Type.Array(Type.String()),
  status: literals(["active", "disabled"]),
  disabled_reason: Nullable(Type.String()),
  secret: Type.String({ description: "Signs as Standard Webhooks say; shown to keys that may write" }),
  failing_since: Nullable(Type.String()),
  created_at: Type.String(),
  updated_at: Type.String(),
});
const DeliverySchema = Type.Object({
  id: Type.Integer(),
  endpoint_id: Type.Integer(),
  url: Type.String(),
  message_id: Type.String({ description: "`webhook-id`, the same at every attempt and replay" }),
  type: Type.String(),
  call_id: Nullable(Type.Integer()),
  conversation_id: Nullable(Type.String()),
  state: literals(DELIVERY_STATES),
  attempts: Type.Integer(),
  next_attempt_at: Nullable(Type.String()),
  last_status: Nullable(Type.Integer()),
  last_error: Nullable(Type.String()),
  response: Nullable(Type.String()),
  replay_of: Nullable(Type.Integer()),
  payload: Type.Unknown(),
  created_at: Type.String(),
  finished_at: Nullable(Type.String()),
});
const MessageSchema = Type.Object({ message: Type.String() });
const OneEndpoint = Type.Object({ data: EndpointSchema });
const OneDelivery = Type.Object({ message: Type.String(), data: DeliverySchema });

const ENDPOINT = {
  tag: "Webhooks", errorShape: "message", notFound: "Webhook endpoint not found",
} as const;
const DELIVERY = {
  tag: "Webhooks", errorShape: "message", notFound: "Webhook delivery not found",
} as const;
const noEndpoint = { description: "No such endpoint", schema: MessageSchema };
const noDelivery = { description: "No such delivery", schema: MessageSchema };

const orNull = (instant: number | null): string | null =>
  instant === null ? null : isoMicros(instant);

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
  finished_at: orNull(delivery.finishedAt),
});

const MASK = "whsec_••••";

export function webhookRoutes(options: WebhookRouteOptions): Route[] {
  return [
    ...endpointRoutes(options), ...endpointDeeds(options), ...deliveryRoutes(options),
    eventsRoute(options),
  ];
}

function createWireEndpoint(webhooks: Webhooks) {
  return (endpoint: Endpoint, mayWrite: boolean): Static<typeof EndpointSchema> => ({
    id: endpoint.id,
    purpose: endpoint.purpose,
    assistant_id: endpoint.assistantId,
    url: endpoint.url,
    events: endpoint.events,
    status: endpoint.status,
    disabled_reason: endpoint.disabledReason,
    secret: mayWrite ? webhooks.secretOf(endpoint) : MASK,
    failing_since: orNull(endpoint.failingSince),
    created_at: isoMicros(endpoint.createdAt),
    updated_at: isoMicros(endpoint.updatedAt),
  });
}

function endpointRoutes({ webhooks }: WebhookRouteOptions): Route[] {
  const wire = createWireEndpoint(webhooks);
  return [
    keyRoute({
      ...ENDPOINT,
      method: "GET",
      path: "/user/webhook-endpoints",
      summary: "Endpoints of the account and of its assistants' webhooks",
      responses: {
        200: { description: "All of them", schema: Type.Object({ data: Type.Array(EndpointSchema) }) },
      },
      handle: ({ caller }) => json(200, {
        data: webhooks.list(caller.accountId)
          .map((endpoint) => wire(endpoint, caller.scopes.includes("write"))),
      }),
    }),
    keyRoute({
      ...ENDPOINT,
      method: "GET",
      path: "/user/webhook-endpoints/{id}",
      summary: "One endpoint",
      responses: { 200: { description: "The endpoint", schema: OneEndpoint }, 404: noEndpoint },
      handle: ({ caller, id }) => json(200, {
        data: wire(webhooks.get(caller.accountId, id), caller.scopes.includes("write")),
      }),
    }),
    keyRoute({
      ...ENDPOINT,
      method: "POST",
      path: "/user/webhook-endpoints",
      summary: "Have events of the account sent to a URL, signed and in order",
      body: Type.Object({ url: Url, events: Type.Optional(EventTypes) }),
      responses: { 201: { description: "The endpoint with its secret", schema: OneEndpoint } },
      handle: async ({ caller, body }) => json(201, {
        data: wire(await webhooks.create(caller.accountId, {
          url: body.url, events: body.events ?? ["*"],
        }), true),
      }),
    }),
    keyRoute({
      ...ENDPOINT,
      method: "PUT",
      path: "/user/webhook-endpoints/{id}",
      summary: "Change an endpoint; one made active again takes up what waits at once",
      body: Type.Object({
        url: Type.Optional(Url),
        events: Type.Optional(EventTypes),
        status: Type.Optional(literals(["active", "disabled"] as const)),
      }),
      responses: { 200: { description: "The endpoint", schema: OneEndpoint }, 404: noEndpoint },
      handle: async ({ caller, id, body }) => json(200, {
        data: wire(await webhooks.update(caller.accountId, id, body), true),
      }),
    }),
    keyRoute({
      ...ENDPOINT,
      method: "DELETE",
      path: "/user/webhook-endpoints/{id}",
      summary: "Remove an endpoint with its deliveries",
      responses: { 200: { description: "Removed", schema: MessageSchema }, 404: noEndpoint },
      handle: async ({ caller, id }) => {
        await webhooks.remove(caller.accountId, id);
        return json(200, { message: "Webhook endpoint deleted successfully" });
      },
    }),
  ];
}

function endpointDeeds({ webhooks }: WebhookRouteOptions): Route[] {
  const wire = createWireEndpoint(webhooks);
  return [
    keyRoute({
      ...ENDPOINT,
      method: "POST",
      path: "/user/webhook-endpoints/{id}/rotate-secret",
      summary: "A new secret; for a day the one before signs as well",
      responses: { 200: { description: "The endpoint", schema: OneEndpoint }, 404: noEndpoint },
      handle: async ({ caller, id }) => json(200, {
        data: wire(await webhooks.update(caller.accountId, id, { rotates: true }), true),
      }),
    }),
    keyRoute({
      ...ENDPOINT,
      method: "POST",
      path: "/user/webhook-endpoints/{id}/test",
      summary: "Send a test message",
      responses: { 202: { description: "On its way", schema: OneDelivery }, 404: noEndpoint },
      handle: async ({ caller, id }) => json(202, {
        message: "Test message queued", data: wireDelivery(await webhooks.test(caller.accountId, id)),
      }),
    }),
  ];
}

const ListQuery = Type.Object({
  ...pageQuery(PER_PAGE_DEFAULT),
  state: Type.Optional(literals(DELIVERY_STATES)),
  type: Type.Optional(Type.String({ maxLength: 64 })),
  endpoint_id: Type.Optional(Type.Integer()),
  call_id: Type.Optional(Type.Integer()),
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
      summary: "Deliveries, newest first",
      query: ListQuery,
      responses: { 200: { description: "A page", schema: PageSchema(DeliverySchema) } },
      handle: ({ caller, query, http, baseUrl }) => {
        const { page = 1, per_page: perPage = PER_PAGE_DEFAULT } = query;
        const { items, total } = webhooks.deliveries(
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
      summary: "One delivery",
      responses: {
        200: { description: "The delivery", schema: Type.Object({ data: DeliverySchema }) },
        404: noDelivery,
      },
      handle: ({ caller, id }) =>
        json(200, { data: wireDelivery(webhooks.delivery(caller.accountId, id)) }),
    }),
    keyRoute({
      ...DELIVERY,
      method: "POST",
      path: "/user/webhook-deliveries/{id}/replay",
      summary: "Send the same message once more, behind what waits for its endpoint",
      responses: { 202: { description: "On its way", schema: OneDelivery }, 404: noDelivery },
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
    summary: "Events of the account in order, after a position; the `id` of webhooks and streams",
    query: Type.Object({
      after: Type.Optional(Type.Integer({ minimum: 0 })),
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: LIMITS.eventsPageRowsMax })),
    }),
    responses: {
      200: {
        description: "`gap`: what came right after the position is past its retention",
        schema: Type.Object({
          data: Type.Array(Type.Object(
            { id: Type.String(), type: Type.String(), created_at: Type.String() },
            { additionalProperties: true },
          )),
          next: Type.String(),
          has_more: Type.Boolean(),
          gap: Type.Boolean(),
        }),
      },
    },
    handle: ({ caller, query }) => {
      const { after = 0, limit = 100 } = query;
      // Before the page: what is committed meanwhile is not passed over.
      const newest = events.newestOfAccount(caller.accountId);
      const found = events.ofAccount(caller.accountId, after, limit + 1);
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
