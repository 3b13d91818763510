// The customer's last words: who hangs up right after a sentence has said it, though it is not
// recognised yet. Used when a call is over by voice-session.ts and realtime-session.ts.
import type { System } from "#core/system.ts";
import type { TranscriptEvent } from "#providers/speech/port.ts";
import type { EndReason } from "#features/calls/records/records.ts";
import type { Scribe } from "./scribe.ts";
import type { SpeechInput } from "./speech-input.ts";
import { freshWords, joined, withFinal, type Pieces } from "./turns/turn-draft.ts";
import type { TurnSettings, TurnState } from "./turns/turn-events.ts";

/** How long a call that is over waits for its last final text. */
const LAST_WORDS_MS = 2000;
/** The server has no time, or nothing recognises any more. */
const AT_ONCE: readonly EndReason[] = ["server_restarted", "speech_failed"];

export const waitsForWords = (reason: EndReason): boolean => !AT_ONCE.includes(reason);

/** What is known of the customer's words. */
export type Heard = Pieces
  & Pick<TurnState, "finalMs" | "isTalking" | "lastVoiceMs" | "partial" | "timers">;

export interface LastWordsOptions {
  reason: EndReason;
  /** Null, as the next: the call was not answered. */
  scribe: Pick<Scribe, "customerSaid" | "keysPressed"> | null;
  input: Pick<SpeechInput, "finalize" | "close"> | null;
  state: Heard;
  settings: Pick<TurnSettings, "keypad" | "wordsAreTold">;
  system: System;
  /** What the recogniser reports from now on goes to `receive`; it may report during a request. */
  listen(receive: (event: TranscriptEvent) => void): void;
  /** Called once: the words are on record, and the input is closed. */
  then(): void;
}

/** Something was said of which no final text has come. */
const isUnheard = ({ isTalking, hasVoice, lastVoiceMs, finalMs, finalsDue }: Heard): boolean =>
  isTalking || finalsDue > 0 || (hasVoice && lastVoiceMs > finalMs);

export function awaitLastWords(
  { reason, scribe, input, settings, system, listen, then, ...given }: LastWordsOptions,
): void {
  let { state } = given;
  const record = (): void => {
    const words = joined(state.finals, state.partial);
    if (words !== "") scribe?.customerSaid(words, state.lastVoiceMs);
    scribe?.keysPressed(settings.keypad, state.timers);
    input?.close();
    then();
  };
  // Words that are told come no more: who told them is gone.
  const isAtOnce = settings.wordsAreTold || !waitsForWords(reason) || !isUnheard(state);
  if (input === null || isAtOnce) return record();
  const timer = system.after(LAST_WORDS_MS, record);
  const asks = state.isTalking || state.finalsDue === 0;
  if (asks) state = { ...state, finalsDue: state.finalsDue + 1 };
  listen((event) => {
    if (event.kind === "partial") state = { ...state, partial: freshWords(state, event.text) };
    if (event.kind === "final") state = { ...state, ...withFinal(state, event.text) };
    const isLast = event.kind === "failed" || (event.kind === "final" && state.finalsDue === 0);
    if (!isLast) return;
    timer.cancel();
    record();
  });
  if (asks) input.finalize();
}
