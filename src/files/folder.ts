// Files in a folder: the data folder of one server, or a mount that all nodes share. A file gets
// its name by a rename, after its bytes are on disk. Opened by app/files.ts.
import { constants, createReadStream } from "node:fs";
import {
  copyFile, link, open, readdir, rename, rm, stat, type FileHandle,
} from "node:fs/promises";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import { addFolder } from "#core/disk.ts";
import type { Logger } from "#core/logger.ts";
import type { System } from "#core/system.ts";
import { DAY_MICROS } from "#core/zones.ts";
import {
  assertFileName, KEPT, within, type ByteRange, type FileContent, type Files,
} from "./files.ts";

interface FolderFilesOptions {
  root: string;
  system: System;
  log: Logger;
}

/** Never read as one of the files; each folder has one too, in case it is a disk of its own. */
const INCOMING = ".incoming";
const READ_BYTES = 256 * 1024;

const isMissing = (error: unknown): boolean => (error as { code?: string }).code === "ENOENT";

async function openIfThere(path: string): Promise<FileHandle | null> {
  try {
    return await open(path);
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

type Duplicate = (from: string, to: string) => Promise<void>;

/** A hard link is enough where the file system supports them, and both paths are on it. */
async function linkOrCopy(from: string, to: string): Promise<void> {
  try {
    await link(from, to);
  } catch (error) {
    if (isMissing(error)) throw error;
    await copyFile(from, to, constants.COPYFILE_FICLONE);
  }
}

async function flush(path: string): Promise<void> {
  const file = await open(path);
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Windows cannot flush a folder; its renames reach the disk in order. */
const flushFolder = (path: string): Promise<void> =>
  process.platform === "win32" ? Promise.resolve() : flush(path);

/** Removes files left by a put whose process died; younger files may be another node's put. */
async function sweepIncoming(
  folder: string, { system, log }: Pick<FolderFilesOptions, "system" | "log">,
): Promise<void> {
  try {
    for (const name of await readdir(folder)) {
      const { ctimeMs } = await stat(join(folder, name));
      if (ctimeMs * 1000 < system.now() - DAY_MICROS) await rm(join(folder, name), { force: true });
    }
  } catch (error) {
    if (!isMissing(error)) log.warn({ err: error }, "could not remove unfinished files");
  }
}

/** Throws EXDEV unless `incoming` is on the same file system as the target. */
async function settle(
  duplicate: Duplicate, localPath: string, incoming: string, target: string,
): Promise<void> {
  for (const path of [target, incoming]) await addFolder(dirname(path));
  try {
    await duplicate(localPath, incoming);
    await flush(incoming);
    await rename(incoming, target);
    await flushFolder(dirname(target));
  } finally {
    // Needed because renaming one hard link over another of the same file does nothing.
    await rm(incoming, { force: true });
  }
}

async function read(path: string, range: ByteRange = { first: 0, last: Infinity }) {
  const file = await openIfThere(path);
  if (!file) return null;
  const { size } = await file.stat();
  const { first: start, last: end } = within(range, size);
  if (start > end) {
    await file.close();
    return { bytes: size, body: Readable.from([]) };
  }
  // The stream closes the file. A file that grows meanwhile is read up to its size at the open.
  const body = createReadStream(path, { fd: file, start, end, highWaterMark: READ_BYTES });
  return { bytes: size, body } satisfies FileContent;
}

export function createFolderFiles(options: FolderFilesOptions): Files {
  const { root, system } = options;
  const pathOf = (name: string): string => {
    assertFileName(name);
    return join(root, name);
  };
  const incomingOf = (folder: string): string => join(root, folder, INCOMING);
  for (const folder of ["", ...KEPT]) void sweepIncoming(incomingOf(folder), options);
  return {
    place: root,
    put: async (name, localPath) => {
      const through = (folder: string, duplicate: Duplicate) =>
        settle(duplicate, localPath, join(incomingOf(folder), system.uuid()), pathOf(name));
      try {
        await through("", link);
      } catch {
        // Only the file's final disk must have room for it, and that may be neither of the two.
        await through(dirname(name), linkOrCopy);
      }
    },
    fetch: async (name, localPath) => {
      const partial = `${localPath}.part`;
      try {
        await copyFile(pathOf(name), partial, constants.COPYFILE_FICLONE);
      } catch (error) {
        if (isMissing(error)) return false;
        throw error;
      }
      await rename(partial, localPath);
      return true;
    },
    read: (name, range) => read(pathOf(name), range),
    remove: (name) => rm(pathOf(name), { force: true }),
    close: () => Promise.resolve(),
  };
}
