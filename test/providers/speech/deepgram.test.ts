// Recognition by Deepgram against a server of its protocol, which Deepgram's own SDK accepts.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { DeepgramClient } from "@deepgram/sdk";
import { createLogger } from "#core/logger.ts";
import { createSystem, type System } from "#core/system.ts";
import { createDeepgramFlux } from "#providers/speech/deepgram/deepgram-flux.ts";
import { createDeepgram, FINALIZE_WAIT_MS } from "#providers/speech/deepgram/deepgram.ts";
import type { VendorArgs } from "#providers/speech/engines.ts";
import { enduringTranscribers } from "#providers/speech/fallback/enduring.ts";
import type { TranscriptEvent } from "#providers/speech/port.ts";
import { BACKLOG_MS } from "#providers/speech/recognition-link.ts";
import { createManualSystem } from "#support/manual-clock.ts";
import { createReceived } from "#support/received.ts";
import { startDeepgramServer } from "#support/vendors/deepgram-server.ts";

const KEY = "a-key-of-the-vendor";
const log = createLogger("silent");
const closings: (() => Promise<void> | void)[] = [];
after(async () => {
  for (const close of closings.reverse()) await close();
});

const second = (rate = 16_000) => new Int16Array(rate);

async function listening(
  args: {
    flux?: boolean; system?: System; rate?: number; hints?: string[]; languages?: string[];
    model?: string;
  }
    & Partial<VendorArgs> = {},
) {
  const { flux = false, hints = [], languages = [], rate = 16_000, system = createSystem() } = args;
  const server = await startDeepgramServer();
  closings.push(() => server.close());
  const options: VendorArgs = {
    url: server.url, key: KEY, model: flux ? "flux-general-en" : "nova-3", system, log, ...args,
  };
  const vendor = flux ? createDeepgramFlux(options) : createDeepgram(options);
  // As calls get it.
  const transcriber = enduringTranscribers(() => vendor, () => [], { system, log })("deepgram");
  const received = createReceived<TranscriptEvent>();
  const stream = transcriber.open({ rate, language: "en", languages, hints }, received.receive);
  closings.push(() => stream.close());
  return { server, transcriber, stream, received };
}

type VendorMessage = { [Kind in "Results" | "Metadata" | "TurnInfo"]: { kind: Kind; value: unknown } }[
  "Results" | "Metadata" | "TurnInfo"];

const final = (text: string) => ({ kind: "final", text });

test("[SP40] Deepgram's own SDK recognises speech with the test server", async () => {
  const server = await startDeepgramServer();
  closings.push(() => server.close());
  const client = new DeepgramClient({ apiKey: KEY, baseUrl: server.url, reconnect: false });
  const socket = await client.listen.v1.connect({
    model: "nova-3", encoding: "linear16", sample_rate: 16_000, Authorization: KEY,
  });
  const messages = createReceived<VendorMessage>();
  socket.on("message", (value) => messages.receive({ kind: value.type, value } as VendorMessage));
  socket.connect();
  await socket.waitForOpen();
  const peer = await server.peer(0);
  assert.equal(peer.path, "/v1/listen");
  assert.equal(peer.query.get("model"), "nova-3");
  peer.result({ text: "hello there", isFinal: true, start: 0, duration: 1 });
  const { value } = await messages.event("Results");
  const results = value as { channel: { alternatives: { transcript: string }[] } };
  assert.equal(results.channel.alternatives[0]?.transcript, "hello there");
  socket.sendMedia(second());
  socket.sendFinalize({ type: "Finalize" });
  await messages.event("Results", 1);
  socket.sendCloseStream({ type: "CloseStream" });
  await messages.event("Metadata");
  socket.close();

  const flux = await client.listen.v2.connect({ model: "flux-general-en", Authorization: KEY });
  flux.on("message", (message) => messages.receive({ kind: message.type, value: message } as VendorMessage));
  flux.connect();
  await flux.waitForOpen();
  const turns = await server.peer(1);
  assert.equal(turns.path, "/v2/listen");
  turns.turn("EndOfTurn", "hello");
  const turn = (await messages.event("TurnInfo")).value as { event: string };
  assert.equal(turn.event, "EndOfTurn");
  flux.close();
});

test("[SP41] the handshake names rate, language and hints, and leaves endpointing to the call", async () => {
  const { server, transcriber, stream } = await listening({ rate: 8000, hints: ["Parley", " "] });
  const { headers, path, query } = await server.peer(0);
  assert.equal(transcriber.name, "Deepgram (nova-3)");
  assert.equal(transcriber.detectsTurns, false);
  assert.equal(path, "/v1/listen");
  assert.equal(headers.authorization, `Token ${KEY}`);
  const sent = Object.fromEntries(query);
  assert.deepEqual(sent, {
    model: "nova-3", language: "en", encoding: "linear16", sample_rate: "8000", channels: "1",
    interim_results: "true", punctuate: "true", smart_format: "true", no_delay: "true",
    endpointing: "false", vad_events: "false", keyterm: "Parley",
  });
  stream.close();
});

test("[SP127] a caller who may switch languages is recognised in all of them, and the language is reported", async () => {
  const languages = ["en", "de"];
  const { server, stream, received } = await listening({ languages });
  const peer = await server.peer(0);
  assert.deepEqual(peer.query.getAll("language"), ["multi"]);
  assert.deepEqual(peer.query.getAll("language_hint"), languages);
  stream.write(second());
  peer.result({ text: "guten Tag", isFinal: true, start: 0, duration: 1, languages: ["de"] });
  assert.deepEqual(await received.event("final"), { ...final("guten Tag"), language: "de" });
  const flux = await listening({ flux: true, languages, model: "flux-general-multi" });
  assert.deepEqual((await flux.server.peer(0)).query.getAll("language_hint"), languages);
});

test("[SP42] interim results replace one another, final ones close the segment, silence produces nothing", async () => {
  const { server, stream, received } = await listening();
  const peer = await server.peer(0);
  stream.write(second());
  await peer.until(({ audioBytes }) => audioBytes === 32_000);
  peer.result({ text: "" });
  peer.result({ text: "book a" });
  peer.result({ text: "book a" });
  peer.result({ text: "book a table" });
  peer.result({ text: "Book a table.", isFinal: true });
  peer.result({ text: "", isFinal: true });
  peer.result({ text: "For two." });
  await received.event("partial", 2);
  assert.deepEqual(received.events, [
    { kind: "partial", text: "book a" },
    { kind: "partial", text: "book a table" },
    final("Book a table."),
    { kind: "partial", text: "For two." },
  ]);
});

test("[SP43] finalize is answered by the server's final, or at once if nothing is pending", async () => {
  const { server, stream, received } = await listening();
  stream.finalize();
  assert.deepEqual(received.events, [final("")]);
  const peer = await server.peer(0);
  server.onFinalize((asked) => asked.result({ text: "Yes.", isFinal: true, fromFinalize: true }));
  stream.write(second());
  stream.finalize();
  assert.deepEqual(await received.event("final", 1), final("Yes."));
  assert.deepEqual(peer.controls, ["Finalize"]);
  // All that was written is final by now.
  stream.finalize();
  assert.equal(received.events.length, 3);
  assert.deepEqual(received.events[2], final(""));
  server.onFinalize((asked) => asked.result({ text: "", isFinal: true, fromFinalize: true }));
  stream.write(second());
  stream.finalize();
  assert.deepEqual(await received.event("final", 3), final(""));
});

test("[SP44] finalize is answered in time with what is known; a late answer is not delivered twice", async () => {
  const system = createManualSystem();
  const { server, stream, received } = await listening({ system });
  const peer = await server.peer(0);
  server.onFinalize(() => undefined);
  stream.write(second());
  await peer.until(({ audioBytes }) => audioBytes === 32_000);
  peer.result({ text: "book a table", start: 0, duration: 0.9 });
  await received.event("partial");
  stream.finalize();
  system.advance(FINALIZE_WAIT_MS - 1);
  assert.equal(received.events.length, 1);
  system.advance(1);
  assert.deepEqual(received.events[1], final("book a table"));

  stream.write(second());
  await peer.until(({ audioBytes }) => audioBytes === 64_000);
  const words = ["Book", "a", "table."].map((word, at) => ({ word, start: at / 4, end: at / 4 + 0.2 }));
  peer.result({ text: "Book a table.", isFinal: true, fromFinalize: true, start: 0, duration: 1, words });
  const later = [...words, { word: "for", start: 1.2, end: 1.4 }, { word: "two", start: 1.4, end: 1.6 }];
  peer.result({ text: "Book a table for two", start: 0, duration: 1.8, words: later });
  await received.event("partial", 1);
  stream.finalize();
  peer.result({ text: "for two", isFinal: true, fromFinalize: true, start: 1, duration: 1 });
  await received.event("final", 1);
  assert.deepEqual(received.events.slice(2), [{ kind: "partial", text: "for two" }, final("for two")]);
});

test("[SP44] each of several finalizes is answered, though the server answers none", async () => {
  const system = createManualSystem();
  const { server, stream, received } = await listening({ system });
  const peer = await server.peer(0);
  server.onFinalize(() => undefined);
  for (let round = 0; round < 5; round += 1) {
    stream.write(second());
    await peer.until(({ audioBytes }) => audioBytes === (round + 1) * 32_000);
    stream.finalize();
    system.advance(FINALIZE_WAIT_MS);
    assert.equal(received.events.length, round + 1);
  }
  await peer.until(({ controls }) => controls.length === 5);
  // Words it understood after all are told late rather than never.
  peer.result({ text: "hello", isFinal: true, fromFinalize: true, start: 0, duration: 5 });
  assert.deepEqual(await received.event("final", 5), final("hello"));
});

test("[SP45] a silent call keeps its recogniser connected with keep-alives; a call with audio sends none", async () => {
  const system = createManualSystem();
  const { server, stream } = await listening({ system });
  const peer = await server.peer(0);
  stream.write(second());
  await peer.until(({ audioBytes }) => audioBytes > 0);
  for (let count = 0; count < 6; count += 1) {
    system.advance(1000);
    stream.write(second());
  }
  await peer.until(({ audioBytes }) => audioBytes === 7 * 32_000);
  assert.deepEqual(peer.controls, []);
  system.advance(9000);
  await peer.until(({ controls }) => controls.length >= 2);
  assert.deepEqual(peer.controls, ["KeepAlive", "KeepAlive"]);
});

test("[SP46] a connection cut in mid-stream is reopened once with the audio that is not final", async () => {
  const system = createManualSystem();
  const { server, stream, received } = await listening({ system });
  const first = await server.peer(0);
  stream.write(second());
  await first.until(({ audioBytes }) => audioBytes === 32_000);
  first.result({ text: "Hello.", isFinal: true, start: 0, duration: 0.25 });
  first.result({ text: "book a" });
  await received.event("partial");
  first.cut();
  stream.write(second());
  const next = await server.peer(1);
  await next.until(({ audioBytes }) => audioBytes === 32_000 * 1.75);
  next.result({ text: "book a table" });
  await received.event("partial", 1);
  next.cut();
  const { error } = await received.event("failed");
  assert.match(error.message, /^Deepgram broke off the connection$/);
  assert.equal(error.retryable, true);
  // What was understood is kept as a piece.
  assert.deepEqual(received.events.slice(0, -1), [
    final("Hello."), { kind: "partial", text: "book a" }, { kind: "partial", text: "book a table" },
    final("book a table"),
  ]);
  const count = received.events.length;
  stream.write(second());
  stream.finalize();
  stream.close();
  assert.equal(received.events.length, count);
  assert.equal(server.peers.length, 2);
});

test("[SP46] while there is no connection the newest audio is kept, up to a bound", async () => {
  const { server, stream, received } = await listening();
  for (let count = 0; count < 60; count += 1) stream.write(second());
  const peer = await server.peer(0);
  stream.finalize();
  await received.event("final");
  assert.equal(peer.audioBytes, (BACKLOG_MS / 1000) * 32_000);
});

test("[SP47] a refused handshake fails with a reason that omits the key; after close there are no events", async () => {
  const refusing = await startDeepgramServer();
  closings.push(() => refusing.close());
  for (const [status, retryable, text] of [
    [401, false, "Deepgram refuses the key (401)"],
    [400, false, "Deepgram refused the connection (400): No such model"],
    [429, true, "Deepgram refused the connection (429): No such model"],
    [503, true, "Deepgram refused the connection (503): No such model"],
  ] as const) {
    refusing.refuse(status);
    const received = createReceived<TranscriptEvent>();
    const options = { url: refusing.url, key: KEY, model: "nova-3", system: createSystem(), log };
    createDeepgram(options).open({ rate: 8000, language: "en", languages: [], hints: [] }, received.receive);
    const { error } = await received.event("failed");
    assert.equal(error.message, text);
    assert.equal(error.retryable, retryable);
    assert.deepEqual(received.kinds(), ["failed"]);
  }
  const received = createReceived<TranscriptEvent>();
  const gone = await startDeepgramServer();
  await gone.close();
  const dead = { url: gone.url, key: KEY, model: "nova-3", system: createSystem(), log };
  createDeepgram(dead).open({ rate: 8000, language: "en", languages: [], hints: [] }, received.receive);
  assert.match((await received.event("failed")).error.message, /^Deepgram could not be reached: .*ECONN/);

  const { server, stream, received: closed } = await listening();
  const peer = await server.peer(0);
  stream.write(second());
  await peer.until(({ audioBytes }) => audioBytes > 0);
  stream.finalize();
  stream.close();
  stream.close();
  await peer.until(({ isClosed }) => isClosed);
  assert.deepEqual(peer.controls.slice(-1), ["CloseStream"]);
  assert.deepEqual(closed.events, []);
});

test("[SP47] a server that falls completely silent is given up", async () => {
  const system = createManualSystem();
  const { server, stream, received } = await listening({ system });
  const first = await server.peer(0);
  stream.write(second());
  await first.until(({ audioBytes }) => audioBytes > 0);
  first.freeze();
  system.advance(14_000);
  assert.deepEqual(received.events, []);
  system.advance(2000);
  assert.equal((await server.peer(1)).path, "/v1/listen");
  assert.deepEqual(received.events, []);
});

const HOSTILE: (string | Buffer)[] = [
  "", "null", "[]", "{", '"Results"', '{"type":"__proto__"}', '{"type":["Results"]}',
  "[".repeat(100_000), `${'{"a":'.repeat(30_000)}1${"}".repeat(30_000)}`,
  JSON.stringify({ type: "Results", start: "0", duration: 1, channel: { alternatives: [] } }),
  JSON.stringify({ type: "Results", start: 0, duration: 1, is_final: 1, channel: {} }),
  '{"type":"Results","start":1e999,"duration":1,"channel":{"alternatives":[]}}',
  '{"type":"Results","start":-1,"duration":1,"channel":{"alternatives":[]}}',
  '{"type":"TurnInfo","event":"constructor","transcript":"x"}',
  '{"type":"TurnInfo","event":"EndOfTurn","transcript":{"toString":null}}',
  '{"type":"Error","description":"a-key-of-the-vendor"}',
  Buffer.from('{"type":"Results"}'), Buffer.alloc(200_000),
];

test("[SP48] messages that are not transcripts, text or binary, are ignored and the stream continues", async () => {
  for (const flux of [false, true]) {
    const { server, stream, received } = await listening({ flux });
    const peer = await server.peer(0);
    stream.write(second());
    await peer.until(({ audioBytes }) => audioBytes > 0);
    for (const message of HOSTILE) peer.send(message);
    // An answer about audio far ahead, and one without words.
    if (!flux) peer.result({ text: "", isFinal: true, fromFinalize: true, start: 0, duration: 1e300 });
    if (flux) peer.turn("Update", "hello");
    else peer.send(JSON.stringify({
      type: "Results", start: 1, duration: 1, channel: { alternatives: [{ transcript: "hello" }] },
    }));
    assert.deepEqual(await received.event("partial"), { kind: "partial", text: "hello" });
    assert.deepEqual(received.kinds(), ["partial"]);
  }
});

test("[SP48] an oversized message ends the connection, not the process", async () => {
  const { server, received } = await listening();
  (await server.peer(0)).send(`"${"x".repeat(300_000)}"`);
  (await server.peer(1)).send(Buffer.alloc(300_000));
  assert.equal((await received.event("failed")).error.retryable, true);
  assert.deepEqual(received.kinds(), ["failed"]);
});

test("[SP49] Flux gets chunks of 80 ms and detects ends of turns", async () => {
  const { server, stream, received, transcriber } = await listening({ flux: true, hints: ["Parley"] });
  const peer = await server.peer(0);
  assert.equal(transcriber.detectsTurns, true);
  assert.equal(peer.path, "/v2/listen");
  assert.deepEqual(Object.fromEntries(peer.query), {
    model: "flux-general-en", encoding: "linear16", sample_rate: "16000", eot_threshold: "0.7",
    eager_eot_threshold: "0.4", keyterm: "Parley",
  });
  for (let frame = 0; frame < 8; frame += 1) stream.write(new Int16Array(320));
  await peer.until(({ audioBytes }) => audioBytes === 8 * 640);
  assert.deepEqual(peer.chunkBytes, [2560, 2560]);
  peer.turn("StartOfTurn", "");
  peer.turn("Update", "book a");
  peer.turn("Update", "Book a table");
  peer.turn("Update", "Book a table");
  peer.turn("Update", "Book a table for");
  peer.turn("EagerEndOfTurn", "Book a table for");
  peer.turn("TurnResumed", "Book a table for");
  peer.turn("EagerEndOfTurn", "Book a table for two.");
  peer.turn("EndOfTurn", "Book a table for two.");
  await received.event("end_of_turn");
  assert.deepEqual(received.events, [
    { kind: "partial", text: "book a" },
    { kind: "partial", text: "Book a table" },
    { kind: "partial", text: "Book a table for" },
    { kind: "end_of_turn_likely" },
    { kind: "partial", text: "Book a table for two." },
    { kind: "end_of_turn_likely" },
    final("Book a table for two."),
    { kind: "end_of_turn" },
  ]);
});

test("[SP49] finalize closes the segment with what Flux understood, and the rest follows once", async () => {
  const { server, stream, received } = await listening({ flux: true });
  const peer = await server.peer(0);
  stream.finalize();
  peer.turn("StartOfTurn", "book a");
  await received.event("partial");
  stream.finalize();
  peer.turn("Update", "Book, a table");
  await received.event("partial", 1);
  peer.turn("EndOfTurn", "Book, a table for two.");
  await received.event("end_of_turn");
  peer.turn("StartOfTurn", "Yes");
  await received.event("partial", 2);
  assert.deepEqual(received.events, [
    final(""),
    { kind: "partial", text: "book a" },
    final("book a"),
    { kind: "partial", text: "table" },
    final("table for two."),
    { kind: "end_of_turn" },
    { kind: "partial", text: "Yes" },
  ]);
});

test("[SP49] Flux gets silence while audio stalls, and a new connection when its own is cut", async () => {
  const system = createManualSystem();
  const { server, stream, received } = await listening({ flux: true, system });
  const peer = await server.peer(0);
  stream.write(second());
  await peer.until(({ audioBytes }) => audioBytes > 0);
  const before = peer.audioBytes;
  peer.turn("StartOfTurn", "hello");
  await received.event("partial");
  system.advance(1000);
  await peer.until(({ audioBytes }) => audioBytes >= before + 32_000);
  peer.cut();
  const next = await server.peer(1);
  // Whole chunks of it.
  await next.until(({ audioBytes }) => audioBytes === 12 * 2560);
  next.turn("EndOfTurn", "hello world");
  await received.event("end_of_turn");
  assert.deepEqual(received.events.slice(1), [final("hello world"), { kind: "end_of_turn" }]);
});
