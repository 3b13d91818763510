// What is heard of a call in the dashboard, as far as it needs no browser.
import assert from "node:assert/strict";
import { test } from "node:test";
import { raiserOf } from "#ui/dashboard/pages/calls/listening.ts";

test("[DB374] telephone audio is played at the page's rate, without seams between frames", () => {
  const raise = raiserOf(2);
  const wave = (rate: number, from: number, to: number): Int16Array => Int16Array.from(
    { length: to - from }, (_, at) => 10_000 * Math.sin((2 * Math.PI * 400 * (from + at)) / rate));
  const frames = [0, 160, 320].map((from) => raise(wave(8000, from, from + 160).slice().buffer));
  assert.deepEqual(frames.map(({ byteLength }) => byteLength), [640, 640, 640]);
  const heard = Int16Array.from(frames.flatMap((frame) => [...new Int16Array(frame)]));
  // A line reaches each sample at its end, so all of it is one step late.
  const expected = wave(16_000, -1, 959);
  const worst = Math.max(...[...heard].slice(2).map((sample, at) =>
    Math.abs(sample - (expected[at + 2] ?? 0))));
  assert.ok(worst < 150, String(worst));
});
