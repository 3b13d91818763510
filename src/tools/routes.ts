// The wire of mid-call tools. Records travel unwrapped, changes under `data`, as the contract says.
import { Type, type Static } from "@sinclair/typebox";
import { LIMITS } from "../core/limits.ts";
import { Nullable } from "../core/schema.ts";
import { json } from "../http/exchange.ts";
import { keyRoute, seesSecrets, type Route } from "../http/route.ts";
import { toolNotFound, type Tools } from "./tools.ts";
import type { Trial, TryTool } from "./trials.ts";
import {
  assertValid, CreateBody, createMessage, fieldsOf, newFieldsOf, ToolSchema, UpdateBody, wireTool,
} from "./wire.ts";

const TryBody = Type.Object({
  arguments: Type.Optional(Type.Record(Type.String(), Type.Unknown(), {
    description: "What a model would fill in",
  })),
  variables: Type.Optional(Type.Record(
    Type.String(), Type.String({ maxLength: LIMITS.variableCharsMax }), {
      maxProperties: LIMITS.variablesMax, description: "Names to texts, filled in for {{name}}",
    })),
});
const Headers = Type.Record(Type.String(), Type.String());
const TrialSchema = Type.Object({
  ok: Type.Boolean({ description: "The endpoint answered with a status of success" }),
  duration_ms: Type.Integer(),
  request: Type.Object({
    method: Type.String(),
    url: Type.String(),
    headers: Type.Unsafe<Record<string, string>>({
      ...Headers, description: "Values of configured headers are ***",
    }),
    body: Nullable(Type.String()),
  }),
  response: Nullable(Type.Object({
    status: Type.Integer(),
    headers: Headers,
    body: Type.String({
      description: `Its first ${LIMITS.toolResultCharsMax} characters, without invisible ones`,
    }),
  })),
  result: Type.Record(Type.String(), Type.Unknown(), { description: "What a model would be told" }),
  error: Nullable(Type.String()),
});
const MessageSchema = Type.Object({ message: Type.String() });
const SavedSchema = Type.Object({ message: Type.String(), data: ToolSchema });
const InvalidSchema = Type.Object({
  message: Type.String(),
  errors: Type.Optional(Type.Record(Type.String(), Type.Array(Type.String()))),
});

const COMMON = { tag: "Tools", errorShape: "message", notFound: "Tool not found" } as const;
const missing = { 404: { description: "No such tool", schema: MessageSchema } };
const invalid = { 422: { description: "Fields at fault, or the plan's cap", schema: InvalidSchema } };

export function toolRoutes(tools: Tools, tryTool: TryTool): Route[] {
  return [...readRoutes(tools), ...writeRoutes(tools), tryRoute(tools, tryTool)];
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
    summary: "Call a tool's endpoint as a turn would, and see what was sent and what came back",
    body: TryBody,
    responses: {
      200: { description: "What came of it, well or not", schema: TrialSchema },
      ...missing,
      422: { description: "Arguments that do not fit; nothing was sent", schema: InvalidSchema },
    },
    handle: async ({ caller, id, body }) => {
      const tool = tools.find(caller.accountId, id);
      if (!tool) throw toolNotFound();
      return json(200, wireTrial(await tryTool(tool, body.arguments ?? {}, body.variables ?? {})));
    },
  });
}

function readRoutes(tools: Tools): Route[] {
  return [
    keyRoute({
      ...COMMON,
      method: "GET",
      path: "/user/tools",
      summary: "List the mid-call tools",
      responses: { 200: { description: "All tools", schema: Type.Array(ToolSchema) } },
      handle: ({ caller }) => json(200, tools.list(caller.accountId)
        .map((tool) => wireTool(tool, seesSecrets(caller)))),
    }),
    keyRoute({
      ...COMMON,
      method: "GET",
      path: "/user/tools/{id}",
      summary: "Read one tool",
      responses: { 200: { description: "The tool", schema: ToolSchema }, ...missing },
      handle: ({ caller, id }) => {
        const tool = tools.find(caller.accountId, id);
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
        summary: "Change what is sent; headers, schema and static fields as a whole",
        body: UpdateBody,
        responses: {
          200: { description: "Changed", schema: SavedSchema }, ...missing, ...invalid,
        },
        handle: async ({ caller, id, body }) => {
          const before = tools.find(caller.accountId, id);
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
      summary: "Delete a tool and take it from every assistant",
      responses: { 200: { description: "Deleted", schema: MessageSchema }, ...missing },
      handle: async ({ caller, id }) => {
        await tools.remove(caller.accountId, id);
        return json(200, { message: "Tool deleted successfully" });
      },
    }),
  ];
}
