// Claims to numbers over SIP trunks: when those of two accounts collide. Any account may claim any
// number, and a call from a carrier says only which number was called: so no two accounts may have
// the same number at the same carrier unless the operator has decided whose it is. The only
// claimant of a number has nothing to prove. Pure; used by the storage of trunks.
import ipaddr from "ipaddr.js";
import { parseNetworks, type Network } from "#core/networks.ts";
import { likenessOf } from "./dialled.ts";
import { isIpAddress } from "./sip-rules.ts";
import type { SipTrunkFields } from "./sip-trunks.ts";

type Claim = Pick<
  SipTrunkFields, "phoneNumber" | "countryCode" | "address" | "inboundAuth" | "allowedNetworks"
>;

const overlap = ([one, bits]: Network, [other, otherBits]: Network): boolean =>
  one.kind() === other.kind() && one.match(other, Math.min(bits, otherBits));

/** The networks that the trunk's calls come from; null: unknown, as it is given by host name. */
function originsOf({ address, inboundAuth, allowedNetworks }: Claim): Network[] | null {
  if (inboundAuth === "ip") return parseNetworks(allowedNetworks ?? []);
  return isIpAddress(address) ? parseNetworks([ipaddr.process(address).toString()]) : null;
}

function isSameCarrier(one: Claim, other: Claim): boolean {
  if (one.address === other.address) return true;
  const [origins, others] = [originsOf(one), originsOf(other)];
  if (origins && others) {
    return origins.some((network) => others.some((it) => overlap(network, it)));
  }
  // With the same authentication, two names are two carriers; otherwise they may overlap.
  return one.inboundAuth !== other.inboundAuth;
}

/** Whether a call for one could be mistaken for a call for the other, in any spelling. */
export const collide = (one: Claim, other: Claim): boolean =>
  (likenessOf(one.phoneNumber, other) ?? likenessOf(other.phoneNumber, one)) !== null
  && isSameCarrier(one, other);
