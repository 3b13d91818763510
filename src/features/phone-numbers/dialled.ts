// Telephone numbers as telephone systems spell them: which of ours a dialled one means, and how a
// trunk wants to have one dialled. Pure.
import type { CountryCode } from "libphonenumber-js/core";
import { callingCodeOf, readNumber } from "#core/numbering-plans.ts";

export const CALLING_FORMATS = ["+e164", "e164", "national"] as const;
export type CallingFormat = (typeof CALLING_FORMATS)[number];

interface OwnNumber {
  /** E.164, or an extension: what a telephone system calls a line of its own. */
  phoneNumber: string;
  countryCode: string;
}

const CALLED_CHARS_MAX = 64;
/** What people and RFC 3966 put between digits. */
const SEPARATORS = /[-.()\s]/g;
const DIGITS = /^\+?\d{2,20}$/;
/** Two numbers whose last digits differ are never one number in two spellings. */
const SAME_DIGITS = 4;

/**
 * How surely `called` means the number, 0 the surest; null: it does not. Literally or with a plus
 * sign; then E.164 that lost its plus; then as the number's country dials it (national, or with the
 * prefix for calls abroad).
 */
export function likenessOf(called: string, { phoneNumber, countryCode }: OwnNumber): number | null {
  if (called === phoneNumber) return 0;
  if (called.length > CALLED_CHARS_MAX || !phoneNumber.startsWith("+")) return null;
  const digits = called.replace(SEPARATORS, "");
  if (!DIGITS.test(digits) || !phoneNumber.endsWith(digits.slice(-SAME_DIGITS))) return null;
  if (digits === phoneNumber) return 0;
  if (`+${digits}` === phoneNumber) return 1;
  if (digits.startsWith("+")) return null;
  const read = readNumber(digits, countryCode);
  return read?.number === phoneNumber ? 2 : null;
}

/** The number that is meant most surely; the first of equals. */
export function likeliest<T extends OwnNumber>(called: string, numbers: readonly T[]): T | null {
  let best: { number: T; likeness: number } | null = null;
  for (const number of numbers) {
    const likeness = likenessOf(called, number);
    if (likeness !== null && likeness < (best?.likeness ?? Infinity)) best = { number, likeness };
  }
  return best?.number ?? null;
}

/** E.164 as the trunk wants it; what is no such number (an extension) stays as it is. */
export function formatForTrunk(
  { callingFormat, countryCode }: { callingFormat: CallingFormat; countryCode: string },
  phoneNumber: string,
): string {
  if (callingFormat === "+e164" || !phoneNumber.startsWith("+")) return phoneNumber;
  if (callingFormat === "e164") return phoneNumber.slice(1);
  const parsed = readNumber(phoneNumber);
  if (!parsed) return phoneNumber;
  const home = countryCode as CountryCode;
  // A number that no plan knows yet is of the country when it has its code.
  const isHome = parsed.country === home
    || (!parsed.country && parsed.countryCallingCode === callingCodeOf(home));
  const spelt = isHome ? parsed.formatNational() : parsed.format("IDD", { fromCountry: home });
  return spelt.replace(/\D/g, "");
}
