// A SIP trunk as the carrier needs it: where its telephone system is, who we are there, and how the
// sound of its calls is coded.
/** Names as owners write them; those of wide sound first. */
export const SIP_CODECS = ["opus", "g722", "pcmu", "pcma"] as const;
export type SipCodec = (typeof SIP_CODECS)[number];

const WIDE: readonly SipCodec[] = ["opus", "g722"];
/** Samples per second of calls whose codec is most likely this one. */
export const rateOfCodec = (codec: SipCodec | undefined): 8000 | 16_000 =>
  (codec !== undefined && WIDE.includes(codec) ? 16_000 : 8000);

export interface TrunkSetup {
  id: number;
  accountId: number;
  trunkType: "extension" | "number";
  /** What the telephone system calls the line: E.164 or an extension. */
  phoneNumber: string;
  /** Also `user@domain`, where the domain differs from the address. */
  username: string;
  password: string;
  /** Host name in lower case, or IP address without brackets. */
  address: string;
  /** Null: what DNS says (SRV), else 5060, with TLS 5061. */
  port: number | null;
  transport: "udp" | "tcp" | "tls";
  /** `auth`: we register, and callers know name and password; `ip`: they are at these addresses. */
  inboundAuth: "auth" | "ip";
  /** Addresses and networks (CIDR); null unless `inboundAuth` is `ip`. */
  allowedNetworks: string[] | null;
  /** Calls whose sound is not encrypted are refused, and none is placed. */
  requireSrtp: boolean;
  /** At least one, best first: those offered and taken. */
  codecs: readonly SipCodec[];
  /** Seconds for which we ask the registrar to know us; null: others are registered for us. */
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
  /** PEM; with it TLS is listened for on the next port. */
  tls: { key: string; cert: string } | null;
  rtpPorts: { min: number; max: number } | null;
}
