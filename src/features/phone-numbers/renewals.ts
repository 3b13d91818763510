// Renews subscriptions: charges the months that are due, and releases numbers that were given up or
// not paid for. Each step is one transaction of the store and charges one month at most.
import { LIMITS } from "#core/limits.ts";
import type { Logger } from "#core/logger.ts";
import type { Instant, System } from "#core/system.ts";
import { DAY_MICROS } from "#core/zones.ts";
import type { EventBus } from "#events/bus.ts";
import type { CommittedEvent } from "#events/events.ts";

export interface RenewalStore {
  /** Numbers that are due, the longest overdue first. */
  due(now: Instant, rows: number): Promise<{ accountId: number; phoneNumberId: number }[]>;
  /** Makes one step for one number; does nothing when it is not due. */
  renew(args: {
    accountId: number; phoneNumberId: number; now: Instant; graceMicros: number;
  }): Promise<CommittedEvent[]>;
}

interface RenewalOptions {
  store: RenewalStore;
  bus: EventBus;
  system: System;
  log: Logger;
  graceDays: number;
}

/** Every step postpones the number's due time, so the loop ends. */
export function createRenewals({ store, bus, system, log, graceDays }: RenewalOptions) {
  return {
    sweep: async (): Promise<void> => {
      const graceMicros = graceDays * DAY_MICROS;
      const failed = new Set<number>();
      for (;;) {
        const now = system.now();
        const due = (await store.due(now, LIMITS.numberSweepRowsMax))
          .filter(({ phoneNumberId }) => !failed.has(phoneNumberId));
        if (due.length === 0) return;
        for (const { accountId, phoneNumberId } of due) {
          try {
            bus.publishCommitted(
              await store.renew({ accountId, phoneNumberId, now, graceMicros }));
          } catch (error) {
            // A failing number must not keep the others from being renewed.
            failed.add(phoneNumberId);
            log.error({ err: error, phone_number_id: phoneNumberId }, "a renewal failed");
          }
        }
      }
    },
  };
}
