// What follows in a call from time alone: the question whether somebody is still there, the goodbye
// before the call's time is up, which keys belong together, and the end. A pure reducer without IO
// or clock, the same for calls whose turns we take (turn-taker.ts) and for those whose model takes
// them (realtime-session.ts). A tick checks duration, keys and silence in this order and one by
// one, because the turn taker decides other things in between.
import type { EndReason } from "#features/calls/records/records.ts";
import type { VoiceSettings } from "#features/calls/voice/settings.ts";

const REENGAGEMENTS_MAX = 3;
/** How long before its end a call that runs out of time says goodbye. */
const GOODBYE_MS = 8000;
const DIGITS_MAX = 64;
/** How long a call may be on hold; after that nobody is expected to resume it. */
const HOLD_MS_MAX = 10 * 60_000;

export type TimerSettings = Pick<
  VoiceSettings, "keypad" | "maxDurationMs" | "maxInitialSilenceMs" | "maxSilenceMs" | "reengageEveryMs"
> & {
  /** What ends the call at `maxDurationMs`: the setting, or the money. */
  durationReason: "max_duration" | "balance";
};

/** The money may last for less than the settings allow; time elsewhere is added to the latter. */
export function timerSettingsOf(
  settings: VoiceSettings, durationMaxMs: number, elsewhereMs = 0,
): TimerSettings {
  const { keypad, maxInitialSilenceMs, maxSilenceMs, reengageEveryMs } = settings;
  const maxDurationMs = settings.maxDurationMs + elsewhereMs;
  return {
    keypad, maxInitialSilenceMs, maxSilenceMs, reengageEveryMs,
    maxDurationMs: Math.min(maxDurationMs, durationMaxMs),
    durationReason: durationMaxMs < maxDurationMs ? "balance" : "max_duration",
  };
}

/** The time limits of a call, from its settings and its money; suspended while it is elsewhere. */
export class TimeBounds {
  #durationMaxMs: number;
  /** Time elsewhere (with a colleague) does not count as the assistant's. */
  #elsewhereMs = 0;
  #sinceMs: number | null = null;

  constructor(durationMaxMs: number) {
    this.#durationMaxMs = durationMaxMs;
  }

  of(settings: VoiceSettings): TimerSettings {
    const bounds = timerSettingsOf(settings, this.#durationMaxMs, this.#elsewhereMs);
    // The warm transfer that has the call meanwhile has limits of its own.
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

export interface TimerState {
  readonly answeredMs: number;
  /** Since when nobody speaks. */
  readonly quietMs: number;
  /** The customer has spoken, typed or pressed keys. */
  readonly hasSpoken: boolean;
  /** How often the customer was asked, since they last spoke, whether somebody is still there. */
  readonly reengagements: number;
  /** Keys pressed so far, which more may follow. */
  readonly digits: string;
  readonly digitMs: number;
  /** Since when the call is on hold; null: it is not. */
  readonly heldMs: number | null;
}

export const TIMERS_START: TimerState = {
  answeredMs: 0, quietMs: 0, hasSpoken: false, reengagements: 0, digits: "", digitMs: 0,
  heldMs: null,
};

export type TimerEvent =
  | { kind: "answered" }
  | { kind: "customer_spoke" }
  /** Somebody speaks, or something else shows that the call goes on. */
  | { kind: "activity" }
  | { kind: "dtmf"; digit: string }
  /** The customer has put the call on hold, or resumed it. */
  | { kind: "held"; isHeld: boolean }
  /** `mayLeave`: a goodbye makes sense, and none is being said. */
  | { kind: "check_duration"; mayLeave: boolean }
  | { kind: "check_keypad" }
  | { kind: "forget_keys" }
  /** It is the customer's turn to speak; `isBusy`: all the same, this does not count as silence. */
  | { kind: "check_silence"; isBusy: boolean };

export type TimerAction =
  | { kind: "say_goodbye"; reason: EndReason }
  /** The pressed keys are a turn of the customer's, with this text. */
  | { kind: "keys"; text: string }
  /** Ask whether somebody is still there. */
  | { kind: "reengage" }
  | { kind: "hang_up"; reason: EndReason };

interface Reduced {
  state: TimerState;
  action: TimerAction | null;
}

const only = (state: TimerState): Reduced => ({ state, action: null });

export function reduceTimers(
  settings: TimerSettings, state: TimerState, event: TimerEvent, nowMs: number,
): Reduced {
  switch (event.kind) {
    case "answered":
      return only({ ...state, answeredMs: nowMs, quietMs: nowMs });
    case "customer_spoke":
      return only({ ...state, hasSpoken: true, reengagements: 0 });
    case "activity":
      return only({ ...state, quietMs: nowMs });
    case "dtmf": {
      const digits = state.digits.length < DIGITS_MAX ? state.digits + event.digit : state.digits;
      return only({ ...state, digits, digitMs: nowMs, quietMs: nowMs });
    }
    case "held":
      // A customer who presses hold is there.
      return only({
        ...state, hasSpoken: true, quietMs: nowMs, heldMs: event.isHeld ? nowMs : null,
      });
    case "check_duration":
      return { state, action: checkDuration(settings, state, event.mayLeave, nowMs) };
    case "check_keypad":
      return checkKeypad(settings, state, nowMs);
    case "forget_keys":
      return only({ ...state, digits: "" });
    case "check_silence":
      return event.isBusy || state.digits !== "" || state.heldMs !== null
        ? only({ ...state, quietMs: nowMs })
        : checkSilence(settings, state, nowMs);
  }
}

function checkDuration(
  { maxDurationMs, durationReason: reason }: TimerSettings,
  { answeredMs, heldMs }: TimerState, mayLeave: boolean, nowMs: number,
): TimerAction | null {
  const isForgotten = heldMs !== null && nowMs - heldMs >= HOLD_MS_MAX;
  if (isForgotten) return { kind: "hang_up", reason: "silence" };
  const talkedMs = nowMs - answeredMs;
  if (talkedMs >= maxDurationMs) return { kind: "hang_up", reason };
  const isDue = maxDurationMs > 2 * GOODBYE_MS && talkedMs >= maxDurationMs - GOODBYE_MS;
  return isDue && mayLeave ? { kind: "say_goodbye", reason } : null;
}

function checkKeypad({ keypad }: TimerSettings, state: TimerState, nowMs: number): Reduced {
  const isStopped = state.digits.endsWith(keypad.stopKey);
  if (state.digits === "" || (!isStopped && nowMs - state.digitMs < keypad.timeoutMs)) {
    return only(state);
  }
  const text = pressedKeys(keypad, state);
  if (text === null) return only({ ...state, digits: "" });
  return {
    state: { ...state, digits: "", hasSpoken: true, reengagements: 0 },
    action: { kind: "keys", text },
  };
}

/** Keys that are no turn yet, as the text of one; null: there are none. */
export function pressedKeys(
  { stopKey }: TimerSettings["keypad"], { digits }: TimerState,
): string | null {
  const pressed = digits.endsWith(stopKey) ? digits.slice(0, -1) : digits;
  return pressed === "" ? null : `[Keypad input: ${pressed}]`;
}

function checkSilence(settings: TimerSettings, state: TimerState, nowMs: number): Reduced {
  const { maxInitialSilenceMs: firstMs, maxSilenceMs, reengageEveryMs } = settings;
  if (!state.hasSpoken && firstMs !== null && nowMs - state.answeredMs >= firstMs) {
    return { state, action: { kind: "hang_up", reason: "no_first_words" } };
  }
  const patienceMs = state.reengagements === 0 ? maxSilenceMs : reengageEveryMs;
  if (nowMs - state.quietMs < patienceMs) return only(state);
  if (state.reengagements >= REENGAGEMENTS_MAX) {
    return { state, action: { kind: "hang_up", reason: "silence" } };
  }
  return {
    state: { ...state, reengagements: state.reengagements + 1, quietMs: nowMs },
    action: { kind: "reengage" },
  };
}
