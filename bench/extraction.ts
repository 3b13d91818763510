// How fast documents are read through the extractor process, compared with the bare library in this
// one; and how late the server's event loop is meanwhile.
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { Parser } from "htmlparser2";
import mammoth from "mammoth";
import { getDocument, VerbosityLevel } from "pdfjs-dist/legacy/build/pdf.mjs";
import { createLogger } from "#core/logger.ts";
import { createSystem } from "#core/system.ts";
import { createExtractor, type ExtractionSource } from "#features/knowledgebases/extraction.ts";
import { flow, makeDocx, makePdf } from "#support/documents/documents.ts";
import { listenLocally } from "#support/local-server.ts";
import { median, print, printResult } from "./report.ts";

const ROUNDS = 7;
const PDF_PAGES = 100;
const SENTENCE = "Guests may cancel free of charge until six in the evening of the day before";
const MB = 1e6;

async function barePdf(path: string): Promise<number> {
  const task = getDocument({
    data: new Uint8Array(await readFile(path)), useWasm: false, verbosity: VerbosityLevel.ERRORS,
  });
  const document = await task.promise;
  let characters = 0;
  for (let number = 1; number <= document.numPages; number += 1) {
    const { items } = await (await document.getPage(number)).getTextContent();
    for (const item of items) if ("str" in item) characters += item.str.length;
  }
  await task.destroy();
  return characters;
}

async function bareDocx(path: string): Promise<number> {
  return (await mammoth.extractRawText({ path })).value.length;
}

async function bareHtml(url: string): Promise<number> {
  const text = await (await fetch(url)).text();
  let characters = 0;
  const parser = new Parser({ ontext: (part) => (characters += part.length) });
  parser.end(text);
  return characters;
}

interface Case {
  name: string;
  source: ExtractionSource;
  /** Pages of the document, for formats that have them. */
  pages: number;
  /** Reads it with the bare library; returns the characters of text. */
  bare(): Promise<number>;
}

const directory = await mkdtemp(join(tmpdir(), "parley-bench-"));
const extractor = createExtractor({
  log: createLogger("silent"), system: createSystem(), allowPrivateNetworks: ["127.0.0.0/8"],
});
const lines = Array.from({ length: 45 }, (_, index) => `${index + 1}. ${SENTENCE}`);
const pdfPath = join(directory, "book.pdf");
await writeFile(pdfPath, makePdf(Array.from({ length: PDF_PAGES }, () => flow(lines))));
const docxPath = join(directory, "book.docx");
const section = [{ heading: "Terms" }, { text: `${SENTENCE}. `.repeat(5) }];
await writeFile(docxPath, makeDocx(Array.from({ length: 1000 }, () => section).flat()));
const page = `<title>Terms</title>${`<h2>Rooms</h2><p>${SENTENCE}.</p>`.repeat(15_000)}`;
const site = await listenLocally(createServer(({ url }, response) => {
  response.writeHead(url === "/" ? 200 : 404, { "content-type": "text/html" });
  response.end(url === "/" ? page : "");
}));
const siteUrl = `${site.url}/`;

const cases: Case[] = [
  { name: "pdf", source: { type: "pdf", path: pdfPath }, pages: PDF_PAGES, bare: () => barePdf(pdfPath) },
  { name: "docx", source: { type: "docx", path: docxPath }, pages: 0, bare: () => bareDocx(docxPath) },
  {
    name: "html", source: { type: "website", urls: [siteUrl], follow: 0 }, pages: 0,
    bare: () => bareHtml(siteUrl),
  },
];

async function timed(run: () => Promise<number>): Promise<{ ms: number; characters: number }> {
  const before = performance.now();
  const characters = await run();
  return { ms: performance.now() - before, characters };
}

async function throughExtractor(source: ExtractionSource): Promise<number> {
  const result = await extractor.extract(source);
  if (result.kind === "failed") throw new Error(result.reason);
  return result.chunks.reduce((sum, { text }) => sum + text.length, 0);
}

const rounded = (value: number): number => Math.round(value * 10) / 10;

async function measure({ name, source, pages, bare }: Case): Promise<object> {
  // The first run of each pays for loading and compiling the library.
  await throughExtractor(source);
  await bare();
  const ours: number[] = [];
  const theirs: number[] = [];
  let characters = 0;
  // Measured apart from the bare library's rounds, which block this process's loop themselves.
  const delay = monitorEventLoopDelay({ resolution: 5 });
  delay.enable();
  for (let round = 0; round < ROUNDS; round += 1) {
    const one = await timed(() => throughExtractor(source));
    ours.push(one.ms);
    ({ characters } = one);
  }
  delay.disable();
  for (let round = 0; round < ROUNDS; round += 1) theirs.push((await timed(bare)).ms);
  const figures = (ms: number): object => ({
    ms: rounded(ms),
    text_mb_per_s: rounded(characters / MB / (ms / 1000)),
    ...(pages > 0 ? { pages_per_s: Math.round(pages / (ms / 1000)) } : {}),
  });
  const result = {
    characters,
    extractor: figures(median(ours)),
    bare_library: figures(median(theirs)),
    event_loop_p99_ms: rounded(delay.percentile(99) / 1e6),
  };
  print(`${name}: ${JSON.stringify(result)}`);
  return result;
}

print(`median of ${ROUNDS} rounds, one document at a time, warm; HTML includes fetching the page`);
const results: Record<string, object> = {};
for (const one of cases) results[one.name] = await measure(one);
await extractor.close();
await site.close();
await rm(directory, { recursive: true });
printResult("extraction", { rounds: ROUNDS, ...results });
