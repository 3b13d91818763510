// Sockets that send a call's sound to people of the account: its format, then its frames, some of
// which a slow connection misses. Access is checked again every few seconds, so that a revoked key
// or a removed member no longer hears or speaks. Used by live-routes.ts and desk-routes.ts.
import type { Socket } from "#http/exchange.ts";
import type { Pcm } from "#providers/speech/port.ts";

export const CLOSE_OVER = 1000;
/** The server that has the call cannot be asked at the moment. */
export const CLOSE_ELSEWHERE = 4000;
/** The code with which streams are closed too (edge/realtime/streams.ts). */
const CLOSE_DENIED = 4501;
/** How many frames lie between two checks; at 20 ms each this is five seconds. */
const FRAMES_BETWEEN = 250;
/** How many frames may queue for a slow connection; those after them are dropped. */
const CONGESTED = 25;

export function createSoundSocket(socket: Socket, isAllowed: () => Promise<boolean>) {
  let frames = 0;
  let congested = 0;
  let isAsking = false;
  const ask = async (): Promise<void> => {
    isAsking = true;
    // A check that throws counts as passed, and is repeated after as many frames.
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
