// Sound that comes in pieces of any size, as frames. Pure; used by mixer.ts for what the customer
// says.
import type { Pcm } from "#providers/speech/port.ts";

/** Calls `onFrame` with every frame that is full; arrays that are a frame already are passed on. */
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
