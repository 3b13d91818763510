// The rules of a SIP trunk's fields that no schema can express: addresses, networks, and
// dependencies between fields. Pure.
import ipaddr from "ipaddr.js";
import type { FieldErrors } from "#core/faults.ts";
import { mayBeTelephoneSystem, parseNetwork } from "#core/networks.ts";
import { parseNumber } from "./prices.ts";
import type { SipTrunkFields } from "./sip-trunks.ts";

export const TRUNK_TYPES = ["extension", "number"] as const;
export type TrunkType = (typeof TRUNK_TYPES)[number];
export const TRANSPORTS = ["udp", "tcp", "tls"] as const;
export type Transport = (typeof TRANSPORTS)[number];
export const INBOUND_AUTHS = ["auth", "ip"] as const;
export type InboundAuth = (typeof INBOUND_AUTHS)[number];

const LABEL = /^(?!-)[a-z0-9_-]{1,63}(?<!-)$/;
/** No host name ends like this: resolvers read 127.1, 0x7f.1 and 2130706433 as addresses. */
const NUMERIC_LABEL = /^(\d+|0x[0-9a-f]*)$/;
const NAME_CHARS_MAX = 253;
const EXTENSION = /^[0-9A-Za-z*#+._-]{1,15}$/;

export const isIpAddress = (text: string): boolean => text.includes(":")
  ? ipaddr.IPv6.isValid(text) && !text.includes("%")
  : ipaddr.IPv4.isValidFourPartDecimal(text);

/** The host as stored: a lower-case name or an address; null: neither, or it has a port. */
export function readSipAddress(text: string): string | null {
  const host = text.trim().toLowerCase();
  const bare = host.startsWith("[") && host.endsWith("]") ? host.slice(1, -1) : host;
  if (bare.includes(":")) return isIpAddress(bare) ? bare : null;
  if (bare !== host) return null;
  if (isIpAddress(host)) return host;
  const name = host.replace(/\.$/, "");
  const labels = name.split(".");
  const isName = name.length <= NAME_CHARS_MAX && labels.every((label) => LABEL.test(label))
    && !NUMERIC_LABEL.test(labels.at(-1) ?? "");
  return isName ? name : null;
}

/** Wider networks are refused: they would admit much of the Internet. */
const PREFIX_MIN = { ipv4: 8, ipv6: 16 };

export function isAllowableNetwork(text: string): boolean {
  const network = parseNetwork(text);
  return network !== null && network[1] >= PREFIX_MIN[network[0].kind()];
}

/** Schema errors take precedence: a field that has one gets none of the rules' errors. */
export function findErrors(
  next: Partial<SipTrunkFields>,
  sent: Partial<SipTrunkFields>,
  schemaErrors: FieldErrors,
  mayReach: (address: string) => boolean,
): FieldErrors {
  const named = new Set(Object.keys(schemaErrors).map((field) => field.split(".")[0]));
  const found = Object.entries(ruleErrors(next, sent, mayReach))
    .filter(([field]) => !named.has(field));
  return { ...schemaErrors, ...Object.fromEntries(found) };
}

/** Keyed by the wire's names. `next`: the trunk after the change; `sent`: the fields sent. */
function ruleErrors(
  next: Partial<SipTrunkFields>,
  sent: Partial<SipTrunkFields>,
  mayReach: (address: string) => boolean,
): FieldErrors {
  const errors: FieldErrors = {};
  const { phoneNumber, trunkType, inboundAuth, allowedNetworks } = next;
  if (phoneNumber !== undefined && trunkType === "number" && !parseNumber(phoneNumber)) {
    errors.phone_number = ["The phone number must be in E.164 format (e.g. +1234567890)."];
  }
  if (phoneNumber !== undefined && trunkType === "extension" && !EXTENSION.test(phoneNumber)) {
    errors.phone_number = ["The phone number of an extension must be 1 to 15 letters, digits or any of *#+._- characters."];
  }
  if (sent.address !== undefined && isIpAddress(sent.address) && !mayReach(sent.address)) {
    errors.sip_address = ["SIP server address is in a network this server may not reach."];
  }
  if (sent.port !== undefined && sent.port !== null && !mayBeTelephoneSystem(sent.port)) {
    errors.sip_port =
      ["The sip port must be 443 or above 1023, and not one of a database or another service."];
  }
  if (inboundAuth === "ip" && !allowedNetworks?.length) {
    errors.allowed_inbound_ips =
      ["At least one allowed IP address is required when authorization type is \"ip\"."];
  }
  return errors;
}

/** Valid fields in their stored form. */
export function settled<T extends Omit<SipTrunkFields, "password">>(fields: T): T {
  const { trunkType, phoneNumber, inboundAuth, allowedNetworks } = fields;
  const number = trunkType === "number" ? parseNumber(phoneNumber)?.phoneNumber : undefined;
  return {
    ...fields,
    phoneNumber: number ?? phoneNumber,
    // Switching to `auth` clears the list.
    allowedNetworks: inboundAuth === "ip" ? allowedNetworks : null,
  };
}
