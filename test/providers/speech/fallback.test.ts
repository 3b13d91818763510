// What a call hears and says while its vendors fail in the middle of words: real protocols, and
// sockets that are cut.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import fc from "fast-check";
import { createLogger } from "#core/logger.ts";
import { createSystem, type System } from "#core/system.ts";
import { createAzureVoice } from "#providers/speech/azure/azure-voice.ts";
import { createDeepgram } from "#providers/speech/deepgram/deepgram.ts";
import { createElevenLabs } from "#providers/speech/elevenlabs/elevenlabs.ts";
import { AudioTail } from "#providers/speech/fallback/audio-tail.ts";
import { REST_MS } from "#providers/speech/fallback/candidates.ts";
import { enduringSynthesizers, enduringTranscribers } from "#providers/speech/fallback/enduring.ts";
import { createGoogleVoice } from "#providers/speech/google/google-voice.ts";
import { createWordDecoder, loopbackAudio } from "#providers/speech/loopback.ts";
import { createOpenAiSpeech } from "#providers/speech/openai/openai-speech.ts";
import { createOpenAiTranscription } from "#providers/speech/openai/openai-transcription.ts";
import type {
  SynthesisEvent, SynthesisOptions, Synthesizer, Transcriber, TranscriptEvent,
} from "#providers/speech/port.ts";
import { createManualSystem } from "#support/manual-clock.ts";
import { createReceived, type Received } from "#support/received.ts";
import {
  startDeepgramServer, type DeepgramPeer, type DeepgramServer,
} from "#support/vendors/deepgram-server.ts";
import { speechOf, startElevenLabsServer } from "#support/vendors/elevenlabs-server.ts";
import { HEARING_VENDORS } from "#support/vendors/hearing-vendors.ts";
import { startOpenAiAudioServer } from "#support/vendors/openai-audio-server.ts";
import { startVendorServer } from "#support/vendors/vendor-socket-server.ts";

const RATE = 16_000;
const FRAME = RATE / 50;
const KEY = "a-key-of-the-vendor";
const log = createLogger("silent");
const closings: (() => Promise<void> | void)[] = [];
after(async () => {
  for (const close of closings.reverse()) await close();
});

/** Makes the server understand the speech made of numbers, every third word at once for good. */
function understanding(server: DeepgramServer): void {
  const ears = new Map<DeepgramPeer, { hear(pcm: Int16Array): void; finish(): void }>();
  const earOf = (peer: DeepgramPeer) => {
    let samples = 0;
    let finalS = 0;
    let words: string[] = [];
    const say = (isFinal: boolean, fromFinalize = false): void => {
      const duration = samples / RATE - finalS;
      peer.result({ text: words.join(" "), isFinal, fromFinalize, start: finalS, duration });
      if (isFinal) [finalS, words] = [samples / RATE, []];
    };
    const decoder = createWordDecoder(RATE, ({ text, frames, of }) => {
      if (frames === of) words.push(text);
      say(words.length === 3);
    });
    return {
      hear: (pcm: Int16Array) => {
        for (let at = 0; at < pcm.length; at += FRAME) {
          const frame = pcm.subarray(at, at + FRAME);
          samples += frame.length;
          decoder.write(frame);
        }
      },
      finish: () => {
        decoder.end();
        say(true, true);
      },
    };
  };
  const known = (peer: DeepgramPeer) => {
    const ear = ears.get(peer) ?? earOf(peer);
    ears.set(peer, ear);
    return ear;
  };
  server.onAudio((peer, pcm) => known(peer).hear(pcm));
  server.onFinalize((peer) => known(peer).finish());
}

async function vendors(count: number): Promise<DeepgramServer[]> {
  const servers = await Promise.all(Array.from({ length: count }, () => startDeepgramServer()));
  for (const server of servers) {
    closings.push(() => server.close());
    understanding(server);
  }
  return servers;
}

/** All of them as one recogniser; their codes are their numbers. */
function heardBy(servers: DeepgramServer[], system: System = createSystem()): Transcriber {
  const engines = servers.map(({ url }) =>
    createDeepgram({ url, key: KEY, model: "nova-3", system, log }));
  const codes = servers.map((_, number) => String(number));
  return enduringTranscribers((code) => engines[Number(code)]!, () => codes, { system, log })("0");
}

function listening(transcriber: Transcriber) {
  const received = createReceived<TranscriptEvent>();
  const stream = transcriber.open(
    { rate: RATE, language: "en", languages: ["en"], hints: [] }, received.receive);
  closings.push(() => stream.close());
  return { stream, received };
}

const finals = ({ events }: Received<TranscriptEvent>): string =>
  events.flatMap((event) => (event.kind === "final" && event.text !== "" ? [event.text] : []))
    .join(" ");

const SENTENCE = "I would like to book a table for seven tomorrow evening please";

test("[SP150] a vendor cut off in mid-word loses and doubles no word: the next one hears it", async () => {
  const pcm = loopbackAudio(SENTENCE, RATE);
  const frames = Array.from({ length: pcm.length / FRAME }, (_, at) =>
    pcm.subarray(at * FRAME, (at + 1) * FRAME));
  // A point in each word, and the last frame of all.
  const points = Array.from(
    { length: 16 }, (_, at) => Math.floor((frames.length * (at + 0.5)) / 16));
  for (const cutAt of [...points, frames.length - 1]) {
    const [first, next] = await vendors(2);
    const { stream, received } = listening(heardBy([first!, next!]));
    const peer = await first!.peer(0);
    for (const [at, frame] of frames.entries()) {
      stream.write(frame);
      if (at !== cutAt) continue;
      await peer.until(({ audioBytes }) => audioBytes === (at + 1) * FRAME * 2);
      first!.refuse(503);
      peer.cut();
      await peer.until(({ isClosed }) => isClosed);
    }
    stream.finalize();
    await next!.peer(0);
    for (let number = 0; finals(received) !== SENTENCE; number += 1) {
      await received.event("final", number);
    }
    assert.equal(finals(received), SENTENCE, `cut at frame ${cutAt}`);
    assert.ok(!received.kinds().includes("failed"));
    assert.deepEqual(received.events.filter(({ kind }) => kind === "replaced"),
      [{ kind: "replaced", detectsTurns: false }]);
    stream.close();
  }
});

for (const vendor of HEARING_VENDORS) {
  test(`[SP150] ${vendor.name} cut off in mid-word is followed by the next, which hears all of it`, async () => {
    const first = await startVendorServer(vendor.script);
    closings.push(() => first.close());
    const [next] = await vendors(1);
    const system = createSystem();
    const engines: Record<string, Transcriber> = {
      first: vendor.create({ url: first.url, key: KEY, model: vendor.model, system, log }),
      next: createDeepgram({ url: next!.url, key: KEY, model: "nova-3", system, log }),
    };
    const { stream, received } = listening(enduringTranscribers(
      (code) => engines[code]!, () => Object.keys(engines), { system, log })("first"));
    const peer = await first.peer(0);
    const pcm = loopbackAudio(SENTENCE, RATE);
    const half = FRAME * Math.floor(pcm.length / FRAME / 2) + 1;
    stream.write(pcm.subarray(0, half));
    vendor.say(peer, "I would like", false);
    await received.event("partial");
    first.refuse(503);
    peer.cut();
    await received.event("replaced");
    stream.write(pcm.subarray(half));
    stream.finalize();
    for (let number = 0; finals(received) !== SENTENCE; number += 1) {
      await received.event("final", number);
    }
    assert.ok(!received.kinds().includes("failed"));
    stream.close();
  });
}

test("[SP151] the same vendor is retried once if it had worked, and rehears what is not final", async () => {
  const [only] = await vendors(1);
  const { stream, received } = listening(heardBy([only!]));
  const peer = await only!.peer(0);
  const pcm = loopbackAudio("one two three four", RATE);
  const half = pcm.length - FRAME * 10;
  stream.write(pcm.subarray(0, half));
  await received.event("final");
  peer.cut();
  const again = await only!.peer(1);
  stream.write(pcm.subarray(half));
  stream.finalize();
  await received.event("final", 1);
  assert.equal(finals(received), "one two three four");
  assert.ok(again.audioBytes < pcm.length * 2, "what was final is not heard again");
  again.cut();
  assert.equal((await received.event("failed")).error.message, "Deepgram broke off the connection");
  assert.equal(only!.peers.length, 2);
});

test("[SP152] a final text requested from a vendor that dies is delivered by the next one", async () => {
  const [first, next] = await vendors(2);
  const { stream, received } = listening(heardBy([first!, next!]));
  const peer = await first!.peer(0);
  first!.onFinalize(() => undefined);
  stream.write(loopbackAudio("yes please", RATE));
  await received.event("partial");
  stream.finalize();
  await peer.until(({ controls }) => controls.length === 1);
  first!.refuse(503);
  peer.cut();
  assert.deepEqual(await received.event("final"), { kind: "final", text: "yes please" });
});

test("[SP152] a recogniser of whole recordings gets all speech and no silence", async () => {
  const [first] = await vendors(1);
  const openAi = await startOpenAiAudioServer();
  closings.push(() => openAi.close());
  const system = createSystem();
  const engines: Record<string, Transcriber> = {
    deepgram: createDeepgram({ url: first!.url, key: KEY, model: "nova-3", system, log }),
    "openai-compatible": createOpenAiTranscription({
      url: openAi.url, key: KEY, model: "whisper-1", system, log,
    }),
  };
  const codes = Object.keys(engines);
  const { stream, received } = listening(enduringTranscribers(
    (code) => engines[code]!, () => codes, { system, log })("deepgram"));
  const peer = await first!.peer(0);
  const pcm = loopbackAudio("one two", RATE);
  for (let at = 0; at < pcm.length; at += FRAME) {
    stream.write(pcm.subarray(at, at + FRAME));
    stream.voiced?.(1, 20);
  }
  await peer.until(({ audioBytes }) => audioBytes === pcm.length * 2);
  first!.refuse(503);
  peer.cut();
  await received.event("replaced");
  stream.finalize();
  assert.deepEqual(await received.event("final"), { kind: "final", text: "hello there" });
  assert.deepEqual(openAi.transcriptions.map(({ seconds }) => seconds), [pcm.length / RATE]);
  stream.finalize();
  assert.deepEqual(await received.event("final", 1), { kind: "final", text: "" });
  assert.equal(openAi.transcriptions.length, 1);
});

test("[SP153] a failed engine rests: the next calls start with another, later ones return to it", async () => {
  const [first, next] = await vendors(2);
  const system = createManualSystem();
  const transcriber = heardBy([first!, next!], system);
  first!.refuse(401);
  listening(transcriber);
  await next!.peer(0);
  const second = listening(transcriber);
  await next!.peer(1);
  assert.deepEqual(second.received.kinds(), ["replaced"]);
  first!.refuse(null);
  system.advance(REST_MS);
  listening(transcriber);
  await first!.peer(0);
  assert.equal(next!.peers.length, 2);
});

test("[SP153] if all engines fail the stream fails, with the last one's reason", async () => {
  const [first, next] = await vendors(2);
  first!.refuse(503);
  next!.refuse(401);
  const { received } = listening(heardBy([first!, next!]));
  const { error } = await received.event("failed");
  assert.equal(error.message, "Deepgram refuses the key (401)");
  assert.deepEqual(received.kinds(), ["replaced", "failed"]);
});

test("[SP154] the newest audio is kept, bounded, whatever the chunk sizes", () => {
  const chunks = fc.array(fc.record({
    samples: fc.integer({ min: 0, max: 20_000 }), max: fc.constantFrom(8000, 12_345, 40_000),
    drop: fc.integer({ min: 0, max: 60_000 }),
  }), { maxLength: 20 });
  fc.assert(fc.property(chunks, (steps) => {
    const tail = new AudioTail();
    let model: number[] = [];
    let written = 0;
    for (const { samples, max, drop } of steps) {
      const pcm = Int16Array.from({ length: samples }, (_, at) => (written + at) % 32_000);
      tail.push(pcm, max);
      written += samples;
      model = [...model, ...pcm].slice(-max);
      tail.dropBefore(drop);
      model = model.slice(Math.max(0, drop - (written - model.length)));
      assert.equal(tail.end, written);
      assert.equal(tail.start, written - model.length);
      assert.deepEqual([...tail.copy()], model);
    }
  }), { numRuns: 50 });
});

const VOICE: SynthesisOptions = {
  rate: RATE, voice: "a-voice", gender: "male", language: "en", speed: 1, stability: 0.5,
  similarity: 0.5, hasEmotion: false,
};

async function speaking() {
  const eleven = await startElevenLabsServer(KEY);
  const openAi = await startOpenAiAudioServer();
  closings.push(() => eleven.close(), () => openAi.close());
  const system = createSystem();
  const engines = {
    elevenlabs: createElevenLabs({
      url: eleven.url, key: KEY, model: "eleven_flash_v2_5", system, log,
    }),
    "openai-compatible": createOpenAiSpeech({
      url: openAi.url, key: KEY, model: "tts-1", voice: null, system, log,
    }),
  };
  const codes = Object.keys(engines);
  const synthesizer = enduringSynthesizers(
    (code) => engines[code as keyof typeof engines], () => codes, { system, log })("elevenlabs");
  const open = () => {
    const received = createReceived<SynthesisEvent>();
    const stream = synthesizer.open(VOICE, received.receive);
    closings.push(() => stream.cancel());
    return { received, stream };
  };
  return { eleven, openAi, open };
}

test("[SP155] if a voice is cut off in mid-word another continues from that word", async () => {
  const { eleven, open, openAi } = await speaking();
  const { received, stream } = open();
  const text = "Your table is booked. ";
  stream.write(text);
  stream.write("See you at seven. ");
  stream.end();
  const peer = await eleven.peer(0);
  await peer.until(({ messages }) => messages.length > 2);
  const { bytes, alignment } = speechOf(text, RATE);
  // "Your table " is timed and there; "is booked" is broken off.
  peer.audio(bytes.subarray(0, (11 * 50 + 25) * (RATE / 1000) * 2), alignment);
  await received.event("audio");
  eleven.refuse(503);
  peer.cut();
  await received.event("done");
  assert.deepEqual(openAi.speeches.map(({ body }) => [body.input, body.voice]), [
    ["is booked. See you at seven.", "onyx"],
  ]);
  const spoken = received.events.flatMap((event) => (event.kind === "spoken" ? [event.chars] : []));
  assert.deepEqual(spoken, [...spoken].sort((a, b) => a - b));
  assert.equal(spoken.at(-1), text.length + "See you at seven. ".length);
  assert.ok(!received.kinds().includes("failed"));
});

test("[SP155] if a voice is unreachable another speaks from the first word, and the first rests for a while", async () => {
  const { eleven, open, openAi } = await speaking();
  eleven.refuse(401);
  for (let round = 1; round <= 2; round += 1) {
    const { received, stream } = open();
    stream.write("Good day. ");
    stream.end();
    await received.event("done");
    assert.equal(openAi.speeches.length, round);
  }
  eleven.refuse(null);
  const { stream } = open();
  stream.write("Good day. ");
  assert.equal(eleven.peers.length, 0);
});

for (const [name, create, spoken] of [
  ["Azure", createAzureVoice, Buffer.alloc(640, 7)],
  ["Google", createGoogleVoice, JSON.stringify({ audioContent: Buffer.alloc(640, 7).toString("base64") })],
] as const) {
  test(`[SP155] if ${name} fails at a sentence another voice continues from that sentence`, async () => {
    let posts = 0;
    const vendor = await startVendorServer({
      onPost: ({ response }) => {
        posts += 1;
        if (posts === 1) response.end(spoken);
        else response.destroy();
      },
    });
    const openAi = await startOpenAiAudioServer();
    closings.push(() => vendor.close(), () => openAi.close());
    const system = createSystem();
    const engines: Record<string, Synthesizer> = {
      first: create({ url: vendor.url.replace("ws", "http"), key: KEY }),
      next: createOpenAiSpeech({
        url: openAi.url, key: KEY, model: "tts-1", voice: null, system, log,
      }),
    };
    const received = createReceived<SynthesisEvent>();
    const stream = enduringSynthesizers(
      (code) => engines[code]!, () => Object.keys(engines), { system, log })("first")
      .open(VOICE, received.receive);
    stream.write("Your table is booked. ");
    await received.event("spoken");
    stream.write("See you at seven. ");
    stream.end();
    await received.event("done");
    assert.deepEqual(openAi.speeches.map(({ body }) => [body.input, body.voice]),
      [["See you at seven.", "onyx"]]);
    assert.ok(!received.kinds().includes("failed"));
  });
}
