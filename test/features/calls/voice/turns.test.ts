// Who speaks when: interruptions, pauses, silence, machines and keys, on a virtual clock. The far
// end decodes every word it hears, so that the transcript is checked against what really arrived.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { CallerStep } from "#providers/carriers/loopback.ts";
import { pieceEnd } from "#features/calls/voice/turns/wording.ts";
import { lines, playCall, VOICE_SETTINGS, wordsOnRecord, type PlayedCallOptions } from "#support/calls/calls-by-clock.ts";
import { createTalk, SETTINGS, SILENCE_MS } from "#support/calls/talk-by-hand.ts";

const LONG = "One two three four five six seven eight nine ten eleven twelve thirteen fourteen.";
const { interrupt } = VOICE_SETTINGS;

/** Plays a call and holds its record against what the far end heard. */
function call(options: PlayedCallOptions) {
  const played = playCall(options);
  assert.ok(played.over, "the call came to its end");
  assert.deepEqual(wordsOnRecord(played), played.heard);
  return played;
}

const ASKS: CallerStep[] = [{ quietMs: 400 }, { say: "Tell me a story." }];

test("[VL1] speech over a reply stops it; the transcript holds only the words that were heard", () => {
  const played = call({
    steps: [...ASKS, { words: 4 }, { say: "What about Sunday?" }, { quietMs: 900 }, { hangUp: true }],
    answer: (_question, number) => (number === 1 ? LONG : "Closed."),
  });
  assert.deepEqual(played.questions, ["Tell me a story.", "What about Sunday?"]);
  assert.deepEqual(lines(played), [
    "assistant: Hello, how can I help?", "customer: Tell me a story.",
    "assistant!: One two three four", "customer: What about Sunday?", "assistant: Closed.",
  ]);
  assert.equal(played.over?.reason, "customer_hung_up");
});

test("[VL2] a greeting can be interrupted", () => {
  const played = call({
    steps: [{ words: 2 }, { say: "Are you open?" }, { quietMs: 900 }, { hangUp: true }],
    greeting: LONG, answer: () => "Yes.",
  });
  assert.deepEqual(lines(played), ["assistant!: One two", "customer: Are you open?", "assistant: Yes."]);
});

test("[VL3] a backchannel does not interrupt: the reply continues where it was", () => {
  for (const noise of ["uh-huh", "okay", "yeah right", "I see"]) {
    const played = call({
      steps: [...ASKS, { words: 4 }, { say: noise }, { quietMs: 3000 }, { hangUp: true }],
      answer: () => LONG,
    });
    assert.deepEqual(played.questions, ["Tell me a story."], noise);
    assert.equal(played.heard.join(" "), `Hello, how can I help? ${LONG}`);
    assert.ok(lines(played).includes(`customer: ${noise}`));
  }
});

test("[VL4] a cough pauses the reply for a moment; it resumes and no word is lost or repeated", () => {
  const played = call({
    steps: [...ASKS, { words: 4 }, { noiseMs: 400 }, { quietMs: 3000 }, { hangUp: true }],
    answer: () => LONG,
  });
  assert.equal(played.heard.join(" "), `Hello, how can I help? ${LONG}`);
  assert.equal(lines(played).at(-1), `assistant: ${LONG}`);
});

test("[VL5] min_interrupt_words: fewer words do not stop the assistant, that many do", () => {
  const settings = { interrupt: { ...interrupt, wordsMin: 3 } };
  const few = call({
    steps: [...ASKS, { words: 4 }, { say: "very nice" }, { quietMs: 3000 }, { hangUp: true }],
    settings, answer: (_question, number) => (number === 1 ? LONG : "Thanks."),
  });
  assert.equal(few.heard.join(" "), `Hello, how can I help? ${LONG} Thanks.`);
  const many = call({
    steps: [...ASKS, { words: 4 }, { say: "tell me about Sundays" }, { quietMs: 900 }, { hangUp: true }],
    settings, answer: (_question, number) => (number === 1 ? LONG : "Closed."),
  });
  assert.ok(many.said.some(({ interrupted }) => interrupted));
  assert.ok(many.heard.length < few.heard.length);
});

test("[VL6] stop and no end a reply whatever min_interrupt_words says", () => {
  const played = call({
    steps: [...ASKS, { words: 4 }, { say: "stop" }, { quietMs: 900 }, { hangUp: true }],
    settings: { interrupt: { ...interrupt, wordsMin: 5 } },
    answer: (_question, number) => (number === 1 ? LONG : "Good."),
  });
  assert.equal(lines(played)[2], "assistant!: One two three four");
});

test("[VL7] without allow_interruptions the reply is finished before the words are answered", () => {
  const played = call({
    steps: [...ASKS, { words: 4 }, { say: "Stop. What about Sunday?" }, { quietMs: 4000 }, { hangUp: true }],
    settings: { interrupt: { ...interrupt, allowed: false } },
    answer: (_question, number) => (number === 1 ? LONG : "Closed."),
  });
  assert.deepEqual(played.questions, ["Tell me a story.", "Stop. What about Sunday?"]);
  assert.equal(played.heard.join(" "), `Hello, how can I help? ${LONG} Closed.`);
});

test("[VL8] after two interruptions in a row each transcript entry ends where its audio ended", () => {
  const played = call({
    steps: [
      ...ASKS, { words: 3 }, { say: "No, another one." }, { words: 6 }, { say: "No, a third one." },
      { quietMs: 900 }, { hangUp: true },
    ],
    answer: (_question, number) => (number < 3 ? LONG : "Done."),
  });
  assert.equal(played.said.filter(({ interrupted }) => interrupted).length, 2);
  assert.equal(played.questions.length, 3);
});

test("[VL9] a customer who keeps talking before the answer begins gets one answer to all of it", () => {
  const played = call({
    steps: [
      { quietMs: 400 }, { say: "I would like to book a table." }, { waitMs: 700 },
      { say: "For two, tomorrow." }, { quietMs: 1200 }, { hangUp: true },
    ],
    answer: (question) => ({ text: `Noted: ${question}`, thinkMs: 1500 }),
  });
  assert.deepEqual(played.questions.at(-1), "I would like to book a table. For two, tomorrow.");
  assert.deepEqual(lines(played).slice(1, 3), [
    "customer: I would like to book a table.", "customer: For two, tomorrow.",
  ]);
  assert.equal(played.said.filter(({ speaker }) => speaker === "assistant").length, 2);
});

test("[VL10] a reply interrupted while the model is still writing ends where it was heard", () => {
  const played = call({
    steps: [...ASKS, { words: 3 }, { say: "Hold on please." }, { quietMs: 900 }, { hangUp: true }],
    answer: (_question, number) =>
      number === 1 ? { text: "First one. Then two. Then three. Then four. Then five.", gapMs: 150 } : "Yes?",
  });
  assert.equal(played.said.filter(({ interrupted }) => interrupted).length, 1);
  assert.ok(played.heard.length < 16);
});

test("[VL11] speech starts with the first sentence, not after the last token", () => {
  const played = call({
    steps: [...ASKS, { quietMs: 1200 }, { hangUp: true }],
    answer: () => ({ text: "This comes first. And this comes very much later in the reply.", gapMs: 200 }),
  });
  const [turn] = played.over?.turns ?? [];
  assert.ok(turn?.firstAudioMs !== null && turn?.firstTokenMs !== null);
  assert.ok((turn?.firstAudioMs ?? 0) - (turn?.firstTokenMs ?? 0) <= 800, JSON.stringify(turn));
});

test("[VL189] with a slow model the reply is prepared during the silence, so it is heard sooner but never early", () => {
  const heardMs = (isEager: boolean): number => {
    const played = call({
      steps: [...ASKS, { quietMs: 2500 }, { hangUp: true }],
      answer: () => ({ text: "Once upon a time.", thinkMs: 400 }), settings: { isEager },
    });
    assert.equal(played.dropped, 0);
    return played.over?.turns[0]?.heardMs ?? Infinity;
  };
  const [patient, eager] = [heardMs(false), heardMs(true)];
  assert.ok(patient - eager >= 130, `${patient} and ${eager}`);
  assert.ok(eager >= 350);
});

test("[VL190] a discarded reply leaves no words, no entry and no latency; the next reply answers everything", () => {
  const played = call({
    steps: [
      { quietMs: 400 }, { say: "I would like to book" }, { waitMs: 450 }, { say: "a table for two." },
      { quietMs: 1500 }, { hangUp: true },
    ],
    answer: (question) => `Noted: ${question}`,
  });
  assert.equal(played.dropped, 1);
  assert.deepEqual(played.questions, ["I would like to book a table for two."]);
  assert.deepEqual(lines(played).slice(1), [
    "customer: I would like to book a table for two.",
    "assistant: Noted: I would like to book a table for two.",
  ]);
  assert.equal(played.over?.turns.length, 1);
});

const WRITTEN = "**Sure**: mail john_doe_x@example.com, it is 2*3*4 and $5.\n\n- One\n- Two 😀";

test("[VL83] the transcript keeps the text as written; only speech leaves markup out", () => {
  const played = playCall({
    steps: [...ASKS, { quietMs: 3000 }, { hangUp: true }], answer: () => WRITTEN,
  });
  assert.equal(lines(played).at(-1), `assistant: ${WRITTEN}`);
  assert.equal(played.heard.slice(5).join(" "),
    "Sure: mail john_doe_x@example.com, it is 2*3*4 and $5. One, Two");
  const spoken = playCall({
    steps: [...ASKS, { quietMs: 3000 }, { hangUp: true }], answer: () => WRITTEN, manner: "words",
  });
  assert.equal(lines(spoken).at(-1), `assistant: ${WRITTEN}`);
  assert.ok(spoken.heard.includes("underscore"));
});

test("[VL84] interrupted within an address the transcript ends before it, and after it with it", () => {
  const interruptedAfter = (words: number): string | undefined => lines(playCall({
    steps: [...ASKS, { words }, { say: "What about Sunday?" }, { quietMs: 900 }, { hangUp: true }],
    answer: (_question, number) => (number === 1 ? WRITTEN : "Closed."), manner: "words",
  }))[2];
  assert.equal(interruptedAfter(5), "assistant!: **Sure**: mail");
  assert.equal(interruptedAfter(11), "assistant!: **Sure**: mail john_doe_x@example.com,");
});

test("[VL322] an interrupted reply without spaces between its words is on record as far as it was heard", () => {
  const [first, second] = ["我们从星期一到星期五都营业。", "星期六上午九点开门，下午五点关门。"];
  const played = playCall({
    steps: [...ASKS, { words: 1 }, { say: "What about Sunday?" }, { quietMs: 900 }, { hangUp: true }],
    answer: (_question, number) => (number === 1 ? first + second.repeat(3) : "Closed."),
  });
  assert.deepEqual(played.questions, ["Tell me a story.", "What about Sunday?"]);
  const [, , story = ""] = lines(played);
  assert.ok(story.startsWith(`assistant!: ${first}`), story);
});

test("[VL85] an endless sentence is spoken in pieces and stands whole in the transcript", () => {
  const endless = Array.from({ length: 500 }, (_, number) => `word${number}`).join(" ");
  for (const text of [endless, endless.replaceAll(" ", ", ")]) {
    let rest = text;
    const pieces: string[] = [];
    for (let end = pieceEnd(rest); end > 0; end = pieceEnd(rest)) {
      pieces.push(rest.slice(0, end));
      rest = rest.slice(end);
    }
    assert.equal(pieces.join("") + rest, text);
    assert.ok([...pieces, rest].every(({ length }) => length > 0 && length <= 260));
  }
});

test("[VL12] whatever the order of speech, noise and pauses, the transcript is what was heard", () => {
  const word = fc.constantFrom("yes", "stop", "okay", "hello there you", "what about Sunday?", "um");
  const step = fc.oneof(
    word.map((say): CallerStep => ({ say })),
    fc.integer({ min: 20, max: 3000 }).map((waitMs): CallerStep => ({ waitMs })),
    fc.integer({ min: 1, max: 6 }).map((words): CallerStep => ({ words })),
    fc.integer({ min: 60, max: 800 }).map((noiseMs): CallerStep => ({ noiseMs })),
  );
  fc.assert(fc.property(
    fc.array(step, { maxLength: 12 }), fc.integer({ min: 0, max: 4 }), fc.boolean(),
    fc.constantFrom(0, 40, 300), fc.constantFrom(0, 150),
    (steps, wordsMin, allowed, thinkMs, recognitionMs) => {
      const played = playCall({
        steps: [...steps, { waitMs: 2000 }, { hangUp: true }],
        settings: { interrupt: { ...interrupt, wordsMin, allowed }, maxDurationMs: 120_000 },
        answer: () => ({ text: LONG, thinkMs }), recognitionMs, limitMs: 200_000,
      });
      assert.ok(played.over);
      assert.deepEqual(wordsOnRecord(played), played.heard);
    },
  ), { numRuns: 150 });
});

test("[VL767] what is said before the answer is heard belongs to the question, but a function at work is not stopped", () => {
  for (const running of [false, true]) {
    const talk = createTalk();
    talk.voice(600);
    talk.pass(220);
    talk.final("My order");
    talk.pass(SILENCE_MS * 2);
    assert.equal(talk.of("reply").length, 1);
    talk.feed({ kind: "function", running });
    talk.final("from May");
    talk.voice(300);
    assert.equal(talk.of("cancel_reply").length, running ? 0 : 1);
    talk.pass(220);
    talk.final("is late");
    talk.pass(SILENCE_MS * 2);
    assert.deepEqual(talk.of("reply").map(({ text }) => text),
      running ? ["My order"] : ["My order", "My order from May is late"]);
  }
});

test("[VL768] a click is nobody who answered; a machine's greeting is kept before its message is left", () => {
  const voicemail = { ...SETTINGS.voicemail, detects: true, message: "Call us back" };
  const talk = createTalk({ voicemail });
  talk.voice(40);
  talk.pass(600);
  assert.deepEqual(talk.of("answered_by"), []);
  talk.voice(1000);
  talk.final("Please leave a message after the tone");
  for (const digit of "5#") talk.feed({ kind: "dtmf", digit });
  talk.pass(3000);
  assert.deepEqual(talk.of("answered_by").map(({ by }) => by), ["machine"]);
  assert.deepEqual(talk.done.filter(({ kind }) => kind === "note" || kind === "leave_message")
    .map((action) => "text" in action ? action.text : action.kind),
  ["Please leave a message after the tone", "leave_message"]);
  talk.feed({ kind: "played_out" });
  talk.pass(100);
  assert.deepEqual([talk.of("reply"), talk.state().timers.digits], [[], ""]);
});
