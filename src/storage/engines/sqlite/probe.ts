// How fast the disk under a data folder makes commits durable. Used by `parley doctor`.
import Database from "better-sqlite3";
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";

const COMMITS = 200;

/** Durable commits a second, one at a time, in a file of its own. */
export function measureCommits(dataDir: string): number {
  const folder = mkdtempSync(join(dataDir, "probe-"));
  const db = new Database(join(folder, "probe.db"));
  try {
    db.pragma("journal_mode = WAL");
    db.pragma("synchronous = FULL");
    db.exec("CREATE TABLE probe (value INTEGER) STRICT");
    const insert = db.prepare("INSERT INTO probe (value) VALUES (1)");
    const startedMs = performance.now();
    for (let count = 0; count < COMMITS; count += 1) insert.run();
    const seconds = (performance.now() - startedMs) / 1000;
    return Math.round(COMMITS / seconds);
  } finally {
    // A file that is open stays, under another name, in a network folder that it is removed from.
    db.close();
    rmSync(folder, { recursive: true, force: true });
  }
}
