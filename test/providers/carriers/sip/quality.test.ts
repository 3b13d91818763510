// What is known of how a call sounded: counted from packets over real sockets on a clock by hand,
// rated by the E-model, and on the record of a call through the real server.
import assert from "node:assert/strict";
import { after } from "node:test";
import fc from "fast-check";
import { mosOf, rFactorOf } from "#providers/carriers/sip/media/e-model.ts";
import { buildRtcp, ntpMiddleOf, parseRtcp } from "#providers/carriers/sip/media/rtcp.ts";
import { askUntil } from "#support/asking.ts";
import { test } from "#support/bounded-test.ts";
import {
  agreedOf, HOST, numbers, openPhone, openSession as open, packetOf, received, settled, silence,
  talk,
} from "#support/calls/media-session.ts";
import { startEndpoint } from "#support/endpoint.ts";
import { startSipWorld } from "#support/sip/server-with-sip.ts";
import { openCaller } from "#support/sip/sip-caller.ts";

/** Where the first block of a receiver report has what was lost. */
const LOST_AT = 13;
const world = await startSipWorld();
after(() => world.server.close());

test("[SI124] the rating is the E-model's: 93.2 and 4.41 at best, lower with loss and delay, always in bounds", async () => {
  const rated = (lossPercent: number, delayMs: number): [number, number] => {
    const r = rFactorOf({ lossPercent, delayMs });
    return [Math.round(r * 10) / 10, Math.round(mosOf(r) * 100) / 100];
  };
  assert.deepEqual(rated(0, 0), [93.2, 4.41]);
  assert.deepEqual(rated(1, 50), [88.4, 4.3]);
  assert.deepEqual(rated(5, 100), [75, 3.82]);
  assert.deepEqual(rated(0, 400), [59.1, 3.05]);
  assert.deepEqual(rated(100, 5000), [0, 1]);
  const loss = fc.double({ min: 0, max: 100, noNaN: true });
  const late = fc.double({ min: 0, max: 20_000, noNaN: true });
  fc.assert(fc.property(loss, late, loss, late, (lossPercent, delayMs, more, longer) => {
    const r = rFactorOf({ lossPercent, delayMs });
    const worse = rFactorOf({ lossPercent: lossPercent + more, delayMs: delayMs + longer });
    // Neighbouring doubles round either way.
    const near = 1e-9;
    assert.ok(worse <= r + near && r <= 93.2 && worse >= 0);
    assert.ok(mosOf(worse) <= mosOf(r) + near && mosOf(worse) >= 1 && mosOf(r) <= 4.5);
  }));
});

test("[SI125] lost, duplicate, late and concealed packets are counted once each, and a pause counts as none", async (t) => {
  const phone = await openPhone(t);
  const call = await open(t);
  assert.equal(call.session.quality(), null);
  call.session.agree(agreedOf(phone.port));
  const lost = new Set([20, 21, 40]);
  await talk(phone, call, numbers(0, 60).filter((number) => !lost.has(number))
    .flatMap((number) => [packetOf(number), ...(number === 50 ? [packetOf(number)] : [])]));
  const [first] = [call.session.quality()!];
  assert.deepEqual(
    [first.codec, first.packetsReceived, first.packetsLost, first.packetsDuplicate],
    ["pcmu", 57, 3, 1]);
  assert.ok(first.framesConcealed! >= 3 && first.framesConcealed! <= 6, `${first.framesConcealed}`);
  assert.equal(first.lossPercent, 5);
  // A packet that comes when its time has been heard is late, and was counted as lost until then.
  await talk(phone, call, [packetOf(40)]);
  const late = call.session.quality()!;
  assert.deepEqual([late.packetsLate, late.packetsLost, late.packetsReceived], [1, 2, 58]);
  assert.ok(late.rFactor! < 93.2 && late.mos! < 4.41 && late.mos! > 3, `${late.rFactor}`);
  // Nothing comes for 2 s, and then the next number: nobody has lost anything.
  const before = late.framesConcealed!;
  for (let frame = 0; frame < 100; frame += 1) {
    call.system.advance(20);
    call.session.send(silence);
  }
  await talk(phone, call, numbers(60, 20).map((number) =>
    packetOf(number, { timestamp: (number + 100) * 160 })));
  const paused = call.session.quality()!;
  assert.deepEqual([paused.packetsLost, paused.framesConcealed], [2, before]);
});

test("[SI171] a call whose packets all arrive twice is rated like one whose packets arrive once", async (t) => {
  for (const later of [0, 3]) {
    const phone = await openPhone(t);
    const call = await open(t);
    call.session.agree(agreedOf(phone.port));
    for (const number of numbers(0, 100)) {
      await phone.send(packetOf(number), call.session.port);
      if (number >= later) await phone.send(packetOf(number - later), call.session.port);
      await received(call.session, 2 * (number + 1) - Math.min(number + 1, later));
      call.system.advance(20);
      call.session.send(silence);
    }
    const seen = call.session.quality()!;
    const { packetsReceived, packetsDuplicate, packetsLate, lossPercent, jitterMs } = seen;
    assert.deepEqual([packetsReceived, packetsDuplicate], [100, 100 - later]);
    assert.deepEqual([packetsLate, lossPercent, jitterMs], [0, 0, 0]);
    assert.ok(seen.mos! > 4.3, `${seen.mos}`);
  }
});

test("[SI125] jitter follows RFC 3550, mean and maximum", async (t) => {
  const phone = await openPhone(t);
  const call = await open(t);
  call.session.agree(agreedOf(phone.port));
  // Every other packet comes 16 ms later than the one before it would have it.
  for (const number of numbers(0, 400)) {
    await phone.send(packetOf(number), call.session.port);
    await received(call.session, number + 1);
    call.system.advance(number % 2 === 0 ? 36 : 4);
    if (number % 2 === 1) {
      call.session.send(silence);
      call.session.send(silence);
    }
  }
  const quality = call.session.quality()!;
  assert.ok(Math.abs(quality.jitterMaxMs! - 16) < 0.2, `${quality.jitterMaxMs}`);
  assert.ok(quality.jitterMs! > 14 && quality.jitterMs! < 16, `${quality.jitterMs}`);
});

test("[SI126] the far end's RTCP reports give round trip and loss; impossible values are ignored", async (t) => {
  const [phone, reports] = [await openPhone(t), await openPhone(t)];
  const call = await open(t);
  const remote = { host: HOST, port: phone.port, rtcpPort: reports.port };
  call.session.agree(agreedOf(phone.port, { remote }));
  await talk(phone, call, numbers(0, 200).map((number) => packetOf(number)));
  call.system.advance(10_000);
  const [ours] = parseRtcp((await reports.next()).bytes)!;
  assert.ok(ours?.kind === "sender_report");
  const sentAt = call.system.now();
  const reply = async (change: object, lost: number | null = null): Promise<void> => {
    const block = {
      ssrc: ours.ssrc, fractionLost: 0, lost: 4, highestSequence: 1, jitter: 80,
      lastReport: ntpMiddleOf(sentAt), sinceLastReport: 65_536 / 10, ...change,
    };
    const packet = buildRtcp({
      ssrc: 77, cname: "far", now: sentAt, sent: null, block, isGoodbye: false,
    });
    if (lost !== null) packet.writeIntBE(lost, LOST_AT, 3);
    await reports.send(packet, call.session.port + 1);
    await settled();
  };
  assert.equal(call.session.quality()!.roundTripMs, null);
  call.system.advance(160);
  await reply({});
  const seen = call.session.quality()!;
  assert.deepEqual(
    [seen.roundTripMs, seen.remotePacketsLost, seen.remoteJitterMs, seen.remoteLossPercent],
    [60, 4, 10, 2]);
  assert.ok(seen.delayMs! >= 20 + 30, `${seen.delayMs}`);
  await reply({ sinceLastReport: 65_536 * 60 });
  await reply({ lastReport: 1 });
  // Doubles make the loss negative; Twinkle reports such a jitter in every call.
  await reply({ jitter: 158_110_112, lastReport: 0 }, -5);
  const lies = call.session.quality()!;
  assert.deepEqual(
    [lies.roundTripMs, lies.remotePacketsLost, lies.remoteJitterMs], [60, 0, null]);
  await reply({ lost: 0x7fffff });
  assert.equal(call.session.quality()!.remoteLossPercent, 100);
  // Somebody else's sound.
  await reply({ ssrc: 1, lost: 0 });
  assert.equal(call.session.quality()!.remoteLossPercent, 100);
});

test("[SC101] a call's record and its webhook state the audio quality", async (t) => {
  const endpoint = await startEndpoint();
  t.after(endpoint.close);
  const { number } = await world.desk({
    webhook_url: `${endpoint.url}/after`, is_webhook_active: true,
  });
  const caller = await openCaller(world.sipPort, number);
  t.after(() => caller.close());
  caller.talker.fate = (packet) => packet < 20 ? "sent"
    : packet % 25 === 0 ? "lost" : packet % 25 === 7 ? "twice" : "sent";
  await caller.call();
  const callId = await world.nextCall(number);
  // Four seconds of packets, however long they take.
  await askUntil(() => caller.talker.sent(), (count) => count >= 200);
  const live = (await world.server.call("GET", `/user/calls/${callId}`)).body;
  assert.equal(live.quality, null);
  const sent = caller.talker.sent();
  caller.say("BYE");
  const { quality } = await world.when(callId, "ended_by_customer") as
    { quality: Record<string, number | string | null> };
  t.diagnostic(JSON.stringify(quality));
  const lost = quality.packets_lost as number;
  assert.ok(lost >= 6 && lost <= 8, `${lost}`);
  assert.ok(Math.abs((quality.packets_duplicate as number) - lost) <= 1);
  const came = (quality.packets_received as number) + (quality.packets_duplicate as number);
  assert.ok(Math.abs(came - sent) <= 5, `${came} of ${sent}`);
  assert.ok((quality.frames_concealed as number) >= lost - 1);
  assert.ok((quality.loss_percent as number) > 2 && (quality.loss_percent as number) < 12);
  assert.ok((quality.jitter_ms as number) >= 0 && (quality.jitter_ms as number) < 30);
  const { step_ms: stepMs, values } = quality.jitter_over_time as unknown as
    { step_ms: number; values: number[] };
  assert.equal(stepMs, 5000);
  assert.ok(values.length > 0 && Math.max(...values) <= (quality.jitter_max_ms as number));
  assert.ok((quality.mos as number) > 2.5 && (quality.mos as number) < 4.4);
  assert.equal(quality.codec, "pcmu");
  assert.deepEqual([quality.round_trip_ms, quality.remote_packets_lost], [null, null]);
  await askUntil(() => endpoint.requests.length, (count) => count > 0);
  assert.deepEqual(JSON.parse(endpoint.requests[0]!.body).quality, quality);
});
