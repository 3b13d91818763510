// Why an endpoint could not be reached, in words for the person who has set it up.

const WORDS: readonly [codes: RegExp, why: string][] = [
  [/^EPROXY$/, "this server's proxy cannot reach it"],
  [/^(ENOTFOUND|EAI_)/, "its host name does not resolve"],
  [/^ECONNREFUSED$/, "the connection was refused"],
  [/^E(HOST|NET)UNREACH$/, "there is no route to its address"],
  [/^CERT_HAS_EXPIRED$/, "its certificate has expired"],
  [/^ERR_TLS_CERT_ALTNAME_INVALID$/, "its certificate is for another name"],
  [/CERT|UNABLE_TO_(GET|VERIFY)/, "its certificate is not trusted"],
  [/^(ERR_SSL_|EPROTO$)/, "the TLS handshake failed"],
  [/^(HPE_|HTTPParserError$)/, "its answer is not HTTP"],
  [/^(ECONNRESET|EPIPE|UND_ERR_SOCKET)$/, "it closed the connection without an answer"],
];

/** Codes of errors after which nothing of a request can have been sent. */
export const BEFORE_SENDING: ReadonlySet<string> = new Set([
  "ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH", "UND_ERR_CONNECT_TIMEOUT",
  "EPROXY",
]);

/** `codes`: of the errors that led to it, or their names. Null: none of them is known. */
export const whyUnreachable = (codes: readonly string[]): string | null =>
  WORDS.find(([pattern]) => codes.some((code) => pattern.test(code)))?.[1] ?? null;

/** Why nothing was sent there, and who can change that. `url`: its form; `address`: its place. */
export const mayNotBeCalled = (what: string, reason: "url" | "address"): string =>
  `${what} may not be called: ` + (reason === "url"
    ? "its URL must be http or https, without a password, on a port used for web servers"
    : "its address is private or on this machine, which the operator of the server must allow "
      + "(PARLEY_ALLOW_PRIVATE_NETWORKS)");

/** The sentence about `what`, with the reason where it is known. */
export const couldNotBeReached = (what: string, why: string | undefined): string =>
  `${what} could not be reached${why === undefined ? "" : `: ${why}`}`;
