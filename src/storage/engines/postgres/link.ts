// Connections that come back: a link opens its session, opens it anew when it is lost, and lets
// callers wait for it. All links of a database share what is known about reaching it.
import { StorageFailure } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import { wait, type System } from "#core/system.ts";
import { openSession, stateOf, type Session, type SessionOptions } from "./session.ts";

export interface Reach {
  /** Null while the database is in reach, or has been a moment ago. */
  failure(): StorageFailure | null;
  /** A session is there, until the result is called. */
  opened(): () => void;
  /** An attempt to open one has come to this. */
  failed(error: Error): void;
}

/** The server, or its user, has as many sessions as it may. */
const NO_ROOM = "53300";

export function createReach(system: System): Reach {
  let since: number | null = null;
  let cause: Error | null = null;
  let sessions = 0;
  return {
    failure: () => (since !== null && system.monotonicMs() - since >= LIMITS.databaseGoneMs
      ? new StorageFailure("the database is out of reach", cause)
      : null),
    opened: () => {
      sessions += 1;
      [since, cause] = [null, null];
      return () => void (sessions -= 1);
    },
    failed: (error) => {
      // Whoever was let in before goes on.
      if (sessions > 0 && stateOf(error) === NO_ROOM) return;
      cause = error;
      since ??= system.monotonicMs();
    },
  };
}

export interface Link {
  /** Null while it is being opened. */
  current(): Session | null;
  /** Waits for it that long; rejects with StorageFailure. */
  session(patienceMs: number): Promise<Session>;
  /** Idempotent. */
  close(): Promise<void>;
}

export function createLink(options: SessionOptions, reach: Reach): Link {
  const { system } = options;
  const closing = new AbortController();
  let session: Session | null = null;
  let waiting: ((session: Session | null) => void)[] = [];
  let opening: Promise<void> | null = null;

  const open = async (): Promise<void> => {
    while (!closing.signal.aborted) {
      try {
        const opened = await openSession(options);
        if (closing.signal.aborted) return await opened.close();
        const ended = reach.opened();
        session = opened;
        for (const resolve of waiting.splice(0)) resolve(opened);
        opened.onLost(() => {
          ended();
          session = null;
          start();
        });
        return;
      } catch (error) {
        reach.failed(error as Error);
        await wait(system, LIMITS.databaseRetryMs, closing.signal);
      }
    }
  };
  const start = (): void => {
    if (closing.signal.aborted) return;
    opening = (opening ?? Promise.resolve()).then(open);
  };
  start();

  const gone = (): StorageFailure => reach.failure() ?? new StorageFailure(
    closing.signal.aborted ? "the database was closed" : "the database is out of reach");
  return {
    current: () => (session && !session.isLost() ? session : null),
    session: (patienceMs) => new Promise((resolve, reject) => {
      if (closing.signal.aborted) return reject(gone());
      if (session && !session.isLost()) return resolve(session);
      const settle = (found: Session | null): void => {
        timer.cancel();
        waiting = waiting.filter((other) => other !== settle);
        if (found) resolve(found);
        else reject(gone());
      };
      const timer = system.after(patienceMs, () => settle(null));
      waiting.push(settle);
    }),
    close: async () => {
      closing.abort();
      for (const resolve of waiting.splice(0)) resolve(null);
      await opening;
      await session?.close();
    },
  };
}
