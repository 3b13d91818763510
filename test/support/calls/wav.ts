// Sound as WAV files: those that telephones and browsers under test use as a microphone, and
// recordings read back.

const HEADER_BYTES = 44;

/** A mono WAV. */
export function wavOf(samples: Int16Array, rate: number): Buffer {
  const head = Buffer.alloc(HEADER_BYTES);
  head.write("RIFF", 0, "latin1");
  head.writeUInt32LE(36 + samples.byteLength, 4);
  head.write("WAVEfmt ", 8, "latin1");
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(rate, 24);
  head.writeUInt32LE(2 * rate, 28);
  head.writeUInt16LE(2, 32);
  head.writeUInt16LE(16, 34);
  head.write("data", 36, "latin1");
  head.writeUInt32LE(samples.byteLength, 40);
  return Buffer.concat([
    head, Buffer.from(samples.buffer, samples.byteOffset, samples.byteLength),
  ]);
}

interface ParsedWav {
  rate: number;
  /** One array per channel. */
  channels: Int16Array[];
}

/** Reads 16-bit PCM; throws on anything else. */
export function parseWav(bytes: Buffer): ParsedWav {
  const isRiff = bytes.toString("latin1", 0, 4) === "RIFF";
  if (!isRiff || bytes.readUInt16LE(20) !== 1 || bytes.readUInt16LE(34) !== 16) {
    throw new Error("no WAV of 16-bit PCM");
  }
  const count = bytes.readUInt16LE(22);
  const frames = Math.floor(bytes.readUInt32LE(40) / (2 * count));
  const channels = Array.from({ length: count }, () => new Int16Array(frames));
  for (let frame = 0; frame < frames; frame += 1) {
    channels.forEach((channel, index) => {
      channel[frame] = bytes.readInt16LE(HEADER_BYTES + 2 * (frame * count + index));
    });
  }
  return { rate: bytes.readUInt32LE(24), channels };
}
