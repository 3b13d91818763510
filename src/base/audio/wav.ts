// Stereo recordings streamed to disk as WAV: the customer left, the assistant right. At most a
// second of each is in memory; the header is put right at the end.
import { open, type FileHandle } from "node:fs/promises";

export const HEADER_BYTES = 44;
const RATE_AT = 24;
const SAMPLE_BYTES = 2;
/** A frame holds one sample of each side. */
const FRAME_BYTES = 4;
const BLOCKS_WAITING_MAX = 30;

interface StereoRecorder {
  /** A piece of each side, both equally long; the arrays are not kept. */
  write(left: Int16Array, right: Int16Array): void;
  /** Resolves once the file is whole; to its length. Rejects when it could not be written. */
  close(): Promise<{ bytes: number; durationMs: number }>;
}

function header(rate: number, dataBytes: number, channels = 2): Buffer {
  const head = Buffer.alloc(HEADER_BYTES);
  head.write("RIFF", 0, "latin1");
  head.writeUInt32LE(HEADER_BYTES - 8 + dataBytes, 4);
  head.write("WAVEfmt ", 8, "latin1");
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(channels, 22);
  head.writeUInt32LE(rate, RATE_AT);
  head.writeUInt32LE(rate * channels * SAMPLE_BYTES, 28);
  head.writeUInt16LE(channels * SAMPLE_BYTES, 32);
  head.writeUInt16LE(16, 34);
  head.write("data", 36, "latin1");
  head.writeUInt32LE(dataBytes, 40);
  return head;
}

/** When the disk cannot keep up or fails, the recording ends there and `close` rejects. */
export function createStereoRecorder(
  { file, rate }: { file: string; rate: number },
): StereoRecorder {
  const blockFrames = rate;
  let block = new Int16Array(2 * blockFrames);
  let filled = 0;
  let bytes = HEADER_BYTES;
  let waiting = 0;
  let failure: Error | null = null;
  /** Null until there is something to write: calls nobody answers leave no file. */
  let opened: Promise<FileHandle> | null = null;
  let queue: Promise<void> = Promise.resolve();
  const enqueue = (data: Buffer, position: number, after = (): void => undefined): void => {
    const handle = (opened ??= open(file, "wx", 0o600));
    queue = queue.then(async () => {
      await (await handle).write(data, 0, data.length, position);
      after();
    });
    // `close` throws it; until then it must not count as an unhandled rejection.
    queue.catch((error: unknown) => (failure ??= error as Error));
  };

  const flush = (): void => {
    if (filled === 0 || failure) return;
    if (waiting >= BLOCKS_WAITING_MAX) {
      failure = new Error("the disk is too slow for the recording");
      return;
    }
    const data = Buffer.from(block.buffer, 0, filled * FRAME_BYTES);
    const position = bytes;
    bytes += data.length;
    block = new Int16Array(2 * blockFrames);
    filled = 0;
    waiting += 1;
    enqueue(data, position, () => (waiting -= 1));
  };
  return {
    write: (left, right) => {
      if (!opened) enqueue(header(rate, 0), 0);
      for (let at = 0; at < left.length; at += 1) {
        block[2 * filled] = left[at] ?? 0;
        block[2 * filled + 1] = right[at] ?? 0;
        filled += 1;
        if (filled === blockFrames) flush();
      }
    },
    close: async () => {
      flush();
      if (!opened) return { bytes: 0, durationMs: 0 };
      const handle = await opened;
      try {
        await queue;
        if (failure) throw failure;
        await handle.write(header(rate, bytes - HEADER_BYTES), 0, HEADER_BYTES, 0);
      } finally {
        await handle.close();
      }
      return { bytes, durationMs: ((bytes - HEADER_BYTES) / FRAME_BYTES / rate) * 1000 };
    },
  };
}

/** Samples per second, out of a recording's first bytes. */
export function rateOfWav(head: Buffer): 8000 | 16_000 | 24_000 {
  const rate = head.readUInt32LE(RATE_AT);
  if (rate !== 8000 && rate !== 16_000 && rate !== 24_000) throw new Error(`a rate of ${rate}`);
  return rate;
}

/**
 * Sets the sizes of a recording that a crash left without them. False: there is no sound in it, or
 * no such file. Rejects when that cannot be seen.
 */
export async function repairWav(path: string): Promise<boolean> {
  const file = await open(path, "r+").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null;
    throw error;
  });
  if (!file) return false;
  try {
    const { size } = await file.stat();
    const frames = Math.floor((size - HEADER_BYTES) / FRAME_BYTES);
    if (frames < 1) return false;
    const { buffer } = await file.read(Buffer.alloc(HEADER_BYTES), 0, HEADER_BYTES, 0);
    const whole = header(buffer.readUInt32LE(RATE_AT), frames * FRAME_BYTES);
    await file.write(whole, 0, HEADER_BYTES, 0);
    // The last block may have been torn in the middle of a frame.
    await file.truncate(HEADER_BYTES + frames * FRAME_BYTES);
    return true;
  } finally {
    await file.close();
  }
}

/** A whole file in memory, of one channel. */
export function monoWav(pieces: Int16Array[], rate: number): Uint8Array<ArrayBuffer> {
  const samples = pieces.reduce((sum, { length }) => sum + length, 0);
  const bytes = new Uint8Array(HEADER_BYTES + samples * SAMPLE_BYTES);
  bytes.set(header(rate, samples * SAMPLE_BYTES, 1));
  let at = HEADER_BYTES;
  for (const { buffer, byteOffset, byteLength } of pieces) {
    bytes.set(new Uint8Array(buffer, byteOffset, byteLength), at);
    at += byteLength;
  }
  return bytes;
}
