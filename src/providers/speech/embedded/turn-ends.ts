// The operator's end-of-turn model (Smart Turn v3 or one with its inputs) in a thread of its own:
// a judgement takes several frames' time, which the thread that plays audio cannot spare. The
// thread is workers/judge-turn-ends.ts.
import { Worker } from "node:worker_threads";
import type { Logger } from "#core/logger.ts";
import { workerFile } from "#core/program.ts";
import type { Pcm, TurnEndModel } from "#providers/speech/port.ts";

export interface ToTurnEnds {
  id: number;
  pcm: Pcm;
  rate: number;
}

export type FromTurnEnds =
  | { kind: "judged"; id: number; probability: number }
  /** The file is not such a model: no turn will be judged. */
  | { kind: "failed"; message: string };

/** With so many in the queue an answer would come too late: no more are queued. */
const WAITING_MAX = 4;

interface ThreadTurnEndModel extends TurnEndModel {
  close(): Promise<void>;
}

export function createTurnEndModel(modelFile: string, log: Logger): ThreadTurnEndModel {
  const waiting = new Map<number, (probability: number) => void>();
  let newest = 0;
  let hasFailed = false;
  const fail = (message: string): void => {
    if (!hasFailed) log.error({ modelFile, reason: message }, "the end-of-turn model cannot be used");
    hasFailed = true;
    waiting.clear();
  };
  const worker = new Worker(workerFile("judge-turn-ends"), { workerData: { modelFile } });
  worker.on("message", (message: FromTurnEnds) => {
    if (message.kind === "failed") return fail(message.message);
    const publish = waiting.get(message.id);
    waiting.delete(message.id);
    publish?.(message.probability);
  });
  worker.on("error", (error) => fail(String(error)));
  worker.unref();
  return {
    judge: (pcm, rate, publish) => {
      if (hasFailed || waiting.size >= WAITING_MAX) return;
      newest += 1;
      waiting.set(newest, publish);
      const asked: ToTurnEnds = { id: newest, pcm, rate };
      worker.postMessage(asked);
    },
    close: async () => void await worker.terminate(),
  };
}
