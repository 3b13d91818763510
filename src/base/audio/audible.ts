// Where sound that is heard begins and ends within audio, by its energy: a voice detector says yes
// for a tenth of a second and more behind the last sound, and voices begin and end with silence.
// Used where the times of a call are taken. Pure.

const BLOCK_MS = 4;
const FULL_SCALE = 32_768;
const levelOf = (decibels: number): number => FULL_SCALE * 10 ** (decibels / 20);
/** Quieter than this nothing is heard on a telephone. */
const AUDIBLE = levelOf(-45);
/** Against the loudest of what was said lately: the rest of a sound dies away unheard. */
const BELOW_SPEECH = 10 ** (-26 / 20);
/** Against the quietest of late, which is the noise of the line. */
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

/** Follows a line with its speech and its noise. */
export function createSoundEnd(rate: number): {
  /** How long there has been no sound at the end of this piece; its whole length: none in it. */
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
