// Builds the HTTP request of one tool call: URL, headers and body, from the model's arguments, the
// static fields and the conversation's variables.
import { fillNames } from "#engine/template.ts";
import type { Misfit, Value } from "./arguments.ts";
import type { Tool } from "./tools.ts";

export interface BuiltRequest {
  url: string;
  headers: Record<string, string>;
  body?: string;
  /** A call of an MCP server's tool; `body` is only for showing it. */
  mcp?: {
    tool: string;
    arguments: Record<string, unknown>;
    toolId: number;
  };
}

const PLACEHOLDER = /\{([A-Za-z][A-Za-z_]{0,31})\}/g;

type Pair = [name: string, value: Value];

/** Models write half an emoji at times, and `encodeURIComponent` throws on that. */
const encoded = (text: string): string => encodeURIComponent(text.toWellFormed());

/** A value as one URL segment; null when it would change the path. */
function urlPiece(value: Value): string | null {
  const text = String(value);
  return text === "." || text === ".." || text === "" ? null : encoded(text);
}

/** A list repeats its name for each item, as forms do. */
const asQuery = (pairs: Pair[]): URLSearchParams =>
  new URLSearchParams(pairs.flatMap(([name, value]) =>
    [value].flat().map((item) => [name, String(item)])));

/** The endpoint with its placeholders filled in, and the arguments they consumed. */
function fillEndpoint(
  { endpoint, schema }: Tool, values: Map<string, Value>, variable: (name: string) => string,
): { url: string; taken: Set<string> } | Misfit {
  let misfit: string | null = null;
  const taken = new Set<string>();
  const known = new Set(schema.map(({ name }) => name));
  const withVariables = fillNames(endpoint, (name) => encoded(variable(name)));
  const url = withVariables.replace(PLACEHOLDER, (whole, name: string) => {
    const value = values.get(name);
    // An omitted parameter leaves its placeholder empty; other braces are part of the endpoint.
    if (value === undefined) return known.has(name) ? "" : whole;
    taken.add(name);
    const piece = urlPiece(value);
    if (piece === null) misfit = name;
    return piece ?? "";
  });
  if (misfit === null) return { url, taken };
  const argument = String(misfit);
  return { error: `The argument ${argument} cannot be used in the URL.`, argument };
}

const headersOf = ({ headers }: Tool, withVariables: (text: string) => string) =>
  Object.fromEntries(headers.map(({ name, value }) =>
    [name.toLowerCase(), withVariables(value).replace(/[\r\n\0]/g, " ")]));

/** Arguments are not checked here: the server checks them against its own schema. */
export function buildMcpRequest(
  tool: Tool, mcp: Omit<NonNullable<BuiltRequest["mcp"]>, "toolId">, variables: Record<string, string>,
): BuiltRequest {
  const variable = (name: string): string =>
    (Object.hasOwn(variables, name) ? (variables[name] ?? "") : "");
  const withVariables = (text: string): string => fillNames(text, variable);
  const fixed = tool.staticFields.map(({ key, value }) => [key, withVariables(value)]);
  const args = { ...mcp.arguments, ...Object.fromEntries(fixed) as Record<string, string> };
  const params = { name: mcp.tool, arguments: args };
  return {
    url: fillNames(tool.endpoint, (name) => encoded(variable(name))),
    headers: headersOf(tool, withVariables),
    body: JSON.stringify({ method: "tools/call", params }),
    mcp: { tool: mcp.tool, arguments: args, toolId: tool.id },
  };
}

export function buildRequest(
  tool: Tool, values: Map<string, Value>, variables: Record<string, string>,
): BuiltRequest | Misfit {
  const variable = (name: string): string =>
    Object.hasOwn(variables, name) ? (variables[name] ?? "") : "";
  const withVariables = (text: string): string => fillNames(text, variable);
  const filled = fillEndpoint(tool, values, variable);
  if ("error" in filled) return filled;
  // Static fields come last, so that no argument of a model can override them.
  const pairs = [...new Map<string, Value>([
    ...[...values].filter(([name]) => !filled.taken.has(name)),
    ...tool.staticFields.map(({ key, value }): Pair => [key, withVariables(value)]),
  ])];
  const headers: Record<string, string> = headersOf(tool, withVariables);
  if (tool.method === "GET" || tool.method === "DELETE") {
    // The tool thread refuses an invalid URL.
    if (!URL.canParse(filled.url)) return { url: filled.url, headers };
    const url = new URL(filled.url);
    for (const [name, value] of asQuery(pairs)) url.searchParams.append(name, value);
    return { url: url.href, headers };
  }
  if (tool.bodyFormat === "form") {
    headers["content-type"] ??= "application/x-www-form-urlencoded";
    return { url: filled.url, headers, body: asQuery(pairs).toString() };
  }
  headers["content-type"] ??= "application/json";
  return { url: filled.url, headers, body: JSON.stringify(Object.fromEntries(pairs)) };
}
