// Changes the rate of a stream of samples by a windowed sinc. Browsers differ in the rates their
// audio contexts allow, so both run at the device's own rate and are converted here.

const LOBES = 16;

const gcd = (one, other) => (other === 0 ? one : gcd(other, one % other));

/** Weights of the samples around a point that lies `offset` of a sample after the middle one. */
function createKernel(offset, half, scale) {
  const kernel = new Float32Array(2 * half);
  let sum = 0;
  for (let tap = 0; tap < kernel.length; tap += 1) {
    const distance = tap + 1 - half - offset;
    const x = (Math.PI * distance) / scale;
    const window = 0.5 + 0.5 * Math.cos((Math.PI * distance) / (half + 1));
    kernel[tap] = (x === 0 ? 1 : Math.sin(x) / x) * window;
    sum += kernel[tap];
  }
  return kernel.map((value) => value / sum);
}

/**
 * @param {number} from samples per second
 * @param {number} to samples per second
 * @returns {(input: Float32Array) => Float32Array} what is complete by now, over all calls
 */
export function createResampler(from, to) {
  if (from === to) return (input) => input;
  const common = gcd(from, to);
  const [up, down] = [to / common, from / common];
  const scale = Math.max(1, from / to);
  const half = Math.ceil(LOBES * scale);
  // The two rates' samples lie at few distinct distances: the audio thread computes each once.
  const kernels = [];
  let buffer = new Float32Array(half - 1);
  let phase = 0;
  return (input) => {
    const all = new Float32Array(buffer.length + input.length);
    all.set(buffer);
    all.set(input, buffer.length);
    const out = new Float32Array(Math.ceil((input.length * up) / down) + 1);
    let count = 0;
    let at = 0;
    while (at + 2 * half <= all.length) {
      const kernel = kernels[phase] ??= createKernel(phase / up, half, scale);
      let sum = 0;
      for (let tap = 0; tap < kernel.length; tap += 1) sum += all[at + tap] * kernel[tap];
      out[count] = sum;
      count += 1;
      phase += down;
      at += Math.floor(phase / up);
      phase %= up;
    }
    buffer = all.slice(at);
    return out.subarray(0, count);
  };
}
