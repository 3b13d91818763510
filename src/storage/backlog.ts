// Commands that a writer has accepted and not answered yet. The backlog is bounded, and one account
// may hold at most half of it, so that it cannot keep the others from writing. Ends are accepted
// even when it is full: what has begun bounds their number, and nobody would ask for them again.
// Used by the engines' writers.
import type { Lock } from "./locks.ts";

interface Backlog {
  /** False: there is no room, and nothing was counted. */
  enter(lock: Lock, isEnd: boolean): boolean;
  /** Called once for each command that entered, when it is answered. */
  leave(lock: Lock): void;
}

export function createBacklog(max: number): Backlog {
  const owned = new Map<number, number>();
  let all = 0;
  return {
    enter: (lock, isEnd) => {
      if (!isEnd && all >= max) return false;
      if ("account" in lock) {
        const own = owned.get(lock.account) ?? 0;
        if (!isEnd && own >= max / 2) return false;
        owned.set(lock.account, own + 1);
      }
      all += 1;
      return true;
    },
    leave: (lock) => {
      all -= 1;
      if (!("account" in lock)) return;
      const own = owned.get(lock.account) ?? 0;
      if (own > 1) owned.set(lock.account, own - 1);
      else owned.delete(lock.account);
    },
  };
}
