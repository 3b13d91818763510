// One turn at a time per conversation: a bounded number of later ones wait in line, the rest is
// refused.
import { Fault } from "#core/faults.ts";
import type { System } from "#core/system.ts";

export interface TurnQueue {
  /**
   * Resolves to a release function once it is this caller's turn. Throws Fault 429 when too many
   * wait already, Fault 409 when the wait was too long.
   */
  enter(key: string): Promise<() => void>;
  /** How many callers hold or await a turn, over all keys. */
  size(): number;
  /** Resolves when nobody holds or awaits a turn. */
  empty(): Promise<void>;
}

interface TurnQueueLimits {
  waitingMax: number;
  waitMs: number;
}

type Waiter = (() => void)[];

export function createTurnQueue(system: System, limits: TurnQueueLimits): TurnQueue {
  // A key is present while its turn is taken; its list holds the waiting callers.
  const lines = new Map<string, Waiter>();
  let count = 0;
  let awaitingEmpty: (() => void)[] = [];

  const leave = (): void => {
    count -= 1;
    if (count > 0) return;
    for (const resolve of awaitingEmpty) resolve();
    awaitingEmpty = [];
  };
  const release = (key: string): void => {
    leave();
    const next = lines.get(key)?.shift();
    if (next) next();
    else lines.delete(key);
  };
  const releaseOnce = (key: string): (() => void) => {
    let released = false;
    return () => {
      if (!released) release(key);
      released = true;
    };
  };

  return {
    enter: (key) => {
      const line = lines.get(key);
      if (!line) {
        lines.set(key, []);
        count += 1;
        return Promise.resolve(releaseOnce(key));
      }
      if (line.length >= limits.waitingMax) {
        const message = "Too many messages are waiting in this conversation.";
        const details = { retryAfterS: 2, extra: { retry_after: 2 } };
        return Promise.reject(new Fault(429, message, details));
      }
      count += 1;
      return new Promise((resolve, reject) => {
        const start = (): void => {
          timer.cancel();
          resolve(releaseOnce(key));
        };
        const timer = system.after(limits.waitMs, () => {
          const index = line.indexOf(start);
          if (index < 0) return;
          line.splice(index, 1);
          leave();
          reject(new Fault(409, "The conversation is still answering an earlier message.", { retryAfterS: 2 }));
        });
        line.push(start);
      });
    },
    size: () => count,
    empty: () => new Promise((resolve) => {
      if (count === 0) resolve();
      else awaitingEmpty.push(resolve);
    }),
  };
}
