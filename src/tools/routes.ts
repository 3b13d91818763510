// The wire of mid-call tools. Records travel unwrapped, changes under `data`, as the contract says.
import { Type, type Static } from "@sinclair/typebox";
import { Fault } from "../core/faults.ts";
import { LIMITS } from "../core/limits.ts";
import {
  collectingErrors, errorsOf, HttpUrl, Nullable, prepared, withMessage,
} from "../core/schema.ts";
import { isoMicros } from "../core/system.ts";
import { json } from "../http/exchange.ts";
import { keyRoute, type Route } from "../http/route.ts";
import { isOwnHeader } from "../outbound/request.ts";
import {
  METHODS, PARAMETER_TYPES, toolNotFound, type Tool, type ToolFields, type Tools,
} from "./tools.ts";
import type { Trial, TryTool } from "./trials.ts";

const DESCRIPTION_CHARS_MAX = 255;
const NAME_CHARS_MAX = 64;
const HEADERS_MAX = 20;
const HEADER_NAME_CHARS_MAX = 128;
const HEADER_VALUE_CHARS_MAX = 4096;
const PARAMETERS_MAX = 30;
const TIMEOUT_DEFAULT_S = 10;

const NAME_RULE = "must contain only lowercase letters and underscores, and start with a letter.";
const NAME_MESSAGE = `Tool name ${NAME_RULE}`;

const oneOf = <T extends string>(values: readonly T[]) =>
  Type.Union(values.map((value) => Type.Literal(value)));
const emptyWhenNull = prepared((value) => (value === null ? [] : value));
const NonBlank = (maxLength: number) => Type.String({ pattern: "\\S", maxLength });

const Header = Type.Object({
  name: Type.String({
    pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$",
    maxLength: HEADER_NAME_CHARS_MAX,
    ...withMessage("The header name must be a valid HTTP header name."),
  }),
  value: Type.String({
    pattern: "^[^\\r\\n\\0]+$",
    maxLength: HEADER_VALUE_CHARS_MAX,
    ...withMessage("The header value must be one line of at most 4096 characters."),
  }),
});
const Parameter = Type.Object({
  name: Type.String({
    pattern: "^[A-Za-z][A-Za-z_]{1,31}$",
    ...withMessage(
      "The parameter name must be 2 to 32 letters and underscores, and start with a letter."),
  }),
  type: oneOf(PARAMETER_TYPES),
  description: Type.String({ minLength: 3, maxLength: DESCRIPTION_CHARS_MAX }),
});

const FIELDS = {
  name: Type.String({
    pattern: "^[a-z][a-z_]*$", maxLength: NAME_CHARS_MAX, ...withMessage(NAME_MESSAGE),
  }),
  description: NonBlank(DESCRIPTION_CHARS_MAX),
  endpoint: HttpUrl("The endpoint must be a valid URL."),
  method: Type.Unsafe<ToolFields["method"]>({
    ...oneOf(METHODS),
    ...prepared((value) => (typeof value === "string" ? value.toUpperCase() : value)),
  }),
};
const OPTIONAL = {
  timeout: Type.Optional(Type.Integer({ minimum: 1, maximum: 30, default: TIMEOUT_DEFAULT_S })),
  headers: Type.Optional(Type.Array(Header, { maxItems: HEADERS_MAX, ...emptyWhenNull })),
  schema: Type.Optional(Type.Array(Parameter, { maxItems: PARAMETERS_MAX, ...emptyWhenNull })),
};
const CreateBody = Type.Object({ ...FIELDS, ...OPTIONAL }, collectingErrors);
const UpdateBody = Type.Object({ ...Type.Partial(Type.Object(FIELDS)).properties, ...OPTIONAL },
  collectingErrors);

const ToolSchema = Type.Object({
  id: Type.Integer(),
  name: Type.String(),
  description: Type.String(),
  endpoint: Type.String(),
  method: oneOf(METHODS),
  timeout: Type.Integer(),
  headers: Type.Array(Header),
  schema: Type.Array(Parameter),
  created_at: Type.String(),
  updated_at: Type.String(),
});
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

function wireTool(tool: Tool): Static<typeof ToolSchema> {
  const { id, name, description, endpoint, method, timeoutS, headers, schema } = tool;
  return {
    id, name, description, endpoint, method, timeout: timeoutS, headers, schema,
    created_at: isoMicros(tool.createdAt),
    updated_at: isoMicros(tool.updatedAt),
  };
}

type Given = Static<typeof UpdateBody>;

/** Everything at fault at once; `message` words the refusal from the first of it. */
function assertValid(given: Given, message: (first: string) => string): void {
  const errors = { ...errorsOf(given) };
  const names = (given.schema ?? []).map(({ name }) => name);
  names.forEach((name, index) => {
    if (names.indexOf(name) !== index) {
      errors[`schema.${index}.name`] = ["The parameter name has a duplicate value."];
    }
  });
  (given.headers ?? []).forEach(({ name }, index) => {
    if (isOwnHeader(name)) errors[`headers.${index}.name`] = [`The header ${name} may not be set.`];
  });
  const inOrder = Object.keys({ ...FIELDS, ...OPTIONAL }).find((field) => errors[field]);
  const first = inOrder === undefined ? Object.values(errors)[0]?.[0] : errors[inOrder]?.[0];
  if (first !== undefined) throw new Fault(422, message(first), { errors });
}

const createMessage = (first: string): string =>
  first === NAME_MESSAGE ? `The name field ${NAME_RULE}` : first;

function changesOf({ timeout, ...given }: Given): Partial<ToolFields> {
  return { ...given, ...(timeout === undefined ? {} : { timeoutS: timeout }) };
}

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
      handle: ({ caller }) => json(200, tools.list(caller.accountId).map(wireTool)),
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
        return json(200, wireTool(tool));
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
        assertValid(body, createMessage);
        const { timeout = TIMEOUT_DEFAULT_S, headers = [], schema = [], ...fields } = body;
        const given = { ...fields, timeoutS: timeout, headers, schema };
        const tool = await tools.create(caller.accountId, given);
        return json(201, { message: "Tool created successfully", data: wireTool(tool) });
      },
    }),
    ...(["PUT", "PATCH"] as const).map((method) =>
      keyRoute({
        ...COMMON,
        method,
        path: "/user/tools/{id}",
        summary: "Change what is sent; headers and schema as a whole",
        body: UpdateBody,
        responses: {
          200: { description: "Changed", schema: SavedSchema }, ...missing, ...invalid,
        },
        handle: async ({ caller, id, body }) => {
          if (!tools.find(caller.accountId, id)) throw toolNotFound();
          assertValid(body, () => "Validation failed");
          const tool = await tools.update(caller.accountId, id, changesOf(body));
          return json(200, { message: "Tool updated successfully", data: wireTool(tool) });
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
