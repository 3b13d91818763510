// The headers of a SIP message, and the values in them that the stack acts on: Via, addresses,
// CSeq. Used by message.ts and by most of the signalling.
import {
  formatHostPort,
  formatParams,
  isToken,
  parseHostPort,
  parseParams,
  parseUint,
  quote,
  readQuoted,
  schemeOf,
  splitOutside,
} from "./uri.ts";

const CSEQ_MAX = 2 ** 31 - 1;

/** One-letter names, RFC 3261 7.3.3 and the IANA registry. */
const COMPACT: Record<string, string> = {
  a: "Accept-Contact", b: "Referred-By", c: "Content-Type", d: "Request-Disposition",
  e: "Content-Encoding", f: "From", i: "Call-ID", j: "Reject-Contact", k: "Supported",
  l: "Content-Length", m: "Contact", n: "Identity-Info", o: "Event", r: "Refer-To",
  s: "Subject", t: "To", u: "Allow-Events", v: "Via", x: "Session-Expires", y: "Identity",
};

/** Headers whose value is a comma list: each element is kept as a value of its own. */
const LISTS = new Set([
  "accept", "accept-contact", "accept-encoding", "accept-language", "alert-info", "allow",
  "allow-events", "call-info", "contact", "content-encoding", "content-language", "diversion",
  "error-info", "history-info", "in-reply-to", "p-asserted-identity", "p-preferred-identity",
  "path", "proxy-require", "reason", "record-route", "reject-contact", "require", "route",
  "service-route", "supported", "unsupported", "via", "warning",
]);

/** Removes line ends, which would let a value begin a header of its own. */
export const oneLine = (text: string): string => text.replace(/[\r\n]+/g, " ");

/** Ordered headers; names are case-insensitive. No method lets a line end into a value. */
export class SipHeaders {
  #list: { key: string; name: string; value: string }[] = [];

  get size(): number {
    return this.#list.length;
  }

  /** The first value; of a list its first element. */
  get(name: string): string | null {
    const key = keyOf(name);
    return this.#list.find((entry) => entry.key === key)?.value ?? null;
  }

  /** Every value, with the elements of lists one by one. */
  all(name: string): string[] {
    const key = keyOf(name);
    return this.#list.filter((entry) => entry.key === key).map(({ value }) => value);
  }

  /** Replaces all values of the header, at the position of the first. */
  set(name: string, value: string): this {
    const key = keyOf(name);
    const index = this.#list.findIndex((entry) => entry.key === key);
    if (index < 0) return this.add(name, value);
    const before = this.#list.slice(0, index);
    const after = this.#list.slice(index).filter((entry) => entry.key !== key);
    this.#list = [...before, ...entriesOf(name, value), ...after];
    return this;
  }

  add(name: string, value: string): this {
    for (const entry of entriesOf(name, value)) this.#list.push(entry);
    return this;
  }

  prepend(name: string, value: string): this {
    this.#list = [...entriesOf(name, value), ...this.#list];
    return this;
  }

  /** The first value only, such as the topmost Via. */
  removeFirst(name: string): this {
    const key = keyOf(name);
    const index = this.#list.findIndex((entry) => entry.key === key);
    if (index >= 0) this.#list.splice(index, 1);
    return this;
  }

  *entries(): Iterable<[string, string]> {
    for (const { name, value } of this.#list) yield [name, value];
  }
}

const fullName = (name: string): string =>
  (name.length === 1 ? COMPACT[name.toLowerCase()] : undefined) ?? name;
export const keyOf = (name: string): string => fullName(name).toLowerCase();

/** Empty for a name that is no token and so could not be serialised. */
function entriesOf(name: string, value: string): { key: string; name: string; value: string }[] {
  const full = fullName(name);
  const key = full.toLowerCase();
  if (!isToken(full)) return [];
  const clean = oneLine(value).trim();
  if (!LISTS.has(key)) return [{ key, name: full, value: clean }];
  return splitOutside(clean, ",")
    .filter((piece) => piece !== "")
    .map((piece) => ({ key, name: full, value: piece }));
}

interface Via {
  /** Upper case. */
  transport: string;
  /** IPv6 without brackets. */
  host: string;
  port: number | null;
  branch: string | null;
  /** All but the branch. */
  params: Map<string, string | null>;
}

export function parseVia(value: string): Via | null {
  const semicolon = value.indexOf(";");
  const sent = semicolon < 0 ? value : value.slice(0, semicolon);
  const [name, version, rest, ...others] = sent.split("/", 4).map((piece) => piece.trim());
  if (name?.toUpperCase() !== "SIP" || version !== "2.0" || !rest || others.length > 0) return null;
  const space = rest.search(/\s/);
  const transport = rest.slice(0, Math.max(0, space));
  const where = isToken(transport) ? parseHostPort(rest.slice(space)) : null;
  const params = parseParams(semicolon < 0 ? "" : value.slice(semicolon));
  if (where === null || params === null) return null;
  const branch = params.get("branch") ?? null;
  params.delete("branch");
  return { transport: transport.toUpperCase(), ...where, branch, params };
}

export function formatVia(via: Via): string {
  const params = new Map(via.params);
  params.delete("branch");
  if (via.branch !== null) params.set("branch", via.branch);
  return `SIP/2.0/${via.transport} ${formatHostPort(via.host, via.port)}${formatParams(params)}`;
}

/** The value of From, To, Contact, Route...: a name for people, an address, parameters. */
interface NameAddr {
  display: string | null;
  /** As written, to be copied byte for byte; `*` in a Contact. */
  uri: string;
  params: Map<string, string | null>;
}

export function parseNameAddr(value: string): NameAddr | null {
  const text = value.trim();
  const quoted = readQuoted(text, 0);
  if (text[0] === '"' && quoted === null) return null;
  const open = text.indexOf("<", quoted?.end ?? 0);
  if (open < 0) return quoted ? null : parseBareAddr(text);
  const close = text.indexOf(">", open);
  const between = text.slice(quoted?.end ?? 0, open).trim();
  const uri = text.slice(open + 1, Math.max(close, open + 1));
  const rest = text.slice(close + 1).trim();
  if (close < 0 || uri === "" || /[\s<"]/.test(uri) || (rest !== "" && rest[0] !== ";")) return null;
  if (quoted ? between !== "" : between.includes('"')) return null;
  const params = parseParams(rest);
  return params && { display: (quoted?.value ?? between) || null, uri, params };
}

/** Without angle brackets, parameters belong to the header, not to the URI (RFC 3261 20). */
function parseBareAddr(text: string): NameAddr | null {
  const semicolon = text.indexOf(";");
  const uri = (semicolon < 0 ? text : text.slice(0, semicolon)).trim();
  if (/[\s,?">]/.test(uri) || (uri !== "*" && schemeOf(uri) === null)) return null;
  const params = parseParams(semicolon < 0 ? "" : text.slice(semicolon));
  return params && { display: null, uri, params };
}

export function formatNameAddr(address: NameAddr): string {
  if (address.uri === "*") return "*";
  const name = address.display === null ? "" : `${quote(address.display)} `;
  return `${name}<${address.uri.replace(/[\s<>"]/g, "")}>${formatParams(address.params)}`;
}

export function parseCseq(value: string | null): { number: number; method: string } | null {
  const text = (value ?? "").trim();
  const space = text.search(/\s/);
  const number = parseUint(text.slice(0, Math.max(0, space)), CSEQ_MAX);
  const method = text.slice(space + 1).trim();
  return number === null || !isToken(method) ? null : { number, method };
}
