// The media sockets of hosted carriers: the messages of their documentation, and everything else.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { createChunkOrder, REORDER_CHUNKS } from "#providers/carriers/hosted/chunk-order.ts";
import { DIALECTS, type DialectName } from "#providers/carriers/hosted/dialect-table.ts";
import { DIALECT_LIMITS, openCodec, type CarrierFrame } from "#providers/carriers/hosted/dialects.ts";
import { LAWS } from "#providers/carriers/sip/media/g711.ts";
import { json, LITTLE_ENDIAN, media, PCM, STORIES } from "#support/carriers/carrier-media.ts";

const NAMES = Object.keys(DIALECTS) as DialectName[];

const startOf = (name: DialectName) =>
  STORIES[name].messages[STORIES[name].frames.findIndex(({ kind }) => kind === "start")]!;

function started(name: DialectName) {
  const codec = openCodec(name);
  assert.equal(codec.receive(startOf(name))[0]?.kind, "start");
  return codec;
}

const plain = (data: string | Uint8Array | null) =>
  (typeof data === "string" ? JSON.parse(data) : data && Buffer.from(data)) as unknown;

for (const name of NAMES) {
  test(`[TW1] ${name}: the messages of its documentation are understood`, () => {
    const codec = openCodec(name);
    const { messages, frames } = STORIES[name];
    assert.deepEqual(messages.flatMap((message) => codec.receive(message)), frames);
  });

  test(`[TW2] ${name}: outgoing messages match its documentation, and nothing is sent before the start`, () => {
    const codec = openCodec(name);
    const send = () => ({
      audio: plain(codec.audio(PCM)), clear: plain(codec.clear()), mark: plain(codec.mark("a")),
      dtmf: plain(codec.dtmf("12#")),
    });
    assert.deepEqual(send(), { audio: null, clear: null, mark: null, dtmf: null });
    codec.receive(startOf(name));
    assert.deepEqual(send(), STORIES[name].sent);
  });
}

test("[TW3] audio survives sending and receiving: exactly if linear, else as the nearest code", () => {
  const anySound = fc.int16Array({ minLength: 1, maxLength: 400 });
  fc.assert(fc.property(fc.constantFrom(...NAMES), anySound, (name, pcm) => {
    const codec = started(name);
    const sent = codec.audio(pcm);
    const back = typeof sent === "string"
      ? json({ event: "media", media: (JSON.parse(sent) as { media: object }).media })
      : sent!;
    const [frame] = codec.receive(back);
    const { sends } = DIALECTS[name];
    const expected = sends === "PCM16"
      ? pcm
      : pcm.map((one) => LAWS[sends].samples[LAWS[sends].codes[one & 0xffff]!]!);
    assert.deepEqual(frame, { kind: "audio", pcm: expected });
  }));
});

test("[TW4] a view into a larger buffer, at an odd offset and of odd length, is read correctly", () => {
  const codec = started("vonage");
  const whole = Buffer.concat([Buffer.from([9]), LITTLE_ENDIAN, Buffer.from([9, 9])]);
  assert.deepEqual(codec.receive(whole.subarray(1, 12)), [{ kind: "audio", pcm: PCM }]);
  const view = new Int16Array(new Int16Array([7, ...PCM, 7]).buffer, 2, PCM.length);
  assert.deepEqual(plain(codec.audio(view)), LITTLE_ENDIAN);
  // A copy: the mixer uses its frame again.
  const shared = PCM.slice();
  const sent = codec.audio(shared);
  shared.fill(0);
  assert.deepEqual(plain(sent), LITTLE_ENDIAN);
});

const chunked = (chunk: number | string, code: number) =>
  json({ event: "media", media: media(Buffer.from([code]), { track: "inbound", chunk }) });

test("[TW5] Telnyx: audio that arrives out of order is reordered, with nothing twice", () => {
  const anyDelays = fc.array(fc.nat(REORDER_CHUNKS), { minLength: 1, maxLength: 60 });
  fc.assert(fc.property(
    anyDelays, fc.boolean(), (delays, isDoubled) => {
      const codec = started("telnyx");
      codec.receive(chunked(1, 0));
      const order = delays.map((delay, at) => ({ at, key: at + delay + (delay > 0 ? 0.5 : 0) }))
        .sort((left, right) => left.key - right.key);
      const heard = [...order, ...(isDoubled ? order.slice(-2) : [])].flatMap(({ at }) =>
        codec.receive(chunked(String(at + 2), (at + 1) % 256)));
      const all = [...heard, ...codec.receive(json({ event: "stop" }))];
      const codes = all.flatMap((frame) => (frame.kind === "audio" ? [...frame.pcm] : []));
      assert.deepEqual(codes, delays.map((_, at) => LAWS.PCMU.samples[(at + 1) % 256]));
      assert.equal(all.at(-1)?.kind, "stop");
    },
  ));
});

test("[TW6] Telnyx: a lost chunk waits for at most three later ones, and restarted numbering continues at once", () => {
  const order = createChunkOrder<number>();
  assert.deepEqual(order.push(10, 10), [10]);
  assert.deepEqual([12, 13, 14].map((chunk) => order.push(chunk, chunk)), [[], [], []]);
  assert.deepEqual(order.push(15, 15), [12, 13, 14, 15]);
  assert.deepEqual(order.push(11, 11), [], "too late");
  assert.deepEqual(order.push(1000, 1000), []);
  assert.deepEqual(order.push(1, 1), [], "merely late as long as it is near");
  assert.deepEqual(order.push(1003, 1003), []);
  assert.deepEqual(order.push(1001, 1001), []);
  assert.deepEqual(order.push(1002, 1002), [1000, 1001, 1002, 1003]);
  assert.deepEqual(order.push(1, 1), [1]);
  assert.deepEqual(order.push(2, 2), [2]);
  assert.deepEqual(order.push(4, 4), []);
  assert.deepEqual(order.flush(), [4]);
  const codec = started("telnyx");
  assert.equal(codec.receive(chunked("none", 1))[0]?.kind, "audio", "without a number as it comes");
});

test("[TW7] a stream in an unexpected format is reported, and none of it is heard", () => {
  const cases: [DialectName, (start: string) => string, string][] = [
    ["twilio", (start) => start.replace("audio/x-mulaw", "audio/opus"), "audio/opus at 8000 Hz, channels: 1"],
    ["twilio", (start) => start.replace('"channels":1', '"channels":2'), "audio/x-mulaw at 8000 Hz, channels: 2"],
    ["telnyx", (start) => start.replace("PCMU", "G722"), "g722 at 8000 Hz, channels: 1"],
    ["telnyx", (start) => start.replace("8000", "16000"), "pcmu at 16000 Hz, channels: 1"],
    ["vonage", (start) => start.replace("16000", "24000"), "audio/l16 at 24000 Hz, channels: 1"],
  ];
  for (const [name, change, format] of cases) {
    const codec = openCodec(name);
    assert.deepEqual(codec.receive(change(startOf(name) as string)), [{ kind: "unusable", format }]);
    const rest = STORIES[name].messages.filter((message) => message !== startOf(name));
    const kinds = rest.flatMap((message) => codec.receive(message)).map(({ kind }) => kind);
    assert.deepEqual(new Set(kinds.filter((kind) => kind !== "stop")), new Set(["ignored"]));
    assert.equal(codec.audio(PCM), null);
  }
});

test("[TW8] a call in A-law is heard even if the carrier could not convert it", () => {
  const codec = openCodec("telnyx");
  codec.receive((startOf("telnyx") as string).replace("PCMU", "PCMA"));
  assert.deepEqual(codec.receive(chunked("1", 0xd5)), [{ kind: "audio", pcm: Int16Array.of(8) }]);
});

test("[TW9] messages before the start or after the stop, and a second start, are ignored", () => {
  for (const name of NAMES) {
    const { messages, frames } = STORIES[name];
    const codec = openCodec(name);
    const others = messages.filter((message) => message !== startOf(name));
    for (const message of others.slice(0, -1)) assert.deepEqual(codec.receive(message), [{ kind: "ignored" }]);
    assert.equal(codec.receive(startOf(name))[0]?.kind, "start");
    assert.deepEqual(codec.receive(startOf(name)), [{ kind: "ignored" }]);
    if (frames.at(-1)?.kind !== "stop") continue;
    assert.equal(codec.receive(messages.at(-1)!)[0]?.kind, "stop");
    for (const message of messages) assert.deepEqual(codec.receive(message), [{ kind: "ignored" }]);
    assert.equal(codec.audio(PCM), null);
  }
});

/** Everything a frame may hold, held against its bounds. */
function assertBounded(frame: CarrierFrame): void {
  const {
    idCharsMax, parametersMax, parameterNameCharsMax, parameterCharsMax, markCharsMax,
    audioBytesMax,
  } = DIALECT_LIMITS;
  if (frame.kind === "start") {
    for (const text of [frame.streamId, frame.callSid, frame.from ?? null, frame.to ?? null]) {
      assert.ok(text === null || (typeof text === "string" && text.length <= idCharsMax));
    }
    const entries = Object.entries(frame.parameters);
    assert.ok(entries.length <= parametersMax);
    for (const [name, value] of entries) {
      assert.ok(name.length <= parameterNameCharsMax && value.length <= parameterCharsMax);
    }
  }
  if (frame.kind === "unusable") assert.ok(frame.format.length <= 4 * idCharsMax);
  if (frame.kind === "audio") {
    assert.ok(frame.pcm instanceof Int16Array);
    assert.ok(frame.pcm.length > 0 && frame.pcm.length <= audioBytesMax);
  }
  if (frame.kind === "dtmf") assert.match(frame.digit, /^[0-9*#A-D]$/);
  if (frame.kind === "mark") assert.ok(frame.name.length > 0 && frame.name.length <= markCharsMax);
}

const anyLeaf = fc.oneof(
  fc.string(), fc.double(), fc.constant(null), fc.boolean(), fc.constant("x".repeat(5000)),
  fc.constantFrom("1", "A", "inbound", "audio/x-mulaw", "PCMU", "__proto__", 8000, 16000),
);
const FIELDS = [
  "event", "type", "start", "media", "dtmf", "mark", "stop", "payload", "chunk", "track", "digit", "name",
  "data", "streamSid", "stream_id", "callSid", "customParameters", "client_state", "extra_headers",
  "mediaFormat", "media_format", "encoding", "sampleRate", "channels", "content-type", "__proto__",
];
const { tree } = fc.letrec((tie) => ({
  tree: fc.oneof(
    { maxDepth: 4 }, anyLeaf, fc.array(tie("tree"), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom(...FIELDS), tie("tree"), { maxKeys: 6 }),
  ),
}));

test("[TW12] no message on the socket makes the codec throw, and every field keeps its bounds", () => {
  const anyMessageOf = (name: DialectName) => fc.oneof(
    fc.string(),
    fc.uint8Array({ maxLength: 700 }),
    fc.json(),
    tree.map((value) => JSON.stringify(value)),
    // A start in some other format.
    fc.string().map((format) => (startOf(name) as string)
      .replace(/audio\/x-mulaw|audio\/l16|PCMU|slin16/, JSON.stringify(format).slice(1, -1))),
    // A message of the documentation with one place of it replaced.
    fc.tuple(fc.nat(200), fc.nat(30), tree).map(([which, place, value]) => {
      const all = STORIES[name].messages.filter((one) => typeof one === "string");
      let left = place;
      return JSON.stringify(JSON.parse(all[which % all.length]!), (_, found: unknown) =>
        (left-- === 0 ? value : found)) ?? "";
    }),
  );
  const kinds = new Set<string>();
  const anyStream = fc.constantFrom(...NAMES).chain((name) =>
    fc.tuple(fc.constant(name), fc.boolean(), fc.array(anyMessageOf(name), { maxLength: 8 })));
  fc.assert(fc.property(
    anyStream,
    ([name, isStarted, messages]) => {
      const codec = isStarted ? started(name) : openCodec(name);
      for (const message of messages) {
        const frames = codec.receive(message);
        assert.ok(frames.length > 0);
        for (const frame of frames) {
          kinds.add(frame.kind);
          assertBounded(frame);
        }
      }
    },
  ), { numRuns: 3000 });
  // Otherwise the bounds were not tried.
  assert.deepEqual([...kinds].sort(),
    ["audio", "cleared", "dtmf", "ignored", "mark", "start", "stop", "unusable"]);
});

test("[TW13] huge, deeply nested and hostile messages are survived", () => {
  const codec = openCodec("twilio");
  const wide = Object.fromEntries(Array.from({ length: 5000 }, (_, at) => [`p${at}`, "v"]));
  const start = JSON.parse(startOf("twilio") as string) as { start: Record<string, unknown> };
  start.start.customParameters = { ...wide };
  assert.deepEqual(codec.receive("[".repeat(200_000)), [{ kind: "ignored" }]);
  assert.deepEqual(codec.receive(json(start) + " ".repeat(DIALECT_LIMITS.messageCharsMax)), [{ kind: "ignored" }]);
  const [frame] = codec.receive(json(start));
  assertBounded(frame!);
  assert.equal(frame?.kind === "start" && Object.keys(frame.parameters).length, DIALECT_LIMITS.parametersMax);
  const hostile = '{"event":"start","start":{"callSid":"a","customParameters":{"__proto__":"x","a":"b"}}}';
  const [other] = openCodec("twilio").receive(hostile);
  assert.ok(other?.kind === "start");
  assert.deepEqual(Object.entries(other.parameters), [["__proto__", "x"], ["a", "b"]]);
  assert.equal(Object.getPrototypeOf(other.parameters), Object.prototype);
  const long = media(Buffer.alloc(DIALECT_LIMITS.audioBytesMax + 100));
  const [sound] = codec.receive(json({ event: "media", media: long }));
  assert.equal(sound?.kind === "audio" && sound.pcm.length, DIALECT_LIMITS.audioBytesMax);
});
