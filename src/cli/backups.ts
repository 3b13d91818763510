// The commands `parley backup` and `parley restore`.
import { existsSync, statSync } from "node:fs";
import type { Config } from "#config/config.ts";
import { isFolder } from "#core/disk.ts";
import { createSystem, isoMicros } from "#core/system.ts";
import { databaseExists, lockDataDir } from "#storage/engines/sqlite/database.ts";
import { holdingsOf, isDatabase, makeArchive, restoreArchive } from "./archive.ts";
import { UsageError, type Command } from "./command.ts";
import { examineSecret, placeElsewhere } from "./doctor.ts";

/** These commands copy and restore a file; a database server has its own tools for that. */
function refuseServer(config: Config, tool: string): void {
  if (config.PARLEY_DATABASE_URL === null) return;
  throw new Error(`everything is in PostgreSQL (PARLEY_DATABASE_URL): ${tool}`);
}

/** A backup replaces the file it is written to, even /dev/stdout, and a restore reads it twice. */
function refuseStream(file: string): void {
  if (file !== "-" && (!existsSync(file) || statSync(file).isFile())) return;
  throw new Error(`${file} is not a file: backups are written to and read from a file`);
}

const backup: Command = {
  name: "backup",
  takes: "FILE [--force]",
  summary: "Write a checked copy: database, secret, unread documents, recordings",
  words: 1,
  options: { force: { type: "boolean" } },
  run: async ({ config, values, positionals: [file] }) => {
    if (file === undefined || file === "") throw new UsageError("FILE is required");
    refuseServer(config, "back it up with pg_dump --format=custom, and keep the secret and files with it");
    if (isFolder(file)) throw new Error(`${file} is a folder: give a file name`);
    refuseStream(file);
    if (existsSync(file) && values.force !== true) throw new Error(`${file} exists; --force replaces it`);
    if (!databaseExists(config.PARLEY_DATA_DIR)) throw new Error("there is no database yet");
    const { files, holdsSecret } = await makeArchive(config, file);
    const note = noteOfSecret(config, holdsSecret);
    const elsewhere = placeElsewhere(config);
    const more = elsewhere === null
      ? ""
      : ` It does not contain recordings and unread documents: they are in ${elsewhere}.`;
    return {
      value: { file, files, holds_secret: holdsSecret, files_elsewhere: elsewhere },
      text: `backed up to ${file}: ${files} files.${note}${more}`,
    };
  },
};

function noteOfSecret(config: Config, holdsSecret: boolean): string {
  if (holdsSecret) return " It contains the secret: keep it equally safe.";
  if (config.PARLEY_SECRET !== null) {
    return " It does not contain the secret: keep PARLEY_SECRET, which a restore needs.";
  }
  const { ok, detail } = examineSecret(config);
  return ok ? " It contains no secret: none is needed yet." : ` It contains no secret: ${detail}.`;
}

const restore: Command = {
  name: "restore",
  takes: "FILE [--force]",
  summary: "Replace the data folder with a backup; the server must be stopped",
  words: 1,
  options: { force: { type: "boolean" } },
  run: async ({ config, values, positionals: [file] }) => {
    if (file === undefined || file === "") throw new UsageError("FILE is required");
    refuseServer(config, "restore it with pg_restore");
    if (isFolder(file)) throw new Error(`${file} is a folder: name the backup in it`);
    refuseStream(file);
    if (!existsSync(file)) throw new Error(`${file} does not exist`);
    const dataDir = config.PARLEY_DATA_DIR;
    const lock = lockDataDir(dataDir);
    if (!lock) throw new Error("a server is running on the data folder: stop it first");
    try {
      const held = holdingsOf(dataDir);
      if (held !== null && values.force !== true) {
        throw new Error(`the data folder has ${held}; --force replaces it and keeps the old one beside it`);
      }
      const stamp = isoMicros(createSystem().now()).replaceAll(/[-:.]/g, "");
      const kept = await restoreArchive(config, file, stamp);
      const note = kept === null ? "" : `; the database it replaced is ${kept}`;
      const missing = isDatabase(file)
        ? ". It is the database alone: secret, documents and recordings are not in it"
        : "";
      return { value: { file, kept }, text: `restored ${file}${note}${missing}` };
    } finally {
      lock.release();
    }
  },
};

export const backupCommands: Command[] = [backup, restore];
