// Encodes and decodes audio in packets of 20 ms with the codec that the SDP names: G.711 (by
// table), G.722 or Opus. Used by rtp-session.ts, which opens one coder per codec for each session.
import { createG722Decoder, createG722Encoder } from "#audio/g722.ts";
import { openOpus } from "#audio/opus.ts";
import { CODECS, type Codec } from "#providers/carriers/sip/grammar/codec-names.ts";
import { encodeG711, LAWS } from "./g711.ts";

export interface Coder {
  readonly codec: Codec;
  /** Samples per second of the PCM; the RTP clock may run at another rate. */
  readonly rate: 8000 | 16_000;
  /** Ticks of the packets' timestamps in a second. */
  readonly clockRate: number;
  /** 20 ms at `rate`. */
  encode(pcm: Int16Array): Uint8Array;
  /** Null when the payload cannot be decoded. */
  decode(payload: Uint8Array): Int16Array | null;
  /** Null for a stateless codec; the packets of any other must be decoded in the order sent. */
  readonly memory: CoderMemory | null;
  /** Idempotent. */
  close(): void;
}

interface CoderMemory {
  /** Audio to play in place of lost packets; null when the codec has no concealment. */
  conceal(samples: number): Int16Array | null;
  /** Audio to play in place of the lost packet just before `next`; null as in `conceal`. */
  recover(next: Uint8Array, samples: number): Int16Array | null;
}

const FORGETFUL: CoderMemory = { conceal: () => null, recover: () => null };

function g711(codec: "PCMU" | "PCMA"): Coder {
  const law = LAWS[codec];
  return {
    codec,
    rate: 8000,
    clockRate: CODECS[codec].clockRate,
    encode: (pcm) => encodeG711(law, pcm),
    decode: (payload) => Int16Array.from(payload, (code) => law.samples[code] ?? 0),
    memory: null,
    close: () => undefined,
  };
}

function g722(): Coder {
  const encoder = createG722Encoder();
  const decoder = createG722Decoder();
  return {
    codec: "G722",
    rate: 16_000,
    clockRate: CODECS.G722.clockRate,
    encode: (pcm) => encoder.encode(pcm),
    decode: (payload) => decoder.decode(payload),
    memory: FORGETFUL,
    close: () => undefined,
  };
}

async function opus(): Promise<Coder> {
  const coder = await openOpus(16_000);
  return {
    codec: "OPUS",
    rate: 16_000,
    clockRate: CODECS.OPUS.clockRate,
    encode: coder.encode,
    decode: coder.decode,
    memory: coder,
    close: coder.close,
  };
}

/** One coder per codec, in the same order. */
export const openCoders = async (codecs: readonly Codec[]): Promise<Coder[]> =>
  Promise.all(codecs.map(openCoder));

async function openCoder(codec: Codec): Promise<Coder> {
  switch (codec) {
    case "PCMU":
    case "PCMA":
      return g711(codec);
    case "G722":
      return g722();
    case "OPUS":
      return opus();
  }
}
