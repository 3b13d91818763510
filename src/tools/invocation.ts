// Calls a tool's endpoint for a turn. The call is journaled before it leaves and after it is
// answered: one identical call has one effect within its turn, and one whose outcome a crash took
// away is reported as unknown, never sent again in silence. Trials, which no turn asked for, are in
// trials.ts.
import { createHash } from "node:crypto";
import type { Logger } from "../core/logger.ts";
import { LIMITS } from "../core/limits.ts";
import type { Instant, System } from "../core/system.ts";
import type { ModelTool } from "../providers/models/port.ts";
import type { Tool, ToolDescription, ToolParameter } from "./tools.ts";

export type JournalOutcome =
  | { kind: "started"; id: number }
  /** The same call was answered before. */
  | { kind: "repeated"; result: Record<string, unknown> }
  /** The same call was sent before and nobody knows what came of it. */
  | { kind: "unknown" };

export interface ToolJournal {
  begin(args: {
    scope: string; callKey: string; accountId: number; toolId: number; now: Instant;
  }): Promise<JournalOutcome>;
  /** `sent` false: the endpoint has certainly not seen it, so the same call may be tried again. */
  finish(args: {
    id: number; result: Record<string, unknown>; sent: boolean; now: Instant;
  }): Promise<void>;
}

/** What is handed to the worker thread; the shapes are those of workers/invoke-tool.ts. */
export interface EndpointRequest {
  url: string;
  method: string;
  headers: Record<string, string>;
  body?: string;
  totalMs: number;
  bytesMax: number;
  resultCharsMax: number;
  isTrial?: boolean;
}
export interface Answered {
  status: number;
  headers: Record<string, string>;
  body: string;
}
/** `answered`: of trials alone. */
export type EndpointReply =
  | { kind: "result"; result: Record<string, unknown>; answered?: Answered }
  | { kind: "status"; status: number; answered?: Answered }
  | { kind: "refused"; reason: string }
  | { kind: "failed"; reason: string; sent: boolean };

/** Sends one request in another thread; rejects when that thread could not do it. */
export type SendToEndpoint = (request: EndpointRequest) => Promise<EndpointReply>;

export interface SendingOptions {
  send: SendToEndpoint;
  system: System;
  log: Logger;
  observe(outcome: string, seconds: number): void;
}
export interface InvocationOptions extends SendingOptions {
  journal: ToolJournal;
}

export interface InvocationContext {
  /** What the call happens in: stable across a retry of the same turn, e.g. `turn:17`. */
  scope: string;
  /** Variables of the conversation, for `{{name}}` in the endpoint and in header values. */
  variables: Record<string, string>;
}

export type InvokeTool = (
  tool: Tool,
  args: Record<string, unknown>,
  context: InvocationContext,
) => Promise<Record<string, unknown>>;

/** What the model is told it may call. */
export function modelToolOf(tool: ToolDescription): ModelTool {
  const properties = Object.fromEntries(tool.schema.map(({ name, type, description }) =>
    [name, { type, description }]));
  return {
    name: tool.name,
    description: tool.description,
    parameters: {
      type: "object", properties, required: tool.schema.map(({ name }) => name),
      additionalProperties: false,
    },
  };
}

type Value = string | number | boolean;

/** The argument as its parameter's type, read generously; null when it cannot be. */
function valueOf(parameter: ToolParameter, value: unknown): Value | null {
  switch (parameter.type) {
    case "string":
      return typeof value === "string" || typeof value === "number" || typeof value === "boolean"
        ? String(value).slice(0, LIMITS.toolArgumentCharsMax)
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

/** `argument`: which one is at fault. */
interface Misfit {
  error: string;
  argument: string;
}
type Checked = { values: Map<string, Value> } | Misfit;

/** Unknown arguments are dropped; a missing or misfit one is an answer the model can act on. */
function checkArguments(schema: ToolParameter[], args: Record<string, unknown>): Checked {
  const values = new Map<string, Value>();
  for (const parameter of schema) {
    const { name: argument, type } = parameter;
    const given = Object.hasOwn(args, argument) ? args[argument] : undefined;
    if (given === undefined || given === null) {
      return { error: `The argument ${argument} is missing.`, argument };
    }
    const value = valueOf(parameter, given);
    if (value === null) return { error: `The argument ${argument} must be a ${type}.`, argument };
    values.set(argument, value);
  }
  return { values };
}

const VARIABLE = /\{\{\s{0,8}([A-Za-z_][A-Za-z0-9_]{0,63})\s{0,8}\}\}/g;
const PLACEHOLDER = /\{([A-Za-z][A-Za-z_]{0,31})\}/g;

/** A value as one piece of a URL; null when it would climb out of its place. */
function urlPiece(value: Value): string | null {
  const text = String(value);
  return text === "." || text === ".." || text === "" ? null : encodeURIComponent(text);
}

export interface BuiltRequest {
  url: string;
  headers: Record<string, string>;
  body?: string;
}

function buildRequest(
  { endpoint, method, headers: configured }: Tool,
  values: Map<string, Value>,
  variables: Record<string, string>,
): BuiltRequest | Misfit {
  let misfit: string | null = null;
  const variable = (name: string): string =>
    Object.hasOwn(variables, name) ? (variables[name] ?? "") : "";
  const inPath = new Set<string>();
  const withVariables = endpoint.replace(VARIABLE, (_, name: string) =>
    encodeURIComponent(variable(name)));
  const filled = withVariables.replace(PLACEHOLDER, (whole, name: string) => {
    const value = values.get(name);
    if (value === undefined) return whole;
    inPath.add(name);
    const piece = urlPiece(value);
    if (piece === null) misfit = name;
    return piece ?? "";
  });
  if (misfit !== null) {
    const argument = String(misfit);
    return { error: `The argument ${argument} cannot be used there.`, argument };
  }
  const rest = [...values].filter(([name]) => !inPath.has(name));
  const headers: Record<string, string> = {};
  for (const { name, value } of configured) {
    const text = value.replace(VARIABLE, (_, key: string) => variable(key));
    headers[name.toLowerCase()] = text.replace(/[\r\n\0]/g, " ");
  }
  if (method === "GET" || method === "DELETE") {
    // The thread refuses what is no URL.
    if (!URL.canParse(filled)) return { url: filled, headers };
    const url = new URL(filled);
    for (const [name, value] of rest) url.searchParams.append(name, String(value));
    return { url: url.href, headers };
  }
  headers["content-type"] ??= "application/json";
  return { url: filled, headers, body: JSON.stringify(Object.fromEntries(rest)) };
}

/** Fixed words: what really happened is in the log, for whoever runs the server. */
function failureText(reply: Exclude<EndpointReply, { kind: "result" }>): string {
  if (reply.kind === "refused") return "The tool's endpoint may not be called.";
  if (reply.kind === "status") {
    return reply.status >= 300 && reply.status < 400
      ? "The tool's endpoint answered with a redirect, which is not followed."
      : `The tool's endpoint answered with status ${reply.status}.`;
  }
  switch (reply.reason) {
    case "timeout":
      return "The tool's endpoint did not answer in time.";
    case "too_large":
      return "The tool's endpoint sent too much data.";
    default:
      return "The tool's endpoint could not be reached.";
  }
}

const UNKNOWN = {
  error: "The outcome of an earlier attempt is unknown; the call was not sent again.",
};

export interface PreparedRequest {
  built: BuiltRequest;
  /** Tells one call of the tool from another. */
  digest: string;
}

/** The request a call is, or what is wrong with its arguments. */
export function prepareRequest(
  tool: Tool, args: Record<string, unknown>, variables: Record<string, string>,
): PreparedRequest | Misfit {
  const checked = checkArguments(tool.schema, args);
  if ("error" in checked) return checked;
  const built = buildRequest(tool, checked.values, variables);
  if ("error" in built) return built;
  const digest = createHash("sha256")
    .update(JSON.stringify([tool.id, [...checked.values]])).digest("hex");
  return { built, digest };
}

/** By which an endpoint can tell a repeated request. */
export const idempotencyKey = (scope: string, digest: string): string =>
  createHash("sha256").update(`${scope} ${digest}`).digest("hex").slice(0, 40);

export interface Sent {
  /** What the model is told. */
  result: Record<string, unknown>;
  /** Whether the result is the endpoint's. */
  ok: boolean;
  /** False: the endpoint has certainly not seen it. */
  sent: boolean;
  seconds: number;
  /** Null unless it was a trial, and answered. */
  answered: Answered | null;
}

/** Sends one prepared request within the tool's time, and tells what came of it. */
export function createSender(options: SendingOptions) {
  const { send, system, log } = options;
  return async (tool: Tool, built: BuiltRequest, key: string, isTrial = false): Promise<Sent> => {
    const totalMs = tool.timeoutS * 1000;
    const startedMs = system.monotonicMs();
    const reply = await send({
      ...built,
      headers: { ...built.headers, "idempotency-key": key },
      method: tool.method,
      totalMs,
      bytesMax: LIMITS.toolResponseBytesMax,
      resultCharsMax: LIMITS.toolResultCharsMax,
      ...(isTrial ? { isTrial } : {}),
    }).catch((error: unknown): EndpointReply => {
      log.error({ err: error, tool_id: tool.id }, "the tool thread failed");
      return { kind: "failed", reason: "thread", sent: true };
    });
    const seconds = (system.monotonicMs() - startedMs) / 1000;
    options.observe(reply.kind === "result" ? "ok" : reply.kind, seconds);
    const answered = ("answered" in reply ? reply.answered : null) ?? null;
    if (reply.kind === "result") {
      return { result: reply.result, ok: true, sent: true, seconds, answered };
    }
    const { kind, ...why } = { ...reply, answered: undefined };
    log.warn({ tool_id: tool.id, outcome: kind, ...why, dur_ms: seconds * 1000 }, "tool call failed");
    const sent = reply.kind === "status" || (reply.kind === "failed" && reply.sent);
    return { result: { error: failureText(reply) }, ok: false, sent, seconds, answered };
  };
}

export function createInvokeTool(options: InvocationOptions): InvokeTool {
  const { journal, system } = options;
  const sendOnce = createSender(options);
  return async (tool, args, { scope, variables }) => {
    const prepared = prepareRequest(tool, args, variables);
    if ("error" in prepared) return { error: prepared.error };
    const { built, digest } = prepared;
    const { accountId, id: toolId } = tool;
    const begun = await journal.begin({
      scope, callKey: digest, accountId, toolId, now: system.now(),
    });
    if (begun.kind === "repeated") return begun.result;
    if (begun.kind === "unknown") return UNKNOWN;
    const { result, sent } = await sendOnce(tool, built, idempotencyKey(scope, digest));
    await journal.finish({ id: begun.id, result, sent, now: system.now() });
    return result;
  };
}
