// The far end's DTMF keys, whichever way it sends them: as RTP events (RFC 4733), in SIP INFO
// messages or, when it has agreed to no events and sends no INFO, as tones in the audio. No key is
// published twice. Used by rtp-session.ts.
import type { System } from "#core/system.ts";
import { createDtmfReceiver } from "./telephone-event.ts";
import { ToneKeys } from "./tone-keys.ts";

/** The echo of a tone we sent may come back for this long. */
const ECHO_MS = 500;
/** A key that is sent in two ways arrives both ways within this time. */
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
  /** Keys published lately, which may arrive once more in another way. */
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

  /** The audio to pass on, with silence in place of a key's tones, which are not speech. */
  receiveSound(pcm: Int16Array): Int16Array {
    if (!this.#tones?.push(pcm)) return pcm;
    if (this.#silence.length !== pcm.length) this.#silence = new Int16Array(pcm.length);
    return this.#silence.slice();
  }

  /** We are sending a tone, whose echo must not be taken for a key. */
  toneSent(): void {
    this.#sentMs = this.#options.system.monotonicMs();
  }

  #hear(digit: string): void {
    const nowMs = this.#options.system.monotonicMs();
    if (this.#hasMessages || nowMs - this.#sentMs < ECHO_MS) return;
    this.#tell("tone", digit);
  }

  /** Telephones that are set to send keys in several ways send each key once in each of them. */
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
