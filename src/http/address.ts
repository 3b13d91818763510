// Whose request this is, as an address. Proxy headers are believed only from configured networks.
import ipaddr from "ipaddr.js";

type Network = [ipaddr.IPv4 | ipaddr.IPv6, number];

export function parseNetwork(text: string): Network | null {
  const cidr = text.includes("/") ? text : `${text}/${text.includes(":") ? 128 : 32}`;
  return ipaddr.isValidCIDR(cidr) ? ipaddr.parseCIDR(cidr) : null;
}

function isInside(address: string, networks: Network[]): boolean {
  if (networks.length === 0 || !ipaddr.isValid(address)) return false;
  const parsed = ipaddr.process(address);
  return networks.some(([base, bits]) =>
    base.kind() === parsed.kind() && parsed.match(base, bits));
}

/** Walks `X-Forwarded-For` from the right, past trusted proxies, to the first other address. */
export function createAddressReader(trustedProxies: string[]) {
  const networks = trustedProxies.map(parseNetwork).filter((network) => network !== null);
  return (remote: string, forwardedFor: string | undefined): string => {
    if (!forwardedFor || !isInside(remote, networks)) return remote;
    let current = remote;
    for (const hop of forwardedFor.split(",").reverse()) {
      const address = hop.trim();
      if (!ipaddr.isValid(address)) return current;
      current = address;
      if (!isInside(address, networks)) return current;
    }
    return current;
  };
}

/** What rate limits count by: the address, for IPv6 its /64 network, which one customer owns. */
export function addressKey(address: string): string {
  if (!ipaddr.isValid(address)) return address;
  const parsed = ipaddr.process(address);
  return parsed instanceof ipaddr.IPv6
    ? parsed.parts.slice(0, 4).map((part) => part.toString(16)).join(":")
    : parsed.toString();
}
