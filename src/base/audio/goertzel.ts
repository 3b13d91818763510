// Goertzel's filter: the power of one frequency in a piece of sound. Used where tones are looked
// for. Pure.

/** The coefficient for `powerAt`, computed once per frequency. */
export const filterFor = (hertz: number, rate: number): number =>
  2 * Math.cos((2 * Math.PI * hertz) / rate);

/** A tone of this frequency alone, of amplitude a, has (a × samples / 2)². */
export function powerAt(samples: Int16Array | Float64Array, filter: number): number {
  let last = 0;
  let before = 0;
  for (let at = 0; at < samples.length; at += 1) {
    const next = (samples[at] ?? 0) + filter * last - before;
    before = last;
    last = next;
  }
  return last * last + before * before - filter * last * before;
}
