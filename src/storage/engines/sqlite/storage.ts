// The embedded storage engine as a whole: opens the file and builds every store over it. Called by
// engines/open.ts.
import type { Storage } from "#storage/storage.ts";
import type { OnMigration } from "#storage/migrations.ts";
import { storesOver } from "#storage/stores.ts";
import type { AllCommands } from "#storage/commands.ts";
import type { Writer } from "#storage/writer.ts";
import { createReader, createThreadReader, type SqliteReader } from "./reader.ts";
import { createSearchIndex } from "./search.ts";
import { createInlineWriter, startThreadWriter } from "./writer.ts";

/** `inline`: everything on the caller's thread (the CLI); else with threads (the server). */
export async function openStorage(
  dataDir: string, writing: "inline" | "thread",
  { writesMax, onMigration }: { writesMax?: number; onMigration?: OnMigration | undefined } = {},
): Promise<Storage> {
  if (writing === "inline") {
    const writer = createInlineWriter(dataDir, onMigration);
    return storageOver(createReader(dataDir), writer);
  }
  const writer = await startThreadWriter(dataDir, writesMax, onMigration);
  try {
    return storageOver(createThreadReader(dataDir), writer);
  } catch (error) {
    // Its thread would keep the process alive.
    await writer.close();
    throw error;
  }
}

/** The stores over this reader and writer. */
export const storageOver = (
  reader: SqliteReader, writer: Writer<AllCommands>, joinedAs?: number,
): Storage => ({
  databaseId: null, canRead: () => true,
  ...storesOver(reader, writer, createSearchIndex(reader), joinedAs),
});
