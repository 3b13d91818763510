// Turns one document into chunks; runs in a thread of the extractor process. A hostile file does
// its harm here.
import { open, readFile } from "node:fs/promises";
import { workerData } from "node:worker_threads";
import type {
  ExtractionSource, ExtractorJob, ExtractorResult, SitePage,
} from "#features/knowledgebases/extraction.ts";
import { createOutbound } from "#outbound/request.ts";
import { chunksOf, Unreadable, type BlockList } from "./documents/blocks.ts";
import { readCsv } from "./documents/csv.ts";
import { readDocx } from "./documents/docx.ts";
import { failureOf } from "./documents/failure.ts";
import { readHtml } from "./documents/html.ts";
import { readMarkdown } from "./documents/markdown.ts";
import { readPdf } from "./documents/pdf.ts";
import { readPptx } from "./documents/pptx.ts";
import { charsetOf, decodeText, readQuestions, readText } from "./documents/text.ts";
import { USER_AGENT } from "./documents/site.ts";
import { readWebsite } from "./documents/website.ts";
import { readXlsx, writeSheet } from "./documents/xlsx.ts";

const { allowPrivateNetworks } = workerData as { allowPrivateNetworks: string[] };
const outbound = createOutbound({
  allowPrivateNetworks, userAgent: `${USER_AGENT}/1.0`,
});

interface ReadDocument {
  list: BlockList;
  pages: number;
  /** The pages, if the document is a website. */
  site?: SitePage[];
}

async function isZip(path: string): Promise<boolean> {
  const file = await open(path);
  const { buffer } = await file.read(Buffer.alloc(4), 0, 4, 0);
  await file.close();
  return buffer.equals(Buffer.from("PK\x03\x04", "latin1"));
}

async function read(source: ExtractionSource): Promise<ReadDocument> {
  switch (source.type) {
    case "website":
      return readWebsite(outbound, source);
    case "pdf":
      return readPdf(source.path);
    case "docx":
      if (!await isZip(source.path)) {
        throw new Unreadable("The file is not a valid DOCX document.");
      }
      return { list: await readDocx(source.path), pages: 1 };
    case "xlsx":
      return readXlsx(source.path);
    case "pptx":
      return readPptx(source.path);
    case "txt":
      return { list: readText(decodeText(await readFile(source.path))), pages: 1 };
    case "md":
      return { list: readMarkdown(decodeText(await readFile(source.path))), pages: 1 };
    case "html": {
      const page = await readFile(source.path);
      return { list: readHtml(decodeText(page, charsetOf(page))).list, pages: 1 };
    }
    case "csv":
      return { list: readCsv(decodeText(await readFile(source.path))), pages: 1 };
    case "text":
      return { list: readText(source.text), pages: 1 };
    case "faq":
      return { list: readQuestions(source.questions), pages: 1 };
  }
}

export default async function extract(
  source: ExtractorJob["source"],
): Promise<ExtractorResult> {
  try {
    if (source.type === "sheet") return { kind: "sheet", ...await writeSheet(source) };
    const { list, pages, site } = await read(source);
    list.forgetHeadings();
    // An answer is never split: its question stays with all of it.
    const chunks = source.type === "faq" ? list.blocks : chunksOf(list.blocks);
    return chunks.length === 0 && !site?.some(({ isKept }) => isKept)
      ? { kind: "failed", reason: "No text was found in the document." }
      : { kind: "extracted", chunks, pages, truncated: list.truncated, ...(site ? { site } : {}) };
  } catch (error) {
    return failureOf(error);
  }
}
