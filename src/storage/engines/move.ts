// Moves a database file into an empty PostgreSQL: every row, the search index rebuilt, the id
// sequences; compared at the end, and committed as a whole or not at all. Called by cli/move.ts.
import type { System } from "#core/system.ts";
import { auditLedger } from "#storage/accounts/ledger-audit.ts";
import type { LedgerReader } from "#storage/accounts/ledger-reading.ts";
import { openArrival, type Arrival } from "./postgres/arriving.ts";
import { ConnectionLost, stateOf } from "./postgres/session.ts";
import { openDeparture, type Departure } from "./sqlite/leaving.ts";

interface Moved {
  tables: { table: string; rows: number }[];
  accounts: number;
  /** The number of entries in the ledger. */
  entries: number;
}

interface MoveOptions {
  /** The caller holds its lock. */
  dataDir: string;
  url: string;
  secretMark: string | null;
  system: System;
  /** Reports the current step, since a move may take minutes. */
  tell(step: string): void;
  /** Copies the files beside the database, once the move can proceed; skips those to be removed. */
  takeFiles(unwanted: ReadonlySet<string>): Promise<void>;
  /** Records that the contents have moved: from then on nothing uses the file. */
  note(): void;
}

interface Books {
  accounts: string[];
  audit: Awaited<ReturnType<typeof auditLedger>>;
}

/** Every balance, with the hash of the entries it comes from, and all problems in the ledger. */
async function booksOf(ledger: LedgerReader): Promise<Books> {
  const accounts: string[] = [];
  await ledger.audit((totals, _entries, openMicros) => {
    accounts.push(JSON.stringify({ ...totals, openMicros }));
    return Promise.resolve();
  });
  return { accounts, audit: await auditLedger(ledger) };
}

/** Resolves to the tables and the number of rows sent. */
async function takeRows(
  from: Departure, to: Arrival, { system, tell }: Pick<MoveOptions, "system" | "tell">,
): Promise<Moved["tables"]> {
  const tables: Moved["tables"] = [];
  for (const table of from.tables) {
    const count = from.count(table);
    tables.push({ table, rows: count });
    if (count > 0) tell(`rows of ${table}: ${count}`);
    const columns = from.columns(table);
    for (const rows of from.rows(table)) await to.take(table, columns, rows);
  }
  tell("the search index");
  for (const chunks of from.chunks()) await to.index(chunks);
  for (const table of from.tables) await to.continueAfter(table, from.highestId(table));
  await to.buryNodes(system.now());
  return tables;
}

/** Rejects where row counts or balances differ, or the ledger has problems. */
async function compare(tables: Moved["tables"], to: Arrival, books: Books): Promise<Moved> {
  for (const { table, rows } of tables) {
    const arrived = await to.count(table);
    if (rows !== arrived) {
      throw new Error(`${rows} rows of ${table} left and ${arrived} arrived: nothing was moved`);
    }
  }
  const arrived = await booksOf(to.ledger);
  const different = books.accounts.find((account, index) => account !== arrived.accounts[index]);
  if (different !== undefined || books.accounts.length !== arrived.accounts.length) {
    throw new Error(`a balance differs after copying (${different ?? "one more"}): nothing was moved`);
  }
  const { accounts, entries, problems } = arrived.audit;
  if (problems.length > 0) throw new Error(`the copied ledger is wrong: ${problems.join("; ")}`);
  return { tables, accounts, entries };
}

/** PostgreSQL's message names one file it could not write; the rest is in a hint. */
function brokenOff(error: unknown): unknown {
  if (stateOf(error) === null && !(error instanceof ConnectionLost)) return error;
  const { message, hint } = error as Error & { hint?: string };
  return new Error(`the target database ended the move: ${message}${hint ? ` (${hint})` : ""}.`
    + " Either everything was moved or nothing: repeat the command once the database is available",
  { cause: error });
}

export async function moveDatabase(options: MoveOptions): Promise<Moved> {
  const { dataDir, url, secretMark, system, tell, takeFiles, note } = options;
  const from = openDeparture(dataDir);
  try {
    const to = await openArrival(url, system);
    try {
      tell("checking the ledger");
      const books = await booksOf(from.ledger);
      const { problems } = books.audit;
      if (problems.length > 0) {
        throw new Error(`the ledger is not correct; nothing was moved: ${problems.join("; ")}`);
      }
      await to.reserve();
      tell("recordings and documents");
      await takeFiles(from.unwanted);
      await to.begin();
      const left = await takeRows(from, to, options);
      tell("comparing both sides");
      const moved = await compare(left, to, books);
      await to.commit(secretMark, note);
      return moved;
    } catch (error) {
      throw brokenOff(error);
    } finally {
      await to.close();
    }
  } finally {
    from.close();
  }
}
