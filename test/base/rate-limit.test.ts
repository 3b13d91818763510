// Rate limits by themselves: exact sliding windows, several at once, and how many keys are kept.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createRateLimiter, type RateLimit } from "#core/rate-limit.ts";
import { createManualSystem } from "#support/manual-clock.ts";

function world(keysMax: number, ...limits: [RateLimit, ...RateLimit[]]) {
  const system = createManualSystem();
  const limiter = createRateLimiter(limits, { system, keysMax });
  const startMs = system.monotonicMs();
  return { limiter, at: (ms: number) => system.advance(startMs + ms - system.monotonicMs()) };
}

test("[LM4] the window slides: a request counts for exactly its length", () => {
  const { limiter, at } = world(2, { count: 2, windowMs: 1000 });
  assert.equal(limiter.take("a").allowed, true);
  at(600);
  assert.equal(limiter.take("a").allowed, true);
  assert.equal(limiter.take("a").retryAfterMs, 400);
  assert.equal(limiter.take("b").allowed, true);
  at(999);
  assert.equal(limiter.take("a").retryAfterMs, 1);
  at(1000);
  assert.equal(limiter.take("a").allowed, true);
  assert.equal(limiter.take("a").allowed, false);
});

test("[LM206] of several windows the one that refuses answers, else the one with the least left", () => {
  const { limiter, at } = world(2, { count: 3, windowMs: 1000 }, { count: 5, windowMs: 10_000 });
  const told = [0, 500, 1200, 1300, 1300, 1600, 5000].map((ms) => {
    at(ms);
    const { allowed, limit, remaining, resetMs, retryAfterMs } = limiter.take("a");
    return [allowed, limit, remaining, resetMs, retryAfterMs];
  });
  assert.deepEqual(told, [
    [true, 3, 2, 1000, 0], [true, 3, 1, 500, 0], [true, 3, 1, 300, 0], [true, 3, 0, 200, 0],
    [false, 3, 0, 200, 200], [true, 5, 0, 8400, 0], [false, 5, 0, 5000, 5000],
  ]);
});

test("[LM207] the key that was seen longest ago is forgotten first; looking counts nothing", () => {
  const { limiter } = world(2, { count: 1, windowMs: 1000 });
  const isFree = (key: string): boolean => limiter.look(key).allowed;
  assert.deepEqual([isFree("a"), limiter.take("a").allowed, isFree("a")], [true, true, false]);
  limiter.take("b");
  limiter.take("a");
  limiter.take("c");
  assert.deepEqual([isFree("a"), isFree("b"), isFree("c")], [false, true, false]);
});

test("[LM208] what is given back is the newest passage", () => {
  const { limiter, at } = world(2, { count: 2, windowMs: 1000 });
  limiter.take("a");
  at(600);
  limiter.take("a");
  limiter.giveBack("a");
  at(700);
  assert.equal(limiter.take("a").allowed, true);
  at(1001);
  assert.equal(limiter.take("a").allowed, true);
  limiter.giveBack("nobody");
});
