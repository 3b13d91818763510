// The background sounds of calls: each loop is made once, when it is first used, in a thread of its
// own, because in the media thread all calls would hear a gap. Called by workers/media.ts; the
// thread is workers/make-ambience.ts.
import { Worker } from "node:worker_threads";
import type { Logger } from "#core/logger.ts";
import { workerFile } from "#core/program.ts";
import { goRound, type Ambience } from "./ambience.ts";
import type { AmbienceKind } from "./kinds.ts";

export interface AmbienceTask {
  kind: AmbienceKind;
  rate: number;
}

interface Loop {
  /** Null: not made yet. */
  pcm: Int16Array | null;
}

const WORKER_FILE = workerFile("make-ambience");

/** One per kind and rate, shared by all calls; silence until it is made. */
export function createAmbiences(log: Logger): (kind: AmbienceKind, rate: number) => Ambience {
  const loops = new Map<string, Loop>();
  const begin = (key: string, workerData: AmbienceTask): Loop => {
    const loop: Loop = { pcm: null };
    loops.set(key, loop);
    const worker = new Worker(WORKER_FILE, { workerData });
    worker.unref();
    worker.on("message", (pcm: Int16Array) => (loop.pcm = pcm));
    worker.on("error", (error) => {
      log.error({ err: error, ...workerData }, "could not generate a background sound");
      // The next call tries again.
      loops.delete(key);
    });
    return loop;
  };
  return (kind, rate) => {
    const key = `${kind}/${rate}`;
    const loop = loops.get(key) ?? begin(key, { kind, rate });
    let round: Ambience | null = null;
    return {
      next: (samples) => {
        if (!round && loop.pcm) round = goRound(loop.pcm);
        return round ? round.next(samples) : new Int16Array(samples);
      },
    };
  };
}
