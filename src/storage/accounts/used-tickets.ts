// Redeemed tickets, for nodes that accept one another's. The port is in
// features/accounts/people/tickets.ts.
import type { UsedTicket, UsedTickets } from "#features/accounts/people/tickets.ts";
import type { Sql } from "#storage/sql.ts";
import type { WriterOf } from "#storage/writer.ts";

/** Expired rows deleted with each new one: more than are added. */
const FORGET_ROWS = 20;

export function ticketCommands(sql: Sql) {
  const use = sql.prepare(`
    INSERT INTO used_tickets (ticket, expires_at) VALUES (@ticket, @expiresAt)
    ON CONFLICT (ticket) DO NOTHING`);
  const forget = sql.prepare(`
    DELETE FROM used_tickets WHERE ticket IN (
      SELECT ticket FROM used_tickets WHERE expires_at < @now
      ORDER BY expires_at LIMIT (@rows + 0) ${sql.dialect.skipLocked})`);
  return {
    "tickets.use": async (args: UsedTicket): Promise<boolean> => {
      await forget.run({ now: args.now, rows: FORGET_ROWS });
      return (await use.run(args)).changes > 0;
    },
  };
}

export const createUsedTickets = (writer: WriterOf<typeof ticketCommands>): UsedTickets => ({
  use: (ticket) => writer.write("tickets.use", ticket),
});
