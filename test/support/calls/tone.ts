// A tone that telephone systems play to us, and what recordings at both ends have of it and of the
// greeting. For calls at 8 kHz.
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { RATE } from "#support/sip/baresip.ts";

const TONE_HZ = 1000;
const TONE_MS = 1000;
const LOUD = 1000;
/** 20 ms. */
const FRAME = RATE / 50;

export const tone = Int16Array.from({ length: (RATE * TONE_MS) / 1000 }, (_, at) =>
  Math.round(8000 * Math.sin((2 * Math.PI * TONE_HZ * at) / RATE)));

/** The stretch from the first to the last loud sample. */
export function loud(pcm: Int16Array): { fromMs: number; forMs: number } {
  const isLoud = (sample: number): boolean => Math.abs(sample) > LOUD;
  const [first, last] = [pcm.findIndex(isLoud), pcm.findLastIndex(isLoud)];
  assert.ok(first >= 0, "silence");
  return { fromMs: (first * 1000) / RATE, forMs: ((last + 1 - first) * 1000) / RATE };
}

/** How much of it is the tone, from 0 to 1. */
function toneShare(pcm: Int16Array): number {
  let [cosine, sine, energy] = [0, 0, 0];
  for (const [at, sample] of pcm.entries()) {
    const angle = (2 * Math.PI * TONE_HZ * at) / RATE;
    cosine += sample * Math.cos(angle);
    sine += sample * Math.sin(angle);
    energy += sample * sample;
  }
  return energy === 0 ? 0 : (2 * (cosine ** 2 + sine ** 2)) / (energy * pcm.length);
}

/** Asserts that all of the tone came through, except frames that a busy machine delayed. */
export function assertTone(pcm: Int16Array, t: TestContext): void {
  const { fromMs, forMs } = loud(pcm);
  const first = (fromMs * RATE) / 1000;
  const shares = Array.from({ length: Math.floor(forMs / 20) }, (_, at) =>
    toneShare(pcm.subarray(first + at * FRAME, first + (at + 1) * FRAME)));
  const pure = shares.filter((share) => share > 0.98).length;
  t.diagnostic(`tone of ${Math.round(forMs)} ms, ${pure} of ${shares.length} frames pure`);
  // A stream that ends abruptly sounds on for a moment: its packets might have been lost.
  assert.ok(Math.abs(forMs - TONE_MS) <= 100, `${forMs} ms`);
  assert.ok(pure >= 40, `${pure} of ${shares.length}`);
}

/** "Hello": five letters of 60 ms, as speech made of numbers has it. */
export function assertHello(pcm: Int16Array): void {
  const { forMs } = loud(pcm);
  assert.ok(Math.abs(forMs - 300) <= 40, `${forMs} ms`);
}
