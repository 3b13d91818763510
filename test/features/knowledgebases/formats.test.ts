// Files of the kinds that are text with a form (Markdown, HTML, CSV), workbooks and presentations.
import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { createLogger } from "#core/logger.ts";
import { createSystem } from "#core/system.ts";
import { createExtractor, type ExtractionResult } from "#features/knowledgebases/extraction.ts";
import { docxAround } from "#support/documents/documents.ts";
import { makePptx, makeXlsx, xlsxAround, type Cell } from "#support/documents/office.ts";
import { testDataDir } from "#support/server.ts";

type Type = "md" | "html" | "csv" | "xlsx" | "pptx";

const folder = testDataDir();
const extractor = createExtractor({
  log: createLogger("silent"), system: createSystem(), allowPrivateNetworks: [],
});
// The extractor's timers and pipes keep nothing alive.
const alive = setInterval(() => undefined, 1000);
after(async () => {
  clearInterval(alive);
  await extractor.close();
  rmSync(folder, { recursive: true });
});

function extract(type: Type, content: string | Buffer): Promise<ExtractionResult> {
  const path = join(folder, type);
  writeFileSync(path, content);
  return extractor.extract({ type, path });
}

async function read(type: Type, content: string | Buffer): Promise<[string[], string][]> {
  const result = await extract(type, content);
  assert.ok(result.kind === "extracted", JSON.stringify(result));
  return result.chunks.map(({ headings, text }) => [headings, text]);
}

test("[EX120] Markdown and HTML keep headings, lists and tables; scripts are not read", async () => {
  assert.deepEqual(await read("md", [
    "Bikes", "=====", "", "We *rent* **bikes**.", "", "## Prices", "", "| Bike | Dollars |",
    "|---|---|", "| City | 20 |", "", "- Helmets are free", "- Locks too", "",
    "<script>let hidden;</script>",
  ].join("\n")), [
    [["Bikes"], "We rent bikes."],
    [["Bikes", "Prices"], "Bike | Dollars\nCity | 20\n- Helmets are free\n- Locks too"],
  ]);
  assert.deepEqual(await read("html", `<html><head><title>T</title></head><body><nav>Menu</nav>
    <h1>Hours</h1><p>Nine to five.</p><script>let hidden;</script></body></html>`), [
    [["Hours"], "Nine to five."],
  ]);
  const deep = await extract("md", ">".repeat(5000) + " deep");
  assert.equal(deep.kind, "failed", JSON.stringify(deep).slice(0, 200));
  const nested = await extract("html", `${"<div>".repeat(600)}deep`);
  assert.deepEqual(nested, { kind: "failed", reason: "The page is nested too deeply to read." });
});

test("[EX121] CSV rows name their columns, whatever the separator; hostile tables cost one document", async () => {
  const rows = [[[], "Bike: City | Dollars: 20\nBike: Electric, large | Dollars: 45"]];
  assert.deepEqual(await read("csv", 'Bike,Dollars\nCity,20\n"Electric, large",45\n'), rows);
  assert.deepEqual(await read("csv", '\uFEFFBike;Dollars\r\nCity;20\r\n"Electric, large";45\r\n'), rows);
  assert.deepEqual(await read("csv", "Only, one row"), [[[], "Only | one row"]]);
  for (const hostile of [
    `a,b\n"${"x".repeat(200_000)}`, `${"a,".repeat(1000)}\n1`, Buffer.from("PK\x03\x04 no table"),
  ]) {
    const result = await extract("csv", hostile);
    assert.equal(result.kind, "failed", JSON.stringify(result).slice(0, 200));
  }
});

test("[EX122] a workbook's rows name their columns; dates and percentages read as displayed", async () => {
  const book = makeXlsx([
    { name: "Bikes & more", rows: [
      ["Price list"], [],
      ["Bike", "Dollars", "Since", "Discount"],
      ["City", 20.1, { value: 45292, style: 1 }, { value: 0.15, style: 2 }],
      ["Cargo", 0.1 + 0.2, { value: 45292.75, style: 1 }, null],
    ] },
    { name: "Secret", isHidden: true, rows: [["margin", "ours"], [1, 2]] },
    { name: "Hours", rows: [["Day", "Opens"], ["Monday", "nine"]] },
  ]);
  const result = await extract("xlsx", book);
  assert.ok(result.kind === "extracted", JSON.stringify(result));
  assert.equal(result.pages, 2);
  assert.deepEqual(result.chunks.map(({ headings, text }) => [headings, text]), [
    [["Bikes & more"], "Price list\nBike: City | Dollars: 20.1 | Since: 2024-01-01 | Discount: 15%\n"
      + "Bike: Cargo | Dollars: 0.3 | Since: 2024-01-01 18:00"],
    [["Hours"], "Day: Monday | Opens: nine"],
  ]);
  assert.deepEqual(await read("xlsx", xlsxAround('<row><c t="inlineStr"><is><t>Only</t></is></c>'
    + '<c t="str"><v>row</v></c><c t="b"><v>1</v></c><c t="e"><v>#N/A</v></c></row>')),
  [[["A"], "Only | row | TRUE"]]);
});

test("[KB139] a workbook's durations over a day are read as hours, not as dates of 1899", async () => {
  const rows: Cell[][] = [[
    { value: 1.25, style: 5 }, { value: 2, style: 6 }, { value: 40.5 / 24, style: 6 },
    { value: 0.25, style: 5 },
  ]];
  assert.deepEqual(await read("xlsx", makeXlsx([{ name: "A", rows }])),
    [[["A"], "30:00 | 48:00 | 40:30 | 06:00"]]);
});

test("[EX269] a workbook's amounts are no dates, whatever room their format leaves for a currency", async () => {
  const rows: Cell[][] = [["Price", "Year"], [{ value: 1250.5, style: 7 }, 2026]];
  assert.deepEqual(await read("xlsx", makeXlsx([{ name: "A", rows }])),
    [[["A"], "Price: 1250.5 | Year: 2026"]]);
});

test("[EX268] the line that tells Excel a table's separator is no row of it", async () => {
  const rows = [[[], "Bike: City | Dollars: 20,50"]];
  assert.deepEqual(await read("csv", "sep=;\r\nBike;Dollars\r\nCity;20,50\r\n"), rows);
  assert.deepEqual(await read("csv", '"sep=|"\nBike|Dollars\nCity|20,50\n'), rows);
});

test("[KB140] an HTML file is read in the encoding its head names", async () => {
  const page = (charset: string, ...words: number[]): Buffer => Buffer.concat([
    Buffer.from(`<html><head><meta charset="${charset}"></head><body><p>`), Buffer.from(words)]);
  assert.deepEqual(await read("html", page("Shift_JIS", 0x93, 0x79, 0x97, 0x6a, 0x93, 0xfa)),
    [[[], "土曜日"]]);
  assert.deepEqual(await read("html", page("windows-1251", 0xf1, 0xf3, 0xe1)), [[[], "суб"]]);
  for (const wrong of ["no-such", "utf-8", "UTF-16"]) {
    assert.deepEqual(await read("html", page(wrong, 0xd6, 0x6c)), [[[], "Öl"]], wrong);
  }
});

test("[EX123] a presentation is read slide by slide, in display order, with tables and notes", async () => {
  const result = await extract("pptx", makePptx([
    { title: "Welcome", texts: ["We rent bikes.", "Since 1990."], notes: "Smile first." },
    { title: "Draft", texts: ["Never said."], isHidden: true },
    { title: "Prices", table: [["Bike", "Dollars"], ["City", "20"]] },
  ]));
  assert.ok(result.kind === "extracted", JSON.stringify(result));
  assert.equal(result.pages, 2);
  assert.deepEqual(result.chunks.map(({ headings, text, page }) => [headings, text, page]), [
    [["Welcome"], "We rent bikes.\nSince 1990.\nSmile first.", 1],
    [["Prices"], "Bike | Dollars\nCity | 20", 3],
  ]);
});

test("[EX124] hostile workbooks and presentations cost one document", async () => {
  const tooLarge = "The document is too large to read once it is unpacked.";
  const bomb = xlsxAround(" ".repeat(60 * 1024 * 1024));
  assert.deepEqual(await extract("xlsx", bomb), { kind: "failed", reason: tooLarge });
  // Packed less tightly than a bomb: a huge sheet is read to the document's end, as any.
  const cells = Array.from({ length: 150_000 }, (_, at) =>
    `<row><c><v>${(at * 2_654_435_761) % 4_294_967_296}</v></c><c t="str"><v>row ${at}</v></c></row>`);
  const huge = await extract("xlsx", xlsxAround(cells.join("")));
  assert.ok(huge.kind === "extracted" && huge.truncated, JSON.stringify(huge).slice(0, 200));
  // One long text that every cell of a row refers to.
  const cell = '<c t="s"><v>0</v></c>';
  const wide = await extract("xlsx", xlsxAround(
    `<row>${cell.repeat(20_000)}</row>`, `<sst><si><t>${"x".repeat(100_000)}</t></si></sst>`));
  assert.ok(wide.kind === "extracted" && wide.truncated);
  // Entities that would grow are no entities here; others' files are not taken for these.
  const entities = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>';
  const laughs = await extract("xlsx", xlsxAround(
    '<row><c t="str"><v>&b;</v></c><c><v>1</v></c></row>', `${entities}<sst/>`));
  assert.ok(laughs.kind === "extracted" && !JSON.stringify(laughs).includes("aaaa"));
  assert.equal((await extract("xlsx", xlsxAround("<a>".repeat(100_000)))).kind, "failed");
  const invalid = {
    kind: "failed", reason: "The file is not a valid XLSX workbook: save it as XLSX or CSV.",
  };
  assert.deepEqual(await extract("xlsx", docxAround("")), invalid);
  assert.deepEqual(await extract("xlsx", "no archive"), invalid);
  assert.equal((await extract("pptx", makeXlsx([]))).kind, "failed");
  assert.equal((await extract("pptx", makePptx([]))).kind, "failed");
});
