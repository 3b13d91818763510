// The taking of turns alone: the pure reducer, fed what a recogniser and a voice detector say, in
// every order they may say it in.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { timerSettingsOf } from "#features/calls/voice/call-timers.ts";
import type { TurnAction, TurnEvent, TurnSettings } from "#features/calls/voice/turn-events.ts";
import { reduceTurn, START } from "#features/calls/voice/turn-taker.ts";
import { VOICE_SETTINGS } from "#support/calls-by-clock.ts";

const FRAME_MS = 20;
const SILENCE_MS = VOICE_SETTINGS.endpoint.silenceMs;
const SETTINGS: TurnSettings = {
  ...VOICE_SETTINGS, ...timerSettingsOf(VOICE_SETTINGS, 3_600_000),
  hasFillers: false, hasGreeting: false, detectsTurns: false,
};

/** A call by hand: what happens in it, and what the reducer did about it when. */
function createTalk(settings: Partial<TurnSettings> = {}) {
  let state = START;
  let nowMs = 0;
  const log: { event: TurnEvent; atMs: number }[] = [];
  const done: (TurnAction & { atMs: number })[] = [];
  const feed = (event: TurnEvent): readonly TurnAction[] => {
    log.push({ event, atMs: nowMs });
    const reduced = reduceTurn({ ...SETTINGS, ...settings }, state, event, nowMs);
    state = reduced.state;
    for (const action of reduced.actions) done.push({ ...action, atMs: nowMs });
    return reduced.actions;
  };
  /** Frames of voice or of silence. */
  const pass = (ms: number, probability = 0): void => {
    for (let passedMs = 0; passedMs < ms; passedMs += FRAME_MS) {
      nowMs += FRAME_MS;
      feed({ kind: "voice", probability, frameMs: FRAME_MS });
      feed({ kind: "tick" });
    }
  };
  feed({ kind: "answered" });
  return {
    feed, pass, log, done,
    partial: (text: string) => feed({ kind: "partial", text }),
    final: (text: string) => feed({ kind: "final", text }),
    voice: (ms: number) => pass(ms, 1),
    state: () => state,
    nowMs: () => nowMs,
    of: <K extends TurnAction["kind"]>(kind: K) =>
      done.filter((action): action is Extract<TurnAction, { kind: K }> & { atMs: number } =>
        action.kind === kind),
  };
}

type Talk = ReturnType<typeof createTalk>;

/** One question and its answer, then a long quiet. */
function afterOneTurn(settings: Partial<TurnSettings> = {}): Talk {
  const talk = createTalk(settings);
  talk.voice(600);
  talk.pass(220);
  talk.final("Tell me a story");
  talk.pass(800);
  talk.feed({ kind: "audio_started" });
  talk.pass(2000);
  talk.feed({ kind: "played_out" });
  talk.pass(12_000);
  assert.equal(talk.of("reply").length, 1);
  return talk;
}

test("[VL180] a word recognised before a voice is heard waits for its own silence, not the one before it", () => {
  const talk = afterOneTurn();
  talk.partial("to");
  talk.pass(60);
  assert.equal(talk.of("reply").length, 1, "the word alone is no turn");
  talk.voice(1000);
  talk.partial("to can you tell me the price");
  talk.pass(220);
  talk.final("can you tell me the price");
  talk.pass(SILENCE_MS);
  assert.deepEqual(talk.of("reply").map(({ text }) => text),
    ["Tell me a story", "can you tell me the price"]);
});

test("[VL180] words no voice is ever heard for are answered once, after the silence behind the last of them", () => {
  const talk = afterOneTurn();
  talk.partial("hello");
  talk.pass(400);
  talk.final("hello");
  talk.partial("are you");
  const spokenMs = talk.nowMs();
  talk.pass(300);
  talk.final("are you there");
  talk.pass(SILENCE_MS * 2);
  const replies = talk.of("reply");
  assert.deepEqual(replies.map(({ text }) => text), ["Tell me a story", "hello are you there"]);
  assert.ok((replies[1]?.atMs ?? 0) - spokenMs >= SILENCE_MS);
  assert.deepEqual(replies.map(({ hasVoice }) => hasVoice), [true, false]);
});

test("[VL181] a final that comes after its turn was taken has no second life, however late its words", () => {
  for (const partial of ["I want to change my", "I want to change my address"]) {
    const talk = createTalk();
    talk.voice(1500);
    talk.partial(partial);
    talk.pass(3000);
    assert.deepEqual(talk.of("reply").map(({ text }) => text), [partial]);
    talk.feed({ kind: "audio_started" });
    talk.partial("I want to change my address");
    talk.final("I want to change my address");
    talk.pass(1000);
    talk.feed({ kind: "played_out" });
    talk.pass(5000);
    assert.equal(talk.of("reply").length, 1);
    assert.equal(talk.of("interrupt").length, 0);
  }
});

test("[VL181] who speaks on before the late final is heard from there on", () => {
  const talk = createTalk();
  talk.voice(1500);
  talk.partial("I want to change my address");
  talk.pass(3000);
  talk.feed({ kind: "audio_started" });
  talk.feed({ kind: "played_out" });
  talk.voice(800);
  talk.partial("I want to change my address to Elm Street");
  talk.pass(220);
  talk.final("I want to change my address to Elm Street");
  talk.pass(2000);
  assert.deepEqual(talk.of("reply").map(({ text }) => text),
    ["I want to change my address", "to Elm Street"]);
});

test("[VL182] a final nobody answered before is waited for and answered, however late", () => {
  const talk = createTalk();
  talk.voice(1500);
  talk.pass(4000);
  talk.final("I want to change my address");
  talk.pass(SILENCE_MS + 40);
  talk.pass(4000);
  assert.deepEqual(talk.of("reply").map(({ text }) => text), ["I want to change my address"]);
});

const step = fc.oneof(
  fc.integer({ min: 1, max: 80 }).map((frames) => ({ voice: frames * FRAME_MS })),
  fc.integer({ min: 1, max: 120 }).map((frames) => ({ quiet: frames * FRAME_MS })),
  fc.constantFrom("to", "to can you", "stop", "okay", "hello there you", "Yes.").map((partial) => ({ partial })),
  fc.constantFrom("", "to", "hello there", "what about Sunday?", "uh-huh").map((final) => ({ final })),
  fc.constantFrom("audio_started", "played_out").map((event) => ({ event } as const)),
);

test("[VL183] however words and voice come, nobody is answered before the silence of the endpoint", () => {
  fc.assert(fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
    const talk = createTalk();
    let heardMs = 0;
    let isOwed = false;
    let words = "";
    for (const one of steps) {
      const before = talk.done.length;
      if ("voice" in one) {
        talk.voice(one.voice);
        heardMs = talk.nowMs();
      } else if ("quiet" in one) talk.pass(one.quiet);
      else if ("partial" in one) {
        // What comes while a final is owed was said before it was asked for.
        if (!isOwed && one.partial !== words) heardMs = talk.nowMs();
        words = one.partial;
        talk.partial(one.partial);
      } else if ("final" in one) {
        if (!isOwed && one.final !== "" && one.final !== words) heardMs = talk.nowMs();
        words = "";
        talk.final(one.final);
        isOwed = false;
      } else talk.feed({ kind: one.event });
      for (const action of talk.done.slice(before)) {
        if (action.kind === "finalize") isOwed = true;
        if (action.kind === "reply") {
          assert.ok(action.atMs - heardMs >= SILENCE_MS / 2 && !("voice" in one),
            `answered ${action.atMs - heardMs} ms after it was heard`);
        }
      }
    }
  }), { numRuns: 400 });
});

test("[VL184] a call's event log replays to the same actions", () => {
  fc.assert(fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
    const talk = createTalk();
    for (const one of steps) {
      if ("voice" in one) talk.voice(one.voice);
      else if ("quiet" in one) talk.pass(one.quiet);
      else if ("partial" in one) talk.partial(one.partial);
      else if ("final" in one) talk.final(one.final);
      else talk.feed({ kind: one.event });
    }
    const logged = JSON.parse(JSON.stringify(talk.log)) as typeof talk.log;
    let state = START;
    const again = logged.flatMap(({ event, atMs }) => {
      const reduced = reduceTurn(SETTINGS, Object.freeze(state), Object.freeze(event), atMs);
      state = reduced.state;
      return reduced.actions.map((action) => ({ ...action, atMs }));
    });
    assert.deepEqual(again, talk.done);
  }), { numRuns: 100 });
});
