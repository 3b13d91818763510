// Folders and files that are there for good once it is said so. Used by storage, the command line
// and whoever keeps a secret.
import {
  accessSync, closeSync, constants, existsSync, fsyncSync, linkSync, lstatSync, mkdirSync,
  openSync, readFileSync, readdirSync, renameSync, rmSync, statSync, writeFileSync,
} from "node:fs";
import { mkdir, stat } from "node:fs/promises";
import { constants as systemConstants } from "node:os";
import { dirname, join } from "node:path";
import { StartFailure } from "./faults.ts";
import type { System } from "./system.ts";

export const isFolder = (path: string): boolean =>
  statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;

const WHY_UNREAD: Partial<Record<string, string>> = {
  ENOENT: "it does not exist", EISDIR: "it is a folder", EACCES: "it may not be read",
};

/** What whoever named a file is told when it cannot be read, in words. */
export function whyUnread(error: unknown): string {
  const { code = "", message } = error as NodeJS.ErrnoException;
  return WHY_UNREAD[code] ?? message;
}

/** A file that somebody wrote; Windows' editors put a byte order mark before it. */
export const readText = (file: string): string =>
  readFileSync(file, "utf8").replace(/^\uFEFF/, "");

/**
 * With those above it, for nobody else to read. Node's own way of making several at once goes on
 * without end where none can be made, as below /proc.
 */
export function makeFolder(path: string): void {
  if (isFolder(path)) return;
  const above = dirname(path);
  if (above !== path && !isFolder(above)) makeFolder(above);
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another process may have made it meanwhile.
    if (isFolder(path)) return;
    const there = lstatSync(path, { throwIfNoEntry: false });
    const named = there?.isSymbolicLink() === true && !existsSync(path)
      ? "it is a link to what is not there"
      : "a file has its name";
    const why = there ? named : (error as Error).message;
    throw new Error(`the folder ${path} cannot be made: ${why}`, { cause: error });
  }
}

/** The same where nothing may wait for the disk, as a mount of the network makes one. */
export async function addFolder(path: string): Promise<void> {
  const isThere = async (folder: string): Promise<boolean> =>
    (await stat(folder).catch(() => null))?.isDirectory() ?? false;
  if (await isThere(path)) return;
  if (dirname(path) !== path) await addFolder(dirname(path));
  try {
    await mkdir(path, { mode: 0o700 });
  } catch (error) {
    if (!await isThere(path)) throw error;
  }
}

const WHY_CLOSED: Partial<Record<string, string>> = {
  EROFS: "it is on a file system that is only read", EPERM: "it is protected from any change",
};

/** As whoever reads the system's list of users knows it. */
function nameOfUser(id: number): string {
  try {
    const line = readFileSync("/etc/passwd", "utf8").split("\n")
      .find((one) => one.split(":")[2] === String(id));
    return line?.split(":")[0] ?? String(id);
  } catch {
    // No such list: the number says it too.
    return String(id);
  }
}

const me = (): string => (process.geteuid ? nameOfUser(process.geteuid()) : "this user");

/**
 * Throws, with a sentence that names path and users, where the path is there and whoever runs this
 * may not read and write it. False: it is not there.
 */
export function isOurs(path: string): boolean {
  try {
    accessSync(path, constants.R_OK | constants.W_OK);
    return true;
  } catch (error) {
    const { code = "", message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return false;
    const closed = code === "EACCES" ? closedOf(path) : { path, why: WHY_CLOSED[code] ?? message };
    throw new Error(`${me()} cannot read and write ${closed.path}: ${closed.why}`, { cause: error });
  }
}

/** Whether whoever runs this says who else may use it; another's may be shared on purpose. */
export function isOwned(path: string): boolean {
  const user = process.geteuid?.() ?? 0;
  return user === 0 || statSync(path).uid === user;
}

/** What above a path may not be entered is what is closed. */
function closedOf(path: string): { path: string; why: string } {
  try {
    const owner = nameOfUser(statSync(path).uid);
    return { path, why: `it is ${owner}'s; run this as ${owner}, or give the folder away` };
  } catch {
    return closedOf(dirname(path));
  }
}

const WHY_NO_ROOM: Partial<Record<string, string>> = {
  ENOSPC: "the disk is full", EDQUOT: "the quota is used up", EFBIG: "a file may not be so large",
};
/** A database does not tell the last two from a disk that is broken. */
const WHY_NOT_STORED: Partial<Record<string, string>> = {
  ...WHY_CLOSED, EACCES: "it may not be written",
  SQLITE_FULL: "the disk is full", SQLITE_IOERR: "the disk refused it",
  SQLITE_CANTOPEN: "no file can be made there",
};

/** Node knows every code but that of a quota: `Unknown system error -122`. */
function codeOf(error: unknown): string {
  const { code = "", errno } = (error ?? {}) as NodeJS.ErrnoException;
  return errno === -systemConstants.errno.EDQUOT ? "EDQUOT" : code;
}

/** There was no room for a file. */
export const hasNoRoom = (error: unknown): boolean => Object.hasOwn(WHY_NO_ROOM, codeOf(error));

/** Its message names the path, and why. */
export class NotWritten extends StartFailure {}

/** Does the work; where there is no room for what it writes, a NotWritten is thrown. */
export async function writingTo<T>(path: string, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    // SQLite says behind it at what the disk refused it.
    const code = codeOf(error).replace(/(?<=^SQLITE_IOERR)_.*/, "");
    const why = WHY_NO_ROOM[code] ?? WHY_NOT_STORED[code];
    if (why === undefined) throw error;
    throw new NotWritten(`${path} cannot be written: ${why}`, { cause: error });
  }
}

function flush(path: string, flags: "r" | "r+"): void {
  const descriptor = openSync(path, flags);
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Gives a finished file its name: a power cut takes neither its bytes nor the name away. */
export function settleFile(partial: string, target: string): void {
  flush(partial, "r+");
  renameSync(partial, target);
  flushFolder(dirname(target));
}

/** Makes it whole or not at all, for nobody else to read; leaves one that is there as it is. */
export function addFile(path: string, text: string, system: Pick<System, "uuid">): void {
  const partial = `${path}.${system.uuid()}`;
  writeFileSync(partial, text, { mode: 0o600, flush: true });
  try {
    linkSync(partial, path);
  } catch (error) {
    // Where files have one name only, two processes at once may both make it.
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") renameSync(partial, path);
  } finally {
    rmSync(partial, { force: true });
  }
  flushFolder(dirname(path));
}

/** Windows has no such thing; its renames are on disk in order. */
export function flushFolder(path: string): void {
  if (process.platform !== "win32") flush(path, "r");
}

/** The bytes and names of all that is in a folder. */
export function flushAll(folder: string): void {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) flushAll(path);
    else flush(path, "r+");
  }
  flushFolder(folder);
}
