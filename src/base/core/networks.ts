// Addresses and networks as operators write them, and which ports lead to what. Used by the edge
// (proxies), by outbound requests and by SIP (what may be reached).
import ipaddr from "ipaddr.js";
import { networkInterfaces, type NetworkInterfaceInfo } from "node:os";
import { MisconfiguredStart } from "./faults.ts";

export type Network = [ipaddr.IPv4 | ipaddr.IPv6, number];

/** `10.0.0.0/8`, `fd00::/8` or a single address; null for anything else. */
export function parseNetwork(text: string): Network | null {
  const cidr = text.includes("/") ? text : `${text}/${text.includes(":") ? 128 : 32}`;
  return ipaddr.isValidCIDR(cidr) ? ipaddr.parseCIDR(cidr) : null;
}

/** Databases, container runtimes and the like, that listen without asking for a password. */
export const SERVICE_PORTS: ReadonlySet<number> = new Set([
  1433, 2049, 2375, 2376, 2379, 2380, 3306, 5432, 5984, 6379, 6443, 9200, 9300, 10250, 11211,
  27017,
]);
/** Services over UDP that answer whatever comes, or take it for somebody's traffic. */
const DATAGRAM_SERVICE_PORTS = new Set([
  1434, 1812, 1813, 1900, 2152, 3702, 4789, 5351, 5353, 5355, 5683, 6081, 8125, 8472,
]);
const FREE_PORTS_FROM = 1024;
const WEB_TLS_PORT = 443;
const PORT_MAX = 65_535;

/** Whether a telephone may use the port: none has its signalling or audio at the refused ones. */
export const mayBeTelephone = (port: number): boolean =>
  Number.isInteger(port) && port >= FREE_PORTS_FROM && port <= PORT_MAX
  && !SERVICE_PORTS.has(port) && !DATAGRAM_SERVICE_PORTS.has(port);

/** TLS over the web's port passes firewalls that let nothing else through. */
export const mayBeTelephoneSystem = (port: number): boolean =>
  port === WEB_TLS_PORT || mayBeTelephone(port);

export const parseNetworks = (texts: readonly string[]): Network[] =>
  texts.map(parseNetwork).filter((network) => network !== null);

/** An IPv4-mapped IPv6 address counts as IPv4; without networks, nothing is inside. */
export function isInside(address: string, networks: Network[]): boolean {
  if (networks.length === 0 || !ipaddr.isValid(address)) return false;
  const parsed = ipaddr.process(address);
  return networks.some(([base, bits]) => base.kind() === parsed.kind() && parsed.match(base, bits));
}

/** All addresses of this machine. Throws without them: its own services could not be guarded. */
export function machineAddresses(): NetworkInterfaceInfo[] {
  try {
    return Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  } catch (cause) {
    throw new MisconfiguredStart("the addresses of this machine cannot be read: the service may not "
      + "open sockets of the family AF_NETLINK (RestrictAddressFamilies= of systemd)", { cause });
  }
}

/** The host as it is resolved and connected to: URLs put IPv6 addresses in brackets. */
export const bareHost = (host: string): string => host.replace(/^\[|\]$/g, "");

/** Whether the address or host name is loopback, which only this machine reaches. */
export function isLoopback(host: string): boolean {
  if (host.toLowerCase() === "localhost") return true;
  return ipaddr.isValid(host) && ipaddr.process(host).range() === "loopback";
}

/** The origin at which programs on this machine reach a server that listens there. */
export function listeningOrigin(isTls: boolean, host: string, port: number): string {
  const name = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  return `${isTls ? "https" : "http"}://${name.includes(":") ? `[${name}]` : name}:${port}`;
}

/** What rate limits count by: the address, for IPv6 its /64 network, which one customer owns. */
export function addressKey(address: string): string {
  if (!ipaddr.isValid(address)) return address;
  const parsed = ipaddr.process(address);
  return parsed instanceof ipaddr.IPv6
    ? parsed.parts.slice(0, 4).map((part) => part.toString(16)).join(":")
    : parsed.toString();
}
