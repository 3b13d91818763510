// How much a piece of sound is like one voice: vowels of one person repeat themselves with the
// pitch, which coughs, noise and several people at once do not. Pure.

/** Pitches of people, high and low. */
const HERTZ_MAX = 400;
const HERTZ_MIN = 73;
/** More samples per second change nothing but the work. */
const RATE = 8000;

/** From 0, no repetition, to 1: the best match of the sound with itself a period later. */
export function periodicity(pcm: Int16Array, rate: number): number {
  const step = rate / RATE;
  const sound = new Float64Array(Math.floor(pcm.length / step));
  let mean = 0;
  for (let at = 0; at < sound.length; at += 1) {
    sound[at] = pcm[at * step] ?? 0;
    mean += (sound[at] ?? 0) / sound.length;
  }
  let best = 0;
  const longest = Math.min(Math.floor(RATE / HERTZ_MIN), sound.length >> 1);
  for (let lag = RATE / HERTZ_MAX; lag <= longest; lag += 1) {
    let [both, one, other] = [0, 0, 0];
    for (let at = lag; at < sound.length; at += 1) {
      const here = (sound[at] ?? 0) - mean;
      const before = (sound[at - lag] ?? 0) - mean;
      both += here * before;
      one += here * here;
      other += before * before;
    }
    best = Math.max(best, both / Math.sqrt(one * other + 1));
  }
  return best;
}
