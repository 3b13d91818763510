// Changes the rate of a stream of samples: a polyphase low-pass (windowed sinc, Kaiser), with
// state, so that however the audio is cut the result is the same. Pure.

export interface Resampler {
  /** The samples that are complete by now; their number follows the ratio over time. */
  process(pcm: Int16Array): Int16Array;
}

/** Zero crossings of the sinc on either side; sets the steepness. */
const LOBES = 32;
/** Kaiser's beta for more than 80 dB of attenuation. */
const BETA = 8.5;
/** Share of the lower Nyquist rate that passes. */
const PASS = 0.92;

const gcd = (one: number, other: number): number => (other === 0 ? one : gcd(other, one % other));

function bessel(x: number): number {
  let sum = 1;
  let term = 1;
  for (let k = 1; k < 40; k += 1) {
    term *= (x / (2 * k)) ** 2;
    sum += term;
  }
  return sum;
}

/** Filters by phase: `up` of them, each `taps` long, oldest sample first. */
function design(up: number, down: number): { filters: Float64Array[]; taps: number } {
  const cutoff = (PASS * 0.5) / Math.max(1, down / up);
  const half = Math.ceil(LOBES / (2 * cutoff) / 2);
  const taps = 2 * half;
  const filters = Array.from({ length: up }, (_, phase) => {
    const filter = new Float64Array(taps);
    let sum = 0;
    for (let tap = 0; tap < taps; tap += 1) {
      const x = tap - (half - 1) - phase / up;
      const position = x / half;
      const window = Math.abs(position) >= 1
        ? 0
        : bessel(BETA * Math.sqrt(1 - position * position)) / bessel(BETA);
      const argument = 2 * Math.PI * cutoff * x;
      filter[tap] = window * (argument === 0 ? 1 : Math.sin(argument) / argument);
      sum += filter[tap] ?? 0;
    }
    return filter.map((value) => value / sum);
  });
  return { filters, taps };
}

const designs = new Map<string, ReturnType<typeof design>>();

/** Rates in samples per second. Equal rates pass the samples through. */
export function createResampler(from: number, to: number): Resampler {
  if (from === to) return { process: (pcm) => pcm };
  const common = gcd(from, to);
  const [up, down] = [to / common, from / common];
  const key = `${up}/${down}`;
  const { filters, taps } = designs.get(key) ?? design(up, down);
  designs.set(key, { filters, taps });
  // Half a filter of silence before the first sample keeps input and output aligned.
  let buffer = new Float64Array(taps / 2 - 1);
  let phase = 0;
  return {
    process: (pcm) => {
      const all = new Float64Array(buffer.length + pcm.length);
      all.set(buffer);
      all.set(pcm, buffer.length);
      const positions = Math.max(0, all.length - taps + 1);
      const out = new Int16Array(Math.ceil((positions * up - phase) / down));
      let position = 0;
      let count = 0;
      while (position + taps <= all.length && count < out.length) {
        const filter = filters[phase] as Float64Array;
        let sum = 0;
        for (let tap = 0; tap < taps; tap += 1) {
          sum += (all[position + tap] ?? 0) * (filter[tap] ?? 0);
        }
        const rounded = Math.round(sum);
        out[count] = rounded > 32_767 ? 32_767 : rounded < -32_768 ? -32_768 : rounded;
        count += 1;
        phase += down;
        position += Math.floor(phase / up);
        phase %= up;
      }
      buffer = all.slice(Math.min(position, all.length));
      return out.subarray(0, count);
    },
  };
}

/** Turns 20 ms frames into 20 ms frames: the first begins with the delay of the filter. */
export function createFrameResampler(from: number, to: number): Resampler {
  if (from === to) return { process: (pcm) => pcm };
  const { process } = createResampler(from, to);
  let isFirst = true;
  return {
    process: (pcm) => {
      const out = process(pcm);
      if (!isFirst) return out;
      isFirst = false;
      const frame = new Int16Array((pcm.length * to) / from);
      frame.set(out, frame.length - out.length);
      return frame;
    },
  };
}
