// G.711 by table: mu-law (PCMU) and A-law (PCMA), exact to ITU-T G.191. Used by codecs.ts and, for
// hosted carriers, by dialects.ts.

interface Law {
  /** Sample of every code. */
  readonly samples: Int16Array;
  /** Code of every sample; the index is the sample as an unsigned 16-bit number. */
  readonly codes: Uint8Array;
}

const MU_BIAS = 33;
const MU_MAX = 0x1fff;

const highestBit = (value: number): number => 31 - Math.clz32(value);

// Negative samples are complemented, not negated, in both laws: -1 is as far from zero as 0.

function muCode(sample: number): number {
  const magnitude = Math.min(((sample < 0 ? ~sample : sample) >> 2) + MU_BIAS, MU_MAX);
  const segment = highestBit(magnitude) - 5;
  const mantissa = (magnitude >> (segment + 1)) & 15;
  return ((sample < 0 ? 0x7f : 0xff) ^ (segment << 4) ^ mantissa) & 0xff;
}

function muSample(code: number): number {
  const segment = (~code >> 4) & 7;
  const mantissa = ~code & 15;
  const magnitude = ((((mantissa << 1) + MU_BIAS) << segment) - MU_BIAS) * 4;
  return code & 0x80 ? magnitude : -magnitude;
}

function aCode(sample: number): number {
  const magnitude = (sample < 0 ? ~sample : sample) >> 4;
  const segment = Math.max(0, highestBit(magnitude) - 3);
  const mantissa = segment > 1 ? (magnitude >> (segment - 1)) & 15 : magnitude & 15;
  return ((sample < 0 ? 0 : 0x80) | (segment << 4) | mantissa) ^ 0x55;
}

function aSample(code: number): number {
  const bits = code ^ 0x55;
  const segment = (bits >> 4) & 7;
  const middle = ((bits & 15) << 4) + 8;
  const magnitude = segment === 0 ? middle : (middle + 0x100) << (segment - 1);
  return bits & 0x80 ? magnitude : -magnitude;
}

function lawOf(codeOf: (sample: number) => number, sampleOf: (code: number) => number): Law {
  return {
    samples: Int16Array.from({ length: 0x100 }, (_, code) => sampleOf(code)),
    codes: Uint8Array.from({ length: 0x10000 }, (_, bits) => codeOf((bits << 16) >> 16)),
  };
}

const made: Partial<Record<"PCMU" | "PCMA", Law>> = {};

/** Each table is built on first use, because the server's main thread uses none. */
export const LAWS = {
  get PCMU(): Law {
    return made.PCMU ??= lawOf(muCode, muSample);
  },
  get PCMA(): Law {
    return made.PCMA ??= lawOf(aCode, aSample);
  },
};

/** One byte a sample. */
export function encodeG711({ codes }: Law, pcm: Int16Array): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(pcm.length);
  for (let index = 0; index < pcm.length; index += 1) {
    bytes[index] = codes[(pcm[index] ?? 0) & 0xffff] ?? 0;
  }
  return bytes;
}
