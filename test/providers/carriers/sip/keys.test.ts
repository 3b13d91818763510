// Keys of the telephone: as events (RFC 4733) and as tones.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { KeysIn } from "#providers/carriers/sip/media/keys-in.ts";
import {
  createDtmfReceiver, DIGITS, DtmfSender, dtmfTone, parseTelephoneEvent, writeTelephoneEvent,
} from "#providers/carriers/sip/media/telephone-event.ts";
import { createManualSystem } from "#support/manual-clock.ts";

interface Sent {
  timestamp: number;
  payload: Buffer;
}

/** All packets of these keys as our own sender makes them, three ends each. */
function packetsOf(digits: string, from = 4_294_960_000): Sent[][] {
  const sender = new DtmfSender();
  sender.add(digits);
  const keys: Sent[][] = [];
  let begun = 0;
  let now = from;
  for (let frame = sender.next(); frame; frame = sender.next()) {
    if (frame.isFirst) {
      begun = now;
      keys.push([]);
    }
    now = (now + 160) >>> 0;
    if (!frame.event) continue;
    const payload = Buffer.alloc(4);
    writeTelephoneEvent(payload, 0, frame.event);
    keys.at(-1)!.push({ timestamp: begun, payload });
  }
  return keys;
}

function heard(packets: Sent[]): string {
  let digits = "";
  const receiver = createDtmfReceiver((digit) => {
    digits += digit;
  });
  for (const { timestamp, payload } of packets) receiver.push(timestamp, payload);
  return digits;
}

test("[SI72] a key counts once with its end duplicated or lost or its start lost; pressed twice it counts twice", () => {
  const keys = packetsOf(DIGITS);
  assert.equal(heard(keys.flat()), "0123456789*#ABCD");
  const [one, two] = packetsOf("11") as [Sent[], Sent[]];
  assert.equal(heard([...one, ...two]), "11");
  const isEnd = ({ payload }: Sent) => parseTelephoneEvent(payload)!.isEnd;
  assert.equal(one.filter(isEnd).length, 3);
  const open = one.filter((packet) => !isEnd(packet));
  assert.equal(heard([...open, ...two]), "11", "end lost");
  assert.equal(heard([...one.filter(isEnd), ...two]), "11", "beginning lost");
  assert.equal(heard([one.at(-1)!, two[0]!]), "11", "nearly everything lost");
  assert.equal(heard([...one, ...two, ...one.filter(isEnd)]), "11", "ends that come late");
  assert.equal(heard([...one, two[0]!, one.at(-1)!, ...two.slice(1)]), "11", "ends between");
  assert.equal(heard([one[0]!, one[0]!, ...one]), "1", "doubles");
});

test("[SI72] a key held for 20 s is one key, and other events or malformed ones are none", () => {
  const packets: Sent[] = [];
  for (const segment of [0, 1, 2]) {
    for (let duration = 8000; duration <= 0xffff; duration += 8000) {
      const payload = Buffer.alloc(4);
      writeTelephoneEvent(payload, 0, { event: 5, isEnd: false, volume: 10, duration });
      packets.push({ timestamp: 1000 + segment * 0xffff, payload });
    }
  }
  assert.equal(heard(packets), "5");
  const [again] = packetsOf("5", 1000 + 3 * 0xffff + 800) as [Sent[]];
  assert.equal(heard([...packets, ...again]), "55");
  const none = [[], [1, 0, 0], [16, 0, 0, 1], [255, 0x80, 0, 1]].map((bytes) => Buffer.from(bytes));
  assert.equal(heard(none.map((payload, timestamp) => ({ timestamp, payload }))), "");
});

test("[SI73] if at least one packet of each key arrives, every key is reported once and in order", () => {
  const digit = fc.constantFrom(...DIGITS);
  const pressed = fc.array(digit, { maxLength: 30 });
  fc.assert(fc.property(pressed, fc.infiniteStream(fc.nat(9)), (digits, random) => {
    const chance = () => random.next().value as number;
    const came = packetsOf(digits.join("")).flatMap((key) => {
      const kept = key.filter(() => chance() < 4);
      const some = kept.length > 0 ? kept : [key[chance() % key.length]!];
      return some.flatMap((packet) => (chance() < 3 ? [packet, packet] : [packet]));
    });
    assert.equal(heard(came), digits.join(""));
  }));
});

test("[SI162] a key whose packets get new timestamps on the way, all or only its ends, counts once; keys that share a timestamp count separately", () => {
  const moved = (packets: Sent[], by: (number: number) => number): Sent[] => packets.map(
    ({ timestamp, payload }, at) => ({ payload, timestamp: (timestamp + by(at)) >>> 0 }));
  const pressed = "1122#";
  const keys = packetsOf(pressed);
  const growing = keys.map((key) => moved(key, (number) => 160 * Math.min(number, 7)));
  assert.equal(heard(growing.flat()), pressed, "with every packet");
  for (const step of [1, 160, 320]) {
    const ends = keys.map((key) => moved(key, (number) => step * Math.max(0, number - 7)));
    assert.equal(heard(ends.flat()), pressed, `ends ${step} apart`);
  }
  const [one, two] = packetsOf("12") as [Sent[], Sent[]];
  const same = two.map(({ payload }) => ({ payload, timestamp: one[0]!.timestamp }));
  assert.equal(heard([...one, ...same]), "12");
});

test("[SI170] a key whose end packets have new timestamps and arrive after the next key counts once", () => {
  const pressed = "12122";
  const keys = packetsOf(pressed).map((key) => key.map(({ timestamp, payload }, at) =>
    ({ payload, timestamp: (timestamp + 160 * Math.max(0, at - 7)) >>> 0 })));
  const came = keys.flatMap((key, at) => [...key.slice(0, 8), ...keys[at - 1]?.slice(8) ?? []]);
  assert.equal(heard(came), pressed);
});

test("[SO130] a key counts once even if each packet has its own timestamp, whichever are lost or late", () => {
  const pressed = "1122#";
  const keys = packetsOf(pressed).map((key) => key.map(({ timestamp, payload }, at) =>
    ({ payload, timestamp: (timestamp + 160 * Math.min(at, 7)) >>> 0 })));
  fc.assert(fc.property(fc.infiniteStream(fc.nat(3)), (draws) => {
    const told = keys.map((key) => {
      const late = key.filter(() => draws.next().value === 0);
      const rest = key.filter((one) => !late.includes(one) && draws.next().value !== 0);
      return [...rest, ...late].length === 0 ? key : [...rest, ...late];
    });
    assert.equal(heard(told.flat()), pressed);
  }));
});

test("[SI161] keys sent both as events and in INFO count once each, whichever comes first", () => {
  const keyOf = (digit: string, from: number) => packetsOf(digit, from)[0]!;
  for (const order of [["event", "message"], ["message", "event"]]) {
    const system = createManualSystem();
    let told = "";
    const keys = new KeysIn({ rate: 8000, system, onKey: (digit) => (told += digit) });
    keys.agree({ hasEvents: true });
    const press = (digit: string, ways: string[], at: number): void => {
      for (const way of ways) {
        if (way === "message") keys.receiveMessage(digit);
        else keyOf(digit, at).forEach((sent) => keys.receiveEvent(sent.timestamp, sent.payload));
        system.advance(100);
      }
    };
    [..."1122#"].forEach((digit, number) => press(digit, order, 4000 * number));
    assert.equal(told, "1122#", `${order}`);
    // One of the two is lost, and the same key is pressed again later.
    press("7", order.slice(0, 1), 40_000);
    system.advance(2000);
    press("7", order, 60_000);
    press("7", order.slice(1), 80_000);
    assert.equal(told, "1122#777", `${order}`);
  }
});

test("[SI74] a key is sent for 160 ms with three end packets, 80 ms before the next one", () => {
  const sender = new DtmfSender();
  assert.equal(sender.next(), null);
  sender.add("a 7x");
  const frames = Array.from({ length: 24 }, () => sender.next()!);
  assert.equal(sender.next(), null);
  assert.equal(frames.map(({ digit }) => digit).join(""), `${"A".repeat(12)}${"7".repeat(12)}`);
  assert.deepEqual(
    frames.slice(0, 12).map(({ event }) => event && [event.event, event.duration, event.isEnd]),
    [
      [12, 160, false], [12, 320, false], [12, 480, false], [12, 640, false], [12, 800, false],
      [12, 960, false], [12, 1120, false], [12, 1280, true], [12, 1280, true], [12, 1280, true],
      null, null,
    ],
  );
  assert.deepEqual(frames.map(({ isTone }) => isTone).slice(6, 14),
    [true, true, false, false, false, false, true, true]);
  assert.deepEqual(frames.flatMap(({ isFirst }, at) => (isFirst ? [at] : [])), [0, 12]);
  sender.add("1".repeat(1000));
  let count = 0;
  while (sender.next()) count += 1;
  assert.equal(count, 128 * 12);
});

/** Level of one frequency, as the amplitude of its sine. */
function goertzel(pcm: number[], hertz: number): number {
  const coefficient = 2 * Math.cos((2 * Math.PI * hertz) / 8000);
  let last = 0;
  let before = 0;
  for (const sample of pcm) [last, before] = [sample + coefficient * last - before, last];
  return (2 * Math.sqrt(last ** 2 + before ** 2 - coefficient * last * before)) / pcm.length;
}

test("[SI75] the tones of all sixteen keys have their two frequencies, without a seam", () => {
  const keypad = { 697: "123A", 770: "456B", 852: "789C", 941: "*0#D" };
  const columns = [1209, 1336, 1477, 1633];
  for (const digit of DIGITS) {
    const frames = Array.from({ length: 8 }, (_, frame) =>
      dtmfTone({ digit, duration: (frame + 1) * 160 }));
    const pcm = frames.flatMap((frame) => [...frame]);
    const levels = [697, 770, 852, 941, ...columns]
      .map((hertz) => ({ hertz, level: goertzel(pcm, hertz) }));
    const [high, low, next] = levels.sort((one, other) => other.level - one.level);
    const row = Object.entries(keypad).find(([, keys]) => keys.includes(digit))!;
    const pair = [Number(row[0]), columns[row[1].indexOf(digit)]];
    assert.deepEqual([low!.hertz, high!.hertz], pair, digit);
    assert.ok(Math.abs(low!.level - 6000) < 300 && Math.abs(high!.level - 7550) < 300, digit);
    assert.ok(next!.level < low!.level / 10, `${digit} ${next!.hertz} ${next!.level}`);
    assert.ok(Math.max(...pcm.map(Math.abs)) <= 13_550);
    // A seam would be a step that two sines of these levels cannot make.
    const steepest = 2 * Math.PI * (6000 * low!.hertz + 7550 * high!.hertz) / 8000;
    for (let at = 1; at < pcm.length; at += 1) {
      assert.ok(Math.abs(pcm[at]! - pcm[at - 1]!) <= steepest + 1, `${digit} ${at}`);
    }
  }
});
