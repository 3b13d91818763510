// The jitter buffer on networks that lose, delay, double and reorder, and on clocks that drift.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { JitterBuffer } from "#providers/carriers/sip/media/jitter-buffer.ts";

const FRAME = 160;
/** Each frame is one value throughout, so that an output tells which frame it is. */
const VALUES = 250;
const SAMPLES = Int16Array.from({ length: 256 }, (_, code) => (code + 1) * 100);
const payloadOf = (number: number, length = FRAME): Uint8Array =>
  new Uint8Array(length).fill(number % VALUES);

/** The numbers go round soon after the beginning. */
function put(
  buffer: JitterBuffer, number: number, timestamp: number, payload: Uint8Array, samples = SAMPLES,
): void {
  const pcm = Int16Array.from(payload, (code) => samples[code] ?? 0);
  buffer.push({ sequence: (65_500 + number) & 0xffff, timestamp }, pcm);
}

interface Arrival {
  atMs: number;
  number: number;
}

interface Heard {
  /** For each pull the frame that was heard as it was sent, or null. */
  frames: (number | null)[];
  depthMaxMs: number;
}

/** Plays arrivals (of the far end's frames, 20 ms each) against pulls every 20 ms. */
function play(arrivals: Arrival[], pulls: number, buffer = new JitterBuffer()): Heard {
  const sorted = [...arrivals].sort((one, other) => one.atMs - other.atMs);
  const frames: (number | null)[] = [];
  let depthMaxMs = 0;
  let newest = 0;
  for (let pull = 0, next = 0; pull < pulls; pull += 1) {
    for (; (sorted[next]?.atMs ?? Infinity) <= pull * 20; next += 1) {
      const { number } = sorted[next]!;
      newest = Math.max(newest, number);
      put(buffer, number, (number * FRAME + 4_294_900_000) >>> 0, payloadOf(number));
      depthMaxMs = Math.max(depthMaxMs, buffer.depthMs);
    }
    const frame = buffer.pull();
    assert.equal(frame.length, FRAME);
    const isWhole = frame[0] !== 0 && frame.every((sample) => sample === frame[0]);
    if (!isWhole) frames.push(null);
    else {
      // The newest frame of that value that can have come by now.
      const value = frame[0]! / 100 - 1;
      frames.push(newest - ((newest - value) % VALUES + VALUES) % VALUES);
    }
  }
  return { frames, depthMaxMs };
}

const numbersOf = ({ frames }: Heard): number[] => frames.filter((frame) => frame !== null);

function assertInOrder(numbers: number[]): void {
  for (let at = 1; at < numbers.length; at += 1) {
    assert.ok(numbers[at]! > numbers[at - 1]!, `${numbers[at - 1]} then ${numbers[at]}`);
  }
}

const steady = (count: number, delayMs = (_: number) => 5): Arrival[] =>
  Array.from({ length: count }, (_, number) => ({ number, atMs: number * 20 + delayMs(number) }));

test("[SI76] with any loss, delay, duplication or drift: one frame per pull, in order, at most 100 ms deep", () => {
  const packet = fc.record({
    isLost: fc.integer({ min: 0, max: 9 }).map((value) => value === 0),
    delayMs: fc.oneof({ weight: 8, arbitrary: fc.nat(40) }, { weight: 1, arbitrary: fc.nat(300) }),
    doubledMs: fc.option(fc.nat(100), { freq: 5 }),
  });
  fc.assert(fc.property(
    fc.array(packet, { minLength: 50, maxLength: 400 }), fc.integer({ min: -200, max: 200 }),
    (packets, ppm) => {
      const arrivals = packets.flatMap(({ isLost, delayMs, doubledMs }, number) => {
        const atMs = number * 20 * (1 + ppm / 1e6) + delayMs;
        const copies = isLost ? [] : [{ number, atMs }];
        return doubledMs === null ? copies : [...copies, { number, atMs: atMs + doubledMs }];
      });
      const came = new Set(arrivals.map(({ number }) => number));
      const heard = play(arrivals, packets.length + 30);
      assert.equal(heard.frames.length, packets.length + 30);
      assert.ok(heard.depthMaxMs <= 100, `${heard.depthMaxMs}`);
      const numbers = numbersOf(heard);
      assertInOrder(numbers);
      for (const number of numbers) assert.ok(came.has(number), `${number} never came`);
    },
  ), { numRuns: 300 });
});

test("[SI77] clocks 200 ppm apart for half an hour cause a glitch every 100 s at most, and never a deep buffer", (t) => {
  for (const ppm of [200, -200]) {
    const count = 90_000;
    let seed = 1;
    const random = () => (seed = (seed * 48_271) % 2_147_483_647) / 2_147_483_647;
    const arrivals = steady(count).map(({ number }) => ({
      number, atMs: number * 20 * (1 - ppm / 1e6) + random() * 8,
    }));
    const heard = play(arrivals, count - 20);
    const numbers = numbersOf(heard);
    assertInOrder(numbers);
    const glitches = heard.frames.length - numbers.length;
    t.diagnostic(`${ppm} ppm: ${glitches} glitches, depth at most ${heard.depthMaxMs} ms`);
    assert.ok(glitches <= 22, `${glitches}`);
    assert.ok(heard.depthMaxMs <= 100);
    // 360 ms have gone by the other clock; what is heard at the end is still as new.
    const pulls = heard.frames.length - 1;
    const sentBy = (pulls * 20) / (1 - ppm / 1e6) / 20;
    assert.ok(sentBy - numbers.at(-1)! <= 4, `${sentBy} ${numbers.at(-1)}`);
  }
});

test("[SI78] after a burst of 200 ms the newest 100 ms are heard, and the depth shrinks again", () => {
  // Nothing comes for 200 ms, then everything at once.
  const arrivals = steady(1000, (number) =>
    (number >= 100 && number < 110 ? (110 - number) * 20 : 5));
  const heard = play(arrivals, 1000);
  assert.ok(heard.depthMaxMs <= 100);
  const numbers = numbersOf(heard);
  assertInOrder(numbers);
  const missing = Array.from({ length: 1000 }, (_, number) => number)
    .filter((number) => number < numbers.at(-1)! && !numbers.includes(number));
  assert.ok(missing.filter((number) => number < 111).length <= 6, `${missing}`);
  // Deep right after it, back within ten seconds: each frame left out is one blended frame.
  const delay = (pull: number) => pull - heard.frames[pull]!;
  assert.ok(delay(130) >= 4, `${delay(130)}`);
  assert.ok(delay(999) <= 2, `${delay(999)}`);
});

test("[SI79] reordering loses nothing, and jitter up to 60 ms costs a few frames at its start", () => {
  const swapped = steady(500, (number) => (number % 2 === 0 ? 26 : 4));
  const numbers = numbersOf(play(swapped, 510));
  assert.deepEqual(numbers, Array.from({ length: 500 }, (_, number) => number));
  let seed = 7;
  const random = () => (seed = (seed * 48_271) % 2_147_483_647) / 2_147_483_647;
  const shaken = play(steady(3000, () => random() * 60), 3000);
  assertInOrder(numbersOf(shaken));
  assert.ok(3000 - numbersOf(shaken).length < 60, `${3000 - numbersOf(shaken).length}`);
});

test("[SI79] without jitter every frame is heard 40 ms after it was sent, whatever its length", () => {
  const { frames } = play(steady(3000), 3000);
  assert.deepEqual(frames.slice(10), Array.from({ length: 2990 }, (_, at) => at + 10 - 2));
  // Packets of 10, 30 and 60 ms.
  for (const length of [80, 240, 480]) {
    const buffer = new JitterBuffer();
    const out: number[] = [];
    for (let pull = 0, sent = 0; pull < 600; pull += 1) {
      for (; (sent + 1) * length <= pull * FRAME; sent += 1) {
        put(buffer, sent, sent * length, payloadOf(sent, length));
      }
      out.push(...buffer.pull());
    }
    const heard = out.slice(out.findIndex((sample) => sample !== 0));
    const wanted = heard.map((_, at) => SAMPLES[Math.floor(at / length) % VALUES]);
    const glitches = heard.filter((sample, at) => sample !== wanted[at]).length;
    assert.equal(glitches, 0, `${length}: ${glitches}`);
  }
});

test("[SI80] a gap is concealed for 60 ms, fading, without a jump at its start, and then silent", () => {
  const tone = Int16Array.from({ length: 256 }, (_, code) => Math.round(8000 * Math.sin(code / 7)));
  const buffer = new JitterBuffer();
  const ramp = (from: number) => Uint8Array.from({ length: FRAME }, (_, at) => (from + at) % 256);
  for (let number = 0; number < 4; number += 1) {
    put(buffer, number, number * FRAME, ramp(number * FRAME), tone);
  }
  const last = Array.from({ length: 4 }, () => buffer.pull()).at(-1)!;
  const gap = Array.from({ length: 5 }, () => [...buffer.pull()]);
  assert.equal(gap[0]![0], last.at(-1));
  const peak = (frame: number[]) => Math.max(...frame.map(Math.abs));
  assert.ok(peak(gap[0]!) > 5000 && peak(gap[1]!) > 2600 && peak(gap[2]!) > 500);
  assert.ok(peak(gap[0]!) > peak(gap[1]!) && peak(gap[1]!) > peak(gap[2]!));
  assert.deepEqual([peak(gap[3]!), peak(gap[4]!)], [0, 0]);
  const inside = play(steady(100).filter(({ number }) => number < 50 || number > 51), 100);
  // Two frames lost in the middle cost two frames and no delay.
  const rest = Array.from({ length: 46 }, (_, at) => 52 + at);
  assert.deepEqual(inside.frames.slice(50), [48, 49, null, null, ...rest]);
});

test("[SI80] a late loss is concealed with the latest audio, not with old audio", () => {
  const buffer = new JitterBuffer();
  for (let number = 0; number < 200; number += 1) {
    if (number !== 150) put(buffer, number, number * FRAME, payloadOf(number));
    const frame = buffer.pull();
    if (number !== 151) continue;
    assert.equal(frame[0], SAMPLES[149]);
    for (let at = 1; at < FRAME; at += 1) assert.ok(frame[at]! < frame[at - 1]!, `${at}`);
  }
});

test("[SI81] without pulls the newest 100 ms are kept, and the first pull gives the oldest of them", () => {
  const buffer = new JitterBuffer();
  assert.deepEqual(buffer.pull(), new Int16Array(FRAME));
  for (let number = 0; number < 500; number += 1) {
    put(buffer, number, number * FRAME, payloadOf(number));
    assert.ok(buffer.depthMs <= 100);
  }
  for (let number = 495; number < 500; number += 1) {
    assert.deepEqual(new Set(buffer.pull()), new Set([SAMPLES[number % VALUES]]));
  }
});

test("[SI82] audio continues within 100 ms when timestamps jump by any amount or a new stream starts", () => {
  const jumps = [
    160, 800, 3000, 5000, 20_000, 2 ** 31, -160, -800, -4000, -7900, -8100, -2_000_000,
  ];
  for (const jump of jumps) {
    for (const isReset of [false, true]) {
      const buffer = new JitterBuffer();
      let silent = 0;
      for (let number = 0; number < 200; number += 1) {
        if (isReset && number === 100) buffer.reset();
        const timestamp = (number * FRAME + (number >= 100 ? jump : 0)) >>> 0;
        put(buffer, number, timestamp, payloadOf(number));
        const frame = buffer.pull();
        if (number < 100) continue;
        if (frame.every((sample) => sample === SAMPLES[number % VALUES])) break;
        const isNew = frame.every((sample) => sample >= SAMPLES[100]! && sample === frame[0]);
        if (isNew) break;
        silent += 1;
      }
      // What is missing before a jump ahead is not waited through.
      const silentMax = jump > 0 && jump < 4096 && !isReset ? 2 : 5;
      assert.ok(silent <= silentMax, `${jump} ${isReset}: ${silent}`);
    }
  }
});

test("[SI82] after a pause in sending, words are not delayed more than before", () => {
  for (const pauseFrames of [2, 5, 20, 300]) {
    // Timestamps go on while nothing is sent, and (some telephones) do not.
    for (const isCounting of [true, false]) {
      const buffer = new JitterBuffer();
      const out: (number | null)[] = [];
      for (let pull = 0; pull < 600; pull += 1) {
        const isSent = pull < 100 || pull >= 100 + pauseFrames;
        const timestamp = (pull - (pull >= 100 && !isCounting ? pauseFrames : 0)) * FRAME;
        if (isSent) put(buffer, pull, timestamp, payloadOf(pull));
        const frame = buffer.pull();
        out.push(frame.every((sample) => sample === frame[0]) && frame[0] !== 0 ? frame[0]! : null);
      }
      const at = out.indexOf(SAMPLES[(100 + pauseFrames) % VALUES]!, 100);
      assert.ok(at - (100 + pauseFrames) <= 4, `${pauseFrames} ${isCounting}: ${at}`);
    }
  }
});

test("[SI192] packets of up to 180 ms that alternately arrive 15 ms late lose nothing", () => {
  for (const packetMs of [60, 100, 120, 180]) {
    const buffer = new JitterBuffer();
    const length = packetMs * 8;
    // Saw-teeth of 120 ms: sound that is left out or made up shows as a step of another size.
    const pcm = (number: number): Int16Array =>
      Int16Array.from({ length }, (_, at) => 1 + (number * length + at) % 960);
    let next = 0;
    let steps = 0;
    let before = 0;
    for (let pull = 0; pull < 500; pull += 1) {
      while (next * packetMs + 15 * (next % 2) <= pull * 20) {
        buffer.push({ sequence: next, timestamp: next * length }, pcm(next));
        next += 1;
      }
      const frame = buffer.pull();
      if (pull < 30) before = frame.at(-1)!;
      else for (const sample of frame) {
        if (sample !== before % 960 + 1) steps += 1;
        before = sample;
      }
    }
    assert.equal(steps, 0, `${packetMs} ms: ${steps}`);
    assert.equal(buffer.late, 0);
  }
});

test("[SI195] a long packet and a shorter one arriving together lose nothing", () => {
  // As ffmpeg sends a file of 8 kHz, and one packet of each after the other.
  for (const [packets, togetherMs] of [[[1460, 588], 256], [[1440, 160], 0]] as const) {
    const buffer = new JitterBuffer();
    let [sequence, sent, next] = [0, 0, 0];
    const heard: number[] = [];
    for (let nowMs = 0; nowMs < 10_000; nowMs += 20) {
      const length = (): number => packets[sequence % 2] ?? 0;
      // All that begins by now is said ahead, or each packet comes once all of it was said.
      while (togetherMs > 0 ? next <= nowMs : (sent + length()) / 8 <= nowMs) {
        const pcm = Int16Array.from({ length: length() }, (_, at) => 1 + (sent + at) % 960);
        buffer.push({ sequence, timestamp: sent }, pcm);
        [sequence, sent] = [sequence + 1, sent + pcm.length];
        if (sequence % 2 === 0) next += togetherMs;
      }
      heard.push(...buffer.pull());
    }
    // Until then it finds how deep it has to be.
    const words = heard.slice(2000 * 8);
    const steps = words.slice(1).filter((sample, at) => sample !== (words[at] ?? 0) % 960 + 1);
    assert.deepEqual([steps.length, buffer.late], [0, 0]);
  }
});
