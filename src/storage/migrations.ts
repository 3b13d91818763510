// The shipped migrations as the engines apply them: one text for all engines, except blocks for a
// single engine (`-- only sqlite` … `-- end`). Read by engines/*.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { MisconfiguredStart } from "#core/faults.ts";
import { programFile } from "#core/program.ts";
import type { Sql } from "./sql.ts";

const MIGRATIONS = programFile("src/storage/schema");

interface Migration {
  version: number;
  name: string;
  sql: string;
}

const BLOCKS = /^-- only (\w+)\n(.*?)^-- end\n/gms;

const ofEngine = (text: string, engine: Sql["engine"]): string =>
  text.replaceAll(BLOCKS, (_, owner: string, block: string) => (owner === engine ? block : ""));

/** Shipped migrations, oldest first; file `0007_x.sql` makes schema version 7. */
export function shippedMigrations(engine: Sql["engine"]): Migration[] {
  return readdirSync(MIGRATIONS)
    .filter((file) => /^\d{4}_\w+\.sql$/.test(file))
    .sort()
    .map((name) => ({
      version: Number(name.slice(0, 4)),
      name,
      sql: ofEngine(readFileSync(join(MIGRATIONS, name), "utf8"), engine),
    }));
}

/**
 * Called before each migration that updates an older program's database, because over many rows one
 * can take minutes. Not called for a new database, whose migrations take no time.
 */
export type OnMigration = (name: string) => void;

/** Refuses a database that a newer program has migrated. */
export function refuseNewer(version: number, newest: number): void {
  if (version > newest) {
    throw new MisconfiguredStart(
      `the database has schema ${version}, newer than the ${newest} this program knows: use a newer Parley,`
        + " or restore a backup from before the update",
    );
  }
}
