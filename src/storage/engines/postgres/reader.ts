// Reads over PostgreSQL: single statements round-robin on some connections, snapshots on others, in
// a transaction each. Opened by storage.ts.
import { StorageFailure } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import { createPlaces } from "#core/turns.ts";
import type { Reader, Sql } from "#storage/sql.ts";
import { areAbsent, createLink, type Link, type Reach } from "./link.ts";
import {
  ConnectionLost, FULL, PASSING, stateOf, type Session, type SessionOptions,
} from "./session.ts";
import { createSql, type Answer, type Ask } from "./sql.ts";

/** A table has been given a column since the statement was prepared. */
export const isStale = (error: unknown): boolean =>
  stateOf(error) === "0A000" && (error as Error).message.includes("cached plan");

interface PostgresReader extends Reader {
  /** False while the database takes no connection for single reads, or none for snapshots. */
  canRead(): boolean;
  /** Waits for reads under way; later reads reject. Idempotent. */
  close(): Promise<void>;
}

/** A table being rewritten, or memory that ran out, is not the statement's fault. */
function failureOf(error: unknown): unknown {
  const state = stateOf(error) ?? "";
  return PASSING.has(state) || FULL.test(state)
    ? new StorageFailure("could not read the database", error) : error;
}

/** Runs `ask` on a session and retries it on another when that one is lost before it answers. */
async function again<T>(links: () => Link, ask: (session: Session) => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    const session = await links().session(LIMITS.databaseGoneMs);
    try {
      return await ask(session);
    } catch (error) {
      const stale = isStale(error);
      if (stale) session.destroy();
      if (!stale && !(error instanceof ConnectionLost)) throw failureOf(error);
      if (tries >= LIMITS.databaseTries) {
        throw new StorageFailure("the database keeps closing the connection", error);
      }
    }
  }
}

function inTurn(links: Link[]): () => Link {
  let next = 0;
  return () => {
    next = (next + 1) % links.length;
    // Prefers a link that is connected.
    const order = [...links.slice(next), ...links.slice(0, next)];
    return order.find((link) => link.current() !== null) ?? order[0] as Link;
  };
}

/** Begins a transaction whose reads see one snapshot. */
const MOMENT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

async function readMoment<T>(link: Link, read: (sql: Sql) => Promise<T>): Promise<T> {
  const session = await again(() => link, async (opened) => {
    await opened.run(MOMENT);
    return opened;
  });
  try {
    const result = await read(session.sql);
    await session.run("COMMIT");
    return result;
  } catch (error) {
    if (error instanceof ConnectionLost) {
      throw new StorageFailure("the database closed the connection during a read", error);
    }
    if (isStale(error)) session.destroy();
    if (!session.isLost()) {
      await session.idle();
      await session.run("ROLLBACK").catch(() => session.destroy());
    }
    throw failureOf(error);
  }
}

export function createReader(
  options: Pick<SessionOptions, "url" | "system">, reach: Reach,
  connections: { singles: number; snapshots: number },
): PostgresReader {
  const many = (count: number, more: Pick<SessionOptions, "purpose" | "statementMs" | "idleMs">) =>
    Array.from({ length: count }, () => createLink({ ...options, ...more }, reach));
  const singles = many(connections.singles, {
    purpose: "reads", statementMs: LIMITS.databaseAnswerMs, idleMs: LIMITS.databaseGoneMs,
  });
  const moments = many(connections.snapshots, {
    purpose: "snapshots", statementMs: LIMITS.databaseReportMs, idleMs: LIMITS.databaseReportMs,
  });
  const [single, moment] = [inTurn(singles), inTurn(moments)];
  let isClosed = false;
  const underWay = new Set<Promise<unknown>>();
  const counted = <T>(asked: Promise<T>): Promise<T> => {
    underWay.add(asked);
    void asked.catch(() => undefined).then(() => underWay.delete(asked));
    return asked;
  };
  const refuseClosed = (): void => {
    if (isClosed) throw new StorageFailure("the database was closed");
  };
  const ask: Ask = async (prepared, parameters): Promise<Answer> => {
    refuseClosed();
    return counted(again(single, (session) => session.ask(prepared, parameters)));
  };
  const places = createPlaces(moments.length);
  const free = new Map(moments.map((link) => [link, Promise.resolve<unknown>(undefined)]));
  const busy = new Set<Link>();
  /** A connection has one snapshot's transaction at a time; while some are lost, others wait. */
  const readFree = <T>(read: (sql: Sql) => Promise<T>): Promise<T> => {
    const link = moments.find((one) => !busy.has(one) && one.current() !== null) ?? moment();
    busy.add(link);
    const result = (free.get(link) as Promise<unknown>)
      .then(() => readMoment(link, read))
      .finally(() => busy.delete(link));
    free.set(link, result.catch(() => undefined));
    return result;
  };
  return {
    ...createSql(ask),
    snapshot: async (read, accountId = 0) => {
      refuseClosed();
      return counted(places.take(accountId, () => readFree(read)));
    },
    canRead: () => !areAbsent(singles) && !areAbsent(moments),
    close: async () => {
      isClosed = true;
      await Promise.allSettled(underWay);
      await Promise.all([...singles, ...moments].map((link) => link.close()));
    },
  };
}
