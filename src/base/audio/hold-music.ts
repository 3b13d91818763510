// The music for people who wait: a slow pattern of plucked tones over four chords, synthesised
// while it plays, so that nobody has rights in it and nobody waits for it. Pure.
const BEAT_SECONDS = 0.6;
/** Semitones above A3: the notes of each bar in the order they are plucked. */
const BARS = [
  [3, 7, 10, 15, 10, 7, 12, 7], [0, 3, 7, 12, 7, 3, 10, 3],
  [-4, 0, 3, 8, 3, 0, 7, 0], [-2, 2, 5, 10, 5, 2, 8, 2],
];
const BEATS = BARS.flat();
const BAR_BEATS = BEATS.length / BARS.length;
const BASS_BELOW = 12;
const A3_HZ = 220;
/** Each partial is weaker than the one before it, and dies away sooner. */
const PARTIALS = [1, 0.35, 0.12];
const DECAY_SECONDS = 0.9;
/** A string is dropped once its amplitude has decayed to this share of the first. */
const SILENT = 0.004;
const ATTACK_SECONDS = 0.008;
const TUNE_LEVEL = 2300;
const BASS_LEVEL = 3300;

/** One partial of a plucked string: a pointer that turns and shrinks. */
interface Pointer {
  x: number;
  y: number;
  cos: number;
  sin: number;
  /** Samples since it was plucked, and until it is dropped. */
  age: number;
  lasts: number;
}

function pluck(rate: number, semitones: number, level: number): Pointer[] {
  const hertz = A3_HZ * 2 ** (semitones / 12);
  return PARTIALS.map((weight, index) => {
    const angle = (2 * Math.PI * hertz * (index + 1)) / rate;
    const shrink = Math.exp(-(index + 1) / (DECAY_SECONDS * rate));
    return {
      x: level * weight, y: 0, cos: Math.cos(angle) * shrink, sin: Math.sin(angle) * shrink, age: 0,
      lasts: Math.round((-Math.log(SILENT) * DECAY_SECONDS * rate) / (index + 1)),
    };
  });
}

function ring(string: Pointer, into: Int16Array, from: number, attack: number): void {
  const { cos, sin, lasts } = string;
  let { x, y, age } = string;
  for (let at = from; at < into.length && age < lasts; at += 1) {
    into[at] = (into[at] ?? 0) + (age < attack ? (y * age) / attack : y);
    const turned = x * cos - y * sin;
    y = x * sin + y * cos;
    x = turned;
    age += 1;
  }
  string.x = x;
  string.y = y;
  string.age = age;
}

/** Loops for ever from the beginning, a frame at a time. */
export function createHoldMusic(rate: number): { next(samples: number): Int16Array } {
  const beatSamples = Math.round(BEAT_SECONDS * rate);
  const attack = ATTACK_SECONDS * rate;
  let strings: Pointer[] = [];
  let beat = 0;
  let untilBeat = 0;
  const play = (into: Int16Array, from: number): void => {
    const fresh = pluck(rate, BEATS[beat] ?? 0, TUNE_LEVEL);
    if (beat % BAR_BEATS === 0) {
      fresh.push(...pluck(rate, (BEATS[beat] ?? 0) - BASS_BELOW, BASS_LEVEL));
    }
    for (const string of fresh) ring(string, into, from, attack);
    strings = [...strings.filter(({ age, lasts }) => age < lasts), ...fresh];
    beat = (beat + 1) % BEATS.length;
  };
  return {
    next: (samples) => {
      const frame = new Int16Array(samples);
      for (const string of strings) ring(string, frame, 0, attack);
      for (; untilBeat < samples; untilBeat += beatSamples) play(frame, untilBeat);
      untilBeat -= samples;
      return frame;
    },
  };
}
