// Speech to speech over the Realtime protocol, against a server of it that the `openai` package
// accepts.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { after, test } from "node:test";
import OpenAI from "openai";
import { OpenAIRealtimeWS } from "openai/realtime/ws";
import type { RealtimeServerEvent } from "openai/resources/realtime/realtime";
import { createLogger, type Logger } from "#core/logger.ts";
import { createSystem } from "#core/system.ts";
import { createOpenAiRealtime } from "#providers/speech/openai/openai-realtime.ts";
import type { SpeechToSpeechEvent, SpeechToSpeechOptions } from "#providers/speech/port.ts";
import { createManualSystem } from "#support/manual-clock.ts";
import { createReceived, type Received } from "#support/received.ts";
import { startDeepgramServer } from "#support/vendors/deepgram-server.ts";
import {
  selfSignedCertificate, startRealtimeServer, type RealtimeServerOptions,
} from "#support/vendors/realtime-server.ts";

const KEY = "a-key-of-the-vendor";
const log = createLogger("silent");
const closings: (() => Promise<void> | void)[] = [];
after(async () => {
  for (const close of closings.reverse()) await close();
});

const tone = (ms: number, rate = 24_000) =>
  Int16Array.from({ length: (rate * ms) / 1000 }, (_, at) => Math.round(8000 * Math.sin(at / 5)));
const silence = (ms: number, rate = 24_000) => new Int16Array((rate * ms) / 1000);

const TOOL = { name: "lookup", description: "Looks up", parameters: { type: "object" } };
const OPTIONS: SpeechToSpeechOptions = {
  model: null,
  instructions: "Be brief.", voice: "marin", gender: "female", language: "en", functions: [TOOL], rate: 24_000,
  speaks: true, temperature: 0.2, silenceMs: 300, threshold: 0.4,
};

async function session(
  server: Partial<RealtimeServerOptions> = {},
  options: Partial<SpeechToSpeechOptions> = {},
) {
  const reply = () => ({ text: "Good day to you", pcm: tone(400) });
  const started = await startRealtimeServer({ reply, hear: () => "hello there", ...server });
  closings.push(() => started.close());
  const vendor = createOpenAiRealtime({
    url: started.url, key: KEY, model: "gpt-realtime", system: createSystem(), log,
  });
  const received = createReceived<SpeechToSpeechEvent>();
  const live = vendor.open({ ...OPTIONS, ...options }, received.receive);
  closings.push(() => live.close());
  const rate = options.rate ?? 24_000;
  const speak = () => {
    for (let frame = 0; frame < 15; frame += 1) live.write(tone(20, rate));
    for (let frame = 0; frame < 25; frame += 1) live.write(silence(20, rate));
  };
  return { server: started, vendor, received, live, speak, peer: await started.peer(0) };
}

const textOf = (received: Received<SpeechToSpeechEvent>): string =>
  received.events.map((event) => (event.kind === "text" ? event.text : "")).join("");
const samplesOf = (received: Received<SpeechToSpeechEvent>): number =>
  received.events.reduce((sum, event) => sum + (event.kind === "audio" ? event.pcm.length : 0), 0);

/** A promise and what resolves it. */
function gate() {
  let open = (): void => undefined;
  const hold = new Promise<void>((resolve) => (open = resolve));
  return { hold, open: () => open() };
}

test("[SP50] the openai package talks with the test server over TLS", async () => {
  const tls = await selfSignedCertificate();
  const server = await startRealtimeServer({
    tls,
    hear: () => "hello there",
    reply: () => ({
      text: "Good day", pcm: tone(200), calls: [{ name: "lookup", arguments: '{"of":"it"}' }],
    }),
  });
  closings.push(() => server.close());
  const client = new OpenAI({ apiKey: KEY, baseURL: server.secureUrl! });
  const socket = new OpenAIRealtimeWS(
    { model: "gpt-realtime", options: { rejectUnauthorized: false } }, client);
  const events = createReceived<{ kind: "event"; event: RealtimeServerEvent }>();
  const errors: unknown[] = [];
  socket.on("event", (event) => events.receive({ kind: "event", event }));
  socket.on("error", (error) => errors.push(error));
  const done = new Promise<RealtimeServerEvent>((resolve) => socket.on("response.done", resolve));
  await events.event("event");
  assert.equal((await server.peer(0)).headers.authorization, `Bearer ${KEY}`);
  const turn_detection = { type: "server_vad" as const, silence_duration_ms: 300, create_response: true };
  socket.send({
    type: "session.update",
    session: { type: "realtime", output_modalities: ["audio"], audio: { input: { turn_detection } } },
  });
  const pcm = Buffer.concat([tone(300), silence(400)].map(({ buffer }) => Buffer.from(buffer)));
  socket.send({ type: "input_audio_buffer.append", audio: pcm.toString("base64") });
  const last = await done;
  assert.ok(last.type === "response.done");
  assert.equal(last.response.status, "completed");
  assert.equal(last.response.usage?.output_tokens, 10);
  assert.deepEqual(last.response.output?.map(({ type }) => type), ["message", "function_call"]);
  const types = new Set(events.events.map(({ event }) => event.type));
  for (const type of [
    "session.created", "session.updated", "input_audio_buffer.speech_started",
    "input_audio_buffer.committed", "conversation.item.input_audio_transcription.completed",
    "response.created", "response.output_audio.delta", "response.output_audio_transcript.delta",
    "response.function_call_arguments.done", "response.output_item.done",
  ] as const) assert.ok(types.has(type), type);
  assert.deepEqual(errors, []);
  socket.close();
});

test("[SP51] the call's settings are sent in the names the server uses; then the session is ready", async () => {
  const { peer, received, vendor } = await session({}, { threshold: 7, silenceMs: 0.4 });
  await received.event("ready");
  assert.equal(vendor.name, "OpenAI Realtime (gpt-realtime)");
  assert.equal(peer.headers.authorization, `Bearer ${KEY}`);
  assert.equal(peer.query.get("model"), "gpt-realtime");
  const format = { type: "audio/pcm", rate: 24_000 };
  const turn_detection = {
    type: "server_vad", threshold: 1, prefix_padding_ms: 300, silence_duration_ms: 200,
    create_response: true, interrupt_response: false,
  };
  const common = {
    instructions: "Be brief.", tools: [{ type: "function", ...TOOL }], tool_choice: "auto",
  };
  assert.deepEqual(peer.received("session.update")[0]?.session, {
    ...common, type: "realtime", output_modalities: ["audio"],
    audio: {
      input: { format, transcription: { model: "gpt-4o-mini-transcribe", language: "en" }, turn_detection },
      output: { format, voice: "marin" },
    },
  });
  const beta = await session({ names: "beta" }, { voice: null, speaks: false });
  await beta.received.event("ready");
  assert.deepEqual(beta.peer.received("session.update")[0]?.session, {
    ...common, modalities: ["text"], input_audio_format: "pcm16", output_audio_format: "pcm16",
    input_audio_transcription: { model: "a-local-whisper", language: "en" },
    turn_detection: { ...turn_detection, threshold: 0.4, silence_duration_ms: 300 },
    temperature: 0.6,
  });
});

test("[SP52] a turn is reported in order in both sets of names: heard, answered in audio and text", async () => {
  for (const names of ["released", "beta"] as const) {
    for (const rate of [8000, 24_000]) {
      const { speak, received } = await session({ names }, { rate });
      // Before it is ready: the first words of a call are not lost.
      speak();
      await received.event("reply_end");
      const kinds = received.kinds().filter((kind, at, all) => kind !== all[at - 1]);
      assert.deepEqual(kinds.slice(0, 5),
        ["ready", "speech_start", "speech_end", "user_text", "reply_start"]);
      assert.equal(kinds.at(-1), "reply_end");
      assert.deepEqual(received.events.filter((event) => event.kind === "user_text"), [
        { kind: "user_text", text: "hello", isFinal: false },
        { kind: "user_text", text: "hello there", isFinal: false },
        { kind: "user_text", text: "hello there", isFinal: true },
      ]);
      assert.equal(textOf(received), "Good day to you");
      const missing = rate * 0.4 - samplesOf(received);
      assert.ok(missing >= 0 && missing <= rate * 0.01, `${missing} samples at ${rate}`);
    }
  }
});

test("[SP53] an interruption cancels the reply and truncates it at what was played; no more of it is reported", async () => {
  const middle = gate();
  const { live, peer, speak, received } = await session({
    reply: () => ({ text: "one two three four", pcm: tone(400), hold: middle.hold }),
  });
  speak();
  const { itemId } = await received.event("audio", 1);
  live.interrupt({ itemId: itemId, playedMs: 120.7, text: "Good day" });
  live.interrupt({ itemId: itemId, playedMs: 999_999, text: "Good day" });
  const count = received.events.length;
  await peer.until(() => peer.received("conversation.item.truncate").length === 2);
  middle.open();
  await received.event("reply_end");
  assert.equal(received.events.length, count + 1);
  assert.equal(peer.received("response.cancel").length, 1);
  const [first, other] = peer.received("conversation.item.truncate");
  assert.deepEqual(
    [first?.item_id, first?.content_index, first?.audio_end_ms, other?.audio_end_ms],
    [itemId, 0, 120, 200]);

  // After the end of a reply there is nothing to cancel, but what was not heard is taken back.
  speak();
  const late = await received.event("audio", 2);
  await received.event("reply_end", 1);
  live.interrupt({ itemId: late.itemId, playedMs: 50, text: "Good day" });
  live.interrupt({ itemId: "nothing", playedMs: 50, text: "Good day" });
  await peer.until(() => peer.received("conversation.item.truncate").length === 3);
  assert.equal(peer.received("response.cancel").length, 1);
});

test("[SP54] a tool call is reported once, and the model continues when all calls of a reply are answered", async () => {
  for (const names of ["released", "beta"] as const) {
    const { live, peer, speak, received } = await session({
      names,
      reply: (_, { outputs }) => outputs.length === 0
        ? { text: "", calls: [{ name: "lookup", arguments: '{"a":1}' }, { name: "lookup", arguments: "{}" }] }
        : { text: `Found ${outputs.join(" and ")}` },
    });
    speak();
    const first = await received.event("function_call");
    const second = await received.event("function_call", 1);
    assert.deepEqual([first.name, first.argumentsJson, second.argumentsJson], ["lookup", '{"a":1}', "{}"]);
    // One is answered before the reply that called it has ended, one after.
    live.functionResult(first.callId, '"x"');
    live.functionResult(first.callId, '"again"');
    live.functionResult("unknown", "{}");
    await received.event("reply_end");
    assert.equal(peer.received("response.create").length, 0);
    live.functionResult(second.callId, '"y"');
    await received.event("reply_end", 1);
    assert.equal(received.kinds().filter((kind) => kind === "function_call").length, 2);
    assert.equal(textOf(received), 'Found "x" and "y"');
    assert.equal(peer.received("conversation.item.create").length, 2);
    assert.equal(peer.received("response.create").length, 1);
  }
});

test("[SP55] words to be said wait for the current reply; text input is answered", async () => {
  const middle = gate();
  const { live, peer, speak, received } = await session({
    reply: (text, { instructions }) => ({
      text: instructions?.split("\n\n")[1] ?? `You: ${text}`, hold: middle.hold,
    }),
  });
  live.say("Welcome.");
  live.sendText("[Keypad input: 1]");
  await received.event("reply_start");
  live.say("Still there?");
  speak();
  await received.event("user_text", 2);
  assert.equal(peer.received("response.create").length, 1);
  middle.open();
  await received.event("reply_end", 2);
  assert.deepEqual(textOf(received), "Welcome.You: hello thereStill there?");
  assert.equal(peer.received("response.create").length, 3);
});

test("[SP55] a reply the server starts by itself delays words to be said and does not lose them", async () => {
  const middle = gate();
  const { live, peer, speak, received } = await session({
    reply: (_, { instructions }) => ({
      text: instructions?.split("\n\n")[1] ?? "Its own.", hold: middle.hold,
    }),
  });
  await received.event("ready");
  // The server's reply to the speech and the wish for ours cross on the way.
  speak();
  live.say("Goodbye.");
  await peer.until(() => peer.received("response.create").length === 1);
  middle.open();
  await received.event("reply_end", 1);
  assert.equal(textOf(received), "Its own.Goodbye.");
  const [first, again] = peer.received("response.create");
  assert.deepEqual(first?.response, again?.response);
});

test("[SP56] a session without a voice reports only text", async () => {
  const { live, peer, speak, received } = await session({}, { speaks: false });
  speak();
  await received.event("reply_start");
  await received.event("reply_end");
  assert.equal(textOf(received), "Good day to you");
  assert.equal(samplesOf(received), 0);
  const text = received.events.find((event) => event.kind === "text");
  assert.ok(text?.kind === "text");
  // Only sound can be truncated: what was heard of a text takes its place.
  live.interrupt({ itemId: text.itemId, playedMs: 100, text: "Good day" });
  live.say("x");
  await peer.until(() => peer.received("response.create").length === 1);
  assert.equal(peer.received("conversation.item.truncate").length, 0);
  assert.equal(peer.received("conversation.item.delete")[0]?.item_id, text.itemId);
  assert.deepEqual(peer.received("conversation.item.create")[0]?.item, {
    type: "message", role: "assistant", content: [{ type: "output_text", text: "Good day" }],
  });
});

test("[SP57] refused keys, refused settings and lost connections fail once, with a reason that omits the key", async () => {
  const refusing = await startRealtimeServer({ reply: () => ({ text: "" }) });
  closings.push(() => refusing.close());
  refusing.refuse(401);
  const received = createReceived<SpeechToSpeechEvent>();
  const args = { url: refusing.url, key: KEY, model: "m", system: createSystem(), log };
  createOpenAiRealtime(args).open(OPTIONS, received.receive);
  const { error } = await received.event("failed");
  assert.equal(error.message, "The realtime model refuses the key (401)");
  assert.equal(error.retryable, false);

  const settings = await session();
  const message = `Invalid voice, key ${KEY}`;
  settings.peer.send({ type: "error", error: { type: "invalid_request_error", message, event_id: "settings" } });
  const refused = await settings.received.event("failed");
  assert.equal(refused.error.message, "The realtime model refused the call's settings: Invalid voice, key ***");

  const old = await session();
  await old.received.event("ready");
  old.peer.end(1001, "session expired");
  const expired = await old.received.event("failed");
  assert.equal(expired.error.message, "The realtime model closed the connection (1001: session expired)");

  const cut = await session();
  await cut.received.event("ready");
  cut.peer.cut();
  assert.equal((await cut.received.event("failed")).error.retryable, true);
  cut.live.write(tone(20));
  cut.live.say("x");
  cut.live.interrupt({ itemId: "x", playedMs: 1, text: "Good day" });
  cut.live.functionResult("x", "{}");
  assert.deepEqual(cut.received.kinds(), ["ready", "failed"]);
});

test("[SP57] a server that accepts no settings or no handshake is given up", async () => {
  const mute = await startDeepgramServer();
  const deaf = createServer().listen(0, "127.0.0.1");
  await once(deaf, "listening");
  closings.push(() => mute.close(), () => void deaf.close());
  const { port } = deaf.address() as AddressInfo;
  for (const [url, waitMs, reason] of [
    [mute.url, 10_000, "did not accept the call's settings within 10000 ms"],
    [`http://127.0.0.1:${port}`, 5000, "did not answer within 5000 ms"],
  ] as const) {
    const system = createManualSystem();
    const received = createReceived<SpeechToSpeechEvent>();
    createOpenAiRealtime({ url, key: null, model: "m", system, log }).open(OPTIONS, received.receive);
    if (url === mute.url) {
      const peer = await mute.peer(0);
      assert.equal(peer.path, "/v1/realtime");
      assert.equal(peer.headers.authorization, undefined);
      peer.send('{"type":"input_audio_buffer.speech_started"}');
      await received.event("speech_start");
    } else await once(deaf, "connection");
    system.advance(waitMs);
    const { error } = await received.event("failed");
    assert.equal(error.message, `The realtime model ${reason}`);
    assert.equal(error.retryable, true);
  }
});

test("[SP293] why a reply failed is logged, without the key", async () => {
  const lines: { code: string; complaint: string }[] = [];
  const warn = (line: (typeof lines)[number]): void => void lines.push(line);
  const started = await startRealtimeServer({ reply: () => ({ text: "" }) });
  closings.push(() => started.close());
  const received = createReceived<SpeechToSpeechEvent>();
  const live = createOpenAiRealtime({
    url: started.url, key: KEY, model: "m", system: createSystem(), log: { ...log, warn } as Logger,
  }).open(OPTIONS, received.receive);
  closings.push(() => live.close());
  await received.event("ready");
  const peer = await started.peer(0);
  peer.send({ type: "response.created", response: { id: "r1" } });
  peer.send({
    type: "response.done",
    response: {
      id: "r1", status: "failed", output: [],
      status_details: {
        type: "failed",
        error: { type: "x", code: "insufficient_quota", message: `No quota is left for ${KEY}` },
      },
    },
  });
  await received.event("reply_end");
  assert.deepEqual(lines, [{ code: "insufficient_quota", complaint: "No quota is left for ***" }]);
});

test("[VL604] speech that no silence follows is told in words when the call is over", async () => {
  const { live, received } = await session();
  live.write(tone(400));
  await received.event("speech_start");
  live.finalize();
  await received.event("reply_start");
  const said = received.events.filter(({ kind }) => kind === "user_text").at(-1);
  assert.deepEqual(said, { kind: "user_text", text: "hello there", isFinal: true });
});

test("[SP57] after close there are no events and the connection ends", async () => {
  const middle = gate();
  const { live, peer, speak, received } = await session({
    reply: () => ({ text: "one two", pcm: tone(400), hold: middle.hold }),
  });
  speak();
  await received.event("audio");
  const count = received.events.length;
  live.close();
  live.close();
  middle.open();
  await peer.until(({ isClosed }) => isClosed);
  assert.equal(received.events.length, count);
});

test("[SP58] messages outside the protocol are ignored, and the session continues", async () => {
  const { peer, speak, received } = await session();
  await received.event("ready");
  const delta = (fields: object) => ({ type: "response.output_audio.delta", ...fields });
  for (const message of [
    "", "null", "[", '"x"', '{"type":"constructor"}', '{"type":{"toString":1}}', "[".repeat(900_000),
    Buffer.alloc(900_000), Buffer.from('{"type":"session.updated"}'),
    delta({ item_id: "a", delta: "AAAA" }),
    { type: "response.created", response: { id: 5 } },
    { type: "response.created", response: { id: "r" } },
    delta({ response_id: "r", item_id: "a", delta: 5 }),
    delta({ response_id: "r", item_id: "a", delta: "%%%" }),
    delta({ response_id: "other", item_id: "a", delta: "AAAA" }),
    // Three bytes, then one: two samples.
    delta({ response_id: "r", item_id: "a", delta: "AAAA" }),
    delta({ response_id: "r", item_id: "a", delta: "AA==" }),
    { type: "response.function_call_arguments.done", item_id: "f", call_id: "c", arguments: "{}" },
    { type: "response.output_item.done", item: { type: "function_call", call_id: "c", name: 1 } },
    { type: "error", error: "no" },
    { type: "error", error: { type: "server_error", message: "overloaded" } },
    { type: "response.done", response: { id: "r", output: [{ type: "function_call" }] } },
    { type: "response.done", response: { id: "r", usage: { input_tokens: -1 } } },
    { type: "session.created", session: { modalities: 7 } },
  ]) peer.send(message);
  await received.event("reply_end");
  speak();
  await received.event("reply_end", 1);
  assert.deepEqual(received.kinds().slice(0, 5), ["ready", "reply_start", "audio", "audio", "reply_end"]);
  const [one, two] = received.events.filter((event) => event.kind === "audio");
  assert.ok(one?.kind === "audio" && two?.kind === "audio");
  assert.deepEqual([one.pcm.length, two.pcm.length], [1, 1]);
  assert.equal(textOf(received), "Good day to you");
});

test("[SP58] an oversized message and a flood of calls end no process", async () => {
  const large = await session();
  await large.received.event("ready");
  large.peer.send(`"${"x".repeat(1_100_000)}"`);
  await large.received.event("failed");
  const { peer, received } = await session();
  await received.event("ready");
  for (let reply = 0; reply < 5; reply += 1) {
    const id = `r${reply}`;
    peer.send({ type: "response.created", response: { id } });
    const output = Array.from({ length: 100 }, (_, at) =>
      ({ type: "function_call", call_id: `${id}-${at}`, name: "lookup", arguments: "{}" }));
    peer.send({ type: "response.done", response: { id, output } });
  }
  await received.event("reply_end", 4);
  assert.equal(received.kinds().filter((kind) => kind === "function_call").length, 64);
});
