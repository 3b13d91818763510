// Changes the rate of a stream of samples by a windowed sinc. Browsers differ in which rates their
// audio contexts allow, so both directions run at the device's own and meet here.

const LOBES = 16;

/**
 * @param {number} from samples per second
 * @param {number} to samples per second
 * @returns {(input: Float32Array) => Float32Array} what is complete by now, over all calls
 */
export function createResampler(from, to) {
  if (from === to) return (input) => input;
  const step = from / to;
  const scale = Math.max(1, step);
  const half = Math.ceil(LOBES * scale);
  let buffer = new Float32Array(half);
  // Where the next sample is, in samples of the buffer.
  let position = half;
  return (input) => {
    const all = new Float32Array(buffer.length + input.length);
    all.set(buffer);
    all.set(input, buffer.length);
    const out = [];
    for (; position + half < all.length; position += step) {
      const centre = Math.floor(position);
      const offset = position - centre;
      let sum = 0;
      let weight = 0;
      for (let tap = 1 - half; tap <= half; tap += 1) {
        const x = (tap - offset) / scale;
        const window = 0.5 + 0.5 * Math.cos((Math.PI * (tap - offset)) / (half + 1));
        const value = (x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x)) * window;
        sum += (all[centre + tap] ?? 0) * value;
        weight += value;
      }
      out.push(sum / weight);
    }
    const keep = Math.floor(position) - half;
    buffer = all.slice(keep);
    position -= keep;
    return Float32Array.from(out);
  };
}
