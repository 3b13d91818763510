// The instants that days and clock times begin at in a time zone, summer time included. Used by
// lists, charts and reports that are narrowed to days (days.ts).
import { DAY_MICROS, localDateTime, MINUTE_MICROS, type Instant } from "./system.ts";

const asUtc = (date: string, time: string): Instant => Date.parse(`${date}T${time}:00Z`) * 1000;

export const dayAt = (instant: Instant, timeZone: string): string =>
  localDateTime(instant, timeZone).date;

function offsetAt(instant: Instant, timeZone: string): number {
  const { date, time } = localDateTime(instant, timeZone);
  return asUtc(date, time) - (instant - instant % MINUTE_MICROS);
}

/**
 * The first instant at which clocks there show this or later: where they are put forward it may be
 * later, where they are put back the earlier of two. Offsets of the days around it are all it can
 * have.
 */
export function clockInstant(day: string, time: string, timeZone: string): Instant {
  const wanted = asUtc(day, time);
  const possible = [-DAY_MICROS, DAY_MICROS]
    .map((away) => wanted - offsetAt(wanted + away, timeZone));
  return Math.min(...possible.filter((instant) =>
    instant + offsetAt(instant, timeZone) >= wanted));
}

export const dayStart = (day: string, timeZone: string): Instant =>
  clockInstant(day, "00:00", timeZone);
