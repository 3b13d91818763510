// The audio on the wire of a speech-to-speech model: base64 of 16-bit samples at the vendor's own
// rate, both ways; and how such a model is made to say a text. Used by the adaptors of speech to
// speech.
import { createResampler, type Resampler } from "#audio/resampler.ts";
import type { Pcm } from "./port.ts";

/** Audio kept until the model takes it; older audio is dropped. */
const BACKLOG_MS = 3000;
const BACKLOG_ENTRIES_MAX = 1000;
const REPLY_SECONDS_MAX = 600;

interface Rates {
  /** Samples per second in the call, and on the wire. */
  rate: number;
  wireRate: number;
}

/** What the person says, on its way to the model. */
export class SoundToModel {
  readonly #wireRate: number;
  readonly #send: (base64: string) => void;
  readonly #resampler: Resampler;
  #isTaken = false;
  #backlog: Pcm[] = [];
  #backlogSamples = 0;

  constructor({ rate, wireRate }: Rates, send: (base64: string) => void) {
    this.#wireRate = wireRate;
    this.#send = send;
    this.#resampler = createResampler(rate, wireRate);
  }

  write(pcm: Pcm): void {
    if (pcm.length === 0) return;
    const wire = this.#resampler.process(pcm);
    if (this.#isTaken) return this.#give(wire);
    this.#backlog.push(wire.slice());
    this.#backlogSamples += wire.length;
    const samplesMax = (this.#wireRate * BACKLOG_MS) / 1000;
    while (this.#backlogSamples > samplesMax || this.#backlog.length > BACKLOG_ENTRIES_MAX) {
      this.#backlogSamples -= this.#backlog.shift()?.length ?? this.#backlogSamples;
    }
  }

  /** From now on the model takes audio; what was kept goes first. */
  release(): void {
    const waiting = this.#backlog;
    this.keep();
    this.#isTaken = true;
    for (const pcm of waiting) this.#give(pcm);
  }

  /** Until the next `release` audio is kept; what was kept before is dropped. */
  keep(): void {
    this.#isTaken = false;
    this.#backlog = [];
    this.#backlogSamples = 0;
  }

  #give(wire: Pcm): void {
    if (wire.length === 0) return;
    this.#send(Buffer.from(wire.buffer, wire.byteOffset, wire.byteLength).toString("base64"));
  }
}

/** What the model says in one reply. */
export class SoundOfReply {
  readonly #samplesMax: number;
  readonly #resampler: Resampler;
  #oddByte: Buffer = Buffer.alloc(0);
  #samples = 0;

  constructor({ rate, wireRate }: Rates) {
    this.#samplesMax = REPLY_SECONDS_MAX * wireRate;
    this.#resampler = createResampler(wireRate, rate);
  }

  /** `samples`: counted at the wire's rate. Null: it holds nothing to play. */
  take(base64: string): { samples: number; pcm: Pcm } | null {
    const bytes = Buffer.concat([this.#oddByte, Buffer.from(base64, "base64")]);
    const samples = bytes.length >> 1;
    this.#oddByte = bytes.subarray(samples * 2);
    this.#samples += samples;
    if (samples === 0 || this.#samples > this.#samplesMax) return null;
    const wire = new Int16Array(samples);
    Buffer.from(wire.buffer).set(bytes.subarray(0, samples * 2));
    return { samples, pcm: this.#resampler.process(wire) };
  }
}

export const sayExactly = (text: string): string =>
  "Say exactly the following text, word for word, in the language it is written in."
    + ` Add nothing, leave nothing out, do not answer it:\n\n${text}`;
