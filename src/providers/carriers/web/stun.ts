// Parses the connectivity checks of pages (STUN, RFC 8489; ICE, RFC 8445) and builds the responses.
// Only a sender that knows a call's password gets one, so that no stranger can redirect its audio.
// Parsing never throws. Pure. Used by peers.ts.
import { createHmac, timingSafeEqual } from "node:crypto";
import { isIPv6 } from "node:net";
import { crc32 } from "node:zlib";
import ipaddr from "ipaddr.js";

const HEADER_BYTES = 20;
const ATTRIBUTE_BYTES = 4;
const COOKIE = 0x2112_a442;
const BINDING_REQUEST = 0x0001;
const BINDING_SUCCESS = 0x0101;
const USERNAME = 0x0006;
const MESSAGE_INTEGRITY = 0x0008;
const XOR_MAPPED_ADDRESS = 0x0020;
const USE_CANDIDATE = 0x0025;
const FINGERPRINT = 0x8028;
const FINGERPRINT_XOR = 0x5354_554e;
const INTEGRITY_BYTES = 20;
/** A page's checks have about a hundred bytes. */
const CHECK_BYTES_MAX = 548;
const FAMILY = { ipv4: 1, ipv6: 2 } as const;

export interface Place {
  address: string;
  port: number;
}

interface Check {
  /** Our part of the USERNAME; the page's part follows it there. */
  username: string;
  transaction: Buffer;
  /** The page nominates this candidate (USE-CANDIDATE). */
  isChosen: boolean;
  /** Whether the sender knows the password. */
  isSignedWith(password: string): boolean;
}

/** Null when the bytes are not a check. */
export function parseCheck(bytes: Buffer): Check | null {
  if (bytes.length < HEADER_BYTES || bytes.length > CHECK_BYTES_MAX) return null;
  if (bytes.readUInt16BE(0) !== BINDING_REQUEST || bytes.readUInt32BE(4) !== COOKIE) return null;
  if (bytes.readUInt16BE(2) !== bytes.length - HEADER_BYTES) return null;
  let username: string | null = null;
  let isChosen = false;
  let at = HEADER_BYTES;
  while (at + ATTRIBUTE_BYTES <= bytes.length) {
    const type = bytes.readUInt16BE(at);
    const length = bytes.readUInt16BE(at + 2);
    const start = at + ATTRIBUTE_BYTES;
    if (start + length > bytes.length) return null;
    const value = bytes.subarray(start, start + length);
    if (type === USERNAME) username = value.toString("utf8").split(":")[0] ?? "";
    if (type === USE_CANDIDATE) isChosen = true;
    if (type === MESSAGE_INTEGRITY) {
      if (username === null || length !== INTEGRITY_BYTES) return null;
      const signed = withLength(bytes.subarray(0, at), start + length - HEADER_BYTES);
      return {
        username, isChosen,
        transaction: bytes.subarray(4, HEADER_BYTES),
        isSignedWith: (password) => timingSafeEqual(sign(signed, password), value),
      };
    }
    at = start + length + padding(length);
  }
  return null;
}

/** Tells the page where its check came from. */
export function buildCheckAnswer({ transaction }: Check, from: Place, password: string): Buffer {
  const head = Buffer.alloc(4);
  head.writeUInt16BE(BINDING_SUCCESS, 0);
  const address = attribute(XOR_MAPPED_ADDRESS, mapped(from, transaction));
  const open = Buffer.concat([head, transaction, address]);
  const signedBytes = open.length + ATTRIBUTE_BYTES + INTEGRITY_BYTES;
  const signed = withLength(open, signedBytes - HEADER_BYTES);
  const whole = Buffer.concat([signed, attribute(MESSAGE_INTEGRITY, sign(signed, password))]);
  const wholeBytes = whole.length + ATTRIBUTE_BYTES + 4;
  const summed = withLength(whole, wholeBytes - HEADER_BYTES);
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE((crc32(summed) ^ FINGERPRINT_XOR) >>> 0, 0);
  return Buffer.concat([summed, attribute(FINGERPRINT, sum)]);
}

const padding = (length: number): number => (4 - (length % 4)) % 4;

const sign = (bytes: Buffer, password: string): Buffer =>
  createHmac("sha1", password).update(bytes).digest();

/** A copy whose header has the length of the message including attributes still to be added. */
function withLength(bytes: Buffer, length: number): Buffer {
  const copy = Buffer.from(bytes);
  copy.writeUInt16BE(length, 2);
  return copy;
}

/** Needs no padding: all values here are multiples of four bytes long. */
function attribute(type: number, value: Buffer): Buffer {
  const head = Buffer.alloc(ATTRIBUTE_BYTES);
  head.writeUInt16BE(type, 0);
  head.writeUInt16BE(value.length, 2);
  return Buffer.concat([head, value]);
}

/** The address XORed with cookie and transaction id, because some NATs rewrite plain addresses. */
function mapped({ address, port }: Place, transaction: Buffer): Buffer {
  const bytes = Buffer.from(ipaddr.parse(address).toByteArray());
  const value = Buffer.alloc(4 + bytes.length);
  value[1] = isIPv6(address) ? FAMILY.ipv6 : FAMILY.ipv4;
  value.writeUInt16BE(port ^ (COOKIE >>> 16), 2);
  for (const [at, byte] of bytes.entries()) value[4 + at] = byte ^ (transaction[at] ?? 0);
  return value;
}
