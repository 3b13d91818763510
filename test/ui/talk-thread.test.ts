// The audio thread of the talk page, without a browser, at the rates devices have.
import assert from "node:assert/strict";
import { test } from "node:test";
import { openThread, type Thread } from "#support/pages/browser.ts";

const RATES = [16_000, 44_100, 48_000, 96_000];
const HERTZ = 443;
const tone = (seconds: number, rate: number): Float32Array => Float32Array.from(
  { length: seconds * rate }, (_, at) => 0.5 * Math.cos((2 * Math.PI * HERTZ * at) / rate));
const pcm = (seconds: number): ArrayBuffer =>
  Int16Array.from(tone(seconds, 16_000), (sample) => sample * 32_768).buffer;

function render(thread: Thread, seconds: number, rate: number): number[] {
  const sound: number[] = [];
  while (sound.length < seconds * rate) {
    const block = new Float32Array(128);
    thread.process([], [[block]]);
    sound.push(...block);
  }
  return sound;
}

/** The steepest step from one sample to the next. */
const steepest = (sound: number[]): number =>
  Math.max(...sound.map((sample, at) => Math.abs(sample - (sound[at - 1] ?? 0))));
const crossings = (sound: ArrayLike<number>): number =>
  Array.from(sound).filter((sample, at, all) => at > 0 && all[at - 1]! < 0 && sample >= 0).length;

test("[UI9] at any device rate speech sounds right and starts, runs dry and is cleared without a click", async () => {
  for (const rate of RATES) {
    const thread = await openThread(rate, "playback");
    const speech = pcm(1);
    thread.port.onmessage({ data: speech.slice(0, 16_000) });
    const sound = render(thread, 0.6, rate);
    assert.ok(Math.abs(crossings(sound) - 0.5 * HERTZ) <= 2, `${rate}: ${crossings(sound)}`);
    thread.port.onmessage({ data: speech.slice(16_000) });
    sound.push(...render(thread, 0.2, rate));
    thread.port.onmessage({ data: "clear" });
    const after = render(thread, 0.1, rate);
    assert.ok(after.slice(0.006 * rate).every((sample) => sample === 0));
    assert.deepEqual(thread.told.map(({ kind }) => kind), ["cleared"]);
    assert.ok(Math.abs(thread.told[0]!.dropped_ms! - 300) < 10, `${thread.told[0]!.dropped_ms}`);
    // The tone's own steepest slope and what fading in and out over 5 ms adds to it.
    const slope = (0.5 * 2 * Math.PI * HERTZ) / rate + 0.5 / (0.005 * rate);
    assert.ok(steepest([...sound, ...after]) <= slope, `${rate}: ${steepest([...sound, ...after])}`);
    assert.ok(Math.max(...sound) > 0.49);
  }
});

test("[UI10] a device that does not play buffers a minute; audio lost after that is reported and counted", async () => {
  const thread = await openThread(48_000, "playback");
  for (let second = 0; second < 60; second += 1) thread.port.onmessage({ data: pcm(1) });
  assert.equal(thread.told.length, 0);
  thread.port.onmessage({ data: pcm(1) });
  thread.port.onmessage({ data: pcm(1) });
  assert.deepEqual(thread.told.map(({ kind }) => kind), ["lost"]);
  render(thread, 20, 48_000);
  thread.port.onmessage({ data: "clear" });
  const [, cleared] = thread.told;
  assert.ok(Math.abs(cleared!.played_ms! - 20_000) < 10);
  assert.ok(Math.abs(cleared!.dropped_ms! - 42_000) < 10, `${cleared!.dropped_ms}`);
});

test("[UI11] at any device rate the microphone delivers 20 ms frames at 16 kHz", async () => {
  for (const rate of RATES) {
    const thread = await openThread(rate, "capture");
    const sound = tone(1, rate);
    for (let at = 0; at < sound.length; at += 128) {
      thread.process([[sound.subarray(at, at + 128)]], [[new Float32Array(128)]]);
    }
    assert.ok(thread.frames.length >= 49 && thread.frames.length <= 50, `${thread.frames.length}`);
    assert.ok(thread.frames.every(({ length }) => length === 320));
    const heard = thread.frames.flatMap((frame) => [...frame]);
    assert.ok(Math.abs(crossings(heard) - (HERTZ * thread.frames.length) / 50) <= 1);
    assert.ok(Math.abs(Math.max(...heard.slice(1000)) - 16_384) < 100, `${Math.max(...heard)}`);
  }
});
