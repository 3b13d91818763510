// SRTP and SRTCP (RFC 3711) with the suites of RFC 4568 that every telephone has, and those of RFC
// 6188: AES-128 and AES-256 in counter mode, HMAC-SHA1 of 80 or 32 bits. There is one object per
// direction and key; it holds roll-over counters and replay windows, so it must live as long as its
// key. Used by rtp-session.ts and web/peer.ts.
import {
  createCipheriv, createHmac, createSecretKey, timingSafeEqual, type KeyObject,
} from "node:crypto";
import { RTP_HEADER_BYTES, rtpHeaderBytes } from "./rtp.ts";
import type { SrtpKey } from "#providers/carriers/sip/grammar/sdp.ts";

const SALT_BYTES = 14;
const AUTH_KEY_BYTES = 20;
const BLOCK_BYTES = 16;
const TAG_BYTES = {
  AES_256_CM_HMAC_SHA1_80: 10, AES_256_CM_HMAC_SHA1_32: 4,
  AES_CM_128_HMAC_SHA1_80: 10, AES_CM_128_HMAC_SHA1_32: 4,
} as const satisfies Record<SrtpKey["suite"], number>;
/** The same for all suites: only RTP may have the short tag (RFC 4568, 6.2.2). */
const RTCP_TAG_BYTES = 10;
const RTCP_HEADER_BYTES = 8;
const RTCP_INDEX_BYTES = 4;
const RTCP_INDEXES = 2 ** 31;
const ENCRYPTED = 0x8000_0000;
const SEQUENCES = 2 ** 16;
const REPLAY_WINDOW = 64;
/** Replay windows kept for the far end's streams; a transfer brings a new stream. */
const STREAMS_MAX = 8;

const LABELS = { rtp: 0, rtcp: 3 } as const;

/** AES keystream: one cipher object for all packets, because creating it is the greatest cost. */
export class Keystream {
  readonly #cipher: ReturnType<typeof createCipheriv>;
  #blocks = Buffer.alloc(0);

  constructor(key: Uint8Array) {
    // Counter mode is the block cipher applied to successive counters.
    this.#cipher = createCipheriv(key.length === 32 ? "aes-256-ecb" : "aes-128-ecb", key, null)
      .setAutoPadding(false);
  }

  /** Counters begin at `first`, whose last 16 bits are zero and count blocks. */
  bytes(first: Uint8Array, length: number): Buffer {
    const blocks = Math.ceil(length / BLOCK_BYTES);
    if (this.#blocks.length < blocks * BLOCK_BYTES) {
      this.#blocks = Buffer.alloc(blocks * BLOCK_BYTES);
    }
    for (let block = 0; block < blocks; block += 1) {
      this.#blocks.set(first, block * BLOCK_BYTES);
      this.#blocks.writeUInt16BE(block, block * BLOCK_BYTES + SALT_BYTES);
    }
    return this.#cipher.update(this.#blocks.subarray(0, blocks * BLOCK_BYTES));
  }
}

/**
 * The session keys (RFC 3711, 4.3; RFC 6188 for longer ones) of `firstLabel` and the two labels
 * after it. `master` is the master key followed by its salt.
 */
export function deriveKeys(
  master: Uint8Array, firstLabel: number,
): { encryption: Buffer; authentication: Buffer; salt: Buffer } {
  const keyBytes = master.length - SALT_BYTES;
  const keystream = new Keystream(master.subarray(0, keyBytes));
  const derive = (label: number, length: number): Buffer => {
    const first = Buffer.alloc(BLOCK_BYTES);
    first.set(master.subarray(keyBytes));
    first[7] = (first[7] ?? 0) ^ label;
    return keystream.bytes(first, length).subarray(0, length);
  };
  return {
    encryption: derive(firstLabel, keyBytes),
    authentication: derive(firstLabel + 1, AUTH_KEY_BYTES),
    salt: derive(firstLabel + 2, SALT_BYTES),
  };
}

/** Encryption and tags of either RTP or RTCP under one master key. */
class Transform {
  readonly #keystream: Keystream;
  readonly #authentication: KeyObject;
  readonly #salt: Buffer;
  readonly #first = Buffer.alloc(BLOCK_BYTES);

  constructor(master: Uint8Array, kind: keyof typeof LABELS) {
    const { encryption, authentication, salt } = deriveKeys(master, LABELS[kind]);
    this.#keystream = new Keystream(encryption);
    this.#authentication = createSecretKey(authentication);
    this.#salt = salt;
  }

  /** Encrypts or decrypts in place. */
  apply(payload: Buffer, ssrc: number, index: number): void {
    const first = this.#first;
    first.fill(0);
    first.writeUInt32BE(ssrc, 4);
    first.writeUIntBE(index, 8, 6);
    for (let at = 0; at < SALT_BYTES; at += 1) first[at] = (first[at] ?? 0) ^ (this.#salt[at] ?? 0);
    const stream = this.#keystream.bytes(first, payload.length);
    for (let at = 0; at < payload.length; at += 1) {
      payload[at] = (payload[at] ?? 0) ^ (stream[at] ?? 0);
    }
  }

  tag(bytes: Uint8Array, length: number): Buffer {
    return createHmac("sha1", this.#authentication).update(bytes).digest().subarray(0, length);
  }
}

/** Replay protection (RFC 3711, 3.3.2): the last index seen in each of 64 places. */
class ReplayWindow {
  highest = -1;
  readonly #seen = new Float64Array(REPLAY_WINDOW).fill(-1);

  has(index: number): boolean {
    return index <= this.highest - REPLAY_WINDOW || this.#seen[index % REPLAY_WINDOW] === index;
  }

  add(index: number): void {
    this.#seen[index % REPLAY_WINDOW] = index;
    this.highest = Math.max(this.highest, index);
  }
}

/** Windows by SSRC. Only an authenticated packet creates one, so nobody else can evict one. */
class ReplayWindows {
  readonly #windows = new Map<number, ReplayWindow>();

  find(ssrc: number): ReplayWindow {
    return this.#windows.get(ssrc) ?? new ReplayWindow();
  }

  keep(ssrc: number, window: ReplayWindow): void {
    if (!this.#windows.has(ssrc) && this.#windows.size >= STREAMS_MAX) {
      const [oldest] = this.#windows.keys();
      if (oldest !== undefined) this.#windows.delete(oldest);
    }
    this.#windows.set(ssrc, window);
  }
}

/** The 48-bit index nearest to the highest so far that ends in `sequence` (RFC 3711, 3.3.1). */
function nearestIndex(sequence: number, highest: number): number {
  if (highest < 0) return sequence;
  const index = highest - (highest % SEQUENCES) + sequence;
  if (index - highest > SEQUENCES / 2 && index >= SEQUENCES) return index - SEQUENCES;
  return highest - index > SEQUENCES / 2 ? index + SEQUENCES : index;
}

export interface SrtpSender {
  /** Takes a whole RTP packet; returns a new buffer. */
  protect(packet: Buffer): Buffer;
  protectRtcp(packet: Buffer): Buffer;
}

/** For one stream: the roll-over counter follows the sequence numbers of the packets given. */
export function createSrtpSender({ suite, key }: SrtpKey): SrtpSender {
  const rtp = new Transform(key, "rtp");
  const rtcp = new Transform(key, "rtcp");
  const tagBytes = TAG_BYTES[suite];
  let highest = -1;
  let rtcpIndex = 0;
  return {
    protect: (packet) => {
      const index = nearestIndex(packet.readUInt16BE(2), highest);
      highest = Math.max(highest, index);
      const result = Buffer.allocUnsafe(packet.length + tagBytes);
      result.set(packet);
      const start = rtpHeaderBytes(packet) ?? RTP_HEADER_BYTES;
      rtp.apply(result.subarray(start, packet.length), packet.readUInt32BE(8), index);
      // The tag is made over the packet and the roll-over counter, which is not sent.
      result.writeUInt32BE(Math.floor(index / SEQUENCES), packet.length);
      result.set(rtp.tag(result.subarray(0, packet.length + 4), tagBytes), packet.length);
      return result;
    },
    protectRtcp: (packet) => {
      rtcpIndex = (rtcpIndex + 1) % RTCP_INDEXES;
      const end = packet.length + RTCP_INDEX_BYTES;
      const result = Buffer.allocUnsafe(end + RTCP_TAG_BYTES);
      result.set(packet);
      const body = result.subarray(RTCP_HEADER_BYTES, packet.length);
      rtcp.apply(body, packet.readUInt32BE(4), rtcpIndex);
      result.writeUInt32BE(ENCRYPTED + rtcpIndex, packet.length);
      result.set(rtcp.tag(result.subarray(0, end), RTCP_TAG_BYTES), end);
      return result;
    },
  };
}

export interface SrtpReceiver {
  /** The RTP packet, decrypted in place; null when it is forged, replayed, too old or malformed. */
  unprotect(packet: Buffer): Buffer | null;
  unprotectRtcp(packet: Buffer): Buffer | null;
}

export function createSrtpReceiver({ suite, key }: SrtpKey): SrtpReceiver {
  const rtp = new Transform(key, "rtp");
  const rtcp = new Transform(key, "rtcp");
  const tagBytes = TAG_BYTES[suite];
  const rtpWindows = new ReplayWindows();
  const rtcpWindows = new ReplayWindows();
  return {
    unprotect: (packet) => {
      const end = packet.length - tagBytes;
      const start = rtpHeaderBytes(packet);
      if (start === null || start > end) return null;
      const ssrc = packet.readUInt32BE(8);
      const window = rtpWindows.find(ssrc);
      const index = nearestIndex(packet.readUInt16BE(2), window.highest);
      if (window.has(index)) return null;
      const sent = Buffer.from(packet.subarray(end));
      packet.writeUInt32BE(Math.floor(index / SEQUENCES), end);
      if (!timingSafeEqual(rtp.tag(packet.subarray(0, end + 4), tagBytes), sent)) return null;
      window.add(index);
      rtpWindows.keep(ssrc, window);
      rtp.apply(packet.subarray(start, end), ssrc, index);
      return packet.subarray(0, end);
    },
    unprotectRtcp: (packet) => {
      const end = packet.length - RTCP_TAG_BYTES;
      const bodyEnd = end - RTCP_INDEX_BYTES;
      if (bodyEnd < RTCP_HEADER_BYTES) return null;
      const ssrc = packet.readUInt32BE(4);
      const word = packet.readUInt32BE(bodyEnd);
      const index = word % RTCP_INDEXES;
      const window = rtcpWindows.find(ssrc);
      if (window.has(index)) return null;
      const tag = rtcp.tag(packet.subarray(0, end), RTCP_TAG_BYTES);
      if (!timingSafeEqual(tag, packet.subarray(end))) return null;
      window.add(index);
      rtcpWindows.keep(ssrc, window);
      if (word >= ENCRYPTED) rtcp.apply(packet.subarray(RTCP_HEADER_BYTES, bodyEnd), ssrc, index);
      return packet.subarray(0, bodyEnd);
    },
  };
}
