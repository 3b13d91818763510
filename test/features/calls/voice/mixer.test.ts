// What leaves for the caller, sample by sample, between an utterance and a leg that a test holds.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createComfortNoise } from "#audio/comfort-noise.ts";
import { Mixer } from "#features/calls/voice/mixer.ts";
import { Utterance } from "#features/calls/voice/utterance.ts";

const RATE = 8000;
const FRAME = RATE / 50;
const LOUD = 9000;
const HERTZ = 430;

/** A voice on one tone, in a call whose far end answers a clear at once or when it is told to. */
function speaking(clears: "at once" | "later", comfort: (() => Int16Array) | null = null) {
  const sent: number[] = [];
  const recorded: number[] = [];
  const heard: number[] = [];
  let cleared = 0;
  const mixer: Mixer = new Mixer({
    leg: {
      rate: RATE, transfer: null, send: (frame) => void sent.push(...frame),
      clear: () => {
        cleared += 1;
        if (clears === "at once") mixer.cleared(0);
      },
      sendDtmf: () => undefined, hangUp: () => undefined,
    },
    ambience: null, comfort,
    record: (customer, assistant) => {
      heard.push(...customer);
      recorded.push(...assistant);
    },
    onPlayedOut: () => undefined, onHeard: () => undefined,
  });
  const utterance = newUtterance();
  mixer.play(utterance);
  const tick = (times: number): void => {
    for (let time = 0; time < times; time += 1) mixer.tick(0);
  };
  tick(5);
  return { mixer, utterance, tick, sent, recorded, heard, cleared: () => cleared };
}

function newUtterance(): Utterance {
  const utterance = new Utterance(RATE);
  utterance.push(Int16Array.from({ length: RATE }, (_, at) =>
    LOUD * Math.sin((2 * Math.PI * HERTZ * at) / RATE)));
  return utterance;
}

const heardMs = (sent: number[]): number =>
  ((sent.findLastIndex((sample) => Math.abs(sample) > 2) + 1) * 1000) / RATE;
const steepest = (sent: number[]): number =>
  Math.max(...sent.map((sample, at) => Math.abs(sample - (sent[at - 1] ?? sample))));
/** From one sample to the next the tone itself goes no further. */
const SLOPE = (LOUD * 2 * Math.PI * HERTZ) / RATE;

test("[VL234] an interrupted reply fades out within 5 to 10 ms, which count as heard at once", () => {
  const { mixer, utterance, tick, sent } = speaking("at once");
  let toldMs = 0;
  mixer.hold(() => (toldMs = utterance.playedMs));
  assert.ok(toldMs >= 105 && toldMs <= 110, `${toldMs}`);
  mixer.hold(() => assert.equal(utterance.playedMs, toldMs));
  mixer.drop(utterance);
  tick(5);
  assert.ok(Math.abs(heardMs(sent) - toldMs) <= 1, `${heardMs(sent)} of ${toldMs}`);
  assert.ok(steepest(sent) <= SLOPE * 1.05, `${steepest(sent)}`);
  assert.equal(utterance.playedMs, toldMs);
});

test("[VL234] an utterance that is replaced fades out before the next begins", () => {
  for (const isDropped of [true, false]) {
    const { mixer, utterance, tick, sent } = speaking("at once");
    const next = newUtterance();
    if (isDropped) mixer.drop(utterance);
    mixer.play(next);
    // It is no longer played: this changes nothing.
    mixer.drop(utterance);
    tick(3);
    assert.ok(utterance.playedMs > 100 && utterance.playedMs <= 110);
    assert.equal(next.playedMs, 40);
    assert.ok(steepest(sent) <= SLOPE * 1.05, `${steepest(sent)}`);
  }
});

test("[MX7] what is muted is not heard when it is interrupted either; what follows a pause is heard", () => {
  const { mixer, tick, sent } = speaking("at once");
  mixer.muted = true;
  tick(3);
  mixer.hold(() => undefined);
  tick(3);
  assert.ok(sent.slice(5 * FRAME).every((sample) => sample === 0));
  mixer.muted = false;
  const next = newUtterance();
  mixer.play(next);
  tick(3);
  assert.equal(next.playedMs, 60);
});

test("[MX8] a recording keeps its time, and at most 300 ms of sound that came too early", () => {
  const { mixer, recorded, heard, tick } = speaking("at once");
  for (let frame = 1; frame <= 40; frame += 1) {
    mixer.receiveAudio(new Int16Array(FRAME).fill(frame));
  }
  mixer.tick(3);
  assert.equal(recorded.length, 9 * FRAME);
  assert.ok(recorded.slice(5 * FRAME, 8 * FRAME).every((sample) => sample === 0));
  tick(20);
  // The newest 300 ms are kept, and what was dropped is heard in the silence.
  const frames = heard.filter((_, at) => at % FRAME === 0);
  assert.deepEqual(frames.slice(5, 22), [...Array.from({ length: 15 }, (_, at) => 26 + at), 0, 0]);
  mixer.tick(100_000);
  assert.equal(recorded.length, (29 + 501) * FRAME);
});

test("[VL234] a far end that drops its buffer fades by itself: nothing more is sent or heard", () => {
  const { mixer, utterance, tick, sent, cleared } = speaking("later");
  let toldMs = 0;
  mixer.hold(() => (toldMs = utterance.playedMs));
  let then = 0;
  mixer.hold(() => (then = utterance.playedMs));
  tick(2);
  mixer.cleared(60);
  assert.deepEqual([toldMs, then, cleared()], [40, 40, 1]);
  tick(2);
  assert.ok(sent.slice(5 * FRAME).every((sample) => sample === 0));
});

test("[VL240] a silent telephone line carries comfort noise at -65 to -60 dBFS; recordings do not", () => {
  const { mixer, utterance, tick, sent, recorded } = speaking("at once", createComfortNoise(RATE));
  mixer.hold(() => undefined);
  mixer.drop(utterance);
  tick(250);
  const noise = sent.slice(6 * FRAME);
  const rms = Math.sqrt(noise.reduce((sum, sample) => sum + sample ** 2, 0) / noise.length);
  const decibels = 20 * Math.log10(rms / 32_768);
  assert.ok(decibels > -65 && decibels < -60, `${decibels}`);
  assert.ok(noise.every((sample) => Math.abs(sample) < 180), "which nobody takes for speech");
  assert.ok(recorded.slice(6 * FRAME).every((sample) => sample === 0));
  assert.deepEqual(recorded.slice(0, 5 * FRAME), sent.slice(0, 5 * FRAME));
  mixer.play(newUtterance());
  tick(1);
  assert.deepEqual(sent.slice(-FRAME), recorded.slice(-FRAME), "under speech there is none");
});

test("[VL240] all calls share the frames of the comfort noise, each from its own place", () => {
  const [one, other] = [createComfortNoise(RATE), createComfortNoise(RATE)];
  const [frames, others] = [one, other].map((next) => Array.from({ length: 320 }, next));
  assert.notDeepEqual(frames?.[0], others?.[0]);
  const shared = new Set(frames);
  assert.equal(shared.size, 160);
  assert.ok(others?.every((frame) => shared.has(frame)));
});
