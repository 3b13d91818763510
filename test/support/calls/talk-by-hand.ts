// The reducer that takes turns, fed by hand: what happens in a call, and what it did about it when.
import { timerSettingsOf } from "#features/calls/voice/turns/call-timers.ts";
import type { TurnAction, TurnEvent, TurnSettings } from "#features/calls/voice/turns/turn-events.ts";
import { reduceTurn, START } from "#features/calls/voice/turns/turn-taker.ts";
import { VOICE_SETTINGS } from "./calls-by-clock.ts";

export const FRAME_MS = 20;
export const SILENCE_MS = VOICE_SETTINGS.endpoint.silenceMs;
export const SETTINGS: TurnSettings = {
  ...VOICE_SETTINGS, ...timerSettingsOf(VOICE_SETTINGS, 3_600_000),
  hasFillers: false, hasGreeting: false, detectsTurns: false, wordsAreTold: false,
  judgesEnds: false,
};

/** A call by hand: what happens in it, and what the reducer did about it when. */
export function createTalk(settings: Partial<TurnSettings> = {}) {
  let state = START;
  let nowMs = 0;
  const log: { event: TurnEvent; atMs: number }[] = [];
  const done: (TurnAction & { atMs: number })[] = [];
  const feed = (event: TurnEvent): readonly TurnAction[] => {
    log.push({ event, atMs: nowMs });
    const reduced = reduceTurn({ ...SETTINGS, ...settings }, state, event, nowMs);
    state = reduced.state;
    for (const action of reduced.actions) done.push({ ...action, atMs: nowMs });
    return reduced.actions;
  };
  /** Frames of voice or of silence. */
  const pass = (ms: number, probability = 0, periodicity = probability): void => {
    for (let passedMs = 0; passedMs < ms; passedMs += FRAME_MS) {
      nowMs += FRAME_MS;
      const quietMs = probability === 0 ? FRAME_MS : 0;
      feed({ kind: "voice", probability, frameMs: FRAME_MS, quietMs, periodicity });
      feed({ kind: "tick" });
    }
  };
  /** A frame's time in which no sound comes. */
  const tick = (): void => {
    nowMs += FRAME_MS;
    feed({ kind: "tick" });
  };
  feed({ kind: "answered" });
  return {
    feed, pass, tick, log, done,
    partial: (text: string) => feed({ kind: "partial", text }),
    final: (text: string) => feed({ kind: "final", text }),
    voice: (ms: number, periodicity = 1) => pass(ms, 1, periodicity),
    state: () => state,
    nowMs: () => nowMs,
    of: <K extends TurnAction["kind"]>(kind: K) =>
      done.filter((action): action is Extract<TurnAction, { kind: K }> & { atMs: number } =>
        action.kind === kind),
  };
}

export type Talk = ReturnType<typeof createTalk>;
