// What becomes of documents of every kind, honest and hostile, in the extractor process.
import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { createLogger } from "#core/logger.ts";
import { createSystem } from "#core/system.ts";
import {
  createExtractor, type Chunk, type ExtractionResult,
} from "#features/knowledgebases/extraction.ts";
import { Unreadable } from "#workers/documents/blocks.ts";
import { failureOf } from "#workers/documents/failure.ts";
import {
  docxBomb, docxOfParagraphs, flow, makeDocx, makeEncryptedPdf, makePdf, makeScan,
  makeUnicodePdf, pdfBomb, pdfOfManyOperators,
} from "#support/documents/documents.ts";
import { assertLinear } from "#support/growth.ts";
import { IS_PROOF } from "#support/proof.ts";
import { testDataDir } from "#support/server.ts";

const folder = testDataDir();
const logged: { type: string; trace: string }[] = [];
const warn = (fields: (typeof logged)[number]): void => void logged.push(fields);
const extractor = createExtractor({
  log: { ...createLogger("silent"), warn } as never, system: createSystem(), allowPrivateNetworks: [],
});
after(async () => {
  await extractor.close();
  rmSync(folder, { recursive: true });
});

let files = 0;
function extract(type: "pdf" | "txt" | "docx", content: Buffer | string): Promise<ExtractionResult> {
  files += 1;
  const path = join(folder, String(files));
  writeFileSync(path, content);
  return extractor.extract({ type, path });
}

async function chunks(type: "pdf" | "txt" | "docx", content: Buffer | string): Promise<Chunk[]> {
  const result = await extract(type, content);
  assert.equal(result.kind, "extracted", JSON.stringify(result));
  return result.kind === "extracted" ? result.chunks : [];
}

const reason = async (type: "pdf" | "txt" | "docx", content: Buffer | string): Promise<string> => {
  const result = await extract(type, content);
  return result.kind === "failed" ? result.reason : "it was read";
};

test("[EX1] a PDF keeps pages, headings, paragraphs and table cells", async () => {
  const found = await chunks("pdf", makePdf([
    flow([{ heading: "Service manual", size: 24 }, { heading: "Brakes" },
      "Check the brake pads every month and re-", "place them below two millimetres.",
      "Never oil the discs."]),
    [...flow([{ heading: "Prices" }]), { text: "Service", x: 72, y: 600 },
      { text: "79 dollars", x: 300, y: 600 }, { text: "Tube", x: 72, y: 586 },
      { text: "15 dollars", x: 300, y: 586 }],
  ]));
  assert.deepEqual(found.map(({ headings, page }) => [headings, page]), [
    [["Service manual", "Brakes"], 1], [["Service manual", "Prices"], 2],
  ]);
  assert.equal(found[0]?.text,
    "Check the brake pads every month and replace them below two millimetres. Never oil the discs.");
  assert.equal(found[1]?.text, "Service | 79 dollars\nTube | 15 dollars");
});

test("[EX2] a page of two columns is read column by column", async () => {
  const column = (word: string, x: number) => Array.from({ length: 12 }, (_, index) => ({
    text: `${word} line ${index} of this column runs to its very edge`, x, y: 650 - index * 14,
  }));
  const [chunk] = await chunks("pdf", makePdf([[
    { text: "A title across the whole page", x: 72, y: 720, size: 20 },
    ...column("left", 50), ...column("right", 330),
  ]]));
  const text = chunk?.text ?? "";
  assert.ok(text.indexOf("left line 11") < text.indexOf("right line 0"), text);
  assert.deepEqual(chunk?.headings, ["A title across the whole page"]);
});

test("[EX3] a Word document keeps headings, lists and tables", async () => {
  const found = await chunks("docx", makeDocx([
    { heading: "Rental" }, { text: "Bring an identity card." }, { heading: "Prices", level: 2 },
    { table: [["City bike", "20 dollars"], ["Electric bike", "45 dollars"]] },
    { list: ["Helmets are free", "Locks are free"] },
  ]));
  assert.deepEqual(found.map(({ headings }) => headings), [["Rental"], ["Rental", "Prices"]]);
  assert.match(found[1]?.text ?? "", /City bike \| 20 dollars/);
  assert.match(found[1]?.text ?? "", /Helmets are free/);
});

test("[EX4] text is read in any common encoding; Markdown headings count", async () => {
  const text = "# Grüße\n\nÖffnungszeiten: täglich für alle da";
  const encodings = [
    Buffer.from(text), Buffer.from(`\ufeff${text}`), Buffer.from(text, "latin1"),
    Buffer.from(`\ufeff${text}`, "utf16le"), Buffer.from(text, "utf16le"),
    Buffer.from(`\ufeff${text}`, "utf16le").swap16(),
  ];
  for (const bytes of encodings) {
    const [chunk] = await chunks("txt", bytes);
    assert.deepEqual(chunk?.headings, ["Grüße"]);
    assert.equal(chunk?.text, "Öffnungszeiten: täglich für alle da");
  }
});

test("[EX267] long text in Chinese or Japanese is cut at a sentence's end", async () => {
  const sentence = "我们的自行车每天早上九点开始出租，晚上六点之前归还。";
  const said = await chunks("txt", `${sentence}「${sentence}」`.repeat(40));
  assert.ok(said.length > 1);
  for (const { text } of said) assert.match(text, /^[我「].*。」?$/u);
  assert.equal(said.map(({ text }) => text).join(""), `${sentence}「${sentence}」`.repeat(40));
});

test("[EX5] an unreadable file says why, in words for its owner", async () => {
  assert.match(await reason("pdf", makeScan()), /no text layer/);
  assert.match(await reason("pdf", makeEncryptedPdf("open sesame")), /password/);
  assert.match(await reason("pdf", makeDocx([{ text: "x" }])), /not a PDF/);
  assert.match(await reason("pdf", makePdf([flow(["x"])]).subarray(0, 300)), /damaged|read/);
  assert.match(await reason("docx", makePdf([flow(["x"])])), /not a valid DOCX/);
  assert.match(await reason("docx", Buffer.from("PK\x03\x04 broken", "latin1")), /not a valid DOCX/);
  assert.match(await reason("txt", Buffer.from([0, 1, 2, 3, 250, 0, 0, 7])), /not a text file/);
  assert.match(await reason("txt", " \n "), /No text/);
});

const inOrder = (text: string): string => [...text].reverse().join("");

test("[EX800] what went wrong in a reader is logged once, without the document's text", async () => {
  logged.length = 0;
  const questions = [{ question: "Secret?", answer: 5 }] as never;
  const gone = join(folder, "gone.pdf");
  for (const source of [{ type: "faq", questions }, { type: "pdf", path: gone }] as const) {
    assert.deepEqual((await extractor.extract(source) as { reason: string }).reason,
      "The document could not be read.");
  }
  assert.equal(await reason("txt", "%PDF-"), "The file is not a text file.");
  const [defect, missing, ...others] = logged;
  assert.equal(defect?.type, "faq");
  assert.match(defect.trace, /^TypeError\n {4}at .*under .*\n {4}at readQuestions /);
  assert.equal(missing?.type, "pdf");
  assert.match(missing.trace, /^Error ENOENT/);
  assert.ok(!missing.trace.includes(gone));
  assert.deepEqual(others, []);
  for (const error of [
    new SyntaxError("'Secret?\n    at Secret.' is not JSON"),
    new Unreadable("Not one.", { cause: new TypeError("Secret?") }),
  ]) {
    const { trace = "" } = failureOf(error);
    assert.ok(!trace.includes("Secret"), trace);
    assert.match(trace, /^\w+Error\n {4}at .*documents\.test/);
  }
});

test("[KB136] Hebrew and Arabic in a PDF are read right to left, numbers and names in them as they stand", async () => {
  const [hebrew, arabic, english] = (await chunks("pdf", makeUnicodePdf([
    { text: inOrder("פתוחים מ"), x: 500, y: 700 }, { text: "10:30", x: 470, y: 700 },
    { text: inOrder("עד"), x: 455, y: 700 }, { text: "14:45", x: 426, y: 700 },
    { text: ")", x: 418, y: 700 }, { text: inOrder("אופני"), x: 393, y: 700 },
    { text: "Trek", x: 340, y: 700 }, { text: "500", x: 365, y: 700 }, { text: "(", x: 335, y: 700 },
    // As browsers print it: glyph by glyph, each in the form that it has in its word.
    ...[..."ﻞﻤﻌﻟا"].map((text, index) => ({ text, x: 400 + index * 5, y: 600 })),
    ...[..."مﻮﻳ"].map((text, index) => ({ text, x: 430 + index * 5, y: 600 })),
    { text: "45", x: 385, y: 600 },
    { text: "Shalom is", x: 72, y: 500 }, { text: inOrder("שלום"), x: 122, y: 500 },
    { text: "in Hebrew", x: 147, y: 500 },
  ]))).flatMap(({ text }) => text.split("\n"));
  assert.equal(hebrew, "פתוחים מ 10:30 עד 14:45 (אופני Trek 500)");
  assert.equal(arabic, "يوم العمل 45");
  assert.equal(english, "Shalom is שלום in Hebrew");
});

test("[KB137] superscripts and subscripts of a PDF stay in their line", async () => {
  const [found] = await chunks("pdf", makePdf([[
    { text: "Tiles cost 20 dollars per m", x: 72, y: 700, size: 12 },
    { text: "2", x: 212.5, y: 704.4, size: 7 },
    { text: "of H", x: 220, y: 700, size: 12 }, { text: "2", x: 242.5, y: 698.4, size: 7 },
    { text: "O-proof clay.", x: 247, y: 700, size: 12 },
  ]]));
  assert.equal(found?.text, "Tiles cost 20 dollars per m2 of H2O-proof clay.");
});

test("[KB138] a PDF with glyph codes instead of letters is not read as text; one with icons is", async () => {
  const noise = "\u0003\u0014!\u0005\u0012\u0010#\u000f\u0011\u000e";
  const text = (line: string): Buffer =>
    makeUnicodePdf(flow([line, "Open on Monday from nine to five."]));
  assert.match(await reason("pdf", makeUnicodePdf(flow([noise, noise]))), /its fonts lack a character map/);
  assert.match(await reason("pdf", text(noise.repeat(5))), /its fonts lack a character map/);
  assert.equal(await reason("pdf", text("\uf0b7 \uf028 Call us")), "it was read");
});

/** Each is an item of its page; more take longer, and no other way. */
const OPERATORS = IS_PROOF ? 3_000_000 : 1_000_000;

test("[EX6] decompression bombs cost one document: the server stays small and responsive, others are read", async () => {
  const good = makePdf([flow(["An honest document."])]);
  await Promise.all([chunks("pdf", good), chunks("pdf", good)]);
  const bombs: ["pdf" | "docx", Buffer][] = [
    ["pdf", pdfBomb()], ["pdf", pdfOfManyOperators(OPERATORS)], ["docx", docxBomb()],
    ["docx", docxOfParagraphs()],
  ];
  const rssBefore = process.memoryUsage().rss;
  const begunMs = performance.now();
  const before = process.cpuUsage();
  for (const [type, bomb] of bombs) {
    files += 1;
    const path = join(folder, `bomb${files}`);
    writeFileSync(path, bomb);
    const order: string[] = [];
    const [bad, other] = await Promise.all([
      extractor.extract({ type, path }).finally(() => order.push("bomb")),
      extract("pdf", good).finally(() => order.push("good")),
    ]);
    // These take seconds, and nobody waits for them; the archives are refused at once.
    if (type === "pdf") assert.deepEqual(order, ["good", "bomb"]);
    assert.equal(other.kind, "extracted");
    assert.ok(bad.kind === "failed" || bad.chunks.length > 0);
  }
  const { user, system } = process.cpuUsage(before);
  const busy = (user + system) / 1000 / (performance.now() - begunMs);
  const grownMiB = (process.memoryUsage().rss - rssBefore) / 2 ** 20;
  assert.ok(grownMiB < 50, `grew by ${Math.round(grownMiB)} MiB`);
  assert.ok(busy < 0.5, `the server itself was busy ${Math.round(busy * 100)} % of the time`);
});

test("[EX7] hostile web pages are refused when nested too deeply; many attributes cost linear time", async () => {
  const deep = `<html><body>${"<div>".repeat(100_000)}x`;
  const { readHtml } = await import("#workers/documents/html.ts");
  assert.throws(() => readHtml(deep), /nested too deeply/);
  await assertLinear("many attributes", 100_000, (size) => {
    const wide = `<html><body><p ${"a=b ".repeat(size)}>Readable all the same.</p>`;
    return () => assert.equal(readHtml(wide).list.blocks[0]?.text, "Readable all the same.");
  });
});
