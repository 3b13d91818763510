// The one 20 ms clock of the media thread. Every call's frame of a tick is made in the same turn of
// the loop; a late turn makes up for the ticks it missed, so that audio is never stretched.
import type { System, Timer } from "../../core/system.ts";
import { FRAME_MS } from "../../providers/carriers/port.ts";

/** After a stall longer than this the ticks are dropped: nobody wants audio that old. */
const CATCH_UP_TICKS_MAX = 25;

export interface MediaClock {
  /** Runs at each tick until cancelled. */
  subscribe(tick: () => void): Timer;
  close(): void;
}

/**
 * `checkMs`: how often the clock is looked at; below 20 where the timer is a real one. `onTick` is
 * told by how much each tick came late.
 */
export function createMediaClock(
  system: System, checkMs = 5, onTick: (lateMs: number) => void = () => undefined,
): MediaClock {
  const subscribers = new Set<() => void>();
  let timer: Timer | null = null;
  let dueMs = 0;
  const check = (): void => {
    const nowMs = system.monotonicMs();
    if (nowMs - dueMs > CATCH_UP_TICKS_MAX * FRAME_MS) {
      onTick(nowMs - dueMs);
      dueMs = nowMs;
    }
    for (; dueMs <= nowMs; dueMs += FRAME_MS) {
      onTick(nowMs - dueMs);
      for (const tick of subscribers) tick();
    }
  };
  return {
    subscribe: (tick) => {
      if (subscribers.size === 0) {
        dueMs = system.monotonicMs() + FRAME_MS;
        timer = system.every(checkMs, check);
      }
      subscribers.add(tick);
      return {
        cancel: () => {
          subscribers.delete(tick);
          if (subscribers.size > 0) return;
          timer?.cancel();
          timer = null;
        },
      };
    },
    close: () => {
      subscribers.clear();
      timer?.cancel();
    },
  };
}
