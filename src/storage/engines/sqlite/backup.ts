// Backs up the database file, and checks whether a copy is sound. A copy counts only once it has
// been opened, checked page by page and audited; until then it has another name beside its target.
import { chmodSync, renameSync, rmSync } from "node:fs";
import { resolve } from "node:path";
import Database from "better-sqlite3";
import { auditLedger } from "#storage/accounts/ledger-audit.ts";
import {
  assertCurrent,
  databasePath,
  isCurrent,
  openForInspection,
  schemaVersion,
  type Db,
} from "./database.ts";
import { readerOver } from "./reader.ts";
import { shippedMigrations } from "#storage/migrations.ts";
import { createLedgerReader } from "#storage/accounts/ledger-reading.ts";

/** Recomputes every account from its ledger; throws where the tables are another program's. */
export async function auditDatabase(db: Db): ReturnType<typeof auditLedger> {
  assertCurrent(db);
  return auditLedger(createLedgerReader(readerOver(db, db)));
}

/** False where the schema is an older program's: the next start migrates it. */
export function canBeAudited(path: string): boolean {
  const db = openForInspection(path);
  try {
    return isCurrent(db);
  } finally {
    db.close();
  }
}

/** All problems of a copy, in words; empty when it can be trusted. */
export async function inspectDatabase(path: string): Promise<string[]> {
  const db = openForInspection(path);
  try {
    const newest = shippedMigrations("sqlite").at(-1)?.version ?? 0;
    const version = schemaVersion(db);
    if (version === 0) return ["it is not a Parley database"];
    if (version > newest) return [`its schema ${version} is newer than this program's`];
    const check = db.pragma("quick_check", { simple: true });
    if (check !== "ok") return [`the file is damaged: ${String(check)}`];
    return version === newest ? (await auditDatabase(db)).problems : [];
  } catch (error) {
    return [(error as Error).message];
  } finally {
    db.close();
  }
}

/** Copies the live database while others may write to it. Throws when the copy is not sound. */
export async function backupDatabase(dataDir: string, target: string): Promise<void> {
  const partial = `${resolve(target)}.partial`;
  rmSync(partial, { force: true });
  const db = openForInspection(databasePath(dataDir));
  try {
    // A transaction keeps what it reads unchanged. Without one, SQLite would restart the copy at
    // each commit of the server, and on a busy server would never finish.
    db.exec("BEGIN");
    schemaVersion(db);
    await db.backup(partial);
  } finally {
    db.close();
  }
  try {
    chmodSync(partial, 0o600);
    const problems = await inspectDatabase(partial);
    if (problems.length > 0) throw new Error(`the copied database is damaged: ${problems.join("; ")}`);
    renameSync(partial, resolve(target));
  } finally {
    for (const suffix of ["", "-wal", "-shm"]) rmSync(partial + suffix, { force: true });
  }
}

/** More events than any log gets between two backups, and small compared to what a number holds. */
const PASSED = 10_000_000;

interface Position { logs: string; position: string }

/** The columns with the newest position of each log; a backup of an older schema may lack some. */
const POSITIONS = `
  SELECT m.name AS logs, c.name AS position FROM sqlite_schema m JOIN pragma_table_info(m.name) c
  WHERE m.type = 'table' AND c.name IN ('event_sequence', 'audit_number')`;

/**
 * Moves every log past all positions given out since the backup: a client that returns with one of
 * them is told to load the history, and no id is given twice.
 */
export function passPositions(path: string): void {
  const db = new Database(path);
  try {
    db.transaction(() => {
      for (const { logs, position } of db.prepare<[], Position>(POSITIONS).all()) {
        db.prepare(`UPDATE ${logs} SET ${position} = ${position} + ? WHERE ${position} > 0`)
          .run(PASSED);
      }
    })();
  } finally {
    db.close();
  }
}
