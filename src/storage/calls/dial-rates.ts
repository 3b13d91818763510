// The limit on calls an account dials per minute: a step of the command that begins a call. The
// bucket itself is in phone-numbers/dial-guard.ts.
import type { Instant } from "#core/system.ts";
import { dialTurn } from "#features/phone-numbers/dial-guard.ts";
import type { Sql } from "#storage/sql.ts";

/** Takes one call from the bucket and returns null, or returns when the next one is available. */
export function createDialRates(sql: Sql) {
  const read = sql.prepare<object, { spent_until: number }>(
    "SELECT spent_until FROM dial_rates WHERE account_id = @accountId");
  const write = sql.prepare(`
    INSERT INTO dial_rates (account_id, spent_until) VALUES (@accountId, @spentUntil)
    ON CONFLICT (account_id) DO UPDATE SET spent_until = excluded.spent_until`);
  return async (
    accountId: number, perMinute: number | null, now: Instant,
  ): Promise<Instant | null> => {
    if (perMinute === null) return null;
    const turn = dialTurn((await read.get({ accountId }))?.spent_until ?? null, perMinute, now);
    if (turn.kind === "wait") return turn.until;
    await write.run({ accountId, spentUntil: turn.spentUntil });
    return null;
  };
}
