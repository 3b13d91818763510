// A recogniser for calls whose words come with their leg: from a carrier that knows the lines of
// its caller, or from a page whose browser recognises speech or whose visitor types. Made by
// host.ts and warm-host.ts for a call that has no other.
import type { System, Timer } from "#core/system.ts";
import { afterWords, countWords } from "#core/words.ts";
import type { LegEvent } from "#providers/carriers/port.ts";
import type { Transcriber, TranscriptEvent, Vad } from "#providers/speech/port.ts";

/** In a gap shorter than this a word is still being said; the turn taker waits as long. */
const VOICE_GAP_MS = 200;
const VOICED = 0.5;
/** Browsers say a final word up to a second after the last sound. */
const FINAL_WAIT_MS = 1200;

interface LegTranscriber {
  transcriber: Transcriber;
  /** The same VAD, observed: a partial that comes after the voice has ended waits for its final. */
  watch(vad: Vad): Vad;
  receive(words: Extract<LegEvent, { kind: "words" }>): void;
}

export function createLegTranscriber(system: System): LegTranscriber {
  let publish: (event: TranscriptEvent) => void = () => undefined;
  let partial = "";
  /** How many words of the current piece were published as final before it was closed. */
  let given = 0;
  let due: Timer | null = null;
  let voicedMs = -Infinity;
  const final = (text: string): void => {
    due?.cancel();
    due = null;
    partial = "";
    publish({ kind: "final", text });
  };
  const wait = (): void => {
    due ??= system.after(FINAL_WAIT_MS, () => {
      given += countWords(partial);
      final(partial);
    });
  };
  return {
    receive: ({ text, isFinal }) => {
      // A recogniser may revise a word, but not how many words came before it.
      const rest = afterWords(text, given);
      if (isFinal) {
        given = 0;
        if (rest !== "" || due !== null) final(rest);
        return;
      }
      partial = rest;
      if (rest === "") return;
      if (system.monotonicMs() - voicedMs < VOICE_GAP_MS) publish({ kind: "partial", text: rest });
      else wait();
    },
    watch: (vad) => ({
      ...vad,
      open: (rate, next) => vad.open(rate, (probability) => {
        if (probability >= VOICED) voicedMs = system.monotonicMs();
        next(probability);
      }),
    }),
    transcriber: {
      name: "Words of the leg",
      detectsTurns: false,
      wordsAreTold: true,
      open: (_options, next) => {
        publish = next;
        return {
          write: () => undefined,
          finalize: () => {
            if (partial === "") final("");
            else wait();
          },
          close: () => {
            due?.cancel();
            due = null;
            if (publish === next) publish = () => undefined;
          },
        };
      },
    },
  };
}
