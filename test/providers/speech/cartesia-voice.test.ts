// Speech by Cartesia, against a server that says what it says; Cartesia's own SDK accepts it.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import Cartesia from "@cartesia/cartesia-js";
import { createLogger } from "#core/logger.ts";
import { createSystem, type System } from "#core/system.ts";
import { createCartesiaVoice } from "#providers/speech/cartesia/cartesia-voice.ts";
import { ANSWER_MS } from "#providers/speech/synthesis-link.ts";
import type { SynthesisEvent, SynthesisOptions } from "#providers/speech/port.ts";
import { createManualSystem } from "#support/manual-clock.ts";
import { createReceived } from "#support/received.ts";
import { selfSignedCertificate } from "#support/vendors/realtime-server.ts";
import { startVendorServer, type VendorPeer } from "#support/vendors/vendor-socket-server.ts";

const KEY = "a-key-of-the-vendor";
const closings: (() => Promise<void> | void)[] = [];
after(async () => {
  for (const close of closings.reverse()) await close();
});

const VOICE: SynthesisOptions = {
  rate: 8000, voice: null, gender: "female", language: "de", speed: 1.1, stability: 0.5,
  similarity: 0.5, hasEmotion: false,
};
const chunkOf = (ms: number, context = "utterance"): object => ({
  type: "chunk", data: Buffer.alloc(ms * 16, 1).toString("base64"), done: false, status_code: 206,
  step_time: 1, context_id: context,
});
const timesOf = (words: string[], end: number[], context = "utterance"): object => ({
  type: "timestamps", done: false, status_code: 206, context_id: context,
  word_timestamps: { words, start: end.map((at) => at - 0.1), end },
});
const doneOf = (context = "utterance"): object =>
  ({ type: "done", done: true, status_code: 206, context_id: context });

async function speaking(system: System = createSystem()) {
  const server = await startVendorServer();
  closings.push(() => server.close());
  const synthesizer = createCartesiaVoice({
    url: server.url, key: KEY, model: "sonic-3", system, log: createLogger("silent"),
  });
  const received = createReceived<SynthesisEvent>();
  const stream = synthesizer.open(VOICE, received.receive);
  closings.push(() => stream.cancel());
  return { server, received, stream, peer: await server.peer(0) };
}

const asked = ({ texts }: VendorPeer): Record<string, unknown>[] =>
  texts.map((text) => JSON.parse(text) as Record<string, unknown>);

test("[SP165] Cartesia's own SDK speaks with the test server", async () => {
  const server = await startVendorServer({
    tls: await selfSignedCertificate(),
    onText: (peer, text) => {
      const { context_id: context, continue: goesOn } = JSON.parse(text) as
        { context_id: string; continue: boolean };
      if (goesOn) return;
      peer.send(timesOf(["Hello"], [0.1], context));
      peer.send(chunkOf(100, context));
      peer.send(doneOf(context));
    },
  });
  closings.push(() => server.close());
  const client = new Cartesia({ apiKey: KEY, baseURL: server.url.replace("wss", "https") });
  // The SDK has no way to give it a certificate.
  process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0";
  const socket = await client.tts.websocket();
  delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
  const context = socket.context({
    model_id: "sonic-3", voice: { mode: "id", id: "x" }, language: "en", add_timestamps: true,
    output_format: { container: "raw", encoding: "pcm_s16le", sample_rate: 8000 },
  });
  await context.push({ transcript: "Hello" });
  await context.no_more_inputs();
  const types: string[] = [];
  for await (const event of context.receive()) types.push(event.type);
  assert.deepEqual(types, ["timestamps", "chunk", "done"]);
  socket.close();
});

test("[SP166] sentences are requested as they come, in the call's voice, rate and language", async () => {
  const { peer, received, stream } = await speaking();
  const text = "Good day. How are you? ";
  stream.write("Good day. ");
  stream.write("How are you? ");
  stream.end();
  await peer.until(({ texts }) => texts.length === 3);
  assert.equal(peer.path, "/tts/websocket");
  assert.equal(peer.headers["x-api-key"], KEY);
  assert.deepEqual(asked(peer)[0], {
    model_id: "sonic-3", voice: { mode: "id", id: "9626c31c-bec5-4cca-baa8-f8ba9e84c8bc" },
    language: "de", generation_config: { speed: 1.1 }, context_id: "utterance",
    output_format: { container: "raw", encoding: "pcm_s16le", sample_rate: 8000 },
    add_timestamps: true, max_buffer_delay_ms: 0, transcript: "Good day. ", continue: true,
  });
  assert.deepEqual(asked(peer).map(({ continue: goesOn, transcript }) => [transcript, goesOn]),
    [["Good day. ", true], ["How are you? ", true], ["", false]]);
  peer.send(timesOf(["Good", "day.", "How"], [0.1, 0.2, 0.35]));
  peer.send(chunkOf(150));
  await received.event("spoken");
  peer.send(chunkOf(60));
  await received.event("spoken", 1);
  peer.send(chunkOf(200));
  peer.send(doneOf());
  await received.event("done");
  const told = received.events.map((event) => event.kind === "audio"
    ? event.pcm.length / 8
    : event.kind === "spoken" ? text.slice(0, event.chars) : event.kind);
  assert.deepEqual(told, [150, "Good", 60, "Good day.", 200, "Good day. How", text, "done"]);
});

test("[SP167] errors, cuts and silence end an utterance with the reason, malformed messages do not", async () => {
  const { peer, received, stream } = await speaking();
  stream.write("Good day. ");
  for (const message of [
    "", "null", "[]", "{", '{"type":"chunk"}', '{"type":"chunk","data":"!!"}',
    '{"type":"chunk","data":"AAAA"}', '{"type":"timestamps","word_timestamps":{"words":[7],"end":[]}}',
    '{"type":"done"}', Buffer.alloc(100),
  ]) peer.send(message);
  peer.send(chunkOf(20));
  await received.event("audio");
  peer.send({ type: "error", status_code: 400, message: `No such voice ${KEY}`, done: true });
  const { error } = await received.event("failed");
  assert.match(error.message, /^Cartesia reported an error: No such voice (?!.*a-key)/);
  assert.equal(error.retryable, false);
  assert.deepEqual(received.kinds(), ["audio", "failed"]);

  const cut = await speaking();
  cut.stream.write("Good day. ");
  await cut.peer.until(({ texts }) => texts.length === 1);
  cut.peer.cut();
  assert.match((await cut.received.event("failed")).error.message, /broke off the connection$/);

  const system = createManualSystem();
  const silent = await speaking(system);
  silent.stream.write("Good day. ");
  await silent.peer.until(({ texts }) => texts.length === 1);
  system.advance(ANSWER_MS);
  assert.match((await silent.received.event("failed")).error.message, /sent no speech for 8000 ms$/);

  const dropped = await speaking();
  dropped.stream.write("Good day. ");
  await dropped.peer.until(({ texts }) => texts.length === 1);
  dropped.stream.cancel();
  await dropped.peer.until(({ isClosed }) => isClosed);
  assert.deepEqual(asked(dropped.peer).at(-1), { context_id: "utterance", cancel: true });
  assert.deepEqual(dropped.received.events, []);
});
