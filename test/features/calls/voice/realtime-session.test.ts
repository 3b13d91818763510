// A call whose model hears and speaks by itself, on a virtual clock: keys, the end of its time and
// transfers, between a leg and a model that do what a test says.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createLogger } from "#core/logger.ts";
import type { CallSummary } from "#features/calls/voice/brain.ts";
import { createMediaClock } from "#features/calls/voice/clock.ts";
import { RealtimeSession } from "#features/calls/voice/realtime-session.ts";
import type { VoiceSettings } from "#features/calls/voice/settings.ts";
import type { LegEvent } from "#providers/carriers/port.ts";
import type { SpeechToSpeechEvent } from "#providers/speech/port.ts";
import { VOICE_SETTINGS } from "#support/calls/calls-by-clock.ts";
import { createManualSystem } from "#support/manual-clock.ts";

const RATE = 8000;

function answeredCall(settings: Partial<VoiceSettings>) {
  const system = createManualSystem();
  const texts: string[] = [];
  const says: string[] = [];
  const recorded: string[] = [];
  const transfers: string[] = [];
  const spokeUp: string[] = [];
  const interrupts: (string | null)[] = [];
  const results: string[] = [];
  const finalized: number[] = [];
  let ended: CallSummary | null = null;
  let leg = (_event: LegEvent): void => undefined;
  let model = (_event: SpeechToSpeechEvent): void => undefined;
  const session = new RealtimeSession({
    settings: { ...VOICE_SETTINGS, ...settings },
    durationMaxMs: 3_600_000,
    greeting: "",
    connect: (publish) => {
      leg = publish;
      return {
        rate: RATE,
        send: () => undefined,
        clear: () => publish({ kind: "cleared", droppedMs: 0 }),
        sendDtmf: () => undefined,
        transfer: (to) => void transfers.push(to),
        hangUp: () => undefined,
      };
    },
    synthesizer: null,
    model: {
      name: "scripted",
      open: (_options, publish) => {
        model = publish;
        return {
          write: () => undefined,
          functionResult: (callId) => void results.push(callId),
          interrupt: (heard) => void interrupts.push(heard?.itemId ?? null),
          say: (text) => void says.push(text),
          sendText: (text) => void texts.push(text),
          instruct: () => undefined,
          finalize: () => void finalized.push(system.monotonicMs()),
          close: () => undefined,
        };
      },
    },
    realtime: {
      model: null, instructions: "", voice: null, gender: "female", language: "en", functions: [],
      temperature: 0, silenceMs: 500, threshold: 0.5,
    },
    ambience: null,
    comfort: null,
    record: null,
    beeps: null,
    clock: createMediaClock(system),
    system,
    log: createLogger("silent"),
    brain: {
      ringing: () => undefined,
      answered: () => undefined,
      answeredBy: () => undefined,
      reply: () => undefined,
      reengage: () => undefined,
      speakUp: (_turn, why) => void spokeUp.push(why),
      cancel: () => undefined,
      goAhead: () => undefined,
      ending: (_reason, then) => then(),
      functionCall: () => undefined,
      said: ({ text }) => void recorded.push(text),
      delta: () => undefined,
      state: () => undefined,
      over: (summary) => void (ended = summary),
    },
  });
  leg({ kind: "answered" });
  model({ kind: "ready" });
  const reply = (itemId: string, ms: number): void => {
    model({ kind: "reply_start" });
    model({ kind: "audio", itemId, pcm: new Int16Array((RATE * ms) / 1000).fill(1000) });
    model({ kind: "reply_end" });
  };
  return {
    session, system, texts, says, recorded, transfers, reply, spokeUp, interrupts, results,
    finalized, report: (event: SpeechToSpeechEvent) => model(event),
    press: (digit: string) => leg({ kind: "dtmf", digit }),
    publish: (event: LegEvent) => leg(event),
    reason: () => ended?.reason ?? null,
    turns: () => ended?.turns ?? [],
    silentMs: () => ended?.silentMs ?? 0,
    reports: (kind: "speech_start" | "speech_end") => model({ kind }),
  };
}

test("[VL169] keys pressed slowly in a realtime call do not count as silence and reach the model as one turn", () => {
  const call = answeredCall({ maxSilenceMs: 6000, maxInitialSilenceMs: 8000 });
  for (const digit of "4711") {
    call.system.advance(4000);
    call.press(digit);
  }
  call.system.advance(4900);
  assert.deepEqual([call.says, call.texts, call.reason()], [[], [], null]);
  call.system.advance(200);
  assert.deepEqual([call.says, call.texts], [[], ["[Keypad input: 4711]"]]);
});

test("[VL266] keys pressed before a realtime call ends are in the transcript", () => {
  const call = answeredCall({});
  call.press("7");
  call.publish({ kind: "ended", cause: "far_hung_up" });
  assert.deepEqual([call.recorded, call.reason()], [["[Keypad input: 7]"], "customer_hung_up"]);
});

const HANG_UP = { kind: "ended", cause: "far_hung_up" } as const;

test("[VL600] a realtime caller's last words are on record if they hang up before the model has told them", () => {
  const call = answeredCall({});
  call.reports("speech_start");
  call.system.advance(800);
  call.report({ kind: "user_text", text: "Thank", isFinal: false });
  call.publish(HANG_UP);
  assert.deepEqual([call.recorded, call.reason(), call.finalized.length], [[], null, 1]);
  call.system.advance(700);
  call.reports("speech_end");
  call.report({ kind: "user_text", text: "Thank you and", isFinal: false });
  call.report({ kind: "user_text", text: "Thank you and goodbye.", isFinal: true });
  assert.deepEqual([call.recorded, call.reason()], [["Thank you and goodbye."], "customer_hung_up"]);
  assert.equal(call.silentMs(), 700);
});

test("[VL601] a realtime call that is over waits for the words of a speech that has ended, and asks for no reply", () => {
  const call = answeredCall({});
  call.reports("speech_start");
  call.system.advance(500);
  call.reports("speech_end");
  call.publish(HANG_UP);
  call.interrupts.length = 0;
  call.report({ kind: "reply_start" });
  assert.deepEqual([call.interrupts, call.finalized], [[null], []]);
  call.report({ kind: "user_text", text: "Goodbye.", isFinal: true });
  assert.deepEqual([call.recorded, call.reason()], [["Goodbye."], "customer_hung_up"]);
});

test("[VL602] a realtime model that tells no last words keeps a call that is over for two seconds, and those it told are kept", () => {
  const call = answeredCall({});
  call.reports("speech_start");
  call.report({ kind: "user_text", text: "Good", isFinal: false });
  call.publish(HANG_UP);
  call.report({ kind: "user_text", text: "Goodbye and", isFinal: false });
  call.system.advance(1999);
  assert.deepEqual([call.recorded, call.reason()], [[], null]);
  call.system.advance(1);
  assert.deepEqual(
    [call.recorded, call.reason(), call.silentMs()], [["Goodbye and"], "customer_hung_up", 2000]);
});

test("[VL603] a realtime call in which no words are due is over at once", () => {
  const call = answeredCall({});
  call.reports("speech_start");
  call.reports("speech_end");
  call.report({ kind: "user_text", text: "Hello.", isFinal: true });
  call.reports("speech_start");
  call.reports("speech_end");
  // Noise has no words.
  call.system.advance(15_000);
  call.publish(HANG_UP);
  assert.deepEqual([call.recorded, call.reason()], [["Hello."], "customer_hung_up"]);
});

test("[VL170] a transfer announced in the last seconds of a realtime call happens instead of the goodbye", () => {
  const call = answeredCall({ maxDurationMs: 30_000 });
  call.system.advance(20_000);
  call.reply("item", 5000);
  call.session.endAfterSpeech("transferred", "+15550123");
  call.system.advance(6000);
  assert.deepEqual([call.transfers, call.says, call.reason()], [["+15550123"], [], null]);
  call.publish({ kind: "ended", cause: "transferred" });
  assert.equal(call.reason(), "transferred");
});

test("[MX5] a realtime call is transferred once, whatever the model says meanwhile; after a failure again", () => {
  const call = answeredCall({});
  call.session.endAfterSpeech("transferred", "+15550123");
  call.reply("now", 500);
  call.system.advance(1000);
  call.reply("still trying", 500);
  call.system.advance(1000);
  assert.deepEqual([call.transfers, call.reason()], [["+15550123"], null]);
  call.publish({ kind: "transfer_failed" });
  call.session.endAfterSpeech("transferred", "+15550124");
  assert.deepEqual(call.transfers, ["+15550123", "+15550124"]);
  call.session.endAfterSpeech("server_restarted");
  call.reply("goodbye", 500);
  call.system.advance(600);
  assert.equal(call.reason(), "server_restarted");
});

test("[MX18] a realtime call that its model transfers and hangs up in one breath is transferred", () => {
  const call = answeredCall({});
  call.reply("goodbye", 500);
  call.session.endAfterSpeech("transferred", "+15550123");
  call.session.endAfterSpeech("assistant_ended");
  call.system.advance(600);
  assert.deepEqual([call.transfers, call.reason()], [["+15550123"], null]);
});

test("[VL166] the goodbye of a realtime call is said once, before its time is up", () => {
  const call = answeredCall({ maxDurationMs: 30_000 });
  call.system.advance(21_900);
  assert.deepEqual(call.says, []);
  call.system.advance(7000);
  assert.deepEqual(call.says, [VOICE_SETTINGS.phrases.timeIsUp]);
  call.reply("goodbye", 500);
  call.system.advance(600);
  assert.equal(call.reason(), "max_duration");
});

test("[VL233] heard_ms of a realtime call counts from the last audible sound, not from the model's event", () => {
  const call = answeredCall({});
  /** What the customer says, and silence behind it. */
  const hear = (ms: number, level: number): void => {
    for (let atMs = 0; atMs < ms; atMs += 20) {
      call.publish({ kind: "audio", pcm: new Int16Array(RATE / 50).fill(level) });
      call.system.advance(20);
    }
  };
  hear(400, 3000);
  call.reports("speech_start");
  hear(600, 3000);
  hear(500, 0);
  call.reports("speech_end");
  call.report({ kind: "user_text", text: "Hello.", isFinal: true });
  hear(100, 0);
  call.reply("item", 500);
  hear(600, 0);
  call.session.channel.hangUp("operator");
  const [turn] = call.turns();
  assert.ok(turn?.heardMs && Math.abs(turn.heardMs - 600) <= 40, JSON.stringify(turn));
});

test("[VL262] a realtime model is not heard and calls no tool while a person has its call", () => {
  const call = answeredCall({ maxSilenceMs: 6000 });
  call.reply("one", 5000);
  call.system.advance(1000);
  call.session.takePart({ kind: "person_joined", isAlone: true });
  call.system.advance(100);
  assert.deepEqual(call.interrupts, [null, "one"]);
  call.reply("two", 1000);
  call.report({ kind: "function_call", callId: "f1", name: "hang_up", argumentsJson: "{}" });
  call.session.takePart({ kind: "hint" });
  call.press("1");
  call.system.advance(20_000);
  assert.deepEqual(call.interrupts, [null, "one", null]);
  assert.deepEqual([call.results, call.says, call.texts, call.spokeUp], [["f1"], [], [], []]);
  call.session.takePart({ kind: "person_left", wasLost: false });
  assert.deepEqual(call.spokeUp, ["handed_back"]);
  assert.equal(call.reason(), null);
});

test("[VL263] a hint in a realtime call waits until nobody speaks", () => {
  const call = answeredCall({});
  call.reply("one", 2000);
  call.session.takePart({ kind: "hint" });
  call.system.advance(1500);
  assert.deepEqual(call.spokeUp, []);
  call.system.advance(1000);
  assert.deepEqual(call.spokeUp, ["hint"]);
  call.session.tell("[hint]");
  assert.deepEqual(call.texts, ["[hint]"]);
});

test("[RD1] a realtime model that says the last words of a call stops when a person takes the call", () => {
  const call = answeredCall({});
  call.reply("goodbye", 5000);
  call.session.endAfterSpeech("assistant_ended");
  call.system.advance(1000);
  call.session.takePart({ kind: "person_joined", isAlone: true });
  call.system.advance(100);
  assert.deepEqual(call.interrupts, [null, "goodbye"]);
  call.system.advance(10_000);
  assert.equal(call.reason(), null);
});

test("[RD2] a realtime model acts once on a hint that came before the call was handed back", () => {
  const call = answeredCall({});
  call.session.takePart({ kind: "person_joined", isAlone: true });
  call.session.takePart({ kind: "hint" });
  call.session.takePart({ kind: "person_left", wasLost: false });
  call.system.advance(1000);
  assert.deepEqual(call.spokeUp, ["handed_back"]);
});

test("[RD3] a person who leaves a realtime call hands it back only if they had it", () => {
  const call = answeredCall({});
  call.session.takePart({ kind: "person_joined", isAlone: false });
  call.session.standAside(() => undefined);
  call.system.advance(100);
  call.session.takePart({ kind: "person_left", wasLost: false });
  assert.deepEqual(call.spokeUp, []);
});

test("[VL280] keys interrupt a realtime model, and follow its words in transcript and input, each time", () => {
  const call = answeredCall({});
  call.reply("menu", 5000);
  call.system.advance(1000);
  for (const digit of "1#1#") {
    call.press(digit);
    call.system.advance(1000);
  }
  assert.deepEqual(call.interrupts.slice(0, 2), [null, "menu"]);
  assert.deepEqual(call.texts, ["[Keypad input: 1]", "[Keypad input: 1]"]);
  assert.deepEqual(call.recorded, ["", ...call.texts]);
});

test("[CR580] an answering machine's key-like tones do not interrupt its message; then the call ends", () => {
  const call = answeredCall({
    voicemail: { detects: true, message: "Please call us back.", ends: true },
  });
  call.publish({ kind: "answered_by", by: "machine" });
  call.system.advance(5000);
  assert.deepEqual(call.says, ["Please call us back."]);
  call.reply("message", 4000);
  call.system.advance(1000);
  call.press("#");
  call.press("1");
  call.press("#");
  call.system.advance(2000);
  assert.deepEqual([call.reason(), call.texts], [null, []]);
  call.system.advance(2000);
  assert.equal(call.reason(), "voicemail");
  assert.equal(call.interrupts.includes("message"), false);
});

test("[CR590] an answering machine's tones are no keys later either, if the call goes on, nor recorded", () => {
  const call = answeredCall({
    voicemail: { detects: true, message: "Please call us back.", ends: false },
  });
  call.publish({ kind: "answered_by", by: "machine" });
  call.system.advance(5000);
  call.reply("message", 4000);
  call.system.advance(1000);
  call.press("1");
  call.system.advance(30_000);
  assert.deepEqual([call.texts, call.recorded.filter((text) => text !== "")], [[], []]);
});

test("[CR593] a realtime model gets an operator's words when the customer stops speaking", () => {
  const call = answeredCall({});
  call.reports("speech_start");
  assert.ok(call.session.say("One moment please."));
  call.system.advance(2000);
  assert.deepEqual(call.says, []);
  call.reports("speech_end");
  assert.deepEqual(call.says, ["One moment please."]);
  call.reports("speech_start");
  call.session.say("Nobody says this.");
  call.session.takePart({ kind: "person_joined", isAlone: true });
  call.reports("speech_end");
  assert.deepEqual(call.says, ["One moment please."]);
});
