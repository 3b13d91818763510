// Compresses one recording to Opus, in a thread with low priority. Started by
// features/calls/records/compression.ts.
import {
  closeSync, existsSync, fsyncSync, openSync, readSync, renameSync, rmSync, writeSync,
} from "node:fs";
import { workerData } from "node:worker_threads";
import { openOggOpus } from "#audio/ogg-opus.ts";
import { HEADER_BYTES, rateOfWav } from "#audio/wav.ts";
import { deferThisThread } from "#core/thread-priority.ts";
import type { CompressionTask } from "#features/calls/records/compression.ts";

const PIECE_BYTES = 64 * 1024;
const { from, to } = workerData as CompressionTask;

deferThisThread();

const part = `${to}.part`;
const source = openSync(from, "r");
const target = openSync(part, "w", 0o600);
const head = Buffer.alloc(HEADER_BYTES);
readSync(source, head, 0, head.length, 0);
const writer = await openOggOpus(rateOfWav(head), (bytes) => void writeSync(target, bytes));
const piece = Buffer.alloc(PIECE_BYTES);
for (let at = head.length; ;) {
  const count = readSync(source, piece, 0, piece.length, at);
  // Only whole frames of both channels.
  const whole = count - (count % 4);
  if (whole === 0) break;
  writer.write(new Int16Array(piece.buffer.slice(piece.byteOffset, piece.byteOffset + whole)));
  at += whole;
}
writer.close();
fsyncSync(target);
closeSync(target);
closeSync(source);
// The recording was deleted in the meantime, and must not come back.
if (existsSync(from)) renameSync(part, to);
else rmSync(part);
