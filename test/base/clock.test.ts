// The wall clock as the program reads it, where the machine's is set.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createSystem } from "#core/system.ts";

test("[OP172] a clock that is set is followed, forward and back, and never goes back by a little", (t) => {
  const real = Date.now;
  let stepMs = 0;
  t.mock.method(Date, "now", () => real() + stepMs);
  const system = createSystem();
  const offMs = () => Math.round(system.now() / 1000 - real());
  const isNear = (ms: number) => Math.abs(offMs() - ms) < 500;
  assert.ok(isNear(0));
  stepMs = 86_400_000;
  assert.ok(isNear(86_400_000));
  stepMs = 0;
  assert.ok(isNear(0), "no stall for a day");
  stepMs = -3_600_000;
  assert.ok(isNear(-3_600_000));
  stepMs = 5000;
  const before = system.now();
  stepMs = 4500;
  assert.ok(system.now() >= before);
});
