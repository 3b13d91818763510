// When a campaign may call. Hours are compared with the local date and time at an instant, so that
// clock changes need no special handling. Leads may have time zones of their own.
import { weekdayOf, type Weekday } from "#core/days.ts";
import type { Instant } from "#core/system.ts";
import { localDateTime } from "#core/zones.ts";

export interface CallingHours {
  /** Minutes of the local day, both inclusive: calls may begin in either. */
  startMinute: number;
  endMinute: number;
  days: readonly Weekday[];
}

export function isOpenAt(hours: CallingHours, timeZone: string, instant: Instant): boolean {
  const { date, time } = localDateTime(instant, timeZone);
  const [hour = 0, minute = 0] = time.split(":").map(Number);
  const minuteOfDay = hour * 60 + minute;
  if (minuteOfDay < hours.startMinute || minuteOfDay > hours.endMinute) return false;
  return hours.days.includes(weekdayOf(date));
}

/** Whether any lead may be called: `zones` are the leads' as stored, "" where unknown. */
export function isOpenSomewhere(
  hours: CallingHours & { timeZone: string }, zones: readonly string[], instant: Instant,
): boolean {
  return (zones.length === 0 ? [""] : zones)
    .some((zone) => isOpenAt(hours, zone === "" ? hours.timeZone : zone, instant));
}
