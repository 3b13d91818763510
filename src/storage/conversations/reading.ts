// Read positions, and the labels of conversations, in the database. Used by the stores and the
// commands.
import type { ReadingStore } from "#features/conversations/desk/reading.ts";
import { isoMicros, type Instant } from "#core/system.ts";
import type { Author, CommittedEvent } from "#events/events.ts";
import { createConversationAppender } from "./events.ts";
import type { Exists, Sql } from "#storage/sql.ts";
import type { WriterOf } from "#storage/writer.ts";

interface ReadRow {
  id: number;
  last_message_at: number;
  visitor_read_at: number | null;
  person_read_at: number | null;
}

export function readingCommands(sql: Sql) {
  const append = createConversationAppender(sql);
  const find = sql.prepare<object, ReadRow>(`
    SELECT c.id, c.last_message_at, c.visitor_read_at, r.read_at AS person_read_at
    FROM conversations c
    LEFT JOIN conversation_reads r ON r.conversation_id = c.id AND r.person = @person
    WHERE c.uuid = @uuid AND c.account_id = @accountId`);
  const byPerson = sql.prepare<object, Exists>(`
    SELECT 1 FROM messages WHERE conversation_id = @id AND author IS NOT NULL
      AND created_at > @after LIMIT 1`);
  const saveVisitor = sql.prepare(
    "UPDATE conversations SET visitor_read_at = @now WHERE id = @id");
  const savePerson = sql.prepare(`
    INSERT INTO conversation_reads (conversation_id, person, read_at) VALUES (@id, @person, @now)
    ON CONFLICT (conversation_id, person) DO UPDATE SET read_at = excluded.read_at`);
  return {
    "desk.read": async ({ accountId, uuid, author, now }: {
      accountId: number; uuid: string; author: Author | null; now: Instant;
    }): Promise<CommittedEvent[] | null> => {
      const person = author?.id ?? "";
      const row = await find.get({ accountId, uuid, person });
      if (!row) return null;
      const { id } = row;
      const before = (author ? row.person_read_at : row.visitor_read_at) ?? -1;
      if (before >= row.last_message_at) return [];
      if (!author && !await byPerson.get({ id, after: before })) return [];
      await (author ? savePerson : saveVisitor).run({ id, person, now });
      return [await append({ id, uuid, accountId }, {
        type: "conversation_read", conversation_id: uuid, read_at: isoMicros(now),
        by: author ? { role: "operator", ...author } : { role: "visitor" },
      }, now)];
    },
    ...labelCommands(sql),
  };
}

function labelCommands(sql: Sql) {
  const find = sql.prepare<object, { id: number }>(
    "SELECT id FROM conversations WHERE uuid = @uuid AND account_id = @accountId");
  const count = sql.prepare<object, { labels: number }>(`
    SELECT count(*) AS labels FROM labels
    WHERE account_id = @accountId AND ${sql.dialect.among("id", "@labelIds")}`);
  const clear = sql.prepare("DELETE FROM conversation_labels WHERE conversation_id = @id");
  const add = sql.prepare(
    "INSERT INTO conversation_labels (conversation_id, label_id) VALUES (@id, @labelId)");
  return {
    "desk.label": async ({ accountId, uuid, labelIds }: {
      accountId: number; uuid: string; labelIds: number[];
    }): Promise<"labelled" | "not_found" | "no_such_label"> => {
      const row = await find.get({ accountId, uuid });
      if (!row) return "not_found";
      const wanted = [...new Set(labelIds)];
      if ((await count.one({ accountId, labelIds: wanted })).labels !== wanted.length) {
        return "no_such_label";
      }
      await clear.run({ id: row.id });
      for (const labelId of wanted) await add.run({ id: row.id, labelId });
      return "labelled";
    },
  };
}

export const createReadingStore = (writer: WriterOf<typeof readingCommands>): ReadingStore => ({
  read: (args) => writer.write("desk.read", args),
});
