// What tests of the OpenAI-compatible adaptor share: an adaptor with its scripted server, a system
// whose clock and timers the test moves, and the bytes vendors send.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";
import { ProviderError } from "#core/faults.ts";
import { createLogger } from "#core/logger.ts";
import { createSystem, type System, type Timer } from "#core/system.ts";
import {
  createOpenAiCompatibleModel,
  type OpenAiCompatibleModel,
  type OpenAiCompatibleOptions,
} from "#providers/models/openai-compatible.ts";
import type { ModelDelta, ModelRequest } from "#providers/models/port.ts";
import { startScriptedModel, type Plan, type ScriptedModel } from "./scripted-model.ts";

export const REQUEST: ModelRequest = {
  messages: [{ role: "user", content: "hi" }],
  functions: [],
  temperature: 0.3,
  tokensMax: 99,
};
export const never = new AbortController().signal;
const log = createLogger("silent");

export interface Reply {
  items: ModelDelta[][];
  text: string;
  calls: (readonly [id: string, name: string, argumentsJson: string])[];
  finish: ModelDelta | undefined;
  error: unknown;
}

export async function ask(
  model: OpenAiCompatibleModel,
  signal = never,
  request = REQUEST,
): Promise<Reply> {
  const items: ModelDelta[][] = [];
  let error: unknown;
  try {
    for await (const deltas of model.stream(request, signal)) items.push(deltas);
  } catch (thrown) {
    error = thrown;
  }
  const deltas = items.flat();
  const text = deltas.map((delta) => (delta.kind === "text" ? delta.text : "")).join("");
  const calls = deltas.flatMap((delta) =>
    delta.kind === "function_call"
      ? [[delta.call.id, delta.call.name, delta.call.argumentsJson] as const]
      : [],
  );
  return { items, text, calls, finish: deltas.find(({ kind }) => kind === "finish"), error };
}

/** A server that answers by the plans in turn (the last one again and again), and its adaptor. */
export async function setUp(
  t: TestContext,
  plans: Plan[] | null,
  options: SomeOptions = {},
): Promise<{ server: ScriptedModel; model: OpenAiCompatibleModel }> {
  const server = await startScriptedModel({ tokens: 3 });
  if (plans) server.script((_, call) => plans[Math.min(call, plans.length - 1)]!);
  const model = adaptor({ url: server.url, ...options });
  t.after(async () => {
    await model.close();
    await server.close();
  });
  return { server, model };
}

type SomeOptions = Partial<OpenAiCompatibleOptions>;

export function adaptor(options: SomeOptions & { url: string }): OpenAiCompatibleModel {
  const system = options.system ?? quickSystem().system;
  return createOpenAiCompatibleModel({ key: null, name: "m", log, ...options, system });
}

export interface QuickSystem {
  system: System;
  /** Waits before retries, in order; they are skipped. */
  waitsMs: number[];
  /** Timers that are still to fire. */
  pending(): number;
  /** How often the monotonic clock was read. */
  readings(): number;
  /** Moves the monotonic clock on and fires the timers. */
  leap(byMs: number): void;
}

/** The real system with dice that always fall in the middle. */
export function quickSystem(): QuickSystem {
  const real = createSystem();
  const retryWaitsMs = new Set([125, 250, 3000, 12_000]);
  const waitsMs: number[] = [];
  const timers = new Map<Timer, () => void>();
  let leaptMs = 0;
  let readings = 0;
  const after: System["after"] = (delayMs, run) => {
    const isRetry = retryWaitsMs.has(Math.round(delayMs));
    if (isRetry) waitsMs.push(Math.round(delayMs));
    const fire = (): void => {
      timer.cancel();
      run();
    };
    const started = real.after(isRetry ? 0 : delayMs, fire);
    const timer = { cancel: () => void (timers.delete(timer), started.cancel()) };
    timers.set(timer, fire);
    return timer;
  };
  const monotonicMs = (): number => {
    readings += 1;
    return real.monotonicMs() + leaptMs;
  };
  const randomBytes: System["randomBytes"] = (count) => Buffer.alloc(count, "00000080", "hex");
  return {
    system: { ...real, after, monotonicMs, randomBytes },
    waitsMs,
    pending: () => timers.size,
    readings: () => readings,
    leap(byMs) {
      leaptMs += byMs;
      for (const fire of [...timers.values()]) fire();
    },
  };
}

/** A server without a script: `next` gives the response to the next request. */
export async function bareServer(t: TestContext): Promise<{
  url: string;
  next(): Promise<ServerResponse>;
}> {
  const server = createServer((request) => request.resume());
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const next = async (): Promise<ServerResponse> => {
    const [, response] = (await once(server, "request")) as [unknown, ServerResponse];
    return response.writeHead(200, { "content-type": "text/event-stream" });
  };
  return { url: `http://127.0.0.1:${port}/v1`, next };
}

export function chunk(delta: unknown, finishReason: string | null = null): string {
  return event(JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finishReason }] }));
}

export function event(data: string): string {
  return `data: ${data}\n\n`;
}

export const DONE = event("[DONE]");
export const END = chunk({}, "stop") + DONE;

export function assertProviderError(
  error: unknown,
  expected: { message: string | RegExp; retryable: boolean },
): asserts error is ProviderError {
  assert.ok(error instanceof ProviderError, `expected a ProviderError, got ${String(error)}`);
  if (typeof expected.message === "string") assert.equal(error.message, expected.message);
  else assert.match(error.message, expected.message);
  assert.equal(error.retryable, expected.retryable);
}
