// Speech to speech over Gemini's Live interface, against a server of it that `@google/genai`
// accepts.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import {
  ActivityHandling, Behavior, GoogleGenAI, Modality, StartSensitivity, type LiveServerMessage,
} from "@google/genai";
import { createLogger } from "#core/logger.ts";
import { createSystem } from "#core/system.ts";
import { createGeminiLive } from "#providers/speech/gemini/gemini-live.ts";
import type { SpeechToSpeechEvent, SpeechToSpeechOptions } from "#providers/speech/port.ts";
import { createManualSystem } from "#support/manual-clock.ts";
import { createReceived, type Received } from "#support/received.ts";
import { startGeminiServer, type GeminiReply } from "#support/vendors/gemini-server.ts";
import { startVendorServer } from "#support/vendors/vendor-socket-server.ts";

const KEY = "a-key-of-the-vendor";
const MODEL = "gemini-3.8-live";
const log = createLogger("silent");
const closings: (() => Promise<void> | void)[] = [];
after(async () => {
  for (const close of closings.reverse()) await close();
});

const tone = (ms: number, rate: number) =>
  Int16Array.from({ length: (rate * ms) / 1000 }, (_, at) => Math.round(8000 * Math.sin(at / 5)));

const PARAMETERS = { type: "object", properties: { of: { type: "string" } } };
const OPTIONS: SpeechToSpeechOptions = {
  model: null, instructions: "Be brief.", voice: "Charon", gender: "male", language: "en",
  functions: [{ name: "lookup", description: "Looks up", parameters: PARAMETERS }], rate: 16_000,
  speaks: true, temperature: 0.2, silenceMs: 300, threshold: 0.4,
};

type Answer = (text: string, outputs: unknown[]) => GeminiReply;
const GOOD_DAY: Answer = () => ({ text: "Good day to you", pcm: tone(400, 24_000) });

async function session(options: Partial<SpeechToSpeechOptions> = {}, reply = GOOD_DAY) {
  const server = await startGeminiServer({ reply });
  closings.push(() => server.close());
  const vendor = createGeminiLive({
    url: server.url, key: KEY, model: MODEL, system: createSystem(), log,
  });
  const received = createReceived<SpeechToSpeechEvent>();
  const live = vendor.open({ ...OPTIONS, ...options }, received.receive);
  closings.push(() => live.close());
  const rate = options.rate ?? OPTIONS.rate;
  const speak = () => {
    for (let frame = 0; frame < 15; frame += 1) live.write(tone(20, rate));
    for (let frame = 0; frame < 25; frame += 1) live.write(new Int16Array(rate / 50));
  };
  return { server, vendor, received, live, speak, peer: await server.peer(0) };
}

const textOf = ({ events }: Received<SpeechToSpeechEvent>): string =>
  events.map((event) => (event.kind === "text" ? event.text : "")).join("");
const samplesOf = ({ events }: Received<SpeechToSpeechEvent>): number =>
  events.reduce((sum, event) => sum + (event.kind === "audio" ? event.pcm.length : 0), 0);
/** Each once where several come in a row. */
const stepsOf = (received: Received<SpeechToSpeechEvent>): string[] =>
  received.kinds().filter((kind, at, all) => kind !== all[at - 1]);

const talked = (url: string, received: Received<{ kind: "message"; message: LiveServerMessage }>) =>
  new GoogleGenAI({ apiKey: KEY, httpOptions: { baseUrl: url } }).live.connect({
    model: MODEL,
    config: {
      responseModalities: [Modality.AUDIO], temperature: 0.2,
      speechConfig: { voiceConfig: { prebuiltVoiceConfig: { voiceName: "Charon" } } },
      systemInstruction: { parts: [{ text: "Be brief." }] },
      tools: [{ functionDeclarations: [{
        name: "lookup", description: "Looks up", parametersJsonSchema: PARAMETERS,
        behavior: Behavior.BLOCKING,
      }] }],
      realtimeInputConfig: {
        automaticActivityDetection: {
          startOfSpeechSensitivity: StartSensitivity.START_SENSITIVITY_HIGH,
          prefixPaddingMs: 300, silenceDurationMs: 300,
        },
        activityHandling: ActivityHandling.START_OF_ACTIVITY_INTERRUPTS,
      },
      inputAudioTranscription: {}, outputAudioTranscription: {},
      sessionResumption: { handle: "a-handle" },
      contextWindowCompression: { slidingWindow: {} },
    },
    callbacks: { onmessage: (message) => received.receive({ kind: "message", message }) },
  });

test("[SP192] Google's own SDK talks with the test server, and the adaptor sends the SDK's frames", async () => {
  const call = { id: "c1", name: "lookup", args: { of: "it" } };
  const reply: Answer = (text, outputs) => (text === "" && outputs.length > 0
    ? { text: `Found ${JSON.stringify(outputs[0])}` }
    : { text: "One moment", pcm: tone(200, 24_000), calls: [call] });
  const server = await startGeminiServer({ reply });
  closings.push(() => server.close());
  const received = createReceived<{ kind: "message"; message: LiveServerMessage }>();
  const sdk = await talked(server.url, received);
  const pcm = [tone(300, 16_000), new Int16Array(8000)];
  for (const { buffer } of pcm) {
    for (let at = 0; at < buffer.byteLength; at += 640) {
      const data = Buffer.from(buffer.slice(at, at + 640)).toString("base64");
      sdk.sendRealtimeInput({ audio: { data, mimeType: "audio/pcm;rate=16000" } });
    }
  }
  const until = async (holds: (message: LiveServerMessage) => unknown) => {
    for (let number = 0; ; number += 1) {
      const { message } = await received.event("message", number);
      if (holds(message)) return message;
    }
  };
  await until(({ serverContent }) => serverContent?.inputTranscription?.text === "hello");
  await until(({ serverContent }) => serverContent?.modelTurn?.parts?.[0]?.inlineData?.data);
  const { toolCall } = await until((message) => message.toolCall);
  assert.deepEqual(toolCall?.functionCalls, [call]);
  const answer = { id: "c1", name: "lookup", response: { found: 1 } };
  sdk.sendToolResponse({ functionResponses: [answer] });
  await until(({ serverContent }) => serverContent?.turnComplete);
  sdk.sendClientContent({
    turns: [{ role: "user", parts: [{ text: "[Keypad input: 1]" }] }], turnComplete: true,
  });
  const theirs = await server.peer(0);
  await theirs.vendor.until(() => theirs.messages.length === 3);
  sdk.close();

  const ours = await session({}, reply);
  ours.live.sendText("[Keypad input: 1]");
  const { callId } = await ours.received.event("function_call");
  ours.live.functionResult(callId, '{"found":1}');
  await ours.received.event("reply_end", 1);
  const [setup, text, response] = ours.peer.messages;
  const theirSetup = structuredClone(theirs.messages[0]!);
  theirSetup.setup!.sessionResumption = {};
  assert.deepEqual(setup, theirSetup);
  assert.deepEqual([response, text], theirs.messages.slice(1));
  assert.equal(ours.peer.vendor.path, theirs.vendor.path.replace("//", "/"));
  assert.equal(ours.peer.vendor.query.get("key"), theirs.vendor.query.get("key"));
});

test("[SP193] a turn is reported in order: heard, answered in audio and text, at the call's rate", async () => {
  for (const rate of [8000, 16_000]) {
    const { peer, received, speak, vendor } = await session({ rate });
    assert.equal(vendor.name, `Gemini Live (${MODEL})`);
    // Before it is ready: the first words of a call are not lost.
    speak();
    await received.event("reply_end");
    assert.deepEqual(stepsOf(received).slice(0, 6),
      ["ready", "speech_start", "user_text", "speech_end", "user_text", "reply_start"]);
    assert.equal(received.kinds().at(-1), "reply_end");
    assert.deepEqual(received.events.filter(({ kind }) => kind === "user_text"), [
      { kind: "user_text", text: "hello", isFinal: false },
      { kind: "user_text", text: "hello there", isFinal: false },
      { kind: "user_text", text: "hello there", isFinal: true },
    ]);
    assert.equal(textOf(received), "Good day to you");
    const missing = rate * 0.4 - samplesOf(received);
    assert.ok(missing >= 0 && missing <= rate * 0.01, `${missing} samples at ${rate}`);
    assert.deepEqual([...peer.audioTypes], ["audio/pcm;rate=16000"]);
  }
});

test("[SP193] a session without a voice reports only text; an unknown voice becomes the nearest", async () => {
  const { peer, received, speak } = await session({
    speaks: false, voice: null, gender: "female", threshold: 0.7, silenceMs: 0.4, functions: [],
    model: "models/another",
  });
  speak();
  await received.event("reply_end");
  assert.equal(textOf(received), "Good day to you");
  assert.equal(samplesOf(received), 0);
  const { setup } = peer.messages[0]!;
  assert.equal(setup?.model, "models/another");
  assert.equal(setup.tools, undefined);
  assert.deepEqual(setup.generationConfig?.speechConfig?.voiceConfig,
    { prebuiltVoiceConfig: { voiceName: "Kore" } });
  assert.deepEqual(setup.realtimeInputConfig?.automaticActivityDetection, {
    startOfSpeechSensitivity: "START_SENSITIVITY_LOW", prefixPaddingMs: 300, silenceDurationMs: 200,
  });
});

test("[VL604] speech that no silence follows is told in words when the call is over", async () => {
  const { live, received } = await session();
  await received.event("ready");
  live.write(tone(400, OPTIONS.rate));
  live.finalize();
  await received.event("reply_start");
  assert.deepEqual(stepsOf(received).slice(1, 5),
    ["speech_start", "user_text", "speech_end", "user_text"]);
});

test("[SP194] speech over a reply ends it: no more of it is reported, and the speech is answered", async () => {
  const middle = Promise.withResolvers<void>();
  let replies = 0;
  const { received, speak } = await session({}, () => {
    replies += 1;
    return replies === 1
      ? { text: "one two three four", pcm: tone(400, 24_000), hold: middle.promise }
      : { text: "Sorry." };
  });
  speak();
  await received.event("text", 1);
  speak();
  await received.event("speech_start", 1);
  middle.resolve();
  await received.event("reply_end", 1);
  assert.deepEqual(stepsOf(received).slice(-8), [
    "speech_start", "reply_end", "user_text", "speech_end", "user_text", "reply_start", "text",
    "reply_end",
  ]);
  assert.equal(textOf(received), "one twoSorry.");
});

test("[SP194] a reply the call interrupts reports no more; noise without words times out", async () => {
  const middle = Promise.withResolvers<void>();
  const { live, received, speak } = await session({}, () =>
    ({ text: "one two three four", hold: middle.promise }));
  speak();
  await received.event("text", 1);
  live.interrupt(null);
  middle.resolve();
  await received.event("reply_end");
  assert.equal(textOf(received), "one two");

  const system = createManualSystem();
  const quiet = createReceived<SpeechToSpeechEvent>();
  const server = await startGeminiServer({ reply: GOOD_DAY });
  closings.push(() => server.close());
  createGeminiLive({ url: server.url, key: null, model: MODEL, system, log })
    .open(OPTIONS, quiet.receive);
  await quiet.event("ready");
  const other = await server.peer(0);
  assert.equal(other.vendor.query.has("key"), false);
  other.send({ serverContent: { interrupted: true } });
  await quiet.event("speech_start");
  system.advance(3000);
  assert.deepEqual(quiet.kinds(), ["ready", "speech_start", "speech_end"]);
  other.send({ voiceActivity: { voiceActivityType: "ACTIVITY_START" } });
  other.send({ voiceActivity: { voiceActivityType: "ACTIVITY_END" } });
  await quiet.event("speech_end", 1);
  other.send({ serverContent: { inputTranscription: { text: " yes", finished: true } } });
  assert.deepEqual(await quiet.event("user_text", 1),
    { kind: "user_text", text: "yes", isFinal: true });
});

test("[SP195] parallel tool calls are answered together once all results are there; cancelled ones are not", async () => {
  const calls = ["a", "b", "c"].map((id) => ({ id, name: "lookup", args: { of: id } }));
  const { live, peer, received, speak } = await session({}, (_, outputs) =>
    (outputs.length === 0 ? { text: "", calls } : { text: JSON.stringify(outputs) }));
  speak();
  await received.event("function_call", 2);
  await received.event("reply_end");
  assert.deepEqual(received.events.filter(({ kind }) => kind === "function_call"), calls.map(
    ({ id, name, args }) =>
      ({ kind: "function_call", callId: id, name, argumentsJson: JSON.stringify(args) })));
  live.functionResult("a", '{"x":1}');
  live.functionResult("a", '"again"');
  live.functionResult("unknown", "{}");
  // Waits for the model to go on.
  live.say("Goodbye.");
  peer.send({ toolCallCancellation: { ids: ["c", "unknown"] } });
  peer.send({ voiceActivity: { voiceActivityType: "ACTIVITY_END" } });
  live.functionResult("b", '"y"');
  await peer.vendor.until(() => peer.messages.some(({ toolResponse }) => toolResponse));
  live.functionResult("c", "{}");
  await received.event("reply_end", 2);
  const responses = peer.messages.flatMap(
    ({ toolResponse }) => toolResponse?.functionResponses ?? []);
  assert.deepEqual(responses.slice(0, 2), [
    { id: "a", name: "lookup", response: { x: 1 } },
    { id: "b", name: "lookup", response: { output: "y" } },
  ]);
  assert.equal(textOf(received).includes('[{"x":1},{"output":"y"}]'), true);
});

test("[SP196] words to be said wait for the current reply, and interrupt one that was cut off", async () => {
  const middle = Promise.withResolvers<void>();
  const { live, peer, received, speak } = await session({}, (text) => ({
    text: text.split("\n\n")[1] ?? `You: ${text}`, hold: middle.promise,
  }));
  live.say("Welcome to us.");
  await received.event("text");
  live.sendText("[Keypad input: 1]");
  speak();
  await received.event("speech_start");
  middle.resolve();
  await received.event("reply_end", 2);
  assert.deepEqual(peer.messages.map((message) => Object.keys(message)[0]),
    ["setup", "clientContent", "clientContent"]);
  assert.match(textOf(received), /^Welcome.*\[Keypad input: 1\]/);
});

test("[SP197] a session told to go, or given new instructions, continues over another connection when nobody speaks", async () => {
  const { live, peer, received, server, speak } = await session();
  await received.event("ready");
  speak();
  await received.event("reply_start");
  peer.send({ goAway: { timeLeft: "50s" } });
  await received.event("reply_end");
  assert.equal(peer.vendor.isClosed, false);
  peer.handle("first");
  const second = await server.peer(1);
  await second.vendor.until(() => second.messages.length === 1);
  assert.deepEqual(second.messages[0]?.setup?.sessionResumption, { handle: "first" });
  await peer.vendor.until(({ isClosed }) => isClosed);
  speak();
  await received.event("reply_end", 1);
  live.instruct("Be long.", []);
  second.send({ sessionResumptionUpdate: { resumable: false } });
  second.handle("second");
  const third = await server.peer(2);
  await third.vendor.until(() => third.messages.length === 1);
  const { setup } = third.messages[0]!;
  assert.deepEqual(setup?.sessionResumption, { handle: "second" });
  assert.deepEqual(setup.systemInstruction, { parts: [{ text: "Be long." }] });
  assert.equal(setup.tools, undefined);
  speak();
  await received.event("reply_end", 2);
  assert.equal(textOf(received), "Good day to you".repeat(3));
  assert.equal(received.kinds().filter((kind) => kind === "ready").length, 1);
  assert.ok(!received.kinds().includes("failed"));
});

test("[SP197] a cut connection is followed by another, and open requests are repeated", async () => {
  const never = new Promise<void>(() => undefined);
  let isBroken = false;
  const { live, peer, received, server, speak } = await session({}, (text) => ({
    text: text.split("\n\n")[1] ?? "Yes.", ...(isBroken ? {} : { hold: never }),
  }));
  await received.event("ready");
  peer.handle("first");
  live.say("Goodbye");
  await peer.vendor.until(() => peer.messages.length === 2);
  isBroken = true;
  peer.vendor.cut();
  const second = await server.peer(1);
  await received.event("reply_end");
  assert.deepEqual(second.messages[0]?.setup?.sessionResumption, { handle: "first" });
  assert.equal(textOf(received), "Goodbye");
  speak();
  await received.event("reply_end", 1);
  // A connection that is refused is the end.
  server.refuse(503);
  second.vendor.cut();
  const { error } = await received.event("failed");
  assert.equal(error.message, "Gemini refused the connection (503)");
});

test("[SP290] a session that breaks off wherever it is resumed fails", async () => {
  const never = new Promise<void>(() => undefined);
  const { live, peer, received, server } = await session({}, () => ({ text: "No.", hold: never }));
  await received.event("ready");
  peer.handle("first");
  live.sendText("hello");
  const failed = received.event("failed");
  let connections = 0;
  for (let isOver = false; !isOver && connections < 20; connections += 1) {
    const one = await Promise.race([server.peer(connections), failed.then(() => null)]);
    await one?.vendor.until(() => one.messages.length === 2);
    one?.vendor.end(1011, "Internal error");
    isOver = one === null;
  }
  assert.ok(connections < 20, "it never fails");
  assert.equal((await failed).error.message, "Gemini closed the connection (1011: Internal error)");
});

test("[SP198] refused keys, settings and lost connections fail once, with a reason that omits the key", async () => {
  const refused = await session();
  await refused.received.event("ready");
  refused.peer.vendor.end(1008, `API key not valid: ${KEY}`);
  const { error } = await refused.received.event("failed");
  assert.equal(error.message, "Gemini closed the connection (1008: API key not valid: ***)");
  assert.equal(error.retryable, false);
  refused.speak();
  refused.live.say("x");
  refused.live.sendText("x");
  refused.live.interrupt(null);
  refused.live.functionResult("x", "{}");
  refused.live.instruct("x", []);
  assert.deepEqual(refused.received.kinds(), ["ready", "failed"]);

  const mute = await startVendorServer();
  closings.push(() => mute.close());
  const system = createManualSystem();
  const received = createReceived<SpeechToSpeechEvent>();
  createGeminiLive({ url: mute.url, key: KEY, model: MODEL, system, log })
    .open(OPTIONS, received.receive);
  await (await mute.peer(0)).until(({ texts }) => texts.length === 1);
  system.advance(10_000);
  assert.equal((await received.event("failed")).error.message,
    "Gemini did not accept the call's settings within 10000 ms");
});

test("[SP198] malformed messages are ignored, and after close there are no events", async () => {
  const { live, peer, received, speak } = await session();
  await received.event("ready");
  for (const message of [
    "", "null", "[", '"x"', "[".repeat(900_000), Buffer.alloc(900_000),
    { serverContent: { modelTurn: { parts: "x" } } },
    { serverContent: { modelTurn: { parts: [{ inlineData: { data: "%%%" } }] } } },
    // Three bytes, then one: two samples.
    { serverContent: { modelTurn: { parts: [{ inlineData: { data: "AAAA" } }] } } },
    { serverContent: { modelTurn: { parts: [{ inlineData: { data: "AA==" } }] } } },
    { toolCall: { functionCalls: [{ id: 7, name: "lookup" }] } },
    { toolCall: { functionCalls: [] } },
    { sessionResumptionUpdate: { newHandle: 7 } },
    { serverContent: { turnComplete: true } },
  ]) peer.vendor.send(message);
  await received.event("reply_end");
  assert.equal(samplesOf(received) <= 2, true);
  speak();
  await received.event("reply_end", 1);
  assert.equal(textOf(received), "Good day to you");
  const count = received.events.length;
  live.close();
  live.close();
  await peer.vendor.until(({ isClosed }) => isClosed);
  assert.equal(received.events.length, count);
});

test("[SP198] a flood of tool calls ends no process, and each call is answered", async () => {
  const { peer, received } = await session();
  await received.event("ready");
  const functionCalls = Array.from({ length: 100 }, (_, at) => ({ id: `c${at}`, name: "lookup" }));
  peer.send({ toolCall: { functionCalls } });
  await received.event("reply_end");
  assert.equal(received.kinds().filter((kind) => kind === "function_call").length, 64);
});
