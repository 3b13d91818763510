// The log-mel spectrogram of eight seconds of sound that networks of Whisper's family take: 80 mel
// bands in 800 steps of 10 ms. Pure; tested against the published extractor.

export const LOG_MEL_RATE = 16_000;
const SAMPLES = 8 * LOG_MEL_RATE;
export const LOG_MEL_BANDS = 80;
const HOP = 160;
export const LOG_MEL_STEPS = SAMPLES / HOP;
const WINDOW = 400;
const BINS = WINDOW / 2 + 1;
const RADICES = [4, 4, 5, 5] as const;
const FULL_SCALE = 32_768;
const VARIANCE_FLOOR = 1e-7;
const POWER_FLOOR = 1e-10;
/** Dynamic range: what is this many powers of ten below the loudest is clamped. */
const DYNAMICS = 8;

const HANN = Float64Array.from(
  { length: WINDOW }, (_, at) => 0.5 - 0.5 * Math.cos((2 * Math.PI * at) / WINDOW));

/**
 * The last eight seconds of 16 kHz sound, one band after another; shorter sound is padded with
 * silence at the front.
 */
export function logMel(pcm: Int16Array): Float32Array {
  const heard = pcm.subarray(Math.max(0, pcm.length - SAMPLES));
  const samples = normalised(heard);
  const mels = new Float64Array(LOG_MEL_BANDS * LOG_MEL_STEPS);
  // All steps of pure silence are equal, so they are computed once.
  const quiet = Math.max(0, Math.floor((SAMPLES - heard.length - WINDOW / 2) / HOP));
  const first = 2 * Math.floor(Math.max(0, quiet - 1) / 2);
  for (let step = first; step < LOG_MEL_STEPS; step += 2) {
    const { even, odd } = powersAt(samples, step);
    addStep(mels, step, even);
    addStep(mels, step + 1, odd);
  }
  for (let band = 0; band < LOG_MEL_BANDS; band += 1) {
    const from = band * LOG_MEL_STEPS;
    mels.fill(mels[from + first] ?? 0, from, from + first);
  }
  const loudest = mels.reduce((most, value) => Math.max(most, value), -Infinity);
  return Float32Array.from(mels, (value) => (Math.max(value, loudest - DYNAMICS) + 4) / 4);
}

/** Scales the sound so that all eight seconds have mean 0 and variance 1. */
function normalised(heard: Int16Array): Float32Array {
  const samples = new Float32Array(SAMPLES);
  samples.set(Float32Array.from(heard, (sample) => sample / FULL_SCALE),
    SAMPLES - heard.length);
  let sum = 0;
  for (const sample of samples) sum += sample;
  const mean = sum / SAMPLES;
  let squares = 0;
  for (const sample of samples) squares += (sample - mean) ** 2;
  const deviation = Math.sqrt(squares / SAMPLES + VARIANCE_FLOOR);
  return samples.map((sample) => (sample - mean) / deviation);
}

function addStep(mels: Float64Array, step: number, powers: Float64Array): void {
  for (let band = 0; band < LOG_MEL_BANDS; band += 1) {
    const { first, weights } = FILTERS[band] as Filter;
    let sum = 0;
    for (let at = 0; at < weights.length; at += 1) {
      sum += (weights[at] ?? 0) * (powers[first + at] ?? 0);
    }
    mels[band * LOG_MEL_STEPS + step] = Math.log10(Math.max(POWER_FLOOR, sum));
  }
}

const wave = {
  re: new Float64Array(WINDOW), im: new Float64Array(WINDOW),
  nextRe: new Float64Array(WINDOW), nextIm: new Float64Array(WINDOW),
};
const powers = { even: new Float64Array(BINS), odd: new Float64Array(BINS) };

/** Computes this step and the next: two real signals share one complex transform. */
function powersAt(samples: Float32Array, step: number): typeof powers {
  window(samples, step, wave.re);
  window(samples, step + 1, wave.im);
  transform();
  const { re, im } = wave;
  for (let bin = 0; bin < BINS; bin += 1) {
    const mirrored = (WINDOW - bin) % WINDOW;
    const [x, y] = [re[bin] as number, im[bin] as number];
    const [u, v] = [re[mirrored] as number, im[mirrored] as number];
    powers.even[bin] = ((x + u) ** 2 + (y - v) ** 2) / 4;
    powers.odd[bin] = ((x - u) ** 2 + (y + v) ** 2) / 4;
  }
  return powers;
}

/** The window is centred on its step; the sound is mirrored at its beginning and its end. */
function window(samples: Float32Array, step: number, into: Float64Array): void {
  const from = step * HOP - WINDOW / 2;
  for (let at = 0; at < WINDOW; at += 1) {
    let place = Math.abs(from + at);
    if (place >= SAMPLES) place = 2 * (SAMPLES - 1) - place;
    into[at] = (samples[place] ?? 0) * (HANN[at] ?? 0);
  }
}

/** Fourier's transform of `wave` in place, radix by radix (Stockham). */
function transform(): void {
  let parts = WINDOW;
  let stride = 1;
  for (const [stage, radix] of RADICES.entries()) {
    parts /= radix;
    runStage(TWIDDLES[stage] as Twiddles, radix, parts, stride);
    stride *= radix;
    [wave.re, wave.nextRe] = [wave.nextRe, wave.re];
    [wave.im, wave.nextIm] = [wave.nextIm, wave.im];
  }
}

/** Nearly all of the time is spent here, hence plain loops over plain numbers. */
function runStage({ cos, sin }: Twiddles, radix: number, parts: number, stride: number): void {
  const { re, im, nextRe, nextIm } = wave;
  const step = stride * parts;
  let twiddle = 0;
  for (let part = 0; part < parts; part += 1) {
    for (let out = 0; out < radix; out += 1, twiddle += radix) {
      const to = stride * (radix * part + out);
      for (let at = 0; at < stride; at += 1) {
        let from = at + stride * part;
        let sumRe = 0;
        let sumIm = 0;
        for (let factor = twiddle; factor < twiddle + radix; factor += 1, from += step) {
          const c = cos[factor] as number;
          const s = sin[factor] as number;
          const x = re[from] as number;
          const y = im[from] as number;
          sumRe += x * c - y * s;
          sumIm += x * s + y * c;
        }
        nextRe[to + at] = sumRe;
        nextIm[to + at] = sumIm;
      }
    }
  }
}

interface Twiddles {
  cos: Float64Array;
  sin: Float64Array;
}

/** The factors of each stage in the order they are used. */
const TWIDDLES: readonly Twiddles[] = RADICES.map((radix, stage) => {
  const size = RADICES.slice(0, stage).reduce((rest, before) => rest / before, WINDOW);
  const angles: number[] = [];
  for (let part = 0; part < size / radix; part += 1) {
    for (let out = 0; out < radix; out += 1) {
      for (let term = 0; term < radix; term += 1) {
        angles.push(-2 * Math.PI * ((out * term) / radix + (part * out) / size));
      }
    }
  }
  return { cos: Float64Array.from(angles, Math.cos), sin: Float64Array.from(angles, Math.sin) };
});

interface Filter {
  first: number;
  weights: number[];
}

/** Slaney's scale: linear to 1 kHz, then logarithmic. */
const LINEAR_HZ = 1000;
const LINEAR_MELS = 15;
const LOG_STEP = Math.log(6.4) / 27;
const melOf = (hz: number): number =>
  hz < LINEAR_HZ ? (3 * hz) / 200 : LINEAR_MELS + Math.log(hz / LINEAR_HZ) / LOG_STEP;
const hzOf = (mel: number): number =>
  mel < LINEAR_MELS ? (200 * mel) / 3 : LINEAR_HZ * Math.exp(LOG_STEP * (mel - LINEAR_MELS));

/** Triangular filters of equal area. */
const FILTERS: readonly Filter[] = (() => {
  const top = melOf(LOG_MEL_RATE / 2);
  const edges = Array.from(
    { length: LOG_MEL_BANDS + 2 }, (_, at) => hzOf((top * at) / (LOG_MEL_BANDS + 1)));
  const hz = Array.from({ length: BINS }, (_, bin) => (bin * LOG_MEL_RATE) / WINDOW);
  return Array.from({ length: LOG_MEL_BANDS }, (_, band): Filter => {
    const [low = 0, middle = 0, high = 0] = edges.slice(band, band + 3);
    const heights = hz.map((at) => (2 / (high - low))
      * Math.max(0, Math.min((at - low) / (middle - low), (high - at) / (high - middle))));
    const first = Math.max(0, heights.findIndex((height) => height > 0));
    const last = heights.findLastIndex((height) => height > 0);
    return { first, weights: heights.slice(first, last + 1) };
  });
})();
