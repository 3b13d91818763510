// Removals that happen eventually, whatever fails or dies: the files are listed in the database and
// retried by the clock and at the next start. Made by app/features.ts; used for files whose owner,
// or retention, says they must go.
import type { Logger } from "#core/logger.ts";
import type { Instant, System } from "#core/system.ts";
import type { Files } from "./files.ts";

export interface Removals {
  /** Removes the files, or notes them for later. Never rejects. */
  remove(...names: string[]): Promise<void>;
  /**
   * The same for files that this process or another may still be writing: they are removed once
   * more when that is no longer possible.
   */
  removeTwice(...names: string[]): Promise<void>;
  /**
   * Called before a file is put: it is removed eventually, unless the transaction that stores a
   * reference to it cancels that. Rejects when it cannot be noted.
   */
  expect(name: string): Promise<void>;
  /** Removes what is due up to the first failure, which comes last next time. Never rejects. */
  retry(): Promise<void>;
}

interface RemovalsOptions {
  files: Pick<Files, "remove">;
  store: {
    note(args: { names: string[]; dueAt: Instant }): Promise<void>;
    forget(args: { names: string[] }): Promise<void>;
    due(now: Instant, rows: number): Promise<string[]>;
  };
  system: Pick<System, "now">;
  log: Logger;
}

/** Longer than any file takes to be referred to. */
const EXPECTED_MICROS = 60 * 60 * 1_000_000;
const ROWS_MAX = 500;

export function createRemovals({ files, store, system, log }: RemovalsOptions): Removals {
  const expect = (...names: string[]): Promise<void> =>
    store.note({ names, dueAt: system.now() + EXPECTED_MICROS });
  const postpone = (...names: string[]): Promise<void> =>
    store.note({ names, dueAt: system.now() }).catch((failure: unknown) =>
      log.error({ err: failure, files: names }, "could not record which files to remove"));
  const remove = async (names: string[], removed: () => Promise<void>): Promise<void> => {
    if (names.length === 0) return;
    try {
      for (const name of names) await files.remove(name);
      await removed();
    } catch (error) {
      log.warn({ err: error, files: names }, "could not remove files; trying again later");
      await postpone(...names);
    }
  };
  return {
    remove: (...names) => remove(names, () => store.forget({ names })),
    removeTwice: (...names) => remove(names, () => expect(...names)),
    expect,
    retry: async () => {
      let name: string | undefined;
      try {
        for (name of await store.due(system.now(), ROWS_MAX)) {
          await files.remove(name);
          await store.forget({ names: [name] });
        }
      } catch (error) {
        log.warn({ err: error, file: name }, "could not remove files; trying again later");
        // It must not keep the others waiting.
        if (name !== undefined) await postpone(name);
      }
    },
  };
}
