// Values of Excel's cells as people see them: dates and percentages are numbers with a format.
// Used by xlsx.ts.
import type { Archive } from "./archive.ts";

/** What the number of a cell is, by the number of its style. */
export type Formats = ("number" | "date" | "time" | "percent")[];

const BUILT_IN_DATES = new Set([14, 15, 16, 17, 22]);
const BUILT_IN_TIMES = new Set([18, 19, 20, 21, 45, 46, 47]);
const BUILT_IN_PERCENTS = new Set([9, 10]);
const DAY_MS = 86_400_000;
/** Day 0 of each of Excel's two calendars. */
const DAY_0_OF_1900 = -25_569;
const DAY_0_OF_1904 = -24_107;
const DAYS_MAX = 2_958_465;
/** More digits than Excel keeps are rounding. */
const DIGITS = 15;

function kindOf(id: number, code: string | undefined): Formats[number] {
  if (BUILT_IN_DATES.has(id)) return "date";
  if (BUILT_IN_TIMES.has(id)) return "time";
  if (BUILT_IN_PERCENTS.has(id)) return "percent";
  // Colours, conditions and quoted words are no part of the pattern.
  const pattern = (code ?? "").replaceAll(/\[[^\]]*\]|"[^"]*"|\\./g, "").toLowerCase();
  if (/[yd]/.test(pattern)) return "date";
  if (/[hs]/.test(pattern)) return "time";
  return pattern.includes("%") ? "percent" : "number";
}

export async function readFormats(archive: Archive): Promise<Formats> {
  const codes = new Map<number, string>();
  const formats: Formats = [];
  let isCells = false;
  await archive.parse("xl/styles.xml", {
    open: (name, { numFmtId: id, formatCode: code }) => {
      if (name === "numFmt") codes.set(Number(id), code ?? "");
      if (name === "cellXfs") isCells = true;
      if (name === "xf" && isCells) formats.push(kindOf(Number(id), codes.get(Number(id))));
    },
    close: (name) => {
      if (name === "cellXfs") isCells = false;
    },
  });
  return formats;
}

function momentText(days: number, is1904: boolean): string {
  const ms = Math.round((days + (is1904 ? DAY_0_OF_1904 : DAY_0_OF_1900)) * DAY_MS / 1000) * 1000;
  const [date = "", time = ""] = new Date(ms).toISOString().split("T");
  const clock = time.slice(0, 5);
  if (days < 1) return clock;
  return Number.isInteger(days) ? date : `${date} ${clock}`;
}

const numberText = (value: number): string => String(Number(value.toPrecision(DIGITS)));

interface Cell {
  type: string;
  style: number;
}

export function cellText(
  value: string, { type, style }: Cell,
  { texts, formats, is1904 }: { texts: readonly string[]; formats: Formats; is1904: boolean },
): string {
  switch (type) {
    case "s":
      return texts[Number(value)]?.trim() ?? "";
    case "b":
      return value === "" ? "" : value === "1" ? "TRUE" : "FALSE";
    case "e":
      return "";
    case "n":
      break;
    default:
      return value.trim();
  }
  const number = Number(value);
  if (value.trim() === "" || !Number.isFinite(number)) return value.trim();
  const format = formats[style] ?? "number";
  if (format === "percent") return `${numberText(number * 100)}%`;
  const isMoment = format !== "number" && number >= 0 && number < DAYS_MAX;
  return isMoment ? momentText(number, is1904) : numberText(number);
}
