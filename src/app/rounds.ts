// Periodic work; a kind never runs twice at the same time. Used by app.ts only.
import type { Logger } from "#core/logger.ts";
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
  /** The last failure of each kind, so that one which recurs every second is logged once. */
  const failures = new Map<string, string>();
  const succeeded = (what: string): void => {
    underWay.delete(what);
    if (failures.delete(what)) log.info(`${what} works again`);
  };
  const failed = (what: string, error: unknown): void => {
    underWay.delete(what);
    const reason = String(error);
    if (failures.get(what) === reason) return;
    failures.set(what, reason);
    log.error({ err: error }, `${what} failed`);
  };
  return {
    every: (ms, what, run) => system.every(ms, () => {
      if (isHalted() || underWay.has(what)) return;
      underWay.set(what, run().then(
        () => succeeded(what),
        (error: unknown) => failed(what, error),
      ));
    }),
    settled: async () => void await Promise.all(underWay.values()),
  };
}
