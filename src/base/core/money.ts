// Money is an integer number of micro-dollars everywhere inside (1 USD = 1,000,000).

/** Integer micro-dollars. Fits a double exactly up to 9 billion dollars. */
export type Micros = number;

export const MICROS_PER_DOLLAR = 1_000_000;

/** What the wire carries: a JSON number of dollars. */
export function dollarsFromMicros(micros: Micros): number {
  return micros / MICROS_PER_DOLLAR;
}

/** Parses a decimal such as `5` or `0.015`; null when it is none or finer than a micro-dollar. */
export function microsFromDecimal(text: string): Micros | null {
  const match = /^(-?)(\d{1,9})(?:\.(\d{1,6}))?$/.exec(text.trim());
  if (!match) return null;
  const [, sign, whole = "0", fraction = ""] = match;
  const micros = Number(whole) * MICROS_PER_DOLLAR + Number(fraction.padEnd(6, "0"));
  return sign === "-" && micros !== 0 ? -micros : micros;
}

/** `5000000` → `"5.00"`; keeps up to six decimals where cents are not enough. */
export function formatMicros(micros: Micros): string {
  const sign = micros < 0 ? "-" : "";
  const absolute = Math.abs(micros);
  const whole = Math.floor(absolute / MICROS_PER_DOLLAR);
  const fraction = String(absolute % MICROS_PER_DOLLAR).padStart(6, "0");
  return `${sign}${whole}.${fraction.slice(0, 2)}${fraction.slice(2).replace(/0+$/, "")}`;
}
