// The hours, days or weeks that the overview shows, kept in the page's address, and the time that
// each point of its charts covers.
import { dayAfter, daysBetween, isDay } from "#core/days.ts";
import { openNarrowed } from "#ui/dashboard/data/address.ts";
import { calendarDay } from "#ui/dashboard/kit/format.ts";
import { LOCALE, t } from "#ui/dashboard/kit/texts.ts";
import { shownZone, today } from "#ui/dashboard/kit/zone.ts";

export const DAYS_DEFAULT = 30;
export const NO_RANGE = { days: "", from: "", to: "", by: "", assistant: "", before: "" };
export type RangeFields = typeof NO_RANGE;

export const UNITS = ["hour", "day", "week"] as const;
type Unit = (typeof UNITS)[number];

export interface Range {
  from: string;
  to: string;
  by: Unit;
  assistant: string;
  /** How many days, both ends included. */
  length: number;
}

/** The server's limits. */
const MOST_DAYS: Record<Unit, number> = { hour: 14, day: 366, week: 366 };
const DAY_MS = 86_400_000;
const HOURS_UP_TO_DAYS = 2;
const WEEKS_FROM_DAYS = 120;

export const fits = (unit: Unit, length: number): boolean => length <= MOST_DAYS[unit];

function unitOf(chosen: string, length: number): Unit {
  const known = UNITS.find((unit) => unit === chosen);
  if (known && fits(known, length)) return known;
  if (length <= HOURS_UP_TO_DAYS) return "hour";
  return length >= WEEKS_FROM_DAYS ? "week" : "day";
}

export function rangeOf({ days, from, to, by, assistant }: RangeFields): Range {
  const last = isDay(to) ? to : today();
  const count = Math.min(MOST_DAYS.day, Math.max(1, Number(days) || DAYS_DEFAULT));
  const wanted = isDay(from) && from <= last ? from : dayAfter(last, 1 - count);
  const earliest = dayAfter(last, 1 - MOST_DAYS.day);
  const first = wanted < earliest ? earliest : wanted;
  const length = daysBetween(first, last) + 1;
  return { from: first, to: last, by: unitOf(by, length), assistant, length };
}

/** The period of the same length right before it. */
export const periodBefore = (range: Range): Range => ({
  ...range, from: dayAfter(range.from, -range.length), to: dayAfter(range.from, -1),
});

export const queryOf = ({ from, to, by, assistant }: Range) => ({
  date_from: from, date_to: to, by, timezone: shownZone(),
  ...assistant ? { assistant_id: Number(assistant) } : {},
});

/** In an hour that occurs twice, as clocks are put back, each time names its zone. */
export const labelsOf = (points: { date: string }[], by: Unit, zone: string): string[] =>
  points.map(({ date }, at) => {
    const label = labelOf(date, by);
    if (points[at + 1]?.date === date) return `${label} ${zoneNameAt(date, -DAY_MS, zone)}`;
    if (points[at - 1]?.date === date) return `${label} ${zoneNameAt(date, DAY_MS, zone)}`;
    return label;
  });

/**
 * The zone's name this long before or after the time: `CEST` or `GMT+2`, as the language has it.
 */
const zoneNameAt = (date: string, shiftMs: number, timeZone: string): string =>
  new Intl.DateTimeFormat(LOCALE, { timeZone, timeZoneName: "short" })
    .formatToParts(Date.parse(`${date}Z`) + shiftMs)
    .find(({ type }) => type === "timeZoneName")?.value ?? "";

function labelOf(date: string, by: Unit): string {
  const [day = "", time] = date.split("T");
  if (time !== undefined) return `${calendarDay(day)}, ${time}`;
  return by === "week" ? t("Week of {day}", { day: calendarDay(day) }) : calendarDay(day);
}

const hourAfter = (date: string): string => {
  const [day = "", time = ""] = date.split("T");
  const next = Number(time.slice(0, 2)) + 1;
  const clock = `${String(next % 24).padStart(2, "0")}${time.slice(2)}`;
  return `${next === 24 ? dayAfter(day) : day}T${clock}`;
};

/** Opens the list filtered to the hour, day or week. */
export const opening = (path: string, points: { date: string }[], range: Range) =>
  (index: number): void => {
    const date = points[index]?.date;
    if (date === undefined) return;
    const next = points[index + 1]?.date;
    const to = {
      hour: () => hourAfter(date), day: () => date,
      week: () => next === undefined ? range.to : dayAfter(next, -1),
    }[range.by]();
    openNarrowed(path, {
      from: date, to, ...range.assistant ? { assistant: range.assistant } : {},
    });
  };
