// How a person of the account changes who speaks: one who has the call alone silences the
// assistant, one beside it is not spoken over, and a hint is acted on as soon as the assistant may
// speak. Part of the pure reducer in turn-taker.ts.
import {
  discard, forgetTurn, isFinalDue, isFree, said, think, timers, type Draft,
} from "./turn-draft.ts";
import type { TurnState } from "./turn-events.ts";

export type PersonEvent =
  /** Alone: the assistant is silent and listens. */
  | { kind: "person_joined"; isAlone: boolean }
  /** `wasLost`: their connection was lost; they did not hand the call back. */
  | { kind: "person_left"; wasLost: boolean }
  /** The person begins to speak, or has stopped. */
  | { kind: "person_voice"; isTalking: boolean }
  /** A colleague has told the assistant something that it is to say in its own words. */
  | { kind: "hint" };

/** Why the assistant speaks although the customer has said nothing. */
export type SpeakUp = "hint" | "handed_back" | "lost";

export interface TakingPart {
  readonly isAlone: boolean;
  readonly isTalking: boolean;
}

export function receivePerson(draft: Draft, event: PersonEvent): void {
  const { state } = draft;
  switch (event.kind) {
    case "person_joined":
      state.person = { isAlone: event.isAlone, isTalking: state.person?.isTalking ?? false };
      if (event.isAlone) return stepAside(draft);
      if (state.phase === "aside" && state.elsewhere !== "yes") state.phase = "listening";
      return;
    case "person_left":
      state.person = null;
      if (state.phase === "aside" && state.elsewhere !== "yes") comeBack(draft, event.wasLost ? "lost" : "handed_back");
      return;
    case "person_voice":
      if (state.person) state.person = { ...state.person, isTalking: event.isTalking };
      return holdBreath(draft);
    case "hint":
      state.isHinted = true;
      // The prepared reply was requested without the hint.
      return discard(draft);
  }
}

/** Keeps track of who takes part while the outcome of a transfer is not reported yet. */
export function personAfter(state: TurnState, event: PersonEvent): TurnState {
  if (event.kind === "person_left") return { ...state, person: null };
  if (event.kind !== "person_joined") return state;
  return { ...state, person: { isAlone: event.isAlone, isTalking: false } };
}

/** Interrupts the reply under way, and drops what was to follow it. */
function stepAside(draft: Draft): void {
  const { state, actions } = draft;
  if (state.phase === "dialling" || state.phase === "aside") return;
  if (state.phase === "speaking") actions.push({ kind: "interrupt" });
  if (state.phase === "thinking") actions.push({ kind: "cancel_reply" });
  discard(draft);
  state.phase = "aside";
  state.isPaused = false;
  state.answering = "";
  state.ending = null;
  state.functionRunning = false;
  // The person who takes the call has heard who answered: no machine has to be detected.
  state.listener = "human";
  timers(draft, { kind: "activity" });
}

function comeBack(draft: Draft, why: SpeakUp): void {
  const { state } = draft;
  state.phase = "listening";
  timers(draft, { kind: "activity" });
  // What the customer is saying is answered instead.
  if (!state.hasTurn && !state.isTalking) speakUp(draft, why);
}

function speakUp(draft: Draft, why: SpeakUp): void {
  draft.state.isHinted = false;
  think(draft);
  draft.actions.push({ kind: "speak_up", why });
}

/** Pauses the assistant while a person speaks; it goes on when they have finished. */
export function holdBreath({ state, actions }: Draft): void {
  if (!state.person?.isTalking || state.phase !== "speaking" || state.isPaused) return;
  state.isPaused = true;
  actions.push({ kind: "pause" });
}

export function settleHint(draft: Draft): void {
  const { state } = draft;
  const isKept = state.ending !== null || state.person?.isTalking;
  if (state.isHinted && isFree(state) && !isKept) speakUp(draft, "hint");
}

/** The assistant listens: what is said goes on record, and nothing is answered. */
export function settleAside(draft: Draft): void {
  const { state, settings, actions } = draft;
  const keys = timers(draft, { kind: "check_keypad" });
  if (keys?.kind === "keys") actions.push({ kind: "note", text: keys.text });
  timers(draft, { kind: "check_silence", isBusy: true });
  if (!state.hasTurn || state.isTalking || isFinalDue(draft)) return;
  if (state.unvoicedMs >= settings.endpoint.silenceMs) noteSaid(draft);
}

export function noteSaid(draft: Draft): void {
  const text = said(draft);
  if (text !== "") draft.actions.push({ kind: "note", text });
  forgetTurn(draft);
}
