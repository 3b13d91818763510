// Codecs of wide sound, and resampling between the rates of telephones, browsers and engines.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { createG722Decoder, createG722Encoder } from "#audio/g722.ts";
import { openOpus } from "#audio/opus.ts";
import { createFrameResampler } from "#audio/resampler.ts";
import { levelAt, loudestBetween, sineOf } from "#support/calls/spectrum.ts";

const sha = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");
const bytesOf = (pcm: Int16Array): Uint8Array =>
  new Uint8Array(pcm.buffer, pcm.byteOffset, pcm.byteLength);

/** Noise, tones and steps at all levels, in whole numbers alone. */
function material(quieter: number): Int16Array {
  let state = 1;
  return Int16Array.from({ length: 32_000 }, (_, at) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    const noise = (state >>> 16) - 32_768;
    const sweep = ((at * at) % 997) * 60 - 30_000;
    const step = at % 40 < 20 ? 32_767 : -32_768;
    const parts = [noise >> 6, sweep, noise, step, sweep >> 4, noise >> 2, 0, (noise + sweep) >> 1];
    return (parts[Math.floor(at / 4000)] ?? 0) >> quieter;
  });
}

test("[SN20] G.722 encodes and decodes exactly like spandsp, bit for bit", () => {
  assert.equal(sha(createG722Encoder().encode(material(0))), "04f217c7f7f5cdee6d5d9329e205cdad5ec2a26e6d8a43a9e1582ba3928bd7ed");
  const coded = createG722Encoder().encode(material(2));
  assert.equal(sha(coded), "80301f4a24e2a88a087dcacd7cda30745ead14351bfd0d29c63a7025c1d891f4");
  // Quieter: where the loudest is cut off, spandsp lets it wrap around.
  assert.equal(sha(bytesOf(createG722Decoder().decode(coded))), "790149f9536c2d0271479c4380dab7999e688fae4c66424e3667a64069848cf6");
});

const heardIn = async (codec: "g722" | "opus", hz: number): Promise<number> => {
  const opus = await openOpus(16_000);
  const [encoder, decoder] = [createG722Encoder(), createG722Decoder()];
  const through = (frame: Int16Array): Int16Array => {
    if (codec === "opus") return opus.decode(opus.encode(frame))!;
    return decoder.decode(encoder.encode(frame));
  };
  const sine = sineOf(hz, 16_000, 2);
  const heard = Int16Array.from(Array.from({ length: 100 }, (_, at) =>
    [...through(sine.subarray(at * 320, (at + 1) * 320))]).flat());
  opus.close();
  return levelAt(heard.subarray(16_000), hz, 16_000);
};

test("[SN21] tones from 300 Hz to 6.5 kHz pass both wideband codecs at their level", async () => {
  const sent = 20 * Math.log10(8000 / 32_768);
  for (const codec of ["g722", "opus"] as const) {
    for (const hz of [300, 1000, 3000, 5000, 6500]) {
      const level = await heardIn(codec, hz);
      assert.ok(Math.abs(level - sent) < 1.5, `${codec} at ${hz} Hz: ${level.toFixed(1)} dB`);
    }
  }
});

test("[SN22] resampled between 8, 16, 24 and 48 kHz tones keep their level, with no image above -80 dB", (t) => {
  const RATES = [8000, 16_000, 24_000, 48_000];
  let worst = -200;
  for (const from of RATES) {
    for (const to of RATES.filter((rate) => rate !== from)) {
      const frames = createFrameResampler(from, to);
      const lower = Math.min(from, to);
      const passed = [0.05, 0.2, 0.4].map((share) => Math.round(share * lower));
      for (const hz of passed) {
        const sine = sineOf(hz, from, 1, 16_000);
        const frame = from / 50;
        const out = Int16Array.from(Array.from({ length: 50 }, (_, at) => {
          const part = frames.process(sine.subarray(at * frame, (at + 1) * frame));
          assert.equal(part.length, to / 50);
          return [...part];
        }).flat()).subarray(to / 4);
        const level = levelAt(out, hz, to);
        const sent = 20 * Math.log10(16_000 / 32_768);
        assert.ok(Math.abs(level - sent) < 0.1, `${from} to ${to}, ${hz} Hz: ${level}`);
        // Images of what went in are around its old rate and its multiples.
        for (let around = lower; around <= to / 2; around += lower) {
          for (const image of [around - hz, around + hz].filter((one) => one < to / 2)) {
            worst = Math.max(worst, levelAt(out, image, to) - level);
          }
        }
      }
      // What the lower rate cannot carry comes back as nothing else.
      if (from > to) {
        const high = sineOf(Math.round(0.6 * to), from, 1, 16_000);
        const alias = loudestBetween(
          createFrameResampler(from, to).process(high).subarray(to / 4), [50, to / 2 - 50], to, 20);
        worst = Math.max(worst, alias - 20 * Math.log10(16_000 / 32_768));
      }
    }
  }
  t.diagnostic(`the loudest image or alias: ${worst.toFixed(1)} dB under the tone`);
  assert.ok(worst < -80, String(worst));
});

test("[SN23] Opus: the next packet restores a lost one (FEC), and no malformed packet breaks the decoder", async () => {
  const coder = await openOpus(16_000);
  coder.expectLoss(0.3);
  const voice = Int16Array.from({ length: 320 * 60 }, (_, at) => {
    const second = at / 16_000;
    const pitch = 2 * Math.PI * (140 * second + 12 * Math.sin(9 * second));
    const sound = [1, 2, 3, 5, 9].reduce((sum, harmonic) =>
      sum + (5000 / harmonic) * Math.sin(harmonic * pitch), 0);
    return Math.round(sound * (0.6 + 0.4 * Math.sin(20 * second)));
  });
  const packets = Array.from({ length: 60 }, (_, at) =>
    coder.encode(voice.subarray(at * 320, (at + 1) * 320)));
  const other = await openOpus(16_000);
  const whole = packets.map((packet) => other.decode(packet)!);
  const third = await openOpus(16_000);
  let errors = 0;
  let energy = 0;
  for (let at = 0; at < packets.length; at += 1) {
    const isLost = at % 10 === 7;
    const heard = isLost ? third.recover(packets[at + 1]!, 320) : third.decode(packets[at]!);
    assert.equal(heard?.length, 320);
    if (!isLost) continue;
    heard!.forEach((sample, index) => {
      errors += (sample - whole[at]![index]!) ** 2;
      energy += whole[at]![index]! ** 2;
    });
  }
  const share = errors / energy;
  assert.ok(share < 0.5, `${share}`);
  for (const bytes of [[], [0xff], [0x03, 0xff], Array<number>(400).fill(0xaa)]) {
    const heard = third.decode(Uint8Array.from(bytes));
    assert.ok(heard === null || heard.length <= 1920, `${bytes.length}`);
  }
  for (const one of [coder, other, third]) {
    one.close();
    one.close();
  }
});
