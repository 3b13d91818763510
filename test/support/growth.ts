// How the cost of work grows with its input, on whatever machine: the same work on an input
// sixteen times as large costs about sixteen times as much, and 256 times where it grows with the
// square. Both are measured in turns, by the CPU that this process used: what others keep a machine
// busy with counts for neither.
import assert from "node:assert/strict";

const FACTOR = 16;
/** Between what is linear and what is square, with room for caches and collections. */
const GROWTH_MAX = 100;
/** Before that, compilers have not seen the work. */
const RUNS_MIN = 3;
const RUNS_MAX = 7;
/** What grows with the square is far from it, whatever disturbs a run. */
const SURELY_LINEAR = 40;
/** Clocks and compilers disturb what is shorter. */
const NOISE_MS = 0.1;

async function timed(work: () => unknown): Promise<number> {
  const begun = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(begun);
  return (user + system) / 1000;
}

/** Fails where the work on `size` costs far more than sixteen times that on a sixteenth of it. */
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
