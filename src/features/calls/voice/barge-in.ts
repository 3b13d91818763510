// Whether a sound over the assistant takes the floor. Part of the pure reducer in turn-taker.ts.
import { forgetTurn, isFinalDue, said, timers, type Draft } from "./turn-draft.ts";
import { interrupts, isBackchannel } from "./wording.ts";

const BACKCHANNEL_SILENCE_MS = 500;
const FALSE_INTERRUPTION_MS = 2000;

/** A voice is heard over the assistant: it holds its breath until it is known what is wanted. */
export function voiceOver({ state, settings, actions, nowMs }: Draft): void {
  const mayPause = settings.interrupt.allowed && settings.interrupt.wordsMin === 0;
  if (state.phase !== "speaking" || state.isPaused || !mayPause) return;
  state.isPaused = true;
  state.pausedMs = nowMs;
  actions.push({ kind: "pause" });
}

/** Words are heard over the assistant. */
export function wordsOver(draft: Draft): void {
  const { state, settings, actions } = draft;
  if (state.phase !== "speaking" || !settings.interrupt.allowed || state.ending !== null) return;
  if (!interrupts(said(draft), settings.interrupt.wordsMin, state.partial !== "")) return;
  actions.push({ kind: "interrupt" });
  state.phase = "listening";
  state.isPaused = false;
  state.answering = "";
}

/** Was it an interruption? Its words say so; without any the assistant goes on. */
export function settlePause(draft: Draft): void {
  const { state, actions } = draft;
  if (state.isTalking) return;
  const text = said(draft);
  const isOver = state.unvoicedMs >= BACKCHANNEL_SILENCE_MS && !isFinalDue(draft);
  const isStale = state.unvoicedMs >= FALSE_INTERRUPTION_MS;
  if (!isOver && !isStale) return;
  if (text !== "" && !isBackchannel(text)) return;
  if (text !== "") actions.push({ kind: "note", text });
  forgetTurn(draft);
  state.isPaused = false;
  timers(draft, { kind: "activity" });
  actions.push({ kind: "resume" });
}
