// The one 20 ms clock of the media thread. Calls are spread over a few phases, so that their frames
// are not all made and sent in the same turn of the loop; a late turn makes up for the ticks it
// missed, so that audio is never stretched.
import type { System, Timer } from "#core/system.ts";
import { FRAME_MS } from "#providers/carriers/port.ts";

/** After a stall longer than this the ticks are dropped: nobody wants audio that old. */
const CATCH_UP_TICKS_MAX = 25;
const PHASES = 4;

type Tick = (dropped: number) => void;

export interface MediaClock {
  /** Runs at each tick until cancelled; `dropped`: how many ticks before this one were skipped. */
  subscribe(tick: Tick): Timer;
}

interface Phase {
  /** The offset of its ticks within a frame. */
  offsetMs: number;
  /** Each with the time at which it was subscribed. */
  ticks: Map<Tick, number>;
  dueMs: number;
}

/** `onTick` receives how late each tick came. */
export function createMediaClock(
  system: System, onTick: (lateMs: number) => void = () => undefined,
): MediaClock {
  const phases = Array.from({ length: PHASES }, (_, at): Phase =>
    ({ offsetMs: (at * FRAME_MS) / PHASES, ticks: new Map(), dueMs: 0 }));
  let timer: Timer | null = null;
  let startedMs: number | null = null;
  const run = (phase: Phase, nowMs: number): void => {
    let dropped = 0;
    if (nowMs - phase.dueMs > CATCH_UP_TICKS_MAX * FRAME_MS) {
      onTick(nowMs - phase.dueMs);
      dropped = Math.floor((nowMs - phase.dueMs) / FRAME_MS);
      phase.dueMs += dropped * FRAME_MS;
    }
    for (; phase.dueMs <= nowMs; phase.dueMs += FRAME_MS) {
      onTick(nowMs - phase.dueMs);
      for (const [tick, sinceMs] of phase.ticks) {
        // A tick that was subscribed during a stall has missed less of it.
        const missed = Math.ceil((phase.dueMs - sinceMs) / FRAME_MS) - 1;
        if (missed >= 0) tick(Math.min(dropped, missed));
      }
      dropped = 0;
    }
  };
  const schedule = (): void => {
    timer?.cancel();
    timer = null;
    const busy = phases.filter(({ ticks }) => ticks.size > 0);
    const dueMs = Math.min(...busy.map((phase) => phase.dueMs));
    if (busy.length === 0) startedMs = null;
    // Timers count whole milliseconds; one that fires early finds nothing due and is set again.
    else timer = system.after(Math.max(1, Math.ceil(dueMs - system.monotonicMs())), check);
  };
  const check = (): void => {
    const nowMs = system.monotonicMs();
    for (const phase of phases) {
      if (phase.ticks.size > 0) run(phase, nowMs);
    }
    schedule();
  };
  /** Makes the phase due at the next time that has its offset within a frame. */
  const begin = (phase: Phase): void => {
    const nowMs = system.monotonicMs();
    startedMs ??= nowMs;
    const firstMs = startedMs + phase.offsetMs;
    const passed = Math.floor(Math.max(0, nowMs - firstMs) / FRAME_MS);
    phase.dueMs = firstMs + (passed + 1) * FRAME_MS;
  };
  return {
    subscribe: (tick) => {
      const phase = phases.reduce((least, one) =>
        (one.ticks.size < least.ticks.size ? one : least));
      if (phase.ticks.size === 0) begin(phase);
      phase.ticks.set(tick, system.monotonicMs());
      schedule();
      return {
        cancel: () => {
          if (phase.ticks.delete(tick) && phase.ticks.size === 0) schedule();
        },
      };
    },
  };
}
