// Brings a PostgreSQL database up to this program's schema. The process that starts first migrates;
// others wait for the lock and find it done.
import { StartFailure } from "#core/faults.ts";
import { refuseNewer, shippedMigrations, type OnMigration } from "#storage/migrations.ts";
import type { Session } from "./session.ts";
import { translateSchema } from "./translate.ts";

const LOCK = "pg_advisory_lock(7303, 0)";
const UNLOCK = "pg_advisory_unlock(7303, 0)";

async function schemaVersion(session: Session): Promise<number> {
  const row = await session.sql.prepare<object, { version: number | null }>(
    "SELECT max(version) AS version FROM schema_version").get({});
  return row?.version ?? 0;
}

/** True where the schema is older than this program; throws where it is newer. */
export async function isBehind(session: Session): Promise<boolean> {
  const newest = shippedMigrations("postgres").at(-1)?.version ?? 0;
  const { made } = await session.sql.prepare<object, { made: number }>(
    "SELECT to_regclass('schema_version') IS NOT NULL AS made").one({});
  const version = made === 1 ? await schemaVersion(session) : 0;
  refuseNewer(version, newest);
  return version < newest;
}

/** Runs each migration in its own transaction; after a crash, the next start continues. */
export async function migrate(session: Session, onMigration?: OnMigration): Promise<void> {
  const migrations = shippedMigrations("postgres");
  await session.run("SET statement_timeout = 0; SET lock_timeout = 0");
  await session.run(`SELECT ${LOCK}`);
  await session.run("CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL)");
  const before = await schemaVersion(session);
  refuseNewer(before, migrations.at(-1)?.version ?? 0);
  for (const { version, sql, name } of migrations) {
    if (version <= before) continue;
    if (before > 0) onMigration?.(name);
    try {
      await session.run(`BEGIN; ${translateSchema(sql)};
        DELETE FROM schema_version; INSERT INTO schema_version VALUES (${version}); COMMIT`);
    } catch (error) {
      await session.run("ROLLBACK").catch(() => undefined);
      throw new StartFailure(
        `the database could not be brought up to date by ${name}: ${(error as Error).message}`,
        { cause: error });
    }
  }
  await session.run(`SELECT ${UNLOCK}`);
}
