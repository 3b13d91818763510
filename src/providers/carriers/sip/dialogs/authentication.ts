// Answers challenges for one set of credentials: once per request, and once more when only the
// nonce was stale or when the challenge changes to another algorithm.
// The last challenge is kept, so that later requests can answer it at once.
import type { System } from "#core/system.ts";
import { answerChallenge, chooseChallenge, type Challenge } from "#providers/carriers/sip/grammar/digest.ts";
import type { SipRequest, SipResponse } from "#providers/carriers/sip/grammar/message.ts";
import { plainHost, type Peer } from "#providers/carriers/sip/transport/peer.ts";

export interface Credentials {
  username: string;
  password: string;
}

/** The credentials, and who may be sent a digest made from them. */
export interface Proof {
  credentials: Credentials;
  /**
   * Whether a host may be sent a digest. A host that has one for a nonce of its own choice can
   * guess passwords offline, and a Contact may name any host.
   */
  mayAsk(host: string): boolean;
}

export function proofAt(credentials: Credentials | null, peers: readonly Peer[]): Proof | null {
  const hosts = new Set(peers.map(({ host }) => plainHost(host)));
  return credentials && { credentials, mayAsk: (host) => hosts.has(plainHost(host)) };
}

export interface Authenticator {
  /** Adds answers to the challenges known so far; called before every attempt. */
  prepare(request: SipRequest, peer: Peer): void;
  /** Whether the request may be retried; if so, `prepare` answers this challenge. */
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
      /** Challenges answered from memory: a new challenge to these is not yet a refusal. */
      const remembered = new Set(known.keys());
      return {
        prepare: write,
        challenged({ status, headers }, peer) {
          if (!proof?.mayAsk(peer.host)) return false;
          if (status !== 401 && status !== 407) return false;
          const challenge = chooseChallenge(headers.all(PAIRS[status][0]));
          if (!challenge) return false;
          const before = known.get(status)?.challenge.algorithm;
          // The far end asked for MD5 until it knew the user name, and now for that user's
          // algorithm.
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
