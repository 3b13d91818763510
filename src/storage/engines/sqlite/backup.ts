// Backup of the database file, and what tells whether a copy is sound. A copy counts only once it
// has been opened, checked page by page and audited; until then it has another name beside its
// target.
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
import { createLedgerReader } from "#storage/accounts/ledger.ts";

/** Recomputes every account from its ledger; throws where the tables are another program's. */
export async function auditDatabase(db: Db): ReturnType<typeof auditLedger> {
  assertCurrent(db);
  return auditLedger(createLedgerReader(readerOver(db, db)));
}

/** False where the tables are an older program's: the next start brings them up to date. */
export function canBeAudited(path: string): boolean {
  const db = openForInspection(path);
  try {
    return isCurrent(db);
  } finally {
    db.close();
  }
}

/** Everything wrong with a copy, in words; empty when it can be trusted. */
export async function inspectDatabase(path: string): Promise<string[]> {
  const db = openForInspection(path);
  try {
    const newest = shippedMigrations("sqlite").at(-1)?.version ?? 0;
    const version = schemaVersion(db);
    if (version === 0) return ["it is not a Parley database"];
    if (version > newest) return [`its schema ${version} is newer than this program`];
    const check = db.pragma("quick_check", { simple: true });
    if (check !== "ok") return [`the file is damaged: ${String(check)}`];
    return version === newest ? (await auditDatabase(db)).problems : [];
  } catch (error) {
    return [(error as Error).message];
  } finally {
    db.close();
  }
}

/** Copies the live database, whoever writes to it meanwhile. Throws when the copy is not sound. */
export async function backupDatabase(dataDir: string, target: string): Promise<void> {
  const partial = `${resolve(target)}.partial`;
  rmSync(partial, { force: true });
  const db = openForInspection(databasePath(dataDir));
  try {
    // What is read in a transaction stays as it was: else each commit of the server meanwhile has
    // SQLite begin the copy anew, and one of a busy server never ends.
    db.exec("BEGIN");
    schemaVersion(db);
    await db.backup(partial);
  } finally {
    db.close();
  }
  try {
    chmodSync(partial, 0o600);
    const problems = await inspectDatabase(partial);
    if (problems.length > 0) throw new Error(`the backup is not sound: ${problems.join("; ")}`);
    renameSync(partial, resolve(target));
  } finally {
    for (const suffix of ["", "-wal", "-shm"]) rmSync(partial + suffix, { force: true });
  }
}

/** More events than a log gets between two backups, and small beside what a number can hold. */
const PASSED = 10_000_000;

/**
 * Has every log go on past all positions it had given out after the backup: a client that comes
 * back with one of them is told to load the history, and no id is given twice.
 */
export function passPositions(path: string): void {
  const db = new Database(path);
  try {
    db.transaction(() => {
      for (const logs of ["accounts", "conversations", "calls"]) {
        db.prepare(`UPDATE ${logs} SET event_sequence = event_sequence + ? WHERE event_sequence > 0`)
          .run(PASSED);
      }
    })();
  } finally {
    db.close();
  }
}
