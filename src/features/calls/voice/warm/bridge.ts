// Connects two legs: each is a voice in the other's mixer and hears whatever is heard there but
// itself. The two clocks tick at different moments of a frame and at rates of their own.
import { createResampler } from "#audio/resampler.ts";
import type { Pcm } from "#providers/speech/port.ts";
import { FRAME_MS } from "#providers/carriers/port.ts";
import type { Channel } from "#features/calls/voice/channel.ts";
import { createFraming } from "#features/calls/voice/frames.ts";

/** More than this lies behind after a stall: the oldest is let go, nobody wants it that late. */
const FRAMES_MAX = 4;

type End = Pick<Channel, "join" | "rate">;

/** Until the result is called. */
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
