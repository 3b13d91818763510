// What a number costs a month, by country, and what of a number's digits says where it is from.
import { Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { getCountryCallingCode, parsePhoneNumberFromString } from "libphonenumber-js/min";
import type { CountryCode } from "libphonenumber-js/min";
import { readFileSync } from "node:fs";
import { microsFromDecimal, type Micros } from "../core/money.ts";

const SHIPPED = new URL("../../data/number-prices.json", import.meta.url);
const Prices = Type.Record(
  Type.String({ pattern: "^[A-Z]{2}$" }), Type.Number({ minimum: 0, maximum: 10_000 }),
  { additionalProperties: false });

export interface NumberPrices {
  /** Of a month; null: numbers of the country are not sold. */
  of(countryCode: string): Micros | null;
  countries(): string[];
}

export function loadNumberPrices(file: URL | string = SHIPPED): NumberPrices {
  const value: unknown = JSON.parse(readFileSync(file, "utf8"));
  const error = Value.Errors(Prices, value).First();
  if (error) throw new Error(`number prices: ${error.path || "/"}: ${error.message}`);
  const prices = new Map(Object.entries(value as Record<string, number>).map(([code, dollars]) => {
    const micros = microsFromDecimal(String(dollars));
    if (micros === null) throw new Error(`number prices: ${code}: finer than a micro-dollar`);
    return [code, micros];
  }));
  return { of: (code) => prices.get(code) ?? null, countries: () => [...prices.keys()] };
}

export interface ParsedNumber {
  /** E.164. */
  phoneNumber: string;
  nationalDigits: string;
  /** Null: the digits alone do not tell (+44 is Jersey's too). */
  countryCode: string | null;
  callingCode: string;
}

/** Null for anything but a number with its country's code that could exist. */
export function parseNumber(text: string): ParsedNumber | null {
  if (!text.trim().startsWith("+")) return null;
  const parsed = parsePhoneNumberFromString(text);
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
  parsePhoneNumberFromString(phoneNumber)?.formatInternational() ?? phoneNumber;

/** The countries sold here that the number can be of, the likeliest first. */
export function countriesOf(number: ParsedNumber, prices: NumberPrices): string[] {
  const sharing = prices.countries().filter((code) =>
    getCountryCallingCode(code as CountryCode) === number.callingCode);
  const { countryCode } = number;
  return countryCode !== null && sharing.includes(countryCode) ? [countryCode] : sharing;
}
