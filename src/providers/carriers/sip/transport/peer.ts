// Where a SIP message comes from or goes to: address, port and transport; how addresses are written
// in URIs; and which addresses a far end may make us send to. For both signalling and media.
import ipaddr from "ipaddr.js";
import { isIP } from "node:net";
import { bareHost, isInside, mayBeTelephone, parseNetworks } from "#core/networks.ts";
import { parseVia } from "#providers/carriers/sip/grammar/headers.ts";
import type { SipRequest } from "#providers/carriers/sip/grammar/message.ts";
import { parseUri } from "#providers/carriers/sip/grammar/uri.ts";

type TransportName = "udp" | "tcp" | "tls";

export interface Peer {
  /** An IP address. */
  host: string;
  port: number;
  transport: TransportName;
  /** The name that the TLS certificate must be for; absent for the address itself. */
  serverName?: string | undefined;
}

const PRIVATE = parseNetworks([
  "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "127.0.0.0/8",
  "169.254.0.0/16", "fc00::/7", "fe80::/10", "::1",
]);

/** One spelling per address: no brackets, and an IPv4-mapped IPv6 address as plain IPv4. */
export function plainHost(host: string): string {
  const bare = bareHost(host).toLowerCase();
  return isIP(bare) === 6 ? ipaddr.process(bare).toString() : bare;
}

/** `host` as a socket bound to `bound` takes it: an IPv6 socket needs IPv4 as mapped IPv6. */
export const forSocket = (bound: string, host: string): string =>
  isIP(bound) === 6 && isIP(host) === 4 ? `::ffff:${host}` : host;

export const isAddress = (host: string): boolean => isIP(plainHost(host)) !== 0;

export const uriHost = (host: string): string => (host.includes(":") ? `[${host}]` : host);

/** The URI parameter for the transport; a URI without one means UDP. */
export const uriTransport = (transport: TransportName): string =>
  transport === "udp" ? "" : `;transport=${transport}`;

export const peerKey = (peer: Peer): string =>
  `${peer.transport}|${plainHost(peer.host)}|${peer.port}|${peer.serverName ?? ""}`;

/** The host of a URI as an IP address; null when it is a name. */
export function addressOf(uriText: string): string | null {
  const uri = parseUri(uriText);
  return uri && isAddress(uri.host) ? plainHost(uri.host) : null;
}

/** Whether the server may send to the IP address, whoever names it. */
export type MayReach = (address: string) => boolean;

/** A private address named by a peer with a public one: a device that does not know its own. */
export const isBehindNat = (address: string, peerHost: string): boolean =>
  isInside(plainHost(address), PRIVATE) && !isInside(plainHost(peerHost), PRIVATE);

/**
 * Whether a peer may make us send to this address: its own, or one that the server may reach and
 * that is not behind its NAT.
 */
export function mayLeadTo(address: string, peerHost: string, mayReach: MayReach): boolean {
  const host = plainHost(address);
  return host === plainHost(peerHost) || (!isBehindNat(host, peerHost) && mayReach(host));
}

/**
 * The next hop of a request for this URI. Names are not resolved within a dialog: a request for a
 * name, or for an address that is not allowed, goes to the dialog's peer.
 */
export function nextHop(uriText: string, peer: Peer, mayReach: MayReach): Peer {
  const uri = parseUri(uriText);
  if (!uri || !isAddress(uri.host)) return peer;
  const host = plainHost(uri.host);
  const isPeer = host === plainHost(peer.host);
  if (!mayLeadTo(host, peer.host, mayReach)) return peer;
  const named = (uri.scheme === "sips" ? "tls" : uri.params.get("transport") ?? "").toLowerCase();
  const transport = named === "udp" || named === "tcp" || named === "tls"
    ? named
    : isPeer ? peer.transport : "udp";
  const port = uri.port ?? (transport === "tls" ? 5061 : 5060);
  if (!mayBeTelephone(port) && !(isPeer && port === peer.port)) return peer;
  const serverName = isPeer && transport === "tls" ? peer.serverName : undefined;
  return { host, port, transport, ...(serverName === undefined ? {} : { serverName }) };
}

/** Where the answer to a request goes: over UDP the source, at the port its Via asks for. */
export function answerPeer(request: SipRequest, peer: Peer): Peer {
  if (peer.transport !== "udp") return peer;
  const via = parseVia(request.headers.get("Via") ?? "");
  if (!via || via.params.has("rport")) return peer;
  const port = via.port ?? 5060;
  return mayBeTelephone(port) ? { ...peer, port } : peer;
}
