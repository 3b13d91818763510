// The end-of-turn model: its picture of the sound against the published extractor's figures, and
// the thread it runs in with a network of three steps. That network is the sigmoid of the mean of
// the picture, under the names Smart Turn v3 gives its input and output.
import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { createLogger } from "#core/logger.ts";
import { LOG_MEL_BANDS, LOG_MEL_STEPS, logMel } from "#providers/speech/embedded/log-mel.ts";
import { createTurnEndModel } from "#providers/speech/embedded/turn-ends.ts";
import { testDataDir } from "#support/server.ts";

const NETWORK = Buffer.from("CAgSADrSAQpCCg5pbnB1dF9mZWF0dXJlcxIEbWVhbiIKUmVkdWNlTWVhbioNCgRheGVz"
  + "QAFAAqABByoPCghrZWVwZGltcxgAoAECChwKBG1lYW4KBGF4aXMSA3JvdyIJVW5zcXVlZXplChYKA3JvdxIGbG9naXRz"
  + "IgdTaWdtb2lkEgR0dXJuKg0IARAHOgEBQgRheGlzWiYKDmlucHV0X2ZlYXR1cmVzEhQKEggBEg4KAxIBbgoCCFAKAwig"
  + "BmIZCgZsb2dpdHMSDwoNCAESCQoDEgFuCgIIAUIECgAQDQ==", "base64");

/** Two tones that swell and one that rises, at 16 kHz. */
const sound = (seconds: number): Int16Array =>
  Int16Array.from({ length: Math.trunc(seconds * 16_000) }, (_, at) => Math.round(
    9000 * Math.sin(at * 0.05) * Math.sin(at * 0.0007) + 3000 * Math.sin(at * at * 0.00001)));

/** Seconds of the sound, then some values as Whisper's extractor has them. */
const PUBLISHED: [number, [band: number, step: number, value: number][]][] = [
  [2.35, [[0, 790, 0.6743394], [10, 700, 0.1304138], [40, 650, -0.1018849], [79, 799, -0.0772227],
    [5, 0, -0.1018849]]],
  [9.1, [[0, 790, 0.6383548], [10, 700, -0.0786907], [40, 650, -0.2928855], [79, 799, 0.9357761],
    [5, 0, 1.1627002]]],
  [8, [[0, 790, 0.7443643], [10, 700, -0.1812642], [40, 650, -0.2356437], [79, 799, 0.259662],
    [5, 0, 0.6822448]]],
];

test("[SP205] the spectrogram of the last eight seconds equals the published extractor's", () => {
  for (const [seconds, values] of PUBLISHED) {
    const picture = logMel(sound(seconds));
    assert.equal(picture.length, LOG_MEL_BANDS * LOG_MEL_STEPS);
    for (const [band, step, value] of values) {
      const own = picture[band * LOG_MEL_STEPS + step] ?? NaN;
      assert.ok(Math.abs(own - value) < 1e-4, `${seconds} s, band ${band}, step ${step}: ${own}`);
    }
  }
  const silence = logMel(new Int16Array(0));
  assert.ok(silence.every((value) => value === silence[0]));
});

test("[SP206] a thread judges the audio of a turn with the operator's network", async () => {
  const folder = testDataDir();
  const file = join(folder, "turn.onnx");
  writeFileSync(file, NETWORK);
  const model = createTurnEndModel(file, createLogger("silent"));
  const judge = (pcm: Int16Array, rate: number): Promise<number> =>
    new Promise((resolve) => model.judge(pcm, rate, resolve));
  const alive = setInterval(() => undefined, 1000);
  const mean = (picture: Float32Array): number =>
    picture.reduce((sum, value) => sum + value, 0) / picture.length;
  const expected = 1 / (1 + Math.exp(-mean(logMel(sound(3)))));
  assert.ok(Math.abs(await judge(sound(3), 16_000) - expected) < 1e-4);
  // A telephone's rate is made the network's.
  const half = sound(3).filter((_, at) => at % 2 === 0);
  assert.ok(Math.abs(await judge(half, 8000) - expected) < 0.05);
  // Who has too much to do judges no more than it can in time.
  let judged = 0;
  const all = Array.from({ length: 12 }, () => new Promise<void>((resolve) => {
    model.judge(sound(1), 16_000, () => {
      judged += 1;
      resolve();
    });
  }));
  await all[0];
  await judge(sound(1), 16_000);
  assert.ok(judged >= 1 && judged <= 4, String(judged));
  clearInterval(alive);
  await model.close();
  rmSync(folder, { recursive: true });
});

test("[SP206] a file that is not a network is logged once, and nothing is judged", async () => {
  const folder = testDataDir();
  const file = join(folder, "turn.onnx");
  writeFileSync(file, "no network");
  const said = Promise.withResolvers<{ modelFile: string; reason: string }>();
  const log = createLogger("silent");
  log.error = ((about: { modelFile: string; reason: string }) => said.resolve(about)) as never;
  const model = createTurnEndModel(file, log);
  const alive = setInterval(() => undefined, 1000);
  const { modelFile, reason } = await said.promise;
  assert.equal(modelFile, file);
  assert.match(reason, /\w/);
  model.judge(sound(1), 16_000, () => assert.fail("judged by nothing"));
  clearInterval(alive);
  await model.close();
  rmSync(folder, { recursive: true });
});
