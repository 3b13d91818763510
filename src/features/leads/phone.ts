// Telephone numbers of leads: parsed into E.164, with the time zone of their country.
import { readFileSync } from "node:fs";
import { readNumber } from "#core/numbering-plans.ts";
import { programFile } from "#core/program.ts";
import { isE164 } from "#core/values.ts";

export interface ReadNumber {
  /** E.164. */
  phoneNumber: string;
  /** IANA; empty where the number does not determine it. */
  timeZone: string;
}

/** IANA zones by calling code, for countries with only one. */
const ZONES = new Map(Object.entries(JSON.parse(
  readFileSync(programFile("data/number-timezones.json"), "utf8"),
) as Record<string, string>));

/** Address books and messengers put bidirectional control characters around copied text. */
const UNSEEN = /\p{Cf}/gu;
const seen = (text: string): string => text.replaceAll(UNSEEN, "").trim();
const SPELLING = /^\+[\d\s().\-/\u00a0]{4,40}$/;

/**
 * Null for anything but a number. The number must be possible, but need not be assigned: numbering
 * plans change faster than tables of them do.
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

/** Why a text is not a number, in words that help to correct the file. */
export function numberFault(text: string): string {
  const spelt = seen(text);
  if (SHORTENED.test(spelt)) {
    return "The spreadsheet has cut the number's digits: make its column text and enter it again.";
  }
  return SPELLING.test(`+${spelt}`)
    ? "The number lacks the + and the country code, as in +1 555 010 0204."
    : "Invalid phone number";
}
