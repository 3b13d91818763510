// A far end whose NAT gives it another address in the middle of its stream, and who only pretends
// to be one: over real sockets, on a clock by hand.
import assert from "node:assert/strict";
import type { SrtpKey } from "#providers/carriers/sip/grammar/sdp.ts";
import { createSrtpSender } from "#providers/carriers/sip/media/srtp.ts";
import { test } from "#support/bounded-test.ts";
import {
  agreedOf, FRAME, numbers, openPhone, openSession as open, packetOf, settled, silence, talk,
  type Phone,
} from "#support/calls/media-session.ts";

/** The stream goes on from `from`, 20 ms a packet; how long until it is answered there. */
async function moves(
  call: Awaited<ReturnType<typeof open>>, from: Phone, packets: (number: number) => Buffer,
  first: number, count: number,
): Promise<number | null> {
  for (let at = 0; at < count; at += 1) {
    await from.send(packets(first + at), call.session.port);
    await settled();
    call.system.advance(20);
    call.session.send(silence);
    await settled();
    if (from.came() > 0) return (at + 1) * 20;
  }
  return null;
}

test("[SI123] a NAT that rebinds a far end in mid-stream is followed within 500 ms, without an audible gap", async (t) => {
  for (const isSecret of [false, true]) {
    const key: SrtpKey = { suite: "AES_CM_128_HMAC_SHA1_80", key: Buffer.alloc(30, 7), tag: 1 };
    const coder = isSecret ? createSrtpSender(key) : null;
    const coded = (number: number): Buffer => {
      const packet = packetOf(number);
      return coder ? coder.protect(packet) : packet;
    };
    const [before, after] = [await openPhone(t), await openPhone(t)];
    const call = await open(t);
    call.session.agree(agreedOf(9, { srtp: isSecret ? { local: key, remote: key } : null }));
    for (const number of [0, 1]) await before.send(coded(number), call.session.port);
    await settled();
    await talk(before, call, numbers(2, 48).map(coded));
    assert.ok(before.came() > 0);
    const tookMs = await moves(call, after, coded, 50, 40);
    assert.ok(tookMs !== null && tookMs <= 500, `${tookMs}`);
    t.diagnostic(`${isSecret ? "SRTP" : "RTP"}: answered at the new address after ${tookMs} ms`);
    const from = call.heard.length;
    await talk(after, call, numbers(50 + tookMs / 20, 30).map(coded));
    // What came while nobody was believed is lost; the stream goes on where it is.
    const said = call.heard.slice(from + 5).map((frame) => frame[80]!);
    assert.ok(said.every((sample) => sample !== 0), `${said}`);
    assert.ok(call.session.quality()!.packetsLost! <= 25, JSON.stringify(call.session.quality()));
  }
});

test("[SI123] without the stream's numbers, time or key nobody moves the call while the far end is silent for less than 2 s", async (t) => {
  const key: SrtpKey = { suite: "AES_CM_128_HMAC_SHA1_80", key: Buffer.alloc(30, 7), tag: 1 };
  const other: SrtpKey = { ...key, key: Buffer.alloc(30, 8) };
  const coder = createSrtpSender(key);
  const forger = createSrtpSender(other);
  const NUMBER = 50;
  const attempts: [string, boolean, (number: number) => Buffer][] = [
    ["another stream", false, (number) => packetOf(number, { ssrc: 78 })],
    ["numbers far on", false, (number) => packetOf(number + 500, { timestamp: number * FRAME })],
    ["old numbers", false, (number) => packetOf(number - 200, { timestamp: number * FRAME })],
    ["another time", false, (number) => packetOf(number, { timestamp: (number + 500) * FRAME })],
    ["what was sent before", false, () => packetOf(NUMBER - 1)],
    ["garbage", false, () => Buffer.alloc(172, 0x80)],
    ["in the clear", true, (number) => packetOf(number)],
    ["another key", true, (number) => forger.protect(packetOf(number))],
  ];
  for (const [what, isSecret, packets] of attempts) {
    const [phone, stranger] = [await openPhone(t), await openPhone(t)];
    const call = await open(t);
    const srtp = isSecret ? { local: key, remote: key } : null;
    call.session.agree(agreedOf(phone.port, { srtp }));
    const sent = numbers(0, NUMBER).map((number) => packetOf(number));
    await talk(phone, call, isSecret ? sent.map((packet) => coder.protect(packet)) : sent);
    assert.equal(await moves(call, stranger, packets, NUMBER, 90), null, what);
  }
  // Nor does who has all of them, while the far end sends.
  const [phone, stranger] = [await openPhone(t), await openPhone(t)];
  const call = await open(t);
  call.session.agree(agreedOf(phone.port));
  for (const number of numbers(0, 60)) {
    await stranger.send(packetOf(number + 1), call.session.port);
    await talk(phone, call, [packetOf(number)]);
  }
  assert.equal(stranger.came(), 0);
});
