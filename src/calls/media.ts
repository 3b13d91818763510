// Starts the media thread with the first call and passes messages. When the thread dies its calls
// end as failed, and the next call starts a new one.
import { Worker } from "node:worker_threads";
import type { Logger } from "../core/logger.ts";
import type { SpeechConfig } from "../providers/speech/engines.ts";
import type { FromMedia, MediaThread, ToMedia } from "./voice/protocol.ts";

const MEDIA_FILE = new URL("../../workers/media.ts", import.meta.url);

export interface MediaWorkerData {
  speech: SpeechConfig;
  logLevel: string;
}

/** How late ticks of the clock were; of no call. */
export interface Lateness {
  kind: "lateness";
  ms: number[];
}

export function createMediaThread(
  data: MediaWorkerData, log: Logger, onLateness: (ms: number) => void,
): MediaThread {
  let handler: (message: FromMedia) => void = () => undefined;
  let worker: Worker | null = null;
  const open = new Set<number>();

  const started = (): Worker => {
    if (worker) return worker;
    const thread = new Worker(MEDIA_FILE, { workerData: data });
    thread.on("message", (message: FromMedia | Lateness) => {
      if (message.kind === "lateness") return message.ms.forEach(onLateness);
      if (message.kind === "over") open.delete(message.callId);
      handler(message);
    });
    thread.on("error", (error) => log.error({ err: error }, "the media thread failed"));
    thread.on("exit", () => {
      if (worker === thread) worker = null;
      for (const callId of [...open]) {
        open.delete(callId);
        const summary = { reason: "carrier_failed", cause: "failed", turns: [] } as const;
        handler({ kind: "over", callId, summary: { ...summary, turns: [] }, recordedMs: 0 });
      }
    });
    thread.unref();
    return (worker = thread);
  };
  return {
    send: (message: ToMedia) => {
      if (message.kind === "open") open.add(message.callId);
      else if (!open.has(message.callId)) return;
      const audio = message.kind === "leg" && message.event.kind === "audio"
        ? [message.event.pcm.buffer as ArrayBuffer]
        : [];
      started().postMessage(message, audio);
    },
    onMessage: (next) => (handler = next),
    close: async () => {
      await worker?.terminate();
    },
  };
}
