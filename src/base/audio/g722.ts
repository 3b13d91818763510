// G.722 at 64 kbit/s (ITU-T G.722, mode 1): 16 kHz sound in as many bits as G.711 has for 8 kHz.
// Two bands of a quadrature mirror filter, each coded by differences with a predictor that follows
// the sound; the names of the steps are the recommendation's. Used by calls over SIP (codecs.ts).

interface G722Encoder {
  /** One byte for each two samples at 16 kHz. */
  encode(pcm: Int16Array): Uint8Array;
}

interface G722Decoder {
  /** Two samples at 16 kHz for each byte. */
  decode(payload: Uint8Array): Int16Array;
}

/** The lower band: limits of the quantizer, codes of its steps, and what each code stands for. */
const LIMITS_LOW = Int16Array.of(
  0, 35, 72, 110, 150, 190, 233, 276, 323, 370, 422, 473, 530, 587, 650, 714, 786, 858, 940, 1023,
  1121, 1219, 1339, 1458, 1612, 1765, 1980, 2195, 2557, 2919);
const SIX_BITS = Int16Array.of(
  -136, -136, -136, -136, -24_808, -21_904, -19_008, -16_704, -14_984, -13_512, -12_280, -11_192,
  -10_232, -9360, -8576, -7856, -7192, -6576, -6000, -5456, -4944, -4464, -4008, -3576, -3168,
  -2776, -2400, -2032, -1688, -1360, -1040, -728, 24_808, 21_904, 19_008, 16_704, 14_984, 13_512,
  12_280, 11_192, 10_232, 9360, 8576, 7856, 7192, 6576, 6000, 5456, 4944, 4464, 4008, 3576, 3168,
  2776, 2400, 2032, 1688, 1360, 1040, 728, 432, 136, -432, -136);
/** The predictor sees four of the six bits, so that both ends may drop the others. */
const FOUR_BITS = Int16Array.of(
  0, -20_456, -12_896, -8968, -6288, -4240, -2584, -1200, 20_456, 12_896, 8968, 6288, 4240, 2584,
  1200, 0);
const LOG_LOW = Int16Array.of(
  -60, 3042, 1198, 538, 334, 172, 58, -30, 3042, 1198, 538, 334, 172, 58, -30, -60);
const LOG_LOW_MAX = 18_432;
/** The higher band: one limit and four codes. */
const LIMIT_HIGH = 564;
const TWO_BITS = Int16Array.of(-7408, -1616, 7408, 1616);
const LOG_HIGH = Int16Array.of(798, -214, 798, -214);
const LOG_HIGH_MAX = 22_528;
/** Powers of two in steps of 1/32, which turn the logarithm of a step into its scale. */
const POWERS = Int16Array.of(
  2048, 2093, 2139, 2186, 2233, 2282, 2332, 2383, 2435, 2489, 2543, 2599, 2656, 2714, 2774, 2834,
  2896, 2960, 3025, 3091, 3158, 3228, 3298, 3371, 3444, 3520, 3597, 3676, 3756, 3838, 3922, 4008);
/** One half of the mirror filter; the other has it backwards. */
const MIRROR = Int16Array.of(3, -11, 12, 32, -210, 951, 3876, -805, 362, -156, 53, -11);
const TAPS = 24;
const ZEROS = 6;

const clip = (value: number): number =>
  (value > 32_767 ? 32_767 : value < -32_768 ? -32_768 : value);
const clip15 = (value: number): number =>
  (value > 16_383 ? 16_383 : value < -16_384 ? -16_384 : value);
const isOtherSign = (one: number, other: number): boolean => ((one ^ other) & 0x8000) !== 0;

/** One band: the size of its step and the predictor of six zeros and two poles. */
class Band {
  /** The next sample as predicted. */
  estimate = 0;
  step: number;
  #log = 0;
  readonly #logs: Int16Array;
  readonly #logMax: number;
  readonly #shift: number;
  #zeroPart = 0;
  #reconstructed = 0;
  #partial = 0;
  #partialBefore = 0;
  #pole = 0;
  #poleBefore = 0;
  readonly #zeros = new Int16Array(ZEROS);
  readonly #differences = new Int16Array(ZEROS + 1);

  constructor(kind: "low" | "high") {
    const isLow = kind === "low";
    this.step = isLow ? 32 : 8;
    this.#logs = isLow ? LOG_LOW : LOG_HIGH;
    this.#logMax = isLow ? LOG_LOW_MAX : LOG_HIGH_MAX;
    this.#shift = isLow ? 8 : 10;
  }

  /** LOGSCL and SCALE, then the predictor, for a code sent or received and its difference. */
  adapt(code: number, difference: number): void {
    const log = ((this.#log * 127) >> 7) + (this.#logs[code] ?? 0);
    this.#log = log < 0 ? 0 : log > this.#logMax ? this.#logMax : log;
    const power = POWERS[(this.#log >> 6) & 31] ?? 0;
    const down = this.#shift - (this.#log >> 11);
    this.step = (down < 0 ? power << -down : power >> down) << 2;
    this.#predict(difference);
  }

  #predict(difference: number): void {
    const reconstructed = clip(this.estimate + difference);
    const partial = clip(this.#zeroPart + difference);
    this.#adaptPoles(partial);
    const fromPoles = clip(
      ((this.#pole * clip(reconstructed + reconstructed)) >> 15)
      + ((this.#poleBefore * clip(this.#reconstructed + this.#reconstructed)) >> 15));
    this.#reconstructed = reconstructed;
    this.#partialBefore = this.#partial;
    this.#partial = partial;
    this.#zeroPart = this.#adaptZeros(difference);
    this.estimate = clip(fromPoles + this.#zeroPart);
  }

  /** UPPOL2 and UPPOL1. */
  #adaptPoles(partial: number): void {
    const differs = isOtherSign(partial, this.#partial);
    const lean = clip(this.#pole << 2);
    const second = (isOtherSign(partial, this.#partialBefore) ? -128 : 128)
      + ((differs ? lean : Math.min(-lean, 32_767)) >> 7)
      + ((this.#poleBefore * 32_512) >> 15);
    this.#poleBefore = second > 12_288 ? 12_288 : second < -12_288 ? -12_288 : second;
    const first = clip((differs ? -192 : 192) + ((this.#pole * 32_640) >> 15));
    const most = clip(15_360 - this.#poleBefore);
    this.#pole = first > most ? most : first < -most ? -most : first;
  }

  /** UPZERO and FILTEZ. */
  #adaptZeros(difference: number): number {
    const push = difference === 0 ? 0 : 128;
    const differences = this.#differences;
    differences[0] = difference;
    let sum = 0;
    for (let at = ZEROS - 1; at >= 0; at -= 1) {
      const sign = isOtherSign(differences[at + 1] ?? 0, difference) ? -push : push;
      const zero = clip(sign + (((this.#zeros[at] ?? 0) * 32_640) >> 15));
      this.#zeros[at] = zero;
      const before = differences[at] ?? 0;
      sum += (zero * clip(before + before)) >> 15;
      differences[at + 1] = before;
    }
    return clip(sum);
  }
}

/** The mirror filter's last samples; both halves of it at one position. */
class Mirror {
  readonly #line = new Int16Array(TAPS);
  odd = 0;
  even = 0;

  push(first: number, second: number): void {
    const line = this.#line;
    line.copyWithin(0, 2);
    line[TAPS - 2] = first;
    line[TAPS - 1] = second;
    let odd = 0;
    let even = 0;
    for (let at = 0; at < TAPS / 2; at += 1) {
      odd += (line[2 * at] ?? 0) * (MIRROR[at] ?? 0);
      even += (line[2 * at + 1] ?? 0) * (MIRROR[TAPS / 2 - 1 - at] ?? 0);
    }
    this.odd = odd;
    this.even = even;
  }
}

function codeLow(difference: number, step: number): number {
  const size = difference >= 0 ? difference : ~difference;
  let level = 1;
  while (level < LIMITS_LOW.length && size >= ((LIMITS_LOW[level] ?? 0) * step) >> 12) level += 1;
  if (difference >= 0) return 62 - level;
  return level === 1 ? 63 : level === 2 ? 62 : 34 - level;
}

function codeHigh(difference: number, step: number): number {
  const size = difference >= 0 ? difference : ~difference;
  const isLarge = size >= (LIMIT_HIGH * step) >> 12;
  return difference < 0 ? (isLarge ? 0 : 1) : isLarge ? 2 : 3;
}

export function createG722Encoder(): G722Encoder {
  const low = new Band("low");
  const high = new Band("high");
  const mirror = new Mirror();
  return {
    encode: (pcm) => {
      const bytes = new Uint8Array(pcm.length >> 1);
      for (let index = 0; index + 1 < pcm.length; index += 2) {
        mirror.push(pcm[index] ?? 0, pcm[index + 1] ?? 0);
        const lower = clip(((mirror.even + mirror.odd) >> 14) - low.estimate);
        const upper = clip(((mirror.even - mirror.odd) >> 14) - high.estimate);
        const six = codeLow(lower, low.step);
        const two = codeHigh(upper, high.step);
        low.adapt(six >> 2, (low.step * (FOUR_BITS[six >> 2] ?? 0)) >> 15);
        high.adapt(two, (high.step * (TWO_BITS[two] ?? 0)) >> 15);
        bytes[index >> 1] = (two << 6) | six;
      }
      return bytes;
    },
  };
}

export function createG722Decoder(): G722Decoder {
  const low = new Band("low");
  const high = new Band("high");
  const mirror = new Mirror();
  return {
    decode: (payload) => {
      const pcm = new Int16Array(2 * payload.length);
      for (let at = 0; at < payload.length; at += 1) {
        const code = payload[at] ?? 0;
        const six = code & 63;
        const two = code >> 6;
        const lower = clip15(low.estimate + ((low.step * (SIX_BITS[six] ?? 0)) >> 15));
        low.adapt(six >> 2, (low.step * (FOUR_BITS[six >> 2] ?? 0)) >> 15);
        const difference = (high.step * (TWO_BITS[two] ?? 0)) >> 15;
        const upper = clip15(high.estimate + difference);
        high.adapt(two, difference);
        mirror.push(lower + upper, lower - upper);
        pcm[2 * at] = clip(mirror.even >> 11);
        pcm[2 * at + 1] = clip(mirror.odd >> 11);
      }
      return pcm;
    },
  };
}
