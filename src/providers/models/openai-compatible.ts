// Models behind any server that speaks OpenAI's streaming chat completions (OpenAI, Ollama,
// vLLM, llama.cpp). Made by the catalog, read by the engine through the port. Here: the adaptor
// and its retries; openai-request.ts has what it sends, openai-exchange.ts the HTTP,
// openai-reply.ts the reading.
import { ProviderError } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import type { Logger } from "#core/logger.ts";
import { wait, type System } from "#core/system.ts";
import { Exchange, type ModelLimits } from "./openai-exchange.ts";
import { jsonOf, listOf, recordOf, textOf } from "#core/values.ts";
import { connecting } from "#outbound/connect.ts";
import { Pool } from "#outbound/undici.ts";
import { keyHeaders } from "#providers/openai-server.ts";
import { Reply, type EnclosedByCall } from "./openai-reply.ts";
import { bodyOf, changeFor, type RequestForm } from "./openai-request.ts";
import type { LanguageModel, ModelDelta, ModelRequest, Sight } from "./port.ts";

const IDLE_CONNECTION_MS = 30_000;
const BACKOFF_FIRST_MS = 250;

export interface OpenAiCompatibleOptions {
  /** Base such as `http://host:11434/v1`, or the whole address of the chat completions endpoint. */
  url: string;
  key: string | null;
  /** The setting that holds the address, to be named when nothing answers there. */
  setting?: string | undefined;
  /** Null asks the server for its models and takes the first. */
  name: string | null;
  system: System;
  log: Logger;
  /** `max_tokens` until a server asks for the other. */
  tokensField?: RequestForm["tokensField"] | undefined;
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
  const { key, log, setting = null, system } = args;
  const limits: ModelLimits = { ...LIMITS, ...args.limits };
  const { origin, chatPath, modelsPath } = endpointsOf(args.url);
  const pool = createPool(origin, limits);
  const headers = headersOf(args.url, key);
  const enclosed: EnclosedByCall = new WeakMap();
  let name = args.name;
  let asking: Promise<void> | null = null;
  let closing: Promise<void> | null = null;

  const send = (path: string, body: string | null, signal: AbortSignal): Exchange => {
    const method = body === null ? "GET" : "POST";
    return new Exchange(
      pool, { path, method, headers, body }, { key, setting, limits, system, signal });
  };

  const open = createOpening(args, limits, enclosed,
    (body, signal) => send(chatPath, body, signal));

  /** If this fails, the next reply asks for the name again. */
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

  async function* stream(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelDelta[]> {
    if (signal.aborted) throw abortedError(signal);
    const exchange = await open(request, await modelName(signal), signal);
    const reply = new Reply(exchange.type, { key, setting, limits, system }, enclosed);
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

type Send = (body: string, signal: AbortSignal) => Exchange;
type Opening = (request: ModelRequest, model: string, signal: AbortSignal) => Promise<Exchange>;

/** Opens an exchange up to its first bytes. Past them nothing is retried. */
function createOpening(
  args: OpenAiCompatibleOptions, limits: ModelLimits, enclosed: EnclosedByCall, send: Send,
): Opening {
  const { log, system } = args;
  let form: RequestForm = {
    tokensField: args.tokensField ?? "max_tokens", temperature: args.temperature,
    sendsTemperature: true, asksUsage: true,
  };

  return async (request, model, signal) => {
    for (let attempt = 0; ;) {
      if (signal.aborted) throw abortedError(signal);
      const sent = form;
      const exchange = send(JSON.stringify(bodyOf(request, model, sent, enclosed)), signal);
      try {
        await exchange.open();
        return exchange;
      } catch (error) {
        exchange.close();
        if (!(error instanceof ProviderError)) throw error;
        const isUnderstood = exchange.status === 400 || exchange.status === 422;
        const change = isUnderstood ? changeFor(error.message, sent) : null;
        if (change) {
          form = { ...form, ...change };
          log.warn({ err: error, ...change }, "adapting requests to what the model server accepts");
          continue;
        }
        // A model that was silent for the whole first-byte deadline is not retried: the person has
        // waited long enough, and an overloaded server would get twice the work. Nor is a server
        // that asks for a long wait.
        const { retryAfterMs = 0 } = error;
        const mayRetry = error.retryable && !exchange.timedOut
          && retryAfterMs <= limits.modelRetryAfterMsMax;
        if (!mayRetry || attempt >= limits.modelRetriesMax) throw error;
        const jitter = system.randomBytes(4).readUInt32LE() / 2 ** 32;
        const waitMs = Math.max(retryAfterMs, jitter * BACKOFF_FIRST_MS * 2 ** attempt);
        log.warn({ attempt, status: exchange.status, wait_ms: waitMs }, "retrying a model request");
        await wait(system, waitMs, signal);
        attempt += 1;
      }
    }
  };
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
    connect: connecting({ timeout: limits.modelConnectMs, allowH2: false }),
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

export function endpointsOf(url: string): { origin: string; chatPath: string; modelsPath: string } {
  const { origin, pathname, search } = new URL(url);
  const base = pathname.replace(/\/+$/, "").replace(/\/chat\/completions$/, "");
  const root = pathname === "/" ? "/v1" : base;
  return {
    origin,
    chatPath: `${root}/chat/completions${search}`,
    modelsPath: `${root}/models${search}`,
  };
}

function headersOf(url: string, key: string | null): Record<string, string> {
  return {
    "content-type": "application/json",
    accept: "text/event-stream",
    // Compressed, tokens would wait for one another.
    "accept-encoding": "identity",
    "user-agent": "parley",
    ...keyHeaders(url, key),
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
