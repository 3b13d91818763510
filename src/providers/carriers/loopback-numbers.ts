// Scripts for the numbers of the loopback carrier, so that every outcome of a call can be tried
// without a telephone. The media thread opens this carrier.
import type { System } from "#core/system.ts";
import type { Engines } from "#providers/speech/opening.ts";
import { createLoopbackCarrier, type CallerScript } from "./loopback.ts";
import type { Carrier } from "./port.ts";

const ANSWERS = { ringMs: 300, answerMs: 1200, outcome: "answers" } as const;
/** A person waits for a greeting, and speaks after 5 s without one. */
const FIRST = { quietMs: 900, latestMs: 5000 };
/** Says a line whenever the assistant has spoken and is quiet; hangs up after the last answer. */
const personWith = (lines: string[]): CallerScript => ({
  ...ANSWERS,
  steps: [
    ...lines.flatMap((say, index) => [index === 0 ? FIRST : { quietMs: 1200 }, { say }]),
    { quietMs: 1500 },
    { hangUp: true },
  ],
});
const PERSON = personWith(["Hello. When are you open?", "Thank you, goodbye."]);

/** Keyed by a number's last four digits; every other number is a person with one question. */
const BY_ENDING: Record<string, CallerScript> = {
  "0001": { ringMs: 300, answerMs: 0, outcome: "busy", steps: [] },
  "0002": { ringMs: 300, answerMs: 0, outcome: "no_answer", steps: [] },
  "0003": {
    ...ANSWERS,
    steps: [
      { say: "You have reached the mailbox of nobody. Please leave a message after the tone." },
      { beepMs: 600 },
      { waitMs: 60_000 },
      { hangUp: true },
    ],
  },
  "0004": { ringMs: 300, answerMs: 0, outcome: "rejected", steps: [] },
  "0005": { ringMs: 300, answerMs: 0, outcome: "failed", steps: [] },
  /** Picks up and says nothing. */
  "0006": { ...ANSWERS, steps: [{ waitMs: 3_600_000 }] },
  /** Talks over the greeting. */
  "0007": {
    ...ANSWERS,
    steps: [
      { words: 3 },
      { say: "Stop. When are you open?" },
      { quietMs: 1200 },
      { hangUp: true },
    ],
  },
};

export function openCarrier(
  { engines, system }: { engines: Pick<Engines, "speak">; system: System },
): Carrier {
  return createLoopbackCarrier({
    system,
    speak: engines.speak,
    scriptOf: (to, lines) => lines ? personWith(lines) : BY_ENDING[to.slice(-4)] ?? PERSON,
  });
}
