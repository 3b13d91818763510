// The media at the far end of many calls, in a thread of its own: one socket that answers each
// packet with one of its own (a sentence's worth of noise and then silence, or a given sound over
// and over) and records when each came. Posts its port, and its figures when it is asked to stop.
import { randomBytes } from "node:crypto";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { setPriority } from "node:os";
import { parentPort, workerData } from "node:worker_threads";

/** What the thread may be started with. */
export interface RtpPeerData {
  /** Mu-law, said once the greeting has had its time and again after as long a silence. */
  speech: Uint8Array;
}

export interface RtpFigures {
  streams: number;
  packets: number;
  /** Numbers that are missing between the first and the last of each stream. */
  lost: number;
  /** How late every packet came, compared with the punctual one of its stream. */
  latenessMs: number[];
}

const FRAME_MS = 20;
const PCMU = 0;
const PAYLOAD = 160;
const HEADER = 12;
const SILENCE = 0xff;
/** Packets of a stream between which the far end makes a noise. */
const NOISE_FROM = 100;
const NOISE_TO = 175;

interface Stream {
  first: number;
  last: number;
  count: number;
  dueMs: number[];
}

/** The thread that measures must not be late itself; on Linux a thread has its own priority. */
const MEASURING_PRIORITY = -15;

const port = parentPort;
if (port) {
  try {
    if (process.platform === "linux") setPriority(0, MEASURING_PRIORITY);
  } catch {
    // Not permitted: it measures at normal priority.
  }
  const socket = createSocket({ type: "udp4", recvBufferSize: 8 * 1024 * 1024 });
  const streams = new Map<string, Stream>();
  // Loud and random, so that nobody takes it for a beep.
  const noise = Buffer.from(randomBytes(PAYLOAD).map((byte) => 0x10 + (byte & 0x1f)));
  const { speech = null } = (workerData ?? {}) as Partial<RtpPeerData>;
  const spoken = speech ? Math.floor(speech.length / PAYLOAD) : 0;
  /** The sound of the packet with that number; null: silence. */
  const soundAt = (index: number): Uint8Array | null => {
    if (!speech) return index >= NOISE_FROM && index < NOISE_TO ? noise : null;
    const at = index - NOISE_FROM;
    const frame = at < 0 ? spoken : at % (2 * spoken);
    return frame < spoken ? speech.subarray(frame * PAYLOAD, (frame + 1) * PAYLOAD) : null;
  };
  socket.on("message", (bytes, from) => {
    const atMs = performance.now();
    if (bytes.length < HEADER || (bytes[1]! & 0x7f) !== PCMU) return;
    const sequence = bytes.readUInt16BE(2);
    const key = `${from.port}|${bytes.readUInt32BE(8)}`;
    const known = streams.get(key);
    const stream = known ?? { first: sequence, last: 0, count: 0, dueMs: [] };
    if (!known) streams.set(key, stream);
    const index = (sequence - stream.first) & 0xffff;
    stream.last = Math.max(stream.last, index);
    stream.count += 1;
    stream.dueMs.push(atMs - index * FRAME_MS);
    const answer = Buffer.alloc(HEADER + PAYLOAD, SILENCE);
    bytes.copy(answer, 0, 0, HEADER);
    answer.writeUInt32BE((bytes.readUInt32BE(8) + 1) >>> 0, 8);
    answer.set(soundAt(index) ?? [], HEADER);
    socket.send(answer, from.port, from.address);
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  port.postMessage(socket.address().port);
  port.once("message", () => {
    const figures: RtpFigures = { streams: streams.size, packets: 0, lost: 0, latenessMs: [] };
    for (const { count, last, dueMs } of streams.values()) {
      const punctual = dueMs.reduce((least, ms) => Math.min(least, ms), Infinity);
      figures.packets += count;
      figures.lost += last + 1 - count;
      for (const ms of dueMs) figures.latenessMs.push(ms - punctual);
    }
    port.postMessage(figures);
    socket.close();
  });
}
