// When a turn is taken to be over, by what was said and how long it has been quiet: callers who
// stop in the middle, and callers who have finished, through the reducer that takes the turns.
import assert from "node:assert/strict";
import { test } from "node:test";
import { timerSettingsOf } from "#features/calls/voice/turns/call-timers.ts";
import { endingOf } from "#features/calls/voice/turns/patience.ts";
import type { TurnEvent, TurnSettings, TurnState } from "#features/calls/voice/turns/turn-events.ts";
import { reduceTurn, START } from "#features/calls/voice/turns/turn-taker.ts";
import { VOICE_SETTINGS } from "#support/calls/calls-by-clock.ts";
import { PAUSED_TURNS, PAUSES_MS } from "#support/calls/pauses.ts";

const FRAME_MS = 20;
/** What a new assistant's sensitivity comes to. */
const SILENCE_MS = 750;
const SETTINGS: TurnSettings = {
  ...VOICE_SETTINGS, ...timerSettingsOf(VOICE_SETTINGS, 3_600_000), isEager: false,
  endpoint: { type: "vad", silenceMs: SILENCE_MS },
  hasFillers: false, hasGreeting: false, detectsTurns: false, wordsAreTold: false,
  judgesEnds: false,
};
/** So many of the pauses were taken for ends when a sentence was whole by its full stop alone. */
const CUT_OFFS_BEFORE = 236;

function createTalk() {
  let state: TurnState = START;
  let nowMs = 0;
  let replies = 0;
  const feed = (event: TurnEvent): void => {
    const reduced = reduceTurn(SETTINGS, state, event, nowMs);
    ({ state } = reduced);
    replies += reduced.actions.filter(({ kind }) => kind === "reply").length;
  };
  const pass = (ms: number, probability: number): void => {
    for (let passedMs = 0; passedMs < ms; passedMs += FRAME_MS) {
      nowMs += FRAME_MS;
      const quietMs = probability === 0 ? FRAME_MS : 0;
      feed({ kind: "voice", probability, frameMs: FRAME_MS, quietMs, periodicity: 1 });
    }
  };
  feed({ kind: "answered" });
  return {
    feed, voice: (ms: number) => pass(ms, 1), pass: (ms: number) => pass(ms, 0),
    state: () => state, replies: () => replies,
  };
}

/** How long it was quiet when the turn was over. */
function waitedMs(text: string): number {
  const talk = createTalk();
  talk.voice(1000);
  talk.pass(220);
  talk.feed({ kind: "final", text });
  let waited = 220;
  for (; talk.replies() === 0; waited += FRAME_MS) talk.pass(FRAME_MS);
  return waited;
}

test("[VL235] turns end sooner, and no more pauses are mistaken for their end", () => {
  const waits = PAUSED_TURNS.map(({ whole }) => waitedMs(whole)).sort((a, b) => a - b);
  const cutOffs = PAUSED_TURNS.flatMap(({ before }) => before)
    .flatMap((text) => PAUSES_MS.filter((pauseMs) => pauseMs >= waitedMs(text)));
  const median = waits[waits.length >> 1] ?? 0;
  assert.ok(cutOffs.length <= CUT_OFFS_BEFORE * 0.7, `${cutOffs.length} cut off`);
  assert.ok(median <= 480, `half of the turns wait ${median} ms`);
});

test("[VL235] how a text ends: whole, likely whole, unclear or broken off", () => {
  const expected: [ReturnType<typeof endingOf>, string[]][] = [
    ["whole", ["what time do you open", "Yes.", "Was kostet das?", "a table for two please", "That is $5."]],
    ["likely", ["i lost my card in the shop", "we would come by train tomorrow"]],
    ["usual", ["book a table", "yes", "who is it for", "how long does that take", "the blue one"]],
    ["open", [
      "i would like to", "can you tell me", "my number is", "five five five", "My number is 555.", "well,",
      "i live at", "ich hätte gern", "what time", "i want to change",
    ]],
  ];
  for (const [ending, texts] of expected) {
    for (const text of texts) assert.equal(endingOf(text), ending, text);
  }
});

test("[VL236] after one cut-off the setting's full silence is waited for, however whole the words sound", () => {
  const talk = createTalk();
  talk.voice(1000);
  talk.pass(220);
  talk.feed({ kind: "final", text: "what time do you open" });
  talk.pass(200);
  assert.equal(talk.replies(), 1);
  talk.voice(600);
  assert.ok(talk.state().wasCutOff);
  talk.pass(220);
  talk.feed({ kind: "final", text: "on sunday morning" });
  talk.pass(SILENCE_MS - 240);
  assert.equal(talk.replies(), 1);
  talk.pass(40);
  assert.equal(talk.replies(), 2);
  const interrupting = createTalk();
  interrupting.voice(1000);
  interrupting.pass(220);
  interrupting.feed({ kind: "final", text: "what time do you open" });
  interrupting.pass(200);
  interrupting.feed({ kind: "audio_started" });
  interrupting.pass(200);
  interrupting.voice(700);
  interrupting.feed({ kind: "partial", text: "on sunday morning" });
  assert.ok(interrupting.state().wasCutOff);
});
