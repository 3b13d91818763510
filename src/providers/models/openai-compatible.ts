// Models behind any server that speaks OpenAI's streaming chat completions (OpenAI, Ollama,
// vLLM, llama.cpp). Made by the catalog, read by the engine through the port. Here: the adaptor,
// its retries and what it sends; openai-exchange.ts has the HTTP, openai-reply.ts the reading.
import { ProviderError } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import type { Logger } from "#core/logger.ts";
import { wait, type System } from "#core/system.ts";
import { Exchange, type ModelLimits } from "./openai-exchange.ts";
import { jsonOf } from "#core/values.ts";
import { Pool } from "#outbound/undici.ts";
import { Reply, listOf, recordOf, textOf, type EnclosedByCall } from "./openai-reply.ts";
import type {
  LanguageModel, ModelDelta, ModelFile, ModelFunctionCall, ModelMessage, ModelRequest, Sight,
} from "./port.ts";

const IDLE_CONNECTION_MS = 30_000;
const BACKOFF_FIRST_MS = 250;

export interface OpenAiCompatibleOptions {
  /** Base such as `http://host:11434/v1`, or the whole address of the chat completions endpoint. */
  url: string;
  key: string | null;
  /** Null asks the server for its models and takes the first. */
  name: string | null;
  system: System;
  log: Logger;
  /** What the server calls the bound of the reply; `max_tokens` by default. */
  tokensField?: "max_tokens" | "max_completion_tokens" | undefined;
  /** Sent instead of what the request says, for models that take one value only. */
  temperature?: number | undefined;
  sees?: readonly Sight[] | undefined;
  limits?: Partial<ModelLimits> | undefined;
}

export interface OpenAiCompatibleModel extends LanguageModel {
  /** Drops the connections, so that replies in flight fail. Idempotent. */
  close(): Promise<void>;
}

export function createOpenAiCompatibleModel(args: OpenAiCompatibleOptions): OpenAiCompatibleModel {
  const { key, log, system } = args;
  const limits: ModelLimits = { ...LIMITS, ...args.limits };
  const { origin, chatPath, modelsPath } = endpointsOf(args.url);
  const pool = createPool(origin, limits);
  const headers = headersOf(key);
  const enclosed: EnclosedByCall = new WeakMap();
  let name = args.name;
  let asking: Promise<void> | null = null;
  let closing: Promise<void> | null = null;

  const send = (path: string, body: string | null, signal: AbortSignal): Exchange => {
    const method = body === null ? "GET" : "POST";
    return new Exchange(pool, { path, method, headers, body }, { key, limits, system, signal });
  };

  /** Failing leaves the name to be asked for by the next reply. */
  async function askName(): Promise<void> {
    const deadline = new AbortController();
    const timer = system.after(limits.modelConnectMs, () => deadline.abort());
    const exchange = send(modelsPath, null, deadline.signal);
    try {
      await exchange.open();
      const answer = recordOf(jsonOf(await exchange.rest(limits.modelEventBytesMax)));
      name = textOf(recordOf(listOf(answer?.data)[0])?.id) || null;
    } catch (error) {
      log.debug({ err: error }, "the model server does not list its models");
    } finally {
      timer.cancel();
      exchange.close();
    }
  }

  async function modelName(signal: AbortSignal): Promise<string> {
    if (name !== null) return name;
    asking ??= askName().finally(() => (asking = null));
    await untilAborted(asking, signal);
    return name ?? "default";
  }

  /** An exchange whose first bytes are there. Past them nothing is retried. */
  async function open(body: string, signal: AbortSignal): Promise<Exchange> {
    for (let attempt = 0; ; attempt += 1) {
      if (signal.aborted) throw abortedError(signal);
      const exchange = send(chatPath, body, signal);
      try {
        await exchange.open();
        return exchange;
      } catch (error) {
        exchange.close();
        // A model that was silent for the whole first-byte deadline is not asked again: the person
        // has waited long enough, and an overloaded server would be given twice the work.
        const mayRetry = error instanceof ProviderError && error.retryable && !exchange.timedOut;
        if (!mayRetry || attempt >= limits.modelRetriesMax) throw error;
        const jitter = system.randomBytes(4).readUInt32LE() / 2 ** 32;
        const waitMs = Math.max(error.retryAfterMs ?? 0, jitter * BACKOFF_FIRST_MS * 2 ** attempt);
        log.warn({ attempt, status: exchange.status, wait_ms: waitMs }, "model request is retried");
        await wait(system, waitMs, signal);
      }
    }
  }

  async function* stream(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelDelta[]> {
    if (signal.aborted) throw abortedError(signal);
    const body = JSON.stringify(bodyOf(request, await modelName(signal), args, enclosed));
    const exchange = await open(body, signal);
    const reply = new Reply(exchange.type, { key, limits, system }, enclosed);
    try {
      while (!reply.complete) {
        const deltas = reply.add(await nextBytes(exchange, reply, signal));
        if (deltas.length > 0) yield deltas;
        if (reply.failure) throw reply.failure;
      }
    } finally {
      exchange.close(reply.complete);
    }
  }

  return { stream, sees: args.sees ?? [], close: () => (closing ??= pool.destroy()) };
}

/** HTTP/1.1 without pipelining: a stream has its connection, and its backpressure, to itself. */
function createPool(origin: string, limits: ModelLimits): Pool {
  return new Pool(origin, {
    connections: limits.modelConnectionsMax,
    pipelining: 1,
    allowH2: false,
    // Exchange keeps these two, on the injected clock.
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: IDLE_CONNECTION_MS,
    connect: { timeout: limits.modelConnectMs },
  });
}

/** Null at the end. A connection that breaks or stalls after the finish reason has ended, too. */
async function nextBytes(from: Exchange, to: Reply, signal: AbortSignal): Promise<Buffer | null> {
  try {
    return await from.read();
  } catch (error) {
    if (signal.aborted || to.reason === null) throw error;
    return null;
  }
}

function endpointsOf(url: string): { origin: string; chatPath: string; modelsPath: string } {
  const { origin, pathname, search } = new URL(url);
  const base = pathname.replace(/\/+$/, "").replace(/\/chat\/completions$/, "");
  const root = pathname === "/" ? "/v1" : base;
  return {
    origin,
    chatPath: `${root}/chat/completions${search}`,
    modelsPath: `${root}/models${search}`,
  };
}

function headersOf(key: string | null): Record<string, string> {
  return {
    "content-type": "application/json",
    accept: "text/event-stream",
    // Compressed, tokens would wait for one another.
    "accept-encoding": "identity",
    "user-agent": "parley",
    ...(key === null ? {} : { authorization: `Bearer ${key}` }),
  };
}

function bodyOf(
  request: ModelRequest, model: string, args: OpenAiCompatibleOptions, enclosed: EnclosedByCall,
): object {
  const tools = request.functions.map((tool) => ({ type: "function", function: tool }));
  return {
    model,
    messages: request.messages.map((message) => wireMessage(message, enclosed)),
    // Several servers refuse an empty list.
    ...(tools.length === 0 ? {} : { tools }),
    temperature: args.temperature ?? request.temperature,
    [args.tokensField ?? "max_tokens"]: request.tokensMax,
    stream: true,
    stream_options: { include_usage: true },
  };
}

const fileUrl = ({ type, data }: ModelFile): string => `data:${type};base64,${data}`;

const wireFile = (file: ModelFile): object => (file.sight === "image"
  ? { type: "image_url", image_url: { url: fileUrl(file) } }
  : { type: "file", file: { filename: file.name, file_data: fileUrl(file) } });

function wireMessage(
  { role, content, files, functionCalls, functionCallId }: ModelMessage, enclosed: EnclosedByCall,
): object {
  if (files && files.length > 0) {
    const text = content === "" ? [] : [{ type: "text", text: content }];
    return { role, content: [...text, ...files.map(wireFile)] };
  }
  if (role === "function") return { role: "tool", tool_call_id: functionCallId ?? "", content };
  if (!functionCalls || functionCalls.length === 0) return { role, content };
  const thinking = functionCalls[0] && enclosed.get(functionCalls[0])?.thinking;
  return {
    role,
    content: content === "" ? null : content,
    ...(thinking ? { reasoning_content: thinking } : {}),
    tool_calls: functionCalls.map((call) => wireCall(call, enclosed)),
  };
}

function wireCall(call: ModelFunctionCall, enclosed: EnclosedByCall): object {
  const { id, name, argumentsJson } = call;
  const signed = enclosed.get(call)?.signed;
  return {
    id,
    type: "function",
    // Servers that parse the arguments of earlier calls refuse the whole request over bad ones.
    function: { name, arguments: jsonOf(argumentsJson) === undefined ? "{}" : argumentsJson },
    ...(signed ? { extra_content: signed } : {}),
  };
}

function abortedError(signal: AbortSignal): ProviderError {
  const { reason } = signal;
  return new ProviderError("the model request was aborted", { retryable: false, cause: reason });
}

function untilAborted(work: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(abortedError(signal));
    signal.addEventListener("abort", onAbort);
    const done = (): void => signal.removeEventListener("abort", onAbort);
    void work.then(resolve, reject).finally(done);
  });
}
