// The trunks there are: where each one's telephone system is, the registrations that keep us
// reachable there, and whose trunk a caller's side turns out to be. Used by sip.ts.
import { isIP } from "node:net";
import { isInside, mayBeTelephoneSystem, parseNetworks, type Network } from "#core/networks.ts";
import type { Logger } from "#core/logger.ts";
import type { System, Timer } from "#core/system.ts";
import {
  peerKey, plainHost, uriHost, uriTransport, type Peer,
} from "#providers/carriers/sip/transport/peer.ts";
import { SIGNALLING_LIMITS as LIMITS } from "#providers/carriers/sip/grammar/signalling-limits.ts";
import type { TrunkSetup } from "./trunk.ts";
import type { Registration } from "#providers/carriers/sip/dialogs/registration.ts";
import type { UserAgent } from "#providers/carriers/sip/dialogs/user-agent.ts";

/** Names, as srv.ts resolves them; tests have their own. */
export interface Names {
  addresses(name: string): Promise<string[]>;
  /** Best first; none where the name has no such records. */
  services(name: string): Promise<{ name: string; port: number }[]>;
}

interface RosterOptions {
  agent: Pick<UserAgent, "register">;
  /** Whether the server may send there. */
  mayReach(address: string): boolean;
  names: Names;
  system: System;
  log: Logger;
}

/** A trunk, and what its name led to. */
interface Entry {
  trunk: TrunkSetup;
  /** The allowed ones, read once. */
  networks: Network[];
  peers: Peer[];
  /** Which of the peers is used: goes on when one cannot be reached. */
  turn: number;
  /** Keyed by peer: until when calls begin elsewhere, because it did not answer one. */
  silentUntilMs: Map<string, number>;
  resolvedAtMs: number;
  registration: Registration | null;
  /** The registrar has taken us, and has not refused us since. */
  isTaken: boolean;
  /** Tries again, or elsewhere. */
  retry: Timer | null;
  isGone: boolean;
}

/** How long what DNS said is believed. */
const RESOLVED_MS = 60_000;
/** Until a name that could not be resolved, or whose address is silent, is looked up again. */
const RETRY_MS = 30_000;
/** Digits of a number that tell it from any other, whatever stands before them. */
const TELLING_DIGITS = 7;
const PEERS_MAX = 8;
const PORTS = { udp: 5060, tcp: 5060, tls: 5061 } as const;
const SERVICES = { udp: "_sip._udp", tcp: "_sip._tcp", tls: "_sips._tcp" } as const;

type Place = Pick<TrunkSetup, "address" | "port" | "transport">;

/** The address, with the port that a proxy knows itself by, where that is not the usual one. */
const authorityOf = ({ address, port, transport }: Place): string =>
  `${uriHost(address)}${port === null || port === PORTS[transport] ? "" : `:${port}`}`;

/**
 * `user@domain` in parts; the domain is the address where none is named. Requests are for the
 * `authority`: From and To have no port (RFC 3261 19.1.1).
 */
export function identityOf(
  trunk: Pick<TrunkSetup, "username"> & Place,
): { user: string; domain: string; authority: string } {
  const { username, address } = trunk;
  const at = username.lastIndexOf("@");
  if (at <= 0 || at === username.length - 1) {
    return { user: username, domain: uriHost(address), authority: authorityOf(trunk) };
  }
  const domain = username.slice(at + 1);
  return { user: username.slice(0, at), domain, authority: domain };
}

/** Value of a Route through the trunk's address. */
export const routeTo = (trunk: Place): string =>
  `<sip:${authorityOf(trunk)}${uriTransport(trunk.transport)};lr>`;

/** The fields of a trunk that make a difference here: the name its owner gives it does not. */
const signatureOf = (trunk: TrunkSetup): string => JSON.stringify([
  trunk.phoneNumber, trunk.username, trunk.password, trunk.address, trunk.port, trunk.transport,
  trunk.inboundAuth, trunk.allowedNetworks, trunk.outboundProxy, trunk.requireSrtp,
  trunk.codecs, trunk.registerS,
]);

/** In the Contact we register: tells by which trunk a call comes. */
const CONTACT_USER = /^trunk-\d+$/;
export const contactUserOf = ({ id }: Pick<TrunkSetup, "id">): string => `trunk-${id}`;

/** Best first, each once. Rejects when none of the names leads anywhere. */
export async function resolveTrunk(
  { address, port, transport }: TrunkSetup, names: Names,
): Promise<Peer[]> {
  if (isIP(address)) return [{ host: address, port: port ?? PORTS[transport], transport }];
  const services = port === null ? await names.services(`${SERVICES[transport]}.${address}`) : [];
  const itself = { name: address, port: port ?? PORTS[transport] };
  const hosts = services.length > 0 ? services : [itself];
  const peers = new Map<string, Peer>();
  let why: unknown = null;
  // The certificate is for the name people gave, wherever DNS leads.
  const proof = transport === "tls" ? { serverName: address } : {};
  for (const { name, port: at } of hosts.slice(0, PEERS_MAX)) {
    const addresses = await names.addresses(name).catch((error: unknown) => {
      why ??= error;
      return [];
    });
    for (const host of addresses) {
      const peer: Peer = { host, port: at, transport, ...proof };
      if (!peers.has(peerKey(peer))) peers.set(peerKey(peer), peer);
    }
  }
  if (peers.size === 0 && why !== null) throw why;
  return [...peers.values()].slice(0, PEERS_MAX);
}

export class TrunkRoster {
  readonly #options: RosterOptions;
  readonly #entries = new Map<number, Entry>();

  constructor(options: RosterOptions) {
    this.#options = options;
  }

  /** Those that are not among them, or are different now, take leave of their registrars. */
  set(trunks: readonly TrunkSetup[]): void {
    const wanted = new Map(trunks.map((trunk) => [trunk.id, trunk]));
    const leaving = new Map<number, Promise<void>>();
    for (const [id, entry] of this.#entries) {
      const next = wanted.get(id);
      if (next && signatureOf(next) === signatureOf(entry.trunk)) wanted.delete(id);
      else leaving.set(id, this.#remove(entry));
    }
    for (const trunk of wanted.values()) {
      const entry: Entry = {
        trunk, networks: parseNetworks(trunk.allowedNetworks ?? []), peers: [], turn: 0,
        silentUntilMs: new Map(), resolvedAtMs: -Infinity, registration: null,
        isTaken: false, retry: null, isGone: false,
      };
      this.#entries.set(trunk.id, entry);
      if (trunk.inboundAuth !== "auth" || trunk.registerS === null) continue;
      // Not before its former self has taken leave: that would undo the new registration.
      void (leaving.get(trunk.id) ?? Promise.resolve()).then(() => this.#register(entry));
    }
  }

  /**
   * Where its calls go, and where else when nobody is there; null: there is no such trunk, or
   * nowhere they may go.
   */
  async find(
    trunkId: number,
  ): Promise<{ trunk: TrunkSetup; peer: Peer; others: Peer[] } | null> {
    const entry = this.#entries.get(trunkId);
    if (!entry) return null;
    await this.#resolve(entry);
    const first = peerOf(entry);
    if (!first) return null;
    const nowMs = this.#options.system.monotonicMs();
    const isSilent = (peer: Peer): boolean =>
      (entry.silentUntilMs.get(peerKey(peer)) ?? -Infinity) > nowMs;
    const [peer = first, ...others] = [first, ...entry.peers.filter((other) => other !== first)]
      .toSorted((one, other) => Number(isSilent(one)) - Number(isSilent(other)));
    return { trunk: entry.trunk, peer, others };
  }

  /** Whether its calls go there, by what its name led to last. */
  isAt(trunkId: number, host: string): boolean {
    const peers = this.#entries.get(trunkId)?.peers ?? [];
    return peers.some((peer) => plainHost(peer.host) === plainHost(host));
  }

  /** A call found nobody there: for a while those of this trunk begin at its other addresses. */
  silent(trunkId: number, peer: Peer): void {
    const entry = this.#entries.get(trunkId);
    if (!entry) return;
    const known = new Set(entry.peers.map(peerKey));
    for (const key of entry.silentUntilMs.keys()) {
      if (!known.has(key)) entry.silentUntilMs.delete(key);
    }
    const untilMs = this.#options.system.monotonicMs() + LIMITS.hopAvoidedMs;
    entry.silentUntilMs.set(peerKey(peer), untilMs);
  }

  /**
   * The trunk whose registration brought the call: it comes from there, and names what we
   * registered, or a number that one of those registered there has. `tied`: trunks of several
   * accounts have it.
   */
  registeredAt(address: string, called: string | null): TrunkSetup | "tied" | null {
    const host = plainHost(address);
    const there = [...this.#entries.values()]
      .filter(({ isTaken, peers }) =>
        isTaken && peers.some((peer) => plainHost(peer.host) === host))
      .map(({ trunk }) => trunk);
    const meant = there.find((trunk) => contactUserOf(trunk) === called);
    if (meant || CONTACT_USER.test(called ?? "")) return meant ?? null;
    const named = there.filter((trunk) => isSameNumber(trunk.phoneNumber, called ?? ""));
    const claims = [...named, ...this.#open(address).filter(({ phoneNumber }) =>
      isSameNumber(phoneNumber, called ?? ""))];
    const [only, ...others] = named;
    if (only && claims.some(({ accountId }) => accountId !== only.accountId)) return "tied";
    if (only && others.length === 0) return only;
    // Where calls of others may come from as well, only what we registered says which is meant.
    const [sole, ...rest] = there;
    return sole && rest.length === 0 && !this.admits(address, called) ? sole : null;
  }

  /**
   * Callers from this address need show nothing, unless they call a number whose trunk logs in: one
   * machine may be the telephone system of several accounts.
   */
  admits(address: string, called: string | null): boolean {
    const trunks = [...this.#entries.values()].map(({ trunk }) => trunk);
    const open = this.#open(address);
    const isMeant = ({ phoneNumber }: TrunkSetup): boolean =>
      isSameNumber(phoneNumber, called ?? "");
    if (open.length === 0 || open.some(isMeant)) return open.length > 0;
    return !trunks.some((trunk) => trunk.inboundAuth === "auth" && isMeant(trunk));
  }

  /** Those of the number whose callers may come from there without showing anything. */
  openFor(address: string, called: string): TrunkSetup[] {
    return this.#open(address).filter(({ phoneNumber }) => isSameNumber(phoneNumber, called));
  }

  /** Trunks whose callers show name and password. */
  named(username: string): TrunkSetup[] {
    return [...this.#entries.values()].map(({ trunk }) => trunk).filter((trunk) =>
      trunk.inboundAuth === "auth"
        && (trunk.username === username || identityOf(trunk).user === username));
  }

  async close(): Promise<void> {
    const closing = [...this.#entries.values()].map((entry) => this.#remove(entry));
    await Promise.all(closing);
  }

  /** Trunks whose callers may come from there without showing anything. */
  #open(address: string): TrunkSetup[] {
    const host = plainHost(address);
    return [...this.#entries.values()]
      .filter(({ trunk, networks }) => trunk.inboundAuth === "ip" && isInside(host, networks))
      .map(({ trunk }) => trunk);
  }

  async #remove(entry: Entry): Promise<void> {
    entry.isGone = true;
    entry.retry?.cancel();
    // One that was changed is there already, under the same id.
    if (this.#entries.get(entry.trunk.id) === entry) this.#entries.delete(entry.trunk.id);
    await entry.registration?.close();
  }

  async #resolve(entry: Entry): Promise<Peer[]> {
    const { names, mayReach, system, log } = this.#options;
    const nowMs = system.monotonicMs();
    if (nowMs - entry.resolvedAtMs < RESOLVED_MS) return entry.peers;
    try {
      const peers = await resolveTrunk(entry.trunk, names);
      entry.peers = peers.filter(({ host, port }) => mayReach(host) && mayBeTelephoneSystem(port));
      if (entry.peers.length < peers.length) {
        log.warn({ trunk_id: entry.trunk.id },
          "a SIP trunk is in a network this server may not reach");
      }
      entry.resolvedAtMs = nowMs;
    } catch (error) {
      // What was known before may still be right.
      log.warn({ err: error, trunk_id: entry.trunk.id }, "a SIP trunk's name could not be resolved");
    }
    return entry.peers;
  }

  async #register(entry: Entry): Promise<void> {
    const { agent, log } = this.#options;
    await this.#resolve(entry);
    if (entry.isGone) return;
    const peer = peerOf(entry);
    if (!peer) return this.#later(entry, () => void this.#register(entry));
    const { trunk } = entry;
    const { user, domain, authority } = identityOf(trunk);
    entry.registration = agent.register({
      peer,
      registrar: `sip:${authority}`,
      aor: `sip:${user}@${domain}`,
      contactUser: contactUserOf(trunk),
      credentials: { username: user, password: trunk.password },
      expiresS: trunk.registerS ?? 0,
    }, (state) => {
      if (entry.isGone) return;
      log.info({ trunk_id: trunk.id, state }, "registration of a SIP trunk");
      entry.retry?.cancel();
      if (state === "registered") entry.isTaken = true;
      else if (state === "refused") entry.isTaken = false;
      else this.#later(entry, () => void this.#lookElsewhere(entry, peer));
    });
  }

  #later(entry: Entry, run: () => void): void {
    entry.retry = this.#options.system.after(RETRY_MS, run);
  }

  /** The name may lead elsewhere by now, or to more than one address; else it is asked on. */
  async #lookElsewhere(entry: Entry, silent: Peer): Promise<void> {
    entry.resolvedAtMs = -Infinity;
    await this.#resolve(entry);
    if (entry.isGone) return;
    entry.turn += 1;
    const next = peerOf(entry);
    if (!next || peerKey(next) === peerKey(silent)) {
      return this.#later(entry, () => void this.#lookElsewhere(entry, silent));
    }
    await entry.registration?.close();
    if (!entry.isGone) await this.#register(entry);
  }
}

const peerOf = ({ peers, turn }: Entry): Peer | null => peers[turn % peers.length] ?? null;

/** Whether they may be one number: how it is spelt is not for the carrier to judge. */
function isSameNumber(one: string, other: string): boolean {
  if (one === other) return true;
  const [a, b] = [one, other].map((number) => number.replace(/[^0-9]/g, "")) as [string, string];
  const isLong = Math.min(a.length, b.length) >= TELLING_DIGITS;
  return isLong && a.slice(-TELLING_DIGITS) === b.slice(-TELLING_DIGITS);
}
