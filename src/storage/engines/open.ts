// Opens the storage that the settings name: a file in the data folder, or the database of
// PARLEY_DATABASE_URL, whose engine is loaded only then. Called by serve.ts, the command line and
// tests.
import type { Config } from "#config/config.ts";
import type { Storage } from "#storage/storage.ts";
import { openStorage } from "./sqlite/storage.ts";
import { startThreadWriter } from "./sqlite/writer.ts";

/** `inline`: for one piece of work, without a thread of its own. */
export async function openConfigured(
  config: Config, writing: "thread" | "inline",
): Promise<Storage> {
  const { PARLEY_DATABASE_URL: url, PARLEY_DATA_DIR: dataDir } = config;
  const writesMax = config.PARLEY_WRITES_MAX;
  if (url !== null) {
    const { openPostgres } = await import("./postgres/storage.ts");
    return openPostgres({ url, writesMax, isSmall: writing === "inline" });
  }
  return openStorage(
    dataDir, writing === "inline" ? "inline" : startThreadWriter(dataDir, writesMax));
}
