// Where somebody speaks in a telephone's own recordings, for tests and benchmarks that judge a call
// by them.
import { RATE, type Recordings } from "#support/sip/baresip.ts";

/** In milliseconds since the beginning of the sent recording. */
export interface Stretch {
  fromMs: number;
  toMs: number;
  pcm: Int16Array;
}

const FRAME = RATE / 100;
const LOUD = 400;
/** Shorter pauses are within a sentence. */
const PAUSE_MS = 350;

export function stretches(pcm: Int16Array, shiftMs = 0): Stretch[] {
  const found: { from: number; to: number }[] = [];
  for (let at = 0; at + FRAME <= pcm.length; at += FRAME) {
    if (!pcm.subarray(at, at + FRAME).some((sample) => Math.abs(sample) > LOUD)) continue;
    const last = found.at(-1);
    if (last && ((at - last.to) * 1000) / RATE < PAUSE_MS) last.to = at + FRAME;
    else found.push({ from: at, to: at + FRAME });
  }
  return found.map(({ from, to }) => ({
    fromMs: shiftMs + (from * 1000) / RATE,
    toMs: shiftMs + (to * 1000) / RATE,
    pcm: pcm.slice(Math.max(0, from - RATE / 5), to + RATE / 5),
  }));
}

/** Both directions end with the call, but what is heard begins with the first packet. */
export const heardIn = ({ sent, heard }: Recordings): Stretch[] =>
  stretches(heard, ((sent.length - heard.length) * 1000) / RATE);
