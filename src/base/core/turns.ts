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

/**
 * Who has a place takes another only while it then holds at most so many times what is left free:
 * alone seven eighths of all places, two at once seven fifteenths each. However many accounts hang,
 * the next one finds a place.
 */
const HELD_PER_FREE = 7;

/** Counts the places that accounts hold, of `max` for all. Null: it is not known yet whose. */
export function createShares(max: number) {
  const held = new Map<number | null, number>();
  let all = 0;
  return {
    all: (): number => all,
    hasRoom: (owner: number | null): boolean => {
      const [own, left] = [held.get(owner) ?? 0, max - all - 1];
      return left >= 0 && (owner === null || own === 0 || own < HELD_PER_FREE * left);
    },
    /** Regardless of whether there is room. A negative number gives them back. */
    take: (owner: number | null, places: number): void => {
      all += places;
      const own = (held.get(owner) ?? 0) + places;
      if (own > 0) held.set(owner, own);
      else held.delete(owner);
    },
  };
}

interface Places {
  /** Runs the work once its account has a place. Rejects as it does, or when too many wait. */
  take<Result>(accountId: number, work: () => Promise<Result>): Promise<Result>;
}

/**
 * Lets at most `max` work at a time, in the shares of `createShares`. The places of those that wait
 * go from account to account. `waitingMax`: how much work of one account may wait.
 */
export function createPlaces(max: number, waitingMax = Infinity): Places {
  const shares = createShares(max);
  /** The work of each account that waits, oldest first. */
  const lines = new Map<number, { accountId: number; waiting: (() => void)[] }>();
  const choose = createTurns();

  const fill = (): void => {
    for (;;) {
      const ready = [...lines.values()].filter(({ accountId }) => shares.hasRoom(accountId));
      // Asked about nobody, `choose` would forget whose turn it is among those who wait.
      const line = ready.length === 0 && lines.size > 0 ? undefined : choose(ready);
      if (!line) return;
      shares.take(line.accountId, 1);
      line.waiting.shift()?.();
      if (line.waiting.length === 0) lines.delete(line.accountId);
    }
  };
  return {
    take: async (accountId, work) => {
      const line = lines.get(accountId) ?? { accountId, waiting: [] };
      if (line.waiting.length >= waitingMax) throw new Error("too much work of the account waits");
      lines.set(accountId, line);
      const begun = new Promise<void>((resolve) => line.waiting.push(resolve));
      fill();
      await begun;
      try {
        return await work();
      } finally {
        shares.take(accountId, -1);
        fill();
      }
    },
  };
}
