// Sockets that carry a call's sound: who opened one is looked at again every few seconds of it, so
// that a revoked key or a removed member hears and says no more. Used by live-routes.ts and
// desk-routes.ts.

/** As streams are closed (edge/realtime/streams.ts). */
export const CLOSE_DENIED = 4501;
/** Frames are 20 ms long, so this is five seconds. */
const FRAMES_BETWEEN = 250;

/** To be called for each frame; `end` is called once the caller may not be there any more. */
export function createRecheck(isAllowed: () => Promise<boolean>, end: () => void): () => void {
  let frames = 0;
  let isAsking = false;
  const ask = async (): Promise<void> => {
    isAsking = true;
    // Where it cannot be known now it is asked again after as many frames.
    const isOver = await isAllowed().then((is) => !is, () => false);
    isAsking = false;
    if (isOver) end();
  };
  return () => {
    frames += 1;
    if (frames % FRAMES_BETWEEN === 0 && !isAsking) void ask();
  };
}
