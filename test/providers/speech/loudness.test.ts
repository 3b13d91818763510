// How loud voices are: the measure against the known signals of EBU Tech 3341, and every embedded
// voice, and voices that come in small pieces, against the level all are to have.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { createBlocks, integrated } from "#audio/loudness.ts";
import { createLogger } from "#core/logger.ts";
import { createEmbeddedVoices, espeakMissing } from "#providers/speech/embedded/embedded-voices.ts";
import { createLevel, levelled, TARGET_LUFS } from "#providers/speech/levelled.ts";
import { speakWhole } from "#providers/speech/opening.ts";
import type { SynthesisOptions, Synthesizer } from "#providers/speech/port.ts";
import { IS_PROOF } from "#support/proof.ts";

const voices = createEmbeddedVoices(createLogger("silent"));
const awake = setInterval(() => undefined, 1000);
after(async () => {
  clearInterval(awake);
  await voices.close();
});

const OPTIONS: SynthesisOptions = {
  rate: 8000, voice: null, gender: "female", language: "en", speed: 1, stability: 1, similarity: 1,
  hasEmotion: false,
};
const TEXT = "Good morning, this is the bicycle shop at the harbour. We are open from nine to five on"
  + " every day of the week, and on Saturdays until two. How can I help you today?";

/** All of it together. */
function loudness(pcm: Int16Array, rate: number): number | null {
  const blocks: number[] = [];
  createBlocks(rate, (energy) => void blocks.push(energy)).push(pcm);
  return integrated(blocks);
}

async function speak(engine: Synthesizer, options: Partial<SynthesisOptions>): Promise<Int16Array> {
  const pcm = await new Promise<Int16Array | null>((resolve) =>
    speakWhole(engine, { ...OPTIONS, ...options }, TEXT, resolve));
  assert.ok(pcm);
  return pcm;
}

/** Seconds of a tone at these levels in dB below full scale, one after the other. */
const tones = (
  rate: number, parts: [seconds: number, decibels: number][], hertz = 1000,
): Int16Array =>
  Int16Array.from(parts.flatMap(([seconds, decibels]) =>
    Array.from({ length: seconds * rate }, (_, at) =>
      Math.round(32_767 * 10 ** (decibels / 20) * Math.sin((2 * Math.PI * hertz * at) / rate)))));

test("[SP172] loudness is measured like EBU R 128, at any rate", () => {
  // The signals of Tech 3341 are on two channels, which is 3.01 LU more than on one.
  const onOne = (lufs: number): number => lufs - 3.01;
  const cases: [[number, number][], number][] = [
    [[[5, -23]], -23], [[[5, -33]], -33],
    [[[4, -36], [24, -23], [4, -36]], -23],
    [[[4, -72], [4, -36], [24, -23], [4, -36], [4, -72]], -23],
    [[[10, -26], [10.05, -20], [10, -26]], -23],
  ];
  for (const rate of [8000, 16_000, 48_000]) {
    for (const [parts, lufs] of cases) {
      const measured = loudness(tones(rate, parts), rate) ?? 0;
      assert.ok(Math.abs(measured - onOne(lufs)) <= 0.1, `${rate}: ${measured} for ${lufs}`);
    }
    // Shelf and high-pass: what a head does to 3 kHz, and nobody hears of 25 Hz.
    const [high, deep] = [3000, 25].map((hertz) =>
      loudness(tones(rate, [[5, -23]], hertz), rate) ?? 0);
    assert.ok(Math.abs(high! - onOne(-23 + 3.3)) <= 0.4, `${rate}: ${high}`);
    assert.ok(deep! < onOne(-23 - 8), `${rate}: ${deep}`);
  }
  assert.equal(loudness(new Int16Array(16_000), 16_000), null);
  assert.equal(integrated([]), null);
});

/** Each voice at one of them, or, in the long form, at both. */
const RATES = [8000, 16_000];

test("[SP173] every embedded voice is at -23 LUFS ±1 from its first sentence on, and none clips", async () => {
  const level = createLevel();
  const flite = levelled("flite", voices.flite, level);
  const espeak = levelled("espeak-ng", voices.espeakNg, level);
  const all: [Synthesizer, Partial<SynthesisOptions>][] = [
    ...["slt", "rms", "kal16", "awb", "kal"].map((voice): (typeof all)[number] => [flite, { voice }]),
    ...(espeakMissing() === null ? ["en", "de", "fr", "es", "pl"] : [])
      .map((language): (typeof all)[number] => [espeak, { language }]),
  ];
  for (const [at, [engine, options]] of all.entries()) {
    for (const rate of IS_PROOF ? RATES : [RATES[at % 2]!]) {
      const pcm = await speak(engine, { ...options, rate });
      const measured = loudness(pcm, rate) ?? 0;
      const name = `${engine.name} ${options.voice ?? options.language} at ${rate}`;
      assert.ok(Math.abs(measured - TARGET_LUFS) <= 1, `${name}: ${measured}`);
      assert.ok(pcm.every((sample) => Math.abs(sample) <= 29_204), name);
    }
  }
});

test("[SP174] the level of a voice that streams small pieces is known after its first utterance; its pieces form one sound", async () => {
  const rate = 16_000;
  const spoken = await speak(voices.flite, { rate });
  for (const factor of [0.12, 1, 1.8]) {
    const source = spoken.map((sample) => Math.max(-32_768, Math.min(32_767, sample * factor)));
    const level = createLevel();
    const pass = (samples: number): Int16Array => {
      const set = level("vendor", rate);
      const pieces: Int16Array[] = [];
      for (let at = 0; at < source.length; at += samples) {
        pieces.push(set(source.subarray(at, at + samples)));
      }
      return Int16Array.from(pieces.flatMap((piece) => [...piece]));
    };
    const first = pass(800);
    assert.equal(first.length, source.length);
    const second = pass(333);
    const measured = loudness(second, rate) ?? 0;
    assert.ok(Math.abs(measured - TARGET_LUFS) <= 1, `${factor}: ${measured}`);
    // The gain moves slowly: against the source each sample is turned by much the same.
    const gain = 10 ** ((TARGET_LUFS - (loudness(source, rate) ?? 0)) / 20);
    const loud = [...source.keys()].filter((at) => Math.abs(source[at] ?? 0) > 500);
    const ratios = loud.map((at) => (second[at] ?? 0) / (source[at] ?? 1) / gain);
    assert.ok(ratios.every((ratio) => ratio < 1.15 && ratio > 0.6), `${factor}`);
  }
});
