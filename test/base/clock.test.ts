// The clocks and timers of the program, where the machine is set or stands still.
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { createSystem, keepAwake, nextTurn } from "#core/system.ts";

test("[OP172] a clock change is followed, forward and back, but small steps back are not", (t) => {
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

test("[OP322] a timer over a second late runs after the input that arrived meanwhile", async () => {
  const system = createSystem();
  const awake = keepAwake();
  const beside = new Worker(
    "require('node:worker_threads').parentPort.on('message', () => process.exit())", { eval: true });
  await once(beside, "online");
  const order: string[] = [];
  const cancelled = system.after(50, () => order.push("cancelled"));
  const ran = Promise.all([
    once(beside, "exit").then(() => {
      order.push("arrived");
      cancelled.cancel();
    }),
    new Promise<void>((resolve) => void system.after(50, () => resolve(void order.push("timer")))),
    new Promise<void>((resolve) => {
      const ticks = system.every(50, () => {
        ticks.cancel();
        resolve(void order.push("tick"));
      });
    }),
  ]);
  // Timers are what comes next.
  await nextTurn();
  beside.postMessage(null);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1200);
  await ran;
  awake.cancel();
  assert.deepEqual(order, ["arrived", "timer", "tick"]);
});

test("[OP323] a timer due at the end of a pause runs after the input that arrived and after earlier timers", async () => {
  const system = createSystem();
  const awake = keepAwake();
  const order: string[] = [];
  const timers = [50, 1100].map((ms) => new Promise<void>((resolve) =>
    void system.after(ms, () => resolve(void order.push(`due after ${ms}`)))));
  await nextTurn();
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1200);
  await nextTurn();
  order.push("arrived");
  await Promise.all(timers);
  awake.cancel();
  assert.deepEqual(order, ["arrived", "due after 50", "due after 1100"]);
});
