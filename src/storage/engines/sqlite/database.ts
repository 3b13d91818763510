// Opens the database file: pragmas, migrations, the lock that keeps two servers off one folder.
// better-sqlite3 is imported here and nowhere else; siblings take its types from this file.
import Database from "better-sqlite3";
import { chmodSync, readdirSync, readlinkSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { load as loadVectors } from "sqlite-vec";
import { isOurs, isOwned, makeFolder } from "#core/disk.ts";
import { refuseNewer, shippedMigrations, type OnMigration } from "#storage/migrations.ts";
import { finishRestore } from "./restoring.ts";

/**
 * In statements that run often, a parameter of an ORDER BY query is written `+@id`, one of a LIMIT
 * `(@rows + 0)`: SQLite inspects the values of bare parameters and plans anew at every run.
 */
export type Db = Database.Database;

const BUSY_TIMEOUT_MS = 5000;
const MIGRATION_POLL_MS = 50;
const MIGRATION_PATIENCE_MS = 2000;
/** A page written many times is checkpointed once, so checkpoints are rare (every 16 MiB). */
const WAL_PAGES_MAX = 4000;
const WRITER_CACHE_KIB = 16_384;
/** The log is truncated to this when it restarts, which an open read prevents. */
const LOG_BYTES_MAX = 64 * 2 ** 20;

export function databasePath(dataDir: string): string {
  return join(dataDir, "parley.db");
}

/** Size in bytes of a log that has outgrown its bound; null: it has not. */
export function overgrownLog(dataDir: string): number | null {
  const bytes = statSync(`${databasePath(dataDir)}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  return bytes > LOG_BYTES_MAX ? bytes : null;
}

function setPragmas(db: Db): void {
  db.pragma(`busy_timeout = ${BUSY_TIMEOUT_MS}`);
  db.pragma("foreign_keys = ON");
  db.pragma("trusted_schema = OFF");
  db.pragma("cell_size_check = ON");
}

/**
 * The connection that may write. `synchronous=FULL`: a commit that returned survives a power cut.
 * Throws when a newer program made the file, or, with `unserved`, when an older one serves it.
 */
export function openWriter(
  dataDir: string, options: { migrate: boolean | "unserved"; onMigration?: OnMigration },
): Db {
  const path = databasePath(dataDir);
  if (!databaseExists(dataDir)) makeFolder(dataDir);
  const db = new Database(path);
  if (isOwned(path)) chmodSync(path, 0o600);
  setPragmas(db);
  db.pragma("journal_mode = WAL");
  db.pragma("synchronous = FULL");
  db.pragma(`journal_size_limit = ${LOG_BYTES_MAX}`);
  db.pragma(`wal_autocheckpoint = ${WAL_PAGES_MAX}`);
  db.pragma(`cache_size = -${WRITER_CACHE_KIB}`);
  if (options.migrate === "unserved") migrateUnserved(db, dataDir, options.onMigration);
  else if (options.migrate) migrate(db, options.onMigration);
  else assertCurrent(db);
  return db;
}

/** A connection for reads on the main thread; the file must exist and be migrated. */
export function openReader(dataDir: string): Db {
  const db = new Database(databasePath(dataDir), { readonly: true, fileMustExist: true });
  setPragmas(db);
  loadVectors(db);
  // SQLite's own leaves all letters but ASCII as they are, which searches then do not find.
  db.function("lower", { deterministic: true }, (text: unknown) =>
    (typeof text === "string" ? text.toLowerCase() : text));
  assertCurrent(db);
  return db;
}

export function schemaVersion(db: Db): number {
  return db.pragma("user_version", { simple: true }) as number;
}

/** Opens any copy of the database read-only, whatever its version (backup, restore, doctor). */
export function openForInspection(path: string): Db {
  const db = new Database(path, { readonly: true, fileMustExist: true });
  setPragmas(db);
  return db;
}

/** Runs each migration in its own transaction; after a crash, the next start continues. */
function migrate(db: Db, onMigration?: OnMigration): void {
  const migrations = shippedMigrations("sqlite");
  const before = schemaVersion(db);
  refuseNewer(before, migrations.at(-1)?.version ?? 0);
  for (const migration of migrations) {
    db.transaction(() => {
      if (schemaVersion(db) >= migration.version) return;
      if (before > 0) onMigration?.(migration.name);
      db.exec(migration.sql);
      db.pragma(`user_version = ${migration.version}`);
    }).immediate();
  }
}

/**
 * Refuses while a server of an older program runs: it would not find its tables any more, nor could
 * it start again. A server that is migrating the file itself is waited for.
 */
function migrateUnserved(db: Db, dataDir: string, onMigration?: OnMigration): void {
  const newest = newestSchema();
  const version = schemaVersion(db);
  refuseNewer(version, newest);
  for (let waitedMs = 0; schemaVersion(db) < newest; waitedMs += MIGRATION_POLL_MS) {
    // The folder's holder may be about to migrate too; one that dies meanwhile releases the lock.
    const isPatient = waitedMs < MIGRATION_PATIENCE_MS || isMigrated(db, version);
    const lock = lockDataDir(dataDir);
    try {
      if (lock) migrate(db, onMigration);
    } finally {
      lock?.release();
    }
    if (lock) return;
    if (!isPatient) {
      throw new Error(`the database has schema ${version}, this program needs ${newest},`
        + " and a server of an older version is running on it: restart it with this version");
    }
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, MIGRATION_POLL_MS);
  }
}

/** Whether the version has advanced, or the file is locked for longer than a server would. */
function isMigrated(db: Db, version: number): boolean {
  try {
    db.transaction(() => undefined).immediate();
  } catch (error) {
    if (isBusy(error)) return true;
    throw error;
  }
  return schemaVersion(db) > version;
}

const newestSchema = (): number => shippedMigrations("sqlite").at(-1)?.version ?? 0;

/** Throws where a newer program made the file; there may be no file yet. */
export function assertNotNewer(dataDir: string): void {
  if (!databaseExists(dataDir)) return;
  const db = openForInspection(databasePath(dataDir));
  try {
    refuseNewer(schemaVersion(db), newestSchema());
  } finally {
    db.close();
  }
}

/** Whether the schema is the one this program's statements need. */
export const isCurrent = (db: Db): boolean => schemaVersion(db) === newestSchema();

/** Throws unless the schema is current. */
export function assertCurrent(db: Db): void {
  const newest = newestSchema();
  const version = schemaVersion(db);
  refuseNewer(version, newest);
  if (version < newest) {
    throw new Error(`the database has schema ${version}, this program needs ${newest}: start the server once,`
      + " or wait for the one that is bringing it up to date");
  }
}

/**
 * Locks a file that is used for nothing else. The lock is SQLite's own, so the operating system
 * releases it however the process ends. Null when another process has it.
 */
function holdFile(path: string): Db | null {
  isOurs(path);
  const db = new Database(path, { timeout: 0 });
  try {
    db.pragma("journal_mode = DELETE");
    db.exec("BEGIN EXCLUSIVE");
    return db;
  } catch (error) {
    db.close();
    if (isBusy(error)) return null;
    throw error;
  }
}

const LOCK = "server.lock";

/**
 * Locks the data folder for one server process; null when another has it. A restore that died is
 * finished first.
 */
export function lockDataDir(dataDir: string): { release(): void } | null {
  if (!databaseExists(dataDir)) makeFolder(dataDir);
  const db = holdFile(join(dataDir, LOCK));
  try {
    if (db) finishRestore(dataDir);
  } catch (error) {
    db?.close();
    throw error;
  }
  return db && { release: () => void db.close() };
}

/**
 * Whether a server runs on the folder; throws where the current user has no access to it. Creates
 * no file: one created by root would lock out the folder's own user.
 */
export function isServed(dataDir: string): boolean {
  if (!isOurs(dataDir) || !isOurs(join(dataDir, LOCK))) return false;
  const lock = lockDataDir(dataDir);
  lock?.release();
  return lock === null;
}

/** Prefix of the folders in which backups are staged. */
export const STAGING = ".staging-";

const stagedIn = (dataDir: string): string[] =>
  readdirSync(dataDir).filter((name) => name.startsWith(STAGING));

/** A link in the staging folder to the partly written archive, until that is complete. */
export const PACKED = "packed";
/** A link to the folder of the database's copy, when that is not in the staging folder. */
export const BESIDE = "beside";

export function removeStaged(folder: string): void {
  for (const link of [PACKED, BESIDE]) {
    try {
      rmSync(readlinkSync(join(folder, link)), { force: true, recursive: link === BESIDE });
    } catch {
      // The link was never made, or leads to a place where this user may not write.
    }
  }
  // For a folder on another disk, the hard links to its files are on that disk.
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (!entry.isDirectory()) continue;
    const beside = join(dirname(folder), entry.name, basename(folder));
    rmSync(beside, { recursive: true, force: true });
  }
  rmSync(folder, { recursive: true, force: true });
}

/**
 * Locks the folder's backups for one process, whether or not a server runs, and removes what a
 * backup that died has left; null: another process has the lock.
 */
export function lockBackups(dataDir: string): { release(): void } | null {
  const db = holdFile(join(dataDir, "backup.lock"));
  if (!db) return null;
  try {
    for (const left of stagedIn(dataDir)) removeStaged(join(dataDir, left));
  } catch (error) {
    db.close();
    throw error;
  }
  return { release: () => void db.close() };
}

/** Removes what dead backups left, so that nothing deleted stays on disk for their sake. */
export function clearBackups(dataDir: string): void {
  if (stagedIn(dataDir).length > 0) lockBackups(dataDir)?.release();
}

/** Throws where the current user has no access to the file or the folder. */
export const databaseExists = (dataDir: string): boolean =>
  isOurs(dataDir) && isOurs(databasePath(dataDir));

function sqliteCode(error: unknown): string {
  return error instanceof Database.SqliteError ? error.code : "";
}

/** True when another connection held the lock for longer than the busy timeout. */
export function isBusy(error: unknown): boolean {
  return sqliteCode(error).startsWith("SQLITE_BUSY");
}

/**
 * True when the disk, not the command, is at fault. After most such errors the state of the page
 * cache is unknown, so the writer stops for good instead of retrying.
 */
export function isDiskFailure(error: unknown): boolean {
  return /^SQLITE_(IOERR|CORRUPT|NOTADB|CANTOPEN|READONLY|PROTOCOL)/.test(sqliteCode(error));
}

/**
 * True when the disk is full, or took no more for another reason: a quota, a file size limit. The
 * transaction is rolled back completely, and can be retried.
 */
export const isDiskFull = (error: unknown): boolean =>
  /^SQLITE_(FULL|IOERR_WRITE|IOERR_SHMSIZE)$/.test(sqliteCode(error));
