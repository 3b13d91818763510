// The SIP carrier: telephone calls through the accounts' trunks, in this process, without a media
// server. Runs in the media thread. The signalling is in user-agent.ts and below, the media in
// rtp-session.ts; leg.ts joins both.
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { loadOpus } from "#audio/opus.ts";
import { LIMITS } from "#core/limits.ts";
import { createRateLimiter } from "#core/rate-limit.ts";
import { createFailedAuthentications } from "#core/failed-authentications.ts";
import type { Logger } from "#core/logger.ts";
import type { System } from "#core/system.ts";
import type { Carrier, DialRequest, Leg, Offer, RefusalCause } from "#providers/carriers/port.ts";
import { sdpOf } from "./grammar/bodies.ts";
import { createDigestServer } from "./grammar/digest.ts";
import { calledNumber, callerNumber, identify } from "./trunks/identify.ts";
import { SipLeg, type LegOptions } from "./leg.ts";
import { parseNameAddr } from "./grammar/headers.ts";
import { plainHost, uriHost, type Peer } from "./transport/peer.ts";
import { codecsOf, NARROWBAND, type Codec } from "./grammar/codec-names.ts";
import { codecFor, parseSdp } from "./grammar/sdp.ts";
import { openCoders } from "./media/codecs.ts";
import { createSystemNames } from "./trunks/srv.ts";
import { identityOf, routeTo, TrunkRoster, type Names } from "./trunks/trunk-roster.ts";
import { rateOfCodec, type SipListener, type TrunkSetup } from "./trunks/trunk.ts";
import { parseUri } from "./grammar/uri.ts";
import type { Proof } from "./dialogs/authentication.ts";
import type { IncomingInvite } from "./dialogs/call-types.ts";
import { createUserAgent, type UserAgent } from "./dialogs/user-agent.ts";

interface SipCarrierOptions extends SipListener {
  mayReach(address: string): boolean;
  /** Receives an incoming call, which rings until it is answered or refused. */
  onOffer(offer: Offer): void;
  names?: Names;
  system: System;
  log: Logger;
}

export interface SipCarrier extends Carrier {
  readonly inbound: NonNullable<Carrier["inbound"]>;
  readonly port: number;
  readonly tlsPort: number | null;
  setTrunks(trunks: readonly TrunkSetup[]): void;
  /** Sets whether one more call would be taken. */
  setRoom(hasRoom: boolean): void;
  /** Hangs up and unregisters, waiting a bounded time. */
  close(): Promise<void>;
}

const REALM = "parley";
const USER_AGENT = "Parley";
/** Incoming calls that may ring at a time, over all accounts. */
const OFFERS_MAX = 500;

/** Scanners cannot tell unknown numbers from those the caller may not call: both get a 404. */
const STATUSES: Record<RefusalCause, number> = {
  unknown_number: 404, not_allowed: 404, unavailable: 480, busy: 486, overloaded: 503,
};
const RETRY_LATER: [string, string][] = [["Retry-After", String(LIMITS.capacityRetryS)]];

export async function createSipCarrier(options: SipCarrierOptions): Promise<SipCarrier> {
  const { system, log } = options;
  const offers = new Map<string, Offered>();
  let hasRoom = true;
  const digest = createDigestServer({ realm: REALM, system });
  const failures = createFailedAuthentications({ log, system, slows: true });
  const logTied = createTieLog(options);
  // Loaded now, because the first call to need them would delay all calls in progress.
  await Promise.all([loadOpus(), openCoders(["PCMU", "PCMA"])]);
  const publicHost = options.publicHost === null ? null : await addressOf(options.publicHost);
  // Our own public address is refused here because, behind NAT, no interface has it.
  const mayReach = (address: string): boolean =>
    (publicHost === null || plainHost(address) !== plainHost(publicHost))
    && options.mayReach(address);
  const agent = await createUserAgent({
    ...options,
    publicHost,
    mayReach,
    userAgent: USER_AGENT,
    hasRoom: () => hasRoom && offers.size < OFFERS_MAX,
    onInvite: (invite) => receive(invite),
  });
  const names = options.names ?? createSystemNames(system);
  const roster = new TrunkRoster({ ...options, mayReach, agent, names });
  const rtp = { host: options.host, ports: options.rtpPorts };
  const parts = { agent, roster, rtp, mayReach, names, system, log };

  const receive = (invite: IncomingInvite): void => {
    const sender = identify({ roster, digest, failures, logTied }, invite);
    if (sender.kind === "refused") return invite.refuse(sender.status, undefined, sender.headers);
    if (offers.size >= OFFERS_MAX) return invite.refuse(503, undefined, RETRY_LATER);
    const called = calledNumber(invite, sender.trunk);
    const meant = sender.trunk ? [sender.trunk] : roster.openFor(invite.peer.host, called);
    const offered = offeredBy(invite, meant);
    if ("why" in offered) return refuseSound(invite, offered.why, log);
    const id = system.uuid();
    offers.set(id, offered);
    invite.onCancelled(() => offers.delete(id));
    invite.ring();
    options.onOffer({
      id,
      rate: offered.rate,
      to: called,
      from: callerNumber(invite),
      trunkId: sender.trunk?.id ?? null,
      sourceAddress: invite.peer.host,
    });
  };
  const withdraw = (offerId: string): Offered | null => {
    const offered = offers.get(offerId) ?? null;
    offers.delete(offerId);
    return offered;
  };
  return {
    name: "sip",
    port: agent.port,
    tlsPort: agent.tlsPort,
    dial: (request, publish) =>
      begin({ ...parts, publish, rate: request.rate }, (leg) => place(parts, leg, request)),
    inbound: {
      answer: (offerId, publish) => {
        const offered = withdraw(offerId);
        const rate = offered?.rate ?? 8000;
        return begin({ ...parts, publish, rate }, (leg) => answer(parts, leg, offered));
      },
      refuse: (offerId, cause) => withdraw(offerId)?.invite.refuse(
        STATUSES[cause], undefined, cause === "overloaded" ? RETRY_LATER : undefined),
    },
    setTrunks: (trunks) => roster.set(trunks),
    setRoom: (has) => void (hasRoom = has),
    close: () => roster.close().then(() => agent.close()),
  };
}

/** Warns the operator of numbers that several accounts have, at most once a minute for each. */
function createTieLog({ system, log }: Pick<SipCarrierOptions, "system" | "log">) {
  const ties = createRateLimiter(
    [{ count: 1, windowMs: 60_000 }], { system, keysMax: LIMITS.rateLimiterKeysMax });
  return (called: string | null, source: string): void => {
    if (!ties.take(called ?? "").allowed) return;
    log.warn({ called, source },
      "an inbound call's number belongs to several accounts, so it was refused: approve one with parley number approve");
  };
}

/** A call that rings. */
interface Offered {
  invite: IncomingInvite;
  requiresSrtp: boolean;
  codecs: readonly Codec[];
  rate: Leg["rate"];
  /** The trunk that is meant; null when several may be, so that no password can be used. */
  trunk: TrunkSetup | null;
}

interface Parts extends Pick<LegOptions, "rtp" | "mayReach" | "names" | "system" | "log"> {
  agent: UserAgent;
  roster: TrunkRoster;
}

/** Returns the leg at once and connects it in the background. */
function begin(parts: LegOptions, connect: (leg: SipLeg) => Promise<void>): Leg {
  const leg = new SipLeg(parts);
  // Connected in a later turn, so that the caller has the leg before it receives an event.
  Promise.resolve().then(() => connect(leg)).catch((error: unknown) => {
    parts.log.error({ err: error }, "could not connect a SIP call");
    leg.end("failed");
  });
  return leg;
}

async function place(
  { agent, roster, rtp, log }: Parts, leg: SipLeg, { to, from, trunkId, ringingMs }: DialRequest,
): Promise<void> {
  const way = trunkId === undefined ? null : await roster.find(trunkId);
  if (!way) return leg.end("failed", "the trunk was deleted or disabled, or its address does not resolve");
  const { trunk, peer, others } = way;
  const { user, domain, authority } = identityOf(trunk);
  // Which of our addresses is seen depends on where the call goes: the offer says it.
  const { host } = rtp;
  const { requireSrtp: requiresSrtp } = trunk;
  const isEncrypted = trunk.transport === "tls";
  const media = { isEncrypted, requiresSrtp, codecs: codecsOf(trunk.codecs) };
  if (!await leg.open({ host, peerHost: peer.host, domain, ...media })) return;
  const number = from ?? trunk.phoneNumber;
  // A PBX knows its extensions by user name, a provider its customers by number.
  const caller = trunk.trunkType === "extension" ? user : number;
  const isUri = /^sips?:/i.test(to);
  const uri = isUri ? to : `sip:${to}@${domain}`;
  if (/[<>"\s]/.test(uri)) return leg.end("failed", "the SIP address is invalid");
  const call = agent.call({
    peer,
    others,
    silent: (silent) => roster.silent(trunk.id, silent),
    uri: isUri ? to : `sip:${to}@${authority}`,
    from: `<sip:${caller}@${domain}>`,
    to: `<${uri}>`,
    sdp: (seen) => leg.offer(seen),
    otherSdp: isEncrypted && !requiresSrtp ? (seen) => {
      log.warn({ trunk_id: trunk.id }, "a trunk does not support encrypted audio (SRTP): the call is unencrypted");
      return leg.offerInClear(seen);
    } : undefined,
    credentials: { username: user, password: trunk.password },
    headers: [
      ["P-Asserted-Identity", `<sip:${number}@${domain}>`],
      ...(trunk.outboundProxy
        ? [["Route", routeTo(trunk)] satisfies [string, string]]
        : []),
    ],
    ringingMs,
  }, {
    progress: (status) => {
      if (status === 180 || status === 183) leg.ringing();
    },
    answered: (dialog, sdp) => {
      leg.join(dialog);
      const why = leg.agree(sdp);
      if (why === null) leg.answered();
      else leg.end("failed", why);
    },
    failed: (status, reason, q850) => {
      log.info({ trunk_id: trunk.id, status, reason }, "a SIP call was not answered");
      const to = requiresSrtp && status === 488 ? " to an offer of encrypted audio only (SRTP)" : "";
      leg.failed({ status, q850 }, `the trunk answered ${status} ${reason}${to}`);
    },
  });
  leg.onGivenUp(() => call.cancel());
}

async function answer(parts: Parts, leg: SipLeg, offered: Offered | null): Promise<void> {
  const { roster } = parts;
  if (!offered) return leg.end("far_hung_up");
  const { invite, requiresSrtp, codecs, trunk } = offered;
  invite.onCancelled(() => leg.end("far_hung_up"));
  leg.onGivenUp(() => invite.refuse(480));
  const { request, peer } = invite;
  const caller = parseUri(parseNameAddr(request.headers.get("From") ?? "")?.uri ?? "");
  const place = {
    host: await mediaHost(parts, invite),
    peerHost: peer.host,
    domain: caller ? uriHost(caller.host) : uriHost(peer.host),
    isEncrypted: peer.transport === "tls",
    requiresSrtp,
    codecs,
  };
  if (!await leg.open(place)) return;
  const given = sdpOf(request);
  const sdp = leg.answer(typeof given === "string" ? given : null);
  if (sdp === null) {
    refuseSound(invite, NO_KEY, parts.log);
    return leg.end("failed", NO_KEY.text);
  }
  leg.join(invite.accept(sdp, trunk && proofOf(trunk, peer, roster)));
}

/**
 * Our address for the audio, of the family that the caller's has: signalling over IPv6 may be about
 * audio over IPv4, and a telephone without the other family would hang up.
 */
async function mediaHost(
  { agent, rtp }: Parts, { request, peer }: IncomingInvite,
): Promise<string> {
  // One that listens for a single family has no other address.
  if (rtp.host !== "::") return agent.localHost(peer);
  const sdp = sdpOf(request);
  const theirs = plainHost((typeof sdp === "string" && parseSdp(sdp)?.audio.host) || "");
  const isOther = isIP(theirs) !== 0 && isIP(theirs) !== isIP(plainHost(peer.host));
  if (!isOther || theirs === "0.0.0.0") return agent.localHost(peer);
  return agent.localHost({ host: theirs, port: peer.port, transport: "udp" })
    .catch(() => agent.localHost(peer));
}

/** The code of a Warning (RFC 3261 20.43), and what is wrong with the sound that is offered. */
interface Unusable {
  code: number;
  text: string;
}
const IN_CLEAR: Unusable = {
  code: 302, text: "the audio is not encrypted (SRTP), which the trunk requires (require_srtp)",
};
const NO_KEY: Unusable = { code: 302, text: "no key of the encrypted audio (SRTP) can be used" };
const NO_SOUND: Unusable = { code: 304, text: "no audio over RTP/AVP or RTP/SAVP is offered" };
const NO_CODEC: Unusable = { code: 305, text: "no codec in common with the trunk (sip_codecs)" };

function refuseSound(invite: IncomingInvite, { code, text }: Unusable, log: Logger): void {
  log.warn({ source: invite.peer.host, reason: text }, "a SIP call was refused with 488");
  invite.refuse(488, undefined, [["Warning", `${code} parley "${text}"`]]);
}

/** The call with the settings of its trunk, or why its offer has no audio we can use. */
function offeredBy(invite: IncomingInvite, meant: TrunkSetup[]): Offered | { why: Unusable } {
  const requiresSrtp = meant.some((trunk) => trunk.requireSrtp);
  const codecs = meant[0] ? codecsOf(meant[0].codecs) : NARROWBAND;
  const codec = usableCodec(invite, codecs, requiresSrtp);
  if (typeof codec !== "string") return { why: codec };
  const [only, ...others] = meant;
  const trunk = only && others.length === 0 ? only : null;
  return { invite, requiresSrtp, codecs, rate: rateOf(codec), trunk };
}

/**
 * Credentials for the caller's host alone, which has shown the password or is where we registered.
 * A host admitted by address must also be one of the trunk's own, because others may be admitted.
 */
function proofOf(trunk: TrunkSetup, peer: Peer, roster: TrunkRoster): Proof {
  const credentials = { username: identityOf(trunk).user, password: trunk.password };
  const isAdmitted = trunk.inboundAuth === "ip";
  // Resolved now, in case our BYE is challenged; the caller does not wait for it.
  if (isAdmitted) void roster.find(trunk.id);
  const mayAsk = (host: string): boolean => plainHost(host) === plainHost(peer.host)
    && (!isAdmitted || roster.isAt(trunk.id, host));
  return { credentials, mayAsk };
}

/** The codec the call will use, or most likely will when there is no offer yet. */
function usableCodec(
  { request }: IncomingInvite, codecs: readonly Codec[], requiresSrtp: boolean,
): Codec | Unusable {
  const sdp = sdpOf(request);
  if (sdp === null) return codecs[0] ?? NO_CODEC;
  const audio = typeof sdp === "string" ? parseSdp(sdp)?.audio : null;
  if (!audio || audio.port === 0) return NO_SOUND;
  if (requiresSrtp && audio.profile === "RTP/AVP" && audio.crypto.length === 0) return IN_CLEAR;
  return codecFor(audio.codecs, codecs)?.name ?? NO_CODEC;
}

const rateOf = (codec: Codec): Leg["rate"] =>
  rateOfCodec(codec.toLowerCase() as Lowercase<Codec>);

/** The IP address of a host, for places where names are not allowed. */
async function addressOf(host: string): Promise<string> {
  return isIP(host) ? host : (await lookup(host)).address;
}
