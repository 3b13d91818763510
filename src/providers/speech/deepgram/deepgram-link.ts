// The connection of one recognition to Deepgram: keeps audio while there is none, opens it anew
// when it dies, and counts what went over it. Shared by deepgram.ts and deepgram-flux.ts.
import type { Logger } from "#core/logger.ts";
import type { System } from "#core/system.ts";
import type { ProviderError } from "#core/faults.ts";
import { jsonOf } from "#core/values.ts";
import { errorText, recordOf } from "#providers/models/openai-reply.ts";
import type { Pcm } from "#providers/speech/port.ts";
import { VendorSocket, type VendorSocketLimits } from "#providers/speech/vendor-socket.ts";

/** Audio kept while there is no connection; older audio is dropped. */
export const BACKLOG_MS = 3000;
const BACKLOG_ENTRIES_MAX = 2000;
/** A connection that dies sooner after the last reconnect is not opened once more. */
const RECONNECT_EVERY_MS = 10_000;
const MESSAGE_BYTES_MAX = 256 * 1024;
const HINTS_MAX = 100;
const HINT_CHARS_MAX = 100;

export interface DeepgramOptions {
  /** Base such as `wss://api.deepgram.com`; `https:` means the same. */
  url: string;
  /** Null: the server asks for none. */
  key: string | null;
  model: string;
  system: System;
  log: Logger;
  limits?: Partial<VendorSocketLimits>;
}

interface DeepgramLinkOptions extends DeepgramOptions {
  /** Where to listen, with the query. */
  listenUrl: URL;
  rate: number;
  /** Nothing was sent for `afterMs`. */
  keepAlive: { afterMs: number; send(): void };
  onMessage(message: unknown): void;
  /** The connection died and another is being opened: what it had heard is lost. */
  onLost(): void;
  /** Nothing follows. */
  onFailed(error: ProviderError): void;
}

export class DeepgramLink {
  readonly #options: DeepgramLinkOptions;
  #socket: VendorSocket;
  /** What is to be sent once the connection is open, in order. */
  #backlog: (Pcm | string)[] = [];
  #backlogSamples = 0;
  #sentSamples = 0;
  #hadOpened = false;
  #reconnectedMs = -Infinity;
  #isClosed = false;

  constructor(options: DeepgramLinkOptions) {
    this.#options = options;
    this.#socket = this.#connect();
  }

  /** The end of the audio given to the connection there is, or to the one being opened. */
  get positionS(): number {
    return (this.#sentSamples + this.#backlogSamples) / this.#options.rate;
  }

  audio(pcm: Pcm): void {
    this.#give(pcm);
  }

  control(type: "Finalize" | "KeepAlive"): void {
    this.#give(JSON.stringify({ type }));
  }

  /** Idempotent; nothing is reported afterwards. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#socket.send(JSON.stringify({ type: "CloseStream" }));
    this.#socket.close();
    this.#backlog = [];
  }

  #connect(): VendorSocket {
    const { key, keepAlive, limits, listenUrl, onMessage, system } = this.#options;
    return new VendorSocket({
      vendor: "Deepgram",
      url: listenUrl,
      headers: key === null ? {} : { authorization: `Token ${key}` },
      key,
      system,
      keepAlive,
      limits: { messageBytesMax: MESSAGE_BYTES_MAX, ...limits },
    }, {
      onOpen: () => this.#opened(),
      onText: (text) => onMessage(jsonOf(text)),
      onClose: (error) => this.#ended(error),
    });
  }

  #opened(): void {
    this.#hadOpened = true;
    const waiting = this.#backlog;
    this.#backlog = [];
    this.#backlogSamples = 0;
    for (const entry of waiting) this.#send(entry);
  }

  #ended(error: ProviderError): void {
    if (this.#isClosed) return;
    const { log, onFailed, onLost, system } = this.#options;
    const nowMs = system.monotonicMs();
    const mayReconnect = this.#hadOpened && nowMs - this.#reconnectedMs >= RECONNECT_EVERY_MS;
    if (!mayReconnect) {
      this.#isClosed = true;
      return onFailed(error);
    }
    log.warn({ err: error }, "recognition lost its connection and opens another");
    this.#reconnectedMs = nowMs;
    this.#hadOpened = false;
    this.#sentSamples = 0;
    onLost();
    // The handler may have closed the stream.
    if (!this.#isClosed) this.#socket = this.#connect();
  }

  #give(entry: Pcm | string): void {
    if (this.#isClosed) return;
    if (this.#socket.isOpen) this.#send(entry);
    else this.#keep(entry);
  }

  #send(entry: Pcm | string): void {
    if (typeof entry === "string") return this.#socket.send(entry);
    this.#sentSamples += entry.length;
    this.#socket.send(new Uint8Array(entry.buffer, entry.byteOffset, entry.byteLength));
  }

  #keep(entry: Pcm | string): void {
    this.#backlog.push(typeof entry === "string" ? entry : entry.slice());
    if (typeof entry !== "string") this.#backlogSamples += entry.length;
    const samplesMax = (this.#options.rate * BACKLOG_MS) / 1000;
    while (this.#backlogSamples > samplesMax || this.#backlog.length > BACKLOG_ENTRIES_MAX) {
      const dropped = this.#backlog.shift();
      if (dropped === undefined) return;
      if (typeof dropped !== "string") this.#backlogSamples -= dropped.length;
    }
  }
}

/** Hints as both interfaces take them: few and short. */
export const boundedHints = (hints: string[]): string[] =>
  hints.slice(0, HINTS_MAX).map((hint) => hint.trim().slice(0, HINT_CHARS_MAX))
    .filter((hint) => hint !== "");

/** For messages that are no transcripts: the vendor's complaints go to the log, once. */
export function createComplaints({ key, log }: DeepgramOptions): (message: unknown) => void {
  let hasWarned = false;
  return (message) => {
    const record = recordOf(message);
    if (hasWarned || (typeof record?.type === "string" && NEWS.has(record.type))) return;
    hasWarned = true;
    const complaint = errorText(record?.description ?? record, key);
    log.warn({ vendor: "Deepgram", complaint }, "recognition was sent what it does not understand");
  };
}

const NEWS = new Set([
  "Metadata", "SpeechStarted", "UtteranceEnd", "Connected", "ConfigureSuccess", "ConfigureFailure",
]);
