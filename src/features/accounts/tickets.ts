// Short-lived tickets with which a browser opens a socket or stream: EventSource and WebSocket
// cannot send headers, and an API key must never stand in a URL.
import { LIMITS } from "#core/limits.ts";
import type { Instant, System } from "#core/system.ts";

export interface Tickets<Subject> {
  issue(subject: Subject): { ticket: string; expiresAt: Instant };
  /** What the ticket was issued for while it is valid; null for anything else. */
  redeem(ticket: string): Subject | null;
}

/** Held in memory: a restart ends them, which a client that reconnects has to handle anyway. */
export function createTickets<Subject>(
  system: System,
  { singleUse = false }: { singleUse?: boolean } = {},
): Tickets<Subject> {
  const issued = new Map<string, { subject: Subject; expiresAt: Instant }>();
  return {
    issue: (subject) => {
      const now = system.now();
      for (const [ticket, { expiresAt }] of issued) {
        // Oldest first: what comes after the first valid one is valid too.
        if (expiresAt > now && issued.size < LIMITS.streamTicketsMax) break;
        issued.delete(ticket);
      }
      const ticket = system.randomBytes(24).toString("base64url");
      const expiresAt = now + LIMITS.streamTicketMs * 1000;
      issued.set(ticket, { subject, expiresAt });
      return { ticket, expiresAt };
    },
    redeem: (ticket) => {
      const entry = issued.get(ticket);
      if (singleUse) issued.delete(ticket);
      return entry && entry.expiresAt > system.now() ? entry.subject : null;
    },
  };
}
