// The PostgreSQL engine as a whole: looks at the server, brings the schema up to date, opens what
// reads and writes, builds every store over it. Loaded by engines/open.ts, when a URL is set.
import { LIMITS } from "#core/limits.ts";
import { MisconfiguredStart, StartFailure } from "#core/faults.ts";
import { createSystem } from "#core/system.ts";
import type { Storage } from "#storage/storage.ts";
import { storesOver } from "#storage/stores.ts";
import { createReach } from "./link.ts";
import { migrate } from "./migrations.ts";
import { createReader } from "./reader.ts";
import { createSearchIndex } from "./search.ts";
import { openSession, type Session } from "./session.ts";
import { createWriter } from "./writer.ts";

export interface PostgresOptions {
  url: string;
  writesMax: number;
  /** For one piece of work: one connection for each purpose. */
  isSmall?: boolean;
  /** Tests of what is stored, not of what survives, run on a server that waits for no disk. */
  mayForget?: boolean;
}

const VERSION_MIN = 150_000;
/** What a commit that is answered cannot do without. */
const DURABLE = ["fsync", "full_page_writes", "synchronous_commit"];

interface ServerRow {
  version: number;
  encoding: string;
  pid: number;
  is_standby: number;
}

/** What is wrong with the server, as one sentence; null: it will do. */
async function problemOf(session: Session, mayForget: boolean): Promise<string | null> {
  const { sql } = session;
  const server = await sql.prepare<object, ServerRow>(`
    SELECT CAST(current_setting('server_version_num') AS BIGINT) AS version,
      current_setting('server_encoding') AS encoding, pg_backend_pid() AS pid,
      pg_is_in_recovery() AS is_standby`).one({});
  if (server.version < VERSION_MIN) return "PARLEY_DATABASE_URL leads to a PostgreSQL older than 15";
  if (server.encoding !== "UTF8") {
    return `the database of PARLEY_DATABASE_URL has the encoding ${server.encoding}; it must be UTF8`;
  }
  if (server.is_standby === 1) return "PARLEY_DATABASE_URL leads to a standby, which takes no changes";
  if (server.pid !== session.processId()) {
    return "PARLEY_DATABASE_URL leads to a pooler; it must lead to PostgreSQL itself";
  }
  if (mayForget) return null;
  const off = await sql.prepare<object, { name: string }>(`
    SELECT name FROM pg_settings WHERE ${sql.dialect.among("name", "@names")} AND setting = 'off'
    ORDER BY name`).get({ names: DURABLE });
  return off
    ? `the PostgreSQL of PARLEY_DATABASE_URL has ${off.name} off: a commit it answers could be lost`
    : null;
}

async function prepareDatabase({ url, mayForget = false }: PostgresOptions): Promise<void> {
  const system = createSystem();
  let session: Session;
  try {
    session = await openSession({
      url, purpose: "start", statementMs: LIMITS.databaseAnswerMs, idleMs: LIMITS.databaseReportMs,
      system,
    });
  } catch (error) {
    throw new MisconfiguredStart(
      `the database of PARLEY_DATABASE_URL is out of reach: ${(error as Error).message}`,
      { cause: error });
  }
  try {
    const problem = await problemOf(session, mayForget);
    if (problem !== null) throw new MisconfiguredStart(problem);
    await migrate(session);
  } catch (error) {
    if (error instanceof StartFailure) throw error;
    throw new StartFailure((error as Error).message, { cause: error });
  } finally {
    await session.close();
  }
}

/** Rejects with a StartFailure whose message is for the operator. */
export async function openPostgres(options: PostgresOptions): Promise<Storage> {
  await prepareDatabase(options);
  const system = createSystem();
  const reach = createReach(system);
  const { url, writesMax, isSmall = false } = options;
  const reader = createReader({ url, system }, reach, {
    singles: isSmall ? 1 : LIMITS.databaseReaders,
    snapshots: isSmall ? 1 : LIMITS.databaseSnapshots,
  });
  const writers = isSmall ? 1 : LIMITS.databaseWriters;
  const writer = createWriter({ url, system }, reach, { writers, writesMax });
  return storesOver(reader, writer, createSearchIndex(reader));
}
