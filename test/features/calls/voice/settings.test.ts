// Every setting that concerns time, on a virtual clock: silence, length, fillers, machines, keys,
// and a long call with the same verdict each time.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { TurnEvent } from "#features/calls/voice/turns/turn-events.ts";
import { reduceTurn, START } from "#features/calls/voice/turns/turn-taker.ts";
import type { CallerStep } from "#providers/carriers/loopback.ts";
import { isNoiseFiltered } from "#features/calls/voice/settings.ts";
import { lines, playCall, VOICE_SETTINGS, wordsOnRecord } from "#support/calls/calls-by-clock.ts";
import { IS_PROOF } from "#support/proof.ts";

const QUIET: CallerStep[] = [{ waitMs: 3_000_000 }];
const { endpoint } = VOICE_SETTINGS;

/** Assistant's entries as `second: text`. */
const spoken = (played: ReturnType<typeof playCall>): string[] =>
  played.said.filter(({ speaker }) => speaker === "assistant")
    .map(({ startMs, text }) => `${Math.floor(startMs / 1000)}: ${text}`);

test("[VL20] silence: the assistant asks after max_silence_duration, then every reengagement_interval, then hangs up", () => {
  const played = playCall({
    steps: QUIET, greeting: "Hello.", answer: () => "Still there?",
    settings: { maxSilenceMs: 10_000, reengageEveryMs: 7000 },
  });
  assert.deepEqual(spoken(played), ["0: Hello.", "10: Still there?", "18: Still there?", "25: Still there?"]);
  assert.equal(played.over?.reason, "silence");
});

test("[VL21] max_initial_silence_duration ends a call whose customer never speaks", () => {
  const silent = playCall({ steps: QUIET, settings: { maxInitialSilenceMs: 5000 } });
  assert.deepEqual([silent.over?.reason, Math.floor(silent.lengthMs / 1000)], ["no_first_words", 5]);
  const talked = playCall({
    steps: [{ quietMs: 300 }, { say: "Hi" }, { waitMs: 9000 }, { hangUp: true }],
    settings: { maxInitialSilenceMs: 5000 },
  });
  assert.equal(talked.over?.reason, "customer_hung_up");
});

test("[VL22] max_duration and the balance end a call politely, never a frame late", () => {
  const chatter = Array.from({ length: 60 }, (): CallerStep[] => [{ say: "And then?" }, { quietMs: 600 }]);
  for (const [reason, limits] of [
    ["max_duration", { settings: { maxDurationMs: 40_000 } }],
    ["balance", { durationMaxMs: 40_000 }],
  ] as const) {
    const played = playCall({ steps: chatter.flat(), answer: () => "Then came the next one.", ...limits });
    assert.equal(played.over?.reason, reason);
    assert.match(played.said.at(-1)?.text ?? "", /our time is up/);
    assert.ok(played.lengthMs <= 40_000 && played.lengthMs > 30_000, `${played.lengthMs}`);
  }
});

test("[VL23] wait_for_customer: the first message waits until the customer has spoken", () => {
  const played = playCall({
    steps: [{ waitMs: 4000 }, { say: "Hello?" }, { quietMs: 1500 }, { hangUp: true }],
    settings: { waitForCustomer: true }, greeting: "Good morning.",
  });
  assert.deepEqual(lines(played), ["customer: Hello?", "assistant: Good morning."]);
  assert.ok((played.said[1]?.startMs ?? 0) > 4000);
});

test("[VL24] a filler that fits the question bridges a slow answer and gives way to it", () => {
  const played = playCall({
    steps: [{ quietMs: 300 }, { say: "When are you open?" }, { quietMs: 2500 }, { hangUp: true }],
    answer: () => ({ text: "From nine to six.", thinkMs: 1500 }),
    settings: {
      fillers: { neutral: ["Well."], question: ["Let me see."], positive: [], negative: [] },
    },
  });
  assert.deepEqual(lines(played).slice(2), ["assistant: Let me see.", "assistant: From nine to six."]);
  assert.deepEqual(wordsOnRecord(played), played.heard);
  const fast = playCall({
    steps: [{ quietMs: 300 }, { say: "When are you open?" }, { quietMs: 2500 }, { hangUp: true }],
    answer: () => ({ text: "From nine to six.", thinkMs: 300 }),
    settings: { fillers: { neutral: ["Well."], question: ["Hm."], positive: [], negative: [] } },
  });
  assert.equal(fast.heard.includes("Hm."), false);
});

test("[VL25] endpoint_sensitivity sets the silence that ends a turn; type ai waits longer after a broken sentence", () => {
  const endpointOf = (silenceMs: number, type: "vad" | "ai", say: string): number => {
    const played = playCall({
      steps: [{ quietMs: 300 }, { say }, { quietMs: 4000 }, { hangUp: true }],
      settings: { endpoint: { ...endpoint, silenceMs, type } }, answer: () => "Yes.",
    });
    return played.over?.turns[0]?.endpointMs ?? -1;
  };
  assert.ok(endpointOf(1200, "vad", "book a table") - endpointOf(400, "vad", "book a table") > 700);
  assert.ok(endpointOf(1200, "vad", "Book a table.") < endpointOf(1200, "vad", "book a table"));
  assert.ok(endpointOf(700, "ai", "a table for") > 2400);
  assert.ok(endpointOf(700, "ai", "A table for two.") < 500);
});

const MACHINE_MESSAGE = "This is Harbour Bikes. Please call back.";

test("[VL26] voicemail is recognised by its words, gets a message after the beep, and the call ends", () => {
  const machine: CallerStep[] = [
    { say: "You have reached nobody. Please leave a message after the tone." },
    { beepMs: 400 }, { waitMs: 30_000 }, { hangUp: true },
  ];
  const left = playCall({
    steps: machine, beepAtMs: 6000,
    settings: { voicemail: { detects: true, message: MACHINE_MESSAGE, ends: true } },
  });
  assert.deepEqual(left.answeredBy, ["machine"]);
  assert.equal(left.said.at(-1)?.text, MACHINE_MESSAGE);
  assert.equal(left.over?.reason, "voicemail");
  assert.deepEqual(left.questions, []);
  const silent = { voicemail: { detects: true, message: null, ends: true } };
  const ended = playCall({ steps: machine, settings: silent });
  assert.deepEqual([ended.over?.reason, ended.answeredBy], ["voicemail", ["machine"]]);
  const human = playCall({
    steps: [{ say: "Hello?" }, { quietMs: 2000 }, { hangUp: true }],
    settings: { voicemail: { detects: true, message: MACHINE_MESSAGE, ends: true } },
  });
  assert.deepEqual(human.answeredBy, ["human"]);
  assert.equal(human.over?.reason, "customer_hung_up");
});

/** A machine is left the message, and the call goes on. */
const goOnBehindMachine = (steps: CallerStep[]) => playCall({
  steps: [
    { say: "Please leave a message after the tone." }, { beepMs: 400 }, ...steps, { hangUp: true },
  ],
  settings: { voicemail: { detects: true, message: MACHINE_MESSAGE, ends: false } },
  beepAtMs: 5000, greeting: "", answer: () => "Good to hear you.",
});

test("[VL86] a voicemail message is left even if the call goes on, and a person who then speaks is answered", () => {
  const played = goOnBehindMachine([
    { waitMs: 9000 }, { say: "Hello? I am here after all." }, { quietMs: 1500 },
  ]);
  assert.deepEqual(played.answeredBy, ["machine"]);
  assert.deepEqual(played.questions, ["Hello? I am here after all."]);
  assert.deepEqual(played.said.slice(1).map(({ text }) => text),
    [MACHINE_MESSAGE, "Hello? I am here after all.", "Good to hear you."]);
  assert.equal(played.over?.reason, "customer_hung_up");
});

test("[CR590] an answering machine's tones are no keys after its message, if the call goes on", () => {
  const played = goOnBehindMachine([{ waitMs: 1000 }, { dtmf: "1" }, { waitMs: 9000 }]);
  assert.deepEqual(played.answeredBy, ["machine"]);
  assert.deepEqual(played.questions, []);
  assert.deepEqual(played.said.slice(1).map(({ text }) => text), [MACHINE_MESSAGE]);
});

test("[VL27] keys are collected until the stop key or the timeout, then form a turn of their own", () => {
  const played = playCall({
    steps: [
      { quietMs: 300 }, { dtmf: "12" }, { waitMs: 1000 }, { dtmf: "345#" }, { quietMs: 800 },
      { dtmf: "9" }, { quietMs: 9000 }, { hangUp: true },
    ],
    answer: () => "Thank you.",
  });
  assert.deepEqual(played.questions, ["[Keypad input: 12345]", "[Keypad input: 9]"]);
});

test("[VL266] keys pressed just before the call ends are in the transcript, though nothing followed them", () => {
  const played = playCall({
    steps: [
      { quietMs: 300 }, { dtmf: "1#" }, { quietMs: 800 }, { dtmf: "1" }, { waitMs: 1000 },
      { hangUp: true },
    ],
    answer: () => "Thank you.",
  });
  assert.deepEqual(played.questions, ["[Keypad input: 1]"]);
  const customers = played.said.filter(({ speaker }) => speaker === "customer");
  assert.deepEqual(customers.map(({ text }) => text), ["[Keypad input: 1]", "[Keypad input: 1]"]);
});

test("[VL171] typing and pressing keys reset the customer's silence", () => {
  const settings = { maxSilenceMs: 3000, reengageEveryMs: 3000 };
  const answer = (question: string | null): string => (question === null ? "There?" : "Thanks.");
  const pressing = playCall({
    steps: [
      { waitMs: 9000 }, { dtmf: "1#" }, { waitMs: 9000 }, { dtmf: "2#" }, { waitMs: 9000 },
      { dtmf: "3#" }, { waitMs: 2000 }, { hangUp: true },
    ], settings, answer,
  });
  assert.ok(pressing.said.filter(({ text }) => text === "There?").length > 3);
  assert.equal(pressing.over?.reason, "customer_hung_up");
  const turn = {
    ...VOICE_SETTINGS, ...settings, hasFillers: false, hasGreeting: false, detectsTurns: false,
    wordsAreTold: false,
    judgesEnds: false,
    durationReason: "max_duration" as const,
  };
  const taken: string[] = [];
  let state = START;
  const feed = (event: TurnEvent, nowMs: number): void => {
    const reduced = reduceTurn(turn, state, event, nowMs);
    state = reduced.state;
    for (const { kind } of reduced.actions) {
      taken.push(kind);
      if (kind === "reply" || kind === "reengage") feed({ kind: "reply_empty" }, nowMs);
    }
  };
  feed({ kind: "answered" }, 0);
  for (let nowMs = 20; nowMs < 60_000; nowMs += 20) {
    // Typed: no voice comes with the words.
    if (nowMs % 8000 === 0) feed({ kind: "final", text: "Are you open?" }, nowMs);
    feed({ kind: "voice", probability: 0, frameMs: 20, quietMs: 20, periodicity: 0 }, nowMs);
  }
  assert.ok(taken.filter((kind) => kind === "reengage").length > 3);
  assert.equal(taken.filter((kind) => kind === "reply").length, 7);
  assert.ok(!taken.includes("hang_up"));
});

test("[VL28] end_call and a transfer wait until the current speech was heard", () => {
  for (const [reason, to] of [["assistant_ended", null], ["transferred", "+15550123"]] as const) {
    const played = playCall({
      steps: [{ quietMs: 300 }, { say: "Bye." }, ...QUIET],
      answer: () => "Goodbye and thank you.",
      during: (session, after) => after(4000, () => session.endAfterSpeech(reason, to)),
    });
    assert.equal(played.over?.reason, reason);
    assert.equal(played.heard.join(" "), "Hello, how can I help? Goodbye and thank you.");
  }
});

test("[VL29] an operator's words are spoken when nobody is talking; a muted assistant is heard as silence", () => {
  const said = playCall({
    steps: [{ waitMs: 8000 }, { hangUp: true }],
    during: (session, after) => after(300, () => assert.ok(session.say("One moment please."))),
  });
  assert.equal(said.heard.join(" "), "Hello, how can I help? One moment please.");
  const muted = playCall({
    steps: [{ waitMs: 4000 }, { hangUp: true }], during: (session) => session.channel.mute(true),
  });
  assert.deepEqual(muted.heard, []);
});

test("[CR591] an operator's words given while the customer speaks are said after the reply to them", () => {
  const talk: CallerStep[] = [
    { quietMs: 300 }, { say: "When are you open on Saturday?" }, { quietMs: 1500 }, { hangUp: true },
  ];
  const answer = (): string => "From nine to five.";
  const began = playCall({ steps: talk, answer }).said[1]?.startMs ?? 0;
  // While they speak, after their last word, while it is answered.
  for (const afterMs of [200, 700, 1200, 1700, 2000, 2300, 2600]) {
    const played = playCall({
      steps: talk, answer,
      during: (session, after) =>
        after(began + afterMs, () => assert.ok(session.say("One moment please."))),
    });
    assert.deepEqual(lines(played), [
      "assistant: Hello, how can I help?", "customer: When are you open on Saturday?",
      "assistant: From nine to five.", "assistant: One moment please.",
    ], `${afterMs} ms after they began`);
  }
});

test("[CR592] an operator's words are said even if the assistant has no answer or understood nobody", () => {
  const unanswered = playCall({
    steps: [{ quietMs: 300 }, { say: "Well." }, { waitMs: 8000 }, { hangUp: true }], answer: () => "",
    during: (session, after) => after(6000, () => assert.ok(session.say("One moment please."))),
  });
  assert.deepEqual(lines(unanswered).at(-1), "assistant: One moment please.");
  const noise = playCall({
    steps: [{ quietMs: 300 }, { noiseMs: 2000 }, { waitMs: 6000 }, { hangUp: true }],
    during: (session, after) => after(3000, () => assert.ok(session.say("One moment please."))),
  });
  assert.deepEqual(lines(noise).at(-1), "assistant: One moment please.");
});

test("[VL30] a long tool call does not count as silence, and its answer is waited for", () => {
  const played = playCall({
    steps: [{ quietMs: 300 }, { say: "Look it up." }, { quietMs: 1000 }, { hangUp: true }],
    answer: () => ({ text: "Found.", toolMs: 20_000 }), settings: { maxSilenceMs: 5000 },
  });
  assert.equal(played.heard.join(" "), "Hello, how can I help? Found.");
});

test("[VL31] dialling that ends busy, unanswered, rejected or failed ends the call with that cause and no words", () => {
  for (const [outcome, cause] of [
    ["busy", "busy"], ["no_answer", "no_answer"], ["rejected", "rejected"], ["failed", "failed"],
  ] as const) {
    const { over, said } = playCall({ steps: [], script: { outcome } });
    assert.deepEqual([over?.cause, said], [cause, []]);
  }
});

test("[VL32] half an hour of talk runs on the virtual clock, with the same result every time", () => {
  const steps = Array.from({ length: 260 }, (_, number): CallerStep[] => [
    { say: `Question number ${number}, what do you say to that?` },
    number % 5 === 0 ? { words: 3 } : { quietMs: 700 },
  ]).flat();
  const play = () => playCall({
    steps: [{ quietMs: 500 }, ...steps, { hangUp: true }], limitMs: 3_600_000,
    answer: (question) => `You asked: ${question} And here is the answer to it in full.`,
  });
  const verdicts = new Set<string>();
  const runs = IS_PROOF ? 100 : 2;
  let lengthMs = 0;
  for (let run = 0; run < runs; run += 1) {
    const played = play();
    assert.deepEqual(wordsOnRecord(played), played.heard);
    ({ lengthMs } = played);
    verdicts.add(JSON.stringify([played.said, played.over, lengthMs]));
  }
  assert.equal(verdicts.size, 1);
  assert.ok(lengthMs >= 1_800_000, `${lengthMs}`);
});

test("[VL33] ambience plays throughout, at half its volume under speech, and is recorded as heard", () => {
  const HUM = 100;
  const heard: Int16Array[] = [];
  const recorded: Int16Array[] = [];
  playCall({
    steps: [{ quietMs: 400 }, { hangUp: true }],
    greeting: "Hello there.",
    ambience: { next: (samples) => new Int16Array(samples).fill(HUM), gain: 0.6 },
    onHeard: (frame) => heard.push(frame.slice()),
    record: (_, assistant) => recorded.push(assistant.slice()),
  });
  const levels = heard.map((frame) => frame[frame.length - 1] ?? 0);
  const quiet = levels.filter((level) => Math.abs(level) < 1000);
  const loud = levels.filter((level) => Math.abs(level) >= 1000);
  assert.ok(quiet.length > 10 && loud.length > 10);
  assert.deepEqual([...new Set(quiet)].sort(), [30, 60], "words end with a frame of silence");
  assert.deepEqual([...new Set(loud.map((level) => Math.abs(level) % 1000))], [970]);
  assert.deepEqual(recorded.map((frame) => frame[3]), heard.map((frame) => frame[3]));
});

test("[VL48] without a noise cancellation setting the filter runs in web calls, not in telephone calls", () => {
  const acts = (filtersNoise: boolean | null): boolean[] =>
    [8000, 16_000, 24_000].map((rate) =>
      isNoiseFiltered({ ...VOICE_SETTINGS, filtersNoise }, rate));
  assert.deepEqual(acts(null), [false, true, true]);
  assert.deepEqual(acts(true), [true, true, true]);
  assert.deepEqual(acts(false), [false, false, false]);
});

test("[VL34] noise cancellation: the recogniser gets the filtered sound, the recording the original", () => {
  let opened = 0;
  const recorded: number[] = [];
  const played = playCall({
    steps: [{ quietMs: 400 }, { say: "Hello there." }, { quietMs: 900 }, { hangUp: true }],
    // A filter that takes everything away.
    noiseFilter: {
      open: (_, publish) => {
        opened += 1;
        return {
          write: (pcm) => publish(new Int16Array(pcm.length)), close: () => (opened -= 1),
        };
      },
    },
    settings: { maxSilenceMs: 5000, reengageEveryMs: 5000 },
    record: (customer) => recorded.push(Math.abs(customer[10] ?? 0)),
  });
  assert.deepEqual(played.questions, []);
  assert.ok(recorded.some((level) => level > 1000));
  assert.equal(opened, 0);
});
