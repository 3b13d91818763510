// How evenly sound comes, stretch by stretch, over calls of any length.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Jitter } from "#audio/jitter.ts";
import { LIMITS } from "#core/limits.ts";

const NOW = 1_700_000_000_000_000;
const PACKET_MS = 20;

/** A packet every 20 ms whose place differs by so much. */
function come(jitter: Jitter, fromMs: number, toMs: number, differenceMs: number): void {
  for (let at = fromMs; at < toMs; at += PACKET_MS) jitter.push(differenceMs, at);
}

test("[SI130] jitter is kept as means of 5 s, and a stretch without packets has none", () => {
  const jitter = new Jitter();
  assert.deepEqual([jitter.meanMs, jitter.overTime(0, NOW)], [null, null]);
  come(jitter, 1000, 6000, 4);
  come(jitter, 11_000, 16_000, 20);
  const series = jitter.overTime(17_000, NOW);
  assert.ok(series);
  assert.deepEqual([series.at, series.stepMs], [NOW - 16_000_000, 5000]);
  const [calm, none, rough] = series.values;
  assert.deepEqual([series.values.length, none], [3, null]);
  assert.ok(calm! > 3.5 && calm! <= 4 && rough! > 18 && rough! < 20, JSON.stringify(series));
  assert.ok(jitter.meanMs! > 10 && jitter.meanMs! < 13 && jitter.maxMs > 19.9);
});

test("[SI130] a call of any length keeps a bounded number of equal stretches with the same mean", () => {
  for (const minutes of [1, 10, 11, 59, 240]) {
    const jitter = new Jitter();
    const endMs = minutes * 60_000;
    come(jitter, 0, endMs / 2, 2);
    come(jitter, endMs / 2, endMs, 10);
    const { stepMs, values } = jitter.overTime(endMs, NOW)!;
    assert.ok(values.length <= LIMITS.jitterStretchesMax, `${values.length} of ${minutes} min`);
    assert.equal(values.length, Math.ceil(endMs / stepMs));
    assert.ok(minutes <= 10 ? stepMs === 5000 : values.length > LIMITS.jitterStretchesMax / 2 - 1);
    const [first, last] = [values[0]!, values.at(-1)!];
    assert.ok(first > 1.8 && first <= 2 && last > 9.8 && last <= 10, `${first} ${last}`);
  }
  const late = new Jitter();
  late.push(4, 0);
  late.push(4, 30 * 24 * 3_600_000);
  assert.ok(late.overTime(0, NOW)!.values.length <= LIMITS.jitterStretchesMax);
});
