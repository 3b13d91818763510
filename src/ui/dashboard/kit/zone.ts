// The time zone of everything that is shown: the account's, or the browser's where none was chosen.
// Kept in this browser, so that the first page is in it at once. Set by main.tsx and app.tsx; used
// by format.ts and by filters of days.
import { dayAt } from "#core/zones.ts";
import { onDevice } from "./kept.ts";
import { LOCALE } from "./texts.ts";

const KEPT = "parley-time-zone";

const OWN = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

function isKnown(zone: string): boolean {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: zone }).format() !== "";
  } catch (error) {
    // Lists of zones differ between servers and browsers.
    if (error instanceof RangeError) return false;
    throw error;
  }
}

let shown = OWN;

export const shownZone = (): string => shown;

/** Null: nobody has chosen one. */
export function showIn(zone: string | null): void {
  shown = zone !== null && isKnown(zone) ? zone : OWN;
  if (zone === null) onDevice.removeItem(KEPT);
  else onDevice.setItem(KEPT, zone);
}

/** Before anything is shown: as this browser showed it last. */
export function showAsKept(): void {
  const kept = onDevice.getItem(KEPT);
  if (kept !== null && isKnown(kept)) shown = kept;
}

/** The current day in the zone that is shown: `YYYY-MM-DD`. */
export const today = (): string => dayAt(Date.now() * 1000, shown);

/** Options of zones; the chosen one is included even if the browser does not know it. */
export function zoneOptions(chosen: string): { value: string; label: string }[] {
  const known = new Set(["UTC", ...Intl.supportedValuesOf("timeZone")]);
  const zones = chosen === "" || known.has(chosen) ? known : [chosen, ...known];
  return [...zones].map((value) => ({ value, label: value.replaceAll("_", " ") }));
}

/** A formatter in the zone that is shown. */
export function zoned(options: Intl.DateTimeFormatOptions): (date: Date) => string {
  let of = "";
  let format: Intl.DateTimeFormat;
  return (date) => {
    if (of !== shown) {
      of = shown;
      format = new Intl.DateTimeFormat(LOCALE, { ...options, timeZone: shown });
    }
    return format.format(date);
  };
}
