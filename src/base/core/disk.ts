// Folders and files, written so that a power cut does not undo what was reported as done. Used by
// storage, the file store, the command line and secrets.ts.
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
  ENOENT: "it does not exist", EISDIR: "it is a folder", EACCES: "permission denied",
};

/** Why a file cannot be read, in words for the person who named it. */
export function whyUnread(error: unknown): string {
  const { code = "", message } = error as NodeJS.ErrnoException;
  return WHY_UNREAD[code] ?? message;
}

/** A file that somebody wrote; Windows' editors put a byte order mark before it. */
export const readText = (file: string): string =>
  readFileSync(file, "utf8").replace(/^\uFEFF/, "");

/**
 * Makes the folder and its missing parents, readable by nobody else. Node's recursive mkdir never
 * ends where none can be made, as below /proc.
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
      ? "it is a link whose target does not exist"
      : "a file with this name exists";
    const why = there ? named : (error as Error).message;
    throw new Error(`cannot create the folder ${path}: ${why}`, { cause: error });
  }
}

/** The same for callers that must not block on the disk, as a network mount makes them. */
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
  EROFS: "the file system is read-only", EPERM: "the operation is not permitted (it may be immutable)",
};

/** The user's name in the system's list of users. */
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
 * Throws, with a sentence that names path and users, when the path exists but this process's user
 * may not read and write it. False: it does not exist.
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

/** Whether this process's user owns the path; somebody else's may be shared on purpose. */
export function isOwned(path: string): boolean {
  const user = process.geteuid?.() ?? 0;
  return user === 0 || statSync(path).uid === user;
}

/** When a folder above the path may not be entered, that folder is the one reported. */
function closedOf(path: string): { path: string; why: string } {
  try {
    const owner = nameOfUser(statSync(path).uid);
    return { path, why: `it belongs to ${owner}; run this as ${owner}, or change its owner` };
  } catch {
    return closedOf(dirname(path));
  }
}

const WHY_NO_ROOM: Partial<Record<string, string>> = {
  ENOSPC: "the disk is full", EDQUOT: "the quota is used up", EFBIG: "the file size limit is reached",
};
/** SQLITE_IOERR and SQLITE_CANTOPEN may also mean a broken disk. */
const WHY_NOT_STORED: Partial<Record<string, string>> = {
  ...WHY_CLOSED, EACCES: "permission denied",
  SQLITE_FULL: "the disk is full", SQLITE_IOERR: "input/output error",
  SQLITE_CANTOPEN: "cannot create a file there",
  SQLITE_IOERR_SHMMAP: "files there cannot be mapped, as in many network folders: use a local disk",
};

/** Node knows every code but that of a quota: `Unknown system error -122`. */
function codeOf(error: unknown): string {
  const { code = "", errno } = (error ?? {}) as NodeJS.ErrnoException;
  return errno === -systemConstants.errno.EDQUOT ? "EDQUOT" : code;
}

/** Whether the error says that there was no room for a file. */
export const hasNoRoom = (error: unknown): boolean => Object.hasOwn(WHY_NO_ROOM, codeOf(error));

/** Its message names the path, and why. */
export class NotWritten extends StartFailure {}

/** Does the work; where there is no room for what it writes, a NotWritten is thrown. */
export async function writingTo<T>(path: string, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const code = codeOf(error);
    // SQLite appends the operation that the disk refused.
    const [kind = code] = /^SQLITE_IOERR/.exec(code) ?? [];
    const why = WHY_NO_ROOM[code] ?? WHY_NOT_STORED[code] ?? WHY_NOT_STORED[kind];
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

/** Writes the file whole or not at all, readable by nobody else; an existing one stays as it is. */
export function addFile(path: string, text: string, system: Pick<System, "uuid">): void {
  const partial = `${path}.${system.uuid()}`;
  writeFileSync(partial, text, { mode: 0o600, flush: true });
  try {
    linkSync(partial, path);
  } catch (error) {
    // On file systems without hard links, two processes at once may both write it.
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") renameSync(partial, path);
  } finally {
    rmSync(partial, { force: true });
  }
  flushFolder(dirname(path));
}

/** Windows cannot flush a folder; its renames reach the disk in order. */
export function flushFolder(path: string): void {
  if (process.platform !== "win32") flush(path, "r");
}

/** Flushes the bytes and names of everything in a folder. */
export function flushAll(folder: string): void {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) flushAll(path);
    else flush(path, "r+");
  }
  flushFolder(folder);
}
