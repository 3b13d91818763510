// Brings a PostgreSQL database up to this program's schema. The process that starts first migrates;
// others wait for the lock and find it done.
import { MisconfiguredStart, StartFailure } from "#core/faults.ts";
import { refuseNewer, shippedMigrations, type OnMigration } from "#storage/migrations.ts";
import type { Session } from "./session.ts";
import { translateSchema } from "./translate.ts";

const LOCK = "pg_advisory_lock(7303, 0)";
const UNLOCK = "pg_advisory_unlock(7303, 0)";

function refuseOthers(table: string): never {
  throw new MisconfiguredStart(
    `the database has a table ${table} of another program: Parley needs a database of its own`);
}

/** A database without tables of this program may have none of the same names. */
async function assertFree({ sql }: Session): Promise<void> {
  const names = shippedMigrations("postgres").flatMap((migration) =>
    [...migration.sql.matchAll(/^CREATE TABLE (\w+)/gm)].map(([, name]) => name));
  const taken = await sql.prepare<object, { name: string }>(`
    SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema()
      AND ${sql.dialect.among("tablename", "@names")} ORDER BY tablename`).get({ names });
  if (taken) refuseOthers(taken.name);
}

/** 0: nothing is there. Throws where the schema is newer, or another program's. */
async function schemaVersion(session: Session, newest: number): Promise<number> {
  const { sql } = session;
  const { made, begun } = await sql.prepare<object, { made: number; begun: number }>(`
    SELECT to_regclass('schema_version') IS NOT NULL AS made,
      to_regclass('accounts') IS NOT NULL AS begun`).one({});
  const row = made === 1
    ? await sql.prepare<object, { version: number | null }>(
      "SELECT max(version) AS version FROM schema_version").get({})
    : undefined;
  const version = row?.version ?? 0;
  if (version === 0) await assertFree(session);
  else if (begun === 0) refuseOthers("schema_version");
  refuseNewer(version, newest);
  return version;
}

/** True where the schema is older than this program; throws where it is newer. */
export async function isBehind(session: Session): Promise<boolean> {
  const newest = shippedMigrations("postgres").at(-1)?.version ?? 0;
  return await schemaVersion(session, newest) < newest;
}

/** Runs each migration in its own transaction; after a crash, the next start continues. */
export async function migrate(session: Session, onMigration?: OnMigration): Promise<void> {
  const migrations = shippedMigrations("postgres");
  await session.run("SET statement_timeout = 0; SET lock_timeout = 0");
  await session.run(`SELECT ${LOCK}`);
  await session.run("CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL)");
  const before = await schemaVersion(session, migrations.at(-1)?.version ?? 0);
  for (const { version, sql, name } of migrations) {
    if (version <= before) continue;
    if (before > 0) onMigration?.(name);
    try {
      await session.run(`BEGIN; ${translateSchema(sql)};
        DELETE FROM schema_version; INSERT INTO schema_version VALUES (${version}); COMMIT`);
    } catch (error) {
      await session.run("ROLLBACK").catch(() => undefined);
      throw new StartFailure(
        `migration ${name} failed: ${(error as Error).message}`,
        { cause: error });
    }
  }
  await session.run(`SELECT ${UNLOCK}`);
}
