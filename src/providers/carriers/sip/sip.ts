// The SIP carrier: telephone calls through the trunks of the accounts, in this process, with no
// media server. Runs in the media thread. Signalling is in user-agent.ts and what is below it,
// sound in rtp-session.ts, both joined in leg.ts.
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { LIMITS } from "#core/limits.ts";
import { createRateLimiter } from "#core/rate-limit.ts";
import { createFailedAuthentications } from "#core/failed-authentications.ts";
import type { Logger } from "#core/logger.ts";
import type { System } from "#core/system.ts";
import type { Carrier, DialRequest, Leg, LegEvent, Offer, RefusalCause } from "#providers/carriers/port.ts";
import { sdpOf } from "./grammar/bodies.ts";
import { createDigestServer } from "./grammar/digest.ts";
import { calledNumber, callerNumber, identify } from "./trunks/identify.ts";
import { causeOf, SipLeg, type LegOptions } from "./leg.ts";
import { parseNameAddr } from "./grammar/headers.ts";
import { plainHost, uriHost } from "./transport/peer.ts";
import { parseSdp } from "./grammar/sdp.ts";
import { createSystemNames } from "./trunks/srv.ts";
import { identityOf, TrunkRoster, type Names } from "./trunks/trunk-roster.ts";
import type { SipListener, TrunkSetup } from "./trunks/trunk.ts";
import { parseUri } from "./grammar/uri.ts";
import type { IncomingInvite } from "./dialogs/call-types.ts";
import { createUserAgent, type UserAgent } from "./dialogs/user-agent.ts";

interface SipCarrierOptions extends SipListener {
  mayReach(address: string): boolean;
  /** A call comes in; it rings until it is answered or refused. */
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
  /** Hangs up and takes leave of registrars, waiting a bounded time. */
  close(): Promise<void>;
}

const REALM = "parley";
const USER_AGENT = "Parley";
/** Calls that ring at a time, of all accounts. */
const OFFERS_MAX = 500;

/** Numbers that are not there and those that are not for the caller look alike to scanners. */
const STATUSES: Record<RefusalCause, number> = {
  unknown_number: 404, not_allowed: 404, unavailable: 480, busy: 486,
};

export async function createSipCarrier(options: SipCarrierOptions): Promise<SipCarrier> {
  const { system, log } = options;
  const offers = new Map<string, Offered>();
  const digest = createDigestServer({ realm: REALM, system });
  const failures = createFailedAuthentications({ log, system, slows: true });
  const ties = createRateLimiter(
    [{ count: 1, windowMs: 60_000 }], { system, keysMax: LIMITS.rateLimiterKeysMax });
  const logTied = (called: string | null, source: string): void => {
    if (!ties.take(called ?? "").allowed) return;
    log.warn({ called, source },
      "a call fits numbers of several accounts and rings nowhere: approve one with parley number approve");
  };
  const publicHost = options.publicHost === null ? null : await addressOf(options.publicHost);
  // Behind NAT no interface of the machine has its public address.
  const mayReach = (address: string): boolean =>
    (publicHost === null || plainHost(address) !== plainHost(publicHost))
    && options.mayReach(address);
  const agent = await createUserAgent({
    ...options,
    publicHost,
    mayReach,
    userAgent: USER_AGENT,
    onInvite: (invite) => receive(invite),
  });
  const names = options.names ?? createSystemNames(system);
  const roster = new TrunkRoster({ ...options, mayReach, agent, names });
  const rtp = { host: options.host, ports: options.rtpPorts };
  const parts = { agent, roster, rtp, mayReach, system, log };

  const receive = (invite: IncomingInvite): void => {
    const sender = identify({ roster, digest, failures, logTied }, invite);
    if (sender.kind === "refused") return invite.refuse(sender.status, undefined, sender.headers);
    if (offers.size >= OFFERS_MAX) return invite.refuse(503, undefined, [["Retry-After", "10"]]);
    const called = calledNumber(invite, sender.trunk);
    const meant = sender.trunk ? [sender.trunk] : roster.openFor(invite.peer.host, called);
    const requiresSrtp = meant.some((trunk) => trunk.requireSrtp);
    if (!isUsable(invite, requiresSrtp)) return invite.refuse(488);
    const id = system.uuid();
    offers.set(id, { invite, requiresSrtp });
    invite.onCancelled(() => offers.delete(id));
    invite.ring();
    options.onOffer({
      id,
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
    dial: (request, publish) => begin(parts, publish, (leg) => place(parts, leg, request)),
    inbound: {
      answer: (offerId, publish) =>
        begin(parts, publish, (leg) => answer(parts, leg, withdraw(offerId))),
      refuse: (offerId, cause) => withdraw(offerId)?.invite.refuse(STATUSES[cause]),
    },
    setTrunks: (trunks) => roster.set(trunks),
    close: async () => {
      await roster.close();
      await agent.close();
    },
  };
}

/** A call that rings. */
interface Offered {
  invite: IncomingInvite;
  requiresSrtp: boolean;
}

interface Parts extends Pick<LegOptions, "rtp" | "mayReach" | "system" | "log"> {
  agent: UserAgent;
  roster: TrunkRoster;
}

/** The leg at once; what it takes to connect it goes on meanwhile. */
function begin(
  parts: Parts, publish: (event: LegEvent) => void, connect: (leg: SipLeg) => Promise<void>,
): Leg {
  const leg = new SipLeg({ ...parts, publish });
  // In a later turn: whoever asked for the leg has it before it receives an event.
  Promise.resolve().then(() => connect(leg)).catch((error: unknown) => {
    parts.log.error({ err: error }, "a call over SIP could not be connected");
    leg.end("failed");
  });
  return leg;
}

async function place(
  { agent, roster, rtp, log }: Parts, leg: SipLeg, { to, from, trunkId, ringingMs }: DialRequest,
): Promise<void> {
  const way = trunkId === undefined ? null : await roster.find(trunkId);
  if (!way) return leg.end("failed", "the trunk is gone, switched off or its address unknown");
  const { trunk, peer, others } = way;
  const { user, domain } = identityOf(trunk);
  // Which of our addresses is seen depends on where the call goes: the offer says it.
  const { host } = rtp;
  const { requireSrtp: requiresSrtp } = trunk;
  const isEncrypted = trunk.transport === "tls";
  if (!await leg.open({ host, peerHost: peer.host, domain, isEncrypted, requiresSrtp })) return;
  const number = from ?? trunk.phoneNumber;
  // A telephone system knows its lines by name, a provider its customers by number.
  const caller = trunk.trunkType === "extension" ? user : number;
  const uri = `sip:${to}@${domain}`;
  const call = agent.call({
    peer,
    others,
    silent: (silent) => roster.silent(trunk.id, silent),
    uri,
    from: `<sip:${caller}@${domain}>`,
    to: `<${uri}>`,
    sdp: (seen) => leg.offer(seen),
    credentials: { username: user, password: trunk.password },
    headers: [
      ["P-Asserted-Identity", `<sip:${number}@${domain}>`],
      ...(trunk.outboundProxy
        ? [["Route", `<sip:${uriHost(trunk.address)};lr>`] satisfies [string, string]]
        : []),
    ],
    ringingMs,
  }, {
    progress: (status) => {
      if (status === 180 || status === 183) leg.ringing();
    },
    answered: (dialog, sdp) => {
      leg.join(dialog);
      if (leg.agree(sdp)) leg.answered();
      else leg.end("failed", "488 no codec in common");
    },
    failed: (status, reason, q850) => {
      log.info({ trunk_id: trunk.id, status, reason }, "a call over SIP was not answered");
      leg.end(causeOf({ status, q850 }), `the trunk answered ${status} ${reason}`);
    },
  });
  leg.onGivenUp(() => call.cancel());
}

async function answer(
  { agent }: Parts, leg: SipLeg, offered: Offered | null,
): Promise<void> {
  const { invite, requiresSrtp } = offered ?? {};
  if (!invite) return leg.end("far_hung_up");
  invite.onCancelled(() => leg.end("far_hung_up"));
  leg.onGivenUp(() => invite.refuse(480));
  const { request, peer } = invite;
  const caller = parseUri(parseNameAddr(request.headers.get("From") ?? "")?.uri ?? "");
  const place = {
    host: await agent.localHost(peer),
    peerHost: peer.host,
    domain: caller ? uriHost(caller.host) : uriHost(peer.host),
    isEncrypted: peer.transport === "tls",
    requiresSrtp: requiresSrtp ?? false,
  };
  if (!await leg.open(place)) return;
  const given = sdpOf(request);
  const sdp = leg.answer(typeof given === "string" ? given : null);
  if (sdp === null) {
    invite.refuse(488);
    return leg.end("failed");
  }
  leg.join(invite.accept(sdp));
}

/** There is sound in it that we can speak, or no offer yet. */
function isUsable({ request }: IncomingInvite, requiresSrtp: boolean): boolean {
  const sdp = sdpOf(request);
  if (sdp === null) return true;
  const offered = typeof sdp === "string" ? parseSdp(sdp) : null;
  if (requiresSrtp && offered?.audio.profile !== "RTP/SAVP") return false;
  return offered !== null && offered.audio.port > 0 && offered.audio.codecs.length > 0;
}

/** An address to be written where names are not allowed. */
async function addressOf(host: string): Promise<string> {
  return isIP(host) ? host : (await lookup(host)).address;
}
