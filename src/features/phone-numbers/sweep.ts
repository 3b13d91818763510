// Brings renewals and purchases forward, now and then. Made by app/phone-numbers.ts, run by app.ts
// at the start and by the clock.
import type { createPurchases } from "./purchases.ts";
import type { createRenewals } from "./renewals.ts";

interface SweepOptions {
  renewals: Pick<ReturnType<typeof createRenewals>, "sweep">;
  purchases: Pick<ReturnType<typeof createPurchases>, "sweep">;
}

interface Sweep {
  /** One at a time: asked again meanwhile, it is the same. */
  run(): Promise<void>;
  /** Resolves once none runs, however it ended. */
  settled(): Promise<void>;
}

export function createSweep({ renewals, purchases }: SweepOptions): Sweep {
  let sweeping: Promise<void> | null = null;
  const once = async (): Promise<void> => {
    // Renewals first: what they let go is given back in the same round.
    await renewals.sweep();
    await purchases.sweep();
  };
  return {
    run: () => (sweeping ??= once().finally(() => (sweeping = null))),
    settled: async () => void await Promise.allSettled([sweeping]),
  };
}
