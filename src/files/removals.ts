// Removals that happen in the end, whatever is down or dies: what is to go stands in the database,
// and is tried again by the clock and at the next start. Made by app/features.ts; used for what its
// owner, or its time, has said is to be gone.
import type { Logger } from "#core/logger.ts";
import type { Instant, System } from "#core/system.ts";
import type { Files } from "./files.ts";

export interface Removals {
  /** Never rejects. */
  remove(...names: string[]): Promise<void>;
  /**
   * The same for what may be on its way there, from this process or another: it is removed once
   * more when nothing can be any longer.
   */
  removeTwice(...names: string[]): Promise<void>;
  /**
   * Before a file is put: it is removed in the end, unless what names it is stored, in a
   * transaction that takes this back. Rejects where that cannot be noted.
   */
  expect(name: string): Promise<void>;
  /** Removes what is due, up to the first that fails. Never rejects. */
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

/** No file takes so long to come to what names it. */
const EXPECTED_MICROS = 60 * 60 * 1_000_000;
const ROWS_MAX = 500;

export function createRemovals({ files, store, system, log }: RemovalsOptions): Removals {
  const expect = (...names: string[]): Promise<void> =>
    store.note({ names, dueAt: system.now() + EXPECTED_MICROS });
  const remove = async (names: string[], removed: () => Promise<void>): Promise<void> => {
    if (names.length === 0) return;
    try {
      for (const name of names) await files.remove(name);
      await removed();
    } catch (error) {
      log.warn({ err: error, files: names }, "files are removed later");
      await store.note({ names, dueAt: system.now() }).catch((failure: unknown) =>
        log.error({ err: failure, files: names }, "files that are to be removed could not be noted"));
    }
  };
  return {
    remove: (...names) => remove(names, () => store.forget({ names })),
    removeTwice: (...names) => remove(names, () => expect(...names)),
    expect,
    retry: async () => {
      try {
        for (const name of await store.due(system.now(), ROWS_MAX)) {
          await files.remove(name);
          await store.forget({ names: [name] });
        }
      } catch (error) {
        log.warn({ err: error }, "files cannot be removed yet");
      }
    },
  };
}
