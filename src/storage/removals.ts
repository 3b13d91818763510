// Files that nothing refers to any more, as rows until they are removed: the transaction that drops
// the last reference writes the row, so that no crash leaves the file behind. Read by
// files/removals.ts through its port.
import type { Instant } from "#core/system.ts";
import type { Reader, Sql } from "./sql.ts";
import { writes, type WriterOf } from "./writer.ts";

interface Unwanted {
  names: string[];
  /** The file may be removed from this instant on. */
  dueAt: Instant;
}

export interface RemovalStore {
  note(args: Unwanted): Promise<void>;
  /** Called once the files are gone. */
  forget(args: { names: string[] }): Promise<void>;
  /** Names of files that are due, longest overdue first. */
  due(now: Instant, rows: number): Promise<string[]>;
}

/** Steps of a transaction that drops the reference to files, or adds one. */
export function createUnwanted(sql: Sql) {
  const note = sql.prepare(`
    INSERT INTO unwanted_files (name, due_at) VALUES (@name, @dueAt)
    ON CONFLICT (name) DO UPDATE SET due_at = excluded.due_at`);
  const forget = sql.prepare("DELETE FROM unwanted_files WHERE name = @name");
  return {
    note: async (names: readonly string[], dueAt: Instant): Promise<void> => {
      for (const name of names) await note.run({ name, dueAt });
    },
    forget: async (names: readonly string[]): Promise<void> => {
      for (const name of names) await forget.run({ name });
    },
  };
}

export function removalCommands(sql: Sql) {
  const unwanted = createUnwanted(sql);
  return {
    "removals.note": ({ names, dueAt }: Unwanted): Promise<void> => unwanted.note(names, dueAt),
    "removals.forget": ({ names }: { names: string[] }): Promise<void> => unwanted.forget(names),
  };
}

export function createRemovalStore(
  reader: Reader, writer: WriterOf<typeof removalCommands>,
): RemovalStore {
  const due = reader.prepare<object, { name: string }>(`
    SELECT name FROM unwanted_files WHERE due_at <= @now ORDER BY due_at LIMIT (@rows + 0)`);
  return {
    ...writes(writer, "removals", "note", "forget"),
    due: async (now, rows) => (await due.all({ now, rows })).map(({ name }) => name),
  };
}
