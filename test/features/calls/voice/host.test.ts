// The calls of the media thread, by the messages it takes and posts, on a virtual clock.
import assert from "node:assert/strict";
import { test } from "node:test";
import { joined } from "#audio/mix.ts";
import { createMediaClock } from "#features/calls/voice/clock.ts";
import { createHost } from "#features/calls/voice/host.ts";
import type { FromMedia } from "#features/calls/voice/protocol.ts";
import { createLogger } from "#core/logger.ts";
import {
  createLoopbackSynthesizer, createLoopbackTranscriber, loopbackAudio, loopbackVad,
} from "#providers/speech/loopback.ts";
import { VOICE_SETTINGS } from "#support/calls/calls-by-clock.ts";
import { createManualSystem } from "#support/manual-clock.ts";

const RATE = 16_000;
const FRAME = RATE / 50;

/** A web call that is answered, with all that it posted. */
function answeredCall({ recognitionMs }: { recognitionMs: number }) {
  const system = createManualSystem();
  const posted: FromMedia[] = [];
  const host = createHost({
    synthesizer: () => createLoopbackSynthesizer({ system, synthesisMs: 0 }),
    transcriber: () => createLoopbackTranscriber({ system, recognitionMs }),
    speechToSpeech: () => assert.fail("no model speaks by itself"),
    vad: loopbackVad, level: () => (pcm) => pcm, noiseFilter: null, turnEnds: null,
    ambience: () => assert.fail("there is no ambience"),
    beeps: () => ({ push: () => undefined }),
    recorder: () => assert.fail("nothing is recorded"),
    carriers: [], peers: null,
    clock: createMediaClock(system), system, log: createLogger("silent"),
    post: (message) => void posted.push(message),
  });
  host.receive({
    kind: "open", callId: 1,
    setup: {
      settings: { ...VOICE_SETTINGS, waitForCustomer: true }, durationMaxMs: 3_600_000, greeting: "",
      engines: { synthesizer: "loopback", transcriber: "loopback" },
      leg: { kind: "remote", rate: RATE, hasLine: false }, realtime: null, recordingPath: null,
    },
  });
  host.receive({ kind: "leg", callId: 1, event: { kind: "answered" } });
  return { host, system, posted };
}

/** The frames of words and pauses. */
function* framesOf(said: (string | Int16Array)[]): Generator<Int16Array> {
  const words = joined(said.map((one) =>
    (typeof one === "string" ? loopbackAudio(one, RATE) : one)));
  for (let at = 0; at < words.length; at += FRAME) yield words.slice(at, at + FRAME);
}

const SHORT_PAUSE = new Int16Array(RATE * 0.3);

/** Words and pauses of a person of the account, who then leaves. */
function personSays(
  call: ReturnType<typeof answeredCall>, ...said: (string | Int16Array)[]
): void {
  personTalks(call, ...said);
  call.host.receive({ kind: "person_left", callId: 1, wasLost: false });
}

function personTalks(
  { host, system }: ReturnType<typeof answeredCall>, ...said: (string | Int16Array)[]
): void {
  host.receive({
    kind: "person_joined", callId: 1, author: { id: "key:1", name: "Ana" }, isAlone: true,
    ears: "loopback",
  });
  for (const pcm of framesOf(said)) {
    host.receive({ kind: "person_audio", callId: 1, pcm });
    system.advance(20);
  }
}

test("[VL323] a person's last words are on record even if the caller hangs up before they are recognised", () => {
  const call = answeredCall({ recognitionMs: 1000 });
  personSays(call, "Goodbye and thanks for calling.");
  call.system.advance(100);
  call.host.receive({ kind: "leg", callId: 1, event: { kind: "ended", cause: "far_hung_up" } });
  assert.equal(call.posted.some(({ kind }) => kind === "over"), false);
  call.system.advance(5000);
  const last = call.posted.filter(({ kind }) => kind === "said" || kind === "over");
  assert.deepEqual(last.map(({ kind }) => kind), ["said", "over"]);
  const [said, over] = last;
  assert.ok(said?.kind === "said" && over?.kind === "over");
  assert.deepEqual([said.said.speaker, said.said.author?.name], ["operator", "Ana"]);
  assert.equal(said.said.text, "Goodbye and thanks for calling.");
  assert.equal(over.summary.silentMs, 900);
});

test("[VL605] a person who still talks when the caller hangs up is on record in full", () => {
  const call = answeredCall({ recognitionMs: 1000 });
  personTalks(call, "Your order leaves tomorrow.");
  call.host.receive({ kind: "leg", callId: 1, event: { kind: "ended", cause: "far_hung_up" } });
  call.system.advance(5000);
  const last = call.posted.filter(({ kind }) => kind === "said" || kind === "over");
  assert.deepEqual(last.map(({ kind }) => kind), ["said", "over"]);
  assert.ok(last[0]?.kind === "said");
  assert.equal(last[0].said.text, "Your order leaves tomorrow.");
});

test("[VL606] a person's words that are never recognised keep a call that is over for two seconds, and a server that stops waits for none", () => {
  const overOf = ({ posted }: ReturnType<typeof answeredCall>) =>
    posted.filter(({ kind }) => kind === "over").length;
  const call = answeredCall({ recognitionMs: 60_000 });
  personTalks(call, "Your order leaves tomorrow.");
  saysAndHangsUp(call, "I see.");
  call.system.advance(1999);
  assert.equal(overOf(call), 0);
  call.system.advance(1);
  assert.equal(overOf(call), 1);
  const stopping = answeredCall({ recognitionMs: 60_000 });
  personTalks(stopping, "Your order leaves tomorrow.");
  stopping.host.receive({ kind: "hang_up", callId: 1, reason: "server_restarted" });
  assert.equal(overOf(stopping), 1);
});

test("[VL527] a person's words before and after a short pause are on record even if they then leave", () => {
  const call = answeredCall({ recognitionMs: 1000 });
  personSays(call, "Yes.", SHORT_PAUSE, "Bye.");
  call.system.advance(5000);
  const said = call.posted.flatMap((one) => (one.kind === "said" ? [one.said.text] : []));
  assert.deepEqual(said, ["Yes. Bye."]);
});

/** Words and pauses of the customer, after which they hang up at once. */
function saysAndHangsUp(
  { host, system }: ReturnType<typeof answeredCall>, ...said: (string | Int16Array)[]
): void {
  for (const pcm of framesOf(said)) {
    host.receive({ kind: "leg", callId: 1, event: { kind: "audio", pcm } });
    system.advance(20);
  }
  host.receive({ kind: "leg", callId: 1, event: { kind: "ended", cause: "far_hung_up" } });
}

test("[VL402] a caller's last words are on record even if they hang up before these are recognised", () => {
  const call = answeredCall({ recognitionMs: 1000 });
  const { host, system, posted } = call;
  const last = () => posted.filter(({ kind }) => kind === "said" || kind === "over");
  saysAndHangsUp(call, "Thank you very much and goodbye.");
  assert.deepEqual(last(), []);
  host.receive({ kind: "say", callId: 1, text: "Are you still there?" });
  system.advance(5000);
  const [said, over] = last();
  assert.ok(said?.kind === "said" && over?.kind === "over" && last().length === 2);
  assert.deepEqual(
    [said.said.speaker, said.said.text], ["customer", "Thank you very much and goodbye."]);
  assert.deepEqual([over.summary.reason, over.summary.silentMs], ["customer_hung_up", 1000]);
  assert.deepEqual(posted.filter(({ kind }) => kind === "reply"), []);
});

test("[VL525] words before and after a short pause are on record even if the caller then hangs up", () => {
  const call = answeredCall({ recognitionMs: 1000 });
  saysAndHangsUp(call, "Yes.", SHORT_PAUSE, "Bye.");
  call.system.advance(5000);
  const said = call.posted.flatMap((one) => (one.kind === "said" ? [one.said.text] : []));
  assert.deepEqual(said, ["Yes. Bye."]);
  assert.equal(call.posted.filter(({ kind }) => kind === "over").length, 1);
});

test("[VL526] a recogniser that answers at once lets a call that is over end at once", () => {
  const { posted, ...call } = answeredCall({ recognitionMs: 0 });
  saysAndHangsUp({ posted, ...call }, "Goodbye.");
  const last = posted.filter(({ kind }) => kind === "said" || kind === "over");
  assert.deepEqual(last.map(({ kind }) => kind), ["said", "over"]);
});

test("[VL403] a recogniser that never answers keeps a call that is over for two seconds", () => {
  const call = answeredCall({ recognitionMs: 60_000 });
  saysAndHangsUp(call, "Goodbye.");
  const isOver = () => call.posted.some(({ kind }) => kind === "over");
  call.system.advance(1900);
  assert.equal(isOver(), false);
  call.system.advance(100);
  assert.equal(isOver(), true);
  call.system.advance(120_000);
  assert.equal(call.posted.filter(({ kind }) => kind === "over").length, 1);
});

test("[VL404] a call in which nothing waits to be recognised is over at once", () => {
  const { host, system, posted } = answeredCall({ recognitionMs: 1000 });
  system.advance(500);
  host.receive({ kind: "leg", callId: 1, event: { kind: "ended", cause: "far_hung_up" } });
  const over = posted.find(({ kind }) => kind === "over");
  assert.ok(over?.kind === "over");
  assert.equal(over.summary.silentMs, undefined);
});
