// Speech by ElevenLabs against a server of its protocol. The vendor's SDK has no client for this
// WebSocket: its HTTP client reads the server's voices, and its schemas of the messages take all
// that the server sends (here) and all that it is sent (in the server, in every test).
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { ElevenLabsClient } from "@elevenlabs/elevenlabs-js";
import { ReceiveMessageMulti } from "@elevenlabs/elevenlabs-js/serialization/index.js";
import type { ElevenLabsOptions } from "#providers/speech/elevenlabs/elevenlabs.ts";
import { ANSWER_MS, MESSAGE_BYTES_MAX, UTTERANCE_MS_MAX } from "#providers/speech/synthesis-link.ts";
import { SPARE_MS, SPARES_MAX } from "#providers/speech/spare-lines.ts";
import { ALIGNMENT_CHARS_MAX } from "#providers/speech/elevenlabs/elevenlabs-words.ts";
import type { SynthesisEvent } from "#providers/speech/port.ts";
import { createManualSystem } from "#support/manual-clock.ts";
import { createReceived } from "#support/received.ts";
import {
  asked, askedPeer, audioOf, closeServing, closingPeer, createFor, HOSTILE, KEY, opened, serving,
  speaking, speakWhole, speechOf, spokenAt, VOICE,
} from "#support/vendors/elevenlabs-server.ts";

after(closeServing);

test("[SP60] ElevenLabs' SDK lists the test server's voices and accepts each message", async () => {
  const { peer, server, received } = await asked("Hello. ");
  const client = new ElevenLabsClient({ apiKey: KEY, baseUrl: server.url });
  const { voices } = await client.voices.getAll();
  assert.deepEqual(voices.map(({ name }) => name), ["Sarah", "George"]);
  const stranger = new ElevenLabsClient({ apiKey: "another", baseUrl: server.url, maxRetries: 0 });
  await assert.rejects(stranger.voices.getAll(), { statusCode: 401 });
  const { bytes, alignment } = speechOf("Hello. ", 16_000);
  peer.audio(bytes, alignment);
  peer.audio(bytes);
  peer.final();
  await received.event("done");
  const kinds = server.sent.map((text) => {
    const parsed = ReceiveMessageMulti.parse(JSON.parse(text));
    assert(parsed.ok, text);
    return "audio" in parsed.value ? "audio" : "final";
  });
  assert.deepEqual(kinds, ["audio", "audio", "final"]);
});

test("[SP61] the handshake names voice, model and rate; the first message has the voice settings", async () => {
  const wanted = {
    voice: "a voice/1", rate: 8000, speed: 0.7, stability: 0.2, similarity: 0.9, hasEmotion: true,
  };
  const { server, stream, synthesizer } = await opened({}, wanted);
  assert.equal(synthesizer.name, "ElevenLabs (eleven_flash_v2_5)");
  stream.write("Good morning. ");
  stream.write(" ");
  stream.write("How are you?");
  stream.end();
  stream.write("Too late. ");
  const peer = await closingPeer(server);
  assert.equal(peer.path, "/v1/text-to-speech/a%20voice%2F1/multi-stream-input");
  assert.equal(peer.headers["xi-api-key"], KEY);
  assert.deepEqual(Object.fromEntries(peer.query), {
    model_id: "eleven_flash_v2_5", language_code: "en", output_format: "pcm_8000",
    auto_mode: "true", inactivity_timeout: "180", sync_alignment: "true",
  });
  const { context_id } = peer.messages[0]!;
  assert.deepEqual(peer.messages, [
    { text: " ", context_id, voice_settings: { stability: 0.2, similarity_boost: 0.9, speed: 0.7, style: 0.3 } },
    { text: "Good morning. ", context_id, flush: true },
    { text: "How are you? ", context_id, flush: true },
    { context_id, close_context: true },
  ]);
});

test("[SP61] a voice of the right gender stands in; only models that accept a language get one", async () => {
  const cases: [string, string, "male" | "female", string, string | null][] = [
    ["eleven_flash_v2_5", "de", "female", "EXAVITQu4vr4xnSDxMaL", "de"],
    ["eleven_turbo_v2_5", "tl", "male", "JBFqnCBsd6RMkjVDRZzb", "fil"],
    ["eleven_flash_v2_5", "lt", "male", "JBFqnCBsd6RMkjVDRZzb", null],
    ["eleven_multilingual_v2", "de", "male", "JBFqnCBsd6RMkjVDRZzb", null],
  ];
  for (const [model, language, gender, voice, told] of cases) {
    const { server } = await opened({ model }, { language, gender });
    const peer = await server.peer(0);
    assert.equal(peer.path, `/v1/text-to-speech/${voice}/multi-stream-input`);
    assert.equal(peer.query.get("language_code"), told);
  }
});

test("[SP62] audio arrives in order, even with samples split between messages", async () => {
  const { peer, received } = await asked("One two three. ", {}, { rate: 24_000 });
  const { bytes, alignment } = speechOf("One two three. ", 24_000);
  let at = 0;
  for (const size of [1, 1, 333, 2, 7001, 1, 0, 4999]) {
    peer.audio(bytes.subarray(at, at + size), at === 0 ? alignment : null);
    at += size;
  }
  peer.audio(bytes.subarray(at));
  peer.final();
  await received.event("done");
  assert.equal(peer.query.get("output_format"), "pcm_24000");
  assert.deepEqual(audioOf(received), bytes);
  assert(received.events.every((event) => event.kind !== "audio" || event.pcm.length > 0));
});

test("[SP62] a rate the vendor lacks is resampled from one it has", async () => {
  const { peer, received } = await asked("One two three. ", {}, { rate: 48_000 });
  const { bytes, alignment } = speechOf("One two three. ", 24_000);
  peer.audio(bytes, alignment);
  peer.final();
  await received.event("done");
  assert.equal(peer.query.get("output_format"), "pcm_24000");
  const [inBytes, outBytes] = [bytes.length, audioOf(received).length];
  assert(Math.abs(outBytes - 2 * inBytes) < 48 * 4, `${inBytes} bytes became ${outBytes}`);
  assert.deepEqual(spokenAt(received, "One two three. ").at(-1)?.[1], "One two three. ");
});

test("[SP63] spoken marks come per word: one sentence timed whole, one message by message", async () => {
  const { server, stream, received } = await opened();
  const text = "Book a table. For two ? ";
  stream.write("Book a table. ");
  stream.write("For two ? ");
  stream.end();
  const peer = await closingPeer(server);
  // Timed whole with its first 100 ms, and with white space that was not written.
  const first = speechOf(" Book a table.", 16_000);
  peer.audio(first.bytes.subarray(0, 3200), first.alignment);
  // It says 700 ms and comes to 450.
  peer.audio(first.bytes.subarray(3200, 450 * 32));
  // A word cut in the middle: "For tw", "o ?".
  const second = speechOf("For tw", 16_000);
  peer.audio(second.bytes, second.alignment);
  const third = speechOf("o ?", 16_000);
  peer.audio(third.bytes, third.alignment);
  peer.final();
  await received.event("done");
  assert.deepEqual(spokenAt(received, text), [
    [300, "Book "],
    [400, "Book a "],
    [450, "Book a table. "],
    [650, "Book a table. For "],
    [850, "Book a table. For two "],
    [900, text],
  ]);
});

test("[SP63] the last sentence is marked as spoken though its timings run a bit too long", async () => {
  const { server, stream, received } = await opened();
  stream.write("One two. ");
  const peer = await server.peer(0);
  const { bytes, alignment } = speechOf("One two. ", 16_000);
  await peer.until(({ messages }) => messages.length === 2);
  // 30 ms less than it says.
  peer.audio(bytes.subarray(0, -(16 * 80 * 2)), alignment);
  await received.event("spoken", 1);
  assert.deepEqual(spokenAt(received, "One two. "), [[200, "One "], [370, "One two. "]]);
});

test("[SP63] timings of another text, invalid or missing timings mark only the end", async () => {
  const text = "Take two. ";
  const { bytes, alignment } = speechOf(text, 16_000);
  const other = speechOf("Take too. ", 16_000).alignment;
  const padding = Array.from({ length: ALIGNMENT_CHARS_MAX }, () => " ");
  const endless = speechOf(text + padding.join(""), 20).alignment;
  const cases: [unknown, string[]][] = [
    [null, [text]],
    [other, ["Take ", text]],
    [{ ...alignment, chars: alignment.chars.slice(1) }, [text]],
    [{ ...alignment, charDurationsMs: [] }, [text]],
    [{ ...alignment, charStartTimesMs: "0" }, [text]],
    [{ ...alignment, charStartTimesMs: alignment.charStartTimesMs.map((ms) => -ms) }, [text]],
    [{ ...alignment, charStartTimesMs: [] }, [text]],
    [endless, [text]],
    // Far behind the audio, and out of order.
    [{ ...alignment, charStartTimesMs: alignment.charStartTimesMs.map(() => 1e9) }, [text]],
    [{ ...alignment, charStartTimesMs: alignment.chars.map((_, at) => 450 - at * 50) }, ["Take ", text]],
  ];
  for (const [sent, spoken] of cases) {
    const { peer, received } = await asked(text);
    peer.audio(bytes, sent as typeof alignment);
    // Goes on where the other text left this one, by chance.
    peer.audio(bytes, sent === other ? speechOf("wo.", 16_000).alignment : null);
    peer.final();
    await received.event("done");
    assert.deepEqual(spokenAt(received, text).map(([, words]) => words), spoken);
    assert.deepEqual(audioOf(received), Buffer.concat([bytes, bytes]));
    if (sent === other) assert.deepEqual(received.kinds().slice(-3), ["audio", "spoken", "done"]);
  }
});

test("[SP64] done comes once, after the last audio and words and not before end", async () => {
  const { server, stream, received } = await opened();
  stream.write("Yes. ");
  const peer = await askedPeer(server);
  const { bytes, alignment } = speechOf("Yes. ", 16_000);
  peer.final();
  peer.audio(bytes, alignment);
  await received.event("audio");
  stream.write("No. ");
  stream.end();
  stream.end();
  await closingPeer(server);
  peer.audio(bytes);
  peer.send(JSON.stringify({ isFinal: true, contextId: "another" }));
  peer.send(JSON.stringify({ audio: bytes.toString("base64"), contextId: "another" }));
  peer.audio(bytes);
  peer.final();
  peer.audio(bytes);
  await received.event("done");
  await peer.until(({ isClosed }) => isClosed);
  assert.equal(audioOf(received).length, 3 * bytes.length);
  assert.deepEqual(received.kinds().slice(-3), ["audio", "spoken", "done"]);
  assert.deepEqual(received.events.at(-2), { kind: "spoken", chars: "Yes. No. ".length });
});

test("[SP64] an utterance without text is done at once", async () => {
  const { server, stream, received } = await opened();
  stream.end();
  assert.deepEqual(received.kinds(), ["done"]);
  stream.write("Too late. ");
  stream.cancel();
  assert.deepEqual(received.kinds(), ["done"]);
  assert.deepEqual(server.peers.flatMap(({ messages }) => messages), []);
});

test("[SP65] cancel closes context and connection, and no events follow", async () => {
  const { server, stream, received } = await opened();
  stream.write("A long story. ");
  const peer = await server.peer(0);
  const { bytes, alignment } = speechOf("A long story. ", 16_000);
  await peer.until(({ messages }) => messages.length === 2);
  peer.audio(bytes, alignment);
  await received.event("audio");
  const before = received.events.length;
  stream.cancel();
  stream.cancel();
  stream.write("More. ");
  stream.end();
  peer.audio(bytes);
  peer.final();
  await peer.until(({ isClosed }) => isClosed);
  assert.deepEqual(peer.messages.slice(2).map(({ close_context }) => close_context), [true]);
  assert.equal(received.events.length, before);
});

test("[SP65] an utterance cancelled in the handler of its first audio sends no more events", async () => {
  const { server, synthesizer } = await serving();
  const received = createReceived<SynthesisEvent>();
  const stream = synthesizer.open(VOICE, (event) => {
    received.receive(event);
    stream.cancel();
  });
  stream.write("One two three. ");
  const peer = await askedPeer(server);
  const { bytes, alignment } = speechOf("One two three. ", 16_000);
  peer.audio(bytes, alignment);
  await peer.until(({ isClosed }) => isClosed);
  assert.deepEqual(received.kinds(), ["audio"]);
});

test("[SP66] the next utterance in the same voice finds an open connection, another voice does not", async () => {
  const { server, synthesizer } = await serving();
  await speakWhole(server, synthesizer, 0);
  const kept = await server.peer(1);
  assert.deepEqual(kept.messages, []);
  speaking(synthesizer, { rate: 8000 });
  assert.equal((await server.peer(2)).query.get("output_format"), "pcm_8000");
  await speakWhole(server, synthesizer, 1);
  assert.equal(kept.messages.length, 3);
  await server.peer(3);
  assert.equal(server.peers.length, 4);
});

test("[SP66] a kept connection is closed in time, and a dead one is replaced silently", async () => {
  const system = createManualSystem();
  const limits = { handshakeMs: 2 * SPARE_MS, silenceMs: 2 * SPARE_MS };
  const { server, synthesizer } = await serving({ system, limits });
  await speakWhole(server, synthesizer, 0);
  const kept = await server.peer(1);
  const next = speaking(synthesizer);
  next.stream.write("Yes. ");
  next.stream.end();
  // Unnoticed until it was taken.
  kept.cut();
  const other = await closingPeer(server, 2);
  other.audio(speechOf("Yes. ", 16_000).bytes);
  other.final();
  await next.received.event("done");
  assert.deepEqual(next.received.kinds(), ["audio", "spoken", "done"]);
  const last = await server.peer(3);
  system.advance(SPARE_MS);
  await last.until(({ isClosed }) => isClosed);
  assert.deepEqual(last.messages, []);
  assert.equal(server.peers.length, 4);
});

test("[SP66] only a few connections are kept", async () => {
  const { server, synthesizer } = await serving();
  for (let number = 0; number <= SPARES_MAX; number += 1) {
    await speakWhole(server, synthesizer, 2 * number, `voice-${number}`);
    if (number < SPARES_MAX) await server.peer(2 * number + 1);
  }
  // Takes the one kept for it, which makes room for another.
  await speakWhole(server, synthesizer, 1, "voice-0");
  assert.match((await server.peer(2 * SPARES_MAX + 1)).path, /voice-0/);
});

test("[SP67] a refused connection fails once, with a reason that omits the key", async () => {
  const cases: [number, string, boolean][] = [
    [401, "ElevenLabs refuses the key (401)", false],
    [404, "ElevenLabs refused the connection (404)", false],
    [429, "ElevenLabs refused the connection (429)", true],
    [503, "ElevenLabs refused the connection (503)", true],
  ];
  const { server, synthesizer } = await serving();
  for (const [status, text, retryable] of cases) {
    server.refuse(status);
    const { stream, received } = speaking(synthesizer);
    stream.write("Hello. ");
    const { error } = await received.event("failed");
    assert.equal(error.message.startsWith(text), true, error.message);
    assert.equal(error.retryable, retryable);
    stream.end();
    assert.deepEqual(received.kinds(), ["failed"]);
  }
  server.refuse(null);
  const { received } = speaking(createFor(server.url, { key: "wrong" }));
  assert.equal((await received.event("failed")).error.message, "ElevenLabs refuses the key (401)");
});

test("[SP67] the vendor's error is reported once, retryable if temporary", async () => {
  const cases: [object, string, boolean][] = [
    [
      { message: `No voice for ${KEY}.`, error: "voice_not_found", code: 1008 },
      "ElevenLabs refuses the text: voice_not_found: No voice for ***.", false,
    ],
    [
      { message: "Busy.", error: "system_busy", code: 1008 },
      "ElevenLabs refuses the text: system_busy: Busy.", true,
    ],
    [{ error: "internal", code: 1011 }, "ElevenLabs refuses the text: internal", true],
    [
      { error: { message: `Bad key ${KEY}` } },
      "ElevenLabs refuses the text: Bad key ***", false,
    ],
    [{ error: {}, message: ["no text"] }, "ElevenLabs refuses the text: no text", false],
    [{ error: {}, message: [] }, "ElevenLabs refuses the text", false],
  ];
  for (const [message, text, retryable] of cases) {
    const { server, stream, received } = await opened();
    stream.write("Hello. ");
    const peer = await server.peer(0);
    peer.send(JSON.stringify(message));
    peer.end(1008, "as said");
    const { error } = await received.event("failed");
    assert.equal(error.message, text);
    assert.equal(error.retryable, retryable);
    await peer.until(({ isClosed }) => isClosed);
    assert.deepEqual(received.kinds(), ["failed"]);
  }
});

test("[SP67] a closed or cut connection fails the utterance, retryable only before its audio", async () => {
  const { bytes } = speechOf("Hello. ", 16_000);
  const cases: [number | null, boolean, RegExp, boolean][] = [
    [1008, false, /^ElevenLabs closed the connection \(1008: .*\*\*\*\)$/, false],
    [1011, false, /^ElevenLabs closed the connection \(1011: .*\)$/, true],
    [1000, true, /^ElevenLabs closed the connection \(1000: .*\)$/, false],
    [null, false, /^ElevenLabs broke off the connection$/, true],
    [null, true, /^ElevenLabs broke off the connection$/, false],
  ];
  for (const [code, hasAudio, text, retryable] of cases) {
    const { peer, received } = await asked("Hello. ");
    if (hasAudio) {
      peer.audio(bytes);
      await received.event("audio");
    }
    if (code === null) peer.cut();
    else peer.end(code, `because of ${KEY}`);
    const { error } = await received.event("failed");
    assert.match(error.message, text);
    assert.equal(error.retryable, retryable);
    assert.deepEqual(received.kinds(), hasAudio ? ["audio", "failed"] : ["failed"]);
  }
});

test("[SP67] silence of the vendor fails the utterance: before its audio, before its end, and after", async () => {
  for (const audios of [0, 1, 2]) {
    const system = createManualSystem();
    const { server, stream, received } = await opened({ system, limits: { silenceMs: 60_000 } });
    stream.write("Hello. ");
    stream.write("You. ");
    const peer = await askedPeer(server);
    const { bytes } = speechOf("Hello. ", 16_000);
    if (audios > 0) {
      peer.audio(bytes);
      await received.event("audio");
      // The text may take its time.
      system.advance(ANSWER_MS);
      stream.end();
      await closingPeer(server);
    }
    if (audios > 1) {
      system.advance(ANSWER_MS - 1);
      peer.audio(bytes);
      await received.event("audio", 1);
    }
    system.advance(ANSWER_MS - 1);
    assert(!received.kinds().includes("failed"));
    system.advance(1);
    const { error } = await received.event("failed");
    assert.equal(error.message, `ElevenLabs sent no speech for ${ANSWER_MS} ms`);
    assert.equal(error.retryable, audios === 0);
    await peer.until(({ isClosed }) => isClosed);
  }
});

test("[SP68] a thousand malformed messages are ignored, and the utterance continues", async () => {
  const { peer, received } = await asked("Hello you. ");
  const { bytes, alignment } = speechOf("Hello you. ", 16_000);
  peer.audio(bytes.subarray(0, 1001), alignment);
  await received.event("audio");
  for (let round = 0; round < 1000; round += 1) peer.send(HOSTILE[round % HOSTILE.length]!);
  peer.audio(bytes.subarray(1001));
  peer.final();
  await received.event("done");
  assert.deepEqual(audioOf(received), bytes);
  assert.deepEqual(spokenAt(received, "Hello you. ").map(([, words]) => words), ["Hello ", "Hello you. "]);
});

test("[SP68] an oversized message and endless audio fail only the utterance", async () => {
  const { server, stream, received } = await opened();
  stream.write("Hello. ");
  (await server.peer(0)).send(`"${"x".repeat(MESSAGE_BYTES_MAX)}"`);
  await received.event("failed");
  assert.deepEqual(received.kinds(), ["failed"]);

  const endless = await opened({}, { rate: 8000 });
  endless.stream.write("Hello. ");
  const peer = await askedPeer(endless.server);
  const minute = new Uint8Array(8000 * 2 * 60);
  for (let ms = 0; ms < UTTERANCE_MS_MAX; ms += 60_000) peer.audio(minute);
  peer.audio(new Uint8Array(2));
  const { error } = await endless.received.event("failed");
  assert.equal(error.message, "ElevenLabs sent more audio than the text can need");
  assert.equal(error.retryable, false);
  assert.equal(audioOf(endless.received).length, (8000 * 2 * UTTERANCE_MS_MAX) / 1000);
});

test("[SP69] an unusable address or key is refused before any call", () => {
  const create = (args: Partial<ElevenLabsOptions>) => () =>
    createFor("https://api.elevenlabs.io", args);
  assert.doesNotThrow(create({}));
  assert.throws(create({ url: "ftp://api.elevenlabs.io" }), /must begin with http/);
  assert.throws(create({ key: "two words" }), (error: Error) => !error.message.includes("two words"));
});
