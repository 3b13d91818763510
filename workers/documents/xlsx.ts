// Excel workbooks: the visible sheets, each under its name, with its rows read like those of a
// table; and the rows of the first such sheet, written out for an import. Sheets are streamed, so
// that a huge one needs no more memory than its longest row.
import { closeSync, openSync, writeSync } from "node:fs";
import { LIMITS } from "#core/limits.ts";
import type { SheetSource, WrittenSheet } from "#features/knowledgebases/extraction.ts";
import { openArchive, referenceIn, type Archive } from "./archive.ts";
import { BlockList, Unreadable } from "./blocks.ts";
import { addRow, COLUMNS_MAX } from "./rows.ts";
import { cellText, readFormats, type Formats } from "./xlsx-values.ts";

const WORKBOOK = "xl/workbook.xml";
const NOT_XLSX = "The file is not a valid XLSX workbook: save it as XLSX or CSV.";
const TOO_LARGE = "The workbook is too large to read.";
const SHEETS_MAX = 200;
/** Excel's own limit. */
const CELL_CHARS_MAX = 32_767;
/** A table's head has several cells; a single cell above it is a title. */
const HEAD_CELLS_MIN = 2;

interface Sheet {
  name: string;
  part: string;
}

async function sheetsOf(archive: Archive): Promise<{ sheets: Sheet[]; is1904: boolean }> {
  const relations = await archive.relations(WORKBOOK);
  const sheets: Sheet[] = [];
  let is1904 = false;
  await archive.parse(WORKBOOK, {
    open: (name, attributes) => {
      if (name === "workbookPr") is1904 = /^(1|true)$/.test(attributes.date1904 ?? "");
      if (name !== "sheet" || (attributes.state ?? "visible") !== "visible") return;
      const part = relations.get(referenceIn(attributes) ?? "")?.target;
      if (part && sheets.length < SHEETS_MAX) sheets.push({ name: attributes.name ?? "", part });
    },
  });
  return { sheets, is1904 };
}

/** The texts that cells refer to by index. Phonetic readings are left out. */
async function sharedTexts(archive: Archive): Promise<string[]> {
  const texts: string[] = [];
  let text = "";
  let isText = false;
  let isSpoken = false;
  await archive.parse("xl/sharedStrings.xml", {
    open: (name) => {
      if (name === "si") text = "";
      isText = name === "t";
      if (name === "rPh") isSpoken = true;
    },
    text: (part) => {
      if (isText && !isSpoken && text.length < CELL_CHARS_MAX) text += part;
    },
    close: (name) => {
      if (name === "si") texts.push(text.slice(0, CELL_CHARS_MAX));
      if (name === "rPh") isSpoken = false;
      isText = false;
    },
  });
  return texts;
}

/** The column of a reference, counted from 0: `BC12` is in column 54. */
function columnOf(reference: string | undefined): number | null {
  const letters = /^[A-Z]{1,3}/.exec(reference ?? "")?.[0];
  if (!letters) return null;
  return [...letters].reduce((sum, letter) => sum * 26 + letter.charCodeAt(0) - 64, 0) - 1;
}

/** The first row with several cells names the columns of the rows below it. */
function rowWriter(list: BlockList): { add(row: string[]): void; end(): void } {
  let names: string[] | null = null;
  let isAlone = false;
  return {
    add: (row) => {
      const filled = row.filter((cell) => cell !== "").length;
      if (filled === 0) return;
      if (names) addRow(list, names, row);
      else if (filled < HEAD_CELLS_MIN) addRow(list, null, row);
      isAlone = !names && filled >= HEAD_CELLS_MIN;
      if (isAlone) names = row;
    },
    end: () => {
      if (isAlone) addRow(list, null, names ?? []);
    },
  };
}

interface Book {
  texts: string[];
  formats: Formats;
  is1904: boolean;
}

interface RowReader {
  /** `number` as the workbook counts: the first row is 1. */
  add(cells: string[], number: number): void;
  /** True: the rest is not needed. */
  isDone(): boolean;
}

async function readSheet(
  archive: Archive, part: string, book: Book, reader: RowReader,
): Promise<void> {
  let row: string[] = [];
  let number = 0;
  let column = -1;
  let cell = { type: "n", style: 0 };
  let value = "";
  let isValue = false;
  await archive.parse(part, {
    open: (name, { r, t, s }) => {
      if (name === "row") {
        row = [];
        // A row without a number follows the previous one; numbers never go back.
        number = Math.max(number + 1, Number(r) || 0);
        column = -1;
      } else if (name === "c") {
        column = columnOf(r) ?? column + 1;
        cell = { type: t ?? "n", style: Number(s ?? 0) };
        value = "";
      }
      isValue = name === "v" || name === "t";
    },
    text: (part) => {
      if (isValue && value.length < CELL_CHARS_MAX) value += part;
    },
    close: (name) => {
      if (name === "row") {
        reader.add(Array.from(row, (text: string | undefined) => text ?? ""), number);
      } else if (name === "c" && column >= 0 && column < COLUMNS_MAX) {
        row[column] = cellText(value, cell, book);
      }
      isValue = false;
    },
    isDone: reader.isDone,
  });
}

async function withBook<T>(
  path: string, use: (book: Book & { archive: Archive; sheets: Sheet[] }) => Promise<T>,
): Promise<T> {
  const archive = await openArchive(path, { invalid: NOT_XLSX, part: WORKBOOK });
  try {
    const { sheets, is1904 } = await sheetsOf(archive);
    const texts = await sharedTexts(archive);
    return await use({ archive, sheets, texts, formats: await readFormats(archive), is1904 });
  } finally {
    archive.close();
  }
}

export const readXlsx = (path: string): Promise<{ list: BlockList; pages: number }> =>
  withBook(path, async ({ archive, sheets, ...book }) => {
    const list = new BlockList();
    for (const { name, part } of sheets) {
      list.forgetHeadings();
      list.heading(0, name);
      const rows = rowWriter(list);
      await readSheet(archive, part, book, { add: rows.add, isDone: () => list.truncated });
      rows.end();
    }
    return { list, pages: sheets.length };
  });

/** Writes the non-empty rows of the first visible sheet, one JSON line each. */
export const writeSheet = ({ path, to, rowsMax }: SheetSource): Promise<WrittenSheet> =>
  withBook(path, async ({ archive, sheets: [first], ...book }) => {
    if (!first) throw new Unreadable("The workbook has no visible sheet.");
    const file = openSync(to, "wx", 0o600);
    let rows = 0;
    let bytes = 0;
    const isDone = (): boolean => rows === rowsMax;
    try {
      await readSheet(archive, first.part, book, {
        add: (cells, row) => {
          if (isDone() || cells.every((cell) => cell === "")) return;
          rows += 1;
          bytes += writeSync(file, `${JSON.stringify({ row, cells })}\n`);
          // One long shared text may occur in every cell.
          if (bytes > LIMITS.sheetBytesMax) throw new Unreadable(TOO_LARGE);
        },
        isDone,
      });
    } finally {
      closeSync(file);
    }
    return { name: first.name, rows };
  });
