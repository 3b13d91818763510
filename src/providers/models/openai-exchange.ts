// One HTTP request to a model server and its response, with its deadlines. Used by
// openai-compatible.ts; knows nothing of what the bytes mean.
import type { Dispatcher, Pool } from "undici";
import { ProviderError } from "#core/faults.ts";
import type { LIMITS } from "#core/limits.ts";
import type { System, Timer } from "#core/system.ts";
import { jsonOf, recordOf, textOf } from "#core/values.ts";
import { retryAfterMs } from "#outbound/retry-after.ts";
import { errorText } from "#providers/error-text.ts";

const READ_AHEAD_BYTES_MAX = 64 * 1024;
/** How long a server may take to end its response after `[DONE]` and keep its connection. */
const DRAIN_MS = 1000;

export type ModelLimits = Record<Extract<keyof typeof LIMITS, `model${string}`>, number>;

export interface ModelContext {
  key: string | null;
  /** The setting that has the server's address; null: none has. */
  setting: string | null;
  limits: ModelLimits;
  system: System;
}

/**
 * One request and its response: undici's callbacks on one side, `read` on the other. Bytes gather
 * until they are read, so that however many HTTP chunks one socket read brought cost one step.
 */
export class Exchange implements Dispatcher.DispatchHandler {
  /** 0 until the response begins. */
  status = 0;
  headers: Record<string, string | string[] | undefined> = {};
  /** A deadline passed without a byte. */
  timedOut = false;
  #context: ModelContext;
  #signal: AbortSignal;
  #controller: Dispatcher.DispatchController | null = null;
  #chunks: Buffer[] = [];
  #waitingBytes = 0;
  #begun = false;
  #ended = false;
  #closed = false;
  #failure: ProviderError | null = null;
  #wake = (): void => {};
  #timer: Timer | null = null;
  #limitMs = 0;
  #dueMs = 0;

  constructor(
    pool: Pool,
    request: Dispatcher.DispatchOptions,
    context: ModelContext & { signal: AbortSignal },
  ) {
    this.#context = context;
    this.#signal = context.signal;
    this.#signal.addEventListener("abort", this.#onAbort);
    // Covers the wait for a free connection; undici itself bounds the connecting.
    this.#expectWithin(context.limits.modelConnectMs + context.limits.modelFirstByteMs);
    pool.dispatch(request, this);
  }

  /** The content type of the body; empty: none. */
  get type(): string {
    return textOf(this.headers["content-type"]);
  }

  /** The encoding of a body that was requested without one; empty: none. */
  get #packing(): string {
    const coding = textOf(this.headers["content-encoding"]).trim().toLowerCase();
    return coding === "identity" ? "" : coding.slice(0, 20);
  }

  /** Resolves when the first body bytes of a 2xx response, or its end, are there. */
  async open(): Promise<void> {
    await this.#news();
    const isRefused = this.status !== 0 && (this.status < 200 || this.status > 299);
    if (isRefused && !this.#signal.aborted) throw await this.#refusal();
    if (!isRefused && this.#packing !== "") throw this.#packed();
    if (this.#failure && this.#chunks.length === 0) throw this.#failure;
  }

  /** Everything that has come since the last read; null at the end. */
  async read(): Promise<Buffer | null> {
    await this.#news();
    const [first, ...others] = this.#chunks;
    if (!first) {
      if (this.#failure) throw this.#failure;
      return null;
    }
    this.#chunks = [];
    this.#waitingBytes = 0;
    if (this.#controller?.paused) {
      this.#dueMs = this.#context.system.monotonicMs() + this.#limitMs;
      this.#controller.resume();
    }
    return others.length === 0 ? first : Buffer.concat([first, ...others]);
  }

  /** What is left of the body, no more than the bound. */
  async rest(bytesMax: number): Promise<string> {
    const parts: Buffer[] = [];
    let bytes = 0;
    while (bytes < bytesMax) {
      const part = await this.read();
      if (!part) break;
      parts.push(part);
      bytes += part.length;
    }
    return Buffer.concat(parts).toString("utf8", 0, bytesMax);
  }

  /** To be called once. With `drain`, a response that only lacks its end keeps its connection. */
  close(drain = false): void {
    this.#closed = true;
    this.#chunks = [];
    this.#signal.removeEventListener("abort", this.#onAbort);
    this.#timer?.cancel();
    if (this.#ended || this.#failure) return;
    if (!drain) return this.#hangUp();
    this.#timer = this.#context.system.after(DRAIN_MS, () => this.#hangUp());
    this.#controller?.resume();
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#closed || this.#failure) this.#hangUp();
    else this.#expectWithin(this.#context.limits.modelFirstByteMs);
  }

  onResponseStart(_: unknown, status: number, headers: Exchange["headers"]): void {
    this.status = status;
    this.headers = headers;
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#closed || this.#failure) return;
    if (this.#begun) this.#dueMs = this.#context.system.monotonicMs() + this.#limitMs;
    else this.#expectWithin(this.#context.limits.modelStallMs);
    this.#begun = true;
    this.#chunks.push(chunk);
    this.#waitingBytes += chunk.length;
    if (this.#waitingBytes >= READ_AHEAD_BYTES_MAX) controller.pause();
    this.#wake();
  }

  onResponseEnd(): void {
    this.#ended = true;
    this.#timer?.cancel();
    this.#wake();
  }

  onResponseError(_: unknown, cause: Error): void {
    const code = textOf(recordOf(cause)?.code) || cause.name;
    const isOurs = code === "UND_ERR_DESTROYED" || code === "UND_ERR_CLOSED";
    const { setting } = this.#context;
    const server = `the model server${setting === null ? "" : ` of ${setting}`}`;
    this.#fail(`the connection to ${server} failed (${code})`, !isOurs, cause);
  }

  /** Waits until there is something to read or nothing more will come. */
  async #news(): Promise<void> {
    while (this.#chunks.length === 0 && !this.#ended && !this.#failure) {
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  #packed(): ProviderError {
    const message = `the model server compressed its reply (${this.#packing}), which was not requested`;
    return new ProviderError(message, { retryable: false });
  }

  async #refusal(): Promise<ProviderError> {
    const { key, limits, system } = this.#context;
    const { status } = this;
    // A status without its text is still an answer.
    const body = await this.rest(limits.modelErrorBodyBytesMax).catch(() => "");
    const afterMs = retryAfterMs(textOf(this.headers["retry-after"]), system.now() / 1000);
    const text = this.#packing === "" ? errorText(jsonOf(body) ?? body, key) : "";
    return new ProviderError(`the model server answered ${status}${text && `: ${text}`}`, {
      retryable: status === 408 || status === 409 || status === 429 || status >= 500,
      retryAfterMs: afterMs ?? undefined,
    });
  }

  /** Begins a deadline; arriving bytes only move `#dueMs`, since a timer for each would cost. */
  #expectWithin(limitMs: number): void {
    this.#limitMs = limitMs;
    this.#dueMs = this.#context.system.monotonicMs() + limitMs;
    this.#timer?.cancel();
    this.#timer = this.#context.system.after(limitMs, this.#checkDeadline);
  }

  #checkDeadline = (): void => {
    const { system } = this.#context;
    // While our own reader is the slow one, the server is not to blame.
    const isPaused = this.#controller?.paused === true;
    const leftMs = isPaused ? this.#limitMs : this.#dueMs - system.monotonicMs();
    if (leftMs > 0) {
      this.#timer = system.after(leftMs, this.#checkDeadline);
      return;
    }
    this.timedOut = true;
    this.#fail(this.#silence(this.#limitMs / 1000), true);
  };

  #silence(seconds: number): string {
    if (!this.#controller) {
      return `no connection to the model server was free for ${seconds} s`
        + " (PARLEY_MODEL_CONNECTIONS_MAX)";
    }
    const setting = this.#begun ? "PARLEY_MODEL_STALL_SECONDS" : "PARLEY_MODEL_FIRST_BYTE_SECONDS";
    return `the model server was silent for ${seconds} s (${setting})`;
  }

  #onAbort = (): void => {
    this.#chunks = [];
    this.#fail("the model request was aborted", false, this.#signal.reason);
  };

  /** The first failure counts; hanging up comes back here through `onResponseError`. */
  #fail(message: string, mayRetry: boolean, cause?: unknown): void {
    this.#timer?.cancel();
    this.#failure ??= new ProviderError(message, { retryable: mayRetry && !this.#begun, cause });
    this.#hangUp();
    this.#wake();
  }

  #hangUp(): void {
    if (!this.#ended) this.#controller?.abort(new Error("the exchange is over"));
  }
}
