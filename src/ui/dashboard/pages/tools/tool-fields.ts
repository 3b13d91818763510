// A tool as its form has it, and what of it is sent. Values of headers are secrets: those that are
// stored are never drawn, only kept or replaced.
import type { paths } from "../../../../client/client.ts";

type Creation = NonNullable<paths["/user/tools"]["post"]["requestBody"]>;
export type NewTool = Creation["content"]["application/json"];
export type Tool =
  paths["/user/tools/{id}"]["get"]["responses"][200]["content"]["application/json"];
export type Parameter = Tool["schema"][number];

export interface HeaderField {
  name: string;
  /** What was typed; empty keeps what is stored. */
  value: string;
  /** Empty where nothing is. */
  stored: string;
}

export interface ToolFields {
  name: string;
  description: string;
  method: Tool["method"];
  endpoint: string;
  timeout: number | null;
  headers: HeaderField[];
  schema: Parameter[];
}

export const EMPTY: ToolFields = {
  name: "", description: "", method: "POST", endpoint: "", timeout: 10, headers: [], schema: [],
};

export function fieldsOf(tool: Tool): ToolFields {
  const { name, description, method, endpoint, timeout, headers, schema } = tool;
  return {
    name, description, method, endpoint, timeout, schema,
    headers: headers.map((header) => ({ name: header.name, value: "", stored: header.value })),
  };
}

export function bodyOf({ headers, timeout, ...fields }: ToolFields): NewTool {
  return {
    ...fields,
    ...(timeout === null ? {} : { timeout }),
    headers: headers.map(({ name, value, stored }) => ({ name, value: value || stored })),
  };
}

/** What of `fields` is not as the tool has it. */
export function changesOf(fields: ToolFields, tool: Tool): Partial<NewTool> {
  const before = tool as unknown as Record<string, unknown>;
  return Object.fromEntries(Object.entries(bodyOf(fields)).filter(([name, value]) =>
    JSON.stringify(value) !== JSON.stringify(before[name])));
}
