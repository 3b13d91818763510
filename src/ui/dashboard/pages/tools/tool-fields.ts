// The fields of a tool's form, and which of them are sent. Header values are secrets: stored ones
// are never shown, only kept or replaced.
import type { paths } from "#client/client.ts";

type Creation = NonNullable<paths["/user/tools"]["post"]["requestBody"]>;
export type NewTool = Creation["content"]["application/json"];
export type Tool =
  paths["/user/tools/{id}"]["get"]["responses"][200]["content"]["application/json"];
export type Parameter = Tool["schema"][number];
export type StaticField = Tool["static_fields"][number];

export interface HeaderField {
  name: string;
  /** What was typed; empty keeps what is stored. */
  value: string;
  /** Empty where no value is stored. */
  stored: string;
}

/** A parameter as the form has it: `list of numbers` is one type, choices are one text. */
export interface ParameterField {
  name: string;
  type: keyof typeof TYPES;
  description: string;
  isRequired: boolean;
  /** Separated by commas. */
  choices: string;
}

const TYPES = {
  "string": { type: "string" },
  "number": { type: "number" },
  "boolean": { type: "boolean" },
  "list of strings": { type: "array", items: { type: "string" } },
  "list of numbers": { type: "array", items: { type: "number" } },
  "list of booleans": { type: "array", items: { type: "boolean" } },
} as const satisfies Record<string, Pick<Parameter, "type" | "items">>;
export const TYPE_NAMES = Object.keys(TYPES) as ParameterField["type"][];

export interface ToolFields {
  name: string;
  description: string;
  method: Tool["method"];
  endpoint: string;
  timeout: number | null;
  body_format: Tool["body_format"];
  headers: HeaderField[];
  schema: ParameterField[];
  static_fields: StaticField[];
  /** For a tool of an MCP server, which defines the parameters itself. */
  mcp: NonNullable<Tool["mcp"]> | null;
}

export const EMPTY: ToolFields = {
  name: "", description: "", method: "POST", endpoint: "", timeout: 10, body_format: "json",
  headers: [], schema: [], static_fields: [], mcp: null,
};
export const EMPTY_PARAMETER: ParameterField = {
  name: "", type: "string", description: "", isRequired: true, choices: "",
};

function fieldOf(parameter: Parameter): ParameterField {
  const { name, type, description, required = true, enum: choices = [], items } = parameter;
  return {
    name, description,
    type: type === "array" ? `list of ${items?.type ?? "string"}s` : type,
    isRequired: required,
    choices: choices.join(", "),
  };
}

function parameterOf({ name, type, description, isRequired, choices }: ParameterField): Parameter {
  const texts = choices.split(",").map((text) => text.trim()).filter((text) => text !== "");
  const isNumeric = type.includes("number");
  return {
    name, ...TYPES[type], description,
    ...(isRequired ? {} : { required: false }),
    // What is not a number is sent as it was typed: the server refuses it at the field.
    ...(texts.length === 0 ? {} : {
      enum: texts.map((text) => (isNumeric && !Number.isNaN(Number(text)) ? Number(text) : text)),
    }),
  };
}

export function fieldsOf(tool: Tool): ToolFields {
  const {
    name, description, method, endpoint, timeout, body_format, static_fields, mcp = null,
  } = tool;
  return {
    name, description, method, endpoint, timeout, body_format, static_fields, mcp,
    schema: tool.schema.map(fieldOf),
    headers: tool.headers.map((header) => ({
      name: header.name, value: "", stored: header.value,
    })),
  };
}

export function bodyOf({ headers, schema, timeout, ...fields }: ToolFields): NewTool {
  return {
    ...fields,
    ...(timeout === null ? {} : { timeout }),
    schema: schema.map(parameterOf),
    headers: headers.map(({ name, value, stored }) => ({ name, value: value || stored })),
  };
}

/** The members of `fields` that differ from the tool's. */
export function changesOf(fields: ToolFields, tool: Tool): Partial<NewTool> {
  const before = bodyOf(fieldsOf(tool)) as unknown as Record<string, unknown>;
  return Object.fromEntries(Object.entries(bodyOf(fields)).filter(([name, value]) =>
    JSON.stringify(value) !== JSON.stringify(before[name])));
}
