// The faint noise of a line on which nobody speaks: people take digital silence for a line that is
// dead. Made once per rate, in frames that all calls share. Pure but for that.

const LOOP_SECONDS = 3.2;
const FRAMES_PER_SECOND = 50;
/** -62 dBFS: heard in a quiet room, and no sound to any detector. */
const RMS = 26;
/** A room is duller than white noise. */
const HERTZ_MAX = 1200;

const loops = new Map<number, readonly Int16Array[]>();
let calls = 0;

function makeLoop(rate: number): readonly Int16Array[] {
  let state = 0x1f123bb5;
  const white = (): number => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state / 2 ** 31;
  };
  const share = 1 - Math.exp((-2 * Math.PI * HERTZ_MAX) / rate);
  let dull = 0;
  const noise = Float64Array.from({ length: LOOP_SECONDS * rate }, () =>
    (dull += share * (white() - dull)));
  const rms = Math.sqrt(noise.reduce((sum, value) => sum + value ** 2, 0) / noise.length);
  const loop = Int16Array.from(noise, (value) => Math.round((value * RMS) / rms));
  const samples = rate / FRAMES_PER_SECOND;
  return Array.from({ length: loop.length / samples }, (_, index) =>
    loop.subarray(index * samples, (index + 1) * samples));
}

/** Frames of 20 ms for one call, which are not to be changed; each call begins elsewhere. */
export function createComfortNoise(rate: number): () => Int16Array {
  const loop = loops.get(rate) ?? makeLoop(rate);
  loops.set(rate, loop);
  let at = (calls += 7);
  return () => loop[(at += 1) % loop.length] as Int16Array;
}
