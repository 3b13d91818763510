// Work over many accounts: what is due is read, then each account has a command of its own, because
// a command changes one account. Used by the stores.
import { LIMITS } from "#core/limits.ts";

/**
 * Runs one command for each account that has rows here, so many accounts at a time; resolves to
 * what they gave, in the order in which the accounts come first.
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
