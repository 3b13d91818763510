// A System whose time only moves when the test says so; timers run in order of their due time.
import { createSystem, type System, type Timer } from "#core/system.ts";

export interface ManualSystem extends System {
  /** Moves both clocks on and runs what has come due, in order. */
  advance(ms: number): void;
  /** Moves both clocks on at once, as a machine that slept: what repeats has come due once. */
  leap(ms: number): void;
  /** Steps only the wall clock, forward, or back if it is negative. */
  step(ms: number): void;
  /** Timers that have not run and were not cancelled. */
  pending(): number;
}

interface Due {
  atMs: number;
  intervalMs: number | null;
  run: () => void;
}

export function createManualSystem(startMs = Date.UTC(2026, 0, 15, 12)): ManualSystem {
  const real = createSystem();
  let nowMs = startMs;
  let stepMs = 0;
  const timers = new Set<Due>();
  const add = (delayMs: number, intervalMs: number | null, run: () => void): Timer => {
    const due: Due = { atMs: nowMs + delayMs, intervalMs, run };
    timers.add(due);
    return { cancel: () => void timers.delete(due) };
  };
  // Makes no lists: it is called for each second of the days that some tests let pass.
  const nextUntil = (endMs: number): Due | undefined => {
    let next: Due | undefined;
    for (const due of timers) {
      if (due.atMs <= endMs && (next === undefined || due.atMs < next.atMs)) next = due;
    }
    return next;
  };
  return {
    now: () => Math.round((nowMs + stepMs) * 1000),
    monotonicMs: () => nowMs - startMs,
    after: (delayMs, run) => add(delayMs, null, run),
    every: (intervalMs, run) => add(intervalMs, intervalMs, run),
    uuid: () => real.uuid(),
    randomBytes: (count) => real.randomBytes(count),
    advance: (ms) => {
      const endMs = nowMs + ms;
      for (let due = nextUntil(endMs); due; due = nextUntil(endMs)) {
        nowMs = due.atMs;
        if (due.intervalMs === null) timers.delete(due);
        else due.atMs += due.intervalMs;
        due.run();
      }
      nowMs = endMs;
    },
    leap: (ms) => {
      nowMs += ms;
      for (let due = nextUntil(nowMs); due; due = nextUntil(nowMs)) {
        if (due.intervalMs === null) timers.delete(due);
        else due.atMs = nowMs + due.intervalMs;
        due.run();
      }
    },
    step: (ms) => void (stepMs += ms),
    pending: () => timers.size,
  };
}
