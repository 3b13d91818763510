// Sound of calls between nodes, frame by frame. The receiving node keeps asking for it: the sender
// stops when nobody asks any more, the receiver when no node has the call any more. Used by
// calls.ts and persons.ts.
import { LIMITS } from "#core/limits.ts";
import type { System } from "#core/system.ts";
import type { Wire } from "./wire.ts";

/** Sent in place of a frame when the sound is over. */
const OVER = new Uint8Array();

export const sendFrame = (wire: Wire, subject: string, pcm: Int16Array): void =>
  wire.publish(subject, new Uint8Array(pcm.buffer, pcm.byteOffset, pcm.byteLength));

export const sendOver = (wire: Wire, subject: string): void => wire.publish(subject, OVER);

/** The result unsubscribes. */
export const hearFrames = (
  wire: Wire, subject: string, onFrame: (pcm: Int16Array) => void, over: () => void,
): () => void => wire.subscribe(subject, (data) => {
  if (data.byteLength === 0) over();
  // Copied, because samples must lie at an even offset. Not by `slice`: the bytes are a Buffer's
  // over NATS, whose slice is a view of everything the socket has read.
  else onFrame(new Int16Array(new Uint8Array(data).buffer));
});

interface Remote {
  /** Once true, no more frames are received, and none may be sent. */
  isOver(): boolean;
  /** Idempotent. */
  end(): void;
}

/** Receives sound from the node that has the call; `over`: it ended it, or no longer has it. */
export function hearThere(
  { wire, system, subject, again }: {
    wire: Wire; system: System; subject: string;
    /** Asks for the sound again; resolves to whether there still is any. */
    again(): Promise<boolean>;
  },
  onFrame: (pcm: Int16Array) => void, over: () => void,
): Remote {
  let isOver = false;
  const end = (): void => {
    isOver = true;
    timer.cancel();
    unsubscribe();
  };
  const finish = (): void => {
    if (isOver) return;
    end();
    over();
  };
  const timer = system.every(LIMITS.liveAskMsMax, () => void again().then(
    (isThere) => isThere ? undefined : finish(),
    // The node is out of reach for the moment: the next request decides.
    () => undefined));
  const unsubscribe = hearFrames(wire, subject, (pcm) => {
    if (!isOver) onFrame(pcm);
  }, finish);
  return {
    isOver: () => isOver,
    end: () => {
      if (!isOver) end();
    },
  };
}
