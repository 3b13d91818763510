// How loud a sound is to people: ITU-R BS.1770-4, as EBU R 128 measures programmes, on one channel.
// Pure. The two filters are those of the recommendation, made for any rate from their frequencies.

const BLOCK_MS = 400;
const HOP_MS = 100;
const HOPS_PER_BLOCK = BLOCK_MS / HOP_MS;
const OFFSET = -0.691;
/** The two gates: quieter blocks count as silence; blocks this far below the rest as pauses. */
const SILENCE_LUFS = -70;
const PAUSE_LU = 10;
const FULL_SCALE = 32_768;

const loudnessOf = (energy: number): number => OFFSET + 10 * Math.log10(energy);
const energyOf = (lufs: number): number => 10 ** ((lufs - OFFSET) / 10);

/** One second-order section of a filter, with its state. */
class Section {
  readonly #b: readonly [number, number, number];
  readonly #a: readonly [number, number];
  #one = 0;
  #two = 0;

  constructor(b: readonly [number, number, number], a: readonly [number, number]) {
    this.#b = b;
    this.#a = a;
  }

  next(sample: number): number {
    const out = this.#b[0] * sample + this.#one;
    this.#one = this.#b[1] * sample - this.#a[0] * out + this.#two;
    this.#two = this.#b[2] * sample - this.#a[1] * out;
    return out;
  }
}

/** A high shelf: the listener's head amplifies sound above 1.7 kHz. */
function shelf(rate: number): Section {
  const [hertz, gain, q] = [1681.974450955533, 10 ** (3.999843853973347 / 20), 0.7071752369554196];
  const k = Math.tan((Math.PI * hertz) / rate);
  const middle = gain ** 0.4996667741545416;
  const a0 = 1 + k / q + k * k;
  return new Section(
    [(gain + (middle * k) / q + k * k) / a0, (2 * (k * k - gain)) / a0,
      (gain - (middle * k) / q + k * k) / a0],
    [(2 * (k * k - 1)) / a0, (1 - k / q + k * k) / a0]);
}

/** Very low frequencies are hardly heard. */
function highPass(rate: number): Section {
  const [hertz, q] = [38.13547087602444, 0.5003270373238773];
  const k = Math.tan((Math.PI * hertz) / rate);
  const a0 = 1 + k / q + k * k;
  return new Section([1, -2, 1], [(2 * (k * k - 1)) / a0, (1 - k / q + k * k) / a0]);
}

/** Publishes the energy of the last 400 ms after every 100 ms of sound. */
export function createBlocks(rate: number, publish: (energy: number) => void): {
  push(pcm: Int16Array): void;
} {
  const [first, second] = [shelf(rate), highPass(rate)];
  const hop = (rate * HOP_MS) / 1000;
  const hops: number[] = [];
  let energy = 0;
  let count = 0;
  return {
    push: (pcm) => {
      for (const sample of pcm) {
        energy += second.next(first.next(sample / FULL_SCALE)) ** 2;
        if (++count < hop) continue;
        hops.push(energy / hop);
        if (hops.length > HOPS_PER_BLOCK) hops.shift();
        if (hops.length === HOPS_PER_BLOCK) {
          publish(hops.reduce((sum, one) => sum + one, 0) / HOPS_PER_BLOCK);
        }
        [energy, count] = [0, 0];
      }
    },
  };
}

/** The loudness of all blocks together in LUFS, pauses left out; null: they are silent. */
export function integrated(blocks: readonly number[]): number | null {
  const mean = (energies: readonly number[]): number =>
    energies.reduce((sum, energy) => sum + energy, 0) / energies.length;
  const sounding = blocks.filter((energy) => energy >= energyOf(SILENCE_LUFS));
  if (sounding.length === 0) return null;
  const gate = energyOf(loudnessOf(mean(sounding)) - PAUSE_LU);
  return loudnessOf(mean(sounding.filter((energy) => energy >= gate)));
}
