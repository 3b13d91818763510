// The codecs calls over SIP may have, as descriptions of sessions name them. Used by sdp.ts and by
// what codes the sound.
import type { SipCodec } from "#providers/carriers/sip/trunks/trunk.ts";

interface CodecName {
  /** RFC 3551's, or the one we offer it with. */
  payloadType: number;
  /** The value of `a=rtpmap`, in capital letters as it is compared, and as it is written. */
  encoding: string;
  written: string;
  /** Ticks of the timestamps in a second: 8000 for G.722 by an old mistake, 48000 for any Opus. */
  clockRate: 8000 | 48_000;
  /** The value of `a=fmtp`. */
  format: string | null;
}

export const CODECS = {
  OPUS: {
    payloadType: 96, encoding: "OPUS/48000/2", written: "opus/48000/2", clockRate: 48_000,
    format: "useinbandfec=1;maxplaybackrate=16000;sprop-maxcapturerate=16000",
  },
  G722: {
    payloadType: 9, encoding: "G722/8000", written: "G722/8000", clockRate: 8000, format: null,
  },
  PCMU: {
    payloadType: 0, encoding: "PCMU/8000", written: "PCMU/8000", clockRate: 8000, format: null,
  },
  PCMA: {
    payloadType: 8, encoding: "PCMA/8000", written: "PCMA/8000", clockRate: 8000, format: null,
  },
} as const satisfies Record<string, CodecName>;

export type Codec = keyof typeof CODECS;

const CODEC_NAMES = Object.keys(CODECS) as Codec[];
export const NARROWBAND: readonly Codec[] = ["PCMU", "PCMA"];

/** Those of a trunk, as its owner names them. */
export const codecsOf = (codecs: readonly SipCodec[]): Codec[] =>
  codecs.map((name) => name.toUpperCase() as Uppercase<SipCodec>);

/** Null: it is none of ours. */
export const codecOf = (encoding: string): Codec | null =>
  CODEC_NAMES.find((name) => CODECS[name].encoding === encoding) ?? null;
