// Wrong credentials by the address they come from: each is logged in the form fail2ban reads, and
// an address that has shown too many is slowed. Right credentials are still accepted where they
// cannot be guessed (API keys, stream tickets), so that nobody behind the same proxy is locked out;
// where they can be guessed (SIP passwords), callers ask `waitMs` before they check them.
import { LIMITS } from "./limits.ts";
import type { Logger } from "./logger.ts";
import { addressKey } from "./networks.ts";
import { createRateLimiter } from "./rate-limit.ts";
import type { System } from "./system.ts";

type CredentialKind =
  | "api_key" | "stream_ticket" | "sip" | "password" | "session" | "invitation" | "oidc";

export interface FailedAuthentications {
  /** Counts and logs one; milliseconds to wait before the next, 0 within the allowance. */
  record(address: string, kind: CredentialKind): number;
  /** Milliseconds until credentials of this address are judged again; counts nothing. */
  waitMs(address: string): number;
}

/** `slows` false: failures are only logged, boundedly. Memory is bounded by the addresses kept. */
export function createFailedAuthentications(
  { log, system, slows }: { log: Pick<Logger, "warn">; system: System; slows: boolean },
): FailedAuthentications {
  const limiter = createRateLimiter(
    [{ count: LIMITS.failedAuthenticationsMax, windowMs: 60_000 }],
    { system, keysMax: LIMITS.rateLimiterKeysMax });
  return {
    record: (address, kind) => {
      const { allowed, retryAfterMs } = limiter.take(addressKey(address));
      // What is beyond the allowance is not logged either: a flood must not fill the disk.
      if (allowed) log.warn({ address, kind }, "authentication failed");
      return slows ? retryAfterMs : 0;
    },
    waitMs: (address) => slows ? limiter.look(addressKey(address)).retryAfterMs : 0,
  };
}
