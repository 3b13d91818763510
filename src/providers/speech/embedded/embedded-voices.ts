// The embedded voices, Flite (English) and eSpeak NG (a hundred languages): need no account and no
// network. Both run in one thread of their own for all calls (workers/synthesize.ts).
import { createRequire } from "node:module";
import { Worker } from "node:worker_threads";
import { ProviderError } from "#core/faults.ts";
import type { Logger } from "#core/logger.ts";
import { workerFile } from "#core/program.ts";
import type { SynthesisEvent, SynthesisOptions, Synthesizer } from "#providers/speech/port.ts";

export interface TextToSpeak {
  stream: number;
  /** 0, 1, 2 … per stream. */
  number: number;
  engine: "flite" | "espeak-ng";
  /** Flite: its name; eSpeak NG: the language. */
  voice: string;
  speed: number;
  text: string;
  /** The wanted rate of the audio, in samples per second. */
  rate: number;
}

/** Audio, and how much of the text is said by its end. */
export interface SpokenPiece {
  pcm: Int16Array;
  chars: number;
}

export interface SpokenText {
  stream: number;
  number: number;
  pieces: SpokenPiece[];
  error: string | null;
}

interface EmbeddedVoices {
  flite: Synthesizer;
  espeakNg: Synthesizer;
  close(): Promise<void>;
}

const WORKER_FILE = workerFile("synthesize");
const FLITE_VOICES = new Set(["slt", "rms", "kal16", "awb", "kal"]);

/** What is missing, in one sentence; null: eSpeak NG can be used. */
export function espeakMissing(): string | null {
  try {
    createRequire(import.meta.url).resolve("@echogarden/espeak-ng-emscripten");
    return null;
  } catch {
    return "The optional package @echogarden/espeak-ng-emscripten (GPL-3) is not installed.";
  }
}

function fliteVoice({ voice, gender }: SynthesisOptions): string {
  if (voice !== null && FLITE_VOICES.has(voice)) return voice;
  return gender === "male" ? "rms" : "slt";
}

interface OpenStream {
  receive(spoken: SpokenText): void;
  fail(message: string): void;
}

export function createEmbeddedVoices(log: Logger): EmbeddedVoices {
  const streams = new Map<number, OpenStream>();
  let worker: Worker | null = null;
  let newest = 0;
  const started = (): Worker => {
    if (worker) return worker;
    const thread = new Worker(WORKER_FILE);
    thread.on("message", (spoken: SpokenText) => streams.get(spoken.stream)?.receive(spoken));
    thread.on("error", (error) => log.error({ err: error }, "the speech synthesis thread failed"));
    thread.on("exit", () => {
      if (worker === thread) worker = null;
      for (const stream of [...streams.values()]) stream.fail("the embedded voice has stopped");
    });
    thread.unref();
    return (worker = thread);
  };
  const synthesizer = (name: string, engine: TextToSpeak["engine"]): Synthesizer => ({
    name,
    open: (options, publish) => {
      const stream = (newest += 1);
      const voice = engine === "flite" ? fliteVoice(options) : options.language;
      const close = (): void => void streams.delete(stream);
      const utterance = createUtterance(publish, close);
      streams.set(stream, utterance);
      return {
        write: (text) => {
          if (utterance.isOver) return;
          const number = utterance.expect(text);
          const { speed, rate } = options;
          const request: TextToSpeak = { stream, number, engine, voice, speed, text, rate };
          started().postMessage(request);
        },
        end: utterance.end,
        cancel: () => {
          utterance.isOver = true;
          if (streams.delete(stream)) worker?.postMessage({ drop: stream });
        },
      };
    },
  });
  return {
    flite: synthesizer("Flite", "flite"),
    espeakNg: synthesizer("eSpeak NG", "espeak-ng"),
    close: async () => {
      await worker?.terminate();
    },
  };
}

/** Turns the pieces of one stream into events of the port. */
function createUtterance(publish: (event: SynthesisEvent) => void, close: () => void) {
  const texts: string[] = [];
  let done = 0;
  let chars = 0;
  let hasEnded = false;
  const finish = (): void => {
    if (utterance.isOver || !hasEnded || done < texts.length) return;
    utterance.isOver = true;
    close();
    publish({ kind: "done" });
  };
  const fail = (message: string): void => {
    utterance.isOver = true;
    close();
    publish({ kind: "failed", error: new ProviderError(message, { retryable: false }) });
  };
  const utterance = {
    /** Nothing is reported any more. */
    isOver: false,
    expect: (text: string): number => texts.push(text) - 1,
    end: (): void => {
      hasEnded = true;
      finish();
    },
    fail,
    receive: ({ number, pieces, error }: SpokenText): void => {
      if (error !== null) return fail(`the embedded voice failed: ${error}`);
      for (const piece of pieces) {
        if (utterance.isOver) return;
        publish({ kind: "audio", pcm: piece.pcm });
        if (utterance.isOver) return;
        publish({ kind: "spoken", chars: chars + piece.chars });
      }
      chars += texts[number]?.length ?? 0;
      done += 1;
      finish();
    },
  };
  return utterance;
}
