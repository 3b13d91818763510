// Packets of a codec with memory, decoded in the order they were sent: one that comes early waits
// for those before it, until the sound before it is used up; then what is missing is made up, by
// the codec where it can. Used by rtp-session.ts and web/peer.ts before the jitter buffer. Pure.
import type { Coder } from "./codecs.ts";
import { sequenceDistance, type RtpPacket } from "./rtp.ts";

type Packet = Pick<RtpPacket, "sequence" | "timestamp"> & { payload: Uint8Array };
/** Timestamp in samples. */
type Play = (at: { sequence: number; timestamp: number }, pcm: Int16Array) => void;

/** So many packets wait at most; further on nobody waits for what is missing. */
const WAITING_MAX = 5;
/** Sequence numbers further back are a new beginning. */
const MISORDER_MAX = 100;
/** More than that is not made up: it was a pause. */
const MADE_UP_MS_MAX = 100;

export class PacketOrder {
  /** Packets that came after what they would have been before was decoded. */
  late = 0;
  /** Sound the codec made up for packets that were lost, in milliseconds. */
  concealedMs = 0;
  readonly #coder: Coder;
  readonly #play: Play;
  readonly #waiting = new Map<number, Packet>();
  #next: number | null = null;
  /** The timestamp of the next packet, if nothing is missing, in ticks and in samples. */
  #tick = 0;
  #sample = 0;
  #samplesOfPacket = 0;

  constructor(coder: Coder, play: Play) {
    this.#coder = coder;
    this.#play = play;
  }

  /** The next packet is the beginning of another stream. */
  reset(): void {
    this.#waiting.clear();
    this.#next = null;
  }

  push(packet: Packet): void {
    if (!this.#coder.memory) return this.#decode(packet);
    const ahead = this.#next === null ? 0 : sequenceDistance(packet.sequence, this.#next);
    if (ahead < -MISORDER_MAX || ahead > MISORDER_MAX) {
      this.reset();
    } else if (ahead < 0) {
      this.late += 1;
      return;
    } else if (ahead > 0) {
      this.#waiting.set(packet.sequence, packet);
      if (this.#waiting.size > WAITING_MAX) this.due();
      return;
    }
    this.#decode(packet);
    this.#goOn();
  }

  /** Nothing is left to be heard: what has not come by now is given up. */
  due(): void {
    const next = this.#next;
    if (next === null || this.#waiting.size === 0) return;
    const distances = [...this.#waiting.keys()].map((sequence) => sequenceDistance(sequence, next));
    const first = this.#waiting.get((next + Math.min(...distances)) & 0xffff);
    if (!first) return;
    this.#waiting.delete(first.sequence);
    this.#makeUp(first);
    this.#decode(first);
    this.#goOn();
  }

  #goOn(): void {
    for (;;) {
      const packet = this.#next === null ? undefined : this.#waiting.get(this.#next);
      if (!packet) return;
      this.#waiting.delete(packet.sequence);
      this.#decode(packet);
    }
  }

  /** What is missing before this packet; the codec's last words of it are in the packet itself. */
  #makeUp(first: Packet): void {
    const { memory, rate } = this.#coder;
    const missing = this.#samplesUntil(first.timestamp);
    if (!memory || missing <= 0 || missing > (rate * MADE_UP_MS_MAX) / 1000) return;
    const last = Math.min(missing, this.#samplesOfPacket);
    if (missing > last) {
      const pcm = memory.conceal(missing - last);
      if (pcm) this.concealedMs += (pcm.length * 1000) / rate;
      this.#fill(first.sequence, pcm);
    }
    this.#fill(first.sequence, memory.recover(first.payload, last));
  }

  #fill(before: number, pcm: Int16Array | null): void {
    if (!pcm) return;
    this.#play({ sequence: (before - 1) & 0xffff, timestamp: this.#sample >>> 0 }, pcm);
    this.#advance(pcm.length);
  }

  #decode(packet: Packet): void {
    const pcm = this.#coder.decode(packet.payload);
    this.#advance(this.#samplesUntil(packet.timestamp));
    this.#next = (packet.sequence + 1) & 0xffff;
    if (!pcm) return;
    this.#samplesOfPacket = pcm.length;
    this.#play({ sequence: packet.sequence, timestamp: this.#sample >>> 0 }, pcm);
    this.#advance(pcm.length);
  }

  #samplesUntil(timestamp: number): number {
    const { rate, clockRate } = this.#coder;
    return Math.round((((timestamp - this.#tick) | 0) * rate) / clockRate);
  }

  #advance(samples: number): void {
    const { rate, clockRate } = this.#coder;
    this.#sample = (this.#sample + samples) | 0;
    this.#tick = (this.#tick + Math.round((samples * clockRate) / rate)) | 0;
  }
}
