// The arithmetic under calls: changing rates, mixing, recordings on disk, background sounds and the
// beep of an answering machine.
import assert from "node:assert/strict";
import { copyFile, mkdtemp, readFile, rm, stat, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import fc from "fast-check";
import { goRound, makeLoop } from "#audio/ambience.ts";
import type { AmbienceKind } from "#audio/kinds.ts";
import { joined, mixInto } from "#audio/mix.ts";
import { createResampler } from "#audio/resampler.ts";
import { createBeepDetector } from "#audio/tones.ts";
import { createStereoRecorder, monoWav, repairWav } from "#audio/wav.ts";
import { parseWav } from "#support/calls/wav.ts";

const folder = await mkdtemp(join(tmpdir(), "parley-audio-"));
after(() => rm(folder, { recursive: true }));

/** Rates of carriers, browsers, recognisers and voices, as they meet. */
const PAIRS: [number, number][] = [
  [24_000, 8000], [8000, 24_000], [16_000, 8000], [8000, 16_000], [22_050, 16_000], [22_050, 8000],
  [48_000, 16_000], [16_000, 48_000], [24_000, 16_000],
];
const AMPLITUDE = 16_000;

const sine = (hertz: number, rate: number, samples: number, amplitude = AMPLITUDE): Int16Array =>
  Int16Array.from({ length: samples }, (_, at) =>
    Math.round(amplitude * Math.sin((2 * Math.PI * hertz * at) / rate)));

/** White, of that level, the same at every run. */
function noise(samples: number, rms: number): Int16Array {
  let state = 1;
  return Int16Array.from({ length: samples }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0;
    return Math.round((state / 2 ** 31) * rms * Math.sqrt(3));
  });
}

const rmsOf = (pcm: Int16Array): number =>
  Math.sqrt(pcm.reduce((sum, sample) => sum + sample ** 2, 0) / pcm.length);
const decibels = (ratio: number): number => 20 * Math.log10(ratio);

/** The pieces of `pcm` as cut at the places, in any order, doubled or not. */
function cut(pcm: Int16Array, places: number[]): Int16Array[] {
  const inside = places.map((place) => place % pcm.length).sort((a, b) => a - b);
  return [...inside, pcm.length].map((to, index) => pcm.slice(inside[index - 1] ?? 0, to));
}

const cuts = fc.array(fc.nat(), { maxLength: 40 });

test("[SN1] resampling gives the same samples however the audio is cut", () => {
  const pcm = noise(3000, 6000);
  for (const [from, to] of [...PAIRS, [8000, 8000] as const]) {
    const whole = createResampler(from, to).process(pcm);
    fc.assert(fc.property(cuts, (places) => {
      const resampler = createResampler(from, to);
      const pieces = cut(pcm, places).map((piece) => resampler.process(piece));
      assert.deepEqual(joined(pieces), whole);
    }), { numRuns: 20 });
  }
});

test("[SN2] resampling keeps tones in place with an error below -80 dB and removes what the lower rate cannot carry", () => {
  for (const [from, to] of PAIRS) {
    const heard = createResampler(from, to).process(sine(1000, from, from)).subarray(to / 4);
    // No shift to look for: the filter's delay is taken off.
    const ideal = sine(1000, to, to).subarray(to / 4, to / 4 + heard.length);
    assert.ok(heard.length > 0.7 * to);
    const wrong = Int16Array.from(heard, (sample, at) => sample - ideal[at]!);
    const snr = decibels(rmsOf(ideal) / rmsOf(wrong));
    assert.ok(snr >= 80, `${from} to ${to}: ${snr} dB`);
  }
  for (const [from, to, hertz] of [
    [16_000, 8000, 6000], [16_000, 8000, 4400], [24_000, 8000, 5000], [48_000, 16_000, 9000],
  ] as const) {
    const heard = createResampler(from, to).process(sine(hertz, from, from)).subarray(to / 4);
    const left = decibels(rmsOf(heard) / (AMPLITUDE / Math.SQRT2));
    assert.ok(left <= -60, `${hertz} Hz, ${from} to ${to}: ${left} dB`);
  }
});

test("[SN3] as many samples come out as the ratio says, less up to 2.5 ms", () => {
  const pair = fc.constantFrom(...PAIRS);
  const lengths = fc.integer({ min: 1, max: 10_000 });
  fc.assert(fc.property(pair, lengths, cuts, ([from, to], length, places) => {
    const resampler = createResampler(from, to);
    const pieces = cut(new Int16Array(length), places);
    const samples = pieces.reduce((sum, piece) => sum + resampler.process(piece).length, 0);
    const owed = (length * to) / from - samples;
    assert.ok(owed > -1 && owed <= 0.0025 * to, `${from} to ${to}: ${owed}`);
  }), { numRuns: 200 });
});

test("[SN3] overflow after resampling is clipped, not wrapped", () => {
  for (const [from, to] of PAIRS) {
    // A square wave overshoots when the filter takes its upper harmonics.
    const square = Int16Array.from({ length: from / 4 }, (_, at) =>
      Math.floor((at * 440) / from) % 2 === 0 ? 32_767 : -32_768);
    const heard = createResampler(from, to).process(square);
    assert.ok(heard.includes(32_767) && heard.includes(-32_768));
    for (let at = 1; at < heard.length; at += 1) {
      const [before, sample] = [heard[at - 1]!, heard[at]!];
      const isJump = Math.abs(sample - before) > 60_000;
      assert.ok(!isJump, `${from} to ${to}: from ${before} to ${sample}`);
    }
  }
});

/** The header as the format has it, apart from the program's own reading. */
function readHeader(bytes: Buffer): Record<string, number | string> {
  return {
    marks: [0, 8, 12, 36].map((at) => bytes.toString("latin1", at, at + 4)).join(),
    riff: bytes.readUInt32LE(4),
    formatBytes: bytes.readUInt32LE(16),
    format: bytes.readUInt16LE(20),
    channels: bytes.readUInt16LE(22),
    rate: bytes.readUInt32LE(24),
    bytesPerSecond: bytes.readUInt32LE(28),
    frameBytes: bytes.readUInt16LE(32),
    bits: bytes.readUInt16LE(34),
    data: bytes.readUInt32LE(40),
  };
}
const headerOf = (rate: number, channels: number, frames: number): object => ({
  marks: "RIFF,WAVE,fmt ,data", riff: 36 + 2 * channels * frames, formatBytes: 16, format: 1,
  channels, rate, bytesPerSecond: 2 * channels * rate, frameBytes: 2 * channels, bits: 16,
  data: 2 * channels * frames,
});

/** Both sides of a file as they lie on disk after the header. */
const interleaved = (left: Int16Array, right: Int16Array): Buffer =>
  Buffer.from(Int16Array.from({ length: 2 * left.length }, (_, at) =>
    (at % 2 === 0 ? left : right)[at >> 1]!).buffer);

test("[SN4] a recording written in pieces is one WAV with every sample of both sides", async () => {
  let count = 0;
  const lengths = fc.integer({ min: 1, max: 25_000 });
  await fc.assert(fc.asyncProperty(cuts, lengths, async (places, length) => {
    const file = join(folder, `pieces-${(count += 1)}.wav`);
    const [left, right] = [noise(length, 5000), sine(440, 8000, length)];
    const recorder = createStereoRecorder({ file, rate: 8000 });
    const rights = cut(right, places);
    cut(left, places).forEach((piece, index) => {
      recorder.write(piece, rights[index]!);
      // As frames are that a call uses again.
      piece.fill(0);
      rights[index]!.fill(0);
    });
    const { bytes, durationMs } = await recorder.close();
    const written = await readFile(file);
    assert.equal(bytes, written.length);
    assert.ok(Math.abs(durationMs - length / 8) < 1e-6);
    assert.deepEqual(readHeader(written), headerOf(8000, 2, length));
    assert.ok(written.subarray(44).equals(interleaved(left, right)));
    assert.deepEqual(parseWav(written), { rate: 8000, channels: [left, right] });
  }), { numRuns: 20 });
});

test("[SN4] an empty recording leaves no file, and a failed write is reported", async () => {
  const file = join(folder, "nothing.wav");
  const unused = createStereoRecorder({ file, rate: 8000 });
  assert.deepEqual(await unused.close(), { bytes: 0, durationMs: 0 });
  await assert.rejects(stat(file), { code: "ENOENT" });

  await writeFile(file, "somebody's");
  const second = createStereoRecorder({ file, rate: 8000 });
  second.write(new Int16Array(9000), new Int16Array(9000));
  await assert.rejects(second.close(), { code: "EEXIST" });
  assert.equal(await readFile(file, "utf8"), "somebody's");

  // More than may wait for a disk, in one go.
  const slow = join(folder, "slow.wav");
  const flood = createStereoRecorder({ file: slow, rate: 8000 });
  for (let at = 0; at < 40; at += 1) flood.write(noise(8000, 900), new Int16Array(8000));
  await assert.rejects(flood.close(), /too slow for the recording/);
  assert.equal(await repairWav(slow), true);
  assert.equal(parseWav(await readFile(slow)).channels[0]!.length, 30 * 8000);
});

test("[SN4] a recording cut by a crash is repaired to its whole frames, and no more", async () => {
  const [left, right] = [noise(20_000, 5000), sine(300, 8000, 20_000)];
  const file = join(folder, "living.wav");
  const recorder = createStereoRecorder({ file, rate: 8000 });
  recorder.write(left, right);
  // Two whole seconds go to the disk by themselves; the half one is in memory and is lost.
  const size = async (): Promise<number> => (await stat(file).catch(() => ({ size: 0 }))).size;
  while ((await size()) < 44 + 4 * 16_000) await setImmediate();
  const image = join(folder, "image.wav");
  await copyFile(file, image);
  await recorder.close();
  for (const [keep, frames] of [
    [44 + 64_000, 16_000], [44 + 4 * 9000 + 3, 9000], [44 + 4 * 9000 + 1, 9000], [48, 1],
    [47, 0], [44, 0], [10, 0], [0, 0],
  ] as const) {
    const cutFile = join(folder, "cut.wav");
    await copyFile(image, cutFile);
    await truncate(cutFile, keep);
    assert.equal(await repairWav(cutFile), frames > 0, `${keep} bytes`);
    if (frames === 0) continue;
    const repaired = await readFile(cutFile);
    assert.deepEqual(readHeader(repaired), headerOf(8000, 2, frames));
    assert.equal(repaired.length, 44 + 4 * frames);
    assert.ok(repaired.subarray(44).equals(
      interleaved(left.subarray(0, frames), right.subarray(0, frames))));
  }
  assert.equal(await repairWav(join(folder, "missing.wav")), false);
  // A whole one stays as it is.
  const whole = await readFile(file);
  assert.equal(await repairWav(file), true);
  assert.ok(whole.equals(await readFile(file)));
});

test("[SN4] pieces become one mono WAV; audio that is not 16-bit PCM is refused", async () => {
  const samples = noise(500, 3000);
  // Views into a larger buffer, as frames often are.
  const views = [samples.subarray(100, 300), samples.subarray(300, 450)];
  const file = Buffer.from(monoWav(views, 16_000));
  assert.deepEqual(readHeader(file), headerOf(16_000, 1, 350));
  assert.deepEqual(parseWav(file), { rate: 16_000, channels: [samples.slice(100, 450)] });
  for (const spoil of [
    (bytes: Buffer) => bytes.write("RIFX", 0, "latin1"), (bytes: Buffer) => bytes.writeUInt16LE(3, 20),
    (bytes: Buffer) => bytes.writeUInt16LE(8, 34),
  ]) {
    const spoilt = Buffer.from(file);
    spoil(spoilt);
    assert.throws(() => parseWav(spoilt), /no WAV of 16-bit PCM/);
  }
});

test("[SN5] sounds are mixed with their gain; overflow is clipped, and the longer one continues alone", () => {
  const sample = fc.integer({ min: -32_768, max: 32_767 });
  const gain = fc.double({ min: -2, max: 2, noNaN: true });
  fc.assert(fc.property(fc.array(sample), fc.array(sample), gain, (one, other, by) => {
    const target = Int16Array.from(one);
    mixInto(target, Int16Array.from(other), by);
    for (const [at, before] of one.entries()) {
      const sum = before + (other[at] ?? 0) * by;
      const expected = Math.max(-32_768, Math.min(32_767, sum));
      assert.ok(Math.abs(target[at]! - expected) < 1, `${before} and ${other[at]}: ${target[at]}`);
    }
  }));
  const loud = Int16Array.of(30_000, -30_000, 30_000);
  mixInto(loud, Int16Array.of(30_000, -30_000), 1);
  assert.deepEqual([...loud], [32_767, -32_768, 30_000]);
});

const beepsIn = (rate: number, pieces: Int16Array[]): number => {
  let count = 0;
  const detector = createBeepDetector(rate, () => (count += 1));
  for (const piece of pieces) detector.push(piece);
  return count;
};
const RATES = [8000, 16_000, 24_000];

test("[SN6] a beep of 400 to 2000 Hz is detected once, in noise too and however it is cut", () => {
  for (const rate of RATES) {
    const hiss = noise(rate, 300);
    for (let hertz = 400; hertz <= 2000; hertz += 7) {
      const beep = sine(hertz, rate, rate, 3000);
      mixInto(beep, hiss, 1);
      assert.equal(beepsIn(rate, [beep]), 1, `${hertz} Hz at ${rate}`);
    }
    const call = joined([
      noise(rate * 0.513, 200), sine(1004, rate, rate * 0.4), new Int16Array(rate / 2),
      sine(440, rate, rate * 0.3),
    ]);
    assert.equal(beepsIn(rate, [call]), 2);
    fc.assert(fc.property(cuts, (places) => {
      assert.equal(beepsIn(rate, cut(call, places)), 2);
    }), { numRuns: 20 });
  }
});

/** A voice's harmonics with a gliding pitch, by the syllable. */
const voice = (rate: number, seconds: number): Int16Array => {
  let phase = 0;
  return Int16Array.from({ length: rate * seconds }, (_, at) => {
    const time = at / rate;
    phase += (2 * Math.PI * (140 + 40 * Math.sin(2 * Math.PI * 0.7 * time))) / rate;
    const syllable = Math.sin(Math.PI * 4 * time) ** 2;
    const harmonics = [1, 0.8, 0.9, 0.6, 0.5, 0.3, 0.25, 0.2];
    return 3000 * syllable * harmonics.reduce((sum, share, index) =>
      sum + share * Math.sin((index + 1) * phase), 0);
  });
};

test("[SN6] short, quiet, double and gliding tones, noise and voices are not beeps", () => {
  for (const rate of RATES) {
    const glide = Int16Array.from({ length: rate * 2 }, (_, at) =>
      6000 * Math.sin(2 * Math.PI * (500 * (at / rate) + 300 * (at / rate) ** 2)));
    const dialTone = sine(350, rate, rate * 2, 6000);
    mixInto(dialTone, sine(440, rate, rate * 2, 6000), 1);
    const digit = sine(770, rate, rate, 6000);
    mixInto(digit, sine(1336, rate, rate, 6000), 1);
    const sounds = {
      short: joined([sine(1000, rate, rate * 0.19), new Int16Array(rate)]),
      quiet: sine(1000, rate, rate, 400), low: sine(200, rate, rate), high: sine(2600, rate, rate),
      glide, dialTone, digit, noise: noise(rate * 20, 3000), voice: voice(rate, 20),
      silence: new Int16Array(rate),
    };
    for (const [name, sound] of Object.entries(sounds)) {
      assert.equal(beepsIn(rate, [sound]), 0, `${name} at ${rate}`);
    }
  }
});

const KINDS: AmbienceKind[] = ["office", "city", "forest", "crowded_room", "cafe", "nature"];
const LOOP_SECONDS = 16;
const loops = new Map<string, Int16Array>();
/** Made once for all tests, which only read it. */
function loopOf(kind: AmbienceKind, rate: number): Int16Array {
  const name = `${kind} ${rate}`;
  const loop = loops.get(name) ?? goRound(makeLoop(kind, rate)).next(LOOP_SECONDS * rate);
  loops.set(name, loop);
  return loop;
}

test("[SN7] every background sound is audible, quiet and the same loop in whatever pieces it is read", () => {
  for (const kind of KINDS) {
    for (const rate of RATES) {
      const loop = loopOf(kind, rate);
      assert.ok(Math.abs(rmsOf(loop) - 520) < 5, `${kind} at ${rate}: ${rmsOf(loop)}`);
      assert.ok(Math.abs(loop.reduce((sum, sample) => sum + sample, 0) / loop.length) < 1);
      // It swells, but never falls silent: 100 ms of it at any place.
      for (let at = 0; at < loop.length; at += rate / 10) {
        const level = rmsOf(loop.subarray(at, at + rate / 10));
        assert.ok(level > 150 && level < 1500, `${kind} at ${rate}, sample ${at}: ${level}`);
      }
    }
    const again = goRound(makeLoop(kind, 8000));
    const samples = Array.from({ length: 1000 }, () => again.next(333).slice());
    const twice = joined([loopOf(kind, 8000), loopOf(kind, 8000), loopOf(kind, 8000)]);
    assert.deepEqual(joined(samples), twice.slice(0, 333_000));
  }
});

test("[SN7] background sounds loop without a seam", () => {
  for (const kind of KINDS) {
    for (const rate of RATES) {
      const loop = loopOf(kind, rate);
      const steps = loop.map((sample, at) => sample - loop.at(at - 1)!);
      const seam = Math.abs(steps[0]!);
      assert.ok(seam <= 3 * rmsOf(steps), `${kind} at ${rate}: ${seam}, ${rmsOf(steps)}`);
    }
  }
});

/** Energy of one frequency in every piece of 50 ms, in decibels. */
function levels(pcm: Int16Array, rate: number, hertz: number): number[] {
  const length = rate / 20;
  const found: number[] = [];
  const windowed = (wave: (phase: number) => number): Float64Array =>
    Float64Array.from({ length }, (_, at) =>
      Math.sin((Math.PI * at) / length) ** 2 * wave((2 * Math.PI * hertz * at) / rate));
  const [cosines, sines] = [windowed(Math.cos), windowed(Math.sin)];
  for (let start = 0; start + length <= pcm.length; start += length) {
    let [real, imaginary] = [0, 0];
    for (let at = 0; at < length; at += 1) {
      real += pcm[start + at]! * cosines[at]!;
      imaginary += pcm[start + at]! * sines[at]!;
    }
    found.push(decibels(Math.hypot(real, imaginary) / length));
  }
  return found.sort((a, b) => a - b);
}

const mean = (values: number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length;

test("[SN8] a background sound has the same spectrum at every rate, and no two kinds sound alike", () => {
  const bands = [[100, 140, 180], [220, 260, 300], [500, 700, 900], [1200, 1500, 1800],
    [2300, 2600, 2900]];
  /** For each band what is always there and what stands out: the middle, the loudest twentieth. */
  const colour = (kind: AmbienceKind, rate: number): number[] => {
    const loop = loopOf(kind, rate);
    return bands.flatMap((band) => {
      const all = band.map((hertz) => levels(loop, rate, hertz));
      return [0.5, 0.95].map((part) =>
        mean(all.map((found) => found[Math.floor(part * found.length)]!)));
    });
  };
  const furthest = (one: number[], other: number[]): number =>
    Math.max(...one.map((level, at) => Math.abs(level - other[at]!)));
  const colours = KINDS.map((kind) => {
    const [first, ...others] = RATES.map((rate) => colour(kind, rate));
    for (const other of others) assert.ok(furthest(first!, other) < 4, `${kind}: ${first}; ${other}`);
    return first!;
  });
  for (const [at, one] of colours.entries()) {
    for (const [index, other] of colours.slice(0, at).entries()) {
      assert.ok(furthest(one, other) > 2, `${KINDS[at]}, ${KINDS[index]}: ${one}; ${other}`);
    }
  }
});
