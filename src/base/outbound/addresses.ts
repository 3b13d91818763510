// Which addresses a tenant, a document or a model may make this server connect to. Used by
// request.ts before, during and after every connection.
import ipaddr from "ipaddr.js";
import { bareHost, isInside, machineAddresses, parseNetworks, SERVICE_PORTS } from "#core/networks.ts";

/** Public by the registry, yet they lead to services of this machine's cloud or to private IPv4. */
const DENIED = parseNetworks(["168.63.129.16/32", "::/96", "64:ff9b:1::/48"]);

const DENIED_NAMES = new Set(["metadata", "metadata.google.internal", "instance-data"]);

const WEB_PORTS = new Set([80, 443]);
const FREE_PORTS_FROM = 1024;
const URL_CHARS_MAX = 2048;

export interface AddressPolicy {
  /** The URL when it may be asked for, else null; its name is still to be resolved. */
  readUrl(text: string): URL | null;
  /** Why `readUrl` has none: its form, or the address it names. */
  refusalOf(text: string): "url" | "address";
  /** True for an address that is public, or private and allowed by the operator. */
  allows(address: string): boolean;
}

/** Addresses of this machine, public ones included: its other services must not be reached. */
const ownAddresses = (): Set<string> => new Set(
  machineAddresses().map(({ address }) => ipaddr.process(address).toNormalizedString()));

/** The name without brackets and trailing dot, as it is resolved. */
const hostOf = (url: URL): string => bareHost(url.hostname).replace(/\.$/, "");

export function createAddressPolicy(allowPrivateNetworks: readonly string[]): AddressPolicy {
  const allowed = parseNetworks(allowPrivateNetworks);
  const own = ownAddresses();
  const allows = (text: string): boolean => {
    if (!ipaddr.isValid(text)) return false;
    if (isInside(text, allowed)) return true;
    const address = ipaddr.process(text);
    return address.range() === "unicast"
      && !isInside(text, DENIED)
      && !own.has(address.toNormalizedString());
  };
  const isPort = (url: URL): boolean => {
    const port = Number(url.port || (url.protocol === "https:" ? 443 : 80));
    return WEB_PORTS.has(port) || (port >= FREE_PORTS_FROM && !SERVICE_PORTS.has(port));
  };
  const parse = (text: string): URL | null => {
    if (text.length > URL_CHARS_MAX || !URL.canParse(text)) return null;
    // WHATWG parsing turns 127.1, 0x7f.1, 2130706433 and full-width digits into 127.0.0.1.
    const url = new URL(text);
    if (url.protocol !== "http:" && url.protocol !== "https:") return null;
    if (url.username !== "" || url.password !== "" || !isPort(url)) return null;
    const host = hostOf(url);
    return host === "" || DENIED_NAMES.has(host) ? null : url;
  };
  return {
    allows,
    readUrl: (text) => {
      const url = parse(text);
      return url && (!ipaddr.isValid(hostOf(url)) || allows(hostOf(url))) ? url : null;
    },
    refusalOf: (text) => (parse(text) ? "address" : "url"),
  };
}
