// Opens the storage that the settings name: a file in the data folder, or the database of
// PARLEY_DATABASE_URL, whose engine is loaded only when needed. Called by serve.ts, the command
// line and tests.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "#config/config.ts";
import { addFile, writingTo } from "#core/disk.ts";
import { MisconfiguredStart } from "#core/faults.ts";
import { loadSecret, secretMark } from "#core/secrets.ts";
import { createSystem, isoMicros, type System } from "#core/system.ts";
import type { OnMigration } from "#storage/migrations.ts";
import type { Storage } from "#storage/storage.ts";
import type { Shared } from "./postgres/facts.ts";
import { openStorage } from "./sqlite/storage.ts";

/** Written beside the database file once its contents were moved to a database server. */
const MOVED = "moved.json";

/** Using a file whose contents were moved would start a second history of the same money. */
function refuseMoved(dataDir: string): void {
  const path = join(dataDir, MOVED);
  if (!existsSync(path)) return;
  const { at } = JSON.parse(readFileSync(path, "utf8")) as { at: string };
  throw new MisconfiguredStart(`the database of ${dataDir} was moved to PostgreSQL at ${at}: set`
    + ` PARLEY_DATABASE_URL to it; to go back to the file as it was then, delete ${path}`);
}

export function noteMoved(dataDir: string, system: System): void {
  addFile(join(dataDir, MOVED), `${JSON.stringify({ at: isoMicros(system.now()) })}\n`, system);
}

/** What all nodes of a database have in common; only a server is a node. */
const sharedOf = (config: Config): Shared => ({
  secretMark: secretMark(
    loadSecret(config.PARLEY_SECRET, config.PARLEY_DATA_DIR, createSystem()), "parley database"),
  cluster: config.PARLEY_CLUSTER,
});

/** `inline`: for a single task, without a thread of its own. */
export async function openConfigured(
  config: Config, writing: "thread" | "inline", onMigration?: OnMigration,
): Promise<Storage> {
  const { PARLEY_DATABASE_URL: url, PARLEY_DATA_DIR: dataDir } = config;
  const writesMax = config.PARLEY_WRITES_MAX;
  if (url !== null) {
    const { openPostgres } = await import("./postgres/storage.ts");
    return openPostgres({
      url, writesMax, ...onMigration && { onMigration },
      ...writing === "inline" ? { isSmall: true } : { shared: sharedOf(config) },
    });
  }
  refuseMoved(dataDir);
  return writingTo(dataDir, () => openStorage(dataDir, writing, { writesMax, onMigration }));
}
