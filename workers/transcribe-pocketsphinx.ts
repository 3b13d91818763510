// The thread of the demo recogniser: one PocketSphinx decoder per call, all in this thread,
// because a block of audio can take longer than a frame. Started by pocketsphinx.ts.
import koffi from "koffi";
import { parentPort } from "node:worker_threads";
import { levelThisThread } from "#core/thread-priority.ts";
import type { FromRecogniser, ToRecogniser } from "#providers/speech/embedded/recogniser-thread.ts";
import { MODEL_DIR } from "#providers/speech/embedded/pocketsphinx.ts";

const port = parentPort;
if (!port) throw new Error("workers/transcribe-pocketsphinx.ts runs as a worker thread");
levelThisThread();

type Pointer = unknown;
const sphinx = koffi.load("libpocketsphinx.so.3");
const base = koffi.load("libsphinxbase.so.3");
const psArgs = sphinx.func("void *ps_args()") as () => Pointer;
const configure = base.func("void *cmd_ln_init(void *inout, void *defn, int strict, ...)") as
  (...args: unknown[]) => Pointer;
const init = sphinx.func("void *ps_init(void *config)") as (config: Pointer) => Pointer;
const free = sphinx.func("int ps_free(void *ps)") as (decoder: Pointer) => number;
const startUtterance = sphinx.func("int ps_start_utt(void *ps)") as (decoder: Pointer) => number;
const endUtterance = sphinx.func("int ps_end_utt(void *ps)") as (decoder: Pointer) => number;
const processRaw = sphinx.func(
  "int ps_process_raw(void *ps, const int16_t *data, size_t n, int no_search, int full)") as
  (decoder: Pointer, data: Int16Array, count: number, noSearch: number, full: number) => number;
const hypothesis = sphinx.func("const char *ps_get_hyp(void *ps, _Out_ int *score)") as
  (decoder: Pointer, score: number[]) => string | null;

/** A pass that would cost a quarter of a second at the end of each turn and gain little. */
const OPTIONS = [
  "-hmm", `${MODEL_DIR}/en-us`, "-lm", `${MODEL_DIR}/en-us.lm.bin`,
  "-dict", `${MODEL_DIR}/cmudict-en-us.dict`, "-logfn", "/dev/null", "-fwdflat", "no",
];
const PARTIAL_EVERY_SAMPLES = 3200;

interface Recogniser {
  decoder: Pointer;
  isOpen: boolean;
  sincePartial: number;
  partial: string;
}

const recognisers = new Map<number, Recogniser>();
/** Decoders take a quarter of a second to make and have adapted to the line: kept for the next. */
const spare: Pointer[] = [];
const SPARE_MAX = 4;
const post = (message: FromRecogniser): void => port.postMessage(message);

function open(): Recogniser {
  const args = [...OPTIONS.flatMap((option) => ["str", option]), "void *", null];
  const decoder = spare.pop() ?? init(configure(null, psArgs(), 1, ...args));
  if (!decoder) throw new Error("the decoder could not be made");
  return { decoder, isOpen: false, sincePartial: 0, partial: "" };
}

function write(stream: number, recogniser: Recogniser, pcm: Int16Array): void {
  if (!recogniser.isOpen) startUtterance(recogniser.decoder);
  recogniser.isOpen = true;
  processRaw(recogniser.decoder, pcm, pcm.length, 0, 0);
  recogniser.sincePartial += pcm.length;
  if (recogniser.sincePartial < PARTIAL_EVERY_SAMPLES) return;
  recogniser.sincePartial = 0;
  const text = hypothesis(recogniser.decoder, [0]) ?? "";
  if (text === recogniser.partial) return;
  recogniser.partial = text;
  post({ kind: "partial", stream, text });
}

function finalize(stream: number, recogniser: Recogniser): void {
  let text = "";
  if (recogniser.isOpen) {
    endUtterance(recogniser.decoder);
    text = hypothesis(recogniser.decoder, [0]) ?? "";
  }
  recogniser.isOpen = false;
  recogniser.partial = "";
  recogniser.sincePartial = 0;
  post({ kind: "final", stream, text });
}

function close(stream: number, recogniser: Recogniser): void {
  recognisers.delete(stream);
  if (recogniser.isOpen) endUtterance(recogniser.decoder);
  if (spare.length < SPARE_MAX) spare.push(recogniser.decoder);
  else free(recogniser.decoder);
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
