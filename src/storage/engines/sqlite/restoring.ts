// Replaces the contents of the data folder with what a restore has unpacked and checked. If the
// process dies midway, the folder is either the old one or, once next opened, all of the new one:
// the moves are journaled first, and the next process to lock the folder completes them.
import {
  cpSync, existsSync, linkSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { flushAll, flushFolder, makeFolder, settleFile } from "#core/disk.ts";

const JOURNAL = "restoring.json";
const STAGING = ".restoring-";

interface Moves {
  /** The folder inside the data folder that holds the new contents. */
  staging: string;
  /** Suffix for the names of what is replaced. */
  stamp: string;
  /** The names to replace, and those of them that have new contents. */
  names: string[];
  coming: string[];
}

/** True while a restore is under way, and after one that died before its end. */
export const isRestoring = (dataDir: string): boolean => existsSync(join(dataDir, JOURNAL));

/** A database kept under a new name still matches its WAL files. */
export const keptName = (name: string, stamp: string): string =>
  name.replace(/^(.*?)(-wal|-shm)?$/, `$1.before-restore-${stamp}$2`);

/** Throws where a name is a mount point, which cannot be moved aside: the folder stays as it is. */
export function refuseMounted(dataDir: string, names: string[], about = ""): void {
  const mounted = names.map((name) => join(dataDir, name))
    .find((place) => isMounted(place, dataDir));
  if (mounted === undefined) return;
  throw new Error(
    `${about}${mounted} is mounted, so it cannot be moved aside: unmount it and try again`);
}

/**
 * Device numbers do not tell: a mount may be on the same disk, and a subvolume, which can be moved,
 * counts as another.
 */
function isMounted(place: string, dataDir: string): boolean {
  const second = join(dataDir, `${STAGING}link`);
  try {
    linkSync(place, second);
    rmSync(second);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EXDEV";
  }
}

/** A folder from an image's layer, as in a container without a volume, cannot be renamed. */
function moveAside(place: string, kept: string): void {
  try {
    renameSync(place, kept);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EXDEV") throw error;
    // Starting this over after a crash has the same result.
    cpSync(place, kept, { recursive: true });
    flushAll(kept);
    rmSync(place, { recursive: true });
  }
}

/** An empty folder on the data folder's own disk, to unpack in; the caller has the lock. */
export function stageRestore(dataDir: string): string {
  makeFolder(dataDir);
  return mkdtempSync(join(dataDir, STAGING));
}

/** Moves the contents of `staging` into place and the old ones aside; all is on disk on return. */
export function putInPlace(dataDir: string, staging: string, names: string[], stamp: string): void {
  const coming = names.filter((name) => existsSync(join(staging, name)));
  const moves: Moves = { staging, stamp, names, coming };
  const journal = join(dataDir, JOURNAL);
  flushAll(staging);
  writeFileSync(`${journal}.partial`, JSON.stringify(moves), { mode: 0o600 });
  settleFile(`${journal}.partial`, journal);
  finishRestore(dataDir);
}

/** Completes a restore that died; the caller holds the lock. */
export function finishRestore(dataDir: string): void {
  const journal = join(dataDir, JOURNAL);
  if (existsSync(journal)) {
    const { staging, stamp, names, coming } = JSON.parse(readFileSync(journal, "utf8")) as Moves;
    for (const name of names) {
      const [place, incoming] = [join(dataDir, name), join(staging, name)];
      const hasCome = coming.includes(name) && !existsSync(incoming);
      if (hasCome) continue;
      if (existsSync(place)) {
        refuseMounted(dataDir, [name], "an interrupted restore cannot be finished: ");
        moveAside(place, join(dataDir, keptName(name, stamp)));
      }
      if (existsSync(incoming)) renameSync(incoming, place);
    }
    // The moves reach the disk before the journal that lists them is removed.
    flushFolder(dataDir);
    rmSync(journal);
    flushFolder(dataDir);
  }
  for (const left of readdirSync(dataDir).filter((name) => name.startsWith(STAGING))) {
    rmSync(join(dataDir, left), { recursive: true, force: true });
  }
}
