// What a command does before it reads a data folder.
import { lockDataDir } from "#storage/engines/sqlite/database.ts";
import { isRestoring } from "#storage/engines/sqlite/restoring.ts";

/**
 * Completes a restore first: no command may read a folder that is half of one backup and half of
 * another.
 */
export function settleRestore(dataDir: string): void {
  if (!isRestoring(dataDir)) return;
  const lock = lockDataDir(dataDir);
  if (!lock) throw new Error("a restore of the data folder is in progress: try again when it has finished");
  lock.release();
}
