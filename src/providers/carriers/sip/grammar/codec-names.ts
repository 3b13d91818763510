// The codecs that SIP calls may use, with their names in SDP. Used by sdp.ts and
// media/codecs.ts.
import type { SipCodec } from "#providers/carriers/sip/trunks/trunk.ts";

interface CodecName {
  /** The static type of RFC 3551, or the one we use in offers. */
  payloadType: number;
  /** The value of `a=rtpmap`: in upper case, to compare with, and as we write it. */
  encoding: string;
  written: string;
  /** RTP ticks per second: 8000 for G.722 by a historical mistake, 48000 for Opus at any rate. */
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

/** The codecs of a trunk, from the names its owner uses. */
export const codecsOf = (codecs: readonly SipCodec[]): Codec[] =>
  codecs.map((name) => name.toUpperCase() as Uppercase<SipCodec>);

/** Null when we do not support the codec. */
export const codecOf = (encoding: string): Codec | null =>
  CODEC_NAMES.find((name) => CODECS[name].encoding === encoding) ?? null;
