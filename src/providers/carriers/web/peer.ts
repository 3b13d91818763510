// One page over WebRTC: encrypted Opus packets both ways, from the first successful connectivity
// check until the peer is lost or closed. Every frame sent makes it publish one, as with
// telephones: the call's clock is the only one. Made by peers.ts, which owns the socket.
import { openOpus } from "#audio/opus.ts";
import type { Logger } from "#core/logger.ts";
import type { System, Timer } from "#core/system.ts";
import type { LegQuality } from "#providers/carriers/port.ts";
import { JitterBuffer } from "#providers/carriers/sip/media/jitter-buffer.ts";
import { PacketOrder } from "#providers/carriers/sip/media/packet-order.ts";
import { playoutOf, Reports } from "#providers/carriers/sip/media/reports.ts";
import { parseRtcp } from "#providers/carriers/sip/media/rtcp.ts";
import { parseRtp, RTP_HEADER_BYTES, writeRtpHeader } from "#providers/carriers/sip/media/rtp.ts";
import {
  createSrtpReceiver, createSrtpSender, type SrtpReceiver, type SrtpSender,
} from "#providers/carriers/sip/media/srtp.ts";
import type { SrtpKey } from "#providers/carriers/sip/grammar/sdp.ts";
import type { Pcm } from "#providers/speech/port.ts";
import { beginDtls, type Certificate } from "./dtls.ts";
import type { PageOffer } from "./sdp.ts";
import type { Place } from "./stun.ts";

const RATE = 16_000;
const CLOCK_RATE = 48_000;
const FRAMES_PER_SECOND = 50;
const FRAME_MS = 1000 / FRAMES_PER_SECOND;
/** Interval of our reports: a page that learns of loss from them can add redundancy (FEC). */
const REPORT_MS = 1000;
/** From the offer to the keys. */
const CONNECT_MS = 10_000;
/** Microphones never pause: when nothing has come for this long, by clock and frames, none will. */
const SILENT_MS = 1000;
const SILENT_FRAMES = SILENT_MS / FRAME_MS;

type Opus = Awaited<ReturnType<typeof openOpus>>;
export const openPeerOpus = (): Promise<Opus> => openOpus(RATE);

interface PeerOptions {
  offer: PageOffer;
  certificate: Certificate;
  opus: Opus;
  ssrc: number;
  cname: string;
  transmit(bytes: Buffer, to: Place): void;
  /** Called once per `send` with 20 ms. */
  onAudio(pcm: Pcm): void;
  /** Called once a second with the quality so far, once any packet was sent or received. */
  onQuality(quality: LegQuality): void;
  /** Once; the peer is closed then. */
  onLost(): void;
  system: System;
  log: Logger;
}

interface Keys {
  sender: SrtpSender;
  receiver: SrtpReceiver;
}

export class Peer {
  readonly #options: PeerOptions;
  readonly #jitter = new JitterBuffer(RATE);
  readonly #order: PacketOrder;
  readonly #reports: Reports;
  readonly #deadline: Timer;
  readonly #reporting: Timer;
  #isClosed = false;
  /** The place that the page nominated last; null before the first. */
  #place: Place | null = null;
  #dtls: ReturnType<typeof beginDtls> | null = null;
  #keys: Keys | null = null;
  #sequence: number;
  #timestamp: number;
  #isFirst = true;
  #sent = 0;
  #sentOctets = 0;
  #ssrcIn: number | null = null;
  #heardMs: number;
  #silentFrames = 0;

  constructor(options: PeerOptions) {
    const { system, opus } = options;
    this.#options = options;
    this.#order = new PacketOrder(
      {
        codec: "OPUS", rate: RATE, clockRate: CLOCK_RATE, encode: opus.encode, decode: opus.decode,
        memory: opus, close: opus.close,
      },
      (at, pcm) => this.#jitter.push(at, pcm));
    this.#reports = new Reports(system, options.ssrc, options.cname);
    this.#reports.reception.clockRate = CLOCK_RATE;
    const random = system.randomBytes(6);
    this.#timestamp = random.readUInt32BE(0);
    // It begins in the lower half, so that no SRTP receiver can misjudge the first roll-over.
    this.#sequence = random.readUInt16BE(4) >> 1;
    this.#heardMs = system.monotonicMs();
    this.#deadline = system.after(CONNECT_MS, () => {
      if (!this.#keys) this.#lose("found no network path to the page");
    });
    this.#reporting = system.every(REPORT_MS, () => {
      this.#report();
      if (this.#sent > 0 || this.#ssrcIn !== null) options.onQuality(this.#quality());
    });
  }

  /** The page has nominated this place; it may nominate another later, when its network changes. */
  choose(place: Place): void {
    if (this.#isClosed) return;
    this.#place = place;
    this.#dtls ??= beginDtls({
      certificate: this.#options.certificate,
      fingerprint: this.#options.offer.fingerprint,
      send: (bytes) => this.#transmit(bytes),
      agreed: (keys) => this.#agreed(keys),
      over: (reason) => this.#lose(reason),
    });
  }

  /** Takes bytes from a place that has passed a check with the password. */
  receive(bytes: Buffer): void {
    const [first = 0, second = 0] = bytes;
    if (this.#isClosed) return;
    if (first >= 20 && first <= 63) return this.#dtls?.receive(bytes);
    if (first < 128 || first > 191) return;
    if (second >= 192 && second <= 223) this.#receiveReport(bytes);
    else this.#receiveSound(bytes);
  }

  send(frame: Pcm | null): void {
    if (this.#isClosed) return;
    if (frame) this.#sendFrame(frame);
    this.#options.onAudio(this.#pull());
    const nowMs = this.#options.system.monotonicMs();
    this.#silentFrames += 1;
    if (this.#silentFrames >= SILENT_FRAMES && nowMs - this.#heardMs >= SILENT_MS) {
      this.#lose("the page sends nothing");
    }
  }

  close(): void {
    if (this.#isClosed) return;
    if (this.#sent > 0) this.#report(true);
    this.#isClosed = true;
    this.#deadline.cancel();
    this.#reporting.cancel();
    this.#options.opus.close();
  }

  #lose(reason: string): void {
    if (this.#isClosed) return;
    const { received, lost } = this.#reports.reception;
    this.#options.log.debug({ reason, received, lost }, "a web call's WebRTC connection has ended");
    this.close();
    this.#options.onLost();
  }

  #agreed({ local, remote }: { local: SrtpKey; remote: SrtpKey }): void {
    if (this.#isClosed) return;
    this.#keys = { sender: createSrtpSender(local), receiver: createSrtpReceiver(remote) };
    this.#heardMs = this.#options.system.monotonicMs();
  }

  // Sending

  #transmit(bytes: Buffer): void {
    if (this.#place && !this.#isClosed) this.#options.transmit(bytes, this.#place);
  }

  #sendFrame(frame: Pcm): void {
    const timestamp = this.#timestamp;
    this.#timestamp = (timestamp + CLOCK_RATE / FRAMES_PER_SECOND) >>> 0;
    const { offer: { payloadType }, opus, ssrc } = this.#options;
    if (!this.#keys) return;
    const payload = opus.encode(frame);
    const packet = Buffer.allocUnsafe(RTP_HEADER_BYTES + payload.length);
    packet.set(payload, RTP_HEADER_BYTES);
    writeRtpHeader(packet, {
      payloadType, marker: this.#isFirst, sequence: this.#sequence, timestamp, ssrc,
    });
    this.#isFirst = false;
    this.#sequence = (this.#sequence + 1) & 0xffff;
    this.#sent += 1;
    this.#sentOctets += payload.length;
    this.#transmit(this.#keys.sender.protect(packet));
  }

  #report(isGoodbye = false): void {
    if (!this.#keys || this.#isClosed) return;
    const packet = this.#reports.build(this.#sent === 0
      ? null
      : { timestamp: this.#timestamp, packets: this.#sent, octets: this.#sentOctets }, isGoodbye);
    this.#transmit(this.#keys.sender.protectRtcp(packet));
  }

  // Receiving

  #receiveSound(bytes: Buffer): void {
    const plain = this.#keys?.receiver.unprotect(bytes);
    const packet = plain && parseRtp(plain);
    if (!packet || packet.payloadType !== this.#options.offer.payloadType) return;
    const nowMs = this.#options.system.monotonicMs();
    this.#heardMs = nowMs;
    this.#silentFrames = 0;
    if (packet.ssrc !== this.#ssrcIn) {
      this.#ssrcIn = packet.ssrc;
      this.#reports.streamBegan();
      this.#order.reset();
      this.#jitter.reset();
    }
    this.#reports.reception.push(packet.ssrc, packet.sequence, packet.timestamp, nowMs);
    this.#order.push(packet);
  }

  #receiveReport(bytes: Buffer): void {
    const plain = this.#keys?.receiver.unprotectRtcp(bytes);
    const parts = plain && parseRtcp(plain);
    this.#reports.receive(parts ?? [], this.#ssrcIn);
    for (const part of parts ?? []) {
      const own = part.blocks.find(({ ssrc }) => ssrc === this.#options.ssrc);
      if (own) this.#options.opus.expectLoss(own.fractionLost / 256);
    }
  }

  #quality(): LegQuality {
    const playout = playoutOf({ jitter: this.#jitter, order: this.#order });
    return this.#reports.quality("opus", playout, this.#sent);
  }

  #pull(): Pcm {
    if (this.#jitter.depthMs < FRAME_MS) this.#order.due();
    return this.#jitter.pull();
  }
}
