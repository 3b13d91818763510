// The thread of sherpa-onnx: one recogniser, a stream per call. Started by sherpa.ts.
import { createRequire } from "node:module";
import { parentPort, workerData } from "node:worker_threads";
import {
  RECOGNISER_RATE, type FromRecogniser, type ToRecogniser,
} from "#providers/speech/embedded/recogniser-thread.ts";
import { levelThisThread } from "#core/thread-priority.ts";
import type { SherpaModel } from "#config/sherpa-model.ts";

const port = parentPort;
if (!port) throw new Error("workers/transcribe-sherpa.ts runs as a worker thread");
levelThisThread();

/** The part of the package used here; its own types do not fit this compiler. */
interface Stream {
  acceptWaveform(wave: { samples: Float32Array; sampleRate: number }): void;
}
interface Recogniser {
  createStream(): Stream;
  isReady(stream: Stream): boolean;
  decode(stream: Stream): void;
  reset(stream: Stream): void;
  getResult(stream: Stream): { text: string };
}
interface Sherpa {
  OnlineRecognizer: new (config: object) => Recogniser;
}

const FULL_SCALE = 32_768;
const FEATURES = 80;
/** Models look ahead: without trailing silence the last word would not come out. */
const TAIL_SECONDS = 0.5;

const { OnlineRecognizer } = createRequire(import.meta.url)("sherpa-onnx-node") as Sherpa;
const recogniser = new OnlineRecognizer({
  featConfig: { sampleRate: RECOGNISER_RATE, featureDim: FEATURES },
  modelConfig: { ...(workerData as SherpaModel), numThreads: 1, provider: "cpu", debug: false },
  decodingMethod: "greedy_search",
  // Endpointing is done by the call.
  enableEndpoint: false,
});
const streams = new Map<number, { stream: Stream; text: string }>();
const post = (message: FromRecogniser): void => port.postMessage(message);

/** Many models output only upper case. */
function textOf(stream: Stream): string {
  const text = recogniser.getResult(stream).text.trim();
  return text === text.toUpperCase() ? text.toLowerCase() : text;
}

function recognise(stream: Stream, samples: Float32Array): string {
  stream.acceptWaveform({ samples, sampleRate: RECOGNISER_RATE });
  while (recogniser.isReady(stream)) recogniser.decode(stream);
  return textOf(stream);
}

port.on("message", (message: ToRecogniser) => {
  const { stream: number } = message;
  if (message.kind === "open") {
    streams.set(number, { stream: recogniser.createStream(), text: "" });
    return;
  }
  const open = streams.get(number);
  if (!open) return;
  if (message.kind === "close") return void streams.delete(number);
  const { stream } = open;
  if (message.kind === "finalize") {
    const text = recognise(stream, new Float32Array(TAIL_SECONDS * RECOGNISER_RATE));
    recogniser.reset(stream);
    open.text = "";
    return post({ kind: "final", stream: number, text });
  }
  const text = recognise(stream, Float32Array.from(message.pcm, (sample) => sample / FULL_SCALE));
  if (text === open.text) return;
  open.text = text;
  post({ kind: "partial", stream: number, text });
});
