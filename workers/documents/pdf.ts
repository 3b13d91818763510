// PDF files: positions of text become lines, columns, paragraphs and headings. Text only; nothing
// is drawn and nothing in the file is run.
import { readFile } from "node:fs/promises";
import {
  getDocument, InvalidPDFException, PasswordException, VerbosityLevel, type PDFPageProxy,
} from "pdfjs-dist/legacy/build/pdf.mjs";
import { BlockList, Unreadable } from "./blocks.ts";

const PAGES_MAX = 500;
const ITEMS_PER_PAGE_MAX = 20_000;
const HEADING_CHARS_MAX = 160;
/** A line this much larger than the body's text is a heading. */
const HEADING_RATIO = 1.15;
/** Bullets and icons often mean nothing in Unicode; text of which more means nothing is noise. */
const MEANINGLESS_SHARE_MAX = 0.25;

interface Item {
  text: string;
  x: number;
  y: number;
  width: number;
  size: number;
  /** Written from right to left. */
  isRtl: boolean;
}

interface Line {
  text: string;
  x: number;
  y: number;
  right: number;
  size: number;
}

async function itemsOf(page: PDFPageProxy): Promise<Item[]> {
  const { items } = await page.getTextContent({ includeMarkedContent: false });
  const found: Item[] = [];
  for (const item of items.slice(0, ITEMS_PER_PAGE_MAX)) {
    if (!("str" in item) || item.str.trim() === "") continue;
    const [, , c = 0, d = 0, x = 0, y = 0] = item.transform as number[];
    found.push({
      // Arabic letters in the forms they are drawn in become those people search by.
      text: item.str.replaceAll(/[\uFE70-\uFEFC]+/g, (letters) => letters.normalize("NFKC")),
      x, y, width: item.width, size: Math.hypot(c, d) || item.height, isRtl: item.dir === "rtl",
    });
  }
  return found;
}

/** A gap this many times the text's size separates the cells of a table. */
const CELL_GAP = 1.5;

const gapBetween = (one: Pick<Item, "x" | "width">, other: Item): number =>
  Math.max(other.x - one.x - one.width, one.x - other.x - other.width);

/** The items' text in this order, whichever way it runs. */
function join(items: Item[]): string {
  let text = "";
  let [left, right] = [Infinity, -Infinity];
  for (const item of items) {
    const gap = text === "" ? 0 : gapBetween({ x: left, width: right - left }, item);
    if (gap > item.size * CELL_GAP) text += " | ";
    else if (gap > item.size * 0.15 && !/\s$/.test(text)) text += " ";
    text += item.text;
    left = Math.min(left, item.x);
    right = Math.max(right, item.x + item.width);
  }
  return text;
}

const MIRRORED: Record<string, string> = { "(": ")", ")": "(", "[": "]", "]": "[", "«": "»", "»": "«" };

/** Signs between words of Hebrew or Arabic, which are drawn mirrored. */
const mirrored = (signs: string): string =>
  [...signs].reverse().map((sign) => MIRRORED[sign] ?? sign).join("");

/** A row from left to right as it is read from right to left, but for numbers and Latin words. */
function rightToLeft(row: Item[]): Item[] {
  const read: Item[] = [];
  for (const item of row) {
    const before = read[0];
    if (item.isRtl || !/[\p{L}\p{N}]/u.test(item.text)) {
      read.unshift(item.isRtl ? item : { ...item, text: mirrored(item.text), isRtl: true });
    } else if (before && !before.isRtl && gapBetween(before, item) <= item.size * CELL_GAP) {
      read[0] = { ...before, text: join([before, item]), width: item.x + item.width - before.x };
    } else read.unshift(item);
  }
  return read;
}

/** Items of a row from left to right, in the order they are read in. */
function inReadingOrder(row: Item[]): Item[] {
  const letters = (isRtl: boolean): number => row.filter((item) => item.isRtl === isRtl)
    .reduce((sum, { text }) => sum + text.replaceAll(/\P{L}/gu, "").length, 0);
  return letters(true) > letters(false) ? rightToLeft(row) : row;
}

/** Groups items at the same height, raised and lowered ones too; a wide gap separates cells. */
function linesOf(items: Item[]): Line[] {
  const rows: { items: Item[]; tallest: Item }[] = [];
  for (const item of [...items].sort((one, other) => other.y - one.y || one.x - other.x)) {
    const row = rows.at(-1);
    const size = Math.max(row?.tallest.size ?? 0, item.size);
    if (row && Math.abs(row.tallest.y - item.y) < size * 0.5) {
      row.items.push(item);
      if (item.size > row.tallest.size) row.tallest = item;
    } else rows.push({ items: [item], tallest: item });
  }
  return rows.map(({ items: row, tallest: { y, size } }) => {
    row.sort((one, other) => one.x - other.x);
    return {
      text: join(inReadingOrder(row)).replaceAll(/\s+/g, " ").trim(), x: (row[0] as Item).x, y, size,
      right: Math.max(...row.map(({ x, width }) => x + width)),
    };
  });
}

const GUTTER_FROM = 0.35;
const GUTTER_TO = 0.65;

/** The x at which a two-column page is divided; null for one column, and for tables. */
function gutterOf(items: Item[]): number | null {
  const left = Math.min(...items.map(({ x }) => x));
  const right = Math.max(...items.map(({ x, width }) => x + width));
  const span = right - left;
  let best: { at: number; crossing: number } | null = null;
  for (let share = GUTTER_FROM; share <= GUTTER_TO; share += 0.01) {
    const at = left + span * share;
    const crossing = items.filter(({ x, width }) => x < at && x + width > at).length;
    if (!best || crossing < best.crossing) best = { at, crossing };
  }
  if (!best || best.crossing > items.length * 0.1) return null;
  const { at } = best;
  const sides = [
    linesOf(items.filter(({ x, width }) => x + width <= at)),
    linesOf(items.filter(({ x }) => x >= at)),
  ];
  // Columns of prose fill their width; cells of a table do not.
  const isProse = sides.every((lines, side) => {
    if (lines.length < 5) return false;
    const width = side === 0 ? at - left : right - at;
    const widths = lines.map((line) => line.right - line.x).sort((one, other) => one - other);
    return (widths[Math.floor(widths.length / 2)] ?? 0) > width * 0.6;
  });
  return isProse ? at : null;
}

/** Lines in reading order: between lines that span the page, left column first, then right. */
function readingOrder(items: Item[]): Line[] {
  const gutter = items.length > 20 ? gutterOf(items) : null;
  if (gutter === null) return linesOf(items);
  const spans = ({ x, width }: Item): boolean => x < gutter && x + width > gutter;
  const across = linesOf(items.filter(spans));
  const rest = items.filter((item) => !spans(item));
  const ordered: Line[] = [];
  let top = Infinity;
  for (const line of [...across, null]) {
    const bottom = line?.y ?? -Infinity;
    const band = rest.filter(({ y }) => y < top && y >= bottom);
    ordered.push(...linesOf(band.filter(({ x }) => x < gutter)));
    ordered.push(...linesOf(band.filter(({ x }) => x >= gutter)));
    if (line) ordered.push(line);
    top = bottom;
  }
  return ordered;
}

/** The font size of most of the text. */
function bodySize(pages: Line[][]): number {
  const chars = new Map<number, number>();
  for (const { size, text } of pages.flat()) {
    const rounded = Math.round(size * 2) / 2;
    chars.set(rounded, (chars.get(rounded) ?? 0) + text.length);
  }
  return [...chars].sort((one, other) => other[1] - one[1])[0]?.[0] ?? 0;
}

/** Heading levels by font size: the largest in the document is level 1. */
function headingSizes(pages: Line[][], body: number): number[] {
  const sizes = new Set(pages.flat()
    .filter(({ size }) => size > body * HEADING_RATIO)
    .map(({ size }) => Math.round(size)));
  return [...sizes].sort((one, other) => other - one);
}

function addPage(
  list: BlockList,
  lines: Line[],
  page: number,
  { body, sizes }: { body: number; sizes: number[] },
): void {
  let paragraph = "";
  let last: Line | null = null;
  const flush = (): void => {
    list.text(paragraph, { page });
    paragraph = "";
  };
  for (const line of lines) {
    const isHeading = line.size > body * HEADING_RATIO && line.text.length <= HEADING_CHARS_MAX;
    if (isHeading) {
      flush();
      list.heading(sizes.indexOf(Math.round(line.size)) + 1, line.text, { page });
      last = null;
      continue;
    }
    const gap = last ? last.y - line.y : 0;
    const isNew = !last || gap < 0 || gap > line.size * 1.8;
    if (isNew) flush();
    const isTable = line.text.includes(" | ") || (last?.text.includes(" | ") ?? false);
    if (/\p{Ll}-$/u.test(paragraph) && /^\p{Ll}/u.test(line.text)) {
      paragraph = paragraph.slice(0, -1) + line.text;
    } else paragraph += (paragraph === "" ? "" : isTable ? "\n" : " ") + line.text;
    last = line;
  }
  flush();
}

/** True where codes of glyphs stand in the place of letters. */
function isMeaningless(pages: Line[][]): boolean {
  let [all, meaningless] = [0, 0];
  for (const { text } of pages.flat()) {
    all += text.length;
    meaningless += text.replaceAll(/[^\p{Cc}\p{Co}\p{Cn}\uFFFD]/gu, "").length;
  }
  return meaningless > all * MEANINGLESS_SHARE_MAX;
}

function reasonFor(error: unknown): Unreadable {
  if (error instanceof PasswordException) {
    return new Unreadable("The PDF is protected by a password.", { cause: error });
  }
  const isInvalid = error instanceof InvalidPDFException;
  const text = isInvalid ? "The PDF is damaged." : "The PDF could not be read.";
  return new Unreadable(text, { cause: error });
}

export async function readPdf(path: string): Promise<{ list: BlockList; pages: number }> {
  const data = new Uint8Array(await readFile(path));
  if (!Buffer.from(data.buffer, 0, Math.min(1024, data.length)).includes("%PDF-")) {
    throw new Unreadable("The file is not a PDF document.");
  }
  const task = getDocument({
    data, disableFontFace: true, useSystemFonts: false, useWasm: false,
    enableXfa: false, stopAtErrors: true, maxImageSize: 1024 * 1024,
    verbosity: VerbosityLevel.ERRORS,
  });
  try {
    const document = await task.promise;
    const count = Math.min(document.numPages, PAGES_MAX);
    const pages: Line[][] = [];
    for (let number = 1; number <= count; number += 1) {
      const page = await document.getPage(number);
      pages.push(readingOrder(await itemsOf(page)));
      page.cleanup();
    }
    if (isMeaningless(pages)) {
      throw new Unreadable(
        "The text of the PDF cannot be read, because its fonts lack a character map: export it again from the program that made it.");
    }
    const list = new BlockList();
    const body = bodySize(pages);
    const sizes = headingSizes(pages, body);
    pages.forEach((lines, index) => addPage(list, lines, index + 1, { body, sizes }));
    list.forgetHeadings();
    list.truncated ||= document.numPages > PAGES_MAX;
    if (list.blocks.length === 0) {
      throw new Unreadable("The PDF has no text layer (it is probably a scan).");
    }
    return { list, pages: count };
  } catch (error) {
    throw error instanceof Unreadable ? error : reasonFor(error);
  } finally {
    await task.destroy();
  }
}
