// One turn at a time per conversation: a bounded number of later ones wait in line, the rest is
// refused. One account never has the last of all turns, so that others find room.
import { Fault } from "#core/faults.ts";
import type { System } from "#core/system.ts";
import { createShares } from "#core/turns.ts";

export interface TurnQueue {
  /**
   * Resolves to a release function once it is this caller's turn. Throws Fault 429 when too many
   * wait already, Fault 409 when the wait was too long, Fault 503 when the queue is full.
   */
  enter(key: string): Promise<() => void>;
  /**
   * Tells whose the key is, where a turn has it; Fault 503 when that account has all it may. A
   * key is one account's.
   */
  claim(key: string, accountId: number): void;
  /** How many callers hold or await a turn, over all keys. */
  size(): number;
  /** Resolves when nobody holds or awaits a turn. */
  empty(): Promise<void>;
}

interface TurnQueueLimits {
  /** Turns that are held or awaited, over all keys. */
  max: number;
  waitingMax: number;
  waitMs: number;
}

interface Line {
  /** Null until it is claimed. */
  accountId: number | null;
  waiting: (() => void)[];
}

const overloaded = (): Fault =>
  new Fault(503, "The server is overloaded.", { retryAfterS: 1 });
const tooMany = (): Fault =>
  new Fault(429, "Too many messages are waiting in this conversation.", {
    retryAfterS: 2, extra: { retry_after: 2 },
  });

export function createTurnQueue(system: System, limits: TurnQueueLimits): TurnQueue {
  // A key is present while its turn is taken.
  const lines = new Map<string, Line>();
  const shares = createShares(limits.max);
  let awaitingEmpty: (() => void)[] = [];

  const leave = (line: Line): void => {
    shares.take(line.accountId, -1);
    if (shares.all() > 0) return;
    for (const resolve of awaitingEmpty) resolve();
    awaitingEmpty = [];
  };
  const release = (key: string, line: Line): void => {
    leave(line);
    const next = line.waiting.shift();
    if (next) next();
    else lines.delete(key);
  };
  const releaseOnce = (key: string, line: Line): (() => void) => {
    let released = false;
    return () => {
      if (!released) release(key, line);
      released = true;
    };
  };

  return {
    enter: (key) => {
      const line = lines.get(key);
      const accountId = line?.accountId ?? null;
      if (!shares.hasRoom(accountId)) return Promise.reject(overloaded());
      if (!line) {
        const begun = { accountId, waiting: [] };
        lines.set(key, begun);
        shares.take(accountId, 1);
        return Promise.resolve(releaseOnce(key, begun));
      }
      const { waiting } = line;
      if (waiting.length >= limits.waitingMax) return Promise.reject(tooMany());
      shares.take(accountId, 1);
      return new Promise((resolve, reject) => {
        const start = (): void => {
          timer.cancel();
          resolve(releaseOnce(key, line));
        };
        const timer = system.after(limits.waitMs, () => {
          const index = waiting.indexOf(start);
          if (index < 0) return;
          waiting.splice(index, 1);
          leave(line);
          reject(new Fault(409, "The conversation is still answering an earlier message.", { retryAfterS: 2 }));
        });
        waiting.push(start);
      });
    },
    claim: (key, accountId) => {
      const line = lines.get(key);
      if (!line || line.accountId !== null) return;
      const turns = 1 + line.waiting.length;
      shares.take(null, -turns);
      if (shares.hasRoom(accountId)) line.accountId = accountId;
      shares.take(line.accountId, turns);
      if (line.accountId === null) throw overloaded();
    },
    size: shares.all,
    empty: () => new Promise((resolve) => {
      if (shares.all() === 0) resolve();
      else awaitingEmpty.push(resolve);
    }),
  };
}
