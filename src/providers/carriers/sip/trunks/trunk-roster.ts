// All trunks: where each one's telephone system is, the registrations that keep us reachable there,
// and which trunk an incoming call belongs to. Used by sip.ts.
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

/** Resolves names; implemented by srv.ts, and by tests. */
export interface Names {
  addresses(name: string): Promise<string[]>;
  /** SRV targets, best first; empty when the name has no such records. */
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

/** A trunk, and the addresses its name resolved to. */
interface Entry {
  trunk: TrunkSetup;
  /** The trunk's `allowedNetworks`, parsed. */
  networks: Network[];
  peers: Peer[];
  /** Index, modulo the number of peers, of the one in use; advances when it is unreachable. */
  turn: number;
  /** Keyed by peer: until when calls prefer other peers, because it did not respond to one. */
  silentUntilMs: Map<string, number>;
  resolvedAtMs: number;
  registration: Registration | null;
  /** The registrar has accepted our registration, and has not refused it since. */
  isTaken: boolean;
  /** Retries the registration, or looks for another address. */
  retry: Timer | null;
  isGone: boolean;
}

/** How long an answer of DNS is cached. */
const RESOLVED_MS = 60_000;
/** How soon a name is resolved again when that failed or its address does not respond. */
const RETRY_MS = 30_000;
/** Two numbers are taken for the same when at least this many of their last digits are equal. */
const TELLING_DIGITS = 7;
const PEERS_MAX = 8;
const PORTS = { udp: 5060, tcp: 5060, tls: 5061 } as const;
const SERVICES = { udp: "_sip._udp", tcp: "_sip._tcp", tls: "_sips._tcp" } as const;

type Place = Pick<TrunkSetup, "address" | "port" | "transport">;

/** The address, with the port when it is not the default one: a proxy checks for its own port. */
const authorityOf = ({ address, port, transport }: Place): string =>
  `${uriHost(address)}${port === null || port === PORTS[transport] ? "" : `:${port}`}`;

/**
 * Splits `user@domain`; without a domain, the address is used. Request-URIs have the `authority`,
 * From and To the `domain`, which has no port (RFC 3261 19.1.1).
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

/** The fields of a trunk that matter here, unlike the name its owner gives it. */
const signatureOf = (trunk: TrunkSetup): string => JSON.stringify([
  trunk.phoneNumber, trunk.username, trunk.password, trunk.address, trunk.port, trunk.transport,
  trunk.inboundAuth, trunk.allowedNetworks, trunk.outboundProxy, trunk.requireSrtp,
  trunk.codecs, trunk.registerS,
]);

/** The user part of the Contact we register, which tells which trunk a call comes through. */
const CONTACT_USER = /^trunk-\d+$/;
export const contactUserOf = ({ id }: Pick<TrunkSetup, "id">): string => `trunk-${id}`;

/** Best first, without duplicates. Rejects when none of the names can be resolved. */
export async function resolveTrunk(
  { address, port, transport }: TrunkSetup, names: Names,
): Promise<Peer[]> {
  if (isIP(address)) return [{ host: address, port: port ?? PORTS[transport], transport }];
  const services = port === null ? await names.services(`${SERVICES[transport]}.${address}`) : [];
  const itself = { name: address, port: port ?? PORTS[transport] };
  const hosts = services.length > 0 ? services : [itself];
  const peers = new Map<string, Peer>();
  let why: unknown = null;
  // The certificate must be for the configured name, wherever DNS leads.
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
  /** Keyed by trunk: resolves once its earlier versions are unregistered. */
  readonly #leaving = new Map<number, Promise<unknown>>();

  constructor(options: RosterOptions) {
    this.#options = options;
  }

  /** Replaces the trunks; those that are gone or have changed are unregistered. */
  set(trunks: readonly TrunkSetup[]): void {
    const wanted = new Map(trunks.map((trunk) => [trunk.id, trunk]));
    for (const [id, entry] of this.#entries) {
      const next = wanted.get(id);
      if (next && signatureOf(next) === signatureOf(entry.trunk)) wanted.delete(id);
      else this.#remove(entry);
    }
    for (const trunk of wanted.values()) {
      const entry: Entry = {
        trunk, networks: parseNetworks(trunk.allowedNetworks ?? []), peers: [], turn: 0,
        silentUntilMs: new Map(), resolvedAtMs: -Infinity, registration: null,
        isTaken: false, retry: null, isGone: false,
      };
      this.#entries.set(trunk.id, entry);
      if (trunk.inboundAuth !== "auth" || trunk.registerS === null) continue;
      // Old versions must be unregistered first, or that would undo the new registration.
      void (this.#leaving.get(trunk.id) ?? Promise.resolve()).then(() => this.#register(entry));
    }
  }

  /**
   * The peer that the trunk's calls go to, and the others to try when it does not respond; null
   * when there is no such trunk or none of its addresses may be reached.
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

  /** Whether the host is among the addresses that the trunk's name resolved to last. */
  isAt(trunkId: number, host: string): boolean {
    const peers = this.#entries.get(trunkId)?.peers ?? [];
    return peers.some((peer) => plainHost(peer.host) === plainHost(host));
  }

  /** A peer did not respond to a call: for a while, calls of this trunk prefer its other peers. */
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
   * The trunk whose registration brought the call: the call comes from its registrar, and names our
   * Contact, or the number of one of the trunks registered there. `tied`: trunks of several
   * accounts have that number.
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
    // When the host may also send calls for other trunks, only our Contact says which is meant.
    const [sole, ...rest] = there;
    return sole && rest.length === 0 && !this.admits(address, called) ? sole : null;
  }

  /**
   * Whether callers from this address need no credentials. They do for a number whose trunk has
   * `inboundAuth` `auth`: one machine may be the telephone system of several accounts.
   */
  admits(address: string, called: string | null): boolean {
    const trunks = [...this.#entries.values()].map(({ trunk }) => trunk);
    const open = this.#open(address);
    const isMeant = ({ phoneNumber }: TrunkSetup): boolean =>
      isSameNumber(phoneNumber, called ?? "");
    if (open.length === 0 || open.some(isMeant)) return open.length > 0;
    return !trunks.some((trunk) => trunk.inboundAuth === "auth" && isMeant(trunk));
  }

  /** The trunks with this number whose callers may come from the address without credentials. */
  openFor(address: string, called: string): TrunkSetup[] {
    return this.#open(address).filter(({ phoneNumber }) => isSameNumber(phoneNumber, called));
  }

  /** The trunks whose callers authenticate with this user name. */
  named(username: string): TrunkSetup[] {
    return [...this.#entries.values()].map(({ trunk }) => trunk).filter((trunk) =>
      trunk.inboundAuth === "auth"
        && (trunk.username === username || identityOf(trunk).user === username));
  }

  async close(): Promise<void> {
    for (const entry of [...this.#entries.values()]) this.#remove(entry);
    await Promise.all(this.#leaving.values());
  }

  /** The trunks whose callers may come from the address without credentials. */
  #open(address: string): TrunkSetup[] {
    const host = plainHost(address);
    return [...this.#entries.values()]
      .filter(({ trunk, networks }) => trunk.inboundAuth === "ip" && isInside(host, networks))
      .map(({ trunk }) => trunk);
  }

  #remove(entry: Entry): void {
    const { id } = entry.trunk;
    entry.isGone = true;
    entry.retry?.cancel();
    this.#entries.delete(id);
    const left = Promise.all([this.#leaving.get(id), entry.registration?.close()]).finally(() => {
      if (this.#leaving.get(id) === left) this.#leaving.delete(id);
    });
    this.#leaving.set(id, left);
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
          "a SIP trunk's address is private: allow it with PARLEY_ALLOW_PRIVATE_NETWORKS");
      }
      entry.resolvedAtMs = nowMs;
    } catch (error) {
      // The previous addresses may still be right.
      log.warn({ err: error, trunk_id: entry.trunk.id }, "could not resolve a SIP trunk's address");
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

  /** Registers at another address if the name now resolves to one; otherwise checks again later. */
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

/** Whether both may be one number; the carrier does not know how numbers are written. */
function isSameNumber(one: string, other: string): boolean {
  if (one === other) return true;
  const [a, b] = [one, other].map((number) => number.replace(/[^0-9]/g, "")) as [string, string];
  const isLong = Math.min(a.length, b.length) >= TELLING_DIGITS;
  return isLong && a.slice(-TELLING_DIGITS) === b.slice(-TELLING_DIGITS);
}
