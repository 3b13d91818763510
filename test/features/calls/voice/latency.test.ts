// What the record says of a turn's times, held against the sound itself: from the last that is
// audible of the customer to the first that is audible of the reply.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { createSoundEnd, soundBeginsMs } from "#audio/audible.ts";
import { loopbackVad } from "#providers/speech/loopback.ts";
import type { Synthesizer, Vad } from "#providers/speech/port.ts";
import { playCall, VOICE_SETTINGS } from "#support/calls/calls-by-clock.ts";

const RATE = 8000;
const FRAME_MS = 20;
const LOUD = 500;

/** As real detectors do, it says yes for a while longer. */
const lingering = (forMs: number): Vad => ({
  ...loopbackVad,
  open: (rate, publish) => {
    let leftMs = 0;
    return loopbackVad.open(rate, (probability) => {
      leftMs = probability === 1 ? forMs : leftMs - FRAME_MS;
      publish(leftMs >= 0 ? 1 : 0);
    });
  },
});

/** As real voices do, it begins with silence. */
const hesitating = (forMs: number) => (synthesizer: Synthesizer): Synthesizer => ({
  ...synthesizer,
  open: (options, publish) => {
    publish({ kind: "audio", pcm: new Int16Array((forMs * RATE) / 1000) });
    return synthesizer.open(options, publish);
  },
});

test("[VL230] heard_ms runs from the customer's last audible sound to the reply's first, within 60 ms", () => {
  fc.assert(fc.property(
    fc.integer({ min: 0, max: 12 }), fc.integer({ min: 0, max: 15 }),
    fc.integer({ min: 300, max: 1200 }), fc.boolean(),
    (lingersFrames, hesitatesFrames, silenceMs, isEager) => {
      const sides: { customer: number; assistant: number }[] = [];
      const peak = (pcm: Int16Array): number => Math.max(...pcm.map(Math.abs));
      const played = playCall({
        steps: [{ quietMs: 400 }, { say: "Tell me a story." }, { quietMs: 1200 }, { hangUp: true }],
        settings: { endpoint: { type: "vad", silenceMs }, isEager },
        vad: lingering(lingersFrames * FRAME_MS), voicedBy: hesitating(hesitatesFrames * FRAME_MS),
        record: (customer, assistant) =>
          void sides.push({ customer: peak(customer), assistant: peak(assistant) }),
      });
      const last = sides.findLastIndex(({ customer }) => customer > LOUD);
      const first = sides.findIndex(({ assistant }, at) => at > last && assistant > LOUD);
      const heardMs = played.over?.turns[0]?.heardMs ?? 0;
      const reallyMs = (first - last - 1) * FRAME_MS;
      assert.ok(Math.abs(heardMs - reallyMs) <= 60, `${heardMs} and ${reallyMs}`);
    },
  ), { numRuns: 60 });
});

test("[VL231] a turn spoken over the assistant has no latency measurement", () => {
  const played = playCall({
    steps: [
      { quietMs: 400 }, { say: "Tell me a story." }, { words: 3 }, { say: "What about Sunday?" },
      { quietMs: 4000 }, { hangUp: true },
    ],
    settings: { interrupt: { ...VOICE_SETTINGS.interrupt, allowed: false } },
    answer: (_question, number) =>
      (number === 1 ? "One two three four five six seven eight nine ten eleven twelve." : "Closed."),
  });
  assert.equal(played.questions.length, 2);
  assert.equal(played.over?.turns.length, 1);
  assert.ok((played.over?.turns[0]?.heardMs ?? Infinity) < 1500);
});

test("[VL232] the end of speech is where it becomes inaudible, whatever the level of line and noise", () => {
  const random = (() => {
    let state = 3;
    return () => (state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0) / 2 ** 31;
  })();
  /** Half a second of noise, a second of tone, then it dies away by 60 dB a second into noise. */
  const line = (level: number, noise: number): Int16Array =>
    Int16Array.from({ length: 2.5 * RATE }, (_, at) => {
      const second = at / RATE - 0.5;
      const gain = second < 0 ? 0 : second < 1 ? 1 : 10 ** (-5 * (second - 1));
      return level * gain * Math.sin(2 * Math.PI * 300 * second) + noise * random();
    });
  for (const [level, noise] of [[9000, 0], [9000, 150], [2000, 20], [900, 0]] as const) {
    const sound = createSoundEnd(RATE);
    const pcm = line(level, noise);
    let endMs = 0;
    for (let from = 0; from < pcm.length; from += 256) {
      const frame = pcm.subarray(from, from + 256);
      const quietMs = sound.quietMs(frame);
      if (quietMs < (frame.length * 1000) / RATE) {
        endMs = ((from + frame.length) * 1000) / RATE - quietMs;
      }
    }
    assert.ok(endMs >= 1500 && endMs <= 1800, `${level} over ${noise}: ${endMs}`);
  }
  assert.equal(soundBeginsMs(new Int16Array(160), RATE), null);
  const late = Int16Array.from({ length: 160 }, (_, at) => (at < 80 ? 3 : 4000));
  assert.equal(soundBeginsMs(late, RATE), 8);
});
