// The 20 ms clock of the media thread: spread, punctual, and what becomes of ticks it missed.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createMediaClock } from "#features/calls/voice/clock.ts";
import { Mixer } from "#features/calls/voice/mixer.ts";
import { createManualSystem } from "#support/manual-clock.ts";

/** When each of so many subscribers, begun together, was called. */
function createSubscribers(count: number, lagMs = 0) {
  const system = createManualSystem();
  const late: number[] = [];
  const after = (ms: number, run: () => void) => system.after(ms + lagMs, run);
  const clock = createMediaClock({ ...system, after }, (ms) => late.push(ms));
  const times: number[][] = Array.from({ length: count }, () => []);
  const timers = times.map((told) => clock.subscribe(() => told.push(system.monotonicMs())));
  return { system, late, clock, times, timers };
}

test("[VL40] calls are spread over a frame, and each ticks every 20 ms", () => {
  const { system, late, times, timers } = createSubscribers(8);
  system.advance(200);
  for (const [at, told] of times.entries()) {
    const first = 20 + (at % 4) * 5;
    const count = Math.floor((200 - first) / 20) + 1;
    assert.deepEqual(told, Array.from({ length: count }, (_, index) => first + index * 20));
  }
  assert.deepEqual([...new Set(late)], [0]);
  for (const timer of timers) timer.cancel();
  assert.equal(system.pending(), 0);
});

test("[VL40] a new call takes the place of an ended one, in step", () => {
  const { system, clock, times, timers } = createSubscribers(4);
  system.advance(103);
  timers[2]!.cancel();
  const heard = times[2]!.length;
  const told: number[] = [];
  clock.subscribe(() => told.push(system.monotonicMs()));
  system.advance(100);
  assert.equal(times[2]!.length, heard);
  assert.deepEqual(told, [110, 130, 150, 170, 190]);
});

test("[VL41] a late tick catches up on missed frames; after a long stall they are dropped", () => {
  const slow = createSubscribers(1, 30);
  slow.system.advance(100);
  assert.deepEqual(slow.times[0], [50, 50, 90, 90]);
  assert.deepEqual(slow.late, [30, 10, 30, 10]);
  const stalled = createSubscribers(2, 4981);
  stalled.system.advance(5001);
  for (const told of stalled.times) assert.equal(told.length, 1);
  assert.deepEqual(stalled.late.map(Math.round), [4981, 1, 4976, 16]);

  // Who comes in the middle of it has missed what came since.
  const joined = createSubscribers(4, 1999);
  joined.system.advance(1000);
  const missed: number[] = [];
  joined.clock.subscribe((dropped) => missed.push(dropped));
  joined.system.advance(2000);
  assert.deepEqual(missed, [99]);
});

test("[VL42] frames dropped by a stall are silence in the recording, which stays in time with the transcript", () => {
  const system = createManualSystem();
  let lagMs = 0;
  const clock = createMediaClock({ ...system, after: (ms, run) => system.after(ms + lagMs, run) });
  const recorded: { customer: number; assistant: number }[] = [];
  const mixer = new Mixer({
    leg: {
      rate: 8000, transfer: null, send: () => undefined, clear: () => undefined,
      sendDtmf: () => undefined, hangUp: () => undefined,
    },
    comfort: null,
    ambience: { next: (samples) => new Int16Array(samples).fill(5), gain: 1 },
    record: ([customer = 0], [assistant = 0]) => recorded.push({ customer, assistant }),
    onPlayedOut: () => undefined,
    onHeard: () => undefined,
  });
  clock.subscribe((dropped) => mixer.tick(dropped));
  system.advance(1000);
  lagMs = 4990;
  system.advance(20);
  lagMs = 0;
  mixer.receiveAudio(new Int16Array(320).fill(7));
  system.advance(5020);
  assert.equal(recorded.length, system.monotonicMs() / 20);
  assert.deepEqual(recorded.slice(50, 54), [
    { customer: 0, assistant: 5 }, { customer: 7, assistant: 0 }, { customer: 7, assistant: 0 },
    { customer: 0, assistant: 0 },
  ]);
  assert.deepEqual(recorded.at(-1), { customer: 0, assistant: 5 });
});
