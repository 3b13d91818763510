// The books of a whole store, recomputed from the ledger alone. Called by the command line and
// where a copy of a database is judged.
import { auditAccount } from "#features/accounts/money/ledger.ts";
import type { LedgerReader } from "./ledger.ts";

interface Audit {
  accounts: number;
  entries: number;
  problems: string[];
}

/** Every account, over one snapshot. */
export async function auditLedger(ledger: LedgerReader): Promise<Audit> {
  const audit: Audit = { accounts: 0, entries: 0, problems: [] };
  // There may be more than a call takes arguments.
  const add = (problems: string[]): void => void (audit.problems = audit.problems.concat(problems));
  await ledger.audit(async (totals, entries, openMicros) => {
    audit.accounts += 1;
    audit.entries += totals.ledgerEntries;
    add(await auditAccount(totals, entries, openMicros));
  });
  add(await ledger.strayReferences());
  return audit;
}
