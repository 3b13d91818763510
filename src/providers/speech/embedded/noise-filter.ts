// The noise filter of calls, in threads of its own: RNNoise takes a twentieth of a core for every
// call, which the thread that plays audio cannot spare. Audio that is not filtered in time
// passes as it came. The threads are workers/filter-noise.ts.
import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import type { Logger } from "#core/logger.ts";
import { workerFile } from "#core/program.ts";
import type { NoiseFilter, NoiseFilterStream, Pcm } from "#providers/speech/port.ts";

export type ToNoiseFilter =
  | { kind: "open"; stream: number; rate: number }
  /** The thread gets a copy of the samples. */
  | { kind: "write"; stream: number; pcm: Pcm }
  | { kind: "close"; stream: number };

/** Answers `write`, one for one. */
export interface FilteredSound {
  stream: number;
  pcm: Pcm;
}

const WORKER_FILE = workerFile("filter-noise");
/** One core is left to the calls themselves. */
const THREADS_MAX = Math.max(1, Math.min(4, availableParallelism() - 1));
/** A second of frames: a speaker with more audio waiting is no longer filtered. */
const WAITING_MAX = 50;

interface Speaker {
  publish(pcm: Pcm): void;
  thread: Thread;
  /** The unfiltered audio that the thread has not answered yet. */
  waiting: Pcm[];
}

interface Thread {
  worker: Worker;
  speakers: Set<number>;
}

interface ThreadNoiseFilter extends NoiseFilter {
  close(): Promise<void>;
}

export function createNoiseFilter(log: Logger): ThreadNoiseFilter {
  const threads: Thread[] = [];
  const speakers = new Map<number, Speaker>();
  let newest = 0;
  /** The stream goes on without a filter and loses no audio. */
  const giveUp = (stream: number): void => {
    const speaker = speakers.get(stream);
    speakers.delete(stream);
    speaker?.thread.speakers.delete(stream);
    for (const pcm of speaker?.waiting.splice(0) ?? []) speaker?.publish(pcm);
  };
  const start = (): Thread => {
    const thread: Thread = { worker: new Worker(WORKER_FILE), speakers: new Set() };
    thread.worker.on("message", ({ stream, pcm }: FilteredSound) => {
      const speaker = speakers.get(stream);
      if (speaker?.waiting.shift() && pcm.length > 0) speaker.publish(pcm);
    });
    thread.worker.on("error", (error) => log.error({ err: error }, "a noise filter failed"));
    thread.worker.on("exit", () => {
      threads.splice(threads.indexOf(thread), 1);
      for (const stream of [...thread.speakers]) giveUp(stream);
    });
    thread.worker.unref();
    threads.push(thread);
    return thread;
  };
  /** The thread with the fewest speakers, or a new one while all have some and more are allowed. */
  const choose = (): Thread => {
    const [least] = threads.toSorted((a, b) => a.speakers.size - b.speakers.size);
    if (least && (least.speakers.size === 0 || threads.length >= THREADS_MAX)) return least;
    return start();
  };
  const send = ({ worker }: Thread, message: ToNoiseFilter): void => worker.postMessage(message);
  return {
    open: (rate, publish): NoiseFilterStream => {
      const stream = (newest += 1);
      const thread = choose();
      thread.speakers.add(stream);
      speakers.set(stream, { publish, thread, waiting: [] });
      send(thread, { kind: "open", stream, rate });
      let isOpen = true;
      return {
        write: (pcm) => {
          if (!isOpen) return;
          const speaker = speakers.get(stream);
          if (!speaker) return publish(pcm);
          speaker.waiting.push(pcm);
          if (speaker.waiting.length <= WAITING_MAX) {
            return send(thread, { kind: "write", stream, pcm });
          }
          log.warn("the noise filter is too slow: turned off for a call");
          send(thread, { kind: "close", stream });
          giveUp(stream);
        },
        close: () => {
          if (!isOpen) return;
          isOpen = false;
          if (!speakers.delete(stream)) return;
          thread.speakers.delete(stream);
          send(thread, { kind: "close", stream });
        },
      };
    },
    close: async () => {
      await Promise.all(threads.map(({ worker }) => worker.terminate()));
    },
  };
}
