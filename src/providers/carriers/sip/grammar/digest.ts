// Digest authentication (RFC 7616, RFC 8760 for SIP): answers the challenges of registrars and
// proxies, and challenges callers. The server keeps no state for a challenge it issued: a nonce is
// a signed timestamp, so that asking for challenges costs no memory.
import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import type { System } from "#core/system.ts";
import { isToken, parseUri, quote, readQuoted } from "./uri.ts";

export interface Challenge {
  scheme: "Digest";
  realm: string;
  nonce: string;
  algorithm: "MD5" | "SHA-256";
  qop: "auth" | null;
  opaque: string | null;
  stale: boolean;
}

export const DIGEST_LIMITS = {
  nonceLifeMs: 60_000,
  /** Used nonces that are remembered; each was used with a correct password. */
  noncesMax: 4096,
  charactersMax: 4096,
  paramsMax: 32,
} as const;

type Algorithm = Challenge["algorithm"];

const ALGORITHMS: Algorithm[] = ["SHA-256", "MD5"];
const HASHES: Record<Algorithm, string> = { "SHA-256": "sha256", MD5: "md5" };

/** Parses `Digest name=value, name="value"`; null for another scheme or malformed text. */
function parseDigest(text: string): Map<string, string> | null {
  if (text.length > DIGEST_LIMITS.charactersMax || !/^\s*digest\s/i.test(text)) return null;
  const params = new Map<string, string>();
  let at = text.search(/digest\s/i) + "digest".length;
  while (at < text.length) {
    if (/[\s,]/.test(text[at] ?? "")) {
      at += 1;
      continue;
    }
    const equals = text.indexOf("=", at);
    const name = text.slice(at, Math.max(at, equals)).trim().toLowerCase();
    if (!isToken(name) || params.has(name) || params.size >= DIGEST_LIMITS.paramsMax) return null;
    at = equals + 1;
    while (/\s/.test(text[at] ?? "")) at += 1;
    const quoted = readQuoted(text, at);
    if (text[at] === '"' && quoted === null) return null;
    const comma = text.indexOf(",", quoted?.end ?? at);
    const end = comma < 0 ? text.length : comma;
    const value = quoted?.value ?? text.slice(at, end).trim();
    if (quoted && text.slice(quoted.end, end).trim() !== "") return null;
    params.set(name, value);
    at = end;
  }
  return params;
}

function algorithmOf(params: Map<string, string>): Algorithm | null {
  const name = (params.get("algorithm") ?? "MD5").toUpperCase();
  return ALGORITHMS.find((algorithm) => algorithm === name) ?? null;
}

function readChallenge(value: string): Challenge | null {
  const params = parseDigest(value);
  const algorithm = params && algorithmOf(params);
  const realm = params?.get("realm");
  const nonce = params?.get("nonce");
  if (!params || !algorithm || realm === undefined || nonce === undefined) return null;
  const offered = params.get("qop");
  const qops = offered?.toLowerCase().split(",").map((qop) => qop.trim()).filter(Boolean) ?? [];
  // Only auth-int is offered, which is not supported here.
  if (qops.length > 0 && !qops.includes("auth")) return null;
  return {
    scheme: "Digest",
    realm,
    nonce,
    algorithm,
    qop: qops.length > 0 ? "auth" : null,
    opaque: params.get("opaque") ?? null,
    stale: params.get("stale")?.toLowerCase() === "true",
  };
}

/** The strongest of several headers; of equals the first (RFC 8760 2.4). */
export function chooseChallenge(values: string[]): Challenge | null {
  const challenges = values.map(readChallenge);
  for (const algorithm of ALGORITHMS) {
    const found = challenges.find((challenge) => challenge?.algorithm === algorithm);
    if (found) return found;
  }
  return null;
}

function digest(args: {
  algorithm: Algorithm;
  username: string;
  realm: string;
  password: string;
  method: string;
  uri: string;
  nonce: string;
  /** Null for the form before RFC 2617, which has no nonce count. */
  qop: { nc: string; cnonce: string } | null;
}): string {
  const hash = (text: string) => createHash(HASHES[args.algorithm]).update(text).digest("hex");
  const secret = hash(`${args.username}:${args.realm}:${args.password}`);
  const request = hash(`${args.method}:${args.uri}`);
  const between = args.qop ? `${args.qop.nc}:${args.qop.cnonce}:auth:` : "";
  return hash(`${secret}:${args.nonce}:${between}${request}`);
}

/** The value of Authorization or Proxy-Authorization. */
export function answerChallenge(args: {
  challenge: Challenge;
  method: string;
  uri: string;
  username: string;
  password: string;
  nonceCount: number;
  cnonce: string;
}): string {
  const { challenge, username, uri } = args;
  const { algorithm, realm, nonce, opaque } = challenge;
  const nc = args.nonceCount.toString(16).padStart(8, "0");
  const qop = challenge.qop && { nc, cnonce: args.cnonce };
  const response = digest({ ...args, algorithm, realm, nonce, qop });
  const parts = [
    `username=${quote(username)}`,
    `realm=${quote(realm)}`,
    `nonce=${quote(nonce)}`,
    `uri=${quote(uri)}`,
    `response="${response}"`,
    `algorithm=${algorithm}`,
  ];
  if (qop) parts.push("qop=auth", `nc=${nc}`, `cnonce=${quote(args.cnonce)}`);
  if (opaque !== null) parts.push(`opaque=${quote(opaque)}`);
  return `Digest ${parts.join(", ")}`;
}

type Verdict =
  | { kind: "ok"; username: string }
  | { kind: "absent" }
  | { kind: "stale" }
  | { kind: "mismatched" }
  | { kind: "wrong" };

const STAMP_BYTES = 6;
const RANDOM_BYTES = 10;
const SIGNATURE_BYTES = 16;

/**
 * `absent`: no Digest answer for this realm, so challenge. `stale`: the password is right but the
 * nonce is not ours, too old, or was used with this or a later count: challenge again with
 * `stale`, which makes the client retry without asking its user. `mismatched`: the answer was made
 * for another request, as one that an eavesdropper replays would be. A client that sends no nonce
 * count (before RFC 2617) may use each nonce once.
 */
export function createDigestServer({ realm, system }: { realm: string; system: System }): {
  /** Strongest first. */
  challenges(stale?: boolean): string[];
  isForUs(header: string): boolean;
  verify(
    header: string | null,
    request: { method: string; uri: string },
    passwordOf: (username: string) => string | null,
  ): Verdict;
} {
  const secret = system.randomBytes(32);
  /** The last count each nonce was used with, in the order of their first use. */
  const used = new Map<string, { issuedMs: number; count: number }>();
  /** Every nonce evicted from `used` was issued at or before this time. */
  let forgottenMs = -1;

  const sign = (content: Buffer): Buffer =>
    createHmac("sha256", secret).update(content).digest().subarray(0, SIGNATURE_BYTES);
  const issue = (): string => {
    const stamp = Buffer.alloc(STAMP_BYTES);
    stamp.writeUIntBE(Math.floor(system.monotonicMs()), 0, STAMP_BYTES);
    const content = Buffer.concat([stamp, system.randomBytes(RANDOM_BYTES)]);
    return Buffer.concat([content, sign(content)]).toString("base64url");
  };
  /** When this nonce was issued; null when we did not issue it or it is too old. */
  const issuedAt = (nonce: string): number | null => {
    const bytes = Buffer.from(nonce, "base64url");
    const size = STAMP_BYTES + RANDOM_BYTES;
    // Re-encoded, because each of several base64 spellings would count as an unused nonce.
    if (bytes.length !== size + SIGNATURE_BYTES || bytes.toString("base64url") !== nonce) return null;
    if (!timingSafeEqual(bytes.subarray(size), sign(bytes.subarray(0, size)))) return null;
    const issuedMs = bytes.readUIntBE(0, STAMP_BYTES);
    return system.monotonicMs() - issuedMs < DIGEST_LIMITS.nonceLifeMs ? issuedMs : null;
  };
  /** Records the use; false when the nonce is not valid or was used with this or a later count. */
  const use = (nonce: string, count: number): boolean => {
    const issuedMs = issuedAt(nonce);
    if (issuedMs === null) return false;
    const known = used.get(nonce);
    if (known ? count <= known.count : issuedMs <= forgottenMs) return false;
    used.set(nonce, { issuedMs, count });
    if (used.size <= DIGEST_LIMITS.noncesMax) return true;
    for (const [oldest, entry] of used) {
      used.delete(oldest);
      forgottenMs = Math.max(forgottenMs, entry.issuedMs);
      break;
    }
    return true;
  };

  return {
    challenges(stale = false) {
      const nonce = issue();
      return ALGORITHMS.map((algorithm) =>
        `Digest realm=${quote(realm)}, nonce="${nonce}", algorithm=${algorithm}, qop="auth"` +
        (stale ? ", stale=true" : ""));
    },
    isForUs: (header) => parseDigest(header)?.get("realm") === realm,
    verify(header, { method, uri }, passwordOf) {
      if (header === null || !/^\s*digest\s/i.test(header)) return { kind: "absent" };
      const answer = readAnswer(header);
      if (answer === null) return { kind: "wrong" };
      if (answer.realm !== realm) return { kind: "absent" };
      if (!isSameResource(answer.uri, uri)) return { kind: "mismatched" };
      const password = passwordOf(answer.username);
      // An unknown user takes the same time as a wrong password.
      const expected = Buffer.from(digest({ ...answer, method, password: password ?? "" }));
      const given = Buffer.from(answer.response);
      const isRight = given.length === expected.length && timingSafeEqual(given, expected);
      if (!isRight || password === null) return { kind: "wrong" };
      const count = parseInt(answer.qop?.nc ?? "1", 16);
      return use(answer.nonce, count)
        ? { kind: "ok", username: answer.username }
        : { kind: "stale" };
    },
  };
}

/** Whether both URIs call the same user; proxies may have changed parameters on the way. */
function isSameResource(one: string, other: string): boolean {
  if (one === other) return true;
  const [a, b] = [parseUri(one), parseUri(other)];
  return a !== null && b !== null && a.scheme === b.scheme && a.user === b.user
    && a.host.toLowerCase() === b.host.toLowerCase() && a.port === b.port;
}

interface Answer {
  algorithm: Algorithm;
  username: string;
  realm: string;
  nonce: string;
  uri: string;
  response: string;
  qop: { nc: string; cnonce: string } | null;
}

/** Null when a parameter is missing or is not what the challenge offered. */
function readAnswer(header: string): Answer | null {
  const params = parseDigest(header);
  const algorithm = params && algorithmOf(params);
  if (!params || !algorithm) return null;
  const [username, realm, nonce, uri, response] =
    ["username", "realm", "nonce", "uri", "response"].map((name) => params.get(name));
  if (username === undefined || realm === undefined || nonce === undefined) return null;
  if (uri === undefined || response === undefined) return null;
  const common = { algorithm, username, realm, nonce, uri, response: response.toLowerCase() };
  const qop = params.get("qop");
  if (qop === undefined) return { ...common, qop: null };
  const nc = params.get("nc") ?? "";
  const cnonce = params.get("cnonce");
  const isCounted = qop.toLowerCase() === "auth" && /^[0-9a-f]{8}$/i.test(nc);
  return isCounted && cnonce !== undefined ? { ...common, qop: { nc, cnonce } } : null;
}
