// The connection of one utterance to a vendor that speaks over a WebSocket: a spare one if
// ready, a new one if the spare has died unnoticed, and a bound on how long the vendor may be quiet
// while audio is owed. Used by the adaptors that take their connections from spare-lines.ts.
import { ProviderError } from "#core/faults.ts";
import type { System, Timer } from "#core/system.ts";
import type { Lines } from "./spare-lines.ts";
import type { VendorSocket } from "./vendor-socket.ts";

/** After text was sent, or ended, some of its audio must arrive within this. */
export const ANSWER_MS = 8000;
/** Audio one utterance may bring. */
export const UTTERANCE_MS_MAX = 360_000;
/** A whole sentence may come in one message: more than two minutes at 24 kHz. */
export const MESSAGE_BYTES_MAX = 8 * 1024 * 1024;

/** The bytes of base64 text; null where it is invalid, which Buffer would decode in part. */
export function bytesOf(base64: string): Buffer | null {
  const bytes = Buffer.from(base64, "base64");
  const padding = base64.endsWith("==") ? 2 : base64.endsWith("=") ? 1 : 0;
  return bytes.length === Math.floor((base64.length * 3) / 4) - padding ? bytes : null;
}

interface SynthesisLinkOptions {
  /** The name in messages for operators. */
  vendor: string;
  lines: Lines;
  url: URL;
  system: System;
  onText(text: string): void;
  /** The connection or its vendor has failed. Never after `close`. */
  onFailed(error: ProviderError): void;
}

export class SynthesisLink {
  readonly #options: SynthesisLinkOptions;
  #socket: VendorSocket;
  #isSpare: boolean;
  /** Everything sent, replayed when a connection opens; null: audio came, no more replays. */
  #script: string[] | null = [];
  #answer: Timer | null = null;
  #isClosed = false;

  constructor(options: SynthesisLinkOptions) {
    this.#options = options;
    ({ socket: this.#socket, isSpare: this.#isSpare } = this.#connect());
  }

  send(message: object): void {
    const text = JSON.stringify(message);
    this.#script?.push(text);
    // Without effect while it is not open.
    this.#socket.send(text);
  }

  expectAnswer(): void {
    this.#answer ??= this.#options.system.after(ANSWER_MS, () => {
      const text = `${this.#options.vendor} sent no speech for ${ANSWER_MS} ms`;
      this.#options.onFailed(new ProviderError(text, { retryable: true }));
    });
  }

  /** Audio has arrived: from now on nothing is sent again, and a spare is prepared. */
  worked(): void {
    if (this.#script) this.#options.lines.prepare(this.#options.url);
    this.#script = null;
    this.#answer?.cancel();
    this.#answer = null;
  }

  /** What was sent before still arrives. */
  close(): void {
    this.#isClosed = true;
    this.#answer?.cancel();
    this.#script = null;
    this.#socket.close();
  }

  #connect(): { socket: VendorSocket; isSpare: boolean } {
    const { lines, onText, url } = this.#options;
    return lines.take(url, {
      onOpen: () => {
        for (const message of this.#script ?? []) this.#socket.send(message);
      },
      onText: (text) => {
        if (!this.#isClosed) onText(text);
      },
      onClose: (error) => this.#lost(error),
    });
  }

  #lost(error: ProviderError): void {
    if (this.#isClosed) return;
    // A spare connection may have died unnoticed; the failure of a new one is reported.
    if (!this.#isSpare || this.#script === null) return this.#options.onFailed(error);
    ({ socket: this.#socket, isSpare: this.#isSpare } = this.#connect());
  }
}
