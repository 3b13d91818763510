// Telephone numbers as telephone systems write them: which of our numbers a dialled one means, and
// the format in which a trunk expects a number to be dialled. Pure.
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
/** Numbers that differ in this many last digits are never the same number. */
const SAME_DIGITS = 4;

/**
 * How likely `called` means the number; null: it does not. 0: literally, or with separators; 1: as
 * E.164 without its plus; 2: as the number's country dials it (national, or with the international
 * prefix).
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

/** The number that `called` most likely means; the first one on a tie. */
export function likeliest<T extends OwnNumber>(called: string, numbers: readonly T[]): T | null {
  let best: { number: T; likeness: number } | null = null;
  for (const number of numbers) {
    const likeness = likenessOf(called, number);
    if (likeness !== null && likeness < (best?.likeness ?? Infinity)) best = { number, likeness };
  }
  return best?.number ?? null;
}

/** E.164 in the trunk's format; anything else (an extension) is left unchanged. */
export function formatForTrunk(
  { callingFormat, countryCode }: { callingFormat: CallingFormat; countryCode: string },
  phoneNumber: string,
): string {
  if (callingFormat === "+e164" || !phoneNumber.startsWith("+")) return phoneNumber;
  if (callingFormat === "e164") return phoneNumber.slice(1);
  const parsed = readNumber(phoneNumber);
  if (!parsed) return phoneNumber;
  const home = countryCode as CountryCode;
  // A number that no numbering plan knows yet belongs to the country if it has its calling code.
  const isHome = parsed.country === home
    || (!parsed.country && parsed.countryCallingCode === callingCodeOf(home));
  const spelt = isHome ? parsed.formatNational() : parsed.format("IDD", { fromCountry: home });
  return spelt.replace(/\D/g, "");
}
