// The engines of a server as calls get them: the requested one, backed by all others that can serve
// the language in case it fails in the middle of a call. Made by opening.ts.
import type { Logger } from "#core/logger.ts";
import type { System } from "#core/system.ts";
import type { Synthesizer, Transcriber } from "#providers/speech/port.ts";
import { createResting, type Candidate } from "./candidates.ts";
import { createSynthesizerFallback } from "./synthesizer-fallback.ts";
import { createTranscriberFallback } from "./transcriber-fallback.ts";

type ByCode<Engine> = (code: string) => Engine;
/** Codes of all that can, best first. */
type UsableIn = (language: string) => string[];

interface EnduringOptions {
  system: System;
  log: Logger;
}

/** A demo recogniser is never a fallback. */
const DEMO = "pocketsphinx";

export function enduringTranscribers(
  open: ByCode<Transcriber>, usableIn: UsableIn, options: EnduringOptions,
): ByCode<Transcriber> {
  const resting = createResting(options.system);
  const others: UsableIn = (language) => usableIn(language).filter((code) => code !== DEMO);
  return remembered((code) => {
    const first = open(code);
    if (code === DEMO) return first;
    const candidates = candidatesOf(code, open, others);
    return createTranscriberFallback(first, { ...options, resting, candidates });
  });
}

export function enduringSynthesizers(
  open: ByCode<Synthesizer>, usableIn: UsableIn, options: EnduringOptions,
): ByCode<Synthesizer> {
  const resting = createResting(options.system);
  return remembered((code) => {
    const candidates = candidatesOf(code, open, usableIn);
    return createSynthesizerFallback(
      { code, engine: open(code) }, { ...options, resting, candidates });
  });
}

/** The engine itself, then all others. */
function candidatesOf<Engine>(
  code: string, open: ByCode<Engine>, others: UsableIn,
): (wanted: { language: string }) => Candidate<Engine>[] {
  const codesOf = remembered(others);
  return ({ language }) => [...new Set([code, ...codesOf(language)])]
    .map((one) => ({ code: one, engine: open(one) }));
}

/** Memoises `make`, because finding out which engines can be used reads files. */
export function remembered<Value>(make: (key: string) => Value): (key: string) => Value {
  const made = new Map<string, Value>();
  return (key) => {
    const value = made.get(key) ?? make(key);
    made.set(key, value);
    return value;
  };
}
