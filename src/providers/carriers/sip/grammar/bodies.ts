// Parses the bodies and a few headers of SIP messages: SDP, keys in INFO, the outcome of a transfer
// and the Reason that a network gives.
import type { SipHeaders } from "./headers.ts";
import type { SipMessage } from "./message.ts";
import { SIGNALLING_LIMITS as LIMITS } from "./signalling-limits.ts";

const typeOf = (value: string | null): string =>
  (value ?? "").split(";", 1)[0]?.trim().toLowerCase() ?? "";

/** Null when there is no body; `unsupported` when it is not SDP in a form we can read. */
export function sdpOf(message: SipMessage): string | null | { unsupported: true } {
  if (message.body.length === 0) return null;
  const type = typeOf(message.headers.get("Content-Type"));
  const encoding = message.headers.get("Content-Encoding");
  if (encoding !== null && encoding.toLowerCase() !== "identity") return { unsupported: true };
  if (type === "application/sdp") return message.body.toString("utf8");
  return (type === "multipart/mixed" ? sdpPart(message) : null) ?? { unsupported: true };
}

export function sdpOrNull(message: SipMessage): string | null {
  const sdp = sdpOf(message);
  return typeof sdp === "string" ? sdp : null;
}

/** Telephone networks send parts of their own (ISUP, location) beside the SDP. */
function sdpPart({ headers, body }: SipMessage): string | null {
  const boundary = /;\s*boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))/i
    .exec(headers.get("Content-Type") ?? "");
  const mark = boundary?.[1] ?? boundary?.[2];
  if (mark === undefined) return null;
  for (const part of body.toString("utf8").split(`--${mark}`).slice(1)) {
    const end = part.indexOf("\r\n\r\n");
    const type = /^content-type\s*:\s*([^\r\n]*)/im.exec(part.slice(0, Math.max(0, end)))?.[1];
    if (typeOf(type ?? null) === "application/sdp") return part.slice(end + 4);
  }
  return null;
}

const KEYS: Record<string, string> = { 10: "*", 11: "#", 12: "A", 13: "B", 14: "C", 15: "D" };

/** The key an INFO reports; null: it reports none. */
export function keyOf(message: SipMessage): string | null {
  const type = typeOf(message.headers.get("Content-Type"));
  const text = message.body.toString("latin1", 0, 100);
  const signal = type === "application/dtmf-relay"
    ? /^\s*signal\s*=\s*([^\s]{1,2})/im.exec(text)?.[1]
    : type === "application/dtmf" ? text.trim() : undefined;
  const key = (KEYS[signal ?? ""] ?? signal ?? "").toUpperCase();
  return /^[0-9A-D*#]$/.test(key) ? key : null;
}

/** The status in a NOTIFY about our REFER. */
export function sipfragStatus({ headers, body }: SipMessage): number | null {
  if (!typeOf(headers.get("Content-Type")).startsWith("message/sipfrag")) return null;
  const text = body.toString("latin1", 0, LIMITS.sipfragCharsMax);
  const status = /^\s*SIP\/2\.0\s+([1-6]\d\d)\b/i.exec(text)?.[1];
  return status === undefined ? null : Number(status);
}

/** RFC 3326: the cause the telephone network gave. */
export function q850Of(headers: SipHeaders): number | null {
  for (const reason of headers.all("Reason")) {
    const cause = /^\s*Q\.850\s*;(?:.*;)?\s*cause\s*=\s*(\d{1,3})\b/i.exec(reason)?.[1];
    if (cause !== undefined) return Number(cause);
  }
  return null;
}

/** Elements of a header that is a list of tokens, in lower case. */
export const tokensOf = (headers: SipHeaders, name: string): string[] =>
  headers.all(name).flatMap((value) => value.split(","))
    .map((value) => value.split(";", 1)[0]?.trim().toLowerCase() ?? "")
    .filter((value) => value !== "");

/** Whole seconds a header gives, parameters and comments left aside. */
export function secondsOf(headers: SipHeaders, name: string): number | null {
  const digits = /^\s*(\d{1,9})(?=\s*(?:[;(]|$))/.exec(headers.get(name) ?? "")?.[1];
  return digits === undefined ? null : Number(digits);
}
