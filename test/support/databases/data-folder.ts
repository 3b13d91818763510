// Where tests put servers' data folders. They are in memory if the machine has room: syncing each
// commit to disk takes most of the time of a test that makes many.
import { statfsSync } from "node:fs";
import { tmpdir } from "node:os";

const MEMORY = "/dev/shm";
/** What has to be free; containers have only 64 MiB by default. */
const FREE_BYTES_MIN = 2 ** 31;

function hasRoom(): boolean {
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    return bavail * bsize >= FREE_BYTES_MIN;
  } catch {
    // No such folder: not Linux.
    return false;
  }
}

export const dataRoot = (): string => hasRoom() ? MEMORY : tmpdir();
