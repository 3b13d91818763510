// Push messages as browsers require: encrypted for one browser (RFC 8291, aes128gcm of RFC 8188)
// and signed by the sending server (RFC 8292). Uses node:crypto: it is shorter than the 14 packages
// of the library, which makes requests by itself, past our guard. Called by web-push.ts.
import { createCipheriv, createECDH, hkdfSync, sign } from "node:crypto";
import type { PushTarget } from "./port.ts";

const CURVE = "prime256v1";
const RECORD_BYTES = 4096;
/** The delimiter of the last record, and there is only one. */
const LAST_RECORD = Buffer.from([2]);
const SCALAR_BYTES = 32;

type KeyPair = ReturnType<typeof createECDH>;

const derive = (key: Buffer, salt: Buffer, info: Buffer | string, bytes: number): Buffer =>
  Buffer.from(hkdfSync("sha256", key, salt, info, bytes));

/** The same secret makes the same pair, on every node and after every restart. */
export function keyPairFrom(secret: string): KeyPair {
  const pair = createECDH(CURVE);
  for (let count = 0; ; count += 1) {
    const scalar = derive(
      Buffer.from(secret), Buffer.alloc(0), `parley web push ${count}`, SCALAR_BYTES);
    try {
      pair.setPrivateKey(scalar);
      return pair;
    } catch (error) {
      // One in four billion is no private key of the curve: then the next one is taken.
      if (count > 2) throw error;
    }
  }
}

export function newKeyPair(): KeyPair {
  const pair = createECDH(CURVE);
  pair.generateKeys();
  return pair;
}

/** `own` and `salt` must be new for each message. Throws where the browser's key is no point. */
export function encrypt(
  text: string, { publicKey, auth }: PushTarget, own: KeyPair, salt: Buffer,
): Buffer {
  const theirs = Buffer.from(publicKey, "base64url");
  const shared = own.computeSecret(theirs);
  const info = Buffer.concat([Buffer.from("WebPush: info\0"), theirs, own.getPublicKey()]);
  const key = derive(shared, Buffer.from(auth, "base64url"), info, 32);
  const cipher = createCipheriv("aes-128-gcm",
    derive(key, salt, "Content-Encoding: aes128gcm\0", 16),
    derive(key, salt, "Content-Encoding: nonce\0", 12));
  const sealed = [cipher.update(text, "utf8"), cipher.update(LAST_RECORD), cipher.final()];
  const sizes = Buffer.alloc(5);
  sizes.writeUInt32BE(RECORD_BYTES);
  sizes.writeUInt8(own.getPublicKey().length, 4);
  return Buffer.concat([salt, sizes, own.getPublicKey(), ...sealed, cipher.getAuthTag()]);
}

const encoded = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");

/** The `Authorization` header by which a push service identifies the sender. */
export function vapidHeader(
  pair: KeyPair, claims: { aud: string; exp: number; sub?: string },
): string {
  const point = pair.getPublicKey();
  const key = {
    kty: "EC", crv: "P-256",
    x: point.toString("base64url", 1, 1 + SCALAR_BYTES),
    y: point.toString("base64url", 1 + SCALAR_BYTES),
    d: pair.getPrivateKey("base64url"),
  };
  const body = `${encoded({ typ: "JWT", alg: "ES256" })}.${encoded(claims)}`;
  const signature = sign(
    "sha256", Buffer.from(body), { key, format: "jwk", dsaEncoding: "ieee-p1363" });
  return `vapid t=${body}.${signature.toString("base64url")}, k=${point.toString("base64url")}`;
}
