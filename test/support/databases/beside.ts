// Direct access for tests to a server's database, on either engine: rows that no request makes,
// rows as they are stored, the ledger's audit, and a lock that keeps every write waiting.
import { createSystem, type Instant } from "#core/system.ts";
import { auditLedger } from "#storage/accounts/ledger-audit.ts";
import { openSession } from "#storage/engines/postgres/session.ts";
import { openWriter } from "#storage/engines/sqlite/database.ts";
import { createReader } from "#storage/engines/sqlite/reader.ts";
import { createSql } from "#storage/engines/sqlite/sql.ts";
import { storageOver } from "#storage/engines/sqlite/storage.ts";
import { createInlineWriter } from "#storage/engines/sqlite/writer.ts";
import type { Sql } from "#storage/sql.ts";
import type { Storage } from "#storage/storage.ts";
import { databaseAt, isOverPostgres } from "#support/engines.ts";
import { openBeside } from "#support/server.ts";

const MINUTE_MS = 60_000;

interface Beside {
  sql: Sql;
  /** A statement without parameters or rows, such as BEGIN. */
  run(text: string): Promise<void>;
  close(): Promise<void>;
}

/** A connection of its own to the database of a server's folder. */
export async function sqlBeside(dataDir: string): Promise<Beside> {
  if (!isOverPostgres) {
    const db = openWriter(dataDir, { migrate: false });
    return {
      sql: createSql(db),
      run: async (text) => void db.exec(text),
      close: async () => void db.close(),
    };
  }
  const { url } = await databaseAt(dataDir, "durable");
  const session = await openSession({
    url, purpose: "test", statementMs: MINUTE_MS, idleMs: MINUTE_MS, system: createSystem(),
  });
  return {
    sql: session.sql,
    run: async (text) => void await session.run(text),
    close: () => session.close(),
  };
}

async function withSql<T>(dataDir: string, work: (sql: Sql) => T | Promise<T>): Promise<T> {
  const beside = await sqlBeside(dataDir);
  try {
    return await work(beside.sql);
  } finally {
    await beside.close();
  }
}

/** The rows of a query; its parameters are named, as the port's are. */
export const rowsBeside = <Row extends object>(
  dataDir: string, text: string, parameters: object = {},
): Promise<Row[]> =>
  withSql(dataDir, (sql) => sql.prepare<object, Row>(text).all(parameters));

/** Runs a statement that returns no rows. */
export const runBeside = (dataDir: string, text: string, parameters: object = {}): Promise<void> =>
  withSql(dataDir, async (sql) => void await sql.prepare<object>(text).run(parameters));

/** Inserts one row, and returns its id. */
export const insertBeside = (
  dataDir: string, text: string, parameters: object = {},
): Promise<number> =>
  withSql(dataDir, (sql) => sql.prepare<object>(text).insert(parameters));

/** Audits the ledger of every account. */
export async function auditBeside(dataDir: string): ReturnType<typeof auditLedger> {
  const storage = await openBeside(dataDir);
  try {
    return await auditLedger(storage.ledger);
  } finally {
    await storage.close();
  }
}

/** A store of its own that has joined as a node, with a heartbeat now by the test's clock. */
export async function storeOfNode(dataDir: string, now: Instant): Promise<Storage> {
  const self = { name: "n", url: null, protocol: 1 };
  if (!isOverPostgres) {
    // A node that joins through the store is alone, as every node of a file is.
    const writer = createInlineWriter(dataDir);
    return storageOver(createReader(dataDir), writer, await writer.write("nodes.join", {
      ...self, version: "1", schemaVersion: 28, isAlone: false, leaseUntil: null, now,
    }));
  }
  const storage = await openBeside(dataDir);
  const id = await storage.join(self);
  await runBeside(dataDir, `
    UPDATE nodes SET beat_at = @now, started_at = @now, lease_until = NULL WHERE id = @id`, { now, id });
  return storage;
}

/** Blocks all writes, but no reads, until `letGo`; `run` writes within the lock. */
export async function holdWrites(dataDir: string): Promise<{
  run(text: string): Promise<void>;
  letGo(): Promise<void>;
}> {
  const beside = await sqlBeside(dataDir);
  if (isOverPostgres) {
    await beside.run("BEGIN");
    await beside.run("LOCK TABLE accounts, conversations, turns, messages IN EXCLUSIVE MODE");
  } else {
    await beside.run("BEGIN IMMEDIATE");
  }
  return {
    run: beside.run,
    letGo: async () => {
      await beside.run("COMMIT");
      await beside.close();
    },
  };
}

/** Every such change of the table fails from now on, as a defect of the program's would. */
export async function refuseBeside(dataDir: string, what: "INSERT" | "UPDATE", table: string) {
  const name = `refuse_${what.toLowerCase()}_${table}`;
  await scriptBeside(dataDir, isOverPostgres
    ? [
      `CREATE FUNCTION ${name}() RETURNS trigger LANGUAGE plpgsql
        AS $$ BEGIN RAISE EXCEPTION 'a defect'; END $$`,
      `CREATE TRIGGER ${name} BEFORE ${what} ON ${table} EXECUTE FUNCTION ${name}()`,
    ]
    : [`CREATE TRIGGER ${name} BEFORE ${what} ON ${table} BEGIN SELECT RAISE (ABORT, 'a defect'); END`]);
  return {
    allow: () => scriptBeside(dataDir, isOverPostgres
      ? [`DROP TRIGGER ${name} ON ${table}`, `DROP FUNCTION ${name}()`]
      : [`DROP TRIGGER ${name}`]),
  };
}

/** Statements without parameters or rows, one after another. */
export async function scriptBeside(dataDir: string, statements: readonly string[]): Promise<void> {
  const beside = await sqlBeside(dataDir);
  try {
    for (const text of statements) await beside.run(text);
  } finally {
    await beside.close();
  }
}
