// The rules of a number's subscription that need no database: calendar months, and what happens to
// a number whose month is over. Used by the store inside its transactions.
import type { Instant } from "#core/system.ts";
import { DAY_MICROS } from "#core/zones.ts";

/** `grace`: unpaid, works; `suspended`: unpaid, can be neither called nor assigned. */
export type NumberStatus = "active" | "grace" | "suspended";

/**
 * The end of the month that begins at `start`, in UTC, of a subscription that began at `anchor`:
 * the anchor's day and time in the next month, or that month's last day. Derived from the anchor
 * and not from the start, so that 31 January is followed by 28 February and 31 March.
 */
export function monthAfter(start: Instant, anchor: Instant): Instant {
  const startDate = new Date(Math.floor(start / 1000));
  const anchorDate = new Date(Math.floor(anchor / 1000));
  const [year, month] = [startDate.getUTCFullYear(), startDate.getUTCMonth() + 1];
  const lastDay = new Date(Date.UTC(year, month + 1, 0)).getUTCDate();
  const day = Math.min(anchorDate.getUTCDate(), lastDay);
  const timeOfDay = anchor - Math.floor(anchor / DAY_MICROS) * DAY_MICROS;
  return Date.UTC(year, month, day) * 1000 + timeOfDay;
}

interface Unpaid {
  status: NumberStatus;
  graceUntil: Instant | null;
}

/**
 * What happens to a number that its account cannot pay for now. Each grace period counts from when
 * it was found unpaid, so that a server that was off does not release a number at once.
 */
export type Consequence =
  | { kind: "grace" | "suspended"; graceUntil: Instant; dueAt: Instant }
  | { kind: "removed" }
  /** The status is unchanged; payment is retried within a day. */
  | { kind: "waiting"; dueAt: Instant };

export function consequenceOf(
  { status, graceUntil }: Unpaid, now: Instant, graceMicros: number,
): Consequence {
  const nextTry = (until: Instant): Instant => Math.min(now + DAY_MICROS, until);
  const begin = (kind: "grace" | "suspended"): Consequence => {
    const until = now + graceMicros;
    return { kind, graceUntil: until, dueAt: nextTry(until) };
  };
  if (status === "active") return begin("grace");
  const until = graceUntil ?? now;
  if (now < until) return { kind: "waiting", dueAt: nextTry(until) };
  return status === "grace" ? begin("suspended") : { kind: "removed" };
}
