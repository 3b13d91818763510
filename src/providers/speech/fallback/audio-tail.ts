// The newest audio written to a recogniser, for the next one to hear where the first is lost. Used
// by transcriber-fallback.ts.
import type { Pcm } from "#providers/speech/port.ts";

const FIRST_SAMPLES = 8192;

/** Positions are samples since the first one written. */
export class AudioTail {
  #ring = new Int16Array(FIRST_SAMPLES);
  #start = 0;
  #end = 0;

  /** Where the next sample is written. */
  get end(): number {
    return this.#end;
  }

  /** The position of the oldest sample that is kept. */
  get start(): number {
    return this.#start;
  }

  /** Keeps at most the newest `samplesMax`. */
  push(pcm: Pcm, samplesMax: number): void {
    const newest = pcm.subarray(Math.max(0, pcm.length - samplesMax));
    this.#end += pcm.length - newest.length;
    this.dropBefore(this.#end + newest.length - samplesMax);
    this.#reserve(this.#end - this.#start + newest.length);
    const at = this.#end % this.#ring.length;
    const fits = Math.min(newest.length, this.#ring.length - at);
    this.#ring.set(newest.subarray(0, fits), at);
    this.#ring.set(newest.subarray(fits), 0);
    this.#end += newest.length;
  }

  dropBefore(position: number): void {
    this.#start = Math.min(Math.max(this.#start, Math.round(position)), this.#end);
  }

  /** All that is kept. */
  copy(): Pcm {
    const pcm = new Int16Array(this.#end - this.#start);
    const at = this.#start % this.#ring.length;
    const first = this.#ring.subarray(at, Math.min(at + pcm.length, this.#ring.length));
    pcm.set(first);
    pcm.set(this.#ring.subarray(0, pcm.length - first.length), first.length);
    return pcm;
  }

  #reserve(samples: number): void {
    if (samples <= this.#ring.length) return;
    const kept = this.copy();
    this.#ring = new Int16Array(2 ** Math.ceil(Math.log2(samples)));
    const at = this.#start % this.#ring.length;
    const fits = Math.min(kept.length, this.#ring.length - at);
    this.#ring.set(kept.subarray(0, fits), at);
    this.#ring.set(kept.subarray(fits), 0);
  }
}
