// Figures, instants and durations as people read them, in the language the page is in.
import { wordsOf } from "#ui/codes.ts";
import { LOCALE, t } from "./texts.ts";
import { zoned } from "./zone.ts";

const CENTS = new Intl.NumberFormat(LOCALE, { style: "currency", currency: "USD" });
const LESS = new Intl.NumberFormat(LOCALE, {
  style: "currency", currency: "USD", maximumSignificantDigits: 2,
});
const MICROS = new Intl.NumberFormat(LOCALE, {
  style: "currency", currency: "USD", maximumFractionDigits: 6,
});

const MICROS_PER_DOLLAR = 1_000_000;

/**
 * USD in cents, in figures and lists alike; less than a cent is not rounded to nothing. Amounts are
 * whole micros: their sum, added up in dollars, is only nearly that.
 */
export function money(amount: number): string {
  const exact = Math.round(amount * MICROS_PER_DOLLAR) / MICROS_PER_DOLLAR;
  const isLess = exact !== 0 && Math.abs(exact) < 0.01;
  return (isLess ? LESS : CENTS).format(exact);
}

/** For titles: the digits after the cents, too. */
export const moneyExactly = (amount: number): string => MICROS.format(amount);

const COUNT = new Intl.NumberFormat(LOCALE);
export const count = (value: number): string => COUNT.format(value);

const PERCENT = new Intl.NumberFormat(LOCALE, { style: "percent" });
/** A share of one in whole percent. */
export const percent = (share: number): string => PERCENT.format(share);

/** With this many digits after the point. */
export const decimal = (value: number, digits: number): string => value.toLocaleString(LOCALE, {
  minimumFractionDigits: digits, maximumFractionDigits: digits,
});

/** The API's instants: ISO 8601, or `YYYY-MM-DD HH:MM:SS` in UTC. */
export function instant(text: string): Date {
  return new Date(text.includes("T") ? text : `${text.replace(" ", "T")}Z`);
}

export const timeOfDay = zoned({ hour: "2-digit", minute: "2-digit" });
export const timeAndZone = zoned({ hour: "2-digit", minute: "2-digit", timeZoneName: "short" });
export const day = zoned({ day: "numeric", month: "short" });
const CALENDAR = new Intl.DateTimeFormat(LOCALE, {
  day: "numeric", month: "short", timeZone: "UTC",
});
/** `YYYY-MM-DD`, in whatever zone the day was counted. */
export const calendarDay = (text: string): string => CALENDAR.format(new Date(`${text}T00:00:00Z`));
const dayAndYear = zoned({ day: "numeric", month: "short", year: "numeric" });
export const year = zoned({ year: "numeric" });
const whole = zoned({ dateStyle: "medium", timeStyle: "medium" });
const wholeAndZone = zoned({ dateStyle: "medium", timeStyle: "long" });
/** Clocks are put back by an hour, or on an island by half of one. */
const PUT_BACK_MS = [-3_600_000, -1_800_000, 1_800_000, 3_600_000];

/** Short: the time for today, the day for this year. */
export function when(text: string | null | undefined): string {
  if (!text) return "–";
  const date = instant(text);
  const now = new Date();
  if (dayAndYear(date) === dayAndYear(now)) return timeOfDay(date);
  return year(date) === year(now) ? `${day(date)}, ${timeOfDay(date)}` : dayAndYear(date);
}

/** For titles. A time that occurs twice, as clocks are put back, names its zone. */
export function whenExactly(text: string): string {
  const date = instant(text);
  const shown = whole(date);
  const isTwice = PUT_BACK_MS.some((ms) => whole(new Date(date.getTime() + ms)) === shown);
  return isTwice ? wholeAndZone(date) : shown;
}

/** `m:ss`, `h:mm:ss`. */
export function duration(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  const two = (part: number): string => String(part).padStart(2, "0");
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor((whole % 3600) / 60);
  return hours > 0
    ? `${hours}:${two(minutes)}:${two(whole % 60)}`
    : `${minutes}:${two(whole % 60)}`;
}

/**
 * To a tenth. Each day's minutes were rounded to a hundredth, so whole seconds can be recovered.
 */
export const minutesOf = (days: { minutes: number }[]): number =>
  Math.round(days.reduce((sum, { minutes }) => sum + Math.round(minutes * 60), 0) / 6) / 10;

export function bytes(size: number): string {
  if (size < 1024) return `${size} B`;
  const kib = size / 1024;
  return kib < 1024 ? `${decimal(kib, kib < 10 ? 1 : 0)} KB` : `${decimal(kib / 1024, 1)} MB`;
}

/** `in-progress`, `ended_by_customer` as words; ../../codes.ts lists the codes. */
export const words = (code: string): string => t(wordsOf(code));

/** Markdown on one line of a list: without table bars, asterisks and heading marks. */
export const inOneLine = (markdown: string): string => markdown
  .replaceAll(/^[ \t]*\|?[ \t]*:?-{2,}[-:| \t]*$|^[ \t]*#+[ \t]|\|/gm, " ")
  .replaceAll(/```\w*|`|\*\*/g, "").replaceAll(/\s+/g, " ").trim();

/** Indents JSON, and leaves anything else as it is. */
export function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
