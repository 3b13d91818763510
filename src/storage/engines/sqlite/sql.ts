// The `Sql` port over one SQLite connection. Used by the writer, by search and by benchmarks.
import { createCommands, type AllCommands } from "#storage/commands.ts";
import type { Sql, Statement } from "#storage/sql.ts";
import type { Db } from "./database.ts";
import { createSearchCommands } from "./search.ts";

const LIST = /json_each\(@(\w+)\)/g;

/** SQLite binds no arrays: the lists a text names are handed over as JSON. */
function withLists<P extends object, Row>(
  statement: Statement<P, Row>, names: string[],
): Statement<P, Row> {
  const bound = (parameters: P): P => ({
    ...parameters,
    ...Object.fromEntries(names.map((name) =>
      [name, JSON.stringify((parameters as Record<string, unknown>)[name])])),
  });
  return {
    get: (parameters) => statement.get(bound(parameters)),
    one: (parameters) => statement.one(bound(parameters)),
    all: (parameters) => statement.all(bound(parameters)),
    run: (parameters) => statement.run(bound(parameters)),
    insert: (parameters) => statement.insert(bound(parameters)),
  };
}


/** Statements are compiled when they first run: a server at rest has needed few of the hundreds. */
export function createSql(db: Db): Sql {
  return {
    engine: "sqlite",
    prepare: <P extends object, Row>(text: string): Statement<P, Row> => {
      const compile = () => db.prepare<[object], Row>(text);
      let compiled: ReturnType<typeof compile> | null = null;
      const prepared = () => (compiled ??= compile());
      const statement: Statement<P, Row> = {
        get: (parameters) => prepared().get(parameters),
        one: (parameters) => {
          const row = prepared().get(parameters);
          if (row === undefined) throw new Error(`a statement returned no row: ${text}`);
          return row;
        },
        all: (parameters) => prepared().all(parameters),
        run: (parameters) => prepared().run(parameters),
        insert: (parameters) => Number(prepared().run(parameters).lastInsertRowid),
      };
      const lists = [...text.matchAll(LIST)].map(([, name = ""]) => name);
      return lists.length === 0 ? statement : withLists(statement, lists);
    },
    dialect: {
      among: (column, list) => `${column} IN (SELECT value FROM json_each(${list}))`,
      clock: "CAST(unixepoch('subsec') * 1000000 AS INTEGER)",
      skipLocked: "",
    },
  };
}

/** Every command over this connection. */
export function commandsOver(db: Db): AllCommands {
  const sql = createSql(db);
  return createCommands(sql, createSearchCommands(sql));
}
