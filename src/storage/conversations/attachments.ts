// Files of messages, as rows. Rules: features/conversations/attachments.ts.
import { fileNameOf, type AttachmentStore } from "#features/conversations/attachments.ts";
import type { AttachmentBody } from "#events/events.ts";
import type { Instant } from "#core/system.ts";
import { DELETED } from "./rows.ts";
import { createUnwanted } from "#storage/removals.ts";
import type { Reader, Sql } from "#storage/sql.ts";
import { writes, type WriterOf } from "#storage/writer.ts";

/** Never sent and older than `before`; LET_GO puts a deleted conversation's files in this state. */
const IS_LEFT = "sent_at IS NULL AND created_at < @before";
export const LET_GO = "UPDATE attachments SET sent_at = NULL, created_at = 0 WHERE conversation_id = @id";

type Added = Parameters<AttachmentStore["add"]>[0];
type Forgotten = Parameters<AttachmentStore["forget"]>[0];

export function createAttachmentStore(
  reader: Reader, writer: WriterOf<typeof attachmentCommands>,
): AttachmentStore {
  const find = reader.prepare<object, AttachmentBody>(`
    SELECT uuid AS id, name, type, bytes FROM attachments
    WHERE conversation_id = @conversationId AND uuid = @id`);
  const left = reader.prepare<object, { accountId: number; id: string }>(`
    SELECT account_id AS "accountId", uuid AS id FROM attachments
    WHERE ${IS_LEFT} ORDER BY created_at LIMIT (@rows + 0)`);
  return {
    ...writes(writer, "attachments", "add", "forget"),
    find: async (conversationId, ids) => {
      const found: AttachmentBody[] = [];
      for (const id of ids) {
        const one = await find.get({ conversationId, id });
        if (one) found.push(one);
      }
      return found;
    },
    left: async (before, rows) => await left.all({ before, rows }),
  };
}

export function attachmentCommands(sql: Sql) {
  const count = sql.prepare<object, { count: number }>(
    "SELECT count(*) AS count FROM attachments WHERE conversation_id = @conversationId");
  const insert = sql.prepare(`
    INSERT INTO attachments (uuid, account_id, conversation_id, name, type, bytes, created_at)
    VALUES (@uuid, @accountId, @conversationId, @name, @type, @bytes,
      CASE WHEN EXISTS (SELECT 1 FROM conversations
        WHERE id = @conversationId AND type <> '${DELETED}') THEN CAST(@now AS BIGINT) ELSE 0 END)`);
  const unwanted = createUnwanted(sql);
  const remove = sql.prepare(
    `DELETE FROM attachments WHERE uuid = @id AND account_id = @accountId AND ${IS_LEFT}`);
  return {
    "attachments.add": async (
      { accountId, conversationId, attachment, max, now }: Added,
    ): Promise<boolean> => {
      if (((await count.get({ conversationId }))?.count ?? 0) >= max) return false;
      const { id: uuid, name, type, bytes } = attachment;
      await insert.run({ uuid, accountId, conversationId, name, type, bytes, now });
      await unwanted.forget([fileNameOf(uuid)]);
      return true;
    },
    "attachments.forget": async (args: Forgotten): Promise<boolean> => {
      if ((await remove.run(args)).changes === 0) return false;
      await unwanted.note([fileNameOf(args.id)], args.now);
      return true;
    },
  };
}

/** Marks attachments as sent, in the transaction of the message that names them. */
export function createSending(sql: Sql) {
  const send = sql.prepare(`
    UPDATE attachments SET sent_at = @now
    WHERE uuid = @id AND conversation_id = @conversationId AND sent_at IS NULL`);
  return async (
    conversationId: number, attachments: readonly AttachmentBody[], now: Instant,
  ): Promise<void> => {
    for (const { id } of attachments) await send.run({ id, conversationId, now });
  };
}
