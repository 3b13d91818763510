// Who speaks in a call beside the assistant: what each side gets, sample by sample.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createFraming, createVoiceQueue } from "#features/calls/voice/frames.ts";
import { Mixer } from "#features/calls/voice/mixer.ts";
import { Utterance } from "#features/calls/voice/utterance.ts";
import type { Voice } from "#features/calls/voice/voices.ts";

const RATE = 8000;
const FRAME = RATE / 50;

const level = (value: number): Int16Array => new Int16Array(FRAME).fill(value);

/** A call in which everybody says one sample, so that a sum tells who is in it. */
function call({ records }: { records: boolean }) {
  const sent: number[] = [];
  const lanes: { customer: number; assistant: number }[] = [];
  const mixer = new Mixer({
    leg: {
      rate: RATE, transfer: null, send: (frame) => void sent.push(frame[7] ?? NaN),
      clear: () => undefined, sendDtmf: () => undefined, hangUp: () => undefined,
    },
    ambience: null, comfort: () => level(1),
    record: records
      ? (customer, assistant) => void lanes.push(
          { customer: customer[7] ?? NaN, assistant: assistant[7] ?? NaN })
      : null,
    onPlayedOut: () => undefined, onHeard: () => undefined,
  });
  const tick = (customer: number): void => {
    mixer.receiveAudio(level(customer));
    mixer.tick(0);
  };
  const speak = (value: number, frames: number): void => {
    const utterance = new Utterance(RATE);
    for (let frame = 0; frame < frames; frame += 1) utterance.push(level(value));
    utterance.ended = true;
    mixer.play(utterance);
  };
  return { mixer, sent, lanes, tick, speak };
}

function person(value: number | null, gain = 1): Voice & { value: number | null; heard: number[] } {
  const heard: number[] = [];
  const voice = {
    value, gain, heard,
    next: () => (voice.value === null ? null : level(voice.value)),
    hears: (frame: Int16Array) => void heard.push(frame[7] ?? NaN),
  };
  return voice;
}

test("[VL250] a person who joins is heard over the assistant, recorded on its side, and hears both", () => {
  const { mixer, sent, lanes, tick, speak } = call({ records: true });
  const ana = person(300);
  speak(1000, 2);
  tick(40);
  const leave = mixer.voices.join(ana);
  tick(41);
  tick(42);
  leave();
  tick(43);
  assert.deepEqual(sent, [1000, 1300, 300, 1]);
  assert.deepEqual(lanes, [
    { customer: 40, assistant: 1000 }, { customer: 41, assistant: 1300 },
    { customer: 42, assistant: 300 }, { customer: 43, assistant: 0 },
  ]);
  assert.deepEqual(ana.heard, [1041, 42]);
});

test("[VL250] nobody hears themselves, each has their own gain, and music hears nothing", () => {
  const { mixer, sent, tick } = call({ records: false });
  const ana = person(300);
  const ben = person(200, 0.5);
  const music: Voice = { gain: 0.1, next: () => level(50) };
  for (const voice of [ana, ben, music]) mixer.voices.join(voice);
  tick(40);
  ben.gain = 0;
  tick(41);
  ana.value = null;
  tick(42);
  assert.deepEqual(sent, [405, 305, 5]);
  assert.deepEqual(ana.heard, [145, 46, 47]);
  assert.deepEqual(ben.heard, [345, 346, 47]);
});

test("[VL250] a person who is silent or has left changes nothing that is sent", () => {
  const { mixer, sent, lanes, tick } = call({ records: false });
  const mute = person(null);
  const leave = mixer.voices.join(mute);
  tick(40);
  leave();
  leave();
  tick(41);
  assert.deepEqual(sent, [1, 1]);
  assert.deepEqual(mute.heard, [40]);
  assert.deepEqual(lanes, []);
});

test("[VL251] pieces of any size become the same frames", () => {
  const all = Int16Array.from({ length: FRAME * 4 }, (_, at) => at);
  for (const size of [1, 7, FRAME - 1, FRAME, FRAME + 1, FRAME * 4]) {
    const frames: Int16Array[] = [];
    const cut = createFraming(FRAME, (frame) => void frames.push(frame));
    for (let at = 0; at < all.length; at += size) cut(all.subarray(at, at + size));
    assert.deepEqual(frames.flatMap((frame) => [...frame]), [...all], `in pieces of ${size}`);
    assert.ok(frames.every(({ length }) => length === FRAME));
  }
});

test("[VL251] a gap is followed by a new lead, and an overflow drops the oldest", () => {
  const queue = createVoiceQueue(FRAME, { leadFrames: 2, framesMax: 3 });
  const next = (): number | null => queue.next()?.[0] ?? null;
  queue.write(level(1));
  assert.equal(next(), null);
  queue.write(level(2));
  assert.deepEqual([next(), next(), next()], [1, 2, null]);
  queue.write(level(3));
  assert.equal(next(), null);
  for (const value of [4, 5, 6]) queue.write(level(value));
  assert.deepEqual([next(), next(), next(), next()], [4, 5, 6, null]);
});
