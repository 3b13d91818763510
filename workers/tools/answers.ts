// Makes endpoints' answers readable: decompressed, and in UTF-8 without a byte order mark.
// Endpoints are asked for neither compression nor another encoding, but some know nothing else.
// Used by invoke-tool.ts.
import { isUtf8 } from "node:buffer";
import { promisify } from "node:util";
import { brotliDecompress, gunzip, inflate, zstdDecompress } from "node:zlib";
import type { Outbound, OutboundReply } from "#outbound/request.ts";

type Answered = Extract<OutboundReply, { kind: "reply" }>;
type Unreadable = { kind: "failed"; reason: "unreadable" | "too_large"; sent: true };

/** Makes requests as an `Outbound` does. */
export interface Endpoints {
  request(...asked: Parameters<Outbound["request"]>): Promise<OutboundReply | Unreadable>;
}

type Unpack = (body: Buffer, bounds: { maxOutputLength: number }) => Promise<Buffer>;

const gunzipped = promisify(gunzip);
const UNPACKERS = new Map<string, Unpack>([
  ["gzip", gunzipped], ["x-gzip", gunzipped], ["deflate", promisify(inflate)],
  ["br", promisify(brotliDecompress)], ["zstd", promisify(zstdDecompress)],
]);

/** Null when the compression is unknown, or the data is invalid. */
async function unpacked(body: Buffer, coding: string, bytesMax: number): Promise<Buffer | null> {
  if (/^(identity)?$/.test(coding) || body.length === 0) return body;
  const unpack = UNPACKERS.get(coding);
  if (!unpack) return null;
  try {
    return await unpack(body, { maxOutputLength: bytesMax });
  } catch (error) {
    if (error instanceof RangeError) throw error;
    return null;
  }
}

function decoded(body: Buffer, type: string): Buffer {
  // A byte order mark decides; without one, the header's charset is used only if it is not UTF-8.
  const [first = 0, second = 0] = body;
  const mark = { 0xfffe: "utf-16le", 0xfeff: "utf-16be" }[first * 256 + second];
  if (mark === undefined && isUtf8(body)) {
    return first === 0xef && second === 0xbb && body[2] === 0xbf ? body.subarray(3) : body;
  }
  const charset = mark ?? /charset=["']?([\w-]+)/i.exec(type)?.[1] ?? "utf-8";
  try {
    return Buffer.from(new TextDecoder(charset).decode(body));
  } catch (error) {
    if (error instanceof RangeError) return body;
    throw error;
  }
}

async function readable(reply: Answered, bytesMax: number): Promise<Answered | Unreadable> {
  const { "content-encoding": coding = "", "content-type": type = "" } = reply.headers;
  try {
    const body = await unpacked(reply.body, coding.trim().toLowerCase(), bytesMax);
    if (body) return { ...reply, body: decoded(body, type) };
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return { kind: "failed", reason: "too_large", sent: true };
  }
  // An error counts even without a readable body.
  if (reply.status < 200 || reply.status > 299) return { ...reply, body: Buffer.alloc(0) };
  return { kind: "failed", reason: "unreadable", sent: true };
}

export function readingAll(outbound: Outbound): Endpoints {
  return {
    async request(wanted, signal) {
      const reply = await outbound.request(wanted, signal);
      return reply.kind === "reply" ? readable(reply, wanted.bytesMax) : reply;
    },
  };
}
