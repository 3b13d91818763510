// The keys of the far end, whichever way it tells them: as events among the packets (RFC 4733), in
// messages of the signalling (INFO), or, where it has agreed to no events and sends no messages, as
// tones in the sound. None is published twice. Used by rtp-session.ts.
import type { System } from "#core/system.ts";
import { createDtmfReceiver } from "./telephone-event.ts";
import { ToneKeys } from "./tone-keys.ts";

/** Tones of ours come back as an echo for so long. */
const ECHO_MS = 500;
/** A key that is told in two ways is told in both within this. */
const SAME_KEY_MS = 2000;

interface Told {
  as: "event" | "message" | "tone";
  digit: string;
  atMs: number;
}

interface KeysInOptions {
  /** Samples per second of the sound. */
  rate: number;
  system: System;
  onKey(digit: string): void;
}

export class KeysIn {
  readonly #options: KeysInOptions;
  readonly #events: ReturnType<typeof createDtmfReceiver>;
  #tones: ToneKeys | null = null;
  #silence = new Int16Array(0);
  #hasMessages = false;
  /** Those that may be told again in another way. */
  #told: Told[] = [];
  #sentMs = Number.NEGATIVE_INFINITY;

  constructor(options: KeysInOptions) {
    this.#options = options;
    this.#events = createDtmfReceiver((digit) => this.#tell("event", digit));
  }

  agree({ hasEvents }: { hasEvents: boolean }): void {
    if (hasEvents) this.#tones = null;
    else this.#tones ??= new ToneKeys(this.#options.rate, (digit) => this.#hear(digit));
  }

  receiveEvent(timestamp: number, payload: Buffer): void {
    this.#events.push(timestamp, payload);
  }

  receiveMessage(digit: string): void {
    this.#hasMessages = true;
    this.#tell("message", digit);
  }

  /** What is heard; silence in place of a key's tones: they are no words. */
  receiveSound(pcm: Int16Array): Int16Array {
    if (!this.#tones?.push(pcm)) return pcm;
    if (this.#silence.length !== pcm.length) this.#silence = new Int16Array(pcm.length);
    return this.#silence.slice();
  }

  /** A tone of ours goes out. */
  toneSent(): void {
    this.#sentMs = this.#options.system.monotonicMs();
  }

  #hear(digit: string): void {
    const nowMs = this.#options.system.monotonicMs();
    if (this.#hasMessages || nowMs - this.#sentMs < ECHO_MS) return;
    this.#tell("tone", digit);
  }

  /** Telephones that are set to tell keys in several ways press each key once in each. */
  #tell(as: Told["as"], digit: string): void {
    const atMs = this.#options.system.monotonicMs();
    this.#told = this.#told.filter((one) => atMs - one.atMs < SAME_KEY_MS);
    const other = this.#told.find((one) => one.digit === digit && one.as !== as);
    if (other) {
      this.#told = this.#told.filter((one) => one !== other);
      return;
    }
    this.#told.push({ as, digit, atMs });
    this.#options.onKey(digit);
  }
}
