// Azure, which hears over the protocol of its Speech SDK and speaks over HTTP, against servers the
// SDK accepts.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import * as sdk from "microsoft-cognitiveservices-speech-sdk";
import { createLogger } from "#core/logger.ts";
import { createSystem } from "#core/system.ts";
import { createAzureEars } from "#providers/speech/azure/azure-ears.ts";
import { createAzureVoice } from "#providers/speech/azure/azure-voice.ts";
import type {
  SynthesisEvent, SynthesisOptions, TranscriptEvent, TranscriptionOptions,
} from "#providers/speech/port.ts";
import { createManualSystem } from "#support/manual-clock.ts";
import { createReceived } from "#support/received.ts";
import { AZURE, azureSound, KEY } from "#support/vendors/hearing-vendors.ts";
import { startVendorServer, type VendorPeer } from "#support/vendors/vendor-socket-server.ts";

const log = createLogger("silent");
const closings: (() => Promise<void> | void)[] = [];
after(async () => {
  for (const close of closings.reverse()) await close();
});

const second = () => new Int16Array(16_000).fill(7);
const HEARD: TranscriptionOptions = {
  rate: 16_000, language: "en", languages: ["en"], hints: ["Parley"],
};
const bodyOf = (text: string): unknown => JSON.parse(text.split("\r\n\r\n")[1]!);
/** Names of headers, without what is told of them. */
const namesOf = (headers: string): string[] =>
  headers.split("\r\n").filter((line) => line !== "").map((line) => line.split(":")[0]!);

async function listening(args: Partial<Parameters<typeof createAzureEars>[0]> = {}) {
  const server = await startVendorServer();
  closings.push(() => server.close());
  const received = createReceived<TranscriptEvent>();
  const stream = createAzureEars({
    url: server.url, key: KEY, system: createSystem(), log, ...args,
  }).open(HEARD, received.receive);
  closings.push(() => stream.close());
  return { received, stream, peer: await server.peer(0) };
}

test("[SP201] Azure's own SDK recognises speech with the test server, and the adaptor sends what the SDK sends", async () => {
  const server = await startVendorServer();
  closings.push(() => server.close());
  const config = sdk.SpeechConfig.fromHost(new URL(server.url), KEY);
  config.speechRecognitionLanguage = "en-US";
  config.setProfanity(sdk.ProfanityOption.Raw);
  const sound = sdk.AudioInputStream.createPushStream(
    sdk.AudioStreamFormat.getWaveFormatPCM(16_000, 16, 1));
  const recognizer = new sdk.SpeechRecognizer(config, sdk.AudioConfig.fromStreamInput(sound));
  sdk.PhraseListGrammar.fromRecognizer(recognizer).addPhrase("Parley");
  const heard = createReceived<{ kind: "partial" | "final"; text: string }>();
  recognizer.recognizing = (_, { result }) => heard.receive({ kind: "partial", text: result.text });
  recognizer.recognized = (_, { result }) => heard.receive({ kind: "final", text: result.text });
  await new Promise<void>((resolve, reject) =>
    recognizer.startContinuousRecognitionAsync(resolve, (why) => reject(new Error(why))));
  sound.write(second().buffer);
  const peer = await server.peer(0);
  const isAllThere = (one: VendorPeer) =>
    AZURE.heard(one).reduce((sum, bytes) => sum + bytes, 0) === 32_000;
  await peer.until(isAllThere);
  AZURE.say(peer, "hello", false);
  assert.deepEqual(await heard.event("partial"), { kind: "partial", text: "hello" });
  sound.close();
  await peer.until(AZURE.isAsked);
  AZURE.say(peer, "Hello there.", true);
  assert.deepEqual(await heard.event("final"), { kind: "final", text: "Hello there." });
  recognizer.close();

  const ours = await listening();
  ours.stream.write(second());
  ours.stream.finalize();
  await ours.peer.until(AZURE.isAsked);
  assert.ok(isAllThere(ours.peer));
  assert.equal(ours.peer.path, peer.path);
  for (const name of ["language", "format", "profanity"]) {
    assert.equal(ours.peer.query.get(name), peer.query.get(name), name);
  }
  // The settings of the connection, then those of the turn.
  for (const number of [0, 1]) {
    assert.deepEqual(namesOf(ours.peer.texts[number]!.split("\r\n\r\n")[0]!),
      namesOf(peer.texts[number]!.split("\r\n\r\n")[0]!));
  }
  assert.deepEqual(bodyOf(ours.peer.texts[1]!), bodyOf(peer.texts[1]!));
  for (const [at, index] of [[0, 0], [1, 1], [-1, -1]] as const) {
    assert.deepEqual(namesOf(azureSound(ours.peer.chunks.at(at)!).headers),
      namesOf(azureSound(peer.chunks.at(index)!).headers));
  }
});

test("[SP202] audio after the request waits for the end of the turn and starts the next on the same connection", async () => {
  const { peer, received, stream } = await listening();
  stream.write(second());
  AZURE.say(peer, "book a", false);
  await received.event("partial");
  stream.finalize();
  stream.write(second());
  stream.finalize();
  await peer.until(AZURE.isAsked);
  const turns = () => new Set(peer.chunks.map((chunk) =>
    /X-RequestId: (\w+)/.exec(azureSound(chunk).headers)![1]));
  assert.equal(turns().size, 1);
  AZURE.say(peer, "Book a table.", true);
  assert.deepEqual(await received.event("final"), { kind: "final", text: "Book a table." });
  await peer.until(({ chunks }) =>
    chunks.filter((chunk) => azureSound(chunk).bytes === 0).length === 2);
  assert.equal(turns().size, 2);
  assert.equal(AZURE.heard(peer).reduce((sum, bytes) => sum + bytes, 0), 64_000);
  AZURE.say(peer, "For two.", true);
  assert.deepEqual(await received.event("final", 1), { kind: "final", text: "For two." });
});

test("[SP202] a turn the service ends itself is followed by another; words of old turns are ignored", async () => {
  const { peer, received, stream } = await listening();
  // Whole messages: nothing of it is left for the next turn.
  stream.write(second().subarray(0, 960 * 16));
  await peer.until(({ audioBytes }) => audioBytes > 960 * 32);
  AZURE.say(peer, "One moment.", true);
  await received.event("final");
  await new Promise(setImmediate);
  // The turn is over: nothing is to be waited for.
  stream.finalize();
  await received.event("final", 1);
  const tell = (turn: string, body: object) => peer.send(
    `Path: speech.phrase\r\nX-RequestId: ${turn}\r\n\r\n${JSON.stringify(body)}`);
  tell("another", { RecognitionStatus: "Success", DisplayText: "Not this." });
  stream.write(second());
  await peer.until(({ texts }) => texts.length === 3);
  AZURE.say(peer, "and", false);
  await received.event("partial");
  const turn = /X-RequestId: (\w+)/.exec(peer.texts[2]!)![1]!;
  for (const status of ["NoMatch", "InitialSilenceTimeout"]) {
    tell(turn, { RecognitionStatus: status, DisplayText: "" });
  }
  tell(turn.toUpperCase(), { RecognitionStatus: "Success", DisplayText: "And now." });
  tell(turn, { RecognitionStatus: `Error ${KEY}` });
  const { error } = await received.event("failed");
  assert.equal(error.message, "Azure ended the recognition: Error ***");
  assert.deepEqual(received.events.flatMap((event) => event.kind === "final" ? [event.text] : []),
    ["One moment.", "", "And now."]);
});

test("[SP202] a turn that does not end ends the stream", async () => {
  const system = createManualSystem();
  const { peer, received, stream } = await listening({ system });
  stream.write(second());
  await peer.until(({ audioBytes }) => audioBytes > 30_000);
  stream.finalize();
  system.advance(1000);
  assert.deepEqual(received.events, [{ kind: "final", text: "" }]);
  system.advance(4000);
  const { error } = await received.event("failed");
  assert.equal(error.message, "Azure did not end a turn within 5000 ms");
});

const VOICE: SynthesisOptions = {
  rate: 16_000, voice: "de-DE-KatjaNeural", gender: "female", language: "de", speed: 1,
  stability: 0.5, similarity: 0.5, hasEmotion: false,
};

async function speaking(options: Partial<SynthesisOptions>, texts: string[]) {
  const server = await startVendorServer({
    onPost: ({ response }) => response.end(Buffer.from(Int16Array.from([1, 2, 3]).buffer)),
  });
  closings.push(() => server.close());
  const synthesizer = createAzureVoice({ url: server.url.replace("ws", "http"), key: KEY });
  const received = createReceived<SynthesisEvent>();
  const stream = synthesizer.open({ ...VOICE, ...options }, received.receive);
  for (const text of texts) stream.write(text);
  stream.end();
  return { server, received, synthesizer };
}

test("[SP203] Azure speaks sentence by sentence at the call's rate, in the SSML its SDK would write", async () => {
  const { received, server, synthesizer } = await speaking({}, ["A <b> & \"c\". ", "Zwei. "]);
  await received.event("done");
  assert.equal(synthesizer.name, "Azure");
  assert.deepEqual(received.events.filter(({ kind }) => kind !== "done"), [
    { kind: "audio", pcm: Int16Array.from([1, 2, 3]) }, { kind: "spoken", chars: 13 },
    { kind: "audio", pcm: Int16Array.from([1, 2, 3]) }, { kind: "spoken", chars: 19 },
  ]);
  const [post] = server.posts;
  assert.equal(post!.path, "/cognitiveservices/v1");
  assert.deepEqual(
    ["ocp-apim-subscription-key", "content-type", "x-microsoft-outputformat", "user-agent"]
      .map((name) => post!.headers[name]),
    [KEY, "application/ssml+xml", "raw-16khz-16bit-mono-pcm", "Parley"]);
  const config = sdk.SpeechConfig.fromSubscription(KEY, "westeurope");
  config.speechSynthesisVoiceName = "de-DE-KatjaNeural";
  config.speechSynthesisLanguage = "de-DE";
  const theirs = new sdk.SpeechSynthesizer(config, null as never);
  const emotions = " xmlns:emo='http://www.w3.org/2009/10/emotionml'";
  assert.equal(post!.body, theirs.buildSsml('A <b> & "c".').replace(emotions, ""));
  theirs.close();
});

test("[SP203] a voice Azure lacks becomes the nearest that speaks the language, at the requested pace", async () => {
  const { received, server } = await speaking(
    { voice: null, gender: "male", language: "no", speed: 1.1, rate: 8000 }, ["Hei\u0001. "]);
  await received.event("done");
  const [post] = server.posts;
  assert.equal(post!.headers["x-microsoft-outputformat"], "raw-8khz-16bit-mono-pcm");
  assert.match(post!.body, /xml:lang='nb-NO'><voice name='en-US-AndrewMultilingualNeural'>/);
  assert.match(post!.body, /<lang xml:lang='nb-NO'><prosody rate='\+10%'>Hei \.<\/prosody><\/lang>/);
});

test("[SP203] a refused key ends the utterance with the reason", async () => {
  const server = await startVendorServer();
  closings.push(() => server.close());
  server.refuse(401);
  const received = createReceived<SynthesisEvent>();
  const stream = createAzureVoice({ url: server.url.replace("ws", "http"), key: KEY })
    .open(VOICE, received.receive);
  stream.write("Eins. ");
  const { error } = await received.event("failed");
  assert.equal(error.message, "Azure answered 401");
  assert.equal(error.retryable, false);
});
