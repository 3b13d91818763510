// Turns sound that comes unevenly and in pieces of any size into frames. Pure; used by mixer.ts for
// what the customer says, by person.ts and by warm/bridge.ts.
import type { Pcm } from "#providers/speech/port.ts";

/** Calls `onFrame` with every full frame; an array that is a frame already is passed on as is. */
export function createFraming(samples: number, onFrame: (frame: Pcm) => void): (pcm: Pcm) => void {
  let partial = new Int16Array(samples);
  let filled = 0;
  return (pcm) => {
    if (pcm.length === samples && filled === 0) return onFrame(pcm);
    for (let at = 0; at < pcm.length;) {
      const take = Math.min(samples - filled, pcm.length - at);
      partial.set(pcm.subarray(at, at + take), filled);
      filled += take;
      at += take;
      if (filled < samples) return;
      onFrame(partial);
      partial = new Int16Array(samples);
      filled = 0;
    }
  };
}

/**
 * A jitter buffer for a voice from a network. It waits for `leadFrames` at the beginning and after
 * every gap, so that playout is even; above `framesMax` it drops the oldest.
 */
export function createVoiceQueue(
  samples: number, { leadFrames, framesMax }: { leadFrames: number; framesMax: number },
): { write(pcm: Pcm): void; next(): Pcm | null } {
  const frames: Pcm[] = [];
  let isFlowing = false;
  return {
    write: createFraming(samples, (frame) => {
      frames.push(frame);
      if (frames.length > framesMax) frames.shift();
    }),
    next: () => {
      if (frames.length >= leadFrames) isFlowing = true;
      const frame = isFlowing ? frames.shift() ?? null : null;
      if (frame === null) isFlowing = false;
      return frame;
    },
  };
}
