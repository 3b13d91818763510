// Maps the columns of an import's file, by the request's mapping or else by the names in the
// header, and its rows to leads. Called by import-route.ts and preview-route.ts.
import { Type, type Static } from "@sinclair/typebox";
import { fieldFault } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import { about, named, Nullable, prepared } from "#core/schema.ts";
import { jsonOf } from "#core/values.ts";
import type { CsvRow } from "./csv.ts";
import type { NewLead } from "./leads.ts";
import { numberFault, readPhoneNumber } from "./phone.ts";
import { readVariables } from "./wire.ts";

const NUMBER_COLUMNS = ["phone_number", "phone", "number"];
/** Parts of the names that other programs give to the number's column. */
const NUMBER_WORDS =
  /phone|mobile|handy|rufnummer|^(?:tel|cell|msisdn|nummer)\b|telefon|teléfono|téléphone|móvil/i;

const ColumnNumber = (description: string) =>
  Type.Integer({ minimum: 1, ...about(`${description} The file's first is 1.`, 1) });
const VariableColumns = Type.Array(
  Type.Object({
    column: ColumnNumber("Which column."),
    name: Type.String(about("The variable the column becomes.", "first_name")),
  }, { additionalProperties: false }),
  {
    maxItems: LIMITS.variablesMax,
    ...about("The columns that become variables; all others are ignored."),
  });

/** Multipart forms send the mapping as JSON text. */
const fromText = prepared((value) => {
  const read = typeof value === "string" ? jsonOf(value) : undefined;
  return read === undefined ? value : read;
});
export const MappingField = Type.Optional(Type.Object({
  phone_number: ColumnNumber("The column of the telephone number."),
  variables: Type.Optional(VariableColumns),
}, {
  additionalProperties: false, ...fromText,
  ...about("What the file's columns mean; as JSON in a form. Defaults to what the header says.",
    { phone_number: 2, variables: [{ column: 1, name: "first_name" }] }),
}));
type Mapping = Exclude<Static<typeof MappingField>, undefined>;

export const GuessSchema = Type.Object({
  phone_number: Nullable(ColumnNumber("The column of the telephone number."), about(
    "The column that looks like telephone numbers; null if none does.", 1)),
  variables: VariableColumns,
}, named("ImportMapping", "The detected mapping, in the form the import takes."));

export interface Columns {
  /** How many columns the header has. */
  width: number;
  /** Index of the number's column, from 0. */
  number: number;
  variables: { at: number; name: string }[];
}

const refused = (message: string) => fieldFault("mapping", message);

/** Throws Fault 422 for a mapping that cannot fit any file. */
export function assertMapping(mapping: Mapping | undefined): void {
  if (!mapping) return;
  const { phone_number: number, variables = [] } = mapping;
  if (new Set([number, ...variables.map(({ column }) => column)]).size <= variables.length) {
    throw refused("The mapping has a column twice.");
  }
  if (new Set(variables.map(({ name }) => name.trim())).size < variables.length) {
    throw refused("The mapping has a variable twice.");
  }
  for (const { name } of variables) {
    const read = readVariables({ [name]: "" });
    if (typeof read === "string") throw refused(read);
  }
}

export const namesOf = (header: CsvRow): string[] => (header.kind === "cells" ? header.cells : []);

const isNumberName = (name: string): boolean => NUMBER_COLUMNS.includes(name.toLowerCase());

/** Throws Fault 422 when the file lacks the columns. */
export function columnsOf(header: CsvRow, mapping: Mapping | undefined): Columns {
  const names = namesOf(header);
  const width = names.length;
  if (!mapping) {
    const number = names.findIndex(isNumberName);
    if (number < 0) throw fieldFault("file", "The file needs a column phone_number.");
    const variables = names.map((name, at) => ({ at, name }))
      .filter(({ at, name }) => at !== number && name !== "");
    return { width, number, variables };
  }
  const { phone_number: number, variables = [] } = mapping;
  const last = Math.max(number, ...variables.map(({ column }) => column));
  if (last > width) throw refused(`The mapping has a column ${last}, but the file has only ${width}.`);
  return {
    width, number: number - 1,
    variables: variables.map(({ column, name }) => ({ at: column - 1, name })),
  };
}

/** The lead, or as text what is wrong with the row. */
export function leadOf(columns: Columns, cells: string[]): NewLead | string {
  const { width, number: at, variables } = columns;
  if (cells.slice(width).some((cell) => cell !== "")) {
    return "The row has more cells than the header.";
  }
  const cell = cells[at] ?? "";
  const number = readPhoneNumber(cell);
  if (!number) return numberFault(cell);
  // Empty cells are left out, so that the assistant's defaults apply.
  const read = readVariables(Object.fromEntries(variables
    .map(({ at: place, name }) => [name, cells[place] ?? ""] as const)
    .filter(([, text]) => text !== "")));
  return typeof read === "string" ? read : { ...number, variables: read, contacts: [] };
}

/** How many of the rows have a telephone number in the column. */
export const numbersIn = (rows: string[][], at: number): number =>
  rows.filter((cells) => readPhoneNumber(cells[at] ?? "") !== null).length;

/** A name that the import knows wins, then the most cells that are numbers, then similar names. */
function guessNumber(names: string[], rows: string[][]): number | null {
  const known = names.findIndex(isNumberName);
  if (known >= 0) return known;
  const points = names.map((name, at) =>
    numbersIn(rows, at) * 2 + (NUMBER_WORDS.test(name.trim()) ? 1 : 0));
  const most = Math.max(0, ...points);
  return most === 0 ? null : points.indexOf(most);
}

/** Leaves out names that no variable can have, and repeated names. */
export function guessMapping(names: string[], rows: string[][]): Static<typeof GuessSchema> {
  const number = guessNumber(names, rows);
  const variables = names.map((name, at) => ({ column: at + 1, name }))
    .filter(({ column, name }) => column - 1 !== number && names.indexOf(name) === column - 1
      && typeof readVariables({ [name]: "" }) !== "string")
    .slice(0, LIMITS.variablesMax);
  return { phone_number: number === null ? null : number + 1, variables };
}
