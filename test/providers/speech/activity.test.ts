// Voice activity and the noise filter on real speech: Flite's sentences with silence of known
// length between them, clean and in noise.
import assert from "node:assert/strict";
import { after, test, type TestContext } from "node:test";
import { mixInto } from "#audio/mix.ts";
import { createResampler } from "#audio/resampler.ts";
import { createBeepDetector } from "#audio/tones.ts";
import { createLogger } from "#core/logger.ts";
import { createEmbeddedVoices } from "#providers/speech/embedded/embedded-voices.ts";
import { createNoiseFilter } from "#providers/speech/embedded/noise-filter.ts";
import { createFvad } from "#providers/speech/embedded/fvad.ts";
import type { NoiseFilter, SynthesisEvent, Vad, VadStream } from "#providers/speech/port.ts";
import { createRnnoise } from "#providers/speech/embedded/rnnoise.ts";
import { createSilero } from "#providers/speech/embedded/silero.ts";
import { createReceived } from "#support/received.ts";

const RATE = 16_000;
const GAP = RATE;
/** What the voice leaves around speech. */
const LEAD_MS = 20;
const TAIL_MS = 120;
const SENTENCES: [string, string][] = [
  ["rms", "I would like to book a table for two at seven tomorrow."],
  ["slt", "What time do you open on Saturday?"],
  ["rms", "Can you tell me how much it costs?"],
  ["slt", "Please send me the address of your office."],
];

const voices = createEmbeddedVoices(createLogger("silent"));
// The thread of the voices keeps no process alive by itself.
const alive = setInterval(() => undefined, 1000);
const sentences: Int16Array[] = [];
for (const [voice, text] of SENTENCES) {
  const received = createReceived<SynthesisEvent>();
  const stream = voices.flite.open({
    rate: RATE, voice, gender: "male", language: "en", speed: 1, stability: 1, similarity: 1, hasEmotion: false,
  }, received.receive);
  stream.write(text);
  stream.end();
  await received.event("done");
  sentences.push(Int16Array.from(
    received.events.flatMap((event) => (event.kind === "audio" ? [...event.pcm] : []))));
}
clearInterval(alive);
after(() => voices.close());

/** All sentences, silence before, between and after; and where each begins and ends. */
function conversation(): { pcm: Int16Array; spoken: { fromMs: number; toMs: number }[] } {
  const total = sentences.reduce((sum, { length }) => sum + length + GAP, GAP);
  const pcm = new Int16Array(total);
  let at = GAP;
  const spoken = sentences.map((sentence) => {
    pcm.set(sentence, at);
    const fromMs = (at * 1000) / RATE + LEAD_MS;
    at += sentence.length + GAP;
    return { fromMs, toMs: ((at - GAP) * 1000) / RATE - TAIL_MS };
  });
  return { pcm, spoken };
}

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

/** Whether each frame is speech, by the detector. */
async function detect(vad: Vad, rate: 8000 | 16_000, pcm: Int16Array): Promise<boolean[]> {
  const found: boolean[] = [];
  const stream = vad.open(rate, (probability) => {
    assert.ok(probability >= 0 && probability <= 1);
    found.push(probability >= 0.5);
  });
  const samples = vad.frameSamples(rate);
  let pushed = 0;
  for (let at = 0; at + samples <= pcm.length; at += samples) {
    stream.push(pcm.subarray(at, at + samples));
    pushed += 1;
  }
  await Promise.resolve();
  stream.close();
  stream.close();
  stream.push(new Int16Array(samples));
  await Promise.resolve();
  assert.equal(found.length, pushed);
  return found;
}

interface Bounds {
  /** Share of the frames of speech that are found, and of silence taken for speech. */
  recall: number;
  falsePositives: number;
  /** From the first sound of a sentence: of all, and of half of them. */
  onsetMs: number;
  medianOnsetMs: number;
}

/** Seen clean: 99.6 % and onset 62 ms; in noise of 25 dB 94 %, 102 ms. */
const WEBRTC: Bounds = { recall: 0.9, falsePositives: 0.04, onsetMs: 160, medianOnsetMs: 80 };
/** Seen: 94 to 98 %; words that begin with a plosive 200 ms late, the others 60 to 130. */
const SILERO: Bounds = { recall: 0.9, falsePositives: 0.04, onsetMs: 260, medianOnsetMs: 160 };

async function assertHears(
  vad: Vad, rate: 8000 | 16_000, noiseRms: number, bounds: Bounds,
): Promise<void> {
  const name = `${vad.name} at ${rate}, noise ${noiseRms}`;
  const { pcm, spoken } = conversation();
  mixInto(pcm, noise(pcm.length, noiseRms), 1);
  const found = await detect(vad, rate, createResampler(RATE, rate).process(pcm));
  const frameMs = (vad.frameSamples(rate) * 1000) / rate;
  const frames = found.map((isSpeech, at) => ({ isSpeech, fromMs: at * frameMs }));
  const speech = frames.filter(({ fromMs }) => spoken.some((one) =>
    fromMs >= one.fromMs && fromMs + frameMs <= one.toMs));
  // A detector may hang on for a while before it calls it silence.
  const silence = frames.filter(({ fromMs }) => !spoken.some((one) =>
    fromMs + frameMs > one.fromMs - LEAD_MS && fromMs < one.toMs + 200));
  assert.ok(speech.length > 200 && silence.length > 80, `${speech.length}, ${silence.length}`);
  const share = (some: typeof frames): number =>
    some.filter(({ isSpeech }) => isSpeech).length / some.length;
  assert.ok(share(speech) >= bounds.recall, `${name}: recall ${share(speech)}`);
  assert.ok(share(silence) <= bounds.falsePositives, `${name}: false ${share(silence)}`);
  const onsets = spoken.map(({ fromMs }) => {
    const first = frames.find((frame) => frame.isSpeech && frame.fromMs + frameMs > fromMs);
    return first!.fromMs + frameMs - fromMs;
  }).sort((a, b) => a - b);
  assert.ok(onsets.at(-1)! <= bounds.onsetMs, `${name}: ${onsets}`);
  assert.ok(onsets[onsets.length >> 1]! <= bounds.medianOnsetMs, `${name}: ${onsets}`);
}

test("[SP7] WebRTC's detector detects speech and its start at once, not silence or faint noise", async () => {
  const vad = await createFvad();
  assert.deepEqual([vad.frameSamples(8000), vad.frameSamples(16_000)], [160, 320]);
  for (const rate of [8000, 16_000] as const) {
    for (const noiseRms of [0, 30, 170]) await assertHears(vad, rate, noiseRms, WEBRTC);
  }
});

const silero = createSilero();
const skip = silero === null && "sherpa-onnx-node cannot be loaded";

test("[SP7] Silero detects speech in noise too", { skip }, async () => {
  assert.deepEqual([silero!.frameSamples(8000), silero!.frameSamples(16_000)], [256, 512]);
  for (const rate of [8000, 16_000] as const) {
    for (const noiseRms of [0, 170, 540]) await assertHears(silero!, rate, noiseRms, SILERO);
  }
});

test("[SP7] detectors of several speakers are independent", async () => {
  for (const vad of [await createFvad(), ...(silero ? [silero] : [])]) {
    const samples = vad.frameSamples(16_000);
    let [talking, silent] = [0, 0];
    const one = vad.open(16_000, (probability) => (talking += probability));
    const other = vad.open(16_000, (probability) => (silent += Number(probability >= 0.5)));
    const [sentence] = sentences;
    for (let at = 0; at + samples <= sentence!.length; at += samples) {
      one.push(sentence!.subarray(at, at + samples));
      other.push(new Int16Array(samples));
      await Promise.resolve();
    }
    assert.ok(talking > (0.7 * sentence!.length) / samples, `${vad.name}: ${talking}`);
    assert.equal(silent, 0);
    one.close();
    other.close();
  }
});

test("[SP7] Silero judges a speaker the same alone as among many that come and go", { skip }, async () => {
  const samples = silero!.frameSamples(8000);
  const speech = createResampler(RATE, 8000).process(sentences[1]!);
  const frames = Array.from({ length: Math.floor(speech.length / samples) }, (_, at) =>
    speech.subarray(at * samples, (at + 1) * samples));
  const hear = async (others: number): Promise<number[]> => {
    const heard: number[] = [];
    const one = silero!.open(8000, (probability) => heard.push(probability));
    let crowd: VadStream[] = [];
    for (const [at, frame] of frames.entries()) {
      // Every few frames the others are others, and one closes another that waits for its turn.
      if (at % 5 === 0) {
        for (const other of crowd) other.close();
        crowd = Array.from({ length: others }, (_, number) => silero!.open(8000, () => {
          if (number === 3) crowd[4]?.close();
        }));
      }
      for (const other of crowd) other.push(frames[(at * 7) % frames.length]!);
      one.push(frame);
      await Promise.resolve();
    }
    one.close();
    return heard;
  };
  const alone = await hear(0);
  assert.equal(alone.length, frames.length);
  assert.ok(Math.max(...alone) > 0.9 && Math.min(...alone) < 0.1);
  for (const others of [1, 15, 40]) {
    const among = await hear(others);
    assert.equal(among.length, alone.length);
    for (const [at, probability] of among.entries()) {
      assert.ok(Math.abs(probability - alone[at]!) < 0.001, `${others}, ${at}: ${probability}`);
    }
  }
});

test("[SP7] a thousand Silero speakers are released at once and take few MiB until then", { skip }, async () => {
  const frame = new Int16Array(silero!.frameSamples(8000));
  const open = (): VadStream[] => Array.from({ length: 1000 }, () => {
    const stream = silero!.open(8000, () => undefined);
    stream.push(frame);
    return stream;
  });
  for (const stream of open()) stream.close();
  const before = process.memoryUsage().rss;
  for (let round = 0; round < 5; round += 1) {
    const streams = open();
    await Promise.resolve();
    for (const stream of streams) stream.close();
  }
  const grownMib = (process.memoryUsage().rss - before) / 2 ** 20;
  assert.ok(grownMib < 64, `${grownMib} MiB`);
});

const filter = await createRnnoise();

/** What comes out, taken in as a call does, 20 ms at a time; and how far it is behind, in ms. */
function filtered(pcm: Int16Array, rate: number): { heard: Int16Array; behindMs: number } {
  const stream = filter.open(rate);
  const heard: number[] = [];
  let behind = 0;
  for (let at = 0; at + rate / 50 <= pcm.length; at += rate / 50) {
    heard.push(...stream.process(pcm.subarray(at, at + rate / 50)));
    behind = Math.max(behind, at + rate / 50 - heard.length);
  }
  stream.close();
  stream.close();
  return { heard: Int16Array.from(heard), behindMs: (behind * 1000) / rate };
}

/** Samples by which `heard` is later than `pcm`: where they are most alike. */
function shift(pcm: Int16Array, heard: Int16Array, most: number): number {
  let best = { at: 0, likeness: -Infinity };
  for (let at = 0; at <= most; at += 1) {
    let likeness = 0;
    for (let index = 0; index + at < heard.length; index += 1) {
      likeness += pcm[index]! * heard[index + at]!;
    }
    if (likeness > best.likeness) best = { at, likeness };
  }
  return best.at;
}

test("[SP8] the noise filter removes noise and keeps speech, 10 ms later", () => {
  for (const rate of [8000, 16_000, 24_000]) {
    const hiss = noise(4 * rate, 1000);
    const settled = (pcm: Int16Array): number => rmsOf(pcm.subarray(2 * rate));
    const down = decibels(settled(hiss) / settled(filtered(hiss, rate).heard));
    assert.ok(down >= 12, `${rate}: ${down} dB`);

    const speech = createResampler(RATE, rate).process(sentences[0]!);
    const { heard, behindMs } = filtered(speech, rate);
    const change = decibels(rmsOf(heard) / rmsOf(speech));
    assert.ok(Math.abs(change) < 1, `${rate}: ${change} dB`);
    // Its frame, and what changing the rate twice keeps back.
    assert.ok(behindMs > 0 && behindMs <= 15, `${rate}: ${behindMs} ms`);
    const laterMs = (shift(speech, heard, rate / 20) * 1000) / rate;
    assert.ok(laterMs >= 9 && laterMs <= 11, `${rate}: ${laterMs} ms`);

    // Speech in noise: what is left over of it, aligned, is nearer to the clean speech.
    const noisy = speech.slice();
    mixInto(noisy, noise(noisy.length, 500), 1);
    const left = filtered(noisy, rate).heard;
    assert.ok(Math.abs(decibels(rmsOf(left) / rmsOf(speech))) < 6, `${rate}: ${rmsOf(left)}`);
  }
});

test("[SP8] a closed noise filter passes its input through; others continue", () => {
  const [closed, open] = [filter.open(16_000), filter.open(16_000)];
  closed.close();
  const pcm = noise(3200, 1000);
  assert.deepEqual(closed.process(pcm), pcm);
  const samples = Array.from({ length: 10 }, () => open.process(pcm).length);
  assert.ok(samples.reduce((sum, length) => sum + length, 0) > 9 * pcm.length);
  open.close();
});

/** All that a call's filter publishes of what is written frame by frame, until it has all come. */
function throughThreads(filters: NoiseFilter, pcm: Int16Array, rate: number): Promise<Int16Array> {
  const heard: number[] = [];
  const samples = rate / 50;
  return new Promise((resolve) => {
    let at = 0;
    const stream = filters.open(rate, (clean) => {
      heard.push(...clean);
      if (at < pcm.length) return write();
      if (heard.length < pcm.length - samples) return;
      stream.close();
      stream.close();
      stream.write(new Int16Array(rate));
      resolve(Int16Array.from(heard));
    });
    const write = (): void => stream.write(pcm.subarray(at, (at += samples)));
    for (let ahead = 0; ahead < 20; ahead += 1) write();
  });
}

/** Threads that keep the process alive as long as the test. */
function keptThreads(t: TestContext): ReturnType<typeof createNoiseFilter> {
  const threads = createNoiseFilter(createLogger("silent"));
  const keeping = setInterval(() => undefined, 1000);
  t.after(async () => {
    clearInterval(keeping);
    await threads.close();
  });
  return threads;
}

test("[SP130] calls are filtered in threads, several at a time, in order and without loss", async (t) => {
  const threads = keptThreads(t);
  const rates = [8000, 16_000, 24_000];
  const alone = rates.map((rate) => filtered(noise(rate, 1000), rate).heard);
  const heard = await Promise.all(
    rates.map((rate) => throughThreads(threads, noise(rate, 1000), rate)));
  for (const [at, pcm] of heard.entries()) {
    assert.deepEqual(pcm, alone[at]!.subarray(0, pcm.length), `${rates[at]}`);
  }
});

test("[SP131] audio that the filter is too slow for or has lost passes unfiltered", async (t) => {
  const threads = keptThreads(t);
  const frames = Array.from({ length: 60 }, (_, at) => new Int16Array(160).fill(at));
  // All in one turn of the loop: no thread can have answered.
  const slow: number[] = [];
  const stream = threads.open(8000, (pcm) => slow.push(pcm[0]!));
  for (const frame of frames) stream.write(frame);
  assert.deepEqual(slow, frames.map((frame) => frame[0]));
  stream.close();

  const lost: number[] = [];
  const other = threads.open(8000, (pcm) => lost.push(pcm[0]!));
  for (const frame of frames.slice(0, 10)) other.write(frame);
  await threads.close();
  for (const frame of frames.slice(10)) other.write(frame);
  assert.deepEqual(lost.slice(-50), frames.slice(10).map((frame) => frame[0]));
  other.close();
});

test("[SN6] real speech is not a beep", () => {
  for (const rate of [8000, 16_000]) {
    const detector = createBeepDetector(rate, () => assert.fail(`a beep at ${rate}`));
    detector.push(createResampler(RATE, rate).process(conversation().pcm));
  }
});
