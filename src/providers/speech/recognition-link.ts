// The connection of one recognition to a vendor: gathers audio into messages, buffers until the
// connection is open, and counts what went over it. When it dies the stream has failed: carrying on
// is up to fallback/transcriber-fallback.ts. Used by the adaptors that recognise over a WebSocket.
import { ProviderError } from "#core/faults.ts";
import { jsonOf, recordOf } from "#core/values.ts";
import { errorText } from "#providers/error-text.ts";
import type { VendorArgs } from "./engines.ts";
import type { Pieces } from "./pieces.ts";
import type { Pcm, TranscriberStream } from "./port.ts";
import { VendorSocket } from "./vendor-socket.ts";

/** Audio kept while there is no connection; older audio is dropped. Holds any replay. */
export const BACKLOG_MS = 40_000;
const BACKLOG_ENTRIES_MAX = 4000;
const MESSAGE_BYTES_MAX = 256 * 1024;
/** Room for the whole backlog at once, at the highest rate. */
const SEND_BYTES_MAX = 4 * 1024 * 1024;
const HINTS_MAX = 100;
const HINT_CHARS_MAX = 100;

interface RecognitionLinkOptions extends Omit<VendorArgs, "model" | "url"> {
  /** The name in messages for operators. */
  vendor: string;
  /** The socket's URL with its query; a promise where it is requested from the vendor first. */
  listenUrl: URL | Promise<URL>;
  headers: Record<string, string>;
  rate: number;
  /** Audio is gathered into messages of this length; 0: it is sent as it arrives. */
  chunkMs: number;
  /** The vendor hangs up on shorter messages: a shorter rest waits for more audio. */
  chunkMsMin?: number;
  /** The first message; absent: audio comes first. */
  hello?: string;
  /** The last message; null: the socket is closed without one. */
  farewell: string | null;
  /** Calls `send` when nothing was sent for `afterMs`; absent: the vendor needs no keep-alive. */
  keepAlive?: { afterMs: number; send(): void };
  /** The messages of an entry, called in the order of sending; absent: the entry itself. */
  encode?(entry: Pcm | string): (string | Uint8Array)[];
  /** Absent: messages are JSON. */
  decode?(text: string): unknown;
  onMessage(message: unknown): void;
  /** The connection failed to open or has died. Nothing follows. */
  onFailed(error: ProviderError): void;
}

export class RecognitionLink {
  readonly #options: RecognitionLinkOptions;
  /** Null until it is known where to listen. */
  #socket: VendorSocket | null = null;
  readonly #chunk: Pcm;
  #filled = 0;
  /** What is to be sent once the connection is open, in order. */
  #backlog: (Pcm | string)[] = [];
  #backlogSamples = 0;
  #sentSamples = 0;
  #isHeld = false;
  #isClosed = false;

  constructor(options: RecognitionLinkOptions) {
    this.#options = options;
    this.#chunk = new Int16Array((options.rate * options.chunkMs) / 1000);
    const { listenUrl } = options;
    if (listenUrl instanceof URL) this.#connect(listenUrl);
    else listenUrl.then((url) => this.#connect(url), (error: unknown) => this.#unreachable(error));
  }

  /** The end of the audio given to the connection. */
  get positionS(): number {
    return (this.#sentSamples + this.#backlogSamples + this.#filled) / this.#options.rate;
  }

  audio(pcm: Pcm): void {
    if (this.#chunk.length === 0) return this.#give(pcm);
    for (let at = 0; at < pcm.length;) {
      const take = Math.min(this.#chunk.length - this.#filled, pcm.length - at);
      this.#chunk.set(pcm.subarray(at, at + take), this.#filled);
      this.#filled += take;
      at += take;
      if (this.#filled === this.#chunk.length) this.flush();
    }
  }

  /** Sends what is gathered, if it is enough for a message. */
  flush(): void {
    const { chunkMsMin = 0, rate } = this.#options;
    if (this.#filled * 1000 < chunkMsMin * rate) return;
    const gathered = this.#chunk.subarray(0, this.#filled);
    this.#filled = 0;
    if (gathered.length > 0) this.#give(gathered);
  }

  /** Sends the message after all audio given before. */
  control(message: string): void {
    this.flush();
    this.#give(message);
  }

  /** Nothing more is sent until `release`: the vendor finishes what it has first. */
  hold(): void {
    this.#isHeld = true;
  }

  release(): void {
    this.#isHeld = false;
    this.#drain();
  }

  /** Idempotent; nothing is reported afterwards. */
  close(): void {
    if (this.#isClosed) return;
    this.flush();
    this.#isClosed = true;
    if (this.#options.farewell !== null) this.#socket?.send(this.#options.farewell);
    this.#socket?.close();
    this.#backlog = [];
  }

  #unreachable(error: unknown): void {
    // Closing the link abandons the request for the URL.
    if (this.#isClosed) return;
    if (!(error instanceof ProviderError)) throw error;
    this.fail(error);
  }

  #connect(url: URL): void {
    if (this.#isClosed) return;
    const { headers, keepAlive, key, system, vendor } = this.#options;
    const { decode = jsonOf, onMessage } = this.#options;
    this.#socket = new VendorSocket({
      vendor,
      url,
      headers,
      key,
      system,
      ...(keepAlive ? { keepAlive } : {}),
      limits: { messageBytesMax: MESSAGE_BYTES_MAX, sendBytesMax: SEND_BYTES_MAX },
    }, {
      onOpen: () => this.#opened(),
      onText: (text) => {
        if (!this.#isClosed) onMessage(decode(text));
      },
      onClose: (error) => this.fail(error),
    });
  }

  #opened(): void {
    const { hello } = this.#options;
    if (hello !== undefined) this.#socket?.send(hello);
    this.#drain();
  }

  #drain(): void {
    while (this.#socket?.isOpen && !this.#isHeld) {
      const entry = this.#backlog.shift();
      if (entry === undefined) return;
      if (typeof entry !== "string") this.#backlogSamples -= entry.length;
      this.#send(entry);
    }
  }

  /** Called when the vendor reports a failure, or the connection is gone. */
  fail(error: ProviderError): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#socket?.close();
    this.#backlog = [];
    this.#options.onFailed(error);
  }

  #give(entry: Pcm | string): void {
    if (this.#isClosed) return;
    if (this.#socket?.isOpen && !this.#isHeld) this.#send(entry);
    else this.#keep(entry);
  }

  #send(entry: Pcm | string): void {
    if (typeof entry !== "string") this.#sentSamples += entry.length;
    const { encode } = this.#options;
    for (const message of encode ? encode(entry) : [wireOf(entry)]) this.#socket?.send(message);
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

/** Audio as bytes, in place. */
export const bytesOfPcm = ({ buffer, byteLength, byteOffset }: Pcm): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength);

const wireOf = (entry: Pcm | string): string | Uint8Array =>
  (typeof entry === "string" ? entry : bytesOfPcm(entry));

/** The stream of a vendor that is asked for final texts: audio goes over the link. */
export function askedStream(link: RecognitionLink, pieces: Pieces): TranscriberStream {
  return {
    write: (pcm) => {
      if (pieces.isOver || pcm.length === 0) return;
      pieces.audioGiven();
      link.audio(pcm);
    },
    finalize: () => pieces.finalize(),
    close: () => {
      pieces.close();
      link.close();
    },
  };
}

/** Hints as vendors take them: few and short. */
export const boundedHints = (hints: string[]): string[] =>
  hints.slice(0, HINTS_MAX).map((hint) => hint.trim().slice(0, HINT_CHARS_MAX))
    .filter((hint) => hint !== "");

/** Handles messages that are no transcripts: the vendor's complaints are logged, once. */
export function createComplaints(
  { key, log }: Pick<VendorArgs, "key" | "log">, vendor: string, news: ReadonlySet<string>,
): (message: unknown) => void {
  let hasWarned = false;
  return (message) => {
    const record = recordOf(message);
    if (hasWarned || (typeof record?.type === "string" && news.has(record.type))) return;
    hasWarned = true;
    const complaint = errorText(record?.description ?? record, key);
    log.warn({ vendor, complaint }, "a speech recognition service sent an unknown message");
  };
}
