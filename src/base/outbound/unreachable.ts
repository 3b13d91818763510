// Why an endpoint could not be reached, in words for the person who has set it up.

const WORDS: readonly [codes: RegExp, why: string][] = [
  [/^EPROXY$/, "the proxy of this server has no way to it"],
  [/^(ENOTFOUND|EAI_)/, "nobody knows its name"],
  [/^ECONNREFUSED$/, "the connection was refused"],
  [/^E(HOST|NET)UNREACH$/, "there is no way to its address"],
  [/^CERT_HAS_EXPIRED$/, "its certificate has expired"],
  [/^ERR_TLS_CERT_ALTNAME_INVALID$/, "its certificate is for another name"],
  [/CERT|UNABLE_TO_(GET|VERIFY)/, "its certificate is not trusted"],
  [/^(ERR_SSL_|EPROTO$)/, "it does not speak TLS as it should"],
  [/^(HPE_|HTTPParserError$)/, "what it answered is no HTTP"],
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
    ? "its URL has to be http or https, without a password, at a port of web servers"
    : "it is in a private network or on this machine, which whoever runs the server has to allow "
      + "(PARLEY_ALLOW_PRIVATE_NETWORKS)");

/** The sentence about `what`, with the reason where it is known. */
export const couldNotBeReached = (what: string, why: string | undefined): string =>
  `${what} could not be reached${why === undefined ? "" : `: ${why}`}`;
