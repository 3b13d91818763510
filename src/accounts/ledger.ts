// The rules of money that need no database: what an entry is, how entries are chained by hash,
// and what must hold between ledger, balance and reservations. Used by the store and by `ledger
// verify`.
import { hash } from "node:crypto";
import type { Micros } from "../core/money.ts";
import type { Instant } from "../core/system.ts";

export type LedgerKind = "credit" | "message" | "call" | "number";

/** Immutable once written. `reference` names the billed thing and is unique for ever. */
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

/**
 * Recomputes one account from its entries (oldest first) and open reservations; returns every
 * disagreement found, in words. An empty list means the account is right to the micro-dollar.
 */
export function auditAccount(
  totals: AccountTotals,
  entries: Iterable<LedgerEntry>,
  openReservationsMicros: Micros,
): string[] {
  const problems: string[] = [];
  const where = `account ${totals.accountId}`;
  let number = 0;
  let balance = 0;
  let previousHash = "";
  for (const entry of entries) {
    number += 1;
    balance += entry.amountMicros;
    if (entry.number !== number) problems.push(`${where}: entry ${number} is missing`);
    if (entry.balanceAfterMicros !== balance) {
      problems.push(`${where}: entry ${entry.number} says balance ${entry.balanceAfterMicros}, the sum is ${balance}`);
    }
    if (hashEntry(previousHash, entry) !== entry.hash) {
      problems.push(`${where}: entry ${entry.number} does not match its hash`);
    }
    previousHash = entry.hash;
    number = entry.number;
  }
  if (totals.ledgerEntries !== number) {
    problems.push(`${where}: ${totals.ledgerEntries} entries recorded, ${number} found`);
  }
  if (totals.ledgerHash !== previousHash) problems.push(`${where}: the newest hash does not match`);
  if (totals.balanceMicros !== balance) {
    problems.push(`${where}: balance ${totals.balanceMicros}, ledger sum ${balance}`);
  }
  if (totals.reservedMicros !== openReservationsMicros) {
    problems.push(`${where}: reserved ${totals.reservedMicros}, open reservations ${openReservationsMicros}`);
  }
  if (totals.balanceMicros - totals.reservedMicros < 0) problems.push(`${where}: below zero`);
  return problems;
}
