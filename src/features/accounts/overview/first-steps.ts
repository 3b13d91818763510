// The first steps of an account, each done once there is a proof of it: what the account has, a
// reply, a document that was found, a call that was answered. Records → store port → factory.
// Documents that were found are reported by the knowledgebases' retrieval.
import type { Logger } from "#core/logger.ts";
import type { Instant, System } from "#core/system.ts";

export const STEPS = ["assistant", "reply", "document", "call", "website"] as const;
type Step = (typeof STEPS)[number];

export interface Proof {
  at: Instant;
  /** What the proof is called: a name of the account's own; empty: it has none. */
  name: string;
  /** Where it is: the assistant's number, the conversation's uuid, the call's number. */
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
  /** The first that was found stays. */
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
  /** Accounts that have found something already: nothing is to be written for them any more. */
  const known = new Set<number>();
  return {
    read: store.read,
    dismiss: (accountId: number, isDismissed: boolean): Promise<void> =>
      store.dismiss({ accountId, dismissedAt: isDismissed ? system.now() : null }),
    /** The search that found it does not wait. */
    found: (accountId: number, document: string): void => {
      if (known.has(accountId)) return;
      if (known.size >= ACCOUNTS_KNOWN_MAX) known.clear();
      known.add(accountId);
      store.found({ accountId, document, now: system.now() }).catch((error: unknown) => {
        known.delete(accountId);
        log.warn({ err: error, account_id: accountId }, "a document that was found could not be noted");
      });
    },
  };
}
