// The formats of a call's media: G.711, RTP, SRTP, RTCP and the keys of the telephone.
import assert from "node:assert/strict";
import { createCipheriv, createHmac, createSecretKey } from "node:crypto";
import { test } from "node:test";
import fc from "fast-check";
import { encodeG711, LAWS } from "#providers/carriers/sip/media/g711.ts";
import { buildRtcp, parseRtcp, Reception } from "#providers/carriers/sip/media/rtcp.ts";
import {
  parseRtp, RTP_HEADER_BYTES, sequenceDistance, writeRtpHeader,
} from "#providers/carriers/sip/media/rtp.ts";
import type { SrtpKey } from "#providers/carriers/sip/grammar/sdp.ts";
import {
  createSrtpReceiver, createSrtpSender, deriveKeys, Keystream,
} from "#providers/carriers/sip/media/srtp.ts";

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(/\s/g, ""), "hex");

// ITU-T G.191, the reference software's steps, sample by sample.
const reference = {
  muCompress(sample: number): number {
    let magnitude = sample < 0 ? ((~sample >> 2) + 33) : ((sample >> 2) + 33);
    if (magnitude > 0x1fff) magnitude = 0x1fff;
    let segment = 1;
    for (let rest = magnitude >> 6; rest !== 0; rest >>= 1) segment += 1;
    const code = ((0x8 - segment) << 4) | (0xf - ((magnitude >> segment) & 0xf));
    return sample >= 0 ? code | 0x80 : code;
  },
  muExpand(code: number): number {
    const inverted = ~code;
    const exponent = (inverted >> 4) & 7;
    const step = 4 << (exponent + 1);
    const value = (0x80 << exponent) + step * (inverted & 0xf) + step / 2 - 4 * 33;
    return (code < 0x80 ? -1 : 1) * value;
  },
  aCompress(sample: number): number {
    let value = sample < 0 ? ~sample >> 4 : sample >> 4;
    if (value > 15) {
      let exponent = 1;
      for (; value > 16 + 15; exponent += 1) value >>= 1;
      value = value - 16 + (exponent << 4);
    }
    return (sample >= 0 ? value | 0x80 : value) ^ 0x55;
  },
  aExpand(code: number): number {
    const bits = (code ^ 0x55) & 0x7f;
    const exponent = bits >> 4;
    let mantissa = bits & 0xf;
    if (exponent > 0) mantissa += 16;
    mantissa = (mantissa << 4) + 8;
    if (exponent > 1) mantissa <<= exponent - 1;
    return code > 127 ? mantissa : -mantissa;
  },
};

test("[SI60] G.711 is exact for every sample and every code of both laws", () => {
  const every = Int16Array.from({ length: 0x10000 }, (_, index) => index - 0x8000);
  const [mu, a] = [encodeG711(LAWS.PCMU, every), encodeG711(LAWS.PCMA, every)];
  every.forEach((sample, at) => {
    assert.equal(mu[at], reference.muCompress(sample), `${sample}`);
    assert.equal(a[at], reference.aCompress(sample), `${sample}`);
  });
  for (let code = 0; code < 256; code += 1) {
    assert.equal(LAWS.PCMU.samples[code], reference.muExpand(code) | 0, `mu ${code}`);
    assert.equal(LAWS.PCMA.samples[code], reference.aExpand(code), `A ${code}`);
  }
});

test("[SI61] any bytes are either parsed exactly as an RTP packet or refused", () => {
  const head = hex("b2 88 1234 00000001 cafebabe  11111111 22222222  bede 0001 aabbccdd");
  const packet = parseRtp(Buffer.concat([head, hex("0102030000000004")]))!;
  assert.equal(packet.payload.toString("hex"), "01020300");
  assert.equal(packet.payloadType, 8);
  assert.equal(packet.marker, true);
  assert.deepEqual(
    [packet.sequence, packet.timestamp, packet.ssrc], [0x1234, 1, 0xcafebabe],
  );
  const refused = {
    "too short": "80 00 0001 00000000 000000",
    "version 1": "40 00 0001 00000000 00000001",
    "more CSRCs than bytes": "8f 00 0001 00000000 00000001 00000000",
    "an extension cut off": "90 00 0001 00000000 00000001 bede",
    "an extension longer than the packet": "90 00 0001 00000000 00000001 bede 0002 00000000",
    "padding of nothing": "a0 00 0001 00000000 00000001 00",
    "more padding than payload": "a0 00 0001 00000000 00000001 000004",
    "RTCP": "80 c8 0001 00000000 00000001",
  };
  for (const [what, bytes] of Object.entries(refused)) {
    assert.equal(parseRtp(hex(bytes)), null, what);
  }
  assert.equal(parseRtp(Buffer.concat([hex("8000000100000000 00000001"), Buffer.alloc(1489)])), null);
  fc.assert(fc.property(fc.uint8Array({ maxLength: 64 }), fc.boolean(), (bytes, isRtp) => {
    if (isRtp && bytes.length > 0) bytes[0] = 0x80 | (bytes[0]! & 0x3f);
    const parsed = parseRtp(Buffer.from(bytes));
    if (parsed) assert.ok(parsed.payload.length <= bytes.length - RTP_HEADER_BYTES);
  }), { numRuns: 5000 });
});

test("[SI62] an RTP header reads as it was written, and its counters wrap around", () => {
  const bytes = Buffer.alloc(14, 7);
  const header = {
    payloadType: 101, marker: true, sequence: 65_535, timestamp: 2 ** 32 - 1, ssrc: 9,
  };
  writeRtpHeader(bytes, header);
  assert.deepEqual(parseRtp(bytes), { ...header, payload: Buffer.from([7, 7]) });
  writeRtpHeader(bytes, { ...header, sequence: 65_536, timestamp: 2 ** 32 + 5 });
  assert.deepEqual([parseRtp(bytes)?.sequence, parseRtp(bytes)?.timestamp], [0, 5]);
  assert.equal(sequenceDistance(2, 65_534), 4);
  assert.equal(sequenceDistance(65_534, 2), -4);
});

const MASTER = hex("E1F97A0D3E018BE0D64FA32C06DE4139 0EC675AD498AFEEBB6960B3AABE6");
const key80: SrtpKey = { suite: "AES_CM_128_HMAC_SHA1_80", key: MASTER, tag: 1 };
const key32: SrtpKey = { suite: "AES_CM_128_HMAC_SHA1_32", key: MASTER, tag: 1 };

function rtpPacket(sequence: number, ssrc = 0xcafebabe, length = 160): Buffer {
  const packet = Buffer.alloc(RTP_HEADER_BYTES + length, 0xab);
  const timestamp = sequence * 160;
  writeRtpHeader(packet, { payloadType: 0, marker: false, sequence, timestamp, ssrc });
  return packet;
}

test("[SI63] keystream and session keys match RFC 3711, B.2 and B.3", () => {
  const keystream = new Keystream(hex("2B7E151628AED2A6ABF7158809CF4F3C"));
  const stream = keystream.bytes(hex("F0F1F2F3F4F5F6F7F8F9FAFBFCFD0000"), 1_044_512);
  const block = (index: number) => stream.subarray(16 * index, 16 * index + 16).toString("hex").toUpperCase();
  assert.equal(block(0), "E03EAD0935C95E80E166B16DD92B4EB4");
  assert.equal(block(1), "D23513162B02D0F72A43A2FE4A5F97AB");
  assert.equal(block(2), "41E95B3BB0A2E8DD477901E4FCA894C0");
  assert.equal(block(0xfeff), "EC8CDF7398607CB0F2D21675EA9EA1E4");
  assert.equal(block(0xff00), "362B7C3C6773516318A077D7FC5073AE");
  assert.equal(block(0xff01), "6A2CC3787889374FBEB4C81B17BA6C44");
  const keys = deriveKeys(MASTER, 0);
  assert.equal(keys.encryption.toString("hex"), "c61e7a93744f39ee10734afe3ff7a087");
  assert.equal(keys.salt.toString("hex"), "30cbbc08863d8c85d49db34a9ae1");
  assert.equal(keys.authentication.toString("hex"), "cebe321f6ff7716b6fd4ab49af256a156d38baa4");
});

test("[SI64] protected packets match the reference implementation byte by byte", () => {
  // The first packets of libsrtp's own validation, under the keys of RFC 3711, B.3.
  const plain = hex(`800f1234decafbadcafebabe ${"ab".repeat(16)}`);
  const coded = hex("800f1234decafbadcafebabe4e55dc4ce79978d88ca4d215949d2402b78d6acc99ea179b8dbb");
  const report = hex(`81c8000bcafebabe ${"ab".repeat(16)}`);
  const codedReport = hex(`81c8000bcafebabe 7128035be487b9bdbef89041f977a5a8
    80000001 993e08cd54d6c1230798`);
  const sender = createSrtpSender(key80);
  assert.deepEqual(sender.protect(plain), coded);
  assert.deepEqual(sender.protectRtcp(report), codedReport);
  // The shorter tag is the beginning of the longer one, and there is none for reports.
  const short = createSrtpSender(key32);
  assert.deepEqual(short.protect(plain), coded.subarray(0, -6));
  assert.deepEqual(short.protectRtcp(report), codedReport);
  const receiver = createSrtpReceiver(key80);
  assert.deepEqual(receiver.unprotect(Buffer.from(coded)), plain);
  assert.deepEqual(receiver.unprotectRtcp(Buffer.from(codedReport)), report);
});

test("[SI105] AES-256 keystream, session keys and packets match RFC 6188, 7, and the reference implementation", () => {
  const keystream = new Keystream(hex("57f82fe3613fd170a85ec93c40b1f092 2ec4cb0dc025b58272147cc438944a98"));
  const stream = keystream.bytes(hex("f0f1f2f3f4f5f6f7f8f9fafbfcfd0000"), 1_044_512);
  const block = (index: number) => stream.subarray(16 * index, 16 * index + 16).toString("hex");
  assert.deepEqual([0, 1, 2, 0xfeff, 0xff00, 0xff01].map(block), [
    "92bdd28a93c3f52511c677d08b5515a4", "9da71b2378a854f67050756ded165bac",
    "63c4868b7096d88421b563b8c94c9a31", "cea518c90fd91ced9cbb18c078a54711",
    "3dbc4814f4da5f00a08772b63c6a046d", "6eb246913062a16891433e97dd01a57f",
  ]);
  const master = hex(`f0f04914b513f2763a1b1fa130f10e29 98f6f6e43e4309d1e622a0e332b9f1b6
    3b04803de51ee7c96423ab5b78d2`);
  const keys = deriveKeys(master, 0);
  assert.equal(keys.encryption.toString("hex"),
    "5ba1064e30ec51613cad926c5a28ef731ec7fb397f70a960653caf06554cd8c4");
  assert.equal(keys.salt.toString("hex"), "fa31791685ca444a9e07c6c64e93");
  assert.equal(keys.authentication.toString("hex"), "fd9c32d39ed5fbb5a9dc96b30818454d1313dc05");
  const plain = hex(`800f1234decafbadcafebabe ${"ab".repeat(16)}`);
  const coded = hex("800f1234decafbadcafebabef1d9de17ff251ff1aa007774b0b4b40da08d9d9a5b3a55d8873b");
  const long: SrtpKey = { suite: "AES_256_CM_HMAC_SHA1_80", key: master, tag: 1 };
  const short: SrtpKey = { ...long, suite: "AES_256_CM_HMAC_SHA1_32" };
  assert.deepEqual(createSrtpSender(long).protect(plain), coded);
  assert.deepEqual(createSrtpSender(short).protect(plain), coded.subarray(0, -6));
  assert.deepEqual(createSrtpReceiver(long).unprotect(Buffer.from(coded)), plain);
  assert.deepEqual(createSrtpReceiver(short).unprotect(Buffer.from(coded.subarray(0, -6))), plain);
  const report = hex("81c8000bcafebabe abababab");
  const codedReport = createSrtpSender(short).protectRtcp(report);
  assert.equal(codedReport.length, report.length + 4 + 10);
  assert.deepEqual(createSrtpReceiver(long).unprotectRtcp(codedReport), report);
});

test("[SI65] a packet with one bit changed, truncated or forged is refused and does no harm", () => {
  for (const key of [key80, key32]) {
    const sender = createSrtpSender(key);
    const receiver = createSrtpReceiver(key);
    const coded = sender.protect(rtpPacket(7, 1, 20));
    const report = sender.protectRtcp(hex("81c8000bcafebabe abababab"));
    for (let bit = 0; bit < coded.length * 8; bit += 1) {
      const forged = Buffer.from(coded);
      forged[bit >> 3]! ^= 1 << (bit & 7);
      assert.equal(receiver.unprotect(forged), null, `bit ${bit}`);
    }
    for (let bit = 0; bit < report.length * 8; bit += 1) {
      const forged = Buffer.from(report);
      forged[bit >> 3]! ^= 1 << (bit & 7);
      assert.equal(receiver.unprotectRtcp(forged), null, `bit ${bit}`);
    }
    for (let length = 0; length < coded.length; length += 1) {
      assert.equal(receiver.unprotect(Buffer.from(coded.subarray(0, length))), null);
      assert.equal(receiver.unprotectRtcp(Buffer.from(coded.subarray(0, length))), null);
    }
    fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      assert.equal(receiver.unprotect(Buffer.from(bytes)), null);
      assert.equal(receiver.unprotectRtcp(Buffer.from(bytes)), null);
    }), { numRuns: 500 });
    assert.deepEqual(receiver.unprotect(coded), rtpPacket(7, 1, 20));
    assert.deepEqual(receiver.unprotectRtcp(report), hex("81c8000bcafebabe abababab"));
  }
});

test("[SI66] no packet is accepted twice, and none more than 64 packets old", () => {
  const sender = createSrtpSender(key80);
  const receiver = createSrtpReceiver(key80);
  const coded = Array.from({ length: 200 }, (_, index) => sender.protect(rtpPacket(index)));
  const take = (index: number) => receiver.unprotect(Buffer.from(coded[index]!)) !== null;
  assert.equal(take(100), true);
  assert.equal(take(100), false);
  assert.equal(take(37), true);
  assert.equal(take(36), false);
  assert.equal(take(37), false);
  assert.equal(take(164), true);
  assert.equal(take(100), false);
  assert.equal(take(101), true);
  assert.equal(take(101), false);
  // Streams do not share what came, and more of them than are remembered do no harm.
  for (let ssrc = 1; ssrc <= 20; ssrc += 1) {
    const other = createSrtpSender(key80).protect(rtpPacket(101, ssrc));
    assert.ok(receiver.unprotect(Buffer.from(other)));
    assert.equal(receiver.unprotect(other), null);
  }
  const report = sender.protectRtcp(hex("81c8000bcafebabe abababab"));
  assert.ok(receiver.unprotectRtcp(Buffer.from(report)));
  assert.equal(receiver.unprotectRtcp(report), null);
});

test("[SI67] sequence numbers wrap around many times, whatever is lost or late at the wrap", () => {
  for (const key of [key80, key32]) {
    const losses = [
      [], [65_535], [65_536], [65_530, 65_545], [65_500, 65_600], [50_000, 80_000],
    ];
    for (const lost of losses) {
      const sender = createSrtpSender(key);
      const receiver = createSrtpReceiver(key);
      const [from = -1, to = from] = lost;
      // Near the turn every packet, elsewhere some: what lies between is loss as well.
      for (let index = 30_000; index < 400_000; index += 1) {
        const isNearTurn = (index + 40) % 65_536 < 80;
        if (!isNearTurn && index % 500 !== 0) continue;
        const coded = sender.protect(rtpPacket(index & 0xffff, 1, 4));
        if (index >= from && index <= to) continue;
        assert.deepEqual(receiver.unprotect(coded), rtpPacket(index & 0xffff, 1, 4), `${index}`);
      }
    }
  }
  const sender = createSrtpSender(key80);
  const receiver = createSrtpReceiver(key80);
  const coded = [65_533, 65_534, 65_535, 0, 1, 2]
    .map((number) => sender.protect(rtpPacket(number)));
  for (const at of [0, 3, 2, 5, 1, 4]) assert.ok(receiver.unprotect(coded[at]!), `${at}`);
});

test("[SI68] a report that is only authenticated is read, one under another key is not", () => {
  const receiver = createSrtpReceiver(key80);
  const sender = createSrtpSender({ ...key80, key: Buffer.from(MASTER).fill(1, 20) });
  assert.equal(receiver.unprotectRtcp(sender.protectRtcp(hex("81c8000bcafebabe abababab"))), null);
  assert.equal(receiver.unprotect(sender.protect(rtpPacket(1))), null);
  // libsrtp's packet for a policy without encryption of reports is ours with the flag off.
  const plain = hex("81c8000bcafebabe abababab");
  const signed = signOnly(plain, 5);
  assert.deepEqual(receiver.unprotectRtcp(signed), plain);
});

function signOnly(plain: Buffer, index: number): Buffer {
  const body = Buffer.concat([plain, Buffer.alloc(4)]);
  body.writeUInt32BE(index, plain.length);
  const tag = createHmac("sha1", deriveKeys(MASTER, 3).authentication).update(body).digest();
  return Buffer.concat([body, tag.subarray(0, 10)]);
}

test("[SI69] protecting and unprotecting a packet costs little more than its ciphers and signatures", (t) => {
  for (const key of [key80, key32]) {
    const sender = createSrtpSender(key);
    const receiver = createSrtpReceiver(key);
    const packet = rtpPacket(0);
    let index = 0;
    const whole = (): void => {
      packet.writeUInt16BE((index += 1) & 0xffff, 2);
      assert.ok(receiver.unprotect(sender.protect(packet)));
    };
    const secret = createSecretKey(Buffer.alloc(20, 1));
    const cipher = createCipheriv("aes-128-ecb", Buffer.alloc(16, 2), null);
    const bare = (): void => {
      for (let side = 0; side < 2; side += 1) {
        cipher.update(packet);
        createHmac("sha1", secret).update(packet).digest();
      }
    };
    const cpuOf = (work: () => void): number => {
      const before = process.cpuUsage();
      for (let count = 0; count < 4000; count += 1) work();
      const { user, system } = process.cpuUsage(before);
      return user + system;
    };
    // In turns, so that a busy machine slows both alike.
    const rounds = Array.from({ length: 7 }, () => [cpuOf(whole), cpuOf(bare)] as const);
    const least = (place: 0 | 1): number => Math.min(...rounds.map((round) => round[place]));
    const ratio = least(0) / least(1);
    t.diagnostic(`${key.suite}: ${ratio.toFixed(2)} times`);
    assert.ok(ratio < 4, `${ratio}`);
  }
});

test("[SI70] RTCP reports read as they were written; anything else is refused without a throw", () => {
  const block = {
    ssrc: 5, fractionLost: 64, lost: 1000, highestSequence: 70_000, jitter: 40,
    lastReport: 0x1234_5678, sinceLastReport: 65_536,
  };
  const now = Date.UTC(2026, 0, 15, 12) * 1000 + 250_000;
  const report = { ssrc: 7, cname: "somebody", now, block, isGoodbye: true };
  const sent = { timestamp: 2 ** 32 + 3, packets: 10, octets: 1600 };
  const bytes = buildRtcp({ ...report, sent });
  assert.equal(bytes.length % 4, 0);
  const seconds = (now / 1e6 - 0.25 + 2_208_988_800) % 2 ** 32;
  assert.deepEqual(parseRtcp(bytes), [
    {
      kind: "sender_report", ssrc: 7, timestamp: 3, packets: 10, octets: 1600, blocks: [block],
      ntpMiddle: (seconds % 65_536) * 65_536 + 0x4000,
    },
  ]);
  assert.equal(bytes.toString("hex").slice(-16), "81cb000100000007");
  const receiver = buildRtcp({ ...report, sent: null, block: null, isGoodbye: false });
  assert.deepEqual(parseRtcp(receiver), [{ kind: "receiver_report", ssrc: 7, blocks: [] }]);
  assert.equal(parseRtcp(hex("81c90001 00000007")), null);
  assert.equal(parseRtcp(hex("80c90002 00000007")), null);
  assert.equal(parseRtcp(hex("80c90001 00000007 00")), null);
  assert.equal(parseRtcp(hex("80cb0000")), null);
  fc.assert(fc.property(
    fc.uint8Array({ maxLength: 120 }), fc.nat(bytes.length - 1), fc.boolean(),
    (noise, at, isMixed) => {
      const input = isMixed ? Buffer.from(bytes) : Buffer.from(noise);
      if (isMixed) input.set(noise.subarray(0, bytes.length - at), at);
      const parts = parseRtcp(input);
      assert.ok(parts === null || parts.length <= input.length / 4);
    },
  ), { numRuns: 5000 });
});

test("[SI71] losses are counted correctly across reordering, duplicates, wraps and new streams", () => {
  const reception = new Reception();
  const push = (numbers: number[], ssrc = 1) => {
    for (const number of numbers) reception.push(ssrc, number & 0xffff, number * 160, number * 20);
  };
  push([65_530, 65_531, 65_533, 65_532, 65_535, 65_537]);
  assert.deepEqual([reception.received, reception.lost], [6, 2]);
  assert.equal(reception.block()?.fractionLost, 64);
  assert.equal(reception.block()?.highestSequence, 65_537);
  push([65_538, 65_539]);
  assert.equal(reception.block()?.fractionLost, 0);
  push([20_000, 20_001, 20_003]);
  assert.deepEqual([reception.received, reception.lost], [11, 3]);
  push([5, 5, 6], 2);
  assert.deepEqual([reception.received, reception.lost], [14, 3]);
  const shaken = new Reception();
  // Every other packet 10 ms late: the differences are 10 ms each.
  for (let index = 0; index < 500; index += 1) {
    shaken.push(1, index, index * 160, index * 20 + (index % 2) * 10);
  }
  assert.ok(Math.abs(shaken.jitter.ms - 10) < 0.1, `${shaken.jitter.ms}`);
});
