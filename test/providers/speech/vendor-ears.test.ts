// Recognition by the vendors that are asked for final texts, against a server that says what theirs
// say; the SDK of each accepts it.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import Cartesia from "@cartesia/cartesia-js";
import { GladiaClient, type LiveV2InitRequest } from "@gladiaio/sdk";
import { SonioxNodeClient } from "@soniox/node";
import { AssemblyAI } from "assemblyai";
import { createLogger } from "#core/logger.ts";
import { createSystem } from "#core/system.ts";
import { createGladia } from "#providers/speech/gladia/gladia.ts";
import { ANSWER_WAIT_MS } from "#providers/speech/pieces.ts";
import type { TranscriptEvent, TranscriptionOptions } from "#providers/speech/port.ts";
import type { VendorArgs } from "#providers/speech/engines.ts";
import { createManualSystem } from "#support/manual-clock.ts";
import { createReceived } from "#support/received.ts";
import {
  ASSEMBLYAI, CARTESIA, GLADIA, HEARING_VENDORS, KEY, SONIOX, type HearingVendor,
} from "#support/vendors/hearing-vendors.ts";
import { selfSignedCertificate } from "#support/vendors/realtime-server.ts";
import { startVendorServer } from "#support/vendors/vendor-socket-server.ts";

const log = createLogger("silent");
const closings: (() => Promise<void> | void)[] = [];
after(async () => {
  for (const close of closings.reverse()) await close();
});

const second = () => new Int16Array(16_000).fill(7);
const final = (text: string) => ({ kind: "final", text });

async function listening(
  vendor: HearingVendor, wanted: Partial<TranscriptionOptions> = {},
  args: Partial<VendorArgs> = {},
) {
  const server = await startVendorServer(vendor.script);
  closings.push(() => server.close());
  const transcriber = vendor.create({
    url: server.url, key: KEY, model: vendor.model, system: createSystem(), log, ...args,
  });
  const received = createReceived<TranscriptEvent>();
  const stream = transcriber.open(
    { rate: 16_000, language: "en", languages: ["en"], hints: [], ...wanted }, received.receive);
  closings.push(() => stream.close());
  return { server, transcriber, received, stream, peer: await server.peer(0) };
}

test("[SP160] AssemblyAI's own SDK recognises speech with the test server", async () => {
  const server = await startVendorServer({
    tls: await selfSignedCertificate(),
    onOpen: (peer) => peer.send({ type: "Begin", id: "b", expires_at: 2_000_000_000 }),
  });
  closings.push(() => server.close());
  const transcriber = new AssemblyAI({ apiKey: KEY }).streaming.transcriber({
    websocketBaseUrl: `${server.url}/v3/ws`, sampleRate: 16_000, speechModel: "u3-rt-pro",
    connectTimeout: 20_000,
  });
  const heard = createReceived<{ kind: "turn"; text: string; isEnd: boolean }>();
  transcriber.on("turn", ({ transcript: text, end_of_turn: isEnd }) =>
    heard.receive({ kind: "turn", text, isEnd }));
  // The SDK has no way to give it a certificate.
  process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0";
  await transcriber.connect();
  delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
  const peer = await server.peer(0);
  assert.equal(peer.headers.authorization, KEY);
  assert.equal(peer.query.get("speech_model"), "u3-rt-pro");
  transcriber.sendAudio(second().buffer);
  await peer.until(({ audioBytes }) => audioBytes === 32_000);
  transcriber.forceEndpoint();
  await peer.until(ASSEMBLYAI.isAsked);
  ASSEMBLYAI.say(peer, "hello there", true);
  assert.deepEqual(await heard.event("turn"), { kind: "turn", text: "hello there", isEnd: true });
  await transcriber.close(false);
});

test("[SP160] Cartesia's own SDK recognises speech with the test server", async () => {
  const server = await startVendorServer();
  closings.push(() => server.close());
  const client = new Cartesia({ apiKey: KEY, baseURL: server.url.replace("ws", "http") });
  const socket = client.stt.manualFinalize.websocket({
    model: "ink-2", encoding: "pcm_s16le", sample_rate: 16_000,
  });
  const heard = createReceived<{ kind: "transcript"; text: string } | { kind: "flush_done" }>();
  socket.on("transcript", ({ text }) => heard.receive({ kind: "transcript", text }));
  socket.on("flush_done", () => heard.receive({ kind: "flush_done" }));
  const peer = await server.peer(0);
  assert.equal(peer.path, "/stt/websocket");
  socket.send("finalize");
  await peer.until(({ texts }) => texts.includes("finalize"));
  CARTESIA.say(peer, "hello there", true);
  assert.deepEqual(await heard.event("transcript"), { kind: "transcript", text: "hello there" });
  await heard.event("flush_done");
  socket.close();
});

test("[SP160] Soniox' own SDK recognises speech with the test server", async () => {
  const server = await startVendorServer();
  closings.push(() => server.close());
  const client = new SonioxNodeClient({
    api_key: KEY, realtime: { ws_base_url: `${server.url}/transcribe-websocket` },
  });
  const session = client.realtime.stt({
    model: "stt-rt-v5", audio_format: "pcm_s16le", sample_rate: 16_000, num_channels: 1,
  });
  const heard = createReceived<{ kind: "result"; text: string } | { kind: "finalized" }>();
  session.on("result", ({ tokens }) =>
    heard.receive({ kind: "result", text: tokens.map(({ text }) => text).join("") }));
  session.on("finalized", () => heard.receive({ kind: "finalized" }));
  await session.connect();
  const peer = await server.peer(0);
  await peer.until(({ texts }) => texts.length === 1);
  session.sendAudio(new Uint8Array(second().buffer));
  session.finalize();
  await peer.until(SONIOX.isAsked);
  SONIOX.say(peer, "hello there", true);
  assert.match((await heard.event("result")).text, /^hello there/);
  await heard.event("finalized");
  session.close();
});

test("[SP190] Gladia's own SDK recognises speech with the test server", async () => {
  const server = await startVendorServer(GLADIA.script);
  closings.push(() => server.close());
  const client = new GladiaClient({ apiKey: KEY, apiUrl: server.url.replace("ws", "http") });
  const session = client.liveV2().startSession({
    encoding: "wav/pcm", sample_rate: 16_000, bit_depth: 16, channels: 1,
  });
  const heard = createReceived<{ kind: "transcript"; text: string; isFinal: boolean }>();
  session.on("message", (message) => {
    if (message.type !== "transcript") return;
    const { is_final: isFinal, utterance: { text } } = message.data;
    heard.receive({ kind: "transcript", text, isFinal });
  });
  const peer = await server.peer(0);
  assert.equal(server.posts[0]!.headers["x-gladia-key"], KEY);
  session.sendAudio(second().buffer);
  await peer.until(({ audioBytes }) => audioBytes === 32_000);
  GLADIA.say(peer, "hello", false);
  GLADIA.say(peer, "Hello there.", true);
  assert.deepEqual(await heard.event("transcript", 1),
    { kind: "transcript", text: "Hello there.", isFinal: true });
  session.endSession();
});

test("[SP161] the handshake names rate, languages and hints, with the key in a header", async () => {
  const hints = ["Parley", " "];
  const all = await Promise.all(HEARING_VENDORS.map((vendor) =>
    listening(vendor, { rate: 8000, hints, languages: ["en", "de"] })));
  const [assembly, cartesia, soniox, gladia, azure] = all;
  for (const [number, { peer, transcriber }] of all.entries()) {
    const { path, title } = HEARING_VENDORS[number]!;
    assert.equal(peer.path, path);
    assert.equal(transcriber.name, title);
    assert.equal(transcriber.detectsTurns, false);
  }
  assert.equal(assembly!.peer.headers.authorization, KEY);
  assert.deepEqual(Object.fromEntries(assembly!.peer.query), {
    sample_rate: "8000", encoding: "pcm_s16le", speech_model: "universal-streaming-multilingual",
    format_turns: "false", language_detection: "true", keyterms_prompt: '["Parley"]',
  });
  assert.equal(cartesia!.peer.headers["x-api-key"], KEY);
  assert.equal(cartesia!.peer.headers["cartesia-version"], "2026-03-01");
  assert.deepEqual(Object.fromEntries(cartesia!.peer.query), {
    model: "ink-2", encoding: "pcm_s16le", sample_rate: "8000", language: "en", keyterm: "Parley",
  });
  const german = await listening(CARTESIA, { language: "de" });
  assert.equal(german.peer.query.get("model"), "ink-whisper");
  assert.equal(soniox!.peer.headers.authorization, `Bearer ${KEY}`);
  await soniox!.peer.until(({ texts }) => texts.length === 1);
  assert.deepEqual(JSON.parse(soniox!.peer.texts[0]!), {
    model: "stt-rt-v5", audio_format: "pcm_s16le", sample_rate: 8000, num_channels: 1,
    language_hints: ["en", "de"], enable_language_identification: true,
    enable_endpoint_detection: false, context: { terms: ["Parley"] },
  });
  const [asked] = gladia!.server.posts;
  assert.equal(asked!.headers["x-gladia-key"], KEY);
  assert.equal(gladia!.peer.query.get("token"), "a-token-of-the-session");
  const session: LiveV2InitRequest = {
    encoding: "wav/pcm", bit_depth: 16, sample_rate: 8000, channels: 1, model: "solaria-1",
    endpointing: 0.3, language_config: { languages: ["en", "de"], code_switching: true },
    realtime_processing: {
      custom_vocabulary: true, custom_vocabulary_config: { vocabulary: ["Parley"] },
    },
    messages_config: {
      receive_partial_transcripts: true, receive_final_transcripts: true,
      receive_speech_events: true, receive_pre_processing_events: false,
      receive_realtime_processing_events: false, receive_post_processing_events: false,
      receive_acknowledgments: false, receive_errors: true, receive_lifecycle_events: false,
    },
  };
  assert.deepEqual(JSON.parse(asked!.body), session);
  assert.equal(azure!.peer.headers["ocp-apim-subscription-key"], KEY);
  assert.match(String(azure!.peer.headers["x-connectionid"]), /^[0-9a-f]{32}$/);
  assert.deepEqual(Object.fromEntries(azure!.peer.query),
    { language: "en-US", format: "simple", profanity: "raw" });
});

for (const vendor of HEARING_VENDORS) {
  test(`[SP162] ${vendor.name}: partials replace one another, the final on request closes the segment`, async () => {
    const { peer, received, stream } = await listening(vendor);
    stream.finalize();
    assert.deepEqual(received.events, [final("")]);
    stream.write(second());
    await peer.until(({ audioBytes }) => audioBytes >= 30_000);
    assert.ok(vendor.heard(peer).every((bytes) => bytes >= 1600 && bytes <= 32_000));
    vendor.say(peer, "book a", false);
    vendor.say(peer, "book a", false);
    vendor.say(peer, "book a table", false);
    await received.event("partial", 1);
    stream.finalize();
    await peer.until(vendor.isAsked);
    assert.equal(
      vendor.heard(peer).reduce((sum, bytes) => sum + bytes, vendor.keptBytes ?? 0), 32_000);
    vendor.say(peer, "Book a table.", true);
    await received.event("final", 1);
    stream.write(second());
    vendor.say(peer, "For two", false);
    const last = { kind: "partial", text: "For two" };
    for (let count = 2; received.events.at(-1)?.kind === "final" || count === 2; count += 1) {
      await received.event("partial", count);
    }
    assert.deepEqual(received.events.slice(1).filter(({ kind }) => kind === "final"),
      [final("Book a table.")]);
    assert.deepEqual(received.events.at(-1), last);
  });

  test(`[SP163] ${vendor.name}: a late final is not waited for, and only its additions are delivered`, async () => {
    const system = createManualSystem();
    const { peer, received, stream } = await listening(vendor, {}, { system });
    stream.write(second());
    vendor.say(peer, "book a table", false);
    await received.event("partial");
    stream.finalize();
    system.advance(ANSWER_WAIT_MS);
    assert.deepEqual(received.events.at(-1), final("book a table"));
    vendor.say(peer, "Book a table. For two.", true);
    assert.deepEqual(await received.event("final", 1), final("For two."));
  });

  test(`[SP164] ${vendor.name}: a refusal, an error and a cut end the stream with the reason, hostile messages do not`, async () => {
    const { peer, received, server, stream } = await listening(vendor);
    for (const message of [
      "", "null", "[]", "{", '"Turn"', '{"type":"__proto__"}', '{"tokens":[null]}', "[".repeat(10_000),
      '{"type":"Turn","turn_order":0,"end_of_turn":true,"transcript":7,"words":[]}',
      '{"type":"transcript","is_final":1,"text":"x"}', '{"error_code":"7"}', Buffer.alloc(1000),
    ]) peer.send(message);
    vendor.say(peer, "hello", false);
    await received.event("partial");
    vendor.failure.send(peer);
    const { error } = await received.event("failed");
    assert.match(error.message, vendor.failure.text);
    assert.equal(error.retryable, vendor.failure.retryable);
    assert.deepEqual(received.kinds(), ["partial", "failed"]);
    stream.finalize();
    stream.close();
    assert.equal(received.events.length, 2);
    server.refuse(401);
    const refused = createReceived<TranscriptEvent>();
    vendor.create({ url: server.url, key: KEY, model: vendor.model, system: createSystem(), log })
      .open({ rate: 8000, language: "en", languages: [], hints: [] }, refused.receive);
    assert.match((await refused.event("failed")).error.message, vendor.refusal);
    const cut = await listening(vendor);
    cut.peer.cut();
    assert.equal((await cut.received.event("failed")).error.message,
      `${vendor.name} broke off the connection`);
  });
}

test("[SP287] AssemblyAI gets no message of less than 50 ms: the rest goes with the next audio", async () => {
  const { peer, received, stream } = await listening(ASSEMBLYAI);
  const frame = new Int16Array(320).fill(1000);
  for (let turn = 0; turn < 4; turn += 1) {
    for (let count = 0; count < 10; count += 1) stream.write(frame);
    stream.finalize();
    await peer.until(({ texts }) => texts.length === turn + 1);
    ASSEMBLYAI.say(peer, `turn ${turn}`, true);
    assert.deepEqual(await received.event("final", turn), final(`turn ${turn}`));
  }
  stream.close();
  await peer.until(({ texts }) => texts.at(-1) === '{"type":"Terminate"}');
  assert.deepEqual(peer.chunkBytes, Array(13).fill(1920));
});

test("[SP191] Gladia's finals that came by themselves are not waited for, words in progress are", async () => {
  const { peer, received, stream } = await listening(GLADIA);
  stream.write(second());
  GLADIA.say(peer, "hello there", false);
  GLADIA.say(peer, "Hello there.", true);
  assert.deepEqual(await received.event("final"), final("Hello there."));
  stream.finalize();
  assert.deepEqual(received.events.at(-1), final(""));
  assert.equal(GLADIA.isAsked(peer), false);
  GLADIA.say(peer, "and", false);
  await received.event("partial", 1);
  stream.write(second());
  stream.finalize();
  await peer.until(GLADIA.isAsked);
  GLADIA.say(peer, "And bye.", true);
  assert.deepEqual(await received.event("final", 2), final("And bye."));
});

test("[SP191] a Gladia session without a usable address ends the stream", async () => {
  for (const answer of ["", "{}", "[", '{"url":7}', '{"url":"http://127.0.0.1/"}', '{"url":"ws://["}']) {
    const server = await startVendorServer({ onPost: ({ response }) => response.end(answer) });
    closings.push(() => server.close());
    const received = createReceived<TranscriptEvent>();
    const stream = createGladia({
      url: server.url, key: KEY, model: "solaria-1", system: createSystem(), log,
    }).open({ rate: 8000, language: "en", languages: [], hints: [] }, received.receive);
    stream.write(second());
    const { error } = await received.event("failed");
    assert.equal(error.message, "Gladia sent no WebSocket address", answer);
    assert.equal(error.retryable, false);
  }
});

test("[SP191] a Gladia session request that breaks off ends the stream and is retryable", async () => {
  const server = await startVendorServer({
    onPost: ({ response }) => {
      response.write('{"url":');
      response.on("error", () => {});
      setImmediate(() => response.destroy());
    },
  });
  closings.push(() => server.close());
  const received = createReceived<TranscriptEvent>();
  createGladia({
    url: server.url, key: KEY, model: "solaria-1", system: createSystem(), log,
  }).open({ rate: 8000, language: "en", languages: [], hints: [] }, received.receive);
  const { error } = await received.event("failed");
  assert.match(error.message, /^the connection to Gladia failed \(\w+\)$/);
  assert.equal(error.retryable, true);
});

test("[SP191] a stream closed before Gladia has made its session never connects", async () => {
  const asked = Promise.withResolvers<() => void>();
  const gone = Promise.withResolvers<void>();
  const server = await startVendorServer({
    onPost: ({ response }) => {
      response.on("close", () => gone.resolve());
      asked.resolve(() => response.end(JSON.stringify({ url: server.url })));
    },
  });
  closings.push(() => server.close());
  const received = createReceived<TranscriptEvent>();
  const stream = createGladia({
    url: server.url, key: KEY, model: "solaria-1", system: createSystem(), log,
  }).open({ rate: 8000, language: "en", languages: [], hints: [] }, received.receive);
  const answer = await asked.promise;
  stream.close();
  await gone.promise;
  answer();
  await new Promise(setImmediate);
  assert.deepEqual([received.events, server.peers], [[], []]);
});
