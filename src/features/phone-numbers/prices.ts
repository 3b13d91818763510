// The country that a number's digits indicate, and the countries it can be sold as.
import { callingCodeOf, readNumber } from "#core/numbering-plans.ts";
import type { NumberPrices } from "#core/price-lists.ts";

export interface ParsedNumber {
  /** E.164. */
  phoneNumber: string;
  nationalDigits: string;
  /** Null: the digits alone leave it open (+44 is Jersey's too). */
  countryCode: string | null;
  callingCode: string;
}

/** Null for anything but a possible number with its country code. */
export function parseNumber(text: string): ParsedNumber | null {
  if (!text.trim().startsWith("+")) return null;
  const parsed = readNumber(text);
  if (!parsed?.isPossible()) return null;
  return {
    phoneNumber: parsed.number,
    nationalDigits: parsed.nationalNumber,
    countryCode: parsed.country ?? null,
    callingCode: parsed.countryCallingCode,
  };
}

/** As people write it: `+1 201 555 0123`. */
export const formatNumber = (phoneNumber: string): string =>
  readNumber(phoneNumber)?.formatInternational() ?? phoneNumber;

/** The countries sold here that the number may belong to, likeliest first. */
export function countriesOf(number: ParsedNumber, prices: NumberPrices): string[] {
  const sharing = prices.countries().filter((code) =>
    callingCodeOf(code) === number.callingCode);
  const { countryCode } = number;
  return countryCode !== null && sharing.includes(countryCode) ? [countryCode] : sharing;
}
