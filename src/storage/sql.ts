// The small port every command is written against: prepared statements with named parameters, one
// SQL text for all engines. An engine's folder implements it over its driver (engines/).

/** SQLite answers at once; an engine behind a socket answers in the order it was asked. */
export type Awaitable<T> = T | Promise<T>;

/** Parameters are named: `@name` in the text. Members the text does not name are ignored. */
export interface Statement<P extends object, Row = never> {
  get(parameters: P): Awaitable<Row | undefined>;
  /** The row of a statement that always has one: an INSERT with RETURNING, a row just written. */
  one(parameters: P): Awaitable<Row>;
  all(parameters: P): Awaitable<Row[]>;
  run(parameters: P): Awaitable<{ changes: number }>;
  /** Runs an INSERT of one row into a table with an `id`, and returns that id. */
  insert(parameters: P): Awaitable<number>;
}

export interface Sql {
  readonly engine: "sqlite" | "postgres";
  /**
   * In statements that run often, a parameter of an ORDER BY query is written `+@id`, one of a
   * LIMIT `(@rows + 0)`: SQLite inspects the values of bare parameters and plans anew at every run.
   */
  prepare<P extends object, Row = never>(text: string): Statement<P, Row>;
  /** The only texts that differ between engines. */
  readonly dialect: {
    /** The column's value is one of the list; the parameter is an array. */
    among(column: string, list: `@${string}`): string;
    /** The column's text in lower case, in every alphabet. */
    lower(column: string): string;
    /**
     * Finds the account's rows before an id, newest first, along the index of both; `table`: the
     * table's alias.
     */
    newestFirst(table: string): { where: string; order: string };
    /** The database's clock, in microseconds since the epoch. */
    readonly clock: string;
    /** Ends a SELECT whose rows are about to be changed: rows locked by others are skipped. */
    readonly skipLocked: string;
  };
}

/** Reads outside the writer. A read sees every commit that was answered before it was asked for. */
export interface Reader extends Sql {
  /**
   * Runs several reads over one snapshot, whatever is committed meanwhile. Statements are prepared
   * over the `sql` handed in (`perSession`). Snapshots queue, and accounts take turns: one taken
   * inside another never ends. `accountId`: whose it is; without one, it is nobody's.
   */
  snapshot<T>(read: (sql: Sql) => Promise<T>, accountId?: number): Promise<T>;
}

/** Prepares something once for each session that asks for it. */
export function perSession<T>(prepare: (sql: Sql) => T): (sql: Sql) => T {
  const prepared = new WeakMap<Sql, T>();
  return (sql) => {
    const known = prepared.get(sql);
    if (known !== undefined) return known;
    const fresh = prepare(sql);
    prepared.set(sql, fresh);
    return fresh;
  };
}

/**
 * A statement that may scan much of an account's data. It runs like a snapshot, on a connection
 * that no quick statement waits for.
 */
export function aside<P extends object, Row>(reader: Reader, text: string): {
  get(parameters: P): Promise<Row | undefined>;
  all(parameters: P): Promise<Row[]>;
} {
  const statement = perSession((sql) => sql.prepare<P, Row>(text));
  statement(reader);
  return {
    get: (parameters) =>
      reader.snapshot(async (sql) => statement(sql).get(parameters), accountOf(parameters)),
    all: (parameters) =>
      reader.snapshot(async (sql) => statement(sql).all(parameters), accountOf(parameters)),
  };
}

/** The account that takes a turn; undefined where none is among the parameters. */
const accountOf = ({ accountId }: { accountId?: number }): number | undefined => accountId;

/**
 * A page of a list, newest first, and the length of the list. Rows that are skipped are read from
 * the index alone, where it covers the filter. `from`: the table, with its alias in the rest.
 * `isOfAccount`: found along the index by account, among the rows before `NEWEST`; otherwise
 * `matches` also names the account.
 */
export function pagesAside<Row>(
  reader: Reader,
  { select, from, matches, isOfAccount = false }:
  { select: string; from: string; matches: string; isOfAccount?: boolean },
) {
  const table = from.split(" ").at(-1) ?? from;
  const id = `${table}.id`;
  const { where, order } = isOfAccount
    ? reader.dialect.newestFirst(table)
    : { where: "TRUE", order: `${id} DESC` };
  const own = isOfAccount ? `${table}.account_id = @accountId AND ` : "";
  return {
    list: aside<object, Row>(reader, `
      ${select} WHERE ${id} IN (
        SELECT ${id} FROM ${from} WHERE ${where} AND ${matches}
        ORDER BY ${order} LIMIT (@rows + 0) OFFSET (@offset + 0))
      ORDER BY ${id} DESC`),
    count: aside<object, { total: number }>(
      reader, `SELECT count(*) AS total FROM ${from} WHERE ${own}${matches}`),
  };
}

/** For `newestFirst` from the newest on: no id is larger. */
export const NEWEST = { before: Number.MAX_SAFE_INTEGER };

/** The record of a row; null where there is no row. */
export function orNull<Row, T>(row: Row | undefined, fromRow: (row: Row) => T): T | null {
  return row ? fromRow(row) : null;
}

/** Whether a row is there; the statement selects `1`. */
export type Exists = { readonly 1: number };

/**
 * Statements that do not need each other's results. They run in the order they stand in; an engine
 * behind a socket has them all under way at once.
 */
export function together<T extends readonly unknown[]>(
  ...asked: { [K in keyof T]: Awaitable<T[K]> }
): Awaitable<T> {
  for (const one of asked) {
    if (one instanceof Promise) return Promise.all(asked) as unknown as Promise<T>;
  }
  return asked as unknown as T;
}

/**
 * Continues with an answer, synchronously where it is there already. For steps that many commands
 * take: an `async` function around each would cost SQLite a tenth of a charge.
 */
export function chain<T, Result>(
  asked: Awaitable<T>, next: (answer: T) => Awaitable<Result>,
): Awaitable<Result> {
  return asked instanceof Promise ? asked.then(next) : next(asked);
}
