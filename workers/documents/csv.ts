// Tables as text, with any column separator.
import { CsvError, parse } from "csv-parse/sync";
import { BlockList, Unreadable } from "./blocks.ts";
import { addRow, COLUMNS_MAX } from "./rows.ts";

const RECORD_CHARS_MAX = 100_000;
const SEPARATORS = [",", ";", "\t", "|"];

/** A line before the table that tells Excel the separator. */
const TOLD = /^"?sep=([,;\t|])"?\r?\n/i;

/** The separator that occurs most often in the first line. */
function separatorOf(text: string): string {
  const line = text.slice(0, RECORD_CHARS_MAX).split(/\r?\n/, 1)[0] ?? "";
  const [most = ","] = SEPARATORS.toSorted((one, other) =>
    line.split(other).length - line.split(one).length);
  return most;
}

function rowsOf(written: string): string[][] {
  const told = TOLD.exec(written);
  const text = written.slice(told?.[0].length ?? 0);
  try {
    return parse(text, {
      delimiter: told?.[1] ?? separatorOf(text), relax_column_count: true, relax_quotes: true,
      trim: true, skip_empty_lines: true, max_record_size: RECORD_CHARS_MAX,
    });
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    throw new Unreadable("The file is not a valid CSV table.", { cause: error });
  }
}

export function readCsv(text: string): BlockList {
  const list = new BlockList();
  const [names = [], ...rows] = rowsOf(text);
  if (names.length > COLUMNS_MAX) throw new Unreadable("The table has too many columns to read.");
  // The only row of a table is not a head but a row.
  for (const row of rows.length === 0 ? [names] : rows) {
    if (list.truncated) break;
    addRow(list, rows.length === 0 ? null : names, row);
  }
  return list;
}
