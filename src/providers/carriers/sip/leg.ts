// One SIP call as the voice session sees it: joins its signalling and its media. Made by sip.ts,
// for calls we place and calls we answer.
import { isIP } from "node:net";
import type { Logger } from "#core/logger.ts";
import type { System, Timer } from "#core/system.ts";
import type { Pcm } from "#providers/speech/port.ts";
import type { Leg, LegEndCause, LegEvent, LegQuality } from "#providers/carriers/port.ts";
import type { Dialog, DialogEvents } from "./dialogs/call-types.ts";
import { isAddress, isBehindNat, mayLeadTo, plainHost, type MayReach } from "./transport/peer.ts";
import type { Names } from "./trunks/trunk-roster.ts";
import type { Codec } from "./grammar/codec-names.ts";
import { openRtpSession, type RtpSession } from "./media/rtp-session.ts";
import {
  buildAnswer, buildOffer, masterBytesOf, parseSdp, readAnswer, SUITES, type Agreed,
  type LocalMedia, type SrtpKey,
} from "./grammar/sdp.ts";

export interface LegOptions {
  rate: Leg["rate"];
  publish(event: LegEvent): void;
  rtp: { host: string; ports: { min: number; max: number } | null };
  mayReach: MayReach;
  names: Pick<Names, "addresses">;
  system: System;
  log: Logger;
}

interface LegPlace {
  /** Our address as the far end reaches it. */
  host: string;
  /** The far end's host, until there is a dialog. */
  peerHost: string;
  /** The domain of transfer targets that are not full addresses. */
  domain: string;
  isEncrypted: boolean;
  /** Unencrypted audio is never accepted, not even when the far end asks for it later. */
  requiresSrtp: boolean;
  /** Best first. */
  codecs: readonly Codec[];
}

/** Why a call we placed failed. */
interface Failure {
  status: number;
  /** The cause in Q.850, where a gateway gave it. */
  q850: number | null;
}

/** After this time a transfer whose outcome nobody has reported has failed. */
const TRANSFER_MS = 45_000;
const NOT_ACCEPTABLE = 488;
/** Names in the far end's SDP that are resolved in one call. */
const NAMES_MAX = 4;
const NO_ACK = "the caller did not acknowledge the answer (ACK)";
const NO_REFRESH = "the other side did not refresh the session or stopped answering";
const NO_CODEC = "488 no codec in common";
const NO_ANSWER = "the caller requested an SDP offer and did not answer it";
const NO_SRTP = "488 the answer has no keys for encrypted audio (SRTP)";
/** Declined, unwanted (RFC 8197), and stopped by a filter on the way (RFC 8688). */
const REJECTED = new Set([603, 607, 608]);

/** The Q.850 cause takes precedence, because gateways map it to a status only approximately. */
function causeOf({ status, q850 }: Failure, hasRung: boolean): LegEndCause {
  if (q850 === 17 || status === 486 || status === 600) return "busy";
  if (q850 === 21 || REJECTED.has(status)) return "rejected";
  if (q850 === 18 || q850 === 19 || status === 480) return "no_answer";
  // A proxy ended the ringing because it took too long.
  if (hasRung && (status === 408 || status === 487)) return "no_answer";
  return "failed";
}

export class SipLeg implements Leg {
  readonly rate: Leg["rate"];
  readonly transfer = (to: string): void => this.#refer(to);
  readonly #options: LegOptions;
  #rtp: RtpSession | null = null;
  #local: LocalMedia | null = null;
  #domain = "";
  #peerHost = "";
  #dialog: Dialog | null = null;
  #isOver = false;
  #hasRung = false;
  #isAnswered = false;
  #isHeld = false;
  /** Telephone events were agreed on, or nothing is agreed on yet. */
  #hasEvents = true;
  #latest: Agreed | null = null;
  /** Where the far end says it is and audio may not go, with the packets that had come by then. */
  #elsewhere: { address: string; packets: number } | null = null;
  /** Keyed by the name in the far end's SDP; empty until it is resolved. */
  readonly #addresses = new Map<string, string>();
  /** Times out a transfer whose outcome nobody reports. */
  #transferring: Timer | null = null;
  /** Ends the call while there is no dialog yet. */
  #giveUp: (() => void) | null = null;

  constructor(options: LegOptions) {
    this.#options = options;
    this.rate = options.rate;
  }

  send(frame: Pcm): void {
    if (this.#isAnswered) this.#rtp?.send(frame);
  }

  clear(): void {
    // Frames are sent as they come, so nothing is queued that could be dropped.
    this.#options.publish({ kind: "cleared", droppedMs: 0 });
  }

  sendDtmf(digits: string): void {
    if (!this.#hasEvents && this.#dialog?.press(digits)) return;
    this.#rtp?.sendDtmf(digits);
  }

  hangUp(): void {
    this.end("we_hung_up");
  }

  quality(): LegQuality | null {
    return this.#rtp?.quality() ?? null;
  }

  /** Opens the media. False: the leg is over meanwhile. */
  async open(place: LegPlace): Promise<boolean> {
    const { host, peerHost, domain, isEncrypted, requiresSrtp, codecs } = place;
    const { rtp, mayReach, system, log } = this.#options;
    this.#domain = domain;
    this.#peerHost = peerHost;
    const session = await openRtpSession({
      ...rtp,
      system,
      log,
      rate: this.rate,
      codecs,
      mayReach: (address) => plainHost(address) === plainHost(this.#peerHost) || mayReach(address),
      onAudio: (pcm) => this.#publish({ kind: "audio", pcm }),
      onDtmf: (digit) => this.#publish({ kind: "dtmf", digit }),
      onSound: (isComing) => {
        if (!isComing) this.#warnOfSilence();
        this.#publish({ kind: "sound", isComing });
      },
      // The telephone vanished without a BYE.
      onTimeout: (silentMs) => this.end("media_timeout", undefined, silentMs),
    });
    if (this.#isOver) {
      session.close();
      return false;
    }
    this.#rtp = session;
    this.#local = {
      host, port: session.port, sessionId: String(system.now()), version: 1,
      direction: "sendrecv", codecs,
      crypto: isEncrypted || requiresSrtp ? newKeys(system) : null,
      requiresSrtp,
    };
    return true;
  }

  /** The SDP to offer; only after `open`. `host`: our address as this peer sees it. */
  offer(host = this.#opened().host): string {
    this.#local = { ...this.#opened(), host };
    return buildOffer(this.#local);
  }

  /** The same offer without keys, for a far end that has no SRTP. */
  offerInClear(host: string): string {
    this.#local = { ...this.#opened(), crypto: null };
    return this.offer(host);
  }

  /** The answer to an offer, null when nothing is in common; without an offer, our own offer. */
  answer(sdp: string | null): string | null {
    if (sdp === null) return this.offer();
    const offered = parseSdp(sdp);
    if (!offered) return null;
    const { profile, crypto: theirs } = offered.audio;
    const local = this.#opened();
    // SRTP is accepted when offered, whichever transport the signalling uses.
    const needsKeys = theirs.length > 0 && local.crypto === null;
    const ready = needsKeys ? { ...local, crypto: newKeys(this.#options.system) } : local;
    const answered = buildAnswer(offered, ready);
    if (!answered) return null;
    this.#local = { ...ready, crypto: keysFrom(answered.agreed, ready), profile };
    this.#agreed(answered.agreed);
    return answered.sdp;
  }

  /** Applies their answer to our offer; returns why it cannot be used, or null. */
  agree(sdp: string): string | null {
    const answer = parseSdp(sdp);
    const local = this.#opened();
    const agreed = answer && readAnswer(answer, local);
    if (agreed) {
      if (!agreed.srtp) this.#local = { ...local, crypto: null };
      this.#agreed(agreed);
    } else if (answer && local.crypto && answer.audio.crypto.length === 0) return NO_SRTP;
    return agreed ? null : NO_CODEC;
  }

  /** Why an ACK without SDP fails the call; null when media is already agreed on. */
  #whyNothingAgreed(): string | null {
    if (this.quality()) return null;
    return this.#opened().crypto ? `${NO_ANSWER}, which allowed SRTP only` : NO_ANSWER;
  }

  /** A call we placed was not answered. */
  failed(failure: Failure, detail: string): void {
    this.end(causeOf(failure, this.#hasRung), detail);
  }

  /** Sets what ends the call while it has no dialog. */
  onGivenUp(giveUp: () => void): void {
    this.#giveUp = giveUp;
  }

  ringing(): void {
    if (this.#hasRung) return;
    this.#hasRung = true;
    this.#publish({ kind: "ringing" });
  }

  /** Takes the dialog, which carries the call from now on. */
  join(dialog: Dialog): void {
    this.#dialog = dialog;
    this.#peerHost = dialog.peerHost;
    this.#giveUp = null;
    dialog.setEvents(this.#dialogEvents());
    if (this.#isOver) dialog.bye();
  }

  /** Both ends know that they are connected. */
  answered(): void {
    if (this.#isAnswered) return;
    this.#isAnswered = true;
    this.#publish({ kind: "answered" });
    if (this.#isHeld) this.#publish({ kind: "held", isHeld: true });
  }

  /** Idempotent. */
  end(cause: LegEndCause, detail?: string, silentMs?: number): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#transferring?.cancel();
    this.#rtp?.close();
    this.#dialog?.bye();
    this.#giveUp?.();
    this.#options.publish({
      kind: "ended", cause,
      ...(detail === undefined ? {} : { detail }), ...(silentMs === undefined ? {} : { silentMs }),
    });
  }

  #agreed(agreed: Agreed): void {
    this.#hasEvents = agreed.telephoneEvent !== null;
    this.#latest = agreed;
    this.#lead(agreed);
    if (agreed.isHeld === this.#isHeld) return;
    this.#isHeld = agreed.isHeld;
    if (this.#isAnswered) this.#publish({ kind: "held", isHeld: agreed.isHeld });
  }

  /** Sends audio to the address agreed on, or else to where the signalling comes from. */
  #lead(agreed: Agreed): void {
    const { remote } = agreed;
    const address = isAddress(remote.host) ? remote.host : this.#addressOf(remote.host);
    const isAllowed = address !== "" && mayLeadTo(address, this.#peerHost, this.#options.mayReach);
    if (isAllowed || address === "") this.#elsewhere = null;
    // A refresh names the same address again.
    else if (this.#elsewhere?.address !== address) {
      this.#elsewhere = { address, packets: this.#packets() };
    }
    const host = plainHost(isAllowed ? address : this.#peerHost);
    this.#rtp?.agree({ ...agreed, remote: { ...remote, host } });
  }

  #packets(): number {
    return this.quality()?.packetsReceived ?? 0;
  }

  /**
   * A call that nobody hears looks like any other otherwise. Behind NAT, even within a private
   * network, audio comes from an address that the SDP does not name: such a call is heard.
   */
  #warnOfSilence(): void {
    const { address, packets } = this.#elsewhere ?? {};
    if (address === undefined || this.#packets() !== packets) return;
    if (isBehindNat(address, this.#peerHost)) return;
    this.#elsewhere = { address, packets: -1 };
    this.#options.log.warn({ address, source: this.#peerHost },
      "nothing is heard of a call whose audio is at an address this server may not send to: a private network can be allowed with PARLEY_ALLOW_PRIVATE_NETWORKS");
  }

  /** Empty for a name that is not resolved; the audio is led there as soon as it is. */
  #addressOf(name: string): string {
    const known = this.#addresses.get(name);
    if (known === undefined && this.#addresses.size < NAMES_MAX) {
      this.#addresses.set(name, "");
      void this.#resolve(name);
    }
    return known ?? "";
  }

  async #resolve(name: string): Promise<void> {
    const { names, log } = this.#options;
    const found = await names.addresses(name).catch((error: unknown) => {
      log.info({ cause: String(error) }, "a name in the SDP of a call cannot be resolved");
      return [];
    });
    const family = isIP(this.#opened().host);
    const address = found.find((one) => isIP(one) === family);
    if (address === undefined) return;
    this.#addresses.set(name, address);
    if (this.#latest?.remote.host === name) this.#lead(this.#latest);
  }

  #publish(event: LegEvent): void {
    if (!this.#isOver) this.#options.publish(event);
  }

  #opened(): LocalMedia {
    if (!this.#local) throw new Error("the media of the call is not open");
    return this.#local;
  }

  #dialogEvents(): DialogEvents {
    return {
      confirmed: (sdp) => {
        const why = sdp === null ? this.#whyNothingAgreed() : this.agree(sdp);
        if (why !== null) return this.end("failed", why);
        this.answered();
      },
      reinvite: (sdp) => {
        this.#local = { ...this.#opened(), version: this.#opened().version + 1 };
        return this.answer(sdp) ?? NOT_ACCEPTABLE;
      },
      refreshed: (sdp) => {
        const why = this.agree(sdp);
        if (why !== null) this.#options.log.warn({ why }, "a refresh of a SIP session changes nothing");
      },
      info: (digit) => this.#rtp?.receiveInfoKey(digit),
      referred: (status) => {
        if (status >= 200 && status < 300) this.end("transferred");
        else if (status >= 300) this.#notTransferred(status);
      },
      // The far end may send BYE for a transferred call without reporting the outcome first.
      ended: ({ by }) => {
        if (by === "timeout") return this.#lost();
        if (by === "us") return this.end("we_hung_up");
        this.end(this.#transferring === null ? "far_hung_up" : "transferred");
      },
    };
  }

  /** The far end no longer responds; its audio may have ended before. */
  #lost(): void {
    const silentMs = this.#rtp?.silentMs() ?? undefined;
    this.end("failed", this.#isAnswered ? NO_REFRESH : NO_ACK, silentMs);
  }

  #refer(to: string): void {
    const uri = /^sips?:/i.test(to) ? to : `sip:${to}@${this.#domain}`;
    this.#transferring?.cancel();
    this.#transferring = this.#options.system.after(TRANSFER_MS, () => this.#notTransferred(null));
    this.#dialog?.refer(uri);
  }

  #notTransferred(status: number | null): void {
    if (this.#transferring === null) return;
    this.#transferring.cancel();
    this.#transferring = null;
    this.#options.log.warn({ status }, "a transfer failed");
    const detail = status === null
      ? `The other side reported no result within ${TRANSFER_MS / 1000} seconds.`
      : `The other side answered ${status}.`;
    this.#publish({ kind: "transfer_failed", detail });
  }
}

/** The keys for later offers: none when none were agreed on, else the agreed one keeps its tag. */
function keysFrom({ srtp }: Agreed, { crypto }: LocalMedia): SrtpKey[] | null {
  if (!srtp) return null;
  const others = (crypto ?? []).filter(({ suite }) => suite !== srtp.local.suite);
  return [srtp.local, ...others.map((key, index) => ({ ...key, tag: srtp.local.tag + 1 + index }))];
}

const newKeys = (system: System): SrtpKey[] => SUITES.map((suite, index) =>
  ({ suite, key: system.randomBytes(masterBytesOf(suite)), tag: index + 1 }));
