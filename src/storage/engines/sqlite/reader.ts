// Reads of the embedded engine, over two connections of their own: one for single statements on the
// caller's thread, one for snapshots, so that a transaction held open makes no other read stale.
// Opened by storage.ts.
import { createPlaces } from "#core/turns.ts";
import type { Awaitable, Reader, Sql } from "#storage/sql.ts";
import { openReader, type Db } from "./database.ts";
import { createThreadReading } from "./reading.ts";
import { createSql } from "./sql.ts";

export interface SqliteReader extends Reader {
  /** Waits for snapshots under way; reads asked for afterwards reject. Idempotent. */
  close(): Promise<void>;
}

/** A connection for snapshots; it answers in order. */
export interface Moments {
  sql: Sql;
  exec(text: "BEGIN" | "COMMIT"): Awaitable<void>;
  close(): Awaitable<void>;
}

const momentsOver = (db: Db): Moments => ({
  sql: createSql(db),
  exec: (text) => void db.exec(text),
  close: () => {
    if (db.open) db.close();
  },
});

const noop = (): void => undefined;

function reading(single: Db, moments: Moments): SqliteReader {
  const inTransaction = async <T>(read: (sql: Sql) => Promise<T>): Promise<T> => {
    await moments.exec("BEGIN");
    try {
      return await read(moments.sql);
    } finally {
      await moments.exec("COMMIT");
    }
  };
  // A connection has one transaction at a time.
  const places = createPlaces(1);
  const underWay = new Set<Promise<unknown>>();
  return {
    ...createSql(single),
    snapshot: (read, accountId = 0) => {
      const result = places.take(accountId, () => inTransaction(read));
      const settled = result.then(noop, noop).finally(() => underWay.delete(settled));
      underWay.add(settled);
      return result;
    },
    close: async () => {
      if (single.open) single.close();
      await Promise.all(underWay);
      await moments.close();
    },
  };
}

/** Reads over two connections, or over one where nothing else reads at the same time. */
export const readerOver = (single: Db, moment: Db): SqliteReader =>
  reading(single, momentsOver(moment));

export const createReader = (dataDir: string): SqliteReader =>
  readerOver(openReader(dataDir), openReader(dataDir));

/** Snapshots run in a thread, so that what they scan does not block this one. */
export const createThreadReader = (dataDir: string): SqliteReader =>
  reading(openReader(dataDir), createThreadReading(dataDir));
