// Composition root, the part about files: where the settings put recordings and documents, and
// which folders of the data folder are scratch. Called by app.ts and the command line.
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

/** Where earlier versions noted files to be removed. */
const REMOVALS = "removals";
/** Recordings of calls in progress, and recordings waiting to be moved to their place. */
export const SCRATCH = "scratch";
/** Files are looked up in this order, because a recording moves from scratch to its place. */
export const FOLDERS = [SCRATCH, ...KEPT] as const;

/** Opens the place itself, without the folders around it. */
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
   * Moves files that were in the data folder before PARLEY_FILES_URL was set; then finishes
   * removals that a dead process left.
   */
  takeAlong(removals: Pick<Removals, "remove" | "retry">): Promise<void>;
  close(): Promise<void>;
}

/** Compared by real path: files moved onto themselves would end up removed. */
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
  // Uploads that were arriving when the last process ended belong to nobody.
  await rm(uploadsDir, { recursive: true, force: true });
  try {
    clearBackups(dataDir);
  } catch (error) {
    // The backup may have been made by another user.
    log.warn({ err: error }, "could not remove the files of an unfinished backup");
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
  /** The number of files left where they were. */
  left: number;
  /** Where the copies are; null: PARLEY_FILES_URL names no other place. */
  place: string | null;
}

/**
 * Copies the files of the data folder to the place that PARLEY_FILES_URL names, except those that
 * are to be removed.
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

/** Skips folders: what a mounted disk has at its root (`lost+found`), and files being written. */
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
  log.info({ files: names.length, folder, to: files.place }, "files were moved to the file store");
}
