// Values of Excel's cells as people see them: dates and percentages are numbers with a format.
// Used by xlsx.ts.
import type { Archive } from "./archive.ts";

/**
 * Digit placeholders, `0` or `#`, and the literal text between them, marked by a leading `'`: `'+`,
 * `0` for a telephone number, five `0` for a postcode.
 */
type Digits = string[];

/** The kind of number in a cell, by the index of its style. */
export type Formats = ("number" | "date" | "time" | "hours" | "percent" | Digits)[];

const BUILT_IN_DATES = new Set([14, 15, 16, 17, 22]);
const BUILT_IN_TIMES = new Set([18, 19, 20, 21, 45, 47]);
const BUILT_IN_HOURS = 46;
const BUILT_IN_PERCENTS = new Set([9, 10]);
const DAY_MS = 86_400_000;
/** Day 0 of each of Excel's two calendars. */
const DAY_0_OF_1900 = -25_569;
const DAY_0_OF_1904 = -24_107;
const DAYS_MAX = 2_958_465;
/** Further digits are rounding errors: Excel keeps no more. */
const DIGITS = 15;
/** Excel's own limit. */
const FORMAT_CHARS_MAX = 255;

/** Null: the format does not place digits one by one. */
function digitsIn(code: string): Digits | null {
  if (code.length > FORMAT_CHARS_MAX) return null;
  const [positive = ""] = code.split(";");
  const parts = positive.match(/"[^"]*"|\\.|[^"]/g) ?? [];
  const digits = parts.map((part) => {
    if (part === "0" || part === "#") return part;
    if (/^["\\]/.test(part)) return `'${part.replaceAll(/^["\\]|"$/g, "")}`;
    return /[+\-() /:]/.test(part) ? `'${part}` : "";
  });
  return digits.includes("") || !digits.some((part) => !part.startsWith("'")) ? null : digits;
}

function kindOf(id: number, code: string | undefined): Formats[number] {
  if (BUILT_IN_DATES.has(id)) return "date";
  if (BUILT_IN_TIMES.has(id)) return "time";
  if (BUILT_IN_PERCENTS.has(id)) return "percent";
  if (id === BUILT_IN_HOURS || /\[h+\]/i.test(code ?? "")) return "hours";
  // Colours, conditions, quoted text and room for a character (`_D`) are not part of the pattern.
  const pattern = (code ?? "").replaceAll(/\[[^\]]*\]|"[^"]*"|[\\_*]./g, "").toLowerCase();
  if (/[yd]/.test(pattern)) return "date";
  if (/[hs]/.test(pattern)) return "time";
  if (pattern.includes("%")) return "percent";
  return digitsIn(code ?? "") ?? "number";
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

/** A duration, which may be longer than a day. */
function hoursText(days: number): string {
  const minutes = Math.floor(Math.round(days * DAY_MS / 1000) / 60);
  return [Math.floor(minutes / 60), minutes % 60]
    .map((part) => String(part).padStart(2, "0")).join(":");
}

const numberText = (value: number): string => String(Number(value.toPrecision(DIGITS)));

/** Fills placeholders from the right; surplus digits go before the first one. */
function digitsText(value: number, format: Digits): string {
  let rest = numberText(value);
  const first = format.findIndex((part) => !part.startsWith("'"));
  return format.map((part, at) => [part, at] as const).reverse().map(([part, at]) => {
    if (part.startsWith("'")) return part.slice(1);
    const digits = at === first ? rest : rest.slice(-1);
    rest = rest.slice(0, rest.length - digits.length);
    return digits === "" && part === "0" ? "0" : digits;
  }).reverse().join("");
}

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
  if (Array.isArray(format)) {
    const isWritten = Number.isSafeInteger(number) && number >= 0;
    return isWritten ? digitsText(number, format) : numberText(number);
  }
  const isMoment = format !== "number" && number >= 0 && number < DAYS_MAX;
  if (!isMoment) return numberText(number);
  return format === "hours" ? hoursText(number) : momentText(number, is1904);
}
