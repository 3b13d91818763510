// Small questions about untrusted values, asked in more than one feature.

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export function isUuid(text: string): boolean {
  return UUID.test(text);
}

const UNSAFE_KEYS = ["__proto__", "constructor", "prototype"];
/** Such names as a part of a pattern. */
export const UNSAFE_KEY = UNSAFE_KEYS.join("|");

/** Names that would reach Object.prototype when used as keys. */
export function isUnsafeKey(key: string): boolean {
  return UNSAFE_KEYS.includes(key);
}

const E164 = /^\+[1-9]\d{4,14}$/;

/** A telephone number with its country, and nothing else: `+14155550100`. */
export function isE164(text: string): boolean {
  return E164.test(text);
}

export function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone: name });
    return true;
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}

/** The URL when it is absolute http(s) without credentials, else null. */
export function parseHttpUrl(text: string): URL | null {
  if (text.length > 2048 || !URL.canParse(text)) return null;
  const url = new URL(text);
  const isHttp = url.protocol === "http:" || url.protocol === "https:";
  return isHttp && url.username === "" && url.password === "" ? url : null;
}

/** The address of `path` below the base `url`, whose query (Azure's `api-version`) stays. */
export function endpointOf(url: string, path: string): string {
  const { origin, pathname, search } = new URL(url);
  return `${origin}${pathname.replace(/\/+$/, "")}${path}${search}`;
}

/** As they are written. */
export const wordsIn = (text: string): string[] => text.split(/\s+/).filter((word) => word !== "");

/** UTF-8 has no half of an emoji, but JSON can write one: programs cut texts by UTF-16 units. */
const MAY_BE_HALF = /\\u[dD][89a-fA-F]/;

function wellFormed(_: string, value: unknown): unknown {
  if (typeof value === "string") return value.toWellFormed();
  return isRecord(value)
    ? Object.fromEntries(Object.entries(value).map(([name, one]) => [name.toWellFormed(), one]))
    : value;
}

/**
 * JSON's value, in which half an emoji is U+FFFD: strict readers, such as a model's server or the
 * receiver of a webhook, would refuse it. Throws SyntaxError; RangeError for deep nesting.
 */
export const parsedJson = (text: string): unknown =>
  (MAY_BE_HALF.test(text) ? JSON.parse(text, wellFormed) : JSON.parse(text));

/** Undefined when it is no JSON. Halves of an emoji stay: a stream brings the other one next. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export const recordOf = (value: unknown): Record<string, unknown> | null =>
  (isRecord(value) ? value : null);

/** Empty when it is no list. */
export const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

/** Empty when it is no text. */
export const textOf = (value: unknown): string => (typeof value === "string" ? value : "");

/** The first UTF-16 units of a text, without half a character at the end; for bounds on memory. */
export function wholeStart(text: string, unitsMax: number): string {
  if (unitsMax <= 0) return "";
  if (text.length <= unitsMax) return text;
  const last = text.charCodeAt(unitsMax - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? unitsMax - 1 : unitsMax);
}

/** The end of a text, like `wholeStart`. */
export function wholeEnd(text: string, unitsMax: number): string {
  const from = Math.max(0, text.length - unitsMax);
  const first = text.charCodeAt(from);
  return text.slice(from > 0 && first >= 0xdc00 && first <= 0xdfff ? from + 1 : from);
}

/** Whether a text has more characters (code points, as JSON Schema counts) than that. */
export function isLonger(text: string, charsMax: number): boolean {
  if (text.length <= charsMax) return false;
  // A code point is two UTF-16 units at most.
  return text.length > 2 * charsMax || Array.from(text).length > charsMax;
}

/** The first characters (code points) of a text. */
export function firstChars(text: string, charsMax: number): string {
  return isLonger(text, charsMax) ? Array.from(text.slice(0, 2 * charsMax)).slice(0, charsMax).join("") : text;
}
