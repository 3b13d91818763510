// Silence, goodbye and keys as the pure reducer decides them, event by event: the same for calls
// whose turns we take and for those whose model takes them.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  reduceTimers, TIMERS_START, timerSettingsOf,
  type TimerEvent, type TimerSettings, type TimerState,
} from "#features/calls/voice/turns/call-timers.ts";
import { VOICE_SETTINGS } from "#support/calls/calls-by-clock.ts";
import { createTalk } from "#support/calls/talk-by-hand.ts";

const SETTINGS: TimerSettings = {
  keypad: { timeoutMs: 5000, stopKey: "#" },
  maxDurationMs: 60_000,
  maxInitialSilenceMs: null,
  maxSilenceMs: 10_000,
  reengageEveryMs: 4000,
  durationReason: "max_duration",
};
const SILENCE: TimerEvent = { kind: "check_silence", isBusy: false };
const BUSY: TimerEvent = { kind: "check_silence", isBusy: true };
const KEYPAD: TimerEvent = { kind: "check_keypad" };
const press = (digit: string): TimerEvent => ({ kind: "dtmf", digit });

type Row = [atMs: number, event: TimerEvent, action?: string];

/** Each row's action, as one word and what it carries; an answer at 0 comes before them all. */
function play(rows: Row[], settings: Partial<TimerSettings> = {}): TimerState {
  let { state } = reduceTimers(SETTINGS, TIMERS_START, { kind: "answered" }, 0);
  for (const [atMs, event, expected = ""] of rows) {
    const reduced = reduceTimers({ ...SETTINGS, ...settings }, state, event, atMs);
    const { kind = "", ...rest } = reduced.action ?? {};
    assert.equal([kind, ...Object.values(rest)].join(" ").trim(), expected,
      `${event.kind} at ${atMs} ms`);
    state = reduced.state;
  }
  return state;
}

test("[VL165] silence prompts wait while anybody is busy; after three the call ends; the customer restarts the count", () => {
  play([
    [9999, SILENCE], [10_000, SILENCE, "reengage"], [13_999, SILENCE], [14_000, SILENCE, "reengage"],
    [18_000, SILENCE, "reengage"], [21_999, SILENCE], [22_000, SILENCE, "hang_up silence"],
  ]);
  play([[9000, BUSY], [18_999, SILENCE], [19_000, SILENCE, "reengage"]]);
  play([[9000, { kind: "activity" }], [18_999, SILENCE], [19_000, SILENCE, "reengage"]]);
  play([[9000, press("1")], [13_000, SILENCE], [22_999, SILENCE], [30_000, SILENCE]]);
  play([
    [10_000, SILENCE, "reengage"], [14_000, SILENCE, "reengage"], [15_000, { kind: "customer_spoke" }],
    [15_000, BUSY], [24_999, SILENCE], [25_000, SILENCE, "reengage"], [29_000, SILENCE, "reengage"],
    [33_000, SILENCE, "reengage"], [37_000, SILENCE, "hang_up silence"],
  ]);
  const first = { maxInitialSilenceMs: 5000 };
  play([[4999, SILENCE], [5000, SILENCE, "hang_up no_first_words"]], first);
  play([[5000, BUSY], [5020, SILENCE, "hang_up no_first_words"]], first);
  play([[3000, { kind: "customer_spoke" }], [9000, SILENCE], [10_000, SILENCE, "reengage"]], first);
  play([[3000, press("1")], [5000, SILENCE], [7000, press("#")], [7000, KEYPAD, "keys [Keypad input: 1]"],
    [9000, SILENCE]], first);
});

test("[VL166] the goodbye comes once before time is up, only if the customer can hear it, and not in a very short call", () => {
  const check = (mayLeave: boolean): TimerEvent => ({ kind: "check_duration", mayLeave });
  play([
    [51_999, check(true)], [52_000, check(true), "say_goodbye max_duration"], [53_000, check(false)],
    [60_000, check(false), "hang_up max_duration"],
  ]);
  const money = { maxDurationMs: 20_000, durationReason: "balance" } as const;
  play([[12_000, check(true), "say_goodbye balance"], [20_000, check(true), "hang_up balance"]], money);
  play([[15_999, check(true)], [16_000, check(true), "hang_up max_duration"]], { maxDurationMs: 16_000 });
  for (const [setMs, lastsMs, reason] of [
    [60_000, 30_000, "balance"], [30_000, 60_000, "max_duration"], [30_000, 30_000, "max_duration"],
  ] as const) {
    const { maxDurationMs, durationReason } = timerSettingsOf(
      { ...VOICE_SETTINGS, maxDurationMs: setMs }, lastsMs);
    assert.deepEqual([maxDurationMs, durationReason], [30_000, reason]);
  }
});

test("[VL1106] who speaks over the last sentence of a call hears all of it, and it ends the call", () => {
  const talk = createTalk();
  talk.feed({ kind: "end_after_speech", reason: "server_restarted" });
  talk.feed({ kind: "audio_started" });
  talk.pass(500);
  talk.voice(1500);
  talk.pass(400);
  talk.final("where is my order");
  talk.pass(3000);
  assert.deepEqual(talk.done.map(({ kind }) => kind).filter((kind) => kind !== "finalize"),
    ["interrupt", "say_goodbye", "pause", "note", "resume"]);
  talk.feed({ kind: "played_out" });
  talk.pass(3000);
  assert.deepEqual(talk.of("hang_up").map(({ reason }) => reason), ["server_restarted"]);
  assert.equal(talk.of("reply").length, 0);
});

test("[VL167] keys become one turn at the stop key or the timeout, of bounded length; no keys make no turn", () => {
  play([
    [0, KEYPAD], [1000, press("1")], [1000, KEYPAD], [5500, press("2")], [10_499, KEYPAD],
    [10_500, KEYPAD, "keys [Keypad input: 12]"], [10_520, KEYPAD], [20_000, KEYPAD],
  ]);
  play([[1000, press("7")], [1100, press("#")], [1100, KEYPAD, "keys [Keypad input: 7]"], [9000, KEYPAD]]);
  play([[1000, press("#")], [1000, KEYPAD], [9000, KEYPAD]]);
  const many = Array.from({ length: 200 }, (): Row => [1000, press("5")]);
  const state = play([...many, [6000, KEYPAD, `keys [Keypad input: ${"5".repeat(64)}]`]]);
  assert.deepEqual([state.digits, state.hasSpoken], ["", true]);
});

const events = fc.oneof(
  fc.constantFrom<TimerEvent>(
    { kind: "answered" }, { kind: "customer_spoke" }, { kind: "activity" }, SILENCE, BUSY, KEYPAD,
    { kind: "check_duration", mayLeave: true }, { kind: "check_duration", mayLeave: false }),
  fc.constantFrom(..."0123456789*#").map(press),
);

test("[VL168] the timers' reducer is pure: the same events at the same times give the same state and actions", () => {
  fc.assert(fc.property(fc.array(fc.tuple(fc.nat(8000), events), { maxLength: 200 }), (steps) => {
    const run = (): unknown[] => {
      let state: TimerState = Object.freeze({ ...TIMERS_START });
      let nowMs = 0;
      return steps.map(([afterMs, event]) => {
        nowMs += afterMs;
        const reduced = reduceTimers(SETTINGS, state, Object.freeze(event), nowMs);
        state = Object.freeze(reduced.state);
        assert.ok(state.digits.length <= 64 && state.reengagements <= 3);
        return reduced;
      });
    };
    assert.deepEqual(run(), run());
  }));
});
