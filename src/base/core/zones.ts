// Days and clock times, as people in a time zone have them and the instants they begin at, summer
// time included. Used by lists, charts and reports that are narrowed to days (days.ts), by prompts,
// and by the dashboard, which is why nothing of Node's is loaded here.
import type { Instant } from "./system.ts";

export const MINUTE_MICROS = 60_000_000;
export const DAY_MICROS = 24 * 60 * MINUTE_MICROS;

interface LocalDateTime {
  date: string;
  time: string;
}

const LOCAL_CLOCKS_MAX = 1000;

/** Making a formatter costs more than a whole turn, and every turn asks: kept per time zone. */
const localClocks = new Map<
  string,
  { format: Intl.DateTimeFormat; minute: number; reading: LocalDateTime }
>();

/** `YYYY-MM-DD` and `HH:MM` as people in `timeZone` read them. */
export function localDateTime(instant: Instant, timeZone: string): LocalDateTime {
  const minute = Math.floor(instant / MINUTE_MICROS);
  const known = localClocks.get(timeZone);
  if (known?.minute === minute) return known.reading;
  const format = known?.format ?? new Intl.DateTimeFormat("en-CA", {
    timeZone,
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
  });
  const parts = format.formatToParts(new Date(Math.floor(instant / 1000)));
  const part = (type: Intl.DateTimeFormatPartTypes) =>
    parts.find((candidate) => candidate.type === type)?.value ?? "";
  const reading = {
    date: `${part("year")}-${part("month")}-${part("day")}`,
    time: `${part("hour")}:${part("minute")}`,
  };
  // Names are spelt in any case, so there are more spellings than zones.
  if (localClocks.size >= LOCAL_CLOCKS_MAX) localClocks.clear();
  localClocks.set(timeZone, { format, minute, reading });
  return reading;
}

const asUtc = (date: string, time: string): Instant => Date.parse(`${date}T${time}:00Z`) * 1000;

export const dayAt = (instant: Instant, timeZone: string): string =>
  localDateTime(instant, timeZone).date;

function offsetAt(instant: Instant, timeZone: string): number {
  const { date, time } = localDateTime(instant, timeZone);
  return asUtc(date, time) - (instant - instant % MINUTE_MICROS);
}

/**
 * The first instant at which clocks there show `wanted` or later: the moment of the change where
 * they skip it, the earlier of two where they show it twice. `wanted` is written as if it were UTC.
 */
export function firstShowing(wanted: Instant, timeZone: string): Instant {
  const isShown = (instant: Instant): boolean => instant + offsetAt(instant, timeZone) >= wanted;
  // Its offset is that of the day before or of the day after.
  const [one, other] = [-DAY_MICROS, DAY_MICROS]
    .map((away) => wanted - offsetAt(wanted + away, timeZone)) as [Instant, Instant];
  let before = Math.min(one, other);
  if (isShown(before)) return before;
  let found = Math.max(one, other);
  if (found + offsetAt(found, timeZone) === wanted) return found;
  while (found - before > MINUTE_MICROS) {
    const middle = before + Math.floor((found - before) / 2 / MINUTE_MICROS) * MINUTE_MICROS;
    if (isShown(middle)) found = middle;
    else before = middle;
  }
  return found;
}

export const clockInstant = (day: string, time: string, timeZone: string): Instant =>
  firstShowing(asUtc(day, time), timeZone);

export const dayStart = (day: string, timeZone: string): Instant =>
  clockInstant(day, "00:00", timeZone);
