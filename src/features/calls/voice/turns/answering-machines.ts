// Who has answered: a person, or a machine that is left a message. Part of the pure reducer in
// turn-taker.ts.
import { forgetTurn, hangUp, said, think, timers, type Draft } from "./turn-draft.ts";

/** A person who answers does not speak as long as this without a breath. */
export const MACHINE_RUN_MS = 3500;
/** The silence after a machine's greeting that ends it. */
export const MACHINE_SILENCE_MS = 1500;
export const MACHINE_BUDGET_MS = 20_000;

export function judge(draft: Draft, by: "human" | "machine" | null): void {
  const { state, settings, actions, nowMs } = draft;
  if (state.phase === "aside") return;
  // A machine's greeting may begin like a person's; later on nobody is judged a machine.
  const isLate = state.messageLeft || nowMs - state.timers.answeredMs > MACHINE_BUDGET_MS;
  if (state.listener === "machine" || (state.listener === "human" && (by !== "machine" || isLate))) {
    return;
  }
  state.listener = by ?? "human";
  actions.push({ kind: "answered_by", by: by ?? "unknown" });
  if (by !== "machine") return;
  actions.push({ kind: state.phase === "speaking" ? "interrupt" : "cancel_reply" });
  state.isPaused = false;
  state.phase = "listening";
  state.answering = "";
  if (settings.voicemail.message === null) hangUp(draft, "voicemail");
}

/** The message is left when the greeting of the machine has ended. */
export function settleMachine(draft: Draft): void {
  const { state } = draft;
  // A machine presses no keys: its own tones are mistaken for them.
  timers(draft, { kind: "forget_keys" });
  if (state.messageLeft || state.isTalking) return;
  if (state.unvoicedMs >= MACHINE_SILENCE_MS) leaveMessage(draft);
}

export function leaveMessage(draft: Draft): void {
  const { state, actions } = draft;
  if (state.messageLeft) return;
  if (said(draft) !== "") actions.push({ kind: "note", text: said(draft) });
  forgetTurn(draft);
  state.messageLeft = true;
  think(draft);
  actions.push({ kind: "leave_message" });
}
