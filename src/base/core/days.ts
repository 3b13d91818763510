// Days of the calendar, wherever they are counted: `YYYY-MM-DD`. The instants they begin at in a
// time zone are in zones.ts. Used by lists, charts, reports and opening hours, on the server and in
// the dashboard.
const DAY_MS = 86_400_000;
const YEARS = { first: "1900", last: "9999" };

export const WEEKDAYS = [
  "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday",
] as const;
export type Weekday = (typeof WEEKDAYS)[number];

const msOf = (day: string): number => Date.parse(`${day}T00:00:00Z`);
const textOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

/** Whether the day exists; the days before and after it must have four-digit years too. */
export function isDay(text: string): boolean {
  const ms = msOf(text);
  return text > YEARS.first && text < YEARS.last && !Number.isNaN(ms) && textOf(ms) === text;
}

const MOMENT = /^(\d{4}-\d\d-\d\d)(T\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)?)?$/;

/**
 * The milliseconds of an ISO 8601 timestamp; null: it is not one. `Date.parse` would take a date
 * that does not exist for a later one.
 */
export function msOfMoment(text: string): number | null {
  const day = MOMENT.exec(text)?.[1];
  const ms = Date.parse(text);
  return day !== undefined && isDay(day) && !Number.isNaN(ms) ? ms : null;
}

/** So many days later, or with a negative number earlier. */
export const dayAfter = (day: string, days = 1): string => textOf(msOf(day) + days * DAY_MS);

/** How many days `to` is after `from`. */
export const daysBetween = (from: string, to: string): number => (msOf(to) - msOf(from)) / DAY_MS;

const daysFromMonday = (day: string): number => (new Date(msOf(day)).getUTCDay() + 6) % 7;

/** The Monday of its week. */
export const mondayOf = (day: string): string => dayAfter(day, -daysFromMonday(day));

export const weekdayOf = (day: string): Weekday => WEEKDAYS[daysFromMonday(day)] ?? "monday";
