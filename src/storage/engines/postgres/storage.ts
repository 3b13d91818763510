// The PostgreSQL engine as a whole: checks the server, opens reader and writer, and builds every
// store over them. Loaded by engines/open.ts, when a URL is set.
import { LIMITS } from "#core/limits.ts";
import { createSystem, type System } from "#core/system.ts";
import type { OnMigration } from "#storage/migrations.ts";
import { NOBODY } from "#storage/nodes/nodes.ts";
import type { Storage } from "#storage/storage.ts";
import { storesOver } from "#storage/stores.ts";
import type { Shared } from "./facts.ts";
import { createReach } from "./link.ts";
import { createReader } from "./reader.ts";
import { createSearchIndex } from "./search.ts";
import { prepareDatabase } from "./server.ts";
import { createWriter } from "./writer.ts";

interface PostgresOptions {
  url: string;
  writesMax: number;
  /** For a single task: one connection for each purpose. */
  isSmall?: boolean;
  /** What the nodes of the database must agree on; absent: this process is not a node. */
  shared?: Shared;
  /** For tests that do not check durability, on a server that does not flush to disk. */
  mayForget?: boolean;
  system?: System;
  onMigration?: OnMigration;
}

/** Rejects with a StartFailure whose message is for the operator. */
export async function openPostgres(options: PostgresOptions): Promise<Storage> {
  const { shared = null, mayForget = false, onMigration } = options;
  const { system = createSystem() } = options;
  const databaseId = await prepareDatabase({
    url: options.url, system, named: "PARLEY_DATABASE_URL", shared, mayForget,
    ...onMigration && { onMigration },
  });
  const reach = createReach(system);
  const { url, writesMax, isSmall = false } = options;
  const reader = createReader({ url, system }, reach, {
    singles: isSmall ? 1 : LIMITS.databaseReaders,
    snapshots: isSmall ? 1 : LIMITS.databaseSnapshots,
  });
  const writers = isSmall ? 1 : LIMITS.databaseWriters;
  const writer = createWriter({ url, system }, reach, { writers, writesMax });
  const beats = isSmall ? null : {
    reader: createReader({ url, system }, reach, { singles: 1, snapshots: 0 }),
    writer: createWriter({ url, system }, reach, { writers: 1, writesMax: LIMITS.beatWritesMax }),
  };
  return {
    databaseId, canRead: reader.canRead,
    ...storesOver(reader, writer, createSearchIndex(reader), NOBODY, beats),
  };
}
