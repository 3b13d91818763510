// The address a request comes from. Proxy headers are believed only from configured networks.
import ipaddr from "ipaddr.js";
import { isInside, parseNetworks } from "#core/networks.ts";

/** How the client reached a trusted proxy (`X-Forwarded-Proto`); null: no trusted proxy says. */
export function createSchemeReader(trustedProxies: string[]) {
  const networks = parseNetworks(trustedProxies);
  return (remote: string, forwardedProto: string | undefined): "http" | "https" | null => {
    if (!forwardedProto || !isInside(remote, networks)) return null;
    const scheme = forwardedProto.split(",")[0]?.trim().toLowerCase();
    return scheme === "https" || scheme === "http" ? scheme : null;
  };
}

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
