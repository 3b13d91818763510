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
 * One account may hold so many times what is free: alone seven eighths of all places, two accounts
 * seven fifteenths each. However many accounts hang, the next one finds a place.
 */
const HELD_PER_FREE = 7;

/** Whether an account that holds `own` places may take another of those that are `free`. */
export const mayTake = (own: number, free: number): boolean =>
  own === 0 || own < HELD_PER_FREE * free;

interface Places {
  /** Runs the work once its account has a place. Rejects as it does, or when too many wait. */
  take<Result>(accountId: number, work: () => Promise<Result>): Promise<Result>;
}

/** One account's work that runs, and its work that waits, oldest first. */
interface Line {
  accountId: number;
  busy: number;
  waiting: (() => void)[];
}

/**
 * Lets at most `max` work at a time, of one account what `mayTake` says. The places of those that
 * wait go from account to account. `waitingMax`: how much work of one account may wait.
 */
export function createPlaces(max: number, waitingMax = Infinity): Places {
  const lines = new Map<number, Line>();
  const choose = createTurns();
  let busy = 0;

  const fill = (): void => {
    while (busy < max) {
      const line = choose([...lines.values()].filter(({ waiting, busy: own }) =>
        waiting.length > 0 && mayTake(own, max - busy)));
      if (!line) return;
      busy += 1;
      line.busy += 1;
      line.waiting.shift()?.();
    }
  };
  const leave = (line: Line): void => {
    busy -= 1;
    line.busy -= 1;
    if (line.busy === 0 && line.waiting.length === 0) lines.delete(line.accountId);
    fill();
  };
  return {
    take: async (accountId, work) => {
      const line = lines.get(accountId) ?? { accountId, busy: 0, waiting: [] };
      if (line.waiting.length >= waitingMax) throw new Error("too much work of the account waits");
      lines.set(accountId, line);
      const begun = new Promise<void>((resolve) => line.waiting.push(resolve));
      fill();
      await begun;
      try {
        return await work();
      } finally {
        leave(line);
      }
    },
  };
}
