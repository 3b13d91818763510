// A tool's parameters as a model receives them, and the parsing of the arguments it fills in.
import { LIMITS } from "#core/limits.ts";
import { wholeStart } from "#core/values.ts";
import type { ModelFunction } from "#providers/models/port.ts";
import type { ItemType, ToolDescription, ToolParameter } from "./tools.ts";

type Item = string | number | boolean;
export type Value = Item | Item[];

/** `argument`: the name of the invalid one. */
export interface Misfit {
  error: string;
  argument: string;
}

const isRequired = ({ required = true }: ToolParameter): boolean => required;
export const itemTypeOf = ({ type, items }: ToolParameter): ItemType =>
  type === "array" ? (items?.type ?? "string") : type;

/** The parameter as JSON Schema. */
function schemaOf(parameter: ToolParameter): Record<string, unknown> {
  const { type, description, enum: choices } = parameter;
  const item = { type: itemTypeOf(parameter), ...(choices ? { enum: choices } : {}) };
  return type === "array" ? { type, items: item, description } : { ...item, description };
}

/** The function a model receives for a tool. */
export function modelFunctionOf(
  { name, description, schema, mcp }: ToolDescription,
): ModelFunction {
  if (mcp) return { name, description, parameters: { type: "object", ...mcp.inputSchema } };
  return {
    name,
    description,
    parameters: {
      type: "object",
      properties: Object.fromEntries(
        schema.map((parameter) => [parameter.name, schemaOf(parameter)])),
      required: schema.filter(isRequired).map((parameter) => parameter.name),
      additionalProperties: false,
    },
  };
}

/** One value converted leniently to its type; null when that is impossible. */
function itemOf(type: ItemType, value: unknown): Item | null {
  switch (type) {
    case "string":
      return typeof value === "string" || typeof value === "number" || typeof value === "boolean"
        ? wholeStart(String(value), LIMITS.toolArgumentCharsMax)
        : null;
    case "number": {
      const read = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
      return typeof read === "number" && Number.isFinite(read) ? read : null;
    }
    case "boolean":
      if (value === "true" || value === "false") return value === "true";
      return typeof value === "boolean" ? value : null;
  }
}

/** The argument converted to its parameter's type, or what is wrong with it. */
function valueOf(parameter: ToolParameter, given: unknown): { value: Value } | { error: string } {
  const { name, type, enum: choices } = parameter;
  const isList = type === "array";
  const item = itemTypeOf(parameter);
  // A single value stands for a list of one.
  const values = isList && Array.isArray(given) ? given : [given];
  const most = LIMITS.toolArgumentItemsMax;
  if (values.length > most) {
    return { error: `The argument ${name} may not have more than ${most} items.` };
  }
  const read = values.map((value) => itemOf(item, value));
  const items = read.filter((value) => value !== null);
  if (items.length < read.length) {
    const what = isList ? `an array of ${item}s` : `a ${item}`;
    return { error: `The argument ${name} must be ${what}.` };
  }
  if (choices && !items.every((value) => choices.some((choice) => choice === value))) {
    const which = isList ? "may only contain" : "must be one of";
    return { error: `The argument ${name} ${which}: ${choices.join(", ")}.` };
  }
  return { value: isList ? items : items[0] as Item };
}

/** Drops unknown arguments; a missing or invalid one gives an error that the model can act on. */
export function checkArguments(
  schema: ToolParameter[], args: Record<string, unknown>,
): { values: Map<string, Value> } | Misfit {
  const values = new Map<string, Value>();
  for (const parameter of schema) {
    const { name: argument } = parameter;
    const given = Object.hasOwn(args, argument) ? args[argument] : undefined;
    if (given === undefined || given === null) {
      if (!isRequired(parameter)) continue;
      return { error: `The argument ${argument} is missing.`, argument };
    }
    const read = valueOf(parameter, given);
    if ("error" in read) return { error: read.error, argument };
    values.set(argument, read.value);
  }
  return { values };
}
