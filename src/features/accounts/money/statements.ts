// An account's ledger as its owner sees it: entries in pages, and the whole chain recomputed on
// demand. Called by ledger-routes.ts; the rules of the chain are in ledger.ts.
import type { Micros } from "#core/money.ts";
import { nextTurn, type Instant, type System } from "#core/system.ts";
import {
  createAudit, type AccountTotals, type LedgerEntry, type LedgerKind, type LedgerProblem,
} from "./ledger.ts";

export interface EntryFilter {
  kind?: LedgerKind;
  /** Exactly this reference, or with `isPrefix` all that begin with it. */
  reference?: { text: string; isPrefix: boolean };
  /** Instants; `to` is exclusive. */
  from?: Instant;
  to?: Instant;
}

export interface StatementStore {
  /** Entries newest first, with the number of all that match at that moment. */
  page(
    accountId: number, filter: EntryFilter, offset: number, rows: number,
  ): Promise<{ items: LedgerEntry[]; total: number }>;
  /** The totals to verify, from one snapshot; `newest`: the number of the newest entry in it. */
  claims(
    accountId: number,
  ): Promise<{ totals: AccountTotals; openMicros: Micros; newest: number } | null>;
  /** Entries after `after` up to `last`, oldest first, at most `rows`. */
  entries(accountId: number, after: number, last: number, rows: number): Promise<LedgerEntry[]>;
}

interface Verification {
  entries: number;
  balanceMicros: Micros;
  /** The sum of all entries. */
  sumMicros: Micros;
  reservedMicros: Micros;
  /** The first problem found; null: everything agrees. */
  problem: LedgerProblem | null;
  verifiedAt: Instant;
}

export interface Statements {
  page(
    accountId: number, filter: EntryFilter, place: { page: number; perPage: number },
  ): Promise<{ items: LedgerEntry[]; total: number }>;
  /**
   * Recomputes the account; null when there is none. Concurrent calls share one run, because it
   * costs one hash per entry.
   */
  verify(accountId: number): Promise<Verification | null>;
}

/** Entries recomputed before yielding to the event loop. */
const ENTRIES_PER_STRETCH = 1000;

export function createStatements(
  { store, system }: { store: StatementStore; system: System },
): Statements {
  const running = new Map<number, Promise<Verification | null>>();

  const verify = async (accountId: number): Promise<Verification | null> => {
    const verifiedAt = system.now();
    const claims = await store.claims(accountId);
    if (!claims) return null;
    const { totals, openMicros, newest } = claims;
    const audit = createAudit();
    let problem: LedgerProblem | null = null;
    let last = 0;
    let count = 0;
    // Entries never change, so reading them in several batches is still consistent with the
    // snapshot.
    for (;;) {
      const entries = await store.entries(accountId, last, newest, ENTRIES_PER_STRETCH);
      for (const entry of entries) {
        const [found] = audit.take(entry);
        problem ??= found ?? null;
      }
      count += entries.length;
      last = entries.at(-1)?.number ?? newest;
      if (last >= newest) break;
      await nextTurn();
    }
    problem ??= audit.end(totals, openMicros)[0] ?? null;
    return {
      entries: count,
      balanceMicros: totals.balanceMicros,
      sumMicros: audit.sumMicros(),
      reservedMicros: totals.reservedMicros,
      problem,
      verifiedAt,
    };
  };

  return {
    page: (accountId, filter, { page, perPage }) =>
      store.page(accountId, filter, (page - 1) * perPage, perPage),
    verify: (accountId) => {
      const other = running.get(accountId);
      if (other) return other;
      const begun = verify(accountId).finally(() => running.delete(accountId));
      running.set(accountId, begun);
      return begun;
    },
  };
}
