// The instants that days begin at in a time zone, summer time included. Used by lists, charts and
// reports that are narrowed to days (days.ts).
import { DAY_MICROS, localDateTime, MINUTE_MICROS, type Instant } from "./system.ts";

const asUtc = (date: string, time: string): Instant => Date.parse(`${date}T${time}:00Z`) * 1000;

export const dayAt = (instant: Instant, timeZone: string): string =>
  localDateTime(instant, timeZone).date;

function offsetAt(instant: Instant, timeZone: string): number {
  const { date, time } = localDateTime(instant, timeZone);
  return asUtc(date, time) - (instant - instant % MINUTE_MICROS);
}

/**
 * The day's first instant: where clocks are put forward at midnight it is later than 00:00, where
 * they are put back the earlier of two. Offsets of the days around it are all it can have.
 */
export function dayStart(day: string, timeZone: string): Instant {
  const midnight = asUtc(day, "00:00");
  const possible = [-DAY_MICROS, DAY_MICROS]
    .map((away) => midnight - offsetAt(midnight + away, timeZone));
  return Math.min(...possible.filter((instant) => dayAt(instant, timeZone) >= day));
}
