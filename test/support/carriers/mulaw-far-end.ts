// The far end of a mu-law stream, whatever the carrier's messages look like: it speaks 20 ms at a
// time, recognises words by their rhythm, and plays marks when what was sent before them has been
// heard. Used by the phones of the carriers.
import assert from "node:assert/strict";
import { encodeG711, LAWS } from "#providers/carriers/sip/media/g711.ts";
import { createWaiting } from "#support/waiting.ts";

export const FRAME_MS = 20;
const FRAME = 160;
const LOUD = 3000;
const SILENCE = 0xff;

/** How many frames each word of a line lasts in the loopback speech. */
export const rhythmOf = (line: string): number[] =>
  line.split(" ").map((word) => Math.max(6, [...word].length * 3));

export class MulawFarEnd {
  /** How many loud frames were heard in a row, each time it was quiet again. */
  readonly words: number[] = [];
  frames = 0;
  /** Everything heard. */
  readonly heard: Int16Array[] = [];
  closedWith: { code: number; reason: string } | null = null;
  readonly #played: (mark: string) => void;
  readonly #waiting = createWaiting();
  #line: Uint8Array = new Uint8Array(0);
  #loud = 0;
  #playedUntilMs = 0;
  readonly #marks = new Map<string, NodeJS.Timeout>();

  constructor(played: (mark: string) => void) {
    this.#played = played;
  }

  /** Speaks, from the next frame on. */
  say(pcm: Int16Array): void {
    this.#line = encodeG711(LAWS.PCMU, pcm);
  }

  /** The next 20 ms of what is said, in base64. */
  speak(): string {
    const payload = new Uint8Array(FRAME).fill(SILENCE);
    payload.set(this.#line.subarray(0, FRAME));
    this.#line = this.#line.subarray(FRAME);
    return Buffer.from(payload).toString("base64");
  }

  hear(payload: string): void {
    const codes = Buffer.from(payload, "base64");
    assert.equal(codes.length, FRAME);
    const pcm = Int16Array.from(codes, (code) => LAWS.PCMU.samples[code] ?? 0);
    this.frames += 1;
    this.heard.push(pcm);
    this.#playedUntilMs = Math.max(this.#playedUntilMs, performance.now()) + FRAME_MS;
    const isLoud = pcm.slice(FRAME / 2).some((sample) => Math.abs(sample) > LOUD);
    if (isLoud) this.#loud += 1;
    else if (this.#loud > 0) {
      this.words.push(this.#loud);
      this.#loud = 0;
    }
  }

  /** Plays the mark once what came before it has been played. */
  mark(name: string): void {
    const delayMs = Math.max(0, this.#playedUntilMs - performance.now());
    this.#marks.set(name, setTimeout(() => this.#play(name), delayMs));
  }

  /** Drops what is not played yet, and plays its marks. */
  clear(): void {
    for (const name of this.drop()) this.#played(name);
  }

  /** The same without playing the marks, whose names it returns. */
  drop(): string[] {
    this.#playedUntilMs = 0;
    for (const timer of this.#marks.values()) clearTimeout(timer);
    const dropped = [...this.#marks.keys()];
    this.#marks.clear();
    return dropped;
  }

  close(code: number, reason: string): void {
    this.closedWith = { code, reason };
    for (const timer of this.#marks.values()) clearTimeout(timer);
    this.changed();
  }

  /** Has conditions that are waited for checked again. */
  changed(): void {
    this.#waiting.look();
  }

  async until(condition: () => boolean): Promise<void> {
    await this.#waiting.until(() => condition() || this.closedWith !== null);
    if (this.closedWith && !condition()) {
      throw new Error(`closed: ${JSON.stringify(this.closedWith)} after ${this.words.join()}`);
    }
  }

  /** Resolves once these words were heard, after `after` others. */
  async hears(line: string, after = 0): Promise<void> {
    const rhythm = rhythmOf(line);
    await this.until(() => this.words.length >= after + rhythm.length);
    assert.deepEqual(this.words.slice(after, after + rhythm.length), rhythm);
  }

  #play(name: string): void {
    this.#marks.delete(name);
    this.#played(name);
  }
}
