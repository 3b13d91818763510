// The media of one call: a pair of UDP sockets, the packets sent every 20 ms and those received,
// DTMF, RTCP and SRTP. The SIP carrier makes one for each leg, in the media thread. `send` is the
// clock of both directions (jitter-buffer.ts says why); the only timer checks once a second whether
// a report is due and whether the far end is still there.
import type { RemoteInfo, Socket } from "node:dgram";
import { isIP } from "node:net";
import type { Logger } from "#core/logger.ts";
import { mayBeTelephone } from "#core/networks.ts";
import type { Timer } from "#core/system.ts";
import type { LegQuality } from "#providers/carriers/port.ts";
import { createFrameResampler, type Resampler } from "#audio/resampler.ts";
import type { Codec } from "#providers/carriers/sip/grammar/codec-names.ts";
import { openCoders, type Coder } from "./codecs.ts";
import { JitterBuffer } from "./jitter-buffer.ts";
import { KeysIn } from "./keys-in.ts";
import { isSame, Latch, type Place } from "./latch.ts";
import { PacketOrder } from "./packet-order.ts";
import { forSocket, plainHost, type MayReach } from "#providers/carriers/sip/transport/peer.ts";
import { NO_PLAYOUT, playoutOf, Reports } from "./reports.ts";
import { parseRtcp } from "./rtcp.ts";
import { parseRtp, RTP_HEADER_BYTES, writeRtpHeader, type RtpPacket } from "./rtp.ts";
import { openPair, type PairOptions } from "./rtp-sockets.ts";
import type { Agreed, SrtpKey } from "#providers/carriers/sip/grammar/sdp.ts";
import {
  createSrtpReceiver, createSrtpSender, type SrtpReceiver, type SrtpSender,
} from "./srtp.ts";
import {
  DtmfSender, dtmfTone, EVENT_BYTES, writeTelephoneEvent, type DtmfFrame,
} from "./telephone-event.ts";

export interface RtpSessionOptions extends PairOptions {
  log: Logger;
  /** Samples per second of the PCM sent and received, whatever the codec. */
  rate: number;
  /** The codecs that may be agreed on. */
  codecs: readonly Codec[];
  /** Whether audio may be sent to the IP address; asked about every address packets come from. */
  mayReach: MayReach;
  /** Called once per `send` with 20 ms to keep; gaps are concealed for 60 ms, then silent. */
  onAudio(pcm: Int16Array): void;
  /** Once per key, at its beginning. */
  onDtmf(digit: string): void;
  /** False when nothing has come for 5 s while not on hold; true when something comes again. */
  onSound(isComing: boolean): void;
  /** Called once when nothing has come for 60 s while not on hold; rearmed when something comes. */
  onTimeout(silentMs: number): void;
}

export interface RtpSession {
  /** The port of RTP, even; RTCP has the next one. */
  readonly port: number;
  /** Called with the first agreement and after each re-INVITE; `remote` is an address. */
  agree(agreed: Agreed): void;
  /** 20 ms, every 20 ms; the array is not kept. */
  send(pcm: Int16Array): void;
  sendDtmf(digits: string): void;
  /** Takes a key that came in a SIP INFO message. */
  receiveInfoKey(digit: string): void;
  /** Counts both directions; null before a codec is agreed on. */
  quality(): LegQuality | null;
  /** How long nothing has come; null while that is less than the 5 s of `onSound`. */
  silentMs(): number | null;
  /** Idempotent. */
  close(): void;
}

const FRAMES_PER_SECOND = 50;
const FRAME_MS = 1000 / FRAMES_PER_SECOND;
const COMFORT_NOISE = 13;
const CHECK_MS = 1000;
const SILENT_MS = 5000;
const TIMEOUT_MS = 60_000;
const REPORT_MS = 5000;

/** Opens the two sockets; rejects when there is no pair of ports. */
export async function openRtpSession(options: RtpSessionOptions): Promise<RtpSession> {
  const sockets = await openPair(options);
  return new Session(options, sockets, await openCoders(options.codecs));
}

/** The parts that belong to the codec agreed on. */
interface Line {
  coder: Coder;
  jitter: JitterBuffer;
  order: PacketOrder;
  toCoder: Resampler;
  fromCoder: Resampler;
}

function lineOf(coder: Coder, rate: number): Line {
  const jitter = new JitterBuffer(coder.rate);
  return {
    coder,
    jitter,
    order: new PacketOrder(coder, (at, pcm) => jitter.push(at, pcm)),
    toCoder: createFrameResampler(rate, coder.rate),
    fromCoder: createFrameResampler(coder.rate, rate),
  };
}

class Session implements RtpSession {
  readonly port: number;
  readonly #options: RtpSessionOptions;
  readonly #rtp: Socket;
  readonly #rtcp: Socket;
  readonly #timer: Timer;
  readonly #latch: Latch;
  readonly #coders: readonly Coder[];
  readonly #silence: Int16Array;
  readonly #reports: Reports;
  readonly #keysIn: KeysIn;
  readonly #keysOut = new DtmfSender();
  readonly #ssrc: number;
  #agreed: Agreed | null = null;
  #line: Line | null = null;
  /** With the codecs before this one. */
  #playedBefore = NO_PLAYOUT;
  #sender: { key: SrtpKey; srtp: SrtpSender } | null = null;
  #receiver: { key: SrtpKey; srtp: SrtpReceiver } | null = null;
  #isClosed = false;
  #sequence: number;
  #timestamp: number;
  #keyTimestamp = 0;
  /** The next packet of audio is the first after a pause. */
  #isFirst = true;
  #sent = 0;
  #sentOctets = 0;
  #streamIn: number | null = null;
  #nextStreamIn: number | null = null;
  #lastMs = 0;
  #isSilent = false;
  #isTimedOut = false;
  #reportAtMs: number;
  #reportFrom: Place | null = null;

  constructor(
    options: RtpSessionOptions, { rtp, rtcp }: { rtp: Socket; rtcp: Socket }, coders: Coder[],
  ) {
    const { system } = options;
    this.#options = options;
    this.#coders = coders;
    this.#silence = new Int16Array(options.rate / FRAMES_PER_SECOND);
    this.#rtp = rtp;
    this.#rtcp = rtcp;
    this.port = rtp.address().port;
    this.#latch = new Latch(
      ({ address, port }) => isPlace(address, port) && options.mayReach(address));
    const { rate } = options;
    this.#keysIn = new KeysIn({ rate, system, onKey: (digit) => options.onDtmf(digit) });
    const random = system.randomBytes(10);
    this.#ssrc = random.readUInt32BE(0);
    this.#timestamp = random.readUInt32BE(4);
    // It begins in the lower half, so that no SRTP receiver can misjudge the first roll-over.
    this.#sequence = random.readUInt16BE(8) >> 1;
    this.#reports = new Reports(system, this.#ssrc);
    this.#reportAtMs = this.#nextReportMs();
    rtp.on("message", (bytes, from) => this.#received(bytes, placeOf(from)));
    rtcp.on("message", (bytes, from) => this.#reported(bytes, placeOf(from)));
    for (const socket of [rtp, rtcp]) {
      socket.on("error", (error) => options.log.warn({ err: error }, "a call's media socket failed"));
    }
    this.#timer = system.every(CHECK_MS, () => this.#check());
  }

  agree(agreed: Agreed): void {
    if (this.#isClosed) return;
    const { remote, srtp } = agreed;
    if (agreed.isHeld !== this.#agreed?.isHeld) this.#line?.order.reset();
    this.#agreed = agreed;
    if (this.#line?.coder.codec !== agreed.codec) this.#change(agreed.codec);
    this.#latch.name(
      isPlace(remote.host, remote.port) ? { address: remote.host, port: remote.port } : null);
    // A key that has not changed keeps its roll-over counter and replay window.
    if (!srtp) this.#sender = this.#receiver = null;
    else {
      if (!isSameKey(this.#sender?.key, srtp.local)) {
        this.#sender = { key: srtp.local, srtp: createSrtpSender(srtp.local) };
      }
      if (!isSameKey(this.#receiver?.key, srtp.remote)) {
        this.#receiver = { key: srtp.remote, srtp: createSrtpReceiver(srtp.remote) };
      }
    }
    this.#keysIn.agree({ hasEvents: agreed.telephoneEvent !== null });
    this.#alive();
  }

  send(pcm: Int16Array): void {
    if (this.#isClosed) return;
    this.#sendFrame(pcm);
    this.#options.onAudio(this.#pull());
  }

  sendDtmf(digits: string): void {
    this.#keysOut.add(digits);
  }

  receiveInfoKey(digit: string): void {
    this.#keysIn.receiveMessage(digit);
  }

  quality(): LegQuality | null {
    const line = this.#line;
    if (!line) return null;
    const codec = line.coder.codec.toLowerCase();
    return this.#reports.quality(codec, playoutOf(line, this.#playedBefore), this.#sent);
  }

  silentMs(): number | null {
    return this.#isSilent ? this.#options.system.monotonicMs() - this.#lastMs : null;
  }

  close(): void {
    if (this.#isClosed) return;
    if (this.#sent > 0) this.#report(true);
    this.#isClosed = true;
    this.#timer.cancel();
    this.#rtp.close();
    this.#rtcp.close();
    for (const coder of this.#coders) coder.close();
  }

  /** Another codec has another clock, so nothing buffered before can be played on. */
  #change(codec: Codec): void {
    const coder = this.#coders.find((one) => one.codec === codec);
    if (!coder) throw new Error(`${codec} was agreed on and never offered`);
    if (this.#line) this.#playedBefore = playoutOf(this.#line, this.#playedBefore);
    this.#line = lineOf(coder, this.#options.rate);
    this.#reports.reception.clockRate = this.#latch.clockRate = coder.clockRate;
  }

  // Sending

  #sendFrame(pcm: Int16Array): void {
    const line = this.#line;
    const timestamp = this.#timestamp;
    this.#timestamp = (timestamp + (line?.coder.clockRate ?? 0) / FRAMES_PER_SECOND) >>> 0;
    const agreed = this.#agreed;
    const to = this.#target();
    if (!agreed || !line || !to || agreed.isHeld) {
      this.#isFirst = true;
      return;
    }
    const key = this.#keysOut.next();
    if (key && agreed.telephoneEvent !== null) {
      return this.#sendKey(key, agreed, timestamp, to);
    }
    const { rate } = this.#options;
    if (key?.isTone) this.#keysIn.toneSent();
    const frame = !key ? pcm : key.isTone ? dtmfTone(key, rate) : this.#silence;
    const payload = line.coder.encode(line.toCoder.process(frame));
    const packet = Buffer.allocUnsafe(RTP_HEADER_BYTES + payload.length);
    packet.set(payload, RTP_HEADER_BYTES);
    this.#sendPacket(packet, agreed.payloadType, this.#isFirst, timestamp, to);
    this.#isFirst = false;
  }

  #sendKey(
    key: DtmfFrame, { telephoneEvent, eventRate }: Agreed, timestamp: number, to: Place,
  ): void {
    if (key.isFirst) this.#keyTimestamp = timestamp;
    this.#isFirst = true;
    if (!key.event || telephoneEvent === null) return;
    const packet = Buffer.allocUnsafe(RTP_HEADER_BYTES + EVENT_BYTES);
    writeTelephoneEvent(packet, RTP_HEADER_BYTES, key.event, eventRate);
    this.#sendPacket(packet, telephoneEvent, key.isFirst, this.#keyTimestamp, to);
  }

  #sendPacket(
    packet: Buffer, payloadType: number, marker: boolean, timestamp: number, to: Place,
  ): void {
    writeRtpHeader(packet, {
      payloadType, marker, sequence: this.#sequence, timestamp, ssrc: this.#ssrc,
    });
    this.#sequence = (this.#sequence + 1) & 0xffff;
    this.#sent += 1;
    this.#sentOctets += packet.length - RTP_HEADER_BYTES;
    const bytes = this.#sender ? this.#sender.srtp.protect(packet) : packet;
    this.#rtp.send(bytes, to.port, forSocket(this.#options.host, to.address));
  }

  #target(): Place | null {
    if (this.#latch.current) return this.#latch.current;
    const remote = this.#agreed?.remote;
    return remote && isPlace(remote.host, remote.port)
      ? { address: remote.host, port: remote.port }
      : null;
  }

  // Receiving

  #received(bytes: Buffer, from: Place): void {
    const agreed = this.#agreed;
    const nowMs = this.#options.system.monotonicMs();
    // A forged source port of 0 could not be answered.
    if (!agreed || this.#isClosed || from.port === 0) return;
    if (!this.#latch.mayBe(from, nowMs)) return;
    const plain = this.#receiver ? this.#receiver.srtp.unprotect(bytes) : bytes;
    const packet = plain && parseRtp(plain);
    if (!packet) return;
    const kind = kindOf(packet.payloadType, agreed);
    if (!kind) return;
    const before = this.#latch.current;
    if (!this.#latch.believes(from, packet, nowMs)) return;
    // Another place with the same stream is the same far end behind another address.
    const hasMoved = !before || !isSame(before, from);
    if (hasMoved && packet.ssrc !== this.#streamIn) this.#streamIn = null;
    this.#alive();
    if (kind === "key") {
      if (packet.ssrc === this.#streamIn) this.#count(packet, null, nowMs);
      return this.#keysIn.receiveEvent(packet.timestamp, packet.payload);
    }
    if (!this.#isOfStream(packet.ssrc)) return;
    const isNew = this.#count(packet, kind === "audio" ? packet.timestamp : null, nowMs);
    // Audio that comes while the call is on hold (music, say) is not meant for us.
    if (!isNew || kind === "noise" || agreed.isHeld) return;
    this.#line?.order.push(packet);
  }

  #pull(): Int16Array {
    const line = this.#line;
    if (!line) return this.#silence.slice();
    if (line.jitter.depthMs < FRAME_MS) line.order.due();
    return this.#keysIn.receiveSound(line.fromCoder.process(line.jitter.pull()));
  }

  /** A new stream (a transfer at the far end) counts from its second packet: one may be a stray. */
  #isOfStream(ssrc: number): boolean {
    if (ssrc === this.#streamIn) {
      this.#nextStreamIn = null;
      return true;
    }
    if (this.#streamIn !== null && ssrc !== this.#nextStreamIn) {
      this.#nextStreamIn = ssrc;
      return false;
    }
    this.#streamIn = ssrc;
    this.#nextStreamIn = null;
    this.#reports.streamBegan();
    this.#line?.order.reset();
    this.#line?.jitter.reset();
    return true;
  }

  #count({ ssrc, sequence }: RtpPacket, timestamp: number | null, nowMs: number): boolean {
    return this.#reports.reception.push(ssrc, sequence, timestamp, nowMs);
  }

  #alive(): void {
    this.#lastMs = this.#options.system.monotonicMs();
    this.#isTimedOut = false;
    if (!this.#isSilent) return;
    this.#isSilent = false;
    this.#options.onSound(true);
  }

  // Once a second

  #check(): void {
    const { system, onSound, onTimeout } = this.#options;
    const nowMs = system.monotonicMs();
    if (nowMs >= this.#reportAtMs) {
      this.#reportAtMs = this.#nextReportMs();
      this.#report(false);
    }
    if (!this.#agreed || this.#isTimedOut) return;
    if (this.#agreed.isHeld) this.#lastMs = nowMs;
    const silentMs = nowMs - this.#lastMs;
    if (silentMs >= SILENT_MS && !this.#isSilent) {
      this.#isSilent = true;
      onSound(false);
    }
    if (silentMs < TIMEOUT_MS) return;
    this.#isTimedOut = true;
    onTimeout(silentMs);
  }

  // Reports

  /** Between half and one and a half times the interval, so that calls do not report in step. */
  #nextReportMs(): number {
    const { system } = this.#options;
    const share = system.randomBytes(2).readUInt16BE(0) / 0x1_0000;
    return system.monotonicMs() + REPORT_MS * (0.5 + share);
  }

  #report(isGoodbye: boolean): void {
    const to = this.#reportTarget();
    if (!to || (this.#sent === 0 && this.#streamIn === null)) return;
    const packet = this.#reports.build(this.#sent === 0
      ? null
      : { timestamp: this.#timestamp, packets: this.#sent, octets: this.#sentOctets }, isGoodbye);
    const bytes = this.#sender ? this.#sender.srtp.protectRtcp(packet) : packet;
    this.#rtcp.send(bytes, to.port, forSocket(this.#options.host, to.address));
  }

  #reportTarget(): Place | null {
    const target = this.#target();
    const remote = this.#agreed?.remote;
    if (!target || !remote) return null;
    if (this.#reportFrom?.address === target.address) return this.#reportFrom;
    const isNamed = target.address === remote.host && target.port === remote.port;
    const named = isNamed ? remote.rtcpPort : null;
    const port = named !== null && mayBeTelephone(named) ? named : target.port + 1;
    return isPlace(target.address, port) ? { address: target.address, port } : null;
  }

  #reported(bytes: Buffer, from: Place): void {
    if (this.#isClosed || from.port === 0) return;
    if (this.#target()?.address !== from.address) return;
    const plain = this.#receiver ? this.#receiver.srtp.unprotectRtcp(bytes) : bytes;
    const parts = plain && parseRtcp(plain);
    if (!parts) return;
    if (isPlace(from.address, from.port)) this.#reportFrom = from;
    // A far end that sends no audio during silence still sends reports.
    this.#alive();
    this.#reports.receive(parts, this.#streamIn);
  }
}

function kindOf(payloadType: number, agreed: Agreed): "audio" | "key" | "noise" | null {
  if (payloadType === agreed.payloadType) return "audio";
  if (payloadType === agreed.telephoneEvent) return "key";
  if (payloadType === COMFORT_NOISE || payloadType === agreed.comfortNoise) return "noise";
  if (payloadType === agreed.offered?.payloadType) return "audio";
  const isKey = agreed.telephoneEvent !== null && payloadType === agreed.offered?.telephoneEvent;
  return isKey ? "key" : null;
}

/** An IPv4-mapped IPv6 address becomes plain IPv4. */
const placeOf = ({ address, port }: RemoteInfo): Place =>
  ({ address: address.startsWith("::ffff:") ? plainHost(address) : address, port });

const isSameKey = (one: SrtpKey | undefined, other: SrtpKey): boolean =>
  one !== undefined && one.suite === other.suite && one.key.equals(other.key);

const isPlace = (address: string, port: number): boolean =>
  isIP(address) !== 0 && address !== "0.0.0.0" && address !== "::" && mayBeTelephone(port);
