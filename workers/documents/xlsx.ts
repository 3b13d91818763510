// Excel workbooks: the sheets that are shown, each under its name, its rows as those of a table.
// Sheets are read as a stream, so that a huge one costs no more memory than its longest row.
import { openArchive, referenceIn, type Archive } from "./archive.ts";
import { BlockList } from "./blocks.ts";
import { addRow, COLUMNS_MAX } from "./rows.ts";
import { cellText, readFormats, type Formats } from "./xlsx-values.ts";

const WORKBOOK = "xl/workbook.xml";
const NOT_XLSX = "The file is not a valid XLSX workbook.";
const SHEETS_MAX = 200;
/** Excel's own bound. */
const CELL_CHARS_MAX = 32_767;
/** A table's head has more than one cell; a lone one above it is a title. */
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

/** Texts the cells refer to by number. How they are pronounced is left out. */
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

/** `BC12` is in column 54, counted from 0. */
function columnOf(reference: string | undefined): number | null {
  const letters = /^[A-Z]{1,3}/.exec(reference ?? "")?.[0];
  if (!letters) return null;
  return [...letters].reduce((sum, letter) => sum * 26 + letter.charCodeAt(0) - 64, 0) - 1;
}

/** The first row with several cells names the columns of those below it. */
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

async function readSheet(
  archive: Archive, part: string, book: Book, list: BlockList,
): Promise<void> {
  const rows = rowWriter(list);
  let row: string[] = [];
  let column = -1;
  let cell = { type: "n", style: 0 };
  let value = "";
  let isValue = false;
  await archive.parse(part, {
    open: (name, { r, t, s }) => {
      if (name === "row") {
        row = [];
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
      if (name === "row") rows.add(Array.from(row, (text: string | undefined) => text ?? ""));
      else if (name === "c" && column >= 0 && column < COLUMNS_MAX) {
        row[column] = cellText(value, cell, book);
      }
      isValue = false;
    },
    isDone: () => list.truncated,
  });
  rows.end();
}

export async function readXlsx(path: string): Promise<{ list: BlockList; pages: number }> {
  const archive = await openArchive(path, { invalid: NOT_XLSX, part: WORKBOOK });
  try {
    const list = new BlockList();
    const { sheets, is1904 } = await sheetsOf(archive);
    const texts = await sharedTexts(archive);
    const book = { texts, formats: await readFormats(archive), is1904 };
    for (const { name, part } of sheets) {
      list.forgetHeadings();
      list.heading(0, name);
      await readSheet(archive, part, book, list);
    }
    return { list, pages: sheets.length };
  } finally {
    archive.close();
  }
}
