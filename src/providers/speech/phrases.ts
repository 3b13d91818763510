// A cache of fixed phrases (greetings, fillers, goodbyes): the engine speaks each once, and after
// that it is heard in the first frame and costs nothing. Wraps each engine on its own (opening.ts),
// so that a kept phrase is in that engine's voice, even where one speaks for another that failed.
// Bounded by bytes and age; the least recently used phrase is evicted.
import type { System } from "#core/system.ts";
import type { SynthesisEvent, SynthesisOptions, SynthesisStream, Synthesizer } from "./port.ts";

const PHRASES_BYTES_MAX = 16 * 1024 * 1024;
/** A minute at 16 kHz; what is longer is nobody's fixed phrase. */
const PHRASE_BYTES_MAX = 2 * 1024 * 1024;
/** Vendors change voices under the same name. */
export const PHRASE_AGE_MS_MAX = 24 * 3_600_000;
const BYTES_PER_SAMPLE = 2;

interface PhrasesOptions {
  system: System;
  bytesMax?: number;
}

type Publish = (event: SynthesisEvent) => void;

interface Phrase {
  events: SynthesisEvent[];
  bytes: number;
  sinceMs: number;
  isDone: boolean;
  /** Streams that wait for the rest of it. */
  listeners: Set<Publish>;
}

interface Phrases {
  /** Wraps the engine: utterances with `isFixed` are kept under its code. */
  keep(code: string, synthesizer: Synthesizer): Synthesizer;
}

export function createPhrases({ system, bytesMax = PHRASES_BYTES_MAX }: PhrasesOptions): Phrases {
  /** In the order of last use: the first is the least recently used phrase. */
  const phrases = new Map<string, Phrase>();
  let bytes = 0;
  const forget = (key: string, phrase: Phrase): void => {
    if (phrases.get(key) !== phrase) return;
    phrases.delete(key);
    bytes -= phrase.bytes;
  };
  const find = (key: string): Phrase | null => {
    const phrase = phrases.get(key);
    if (!phrase) return null;
    if (system.monotonicMs() - phrase.sinceMs > PHRASE_AGE_MS_MAX) {
      forget(key, phrase);
      return null;
    }
    phrases.delete(key);
    phrases.set(key, phrase);
    return phrase;
  };
  const record = (key: string, phrase: Phrase, event: SynthesisEvent): void => {
    phrase.events.push(event);
    if (event.kind === "failed") return forget(key, phrase);
    if (event.kind === "done") {
      phrase.isDone = true;
      // A vendor's accident: kept, it would be a day of silence.
      if (phrase.bytes === 0) forget(key, phrase);
    }
    if (event.kind !== "audio" || phrases.get(key) !== phrase) return;
    const size = event.pcm.length * BYTES_PER_SAMPLE;
    phrase.bytes += size;
    bytes += size;
    if (phrase.bytes > PHRASE_BYTES_MAX) forget(key, phrase);
    for (const [oldest, other] of phrases) {
      if (bytes <= bytesMax) return;
      forget(oldest, other);
    }
  };
  const speak = (
    key: string, texts: string[], open: (publish: Publish) => SynthesisStream,
  ): Phrase => {
    const phrase: Phrase = {
      events: [], bytes: 0, sinceMs: system.monotonicMs(), isDone: false, listeners: new Set(),
    };
    phrases.set(key, phrase);
    const stream = open((event) => {
      record(key, phrase, event);
      for (const listener of [...phrase.listeners]) listener(event);
    });
    for (const text of texts) stream.write(text);
    stream.end();
    return phrase;
  };
  return {
    keep: (code, synthesizer) => ({
      name: synthesizer.name,
      open: (options, publish) => {
        if (!options.isFixed) return synthesizer.open(options, publish);
        return openKept(publish, (texts) => {
          const key = keyOf(code, options, texts);
          return find(key) ?? speak(key, texts, (next) => synthesizer.open(options, next));
        });
      },
    }),
  };
}

const keyOf = (
  code: string,
  { rate, voice, gender, language, speed, stability, similarity, hasEmotion }: SynthesisOptions,
  texts: string[],
): string => JSON.stringify(
  [code, rate, voice, gender, language, speed, stability, similarity, hasEmotion, ...texts]);

/** Looks the phrase up once all of it is there. */
function openKept(publish: Publish, find: (texts: string[]) => Phrase): SynthesisStream {
  const texts: string[] = [];
  let phrase: Phrase | null = null;
  let isOver = false;
  /** The next of its events. */
  let at = 0;
  const hear = (): void => {
    for (let event = phrase?.events[at]; event && !isOver; event = phrase?.events[at]) {
      at += 1;
      publish(event);
    }
    if (phrase?.isDone) phrase.listeners.delete(hear);
  };
  return {
    write: (text) => void texts.push(text),
    end: () => {
      if (isOver || phrase) return;
      phrase = find(texts);
      if (!phrase.isDone) phrase.listeners.add(hear);
      hear();
    },
    // It is spoken to its end all the same: somebody will want it.
    cancel: () => {
      isOver = true;
      phrase?.listeners.delete(hear);
    },
  };
}
