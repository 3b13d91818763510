// Stereo recordings as Opus in Ogg (RFC 7845, RFC 3533): a twentieth of a WAV's size. The length
// and the place of every sample stay as they were: the encoder's delay is skipped, and the last
// page says where the sound ends. Used by workers/compress-recording.ts.
import { Application, Bandwidth, createEncoder, EncoderCtl } from "libopus-wasm";

interface OggOpusWriter {
  /** Frames of two samples, left and right, any number. */
  write(frames: Int16Array): void;
  /** Writes what is left, and ends the file. */
  close(): void;
}

type Rate = 8000 | 16_000 | 24_000;

/** Ogg counts Opus at this rate, whatever went in. */
const CLOCK = 48_000;
const FRAMES_PER_SECOND = 50;
/** Both sides talk by turns, so that most of it is for one. */
const BITRATE = 48_000;
const COMPLEXITY = 5;
/** A second per page, which a player has to fetch before it can begin. */
const PACKETS_PER_PAGE = 50;
const SEGMENT_BYTES = 255;
const CONTINUES = 0;
const BEGINS = 2;
const ENDS = 4;
const SERIAL = 1;

const CRC = Uint32Array.from({ length: 256 }, (_, byte) => {
  let rest = byte << 24;
  for (let bit = 0; bit < 8; bit += 1) {
    rest = rest & 0x8000_0000 ? (rest << 1) ^ 0x04c1_1db7 : rest << 1;
  }
  return rest >>> 0;
});

function checksum(bytes: Uint8Array): number {
  let rest = 0;
  for (const byte of bytes) rest = ((rest << 8) ^ (CRC[(rest >>> 24) ^ byte] ?? 0)) >>> 0;
  return rest;
}

/** `granule`: samples at 48 kHz up to the end of the page. */
function pageOf(packets: Uint8Array[], flags: number, granule: number, number: number): Buffer {
  const lacing = packets.flatMap(({ length }) => [
    ...Array<number>(Math.floor(length / SEGMENT_BYTES)).fill(SEGMENT_BYTES),
    length % SEGMENT_BYTES,
  ]);
  const head = Buffer.alloc(27 + lacing.length);
  head.write("OggS", 0, "latin1");
  head[5] = flags;
  head.writeBigInt64LE(BigInt(granule), 6);
  head.writeUInt32LE(SERIAL, 14);
  head.writeUInt32LE(number, 18);
  head[26] = lacing.length;
  head.set(lacing, 27);
  const page = Buffer.concat([head, ...packets]);
  page.writeUInt32LE(checksum(page), 22);
  return page;
}

function headOf(rate: Rate, skip: number): Buffer {
  const head = Buffer.alloc(19);
  head.write("OpusHead", 0, "latin1");
  head[8] = 1;
  head[9] = 2;
  head.writeUInt16LE(skip, 10);
  head.writeUInt32LE(rate, 12);
  return head;
}

function tags(): Buffer {
  const vendor = Buffer.from("parley");
  const head = Buffer.alloc(12 + vendor.length + 4);
  head.write("OpusTags", 0, "latin1");
  head.writeUInt32LE(vendor.length, 8);
  vendor.copy(head, 12);
  return head;
}

/** `put` receives the file's bytes in order, and may keep them. */
export async function openOggOpus(
  rate: Rate, put: (bytes: Buffer) => void,
): Promise<OggOpusWriter> {
  const encoder = await createEncoder({
    sampleRate: rate, channels: 2, application: Application.Audio, bitrate: BITRATE,
    complexity: COMPLEXITY, frameSize: rate / FRAMES_PER_SECOND,
    maxBandwidth: rate === 8000 ? Bandwidth.Narrowband : Bandwidth.Superwideband,
  });
  encoder.encoderCtl(EncoderCtl.SetPhaseInversionDisabled, 1);
  const ticks = CLOCK / rate;
  const skip = encoder.getLookahead() * ticks;
  let page = 0;
  const send = (packets: Uint8Array[], flags: number, granule: number): void => {
    put(pageOf(packets, flags, granule, page));
    page += 1;
  };
  send([headOf(rate, skip)], BEGINS, 0);
  send([tags()], CONTINUES, 0);
  let frame = new Int16Array((2 * rate) / FRAMES_PER_SECOND);
  let filled = 0;
  let written = 0;
  let coded = 0;
  let packets: Uint8Array[] = [];
  const code = (): void => {
    if (packets.length === PACKETS_PER_PAGE) {
      send(packets, CONTINUES, coded * ticks);
      packets = [];
    }
    packets.push(encoder.encode(frame));
    coded += frame.length / 2;
    frame = new Int16Array(frame.length);
    filled = 0;
  };
  return {
    write: (frames) => {
      written += frames.length / 2;
      for (let at = 0; at < frames.length;) {
        const take = Math.min(frame.length - filled, frames.length - at);
        frame.set(frames.subarray(at, at + take), filled);
        filled += take;
        at += take;
        if (filled === frame.length) code();
      }
    },
    close: () => {
      // Silence flushes the last sound out of the encoder's delay.
      while (packets.length === 0 || coded * ticks < written * ticks + skip) code();
      send(packets, ENDS, written * ticks + skip);
      encoder.free();
    },
  };
}
