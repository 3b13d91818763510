// A model server that says what a test or benchmark tells it to: OpenAI's chat completions over
// real HTTP, with faults. In-process through `startScriptedModel`, or as a process of its own:
//   node test/support/vendors/scripted-model.ts --tokens 20 --gap-ms 0   → {"port":12345}
import { once } from "node:events";
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import { setImmediate as nextTurn, setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { createWaiting } from "#support/waiting.ts";

const REQUESTS_KEPT = 1000;

export type Fault =
  | "reset_before_headers"
  | "reset_midway"
  | "stall_midway"
  /** Ends the response without a finish reason or [DONE]. */
  | "truncate"
  | "error_event"
  | "no_done"
  | "garbage_json"
  /** Ignores `stream: true`. */
  | "json_body";

export interface Plan {
  tokens?: string[];
  firstDelayMs?: number;
  /** Between tokens; 0 sends the whole reply at once. */
  gapMs?: number;
  /** `chunks`: in how many pieces the arguments come. */
  toolCalls?: { id: string; name: string; arguments: string; chunks?: number }[];
  finishReason?: string;
  status?: number;
  headers?: Record<string, string>;
  /** Sent verbatim in place of the reply, whatever the status. */
  body?: string | Buffer;
  fault?: Fault;
  /** Sends the bytes in pieces of this size, or of these in turn, one event-loop turn each. */
  chunkBytes?: number | number[];
  keepAliveComments?: boolean;
  crlf?: boolean;
  /** Waited for once `holdAfter` tokens (0 by default) are sent. */
  hold?: Promise<void>;
  holdAfter?: number;
}

/** The parts of a request that tests read. */
export interface ScriptedRequest {
  model: string;
  messages: Record<string, unknown>[];
  tools?: Record<string, unknown>[];
  [field: string]: unknown;
}

/** `call` counts the chat requests from 0. */
export type Script = (body: ScriptedRequest, call: number) => Plan;

type Counter = "connections" | "requests" | "modelLists" | "aborted";

export interface ScriptedModel {
  /** Ends with `/v1`. */
  url: string;
  port: number;
  /** Bodies, headers and paths of the first thousand chat requests. */
  requests: ScriptedRequest[];
  headers: IncomingHttpHeaders[];
  paths: string[];
  /** `aborted`: responses whose client left before their end. */
  counts: Record<Counter, number>;
  /** Resolves when the counter has reached the number. */
  waitFor(counter: Counter, count?: number): Promise<void>;
  /** Null goes back to the plain reply. */
  script(script: Script | null): void;
  /** Cuts what is in flight. */
  close(): Promise<void>;
}

/** Calls the function once, and then says these words. */
export function callingOnce(name: string, args: object, tokens: string[]): Script {
  let isDone = false;
  return () => {
    if (isDone) return { tokens };
    isDone = true;
    return { toolCalls: [{ id: "t1", name, arguments: JSON.stringify(args) }] };
  };
}

export interface ScriptedModelOptions {
  port?: number;
  host?: string;
  /** The plain reply: `t0 t1 …`, this many. */
  tokens?: number;
  firstMs?: number;
  gapMs?: number;
  /** What `GET /v1/models` lists; null answers 404. */
  models?: string[] | null;
  /** False keeps no requests, which is faster. */
  record?: boolean;
}

export async function startScriptedModel(
  options: ScriptedModelOptions = {},
): Promise<ScriptedModel> {
  const { firstMs = 0, gapMs = 0, host = "127.0.0.1", models = ["scripted"] } = options;
  const { record = true, tokens: tokenCount = 20 } = options;
  const tokens = Array.from({ length: tokenCount }, (_, at) => `t${at} `);
  const plain: Plan = { tokens, firstDelayMs: firstMs, gapMs };
  const plainBytes = Buffer.concat(eventsOf(plain));
  const isPaced = firstMs > 0 || gapMs > 0;
  const requests: ScriptedRequest[] = [];
  const headers: IncomingHttpHeaders[] = [];
  const paths: string[] = [];
  const counts = { connections: 0, requests: 0, modelLists: 0, aborted: 0 };
  const waiting = createWaiting();
  let script: Script | null = null;

  const count = (counter: Counter): void => {
    counts[counter] += 1;
    waiting.look();
  };

  const answerChat = (request: IncomingMessage, response: ServerResponse, text: string): void => {
    const call = counts.requests;
    // Node also emits `finish` if the socket was lost before all of the response was sent.
    let isSent = false;
    response.on("finish", () => (isSent = request.socket.destroyed === false));
    response.on("close", () => {
      if (!isSent && !isResetByUs.has(response)) count("aborted");
    });
    if (record || script) {
      const body = JSON.parse(text) as ScriptedRequest;
      if (requests.length < REQUESTS_KEPT) {
        requests.push(body);
        headers.push(request.headers);
        paths.push(request.url ?? "");
      }
      count("requests");
      if (script) return void play(response, script(body, call));
    } else count("requests");
    if (isPaced) return void play(response, plain);
    response.writeHead(200, EVENT_STREAM).end(plainBytes);
  };

  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      if (request.url?.includes("/chat/completions")) {
        return answerChat(request, response, Buffer.concat(chunks).toString());
      }
      count("modelLists");
      const list = { object: "list", data: (models ?? []).map((id) => ({ id, object: "model" })) };
      response.writeHead(models ? 200 : 404, { "content-type": "application/json" });
      response.end(JSON.stringify(models ? list : { error: { message: "no such page" } }));
    });
  });
  server.on("connection", () => count("connections"));
  server.keepAliveTimeout = 60_000;
  server.listen(options.port ?? 0, host);
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;

  return {
    url: `http://${host}:${port}/v1`,
    port,
    requests,
    headers,
    paths,
    counts,
    waitFor: (counter, wanted = 1) => waiting.until(() => counts[counter] >= wanted),
    script: (next) => void (script = next),
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

const EVENT_STREAM = { "content-type": "text/event-stream; charset=utf-8" };
const isResetByUs = new WeakSet<ServerResponse>();

async function play(response: ServerResponse, plan: Plan): Promise<void> {
  const { body, fault, firstDelayMs = 0, hold, holdAfter = 0, status = 200 } = plan;
  if (firstDelayMs > 0) await delay(firstDelayMs, undefined, { ref: false });
  if (fault === "reset_before_headers") return reset(response);
  const isJson = fault === "json_body" || status !== 200;
  const type = isJson ? { "content-type": "application/json" } : EVENT_STREAM;
  response.writeHead(status, { ...type, ...plan.headers });
  response.flushHeaders();
  const pieces = piecesOf(plan);
  for (const [at, piece] of pieces.entries()) {
    if (hold && at === (body === undefined ? holdAfter : 0)) await hold;
    if (plan.gapMs && at > 0) await delay(plan.gapMs, undefined, { ref: false });
    if (response.destroyed) return;
    await send(response, piece, plan.chunkBytes);
  }
  if (fault === "stall_midway") return;
  if (fault === "reset_midway") return reset(response);
  response.end();
}

/** What is written at a time: all of it, or a token each if the plan waits in between. */
function piecesOf(plan: Plan): Buffer[] {
  if (plan.body !== undefined) return [Buffer.from(plan.body)];
  if (plan.status !== undefined && plan.status !== 200) {
    return [Buffer.from(JSON.stringify({ error: { message: `scripted ${plan.status}` } }))];
  }
  if (plan.fault === "json_body") return [Buffer.from(JSON.stringify(completionOf(plan)))];
  const events = eventsOf(plan);
  return plan.gapMs || plan.hold ? events : [Buffer.concat(events)];
}

async function send(
  response: ServerResponse,
  bytes: Buffer,
  sizes: number | number[] | undefined,
): Promise<void> {
  const turns = sizes === undefined ? [bytes.length] : [sizes].flat();
  for (let at = 0, turn = 0; at < bytes.length; turn += 1) {
    // The wait is before the write: the client gets no turn to read in before the first one ends.
    if (sizes !== undefined) await nextTurn();
    const size = Math.max(1, turns[turn % turns.length] ?? bytes.length);
    response.write(bytes.subarray(at, at + size));
    at += size;
  }
}

/** Resets the connection once what was written has gone out. */
async function reset(response: ServerResponse): Promise<void> {
  isResetByUs.add(response);
  await nextTurn();
  await nextTurn();
  response.socket?.resetAndDestroy();
}

/** One buffer for each token (at least one), and one with all that comes after them. */
function eventsOf(plan: Plan): Buffer[] {
  const { fault, finishReason, toolCalls = [], tokens = [] } = plan;
  const end = plan.crlf ? "\r\n" : "\n";
  const comment = plan.keepAliveComments ? `: keep-alive${end}${end}` : "";
  const event = (data: string): string => `${comment}data: ${data}${end}${end}`;
  const chunk = (delta: object, reason: string | null = null): string =>
    event(
      JSON.stringify({
        id: "chatcmpl-1",
        object: "chat.completion.chunk",
        created: 1,
        model: "scripted",
        choices: [{ index: 0, delta, finish_reason: reason }],
      }),
    );
  const isBroken = fault !== undefined && fault !== "no_done";
  const said = isBroken ? tokens.slice(0, Math.ceil(tokens.length / 2)) : tokens;
  const events = said.map((content) => chunk({ content }));
  events[0] = chunk({ role: "assistant", content: "" }) + (events[0] ?? "");
  let tail = "";
  if (!isBroken) {
    for (const delta of toolCalls.flatMap(toolCallDeltas)) tail += chunk({ tool_calls: [delta] });
    tail += chunk({}, finishReason ?? (toolCalls.length > 0 ? "tool_calls" : "stop"));
    tail += event(JSON.stringify({ choices: [], usage: usageOf(tokens) }));
    if (fault !== "no_done") tail += event("[DONE]");
  }
  if (fault === "error_event") tail += event('{"error":{"message":"scripted failure"}}');
  if (fault === "garbage_json") tail += event('{"choices":[{"delta":');
  events.push(tail);
  return events.map((text) => Buffer.from(text));
}

type PlannedCall = NonNullable<Plan["toolCalls"]>[number];

function toolCallDeltas(call: PlannedCall, index: number): object[] {
  const { arguments: json, chunks = 1, id, name } = call;
  const size = Math.ceil(json.length / chunks) || 1;
  const pieces = Array.from({ length: chunks }, (_, at) => json.slice(at * size, (at + 1) * size));
  return pieces.map((piece, at) =>
    at === 0
      ? { index, id, type: "function", function: { name, arguments: piece } }
      : { index, function: { arguments: piece } },
  );
}

function completionOf({ finishReason = "stop", toolCalls = [], tokens = [] }: Plan): object {
  const calls = toolCalls.map(({ id, name, arguments: json }) => {
    return { id, type: "function", function: { name, arguments: json } };
  });
  const message = { role: "assistant", content: tokens.join(""), tool_calls: calls };
  const choices = [{ index: 0, message, finish_reason: finishReason }];
  return { id: "chatcmpl-1", object: "chat.completion", choices, usage: usageOf(tokens) };
}

function usageOf(tokens: string[]): object {
  const count = tokens.length;
  return { prompt_tokens: 7, completion_tokens: count, total_tokens: 7 + count };
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      port: { type: "string", default: "0" },
      host: { type: "string", default: "127.0.0.1" },
      tokens: { type: "string", default: "20" },
      "first-ms": { type: "string", default: "0" },
      "gap-ms": { type: "string", default: "0" },
    },
  });
  const model = await startScriptedModel({
    port: Number(values.port),
    host: values.host,
    tokens: Number(values.tokens),
    firstMs: Number(values["first-ms"]),
    gapMs: Number(values["gap-ms"]),
    record: false,
  });
  process.once("SIGTERM", () => void model.close().then(() => process.exit(0)));
  process.stdout.write(`${JSON.stringify({ port: model.port })}\n`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
