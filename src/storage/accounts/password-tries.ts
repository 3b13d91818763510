// Passwords tried lately, counted for all nodes and over restarts. Rules:
// features/accounts/people/sign-in.ts.
import { LIMITS } from "#core/limits.ts";
import type { PasswordTry } from "#features/accounts/people/users.ts";
import type { Sql } from "#storage/sql.ts";

/** Expired rows deleted with each try: more than one try adds. */
const FORGET_ROWS = 20;

export function passwordTryCommands(sql: Sql) {
  // The try that has to leave the window before one more fits.
  const blocking = sql.prepare<object, { tried_at: number }>(`
    SELECT tried_at FROM password_tries
    WHERE who_hash = @whoHash AND tried_at > @since AND tried_at <= @latest ORDER BY tried_at DESC
    LIMIT 1 OFFSET (@others + 0)`);
  const insert = sql.prepare(
    "INSERT INTO password_tries (who_hash, tried_at) VALUES (@whoHash, @now)");
  const forget = sql.prepare(`
    DELETE FROM password_tries WHERE id IN (
      SELECT id FROM password_tries WHERE tried_at <= @since ORDER BY tried_at LIMIT (@rows + 0))`);
  return {
    "users.tryPassword": async ({ counted, windowMicros, now }: PasswordTry): Promise<number> => {
      const since = now - windowMicros;
      // A try further ahead than clocks may drift dates from before a clock was set back.
      const latest = now + LIMITS.clockOffMsMax * 1000;
      await forget.run({ since, rows: FORGET_ROWS });
      let waitMicros = 0;
      for (const { whoHash, max } of counted) {
        const row = await blocking.get({ whoHash, since, latest, others: max - 1 });
        if (row) waitMicros = Math.max(waitMicros, row.tried_at - since);
        else await insert.run({ whoHash, now });
      }
      return waitMicros;
    },
  };
}
