// Addresses and networks as operators write them. Used by the edge (proxies) and by outbound
// requests (what may be reached).
import ipaddr from "ipaddr.js";

export type Network = [ipaddr.IPv4 | ipaddr.IPv6, number];

/** `10.0.0.0/8`, `fd00::/8` or a single address; null for anything else. */
export function parseNetwork(text: string): Network | null {
  const cidr = text.includes("/") ? text : `${text}/${text.includes(":") ? 128 : 32}`;
  return ipaddr.isValidCIDR(cidr) ? ipaddr.parseCIDR(cidr) : null;
}

export const parseNetworks = (texts: readonly string[]): Network[] =>
  texts.map(parseNetwork).filter((network) => network !== null);

/** An IPv4 address wrapped in IPv6 is judged as what it is; no address is inside nothing. */
export function isInside(address: string, networks: Network[]): boolean {
  if (networks.length === 0 || !ipaddr.isValid(address)) return false;
  const parsed = ipaddr.process(address);
  return networks.some(([base, bits]) => base.kind() === parsed.kind() && parsed.match(base, bits));
}
