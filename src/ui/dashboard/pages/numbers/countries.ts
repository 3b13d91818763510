// The names of countries by their two-letter codes.
import type { Option } from "#ui/dashboard/kit/controls.tsx";
import { LOCALE } from "#ui/dashboard/kit/texts.ts";

const NAMES = new Intl.DisplayNames([LOCALE], { type: "region" });

export function countryName(code: string): string {
  try {
    return NAMES.of(code) ?? code;
  } catch {
    // An invalid code has no name.
    return code;
  }
}

/** Where numbers are sold. */
const SOLD = ["US", "CA", "GB", "AU", "IL", "PL", "FI", "NL", "DK", "IT", "DE"];

const optionsOf = (codes: string[]): Option[] =>
  codes.map((value) => ({ value, label: countryName(value) }))
    .toSorted((a, b) => a.label.localeCompare(b.label));

export const SOLD_OPTIONS = optionsOf(SOLD);

const LETTERS = [..."ABCDEFGHIJKLMNOPQRSTUVWXYZ"];
/** User-assigned codes and groups of countries have names too, but no telephones. */
const NO_COUNTRIES = new Set(["EU", "EZ", "UN", "QO", "XA", "XB", "ZZ"]);

/** Every country with a name; the server decides which of them have telephone numbers. */
export const ALL_OPTIONS = optionsOf(LETTERS.flatMap((first) => LETTERS.map((next) => first + next))
  .filter((code) => !NO_COUNTRIES.has(code) && countryName(code) !== code));
