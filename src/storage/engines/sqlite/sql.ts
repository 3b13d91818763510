// The `Sql` port over one SQLite connection. Used by the writer, by search and by benchmarks.
import { createCommands, type AllCommands } from "#storage/commands.ts";
import type { Sql, Statement } from "#storage/sql.ts";
import type { Db } from "./database.ts";
import { createSearchCommands } from "./search.ts";

const LIST = /json_each\(@(\w+)\)/g;

/** SQLite binds no arrays: the lists a text names are handed over as JSON. */
function listsBound(text: string): (parameters: object) => object {
  const names = [...text.matchAll(LIST)].map(([, name = ""]) => name);
  if (names.length === 0) return (parameters) => parameters;
  return (parameters) => ({
    ...parameters,
    ...Object.fromEntries(names.map((name) =>
      [name, JSON.stringify((parameters as Record<string, unknown>)[name])])),
  });
}

export function createSql(db: Db): Sql {
  return {
    engine: "sqlite",
    prepare: <P extends object, Row>(text: string): Statement<P, Row> => {
      const statement = db.prepare<[object], Row>(text);
      const bound = listsBound(text);
      return {
        get: (parameters) => statement.get(bound(parameters)),
        all: (parameters) => statement.all(bound(parameters)),
        run: (parameters) => statement.run(bound(parameters)),
        insert: (parameters) => Number(statement.run(bound(parameters)).lastInsertRowid),
      };
    },
    dialect: {
      among: (column, list) => `${column} IN (SELECT value FROM json_each(${list}))`,
      clock: "CAST(unixepoch('subsec') * 1000000 AS INTEGER)",
      skipLocked: "",
    },
  };
}

/** Every command over this connection, prepared once. */
export function commandsOver(db: Db): AllCommands {
  const sql = createSql(db);
  return createCommands(sql, createSearchCommands(sql));
}
