// While a colleague is called, and talks with the customer, the assistant stands aside: from the
// end of what it is saying on it is silent and listens. Part of the pure reducer in turn-taker.ts.
// And how long a call may last that was elsewhere for a while.
import { timerSettingsOf, type TimerSettings } from "./call-timers.ts";
import type { VoiceSettings } from "#features/calls/voice/settings.ts";
import { discard, timers, type Draft } from "./turn-draft.ts";

/** `due`: once what is being said has been heard. */
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

/** The bounds of a call in time: its settings and its money, but for when it is elsewhere. */
export class TimeBounds {
  #durationMaxMs: number;
  /** Time elsewhere is none of the assistant's. */
  #elsewhereMs = 0;
  #sinceMs: number | null = null;

  constructor(durationMaxMs: number) {
    this.#durationMaxMs = durationMaxMs;
  }

  of(settings: VoiceSettings): TimerSettings {
    const maxDurationMs = settings.maxDurationMs + this.#elsewhereMs;
    const bounds = timerSettingsOf({ ...settings, maxDurationMs }, this.#durationMaxMs);
    // Whoever has the call elsewhere has bounds of its own.
    return this.#sinceMs === null ? bounds : { ...bounds, maxDurationMs: Infinity };
  }

  leave(nowMs: number): void {
    this.#sinceMs ??= nowMs;
  }

  comeBack(nowMs: number, durationMaxMs: number): void {
    if (this.#sinceMs !== null) this.#elsewhereMs += nowMs - this.#sinceMs;
    this.#sinceMs = null;
    this.#durationMaxMs = durationMaxMs;
  }
}
