// The file of an import, whichever program wrote it: CSV is read directly, the first sheet of a
// workbook after the extractor process has converted it, so that a hostile file is parsed only
// there. Called by import-route.ts and preview-route.ts.
import { createReadStream } from "node:fs";
import { open, rm } from "node:fs/promises";
import { createInterface } from "node:readline";
import { unguarded } from "#core/csv.ts";
import { fieldFault } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import { parsedJson } from "#core/values.ts";
import type { Extractor } from "#features/knowledgebases/extraction.ts";
import { readCsv, type CsvFormat, type CsvRow } from "./csv.ts";

export interface ImportFile {
  /** The name of the sheet that is read; null: the file is CSV. */
  sheet: string | null;
  /** The first is the header. `onFormat` is called before it, for CSV. */
  rows(onFormat?: (format: CsvFormat) => void): AsyncGenerator<CsvRow>;
  /** How many rows `rows` has. */
  count(): Promise<number>;
}

interface OpenOptions {
  /** Rows after these are not wanted. */
  rowsMax?: number;
  /** Larger CSV throws Fault 422; of exactly this size, it is taken for a truncated file. */
  csvBytesMax?: number;
}

export type ImportFiles = ReturnType<typeof createImportFiles>;

const ZIP = Buffer.from("PK\x03\x04", "latin1");
/** Workbooks from before XLSX, and encrypted ones. */
const OLE = Buffer.from("d0cf11e0", "hex");

async function signatureOf(path: string): Promise<Buffer> {
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(4), 0, 4, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}

async function* readSheet(path: string): AsyncGenerator<CsvRow> {
  const input = createReadStream(path, "utf8");
  try {
    for await (const line of createInterface({ input, crlfDelay: Infinity })) {
      const { row, cells } = parsedJson(line) as { row: number; cells: string[] };
      if (line.length <= LIMITS.csvRowCharsMax) yield { kind: "cells", row, cells: cells.map(unguarded) };
      else yield { kind: "broken", row, text: cells.join(" ") };
    }
  } finally {
    input.destroy();
  }
}

async function countOf(rows: AsyncIterable<CsvRow>): Promise<number> {
  let count = 0;
  for await (const _ of rows) count += 1;
  return count;
}

function openCsv(path: string, isCut: boolean): ImportFile {
  return {
    sheet: null,
    rows: (onFormat) => readCsv(path, { isCut, ...(onFormat ? { onFormat } : {}) }),
    count: () => countOf(readCsv(path, { isForCount: true })),
  };
}

export function createImportFiles(extractor: Pick<Extractor, "writeSheet">) {
  const withSheet = async <T>(
    path: string, rowsMax: number | undefined, use: (file: ImportFile) => Promise<T>,
  ): Promise<T> => {
    const to = `${path}.rows`;
    try {
      const written = await extractor.writeSheet({
        type: "sheet", path, to, ...(rowsMax === undefined ? {} : { rowsMax }),
      });
      if (written.kind === "failed") throw fieldFault("file", written.reason);
      const { name, rows } = written;
      return await use({ sheet: name, rows: () => readSheet(to), count: async () => rows });
    } finally {
      await rm(to, { force: true });
    }
  };
  return {
    /** Throws Fault 422 for an unreadable file. The file is only valid until `use` resolves. */
    with: async <T>(
      { path, bytes }: { path: string; bytes: number },
      { rowsMax, csvBytesMax = Infinity }: OpenOptions,
      use: (file: ImportFile) => Promise<T>,
    ): Promise<T> => {
      const signature = await signatureOf(path);
      if (signature.equals(ZIP)) return withSheet(path, rowsMax, use);
      if (signature.equals(OLE)) {
        throw fieldFault("file",
          "The workbook is encrypted or in an old Excel format: save it as XLSX or CSV.");
      }
      if (bytes > csvBytesMax) {
        throw fieldFault("file",
          `Send at most the first ${csvBytesMax / 1024} kilobytes of a CSV file.`);
      }
      return use(openCsv(path, bytes === csvBytesMax));
    },
  };
}
