// The end of a conversation and its evaluation: which ones are due, and their results.
import type { Evaluated, EvaluationStore } from "#features/conversations/evaluations.ts";
import type { Instant } from "#core/system.ts";
import type { CommittedEvent } from "#events/events.ts";
import { createAccountAppender } from "#storage/events.ts";
import type { Reader, Sql } from "#storage/sql.ts";
import type { WriterOf } from "#storage/writer.ts";

interface EndingRow {
  type: string;
  settings: string;
  was_written: number;
}

/** Ends a conversation; an evaluation the assistant wants becomes due if a user has written. */
export function createEnd(sql: Sql): (args: { id: number; now: Instant }) => Promise<void> {
  const find = sql.prepare<object, EndingRow>(`
    SELECT c.type, a.settings, EXISTS (
      SELECT 1 FROM messages m WHERE m.conversation_id = c.id AND m.role = 'user') AS was_written
    FROM conversations c JOIN assistants a ON a.id = c.assistant_id WHERE c.id = @id`);
  const end = sql.prepare(`
    UPDATE conversations SET state = 'ended', updated_at = @now, evaluation_due = @due
    WHERE id = @id`);
  return async ({ id, now }) => {
    const row = await find.get({ id });
    await end.run({ id, now, due: row && isWanted(row) ? now : null });
  };
}

function isWanted({ type, settings, was_written: wasWritten }: EndingRow): boolean {
  const { post_call_evaluation: isOn, post_call_schema: fields } = JSON.parse(settings) as {
    post_call_evaluation?: boolean; post_call_schema?: unknown[];
  };
  return type !== "test" && wasWritten === 1 && isOn === true && (fields ?? []).length > 0;
}

export function createEvaluationStore(
  reader: Reader, writer: WriterOf<typeof evaluationCommands>,
): EvaluationStore {
  // The sign keeps SQLite from going through all conversations by account.
  const due = reader.prepare<object, {
    id: number; uuid: string; account_id: number; assistant_id: number; evaluation_due: number;
  }>(`
    SELECT id, uuid, account_id, assistant_id, evaluation_due FROM (
      SELECT id, uuid, account_id, assistant_id, evaluation_due,
        row_number() OVER (PARTITION BY +account_id ORDER BY id) AS turn
      FROM conversations WHERE evaluation_due IS NOT NULL
    ) AS waiting ORDER BY turn, id LIMIT (@rows + 0)`);
  const find = reader.prepare<object, { evaluation: string | null; evaluation_due: number | null }>(
    "SELECT evaluation, evaluation_due FROM conversations WHERE uuid = @uuid");
  return {
    due: async (rows) => (await due.all({ rows })).map((row) => ({
      id: row.id,
      uuid: row.uuid,
      accountId: row.account_id,
      assistantId: row.assistant_id,
      endedAt: row.evaluation_due,
    })),
    find: async (uuid) => {
      const row = await find.get({ uuid });
      return {
        isDue: row !== undefined && row.evaluation_due !== null,
        values: JSON.parse(row?.evaluation ?? "{}") as Record<string, unknown>,
      };
    },
    evaluated: (args) => writer.write("conversations.evaluated", args),
  };
}

export function evaluationCommands(sql: Sql) {
  const append = createAccountAppender(sql);
  // A conversation that ended again in the meantime waits for a new evaluation.
  const update = sql.prepare(`
    UPDATE conversations SET evaluation = @evaluation, evaluation_error = @error,
      evaluation_due = NULL
    WHERE id = @id AND account_id = @accountId AND evaluation_due = @endedAt`);
  return {
    "conversations.evaluated": async (args: Evaluated): Promise<CommittedEvent[]> => {
      const { accountId, id, uuid, endedAt, values, error, now } = args;
      const evaluation = JSON.stringify(values);
      const { changes } = await update.run({ accountId, id, endedAt, error, evaluation });
      if (changes === 0) return [];
      // Goes to the account alone, because visitors read the conversation's own log.
      return [await append(accountId, {
        type: "conversation_evaluated", conversation_id: uuid, evaluation: values,
        evaluation_error: error,
      }, now)];
    },
  };
}
