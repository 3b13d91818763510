// A backup: one compressed tar of everything a data folder needs: the database, the generated
// secret, documents that are not read yet, recordings; the last two only where PARLEY_FILES_URL
// names no other place. Made while the server runs, restored while it does not. The last entry
// lists the contents, so that a truncated archive is recognised.
import {
  chmodSync, closeSync, copyFileSync, existsSync, linkSync, lstatSync, mkdtempSync,
  openSync, readFileSync, readSync, rmSync, statfsSync, statSync, symlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { create, extract } from "tar";
import { filesIn, FOLDERS, SCRATCH } from "#app/files.ts";
import type { Config } from "#config/config.ts";
import { hasNoRoom, makeFolder, settleFile, writingTo } from "#core/disk.ts";
import { findSecret, secretMark } from "#core/secrets.ts";
import { backupDatabase, inspectDatabase, passPositions } from "#storage/engines/sqlite/backup.ts";
import {
  BESIDE, databasePath, lockBackups, PACKED, removeStaged, STAGING,
} from "#storage/engines/sqlite/database.ts";
import {
  isRestoring, keptName, putInPlace, refuseMounted, stageRestore,
} from "#storage/engines/sqlite/restoring.ts";

/** Files that may grow while they are packed: recordings of calls in progress. */
const GROWING = new RegExp(`^(?:${SCRATCH}|recordings)/`);
const SECRET = "secret";
const CONTENTS = "contents.json";
const FORMAT = 1;
/** One chunk is in memory unpacked; by default `tar` would read 16 MB at once. */
const READ_BYTES = 2 ** 16;

interface Contents {
  format: number;
  /** Recognises the secret that sealed the contents, without containing it. */
  secret_mark: string | null;
  /** File sizes in bytes, by path. */
  files: Record<string, number>;
}

/** Gives `work` an empty folder on the data folder's own disk, removed when it has ended. */
async function staged<T>(dataDir: string, work: (folder: string) => Promise<T>): Promise<T> {
  const lock = await writingTo(dataDir, () => lockBackups(dataDir));
  if (!lock) throw new Error("another backup of this folder is running: try again when it has finished");
  try {
    const folder = await writingTo(dataDir, () => mkdtempSync(join(dataDir, STAGING)));
    try {
      return await work(folder);
    } finally {
      removeStaged(folder);
    }
  } finally {
    lock.release();
  }
}

/** Hard-links each file, because the server may remove its own while they are packed. */
function linkFiles(dataDir: string, folder: string): void {
  for (const name of FOLDERS) {
    makeFolder(join(folder, name));
    for (const file of filesIn(join(dataDir, name))) {
      const [source, target] = [join(dataDir, name, file), join(folder, name, file)];
      try {
        if (!existsSync(target)) linkSync(source, target);
      } catch (error) {
        // The file was removed after the folder was read: so the database does not name it either.
        if ((error as NodeJS.ErrnoException).code === "ENOENT") continue;
        // The file is on another disk, or on one without hard links.
        symlinkSync(secondName(source, basename(folder)), target);
      }
    }
  }
}

/** A hard link on the file's own disk; the file itself where that has no links or is read-only. */
function secondName(source: string, staging: string): string {
  const beside = resolve(dirname(source), staging);
  const second = join(beside, basename(source));
  try {
    makeFolder(beside);
    linkSync(source, second);
    return second;
  } catch {
    return resolve(source);
  }
}

function sizesIn(folder: string): Record<string, number> {
  const paths = [basename(databasePath("")), SECRET,
    ...FOLDERS.flatMap((name) => filesIn(join(folder, name)).map((file) => `${name}/${file}`))];
  return Object.fromEntries(paths.filter((path) => existsSync(join(folder, path)))
    .map((path) => [path, statSync(join(folder, path)).size]));
}

/** The room required, relative to the size copied, because the server continues to write. */
const COPY_ROOM = 1.1;

/** The copy is made beside the backup's target when the data folder's disk lacks the room. */
async function copyDatabase(dataDir: string, folder: string, target: string): Promise<void> {
  const { bavail, bsize } = statfsSync(dataDir);
  const paths = [databasePath(dataDir), `${databasePath(dataDir)}-wal`].filter(existsSync);
  const bytes = paths.reduce((sum, path) => sum + statSync(path).size, 0);
  if (bavail * bsize > bytes * COPY_ROOM) {
    return writingTo(dataDir, () => backupDatabase(dataDir, databasePath(folder)));
  }
  await writingTo(target, async () => {
    const beside = mkdtempSync(join(dirname(target), STAGING));
    symlinkSync(beside, join(folder, BESIDE));
    await backupDatabase(dataDir, databasePath(beside));
    symlinkSync(databasePath(beside), databasePath(folder));
  });
}

interface Made {
  files: number;
  /** False: PARLEY_SECRET is set, and whoever set it keeps it. */
  holdsSecret: boolean;
}

/** Writes the backup; leaves nothing behind when it cannot be complete. */
export function makeArchive(config: Config, file: string): Promise<Made> {
  const dataDir = config.PARLEY_DATA_DIR;
  const target = resolve(file);
  return staged(dataDir, async (folder) => {
    // Linked before and after the database: each file it names existed at one of the two times.
    linkFiles(dataDir, folder);
    makeFolder(dirname(target));
    await copyDatabase(dataDir, folder, target);
    linkFiles(dataDir, folder);
    const secret = findSecret(config.PARLEY_SECRET, dataDir);
    const holdsSecret = config.PARLEY_SECRET === null && secret !== null;
    if (holdsSecret) writeFileSync(join(folder, SECRET), `${secret}\n`, { mode: 0o600 });
    const files = sizesIn(folder);
    const contents: Contents = {
      format: FORMAT, secret_mark: secret === null ? null : secretMark(secret, "parley backup"), files,
    };
    writeFileSync(join(folder, CONTENTS), JSON.stringify(contents));
    const partial = `${target}.partial`;
    symlinkSync(partial, join(folder, PACKED));
    const how = { gzip: { level: 1 }, portable: true, strict: true, mode: 0o600, follow: true };
    await writingTo(target, async () => {
      await create({ cwd: folder, file: partial, ...how }, [...Object.keys(files), CONTENTS]);
      settleFile(partial, target);
    });
    return { files: Object.keys(files).length, holdsSecret };
  });
}

function readContents(folder: string): Contents {
  const path = join(folder, CONTENTS);
  const whole = existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) as Contents : null;
  if (!whole) throw new Error("the backup is incomplete: its end is missing");
  if (whole.format !== FORMAT) throw new Error("the backup was made by a newer version: update Parley first");
  for (const [file, size] of Object.entries(whole.files)) {
    const found = join(folder, file);
    if (!existsSync(found) || (lstatSync(found).size !== size && !GROWING.test(file))) {
      throw new Error(`the backup is incomplete: ${file} is missing or cut off`);
    }
  }
  return whole;
}

async function unpack(source: string, folder: string): Promise<void> {
  try {
    await extract({
      cwd: folder, file: source, strict: true, maxReadSize: READ_BYTES, dmode: 0o700,
    });
  } catch (error) {
    if (hasNoRoom(error)) throw error;
    throw new Error(`the backup cannot be read: ${(error as Error).message}`, { cause: error });
  }
}

/** What a restore would replace, in words; null when there is nothing to replace. */
export function holdingsOf(dataDir: string): string | null {
  if (existsSync(databasePath(dataDir))) return "a database";
  if (existsSync(join(dataDir, SECRET))) return "a secret";
  return FOLDERS.find((name) => filesIn(join(dataDir, name)).length > 0) ?? null;
}

/** Older backups are a database file and nothing else. */
export function isDatabase(path: string): boolean {
  const head = Buffer.alloc(15);
  const file = openSync(path, "r");
  readSync(file, head);
  closeSync(file);
  return head.toString("latin1") === "SQLite format 3";
}

const REPLACED = [...FOLDERS, SECRET];

function assertSecret(folder: string, configured: string | null, mark: string | null): void {
  if (mark === null) return;
  if (configured !== null && secretMark(configured, "parley backup") !== mark) {
    throw new Error("PARLEY_SECRET is not the secret this backup was made with, so its encrypted "
      + "values could not be read. Set that secret, or unset PARLEY_SECRET if the backup contains "
      + "its own.");
  }
  if (configured === null && !existsSync(join(folder, SECRET))) {
    throw new Error("the backup was made with a PARLEY_SECRET that it does not contain: set the "
      + "same one and try again");
  }
}

/**
 * Puts the backup in place once all of it has been checked; the caller holds the lock. Returns
 * where the replaced database is now, null when there was none; everything else that was replaced
 * is beside it under the same suffix.
 */
export async function restoreArchive(
  config: Config, source: string, stamp: string,
): Promise<string | null> {
  const dataDir = config.PARLEY_DATA_DIR;
  const isAlone = isDatabase(source);
  const database = basename(databasePath(""));
  // The WAL belongs to the old file: it must move with it, and never meet the new one.
  const files = [`${database}-wal`, `${database}-shm`, database];
  const names = isAlone ? files : [...REPLACED, ...files];
  refuseMounted(dataDir, names);
  const folder = stageRestore(dataDir);
  try {
    if (isAlone) copyFileSync(source, join(folder, database));
    else {
      await writingTo(dataDir, () => unpack(source, folder));
      assertSecret(folder, config.PARLEY_SECRET, readContents(folder).secret_mark);
    }
    const problems = await inspectDatabase(join(folder, database));
    if (problems.length > 0) throw new Error(`the backup is corrupt: ${problems.join("; ")}`);
    passPositions(join(folder, database));
    chmodSync(join(folder, database), 0o600);
    for (const suffix of ["-wal", "-shm"]) rmSync(join(folder, database + suffix), { force: true });
    const kept = existsSync(databasePath(dataDir))
      ? join(dataDir, keptName(database, stamp))
      : null;
    putInPlace(dataDir, folder, names, stamp);
    return kept;
  } finally {
    // Once the moves are journaled, the next process to open the folder completes them.
    if (!isRestoring(dataDir)) rmSync(folder, { recursive: true, force: true });
  }
}
