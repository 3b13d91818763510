// When a turn is over, and what then: the pure reducer with a recogniser that says so itself, with
// words that come without sound, while somebody else has the call and after a transfer that failed.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createTalk, FRAME_MS, SILENCE_MS } from "#support/calls/talk-by-hand.ts";

test("[MX10] a recogniser's end of a turn is answered, greeted or noted at once, and waited for 2.5 seconds", () => {
  const heard = (hasGreeting: boolean, before?: "person") => {
    const talk = createTalk({ detectsTurns: true, hasGreeting, waitForCustomer: hasGreeting });
    if (before === "person") talk.feed({ kind: "person_joined", isAlone: true });
    talk.voice(600);
    talk.final("Where is my order");
    return talk;
  };
  const answered = heard(false);
  answered.feed({ kind: "end_of_turn" });
  assert.equal(answered.of("reply").length, 1);
  const greeted = heard(true);
  greeted.feed({ kind: "end_of_turn" });
  assert.deepEqual([greeted.of("note").length, greeted.of("greet").length], [1, 1]);
  const noted = heard(false, "person");
  noted.feed({ kind: "end_of_turn" });
  assert.deepEqual(noted.of("note").map(({ text }) => text), ["Where is my order"]);
  assert.equal(noted.of("reply").length, 0);
  const late = heard(false);
  late.pass(2400);
  assert.equal(late.of("reply").length, 0);
  late.pass(200);
  assert.equal(late.of("reply").length, 1);
});

test("[MX11] where sound comes beside words that are told, its silence counts once", () => {
  const talk = createTalk({ wordsAreTold: true });
  talk.voice(600);
  talk.pass(220);
  talk.final("When are you open and");
  talk.pass(1.5 * SILENCE_MS - 220 - 2 * FRAME_MS);
  assert.equal(talk.of("reply").length, 0);
  talk.pass(6 * FRAME_MS);
  assert.equal(talk.of("reply").length, 1);
});

test("[MX12] a filler is said after 0.7 seconds without an answer, once", () => {
  const talk = createTalk({ hasFillers: true });
  talk.voice(600);
  talk.pass(220);
  talk.final("Where is my order?");
  while (talk.of("reply").length === 0) talk.pass(FRAME_MS);
  talk.pass(680);
  assert.equal(talk.of("filler").length, 0);
  talk.pass(60);
  assert.equal(talk.of("filler").length, 1);
  talk.pass(3000);
  assert.equal(talk.of("filler").length, 1);
});

test("[MX13] after a transfer that failed the customer is heard and answered again", () => {
  const talk = createTalk();
  talk.feed({ kind: "end_after_speech", reason: "transferred" });
  assert.deepEqual(talk.of("hang_up").map(({ reason }) => reason), ["transferred"]);
  talk.voice(600);
  talk.final("Is anybody there?");
  talk.pass(2000);
  assert.equal(talk.of("reply").length, 0, "the carrier has the call");
  talk.feed({ kind: "transfer_failed" });
  talk.voice(600);
  talk.pass(220);
  talk.final("Hello?");
  talk.pass(2000);
  assert.deepEqual(talk.of("reply").map(({ text }) => text), ["Hello?"]);
  talk.feed({ kind: "audio_started" });
  talk.feed({ kind: "played_out" });
  assert.equal(talk.of("hang_up").length, 1, "the call goes on");
});

test("[MX14] a judgement of an earlier pause, or one that comes while the customer talks, counts for nothing", () => {
  const talk = createTalk({ judgesEnds: true });
  talk.voice(600);
  talk.pass(220);
  talk.voice(600);
  talk.feed({ kind: "end_judged", pause: 1, probability: 1 });
  talk.pass(220);
  talk.feed({ kind: "end_judged", pause: 1, probability: 1 });
  talk.final("I would like to order");
  // Its words go on, and nobody has judged this pause.
  talk.pass(1.4 * SILENCE_MS - 220);
  assert.deepEqual(talk.of("judge_end").map(({ pause }) => pause), [1, 2]);
  assert.equal(talk.of("reply").length, 0);
  talk.feed({ kind: "end_judged", pause: 2, probability: 1 });
  talk.pass(FRAME_MS);
  assert.equal(talk.of("reply").length, 1);
});

test("[MX15] while a person has the call only a stop of the server ends it", () => {
  const talk = createTalk();
  talk.feed({ kind: "person_joined", isAlone: true });
  talk.feed({ kind: "end_after_speech", reason: "assistant_ended" });
  talk.feed({ kind: "person_left", wasLost: false });
  talk.feed({ kind: "audio_started" });
  talk.feed({ kind: "played_out" });
  assert.deepEqual([talk.of("speak_up").length, talk.of("hang_up").length], [1, 0]);
  talk.feed({ kind: "person_joined", isAlone: true });
  talk.feed({ kind: "end_after_speech", reason: "server_restarted" });
  assert.equal(talk.of("say_goodbye").length, 1);
  talk.feed({ kind: "audio_started" });
  talk.feed({ kind: "played_out" });
  assert.deepEqual(talk.of("hang_up").map(({ reason }) => reason), ["server_restarted"]);
});

test("[MX17] who takes a call or leaves it during a transfer has it, or not, once the transfer has failed", () => {
  const joined = { kind: "person_joined", isAlone: true } as const;
  for (const isLeft of [false, true]) {
    const talk = createTalk();
    talk.feed({ kind: "end_after_speech", reason: "transferred" });
    talk.feed(joined);
    if (isLeft) talk.feed({ kind: "person_left", wasLost: false });
    talk.feed({ kind: "transfer_failed" });
    talk.voice(600);
    talk.pass(220);
    talk.final("Hello?");
    talk.pass(2000);
    assert.deepEqual([talk.of("note").length, talk.of("reply").length], isLeft ? [0, 1] : [1, 0]);
  }
});
