// Agrees on the SRTP keys of a web call by DTLS-SRTP (RFC 5764), with werift. The server takes the
// role of the DTLS client. werift verifies little itself, so this file verifies that the page holds
// the private key of its certificate, and that the certificate is the offer's. Used by peer.ts.
import { createHash, verify, X509Certificate } from "node:crypto";
import { createSelfSignedCertificate, DtlsClient } from "werift";
import type { SrtpKey } from "#providers/carriers/sip/grammar/sdp.ts";

type SelfSigned = Awaited<ReturnType<typeof createSelfSignedCertificate>>;

export interface Certificate extends SelfSigned {
  /** SHA-256, with colons. */
  fingerprint: string;
}

/** Algorithms by their numbers in TLS: ECDSA, SHA-256, the curve P-256. */
const SIGNATURE = { signature: 3, hash: 4 } as const;
const CURVE = 23;
/** AES_CM_128_HMAC_SHA1_80, which every browser has. */
const PROFILE = 1;
const KEY_BYTES = 16;
const SALT_BYTES = 14;
const SERVER_KEY_EXCHANGE = 12;
/** The first of the two bytes that name a signature's algorithm. */
const HASHES: Record<number, string> = { 4: "sha256", 5: "sha384", 6: "sha512" };
/** Kind of curve and its name, before the length of the point. */
const CURVE_BYTES = 3;
/** Ten times what the longest certificate chain takes with its retransmissions. */
const BYTES_MAX = 256 * 1024;

/** One certificate serves all calls of a thread. */
export async function createCertificate(): Promise<Certificate> {
  const made = await createSelfSignedCertificate(SIGNATURE, CURVE);
  return { ...made, fingerprint: new X509Certificate(made.certPem).fingerprint256 };
}

interface DtlsOptions {
  certificate: Certificate;
  /** SHA-256 of the page's certificate, lower case, without colons. */
  fingerprint: string;
  send(bytes: Buffer): void;
  /** Once. */
  agreed(keys: { local: SrtpKey; remote: SrtpKey }): void;
  /** Called when the handshake fails or the page ends the session. */
  over(reason: string): void;
}

interface Dtls {
  receive(bytes: Buffer): void;
}

/** Starts the handshake at once. */
export function beginDtls({ certificate, fingerprint, send, agreed, over }: DtlsOptions): Dtls {
  const { certPem, keyPem, signatureHash } = certificate;
  const transport = {
    type: "udp", address: {}, closed: false,
    onData: (_bytes: Buffer): void => undefined,
    send: (bytes: Buffer): Promise<void> => Promise.resolve(send(bytes)),
    close: (): Promise<void> => Promise.resolve(),
  };
  const socket = new DtlsClient({
    cert: certPem, key: keyPem, signatureHash, transport: transport as never,
    srtpProfiles: [PROFILE], extendedMasterSecret: true,
  });
  const fail = (error: unknown): void =>
    over(error instanceof Error ? error.message : String(error));
  socket.onError.subscribe(fail);
  socket.onClose.subscribe(() => over("the page has ended the encryption"));
  socket.onConnect.once(() => {
    const problem = problemOf(socket, fingerprint);
    if (problem !== null) return over(problem);
    const { localKey, localSalt, remoteKey, remoteSalt } =
      socket.extractSessionKeys(KEY_BYTES, SALT_BYTES);
    agreed({ local: srtpKey(localKey, localSalt), remote: srtpKey(remoteKey, remoteSalt) });
  });
  socket.connect().catch(fail);
  let received = 0;
  return {
    receive: (bytes) => {
      // werift keeps fragments of incomplete messages for ever.
      received += bytes.length;
      if (received > BYTES_MAX) return over("the page sends too much data other than audio");
      try {
        transport.onData(bytes);
      } catch (error) {
        fail(error);
      }
    },
  };
}

const srtpKey = (key: Buffer, salt: Buffer): SrtpKey =>
  ({ suite: "AES_CM_128_HMAC_SHA1_80", key: Buffer.concat([key, salt]), tag: 1 });

/** Why the peer is not the page that made the offer; null when it is. */
function problemOf(socket: DtlsClient, fingerprint: string): string | null {
  const { remoteCertificate: certificate, srtp } = socket;
  if (!certificate) return "there is no certificate";
  if (srtp.srtpProfile !== PROFILE) return "no common encryption (SRTP profile)";
  if (createHash("sha256").update(certificate).digest("hex") !== fingerprint) {
    return "the certificate is not the offer's";
  }
  return holdsItsKey(socket, certificate) ? null : "the certificate's key was not proven";
}

/** Whether the page's half of the key exchange is signed with the key of its certificate. */
function holdsItsKey({ cipher, dtls }: DtlsClient, certificate: Buffer): boolean {
  const exchange = dtls.sortedHandshakeCache
    .find(({ msg_type: type }) => type === SERVER_KEY_EXCHANGE)?.fragment;
  const pointBytes = exchange?.[CURVE_BYTES];
  if (!exchange || pointBytes === undefined) return false;
  const end = CURVE_BYTES + 1 + pointBytes;
  const hash = HASHES[exchange[end] ?? 0];
  if (hash === undefined || exchange.length < end + 4) return false;
  const signature = exchange.subarray(end + 4, end + 4 + exchange.readUInt16BE(end + 2));
  const signed = Buffer.concat([
    cipher.localRandom.serialize(), cipher.remoteRandom.serialize(), exchange.subarray(0, end),
  ]);
  return verify(hash, signed, new X509Certificate(certificate).publicKey, signature);
}
