// SIP messages (RFC 3261): from bytes to a message that is safe to act on, and back. The input may
// come from anybody on the internet: each byte is read a bounded number of times, nothing throws,
// and a message that is refused comes with the status to refuse it with.
import { isUtf8 } from "node:buffer";
import {
  keyOf,
  oneLine,
  parseCseq,
  parseNameAddr,
  parseVia,
  SipHeaders,
} from "./headers.ts";
import { isToken, parseUint, parseUri, schemeOf, URI_CHARACTERS_MAX } from "./uri.ts";

export const SIP_LIMITS = {
  /** The longest UDP datagram. */
  messageBytesMax: 65_535,
  /** Header values of a message, lists counted by element. */
  headersMax: 256,
  /** One header, folded lines together. */
  headerBytesMax: 8192,
  viaMax: 70,
  routeMax: 32,
  bodyBytesMax: 32_768,
} as const;

const MAX_FORWARDS_MAX = 255;

/** Headers that every message has exactly once. */
const ONCE = ["from", "to", "call-id", "cseq"] as const;
const ONCE_AT_MOST = ["max-forwards", "content-type", "expires", "event", "refer-to"];

export const REASONS: Record<number, string> = {
  100: "Trying", 180: "Ringing", 181: "Call Is Being Forwarded", 182: "Queued",
  183: "Session Progress", 199: "Early Dialog Terminated", 200: "OK", 202: "Accepted",
  204: "No Notification", 300: "Multiple Choices", 301: "Moved Permanently",
  302: "Moved Temporarily", 305: "Use Proxy", 380: "Alternative Service", 400: "Bad Request",
  401: "Unauthorized", 402: "Payment Required", 403: "Forbidden", 404: "Not Found",
  405: "Method Not Allowed", 406: "Not Acceptable", 407: "Proxy Authentication Required",
  408: "Request Timeout", 410: "Gone", 412: "Conditional Request Failed",
  413: "Request Entity Too Large", 414: "Request-URI Too Long", 415: "Unsupported Media Type",
  416: "Unsupported URI Scheme", 420: "Bad Extension", 421: "Extension Required",
  422: "Session Interval Too Small", 423: "Interval Too Brief", 433: "Anonymity Disallowed",
  480: "Temporarily Unavailable", 481: "Call/Transaction Does Not Exist", 482: "Loop Detected",
  483: "Too Many Hops", 484: "Address Incomplete", 485: "Ambiguous", 486: "Busy Here",
  487: "Request Terminated", 488: "Not Acceptable Here", 489: "Bad Event", 491: "Request Pending",
  493: "Undecipherable", 500: "Server Internal Error", 501: "Not Implemented", 502: "Bad Gateway",
  503: "Service Unavailable", 504: "Server Time-out", 505: "Version Not Supported",
  513: "Message Too Large", 580: "Precondition Failure", 600: "Busy Everywhere", 603: "Decline",
  604: "Does Not Exist Anywhere", 606: "Not Acceptable", 607: "Unwanted", 608: "Rejected",
};

export interface SipRequest {
  kind: "request";
  method: string;
  uri: string;
  headers: SipHeaders;
  body: Buffer;
}

export interface SipResponse {
  kind: "response";
  status: number;
  reason: string;
  headers: SipHeaders;
  body: Buffer;
}

export type SipMessage = SipRequest | SipResponse;

/**
 * `keepalive`: line ends or zero bytes that keep a NAT binding open. `bad`: not to be processed;
 * `answer` is the request as far as it could be parsed, if it can be refused with `status` (it has
 * Via, From, To, Call-ID and CSeq, and is no ACK), and else null.
 */
export type Parsed =
  | { kind: "message"; message: SipMessage }
  | { kind: "keepalive" }
  | { kind: "bad"; status: number; reason: string; answer: SipRequest | null };

interface Problem {
  status: number;
  reason: string;
}

type StartLine =
  | { kind: "request"; method: string; uri: string; problem: Problem | null }
  | { kind: "response"; status: number; reason: string; problem: Problem | null };

const bad = (reason: string, status = 400): Problem => ({ status, reason });
const CR = 13;
const LF = 10;
const HEAD_END = "\r\n\r\n";

/** One datagram, or one frame of a stream. */
export function parseMessage(bytes: Uint8Array): Parsed {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (buffer.length > SIP_LIMITS.messageBytesMax) {
    return { kind: "bad", ...bad("Message Too Large", 513), answer: null };
  }
  const start = afterLineEnds(buffer, 0, buffer.length);
  if (start === buffer.length || buffer.every((byte) => byte === 0)) return { kind: "keepalive" };
  const headEnd = buffer.indexOf(HEAD_END, start);
  const [first = "", ...lines] =
    decodeHead(buffer.subarray(start, headEnd < 0 ? buffer.length : headEnd)).split("\r\n");
  const line = parseStartLine(first);
  if (line === null) return { kind: "bad", ...bad("Not SIP"), answer: null };
  const { headers, problem: headerProblem } = parseHeaders(lines);
  const rest = headEnd < 0 ? null : buffer.subarray(headEnd + HEAD_END.length);
  const { body, problem: bodyProblem } = readBody(headers, rest);
  const problem = line.problem ?? headerProblem ?? bodyProblem ?? problemOf(line, headers);
  if (line.kind === "response") {
    const { status, reason } = line;
    return problem
      ? { kind: "bad", ...problem, answer: null }
      : { kind: "message", message: { kind: "response", status, reason, headers, body } };
  }
  const { method, uri } = line;
  const request: SipRequest = { kind: "request", method, uri, headers, body };
  return problem
    ? { kind: "bad", ...problem, answer: isAnswerable(request) ? request : null }
    : { kind: "message", message: request };
}

function afterLineEnds(buffer: Buffer, from: number, end: number): number {
  let at = from;
  while (at < end && (buffer[at] === CR || buffer[at] === LF)) at += 1;
  return at;
}

/** SIP is UTF-8; what is not comes from telephones that write their umlauts in Latin-1. */
const decodeHead = (head: Buffer): string => head.toString(isUtf8(head) ? "utf8" : "latin1");

/** Null when the line is so far from SIP that not even a refusal makes sense. */
function parseStartLine(line: string): StartLine | null {
  const first = line.indexOf(" ");
  if (first < 0) return null;
  const begin = line.slice(0, first);
  if (/^SIP\//i.test(begin)) {
    const code = line.slice(first + 1, first + 5);
    const status = /^[1-6][0-9]{2} ?$/.test(code) ? Number(code) : 0;
    const reason = line.slice(first + 5).trim();
    const isRight = status > 0 && isVersion2(begin) && !/[\r\n]/.test(reason);
    return { kind: "response", status, reason, problem: isRight ? null : bad("Bad Status Line") };
  }
  const last = line.lastIndexOf(" ");
  if (!isToken(begin)) return null;
  const uri = line.slice(first + 1, Math.max(last, first + 1));
  const problem = last === first
    ? bad("Bad Request Line")
    : versionProblem(line.slice(last + 1)) ?? uriProblem(uri);
  return { kind: "request", method: begin, uri, problem };
}

const isVersion2 = (text: string): boolean => text.toUpperCase() === "SIP/2.0";

function versionProblem(text: string): Problem | null {
  if (isVersion2(text)) return null;
  const isOther = text.length < 16 && /^SIP\/[0-9]+\.[0-9]+$/i.test(text);
  return isOther ? bad("Version Not Supported", 505) : bad("Bad Request Line");
}

function uriProblem(uri: string): Problem | null {
  if (uri.length > URI_CHARACTERS_MAX) return bad("Request-URI Too Long", 414);
  if (parseUri(uri)) return null;
  const scheme = schemeOf(uri);
  const isOther = scheme !== null && !["sip", "sips", "tel"].includes(scheme) && !/[\s<>"]/.test(uri);
  return isOther ? bad("Unsupported URI Scheme", 416) : bad("Bad Request-URI");
}

const isFold = (line: string | undefined): boolean => line?.[0] === " " || line?.[0] === "\t";

/** Reads on after a mistake, so that the refusal can name the transaction it belongs to. */
function parseHeaders(lines: string[]): { headers: SipHeaders; problem: Problem | null } {
  const headers = new SipHeaders();
  let problem: Problem | null = null;
  for (let index = 0; index < lines.length; index++) {
    let line = lines[index] ?? "";
    // A line that begins with a space continues the header before it.
    while (isFold(lines[index + 1])) line += ` ${lines[++index]?.trim()}`;
    if (line.length > SIP_LIMITS.headerBytesMax) {
      problem ??= bad("Header Too Long");
      continue;
    }
    const colon = line.indexOf(":");
    const name = line.slice(0, Math.max(0, colon)).trimEnd();
    if (!isToken(name) || /[\r\n]/.test(line)) {
      problem ??= bad("Bad Header");
      continue;
    }
    headers.add(name, line.slice(colon + 1));
    if (headers.size > SIP_LIMITS.headersMax) {
      return { headers, problem: problem ?? bad("Too Many Headers") };
    }
  }
  return { headers, problem };
}

/** Null when the header is absent. */
function contentLength(headers: SipHeaders): number | null | Problem {
  const [first, ...others] = headers.all("content-length");
  if (first === undefined) return null;
  const length = parseUint(first, Number.MAX_SAFE_INTEGER);
  // With two different lengths it is not clear where the next message begins.
  if (length === null || others.some((other) => other !== first)) return bad("Bad Content-Length");
  return length;
}

function readBody(
  headers: SipHeaders,
  rest: Buffer | null,
): { body: Buffer; problem: Problem | null } {
  const none = Buffer.alloc(0);
  if (rest === null) return { body: none, problem: bad("Incomplete Message") };
  const length = contentLength(headers) ?? rest.length;
  if (typeof length !== "number") return { body: none, problem: length };
  if (length > rest.length) return { body: none, problem: bad("Bad Content-Length") };
  if (length > SIP_LIMITS.bodyBytesMax) {
    return { body: none, problem: bad("Request Entity Too Large", 413) };
  }
  return { body: Buffer.from(rest.subarray(0, length)), problem: null };
}

function problemOf(line: StartLine, headers: SipHeaders): Problem | null {
  const repeated = [...ONCE, ...ONCE_AT_MOST].find((name) => headers.all(name).length > 1);
  if (repeated) return bad(`Repeated ${repeated}`);
  const missing = ["via", ...ONCE].find((name) => !headers.get(name));
  if (missing) return bad(`Missing ${missing}`);
  const vias = headers.all("via");
  if (vias.length > SIP_LIMITS.viaMax) return bad("Too Many Via");
  if (!vias.every(parseVia)) return bad("Bad Via");
  for (const name of ["from", "to"]) {
    const uri = parseNameAddr(headers.get(name) ?? "")?.uri ?? "*";
    if (schemeOf(uri) === null) return bad(`Bad ${name}`);
  }
  for (const name of ["route", "record-route"]) {
    const routes = headers.all(name);
    if (routes.length > SIP_LIMITS.routeMax) return bad(`Too Many ${name}`);
    if (!routes.every(parseNameAddr)) return bad(`Bad ${name}`);
  }
  if (/\s/.test(headers.get("call-id") ?? "")) return bad("Bad Call-ID");
  const cseq = parseCseq(headers.get("cseq"));
  if (cseq === null) return bad("Bad CSeq");
  if (line.kind === "response") return null;
  if (cseq.method !== line.method) return bad("CSeq Does Not Match");
  if (!headers.all("contact").every(parseNameAddr)) return bad("Bad Contact");
  const hops = headers.get("max-forwards");
  const isHops = hops === null || parseUint(hops, MAX_FORWARDS_MAX) !== null;
  return isHops ? null : bad("Bad Max-Forwards");
}

/** An ACK gets no response, and without these headers a response could not be matched to it. */
function isAnswerable({ method, headers }: SipRequest): boolean {
  if (method === "ACK" || parseVia(headers.get("via") ?? "") === null) return false;
  return ONCE.every((name) => headers.get(name));
}

/** Writes Content-Length itself. Nothing in a message can add a line to it. */
export function serialise(message: SipMessage): Buffer {
  const first = message.kind === "request"
    ? `${message.method.replace(/[^A-Za-z0-9\-.!%*_+`'~]/g, "")} ` +
      `${message.uri.replace(/\s/g, "%20")} SIP/2.0`
    : `SIP/2.0 ${message.status} ${oneLine(message.reason)}`;
  let head = `${first}\r\n`;
  for (const [name, value] of message.headers.entries()) {
    if (keyOf(name) !== "content-length") head += `${name}: ${value}\r\n`;
  }
  head += `Content-Length: ${message.body.length}\r\n\r\n`;
  return Buffer.concat([Buffer.from(head), message.body]);
}

const FORMS_DIALOG = new Set(["INVITE", "SUBSCRIBE", "REFER", "NOTIFY"]);

/** A response with the request's Via, From, To, Call-ID, CSeq; Record-Route if a dialog begins. */
export function responseTo(
  request: SipRequest,
  status: number,
  reason: string = REASONS[status] ?? "Unknown",
  toTag?: string,
): SipResponse {
  const headers = new SipHeaders();
  for (const via of request.headers.all("via")) headers.add("Via", via);
  if (status > 100 && status < 300 && FORMS_DIALOG.has(request.method)) {
    for (const route of request.headers.all("record-route")) headers.add("Record-Route", route);
  }
  const to = request.headers.get("to") ?? "";
  const isTagged = parseNameAddr(to)?.params.has("tag") === true;
  headers.add("From", request.headers.get("from") ?? "");
  headers.add("To", toTag === undefined || isTagged || status === 100 ? to : `${to};tag=${toTag}`);
  headers.add("Call-ID", request.headers.get("call-id") ?? "");
  headers.add("CSeq", request.headers.get("cseq") ?? "");
  return { kind: "response", status, reason, headers, body: Buffer.alloc(0) };
}

/**
 * Splits a TCP or TLS stream into messages, whatever pieces it arrives in. `isBad`: the stream can
 * no longer be split (also when there is no Content-Length, which a stream requires), so the
 * connection is to be closed. Two empty lines between messages are a frame of their own: a ping
 * (RFC 5626); each push returns at most one of them in a row.
 */
export function createFramer(): { push(bytes: Uint8Array): { frames: Buffer[]; isBad: boolean } } {
  let held = Buffer.alloc(0);
  let used = 0;
  /** No head ends before this offset, so that no byte is searched twice. */
  let searched = 0;
  /** Size of the first message in bytes, known once its head has arrived. */
  let needed: number | null = null;
  let lineEnds = 0;
  let isBad = false;

  const append = (bytes: Uint8Array): void => {
    if (used + bytes.length > held.length) {
      const grown = Buffer.alloc(Math.max(used + bytes.length, held.length * 2));
      held.copy(grown, 0, 0, used);
      held = grown;
    }
    held.set(bytes, used);
    used += bytes.length;
  };
  /** The size of the message that begins at `at`; null to wait for more, or when `isBad`. */
  const measure = (at: number): number | null => {
    const headEnd = held.subarray(0, used).indexOf(HEAD_END, Math.max(at, searched));
    if (headEnd < 0) {
      searched = Math.max(at, used - HEAD_END.length + 1);
      isBad = used - at > SIP_LIMITS.messageBytesMax;
      return null;
    }
    const [, ...lines] = decodeHead(held.subarray(at, headEnd)).split("\r\n");
    const length = contentLength(parseHeaders(lines).headers);
    const size = typeof length === "number" ? headEnd + HEAD_END.length + length - at : Infinity;
    isBad = size > SIP_LIMITS.messageBytesMax;
    return isBad ? null : size;
  };
  const skipLineEnds = (from: number, frames: Buffer[]): number => {
    const at = afterLineEnds(held, from, used);
    lineEnds += at - from;
    if (lineEnds >= HEAD_END.length) {
      frames.push(Buffer.from(HEAD_END));
      lineEnds = 0;
    }
    if (at < used) lineEnds = 0;
    return at;
  };
  return {
    push(bytes) {
      const frames: Buffer[] = [];
      if (isBad) return { frames, isBad };
      append(bytes);
      let at = 0;
      while (at < used) {
        if (needed === null) {
          at = skipLineEnds(at, frames);
          needed = at < used ? measure(at) : null;
        }
        if (needed === null || used - at < needed) break;
        frames.push(Buffer.from(held.subarray(at, at + needed)));
        at += needed;
        needed = null;
      }
      held.copyWithin(0, at, used);
      used -= at;
      searched = Math.max(0, searched - at);
      if (used === 0 || isBad) held = Buffer.alloc(0);
      return { frames, isBad };
    },
  };
}
