// Turns of accounts that wait for the same few places.

/**
 * Chooses the first of the account whose last turn is longest ago, so that no account waits for
 * another's backlog; undefined: nobody waits.
 */
export function createTurns(): <T extends { accountId: number }>(
  waiting: readonly T[],
) => T | undefined {
  const turns = new Map<number, number>();
  const turnOf = ({ accountId }: { accountId: number }): number => turns.get(accountId) ?? 0;
  let turn = 0;
  return (waiting) => {
    const [first, ...others] = waiting;
    if (!first) {
      turns.clear();
      return first;
    }
    const next = others.reduce((best, one) => (turnOf(one) < turnOf(best) ? one : best), first);
    turns.set(next.accountId, turn += 1);
    return next;
  };
}
