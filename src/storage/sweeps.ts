// Work over many accounts: what is due is read, then each account has a command of its own, because
// a command changes one account. Used by the stores.
import { LIMITS } from "#core/limits.ts";

/** Runs one command for each account, so many at a time; resolves to what they gave, in order. */
export async function perAccount<Result>(
  accountIds: readonly number[], run: (accountId: number) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  for (let first = 0; first < accountIds.length; first += LIMITS.sweepAccountsMax) {
    const some = accountIds.slice(first, first + LIMITS.sweepAccountsMax);
    results.push(...await Promise.all(some.map(run)));
  }
  return results;
}
