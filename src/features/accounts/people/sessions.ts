// Sessions of the dashboard: a token made with an API key that may read what the key may read,
// within a rate limit of its own, so that viewing pages never uses up the limit of the key's
// programs. It cannot change or send anything: that takes the key and its rate limit. All sessions
// of a key share one limit, so making more of them gains nothing. Sealed, not stored: they outlive
// restarts and end with their key.
import { LIMITS } from "#core/limits.ts";
import type { SecretBox } from "#core/secrets.ts";
import type { Instant, System } from "#core/system.ts";
import type { Accounts, Identity } from "#features/accounts/accounts.ts";

export interface Sessions {
  open(keyId: number): { token: string; expiresAt: Instant };
  /** Null for anything but the token of a session whose key is in force. */
  find(token: string): Promise<(Identity & { session: true }) | null>;
}

const PLACE = "dashboard-session";
const PREFIX = "session.";

export function createSessions(
  { box, accounts, system }: { box: SecretBox; accounts: Accounts; system: System },
): Sessions {
  const read = (token: string): { keyId: number; expiresAt: Instant } | null => {
    // A token that cannot be opened was not made here, and is answered like any other wrong token.
    const text = token.startsWith(PREFIX) ? box.tryOpen(token.slice(PREFIX.length), PLACE) : null;
    const [keyId, expiresAt] = text?.split(" ").map(Number) ?? [];
    return keyId && expiresAt ? { keyId, expiresAt } : null;
  };
  return {
    open: (keyId) => {
      const expiresAt = system.now() + LIMITS.dashboardSessionMs * 1000;
      return { token: PREFIX + box.seal(`${keyId} ${expiresAt}`, PLACE), expiresAt };
    },
    find: async (token) => {
      const session = read(token);
      if (!session || session.expiresAt <= system.now()) return null;
      const identity = await accounts.identityOf(session.keyId);
      return identity && { ...identity, session: true };
    },
  };
}
