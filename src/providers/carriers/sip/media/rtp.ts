// RTP packets (RFC 3550, 5.1): parsing, which never throws, writing, and the arithmetic of sequence
// numbers that wrap around. Pure. Used by rtp-session.ts, srtp.ts and web/peer.ts.

export const RTP_HEADER_BYTES = 12;
/** Telephone audio never comes near this; a longer packet is ignored. */
const RTP_BYTES_MAX = 1500;

const VERSION = 2;

export interface RtpPacket {
  payloadType: number;
  marker: boolean;
  sequence: number;
  timestamp: number;
  ssrc: number;
  /** Shares memory with the parsed bytes; padding is removed. */
  payload: Buffer;
}

/**
 * Length of the header with CSRCs and extension, or null when this is no RTP packet. It is never
 * encrypted, so srtp.ts asks before it decrypts.
 */
export function rtpHeaderBytes(bytes: Buffer): number | null {
  if (bytes.length < RTP_HEADER_BYTES || bytes.length > RTP_BYTES_MAX) return null;
  const first = bytes[0] ?? 0;
  if (first >> 6 !== VERSION || isRtcp(bytes)) return null;
  const fixed = RTP_HEADER_BYTES + 4 * (first & 15);
  if ((first & 0x10) === 0) return fixed <= bytes.length ? fixed : null;
  if (fixed + 4 > bytes.length) return null;
  const all = fixed + 4 + 4 * bytes.readUInt16BE(fixed + 2);
  return all <= bytes.length ? all : null;
}

/** RTCP that came to the port of RTP (RFC 5761): its types would be payload types 64 to 95. */
function isRtcp(bytes: Buffer): boolean {
  const type = bytes[1] ?? 0;
  return type >= 192 && type <= 223;
}

export function parseRtp(bytes: Buffer): RtpPacket | null {
  const start = rtpHeaderBytes(bytes);
  if (start === null) return null;
  let end = bytes.length;
  if ((bytes[0] ?? 0) & 0x20) {
    const padding = bytes[end - 1] ?? 0;
    if (padding === 0 || start + padding > end) return null;
    end -= padding;
  }
  const second = bytes[1] ?? 0;
  return {
    payloadType: second & 0x7f,
    marker: second >= 0x80,
    sequence: bytes.readUInt16BE(2),
    timestamp: bytes.readUInt32BE(4),
    ssrc: bytes.readUInt32BE(8),
    payload: bytes.subarray(start, end),
  };
}

/** Writes the first 12 bytes; `sequence` and `timestamp` may exceed their fields and wrap. */
export function writeRtpHeader(target: Buffer, header: Omit<RtpPacket, "payload">): void {
  target[0] = VERSION << 6;
  target[1] = (header.marker ? 0x80 : 0) | header.payloadType;
  target.writeUInt16BE(header.sequence & 0xffff, 2);
  target.writeUInt32BE(header.timestamp >>> 0, 4);
  target.writeUInt32BE(header.ssrc, 8);
}

/** How far `sequence` is ahead of `other`, from -32768 to 32767. */
export const sequenceDistance = (sequence: number, other: number): number =>
  ((sequence - other) << 16) >> 16;
