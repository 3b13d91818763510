// Folders and files that are there for good once it is said so. Used by storage, the command line
// and whoever keeps a secret.
import {
  closeSync, existsSync, fsyncSync, mkdirSync, openSync, renameSync, statSync,
} from "node:fs";
import { dirname } from "node:path";

const isFolder = (path: string): boolean =>
  statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;

/**
 * With those above it, for nobody else to read. Node's own way of making several at once goes on
 * without end where none can be made, as below /proc.
 */
export function makeFolder(path: string): void {
  if (isFolder(path)) return;
  if (!existsSync(dirname(path))) makeFolder(dirname(path));
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another process may have made it meanwhile.
    if (!isFolder(path)) throw error;
  }
}

function flush(path: string, flags: "r" | "r+"): void {
  const descriptor = openSync(path, flags);
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Gives a finished file its name: a power cut takes neither its bytes nor the name away. */
export function settleFile(partial: string, target: string): void {
  flush(partial, "r+");
  renameSync(partial, target);
  // Windows has no such thing; its renames are on disk in order.
  if (process.platform !== "win32") flush(dirname(target), "r");
}
