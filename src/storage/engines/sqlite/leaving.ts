// The sending end of a move to another engine: every row of a database file, read over one snapshot
// while nobody else writes. Used by ../move.ts.
import { LIMITS } from "#core/limits.ts";
import { createLedgerReader, type LedgerReader } from "#storage/accounts/ledger-reading.ts";
import type { IndexedChunk } from "#storage/search/search.ts";
import { databaseExists, openWriter, type Db } from "./database.ts";
import { readerOver } from "./reader.ts";

export interface Departure {
  tables: string[];
  columns(table: string): string[];
  /** JSON arrays of rows, with bytes written as `\x…`; each of a bounded size. */
  rows(table: string): Iterable<string>;
  /** The indexed chunks, in pieces. */
  chunks(): Iterable<IndexedChunk[]>;
  count(table: string): number;
  /** The highest id that was ever given; 0: none, or the table gives none. */
  highestId(table: string): number;
  /** Names of files that are to be removed. */
  unwanted: ReadonlySet<string>;
  ledger: LedgerReader;
  close(): void;
}

/** `message_index_state` describes an index that stays behind; the server fills the new one. */
const TABLES = `
  SELECT name FROM pragma_table_list
  WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite_%'
    AND name <> 'message_index_state' ORDER BY name`;
const CHUNKS = `
  SELECT c.id, c.knowledgebase_id AS knowledgebaseId, c.headings, c.text, d.name
  FROM chunks c JOIN documents d ON d.id = c.document_id ORDER BY c.id`;

/** PostgreSQL cannot store NUL in text, and stored text may contain one. */
function storable(value: unknown): unknown {
  if (Buffer.isBuffer(value)) return `\\x${value.toString("hex")}`;
  return typeof value === "string" ? value.replaceAll("\0", "\uFFFD") : value;
}

function* inPieces<Item>(items: Iterable<Item>, sizeOf: (item: Item) => number): Iterable<Item[]> {
  let piece: Item[] = [];
  let chars = 0;
  for (const item of items) {
    piece.push(item);
    chars += sizeOf(item);
    if (piece.length < LIMITS.moveRowsMax && chars < LIMITS.moveCharsMax) continue;
    yield piece;
    [piece, chars] = [[], 0];
  }
  if (piece.length > 0) yield piece;
}

function* jsonRows(db: Db, table: string): Iterable<string> {
  const rows = db.prepare<[], Record<string, unknown>>(`SELECT * FROM "${table}"`).iterate();
  for (const row of rows) {
    yield JSON.stringify(Object.fromEntries(
      Object.entries(row).map(([name, value]) => [name, storable(value)])));
  }
}

function* chunksOf(db: Db): Iterable<IndexedChunk> {
  type Row = Omit<IndexedChunk, "headings"> & { headings: string; name: string };
  for (const { headings, name, ...row } of db.prepare<[], Row>(CHUNKS).iterate()) {
    yield { ...row, headings: [name, ...JSON.parse(headings) as string[]] };
  }
}

function idsOf(db: Db): Departure["highestId"] {
  const given = new Map(db.prepare<[], { name: string; seq: number }>(
    "SELECT name, seq FROM sqlite_sequence").all().map(({ name, seq }) => [name, seq]));
  return (table) => {
    const columns = db.pragma(`table_info("${table}")`) as { name: string; pk: number }[];
    const keys = columns.filter(({ pk }) => pk > 0);
    const [key] = keys;
    if (!key || keys.length > 1) return given.get(table) ?? 0;
    const highest = db.prepare<[], { id: unknown }>(
      `SELECT max("${key.name}") AS id FROM "${table}"`).get()?.id;
    return Math.max(given.get(table) ?? 0, typeof highest === "number" ? highest : 0);
  };
}

/**
 * The caller holds the folder's lock. CLI commands, which need none, wait until this is closed.
 * Throws where the schema is another version's.
 */
export function openDeparture(dataDir: string): Departure {
  if (!databaseExists(dataDir)) throw new Error(`there is no database in ${dataDir}`);
  const db = openWriter(dataDir, { migrate: false });
  try {
    db.exec("BEGIN IMMEDIATE");
    const sql = readerOver(db, db);
    return {
      tables: db.prepare<[], { name: string }>(TABLES).all().map(({ name }) => name),
      columns: (table) =>
        (db.pragma(`table_info("${table}")`) as { name: string }[]).map(({ name }) => name),
      *rows(table) {
        for (const piece of inPieces(jsonRows(db, table), ({ length }) => length)) {
          yield `[${piece.join(",")}]`;
        }
      },
      chunks: () => inPieces(chunksOf(db), ({ text }) => text.length),
      count: (table) =>
        db.prepare<[], { rows: number }>(`SELECT count(*) AS rows FROM "${table}"`).get()?.rows ?? 0,
      highestId: idsOf(db),
      unwanted: new Set(db.prepare<[], { name: string }>("SELECT name FROM unwanted_files").all()
        .map(({ name }) => name)),
      // Everything here is read in one transaction already.
      ledger: createLedgerReader({ ...sql, snapshot: (read) => read(sql) }),
      close: () => {
        db.exec("ROLLBACK");
        db.close();
      },
    };
  } catch (error) {
    db.close();
    throw error;
  }
}
