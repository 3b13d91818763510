// The first steps of an account. Each is done once there is proof of it: something it has set up, a
// reply, a document that was found, a call that was answered. Records → store port → factory.
// The knowledgebases' retrieval reports documents that were found.
import type { Logger } from "#core/logger.ts";
import type { Instant, System } from "#core/system.ts";

export const STEPS = ["assistant", "reply", "document", "call", "website"] as const;
type Step = (typeof STEPS)[number];

export interface Proof {
  at: Instant;
  /** The name the account gave it; empty: it has none. */
  name: string;
  /** The assistant's id, the conversation's uuid or the call's id. */
  id: string;
  /** Only of an assistant. */
  uuid: string | null;
}

export interface FirstSteps {
  isDismissed: boolean;
  /** Null: not done yet. */
  proofs: Record<Step, Proof | null>;
}

export interface FirstStepStore {
  read(accountId: number): Promise<FirstSteps>;
  dismiss(args: { accountId: number; dismissedAt: Instant | null }): Promise<void>;
  /** Keeps only the first document that was found. */
  found(args: { accountId: number; document: string; now: Instant }): Promise<void>;
}

interface FirstStepOptions {
  store: FirstStepStore;
  system: System;
  log: Logger;
}

export type FirstStepCases = ReturnType<typeof createFirstSteps>;

const ACCOUNTS_KNOWN_MAX = 10_000;

export function createFirstSteps({ store, system, log }: FirstStepOptions) {
  /** Accounts known to have found a document already: nothing more is written for them. */
  const known = new Set<number>();
  return {
    read: store.read,
    dismiss: (accountId: number, isDismissed: boolean): Promise<void> =>
      store.dismiss({ accountId, dismissedAt: isDismissed ? system.now() : null }),
    /** Does not delay the search that found it. */
    found: (accountId: number, document: string): void => {
      if (known.has(accountId)) return;
      if (known.size >= ACCOUNTS_KNOWN_MAX) known.clear();
      known.add(accountId);
      store.found({ accountId, document, now: system.now() }).catch((error: unknown) => {
        known.delete(accountId);
        log.warn({ err: error, account_id: accountId }, "could not record the first document found");
      });
    },
  };
}
