// Sound of calls between nodes, frame by frame. Whoever wants it asks for it again and again: a
// node that does not ask any more is gone, and so is one that does not answer. Used by calls.ts
// and persons.ts.
import { LIMITS } from "#core/limits.ts";
import type { System } from "#core/system.ts";
import type { Wire } from "./wire.ts";

/** In place of a frame: it is over. */
const OVER = new Uint8Array();

export const sendFrame = (wire: Wire, subject: string, pcm: Int16Array): void =>
  wire.publish(subject, new Uint8Array(pcm.buffer, pcm.byteOffset, pcm.byteLength));

export const sendOver = (wire: Wire, subject: string): void => wire.publish(subject, OVER);

/** The result ends it. */
export const hearFrames = (
  wire: Wire, subject: string, onFrame: (pcm: Int16Array) => void, over: () => void,
): () => void => wire.subscribe(subject, (data) => {
  if (data.byteLength === 0) over();
  // A copy: samples lie at even places, bytes of a message anywhere.
  else onFrame(new Int16Array(data.slice().buffer));
});

interface Remote {
  /** Once it is over nothing is heard any more, and nothing is to be sent. */
  isOver(): boolean;
  /** Idempotent. */
  end(): void;
}

/** What the node sends that has the call; `over` is called when it says so, or has it no more. */
export function hearThere(
  { wire, system, subject, again }: {
    wire: Wire; system: System; subject: string;
    /** Resolves to whether it is there still. */
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
    // Out of reach for the moment: the next asking tells.
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
