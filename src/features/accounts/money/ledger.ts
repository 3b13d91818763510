// The rules of money that need no database: what an entry is, how entries are chained by hash,
// and what must hold between ledger, balance and reservations. Used by the store, by statements.ts
// and by `ledger verify`.
import { hash } from "node:crypto";
import type { Micros } from "#core/money.ts";
import type { Instant } from "#core/system.ts";

export const LEDGER_KINDS = ["credit", "message", "call", "number"] as const;
export type LedgerKind = (typeof LEDGER_KINDS)[number];

/** Immutable once written. `reference` names what was billed and is unique for ever. */
export interface LedgerEntry {
  accountId: number;
  /** 1, 2, 3 … per account, without holes. */
  number: number;
  kind: LedgerKind;
  reference: string;
  /** Positive: money in. Negative: money spent. */
  amountMicros: Micros;
  balanceAfterMicros: Micros;
  createdAt: Instant;
  /** SHA-256 over the previous entry's hash and this entry's fields. */
  hash: string;
}

export function hashEntry(previousHash: string, entry: Omit<LedgerEntry, "hash">): string {
  const fields = [
    previousHash,
    entry.accountId,
    entry.number,
    entry.kind,
    entry.reference,
    entry.amountMicros,
    entry.balanceAfterMicros,
    entry.createdAt,
  ];
  return hash("sha256", fields.join("|"), "hex");
}

/** What the account's own row says; the ledger must agree with it. */
export interface AccountTotals {
  accountId: number;
  balanceMicros: Micros;
  reservedMicros: Micros;
  ledgerEntries: number;
  ledgerHash: string;
}

/** `number`: of the faulty entry; null: the account's totals are wrong. */
export interface LedgerProblem {
  number: number | null;
  what: string;
}

/** Recomputes one account from entries fed oldest first; reports disagreements as they appear. */
export function createAudit() {
  let number = 0;
  let balance = 0;
  let previousHash = "";
  return {
    take: (entry: LedgerEntry): LedgerProblem[] => {
      const problems: LedgerProblem[] = [];
      number += 1;
      balance += entry.amountMicros;
      if (entry.number !== number) problems.push({ number, what: `entry ${number} is missing` });
      const said = entry.balanceAfterMicros;
      ({ number } = entry);
      if (said !== balance) {
        problems.push({ number, what: `entry ${number} says balance ${said}, but the sum is ${balance}` });
      }
      if (hashEntry(previousHash, entry) !== entry.hash) {
        problems.push({ number, what: `entry ${number} does not match its hash` });
      }
      previousHash = entry.hash;
      return problems;
    },
    sumMicros: (): Micros => balance,
    /** Compares the account's own totals with the entries that were fed. */
    end: (totals: AccountTotals, openReservationsMicros: Micros): LedgerProblem[] => {
      const { balanceMicros, reservedMicros, ledgerEntries } = totals;
      const checks: [isWrong: boolean, what: string][] = [
        [ledgerEntries !== number, `${ledgerEntries} entries recorded, ${number} found`],
        [totals.ledgerHash !== previousHash, "the newest hash does not match"],
        [balanceMicros !== balance, `balance ${balanceMicros}, ledger sum ${balance}`],
        [reservedMicros !== openReservationsMicros,
          `reserved ${reservedMicros}, open reservations ${openReservationsMicros}`],
        [balanceMicros - reservedMicros < 0, "below zero"],
      ];
      return checks.filter(([isWrong]) => isWrong).map(([, what]) => ({ number: null, what }));
    },
  };
}

/**
 * Recomputes one account from its entries (oldest first) and open reservations; returns every
 * disagreement found, in words. An empty list means the account is right to the micro-dollar.
 */
export async function auditAccount(
  totals: AccountTotals,
  entries: AsyncIterable<LedgerEntry> | Iterable<LedgerEntry>,
  openReservationsMicros: Micros,
): Promise<string[]> {
  const audit = createAudit();
  const problems: LedgerProblem[] = [];
  for await (const entry of entries) problems.push(...audit.take(entry));
  problems.push(...audit.end(totals, openReservationsMicros));
  return problems.map(({ what }) => `account ${totals.accountId}: ${what}`);
}
