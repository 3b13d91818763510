// The import of leads from a file: rows are read and stored in batches, and each is counted. The
// account's watchers receive its progress.
import { Type } from "@sinclair/typebox";
import { fieldFault, restarting } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import { about, named, OneOf } from "#core/schema.ts";
import { savedOf } from "#http/answers.ts";
import { json, type MultipartForm } from "#http/exchange.ts";
import { keyRoute, type Route } from "#http/route.ts";
import { tooLargeFile } from "#http/server.ts";
import { assertMapping, columnsOf, leadOf, MappingField, type Columns } from "./columns-wire.ts";
import type { CsvRow } from "./csv.ts";
import type { ImportFile, ImportFiles } from "./import-file.ts";
import { DUPLICATES, type ImportProgress, type Leads, type NewLead } from "./leads.ts";

const TEXT_CHARS_MAX = 64;

const ImportBody = Type.Object({
  campaign_id: Type.Integer(about("The `id` of the campaign that should call the leads.", 1)),
  allow_dupplicate: Type.Optional(Type.Boolean({
    default: false, ...about("Whether to add numbers the campaign already has."),
  })),
  duplicates: Type.Optional(OneOf(DUPLICATES, about(
    "What to do with numbers the campaign already has: `skip` leaves them out, `add` adds them "
    + "again, `update` updates the existing lead's variables. Defaults to what `allow_dupplicate` "
    + "says.",
    "skip"))),
  mapping: MappingField,
  import_id: Type.Optional(Type.String({
    minLength: 1, maxLength: 64, ...about(
      "A name you choose for this import. The account's stream then sends `lead_import_progress` "
      + "events with this name and how many `rows` of `rows_total` are done.",
      "import-7"),
  })),
});
const ReportSchema = Type.Object({
  imported: Type.Integer(about("The number of rows added as leads.", 98)),
  duplicates: Type.Integer(about("The number of rows skipped because the campaign already has the "
    + "number.",
    1)),
  updated: Type.Integer(about(
    "The number of these duplicates whose variables updated the existing lead.", 0)),
  failed: Type.Integer(about("The number of rows that could not be read.", 1)),
  errors: Type.Array(Type.Object({
    row: Type.Integer(about("The row number, as spreadsheets count; the header is 1.", 12)),
    phone_number: Type.String(about("The content of the number's column.", "12ab")),
    message: Type.String(about("The problem with the row.", "Invalid phone number")),
  }), about("The first rows that could not be read.")),
  errors_truncated: Type.Boolean(about("Whether more rows failed than are listed in `errors`.",
    false)),
}, named("ImportReport", "The result of an import."));
type Report = typeof ReportSchema.static;

export function importRoute(
  { leads, files, uploadsDir, draining }: {
    leads: Leads; files: ImportFiles; uploadsDir: string; draining(): boolean;
  },
): Route {
  return keyRoute({
    tag: "Leads",
    errorShape: "message",
    method: "POST",
    path: "/user/leads/import",
    summary: "Import leads from a CSV or XLSX file",
    isRepeatable: true,
    description: "The first row names the columns: one is `phone_number`, `phone` or `number`, and "
      + "every other column becomes a variable, unless `mapping` says otherwise. CSV may be "
      + "UTF-8, UTF-16 or a Windows code page, with commas, semicolons, tabs or bars between "
      + "columns. Of a workbook, the first visible sheet is read. Once the whole file has "
      + "arrived, the import finishes even if the client disconnects. If the upload was cut off, "
      + "send it again with `duplicates` set to `skip`.",
    body: ImportBody,
    upload: { folder: uploadsDir, fileBytesMax: LIMITS.uploadBytesMax },
    responses: {
      200: {
        description: "The result, row by row",
        schema: savedOf(ReportSchema),
      },
      404: { description: "No such campaign" },
      422: { description: "No file, no column of numbers, or an invalid mapping" },
    },
    handle: async ({ caller, body, http }) => {
      const { accountId } = caller;
      const { campaign_id: campaignId, allow_dupplicate: allowsDuplicates = false } = body;
      const { duplicates = allowsDuplicates ? "add" : "skip", import_id: importId } = body;
      assertMapping(body.mapping);
      await leads.assertCampaign(accountId, campaignId);
      const uploaded = uploadOf(http.form, LIMITS.uploadBytesMax);
      const data = await files.with(uploaded, {}, (file) => importFile(file, {
        columnsIn: (header) => columnsOf(header, body.mapping),
        add: (batch) => leads.addAll({ accountId, campaignId, leads: batch, duplicates }),
        draining,
        tell: importId === undefined
          ? null
          : leads.progressTeller(accountId, { import_id: importId, campaign_id: campaignId }),
      }));
      return json(200, { message: "Leads imported successfully", data });
    },
  });
}

type FormFile = NonNullable<MultipartForm["file"]>;

export function uploadOf(form: MultipartForm | undefined, bytesMax: number): FormFile {
  if (!form?.file || form.file.bytes === 0) throw fieldFault("file", "The file field is required.");
  if (form.file.tooLarge) throw tooLargeFile(bytesMax);
  return form.file;
}

/** Counts the rows by outcome. */
function createReport() {
  const report: Report = {
    imported: 0, duplicates: 0, updated: 0, failed: 0, errors: [], errors_truncated: false,
  };
  return {
    report,
    added: ({ ids, updated }: Awaited<ReturnType<Leads["addAll"]>>): void => {
      const imported = ids.filter((id) => id !== null).length;
      report.imported += imported;
      report.duplicates += ids.length - imported;
      report.updated += updated;
    },
    fail: (row: number, text: string, message: string): void => {
      report.failed += 1;
      if (report.errors.length < LIMITS.leadImportErrorsMax) {
        report.errors.push({ row, phone_number: text.slice(0, TEXT_CHARS_MAX), message });
      } else report.errors_truncated = true;
    },
    progress: (total: number): ImportProgress => {
      const { imported, duplicates, failed } = report;
      const rows = imported + duplicates + failed;
      return { rows, rows_total: total, imported, duplicates, failed };
    },
  };
}

interface ImportDeeds {
  columnsIn(header: CsvRow): Columns;
  add(batch: NewLead[]): ReturnType<Leads["addAll"]>;
  draining(): boolean;
  /** Null: nobody wants the progress. */
  tell: ((progress: ImportProgress) => void) | null;
}

async function importFile(
  file: ImportFile, { columnsIn, add, draining, tell }: ImportDeeds,
): Promise<Report> {
  const { report, added, fail, progress } = createReport();
  const total = tell ? await file.count() - 1 : 0;
  const broken = file.sheet === null ? "The row is not valid CSV." : "The row is too long.";
  let columns: Columns | null = null;
  let batch: NewLead[] = [];
  const write = async (): Promise<void> => {
    if (batch.length > 0) added(await add(batch));
    batch = [];
    tell?.(progress(total));
  };
  for await (const row of file.rows()) {
    if (!columns) {
      columns = columnsIn(row);
      continue;
    }
    if (row.kind === "broken") {
      fail(row.row, row.text, broken);
      continue;
    }
    const lead = leadOf(columns, row.cells);
    if (typeof lead === "string") fail(row.row, row.cells[columns.number] ?? "", lead);
    else batch.push(lead);
    if (batch.length < LIMITS.leadImportBatchRows) continue;
    // Answered now, so that the client learns why: a stopping server waits only briefly for
    // answers.
    if (draining()) throw restarting();
    await write();
  }
  if (!columns) throw fieldFault("file", "The file field is required.");
  await write();
  return report;
}
