// The one 20 ms clock of the media thread. Calls are spread over a few phases, so that their frames
// are not all made and sent in the same turn of the loop; a late turn makes up for the ticks it
// missed, so that audio is never stretched.
import type { System, Timer } from "../../core/system.ts";
import { FRAME_MS } from "../../providers/carriers/port.ts";

/** After a stall longer than this the ticks are dropped: nobody wants audio that old. */
const CATCH_UP_TICKS_MAX = 25;
/** A look of the clock every 5 ms finds one of them due. */
const PHASES = 4;

export interface MediaClock {
  /** Runs at each tick until cancelled. */
  subscribe(tick: () => void): Timer;
  close(): void;
}

interface Phase {
  ticks: Set<() => void>;
  dueMs: number;
}

/**
 * `checkMs`: how often the clock is looked at; below 20 where the timer is a real one. `onTick` is
 * told by how much each tick came late.
 */
export function createMediaClock(
  system: System, checkMs = 5, onTick: (lateMs: number) => void = () => undefined,
): MediaClock {
  const phases = Array.from({ length: PHASES }, (): Phase => ({ ticks: new Set(), dueMs: 0 }));
  let timer: Timer | null = null;
  let startedMs = 0;
  const run = (phase: Phase, nowMs: number): void => {
    if (nowMs - phase.dueMs > CATCH_UP_TICKS_MAX * FRAME_MS) {
      onTick(nowMs - phase.dueMs);
      phase.dueMs += Math.floor((nowMs - phase.dueMs) / FRAME_MS) * FRAME_MS;
    }
    for (; phase.dueMs <= nowMs; phase.dueMs += FRAME_MS) {
      onTick(nowMs - phase.dueMs);
      for (const tick of phase.ticks) tick();
    }
  };
  const check = (): void => {
    const nowMs = system.monotonicMs();
    for (const phase of phases) {
      if (phase.ticks.size > 0) run(phase, nowMs);
    }
  };
  /** The next time that is in the phase's place within a frame. */
  const begin = (phase: Phase): void => {
    const offsetMs = (phases.indexOf(phase) * FRAME_MS) / PHASES;
    const passedMs = Math.max(0, system.monotonicMs() - startedMs - offsetMs);
    phase.dueMs = startedMs + offsetMs + (Math.floor(passedMs / FRAME_MS) + 1) * FRAME_MS;
  };
  const stop = (): void => {
    timer?.cancel();
    timer = null;
  };
  return {
    subscribe: (tick) => {
      if (!timer) {
        startedMs = system.monotonicMs();
        timer = system.every(checkMs, check);
      }
      const phase = phases.reduce((least, one) =>
        (one.ticks.size < least.ticks.size ? one : least));
      if (phase.ticks.size === 0) begin(phase);
      phase.ticks.add(tick);
      return {
        cancel: () => {
          phase.ticks.delete(tick);
          if (phases.every(({ ticks }) => ticks.size === 0)) stop();
        },
      };
    },
    close: () => {
      for (const { ticks } of phases) ticks.clear();
      stop();
    },
  };
}
