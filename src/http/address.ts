// Whose request this is, as an address. Proxy headers are believed only from configured networks.
import ipaddr from "ipaddr.js";
import { isInside, parseNetworks } from "../core/networks.ts";

/** Walks `X-Forwarded-For` from the right, past trusted proxies, to the first other address. */
export function createAddressReader(trustedProxies: string[]) {
  const networks = parseNetworks(trustedProxies);
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
