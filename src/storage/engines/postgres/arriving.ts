// The receiving end of a move into PostgreSQL: one transaction in an empty database, so that it
// arrives completely or not at all. While a move is under way, and after one that died, no server
// starts on the database. Used by ../move.ts.
import { LIMITS } from "#core/limits.ts";
import { isoMicros, type Instant, type System } from "#core/system.ts";
import { createLedgerReader, type LedgerReader } from "#storage/accounts/ledger-reading.ts";
import type { IndexedChunk } from "#storage/search/search.ts";
import type { Sql } from "#storage/sql.ts";
import { factsOf } from "./facts.ts";
import { migrate } from "./migrations.ts";
import { createSearchCommands } from "./search.ts";
import { openServer, problemOfServer } from "./server.ts";
import type { Session } from "./session.ts";

export interface Arrival {
  /** From here on no server starts on the database until `commit`, not even if the move dies. */
  reserve(): Promise<void>;
  /** Opens the transaction that takes all the rows or none. */
  begin(): Promise<void>;
  /** Rows as one JSON array of objects, bytes in them as `\x…`. */
  take(table: string, columns: string[], rows: string): Promise<void>;
  index(chunks: IndexedChunk[]): Promise<void>;
  /** The next id given is above this one, and above all that are there. */
  continueAfter(table: string, id: number): Promise<void>;
  /** Marks all nodes as gone: none of them serves this database. */
  buryNodes(now: Instant): Promise<void>;
  count(table: string): Promise<number>;
  ledger: LedgerReader;
  /** Servers can start on the database from here on; `note` is called before the COMMIT. */
  commit(secretMark: string | null, note: () => void): Promise<void>;
  /** Ends the session; without `commit`, none of the rows has arrived. Idempotent. */
  close(): Promise<void>;
}

/** Tables that have rows before anybody has stored anything. */
const OWN = ["schema_version", "facts", "last_ids", "message_index_state"];
const TABLES = `
  SELECT table_name AS name FROM information_schema.tables
  WHERE table_schema = current_schema() AND table_type = 'BASE TABLE' ORDER BY table_name`;
const FOREIGN_KEYS = `
  SELECT CAST(conrelid AS regclass) AS "table", quote_ident(conname) AS name,
    pg_get_constraintdef(oid) AS definition
  FROM pg_constraint
  WHERE contype = 'f' AND connamespace = CAST(current_schema() AS regnamespace)`;
const IDENTITIES = `
  SELECT table_name AS "table", column_name AS "column" FROM information_schema.columns
  WHERE table_schema = current_schema() AND is_identity = 'YES'`;
const MOVE_LOCK = "SELECT pg_try_advisory_lock(7303, 1) AS held";

const tablesOf = async ({ sql }: Session): Promise<string[]> =>
  (await sql.prepare<object, { name: string }>(TABLES).all({})).map(({ name }) => name);

async function assertEmpty(session: Session): Promise<void> {
  for (const table of (await tablesOf(session)).filter((name) => !OWN.includes(name))) {
    const row = await session.sql.prepare<object, object>(`SELECT 1 FROM "${table}" LIMIT 1`).get({});
    if (row) throw new Error(`the database is not empty: its table ${table} has rows`);
  }
}

/** Rejects, in one sentence, where nothing may be moved into the database. */
async function assertFit(session: Session, system: System): Promise<void> {
  const problem = await problemOfServer(session, { named: "--to", system, mayForget: false });
  if (problem !== null) throw new Error(problem);
  const lock = await session.sql.prepare<object, { held: number }>(MOVE_LOCK).one({});
  if (lock.held !== 1) throw new Error("another move into this database is in progress");
  const tables = await tablesOf(session);
  if (tables.length > 0 && !tables.includes("schema_version")) {
    throw new Error(`the database is not empty: it has the table ${tables[0]}`);
  }
  await migrate(session);
  const { moved } = await factsOf(session.sql).read();
  if (moved !== undefined) {
    throw new Error(`a move into this database was completed at ${moved}`);
  }
  await assertEmpty(session);
}

/** Begins the transaction; resolves to a function that restores the foreign keys. */
async function begin(session: Session): Promise<() => Promise<void>> {
  await session.run("BEGIN");
  // A server that saw no move a moment ago waits here to insert its node row, or fails to.
  await session.run("LOCK TABLE nodes IN ACCESS EXCLUSIVE MODE");
  await assertEmpty(session);
  await session.run("DELETE FROM last_ids");
  // Calls refer to leads and leads to calls: foreign keys are checked once all rows are there.
  const keys = await session.sql.prepare<object, {
    table: string; name: string; definition: string;
  }>(FOREIGN_KEYS).all({});
  for (const { table, name } of keys) {
    await session.run(`ALTER TABLE ${table} DROP CONSTRAINT ${name}`);
  }
  return async () => {
    for (const { table, name, definition } of keys) {
      await session.run(`ALTER TABLE ${table} ADD CONSTRAINT ${name} ${definition}`);
    }
  };
}

function arrivingOver(sql: Sql) {
  const search = createSearchCommands(sql);
  const bury = sql.prepare(
    "UPDATE nodes SET state = 'gone', gone_at = @now WHERE state <> 'gone'");
  const identities = sql.prepare<object, { table: string; column: string }>(IDENTITIES);
  return {
    take: async (table: string, columns: string[], rows: string): Promise<void> => {
      const names = columns.map((name) => `"${name}"`).join(", ");
      await sql.prepare(`
        INSERT INTO "${table}" (${names}) SELECT ${names}
        FROM json_populate_recordset(CAST(NULL AS "${table}"), CAST(@rows AS json))`).run({ rows });
    },
    index: search.index,
    continueAfter: async (table: string, id: number): Promise<void> => {
      const identity = (await identities.all({})).find((one) => one.table === table);
      if (!identity || id === 0) return;
      await sql.prepare("SELECT setval(pg_get_serial_sequence(@table, @column), @id) AS id")
        .get({ ...identity, table: `"${table}"`, id });
    },
    buryNodes: async (now: Instant): Promise<void> => {
      await bury.run({ now });
    },
    count: async (table: string): Promise<number> => (await sql.prepare<object, { rows: number }>(
      `SELECT count(*) AS rows FROM "${table}"`).one({})).rows,
    // Everything here is read in one transaction already.
    ledger: createLedgerReader({ ...sql, snapshot: (read) => read(sql) }),
  };
}

/** Rejects, with a one-sentence message, where nothing may be moved into the URL's database. */
export async function openArrival(url: string, system: System): Promise<Arrival> {
  const session = await openServer({ url, system, named: "--to" }, LIMITS.moveStatementMs);
  try {
    await assertFit(session, system);
    const facts = factsOf(session.sql);
    let bindKeys = (): Promise<void> => Promise.reject(new Error("nothing was begun"));
    return {
      ...arrivingOver(session.sql),
      reserve: () => facts.enter("moving", isoMicros(system.now())),
      begin: async () => {
        bindKeys = await begin(session);
      },
      commit: async (secretMark, note) => {
        await bindKeys();
        if (secretMark !== null) await facts.enter("secret", secretMark);
        await facts.enter("moved", isoMicros(system.now()));
        await facts.remove("moving");
        // Noted first: if the process is killed after the COMMIT, or never gets its answer, it is
        // too late.
        note();
        const done = await session.run("COMMIT");
        if (done !== "COMMIT") throw new Error("the database did not accept the move");
        await session.run("ANALYZE");
      },
      close: () => session.close(),
    };
  } catch (error) {
    await session.close();
    throw error;
  }
}
