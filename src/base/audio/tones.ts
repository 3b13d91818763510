// Finding the beep of an answering machine: one steady tone, longer than any sound of speech. Pure.
import { filterFor, powerAt } from "./goertzel.ts";

const BLOCK_MS = 20;
const HERTZ_MIN = 400;
const HERTZ_MAX = 2000;
const HERTZ_STEP = 50;
const BEEP_MS = 200;
const RMS_MIN = 400;
/** The share of a block's energy that has to be at one frequency. */
const PURITY = 0.7;

/** Energy of one frequency, as a share of the block's. */
function share(block: Int16Array, hertz: number, rate: number, energy: number): number {
  return (2 * powerAt(block, filterFor(hertz, rate))) / (block.length * energy);
}

/** `onBeep` runs once for every tone, when it has lasted long enough to be no speech. */
export function createBeepDetector(
  rate: number,
  onBeep: () => void,
): { push(pcm: Int16Array): void } {
  const block = new Int16Array((rate * BLOCK_MS) / 1000);
  let filled = 0;
  let hertz = 0;
  let lastedMs = 0;
  const look = (): void => {
    let energy = 0;
    for (const sample of block) energy += sample * sample;
    let best = 0;
    let bestShare = 0;
    const consider = (candidate: number): void => {
      const found = share(block, candidate, rate, energy);
      if (found > bestShare) [best, bestShare] = [candidate, found];
    };
    if (Math.sqrt(energy / block.length) >= RMS_MIN) {
      for (let at = HERTZ_MIN; at <= HERTZ_MAX; at += HERTZ_STEP) consider(at);
      // In a 20 ms block, a tone halfway between two steps shows at either with 40 % of its share.
      const coarse = best;
      consider(coarse - HERTZ_STEP / 2);
      consider(coarse + HERTZ_STEP / 2);
    }
    // Compared with the pitch at its beginning: a gliding whistle or siren is no beep.
    if (bestShare < PURITY) lastedMs = 0;
    else if (lastedMs > 0 && Math.abs(best - hertz) <= HERTZ_STEP) lastedMs += BLOCK_MS;
    else [hertz, lastedMs] = [best, BLOCK_MS];
    if (lastedMs === BEEP_MS) onBeep();
  };
  return {
    push: (pcm) => {
      for (let at = 0; at < pcm.length;) {
        const take = Math.min(block.length - filled, pcm.length - at);
        block.set(pcm.subarray(at, at + take), filled);
        filled += take;
        at += take;
        if (filled < block.length) return;
        filled = 0;
        look();
      }
    },
  };
}
