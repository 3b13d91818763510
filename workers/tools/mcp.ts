// Talks to an owner's MCP server over Streamable HTTP: `initialize`, unless an earlier request did
// it, then one request. Everything sent passes the guard that tools' requests pass. Called by
// invoke-tool.ts.
import { setTimeout as wait } from "node:timers/promises";
import { createParser } from "eventsource-parser";
import { timeLimit } from "#core/system.ts";
import { isRecord, jsonOf, listOf, textOf } from "#core/values.ts";
import type {
  EndpointReply, EndpointRequest, McpSession, McpState,
} from "#features/tools/invocation.ts";
import type { McpTool } from "#features/tools/mcp.ts";
import type { OutboundReply } from "#outbound/request.ts";
import type { Endpoints } from "./answers.ts";

/** A server answers with its newest version that is not newer than this. */
const PROTOCOL_VERSION = "2025-11-25";
const TOOLS_MAX = 200;
const PAGES_MAX = 20;
const LIST_BYTES_MAX = 1024 * 1024;
const TELL_MS = 2000;
/** Requests from the server beyond this number are not answered. */
const QUESTIONS_MAX = 100;
const METHOD_NOT_FOUND = -32601;
/** The delay before a stream is resumed, if the server does not set one. */
const RESUME_MS = 1000;
const RESUME_MS_MIN = 100;
/** Failed attempts in a row to resume a stream. */
const RESUME_FAILURES_MAX = 2;
const TOOLS_CHANGED = "notifications/tools/list_changed";
const CLIENT = { name: "parley", version: "1" };

type Json = Record<string, unknown>;
/** `text`: the raw answer, for people who inspect it. */
type Answer = { message: Json; headers: Record<string, string>; status: number; text: string };
type OnPart = NonNullable<Parameters<Endpoints["request"]>[0]["onPart"]>;
type Failure = Exclude<EndpointReply, { kind: "result" }>;

/** Where a stream ended; an id of null: it cannot be resumed. */
type Place = { id: string | null; retryMs: number };

/** The server has forgotten the session, or never knew it: it did not process the request. */
class SessionGone extends Error {}

class McpFailure extends Error {
  readonly reply: Failure;

  constructor(reply: Failure) {
    super("the MCP server sent no answer");
    this.reply = reply;
  }
}

const isLate = (error: unknown): boolean =>
  error instanceof McpFailure && error.reply.kind === "failed" && error.reply.reason === "timeout";

/** The connection broke, or the server refused to resume the stream. */
const isBroken = ({ reply }: McpFailure): boolean =>
  reply.kind === "status" || (reply.kind === "failed" && reply.reason === "unreachable");

/** A failure after the server took the call does not prove that nothing was called. */
const taken = (reply: Failure): Failure =>
  (reply.kind === "refused" ? { kind: "failed", reason: "unreachable", sent: true }
    : { ...reply, sent: true });

const isStream = (headers: Record<string, string>): boolean =>
  /^text\/event-stream\b/i.test(headers["content-type"] ?? "");

/** The messages of a reply: one, or those of a stream. */
function messagesIn({ headers, body }: Extract<OutboundReply, { kind: "reply" }>): Json[] {
  const text = body.toString("utf8");
  const found: unknown[] = [];
  if (isStream(headers)) {
    const parser = createParser({ onEvent: ({ data }) => void found.push(jsonOf(data)) });
    parser.feed(text.endsWith("\n\n") ? text : `${text}\n\n`);
  } else found.push(jsonOf(text));
  return found.filter(isRecord);
}

/**
 * The protocol demands 404; servers based on the SDK's examples answer 400 with a text, those based
 * on Python's SDK used to do so without any JSON.
 */
function isGone({ status, body }: Extract<OutboundReply, { kind: "reply" }>): boolean {
  if (status !== 400) return status === 404;
  const text = body.toString("utf8");
  if (/^bad request: no valid session id/i.test(text)) return true;
  const message = jsonOf(text);
  return isRecord(message) && (message.id ?? null) === null && isRecord(message.error)
    && /session|initializ/i.test(textOf(message.error.message));
}

/** Sends requests one after another, with the session id and version that `initialize` returned. */
class Session {
  readonly #endpoints: Endpoints;
  readonly #request: EndpointRequest;
  readonly #signal: AbortSignal;
  readonly #headers: Record<string, string>;
  #nextId: number;
  /** An earlier request opened the session: the server may have forgotten it. */
  #isOld = false;
  #hasNewTools = false;

  constructor(endpoints: Endpoints, request: EndpointRequest) {
    this.#endpoints = endpoints;
    this.#request = request;
    this.#signal = timeLimit(request.totalMs).signal;
    this.#nextId = request.mcp?.firstId ?? 1;
    // Under the same key, a server could take three different requests for one.
    const { "idempotency-key": _, ...headers } = request.headers;
    this.#headers = {
      ...headers, "content-type": "application/json",
      accept: "application/json, text/event-stream",
    };
  }

  resume({ id, version }: McpSession): void {
    this.#isOld = true;
    this.#headers["mcp-protocol-version"] = version;
    if (id !== null) this.#headers["mcp-session-id"] = id;
  }

  /** The session that later requests can resume. */
  state(isNew: boolean): McpState {
    const { "mcp-session-id": id = null, "mcp-protocol-version": version = "" } = this.#headers;
    return { session: { id, version }, isNew, hasNewTools: this.#hasNewTools };
  }

  /** Sends `initialize`; if that fails, certainly nothing was called. */
  async open(): Promise<void> {
    this.#isOld = false;
    delete this.#headers["mcp-session-id"];
    delete this.#headers["mcp-protocol-version"];
    const { message: { result } } = await this.ask("initialize", {
      protocolVersion: PROTOCOL_VERSION, capabilities: {}, clientInfo: CLIENT,
    });
    const version = isRecord(result) ? result.protocolVersion : null;
    this.#headers["mcp-protocol-version"] = typeof version === "string" ? version : PROTOCOL_VERSION;
    await this.#send({ jsonrpc: "2.0", method: "notifications/initialized" });
  }

  async ask(method: string, params: Json, more: Record<string, string> = {}): Promise<Answer> {
    const id = this.#nextId;
    this.#nextId += 1;
    const isAnswer = (one: Json): boolean => one.id === id && ("result" in one || "error" in one);
    return this.#answerTo({ jsonrpc: "2.0", id, method, params }, more, isAnswer)
      .catch((error: unknown) => {
        if (method !== "initialize" && isLate(error)) this.#cancel(id);
        throw error;
      });
  }

  /** A server may end its stream before the answer, and expect the client to resume it later. */
  async #answerTo(
    question: Json, more: Record<string, string>, isAnswer: (one: Json) => boolean,
  ): Promise<Answer> {
    const place: Place = { id: null, retryMs: RESUME_MS };
    const listen = this.#listener(isAnswer, place);
    let failures = 0;
    for (let isTaken = false; ; isTaken = true) {
      try {
        const reply = isTaken
          ? await this.#goOn(place, listen())
          : await this.#send(question, more, listen());
        const messages = messagesIn(reply);
        this.#hasNewTools ||= messages.some((one) => one.method === TOOLS_CHANGED);
        const message = messages.find(isAnswer);
        const { status, headers } = reply;
        if (message) return { message, headers, status, text: reply.body.toString("utf8") };
        if (place.id === null) {
          throw new McpFailure({ kind: "failed", reason: "no_mcp", sent: true });
        }
        failures = 0;
      } catch (error) {
        if (!(error instanceof McpFailure)) throw error;
        failures += 1;
        if (place.id !== null && isBroken(error) && failures <= RESUME_FAILURES_MAX) continue;
        throw isTaken ? new McpFailure(taken(error.reply)) : error;
      }
    }
  }

  async #goOn({ id, retryMs }: Place, onPart: OnPart) {
    await wait(Math.max(retryMs, RESUME_MS_MIN), null, { signal: this.#signal })
      .catch(() => {
        throw new McpFailure({ kind: "failed", reason: "timeout", sent: true });
      });
    return this.#send(null, { "last-event-id": id ?? "" }, onPart);
  }

  /**
   * Reads streams as they arrive, one after another: a server may send requests of its own before
   * it answers and wait for theirs, and need not end the stream once it has answered.
   */
  #listener(isAnswer: (one: Json) => boolean, place: Place): () => OnPart {
    let isAnswered = false;
    let questions = 0;
    const hear = (message: unknown): void => {
      if (!isRecord(message)) return;
      isAnswered ||= isAnswer(message);
      if (message.id === undefined || typeof message.method !== "string") return;
      questions += 1;
      if (questions <= QUESTIONS_MAX) this.#reply(message.id, message.method);
    };
    return () => {
      const decoder = new TextDecoder();
      const parser = createParser({
        onEvent: ({ id, data }) => {
          if (id !== undefined && id !== "") place.id = id;
          hear(jsonOf(data));
        },
        onRetry: (ms) => (place.retryMs = ms),
      });
      return (part, headers) => {
        const isPlain = /^(identity)?$/i.test(headers["content-encoding"] ?? "");
        if (isStream(headers) && isPlain) parser.feed(decoder.decode(part, { stream: true }));
        return isAnswered;
      };
    };
  }

  /** There is no user or model here for the server's requests: told so, it continues without. */
  #reply(id: unknown, method: string): void {
    const said = method === "ping"
      ? { result: {} }
      : { error: { code: METHOD_NOT_FOUND, message: `The method ${method} is not supported.` } };
    this.#tell("POST", { jsonrpc: "2.0", id, ...said });
  }

  /** Asks the server to end the session. */
  close(): void {
    if (this.#headers["mcp-session-id"] !== undefined) this.#tell("DELETE");
  }

  /** Closing the connection cancels nothing: servers continue to work on the request. */
  #cancel(requestId: number): void {
    this.#tell("POST", {
      jsonrpc: "2.0", method: "notifications/cancelled",
      params: { requestId, reason: "There was no answer in time." },
    });
  }

  /** Sends without waiting for the server's reply. */
  #tell(method: string, message?: Json): void {
    void this.#endpoints.request({
      url: this.#request.url, method, headers: this.#headers,
      ...message && { body: JSON.stringify(message) },
      totalMs: TELL_MS, bytesMax: LIST_BYTES_MAX,
    });
  }

  /** Without a message: resumes a stream. */
  async #send(
    message: Json | null, more: Record<string, string> = {}, onPart?: OnPart,
  ): Promise<Extract<OutboundReply, { kind: "reply" }>> {
    const { url, totalMs, bytesMax } = this.#request;
    let reply: Awaited<ReturnType<Endpoints["request"]>>;
    try {
      reply = await this.#endpoints.request({
        url, method: message ? "POST" : "GET", headers: { ...this.#headers, ...more },
        ...message && { body: JSON.stringify(message) },
        totalMs, bytesMax: Math.max(bytesMax, LIST_BYTES_MAX),
        ...onPart && { onPart },
      }, this.#signal);
    } catch (error) {
      if (!this.#signal.aborted) throw error;
      throw new McpFailure({ kind: "failed", reason: "timeout", sent: true });
    }
    if (reply.kind !== "reply") throw new McpFailure(reply);
    const { status, headers: { "mcp-session-id": session } } = reply;
    if (message && this.#isOld && isGone(reply)) throw new SessionGone();
    if (status < 200 || status > 299) throw new McpFailure({ kind: "status", status });
    if (session !== undefined) this.#headers["mcp-session-id"] ??= session;
    return reply;
  }
}

/** Audio and images are only named; embedded text is included, links are given by URL. */
function wordsOf(part: Json): string {
  if (part.type === "text") return textOf(part.text);
  const { name, description, uri, text } = isRecord(part.resource) ? part.resource : part;
  const named = [textOf(part.type) || "content", name, description, uri].map(textOf);
  const words = [`[${named.filter((one) => one !== "").join(" ")}]`, textOf(text)];
  return words.filter((one) => one !== "").join("\n");
}

/** The part of a result that a model can use: its structured content, or else its texts. */
function resultOf(message: Json): Json {
  if (isRecord(message.error)) return { error: textOf(message.error.message) || "The call failed." };
  const result = isRecord(message.result) ? message.result : {};
  const parts = listOf(result.content).filter(isRecord);
  const text = parts.map(wordsOf).join("\n");
  if (result.isError === true) return { error: text || "The tool failed." };
  return isRecord(result.structuredContent) ? result.structuredContent : { text };
}

async function listed(session: Session): Promise<McpTool[]> {
  const tools: McpTool[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < PAGES_MAX && tools.length < TOOLS_MAX; page += 1) {
    const { message } = await session.ask("tools/list", cursor === undefined ? {} : { cursor });
    const result = isRecord(message.result) ? message.result : {};
    for (const tool of listOf(result.tools).filter(isRecord)) {
      const { name, description, inputSchema } = tool;
      if (typeof name !== "string" || tools.length === TOOLS_MAX) continue;
      tools.push({
        name, description: textOf(description),
        inputSchema: isRecord(inputSchema) ? inputSchema : { type: "object" },
      });
    }
    if (typeof result.nextCursor !== "string") break;
    cursor = result.nextCursor;
  }
  return tools;
}

/** A failure before the call was sent has certainly had no effect. */
const unsent = (reply: Failure): Failure =>
  (reply.kind === "refused" ? reply : { ...reply, sent: false });

interface McpReply {
  result: Json;
  answered: { status: number; headers: Record<string, string>; text: string } | null;
  mcp: McpState;
}

/** Calls the tool, or reads the list (`tools`). */
async function askOnce(
  session: Session, { mcp, headers }: EndpointRequest, onSent: () => void,
): Promise<Omit<McpReply, "mcp">> {
  const { tool: name = null, arguments: args = {} } = mcp ?? {};
  if (name === null) return { result: { tools: await listed(session) }, answered: null };
  onSent();
  const key = headers["idempotency-key"];
  const { message, ...answered } = await session.ask(
    "tools/call", { name, arguments: args }, key === undefined ? {} : { "idempotency-key": key });
  return { result: resultOf(message), answered };
}

/** Calls the tool, or lists the tools, in the existing session or a new one; or says why not. */
export async function askMcp(
  endpoints: Endpoints, request: EndpointRequest,
): Promise<McpReply | Failure> {
  const session = new Session(endpoints, request);
  const old = request.mcp?.session;
  let isSent = false;
  let isNew = !old;
  const ask = async (): Promise<McpReply> => {
    if (isNew) await session.open();
    const reply = await askOnce(session, request, () => (isSent = true));
    return { ...reply, mcp: session.state(isNew) };
  };
  try {
    if (!old) return await ask();
    session.resume(old);
    return await ask().catch((error: unknown) => {
      if (!(error instanceof SessionGone)) throw error;
      // A server that does not know the session has called nothing in it.
      isSent = false;
      isNew = true;
      return ask();
    });
  } catch (error) {
    if (!(error instanceof McpFailure)) throw error;
    return isSent ? error.reply : unsent(error.reply);
  } finally {
    if (request.mcp?.isKept !== true) session.close();
  }
}
