// Recordings as Opus in Ogg: the file's structure, where each sample is, and that one side is not
// heard on the other.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createDecoder } from "libopus-wasm";
import { openOggOpus } from "#audio/ogg-opus.ts";
import { levelAt, sineOf } from "#support/calls/spectrum.ts";

interface Page {
  flags: number;
  granule: number;
  number: number;
  packets: Buffer[];
}

/** As RFC 3533 has them; packets here end with their page. */
function pagesOf(file: Buffer): Page[] {
  const pages: Page[] = [];
  for (let at = 0; at < file.length;) {
    assert.equal(file.toString("latin1", at, at + 4), "OggS");
    const count = file[at + 26]!;
    const lacing = file.subarray(at + 27, at + 27 + count);
    const packets: Buffer[] = [];
    let body = at + 27 + count;
    let length = 0;
    for (const segment of lacing) {
      length += segment;
      if (segment === 255) continue;
      packets.push(file.subarray(body, body + length));
      body += length;
      length = 0;
    }
    assert.equal(length, 0);
    pages.push({
      flags: file[at + 5]!, granule: Number(file.readBigInt64LE(at + 6)),
      number: file.readUInt32LE(at + 18), packets,
    });
    at = body;
  }
  return pages;
}

/** What a player makes of it: the beginning skipped, the end where the last page says. */
async function played(file: Buffer, rate: 8000 | 16_000) {
  const [head, , ...pages] = pagesOf(file);
  const [identity] = head!.packets;
  assert.equal(identity!.toString("latin1", 0, 8), "OpusHead");
  assert.deepEqual([identity![9], identity!.readUInt32LE(12)], [2, rate]);
  const skip = identity!.readUInt16LE(10);
  const decoder = await createDecoder({ sampleRate: rate, channels: 2 });
  const all = pages.flatMap(({ packets }) => packets)
    .flatMap((packet) => [...decoder.decode(packet)]);
  decoder.free();
  const ticks = 48_000 / rate;
  const frames = (pages.at(-1)!.granule - skip) / ticks;
  const sound = all.slice((2 * skip) / ticks, 2 * (skip / ticks + frames));
  const side = (which: number) => Int16Array.from(sound.filter((_, at) => at % 2 === which));
  return { left: side(0), right: side(1), pages };
}

for (const rate of [8000, 16_000] as const) {
  test(`[SN24] a ${rate} Hz recording as Opus keeps length, timing to the millisecond and separate sides`, async (t) => {
    const frames = rate * 7 + 123;
    const burst = sineOf(700, rate, 1);
    const other = sineOf(1300, rate, 1);
    const sound = new Int16Array(2 * frames);
    burst.forEach((sample, at) => (sound[2 * (rate * 2 + at)] = sample));
    other.forEach((sample, at) => (sound[2 * (rate * 5 + at) + 1] = sample));
    const pieces: Buffer[] = [];
    const writer = await openOggOpus(rate, (bytes) => void pieces.push(bytes));
    for (let at = 0; at < sound.length; at += 1554) writer.write(sound.subarray(at, at + 1554));
    writer.close();
    const file = Buffer.concat(pieces);
    const { left, right, pages } = await played(file, rate);
    assert.deepEqual([left.length, right.length], [frames, frames]);
    const first = (pcm: Int16Array) => pcm.findIndex((sample) => Math.abs(sample) > 2000) / rate;
    const begins = [first(left), first(right)];
    assert.ok(Math.abs(begins[0]! - 2) < 0.004 && Math.abs(begins[1]! - 5) < 0.004, `${begins}`);
    const level = levelAt(left.subarray(rate * 2.2, rate * 2.8), 700, rate);
    const leak = levelAt(right.subarray(rate * 2.2, rate * 2.8), 700, rate);
    const back = levelAt(left.subarray(rate * 5.2, rate * 5.8), 1300, rate);
    t.diagnostic(`${rate} Hz: ${level.toFixed(1)} dB, on the other side ${leak.toFixed(1)} and ${back.toFixed(1)}, ${file.length} of ${sound.byteLength} bytes, at ${begins}`);
    assert.ok(Math.abs(level - 20 * Math.log10(8000 / 32_768)) < 1, String(level));
    assert.ok(leak < -55 && back < -55, `${leak} ${back}`);
    assert.ok(file.length < sound.byteLength / 4);
    assert.deepEqual(pages.map(({ number }) => number), pages.map((_, at) => at + 2));
    assert.equal(pages.at(-1)!.flags, 4);
  });
}

test("[SN24] an empty recording is still a file, and half a frame is not lost", async () => {
  for (const frames of [0, 1, 160]) {
    const pieces: Buffer[] = [];
    const writer = await openOggOpus(8000, (bytes) => void pieces.push(bytes));
    writer.write(new Int16Array(2 * frames));
    writer.close();
    assert.equal((await played(Buffer.concat(pieces), 8000)).left.length, frames);
  }
});
