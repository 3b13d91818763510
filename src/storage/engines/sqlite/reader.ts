// Reads of the embedded engine, on the caller's thread over two connections of their own: one for
// single statements, one for snapshots, so that a transaction held open makes no other read stale.
// Opened by storage.ts.
import type { Reader, Sql } from "#storage/sql.ts";
import { openReader, type Db } from "./database.ts";
import { createSql } from "./sql.ts";

export interface SqliteReader extends Reader {
  /** Waits for snapshots under way; reads asked for afterwards reject. Idempotent. */
  close(): Promise<void>;
}

/** Over two connections, or one where nothing else reads meanwhile. */
export function readerOver(single: Db, moment: Db): SqliteReader {
  const sql = createSql(moment);
  const begin = moment.prepare("BEGIN");
  const commit = moment.prepare("COMMIT");
  const inTransaction = async <T>(read: (sql: Sql) => Promise<T>): Promise<T> => {
    begin.run();
    try {
      return await read(sql);
    } finally {
      commit.run();
    }
  };
  let last: Promise<unknown> = Promise.resolve();
  return {
    ...createSql(single),
    snapshot: (read) => {
      // One after another: a connection has one transaction.
      const result = last.then(() => inTransaction(read));
      last = result.catch(() => undefined);
      return result;
    },
    close: async () => {
      if (single.open) single.close();
      await last;
      if (moment.open) moment.close();
    },
  };
}

export const createReader = (dataDir: string): SqliteReader =>
  readerOver(openReader(dataDir), openReader(dataDir));
