// Recognition by AssemblyAI, Cartesia and Soniox, against a server that says what theirs say; the
// SDK of each accepts it.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import Cartesia from "@cartesia/cartesia-js";
import { SonioxNodeClient } from "@soniox/node";
import { AssemblyAI } from "assemblyai";
import { createLogger } from "#core/logger.ts";
import { createSystem } from "#core/system.ts";
import { createAssemblyAi } from "#providers/speech/assemblyai/assemblyai.ts";
import { createCartesiaEars } from "#providers/speech/cartesia/cartesia-ears.ts";
import { ANSWER_WAIT_MS } from "#providers/speech/pieces.ts";
import type { Transcriber, TranscriptEvent, TranscriptionOptions } from "#providers/speech/port.ts";
import type { RecogniserOptions } from "#providers/speech/recognition-link.ts";
import { createSoniox } from "#providers/speech/soniox/soniox.ts";
import { createManualSystem } from "#support/manual-clock.ts";
import { selfSignedCertificate } from "#support/realtime-server.ts";
import { createReceived } from "#support/received.ts";
import { startVendorServer, type VendorPeer } from "#support/vendor-socket-server.ts";

const KEY = "a-key-of-the-vendor";
const log = createLogger("silent");
const closings: (() => Promise<void> | void)[] = [];
after(async () => {
  for (const close of closings.reverse()) await close();
});

const second = () => new Int16Array(16_000);
const final = (text: string) => ({ kind: "final", text });

interface Vendor {
  name: string;
  model: string;
  create(options: RecogniserOptions): Transcriber;
  path: string;
  /** The words there are of a piece; `isFinal`: and no more will come of it. */
  say(peer: VendorPeer, text: string, isFinal: boolean): void;
  /** What asks for the final text. */
  asks: string;
  error: { message: object; text: RegExp; retryable: boolean };
}

let turn = 0;
const turnOf = (text: string, isFinal: boolean): object => ({
  type: "Turn", turn_order: turn, turn_is_formatted: false, end_of_turn: isFinal,
  end_of_turn_confidence: isFinal ? 1 : 0.1, transcript: text, utterance: isFinal ? text : "",
  words: text.split(" ").filter((word) => word !== "").map((word, at) => ({
    text: word, start: at * 100, end: at * 100 + 80, confidence: 0.9, word_is_final: isFinal,
  })),
});
const tokensOf = (text: string, isFinal: boolean): object => ({
  tokens: [
    { text, start_ms: 0, end_ms: 900, confidence: 0.9, is_final: isFinal },
    ...(isFinal ? [{ text: "<fin>", is_final: true, confidence: 1 }] : []),
  ],
  final_audio_proc_ms: 900, total_audio_proc_ms: 1000,
});

const VENDORS: Vendor[] = [
  {
    name: "AssemblyAI", model: "universal-streaming-multilingual", create: createAssemblyAi,
    path: "/v3/ws",
    say: (peer, text, isFinal) => {
      peer.send(turnOf(text, isFinal));
      if (isFinal) turn += 1;
    },
    asks: '{"type":"ForceEndpoint"}',
    error: {
      message: { type: "Error", error_code: 1008, error: `Not authorized: ${KEY}` },
      text: /^AssemblyAI ended the recognition: Not authorized: (?!.*a-key)/, retryable: false,
    },
  },
  {
    name: "Cartesia", model: "ink-2", create: createCartesiaEars, path: "/stt/websocket",
    say: (peer, text, isFinal) => {
      const about = { request_id: "r", duration: 1, language: "en" };
      peer.send({ type: "transcript", is_final: isFinal, text, ...about });
      if (isFinal) peer.send({ type: "flush_done", request_id: "r" });
    },
    asks: "finalize",
    error: {
      message: { type: "error", status_code: 500, message: `Broken ${KEY}`, request_id: "r" },
      text: /^Cartesia gives up: Broken (?!.*a-key)/, retryable: true,
    },
  },
  {
    name: "Soniox", model: "stt-rt-v5", create: createSoniox, path: "/transcribe-websocket",
    say: (peer, text, isFinal) => peer.send(tokensOf(text, isFinal)),
    asks: '{"type":"finalize"}',
    error: {
      message: { tokens: [], error_code: 503, error_message: `Cannot continue ${KEY}` },
      text: /^Soniox ended the recognition \(503\): Cannot continue (?!.*a-key)/, retryable: true,
    },
  },
];

async function listening(
  vendor: Vendor, wanted: Partial<TranscriptionOptions> = {}, args: Partial<RecogniserOptions> = {},
) {
  const server = await startVendorServer();
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

test("[SP160] AssemblyAI's own SDK recognises with the server of the tests", async () => {
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
  await peer.until(({ texts }) => texts.includes(VENDORS[0]!.asks));
  VENDORS[0]!.say(peer, "hello there", true);
  assert.deepEqual(await heard.event("turn"), { kind: "turn", text: "hello there", isEnd: true });
  await transcriber.close(false);
});

test("[SP160] Cartesia's own SDK recognises with the server of the tests", async () => {
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
  VENDORS[1]!.say(peer, "hello there", true);
  assert.deepEqual(await heard.event("transcript"), { kind: "transcript", text: "hello there" });
  await heard.event("flush_done");
  socket.close();
});

test("[SP160] Soniox' own SDK recognises with the server of the tests", async () => {
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
  await peer.until(({ texts }) => texts.includes(VENDORS[2]!.asks));
  VENDORS[2]!.say(peer, "hello there", true);
  assert.match((await heard.event("result")).text, /^hello there/);
  await heard.event("finalized");
  session.close();
});

test("[SP161] the handshake says what is heard and in which language, with the key in a header", async () => {
  const hints = ["Parley", " "];
  const [assembly, cartesia, soniox] = await Promise.all(
    VENDORS.map((vendor) => listening(vendor, { rate: 8000, hints, languages: ["en", "de"] })));
  for (const [number, { peer, transcriber }] of [assembly!, cartesia!, soniox!].entries()) {
    const { model, name, path } = VENDORS[number]!;
    assert.equal(peer.path, path);
    assert.equal(transcriber.name, `${name} (${model})`);
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
  const german = await listening(VENDORS[1]!, { language: "de" });
  assert.equal(german.peer.query.get("model"), "ink-whisper");
  assert.equal(soniox!.peer.headers.authorization, `Bearer ${KEY}`);
  await soniox!.peer.until(({ texts }) => texts.length === 1);
  assert.deepEqual(JSON.parse(soniox!.peer.texts[0]!), {
    model: "stt-rt-v5", audio_format: "pcm_s16le", sample_rate: 8000, num_channels: 1,
    language_hints: ["en", "de"], enable_language_identification: true,
    enable_endpoint_detection: false, context: { terms: ["Parley"] },
  });
});

for (const vendor of VENDORS) {
  test(`[SP162] ${vendor.name}: partials replace one another, the final asked for closes the piece`, async () => {
    const { peer, received, stream } = await listening(vendor);
    stream.finalize();
    assert.deepEqual(received.events, [final("")]);
    stream.write(second());
    await peer.until(({ audioBytes }) => audioBytes >= 30_000);
    assert.ok(peer.chunkBytes.every((bytes) => bytes >= 1600 && bytes <= 32_000));
    vendor.say(peer, "book a", false);
    vendor.say(peer, "book a", false);
    vendor.say(peer, "book a table", false);
    await received.event("partial", 1);
    stream.finalize();
    await peer.until(({ texts }) => texts.includes(vendor.asks));
    assert.equal(peer.audioBytes, 32_000);
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

  test(`[SP163] ${vendor.name}: a late final is done without, and told once`, async () => {
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
    peer.send(vendor.error.message);
    const { error } = await received.event("failed");
    assert.match(error.message, vendor.error.text);
    assert.equal(error.retryable, vendor.error.retryable);
    assert.deepEqual(received.kinds(), ["partial", "failed"]);
    stream.finalize();
    stream.close();
    assert.equal(received.events.length, 2);
    server.refuse(401);
    const refused = createReceived<TranscriptEvent>();
    vendor.create({ url: server.url, key: KEY, model: vendor.model, system: createSystem(), log })
      .open({ rate: 8000, language: "en", languages: [], hints: [] }, refused.receive);
    assert.equal((await refused.event("failed")).error.message, `${vendor.name} refuses the key (401)`);
    const cut = await listening(vendor);
    cut.peer.cut();
    assert.equal((await cut.received.event("failed")).error.message,
      `${vendor.name} broke off the connection`);
  });
}
