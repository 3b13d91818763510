// The wire of assistants: lists, create, read, change, delete and the webhook toggles. The schemas
// of the bodies are in settings.ts, the shapes of the answers in wire.ts.
import { Type, type TObject } from "@sinclair/typebox";
import { Fault } from "../core/faults.ts";
import { errorsOf, HttpsUrl, HttpUrl } from "../core/schema.ts";
import { json } from "../http/exchange.ts";
import { pageEnvelope, pageQuery, PageSchema } from "../http/pagination.ts";
import { keyRoute, type Route } from "../http/route.ts";
import type { Assistants, WebhookKind } from "./assistants.ts";
import type { Catalogs } from "./catalogs.ts";
import { ASSISTANT_TYPES, CreateBody, Id, oneOf, UpdateBody } from "./settings.ts";
import { findWarnings, type Capabilities } from "./warnings.ts";
import {
  AssistantSchema, assistantWire, InvalidSchema, MessageSchema, OutboundSchema,
  outboundWire, SavedSchema, savedWire,
} from "./wire.ts";

export interface AssistantRouteOptions {
  assistants: Assistants;
  catalogs: Catalogs;
  capabilities: Capabilities;
}

const PER_PAGE_DEFAULT = 10;
const NOT_FOUND = "Assistant not found";
const NOT_YOURS = "Assistant not found or does not belong to the authenticated user";

const common = { tag: "Assistants", errorShape: "message" } as const;
const missing = { description: "No such assistant", schema: MessageSchema };
const invalid = { description: "Fields at fault, all of them", schema: InvalidSchema };

export function assistantRoutes(options: AssistantRouteOptions): Route[] {
  return [
    ...listRoutes(options),
    createRoute(options),
    readRoute(options),
    changeRoute(options, "PUT"),
    changeRoute(options, "PATCH"),
    deleteRoute(options),
    ...webhookRoutes(options),
  ];
}

const ListQuery = Type.Object({
  ...pageQuery(PER_PAGE_DEFAULT),
  type: Type.Optional(oneOf(ASSISTANT_TYPES)),
});

function listRoutes({ assistants, catalogs, capabilities }: AssistantRouteOptions): Route[] {
  return [
    keyRoute({
      ...common,
      method: "GET",
      path: "/user/assistants/get",
      summary: "List assistants in pages",
      query: ListQuery,
      responses: { 200: { description: "A page", schema: PageSchema(AssistantSchema) } },
      handle: ({ caller, query, http, baseUrl }) => {
        const { page = 1, per_page: perPage = PER_PAGE_DEFAULT, type = null } = query;
        const { items, total } = assistants.page(caller.accountId, { type, page, perPage });
        const rows = items.map((assistant) => assistantWire(assistant, catalogs, capabilities));
        const path = `${baseUrl}/user/assistants/get`;
        return json(200, pageEnvelope(
          { items: rows, total }, { path, query: http.query, page, perPage }));
      },
    }),
    keyRoute({
      ...common,
      method: "GET",
      path: "/user/assistants",
      summary: "List all assistants, without pages",
      responses: { 200: { description: "All of them", schema: Type.Array(AssistantSchema) } },
      handle: ({ caller }) =>
        json(200, assistants.listAll(caller.accountId).map((assistant) =>
          assistantWire(assistant, catalogs, capabilities))),
    }),
    keyRoute({
      ...common,
      method: "GET",
      path: "/user/assistants/outbound",
      summary: "List all outbound assistants, active or not",
      responses: { 200: { description: "All of them", schema: Type.Array(OutboundSchema) } },
      handle: ({ caller }) =>
        json(200, assistants.listOutbound(caller.accountId).map(outboundWire)),
    }),
  ];
}

function createRoute(options: AssistantRouteOptions): Route {
  const { assistants, catalogs, capabilities } = options;
  return keyRoute({
    ...common,
    method: "POST",
    path: "/user/assistant",
    summary: "Create an assistant",
    body: CreateBody,
    responses: { 201: { description: "Created", schema: SavedSchema }, 422: invalid },
    handle: async ({ caller, body }) => {
      const assistant = await assistants.create(caller.accountId, body, errorsOf(body));
      const warnings = findWarnings(assistant, catalogs, capabilities);
      return json(201, savedWire("Assistant created successfully", assistant, warnings));
    },
  });
}

function readRoute({ assistants, catalogs, capabilities }: AssistantRouteOptions): Route {
  return keyRoute({
    ...common,
    method: "GET",
    path: "/user/assistant/{id}",
    summary: "One assistant",
    notFound: NOT_FOUND,
    responses: { 200: { description: "The assistant", schema: AssistantSchema }, 404: missing },
    handle: ({ caller, id }) => {
      const assistant = assistants.find(caller.accountId, id);
      if (!assistant) throw new Fault(404, NOT_FOUND);
      return json(200, assistantWire(assistant, catalogs, capabilities));
    },
  });
}

function changeRoute(options: AssistantRouteOptions, method: "PUT" | "PATCH"): Route {
  const { assistants, catalogs, capabilities } = options;
  return keyRoute({
    ...common,
    method,
    path: "/user/assistant/{id}",
    summary: "Change what is sent; null clears an optional field",
    notFound: NOT_FOUND,
    body: UpdateBody,
    responses: {
      200: { description: "Changed", schema: SavedSchema }, 404: missing, 422: invalid,
    },
    handle: async ({ caller, id, body }) => {
      const assistant = await assistants.update(caller.accountId, id, body, errorsOf(body));
      const warnings = findWarnings(assistant, catalogs, capabilities);
      return json(200, savedWire("Assistant updated successfully", assistant, warnings));
    },
  });
}

function deleteRoute({ assistants }: AssistantRouteOptions): Route {
  return keyRoute({
    ...common,
    method: "DELETE",
    path: "/user/assistant/{id}",
    summary: "Delete an assistant",
    notFound: NOT_YOURS,
    responses: { 200: { description: "Deleted", schema: MessageSchema }, 404: missing },
    handle: async ({ caller, id }) => {
      if (!await assistants.remove(caller.accountId, id)) throw new Fault(404, NOT_YOURS);
      return json(200, { message: "Assistant deleted successfully" });
    },
  });
}

const Toggled = Type.Object({ message: Type.String(), data: Type.Array(Type.Unknown()) });
const AssistantId = { assistant_id: Id() };
const EnableBody = Type.Object({
  ...AssistantId, webhook_url: HttpUrl("The webhook url must be a valid URL."),
});
const EnableSecureBody = Type.Object({
  ...AssistantId, webhook_url: HttpsUrl("The webhook url must be a valid HTTPS URL."),
});
const DisableBody = Type.Object(AssistantId);

interface Webhook {
  path: string;
  kind: WebhookKind;
  enableBody: typeof EnableBody;
  enabled: string;
  disabled: string;
}

const WEBHOOKS: readonly Webhook[] = [
  {
    path: "webhook",
    kind: "post_call",
    enableBody: EnableBody,
    enabled: "Webhook enabled successfully",
    disabled: "Webhook disabled successfully",
  },
  {
    path: "inbound-webhook",
    kind: "inbound",
    enableBody: EnableBody,
    enabled: "Webhook enabled successfully",
    disabled: "Inbound webhook disabled successfully",
  },
  {
    path: "conversation-ended-webhook",
    kind: "conversation_ended",
    enableBody: EnableSecureBody,
    enabled: "Conversation ended webhook enabled successfully",
    disabled: "Conversation ended webhook disabled successfully",
  },
];

function webhookRoutes({ assistants }: AssistantRouteOptions): Route[] {
  const toggle = <Body extends TObject>(path: string, body: Body) => ({
    ...common,
    method: "POST" as const,
    path: `/user/assistants/${path}`,
    body,
    invalidMessage: "The given data was invalid.",
    responses: {
      200: { description: "Done; data is an empty array", schema: Toggled },
      404: missing,
      422: invalid,
    },
  });
  return WEBHOOKS.flatMap(({ path, kind, enableBody, enabled, disabled }) => [
    keyRoute({
      ...toggle(`enable-${path}`, enableBody),
      summary: `Switch the ${kind.replace("_", "-")} webhook on`,
      handle: async ({ caller, body }) => {
        await assistants.setWebhook(caller.accountId, body.assistant_id, kind, body.webhook_url);
        return json(200, { message: enabled, data: [] });
      },
    }),
    keyRoute({
      ...toggle(`disable-${path}`, DisableBody),
      summary: `Switch the ${kind.replace("_", "-")} webhook off`,
      handle: async ({ caller, body }) => {
        await assistants.setWebhook(caller.accountId, body.assistant_id, kind, null);
        return json(200, { message: disabled, data: [] });
      },
    }),
  ]);
}
