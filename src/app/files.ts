// Composition root, the part about files: where recordings and documents lie by the settings, and
// what of this server's data folder is scratch. Called by app.ts and the command line.
import { existsSync, readdirSync, realpathSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Config } from "#config/config.ts";
import { makeFolder } from "#core/disk.ts";
import type { Logger } from "#core/logger.ts";
import type { System } from "#core/system.ts";
import { KEPT, type Files } from "#files/files.ts";
import { createFolderFiles } from "#files/folder.ts";
import type { Removals } from "#files/removals.ts";
import { clearBackups } from "#storage/engines/sqlite/database.ts";

interface FilesOptions {
  config: Config;
  system: System;
  log: Logger;
}

/** Where earlier programs noted files that are to be removed. */
const REMOVALS = "removals";
/** Recordings of calls in progress, and those that wait for their place. */
export const SCRATCH = "scratch";
/** A recording goes from scratch to its place, so that it is looked for in this order. */
export const FOLDERS = [SCRATCH, ...KEPT] as const;

/** The place itself, without what goes on around it. */
export async function openPlace({ config, system, log }: FilesOptions): Promise<Files> {
  const { PARLEY_FILES_URL: place, PARLEY_DATA_DIR: dataDir } = config;
  if (place?.kind !== "s3") {
    return createFolderFiles({ root: place?.root ?? dataDir, system, log });
  }
  const { createS3Files } = await import("#files/s3.ts");
  const { PARLEY_S3_ACCESS_KEY: accessKey, PARLEY_S3_SECRET_KEY: secretKey } = config;
  return createS3Files({
    ...place, region: config.PARLEY_S3_REGION, system, log,
    accessKey: accessKey ?? "", secretKey: secretKey ?? "",
  });
}

export interface FilePlaces {
  files: Files;
  /** The data folder. */
  local: Pick<Files, "read">;
  scratch: string;
  uploadsDir: string;
  /**
   * Takes along what lies in the data folder from before PARLEY_FILES_URL was set; then removes
   * what a process that is gone was to remove.
   */
  takeAlong(removals: Pick<Removals, "remove" | "retry">): Promise<void>;
  close(): Promise<void>;
}

/** Whatever path names it: its files would be taken along onto themselves, and removed. */
function isDataFolder({ PARLEY_FILES_URL: place, PARLEY_DATA_DIR: dataDir }: Config): boolean {
  if (place?.kind === "s3") return false;
  return place === null || realpathSync(place.root) === realpathSync(dataDir);
}

export async function openFiles(options: FilesOptions): Promise<FilePlaces> {
  const { config, system, log } = options;
  const dataDir = config.PARLEY_DATA_DIR;
  const files = await openPlace(options);
  makeFolder(dataDir);
  const isLocal = isDataFolder(config);
  const local = isLocal ? files : createFolderFiles({ root: dataDir, system, log });
  const [scratch, uploadsDir] = [join(dataDir, SCRATCH), join(dataDir, "uploads")];
  // What was arriving when the last process ended belongs to nobody.
  await rm(uploadsDir, { recursive: true, force: true });
  try {
    clearBackups(dataDir);
  } catch (error) {
    // It may be another user's who made the backup.
    log.warn({ err: error }, "what a backup left could not be removed");
  }
  const kept = isLocal ? KEPT.map((name) => join(dataDir, name)) : [];
  for (const folder of [scratch, uploadsDir, ...kept]) makeFolder(folder);
  return {
    files, local, scratch, uploadsDir,
    takeAlong: async (removals) => {
      if (!isLocal) for (const folder of KEPT) await takeFolder(files, dataDir, folder, log);
      await takeNotes(join(dataDir, REMOVALS), removals);
      await removals.retry();
    },
    close: files.close,
  };
}

interface Kept {
  copied: number;
  /** Files that are where they were. */
  left: number;
  /** Where the copies are; null: PARLEY_FILES_URL names no other place. */
  place: string | null;
}

/**
 * Copies what lies in the data folder to the place that PARLEY_FILES_URL names, without what is to
 * be removed.
 */
export async function copyKept(
  options: FilesOptions, unwanted: ReadonlySet<string>,
): Promise<Kept> {
  const dataDir = options.config.PARLEY_DATA_DIR;
  const names = KEPT.flatMap((folder) =>
    filesIn(join(dataDir, folder)).map((name) => `${folder}/${name}`));
  if (isDataFolder(options.config)) return { copied: 0, left: names.length, place: null };
  const files = await openPlace(options);
  try {
    const wanted = names.filter((name) => !unwanted.has(name));
    for (const name of wanted) await files.put(name, join(dataDir, name));
    return { copied: wanted.length, left: 0, place: files.place };
  } finally {
    await files.close();
  }
}

/** Not what a disk of its own has at its root (`lost+found`), nor files on their way. */
export const filesIn = (folder: string): string[] =>
  existsSync(folder)
    ? readdirSync(folder, { withFileTypes: true }).filter((entry) => !entry.isDirectory())
      .map(({ name }) => name)
    : [];

async function takeNotes(folder: string, { remove }: Pick<Removals, "remove">): Promise<void> {
  for (const note of filesIn(folder)) {
    await remove(decodeURIComponent(note));
    await rm(join(folder, note));
  }
}

async function takeFolder(
  files: Files, dataDir: string, folder: string, log: Logger,
): Promise<void> {
  const from = join(dataDir, folder);
  const names = filesIn(from);
  for (const name of names) {
    await files.put(`${folder}/${name}`, join(from, name));
    await rm(join(from, name));
  }
  if (names.length === 0) return;
  log.info({ files: names.length, folder, to: files.place }, "files were taken along");
}
