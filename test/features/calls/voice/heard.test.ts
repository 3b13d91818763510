// What counts as heard: the pure reducer and the sound of a voice over the assistant, and of
// somebody, or something, that has answered.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { TurnSettings } from "#features/calls/voice/turns/turn-events.ts";
import { createTalk, FRAME_MS, SETTINGS } from "#support/calls/talk-by-hand.ts";

test("[MX21] a voice over the assistant counts from its own threshold and duration on, any other from 0.5", () => {
  const interrupt = { ...SETTINGS.interrupt, threshold: 0.8, confirmMs: 200 };
  const talk = createTalk({ interrupt });
  talk.pass(100, 0.6);
  assert.equal(talk.state().isTalking, true);
  talk.pass(220);
  talk.final("Tell me a story");
  talk.pass(2000);
  talk.feed({ kind: "audio_started" });
  talk.pass(1000, 0.6);
  talk.pass(180, 0.9);
  assert.equal(talk.of("pause").length, 0);
  talk.pass(2 * FRAME_MS, 0.9);
  assert.equal(talk.of("pause").length, 1);
});

const voicemail: TurnSettings["voicemail"] =
  { ...SETTINGS.voicemail, detects: true, message: "Please call back." };

test("[MX22] who speaks for 3.5 seconds with no more than a breath is a machine, who falls silent a person", () => {
  const heard = (...runs: [voiceMs: number, silenceMs: number][]) => {
    const talk = createTalk({ voicemail });
    for (const [voiceMs, silenceMs] of runs) {
      talk.voice(voiceMs);
      talk.pass(silenceMs);
    }
    return talk.of("answered_by").map(({ by }) => by);
  };
  assert.deepEqual(heard([1800, 300], [1500, 0]), ["machine"]);
  assert.deepEqual(heard([1800, 300], [1300, 0]), []);
  assert.deepEqual(heard([1800, 600], [1800, 0]), ["human"]);
  // A click is nobody.
  assert.deepEqual(heard([40, 1000]), []);
});

test("[MX23] the carrier's judgement counts as ours does, and a beep only after a machine", () => {
  for (const by of ["human", "machine", "unknown"] as const) {
    const talk = createTalk({ voicemail });
    talk.feed({ kind: "beep" });
    assert.equal(talk.of("leave_message").length, 0);
    talk.feed({ kind: "answered_by", by });
    assert.deepEqual(talk.of("answered_by").map((action) => action.by), [by]);
    talk.feed({ kind: "beep" });
    assert.equal(talk.of("leave_message").length, by === "machine" ? 1 : 0);
  }
});
