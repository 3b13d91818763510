// Where tests put what servers write down. In memory where the machine has room for it: a disk that
// has to keep each commit takes most of the time of a test that makes many.
import { statfsSync } from "node:fs";
import { tmpdir } from "node:os";

const MEMORY = "/dev/shm";
/** Containers get 64 MiB unless told. */
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
