// Answers challenges for one set of credentials: once, and once more when only the nonce was stale
// or another algorithm is asked for.
// The last challenge is kept, so that what follows is not challenged again.
import type { System } from "#core/system.ts";
import { answerChallenge, chooseChallenge, type Challenge } from "#providers/carriers/sip/grammar/digest.ts";
import type { SipRequest, SipResponse } from "#providers/carriers/sip/grammar/message.ts";
import { plainHost, type Peer } from "#providers/carriers/sip/transport/peer.ts";

export interface Credentials {
  username: string;
  password: string;
}

/** What is proven, and to whom. */
export interface Proof {
  credentials: Credentials;
  /**
   * Whether who is at this address may have it. Whoever has one for a nonce of his own can try
   * passwords against it at leisure, and a Contact leads to anybody.
   */
  mayAsk(host: string): boolean;
}

export function proofAt(credentials: Credentials | null, peers: readonly Peer[]): Proof | null {
  const hosts = new Set(peers.map(({ host }) => plainHost(host)));
  return credentials && { credentials, mayAsk: (host) => hosts.has(plainHost(host)) };
}

export interface Authenticator {
  /** Adds what is known already; for the first try of a request. */
  prepare(request: SipRequest, peer: Peer): void;
  /** May the request be tried again? Then `prepare` answers this challenge. */
  challenged(response: SipResponse, peer: Peer): boolean;
}

const PAIRS = { 401: ["WWW-Authenticate", "Authorization"],
  407: ["Proxy-Authenticate", "Proxy-Authorization"] } as const;

type Status = keyof typeof PAIRS;

/** Tries are counted per request: make a `begin` for each. */
export function createAuthenticator(system: System, proof: Proof | null) {
  const known = new Map<Status, { challenge: Challenge; count: number }>();

  function write(request: SipRequest, peer: Peer): void {
    if (!proof?.mayAsk(peer.host)) return;
    const { username, password } = proof.credentials;
    for (const [status, entry] of known) {
      entry.count++;
      request.headers.set(PAIRS[status][1], answerChallenge({
        challenge: entry.challenge,
        method: request.method,
        uri: request.uri,
        username,
        password,
        nonceCount: entry.count,
        cnonce: system.randomBytes(8).toString("hex"),
      }));
    }
  }

  return {
    begin(): Authenticator {
      const tried = new Set<Status>();
      let wasStale = false;
      let wasOther = false;
      /** What was answered from memory: being challenged anew is then no refusal. */
      const remembered = new Set(known.keys());
      return {
        prepare: write,
        challenged({ status, headers }, peer) {
          if (!proof?.mayAsk(peer.host)) return false;
          if (status !== 401 && status !== 407) return false;
          const challenge = chooseChallenge(headers.all(PAIRS[status][0]));
          if (!challenge) return false;
          const before = known.get(status)?.challenge.algorithm;
          // Asked for by MD5 until the far end knew the name, and now by what the name has.
          const isAnother = before !== undefined && before !== challenge.algorithm && !wasOther;
          if (tried.has(status) && isAnother) wasOther = true;
          else if (tried.has(status)) {
            if (!challenge.stale || wasStale) {
              known.delete(status);
              return false;
            }
            wasStale = true;
          }
          if (!remembered.delete(status)) tried.add(status);
          known.set(status, { challenge, count: 0 });
          return true;
        },
      };
    },
  };
}

export type Authentication = ReturnType<typeof createAuthenticator>;
