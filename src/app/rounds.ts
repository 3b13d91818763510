// Periodic work; a kind never runs twice at the same time. Used by app.ts only.
import type { Logger } from "#core/logger.ts";
import { createRecurring } from "#core/recurring.ts";
import type { System, Timer } from "#core/system.ts";

interface RoundsOptions {
  system: System;
  log: Logger;
  /** While true, nothing is started. */
  isHalted(): boolean;
}

interface Rounds {
  every(ms: number, what: string, run: () => Promise<unknown>): Timer;
  /** Resolves once none of it is running. */
  settled(): Promise<void>;
}

export function createRounds({ system, log, isHalted }: RoundsOptions): Rounds {
  const underWay = new Map<string, Promise<void>>();
  const recurring = createRecurring(log);
  return {
    every: (ms, what, run) => system.every(ms, () => {
      if (isHalted() || underWay.has(what)) return;
      underWay.set(what, recurring.follow(what, run()).finally(() => underWay.delete(what)));
    }),
    settled: async () => void await Promise.all(underWay.values()),
  };
}
