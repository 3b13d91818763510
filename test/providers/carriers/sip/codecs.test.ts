// Codecs with memory in a call: the order of their packets, their clocks, and a session in each.
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { test } from "node:test";
import fc from "fast-check";
import { createLogger } from "#core/logger.ts";
import type { Codec } from "#providers/carriers/sip/grammar/codec-names.ts";
import type { Agreed } from "#providers/carriers/sip/grammar/sdp.ts";
import { openCoders, type Coder } from "#providers/carriers/sip/media/codecs.ts";
import { PacketOrder } from "#providers/carriers/sip/media/packet-order.ts";
import { openRtpSession } from "#providers/carriers/sip/media/rtp-session.ts";
import { parseRtp, RTP_HEADER_BYTES, writeRtpHeader, type RtpPacket } from "#providers/carriers/sip/media/rtp.ts";
import { parseTelephoneEvent } from "#providers/carriers/sip/media/telephone-event.ts";
import { countOf } from "#support/calls/media-session.ts";
import { levelAt, sineOf } from "#support/calls/spectrum.ts";
import { createManualSystem } from "#support/manual-clock.ts";

/** Its packets say their number; what is made up says so. */
const counting = (decoded: number[], made: string[]): Coder => ({
  codec: "OPUS", rate: 16_000, clockRate: 48_000,
  encode: () => new Uint8Array(0),
  decode: (payload) => {
    decoded.push(payload[0] ?? 0);
    return new Int16Array(320).fill(payload[0] ?? 0);
  },
  memory: {
    conceal: (samples) => {
      made.push(`concealed ${samples}`);
      return new Int16Array(samples);
    },
    recover: (next, samples) => {
      made.push(`before ${next[0]}`);
      return new Int16Array(samples);
    },
  },
  close: () => undefined,
});

const packet = (number: number) => ({
  sequence: (65_530 + number) & 0xffff, timestamp: (4_294_960_000 + number * 960) >>> 0,
  payload: Uint8Array.of(number),
});

test("[SI121] packets of a stateful codec are decoded in order, however they arrive; losses are concealed once nothing else is left to play", () => {
  const decoded: number[] = [];
  const made: string[] = [];
  const played: number[] = [];
  const order = new PacketOrder(counting(decoded, made), ({ timestamp }, pcm) => {
    if (played.length > 0) assert.equal(timestamp, played.at(-1));
    played.push((timestamp + pcm.length) >>> 0);
  });
  for (const number of [1, 2, 4, 3, 3, 2]) order.push(packet(number));
  assert.deepEqual([decoded, made], [[1, 2, 3, 4], []]);
  for (const number of [6, 9]) order.push(packet(number));
  assert.deepEqual(decoded, [1, 2, 3, 4]);
  order.due();
  assert.deepEqual([decoded, made], [[1, 2, 3, 4, 6], ["before 6"]]);
  order.due();
  assert.deepEqual([decoded, made], [[1, 2, 3, 4, 6, 9], ["before 6", "concealed 320", "before 9"]]);
  // What comes after all is too late, and another stream begins anew.
  order.push(packet(7));
  order.reset();
  const all = Array.from({ length: 40 }, (_, at) => at + 1);
  fc.assert(fc.property(fc.shuffledSubarray(all), (numbers) => {
    const heard: number[] = [];
    const any = new PacketOrder(counting(heard, []), () => undefined);
    for (const number of numbers) any.push(packet(number));
    for (let at = 0; at < 40; at += 1) any.due();
    assert.deepEqual(heard, heard.toSorted((one, other) => one - other));
    assert.equal(new Set(heard).size, heard.length);
  }));
});

test("[SI122] a session in G.722 and Opus: audio both ways at the call's rate, the codec's clock and keys, another codec after a re-INVITE", { timeout: 180_000 }, async (t) => {
  const phone = createSocket("udp4").bind(0, "127.0.0.1");
  await once(phone, "listening");
  const came: RtpPacket[] = [];
  phone.on("message", (bytes) => came.push(parseRtp(bytes)!));
  const system = createManualSystem();
  const heard: number[] = [];
  const session = await openRtpSession({
    host: "127.0.0.1", ports: null, system, log: createLogger("silent"), rate: 16_000,
    codecs: ["OPUS", "G722", "PCMU"], mayReach: () => true,
    onAudio: (pcm) => heard.push(...pcm), onDtmf: () => undefined, onSound: () => undefined,
    onTimeout: () => undefined,
  });
  t.after(() => {
    session.close();
    phone.close();
  });
  const agreed = (codec: Codec, payloadType: number, eventRate: number): Agreed => ({
    codec, payloadType, telephoneEvent: 102, eventRate, comfortNoise: null, isHeld: false,
    srtp: null,
    remote: { host: "127.0.0.1", port: phone.address().port, rtcpPort: null },
  });
  const tone = sineOf(3000, 16_000, 2);
  const narrow = sineOf(3000, 8000, 2);
  let sequence = 0;
  const cases = [["OPUS", 96, 48_000], ["G722", 9, 8000], ["PCMU", 0, 8000]] as const;
  for (const [codec, payloadType, clockRate] of cases) {
    session.agree(agreed(codec, payloadType, clockRate));
    const [far] = await openCoders([codec]);
    assert.ok(far);
    heard.length = 0;
    came.length = 0;
    for (let at = 0; at < 60; at += 1) {
      const source = far.rate === 8000 ? narrow : tone;
      const frame = far.rate / 50;
      const payload = far.encode(source.subarray(at * frame, (at + 1) * frame));
      const bytes = Buffer.alloc(RTP_HEADER_BYTES + payload.length);
      sequence += 1;
      writeRtpHeader(bytes, {
        payloadType, marker: false, sequence, timestamp: at * (clockRate / 50), ssrc: 7,
      });
      bytes.set(payload, RTP_HEADER_BYTES);
      const before = countOf(session);
      // One of ten is lost; Opus says it again.
      if (codec !== "OPUS" || at % 10 !== 5) phone.send(bytes, session.port, "127.0.0.1");
      while (countOf(session) === before && (codec !== "OPUS" || at % 10 !== 5)) {
        await new Promise((resolve) => setImmediate(resolve));
      }
      system.advance(20);
      session.send(tone.subarray(at * 320, (at + 1) * 320));
    }
    const sent = 20 * Math.log10(8000 / 32_768);
    const level = levelAt(Int16Array.from(heard).subarray(8000), 3000, 16_000);
    assert.ok(Math.abs(level - sent) < 2, `${codec} heard at ${level}`);
    while (came.length < 60) await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual([...new Set(came.map((one) => one.payloadType))], [payloadType]);
    const steps = came.slice(1).map((one, at) => (one.timestamp - came[at]!.timestamp) >>> 0);
    assert.deepEqual([...new Set(steps)], [clockRate / 50]);
    const out = Int16Array.from(came.flatMap(({ payload }) => [...far.decode(payload)!]));
    assert.ok(Math.abs(levelAt(out.subarray(far.rate / 2), 3000, far.rate) - sent) < 2, codec);
    came.length = 0;
    session.sendDtmf("5");
    for (let at = 0; at < 13; at += 1) session.send(tone.subarray(0, 320));
    while (came.length < 11) await new Promise((resolve) => setImmediate(resolve));
    const keys = came.filter((one) => one.payloadType === 102)
      .map(({ payload }) => parseTelephoneEvent(payload)!);
    assert.equal(keys.at(-1)?.duration, clockRate * 0.16, codec);
    far.close();
  }
});
