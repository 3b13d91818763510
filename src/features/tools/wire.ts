// The wire of mid-call tools: schemas of requests and answers, rules that JSON Schema cannot
// express, and the mapping between records and answers. Secrets are masked for callers that may
// only read.
import { Type, type Static } from "@sinclair/typebox";
import { Fault } from "#core/faults.ts";
import {
  collectingErrors, errorsOf, HttpUrl, named, NonBlank, Nullable, OneOf, prepared, withMessage,
} from "#core/schema.ts";
import { MASK } from "#core/secrets.ts";
import { isoMicros } from "#core/system.ts";
import { isOwnHeader } from "#outbound/request.ts";
import { itemTypeOf } from "./arguments.ts";
import { DESCRIPTION_CHARS_MAX, isShortSchema } from "./mcp.ts";
import {
  BODY_FORMATS, ITEM_TYPES, LOCKED_PROBLEM, METHODS, PARAMETER_TYPES,
  type Tool, type ToolFields, type ToolParameter,
} from "./tools.ts";

const NAME_CHARS_MAX = 64;
const HEADERS_MAX = 20;
const HEADER_NAME_CHARS_MAX = 128;
const SECRET_CHARS_MAX = 4096;
const STATIC_FIELDS_MAX = 20;
const PARAMETERS_MAX = 30;
const CHOICES_MAX = 50;
const TIMEOUT_DEFAULT_S = 10;

const NAME_RULE = "must contain only lowercase letters and underscores, and start with a letter.";
const NAME_MESSAGE = `Tool name ${NAME_RULE}`;

const emptyWhenNull = prepared((value) => (value === null ? [] : value));

export const Header = Type.Object({
  name: Type.String({
    pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$",
    maxLength: HEADER_NAME_CHARS_MAX,
    description: "Name of the HTTP header",
    examples: ["Authorization"],
    ...withMessage("The header name must be a valid HTTP header name."),
  }),
  value: Type.String({
    pattern: "^[^\\r\\n\\0]+$",
    maxLength: SECRET_CHARS_MAX,
    description: `Sent with every call, with {{variable}} filled in. Encrypted at rest; read-only `
      + `keys see ${MASK}. Send ${MASK} to keep the stored value.`,
    examples: ["Bearer 8f2c"],
    ...withMessage("The header value must be one line of at most 4096 characters."),
  }),
});
const StaticField = Type.Object({
  key: NonBlank(HEADER_NAME_CHARS_MAX, {
    description: "The field's name; must differ from every parameter's name", examples: ["tenant"],
  }),
  value: Type.String({
    maxLength: SECRET_CHARS_MAX,
    description: `Sent with every call, with {{variable}} filled in. Encrypted at rest; read-only `
      + `keys see ${MASK}. Send ${MASK} to keep the stored value.`,
    examples: ["{{assistant_id}}"],
    ...prepared((value) =>
      (typeof value === "number" || typeof value === "boolean" ? String(value) : value)),
  }),
});
const Parameter = Type.Object({
  name: Type.String({
    pattern: "^[A-Za-z][A-Za-z_]{1,31}$",
    description: "The parameter's name, for the model and in the query or body",
    examples: ["order_number"],
    ...withMessage(
      "The parameter name must be 2 to 32 letters and underscores, and start with a letter."),
  }),
  type: Type.Unsafe<ToolParameter["type"]>({
    ...OneOf(PARAMETER_TYPES, {
      description: "The value's type; float is treated as number", examples: ["string"],
    }),
    ...prepared((value) => (value === "float" ? "number" : value)),
  }),
  description: Type.String({
    minLength: 3, maxLength: DESCRIPTION_CHARS_MAX,
    description: "Tells the model what the value is", examples: ["The number on the order"],
  }),
  required: Type.Optional(Type.Boolean({
    description: "Whether the model must fill it in. Default: true", examples: [true],
  })),
  enum: Type.Optional(Type.Array(
    Type.Union([Type.String({ minLength: 1, maxLength: DESCRIPTION_CHARS_MAX }), Type.Number()]), {
      minItems: 1, maxItems: CHOICES_MAX, uniqueItems: true,
      description: "The allowed values; for an array, of each of its items",
      examples: [["small", "large"]],
    })),
  items: Type.Optional(Type.Object({
    type: OneOf(ITEM_TYPES, { description: "The type of each item", examples: ["string"] }),
  }, { description: "The items of an array. Default: strings", examples: [{ type: "string" }] })),
});

const FIELDS = {
  name: Type.String({
    pattern: "^[a-z][a-z_]*$", maxLength: NAME_CHARS_MAX,
    description: "The name the model calls it by", examples: ["order_status"],
    ...withMessage(NAME_MESSAGE),
  }),
  description: NonBlank(DESCRIPTION_CHARS_MAX, {
    description: "When and how the model should use it", examples: ["Says where an order is."],
  }),
  endpoint: {
    ...HttpUrl("The endpoint must be a valid URL."),
    description: "The endpoint's URL; {parameter} and {{variable}} are filled in",
    examples: ["https://example.com/orders/{order_number}"],
  },
  method: Type.Unsafe<ToolFields["method"]>({
    ...OneOf(METHODS, {
      description: "The HTTP method. GET and DELETE send parameters in the query, the others in "
        + "the body",
      examples: ["GET"],
    }),
    ...prepared((value) => (typeof value === "string" ? value.toUpperCase() : value)),
  }),
};
const Mcp = Type.Optional(Nullable(Type.Object({
  tool: NonBlank(HEADER_NAME_CHARS_MAX, {
    description: "The tool's name on the MCP server", examples: ["get_weather"],
  }),
  input_schema: Type.Record(Type.String(), Type.Unknown(), {
    description: "The input schema from the MCP server, which checks the arguments",
    examples: [{ type: "object", properties: { city: { type: "string" } } }],
  }),
}, {
  description: "Set if the endpoint is an MCP server (Streamable HTTP) and this is one of its "
    + "tools; null for a plain endpoint",
    examples: [null],
})));
const LISTS = {
  mcp: Mcp,
  headers: Type.Optional(Type.Array(Header, {
    maxItems: HEADERS_MAX, ...emptyWhenNull, description: "Headers sent with every call",
    examples: [[{ name: "Authorization", value: "Bearer 8f2c" }]],
  })),
  schema: Type.Optional(Type.Array(Parameter, {
    maxItems: PARAMETERS_MAX, ...emptyWhenNull, description: "The parameters the model fills in",
    examples: [[{ name: "order_number", type: "string", description: "The number on the order" }]],
  })),
  static_fields: Type.Optional(Type.Array(StaticField, {
    maxItems: STATIC_FIELDS_MAX, ...emptyWhenNull,
    description: "Fields sent with every call in addition to the model's parameters",
    examples: [[{ key: "tenant", value: "acme" }]],
  })),
};
const Timeout = { minimum: 1, maximum: 30, description: "Timeout of a call in seconds",
  examples: [10] };
const Format = {
  description: "The body's encoding: JSON or form", examples: ["json"],
};
export const CreateBody = Type.Object({
  ...FIELDS, ...LISTS,
  timeout: Type.Optional(Type.Integer({ ...Timeout, default: TIMEOUT_DEFAULT_S })),
  body_format: Type.Optional(OneOf(BODY_FORMATS, { ...Format, default: "json" })),
}, collectingErrors);
export const UpdateBody = Type.Object({
  ...Type.Partial(Type.Object(FIELDS)).properties, ...LISTS,
  timeout: Type.Optional(Type.Integer(Timeout)),
  body_format: Type.Optional(OneOf(BODY_FORMATS, Format)),
}, collectingErrors);

export const ToolSchema = Type.Object({
  id: Type.Integer({ description: "The tool's id, as used in tool_ids", examples: [12] }),
  ...FIELDS,
  timeout: Type.Integer(Timeout),
  headers: Type.Array(Header, { description: "Headers sent with every call" }),
  schema: Type.Array(Parameter, { description: "The parameters the model fills in" }),
  body_format: OneOf(BODY_FORMATS, Format),
  static_fields: Type.Array(StaticField, { description: "Fields sent with every call" }),
  mcp: Mcp,
  problem: Nullable(Type.String({ description: "Why the tool cannot be called",
    examples: [LOCKED_PROBLEM] })),
  created_at: Type.String({ examples: ["2026-01-05T10:00:00.000000Z"], description: "When it was created" }),
  updated_at: Type.String({ examples: ["2026-01-05T10:00:00.000000Z"], description: "When it was last changed" }),
}, named("Tool", "An HTTP endpoint of yours that assistants can call."));

/** `showsSecrets`: the reader may see values of headers and static fields. */
export function wireTool(tool: Tool, showsSecrets: boolean): Static<typeof ToolSchema> {
  const { id, name, description, endpoint, method, timeoutS, schema, bodyFormat } = tool;
  const shown = <T extends { value: string }>(list: T[]): T[] =>
    showsSecrets ? list : list.map((item) => ({ ...item, value: MASK }));
  return {
    id, name, description, endpoint, method,
    timeout: timeoutS,
    headers: shown(tool.headers),
    schema,
    body_format: bodyFormat,
    static_fields: shown(tool.staticFields),
    ...(tool.mcp ? { mcp: { tool: tool.mcp.tool, input_schema: tool.mcp.inputSchema } } : {}),
    problem: tool.isLocked ? LOCKED_PROBLEM : null,
    created_at: isoMicros(tool.createdAt),
    updated_at: isoMicros(tool.updatedAt),
  };
}

type Given = Static<typeof UpdateBody>;

export function fieldsOf(fields: Given): Partial<ToolFields> {
  const { timeout, body_format, static_fields, mcp, ...given } = fields;
  return {
    ...given,
    ...(timeout === undefined ? {} : { timeoutS: timeout }),
    ...(body_format === undefined ? {} : { bodyFormat: body_format }),
    ...(mcp === undefined ? {} : {
      mcp: mcp && { tool: mcp.tool, inputSchema: mcp.input_schema },
    }),
    ...(static_fields === undefined ? {} : { staticFields: static_fields }),
  };
}

export function newFieldsOf(given: Static<typeof CreateBody>): ToolFields {
  const { name, description, endpoint, method } = given;
  return {
    timeoutS: TIMEOUT_DEFAULT_S, headers: [], schema: [], bodyFormat: "json", staticFields: [],
    mcp: null,
    ...fieldsOf(given), name, description, endpoint, method,
  };
}

type Report = (field: string, message: string) => void;

function checkParameters(schema: ToolParameter[], report: Report): void {
  schema.forEach((parameter, index) => {
    const { name, type, enum: choices, items } = parameter;
    if (schema.findIndex((other) => other.name === name) !== index) {
      report(`schema.${index}.name`, "The parameter name has a duplicate value.");
    }
    if (items && type !== "array") {
      report(`schema.${index}.items`, "Only a parameter of type array has items.");
    }
    const item = itemTypeOf(parameter);
    if (choices?.some((choice) => typeof choice !== item)) {
      report(`schema.${index}.enum`, item === "boolean"
        ? "A boolean has no enum."
        : `The values of enum must be ${item}s, as the parameter's type says.`);
    }
  });
}

/** Reports all errors at once; `message` words the refusal from the first of them. */
export function assertValid(
  given: Given, before: ToolFields | null, message: (first: string) => string,
): void {
  const errors = { ...errorsOf(given) };
  const report: Report = (field, text) => (errors[field] = [text]);
  checkParameters(given.schema ?? [], report);
  if (given.mcp && !isShortSchema(given.mcp.input_schema)) {
    report("mcp.input_schema", "The input schema is too long.");
  }
  (given.headers ?? []).forEach(({ name }, index) => {
    if (isOwnHeader(name)) report(`headers.${index}.name`, `The header ${name} may not be set.`);
  });
  const parameters = new Set((given.schema ?? before?.schema ?? []).map(({ name }) => name));
  const fields = given.static_fields ?? before?.staticFields ?? [];
  fields.forEach(({ key }, index) => {
    const field = `static_fields.${index}.key`;
    if (fields.findIndex((other) => other.key === key) !== index) {
      report(field, "The field's key has a duplicate value.");
    }
    if (parameters.has(key)) report(field, `The field ${key} is a parameter, which the model fills in.`);
  });
  const inOrder = Object.keys(CreateBody.properties).find((field) => errors[field]);
  const first = inOrder === undefined ? Object.values(errors)[0]?.[0] : errors[inOrder]?.[0];
  if (first !== undefined) throw new Fault(422, message(first), { errors });
}

export const createMessage = (first: string): string =>
  first === NAME_MESSAGE ? `The name field ${NAME_RULE}` : first;
