// Calls a tool's endpoint for a turn. The call is journaled before it is sent and after it is
// answered: identical calls have one effect within their turn, and one whose outcome was lost in a
// crash is reported as unknown, never silently sent again. Trials, which belong to no turn, are in
// trials.ts.
import { hash } from "node:crypto";
import type { Logger } from "#core/logger.ts";
import { LIMITS } from "#core/limits.ts";
import type { Instant, System } from "#core/system.ts";
import { couldNotBeReached, mayNotBeCalled } from "#outbound/unreachable.ts";
import { checkArguments, type Misfit } from "./arguments.ts";
import { buildMcpRequest, buildRequest, type BuiltRequest } from "./building.ts";
import type { Tool } from "./tools.ts";

export type JournalOutcome =
  | { kind: "started"; id: number }
  /** The same call was answered before. */
  | { kind: "repeated"; result: Record<string, unknown> }
  /** The same call was sent before, and its outcome is not known. */
  | { kind: "unknown" };

export interface ToolJournal {
  begin(args: {
    scope: string; callKey: string; accountId: number; toolId: number; now: Instant;
  }): Promise<JournalOutcome>;
  /** `sent` false: the endpoint has certainly not received it, so the call may be retried. */
  finish(args: {
    accountId: number; id: number; result: Record<string, unknown>; sent: boolean; now: Instant;
  }): Promise<void>;
}

/** One request to an endpoint, made by workers/invoke-tool.ts. */
export interface EndpointRequest {
  /** Who pays with its share of the threads. */
  accountId: number;
  url: string;
  method: string;
  headers: Record<string, string>;
  body?: string;
  totalMs: number;
  bytesMax: number;
  /** Longest result as JSON text. */
  resultCharsMax: number;
  /** Also return the raw answer, for a person to look at. */
  isTrial?: boolean;
  mcp?: McpQuestion;
}

/** Asks the MCP server at the URL to call its tool or, when `tool` is null, for its list. */
interface McpQuestion {
  tool: string | null;
  arguments: Record<string, unknown>;
  /** The tool whose session to use; absent: one of its own, which ends with the request. */
  toolId?: number;
  /** This and the following are filled in by mcp-sessions.ts. */
  session?: McpSession;
  /** The first JSON-RPC id that this request may use in the session. */
  firstId?: number;
  /** The session is kept open after this request. */
  isKept?: boolean;
}

/** What the server's `initialize` response established. */
export interface McpSession {
  /** Null: the server uses no session id. */
  id: string | null;
  version: string;
}

export interface McpState {
  session: McpSession;
  /** The session was initialized for this request. */
  isNew: boolean;
  /** The server notified that its list of tools has changed. */
  hasNewTools: boolean;
}

/** The endpoint's answer, its text cleaned and no longer than a result. */
export interface Answered {
  status: number;
  headers: Record<string, string>;
  body: string;
}

/** Only trials have `answered`. */
export type EndpointReply =
  | { kind: "result"; result: Record<string, unknown>; answered?: Answered; mcp?: McpState }
  /** `sent` false: the status answered an earlier request; the call itself was not sent. */
  | { kind: "status"; status: number; sent?: boolean; answered?: Answered }
  | { kind: "refused"; reason: "url" | "address" }
  | { kind: "failed"; reason: string; sent: boolean; why?: string };

/** Sends one request from another thread; rejects when that thread fails. */
export type SendToEndpoint = (request: EndpointRequest) => Promise<EndpointReply>;

export interface SendingOptions {
  send: SendToEndpoint;
  system: System;
  log: Logger;
  observe(outcome: string, seconds: number): void;
}
interface InvocationOptions extends SendingOptions {
  journal: ToolJournal;
}

export interface InvocationContext {
  /** The scope of deduplication: stable across retries of the same turn, e.g. `turn:17`. */
  scope: string;
  /** Variables of the conversation, for `{{name}}` in the endpoint and in header values. */
  variables: Record<string, string>;
}

export type InvokeTool = (
  tool: Tool,
  args: Record<string, unknown>,
  context: InvocationContext,
) => Promise<Record<string, unknown>>;

/** A fixed text for the model and the owner. */
function failureText(reply: Exclude<EndpointReply, { kind: "result" }>): string {
  if (reply.kind === "refused") return `${mayNotBeCalled("The tool's endpoint", reply.reason)}.`;
  if (reply.kind === "status") {
    return reply.status >= 300 && reply.status < 400
      ? "The tool's endpoint answered with a redirect, which is not followed."
      : `The tool's endpoint answered with status ${reply.status}.`;
  }
  switch (reply.reason) {
    case "timeout":
      return "The tool's endpoint did not answer in time.";
    case "no_mcp":
      return "The tool's endpoint is not an MCP server.";
    case "too_large":
      return "The tool's endpoint sent too much data.";
    case "unreadable":
      return "The tool's endpoint compressed its answer in an unsupported way.";
    default:
      return `${couldNotBeReached("The tool's endpoint", reply.why)}.`;
  }
}

const UNKNOWN = {
  error: "The outcome of an earlier attempt is unknown; the call was not sent again.",
};

const LOCKED = { error: "The tool cannot be called: enter its headers again." };

interface PreparedRequest {
  built: BuiltRequest;
  /** Identifies a call by its tool and arguments. */
  digest: string;
}

const digestOf = (call: unknown[]): string =>
  hash("sha256", JSON.stringify(call), "hex");

/** The request of a call, or what is wrong with its arguments. */
export function prepareRequest(
  tool: Tool, args: Record<string, unknown>, variables: Record<string, string>,
): PreparedRequest | Misfit {
  const { mcp } = tool;
  if (mcp) {
    const built = buildMcpRequest(tool, { tool: mcp.tool, arguments: args }, variables);
    return { built, digest: digestOf([tool.id, mcp.tool, args]) };
  }
  const checked = checkArguments(tool.schema, args);
  if ("error" in checked) return checked;
  const built = buildRequest(tool, checked.values, variables);
  if ("error" in built) return built;
  return { built, digest: digestOf([tool.id, [...checked.values]]) };
}

/** An endpoint recognises a repeated request by this key. */
export const idempotencyKey = (scope: string, digest: string): string =>
  hash("sha256", `${scope} ${digest}`, "hex").slice(0, 40);

interface Sent {
  /** What the model receives. */
  result: Record<string, unknown>;
  /** True: the result came from the endpoint. */
  ok: boolean;
  /** False: the endpoint has certainly not received the call. */
  sent: boolean;
  seconds: number;
  /** Null unless it was a trial, and answered. */
  answered: Answered | null;
}

/** Sends one prepared request within the tool's timeout, and returns its outcome. */
export function createSender(options: SendingOptions) {
  const { send, system, log } = options;
  return async (tool: Tool, built: BuiltRequest, key: string, isTrial = false): Promise<Sent> => {
    const totalMs = tool.timeoutS * 1000;
    const startedMs = system.monotonicMs();
    const reply = await send({
      ...built,
      accountId: tool.accountId,
      headers: { ...built.headers, "idempotency-key": key },
      method: tool.method,
      totalMs,
      bytesMax: LIMITS.toolResponseBytesMax,
      resultCharsMax: LIMITS.functionResultCharsMax,
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
    log.warn({ tool_id: tool.id, outcome: kind, ...why, dur_ms: seconds * 1000 }, "a tool call failed");
    const sent = reply.kind !== "refused" && reply.sent !== false;
    return { result: { error: failureText(reply) }, ok: false, sent, seconds, answered };
  };
}

export function createInvokeTool(options: InvocationOptions): InvokeTool {
  const { journal, system } = options;
  const sendOnce = createSender(options);
  return async (tool, args, { scope, variables }) => {
    if (tool.isLocked) return LOCKED;
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
    await journal.finish({ accountId, id: begun.id, result, sent, now: system.now() });
    return result;
  };
}
