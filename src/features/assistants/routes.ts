// The wire of assistants: lists, create, read, change, delete and the webhook toggles. The schemas
// of the bodies are in settings.ts, the shapes of the answers in wire.ts.
import { Type, type TObject } from "@sinclair/typebox";
import { LOST_TOO_OFTEN } from "#core/changing.ts";
import { Fault } from "#core/faults.ts";
import { about, errorsOf, HttpsUrl, HttpUrl, OneOf } from "#core/schema.ts";
import { IdOf, listOf, MessageSchema } from "#http/answers.ts";
import { json } from "#http/exchange.ts";
import { pageEnvelope, pageQuery, PageSchema } from "#http/pagination.ts";
import { keyRoute, type Route } from "#http/route.ts";
import type { Assistants, WebhookKind } from "./assistants.ts";
import type { Capabilities } from "./capabilities.ts";
import type { Catalogs } from "./catalogs.ts";
import { ASSISTANT_TYPES, CreateBody, Id, UpdateBody } from "./settings.ts";
import { findWarnings } from "./warnings.ts";
import {
  AssistantSchema, assistantWire, OutboundSchema, outboundWire, SavedSchema, savedWire,
} from "./wire.ts";

interface AssistantRouteOptions {
  assistants: Assistants;
  catalogs: Catalogs;
  capabilities: Capabilities;
}

const PER_PAGE_DEFAULT = 10;
const NOT_FOUND = "Assistant not found";
const NOT_YOURS = "Assistant not found or does not belong to the authenticated user";

const common = { tag: "Assistants", errorShape: "message" } as const;
const missing = { description: "No such assistant" };
const params = { id: IdOf("assistant", "GET /user/assistants/get") };

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
  type: Type.Optional(OneOf(ASSISTANT_TYPES, about("Only assistants of this type."))),
});

function listRoutes({ assistants, catalogs, capabilities }: AssistantRouteOptions): Route[] {
  return [
    keyRoute({
      ...common,
      method: "GET",
      path: "/user/assistants/get",
      summary: "List assistants, in pages",
      query: ListQuery,
      responses: { 200: { description: "A page", schema: PageSchema(AssistantSchema) } },
      handle: async ({ caller, query, http, baseUrl }) => {
        const { page = 1, per_page: perPage = PER_PAGE_DEFAULT, type = null } = query;
        const { items, total } = await assistants.page(caller.accountId, { type, page, perPage });
        const rows = await Promise.all(
          items.map((assistant) => assistantWire(assistant, catalogs, capabilities)));
        const path = `${baseUrl}/user/assistants/get`;
        return json(200, pageEnvelope(
          { items: rows, total }, { path, query: http.query, page, perPage }));
      },
    }),
    keyRoute({
      ...common,
      method: "GET",
      path: "/user/assistants",
      summary: "List all assistants, unpaged",
      responses: { 200: { description: "The list",
        schema: listOf(AssistantSchema, "All of them.") } },
      handle: async ({ caller }) => {
        const all = await assistants.listAll(caller.accountId);
        return json(200, await Promise.all(
          all.map((assistant) => assistantWire(assistant, catalogs, capabilities))));
      },
    }),
    keyRoute({
      ...common,
      method: "GET",
      path: "/user/assistants/outbound",
      summary: "List all outbound assistants, active or not",
      responses: { 200: { description: "The list",
        schema: listOf(OutboundSchema, "All of them.") } },
      handle: async ({ caller }) =>
        json(200, (await assistants.listOutbound(caller.accountId)).map(outboundWire)),
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
    description: "Requires only a name and a prompt. Defaults: inactive, inbound, pipeline, UTC, "
      + "the first language and voice of the lists, and the default model.",
    responses: { 201: { description: "Created", schema: SavedSchema } },
    handle: async ({ caller, body }) => {
      const assistant = await assistants.create(caller.accountId, body, errorsOf(body));
      const warnings = await findWarnings(assistant, catalogs, capabilities);
      return json(201, savedWire("Assistant created successfully", assistant, warnings));
    },
  });
}

function readRoute({ assistants, catalogs, capabilities }: AssistantRouteOptions): Route {
  return keyRoute({
    ...common,
    method: "GET",
    path: "/user/assistant/{id}",
    summary: "Read an assistant",
    notFound: NOT_FOUND,
    params,
    responses: { 200: { description: "The assistant", schema: AssistantSchema } },
    handle: async ({ caller, id }) => {
      const assistant = await assistants.get(caller.accountId, id);
      return json(200, await assistantWire(assistant, catalogs, capabilities));
    },
  });
}

function changeRoute(options: AssistantRouteOptions, method: "PUT" | "PATCH"): Route {
  const { assistants, catalogs, capabilities } = options;
  return keyRoute({
    ...common,
    method,
    path: "/user/assistant/{id}",
    summary: "Update an assistant",
    description: "Changes only the fields you send. Null resets an optional setting to its "
      + "default. Calls in progress keep the settings they started with.",
    notFound: NOT_FOUND,
    params,
    body: UpdateBody,
    responses: { 200: { description: "Changed", schema: SavedSchema }, ...LOST_TOO_OFTEN },
    handle: async ({ caller, id, body }) => {
      const assistant = await assistants.update(caller.accountId, id, body, errorsOf(body));
      const warnings = await findWarnings(assistant, catalogs, capabilities);
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
    description: "Frees its phone number and campaigns. Its calls and conversations are kept.",
    notFound: NOT_YOURS,
    params,
    responses: { 200: { description: "Deleted", schema: MessageSchema } },
    handle: async ({ caller, id }) => {
      if (!await assistants.remove(caller.accountId, id)) throw new Fault(404, NOT_YOURS);
      return json(200, { message: "Assistant deleted successfully" });
    },
  });
}

const Toggled = Type.Object({
  message: MessageSchema.properties.message,
  data: Type.Array(Type.Unknown(), { maxItems: 0, ...about("Always empty.", []) }),
});
const AssistantId = { assistant_id: Id(about("The assistant's `id`.", 1)) };
const URL_TOLD = about("The URL the webhook is sent to.", "https://example.com/hooks/parley");
const EnableBody = Type.Object({
  ...AssistantId,
  webhook_url: { ...HttpUrl("The webhook url must be a valid URL."), ...URL_TOLD },
});
const EnableSecureBody = Type.Object({
  ...AssistantId,
  webhook_url: { ...HttpsUrl("The webhook url must be a valid HTTPS URL."), ...URL_TOLD },
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
      ...LOST_TOO_OFTEN,
    },
  });
  return WEBHOOKS.flatMap(({ path, kind, enableBody, enabled, disabled }) => [
    keyRoute({
      ...toggle(`enable-${path}`, enableBody),
      summary: `Turn on the ${kind.replace("_", "-")} webhook`,
      handle: async ({ caller, body }) => {
        await assistants.setWebhook(caller.accountId, body.assistant_id, kind, body.webhook_url);
        return json(200, { message: enabled, data: [] });
      },
    }),
    keyRoute({
      ...toggle(`disable-${path}`, DisableBody),
      summary: `Turn off the ${kind.replace("_", "-")} webhook`,
      handle: async ({ caller, body }) => {
        await assistants.setWebhook(caller.accountId, body.assistant_id, kind, null);
        return json(200, { message: disabled, data: [] });
      },
    }),
  ]);
}
