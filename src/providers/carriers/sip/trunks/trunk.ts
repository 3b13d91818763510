// A SIP trunk as the carrier needs it: where its telephone system is, and who we are there.
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
