// Checks every answer a test gets with fetch from a Parley server against the OpenAPI document:
// operation, status, content type and JSON body. An object with declared members may have no
// others, so that the server sends no undocumented field. Started by server.ts and process.ts; a
// test fails at an answer that the document does not have.
import assert from "node:assert/strict";
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import ajv, { type ValidateFunction } from "@redocly/ajv/dist/2020.js";
import type { Document } from "./document.ts";

export interface Answered {
  method: string;
  /** The path of the URL, without its query. */
  path: string;
  status: number;
  /** Without its parameters; empty if there is none. */
  contentType: string;
  /** Empty if the content is not JSON. */
  text: string;
}

/** What is wrong with an answer, by operation, status and place; null: nothing. */
export type AnswerCheck = (answered: Answered) => string | null;

interface Template {
  path: string;
  pattern: RegExp;
}

const JSON_TYPE = "application/json";
const BASE = "parley:";
const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;
/** Other paths of the same operations, which the document has only in its descriptions. */
const OTHER_SPELLINGS: Record<string, string> = { "/api/mcp": "/mcp", "/healthz": "/readyz" };
/** How the server refuses what it does not offer; some of it needs a key first. */
const NOT_OFFERED = [401, 404, 405, 501];
const REFUSALS = {
  anyOf: ["Refusal", "RefusalSuccess", "OpenAiError"]
    .map((name) => ({ $ref: `#/components/schemas/${name}` })),
};

/** Names of members are kept apart from names of keywords: a member may be called `examples`. */
function closed(value: unknown, isMembers = false): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => closed(item));
  const copy = Object.fromEntries(Object.entries(value)
    .filter(([name]) => isMembers || !/^(examples?|description)$/.test(name))
    .map(([name, member]) => [name, closed(member, !isMembers && name === "properties")]));
  if (typeof copy.$ref === "string" && !isMembers) return { ...copy, $ref: BASE + copy.$ref };
  const isOpen = isMembers || copy.properties === undefined
    || copy.additionalProperties !== undefined;
  return isOpen ? copy : { ...copy, additionalProperties: false };
}

/** Paths with fewer placeholders come first, as in the server's routing. */
function templatesOf({ paths, servers }: Document): Template[] {
  const placeholders = ({ path }: Template): number => path.split("{").length;
  return Object.entries(paths)
    .map(([path, item]) => {
      const [root] = (item as { servers?: Document["servers"] }).servers ?? servers;
      const whole = (root?.url ?? "").replace(/\/$/, "") + path;
      return { path, pattern: new RegExp(`^${whole.replaceAll(/\{\w+\}/g, "[^/]+")}$`) };
    })
    .sort((a, b) => placeholders(a) - placeholders(b));
}

/** Schemas are compiled when they are first needed. */
export function createAnswerCheck(document: Document): AnswerCheck {
  const templates = templatesOf(document);
  const { schemas, responses } = document.components;
  const compiler = new ajv.default({
    strict: false, validateSchema: false, inlineRefs: false,
    formats: { uuid: UUID, uri: true, binary: true, "time-zone": true },
  });
  compiler.addSchema({ $id: BASE, components: { schemas: closed(schemas, true) } });
  const compiled = new Map<object, ValidateFunction>();
  const faultsOf = (schema: object, text: string): string => {
    const validate = compiled.get(schema) ?? compiler.compile(closed(schema) as object);
    compiled.set(schema, validate);
    if (validate(JSON.parse(text))) return "";
    return (validate.errors ?? []).map(({ instancePath, message, params }) =>
      `${instancePath || "/"} ${message} ${JSON.stringify(params)}`).join("; ");
  };

  return ({ method, path: given, status, contentType, text }) => {
    const whole = OTHER_SPELLINGS[given] ?? given;
    const template = templates.find(({ pattern }) => pattern.test(whole));
    if (!template && !whole.startsWith("/api/")) return null;
    const path = template?.path ?? whole;
    const operation = document.paths[path]?.[method.toLowerCase()];
    const name = `${method} ${path} answered ${status}`;
    if (!operation && NOT_OFFERED.includes(status)) {
      const faults = faultsOf(REFUSALS, text);
      return faults === "" ? null : `${name}, but ${faults}: ${text}`;
    }
    const told = operation?.responses[status];
    if (!told) return `${name}, which the document does not have: ${text.slice(0, 600)}`;
    const { content } = told.$ref ? responses[told.$ref.split("/").at(-1) ?? ""] ?? told : told;
    if (!content) return text === "" ? null : `${name} with a body, and the document has none: ${text}`;
    const schema = content[contentType]?.schema;
    if (!schema) {
      return `${name} with ${contentType || "nothing"}, and the document has ${Object.keys(content).join()}`;
    }
    if (contentType !== JSON_TYPE) return null;
    const faults = faultsOf(schema, text);
    return faults === "" ? null : `${name}, but ${faults}: ${text.slice(0, 600)}`;
  };
}

interface Watched {
  check: AnswerCheck;
  report(problem: string): void;
}

const watched = new Map<string, Watched>();
let shared: AnswerCheck | null = null;

/** Fails at exit too: a client under test may take the failure for a network error and retry. */
function failAtExit(problem: string): void {
  process.once("exit", () => {
    console.error(problem);
    process.exitCode = 1;
  });
}

/** Answers from this address are checked until the returned function is called. */
export function checkAnswers(
  url: string, check: AnswerCheck, report: Watched["report"] = failAtExit,
): () => void {
  const { origin } = new URL(url);
  watched.set(origin, { check, report });
  return () => {
    watched.delete(origin);
  };
}

/** Made once for all files of a run, and kept beside what run.ts prepares. */
async function documentOfRun(make: () => object | Promise<object>): Promise<object> {
  const { PREPARED_DATABASE } = process.env;
  if (PREPARED_DATABASE === undefined) return make();
  const path = join(dirname(PREPARED_DATABASE), "openapi.json");
  if (existsSync(path)) return JSON.parse(readFileSync(path, "utf8")) as object;
  const document = await make();
  const whole = `${path}.${process.pid}`;
  writeFileSync(whole, JSON.stringify(document));
  renameSync(whole, path);
  return document;
}

/** Like `checkAnswers`, with one document for all servers: no setting changes it. */
export async function watchAnswers(
  url: string, make: () => object | Promise<object>,
): Promise<() => void> {
  shared ??= createAnswerCheck(await documentOfRun(make) as Document);
  return checkAnswers(url, shared);
}

const plainFetch = globalThis.fetch;

globalThis.fetch = async (input, init) => {
  const response = await plainFetch(input, init);
  const { origin, pathname } = new URL(response.url);
  const watch = watched.get(origin);
  const asked = init?.method ?? (input instanceof Request ? input.method : "GET");
  const method = response.redirected ? "GET" : asked.toUpperCase();
  if (!watch || method === "OPTIONS" || method === "HEAD") return response;
  const [contentType = ""] = (response.headers.get("content-type") ?? "").split(";");
  const text = contentType === JSON_TYPE ? await response.clone().text() : "";
  const { status } = response;
  const problem = watch.check({ method, path: pathname, status, contentType, text });
  if (problem === null) return response;
  watch.report(problem);
  return assert.fail(problem);
};
