// Removals that happen in the end, whatever is down now: one that fails is noted in a folder and
// tried again by the clock and at the next start. Made by app/files.ts; used for what its owner, or
// its time, has said is to be gone.
import { readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { addFolder } from "#core/disk.ts";
import type { Logger } from "#core/logger.ts";
import type { Files } from "./files.ts";

export interface Removals {
  /** Never rejects. */
  remove(name: string): Promise<void>;
  /** Tries again what has failed, up to the first that fails anew. Never rejects. */
  retry(): Promise<void>;
}

interface RemovalsOptions {
  files: Pick<Files, "remove">;
  /** Holds a note for each. */
  folder: string;
  log: Logger;
}

export function createRemovals({ files, folder, log }: RemovalsOptions): Removals {
  const noteOf = (name: string): string => join(folder, encodeURIComponent(name));
  const note = async (name: string): Promise<void> => {
    try {
      await addFolder(folder);
      await writeFile(noteOf(name), "", { flush: true });
    } catch (error) {
      log.error({ err: error, file: name }, "a file that is to be removed could not be noted");
    }
  };
  return {
    remove: async (name) => {
      try {
        await files.remove(name);
      } catch (error) {
        log.warn({ err: error, file: name }, "a file is removed later");
        await note(name);
      }
    },
    retry: async () => {
      // No folder: nothing has ever failed.
      const noted = await readdir(folder).catch(() => []);
      for (const name of noted.map(decodeURIComponent)) {
        try {
          await files.remove(name);
        } catch (error) {
          return log.warn({ err: error, waiting: noted.length }, "files cannot be removed yet");
        }
        await rm(noteOf(name), { force: true });
      }
    },
  };
}
