// Audits the books of a whole store from the ledger alone. Called by the command line and when a
// copy of a database is checked.
import { auditAccount } from "#features/accounts/money/ledger.ts";
import type { LedgerReader } from "./ledger-reading.ts";

interface Audit {
  accounts: number;
  entries: number;
  /** The first problems, and how many more there are. */
  problems: string[];
}

/** One mistake often repeats in every entry, and nobody reads each. */
export const PROBLEMS_TOLD_MAX = 100;

/** Every account, over one snapshot. */
export async function auditLedger(ledger: LedgerReader): Promise<Audit> {
  const audit: Audit = { accounts: 0, entries: 0, problems: [] };
  let count = 0;
  const add = (problems: string[]): void => {
    count += problems.length;
    audit.problems.push(...problems.slice(0, PROBLEMS_TOLD_MAX - audit.problems.length));
  };
  await ledger.audit(async (totals, entries, openMicros) => {
    audit.accounts += 1;
    audit.entries += totals.ledgerEntries;
    add(await auditAccount(totals, entries, openMicros));
  });
  add(await ledger.strayReferences());
  if (count > PROBLEMS_TOLD_MAX) audit.problems.push(`${count - PROBLEMS_TOLD_MAX} more mistakes`);
  return audit;
}
