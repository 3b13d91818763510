// Media sessions over real sockets: audio both ways, who is believed to be the far end, keys,
// reports and time-outs. Time is the test's; only packets are waited for.
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { LAWS } from "#providers/carriers/sip/media/g711.ts";
import { parseRtcp } from "#providers/carriers/sip/media/rtcp.ts";
import { parseRtp, type RtpPacket } from "#providers/carriers/sip/media/rtp.ts";
import type { SrtpKey } from "#providers/carriers/sip/grammar/sdp.ts";
import { createSrtpReceiver, createSrtpSender } from "#providers/carriers/sip/media/srtp.ts";
import { parseTelephoneEvent, writeTelephoneEvent } from "#providers/carriers/sip/media/telephone-event.ts";
import { test } from "#support/bounded-test.ts";
import {
  agreedOf, codeOf, countOf, FRAME, HOST, numbers, openPhone, openSession as open, packetOf,
  received, sampleOf, settled, silence, talk,
} from "#support/calls/media-session.ts";

test("[SI83] a session gets an even port for RTP and the next one for RTCP, in its range, or is refused", async (t) => {
  const any = await Promise.all(numbers(0, 20).map(() => open(t)));
  assert.equal(new Set(any.map(({ session }) => session.port)).size, 20);
  for (const { session } of any) assert.equal(session.port % 2, 0);
  const base = any[0]!.session.port;
  await assert.rejects(open(t, { ports: { min: base, max: base + 1 } }), /no pair of UDP ports/);
  await assert.rejects(open(t, { ports: { min: base + 1, max: base + 1 } }), /no pair of UDP ports/);
  any[0]!.session.close();
  any[0]!.session.close();
  const again = await open(t, { ports: { min: base, max: base + 1 } });
  assert.equal(again.session.port, base);
  again.session.close();
  const odd = await open(t, { ports: { min: base - 1, max: base + 1 } });
  assert.equal(odd.session.port, base);
  await assert.rejects(open(t, { host: "203.0.113.9" }), /could not open a media port/);
});

test("[SI84] one frame in, one frame out: the phone is heard, and what is sent arrives", async (t) => {
  for (const codec of ["PCMU", "PCMA"] as const) {
    const phone = await openPhone(t);
    const call = await open(t);
    call.session.send(silence);
    assert.equal(call.heard.length, 1, "before anything is agreed");
    const payloadType = codec === "PCMU" ? 0 : 8;
    call.session.agree(agreedOf(phone.port, { codec, payloadType }));
    const tone = Int16Array.from({ length: FRAME }, (_, at) => Math.round(9000 * Math.sin(at / 3)));
    call.session.send(tone);
    call.session.send(tone);
    const [first, second] = [await phone.nextRtp(), await phone.nextRtp()];
    assert.deepEqual([first.marker, second.marker], [true, false]);
    assert.deepEqual([first.payloadType, second.ssrc], [payloadType, first.ssrc]);
    assert.equal(second.sequence, first.sequence + 1);
    assert.equal((second.timestamp - first.timestamp) >>> 0, FRAME);
    const coded = [...tone].map((sample) => LAWS[codec].codes[sample & 0xffff]);
    assert.deepEqual([...first.payload], coded);
    await talk(phone, call, numbers(0, 50).map((number) => packetOf(number, { payloadType })));
    assert.equal(call.heard.length, 53);
    const said = call.heard.map((frame) => frame[80]!).filter((sample) => sample !== 0);
    const { samples } = LAWS[codec];
    assert.deepEqual(said.slice(0, 40), numbers(0, 40).map((number) => samples[codeOf(number)]!));
    const { packetsReceived, packetsLost, jitterMs, packetsSent } = call.session.quality()!;
    assert.deepEqual([packetsReceived, packetsLost, jitterMs, packetsSent], [50, 0, 0, 52]);
  }
});

test("[SI84] the same with SRTP, both suites: nothing on the wire is readable, nothing forged is heard", async (t) => {
  for (const suite of ["AES_CM_128_HMAC_SHA1_80", "AES_CM_128_HMAC_SHA1_32"] as const) {
    const phone = await openPhone(t);
    const call = await open(t);
    const keyOf = (byte: number): SrtpKey => ({ suite, key: Buffer.alloc(30, byte), tag: 1 });
    const srtp = { local: keyOf(1), remote: keyOf(2) };
    call.session.agree(agreedOf(phone.port, { srtp }));
    const [decoder, coder] = [createSrtpReceiver(srtp.local), createSrtpSender(srtp.remote)];
    await phone.send(packetOf(0), call.session.port);
    await talk(phone, call, numbers(0, 10).map((number) => coder.protect(packetOf(number))));
    const said = call.heard.map((frame) => frame[80]!).filter((sample) => sample !== 0);
    assert.deepEqual(said, numbers(0, said.length).map(sampleOf));
    // A re-INVITE with the same keys goes on where it was: old packets stay refused.
    call.session.agree(agreedOf(phone.port, { srtp }));
    await phone.send(createSrtpSender(srtp.remote).protect(packetOf(5)), call.session.port);
    await talk(phone, call, numbers(10, 2).map((number) => coder.protect(packetOf(number))));
    assert.equal(countOf(call.session), 12);
    for (let count = 0; count < 12; count += 1) {
      const { bytes } = await phone.next();
      assert.ok(!bytes.includes(Buffer.alloc(FRAME, 0xff)));
      assert.equal(parseRtp(decoder.unprotect(bytes)!)!.payload.length, FRAME);
    }
  }
});

test("[SI85] behind a NAT the third packet of one stream from one address moves the call there", async (t) => {
  const [named, real] = [await openPhone(t), await openPhone(t)];
  const call = await open(t);
  call.session.agree(agreedOf(named.port));
  call.session.send(silence);
  await named.next();
  // Wrong payload type, then streams that change: none of them is believed.
  for (let number = 0; number < 10; number += 1) {
    await real.send(packetOf(number, { payloadType: 8 }), call.session.port);
  }
  for (let number = 0; number < 10; number += 1) {
    await real.send(packetOf(number, { ssrc: number }), call.session.port);
    await real.send(Buffer.from("OPTIONS sip:nobody SIP/2.0"), call.session.port);
  }
  await settled();
  call.session.send(silence);
  await named.next();
  await real.send(packetOf(10), call.session.port);
  await real.send(packetOf(11), call.session.port);
  await settled();
  call.session.send(silence);
  await named.next();
  await real.send(packetOf(12), call.session.port);
  await received(call.session, 1);
  call.session.send(silence);
  await real.next();
});

test("[SI86] a stranger's packets are not heard and do not move the call, unless the far end is silent for 2 s", async (t) => {
  const [phone, stranger] = [await openPhone(t), await openPhone(t)];
  const call = await open(t);
  call.session.agree(agreedOf(phone.port));
  await talk(phone, call, numbers(0, 5).map((number) => packetOf(number)));
  for (let number = 5; number < 100; number += 1) {
    if (number < 50) await stranger.send(packetOf(number + 32), call.session.port);
    await talk(phone, call, [packetOf(number)]);
  }
  assert.equal(countOf(call.session), 100);
  const said = call.heard.map((frame) => frame[80]!).filter((sample) => sample !== 0);
  assert.deepEqual(said, numbers(0, said.length).map(sampleOf));
  for (let count = 0; count < 100; count += 1) await phone.next();
  call.system.advance(1900);
  for (let number = 0; number < 5; number += 1) {
    await stranger.send(packetOf(number), call.session.port);
  }
  await talk(phone, call, [packetOf(200)]);
  await phone.next();
  call.system.advance(2100);
  for (let number = 0; number < 3; number += 1) {
    await stranger.send(packetOf(number, { ssrc: 5 }), call.session.port);
  }
  await received(call.session, 102);
  call.session.send(silence);
  await stranger.next();
  // Who the SDP names is believed at once, whoever was first.
  await talk(phone, call, [packetOf(300), packetOf(301)]);
  await phone.next();
  await stranger.send(packetOf(3, { ssrc: 5 }), call.session.port);
  await talk(phone, call, [packetOf(302)]);
  assert.equal(countOf(call.session), 105);
});

test("[SI86] with SRTP no number of unauthenticated packets moves the call", async (t) => {
  const [named, real, stranger] = [await openPhone(t), await openPhone(t), await openPhone(t)];
  const call = await open(t);
  const key: SrtpKey = { suite: "AES_CM_128_HMAC_SHA1_80", key: Buffer.alloc(30, 3), tag: 1 };
  call.session.agree(agreedOf(named.port, { srtp: { local: key, remote: key } }));
  const coder = createSrtpSender(key);
  for (let number = 0; number < 20; number += 1) {
    await stranger.send(packetOf(number), call.session.port);
  }
  await settled();
  call.session.send(silence);
  await named.next();
  for (let number = 0; number < 3; number += 1) {
    await real.send(coder.protect(packetOf(number)), call.session.port);
  }
  await received(call.session, 1);
  call.session.send(silence);
  await real.next();
  assert.equal(countOf(call.session), 1);
});

test("[SI103] audio from an address the server may not send to is neither heard nor answered", async (t) => {
  const [named, inside] = [await openPhone(t), await openPhone(t, "127.0.0.5")];
  const call = await open(t, { mayReach: (address) => address === HOST });
  call.session.agree(agreedOf(named.port));
  for (let number = 0; number < 20; number += 1) {
    await inside.send(packetOf(number), call.session.port);
  }
  await settled();
  call.session.send(silence);
  await named.next();
  assert.equal(countOf(call.session), 0);
});

test("[SI87] a new stream from the far end is heard within 100 ms; one stray packet resets nothing", async (t) => {
  const phone = await openPhone(t);
  const call = await open(t);
  call.session.agree(agreedOf(phone.port));
  await talk(phone, call, numbers(0, 20).map((number) => packetOf(number)));
  await phone.send(packetOf(3000, { ssrc: 1 }), call.session.port);
  await talk(phone, call, numbers(20, 20).map((number) => packetOf(number)));
  const before = call.heard.map((frame) => frame[80]!).filter((sample) => sample !== 0);
  assert.deepEqual(before, numbers(0, before.length).map(sampleOf));
  const from = call.heard.length;
  await phone.send(packetOf(9000, { ssrc: 2 }), call.session.port);
  call.session.send(silence);
  await talk(phone, call, numbers(9001, 10).map((number) => packetOf(number, { ssrc: 2 })));
  const at = call.heard.slice(from)
    .findIndex((frame) => frame[0] === sampleOf(9001) && frame[159] === frame[0]);
  assert.ok(at >= 0 && at <= 5, `${at}`);
  assert.equal(call.session.quality()!.packetsLost, 0);
  // Its numbers may be such as would be late in the stream before it.
  await phone.send(packetOf(8990, { ssrc: 3 }), call.session.port);
  call.session.send(silence);
  await talk(phone, call, numbers(8991, 6).map((number) => packetOf(number, { ssrc: 3 })));
  const said = call.heard.slice(-6).map((frame) => frame[0]);
  assert.ok(said.includes(sampleOf(8991)), `${said}`);
});

test("[SI88] keys are sent as events in place of audio, and reported once when received", async (t) => {
  const phone = await openPhone(t);
  const call = await open(t);
  call.session.agree(agreedOf(phone.port));
  const loud = new Int16Array(FRAME).fill(5000);
  call.session.send(loud);
  const first = await phone.nextRtp();
  call.session.sendDtmf("1#");
  for (let frame = 0; frame < 25; frame += 1) call.session.send(loud);
  const packets: RtpPacket[] = [];
  for (let count = 0; count < 21; count += 1) packets.push(await phone.nextRtp());
  const types = packets.map(({ payloadType }) => payloadType);
  assert.deepEqual(types, [...new Array<number>(20).fill(101), 0]);
  assert.deepEqual(packets.map(({ sequence }) => sequence), numbers(first.sequence + 1, 21));
  assert.deepEqual(packets.flatMap(({ marker }, at) => (marker ? [at] : [])), [0, 10, 20]);
  const since = (packet: RtpPacket) => (packet.timestamp - first.timestamp) >>> 0;
  assert.deepEqual(new Set(packets.slice(0, 10).map(since)), new Set([FRAME]));
  assert.deepEqual(new Set(packets.slice(10, 20).map(since)), new Set([13 * FRAME]));
  assert.equal(since(packets[20]!), 25 * FRAME);
  assert.deepEqual(packets.slice(7, 11).map(({ payload }) => parseTelephoneEvent(payload)!.isEnd),
    [true, true, true, false]);
  // The other way, while audio goes on between the events.
  const eventOf = (number: number, event: number, timestamp: number, isEnd: boolean) => {
    const payload = Buffer.alloc(4);
    writeTelephoneEvent(payload, 0, { event, isEnd, volume: 10, duration: 800 });
    return packetOf(number, { payloadType: 101, timestamp, payload });
  };
  await talk(phone, call, [
    packetOf(0), packetOf(1), eventOf(2, 9, 320, false), packetOf(3), eventOf(4, 9, 320, true),
    eventOf(5, 9, 320, true), packetOf(6), eventOf(7, 9, 1120, true), eventOf(8, 15, 1280, false),
  ]);
  assert.equal(call.told.join(""), "99D");
});

test("[SI88] without agreed events keys are tones in the audio", async (t) => {
  const phone = await openPhone(t);
  const call = await open(t);
  call.session.agree(agreedOf(phone.port, { telephoneEvent: null }));
  call.session.sendDtmf("5");
  for (let frame = 0; frame < 13; frame += 1) call.session.send(new Int16Array(FRAME).fill(5000));
  const peaks: number[] = [];
  for (let count = 0; count < 13; count += 1) {
    const packet = await phone.nextRtp();
    assert.deepEqual([packet.payloadType, packet.payload.length], [0, FRAME]);
    peaks.push(Math.max(...[...packet.payload].map((code) => Math.abs(LAWS.PCMU.samples[code]!))));
  }
  assert.ok(peaks.slice(0, 8).every((peak) => peak > 11_000 && peak < 14_000), `${peaks}`);
  assert.deepEqual(peaks.slice(8, 12), [0, 0, 0, 0]);
  assert.ok(Math.abs(peaks[12]! - 5000) < 150);
});

test("[SI88] comfort noise keeps a call alive and is not heard; 60 s of nothing is reported once; a held call waits", async (t) => {
  const phone = await openPhone(t);
  const call = await open(t);
  call.system.advance(120_000);
  call.session.agree(agreedOf(phone.port, { comfortNoise: 98 }));
  for (const [number, payloadType] of [[0, 13], [1, 98], [2, 13]] as const) {
    call.system.advance(50_000);
    await talk(phone, call, [packetOf(number, { payloadType, payload: Buffer.from([40]) })]);
  }
  assert.deepEqual(call.told, []);
  assert.ok(call.heard.every((frame) => frame.every((sample) => sample === 0)));
  call.session.agree(agreedOf(phone.port, { isHeld: true }));
  call.system.advance(600_000);
  const sent = call.session.quality()!.packetsSent;
  call.session.send(silence);
  assert.equal(call.session.quality()!.packetsSent, sent, "nothing is sent to who holds");
  call.session.agree(agreedOf(phone.port));
  call.system.advance(59_000);
  assert.deepEqual(call.told, []);
  call.system.advance(200_000);
  assert.deepEqual(call.told, ["timeout"]);
  await talk(phone, call, [packetOf(3)]);
  call.system.advance(61_000);
  assert.deepEqual(call.told, ["timeout", "timeout"]);
});

test("[SI89] reports go out about every 5 s from the odd port, and end with BYE", async (t) => {
  const [phone, reports] = [await openPhone(t), await openPhone(t)];
  const call = await open(t);
  const remote = { host: HOST, port: phone.port, rtcpPort: reports.port };
  call.session.agree(agreedOf(phone.port, { remote }));
  await talk(phone, call, [0, 1, 2, 4].map((number) => packetOf(number)));
  call.system.advance(60_000);
  call.session.close();
  assert.equal(call.system.pending(), 0);
  let count = 0;
  for (let isOver = false; !isOver; count += 1) {
    const { bytes, from } = await reports.next();
    assert.equal(from.port, call.session.port + 1);
    const [report] = parseRtcp(bytes)!;
    assert.ok(report?.kind === "sender_report");
    assert.deepEqual([report.packets, report.octets], [4, 640]);
    assert.deepEqual([report.blocks[0]!.ssrc, report.blocks[0]!.lost], [77, 1]);
    // The goodbye: type 203, of one source.
    isOver = bytes.readUInt32BE(bytes.length - 8) === 0x81cb0001;
  }
  assert.ok(count >= 8 && count <= 21, `${count}`);
});

/** Sends this many frames both ways and waits until both have come. */
type Exchange = (from: number, count: number) => Promise<void>;

async function betweenSessions(t: TestContext, srtp: SrtpKey | null): Promise<Exchange> {
  const keys = srtp && { local: srtp, remote: srtp };
  const [one, other] = [await open(t), await open(t)];
  one.session.agree(agreedOf(other.session.port, { srtp: keys }));
  other.session.agree(agreedOf(one.session.port, { srtp: keys }));
  return async (from, count) => {
    for (let frame = from; frame < from + count; frame += 1) {
      one.heard.length = other.heard.length = 0;
      one.session.send(silence);
      other.session.send(silence);
      one.system.advance(20);
      other.system.advance(20);
      // Both packets come in one turn of the loop, as at the mixer's tick.
      await received(one.session, frame + 1);
      await received(other.session, frame + 1);
    }
  };
}

async function betweenSockets(t: TestContext): Promise<Exchange> {
  const [one, other] = [await openPhone(t), await openPhone(t)];
  return async (from, count) => {
    for (let frame = from; frame < from + count; frame += 1) {
      const packet = packetOf(frame);
      one.socket.send(packet, other.port, HOST);
      other.socket.send(packet, one.port, HOST);
      await one.next();
      await other.next();
    }
  };
}

test("[SI89] a call's media takes less than 3.5 times the CPU of bare sockets that send the same packets, encrypted less than 5 times", async (t) => {
  const [WARM, FRAMES, ROUNDS] = [1000, 600, 5];
  const [RTP_TIMES_MAX, SRTP_TIMES_MAX] = [3.5, 5];
  const key: SrtpKey = { suite: "AES_CM_128_HMAC_SHA1_80", key: Buffer.alloc(30, 9), tag: 1 };
  const exchanges = [
    await betweenSockets(t), await betweenSessions(t, null), await betweenSessions(t, key),
  ];
  for (const exchange of exchanges) await exchange(0, WARM);
  // In turns, and the best of a few: others on the machine make each dearer, and none cheaper.
  const costs = exchanges.map(() => Infinity);
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [at, exchange] of exchanges.entries()) {
      const before = process.cpuUsage();
      await exchange(WARM + round * FRAMES, FRAMES);
      const { user, system } = process.cpuUsage(before);
      costs[at] = Math.min(costs[at]!, (user + system) / (2 * FRAMES));
    }
  }
  const [bare, rtp, srtp] = costs as [number, number, number];
  const said = `sockets ${bare.toFixed(1)}, RTP ${rtp.toFixed(1)}, SRTP ${srtp.toFixed(1)} µs a frame`;
  t.diagnostic(said);
  assert.ok(rtp < RTP_TIMES_MAX * bare && srtp < SRTP_TIMES_MAX * bare, said);
});
