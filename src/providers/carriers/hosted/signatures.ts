// Verifies that a webhook or the opening of a WebSocket comes from the carrier it claims to. Pure,
// and every comparison takes constant time. The URL must be built from the *configured* public
// origin, never from the Host header, which the sender chooses. Each function returns false for
// input it cannot parse; an empty secret verifies nothing.
import { createHash, createHmac, createPublicKey, timingSafeEqual, verify } from "node:crypto";
import { jsonOf, recordOf } from "#core/values.ts";

/** The body of a request. A GET and the opening of a WebSocket have none. */
export type SignedBody =
  | { kind: "none" }
  | { kind: "form"; fields: URLSearchParams }
  | { kind: "raw"; bytes: Uint8Array };

/** The most by which the time that a carrier signs may differ from our clock. */
export const SIGNATURE_AGE_MS_MAX = 5 * 60_000;
const HEADER_CHARS_MAX = 8192;

function isSame(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && timingSafeEqual(left, right);
}

const isSameText = (left: string, right: string): boolean =>
  isSame(Buffer.from(left), Buffer.from(right));

const hmac = (algorithm: "sha1" | "sha256", secret: string, data: string): Buffer =>
  createHmac(algorithm, secret).update(data, "utf8").digest();

const sha256Hex = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

/** Values by key, with keys and values in UTF-16 order, as the vendors sort them. */
function sorted(fields: URLSearchParams): [string, string[]][] {
  return [...new Set(fields.keys())].sort().map((key) => [key, fields.getAll(key).sort()]);
}

// Twilio, SignalWire

const URL_PARTS = /^([a-z][a-z0-9+.-]*:\/\/)((?:[^/?#@]*@)?(?:\[[^\]]*\]|[^/?#:@]*))(:\d*)?(.*)$/is;
const DEFAULT_PORT: Record<string, string> = {
  "https://": ":443", "wss://": ":443", "http://": ":80", "ws://": ":80",
};

/** The URL without its port and with one: vendors differ, even between their own products. */
function urlsSigned(url: string): string[] {
  const [, scheme = "", host = "", port = "", rest = ""] = URL_PARTS.exec(url) ?? [];
  if (scheme === "") return [url];
  const usual = port === "" ? DEFAULT_PORT[scheme.toLowerCase()] ?? "" : port;
  return [scheme + host + rest, scheme + host + usual + rest];
}

/** The same URL with its characters escaped, which the vendor may do before signing it. */
function normalised(url: string): string[] {
  return URL.canParse(url) ? [new URL(url).href] : [];
}

function twilioSigns(secret: string, url: string, fields: URLSearchParams | null): Buffer {
  const text = fields
    ? sorted(fields).map(([key, values]) =>
      [...new Set(values)].map((value) => key + value).join("")).join("")
    : "";
  return Buffer.from(hmac("sha1", secret, url + text).toString("base64"));
}

/**
 * Verifies `X-Twilio-Signature`. A WebSocket is signed with its `wss://` URL. A body that is not a
 * form is only covered by a `bodySHA256` in the query, and is refused without one.
 */
export function isFromTwilio(args: {
  authToken: string; signature: string | null; url: string; body: SignedBody;
}): boolean {
  const { authToken, signature, url, body } = args;
  if (authToken === "" || !signature || signature.length > HEADER_CHARS_MAX) return false;
  const given = Buffer.from(signature);
  const fields = body.kind === "form" ? body.fields : null;
  const candidates = [url, ...normalised(url)].flatMap(urlsSigned);
  if (!candidates.some((one) => isSame(given, twilioSigns(authToken, one, fields)))) return false;
  if (body.kind !== "raw") return true;
  const query = new URLSearchParams(/\?([^#]*)/.exec(url)?.[1] ?? "");
  return isSameText(query.get("bodySHA256") ?? "", sha256Hex(body.bytes));
}

// Telnyx

const ED25519_SPKI = Buffer.from("302a300506032b6570032100", "hex");
const ED25519_KEY_BYTES = 32;
const ED25519_SIGNATURE_BYTES = 64;

const isFresh = (seconds: number, nowMs: number): boolean =>
  Math.abs(seconds * 1000 - nowMs) <= SIGNATURE_AGE_MS_MAX;

/** `telnyx-signature-ed25519` and `telnyx-timestamp`; the key is base64 of its 32 bytes. */
export function isFromTelnyx(args: {
  publicKey: string; signature: string | null; timestamp: string | null;
  body: Uint8Array; nowMs: number;
}): boolean {
  const { publicKey, signature, timestamp, body, nowMs } = args;
  if (!signature || signature.length > HEADER_CHARS_MAX) return false;
  if (!timestamp || !/^\d{1,12}$/.test(timestamp) || !isFresh(Number(timestamp), nowMs)) return false;
  const raw = Buffer.from(publicKey, "base64");
  const given = Buffer.from(signature, "base64");
  if (raw.length !== ED25519_KEY_BYTES || given.length !== ED25519_SIGNATURE_BYTES) return false;
  const key = createPublicKey({
    key: Buffer.concat([ED25519_SPKI, raw]), format: "der", type: "spki",
  });
  return verify(null, Buffer.concat([Buffer.from(`${timestamp}|`), body]), key, given);
}

// Plivo

/** Plivo signs the URL with the sorted query of a GET, and the query and the form of a POST. */
function plivoText(method: "GET" | "POST", url: string, form: URLSearchParams | null): string {
  const [address = "", query = ""] = url.replace(/#.*$/s, "").split(/\?(.*)/s);
  const queried = sorted(new URLSearchParams(query))
    .flatMap(([key, values]) => values.map((value) => `${key}=${value}`)).join("&");
  const posted = method === "POST" && form
    ? sorted(form).flatMap(([key, values]) => values.map((value) => key + value)).join("")
    : "";
  if (posted === "") return queried === "" ? address : `${address}?${queried}`;
  return `${address}?${queried}${queried === "" ? "" : "."}${posted}`;
}

/**
 * Verifies `X-Plivo-Signature-V3`, with one signature or (while a token is rotated) several, and
 * its `-Nonce`. The opening of a WebSocket is signed as a GET.
 */
export function isFromPlivo(args: {
  authToken: string; signature: string | null; nonce: string | null;
  method: "GET" | "POST"; url: string; form: URLSearchParams | null;
}): boolean {
  const { authToken, signature, nonce, method, url, form } = args;
  if (authToken === "" || !nonce || !signature) return false;
  if (signature.length + nonce.length > HEADER_CHARS_MAX) return false;
  const text = `${plivoText(method, url, form)}.${nonce}`;
  const expected = hmac("sha256", authToken, text).toString("base64");
  return signature.split(",")
    .map((one) => isSameText(one.trim(), expected))
    .includes(true);
}

// Vonage

const partOf = (part: string): Record<string, unknown> =>
  recordOf(jsonOf(Buffer.from(part, "base64url").toString("utf8"))) ?? {};

/**
 * The bearer token of a signed webhook: a JWT signed with HS256, valid for minutes, that carries
 * the hash of the body. `body` is empty for a GET and the opening of a WebSocket.
 */
export function isFromVonage(args: {
  signatureSecret: string; authorization: string | null; body: Uint8Array; nowMs: number;
}): boolean {
  const { signatureSecret, authorization, body, nowMs } = args;
  if (signatureSecret === "" || !authorization || authorization.length > HEADER_CHARS_MAX) return false;
  const [, head = "", claims = "", signature = ""] =
    /^Bearer +([\w-]+)\.([\w-]+)\.([\w-]+)$/i.exec(authorization) ?? [];
  const expected = hmac("sha256", signatureSecret, `${head}.${claims}`).toString("base64url");
  if (!isSameText(signature, expected) || partOf(head).alg !== "HS256") return false;
  const { iat, exp, payload_hash: hash } = partOf(claims);
  if (typeof iat !== "number" || !isFresh(iat, nowMs)) return false;
  if (exp !== undefined && !(typeof exp === "number" && exp * 1000 > nowMs)) return false;
  // A body whose hash is not signed is not accepted.
  return hash === undefined
    ? body.length === 0
    : typeof hash === "string" && isSameText(hash.toLowerCase(), sha256Hex(body));
}
