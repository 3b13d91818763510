// The taking of turns alone: the pure reducer, fed what a recogniser and a voice detector say, in
// every order they may say it in.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { TurnSettings } from "#features/calls/voice/turns/turn-events.ts";
import { reduceTurn, START } from "#features/calls/voice/turns/turn-taker.ts";
import { VOICE_SETTINGS } from "#support/calls/calls-by-clock.ts";
import { createTalk, FRAME_MS, SETTINGS, SILENCE_MS, type Talk } from "#support/calls/talk-by-hand.ts";

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

test("[VL180] a word recognised before its sound waits for its own silence, not the one before it", () => {
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

test("[VL180] words without any sound are answered once, after the silence that follows the last of them", () => {
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

test("[VL181] a final that arrives after its turn was answered is ignored, however late its words", () => {
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

test("[VL181] a customer who speaks on before the late final is heard from there on", () => {
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

test("[VL182] a late final of an unanswered turn is waited for and answered", () => {
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

test("[VL183] in whatever order words and sound arrive, no reply comes before the endpointing silence is over", () => {
  fc.assert(fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
    const talk = createTalk();
    let heardMs = 0;
    let isOwed = false;
    let words = "";
    for (const one of steps) {
      const before = talk.done.length;
      // Words that come while the customer speaks are those that were heard.
      const areNews = !isOwed && !talk.state().isTalking;
      if ("voice" in one) {
        talk.voice(one.voice);
        heardMs = talk.nowMs();
      } else if ("quiet" in one) talk.pass(one.quiet);
      else if ("partial" in one) {
        // What comes while a final is owed was said before it was asked for.
        if (areNews && one.partial !== words) heardMs = talk.nowMs();
        words = one.partial;
        talk.partial(one.partial);
      } else if ("final" in one) {
        if (areNews && one.final !== "" && one.final !== words) heardMs = talk.nowMs();
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

/** Into the middle of a long reply. */
function overReply(settings: Partial<TurnSettings> = {}): Talk {
  const talk = createTalk(settings);
  talk.voice(600);
  talk.pass(220);
  talk.final("Tell me a story");
  talk.pass(800);
  talk.feed({ kind: "audio_started" });
  talk.pass(1500);
  return talk;
}

test("[VL185] one word under 600 ms of sound pauses the reply until 300 ms after its final", () => {
  for (const word of ["wall", "at", "but", "of a"]) {
    const talk = overReply();
    talk.voice(200);
    talk.partial(word);
    talk.voice(200);
    talk.pass(600);
    talk.final(word);
    const finalMs = talk.nowMs();
    talk.pass(1000);
    assert.deepEqual([talk.of("pause").length, talk.of("interrupt").length], [1, 0], word);
    assert.deepEqual(talk.of("resume").map(({ atMs }) => atMs - finalMs), [300], word);
    assert.deepEqual(talk.of("note").map(({ text }) => text), [word]);
  }
});

test("[VL185] more words after it interrupt the reply", () => {
  const talk = overReply();
  talk.voice(300);
  talk.partial("but");
  assert.equal(talk.of("interrupt").length, 0);
  talk.voice(700);
  talk.partial("but what about Sunday");
  assert.equal(talk.of("interrupt").length, 1);
});

test("[VL186] a stop word interrupts at its partial; if it is misheard without its s, at its final", () => {
  const stop = overReply();
  stop.voice(300);
  stop.partial("stop");
  assert.equal(stop.of("interrupt").length, 1);
  const top = overReply();
  top.voice(400);
  top.partial("top");
  assert.equal(top.of("interrupt").length, 0);
  top.pass(220);
  top.final("top");
  assert.equal(top.of("interrupt").length, 1);
});

test("[VL187] words without sound, too few words for the sound, and one word repeated do not interrupt", () => {
  const music = overReply();
  music.partial("ah ah power or or");
  music.pass(1000);
  const hum = overReply();
  hum.voice(2200);
  hum.partial("wall wow");
  hum.pass(220);
  hum.final("wall wow");
  const laughter = overReply();
  laughter.voice(1200);
  laughter.partial("hap hap hap hap");
  laughter.pass(220);
  laughter.final("hap hap hap hap");
  for (const talk of [music, hum, laughter]) {
    talk.pass(3000);
    assert.equal(talk.of("interrupt").length, 0);
    assert.equal(talk.of("pause").length, talk.of("resume").length);
  }
  const told = overReply({ wordsAreTold: true });
  told.final("What about Sunday?");
  assert.equal(told.of("interrupt").length, 1, "who types is not heard");
});

/** The same sentence where words have no spaces between them, and where marks are part of them. */
const SUNDAY = { zh: "我想问一下星期天开不开门", ja: "日曜日は何時まで開いていますか", th: "วันอาทิตย์เปิดไหมครับ" };

test("[VL321] a sentence without spaces between its words interrupts like any other", () => {
  for (const [language, text] of Object.entries(SUNDAY)) {
    const talk = overReply();
    talk.voice(2400);
    talk.pass(220);
    talk.final(text);
    talk.pass(2000);
    assert.deepEqual(
      [talk.of("interrupt").length, ...talk.of("reply").map((one) => one.text).slice(1)],
      [1, text], language);
  }
  const word = overReply({ interrupt: { ...VOICE_SETTINGS.interrupt, wordsMin: 2 } });
  word.voice(900);
  word.final("नमस्ते");
  word.pass(2000);
  assert.equal(word.of("interrupt").length, 0, "one word, whatever its marks");
  const thumb = overReply({ wordsAreTold: true });
  thumb.final("👍\uFE0F");
  assert.equal(thumb.of("interrupt").length, 0, "no word at all");
});

test("[VL181] speech without spaces that goes on before the late final is heard from there on", () => {
  for (const [said, more] of [
    ["我想改一下地址", "改到榆树街"], ["住所を変更したい", "明日までにお願いします"],
    ["ผมต้องการเปลี่ยนที่อยู่", "พรุ่งนี้ครับ"],
  ] as const) {
    const talk = createTalk();
    talk.voice(1500);
    talk.partial(said);
    talk.pass(3000);
    talk.feed({ kind: "audio_started" });
    talk.feed({ kind: "played_out" });
    talk.voice(800);
    talk.partial(said + more);
    talk.pass(220);
    talk.final(said + more);
    talk.pass(2000);
    assert.deepEqual(talk.of("reply").map(({ text }) => text), [said, more]);
  }
});

test("[VL271] words sent as text are answered without sound; recognised words wait for theirs", () => {
  for (const wordsAreTold of [true, false]) {
    const talk = createTalk({ wordsAreTold });
    const passMute = (ms: number): void => {
      for (let passedMs = 0; passedMs < ms; passedMs += FRAME_MS) talk.tick();
    };
    talk.final("When are you open?");
    passMute(SILENCE_MS + 400);
    assert.deepEqual(talk.of("reply").map(({ text }) => text),
      wordsAreTold ? ["When are you open?"] : []);
    if (!wordsAreTold) continue;
    talk.feed({ kind: "audio_started" });
    talk.feed({ kind: "played_out" });
    talk.final("And on Sunday?");
    passMute(100);
    assert.equal(talk.of("reply").length, 1, "who types on is waited for");
    talk.final("Or Monday?");
    passMute(SILENCE_MS + 400);
    assert.equal(talk.of("reply").at(-1)?.text, "And on Sunday? Or Monday?");
  }
});

test("[VL270] keys pressed while the assistant cannot be interrupted are answered when it has finished", () => {
  const interrupt = { ...SETTINGS.interrupt, allowed: false };
  for (const keys of ["5#", "5"]) {
    const talk = createTalk({ interrupt, hasGreeting: true });
    talk.pass(100);
    talk.feed({ kind: "audio_started" });
    for (const digit of keys) talk.feed({ kind: "dtmf", digit });
    talk.pass(SETTINGS.keypad.timeoutMs + 1000);
    assert.deepEqual([talk.of("interrupt").length, talk.of("reply").length], [0, 0]);
    talk.feed({ kind: "played_out" });
    talk.pass(100);
    assert.deepEqual(talk.of("reply").map(({ text }) => text), ["[Keypad input: 5]"]);
  }
});

test("[VL237] words from several voices do not interrupt; a caller in noise does", () => {
  const over = (text: string, clear: number): Talk => {
    const talk = overReply();
    // So many of ten frames are a vowel of one voice.
    for (let frame = 0; frame < 100; frame += 1) {
      talk.voice(FRAME_MS, frame % 10 < clear ? 0.9 : 0.5);
    }
    talk.partial(text);
    talk.pass(220);
    talk.final(text);
    talk.pass(2500);
    return talk;
  };
  const television = over("the night and we have been arguing", 2);
  assert.deepEqual([television.of("interrupt").length, television.of("resume").length], [0, 1]);
  assert.equal(over("the night and we have been arguing", 6).of("interrupt").length, 1);
  assert.equal(over("stop", 2).of("interrupt").length, 1);
  // What is doubtful waits for its final.
  const doubtful = over("can you tell me the price", 5);
  assert.ok((doubtful.of("interrupt")[0]?.atMs ?? 0) > doubtful.of("finalize").at(-1)!.atMs);
});

test("[VL237] two words under 600 ms of sound do not interrupt", () => {
  const talk = overReply();
  talk.voice(500);
  talk.partial("i think");
  talk.pass(220);
  talk.final("i think");
  talk.pass(2000);
  assert.deepEqual([talk.of("interrupt").length, talk.of("resume").length], [0, 1]);
});

test("[VL188] a reply is prepared at the first final and used when the endpointing delay is over", () => {
  const talk = createTalk({ isEager: true });
  talk.voice(600);
  talk.pass(220);
  talk.final("What about Sunday");
  const finalMs = talk.nowMs();
  talk.pass(1000);
  assert.deepEqual(talk.of("prepare").map(({ text, atMs }) => [text, atMs - finalMs]),
    [["What about Sunday", 0]]);
  const [reply] = talk.of("reply");
  assert.equal(reply?.text, "What about Sunday");
  assert.ok((reply?.atMs ?? 0) - 600 >= SILENCE_MS);
  assert.equal(talk.of("discard").length, 0);
});

test("[VL188] a recogniser that expects the end of the turn has the reply prepared before its final", () => {
  const talk = createTalk({ isEager: true, detectsTurns: true });
  talk.voice(600);
  talk.partial("What about");
  talk.feed({ kind: "end_of_turn_likely" });
  talk.partial("What about Sunday");
  talk.feed({ kind: "end_of_turn_likely" });
  const likelyMs = talk.nowMs();
  talk.final("What about Sunday");
  talk.feed({ kind: "end_of_turn" });
  assert.deepEqual(talk.of("prepare").map(({ text }) => text), ["What about", "What about Sunday"]);
  assert.equal(talk.of("discard").length, 1);
  assert.deepEqual(talk.of("reply").map(({ text, atMs }) => [text, atMs]),
    [["What about Sunday", likelyMs]]);
});

test("[VL241] an end-of-turn judgement changes the endpointing delay of its own pause only", () => {
  const patience = (text: string, ...judged: number[]): number => {
    const talk = createTalk({ judgesEnds: true });
    talk.voice(600);
    talk.pass(220);
    talk.final(text);
    const [asked] = talk.of("judge_end");
    assert.deepEqual([asked?.pause, talk.of("judge_end").length], [1, 1]);
    assert.ok(Math.abs((asked?.spokenMs ?? 0) - 740) <= 80, String(asked?.spokenMs));
    for (const probability of judged) talk.feed({ kind: "end_judged", pause: 1, probability });
    talk.pass(3000);
    return (talk.of("reply")[0]?.atMs ?? 0) - 600;
  };
  const near = (one: number, other: number) => assert.ok(Math.abs(one - other) <= 40, `${one} ${other}`);
  const unjudged = patience("What about Sunday");
  near(patience("What about Sunday", 0.9), SILENCE_MS / 2);
  near(patience("What about Sunday", 0.1), SILENCE_MS * 1.5);
  assert.ok(unjudged > SILENCE_MS / 2 && unjudged < SILENCE_MS * 1.5);
  // Sounds finished, and its words do not.
  near(patience("I would like to and", 0.9), SILENCE_MS);
  near(patience("I would like to and", 0.1), SILENCE_MS * 1.5);

  const talk = createTalk({ judgesEnds: true });
  talk.voice(600);
  talk.pass(220);
  talk.final("What about Sunday");
  talk.voice(300);
  talk.feed({ kind: "end_judged", pause: 1, probability: 0.99 });
  talk.pass(220);
  assert.deepEqual(talk.of("judge_end").map(({ pause }) => pause), [1, 2]);
  talk.feed({ kind: "end_judged", pause: 1, probability: 0.99 });
  talk.final("at ten");
  const fromMs = talk.nowMs() - 220;
  talk.feed({ kind: "end_judged", pause: 2, probability: 0.1 });
  talk.pass(3000);
  near((talk.of("reply")[0]?.atMs ?? 0) - fromMs, SILENCE_MS * 1.5);
});

test("[VL188] a prepared reply is discarded if the customer goes on, at most three times a turn", () => {
  const talk = createTalk({ isEager: true });
  for (const word of ["one", "two", "three", "four", "five"]) {
    talk.voice(400);
    talk.pass(220);
    talk.final(word);
    talk.pass(200);
  }
  talk.pass(2000);
  assert.deepEqual(talk.of("prepare").map(({ text }) => text), ["one", "one two", "one two three"]);
  assert.equal(talk.of("discard").length, 3);
  assert.deepEqual(talk.of("reply").map(({ text }) => text), ["one two three four five"]);
  const patient = createTalk({ isEager: false });
  patient.voice(600);
  patient.pass(220);
  patient.final("What about Sunday");
  patient.pass(1000);
  assert.deepEqual([patient.of("prepare").length, patient.of("reply").length], [0, 1]);
});
