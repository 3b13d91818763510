// The PostgreSQL that a URL leads to, before anything is stored in it: whether it will do, what
// keeps a start from it, its schema. Used by storage.ts and by a move (arriving.ts).
import { hash } from "node:crypto";
import { MisconfiguredStart, StartFailure } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import { aheadMs, wait, type System } from "#core/system.ts";
import type { OnMigration } from "#storage/migrations.ts";
import { problemOfFacts, type Shared } from "./facts.ts";
import { isBehind, migrate } from "./migrations.ts";
import { openSession, stateOf, type Session } from "./session.ts";

interface Prepared {
  url: string;
  system: System;
  /** Where the URL stands, as an operator knows it. */
  named: string;
  /** What the nodes of a database have to agree on; null: it is asked for by no node. */
  shared: Shared | null;
  /** Tests of what is stored, not of what survives, run on a server that waits for no disk. */
  mayForget: boolean;
  onMigration?: OnMigration;
}

const VERSION_MIN = 150_000;
/** SQLSTATEs of a user or a database that is not there, or of a wrong password. */
const REFUSED = /^(?:28|3D)/;
/** Those of a user who may not make tables, or has no schema to make them in. */
const WITHOUT_RIGHTS = /^(?:42501|3F)/;
/** What TLS fails with where nobody whom this machine trusts has signed the certificate. */
const UNTRUSTED = /^(?:UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_)/;
/** What a commit that is answered cannot do without. */
const DURABLE = ["fsync", "full_page_writes", "synchronous_commit"];

const pooled = (named: string): string =>
  `${named} leads to a pooler; it must lead to PostgreSQL itself`;

interface ServerRow {
  version: number;
  encoding: string;
  pid: number;
}

/** What is wrong with the server, as one sentence; null: it will do. */
export async function problemOfServer(
  session: Session, { named, system, mayForget }: Omit<Prepared, "url" | "shared">,
): Promise<string | null> {
  const { sql } = session;
  const server = await sql.prepare<object, ServerRow>(`
    SELECT CAST(current_setting('server_version_num') AS BIGINT) AS version,
      current_setting('server_encoding') AS encoding, pg_backend_pid() AS pid`).one({});
  if (server.version < VERSION_MIN) return `${named} leads to a PostgreSQL older than 15`;
  if (server.encoding !== "UTF8") {
    return `the database of ${named} has the encoding ${server.encoding}; it must be UTF8`;
  }
  if (server.pid !== session.processId()) return pooled(named);
  const offMs = await clockOffMs(session, system);
  if (Math.abs(offMs) > LIMITS.clockOffMsMax) {
    return `this machine's clock is ${Math.round(Math.abs(offMs) / 1000)} s ${offMs > 0 ? "ahead of" : "behind"}`
      + ` that of the database of ${named}: set both by one time server`;
  }
  if (mayForget) return null;
  const off = await sql.prepare<object, { name: string }>(`
    SELECT name FROM pg_settings WHERE ${sql.dialect.among("name", "@names")} AND setting = 'off'
    ORDER BY name`).get({ names: DURABLE });
  return off
    ? `the PostgreSQL of ${named} has ${off.name} off: a commit it answers could be lost`
    : null;
}

/** How far this machine's clock is ahead, at least: half of the way there and back may be on it. */
export async function clockOffMs({ sql }: Session, system: System): Promise<number> {
  const before = system.now();
  const { now } = await sql.prepare<object, { now: number }>(
    `SELECT ${sql.dialect.clock} AS now`).one({});
  return aheadMs(before, now, system.now());
}

export async function openServer(
  { url, system, named }: Pick<Prepared, "url" | "system" | "named">, statementMs: number,
): Promise<Session> {
  try {
    return await openSession({
      url, purpose: "start", statementMs, idleMs: LIMITS.databaseReportMs, system,
    });
  } catch (error) {
    // One that is down comes back, and the program is to be started again; one that lets nobody in
    // under this URL will not.
    const Failure = REFUSED.test(stateOf(error) ?? "") ? MisconfiguredStart : StartFailure;
    const { message, code = "" } = error as Error & { code?: string };
    // PgBouncer as it is shipped refuses the settings a session begins with.
    if (message.includes("unsupported startup parameter")) {
      throw new MisconfiguredStart(pooled(named), { cause: error });
    }
    const advice = UNTRUSTED.test(code)
      ? " (NODE_EXTRA_CA_CERTS names a file of authorities to trust)" : "";
    throw new Failure(
      `the database of ${named} is out of reach: ${message}${advice}`, { cause: error });
  }
}

/** The server made it up: a copy in another place has another one, a standby has the same. */
async function databaseIdOf({ sql }: Session): Promise<string> {
  const { id } = await sql.prepare<object, { id: string }>(`
    SELECT system_identifier || '.' || oid AS id FROM pg_control_system(), pg_database
    WHERE datname = current_database()`).one({});
  return hash("sha256", id, "hex").slice(0, 16);
}

type Over = <T>(statementMs: number, work: (session: Session) => Promise<T>) => Promise<T>;

async function prepareOver(session: Session, over: Over, options: Prepared): Promise<string> {
  const problem = await problemOfServer(session, options);
  if (problem !== null) throw new MisconfiguredStart(problem);
  // Over many rows, and behind whoever reads them (`pg_dump`), it takes longer than an answer may.
  if (await isBehind(session)) {
    await over(LIMITS.migrationMs, (patient) => migrate(patient, options.onMigration));
  }
  const other = await problemOfFacts(session.sql, options);
  if (other !== null) throw new MisconfiguredStart(other);
  return databaseIdOf(session);
}

/**
 * Resolves to what tells the database from others; rejects with a StartFailure whose message is for
 * the operator. A session that is ended meanwhile is no reason: all of it is done over another one.
 */
export async function prepareDatabase(options: Prepared): Promise<string> {
  for (let tries = 1; ; tries += 1) {
    let isLost = false;
    const over: Over = async (statementMs, work) => {
      const session = await openServer(options, statementMs);
      session.onLost(() => (isLost = true));
      try {
        return await work(session);
      } finally {
        await session.close();
      }
    };
    try {
      return await over(LIMITS.databaseAnswerMs, (session) => prepareOver(session, over, options));
    } catch (error) {
      if (!isLost || tries === LIMITS.databaseStartTries) {
        if (error instanceof StartFailure) throw error;
        const Failure = WITHOUT_RIGHTS.test(stateOf(error) ?? "") ? MisconfiguredStart : StartFailure;
        throw new Failure(
          `the database of ${options.named} could not be prepared: ${(error as Error).message}`,
          { cause: error });
      }
    }
    await wait(options.system, LIMITS.databaseRetryMs);
  }
}
