// The customer's last words: who hangs up right after a sentence has said it, though it is not
// recognised yet. Used by voice-session.ts when a call is over.
import type { System } from "#core/system.ts";
import type { TranscriptEvent } from "#providers/speech/port.ts";
import type { EndReason } from "#features/calls/records/records.ts";
import type { Scribe } from "./scribe.ts";
import type { SpeechInput } from "./speech-input.ts";
import { freshWords, joined } from "./turns/turn-draft.ts";
import type { TurnSettings, TurnState } from "./turns/turn-events.ts";

/** How long a call that is over waits for its last final text. */
const LAST_WORDS_MS = 2000;
/** The server has no time, or nothing recognises any more. */
const AT_ONCE: readonly EndReason[] = ["server_restarted", "speech_failed"];

interface LastWordsOptions {
  reason: EndReason;
  /** Null, as the next: the call was not answered. */
  scribe: Pick<Scribe, "customerSaid" | "keysPressed"> | null;
  input: SpeechInput | null;
  state: TurnState;
  settings: TurnSettings;
  system: System;
  /** Called once: the words are on record, and the input is closed. */
  then(): void;
}

/** Something was said of which no final text has come. */
const isUnheard = (
  { isTalking, hasVoice, lastVoiceMs, finalMs, finalAskedMs }: TurnState,
): boolean => isTalking || finalAskedMs !== null || (hasVoice && lastVoiceMs > finalMs);

/** The result receives what the recogniser still reports. */
export function awaitLastWords(
  { reason, scribe, input, state, settings, system, then }: LastWordsOptions,
): (event: TranscriptEvent) => void {
  const record = (words = joined(state.finals, state.partial)): void => {
    if (words !== "") scribe?.customerSaid(words, state.lastVoiceMs);
    scribe?.keysPressed(settings.keypad, state.timers);
    input?.close();
    then();
  };
  // Words that are told come no more: who told them is gone.
  const isAtOnce = settings.wordsAreTold || AT_ONCE.includes(reason) || !isUnheard(state);
  if (input === null || isAtOnce) {
    record();
    return () => undefined;
  }
  const timer = system.after(LAST_WORDS_MS, record);
  if (state.isTalking || state.finalAskedMs === null) input.finalize();
  return (event) => {
    if (event.kind !== "final" && event.kind !== "failed") return;
    timer.cancel();
    if (event.kind === "failed") record();
    else record(joined(state.finals, freshWords(state, event.text)));
  };
}
