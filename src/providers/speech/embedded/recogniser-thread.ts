// Recognisers that run on this machine, each in a thread of its own for all calls, because a block
// of audio can take longer than a frame. The threads are workers/transcribe-*.ts.
import { Worker } from "node:worker_threads";
import { ProviderError } from "#core/faults.ts";
import type { Logger } from "#core/logger.ts";
import type { Pcm, Transcriber, TranscriberStream, TranscriptEvent } from "#providers/speech/port.ts";

export type ToRecogniser =
  | { kind: "open"; stream: number }
  /** At 16 kHz. */
  | { kind: "write"; stream: number; pcm: Int16Array }
  | { kind: "finalize"; stream: number }
  | { kind: "close"; stream: number };

export type FromRecogniser =
  | { kind: "partial"; stream: number; text: string }
  | { kind: "final"; stream: number; text: string };

export const RECOGNISER_RATE = 16_000;
/** Sent to the thread in pieces of this length. */
const PIECE_SAMPLES = 1600;

interface RecogniserOptions {
  /** Shown to people. */
  name: string;
  workerFile: string;
  workerData: unknown;
  /** How many speakers one core can keep up with. */
  streamsMax: number;
  /** Called for each stream: makes its conversion from the call's rate to the recogniser's. */
  converter(rate: number): (pcm: Pcm) => Pcm;
  log: Logger;
}

export interface ThreadRecogniser extends Transcriber {
  close(): Promise<void>;
}

export function createThreadRecogniser(options: RecogniserOptions): ThreadRecogniser {
  const { name, streamsMax, log } = options;
  const streams = new Map<number, (event: TranscriptEvent) => void>();
  let worker: Worker | null = null;
  let newest = 0;
  const started = (): Worker => {
    if (worker) return worker;
    const thread = new Worker(options.workerFile, { workerData: options.workerData });
    thread.on("message", ({ kind, stream, text }: FromRecogniser) =>
      streams.get(stream)?.({ kind, text }));
    thread.on("error", (error) => log.error({ err: error }, "a speech recognition thread failed"));
    thread.on("exit", () => {
      if (worker === thread) worker = null;
      const error = new ProviderError(`${name} has stopped`, { retryable: false });
      for (const publish of [...streams.values()]) publish({ kind: "failed", error });
      streams.clear();
    });
    thread.unref();
    return (worker = thread);
  };
  const send = (message: ToRecogniser): void => started().postMessage(message);
  return {
    name,
    detectsTurns: false,
    open: ({ rate }, publish) => {
      if (streams.size >= streamsMax) {
        const error = new ProviderError(`${name} is busy`, { retryable: true });
        queueMicrotask(() => publish({ kind: "failed", error }));
        return { write: () => undefined, finalize: () => undefined, close: () => undefined };
      }
      const stream = (newest += 1);
      streams.set(stream, publish);
      send({ kind: "open", stream });
      const sendOpen = (message: ToRecogniser): void => {
        // A stream that has failed is known to no thread.
        if (streams.has(stream)) send(message);
      };
      return createStream(stream, options.converter(rate), sendOpen, () => {
        if (!streams.has(stream)) return;
        send({ kind: "close", stream });
        streams.delete(stream);
      });
    },
    close: async () => {
      await worker?.terminate();
    },
  };
}

function createStream(
  stream: number,
  convert: (pcm: Pcm) => Pcm,
  send: (message: ToRecogniser) => void,
  close: () => void,
): TranscriberStream {
  let piece = new Int16Array(PIECE_SAMPLES);
  let filled = 0;
  const flush = (): void => {
    if (filled > 0) send({ kind: "write", stream, pcm: piece.slice(0, filled) });
    piece = new Int16Array(PIECE_SAMPLES);
    filled = 0;
  };
  return {
    write: (pcm) => {
      const samples = convert(pcm);
      for (let at = 0; at < samples.length;) {
        const take = Math.min(PIECE_SAMPLES - filled, samples.length - at);
        piece.set(samples.subarray(at, at + take), filled);
        filled += take;
        at += take;
        if (filled === PIECE_SAMPLES) flush();
      }
    },
    finalize: () => {
      flush();
      send({ kind: "finalize", stream });
    },
    close,
  };
}
