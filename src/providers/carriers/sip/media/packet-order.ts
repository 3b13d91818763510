// Decodes the packets of a codec with state in the order they were sent: an early packet waits for
// those before it until the buffered audio runs out; then the gap is concealed, by the codec if it
// can. Used by rtp-session.ts and web/peer.ts before the jitter buffer. Pure.
import type { Coder } from "./codecs.ts";
import { sequenceDistance, type RtpPacket } from "./rtp.ts";

type Packet = Pick<RtpPacket, "sequence" | "timestamp"> & { payload: Uint8Array };
/** Timestamp in samples. */
type Play = (at: { sequence: number; timestamp: number }, pcm: Int16Array) => void;

/** When more packets than this wait, the missing one is no longer waited for. */
const WAITING_MAX = 5;
/** A jump in sequence numbers larger than this, either way, is a restart of the sender. */
const MISORDER_MAX = 100;
/** A longer gap is not concealed: it was a pause. */
const MADE_UP_MS_MAX = 100;

export class PacketOrder {
  /** Packets that came after a later one had been decoded. */
  late = 0;
  /** Audio that the codec concealed for lost packets, in milliseconds. */
  concealedMs = 0;
  readonly #coder: Coder;
  readonly #play: Play;
  readonly #waiting = new Map<number, Packet>();
  #next: number | null = null;
  /** The expected timestamp of the next packet, in RTP ticks and in samples. */
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

  /** The buffered audio has run out: a packet that has not arrived by now counts as lost. */
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

  /** Conceals the gap before this packet, which may itself carry the last lost packet's audio. */
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
