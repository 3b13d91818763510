// The `Sql` port over one SQLite connection. Used by the writer, by search and by benchmarks.
import { createCommands, type AllCommands } from "#storage/commands.ts";
import type { Sql, Statement } from "#storage/sql.ts";
import type { Db } from "./database.ts";
import { createSearchCommands } from "./search.ts";

export const NAMES = /@(\w+)/g;
const LISTS = /json_each\(@(\w+)\)/g;

/**
 * Orders values as the text names them: binding by position costs the driver half of binding by
 * name, and arguments cost it less than an array of them. SQLite binds no arrays: lists are passed
 * as JSON.
 */
export function valuesOf(text: string): (parameters: object) => unknown[] {
  const lists = new Set([...text.matchAll(LISTS)].map(([, name]) => name));
  const named = [...text.matchAll(NAMES)].map(([, name = ""]) => ({ name, isList: lists.has(name) }));
  return (parameters) => named.map(({ name, isList }) => {
    const value = (parameters as Record<string, unknown>)[name];
    return isList ? JSON.stringify(value) : value;
  });
}

export const DIALECT: Sql["dialect"] = {
  among: (column, list) => `${column} IN (SELECT value FROM json_each(${list}))`,
  // Readers replace SQLite's own function (database.ts).
  lower: (column) => `lower(${column})`,
  newestFirst: (table) => ({
    where: `${table}.account_id = @accountId AND ${table}.id < +@before`, order: `${table}.id DESC`,
  }),
  clock: "CAST(unixepoch('subsec') * 1000000 AS INTEGER)",
  skipLocked: "",
};

/** Statements are compiled on first use: an idle server has needed few of the hundreds. */
export function createSql(db: Db): Sql {
  return {
    engine: "sqlite",
    prepare: <P extends object, Row>(text: string): Statement<P, Row> => {
      const values = valuesOf(text);
      const compile = () => db.prepare<unknown[], Row>(text.replaceAll(NAMES, "?"));
      let compiled: ReturnType<typeof compile> | null = null;
      const prepared = () => (compiled ??= compile());
      return {
        get: (parameters) => prepared().get(...values(parameters)),
        one: (parameters) => {
          const row = prepared().get(...values(parameters));
          if (row === undefined) throw new Error(`a statement returned no row: ${text}`);
          return row;
        },
        all: (parameters) => prepared().all(...values(parameters)),
        run: (parameters) => prepared().run(...values(parameters)),
        insert: (parameters) => Number(prepared().run(...values(parameters)).lastInsertRowid),
      };
    },
    dialect: DIALECT,
  };
}

/** Every command over this connection. */
export function commandsOver(db: Db): AllCommands {
  const sql = createSql(db);
  return createCommands(sql, createSearchCommands(sql));
}
