// Reads the CSV file of an import, row by row: a broken row never affects the rows after it. Called
// by import-file.ts.
import { CsvError } from "csv-parse";
import { parse } from "csv-parse/sync";
import { createReadStream } from "node:fs";
import { open } from "node:fs/promises";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { unguarded } from "#core/csv.ts";
import { LIMITS } from "#core/limits.ts";

/** `row` counts as spreadsheets do: the header is 1. Blank rows count, but are left out. */
export type CsvRow =
  | { kind: "cells"; row: number; cells: string[] }
  | { kind: "broken"; row: number; text: string };

const DELIMITERS = [",", ";", "\t", "|"] as const;
type Delimiter = (typeof DELIMITERS)[number];

export interface CsvFormat {
  encoding: "utf-8" | "utf-16le" | "utf-16be" | "windows-1252";
  delimiter: Delimiter;
}

const countOf = (text: string, wanted: string): number => text.split(wanted).length - 1;

/** Separators before a space: hand-written ones (`name, phone`), or part of a name (`Doe, Ann`). */
const SPACED = /[,;\t|] /g;

/** The most frequent separator in the header; ones before a space count only if no other does. */
function delimiterOf(header: string): Delimiter {
  const bare = header.replaceAll(/"[^"]*"/g, "");
  const [close, any] = [bare.replaceAll(SPACED, ""), bare].map((text) =>
    DELIMITERS.map((delimiter) => ({ delimiter, count: countOf(text, delimiter) }))
      .toSorted((a, b) => b.count - a.count)[0]);
  return (close?.count ? close : any)?.delimiter ?? ",";
}

/** A line before the header that tells Excel the delimiter. */
const TOLD = /^"?sep=([,;\t|])"?$/i;

function cellsOf(text: string, delimiter: string, relaxed: boolean): string[] | null {
  try {
    const [cells = []] = parse(text, {
      delimiter, relax_quotes: relaxed, relax_column_count: true, trim: true,
      record_delimiter: "\r\n",
    });
    return cells.map(unguarded);
  } catch (error) {
    if (error instanceof CsvError) return null;
    throw error;
  }
}

/** The lines of the file; lines that were given back come first. */
class Lines {
  readonly #source: AsyncIterator<string>;
  readonly #back: string[] = [];

  constructor(source: AsyncIterable<string>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  async next(): Promise<string | null> {
    const back = this.#back.shift();
    if (back !== undefined) return back;
    const read = await this.#source.next();
    return read.done ? null : read.value;
  }

  giveBack(lines: string[]): void {
    this.#back.unshift(...lines);
  }
}

const isWhole = (text: string): boolean => countOf(text, "\"") % 2 === 0;
const isTooLong = (text: string): boolean => text.length > LIMITS.csvRowCharsMax;

/**
 * Reads a quoted cell that spans lines. An unclosed quote would swallow the rows after it, so only
 * strictly valid CSV may span lines; otherwise the lines are given back.
 */
async function continued(first: string, lines: Lines, delimiter: string): Promise<string[] | null> {
  const taken: string[] = [];
  let text = first;
  while (!isWhole(text) && taken.length < LIMITS.csvRowLinesMax && !isTooLong(text)) {
    const line = await lines.next();
    if (line === null) break;
    taken.push(line);
    text += `\n${line}`;
  }
  const cells = isTooLong(text) ? null : cellsOf(text, delimiter, false);
  if (!cells) lines.giveBack(taken);
  return cells;
}

async function isUtf8(path: string, isCut: boolean): Promise<boolean> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  try {
    for await (const part of createReadStream(path)) {
      decoder.decode(part as Buffer, { stream: true });
    }
    // What was cut may end within a character.
    if (!isCut) decoder.decode();
    return true;
  } catch (error) {
    if (error instanceof TypeError) return false;
    throw error;
  }
}

/** UTF-16 has a byte order mark; anything that is not valid UTF-8 is taken for Windows-1252. */
async function encodingOf(path: string, isCut: boolean): Promise<CsvFormat["encoding"]> {
  const file = await open(path);
  const mark = Buffer.alloc(2);
  try {
    await file.read(mark);
  } finally {
    await file.close();
  }
  if (mark[0] === 0xff && mark[1] === 0xfe) return "utf-16le";
  if (mark[0] === 0xfe && mark[1] === 0xff) return "utf-16be";
  return await isUtf8(path, isCut) ? "utf-8" : "windows-1252";
}

async function* decoded(stream: AsyncIterable<Buffer>, encoding: string): AsyncGenerator<string> {
  const decoder = new TextDecoder(encoding);
  for await (const part of stream) yield decoder.decode(part, { stream: true });
  yield decoder.decode();
}

interface CsvOptions {
  /** The file is truncated: only the beginning of one. */
  isCut?: boolean;
  /** Called before the first row is returned. */
  onFormat?(format: CsvFormat): void;
  /** Only rows are counted: cells are not parsed where a row's end is clear without them. */
  isForCount?: boolean;
}

/** The first row is the header. The file is read lazily. */
export async function* readCsv(
  path: string, { isCut = false, onFormat, isForCount = false }: CsvOptions = {},
): AsyncGenerator<CsvRow> {
  const encoding = await encodingOf(path, isCut);
  const stream = createReadStream(path);
  const input = Readable.from(decoded(stream, encoding));
  const lines = new Lines(createInterface({ input, crlfDelay: Infinity }));
  try {
    let delimiter: Delimiter | null = null;
    let told: Delimiter | undefined;
    let row = 0;
    for (let line = await lines.next(); line !== null; line = await lines.next()) {
      row += 1;
      if (row === 1) {
        line = line.replace(/^\ufeff/, "");
        told = TOLD.exec(line)?.[1] as Delimiter | undefined;
        // Spreadsheets do not count this line as a row.
        if (told !== undefined) line = await lines.next() ?? "";
      }
      if (line.trim() === "") continue;
      if (delimiter === null) {
        delimiter = told ?? delimiterOf(line);
        onFormat?.({ encoding, delimiter });
      }
      if (isForCount && isWhole(line)) {
        yield { kind: "cells", row, cells: [] };
        continue;
      }
      const cells = isTooLong(line)
        ? null
        : cellsOf(line, delimiter, true) ?? await continued(line, lines, delimiter);
      if (cells) yield { kind: "cells", row, cells };
      else yield { kind: "broken", row, text: line };
    }
  } finally {
    stream.destroy();
  }
}
