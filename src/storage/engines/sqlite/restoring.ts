// Puts what a restore has unpacked and checked in the data folder's place. A process that dies
// meanwhile leaves the old folder or, once it is next opened, all of the new one: what is to be
// moved is written down first, and whoever takes the folder's lock does what is left of it.
import {
  cpSync, existsSync, linkSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { flushAll, flushFolder, makeFolder, settleFile } from "#core/disk.ts";

const JOURNAL = "restoring.json";
const STAGING = ".restoring-";

interface Moves {
  /** The folder in the data folder that holds what comes. */
  staging: string;
  /** Ends the names of what is replaced. */
  stamp: string;
  /** What goes; what of it comes, or has come. */
  names: string[];
  coming: string[];
}

/** True while a restore is under way, and after one that died before its end. */
export const isRestoring = (dataDir: string): boolean => existsSync(join(dataDir, JOURNAL));

/** What is kept of a database goes on fitting its log. */
export const keptName = (name: string, stamp: string): string =>
  name.replace(/^(.*?)(-wal|-shm)?$/, `$1.before-restore-${stamp}$2`);

/** Throws where something is mounted, which cannot be moved aside: the folder stays as it is. */
export function refuseMounted(dataDir: string, names: string[], about = ""): void {
  const mounted = names.map((name) => join(dataDir, name))
    .find((place) => isMounted(place, dataDir));
  if (mounted === undefined) return;
  throw new Error(
    `${about}${mounted} is mounted, so it cannot be moved aside: unmount it and try again`);
}

/** A mount may be of the same disk, and a subvolume, which can be moved, counts as another. */
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

/** A folder that an image's layer has, as in a container without a volume, cannot be renamed. */
function moveAside(place: string, kept: string): void {
  try {
    renameSync(place, kept);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EXDEV") throw error;
    // Begun anew after a crash it comes to the same.
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

/** Moves what is in `staging` to its place, and what was there aside: done, it is all on disk. */
export function putInPlace(dataDir: string, staging: string, names: string[], stamp: string): void {
  const coming = names.filter((name) => existsSync(join(staging, name)));
  const moves: Moves = { staging, stamp, names, coming };
  const journal = join(dataDir, JOURNAL);
  flushAll(staging);
  writeFileSync(`${journal}.partial`, JSON.stringify(moves), { mode: 0o600 });
  settleFile(`${journal}.partial`, journal);
  finishRestore(dataDir);
}

/** Does what a restore that died has left to do; the caller has the lock. */
export function finishRestore(dataDir: string): void {
  const journal = join(dataDir, JOURNAL);
  if (existsSync(journal)) {
    const { staging, stamp, names, coming } = JSON.parse(readFileSync(journal, "utf8")) as Moves;
    for (const name of names) {
      const [place, incoming] = [join(dataDir, name), join(staging, name)];
      const hasCome = coming.includes(name) && !existsSync(incoming);
      if (hasCome) continue;
      if (existsSync(place)) {
        refuseMounted(dataDir, [name], "a restore is to be finished, but ");
        moveAside(place, join(dataDir, keptName(name, stamp)));
      }
      if (existsSync(incoming)) renameSync(incoming, place);
    }
    // What has come to its place stays there, before nobody knows any more that it was to come.
    flushFolder(dataDir);
    rmSync(journal);
    flushFolder(dataDir);
  }
  for (const left of readdirSync(dataDir).filter((name) => name.startsWith(STAGING))) {
    rmSync(join(dataDir, left), { recursive: true, force: true });
  }
}
