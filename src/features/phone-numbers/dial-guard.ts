// Guards against toll fraud, pure: which numbers nobody may dial, and how fast an account may dial.
// Called inside the transaction that begins an outbound call, whatever its source. An account's
// plan limits its concurrent calls.
import { readNumberWithKind } from "#core/numbering-plans.ts";
import type { Instant } from "#core/system.ts";
import { MINUTE_MICROS } from "#core/zones.ts";

export interface DialRules {
  /** Two letters each; none: every country. */
  countries: readonly string[];
  /** Null: not limited. */
  perMinute: number | null;
}

/** Satellite and international networks: expensive, and typical targets of toll fraud. */
const SATELLITE = /^\+(870|881|882|883)/;
const PREMIUM_CODE = /^\+979/;

/**
 * Why nobody may dial the number (E.164), as a sentence for people; null: it may be dialled. A
 * number that numbering plans do not know yet does not count as premium, but a list of countries
 * refuses it, because its country is unknown.
 */
export function barredReason(phoneNumber: string, countries: readonly string[]): string | null {
  if (SATELLITE.test(phoneNumber)) return "Satellite phone numbers cannot be called.";
  const parsed = readNumberWithKind(phoneNumber);
  const type = parsed?.getType();
  if (type === "PREMIUM_RATE" || PREMIUM_CODE.test(phoneNumber)) {
    return "Premium-rate phone numbers cannot be called.";
  }
  if (type === "SHARED_COST") return "Shared-cost phone numbers cannot be called.";
  if (countries.length === 0) return null;
  const country = parsed?.country;
  if (country === undefined) {
    return "The phone number cannot be called: its country is not known.";
  }
  return countries.includes(country)
    ? null
    : `Phone numbers of the country ${country} cannot be called.`;
}

/** The token bucket's capacity, as a part of a minute's calls, rounded up. */
const BURST_PART = 1 / 6;

type DialTurn =
  | { kind: "now"; spentUntil: Instant }
  | { kind: "wait"; until: Instant };

/**
 * A token bucket as one instant, up to which the account's calls are spent: each call advances it
 * by its share of a minute, and it may be ahead of the clock by the bucket's capacity. `spentUntil`
 * is null before the first call.
 */
export function dialTurn(spentUntil: Instant | null, perMinute: number, now: Instant): DialTurn {
  const shareMicros = Math.ceil(MINUTE_MICROS / perMinute);
  const bucketMicros = Math.ceil(perMinute * BURST_PART) * shareMicros;
  // Dialling never gets this far ahead: the clock was set back, so the old value is ignored.
  const isStale = spentUntil === null || spentUntil > now + bucketMicros + MINUTE_MICROS;
  const from = isStale ? now : Math.max(spentUntil, now);
  const next = from + shareMicros;
  return next <= now + bucketMicros
    ? { kind: "now", spentUntil: next }
    : { kind: "wait", until: next - bucketMicros };
}
