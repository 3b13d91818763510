// Answers challenges for one set of credentials: once, and once more when only the nonce was stale
// or another algorithm is asked for.
// The last challenge is kept, so that what follows is not challenged again.
import type { System } from "#core/system.ts";
import { answerChallenge, chooseChallenge, type Challenge } from "#providers/carriers/sip/grammar/digest.ts";
import type { SipRequest, SipResponse } from "#providers/carriers/sip/grammar/message.ts";

export interface Credentials {
  username: string;
  password: string;
}

export interface Authenticator {
  /** Adds what is known already; for the first try of a request. */
  prepare(request: SipRequest): void;
  /** May the request be tried again? Then `prepare` answers this challenge. */
  challenged(response: SipResponse): boolean;
}

const PAIRS = { 401: ["WWW-Authenticate", "Authorization"],
  407: ["Proxy-Authenticate", "Proxy-Authorization"] } as const;

type Status = keyof typeof PAIRS;

/** Tries are counted per request: make a `begin` for each. */
export function createAuthenticator(system: System, credentials: Credentials | null) {
  const known = new Map<Status, { challenge: Challenge; count: number }>();

  function write(request: SipRequest): void {
    if (!credentials) return;
    for (const [status, entry] of known) {
      entry.count++;
      request.headers.set(PAIRS[status][1], answerChallenge({
        challenge: entry.challenge,
        method: request.method,
        uri: request.uri,
        username: credentials.username,
        password: credentials.password,
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
        challenged({ status, headers }) {
          if (!credentials || (status !== 401 && status !== 407)) return false;
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
