// While a colleague is called and talks with the customer, the assistant stands aside: it finishes
// its utterance, then is silent and listens. Part of the pure reducer in turn-taker.ts.
import { discard, timers, type Draft } from "./turn-draft.ts";

/** `due`: the assistant stands aside once its current utterance has been heard. */
export type Elsewhere = "no" | "due" | "yes";

export function standAside({ state }: Draft): void {
  if (state.phase !== "over" && state.elsewhere === "no") state.elsewhere = "due";
}

export function settleElsewhere(draft: Draft): void {
  const { state, actions } = draft;
  if (state.elsewhere !== "due" || (state.phase !== "listening" && state.phase !== "waiting")) return;
  discard(draft);
  state.elsewhere = "yes";
  state.phase = "aside";
  state.listener = "human";
  actions.push({ kind: "stands_aside" });
}

export function comeBackFromElsewhere(draft: Draft): void {
  const { state, nowMs } = draft;
  const wasAside = state.elsewhere === "yes";
  state.elsewhere = "no";
  if (!wasAside || state.phase !== "aside" || state.person?.isAlone) return;
  state.phase = "listening";
  state.lastVoiceMs = nowMs;
  timers(draft, { kind: "activity" });
}
