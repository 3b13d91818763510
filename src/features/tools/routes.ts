// The wire of mid-call tools. Records travel unwrapped, changes under `data`, as the contract says.
import { Type, type Static } from "@sinclair/typebox";
import { LOST_TOO_OFTEN } from "#core/changing.ts";
import { LIMITS } from "#core/limits.ts";
import { about, collectingErrors, named, Nullable, OneOf } from "#core/schema.ts";
import { isoMicros } from "#core/system.ts";
import { IdOf, listOf, MessageSchema, savedOf } from "#http/answers.ts";
import { json } from "#http/exchange.ts";
import { keyRoute, seesSecrets, type Route } from "#http/route.ts";
import {
  CALL_STATES, TOOL_CALLS_SHOWN, toolNotFound, unsavedTool, type Tools,
} from "./tools.ts";
import type { Trial, TryTool } from "./trials.ts";
import {
  assertValid, CreateBody, createMessage, fieldsOf, newFieldsOf, ToolSchema, UpdateBody, wireTool,
} from "./wire.ts";

const TRIAL_FIELDS = {
  arguments: Type.Optional(Type.Record(Type.String(), Type.Unknown(), about(
    "The arguments a model would fill in, by parameter.", { order_number: "4711" }))),
  variables: Type.Optional(Type.Record(
    Type.String(), Type.String({ maxLength: LIMITS.variableCharsMax }), {
      maxProperties: LIMITS.variablesMax,
      ...about("Values for `{{name}}`, by name.", { company: "Ada's Flower Shop" }),
    })),
};
const TryBody = Type.Object(TRIAL_FIELDS);
const TryNewBody = Type.Object({ ...CreateBody.properties, ...TRIAL_FIELDS }, collectingErrors);
const HEADERS = { "content-type": "application/json" };
const Headers = Type.Record(Type.String(), Type.String());
const TrialSchema = Type.Object({
  ok: Type.Boolean(about("Whether the endpoint answered with a success status.")),
  duration_ms: Type.Integer(about("How long it took, in milliseconds.", 182)),
  request: Type.Object({
    method: Type.String(about("The HTTP method.", "GET")),
    url: Type.String(about("The URL.", "https://example.com/orders/4711")),
    headers: Type.Unsafe<Record<string, string>>({
      ...Headers, ...about("The request headers; values of configured ones are masked.", HEADERS),
    }),
    body: Nullable(Type.String(about("The request body; null if none.", "{}"))),
  }, about("What was sent.")),
  response: Nullable(Type.Object({
    status: Type.Integer(about("The response status.", 200)),
    headers: Type.Unsafe<Record<string, string>>({
      ...Headers, ...about("The response headers.", HEADERS),
    }),
    body: Type.String(about(
      `Its first ${LIMITS.functionResultCharsMax} characters, without invisible ones.`,
      "{\"state\":\"shipped\"}")),
  }, about("The response; null if none."))),
  result: Type.Record(Type.String(), Type.Unknown(), about(
    "What the model would receive.", { state: "shipped" })),
  error: Nullable(Type.String(about(
    "Why it failed; null if it did not.", "The endpoint answered 500."))),
}, named("ToolTrial", "The outcome of calling a tool's endpoint."));
const CallSchema = Type.Object({
  id: Type.Integer(about("The call's id.", 7)),
  state: OneOf(CALL_STATES, about(
    "answered: the endpoint returned a success status; failed: it did not, or could not be "
    + "reached; unknown: the request was sent, and its outcome was lost or is still pending.",
    "answered")),
  result: Nullable(Type.Record(Type.String(), Type.Unknown(), about(
    "What the model received.", { state: "shipped" }))),
  duration_ms: Nullable(Type.Integer(about("How long it took, in milliseconds.", 182))),
  created_at: Type.String(about("When it was made.", "2026-01-05T10:00:00.000000Z")),
}, named("ToolCall", "A call of a tool by an assistant."));
const SavedSchema = savedOf(ToolSchema);
const params = { id: IdOf("tool", "GET /user/tools") };

const COMMON = { tag: "Tools", errorShape: "message", notFound: "Tool not found" } as const;
const invalid = { 422: { description: "Fields are invalid, or the plan's limit is reached" } };

export function toolRoutes(tools: Tools, tryTool: TryTool): Route[] {
  return [
    ...readRoutes(tools), ...writeRoutes(tools), callsRoute(tools), tryRoute(tools, tryTool),
    tryNewRoute(tryTool),
  ];
}

const wireTrial = (trial: Trial): Static<typeof TrialSchema> => ({
  ok: trial.ok,
  duration_ms: trial.durationMs,
  request: trial.request,
  response: trial.response,
  result: trial.result,
  error: trial.ok ? null : String(trial.result.error),
});

function tryRoute(tools: Tools, tryTool: TryTool): Route {
  return keyRoute({
    ...COMMON,
    method: "POST",
    path: "/user/tools/{id}/try",
    isRepeatable: true,
    params,
    summary: "Try a tool",
    description: "Calls its endpoint as an assistant would, and returns what was sent and what "
      + "came back.",
    body: TryBody,
    responses: {
      200: { description: "The outcome, whether it worked or not", schema: TrialSchema },
      422: { description: "The arguments are invalid; nothing was sent" },
    },
    handle: async ({ caller, id, body }) => {
      const tool = await tools.find(caller.accountId, id);
      if (!tool) throw toolNotFound();
      return json(200, wireTrial(await tryTool(tool, body.arguments ?? {}, body.variables ?? {})));
    },
  });
}

function tryNewRoute(tryTool: TryTool): Route {
  return keyRoute({
    ...COMMON,
    method: "POST",
    path: "/user/tools/try",
    isRepeatable: true,
    summary: "Try a tool before it is saved",
    description: "Calls the endpoint as an assistant would, with the fields you send. Nothing is "
      + "stored.",
    body: TryNewBody,
    responses: {
      200: { description: "The outcome, whether it worked or not", schema: TrialSchema },
      422: { description: "Fields or arguments are invalid; nothing was sent" },
    },
    handle: async ({ caller, body }) => {
      assertValid(body, null, () => "Validation failed");
      const { arguments: args = {}, variables = {}, ...fields } = body;
      const tool = unsavedTool(caller.accountId, newFieldsOf(fields));
      return json(200, wireTrial(await tryTool(tool, args, variables)));
    },
  });
}

function callsRoute(tools: Tools): Route {
  return keyRoute({
    ...COMMON,
    method: "GET",
    path: "/user/tools/{id}/calls",
    params,
    summary: "List a tool's last calls",
    description: `Lists the last ${TOOL_CALLS_SHOWN} calls by assistants, newest first, as long as `
      + "calls are kept. Trials are not included.",
    responses: { 200: { description: "The calls", schema: listOf(CallSchema, "The calls.") } },
    handle: async ({ caller, id }) => {
      const calls = await tools.calls(caller.accountId, id);
      return json(200, calls.map((call) => ({
        id: call.id,
        state: call.state,
        result: call.result,
        // The clock may have been set back during the call.
        duration_ms: call.finishedAt === null
          ? null : Math.max(0, Math.round((call.finishedAt - call.createdAt) / 1000)),
        created_at: isoMicros(call.createdAt),
      })));
    },
  });
}

function readRoutes(tools: Tools): Route[] {
  return [
    keyRoute({
      ...COMMON,
      method: "GET",
      path: "/user/tools",
      summary: "List tools",
      responses: { 200: { description: "All tools", schema: listOf(ToolSchema, "All tools.") } },
      handle: async ({ caller }) => json(200, (await tools.list(caller.accountId))
        .map((tool) => wireTool(tool, seesSecrets(caller)))),
    }),
    keyRoute({
      ...COMMON,
      method: "GET",
      path: "/user/tools/{id}",
      params,
      summary: "Read a tool",
      responses: { 200: { description: "The tool", schema: ToolSchema } },
      handle: async ({ caller, id }) => {
        const tool = await tools.find(caller.accountId, id);
        if (!tool) throw toolNotFound();
        return json(200, wireTool(tool, seesSecrets(caller)));
      },
    }),
  ];
}

function writeRoutes(tools: Tools): Route[] {
  return [
    keyRoute({
      ...COMMON,
      method: "POST",
      path: "/user/tools",
      summary: "Create a tool",
      body: CreateBody,
      responses: { 201: { description: "Created", schema: SavedSchema }, ...invalid },
      handle: async ({ caller, body }) => {
        assertValid(body, null, createMessage);
        const tool = await tools.create(caller.accountId, newFieldsOf(body));
        return json(201, {
          message: "Tool created successfully", data: wireTool(tool, seesSecrets(caller)),
        });
      },
    }),
    ...(["PUT", "PATCH"] as const).map((method) =>
      keyRoute({
        ...COMMON,
        method,
        path: "/user/tools/{id}",
        params,
        summary: "Update a tool",
        description: "Changes only the fields you send. Headers, schema and static fields are "
          + "replaced as a whole.",
        body: UpdateBody,
        responses: { 200: { description: "Changed", schema: SavedSchema }, ...LOST_TOO_OFTEN },
        handle: async ({ caller, id, body }) => {
          const before = await tools.find(caller.accountId, id);
          if (!before) throw toolNotFound();
          assertValid(body, before, () => "Validation failed");
          const tool = await tools.update(caller.accountId, id, fieldsOf(body));
          return json(200, {
            message: "Tool updated successfully", data: wireTool(tool, seesSecrets(caller)),
          });
        },
      })),
    keyRoute({
      ...COMMON,
      method: "DELETE",
      path: "/user/tools/{id}",
      params,
      summary: "Delete a tool and remove it from every assistant",
      responses: { 200: { description: "Deleted", schema: MessageSchema } },
      handle: async ({ caller, id }) => {
        await tools.remove(caller.accountId, id);
        return json(200, { message: "Tool deleted successfully" });
      },
    }),
  ];
}
