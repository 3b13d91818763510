// Sockets that send a call's sound to people of the account: its format, then its frames, of which
// a slow connection misses some. Who opened one is looked at again every few seconds of it, so that
// a revoked key or a removed member hears and says no more. Used by live-routes.ts and
// desk-routes.ts.
import type { Socket } from "#http/exchange.ts";
import type { Pcm } from "#providers/speech/port.ts";

export const CLOSE_OVER = 1000;
/** The server that has the call cannot be asked at the moment. */
export const CLOSE_ELSEWHERE = 4000;
/** As streams are closed (edge/realtime/streams.ts). */
const CLOSE_DENIED = 4501;
/** Frames are 20 ms long, so this is five seconds. */
const FRAMES_BETWEEN = 250;
/** Frames that may wait for a slow connection; those after them are left out. */
const CONGESTED = 25;

export function createSoundSocket(socket: Socket, isAllowed: () => Promise<boolean>) {
  let frames = 0;
  let congested = 0;
  let isAsking = false;
  const ask = async (): Promise<void> => {
    isAsking = true;
    // Where it cannot be known now it is asked again after as many frames.
    const isOver = await isAllowed().then((is) => !is, () => false);
    isAsking = false;
    if (isOver) socket.end(CLOSE_DENIED, "denied");
  };
  return {
    sendFormat: (rate: number): void =>
      void socket.send(JSON.stringify({ type: "format", encoding: "pcm_s16le", rate })),
    write: (pcm: Pcm): void => {
      frames += 1;
      if (frames % FRAMES_BETWEEN === 0 && !isAsking) void ask();
      if (congested > CONGESTED) return;
      const bytes = new Uint8Array(pcm.buffer, pcm.byteOffset, pcm.byteLength);
      if (!socket.sendBytes(bytes)) congested += 1;
    },
    drained: (): void => void (congested = 0),
  };
}
