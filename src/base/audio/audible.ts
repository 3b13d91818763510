// Where audible sound begins and ends within audio, by its energy: a voice detector still says yes
// for a tenth of a second and more after the last sound, and voices begin and end with silence.
// Used where the timing of a call is measured. Pure.

const BLOCK_MS = 4;
const FULL_SCALE = 32_768;
const levelOf = (decibels: number): number => FULL_SCALE * 10 ** (decibels / 20);
/** Sound that is quieter than this is not heard on a telephone. */
const AUDIBLE = levelOf(-45);
/** Relative to the loudest of late: below this, a sound dies away unheard. */
const BELOW_SPEECH = 10 ** (-26 / 20);
/** Relative to the quietest of late, which is the noise of the line. */
const ABOVE_NOISE = 10 ** (12 / 20);
const DECAY = 10 ** ((-6 * BLOCK_MS) / 1000 / 20);

function rmsOf(pcm: Int16Array, from: number, to: number): number {
  let energy = 0;
  for (let at = from; at < to; at += 1) energy += (pcm[at] ?? 0) ** 2;
  return Math.sqrt(energy / Math.max(1, to - from));
}

/** How far into the audio its first sound is, in milliseconds; null: there is none. */
export function soundBeginsMs(pcm: Int16Array, rate: number): number | null {
  const block = (rate * BLOCK_MS) / 1000;
  for (let from = 0; from < pcm.length; from += block) {
    if (rmsOf(pcm, from, Math.min(from + block, pcm.length)) >= AUDIBLE) {
      return (from * 1000) / rate;
    }
  }
  return null;
}

/** Tracks the levels of speech and noise on a line. */
export function createSoundEnd(rate: number): {
  /** How long the silence at the end of this piece is; all of it where it has no sound. */
  quietMs(pcm: Int16Array): number;
} {
  const block = (rate * BLOCK_MS) / 1000;
  let loudest = 0;
  let quietest = AUDIBLE / ABOVE_NOISE;
  return {
    quietMs: (pcm) => {
      let end = 0;
      for (let from = 0; from < pcm.length; from += block) {
        const to = Math.min(from + block, pcm.length);
        const level = rmsOf(pcm, from, to);
        loudest = Math.max(level, loudest * DECAY);
        quietest = Math.min(level, Math.max(1, quietest / DECAY));
        if (level >= Math.max(AUDIBLE, loudest * BELOW_SPEECH, quietest * ABOVE_NOISE)) end = to;
      }
      return ((pcm.length - end) * 1000) / rate;
    },
  };
}
