// Whether people are available, by an assistant's office hours. Pure; used wherever a person may be
// requested.
import type { Assistant } from "#features/assistants/assistants.ts";
import { openPeriods } from "#features/calendar/slots.ts";
import { dayAfter } from "#core/days.ts";
import { isoOrNull, type Instant } from "#core/system.ts";
import { dayAt } from "#core/zones.ts";
import type { Away } from "#events/events.ts";

/** How many days ahead the next opening is searched. */
const DAYS_MAX = 60;

/** Null: people are available, or no office hours are set. */
export function awayOf({ settings }: Assistant, now: Instant): Away | null {
  const office = settings.desk.office_hours ?? null;
  if (office === null) return null;
  const zone = office.time_zone ?? settings.timezone;
  const holidays = new Set(office.holidays ?? []);
  const today = dayAt(now, zone);
  // Yesterday's hours may extend past midnight.
  for (let days = -1; days <= DAYS_MAX; days += 1) {
    const date = dayAfter(today, days);
    if (holidays.has(date)) continue;
    for (const { start, end } of openPeriods(date, office.hours, zone)) {
      if (end <= now) continue;
      return start <= now ? null : awayUntil(office, start);
    }
  }
  return awayUntil(office, null);
}

const awayUntil = (
  { message, callback }: { message?: string; callback?: boolean }, opensAt: Instant | null,
): Away => ({
  message: message ?? "", opens_at: isoOrNull(opensAt),
  callback: callback === true,
});
