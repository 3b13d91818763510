// The `Sql` port over anything that answers translated statements: one session, or several in turn.
import type { Sql, Statement } from "#storage/sql.ts";
import { translate, withId } from "./translate.ts";

/**
 * A statement with a name, under which each session prepares it once. Without a name the server
 * plans it anew for the values of each run.
 */
interface Prepared {
  name: string | null;
  text: string;
  values(parameters: object): unknown[];
}

/** The server's answer; `changes` also counts returned rows. */
export interface Answer {
  rows: Record<string, unknown>[];
  changes: number;
}

export type Ask = (prepared: Prepared, parameters: object) => Promise<Answer>;

const known = new Map<string, Prepared>();

/** PostgreSQL cannot store NUL in text; a message from outside may contain one. */
const storable = (value: unknown): unknown =>
  (typeof value === "string" && value.includes("\0") ? value.replaceAll("\0", "\uFFFD") : value);

/**
 * Statements with optional filters, or word searches: a generic plan would read every row, where
 * the plan for the actual values reads a few.
 */
const BY_VALUES = /\) IS NULL\s+OR\b|@@/;

function prepareText(text: string): Prepared {
  const found = known.get(text);
  if (found) return found;
  const { text: translated, names } = translate(text);
  const prepared: Prepared = {
    name: BY_VALUES.test(text) ? null : `parley_${known.size + 1}`,
    text: translated,
    values: (parameters) =>
      names.map((name) => storable((parameters as Record<string, unknown>)[name])),
  };
  known.set(text, prepared);
  return prepared;
}

/** The database's clock, in microseconds since the epoch. */
const CLOCK = "CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)";

export function createSql(ask: Ask): Sql {
  return {
    engine: "postgres",
    prepare: <P extends object, Row>(text: string): Statement<P, Row> => {
      const prepared = prepareText(text);
      const first = async (parameters: P): Promise<Row | undefined> =>
        (await ask(prepared, parameters)).rows[0] as Row | undefined;
      return {
        get: first,
        one: async (parameters) => {
          const row = await first(parameters);
          if (row === undefined) throw new Error(`a statement returned no row: ${text}`);
          return row;
        },
        all: async (parameters) => (await ask(prepared, parameters)).rows as Row[],
        run: async (parameters) => ({ changes: (await ask(prepared, parameters)).changes }),
        insert: async (parameters) => {
          const [row] = (await ask(prepareText(withId(text)), parameters)).rows;
          if (!row) throw new Error(`nothing was inserted: ${text}`);
          return row.id as number;
        },
      };
    },
    dialect: {
      among: (column, list) => `${column} = ANY(${list})`,
      // The columns collate by bytes, where only A to Z have a lower case.
      lower: (column) => `lower(${column} COLLATE "default")`,
      // Ordered by the id alone, it would go through everybody's rows for those of the account.
      newestFirst: (table) => ({
        where: `(${table}.account_id, ${table}.id) > (@accountId, 0)
          AND (${table}.account_id, ${table}.id) < (@accountId, @before)`,
        order: `${table}.account_id DESC, ${table}.id DESC`,
      }),
      clock: CLOCK,
      skipLocked: "FOR UPDATE SKIP LOCKED",
    },
  };
}
