// Telephone numbers as leads have them: read into E.164, and the time zone their country lives by.
import { readFileSync } from "node:fs";
import { readNumber } from "#core/numbering-plans.ts";
import { programFile } from "#core/program.ts";
import { isE164 } from "#core/values.ts";

export interface ReadNumber {
  /** E.164. */
  phoneNumber: string;
  /** IANA; empty where the number does not say. */
  timeZone: string;
}

/** IANA zones by calling code, of countries that have one alone. */
const ZONES = new Map(Object.entries(JSON.parse(
  readFileSync(programFile("data/number-timezones.json"), "utf8"),
) as Record<string, string>));

/** Address books and messengers put marks of the direction of writing around what is copied. */
const UNSEEN = /\p{Cf}/gu;
const seen = (text: string): string => text.replaceAll(UNSEEN, "").trim();
const SPELLING = /^\+[\d\s().\-/\u00a0]{4,40}$/;

/**
 * Null for what is no number. It must be possible, not assigned: numbering plans change faster
 * than tables of them do.
 */
export function readPhoneNumber(text: string): ReadNumber | null {
  const spelt = seen(text);
  if (!SPELLING.test(spelt)) return null;
  const parsed = readNumber(spelt);
  if (!parsed?.isPossible() || !isE164(parsed.number)) return null;
  return {
    phoneNumber: parsed.number, timeZone: ZONES.get(parsed.countryCallingCode) ?? "",
  };
}

/** As spreadsheets show numbers that are wider than their column. */
const SHORTENED = /^\d(?:[.,]\d+)?e\+?\d+$/i;

/** What is wrong with a text that is no number, so that whoever has a file of them can mend it. */
export function numberFault(text: string): string {
  const spelt = seen(text);
  if (SHORTENED.test(spelt)) {
    return "The spreadsheet has cut the number's digits: make its column text and enter it again.";
  }
  return SPELLING.test(`+${spelt}`)
    ? "The number lacks the + and the country code, as in +1 555 010 0204."
    : "Invalid phone number";
}
