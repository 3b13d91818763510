// Speech and recognition over OpenAI's HTTP interface, against a server OpenAI's own SDK accepts.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import OpenAI, { toFile } from "openai";
import { monoWav } from "#audio/wav.ts";
import { createLogger } from "#core/logger.ts";
import { createSystem } from "#core/system.ts";
import { createOpenAiSpeech } from "#providers/speech/openai/openai-speech.ts";
import { createOpenAiTranscription } from "#providers/speech/openai/openai-transcription.ts";
import type { VendorHttpLimits } from "#providers/speech/vendor-http.ts";
import type { SynthesisEvent, TranscriptEvent } from "#providers/speech/port.ts";
import { createReceived } from "#support/received.ts";
import { startOpenAiAudioServer } from "#support/vendors/openai-audio-server.ts";

const KEY = "a-key-of-the-vendor";
const common = { key: KEY, model: "a-model", system: createSystem(), log: createLogger("silent") };
const closings: (() => Promise<void> | void)[] = [];
after(async () => {
  for (const close of closings.reverse()) await close();
});

const LOUD = new Int16Array(320).fill(9000);
const QUIET = new Int16Array(320);

async function started() {
  const server = await startOpenAiAudioServer();
  closings.push(() => server.close());
  return server;
}

async function speaking(
  args: {
    rate?: number; voice?: string | null; hasEmotion?: boolean;
    limits?: Partial<VendorHttpLimits>;
  } = {},
) {
  const server = await started();
  const { limits = {}, rate = 24_000, voice = null, hasEmotion = false } = args;
  const synthesizer = createOpenAiSpeech({ ...common, url: server.url, voice, limits });
  const received = createReceived<SynthesisEvent>();
  const stream = synthesizer.open({
    rate, voice: "nova", gender: "female", language: "en", speed: 1.1, stability: 1, similarity: 1,
    hasEmotion,
  }, received.receive);
  closings.push(() => stream.cancel());
  return { server, stream, received };
}

async function hearing(hints: string[] = [], languages: string[] = []) {
  const server = await started();
  const transcriber = createOpenAiTranscription({ ...common, url: server.url });
  const received = createReceived<TranscriptEvent>();
  const stream = transcriber.open({ rate: 16_000, language: "de", languages, hints }, received.receive);
  closings.push(() => stream.close());
  const hear = (frame: Int16Array, ms: number): void => {
    for (let heard = 0; heard < ms; heard += 20) {
      stream.write(frame);
      // Loud is speech.
      stream.voiced?.(frame === LOUD ? 1 : 0, 20);
    }
  };
  return { server, stream, received, hear };
}

const pcmOf = (samples: number[]): Buffer => Buffer.from(Int16Array.from(samples).buffer);
const heardIn = (events: SynthesisEvent[]): number[] =>
  events.flatMap((event) => (event.kind === "audio" ? [...event.pcm] : []));

test("[SP70] OpenAI's own SDK speaks and recognises with the test server", async () => {
  const server = await started();
  const client = new OpenAI({ apiKey: KEY, baseURL: server.url, maxRetries: 0 });
  const speech = await client.audio.speech.create({
    model: "tts-1", voice: "alloy", input: "Hello.", response_format: "pcm",
  });
  assert.equal((await speech.arrayBuffer()).byteLength, 4800);
  const file = await toFile(monoWav([LOUD], 16_000), "speech.wav", { type: "audio/wav" });
  const { text } = await client.audio.transcriptions.create({ model: "whisper-1", file });
  assert.equal(text, "hello there");
  assert.equal(server.transcriptions[0]?.seconds, 0.02);
  server.onSpeech = ({ response }) => {
    response.writeHead(401, { "content-type": "application/json" })
      .end(JSON.stringify({ error: { message: "Incorrect API key provided" } }));
  };
  const refused = client.audio.speech.create({ model: "tts-1", voice: "alloy", input: "Hello." });
  await assert.rejects(refused, /Incorrect API key provided/);
});

test("[SP71] pieces are requested two at a time and delivered in order, each with its mark", async () => {
  const { server, stream, received } = await speaking();
  server.onSpeech = () => undefined;
  const texts = ["One. ", "Two. ", "Three. "];
  for (const text of texts) stream.write(text);
  stream.end();
  await server.came.event("speech", 1);
  const { authorization, body } = server.speeches[0]!;
  assert.equal(authorization, `Bearer ${KEY}`);
  assert.deepEqual(body, {
    model: "a-model", voice: "nova", input: "One.", speed: 1.1, response_format: "pcm",
  });
  // The second is there before the first, which comes in odd pieces.
  server.speeches[1]!.response.end(pcmOf([4, 5]));
  const bytes = pcmOf([1, 2, 3]);
  const first = server.speeches[0]!.response;
  first.write(bytes.subarray(0, 1));
  await new Promise(setImmediate);
  first.write(bytes.subarray(1, 4));
  await new Promise(setImmediate);
  first.end(bytes.subarray(4));
  await received.event("spoken", 1);
  await server.came.event("speech", 2);
  server.speeches[2]!.response.end(pcmOf([6]));
  await received.event("done");
  assert.deepEqual(heardIn(received.events), [1, 2, 3, 4, 5, 6]);
  assert.deepEqual(
    received.events.filter(({ kind }) => kind === "spoken"),
    [5, 10, 17].map((chars) => ({ kind: "spoken", chars })));
  assert.equal(received.events.at(-1)?.kind, "done");
});

test("[SP72] the operator's voice setting overrides the assistant's voice; other rates are resampled", async () => {
  const { server, stream, received } = await speaking({ rate: 8000, voice: "af_heart" });
  server.onSpeech = ({ response }) => void response.end(Buffer.alloc(48_000));
  stream.write("One. ");
  stream.end();
  await received.event("done");
  assert.equal(server.speeches[0]?.body.voice, "af_heart");
  assert.ok(Math.abs(heardIn(received.events).length - 8000) < 40);
});

test("[SP128] emotion is requested only for voices that have it", async () => {
  for (const hasEmotion of [true, false]) {
    const { server, stream, received } = await speaking({ hasEmotion });
    server.onSpeech = ({ response }) => void response.end(Buffer.alloc(480));
    stream.write("One. ");
    stream.end();
    await received.event("done");
    assert.equal("instructions" in (server.speeches[0]?.body ?? {}), hasEmotion);
  }
});

test("[SP73] a refusal is reported once, without the key; a broken connection is retried", async () => {
  const refused = await speaking();
  refused.server.onSpeech = ({ response }) =>
    void response.writeHead(401).end(JSON.stringify({ error: `no such key ${KEY}` }));
  refused.stream.write("One. ");
  refused.stream.write("Two. ");
  const { error } = await refused.received.event("failed");
  assert.equal(error.message, "the speech server answered 401: no such key ***");
  assert.equal(error.retryable, false);
  refused.stream.end();
  assert.deepEqual(refused.received.kinds(), ["failed"]);

  const broken = await speaking();
  broken.server.onSpeech = ({ response }) => {
    if (broken.server.speeches.length === 1) response.destroy();
    else response.end(pcmOf([7]));
  };
  broken.stream.write("One. ");
  broken.stream.end();
  await broken.received.event("done");
  assert.deepEqual(heardIn(broken.received.events), [7]);

  const silent = await speaking({ limits: { firstByteMs: 300 } });
  silent.server.onSpeech = () => undefined;
  silent.stream.write("One. ");
  const { error: late } = await silent.received.event("failed");
  assert.match(late.message, /UND_ERR_HEADERS_TIMEOUT/);
  assert.equal(silent.server.speeches.length, 2);

  const half = await speaking();
  half.server.onSpeech = ({ response }) => {
    response.write(pcmOf([1, 2]));
    setImmediate(() => response.destroy());
  };
  half.stream.write("One. ");
  await half.received.event("failed");
  assert.equal(half.server.speeches.length, 1, "what was begun to be said is not said twice");

  const endless = await speaking({ limits: { responseBytesMax: 1000 } });
  endless.server.onSpeech = ({ response }) => void response.end(Buffer.alloc(100_000));
  endless.stream.write("One. ");
  await endless.received.event("failed");
});

test("[SP74] cancel drops the request, and no events follow", async () => {
  const { server, stream, received } = await speaking();
  server.onSpeech = ({ response }) => void response.write(pcmOf([1]));
  stream.write("One. ");
  await received.event("audio");
  const gone = new Promise((resolve) => server.speeches[0]!.response.on("close", resolve));
  stream.cancel();
  await gone;
  stream.write("Two. ");
  stream.end();
  await new Promise(setImmediate);
  assert.deepEqual(received.kinds(), ["audio"]);
  assert.equal(server.speeches.length, 1);
});

test("[SP75] speech is sent at the pause with the audio just before it; silence is not sent", async () => {
  const { server, stream, received, hear } = await hearing(["Parley", "Vapi"]);
  hear(QUIET, 60_000);
  stream.finalize();
  await received.event("final");
  assert.equal(server.transcriptions.length, 0);
  hear(LOUD, 600);
  hear(QUIET, 200);
  stream.finalize();
  const final = await received.event("final", 1);
  assert.deepEqual(final, { kind: "final", text: "hello there" });
  const [request] = server.transcriptions;
  assert.equal(request?.authorization, `Bearer ${KEY}`);
  assert.deepEqual(request.fields, {
    model: "a-model", language: "de", response_format: "json", prompt: "Parley, Vapi",
  });
  assert.ok(request.seconds >= 1.1 && request.seconds <= 1.25, String(request.seconds));
});

test("[SP76] during long speech partials come at doubling intervals; a pause ends the segment", async () => {
  const { server, stream, received, hear } = await hearing();
  hear(LOUD, 1500);
  assert.equal((await received.event("partial")).text, "hello there");
  hear(LOUD, 2000);
  await received.event("partial", 1);
  // One that is on its way when the final text is asked for is dropped.
  const begun = Promise.withResolvers<void>();
  server.onTranscription = (_, response) => {
    server.onTranscription = (__, next) => void next.end(JSON.stringify({ text: "all of it" }));
    response.on("close", () => begun.resolve());
  };
  hear(LOUD, 3000);
  await server.came.event("transcription", 2);
  stream.finalize();
  await begun.promise;
  assert.deepEqual((await received.event("final")).text, "all of it");
  assert.equal(received.kinds().filter((kind) => kind === "partial").length, 2);
  assert.ok(server.transcriptions.at(-1)!.seconds >= 6.5);
  hear(QUIET, 100);
  stream.finalize();
  assert.equal((await received.event("final", 1)).text, "");
  assert.equal(server.transcriptions.length, 4);
});

test("[SP77] final texts come in the order of their requests", async () => {
  const { server, stream, received, hear } = await hearing();
  const held: (() => void)[] = [];
  server.onTranscription = (_, response) => {
    const text = ["one", "two"][held.length];
    held.push(() => void response.end(JSON.stringify({ text })));
  };
  hear(LOUD, 400);
  stream.finalize();
  await server.came.event("transcription");
  hear(LOUD, 400);
  stream.finalize();
  await server.came.event("transcription", 1);
  held[1]!();
  held[0]!();
  await received.event("final", 1);
  assert.deepEqual(received.events.map((event) => (event.kind === "final" ? event.text : "")), ["one", "two"]);
});

test("[SP78] a lost segment becomes an empty text; a refused key or three lost segments end the stream", async () => {
  const { server, stream, received, hear } = await hearing();
  server.onTranscription = (_, response) => void response.writeHead(503).end();
  for (const number of [0, 1]) {
    hear(LOUD, 400);
    stream.finalize();
    assert.equal((await received.event("final", number)).text, "");
  }
  assert.equal(server.transcriptions.length, 4, "each is tried twice");
  hear(LOUD, 400);
  stream.finalize();
  const { error } = await received.event("failed");
  assert.match(error.message, /answered 503/);

  const refused = await hearing();
  refused.server.onTranscription = (_, response) => void response.writeHead(401).end(KEY);
  refused.hear(LOUD, 400);
  refused.stream.finalize();
  const { error: why } = await refused.received.event("failed");
  assert.equal(why.message, "the speech server answered 401: ***");
  for (const answer of ["", "{}", "[]", "null", `{"text":5}`, "<html>"]) {
    const odd = await hearing();
    odd.server.onTranscription = (_, response) => void response.end(answer);
    odd.hear(LOUD, 400);
    odd.stream.finalize();
    await odd.received.event("failed");
  }
});

test("[SP79] minutes without a pause are recognised in parts; closing drops pending requests", async () => {
  const { server, stream, received, hear } = await hearing();
  hear(LOUD, 61_000);
  await received.event("final", 1);
  assert.ok(server.transcriptions.every(({ seconds }) => seconds <= 30));
  const begun = Promise.withResolvers<void>();
  const gone = Promise.withResolvers<void>();
  server.onTranscription = (_, response) => {
    begun.resolve();
    response.on("close", () => gone.resolve());
  };
  stream.finalize();
  await begun.promise;
  const count = received.events.length;
  stream.close();
  await gone.promise;
  hear(LOUD, 2000);
  assert.equal(received.events.length, count);
});
