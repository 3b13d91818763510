// Speech by Google Cloud, against a server that takes what the published schema of
// `SynthesizeSpeechRequest` (v1) has, and nothing else.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { monoWav } from "#audio/wav.ts";
import { createGoogleVoice } from "#providers/speech/google/google-voice.ts";
import type { SynthesisEvent, SynthesisOptions } from "#providers/speech/port.ts";
import { createReceived } from "#support/received.ts";
import { startVendorServer, type VendorPost } from "#support/vendors/vendor-socket-server.ts";

const KEY = "a-key-of-the-vendor";
const closings: (() => Promise<void> | void)[] = [];
after(async () => {
  for (const close of closings.reverse()) await close();
});

const strict = { additionalProperties: false };
const SynthesizeSpeechRequest = Type.Object({
  input: Type.Object({ text: Type.String({ minLength: 1 }) }, strict),
  voice: Type.Object({
    languageCode: Type.String({ pattern: "^[a-z]{2,3}-[A-Z]{2}$" }),
    name: Type.Optional(Type.String()),
    ssmlGender: Type.Optional(Type.Union([Type.Literal("MALE"), Type.Literal("FEMALE")])),
  }, strict),
  audioConfig: Type.Object({
    audioEncoding: Type.Literal("LINEAR16"),
    sampleRateHertz: Type.Integer(),
    speakingRate: Type.Number({ minimum: 0.25, maximum: 4 }),
  }, strict),
}, strict);

const SAMPLES = Int16Array.from([1, 2, 3]);
const VOICE: SynthesisOptions = {
  rate: 16_000, voice: null, gender: "female", language: "de", speed: 1.1, stability: 0.5,
  similarity: 0.5, hasEmotion: false,
};

function answer({ body, path, response }: VendorPost): void {
  const request: unknown = JSON.parse(body);
  if (path !== "/v1/text:synthesize" || !Value.Check(SynthesizeSpeechRequest, request)) {
    response.writeHead(400).end(JSON.stringify({ error: { message: `Bad ${KEY}` } }));
    return;
  }
  const wav = monoWav([SAMPLES], request.audioConfig.sampleRateHertz);
  response.end(JSON.stringify({ audioContent: Buffer.from(wav).toString("base64") }));
}

async function speaking(options: Partial<SynthesisOptions> = {}, onPost = answer) {
  const server = await startVendorServer({ onPost });
  closings.push(() => server.close());
  const synthesizer = createGoogleVoice({ url: server.url.replace("ws", "http"), key: KEY });
  const received = createReceived<SynthesisEvent>();
  const stream = synthesizer.open({ ...VOICE, ...options }, received.receive);
  stream.write("Eins & zwei. ");
  stream.write("Drei. ");
  stream.end();
  return { server, received };
}

test("[SP204] Google speaks sentence by sentence at the call's rate and pace, in the language's or the assistant's voice", async () => {
  const { received, server } = await speaking();
  await received.event("done");
  assert.deepEqual(received.events.filter(({ kind }) => kind !== "done"), [
    { kind: "audio", pcm: SAMPLES }, { kind: "spoken", chars: 13 },
    { kind: "audio", pcm: SAMPLES }, { kind: "spoken", chars: 19 },
  ]);
  assert.equal(server.posts[0]!.headers["x-goog-api-key"], KEY);
  assert.deepEqual(JSON.parse(server.posts[0]!.body), {
    input: { text: "Eins & zwei." }, voice: { languageCode: "de-DE", ssmlGender: "FEMALE" },
    audioConfig: { audioEncoding: "LINEAR16", sampleRateHertz: 16_000, speakingRate: 1.1 },
  });
  const named = await speaking({ voice: "en-GB-Chirp3-HD-Kore", rate: 8000, speed: 1 });
  await named.received.event("done");
  assert.deepEqual(JSON.parse(named.server.posts[0]!.body).voice,
    { languageCode: "en-GB", name: "en-GB-Chirp3-HD-Kore" });
});

test("[SP204] a refusal by Google, and a reply that is not audio, end the utterance with a reason that omits the key", async () => {
  const refused = await speaking({ language: "no-such" });
  const { error } = await refused.received.event("failed");
  assert.equal(error.message, "Google answered 400: Bad ***");
  for (const [body, reason] of [
    ["", "Google sent an unexpected answer"], ["{}", "Google sent an unexpected answer"],
  ] as const) {
    const odd = await speaking({}, ({ response }) => void response.end(body));
    assert.equal((await odd.received.event("failed")).error.message, reason);
  }
  const silent = await speaking({}, ({ response }) =>
    void response.end(JSON.stringify({ audioContent: Buffer.from("RIFFxxxx").toString("base64") })));
  await silent.received.event("done");
  assert.ok(!silent.received.kinds().includes("audio"));
});
