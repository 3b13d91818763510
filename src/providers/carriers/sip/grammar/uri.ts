// SIP and tel URIs, and the few lexical elements that all SIP headers share: lists, parameters,
// quoted strings, hosts. Every function reads its text once from left to right, because the text
// may come from anybody; null means "not one of these", and nothing throws.
import { isIPv6 } from "node:net";

export interface SipUri {
  scheme: "sip" | "sips" | "tel";
  /** Decoded. The number of a tel URI, without its visual separators. */
  user: string | null;
  /** As written; it is kept but never used here. */
  password?: string;
  /** Lower case, IPv6 without brackets; empty in a tel URI. */
  host: string;
  port: number | null;
  /** Names in lower case, values decoded. */
  params: Map<string, string | null>;
  /** What follows the question mark, as written. */
  headers: string | null;
}

export const URI_CHARACTERS_MAX = 2048;
const HOST_CHARACTERS_MAX = 255;
const PARAMS_MAX = 64;
const DIGITS_MAX = 20;

const TOKEN = /^[A-Za-z0-9\-.!%*_+`'~]+$/;
const HOST_NAME = /^[A-Za-z0-9._-]+$/;
/** A parameter value that needs no quotes: token, host, IPv6. */
const PLAIN_VALUE = /^[A-Za-z0-9\-.!%*_+`'~:[\]/]+$/;
const TEL_NUMBER = /^(\+[0-9]+|[0-9A-Fa-f*#]+)$/;

export const isToken = (text: string): boolean => TOKEN.test(text);

/** Digits only, leading zeros allowed; null when there is anything else or it exceeds `max`. */
export function parseUint(text: string | null | undefined, max: number): number | null {
  if (typeof text !== "string" || text.length > DIGITS_MAX || !/^[0-9]+$/.test(text)) return null;
  const number = Number(text);
  return number <= max ? number : null;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN = 0x3c;
const CLOSE = 0x3e;

/** Splits where the separator stands outside quotes and angle brackets; pieces are trimmed. The
 *  text after piece number `max` is ignored. */
export function splitOutside(text: string, separator: "," | ";", max = Infinity): string[] {
  const pieces: string[] = [];
  const separatorCode = separator.charCodeAt(0);
  let from = 0;
  let isQuoted = false;
  let isAngled = false;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (isQuoted) {
      if (code === BACKSLASH) at += 1;
      else if (code === QUOTE) isQuoted = false;
    } else if (isAngled) isAngled = code !== CLOSE;
    else if (code === QUOTE) isQuoted = true;
    else if (code === OPEN) isAngled = true;
    else if (code === separatorCode) {
      pieces.push(text.slice(from, at).trim());
      from = at + 1;
      if (pieces.length === max) return pieces;
    }
  }
  pieces.push(text.slice(from).trim());
  return pieces;
}

/** The quoted string that begins at `from`: its value and end; null when there is none. */
export function readQuoted(text: string, from: number): { value: string; end: number } | null {
  if (text[from] !== '"') return null;
  let value = "";
  let copied = from + 1;
  for (let at = from + 1; at < text.length; at++) {
    if (text[at] === '"') return { value: value + text.slice(copied, at), end: at + 1 };
    if (text[at] !== "\\") continue;
    value += text.slice(copied, at);
    copied = at + 1;
    at += 1;
  }
  return null;
}

/** Line ends cannot be written in a quoted string at all, so they become spaces. */
export function quote(text: string): string {
  return `"${text.replace(/[\r\n]/g, " ").replace(/["\\]/g, "\\$&")}"`;
}

/** `;name=value;flag`: the parameters of a header, values without their quotes. */
export function parseParams(text: string): Map<string, string | null> | null {
  const params = new Map<string, string | null>();
  const pieces = splitOutside(text, ";", PARAMS_MAX);
  if (pieces.length === PARAMS_MAX) return null;
  for (const piece of pieces) {
    if (piece === "") continue;
    const equals = piece.indexOf("=");
    const name = (equals < 0 ? piece : piece.slice(0, equals)).trim();
    if (!isToken(name)) return null;
    const value = equals < 0 ? null : parseValue(piece.slice(equals + 1).trim());
    if (value === undefined) return null;
    // A repeated parameter is the sender's error; the first is used, as other stacks do.
    if (!params.has(name.toLowerCase())) params.set(name.toLowerCase(), value);
  }
  return params;
}

function parseValue(text: string): string | undefined {
  if (text[0] !== '"') return /[\s"<>]/.test(text) ? undefined : text;
  const quoted = readQuoted(text, 0);
  return quoted?.end === text.length ? quoted.value : undefined;
}

/** The reverse of parseParams; a name that is no token is left out. */
export function formatParams(params: Map<string, string | null>): string {
  let text = "";
  for (const [name, value] of params) {
    if (!isToken(name)) continue;
    if (value === null) text += `;${name}`;
    else text += `;${name}=${PLAIN_VALUE.test(value) ? value : quote(value)}`;
  }
  return text;
}

/** `host`, `host:port`, `[ipv6]:port`, with spaces around the colon as a Via may have them. */
export function parseHostPort(text: string): { host: string; port: number | null } | null {
  const trimmed = text.trim();
  const isBracketed = trimmed[0] === "[";
  const end = trimmed.indexOf(isBracketed ? "]" : ":");
  if (isBracketed && end < 0) return null;
  const host = isBracketed
    ? trimmed.slice(1, end)
    : (end < 0 ? trimmed : trimmed.slice(0, end)).trim();
  const rest = (isBracketed ? trimmed.slice(end + 1) : end < 0 ? "" : trimmed.slice(end)).trim();
  if (host.length > HOST_CHARACTERS_MAX) return null;
  if (isBracketed ? !isIPv6(host) || host.includes("%") : !HOST_NAME.test(host)) return null;
  if (rest === "") return { host: host.toLowerCase(), port: null };
  const port = rest[0] === ":" ? parseUint(rest.slice(1).trim(), 65_535) : null;
  return port === null || port === 0 ? null : { host: host.toLowerCase(), port };
}

/** The reverse of parseHostPort: an IPv6 address gets its brackets. */
export function formatHostPort(host: string, port: number | null): string {
  const clean = host.replace(/[^A-Za-z0-9._:-]/g, "");
  return `${clean.includes(":") ? `[${clean}]` : clean}${port === null ? "" : `:${port}`}`;
}

/** The scheme in lower case, also of URIs nobody here understands (that is a 416, not a 400). */
export function schemeOf(text: string): string | null {
  const colon = text.slice(0, 32).indexOf(":");
  const scheme = text.slice(0, Math.max(0, colon));
  return /^[A-Za-z][A-Za-z0-9+.-]*$/.test(scheme) ? scheme.toLowerCase() : null;
}

export function parseUri(text: string): SipUri | null {
  if (text.length > URI_CHARACTERS_MAX || /[\s<>"]/.test(text)) return null;
  const scheme = schemeOf(text);
  if (scheme === "tel") return parseTel(text.slice(4));
  if (scheme !== "sip" && scheme !== "sips") return null;
  const rest = text.slice(scheme.length + 1);
  // Nothing legal before the host may contain an unescaped @, so the first one ends the user,
  // whatever semicolons and question marks the user has.
  const at = rest.indexOf("@");
  const user = at < 0 ? null : parseUserInfo(rest.slice(0, at));
  if (at >= 0 && user === null) return null;
  const place = rest.slice(at + 1);
  const question = place.indexOf("?");
  const [hostPort = "", ...pieces] = (question < 0 ? place : place.slice(0, question)).split(";");
  const where = /\s/.test(hostPort) ? null : parseHostPort(hostPort);
  const params = parseUriParams(pieces);
  if (where === null || params === null) return null;
  return {
    scheme,
    user: user?.user ?? null,
    ...(user?.password === undefined ? {} : { password: user.password }),
    ...where,
    params,
    headers: question < 0 ? null : place.slice(question + 1),
  };
}

/** The reverse of `decode`: escapes everything but the characters RFC 3261 allows in a user. */
export const escapeUser = (user: string): string =>
  encodeURIComponent(user.toWellFormed()).replace(/%(24|26|2B|2C|2F|3B|3D|3F)/g, decodeURIComponent);

function parseUserInfo(text: string): { user: string; password?: string } | null {
  const colon = text.indexOf(":");
  const user = decode(colon < 0 ? text : text.slice(0, colon));
  if (user === null || user === "") return null;
  return colon < 0 ? { user } : { user, password: text.slice(colon + 1) };
}

function parseUriParams(pieces: string[]): Map<string, string | null> | null {
  const params = new Map<string, string | null>();
  for (const piece of pieces) {
    if (piece === "") continue;
    if (params.size >= PARAMS_MAX) return null;
    const equals = piece.indexOf("=");
    const name = decode(equals < 0 ? piece : piece.slice(0, equals))?.toLowerCase();
    const value = equals < 0 ? null : decode(piece.slice(equals + 1));
    if (!name || (equals >= 0 && value === null)) return null;
    if (!params.has(name)) params.set(name, value);
  }
  return params;
}

function parseTel(text: string): SipUri | null {
  const [number = "", ...pieces] = text.split(";");
  const user = number.replace(/[-.()]/g, "");
  const params = parseUriParams(pieces);
  if (params === null || !TEL_NUMBER.test(user)) return null;
  return { scheme: "tel", user, host: "", port: null, params, headers: null };
}

/** Null for a lone percent sign and for escapes that are no UTF-8. */
function decode(text: string): string | null {
  if (!text.includes("%")) return text;
  try {
    return decodeURIComponent(text);
  } catch (error) {
    if (error instanceof URIError) return null;
    throw error;
  }
}
