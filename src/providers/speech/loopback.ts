// Speech made of numbers: each 20 ms frame of a word carries the word itself, so that synthesis,
// recognition and voice activity are exact, instant and free. For tests, benchmarks and the
// loopback carrier; no human understands it. It survives cutting and delay, not resampling or
// mixing.
import { joined } from "#audio/mix.ts";
import type { System } from "#core/system.ts";
import { wordsIn } from "#core/values.ts";
import type {
  Pcm, SynthesisEvent, Synthesizer, Transcriber, TranscriptEvent, Vad,
} from "./port.ts";

const FRAMES_PER_SECOND = 50;
const MAGIC = 23_130;
const HEADER = 5;
/** A word of five letters lasts 300 ms, as when people speak. */
const FRAMES_PER_CHAR = 3;
const FRAMES_PER_WORD_MIN = 6;
const WORD_BYTES_MAX = 120;
const PARTIAL_WORDS_MAX = 2000;
const LOUD = 6000;
const QUIET = 1000;

interface HeardWord {
  text: string;
  /** Frames of the word that were heard, and how many it has. */
  frames: number;
  of: number;
}

/** The audio of one word, whole frames, with a frame of silence behind it. */
function soundOf(word: string, rate: number): Pcm {
  const bytes = Buffer.from(word).subarray(0, WORD_BYTES_MAX);
  const samples = rate / FRAMES_PER_SECOND;
  const count = Math.max(FRAMES_PER_WORD_MIN, Math.min(255, [...word].length * FRAMES_PER_CHAR));
  const pcm = new Int16Array(samples * (count + 1));
  for (let index = 0; index < count; index += 1) {
    const frame = pcm.subarray(index * samples, (index + 1) * samples);
    for (let at = 0; at < samples; at += 1) frame[at] = at % 8 < 4 ? LOUD : -LOUD;
    frame.set([MAGIC, -MAGIC, index, count, bytes.length]);
    frame.set(bytes, HEADER);
  }
  return pcm;
}

/** Finds words in audio of any chunking; reports each when it has ended or broken off. */
export function createWordDecoder(rate: number, publish: (word: HeardWord) => void) {
  const samples = rate / FRAMES_PER_SECOND;
  let rest: Pcm = new Int16Array(0);
  let word: HeardWord | null = null;
  let lastIndex = -1;
  const close = (): void => {
    if (word) publish(word);
    word = null;
    lastIndex = -1;
  };
  const frame = (pcm: Pcm): void => {
    const [, , index = 0, of = 0, length = 0] = pcm;
    const text = Buffer.from(pcm.slice(HEADER, HEADER + length)).toString("utf8");
    if (word && (word.text !== text || word.of !== of || index <= lastIndex)) close();
    word ??= { text, frames: 0, of };
    word.frames += 1;
    lastIndex = index;
    if (index === of - 1) close();
  };
  return {
    get silent(): boolean {
      return word === null;
    },
    write: (pcm: Pcm): void => {
      let all = pcm;
      if (rest.length > 0) {
        all = new Int16Array(rest.length + pcm.length);
        all.set(rest);
        all.set(pcm, rest.length);
      }
      let at = 0;
      while (at + samples <= all.length) {
        if (all[at] === MAGIC && all[at + 1] === -MAGIC) {
          frame(all.subarray(at, at + samples));
          at += samples;
          continue;
        }
        const next = all.indexOf(MAGIC, at + 1);
        const end = next < 0 ? all.length : next;
        if (end - at >= samples / 2) close();
        at = end;
      }
      rest = all.slice(Math.min(at, all.length));
    },
    end: close,
  };
}

interface LoopbackSpeechOptions {
  system: System;
  /** From a text written to its audio. */
  synthesisMs?: number;
  /** From `finalize` to the final text. */
  recognitionMs?: number;
}

const later = (system: System, delayMs: number, run: () => void): void => {
  if (delayMs <= 0) run();
  else system.after(delayMs, run);
};

export function createLoopbackSynthesizer(
  { system, synthesisMs = 0 }: LoopbackSpeechOptions,
): Synthesizer {
  return {
    name: "Loopback",
    open: ({ rate }, publish) => {
      let over = false;
      let chars = 0;
      let pending = 0;
      let ended = false;
      const emit = (event: SynthesisEvent): void => {
        if (!over) publish(event);
      };
      const finish = (): void => {
        if (!ended || pending > 0) return;
        emit({ kind: "done" });
        over = true;
      };
      return {
        write: (text) => {
          pending += 1;
          later(system, synthesisMs, () => {
            for (const [piece] of text.matchAll(/\s*\S+\s*/g)) {
              const pcm = soundOf(piece.trim(), rate);
              const voiced = pcm.length - rate / FRAMES_PER_SECOND;
              emit({ kind: "audio", pcm: pcm.subarray(0, voiced) });
              emit({ kind: "spoken", chars: chars + piece.trimEnd().length });
              emit({ kind: "audio", pcm: pcm.subarray(voiced) });
              chars += piece.length;
              emit({ kind: "spoken", chars });
            }
            pending -= 1;
            finish();
          });
        },
        end: () => {
          ended = true;
          finish();
        },
        cancel: () => (over = true),
      };
    },
  };
}

export function createLoopbackTranscriber(
  { system, recognitionMs = 0 }: LoopbackSpeechOptions,
): Transcriber {
  return {
    name: "Loopback",
    detectsTurns: false,
    open: ({ rate }, publish) => {
      let words: string[] = [];
      let open = true;
      const emit = (event: TranscriptEvent): void => {
        if (open) publish(event);
      };
      const ear = createWordDecoder(rate, ({ text, frames, of }) => {
        if (frames * 2 < of) return;
        if (words.length < PARTIAL_WORDS_MAX) words.push(text);
        emit({ kind: "partial", text: words.join(" ") });
      });
      return {
        write: (pcm) => ear.write(pcm),
        finalize: () => {
          ear.end();
          const text = words.join(" ");
          words = [];
          later(system, recognitionMs, () => emit({ kind: "final", text }));
        },
        close: () => (open = false),
      };
    },
  };
}

export const loopbackVad: Vad = {
  name: "Loopback",
  frameSamples: (rate) => rate / FRAMES_PER_SECOND,
  open: (_rate, publish) => ({
    push: (frame) => {
      const third = Math.floor(frame.length / 3);
      const level = Math.abs(frame[third] ?? 0) + Math.abs(frame[2 * third] ?? 0);
      publish(level > QUIET ? 1 : 0);
    },
    close: () => undefined,
  }),
};

/** The audio of a whole line, for callers that speak prepared lines. */
export function loopbackAudio(text: string, rate: number): Pcm {
  const words = wordsIn(text);
  return joined(words.map((word) => soundOf(word, rate)));
}
