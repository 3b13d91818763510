// A WebSocket to a speech vendor with every bound it needs: handshake, message size, send buffer,
// silence of the peer, closing. Used by the adaptors that speak over one.
import assert from "node:assert/strict";
import type { Duplex } from "node:stream";
import type { Dispatcher } from "undici";
import { ping, WebSocket } from "undici/lib/web/websocket/websocket.js";
import { ProviderError } from "#core/faults.ts";
import type { System, Timer } from "#core/system.ts";
import { textOf } from "#core/values.ts";
import { connecting } from "#outbound/connect.ts";
import { Client } from "#outbound/undici.ts";
import { errorText } from "#providers/error-text.ts";

export interface VendorSocketLimits {
  /** From the first packet to the end of the handshake. */
  handshakeMs: number;
  messageBytesMax: number;
  messageFragmentsMax: number;
  /** Bytes written that the operating system has not taken; with more the connection is closed. */
  sendBytesMax: number;
  /** Silence of the peer after which it is pinged. */
  pingMs: number;
  /** Silence of the peer after which the connection is closed. */
  silenceMs: number;
  /** From our closing frame to the end of the connection, whatever the peer does. */
  closeMs: number;
}

const VENDOR_SOCKET_LIMITS: VendorSocketLimits = {
  handshakeMs: 5000,
  messageBytesMax: 1024 * 1024,
  messageFragmentsMax: 1024,
  sendBytesMax: 1024 * 1024,
  pingMs: 5000,
  silenceMs: 15_000,
  closeMs: 1000,
};

const TICK_MS = 1000;
/** Deepgram's; a refused handshake has no body to read. */
const REASON_HEADER = "dg-error";

interface VendorSocketOptions {
  /** The name in messages for operators, e.g. `Deepgram`. */
  vendor: string;
  /** `ws:` or `wss:`. */
  url: URL;
  headers: Record<string, string>;
  /** Kept out of messages. */
  key: string | null;
  system: System;
  /** `send` runs whenever nothing has been sent for `afterMs` (to a second). */
  keepAlive?: { afterMs: number; send(): void };
  limits?: Partial<VendorSocketLimits>;
}

interface VendorSocketHandlers {
  onOpen(): void;
  onText(text: string): void;
  /** Absent: binary messages are ignored. */
  onBinary?(bytes: Uint8Array): void;
  /** The connection failed to open or has ended. Called once and last; never after `close`. */
  onClose(error: ProviderError): void;
}

/** The result of the handshake, which the standard's WebSocket does not reveal. */
interface Handshake {
  status: number | null;
  /** Why it was refused, where the vendor has a header for it. */
  reason: string;
  error: Error | null;
  socket: (Duplex & { bytesRead?: number }) | null;
}

export class VendorSocket {
  readonly #options: VendorSocketOptions;
  readonly #handlers: VendorSocketHandlers;
  readonly #limits: VendorSocketLimits;
  readonly #handshake: Handshake = { status: null, reason: "", error: null, socket: null };
  readonly #client: Client;
  readonly #socket: WebSocket;
  readonly #deadline: Timer;
  #ticking: Timer | null = null;
  #isOpen = false;
  #isOver = false;
  #sentMs = 0;

  /** Connects. Throws only for an invalid address. */
  constructor(options: VendorSocketOptions, handlers: VendorSocketHandlers) {
    const { url, headers, system } = options;
    this.#options = options;
    this.#handlers = handlers;
    this.#limits = { ...VENDOR_SOCKET_LIMITS, ...options.limits };
    const { handshakeMs } = this.#limits;
    this.#client = createClient(url, this.#limits);
    const dispatcher = this.#client.compose(watching(this.#handshake));
    this.#socket = new WebSocket(url, { headers, dispatcher });
    this.#socket.binaryType = "arraybuffer";
    this.#socket.addEventListener("open", () => this.#opened());
    this.#socket.addEventListener("message", ({ data }: { data: unknown }) => this.#receive(data));
    this.#socket.addEventListener("close", ({ code, reason }) => this.#closed(code, reason));
    this.#deadline = system.after(handshakeMs, () => {
      this.#fail(`did not answer within ${handshakeMs} ms`, true);
    });
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Without effect while not open. What is passed is not kept. */
  send(data: string | Uint8Array): void {
    if (!this.#isOpen) return;
    this.#sentMs = this.#options.system.monotonicMs();
    this.#socket.send(data);
    if (this.#socket.bufferedAmount > this.#limits.sendBytesMax) {
      this.#fail("does not accept data fast enough", true);
    }
  }

  /** Idempotent; what was sent before still arrives, and nothing is reported afterwards. */
  close(): void {
    if (!this.#end()) return;
    this.#socket.close();
    this.#options.system.after(this.#limits.closeMs, () => this.#destroy());
  }

  #opened(): void {
    if (this.#isOver) return;
    const { system, keepAlive } = this.#options;
    this.#isOpen = true;
    this.#deadline.cancel();
    this.#sentMs = system.monotonicMs();
    const isAlive = lifeWatch(this.#socket, this.#handshake, this.#limits, system);
    this.#ticking = system.every(TICK_MS, () => {
      if (!isAlive()) return this.#fail("stopped responding", true);
      const quietMs = system.monotonicMs() - this.#sentMs;
      if (keepAlive && quietMs >= keepAlive.afterMs) keepAlive.send();
    });
    this.#handlers.onOpen();
  }

  #receive(data: unknown): void {
    if (this.#isOver) return;
    if (typeof data === "string") this.#handlers.onText(data);
    else if (data instanceof ArrayBuffer) this.#handlers.onBinary?.(new Uint8Array(data));
  }

  #closed(code: number, reason: string): void {
    const { key } = this.#options;
    const { error, reason: refusal, status } = this.#handshake;
    const { message, retryable } = this.#isOpen
      ? closedBy(code, errorText(reason, key))
      : refusedBy(status, errorText(refusal || error?.message, key));
    this.#fail(message, retryable, error ?? undefined);
    this.#destroy();
  }

  #fail(message: string, retryable: boolean, cause?: unknown): void {
    if (!this.#end()) return;
    this.#socket.close();
    this.#destroy();
    const text = `${this.#options.vendor} ${message}`;
    this.#handlers.onClose(new ProviderError(text, { retryable, cause }));
  }

  /** False when it is over already. */
  #end(): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
    this.#isOpen = false;
    this.#deadline.cancel();
    this.#ticking?.cancel();
    return true;
  }

  #destroy(): void {
    this.#handshake.socket?.destroy();
    void this.#client.destroy();
  }
}

/** A client of its own, so that nothing of the connection outlives it. */
function createClient(url: URL, limits: VendorSocketLimits): Client {
  return new Client(url.origin.replace(/^ws/, "http"), {
    allowH2: false,
    connect: connecting({ timeout: limits.handshakeMs, allowH2: false }),
    headersTimeout: limits.handshakeMs,
    webSocket: {
      maxPayloadSize: limits.messageBytesMax,
      maxFragments: limits.messageFragmentsMax,
    },
  });
}

function watching(handshake: Handshake): Dispatcher.DispatcherComposeInterceptor {
  return (dispatch) => (request, handler) => dispatch(request, {
    onRequestStart: (...args) => handler.onRequestStart?.(...args),
    onRequestUpgrade: (controller, status, headers, socket) => {
      handshake.status = status;
      handshake.socket = socket;
      handler.onRequestUpgrade?.(controller, status, headers, socket);
    },
    onResponseStart: (controller, status, headers, message) => {
      handshake.status = status;
      handshake.reason = textOf(headers[REASON_HEADER]);
      handler.onResponseStart?.(controller, status, headers, message);
    },
    onResponseData: (...args) => handler.onResponseData?.(...args),
    onResponseEnd: (...args) => handler.onResponseEnd?.(...args),
    onResponseError: (controller, error) => {
      handshake.error ??= error;
      handler.onResponseError?.(controller, error);
    },
  });
}

/** Polled every second: whether the peer has sent anything lately. */
function lifeWatch(
  socket: WebSocket, { socket: raw }: Handshake, limits: VendorSocketLimits, system: System,
): () => boolean {
  let heardBytes = -1;
  let heardMs = 0;
  let askedMs = 0;
  return () => {
    const nowMs = system.monotonicMs();
    const bytes = raw?.bytesRead ?? 0;
    if (bytes !== heardBytes) {
      heardBytes = bytes;
      heardMs = nowMs;
    }
    if (nowMs - heardMs >= limits.silenceMs) return false;
    if (nowMs - Math.max(heardMs, askedMs) >= limits.pingMs) {
      askedMs = nowMs;
      ping(socket);
    }
    return true;
  };
}

interface Ending {
  message: string;
  retryable: boolean;
}

const ABNORMAL_CLOSURE = 1006;
const POLICY_VIOLATION = 1008;

function closedBy(code: number, reason: string): Ending {
  if (code === ABNORMAL_CLOSURE) return { message: "broke off the connection", retryable: true };
  const why = reason === "" ? String(code) : `${code}: ${reason}`;
  return { message: `closed the connection (${why})`, retryable: code !== POLICY_VIOLATION };
}

function refusedBy(status: number | null, detail: string): Ending {
  const why = detail === "" ? "" : `: ${detail}`;
  if (status === null) return { message: `could not be reached${why}`, retryable: true };
  if (status === 401) return { message: "refuses the key (401)", retryable: false };
  if (status === 403) return { message: `refuses the key or the model (403)${why}`, retryable: false };
  if (status === 101) return { message: "did not open a WebSocket", retryable: false };
  const retryable = status === 429 || status >= 500;
  return { message: `refused the connection (${status})${why}`, retryable };
}

/** The address of `path` below a base given as `http(s):` or `ws(s):`. */
export function socketUrl(base: string, path: string, query: Iterable<[string, string]>): URL {
  const url = new URL(base.replace(/^http/i, "ws"));
  assert(/^wss?:$/.test(url.protocol), "a speech vendor's address must begin with http(s):// or ws(s)://");
  url.pathname = `${url.pathname.replace(/\/+$/, "")}${path}`;
  url.search = new URLSearchParams([...url.searchParams, ...query]).toString();
  url.hash = "";
  return url;
}

/** Called when an adaptor is made, so that no call fails because of the key. */
export function assertKey(key: string | null): void {
  const isUsable = key === null || /^[\x21-\x7e]+$/.test(key);
  assert(isUsable, "a speech vendor's key contains characters that a header cannot hold");
}
