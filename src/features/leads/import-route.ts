// The import of leads from a CSV file: read while it is written in batches, every row counted.
import { Type } from "@sinclair/typebox";
import { fieldFault } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import { about, named } from "#core/schema.ts";
import { savedOf } from "#http/answers.ts";
import { json, type MultipartForm } from "#http/exchange.ts";
import { keyRoute, type Route } from "#http/route.ts";
import { tooLargeFile } from "#http/server.ts";
import { readCsv, type CsvRow } from "./csv.ts";
import { DUPLICATES, type Leads, type NewLead } from "./leads.ts";
import { readPhoneNumber } from "./phone.ts";
import { readVariables } from "./wire.ts";

const NUMBER_COLUMNS = ["phone_number", "phone", "number"];
const TEXT_CHARS_MAX = 64;

const ImportBody = Type.Object({
  campaign_id: Type.Integer(about("The campaign that is to call them: its `id`.", 1)),
  allow_dupplicate: Type.Optional(Type.Boolean({
    default: false, ...about("Whether numbers may be in the campaign already."),
  })),
  duplicates: Type.Optional(Type.Union(DUPLICATES.map((what) => Type.Literal(what)), about(
    "What becomes of numbers the campaign has: `skip` leaves them out, `add` adds them once more, "
      + "`update` gives their variables to the lead there is. Left out: as `allow_dupplicate` says.",
    "skip"))),
});
const ReportSchema = Type.Object({
  imported: Type.Integer(about("Rows that became leads.", 98)),
  duplicates: Type.Integer(about("Rows left out, as the campaign has their number.", 1)),
  updated: Type.Integer(about(
    "Rows among these duplicates whose variables went to the lead there is.", 0)),
  failed: Type.Integer(about("Rows that could not be read.", 1)),
  errors: Type.Array(Type.Object({
    row: Type.Integer(about("As spreadsheets count: the header is 1.", 12)),
    phone_number: Type.String(about("What stood in the number's column.", "12ab")),
    message: Type.String(about("What is wrong with the row.", "Invalid phone number")),
  }), about("The first rows that could not be read.")),
  errors_truncated: Type.Boolean(about("Whether more rows failed than `errors` lists.", false)),
}, named("ImportReport", "What became of the rows of a file."));
type Report = typeof ReportSchema.static;

export function importRoute(
  { leads, uploadsDir }: { leads: Leads; uploadsDir: string },
): Route {
  return keyRoute({
    tag: "Leads",
    errorShape: "message",
    method: "POST",
    path: "/user/leads/import",
    summary: "Import leads from a CSV file",
    description: "Its first row names the columns: `phone_number`, `phone` or `number`; every other "
      + "column is a variable. UTF-8, UTF-16 and Windows files are read, with commas, semicolons, "
      + "tabs or bars between columns.",
    body: ImportBody,
    upload: { folder: uploadsDir, fileBytesMax: LIMITS.uploadBytesMax },
    responses: {
      200: {
        description: "What became of the rows",
        schema: savedOf(ReportSchema),
      },
      404: { description: "No such campaign" },
      422: { description: "No such file, or no column of numbers" },
    },
    handle: async ({ caller, body, http }) => {
      const { accountId } = caller;
      const { campaign_id: campaignId, allow_dupplicate: allowsDuplicates = false } = body;
      const { duplicates = allowsDuplicates ? "add" : "skip" } = body;
      await leads.assertCampaign(accountId, campaignId);
      const data = await importFile(uploadOf(http.form), (batch) =>
        leads.addAll({ accountId, campaignId, leads: batch, duplicates }));
      return json(200, { message: "Leads imported successfully", data });
    },
  });
}

function uploadOf(form: MultipartForm | undefined): string {
  if (!form?.file || form.file.bytes === 0) throw fieldFault("file", "The file field is required.");
  if (form.file.tooLarge) throw tooLargeFile(LIMITS.uploadBytesMax);
  return form.file.path;
}

interface Columns {
  names: string[];
  /** Which of them is the number. */
  number: number;
}

function columnsOf(header: CsvRow): Columns {
  const names = header.kind === "cells" ? header.cells : [];
  const number = names.findIndex((name) => NUMBER_COLUMNS.includes(name.toLowerCase()));
  if (number < 0) throw fieldFault("file", "The file needs a column phone_number.");
  return { names, number };
}

/** A text: what is wrong with the row. */
function leadOf({ names, number: at }: Columns, cells: string[]): NewLead | string {
  if (cells.slice(names.length).some((cell) => cell !== "")) {
    return "The row has more cells than the header.";
  }
  const number = readPhoneNumber(cells[at] ?? "");
  if (!number) return "Invalid phone number";
  // What is empty is left to the assistant's default.
  const variables = readVariables(Object.fromEntries(names
    .map((name, index) => [name, index === at ? "" : cells[index] ?? ""] as const)
    .filter(([name, text]) => name !== "" && text !== "")));
  return typeof variables === "string" ? variables : { ...number, variables, contacts: [] };
}

async function importFile(
  path: string, add: (batch: NewLead[]) => ReturnType<Leads["addAll"]>,
): Promise<Report> {
  const report: Report = {
    imported: 0, duplicates: 0, updated: 0, failed: 0, errors: [], errors_truncated: false,
  };
  const fail = (row: number, text: string, message: string): void => {
    report.failed += 1;
    if (report.errors.length < LIMITS.leadImportErrorsMax) {
      report.errors.push({ row, phone_number: text.slice(0, TEXT_CHARS_MAX), message });
    } else report.errors_truncated = true;
  };
  let columns: Columns | null = null;
  let batch: NewLead[] = [];
  const write = async (): Promise<void> => {
    const { ids, updated } = await add(batch);
    report.updated += updated;
    const imported = ids.filter((id) => id !== null).length;
    report.imported += imported;
    report.duplicates += ids.length - imported;
    batch = [];
  };
  for await (const row of readCsv(path)) {
    if (!columns) {
      columns = columnsOf(row);
      continue;
    }
    if (row.kind === "broken") {
      fail(row.row, row.text, "The row is not valid CSV.");
      continue;
    }
    const lead = leadOf(columns, row.cells);
    if (typeof lead === "string") fail(row.row, row.cells[columns.number] ?? "", lead);
    else batch.push(lead);
    if (batch.length === LIMITS.leadImportBatchRows) await write();
  }
  if (!columns) throw fieldFault("file", "The file field is required.");
  if (batch.length > 0) await write();
  return report;
}
