// The embedded voices, Flite (English) and eSpeak NG (a hundred languages): need no account and no
// network. Both run in one thread of their own for all calls (workers/synthesize.ts).
import { createRequire } from "node:module";
import { Worker } from "node:worker_threads";
import { createResampler } from "#audio/resampler.ts";
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
}

export interface SpokenText {
  stream: number;
  number: number;
  pcm: Int16Array;
  rate: number;
  words: { chars: number; samples: number }[];
  error: string | null;
}

interface EmbeddedVoices {
  flite: Synthesizer;
  espeakNg: Synthesizer;
  close(): Promise<void>;
}

const WORKER_FILE = workerFile("synthesize");
const FLITE_VOICES = new Set(["slt", "rms", "kal16", "awb", "kal"]);
/** Quieter than this is the silence engines put around speech. */
const SILENCE_LEVEL = 180;
const LEAD_SECONDS = 0.02;
const TAIL_SECONDS = 0.12;

/** In one sentence what is missing; null: eSpeak NG can be used. */
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
    thread.on("error", (error) => log.error({ err: error }, "the thread of the voices failed"));
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
      const utterance = createUtterance(options, publish, close);
      streams.set(stream, utterance);
      return {
        write: (text) => {
          if (utterance.isOver) return;
          const number = utterance.expect(text);
          const { speed } = options;
          const request: TextToSpeak = { stream, number, engine, voice, speed, text };
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

/** Puts the pieces of one stream in the words of the port. */
function createUtterance(
  { rate }: SynthesisOptions, publish: (event: SynthesisEvent) => void, close: () => void,
) {
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
    receive: ({ number, pcm, rate: from, words, error }: SpokenText): void => {
      if (error !== null) return fail(`the embedded voice failed: ${error}`);
      const speech = speechIn(pcm, from);
      const resampler = createResampler(from, rate);
      let at = speech.from;
      // Up to the beginning of each next word, so that what was heard is known by the word.
      for (const word of words.slice(1)) {
        if (utterance.isOver) return;
        if (word.samples <= at || word.samples >= speech.to) continue;
        publish({ kind: "audio", pcm: resampler.process(pcm.slice(at, word.samples)) });
        publish({ kind: "spoken", chars: chars + word.chars });
        at = word.samples;
      }
      if (utterance.isOver) return;
      publish({ kind: "audio", pcm: resampler.process(pcm.slice(at, speech.to)) });
      chars += texts[number]?.length ?? 0;
      if (utterance.isOver) return;
      publish({ kind: "spoken", chars });
      done += 1;
      finish();
    },
  };
  return utterance;
}
