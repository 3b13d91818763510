// Answers to requests with an Idempotency-Key. The port is in base/core/kept-answers.ts.
import type { KeptAnswer, KeptAnswers, KeyedRequest } from "#core/kept-answers.ts";
import type { Sql } from "#storage/sql.ts";
import type { WriterOf } from "#storage/writer.ts";

/** Expired rows deleted with each new one: more than are added. */
const FORGET_ROWS = 20;

export function keptAnswerCommands(sql: Sql) {
  const forget = sql.prepare(`
    DELETE FROM kept_answers WHERE name IN (
      SELECT name FROM kept_answers WHERE expires_at < @now
      ORDER BY expires_at LIMIT (@rows + 0) ${sql.dialect.skipLocked})`);
  // One that has expired and is not yet deleted holds its name no longer.
  const claim = sql.prepare(`
    INSERT INTO kept_answers (name, account_id, request, expires_at)
    VALUES (@name, @accountId, @request, @expiresAt)
    ON CONFLICT (name) DO UPDATE
      SET request = @request, status = NULL, sealed = NULL, expires_at = @expiresAt
      WHERE kept_answers.expires_at < @now`);
  const find = sql.prepare<object, KeptAnswer>(
    "SELECT request, status, sealed FROM kept_answers WHERE name = @name");
  const keep = sql.prepare(
    "UPDATE kept_answers SET status = @status, sealed = @sealed WHERE name = @name");
  const release = sql.prepare("DELETE FROM kept_answers WHERE name = @name");
  return {
    "keptAnswers.claim": async (args: KeyedRequest): Promise<KeptAnswer | null> => {
      await forget.run({ now: args.now, rows: FORGET_ROWS });
      if ((await claim.run(args)).changes > 0) return null;
      return await find.get({ name: args.name }) ?? null;
    },
    "keptAnswers.keep": async (args: Parameters<KeptAnswers["keep"]>[0]): Promise<void> => {
      await keep.run(args);
    },
    "keptAnswers.release": async (args: Parameters<KeptAnswers["release"]>[0]): Promise<void> => {
      await release.run({ name: args.name });
    },
  };
}

export const createKeptAnswers = (writer: WriterOf<typeof keptAnswerCommands>): KeptAnswers => ({
  claim: (request) => writer.write("keptAnswers.claim", request),
  keep: (answer) => writer.write("keptAnswers.keep", answer),
  release: (request) => writer.write("keptAnswers.release", request),
});
