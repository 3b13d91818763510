// The building blocks of tools: the API's own Route records as sources, so that validation, errors,
// prices and rate limits are the API's; pages, and the limit on the size of an answer.
import { Type, type Static, type TObject, type TProperties, type TSchema } from "@sinclair/typebox";
import { strict as assert } from "node:assert";
import { Fault } from "#core/faults.ts";
import { WITH_MESSAGE } from "#core/schema.ts";
import type { HttpRequest } from "#http/exchange.ts";
import { pageQuery } from "#http/pagination.ts";
import type { Caller, Route } from "#http/route.ts";
import { compileValidation } from "#http/validation.ts";

/** The caller that a tool runs for. */
export interface ToolCaller {
  caller: Caller;
  http: HttpRequest;
  baseUrl: string;
}

export type Wire = Record<string, unknown>;

export interface Tool {
  name: string;
  title: string;
  description: string;
  scope: "read" | "write";
  annotations: Record<string, boolean>;
  /** JSON Schemas. */
  input: object;
  output: object;
  /** `given` is unchecked. Throws a Fault to refuse. */
  run(from: ToolCaller, given: Wire): Promise<Wire>;
}

/** The most characters of JSON in one answer: its texts are shortened until it fits. */
export const RESULT_CHARS_MAX = 100_000;
/** How long each text of an answer may be, in the order tried. */
const TEXT_CHARS_MAX = [Infinity, 8000, 2000, 500];
const CUT = "… [shortened]";
const ROWS_DEFAULT = 15;
export const ENTRIES_DEFAULT = 50;

function shortened(value: unknown, charsMax: number): unknown {
  if (typeof value === "string") {
    if (value.length <= charsMax) return value;
    // Half of a surrogate pair would not be valid text.
    return value.slice(0, charsMax - CUT.length).replace(/[\uD800-\uDBFF]$/, "") + CUT;
  }
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => shortened(item, charsMax));
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [name, shortened(item, charsMax)]));
}

/** Shortens the answer to RESULT_CHARS_MAX; throws Fault 422 when even short texts do not fit. */
export function fitted(answer: Wire): Wire {
  for (const charsMax of TEXT_CHARS_MAX) {
    const shorter = shortened(answer, charsMax) as Wire;
    if (JSON.stringify(shorter).length <= RESULT_CHARS_MAX) return shorter;
  }
  throw new Fault(422, "The answer is too large. Ask for fewer rows with per_page.");
}

export const propertiesOf = (schema: TSchema | undefined): TProperties =>
  (schema?.properties ?? {}) as TProperties;

/** Some members of a schema; naming one that does not exist is a mistake in this file. */
export function picked(schema: TSchema | undefined, names: readonly string[]): TProperties {
  const properties = propertiesOf(schema);
  return Object.fromEntries(names.map((name) => {
    const property = properties[name];
    assert(property, `no field ${name}`);
    return [name, property];
  }));
}

export const only = (record: unknown, names: readonly string[]): Wire =>
  Object.fromEntries(Object.entries(record as Wire).filter(([name]) => names.includes(name)));

export const rowsOf = (schema: TSchema | undefined): TSchema =>
  (schema as TSchema & { items: TSchema }).items;

interface Given {
  id?: number;
  uuid?: string;
  query?: Wire;
  body?: Wire;
  headers?: Record<string, string>;
}

/** An API route that is called without HTTP. */
interface Source {
  query: TSchema | undefined;
  body: TSchema | undefined;
  answer: TSchema | undefined;
  ask(from: ToolCaller, given?: Given): Promise<unknown>;
}

export function createSources(routes: readonly Route[]): (name: string) => Source {
  const byName = new Map(routes.map((route) => [`${route.method} ${route.path}`, route]));
  return (name) => {
    const route = byName.get(name);
    assert(route, `no route ${name}`);
    const query = route.query && compileValidation(route.query);
    const body = route.body && compileValidation(route.body, { isNew: route.method === "POST" });
    const handle = route.handle as (request: unknown) => ReturnType<Route["handle"]>;
    return {
      query: route.query,
      body: route.body,
      answer: route.responses[200]?.schema,
      ask: async ({ caller, http, baseUrl }, given = {}) => {
        const reply = await handle({
          caller, baseUrl,
          id: given.id ?? 0,
          uuid: given.uuid ?? "",
          query: query ? query(given.query ?? {}) : {},
          body: body ? body(given.body ?? {}) : {},
          // The headers belong to the MCP request: none of them is meant for the route.
          http: { ...http, query: "", params: [], headers: given.headers ?? {} },
        });
        assert("json" in reply, `${name} answered with something else than JSON`);
        return reply.json;
      },
    };
  };
}

interface Draft<Input extends TProperties> extends Omit<Tool, "input" | "output" | "run" | "scope"> {
  input: Input;
  output: TProperties;
  run(from: ToolCaller, args: Static<TObject<Input>>): Promise<Wire>;
}

/** Drops keywords that only this program's validation knows; other readers warn about them. */
const published = (schema: TSchema): object =>
  JSON.parse(JSON.stringify(schema, (name, value: unknown) =>
    typeof value === "string" && (name === "format" || name === WITH_MESSAGE)
      ? undefined
      : value)) as object;

export function tool<Input extends TProperties>(draft: Draft<Input>): Tool {
  const input: TObject = Type.Object(draft.input as TProperties, { additionalProperties: false });
  const validate = compileValidation(input);
  return {
    ...draft,
    scope: draft.annotations.readOnlyHint ? "read" : "write",
    input: published(input),
    output: published(Type.Object(draft.output)),
    run: async (from, given) => fitted(await draft.run(from, validate(given) as never)),
  };
}

export const READS = { readOnlyHint: true, openWorldHint: false };
export const Id = (description: string) => Type.Integer({ minimum: 1, description });
export const PAGE = { page: Type.Integer(), last_page: Type.Integer(), total: Type.Integer() };

/** One page of rows that are all in memory. */
export function pageOf<Row>(rows: Row[], { page = 1, per_page: size }: {
  page?: number | undefined; per_page: number;
}) {
  const last = Math.max(1, Math.ceil(rows.length / size));
  return {
    rows: rows.slice((page - 1) * size, page * size), page, last_page: last, total: rows.length,
  };
}

interface Listing extends Pick<Tool, "name" | "title" | "description"> {
  source: Source;
  fields: readonly string[];
}

/** A list the API pages itself. */
export function pagedTool(
  { source, fields, filters, ...head }: Listing & { filters: readonly string[] },
): Tool {
  const item = rowsOf(propertiesOf(source.answer).data);
  return tool({
    ...head,
    annotations: READS,
    input: picked(source.query, ["page", "per_page", ...filters]),
    output: { data: Type.Array(Type.Object(picked(item, fields))), ...PAGE },
    run: async (from, query) => {
      const answer = await source.ask(from, { query }) as Wire & { data: Wire[] };
      return {
        data: answer.data.map((row) => only(row, fields)),
        page: answer.current_page, last_page: answer.last_page, total: answer.total,
      };
    },
  });
}

/** A list that the API returns whole, bare or as `data`. */
export function wholeTool({ source, fields, ...head }: Listing): Tool {
  const { answer } = source;
  return tool({
    ...head,
    annotations: READS,
    input: pageQuery(ROWS_DEFAULT),
    output: {
      data: Type.Array(Type.Object(picked(rowsOf(propertiesOf(answer).data ?? answer), fields))),
      ...PAGE,
    },
    run: async (from, { page, per_page: size = ROWS_DEFAULT }) => {
      const given = await source.ask(from) as Wire[] | { data: Wire[] };
      const { rows, ...place } = pageOf(
        Array.isArray(given) ? given : given.data, { page, per_page: size });
      return { data: rows.map((row) => only(row, fields)), ...place };
    },
  });
}
