// How the cost of work grows with its input, on any machine: linear work on an input sixteen times
// as large costs about sixteen times as much, and quadratic work 256 times. Both sizes are measured
// in turns, in CPU time of this process, so that other processes' load counts for neither.
import assert from "node:assert/strict";

const FACTOR = 16;
/** Between linear and quadratic growth, with room for caches and garbage collections. */
const GROWTH_MAX = 100;
/** Before so many runs, the work is not compiled yet. */
const RUNS_MIN = 3;
const RUNS_MAX = 7;
/** Quadratic growth is far above this, whatever disturbs a run. */
const SURELY_LINEAR = 40;
/** Shorter times are dominated by clocks and compilers. */
const NOISE_MS = 0.1;

async function timed(work: () => unknown): Promise<number> {
  const begun = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(begun);
  return (user + system) / 1000;
}

/** Fails if work on `size` costs far more than sixteen times that on a sixteenth of it. */
export async function assertLinear(
  name: string, size: number, prepare: (size: number) => (() => unknown) | Promise<() => unknown>,
): Promise<void> {
  const small = await prepare(Math.floor(size / FACTOR));
  const large = await prepare(size);
  const [smallMs, largeMs]: [number[], number[]] = [[], []];
  let [least, most] = [0, 0];
  for (let run = 1; run <= RUNS_MAX; run += 1) {
    smallMs.push(await timed(small));
    largeMs.push(await timed(large));
    [least, most] = [Math.max(NOISE_MS, Math.min(...smallMs)), Math.min(...largeMs)];
    if (run >= RUNS_MIN && most < least * SURELY_LINEAR) return;
  }
  assert.ok(most < least * GROWTH_MAX,
    `${name}: ${least.toFixed(2)} ms, of ${FACTOR} times as much ${most.toFixed(2)} ms`);
}
