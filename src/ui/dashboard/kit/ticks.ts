// Where the lines behind a chart are.

const LINES_MAX = 5;

/**
 * From zero to at least `value`, in at most LINES_MAX steps of 1, 2, 2.5 or 5 times a power of ten.
 */
export function ticksOf(value: number, isWhole = false): number[] {
  const least = Math.max(value / LINES_MAX, isWhole ? 1 : Number.MIN_VALUE);
  const power = value <= 0 ? 1 : 10 ** Math.floor(Math.log10(least));
  const fits = (step: number): boolean =>
    step * power >= least * (1 - 1e-9) && (!isWhole || Number.isInteger(step * power));
  const step = ([1, 2, 2.5, 5].find(fits) ?? 10) * power;
  const steps = Math.max(1, Math.ceil(value / step - 1e-9));
  return Array.from({ length: steps + 1 }, (_, index) => index * step);
}
