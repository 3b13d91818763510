// Opus (RFC 6716) for speech in frames of 20 ms, by libopus as WebAssembly. Each call has a coder
// of its own, whose memory is freed by hand. Used by calls over SIP (codecs.ts) and by web calls.

interface OpusCoder {
  /** Encodes 20 ms; the caller owns the bytes. */
  encode(pcm: Int16Array): Uint8Array;
  /** Null: this is no packet of Opus, or a longer one than a packet may be. */
  decode(packet: Uint8Array): Int16Array | null;
  /** Restores `samples` samples lost just before `next`, from its error correction (FEC). */
  recover(next: Uint8Array, samples: number): Int16Array | null;
  /** Conceals `samples` lost samples by continuing the audio before them. */
  conceal(samples: number): Int16Array | null;
  /** The share of packets that the far end loses, 0 to 1: the higher, the more FEC is sent. */
  expectLoss(share: number): void;
  /** Idempotent; nothing may follow. */
  close(): void;
}

type Rate = 8000 | 16_000 | 24_000 | 48_000;

const FRAMES_PER_SECOND = 50;
/** A packet holds 120 ms at the most. */
const PACKET_SHARE = 0.12;
const BITRATE = 32_000;
/** Ten is the most: speech is no worse at a third of it. */
const COMPLEXITY = 3;
/** The loss assumed of any path: from this on, packets carry FEC for the one before. */
const LOSS_MIN_PERCENT = 5;
const LOSS_MAX_PERCENT = 30;

/** Half a megabyte, which threads without calls in Opus do not load. */
const library = () => import("libopus-wasm");

/** Loads the library (some 50 ms), so that the first call does not wait for it. */
export const loadOpus = async (): Promise<void> => void await (await library()).loadLibopus();

export async function openOpus(rate: Rate): Promise<OpusCoder> {
  const { Application, createDecoder, createEncoder, Signal } = await library();
  const [encoder, decoder] = await Promise.all([
    createEncoder({
      sampleRate: rate, channels: 1, application: Application.Voip, signal: Signal.Voice,
      frameSize: rate / FRAMES_PER_SECOND, bitrate: BITRATE, complexity: COMPLEXITY, fec: true,
      packetLossPercent: LOSS_MIN_PERCENT,
    }),
    createDecoder({ sampleRate: rate, channels: 1, maxFrameSize: rate * PACKET_SHARE }),
  ]);
  // Packets come from anybody: one that the library refuses counts as not received.
  const decoded = (packet: Uint8Array | null, samples?: number): Int16Array | null => {
    try {
      return samples === undefined
        ? decoder.decode(packet)
        : decoder.decode(packet, { decodeFec: packet !== null, frameSize: samples });
    } catch {
      return null;
    }
  };
  return {
    encode: (pcm) => encoder.encode(pcm),
    decode: (packet) => (packet.length === 0 ? null : decoded(packet)),
    recover: decoded,
    conceal: (samples) => decoded(null, samples),
    expectLoss: (share) => encoder.setPacketLossPercent(
      Math.min(LOSS_MAX_PERCENT, Math.max(LOSS_MIN_PERCENT, Math.round(share * 100)))),
    close: () => {
      encoder.free();
      decoder.free();
    },
  };
}
