// A page's end of WebRTC as a program: connectivity checks, encryption and packets, valid or not,
// each sent when a test says so.
import { createHmac, randomBytes, X509Certificate } from "node:crypto";
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { DtlsServer } from "werift";
import { createCertificate, type Certificate } from "#providers/carriers/web/dtls.ts";
import { parseRtp, RTP_HEADER_BYTES, writeRtpHeader } from "#providers/carriers/sip/media/rtp.ts";
import { createSrtpReceiver, createSrtpSender } from "#providers/carriers/sip/media/srtp.ts";
import { OFFERED_FINGERPRINT, pageOffer } from "./offers.ts";

interface Way {
  username: string;
  password: string;
  port: number;
}

interface Keys {
  sender: ReturnType<typeof createSrtpSender>;
  receiver: ReturnType<typeof createSrtpReceiver>;
}

const HOST = "127.0.0.1";
const PAYLOAD_TYPE = 111;
const SSRC = 2_956_898_193;
/** How long something expected may take: a busy machine takes seconds to agree on keys. */
const PATIENCE_MS = 60_000;
/** How long a test waits to see that something does not come. */
export const SHORTLY_MS = 3000;

export const newCertificate = createCertificate;

export function wayOf(answer: string): Way {
  const [, username = ""] = /a=ice-ufrag:(\S+)/.exec(answer) ?? [];
  const [, password = ""] = /a=ice-pwd:(\S+)/.exec(answer) ?? [];
  const [, port] = /a=candidate:1 1 udp \d+ \S+ (\d+)/.exec(answer) ?? [];
  return { username, password, port: Number(port) };
}

/** A connectivity check of a page that nominates this candidate. */
export function checkFor({ username, password }: Way): Buffer {
  const attribute = (type: number, value: Buffer): Buffer => {
    const padded = Buffer.alloc(4 + Math.ceil(value.length / 4) * 4);
    padded.writeUInt16BE(type, 0);
    padded.writeUInt16BE(value.length, 2);
    padded.set(value, 4);
    return padded;
  };
  const body = Buffer.concat([
    attribute(0x0006, Buffer.from(`${username}:page`)), attribute(0x0024, Buffer.from([110, 0, 1, 255])),
    attribute(0x802a, randomBytes(8)), attribute(0x0025, Buffer.alloc(0)),
  ]);
  const head = Buffer.from([0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42, ...randomBytes(12)]);
  head.writeUInt16BE(body.length + 24, 2);
  const signed = Buffer.concat([head, body]);
  return Buffer.concat([
    signed, attribute(0x0008, createHmac("sha1", password).update(signed).digest())]);
}

export class FarPage {
  /** What came in packets, decrypted. */
  readonly sounds: Buffer[] = [];
  answers = 0;
  readonly #certificate: Certificate;
  #socket: Socket;
  #way: Way | null = null;
  #keys: Keys | null = null;
  #dtls: DtlsServer | null = null;
  #sequence = 1000;
  #timestamp = 5000;
  readonly #transport = {
    type: "udp", address: {}, closed: false,
    onData: (_bytes: Buffer): void => undefined,
    send: (bytes: Buffer): Promise<void> => Promise.resolve(this.sendRaw(bytes)),
    close: (): Promise<void> => Promise.resolve(),
  };

  private constructor(socket: Socket, certificate: Certificate) {
    this.#socket = socket;
    this.#certificate = certificate;
    this.#listen();
  }

  static async open(certificate?: Certificate): Promise<FarPage> {
    return new FarPage(await bound(), certificate ?? await createCertificate());
  }

  get offer(): string {
    const { fingerprint256 } = new X509Certificate(this.#certificate.certPem);
    return pageOffer({
      [`a=fingerprint:sha-256 ${OFFERED_FINGERPRINT}`]: `a=fingerprint:sha-256 ${fingerprint256}`,
    });
  }

  get isConnected(): boolean {
    return this.#keys !== null;
  }

  /** Takes the answer and agrees on keys; false: not in time. */
  async connect(answer: string, patienceMs = PATIENCE_MS): Promise<boolean> {
    this.#way = wayOf(answer);
    const { certPem: cert, keyPem: key, signatureHash } = this.#certificate;
    this.#dtls = new DtlsServer({
      cert, key, signatureHash, transport: this.#transport as never, srtpProfiles: [1],
      extendedMasterSecret: true, certificateRequest: true,
    });
    const dtls = this.#dtls;
    dtls.onConnect.once(() => {
      const { localKey, localSalt, remoteKey, remoteSalt } = dtls.extractSessionKeys(16, 14);
      const keyOf = (key: Buffer, salt: Buffer) =>
        ({ suite: "AES_CM_128_HMAC_SHA1_80", key: Buffer.concat([key, salt]), tag: 1 }) as const;
      this.#keys = {
        sender: createSrtpSender(keyOf(localKey, localSalt)),
        receiver: createSrtpReceiver(keyOf(remoteKey, remoteSalt)),
      };
    });
    return this.#until(patienceMs, () => this.isConnected, () => {
      if (this.answers === 0) this.check();
    });
  }

  check(): void {
    if (this.#way) this.sendRaw(checkFor(this.#way));
  }

  sendRaw(bytes: Buffer): void {
    this.#socket.send(bytes, this.#way?.port ?? 0, HOST);
  }

  /** 20 ms of Opus; lost: it is counted and not sent. */
  sendSound(payload: Uint8Array, isLost = false): void {
    const packet = Buffer.alloc(RTP_HEADER_BYTES + payload.length);
    packet.set(payload, RTP_HEADER_BYTES);
    writeRtpHeader(packet, {
      payloadType: PAYLOAD_TYPE, marker: false, sequence: this.#sequence,
      timestamp: this.#timestamp, ssrc: SSRC,
    });
    this.#sequence += 1;
    this.#timestamp += 960;
    const bytes = this.#keys?.sender.protect(packet);
    if (bytes && !isLost) this.sendRaw(bytes);
  }

  /** Changes networks: what is sent comes from another port from now on. */
  async move(): Promise<void> {
    const before = this.#socket;
    this.#socket = await bound();
    this.#listen();
    before.close();
  }

  async answered(before = 0, patienceMs = PATIENCE_MS): Promise<boolean> {
    return this.#until(patienceMs, () => this.answers > before);
  }

  close(): void {
    this.#socket.close();
  }

  async #until(
    patienceMs: number, holds: () => boolean, meanwhile: () => void = () => undefined,
  ): Promise<boolean> {
    const endMs = performance.now() + patienceMs;
    while (!holds() && performance.now() < endMs) {
      meanwhile();
      await delay(20);
    }
    return holds();
  }

  #listen(): void {
    this.#socket.on("message", (bytes) => {
      const [first = 0, second = 0] = bytes;
      if (first <= 3) this.answers += 1;
      else if (first < 64) this.#transport.onData(bytes);
      else if (second < 192 || second > 223) {
        const plain = this.#keys?.receiver.unprotect(bytes);
        const packet = plain && parseRtp(plain);
        if (packet) this.sounds.push(Buffer.from(packet.payload));
      }
    });
  }
}

async function bound(): Promise<Socket> {
  const socket = createSocket("udp4");
  socket.bind(0, HOST);
  await once(socket, "listening");
  return socket;
}
