// Sweeps renewals and purchases periodically. Created by app/phone-numbers.ts, run by app.ts at the
// start and by the clock.
import type { createPurchases } from "./purchases.ts";
import type { createRenewals } from "./renewals.ts";

interface SweepOptions {
  renewals: Pick<ReturnType<typeof createRenewals>, "sweep">;
  purchases: Pick<ReturnType<typeof createPurchases>, "sweep">;
}

interface Sweep {
  /** Runs one sweep at a time: a concurrent call joins it. */
  run(): Promise<void>;
  /** Resolves once none runs, however it ended. */
  settled(): Promise<void>;
}

export function createSweep({ renewals, purchases }: SweepOptions): Sweep {
  let sweeping: Promise<void> | null = null;
  const once = async (): Promise<void> => {
    // Renewals run first, so that numbers they release are returned in the same sweep.
    await renewals.sweep();
    await purchases.sweep();
  };
  return {
    run: () => (sweeping ??= once().finally(() => (sweeping = null))),
    settled: async () => void await Promise.allSettled([sweeping]),
  };
}
