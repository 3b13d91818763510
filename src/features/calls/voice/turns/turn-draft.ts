// What the parts of the turn taker share: the draft of the next state, and what several of them do
// to it. Part of the pure reducer in turn-taker.ts; barge-in.ts, answering-machines.ts,
// taking-part.ts and elsewhere.ts are the others.
import { afterWords, countWords } from "#core/words.ts";
import type { EndReason } from "#features/calls/records/records.ts";
import { reduceTimers, type TimerAction, type TimerEvent } from "./call-timers.ts";
import type { TurnAction, TurnSettings, TurnState } from "./turn-events.ts";

/** How long a turn waits for the final text of what was said. */
const FINAL_WAIT_MS = 2000;
/** A final that has not come by then is not expected any more. */
export const FINAL_LATEST_MS = 15_000;

/** A draft of the next state with the actions it leads to; lives for one event. */
export interface Draft {
  state: { -readonly [K in keyof TurnState]: TurnState[K] };
  actions: TurnAction[];
  settings: TurnSettings;
  nowMs: number;
}

export function timers(draft: Draft, event: TimerEvent): TimerAction | null {
  const { settings, nowMs } = draft;
  const { state, action } = reduceTimers(settings, draft.state.timers, event, nowMs);
  draft.state.timers = state;
  return action;
}

export const joined = (one: string, other: string): string =>
  [one.trim(), other.trim()].filter((text) => text !== "").join(" ");

export const said = ({ state }: Draft): string => joined(state.finals, state.partial);

/** What is known of the texts of a turn. */
export type Pieces = Pick<TurnState, "finals" | "finalsDue" | "hasVoice" | "spentWords">;

/** The words of the piece not dealt with yet; none if no voice was heard since the others were. */
export function freshWords({ spentWords, hasVoice }: Pieces, text: string): string {
  if (spentWords === 0) return text;
  return hasVoice ? afterWords(text, spentWords) : "";
}

/** What a final text changes: the recogniser has closed its current piece. */
export const withFinal = (state: Pieces, text: string) => ({
  finals: joined(state.finals, freshWords(state, text)), partial: "",
  spentWords: 0, finalsDue: Math.max(0, state.finalsDue - 1),
});

/** Asks the recogniser to close its current piece with a final. */
export function askFinal({ state, actions, nowMs }: Draft): void {
  // An engine may answer several requests at once: what it owes after that is forgotten.
  state.finalsDue = state.finalAskedMs === null ? 1 : state.finalsDue + 1;
  state.finalAskedMs = nowMs;
  actions.push({ kind: "finalize" });
}

/** The customer is saying something that is to be answered. */
export function turnGoesOn({ state, nowMs }: Draft): void {
  if (!state.hasTurn) state.turnFromMs = nowMs;
  state.hasTurn = true;
  state.judged = null;
}

/** The assistant may speak unasked: nobody speaks over it, and nothing is to be answered. */
export const isFree = ({ phase, isTalking, hasTurn }: TurnState): boolean =>
  (phase === "listening" || phase === "waiting") && !isTalking && !hasTurn;

/** Drops the prepared reply, which answers something other than what was said. */
export function discard({ state, actions }: Draft): void {
  if (state.prepared === null) return;
  state.prepared = null;
  actions.push({ kind: "discard" });
}

/** The final text was asked for and can still be waited for. */
export const isFinalDue = ({ state: { finalAskedMs }, nowMs }: Draft): boolean =>
  finalAskedMs !== null && nowMs - finalAskedMs < FINAL_WAIT_MS;

/**
 * Clears the turn, which has been dealt with. Words of a piece that is not closed yet come again
 * with its final, however late that is, and must not be answered again then.
 */
export function forgetTurn(draft: Draft): void {
  const { state } = draft;
  if (state.partial !== "") {
    state.spentWords += countWords(state.partial);
    if (state.finalAskedMs === null) askFinal(draft);
  }
  state.hasTurn = false;
  state.judged = null;
  discard(draft);
  state.prepares = 0;
  state.hasVoice = false;
  forgetSound(draft);
  state.finals = "";
  state.partial = "";
}

export function forgetSound({ state }: Draft): void {
  state.soundMs = 0;
  state.audibleMs = 0;
  state.clearMs = 0;
}

/** Something other than a reply is to be said by the assistant. */
export function think(draft: Draft): void {
  const { state, nowMs } = draft;
  discard(draft);
  state.phase = "thinking";
  state.thinkingMs = nowMs;
  state.fillerPlayed = true;
  state.answering = "";
}

export function hangUp({ state, actions }: Draft, reason: EndReason): void {
  if (state.phase === "over") return;
  state.phase = "over";
  actions.push({ kind: "hang_up", reason });
}
