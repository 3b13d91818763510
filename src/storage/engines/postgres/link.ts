// Connections that reconnect: a link opens its session, reopens it when it is lost, and lets
// callers wait for it. All links of a database share what is known about whether it can be reached.
import { StorageFailure } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import { wait, type System } from "#core/system.ts";
import { openSession, type Session, type SessionOptions } from "./session.ts";

export interface Reach {
  /** Null while the database can be reached, or could be a moment ago. */
  failure(): StorageFailure | null;
  /** A session was opened. */
  opened(): void;
  /** A session got an answer: whatever keeps others from opening, the database can be reached. */
  answered(): void;
  /** An attempt to open a session failed with this error. */
  failed(error: Error): void;
  /** A commit takes too long, as without a synchronous standby; the result is called at its end. */
  hangs(): () => void;
}

export function createReach(system: System): Reach {
  let since: number | null = null;
  let cause: Error | null = null;
  let heardMs = system.monotonicMs();
  let hanging = 0;
  return {
    failure: () => {
      if (hanging > 0) {
        return new StorageFailure(
          "the database does not finish a commit: it may wait for a synchronous standby of"
            + " synchronous_standby_names, which must be back or taken out");
      }
      if (since === null) return null;
      return system.monotonicMs() - Math.max(since, heardMs) >= LIMITS.databaseGoneMs
        ? new StorageFailure("the database is unreachable", cause)
        : null;
    },
    opened: () => void ([since, cause] = [null, null]),
    answered: () => void (heardMs = system.monotonicMs()),
    failed: (error) => {
      cause = error;
      since ??= system.monotonicMs();
    },
    hangs: () => {
      hanging += 1;
      return () => void (hanging -= 1);
    },
  };
}

export interface Link {
  /** Null while it is being opened. */
  current(): Session | null;
  /** How long it has had no session; 0: it has one. */
  absentMs(): number;
  /** Waits this long for a session; rejects with StorageFailure. */
  session(patienceMs: number): Promise<Session>;
  /** Idempotent. */
  close(): Promise<void>;
}

export function createLink(options: SessionOptions, reach: Reach): Link {
  const { system } = options;
  const closing = new AbortController();
  let session: Session | null = null;
  let absentSinceMs = system.monotonicMs();
  let waiting: ((session: Session | null) => void)[] = [];
  let opening: Promise<void> | null = null;
  /** Why the last attempt to connect failed. */
  let refusal: unknown;

  const open = async (): Promise<void> => {
    while (!closing.signal.aborted) {
      try {
        const opened = await openSession({ ...options, onAnswer: reach.answered });
        if (closing.signal.aborted) return await opened.close();
        reach.opened();
        session = opened;
        for (const resolve of waiting.splice(0)) resolve(opened);
        opened.onLost(() => {
          session = null;
          absentSinceMs = system.monotonicMs();
          start();
        });
        return;
      } catch (error) {
        refusal = error;
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
    closing.signal.aborted ? "the database was closed" : "the database is unreachable", refusal);
  return {
    current: () => (session && !session.isLost() ? session : null),
    absentMs: () => (session ? 0 : system.monotonicMs() - absentSinceMs),
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

/** The database may have room for the sessions of some links only. */
export const areAbsent = (links: readonly Link[]): boolean =>
  links.every((link) => link.absentMs() >= LIMITS.databaseGoneMs);
