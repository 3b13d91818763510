// Bridges two legs: each is a voice in the other's mixer and hears everything there but itself. The
// two tick at different offsets within a frame, and at rates of their own. Used by warm-session.ts.
import { createResampler } from "#audio/resampler.ts";
import type { Pcm } from "#providers/speech/port.ts";
import { FRAME_MS } from "#providers/carriers/port.ts";
import type { Channel } from "#features/calls/voice/channel.ts";
import { createFraming } from "#features/calls/voice/frames.ts";

/** More frames than this are queued only after a stall: the oldest are dropped, as too late. */
const FRAMES_MAX = 4;

type End = Pick<Channel, "join" | "rate">;

/** Connects the two until the result is called. */
export function bridge(one: End, other: End): () => void {
  const there = createPipe(one.rate, other.rate);
  const back = createPipe(other.rate, one.rate);
  const leaveOne = one.join({ gain: 1, next: back.next, hears: there.push });
  const leaveOther = other.join({ gain: 1, next: there.next, hears: back.push });
  return () => {
    leaveOne();
    leaveOther();
  };
}

function createPipe(from: number, to: number): { push(frame: Pcm): void; next(): Pcm | null } {
  const waiting: Pcm[] = [];
  const resampler = from === to ? null : createResampler(from, to);
  const cut = createFraming((to * FRAME_MS) / 1000, (frame) => {
    waiting.push(frame);
    if (waiting.length > FRAMES_MAX) waiting.shift();
  });
  return {
    push: (frame) => cut(resampler ? resampler.process(frame) : frame),
    next: () => waiting.shift() ?? null,
  };
}
