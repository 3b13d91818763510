// The thread of the demo recogniser: one PocketSphinx decoder per call, all in this thread,
// because a block of audio can take longer than a frame. Started by pocketsphinx.ts.
import { parentPort } from "node:worker_threads";
import { levelThisThread } from "#core/thread-priority.ts";
import type { FromRecogniser, ToRecogniser } from "#providers/speech/embedded/recogniser-thread.ts";
import { loadSphinx, type SphinxDecoder } from "#providers/speech/embedded/sphinx-decoders.ts";

const port = parentPort;
if (!port) throw new Error("workers/transcribe-pocketsphinx.ts runs as a worker thread");
levelThisThread();

const makeDecoder = loadSphinx();
const PARTIAL_EVERY_SAMPLES = 3200;

interface Recogniser {
  decoder: SphinxDecoder;
  isOpen: boolean;
  sincePartial: number;
  partial: string;
}

const recognisers = new Map<number, Recogniser>();
/** Reused, as decoders take a quarter of a second to create and have adapted to the line. */
const spare: SphinxDecoder[] = [];
const SPARE_MAX = 4;
const post = (message: FromRecogniser): void => port.postMessage(message);

function open(): Recogniser {
  const decoder = spare.pop() ?? makeDecoder();
  return { decoder, isOpen: false, sincePartial: 0, partial: "" };
}

function write(stream: number, recogniser: Recogniser, pcm: Int16Array): void {
  if (!recogniser.isOpen) recogniser.decoder.begin();
  recogniser.isOpen = true;
  recogniser.decoder.hear(pcm);
  recogniser.sincePartial += pcm.length;
  if (recogniser.sincePartial < PARTIAL_EVERY_SAMPLES) return;
  recogniser.sincePartial = 0;
  const text = recogniser.decoder.words();
  if (text === recogniser.partial) return;
  recogniser.partial = text;
  post({ kind: "partial", stream, text });
}

function finalize(stream: number, recogniser: Recogniser): void {
  let text = "";
  if (recogniser.isOpen) {
    recogniser.decoder.end();
    text = recogniser.decoder.words();
  }
  recogniser.isOpen = false;
  recogniser.partial = "";
  recogniser.sincePartial = 0;
  post({ kind: "final", stream, text });
}

function close(stream: number, recogniser: Recogniser): void {
  recognisers.delete(stream);
  if (recogniser.isOpen) recogniser.decoder.end();
  if (spare.length < SPARE_MAX) spare.push(recogniser.decoder);
  else recogniser.decoder.free();
}

port.on("message", (message: ToRecogniser) => {
  const { stream } = message;
  if (message.kind === "open") {
    recognisers.set(stream, open());
    return;
  }
  const recogniser = recognisers.get(stream);
  if (!recogniser) return;
  if (message.kind === "write") write(stream, recogniser, message.pcm);
  else if (message.kind === "finalize") finalize(stream, recogniser);
  else close(stream, recogniser);
});
