// Synthesised background sounds: filtered noise that swells, and small events in it. A loop takes
// tenths of a second to make, so calls get theirs from ambience-thread.ts. Pure.
import type { AmbienceKind } from "./kinds.ts";

const LOOP_SECONDS = 16;
/** About -36 dBFS. */
const RMS = 520;
const FADE_SECONDS = 1;
const LEVEL_MAX = 24_000;

interface Recipe {
  /** Noise below `low` and above `high` hertz is taken away. */
  beds: { low: number; high: number; level: number; swellHz: number }[];
  /** At level 1 an event is as loud as the beds together. */
  events: { perSecond: number; level: number; sound: "chirp" | "click" | "clink" | "murmur" }[];
}

const RECIPES: Record<AmbienceKind, Recipe> = {
  office: {
    beds: [{ low: 60, high: 400, level: 1, swellHz: 0.05 }],
    events: [
      { perSecond: 4, level: 0.5, sound: "click" }, { perSecond: 0.5, level: 0.5, sound: "murmur" },
    ],
  },
  city: {
    beds: [
      { low: 40, high: 300, level: 1.2, swellHz: 0.13 },
      { low: 300, high: 1800, level: 0.3, swellHz: 0.3 },
    ],
    events: [{ perSecond: 0.2, level: 0.6, sound: "murmur" }],
  },
  forest: {
    beds: [{ low: 300, high: 2500, level: 0.8, swellHz: 0.11 }],
    events: [{ perSecond: 1.2, level: 1.5, sound: "chirp" }],
  },
  nature: {
    beds: [
      { low: 100, high: 900, level: 1, swellHz: 0.19 },
      { low: 1500, high: 3200, level: 0.25, swellHz: 0.4 },
    ],
    events: [{ perSecond: 0.5, level: 1.2, sound: "chirp" }],
  },
  cafe: {
    beds: [{ low: 150, high: 900, level: 0.8, swellHz: 0.2 }],
    events: [
      { perSecond: 3, level: 0.9, sound: "murmur" }, { perSecond: 0.8, level: 1.2, sound: "clink" },
    ],
  },
  crowded_room: {
    beds: [{ low: 150, high: 1200, level: 0.7, swellHz: 0.25 }],
    events: [{ perSecond: 9, level: 1, sound: "murmur" }],
  },
};

/** The same sound at every start: what tests hear is what people hear. */
function createNoise(): () => number {
  let state = 0x2545f491;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 31 - 1;
  };
}

function addBed(
  into: Float64Array,
  rate: number,
  { low, high, level, swellHz }: Recipe["beds"][0],
  noise: () => number,
): void {
  const lowPass = 1 - Math.exp((-2 * Math.PI * high) / rate);
  const highPass = 1 - Math.exp((-2 * Math.PI * low) / rate);
  let smooth = 0;
  let smoother = 0;
  let base = 0;
  for (let at = 0; at < into.length; at += 1) {
    smooth += lowPass * (noise() - smooth);
    smoother += lowPass * (smooth - smoother);
    base += highPass * (smoother - base);
    const swell = 1 + 0.4 * Math.sin((2 * Math.PI * swellHz * at) / rate);
    into[at] = (into[at] ?? 0) + (smoother - base) * level * swell;
  }
}

const SHAPES = {
  click: { ms: 12, hertz: () => 1800, rough: 1 },
  clink: { ms: 180, hertz: (random: number) => 2400 + 900 * random, rough: 0 },
  chirp: { ms: 140, hertz: (random: number) => 2200 + 800 * random, rough: 0 },
  murmur: { ms: 420, hertz: (random: number) => 160 + 120 * random, rough: 0.3 },
};

function addEvents(
  into: Float64Array,
  rate: number,
  { perSecond, level, sound }: Recipe["events"][0],
  noise: () => number,
): void {
  const { ms, hertz, rough } = SHAPES[sound];
  const length = Math.round((ms * rate) / 1000);
  for (let count = Math.round(perSecond * LOOP_SECONDS); count > 0; count -= 1) {
    const start = Math.floor(((noise() + 1) / 2) * into.length);
    const pitch = hertz((noise() + 1) / 2);
    for (let at = 0; at < length; at += 1) {
      const shape = Math.sin((Math.PI * at) / length) ** 2;
      const tone = Math.sin((2 * Math.PI * pitch * (1 + (0.15 * at) / length) * at) / rate)
        + (sound === "murmur" ? 0.5 * Math.sin((2 * Math.PI * pitch * 3.1 * at) / rate) : 0);
      const value = shape * level * Math.SQRT2 * (tone * (1 - rough) + noise() * rough);
      const index = (start + at) % into.length;
      into[index] = (into[index] ?? 0) + value;
    }
  }
}

export function makeLoop(kind: AmbienceKind, rate: number): Int16Array {
  const recipe = RECIPES[kind];
  const noise = createNoise();
  const length = LOOP_SECONDS * rate;
  const fade = FADE_SECONDS * rate;
  const bed = new Float64Array(length + fade);
  for (const one of recipe.beds) addBed(bed, rate, one, noise);
  const sound = bed.slice(0, length);
  // The end is crossfaded into the beginning, so that the seam is not heard.
  for (let at = 0; at < fade; at += 1) {
    const share = at / fade;
    sound[at] = (bed[at] ?? 0) * Math.sqrt(share) + (bed[length + at] ?? 0) * Math.sqrt(1 - share);
  }
  scale(sound, 1);
  for (const one of recipe.events) addEvents(sound, rate, one, noise);
  scale(sound, RMS);
  return Int16Array.from(sound, (value) =>
    Math.max(-LEVEL_MAX, Math.min(LEVEL_MAX, Math.round(value))));
}

/** Scales the sound to that level, and centres it around zero. */
function scale(sound: Float64Array, rms: number): void {
  let sum = 0;
  let energy = 0;
  for (const value of sound) sum += value;
  const mean = sum / sound.length;
  for (const value of sound) energy += (value - mean) ** 2;
  const gain = rms / Math.sqrt(energy / sound.length);
  for (const [at, value] of sound.entries()) sound[at] = (value - mean) * gain;
}

export interface Ambience {
  next(samples: number): Int16Array;
}

/** Loops for ever; every call may begin at a place of its own. */
export function goRound(loop: Int16Array): Ambience {
  let at = 0;
  return {
    next: (samples) => {
      if (at + samples <= loop.length) {
        at += samples;
        return loop.subarray(at - samples, at);
      }
      const piece = new Int16Array(samples);
      const first = loop.length - at;
      piece.set(loop.subarray(at));
      at = samples - first;
      piece.set(loop.subarray(0, at), first);
      return piece;
    },
  };
}
