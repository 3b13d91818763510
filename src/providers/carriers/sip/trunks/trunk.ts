// A SIP trunk as the carrier needs it: where its telephone system is, who we are there, and which
// codecs its calls use.
/** Names as owners write them; wideband codecs first. */
export const SIP_CODECS = ["opus", "g722", "pcmu", "pcma"] as const;
export type SipCodec = (typeof SIP_CODECS)[number];

const WIDE: readonly SipCodec[] = ["opus", "g722"];
/** The sample rate of a call that will most likely use this codec. */
export const rateOfCodec = (codec: SipCodec | undefined): 8000 | 16_000 =>
  (codec !== undefined && WIDE.includes(codec) ? 16_000 : 8000);

export interface TrunkSetup {
  id: number;
  accountId: number;
  trunkType: "extension" | "number";
  /** The number of the line in the telephone system: E.164 or an extension. */
  phoneNumber: string;
  /** Also `user@domain`, where the domain differs from the address. */
  username: string;
  password: string;
  /** Host name in lower case, or IP address without brackets. */
  address: string;
  /** Null for the port in DNS (SRV), or else 5060, with TLS 5061. */
  port: number | null;
  transport: "udp" | "tcp" | "tls";
  /** `auth`: we register, and callers have the credentials; `ip`: callers are known by address. */
  inboundAuth: "auth" | "ip";
  /** Addresses and networks (CIDR); null unless `inboundAuth` is `ip`. */
  allowedNetworks: string[] | null;
  /** Calls whose sound is not encrypted are refused, and none is placed. */
  requireSrtp: boolean;
  /** The codecs offered and accepted, best first; at least one. */
  codecs: readonly SipCodec[];
  /** The expiry we ask the registrar for, in seconds; null when another node registers. */
  registerS: number | null;
  /** `address` is a proxy before the telephone system; URIs keep the domain of `username`. */
  outboundProxy: boolean;
}

/** Where the server listens for SIP. */
export interface SipListener {
  host: string;
  port: number;
  /** Written into messages; null: our address as the peer sees it. */
  publicHost: string | null;
  /** PEM; when set, TLS listens on the next port. */
  tls: { key: string; cert: string } | null;
  rtpPorts: { min: number; max: number } | null;
}
