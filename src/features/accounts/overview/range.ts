// The hours, days or weeks that an overview consists of, in a time zone. Called by overview.ts;
// routes.ts limits what may be requested.
import { dayAfter, mondayOf } from "#core/days.ts";
import type { Instant } from "#core/system.ts";
import { dayStart, localDateTime, MINUTE_MICROS } from "#core/zones.ts";

export const UNITS = ["hour", "day", "week"] as const;
type Unit = (typeof UNITS)[number];

export interface Asked {
  /** Days, both included. */
  from: string;
  to: string;
  by: Unit;
  timeZone: string;
  /** Null: of all of them. */
  assistantId: number | null;
}

export interface Bucket {
  /** `YYYY-MM-DD`; for a week its first day in the range, for an hour `YYYY-MM-DDTHH:MM`. */
  date: string;
  from: Instant;
  /** Exclusive. */
  to: Instant;
}

const HOUR_MICROS = 60 * MINUTE_MICROS;

/** Where clocks are changed, a day has an hour less or more. */
function hoursOf({ date: day, from, to }: Bucket, timeZone: string): Bucket[] {
  const hours: Bucket[] = [];
  for (let at = from; at < to; at += HOUR_MICROS) {
    const { time } = localDateTime(at, timeZone);
    hours.push({ date: `${day}T${time}`, from: at, to: Math.min(at + HOUR_MICROS, to) });
  }
  return hours;
}

/** Oldest first. */
export function bucketsOf({ from, to, by, timeZone }: Asked): Bucket[] {
  const buckets: Bucket[] = [];
  for (let day = from; day <= to;) {
    const week = dayAfter(mondayOf(day), 7);
    const next = by === "week" && week <= to ? week : dayAfter(by === "week" ? to : day);
    const bucket = { date: day, from: dayStart(day, timeZone), to: dayStart(next, timeZone) };
    buckets.push(...by === "hour" ? hoursOf(bucket, timeZone) : [bucket]);
    day = next;
  }
  return buckets;
}
