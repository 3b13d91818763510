// Appends events of a conversation outside the hot path of its turns, for the other commands.
import type { Instant } from "#core/system.ts";
import type { CommittedData, CommittedEvent } from "#events/events.ts";
import { createAccountSequence, createEventAppender } from "#storage/events.ts";
import type { Sql } from "#storage/sql.ts";

export type AppendEvent = (
  conversation: { id: number; uuid: string; accountId: number },
  data: CommittedData,
  now: Instant,
) => Promise<CommittedEvent>;

/** Appends an event outside the hot path: draws both sequence numbers itself. */
export function createConversationAppender(sql: Sql): AppendEvent {
  const append = createEventAppender(sql);
  const nextAccountSequence = createAccountSequence(sql);
  const advance = sql.prepare<object, { sequence: number }>(`
    UPDATE conversations SET event_sequence = event_sequence + 1 WHERE id = @id
    RETURNING event_sequence AS sequence`);
  return async ({ id, uuid, accountId }, data, now) => {
    const row = await advance.get({ id });
    if (!row) throw new Error("an event needs an existing conversation");
    return append({
      accountId,
      accountSequence: await nextAccountSequence(accountId),
      conversation: { id, uuid, sequence: row.sequence },
      data,
      now,
    });
  };
}
