// Writes one response, whole or as a stream. Used by server.ts and socket.ts. Nothing here touches
// the raw response once it was aborted or ended: uWebSockets.js throws, which is fatal in async
// code.
import type { HttpResponse as RawResponse } from "uWebSockets.js";
import { LIMITS } from "#core/limits.ts";
import type { System, Timer } from "#core/system.ts";
import type { ByteStream, HeaderMap, HttpRequest, Reply } from "./exchange.ts";

/** Loaded this way because importing node:http also loads the undici inside Node: 40 ms, 5 MB. */
const { STATUS_CODES } = process.getBuiltinModule("node:http");

export interface ExchangeOptions {
  every: System["every"];
  renderError(error: unknown, request: HttpRequest | null): Reply;
}

/** JSON is private data: it must not be cached on the way, nor be rendered as a page. */
const JSON_HEADERS: HeaderMap = {
  "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
};

/** `at once`: nothing that arrived behind the request is read any more. */
type Closing = "after" | "at once";

/**
 * White space longer than the buffer in which uWebSockets.js collects output. Only output that
 * overflows the buffer is sent before the rest of the same packet is parsed, and only then can the
 * connection close before that: requests behind ambiguous framing must not be executed.
 */
const FLUSH = Buffer.alloc(16 * 1024 + 1, " ");

const NOTHING = Buffer.alloc(0);

const UNSAFE_IN_HEADER = /[\r\n\0]/g;

export class Exchange {
  request: HttpRequest | null = null;
  #raw: RawResponse | null;
  readonly #options: ExchangeOptions;
  #drainCallback: (() => void) | null = null;
  #closeCallbacks: (() => void)[] = [];
  #closed = false;
  /** True once a whole body was handed over, of which a part may still wait for the client. */
  #isAnswered = false;
  /** The length of the body that is being written; null: unknown. */
  #bytes: number | null = null;
  /** The part that the connection has not accepted, and its offset in the body. */
  #rest: Uint8Array = NOTHING;
  #restAt = 0;
  /** Runs once a write was not fully accepted. */
  #offering: Timer | null = null;

  constructor(raw: RawResponse, options: ExchangeOptions) {
    this.#raw = raw;
    this.#options = options;
    raw.onAborted(() => this.#finish());
  }

  /** True once the client has gone or there is nothing left to answer. */
  get finished(): boolean {
    return this.#raw === null || this.#isAnswered;
  }

  /** Called once, when the response is complete or the client has gone. */
  onFinish(callback: () => void): void {
    if (this.#closed) callback();
    else this.#closeCallbacks.push(callback);
  }

  fail(error: unknown, options: { close?: Closing } = {}): void {
    this.reply(this.#options.renderError(error, this.request), options);
  }

  /**
   * Refuses while the body may still be arriving, and reads the rest of it away: closing a
   * connection with unread bytes loses the answer, which a proxy then turns into a 502.
   */
  refuse(error: unknown): void {
    const bytes = Number(this.request?.headers["content-length"]);
    this.fail(error, bytes <= LIMITS.refusedBodyBytesMax ? {} : { close: "after" });
  }

  reply(reply: Reply, options: { close?: Closing } = {}): void {
    const raw = this.finished ? null : this.#raw;
    if (!raw) {
      // The client left while the handler worked: a stream must still be told that it is closed.
      if ("stream" in reply) reply.stream(this.#stream());
      return;
    }
    if ("stream" in reply) return this.#startStream(raw, reply);
    const headers = "json" in reply ? { ...JSON_HEADERS, ...reply.headers } : reply.headers;
    const body = "json" in reply ? JSON.stringify(reply.json) : reply.content;
    const type = "json" in reply ? "application/json" : reply.contentType;
    if (this.#isHead) {
      return this.#endHead(raw, reply.status, type, {
        ...headers, "Content-Length": String(Buffer.byteLength(body)),
      });
    }
    raw.cork(() => {
      const isClosing = options.close !== undefined;
      this.#writeHead(raw, reply.status, type, headers, isClosing);
      if (!isClosing && body.length > 0) return this.#writeWhole(raw, body);
      raw.end(
        options.close === "at once" ? Buffer.concat([Buffer.from(body), FLUSH]) : body,
        isClosing);
      this.#finish();
    });
  }

  /**
   * Does not use `end`, which copies what the client has not accepted and counts the answer as
   * complete: the next request is then read, and one connection that only sends requests fills the
   * memory. While an answer is pending, uWebSockets.js closes a connection that sends another.
   */
  #writeWhole(raw: RawResponse, body: string | Uint8Array): void {
    const given = typeof body === "string" ? Buffer.from(body) : body;
    this.#isAnswered = true;
    this.#bytes = given.length;
    this.#writePart(raw, given, given.length);
    if (this.#raw) raw.onWritable((offset) => this.#goOn(raw, offset));
  }

  /**
   * uWebSockets.js parses the trailers of a chunked body as the next request and answers it. A
   * proxy that forwards trailers would then pass each answer on to the wrong visitor, so it must
   * not reuse the connection.
   */
  #writeHead(
    raw: RawResponse, status: number, type: string, headers?: HeaderMap, isClosing = false,
  ): void {
    raw.writeStatus(`${status} ${STATUS_CODES[status] ?? "Unknown"}`);
    raw.writeHeader("Content-Type", type);
    if (this.request) raw.writeHeader("X-Request-Id", this.request.id);
    const isChunked = this.request?.headers["transfer-encoding"] !== undefined;
    if (isChunked && !isClosing) raw.writeHeader("Connection", "close");
    for (const name in headers) {
      raw.writeHeader(name, (headers[name] ?? "").replace(UNSAFE_IN_HEADER, ""));
    }
  }

  get #isHead(): boolean {
    return this.request?.method === "HEAD";
  }

  /** Sends the length as a header: after endWithoutBody(length) the connection may take no more. */
  #endHead(raw: RawResponse, status: number, type: string, headers: HeaderMap): void {
    raw.cork(() => {
      this.#writeHead(raw, status, type, headers);
      raw.endWithoutBody();
    });
    this.#finish();
  }

  #startStream(raw: RawResponse, reply: Extract<Reply, { stream: unknown }>): void {
    const { bytes } = reply;
    if (this.#isHead) {
      this.#endHead(raw, reply.status, reply.contentType, {
        ...reply.headers, ...bytes === undefined ? {} : { "Content-Length": String(bytes) },
      });
      return reply.stream(this.#stream());
    }
    this.#bytes = bytes ?? null;
    raw.onWritable((offset) => this.#goOn(raw, offset));
    raw.cork(() => {
      this.#writeHead(raw, reply.status, reply.contentType, reply.headers);
      // Starts inside the cork, so that the head and the first frames leave in one packet.
      this.#guard(() => reply.stream(this.#stream()));
    });
  }

  /** An exception must not reach uWebSockets.js; after the head it can only drop the connection. */
  #guard(run: () => void): void {
    try {
      run();
    } catch (error) {
      this.#options.renderError(error, this.request);
      this.#raw?.close();
      this.#finish();
    }
  }

  #stream(): ByteStream {
    return {
      write: (data) => {
        const raw = this.#raw;
        if (!raw) return true;
        let flowing = true;
        raw.cork(() => {
          flowing = this.#bytes === null
            ? raw.write(data)
            : this.#writePart(raw, data, this.#bytes);
        });
        return flowing;
      },
      onDrain: (callback) => {
        this.#drainCallback = callback;
      },
      onClose: (callback) => this.onFinish(callback),
      end: (text = "") => {
        const raw = this.#raw;
        if (!raw) return;
        if (this.#bytes === null) raw.cork(() => raw.end(text));
        // A complete body ends when its reader has taken the last byte; an incomplete one is cut
        // off.
        else if (this.#restAt + this.#rest.length === this.#bytes) return;
        else raw.close();
        this.#finish();
      },
      abort: () => {
        const raw = this.#raw;
        if (!raw) return;
        raw.close();
        this.#finish();
      },
    };
  }

  /** With a known length, uWebSockets.js does not buffer: what it did not accept is kept here. */
  #writePart(raw: RawResponse, data: string | Uint8Array, bytes: number): boolean {
    const given = typeof data === "string" ? Buffer.from(data) : data;
    if (this.#rest.length > 0) {
      this.#rest = Buffer.concat([this.#rest, given]);
      return false;
    }
    const before = raw.getWriteOffset();
    // The announced length stands, even if the file has grown.
    const part = given.subarray(0, bytes - before);
    const [flowing, isDone] = raw.tryEnd(part, bytes);
    if (isDone) this.#finish();
    else if (!flowing) {
      this.#rest = part;
      this.#restAt = before;
      this.#offering ??= this.#offerAgain();
    }
    return flowing;
  }

  /**
   * uWebSockets.js drops a reader that takes less than a third of the system's buffer within ten
   * seconds of the last offer, for example a player that pauses: offering again resets that
   * timeout.
   */
  #offerAgain(): Timer {
    let takenAt = 0;
    let stalledMs = 0;
    return this.#options.every(LIMITS.downloadOfferMs, () => {
      const raw = this.#raw;
      if (!raw) return;
      const offset = raw.getWriteOffset();
      stalledMs = this.#rest.length > 0 && offset === takenAt
        ? stalledMs + LIMITS.downloadOfferMs
        : 0;
      takenAt = offset;
      if (stalledMs < LIMITS.stalledDownloadMs) raw.cork(() => void this.#goOn(raw, offset));
      else {
        raw.close();
        this.#finish();
      }
    });
  }

  #goOn(raw: RawResponse, offset: number): boolean {
    if (!this.#sendRest(raw, offset)) return false;
    this.#guard(() => this.#drainCallback?.());
    return true;
  }

  /** `offset`: how much of the body was sent. False: some of it still waits. */
  #sendRest(raw: RawResponse, offset: number): boolean {
    if (this.#rest.length === 0 || this.#bytes === null) return true;
    const rest = this.#rest.subarray(offset - this.#restAt);
    const [flowing, isDone] = raw.tryEnd(rest, this.#bytes);
    if (isDone) this.#finish();
    this.#rest = flowing ? NOTHING : rest;
    this.#restAt = offset;
    return flowing;
  }

  #finish(): void {
    this.#raw = null;
    if (this.#closed) return;
    this.#closed = true;
    this.#offering?.cancel();
    for (const callback of this.#closeCallbacks.splice(0)) this.#guard(callback);
  }
}
