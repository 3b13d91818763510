// Telephone numbers by the plans of their countries. The data is loaded with the first number that
// is read: loaded at the start, it would cost main thread and writer 0.5 MB and 40 ms each.
import { createRequire } from "node:module";
import {
  getCountryCallingCode, isSupportedCountry, parsePhoneNumberFromString,
  type CountryCode, type MetadataJson, type PhoneNumber,
} from "libphonenumber-js/core";

const load = createRequire(import.meta.url);

function loading(file: string): () => MetadataJson {
  let data: MetadataJson | null = null;
  return () => (data ??= load(file) as MetadataJson);
}

/** Lengths of numbers. */
const short = loading("libphonenumber-js/metadata.min.json");
/** Kinds of numbers, too. */
const full = loading("libphonenumber-js/metadata.max.json");

/** `country`: two letters; where numbers without a calling code are dialled. */
export const readNumber = (text: string, country?: string): PhoneNumber | undefined =>
  country === undefined
    ? parsePhoneNumberFromString(text, short())
    : parsePhoneNumberFromString(text, country as CountryCode, short());

/** Knows what kind a number is of: premium-rate, shared-cost, mobile … */
export const readNumberWithKind = (text: string): PhoneNumber | undefined =>
  parsePhoneNumberFromString(text, full());

export const isCountry = (code: string): boolean =>
  isSupportedCountry(code as CountryCode, short());

/** Digits without a plus sign. */
export const callingCodeOf = (country: string): string =>
  getCountryCallingCode(country as CountryCode, short());
