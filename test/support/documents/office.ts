// Workbooks and presentations for tests, as Excel and PowerPoint write them, and hostile ones.
import { zip } from "./documents.ts";

const xml = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
const RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
const MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";

const relations = (rows: [id: string, type: string, target: string][]): string =>
  `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">${
    rows.map(([id, type, target]) =>
      `<Relationship Id="${id}" Type="${RELATIONS}/${type}" Target="${target}"/>`).join("")
  }</Relationships>`;

const archive = (parts: Record<string, string | Buffer>): Buffer =>
  zip(Object.entries(parts).map(([name, data]) => ({ name, data: Buffer.from(data as string) })));

/**
 * `style`: 1 a date, 2 a percentage, 3 a postcode, 4 a number behind a +, 5 and 6 a duration, 7 an
 * amount. Texts go where Excel puts them, shared by number.
 */
export type Cell = string | number | { value: number; style: 1 | 2 | 3 | 4 | 5 | 6 | 7 } | null;
export interface Sheet {
  name: string;
  isHidden?: boolean;
  rows: Cell[][];
}

const STYLES = `<styleSheet xmlns="${MAIN}"><numFmts count="5">
  <numFmt numFmtId="164" formatCode="[Red]dd/mm/yyyy"/><numFmt numFmtId="165" formatCode="00000"/>
  <numFmt numFmtId="166" formatCode="\\+## 000\\ 0;&quot;none&quot;"/>
  <numFmt numFmtId="167" formatCode="[HH]:MM"/>
  <numFmt numFmtId="168" formatCode="_-* #,##0.00\\ _R_S_D_-"/></numFmts>
  <cellStyleXfs><xf numFmtId="14"/></cellStyleXfs>
  <cellXfs><xf numFmtId="0"/><xf numFmtId="164"/><xf numFmtId="10"/>
  <xf numFmtId="165"/><xf numFmtId="166"/>
  <xf numFmtId="46"/><xf numFmtId="167"/><xf numFmtId="168"/></cellXfs></styleSheet>`;

export function makeXlsx(sheets: Sheet[]): Buffer {
  const texts: string[] = [];
  const cellXml = (cell: Cell, column: number, row: number): string => {
    const r = `${String.fromCharCode(65 + column)}${row + 1}`;
    if (cell === null) return "";
    if (typeof cell === "string") return `<c r="${r}" t="s"><v>${texts.push(cell) - 1}</v></c>`;
    const { value, style } = typeof cell === "number" ? { value: cell, style: 0 } : cell;
    return `<c r="${r}" s="${style}"><v>${value}</v></c>`;
  };
  const parts = Object.fromEntries(sheets.map(({ rows }, at) => {
    const body = rows.map((cells, row) =>
      `<row r="${row + 1}">${cells.map((cell, column) => cellXml(cell, column, row)).join("")}</row>`);
    return [`xl/worksheets/sheet${at + 1}.xml`, sheetAround(body.join(""))];
  }));
  const list = sheets.map(({ name, isHidden }, at) =>
    `<sheet name="${xml(name)}" sheetId="${at + 1}" r:id="r${at}"${isHidden ? ' state="hidden"' : ""}/>`);
  return archive({
    "xl/workbook.xml": `<workbook xmlns="${MAIN}" xmlns:r="${RELATIONS}"><sheets>${list.join("")}</sheets></workbook>`,
    "xl/_rels/workbook.xml.rels": relations(sheets.map((_, at) =>
      [`r${at}`, "worksheet", `worksheets/sheet${at + 1}.xml`])),
    "xl/styles.xml": STYLES,
    "xl/sharedStrings.xml": `<sst xmlns="${MAIN}">${texts.map((text) =>
      `<si><r><t>${xml(text)}</t></r><rPh><t>spoken</t></rPh></si>`).join("")}</sst>`,
    ...parts,
  });
}

const sheetAround = (rows: string): string =>
  `<worksheet xmlns="${MAIN}"><sheetData>${rows}</sheetData></worksheet>`;

/** A workbook of one sheet with these rows. */
export const xlsxAround = (rows: string, sharedStrings = "<sst/>"): Buffer => archive({
  "xl/workbook.xml": `<workbook xmlns:r="${RELATIONS}"><sheets><sheet name="A" r:id="r0"/></sheets></workbook>`,
  "xl/_rels/workbook.xml.rels": relations([["r0", "worksheet", "worksheets/sheet1.xml"]]),
  "xl/sharedStrings.xml": sharedStrings,
  "xl/worksheets/sheet1.xml": sheetAround(rows),
});

export interface Slide {
  title?: string;
  texts?: string[];
  table?: string[][];
  notes?: string;
  isHidden?: boolean;
}

const paragraph = (text: string): string => `<a:p><a:r><a:t>${xml(text)}</a:t></a:r></a:p>`;
const shape = (type: string, text: string): string =>
  `<p:sp><p:nvSpPr><p:nvPr><p:ph type="${type}"/></p:nvPr></p:nvSpPr><p:txBody>${paragraph(text)}</p:txBody></p:sp>`;

function slideXml({ title, texts = [], table, isHidden }: Slide, number: number): string {
  const rows = (table ?? []).map((row) =>
    `<a:tr>${row.map((cell) => `<a:tc><a:txBody>${paragraph(cell)}</a:txBody></a:tc>`).join("")}</a:tr>`);
  return `<p:sld xmlns:p="p" xmlns:a="a"${isHidden ? ' show="0"' : ""}><p:cSld><p:spTree>
    ${shape("sldNum", String(number))}${texts.map((text) => shape("body", text)).join("")}
    ${table ? `<p:graphicFrame><a:tbl>${rows.join("")}</a:tbl></p:graphicFrame>` : ""}
    ${title === undefined ? "" : shape("title", title)}</p:spTree></p:cSld></p:sld>`;
}

/** Slides lie in the archive in another order than they are shown in, as after moving some. */
export function makePptx(slides: Slide[]): Buffer {
  const fileOf = (at: number): string => `slide${slides.length - at}.xml`;
  const parts = slides.flatMap((slide, at): [string, string][] => [
    [`ppt/slides/${fileOf(at)}`, slideXml(slide, at + 1)],
    ...(slide.notes === undefined ? [] : [
      [`ppt/slides/_rels/${fileOf(at)}.rels`,
        relations([["n", "notesSlide", `../notesSlides/notes${at}.xml`]])],
      [`ppt/notesSlides/notes${at}.xml`,
        `<p:notes xmlns:p="p" xmlns:a="a">${shape("body", slide.notes)}${shape("sldNum", "1")}</p:notes>`],
    ] as [string, string][]),
  ]);
  return archive({
    "ppt/presentation.xml": `<p:presentation xmlns:p="p" xmlns:r="${RELATIONS}"><p:sldIdLst>${
      slides.map((_, at) => `<p:sldId id="${256 + at}" r:id="s${at}"/>`).join("")
    }</p:sldIdLst></p:presentation>`,
    "ppt/_rels/presentation.xml.rels": relations(slides.map((_, at) =>
      [`s${at}`, "slide", `slides/${fileOf(at)}`])),
    ...Object.fromEntries(parts),
  });
}
