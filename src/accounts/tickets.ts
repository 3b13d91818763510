// Short-lived tickets with which a browser opens the account's stream: EventSource and WebSocket
// cannot send headers, and an API key must never stand in a URL.
import { LIMITS } from "../core/limits.ts";
import type { Instant, System } from "../core/system.ts";
import type { Identity } from "./accounts.ts";

export interface Tickets {
  issue(identity: Identity): { ticket: string; expiresAt: Instant };
  /** Who the ticket was issued to while it is valid; null for anything else. */
  redeem(ticket: string): Identity | null;
}

/** Held in memory: a restart ends them, which a client that reconnects has to handle anyway. */
export function createTickets(system: System): Tickets {
  const issued = new Map<string, { identity: Identity; expiresAt: Instant }>();
  return {
    issue: (identity) => {
      const now = system.now();
      for (const [ticket, { expiresAt }] of issued) {
        // Oldest first: what comes after the first valid one is valid too.
        if (expiresAt > now && issued.size < LIMITS.streamTicketsMax) break;
        issued.delete(ticket);
      }
      const ticket = system.randomBytes(24).toString("base64url");
      const expiresAt = now + LIMITS.streamTicketMs * 1000;
      issued.set(ticket, { identity, expiresAt });
      return { ticket, expiresAt };
    },
    redeem: (ticket) => {
      const entry = issued.get(ticket);
      return entry && entry.expiresAt > system.now() ? entry.identity : null;
    },
  };
}
