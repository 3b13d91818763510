// Short-lived tickets with which a browser opens a socket or stream: EventSource and WebSocket
// cannot send headers, and an API key must never be in a URL. They are signed, so any node that has
// the secret accepts what another issued; each opens one thing, once.
import { createHmac, timingSafeEqual } from "node:crypto";
import { LIMITS } from "#core/limits.ts";
import type { Instant, System } from "#core/system.ts";

export interface Tickets<Subject> {
  issue(subject: Subject): { ticket: string; expiresAt: Instant };
  /** What a valid ticket was issued for, on its first use; null for anything else. */
  redeem(ticket: string): Promise<Subject | null>;
}

export interface UsedTicket {
  accountId: number;
  ticket: string;
  expiresAt: Instant;
  now: Instant;
}

/** Which tickets were redeemed. */
export interface UsedTickets {
  /** False: it was used before. An entry must be kept until the ticket expires, not longer. */
  use(ticket: UsedTicket): Promise<boolean>;
}

/** Makes tickets for one purpose, which are not valid for any other. */
export type NewTickets =
  <Subject extends { accountId: number }>(purpose: string) => Tickets<Subject>;

interface TicketOptions {
  /** Nodes that share it take one another's tickets. */
  secret: Buffer | string;
  used: UsedTickets;
  system: System;
}

/** For a single process: its tickets end with it. */
export function createOwnUsedTickets(): UsedTickets {
  const used = new Map<string, Instant>();
  return {
    use: async ({ ticket, expiresAt, now }) => {
      for (const [known, endsAt] of used) {
        // The map is oldest first: those after the first valid ticket are valid too, or nearly so.
        if (endsAt > now && used.size < LIMITS.streamTicketsMax) break;
        used.delete(known);
      }
      if (used.has(ticket)) return false;
      used.set(ticket, expiresAt);
      return true;
    },
  };
}

const NONCE_BYTES = 12;

export function createTickets({ secret, used, system }: TicketOptions): NewTickets {
  return <Subject extends { accountId: number }>(purpose: string): Tickets<Subject> => {
    const key = createHmac("sha256", secret).update(`tickets ${purpose}`).digest();
    const sign = (body: string): Buffer => createHmac("sha256", key).update(body).digest();
    const read = (ticket: string): [Subject, Instant] | null => {
      const [body = "", signature = ""] = ticket.split(".");
      const given = Buffer.from(signature, "base64url");
      const right = sign(body);
      if (given.length !== right.length || !timingSafeEqual(given, right)) return null;
      // The signature is right, so this process or another with the secret wrote the JSON.
      const text = Buffer.from(body, "base64url").toString("utf8");
      const [subject, expiresAt] = JSON.parse(text) as [Subject, Instant, string];
      return expiresAt > system.now() ? [subject, expiresAt] : null;
    };
    return {
      issue: (subject) => {
        const expiresAt = system.now() + LIMITS.streamTicketMs * 1000;
        const nonce = system.randomBytes(NONCE_BYTES).toString("base64url");
        const body = Buffer.from(JSON.stringify([subject, expiresAt, nonce])).toString("base64url");
        return { ticket: `${body}.${sign(body).toString("base64url")}`, expiresAt };
      },
      redeem: async (ticket) => {
        const found = read(ticket);
        if (!found) return null;
        const [subject, expiresAt] = found;
        const { accountId } = subject;
        // The signature identifies the ticket; re-encoded, because base64 has several spellings.
        const [body = ""] = ticket.split(".");
        const isFirst = await used.use({
          accountId, ticket: sign(body).toString("base64url"), expiresAt, now: system.now(),
        });
        return isFirst ? subject : null;
      },
    };
  };
}
