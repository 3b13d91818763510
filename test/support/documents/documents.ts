// Writes documents for tests and benchmarks: small real PDF and DOCX files, and hostile ones.
import { createHash } from "node:crypto";
import { constants, crc32, deflateRawSync, deflateSync } from "node:zlib";

export interface Text {
  text: string;
  x: number;
  y: number;
  size?: number;
}

const escaped = (text: string): string => text.replaceAll(/[\\()]/g, "\\$&");

function contentOf(texts: Text[]): string {
  return texts.map(({ text, x, y, size = 10 }) =>
    `BT /F1 ${size} Tf ${x} ${y} Td (${escaped(text)}) Tj ET`).join("\n");
}

/** Objects from number 1; the first is the catalog. */
function pdfOf(objects: (string | Buffer)[], trailer = ""): Buffer {
  const parts: Buffer[] = [Buffer.from("%PDF-1.4\n%\xe2\xe3\xcf\xd3\n", "latin1")];
  const offsets: number[] = [];
  let length = parts[0]?.length ?? 0;
  const add = (part: Buffer): void => {
    parts.push(part);
    length += part.length;
  };
  objects.forEach((object, index) => {
    offsets.push(length);
    add(Buffer.concat([
      Buffer.from(`${index + 1} 0 obj\n`), Buffer.from(object as string, "latin1"),
      Buffer.from("\nendobj\n"),
    ]));
  });
  const start = length;
  const rows = offsets.map((at) => `${String(at).padStart(10, "0")} 00000 n \n`).join("");
  add(Buffer.from(`xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${rows}`
    + `trailer\n<< /Size ${objects.length + 1} /Root 1 0 R ${trailer} >>\nstartxref\n${start}\n%%EOF\n`));
  return Buffer.concat(parts);
}

function streamOf(data: Buffer | string, dictionary = ""): Buffer {
  const bytes = Buffer.from(data as string, "latin1");
  return Buffer.concat([
    Buffer.from(`<< /Length ${bytes.length} ${dictionary} >>\nstream\n`), bytes,
    Buffer.from("\nendstream"),
  ]);
}

const FONT = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>";

/** A font whose codes are UTF-16, as its map says. */
const UNICODE_FONT = "<< /Type /Font /Subtype /Type0 /BaseFont /Any /Encoding /Identity-H "
  + "/DescendantFonts [4 0 R] /ToUnicode 5 0 R >>";
const UNICODE_FONT_PARTS = [
  "<< /Type /Font /Subtype /CIDFontType2 /BaseFont /Any /DW 500 "
  + "/CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> >>",
  streamOf("1 begincodespacerange <0000> <FFFF> endcodespacerange\n"
    + "1 beginbfrange <0000> <FFFF> <0000> endbfrange"),
];

function pagesOf(
  contents: Buffer[], trailer = "", more: (string | Buffer)[] = [], font = FONT,
): Buffer {
  const first = 4 + more.length;
  const kids = contents.map((_, index) => `${first + index * 2} 0 R`).join(" ");
  return pdfOf([
    "<< /Type /Catalog /Pages 2 0 R >>",
    `<< /Type /Pages /Kids [${kids}] /Count ${contents.length} >>`,
    font,
    ...more,
    ...contents.flatMap((content, index) => [
      `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents ${first + index * 2 + 1} 0 R `
      + "/Resources << /Font << /F1 3 0 R >> >> >>",
      content,
    ]),
  ], trailer);
}

/** One array of placed texts per page. */
export const makePdf = (pages: Text[][]): Buffer =>
  pagesOf(pages.map((texts) => streamOf(contentOf(texts))));

/** Texts of any script, as they are drawn: from left to right. */
export const makeUnicodePdf = (texts: Text[]): Buffer => pagesOf(
  [streamOf(texts.map(({ text, x, y, size = 10 }) => {
    const codes = Buffer.from(text, "utf16le").swap16().toString("hex");
    return `BT /F1 ${size} Tf ${x} ${y} Td <${codes}> Tj ET`;
  }).join("\n"))], "", UNICODE_FONT_PARTS, UNICODE_FONT);

/** Places lines down a page, headings in a larger size. */
export function flow(lines: (string | { heading: string; size?: number })[], x = 72): Text[] {
  let y = 740;
  return lines.map((line) => {
    const isHeading = typeof line !== "string";
    y -= isHeading ? 34 : 14;
    return isHeading
      ? { text: line.heading, x, y, size: line.size ?? 18 }
      : { text: line, x, y };
  });
}

/** A page that only draws a box, as a scan would. */
export const makeScan = (): Buffer => pagesOf([streamOf("100 100 200 200 re f")]);

function rc4(key: Buffer, data: Buffer): Buffer {
  const state = Uint8Array.from({ length: 256 }, (_, index) => index);
  const swap = (one: number, other: number): void => {
    [state[one], state[other]] = [state[other] ?? 0, state[one] ?? 0];
  };
  for (let i = 0, j = 0; i < 256; i += 1) {
    j = (j + (state[i] ?? 0) + (key[i % key.length] ?? 0)) & 255;
    swap(i, j);
  }
  let a = 0;
  let b = 0;
  return Buffer.from(data.map((byte) => {
    a = (a + 1) & 255;
    b = (b + (state[a] ?? 0)) & 255;
    swap(a, b);
    return byte ^ (state[((state[a] ?? 0) + (state[b] ?? 0)) & 255] ?? 0);
  }));
}

/** Standard security handler, revision 2 (40-bit RC4): opens with the password alone. */
export function makeEncryptedPdf(password: string): Buffer {
  const PAD = Buffer.from(
    "28bf4e5e4e758a4164004e56fffa01082e2e00b6d0683e802f0ca9fe6453697a", "hex");
  const md5 = (...parts: Buffer[]): Buffer =>
    parts.reduce((hash, part) => hash.update(part), createHash("md5")).digest();
  const padded = Buffer.concat([Buffer.from(password, "latin1"), PAD]).subarray(0, 32);
  const owner = rc4(md5(padded).subarray(0, 5), padded);
  const id = Buffer.alloc(16, 7);
  const permissions = Buffer.alloc(4);
  permissions.writeInt32LE(-4);
  const key = md5(padded, owner, permissions, id).subarray(0, 5);
  const user = rc4(key, PAD);
  const encrypt = `<< /Filter /Standard /V 1 /R 2 /O <${owner.toString("hex")}> `
    + `/U <${user.toString("hex")}> /P -4 >>`;
  const hexId = `<${id.toString("hex")}>`;
  return pagesOf([streamOf("BT ET")], `/Encrypt 4 0 R /ID [${hexId} ${hexId}]`, [encrypt]);
}

interface Entry {
  name: string;
  data: Buffer | Packed;
}

interface Packed {
  /** As raw deflate. */
  packed: Buffer;
  length: number;
  crc: number;
}

const pack = (data: Buffer): Packed =>
  ({ packed: deflateRawSync(data), length: data.length, crc: crc32(data) });

/** A part that stands by itself, and that others may follow. */
const packedPart = (data: Buffer): Buffer =>
  deflateRawSync(data, { level: 9, finishFlush: constants.Z_FULL_FLUSH });

/** Packs a repeated piece only once: packing all of it would take seconds. */
function packRepeated(before: Buffer, piece: Buffer, times: number, after: Buffer): Packed {
  const part = packedPart(piece);
  let crc = crc32(before);
  for (let count = 0; count < times; count += 1) crc = crc32(piece, crc);
  return {
    packed: Buffer.concat(
      [packedPart(before), ...Array<Buffer>(times).fill(part), deflateRawSync(after)]),
    length: before.length + times * piece.length + after.length,
    crc: crc32(after, crc),
  };
}

export function zip(entries: Entry[]): Buffer {
  const files: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const { name, data } of entries) {
    const { packed, length, crc } = Buffer.isBuffer(data) ? pack(data) : data;
    const head = Buffer.alloc(26);
    head.writeUInt16LE(20, 0);
    head.writeUInt16LE(8, 4);
    head.writeUInt32LE(crc, 10);
    head.writeUInt32LE(packed.length, 14);
    head.writeUInt32LE(length, 18);
    head.writeUInt16LE(name.length, 22);
    files.push(Buffer.from("PK\x03\x04", "latin1"), head, Buffer.from(name), packed);
    const tail = Buffer.alloc(14);
    tail.writeUInt32LE(offset, 10);
    directory.push(
      Buffer.from("PK\x01\x02\x14\x00", "latin1"), head, tail, Buffer.from(name));
    offset += 4 + head.length + name.length + packed.length;
  }
  const list = Buffer.concat(directory);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(entries.length, 4);
  end.writeUInt16LE(entries.length, 6);
  end.writeUInt32LE(list.length, 8);
  end.writeUInt32LE(offset, 12);
  return Buffer.concat([...files, list, Buffer.from("PK\x05\x06", "latin1"), end]);
}

const TYPES = `<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>
<Default Extension="xml" ContentType="application/xml"/>
<Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>`;
const RELATIONS = `<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">
<Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/></Relationships>`;

const xml = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

export type Part =
  | { heading: string; level?: number }
  | { text: string }
  | { list: string[] }
  | { table: string[][] };

function paragraph(text: string, style = ""): string {
  const properties = style === "" ? "" : `<w:pPr><w:pStyle w:val="${style}"/></w:pPr>`;
  return `<w:p>${properties}<w:r><w:t xml:space="preserve">${xml(text)}</w:t></w:r></w:p>`;
}

function partXml(part: Part): string {
  if ("heading" in part) return paragraph(part.heading, `Heading${part.level ?? 1}`);
  if ("text" in part) return paragraph(part.text);
  if ("list" in part) return part.list.map((item) => paragraph(item, "ListParagraph")).join("");
  const rows = part.table.map((row) =>
    `<w:tr>${row.map((cell) => `<w:tc>${paragraph(cell)}</w:tc>`).join("")}</w:tr>`);
  return `<w:tbl>${rows.join("")}</w:tbl>`;
}

const WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main";
const DOCX_BEGINS =
  Buffer.from(`<?xml version="1.0"?><w:document xmlns:w="${WORD}"><w:body>`);
const DOCX_ENDS = Buffer.from("</w:body></w:document>");

const docxOf = (document: Buffer | Packed): Buffer => zip([
  { name: "[Content_Types].xml", data: Buffer.from(TYPES) },
  { name: "_rels/.rels", data: Buffer.from(RELATIONS) },
  { name: "word/document.xml", data: document },
]);

/** A DOCX around any body. */
export const docxAround = (body: string): Buffer =>
  docxOf(Buffer.concat([DOCX_BEGINS, Buffer.from(body), DOCX_ENDS]));

export const makeDocx = (parts: Part[]): Buffer => docxAround(parts.map(partXml).join(""));

const MIB = 1024 * 1024;

/** The Adler-32 checksum of `count` blanks. */
function adlerOfBlanks(count: number): Buffer {
  const [blanks, of, prime] = [BigInt(count), 32n, 65_521n];
  const sum = Buffer.alloc(4);
  sum.writeUInt16BE(Number((blanks + (of * blanks * (blanks + 1n)) / 2n) % prime), 0);
  sum.writeUInt16BE(Number((1n + of * blanks) % prime), 2);
  return sum;
}

/** A gigabyte of blanks in a few kilobytes. */
export function pdfBomb(): Buffer {
  const none = Buffer.alloc(0);
  const { packed } = packRepeated(none, Buffer.alloc(MIB, 32), 1024, none);
  const inner = Buffer.concat([Buffer.from([0x78, 0xda]), packed, adlerOfBlanks(1024 * MIB)]);
  return pagesOf([streamOf(deflateSync(inner), "/Filter [/FlateDecode /FlateDecode]")]);
}

/** A PDF with `count` text operators, one after another. */
export function pdfOfManyOperators(count: number): Buffer {
  const content = `BT /F1 10 Tf ${"1 0 Td (a) Tj ".repeat(count)} ET`;
  return pagesOf([streamOf(deflateSync(Buffer.from(content)), "/Filter /FlateDecode")]);
}

/** 300 MB of XML that declares its size. */
export const docxBomb = (): Buffer =>
  docxOf(packRepeated(DOCX_BEGINS, Buffer.alloc(MIB, "<w:p/>  "), 300, DOCX_ENDS));

/** Just under the declared bound: millions of paragraphs that cost far more once parsed. */
export const docxOfParagraphs = (): Buffer => docxAround("<w:p/>".repeat(3_000_000));
