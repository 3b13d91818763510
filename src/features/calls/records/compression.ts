// Compresses recordings to Opus after their calls, one at a time in a thread of its own: nobody
// waits for it. Used by recordings.ts.
import { Worker } from "node:worker_threads";
import type { Logger } from "#core/logger.ts";
import { workerFile } from "#core/program.ts";

export interface CompressionTask {
  /** A WAV. */
  from: string;
  to: string;
}

interface Compressor {
  /** Does nothing more for a file that already waits or is being compressed. */
  add(file: string, task: CompressionTask): void;
  /** Aborts the compression under way. */
  close(): Promise<void>;
}

const COMPRESSOR = workerFile("compress-recording");

/** `done` is called when the thread of a file has ended, whether it succeeded or not. */
export function createCompressor(log: Logger, done: (file: string) => Promise<void>): Compressor {
  const waiting = new Map<string, CompressionTask>();
  let running: { file: string; worker: Worker } | null = null;
  let isClosed = false;
  const next = (): void => {
    const [task] = waiting;
    if (!task || running || isClosed) return;
    const [file, workerData] = task;
    waiting.delete(file);
    const worker = new Worker(COMPRESSOR, { workerData });
    running = { file, worker };
    worker.unref();
    worker.on("error", (error) => log.error({ err: error }, "could not compress a recording"));
    worker.on("exit", () => {
      const ended = isClosed ? Promise.resolve() : done(file);
      void ended.finally(() => {
        running = null;
        next();
      });
    });
  };
  return {
    add: (file, task) => {
      if (running?.file !== file) waiting.set(file, task);
      next();
    },
    close: async () => {
      isClosed = true;
      waiting.clear();
      await running?.worker.terminate();
    },
  };
}
