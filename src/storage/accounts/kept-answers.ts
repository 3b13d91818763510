// Answers to requests with an Idempotency-Key. The port is in base/core/kept-answers.ts.
import type { KeptAnswer, KeptAnswers, KeyedRequest } from "#core/kept-answers.ts";
import type { Instant } from "#core/system.ts";
import type { Reader, Sql } from "#storage/sql.ts";
import { perAccount } from "#storage/sweeps.ts";
import type { WriterOf } from "#storage/writer.ts";

export function keptAnswerCommands(sql: Sql) {
  // One that has expired and is not yet trimmed holds its name no longer.
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
  const trim = sql.prepare(`
    DELETE FROM kept_answers WHERE name IN (
      SELECT name FROM kept_answers WHERE account_id = @accountId AND expires_at < @before
      ORDER BY expires_at LIMIT (@rows + 0))`);
  return {
    "keptAnswers.claim": async (args: KeyedRequest): Promise<KeptAnswer | null> => {
      if ((await claim.run(args)).changes > 0) return null;
      return await find.get({ name: args.name }) ?? null;
    },
    "keptAnswers.keep": async (args: Parameters<KeptAnswers["keep"]>[0]): Promise<void> => {
      await keep.run(args);
    },
    "keptAnswers.release": async (args: Parameters<KeptAnswers["release"]>[0]): Promise<void> => {
      await release.run({ name: args.name });
    },
    "keptAnswers.trim": async (
      args: { accountId: number; before: Instant; rows: number },
    ): Promise<number> => (await trim.run(args)).changes,
  };
}

export function createKeptAnswers(
  reader: Reader, writer: WriterOf<typeof keptAnswerCommands>,
): KeptAnswers {
  const due = reader.prepare<object, { accountId: number }>(`
    SELECT account_id AS "accountId" FROM kept_answers
    WHERE expires_at < @before ORDER BY expires_at LIMIT (@rows + 0)`);
  return {
    claim: (request) => writer.write("keptAnswers.claim", request),
    keep: (answer) => writer.write("keptAnswers.keep", answer),
    release: (request) => writer.write("keptAnswers.release", request),
    trim: async (before, rows) => {
      const trimmed = await perAccount(await due.all({ before, rows }), (accountId, own) =>
        writer.write("keptAnswers.trim", { accountId, before, rows: own.length }));
      return trimmed.reduce((sum, count) => sum + count, 0);
    },
  };
}
