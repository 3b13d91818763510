// RTCP (RFC 3550, 6): sender and receiver reports, and counts of what was received and lost.
// Parsing never throws and is bounded by the datagram. Used by rtp-session.ts and web/peer.ts.
import { Jitter } from "#audio/jitter.ts";
import type { Instant } from "#core/system.ts";
import { sequenceDistance } from "./rtp.ts";

const VERSION = 2;
const SENDER_REPORT = 200;
const RECEIVER_REPORT = 201;
const DESCRIPTION = 202;
const GOODBYE = 203;
const CNAME = 1;
const HEADER_BYTES = 4;
const SENDER_BYTES = 24;
const BLOCK_BYTES = 24;
/** Seconds from 1900, NTP's epoch, to 1970. */
const NTP_OFFSET_S = 2_208_988_800;
const LOST_MAX = 0x7f_ffff;
/** A larger jump is a restart of the sender, not loss or reordering (RFC 3550, A.1). */
const DROPOUT_MAX = 3000;
const MISORDER_MAX = 100;
/** How many sequence numbers back a duplicate is recognised; a power of two. */
const REMEMBERED = 256;

export interface ReportBlock {
  ssrc: number;
  /** The fraction lost, in 1/256. */
  fractionLost: number;
  lost: number;
  highestSequence: number;
  jitter: number;
  /** Middle 32 bits of the last sender report's NTP time, and how long ago it came; 1/65536 s. */
  lastReport: number;
  sinceLastReport: number;
}

export type RtcpPart =
  | {
    kind: "sender_report"; ssrc: number; ntpMiddle: number; timestamp: number;
    packets: number; octets: number; blocks: ReportBlock[];
  }
  | { kind: "receiver_report"; ssrc: number; blocks: ReportBlock[] };

/** The parts of a compound packet that matter here; null when it is none. */
export function parseRtcp(bytes: Buffer): RtcpPart[] | null {
  const parts: RtcpPart[] = [];
  let at = 0;
  while (at + HEADER_BYTES <= bytes.length) {
    const first = bytes[at] ?? 0;
    const end = at + HEADER_BYTES + 4 * bytes.readUInt16BE(at + 2);
    const type = bytes[at + 1] ?? 0;
    if (first >> 6 !== VERSION || end > bytes.length) return null;
    if (at === 0 && type !== SENDER_REPORT && type !== RECEIVER_REPORT) return null;
    const part = parsePart(type, first & 31, bytes.subarray(at, end));
    if (part) parts.push(part);
    at = end;
  }
  return at === bytes.length && parts.length > 0 ? parts : null;
}

function parsePart(type: number, count: number, part: Buffer): RtcpPart | null {
  if (type !== SENDER_REPORT && type !== RECEIVER_REPORT) return null;
  const start = type === SENDER_REPORT ? HEADER_BYTES + SENDER_BYTES : HEADER_BYTES + 4;
  if (part.length < start + count * BLOCK_BYTES) return null;
  const ssrc = part.readUInt32BE(4);
  const blocks = Array.from({ length: count }, (_, index) =>
    parseBlock(part, start + index * BLOCK_BYTES));
  if (type === RECEIVER_REPORT) return { kind: "receiver_report", ssrc, blocks };
  return {
    kind: "sender_report",
    ssrc,
    ntpMiddle: part.readUInt32BE(10),
    timestamp: part.readUInt32BE(16),
    packets: part.readUInt32BE(20),
    octets: part.readUInt32BE(24),
    blocks,
  };
}

const parseBlock = (part: Buffer, at: number): ReportBlock => ({
  ssrc: part.readUInt32BE(at),
  fractionLost: part.readUInt8(at + 4),
  lost: (part.readUIntBE(at + 5, 3) << 8) >> 8,
  highestSequence: part.readUInt32BE(at + 8),
  jitter: part.readUInt32BE(at + 12),
  lastReport: part.readUInt32BE(at + 16),
  sinceLastReport: part.readUInt32BE(at + 20),
});

function ntpOf(now: Instant): { seconds: number; fraction: number } {
  const seconds = Math.floor(now / 1e6);
  return {
    seconds: (seconds + NTP_OFFSET_S) % 2 ** 32,
    fraction: Math.floor(((now - seconds * 1e6) / 1e6) * 2 ** 32),
  };
}

/** The middle 32 bits of the NTP time, which reports echo; in 1/65536 s. */
export function ntpMiddleOf(now: Instant): number {
  const { seconds, fraction } = ntpOf(now);
  return ((seconds & 0xffff) * 65_536 + (fraction >>> 16)) >>> 0;
}

interface Report {
  ssrc: number;
  cname: string;
  now: Instant;
  /** Null when nothing was sent: a receiver report. */
  sent: { timestamp: number; packets: number; octets: number } | null;
  block: ReportBlock | null;
  isGoodbye: boolean;
}

/** A compound packet: the report, our CNAME and, when the call ends, BYE. */
export function buildRtcp(report: Report): Buffer {
  const parts = [buildReport(report), buildDescription(report)];
  if (report.isGoodbye) {
    const goodbye = head(GOODBYE, 1, HEADER_BYTES + 4);
    goodbye.writeUInt32BE(report.ssrc, 4);
    parts.push(goodbye);
  }
  return Buffer.concat(parts);
}

function head(type: number, count: number, length: number): Buffer {
  const part = Buffer.alloc(length);
  part[0] = (VERSION << 6) | count;
  part[1] = type;
  part.writeUInt16BE(length / 4 - 1, 2);
  return part;
}

function buildReport({ ssrc, now, sent, block }: Report): Buffer {
  const start = sent ? HEADER_BYTES + SENDER_BYTES : HEADER_BYTES + 4;
  const length = start + (block ? BLOCK_BYTES : 0);
  const part = head(sent ? SENDER_REPORT : RECEIVER_REPORT, block ? 1 : 0, length);
  part.writeUInt32BE(ssrc, 4);
  if (sent) {
    const { seconds, fraction } = ntpOf(now);
    part.writeUInt32BE(seconds, 8);
    part.writeUInt32BE(fraction, 12);
    part.writeUInt32BE(sent.timestamp >>> 0, 16);
    part.writeUInt32BE(sent.packets % 2 ** 32, 20);
    part.writeUInt32BE(sent.octets % 2 ** 32, 24);
  }
  if (!block) return part;
  part.writeUInt32BE(block.ssrc, start);
  part.writeUInt8(block.fractionLost, start + 4);
  part.writeUIntBE(Math.min(block.lost, LOST_MAX), start + 5, 3);
  part.writeUInt32BE(block.highestSequence % 2 ** 32, start + 8);
  part.writeUInt32BE(Math.round(block.jitter), start + 12);
  part.writeUInt32BE(block.lastReport, start + 16);
  part.writeUInt32BE(block.sinceLastReport % 2 ** 32, start + 20);
  return part;
}

function buildDescription({ ssrc, cname }: Report): Buffer {
  const name = Buffer.from(cname, "utf8").subarray(0, 255);
  // The list of items ends with a zero, and the chunk at a multiple of four bytes.
  const length = HEADER_BYTES + 4 * Math.ceil((4 + 2 + name.length + 1) / 4);
  const part = head(DESCRIPTION, 1, length);
  part.writeUInt32BE(ssrc, 4);
  part[8] = CNAME;
  part[9] = name.length;
  part.set(name, 10);
  return part;
}

/** Counts what was received over successive streams; a new stream adds to the totals so far. */
export class Reception {
  received = 0;
  duplicate = 0;
  ssrc: number | null = null;
  /** Measured over all packets whose timestamp says something about it. */
  readonly jitter = new Jitter();
  /** Ticks of the timestamps in a second. */
  clockRate = 8000;
  #lostBefore = 0;
  #highest = 0;
  #base = 0;
  #ofStream = 0;
  #doubled = 0;
  /** Extended sequence numbers received, each at its index modulo the length. */
  readonly #came = new Float64Array(REMEMBERED).fill(Number.NaN);
  #transitMs = Number.NaN;
  #reported = { expected: 0, received: 0 };

  /** False for a duplicate. `timestamp` is null if it says nothing about jitter (keys, noise). */
  push(ssrc: number, sequence: number, timestamp: number | null, nowMs: number): boolean {
    const ahead = sequenceDistance(sequence, this.#highest & 0xffff);
    if (ssrc !== this.ssrc || ahead > DROPOUT_MAX || ahead < -MISORDER_MAX) {
      this.#begin(ssrc, sequence);
    } else if (ahead > 0) {
      this.#highest += ahead;
    }
    this.received += 1;
    this.#ofStream += 1;
    const number = this.#highest + sequenceDistance(sequence, this.#highest & 0xffff);
    const isNew = !this.#isDouble(number);
    if (isNew && timestamp !== null) this.#measure(timestamp, nowMs);
    return isNew;
  }

  get lost(): number {
    const came = this.#ofStream - this.#doubled;
    return this.#lostBefore + Math.max(0, this.#expected - came);
  }

  /** The block of a report; the fraction lost in the next report is counted from here. */
  block(): Omit<ReportBlock, "lastReport" | "sinceLastReport"> | null {
    if (this.ssrc === null) return null;
    const expected = this.#expected - this.#reported.expected;
    const missing = expected - (this.#ofStream - this.#reported.received);
    this.#reported = { expected: this.#expected, received: this.#ofStream };
    return {
      ssrc: this.ssrc,
      fractionLost: missing > 0 ? Math.min(255, Math.floor((missing * 256) / expected)) : 0,
      lost: this.lost,
      highestSequence: this.#highest,
      jitter: (this.jitter.ms * this.clockRate) / 1000,
    };
  }

  get #expected(): number {
    return this.ssrc === null ? 0 : this.#highest - this.#base + 1;
  }

  #begin(ssrc: number, sequence: number): void {
    this.#lostBefore = this.lost;
    this.ssrc = ssrc;
    this.#base = sequence;
    this.#highest = sequence;
    this.#ofStream = 0;
    this.#doubled = 0;
    this.#came.fill(Number.NaN);
    this.#transitMs = Number.NaN;
    this.#reported = { expected: 0, received: 0 };
  }

  /** RFC 3550, A.8. A jump in the timestamps is ignored: it would count as seconds of jitter. */
  #measure(timestamp: number, nowMs: number): void {
    const transitMs = nowMs - (timestamp * 1000) / this.clockRate;
    const differenceMs = Math.abs(transitMs - this.#transitMs);
    this.#transitMs = transitMs;
    // This is also false for the first packet, whose difference is NaN.
    if (differenceMs < 1000) this.jitter.push(differenceMs, nowMs);
  }

  #isDouble(number: number): boolean {
    const place = number & (REMEMBERED - 1);
    const isDouble = this.#came[place] === number;
    this.#came[place] = number;
    if (!isDouble) return false;
    this.duplicate += 1;
    this.#doubled += 1;
    return true;
  }
}
