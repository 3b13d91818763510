// The preview of an import: the beginning of a file as the import would read it, and a guess at its
// columns. Nothing is stored.
import { Type, type Static } from "@sinclair/typebox";
import { fieldFault } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import { about, named, Nullable, OneOf } from "#core/schema.ts";
import { firstChars } from "#core/values.ts";
import { json } from "#http/exchange.ts";
import { keyRoute, type Route } from "#http/route.ts";
import { GuessSchema, guessMapping, namesOf, numbersIn } from "./columns-wire.ts";
import type { CsvFormat } from "./csv.ts";
import type { ImportFile, ImportFiles } from "./import-file.ts";
import { uploadOf } from "./import-route.ts";

const PreviewSchema = Type.Object({
  encoding: Nullable(OneOf(
    ["utf-8", "utf-16le", "utf-16be", "windows-1252"],
    about("The character encoding of a CSV file; null for a workbook."))),
  delimiter: Nullable(OneOf(
    [",", ";", "\t", "|"], about("The column separator of a CSV file."))),
  sheet: Nullable(Type.String(about(
    "The sheet that is read: a workbook's first visible sheet; null for CSV.", "Kunden"))),
  columns: Type.Array(Type.Object({
    name: Type.String(about("The column's header.", "first_name")),
    numbers: Type.Integer(about("In how many of the `rows` it has a telephone number.", 0)),
  }), about("The columns of the file.")),
  rows: Type.Array(Type.Object({
    row: Type.Integer(about("The row number, as spreadsheets count; the header is 1.", 2)),
    cells: Type.Array(Type.String(), about("The cells of the row; long texts are cut.", ["Ada"])),
  }), about("The first readable rows.")),
  mapping: GuessSchema,
}, named("ImportPreview", "The beginning of a file, as the import would read it."));

async function previewOf(
  { sheet, rows: readRows }: ImportFile,
): Promise<Static<typeof PreviewSchema>> {
  let format = null as CsvFormat | null;
  let names: string[] | null = null;
  const rows: { row: number; cells: string[] }[] = [];
  for await (const row of readRows((found) => (format = found))) {
    if (names === null) {
      names = namesOf(row);
      if (names.length > LIMITS.leadPreviewColumnsMax) {
        throw fieldFault("file",
          `The file has more than ${LIMITS.leadPreviewColumnsMax} columns.`);
      }
    } else if (row.kind === "cells") rows.push(row);
    if (rows.length === LIMITS.leadPreviewRows) break;
  }
  if (names === null) throw fieldFault("file", "The file field is required.");
  const read = rows.map(({ cells }) => cells);
  const width = names.length;
  const short = (text: string): string => firstChars(text, LIMITS.leadPreviewCellChars);
  return {
    ...format ?? { encoding: null, delimiter: null }, sheet,
    columns: names.map((name, at) => ({ name: short(name), numbers: numbersIn(read, at) })),
    rows: rows.map(({ row, cells }) => ({ row, cells: cells.slice(0, width).map(short) })),
    mapping: guessMapping(names, read),
  };
}

export function previewRoute(
  { files, uploadsDir }: { files: ImportFiles; uploadsDir: string },
): Route {
  const { leadPreviewBytesMax: csvBytesMax, uploadBytesMax: fileBytesMax } = LIMITS;
  return keyRoute({
    tag: "Leads",
    errorShape: "message",
    method: "POST",
    path: "/user/leads/import/preview",
    summary: "Preview an import of leads",
    description: `Takes the beginning of a CSV file, at most ${csvBytesMax / 1024} KB, or all of an `
      + "XLSX file, and stores nothing. `mapping` is what the columns seem to be; the import takes it "
      + "as it is or changed.",
    body: Type.Object({}),
    upload: { folder: uploadsDir, fileBytesMax },
    responses: {
      200: {
        description: "The preview",
        schema: Type.Object({ data: PreviewSchema }),
      },
      422: { description: "No file, or a file with too many columns" },
    },
    handle: async ({ http }) => {
      const uploaded = uploadOf(http.form, fileBytesMax);
      const wanted = { rowsMax: LIMITS.leadPreviewRows + 1, csvBytesMax };
      return json(200, { data: await files.with(uploaded, wanted, previewOf) });
    },
  });
}
