// How sound is coded in packets of 20 ms, by the name the description has for it: G.711 by table,
// G.722, Opus. Used by rtp-session.ts, one coder of each kind a session.
import { createG722Decoder, createG722Encoder } from "#audio/g722.ts";
import { openOpus } from "#audio/opus.ts";
import { CODECS, type Codec } from "#providers/carriers/sip/grammar/codec-names.ts";
import { encodeG711, LAWS } from "./g711.ts";

export interface Coder {
  readonly codec: Codec;
  /** Samples per second of what is coded; the clock of its packets may be another. */
  readonly rate: 8000 | 16_000;
  /** Ticks of the packets' timestamps in a second. */
  readonly clockRate: number;
  /** 20 ms at `rate`. */
  encode(pcm: Int16Array): Uint8Array;
  /** Null: nothing can be made of it. */
  decode(payload: Uint8Array): Int16Array | null;
  /** What a packet says depends on those before it: it is decoded in their order. */
  readonly memory: CoderMemory | null;
  /** Idempotent. */
  close(): void;
}

interface CoderMemory {
  /** In place of packets that were lost; null: the codec knows nothing about them. */
  conceal(samples: number): Int16Array | null;
  /** In place of the packet before `next`. */
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

/** A coder of each, in the same order. */
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
