// Work over many accounts: rows that are due are read, then each account gets a command of its own,
// because a command changes one account. Used by the stores.
import { LIMITS } from "#core/limits.ts";

/**
 * Runs one command for each account that has rows here, a limited number of accounts at a time;
 * resolves to their results, in the order in which the accounts first appear.
 */
export async function perAccount<Row extends { accountId: number }, Result>(
  rows: Iterable<Row>, run: (accountId: number, rows: Row[]) => Promise<Result>,
): Promise<Result[]> {
  const owned = [...Map.groupBy(rows, ({ accountId }) => accountId)];
  const results: Result[] = [];
  for (let first = 0; first < owned.length; first += LIMITS.sweepAccountsMax) {
    const some = owned.slice(first, first + LIMITS.sweepAccountsMax);
    results.push(...await Promise.all(some.map(([accountId, own]) => run(accountId, own))));
  }
  return results;
}
