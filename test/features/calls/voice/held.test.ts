// A call that waits for somebody else, on a virtual clock: on hold, and handed on to whom nobody
// reports of. What is on the line then is nobody's turn, and the call's time passes.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { LegEvent } from "#providers/carriers/port.ts";
import { lines, playCall } from "#support/calls/calls-by-clock.ts";

const GREETING = "Hello and welcome to our little shop at the corner of the street.";
const MINUTE_MS = 60_000;

/** On hold from then on, for so long. */
const holds = (fromMs: number, forMs: number) => (
  _session: unknown, after: (ms: number, run: () => void) => void,
  publish: (event: LegEvent) => void,
): void => {
  after(fromMs, () => publish({ kind: "held", isHeld: true }));
  after(fromMs + forMs, () => publish({ kind: "held", isHeld: false }));
};

test("[VL192] speech waits while a call is on hold and resumes with the cut word", () => {
  const heardAtMs: number[] = [];
  let atMs = 0;
  const played = playCall({
    steps: [{ waitMs: 3 * MINUTE_MS }, { hangUp: true }], greeting: GREETING,
    settings: { maxSilenceMs: 10 * MINUTE_MS },
    during: holds(1500, 2 * MINUTE_MS),
    onHeard: (frame) => {
      atMs += 20;
      if (frame.some((sample) => sample !== 0)) heardAtMs.push(atMs);
    },
  });
  assert.ok(!heardAtMs.some((ms) => ms > 1600 && ms < 1400 + 2 * MINUTE_MS));
  assert.ok(heardAtMs.some((ms) => ms > 1500 + 2 * MINUTE_MS));
  assert.deepEqual(lines(played), [`assistant: ${GREETING}`]);
  // The word the hold cut is said again as a whole.
  const words = GREETING.split(" ");
  assert.ok(played.heard.filter((word) => words.includes(word)).length >= words.length);
});

test("[VL192] hold does not count as silence: no prompt is spoken, and the wait for first words starts anew", () => {
  const played = playCall({
    steps: [{ waitMs: 6 * MINUTE_MS }, { say: "I am back." }, { quietMs: 500 }, { hangUp: true }],
    greeting: "Hello.", settings: { maxSilenceMs: 10_000, maxInitialSilenceMs: 8000 },
    answer: (question) => question === null ? "Are you still there?" : "Welcome back.",
    during: holds(4000, 6 * MINUTE_MS - 9000),
  });
  assert.deepEqual(played.questions, ["I am back."]);
  assert.deepEqual(lines(played), [
    "assistant: Hello.", "customer: I am back.", "assistant: Welcome back.",
  ]);
  assert.equal(played.over?.reason, "customer_hung_up");
});

test("[VL192] a call left on hold ends after ten minutes, or when its time is up", () => {
  const forgotten = (maxDurationMs: number) => playCall({
    steps: [{ waitMs: 60 * MINUTE_MS }], settings: { maxDurationMs }, greeting: GREETING,
    during: holds(1500, 50 * MINUTE_MS),
  });
  const long = forgotten(60 * MINUTE_MS);
  assert.equal(long.over?.reason, "silence");
  assert.ok(Math.abs(long.lengthMs - 10 * MINUTE_MS) < 5000, `${long.lengthMs}`);
  assert.equal(forgotten(2 * MINUTE_MS).over?.reason, "max_duration");
});

test("[VL193] a transferred call without news ends when its time is up", () => {
  const handedTo: string[] = [];
  for (const durationMaxMs of [30_000, 3_600_000]) {
    const played = playCall({
      steps: [{ waitMs: 60 * MINUTE_MS }], durationMaxMs, settings: { maxDurationMs: 40_000 },
      handOn: (to) => void handedTo.push(to),
      during: (session, after) => after(5000, () => session.endAfterSpeech("transferred", "+15550123")),
    });
    const isPoor = durationMaxMs === 30_000;
    assert.equal(played.over?.reason, isPoor ? "balance" : "max_duration");
    assert.ok(Math.abs(played.lengthMs - (isPoor ? 30_000 : 40_000)) < 1100, `${played.lengthMs}`);
    assert.deepEqual(lines(played), ["assistant: Hello, how can I help?"]);
  }
  assert.deepEqual(handedTo, ["+15550123", "+15550123"]);
});

test("[MX18] a call that the assistant transfers and hangs up in one breath is transferred", () => {
  const handedTo: string[] = [];
  const played = playCall({
    steps: [{ waitMs: 60 * MINUTE_MS }], settings: { maxDurationMs: 20_000 },
    handOn: (to) => void handedTo.push(to),
    during: (session, after) => after(500, () => {
      session.endAfterSpeech("transferred", "+15550123");
      session.endAfterSpeech("assistant_ended");
    }),
  });
  assert.deepEqual(handedTo, ["+15550123"]);
  assert.equal(played.over?.reason, "max_duration");
});

test("[VL193] a caller who comes back from a transfer talks on and has the rest of the time", () => {
  const played = playCall({
    steps: [{ waitMs: 20_000 }, { say: "Where was I?" }, { waitMs: 60 * MINUTE_MS }],
    settings: { maxDurationMs: 40_000 }, handOn: () => undefined,
    during: (session, after, publish) => {
      after(5000, () => session.endAfterSpeech("transferred", "+15550123"));
      after(10_000, () => publish({ kind: "transfer_failed" }));
    },
  });
  assert.deepEqual(played.questions, ["Where was I?"]);
  assert.equal(played.over?.reason, "max_duration");
});
