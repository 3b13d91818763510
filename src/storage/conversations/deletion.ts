// Deletes conversations with everything said in them, leaving empty rows for the ledger, and labels
// many at once; each deletion is noted in the audit log.
import type { BulkStore, Deleted, Labelled } from "#features/conversations/bulk.ts";
import { createNoteAudit } from "#storage/accounts/audit-log.ts";
import { IS_LIVE } from "#storage/calls/rows.ts";
import { LET_GO } from "./attachments.ts";
import { DELETED } from "./rows.ts";
import { createAccountAppender } from "#storage/events.ts";
import type { SearchCommands } from "#storage/search/search.ts";
import type { Sql } from "#storage/sql.ts";
import { writes, type WriterOf } from "#storage/writer.ts";

type DeleteArgs = Parameters<BulkStore["delete"]>[0];
type LabelArgs = Parameters<BulkStore["label"]>[0];

export const createBulkStore = (writer: WriterOf<typeof bulkCommands>): BulkStore =>
  writes(writer, "conversations", "delete", "label");

export function bulkCommands(sql: Sql, search: SearchCommands) {
  return {
    "conversations.delete": createDelete(sql, search),
    "conversations.label": createLabel(sql),
  };
}

/** Tables of a conversation that the ledger does not depend on. */
const PARTS = ["conversation_notes", "conversation_labels", "conversation_reads", "callbacks"];

function createRemoval(sql: Sql, search: SearchCommands) {
  // The account's event numbers must have no gaps: its events stay, their contents go.
  const blankEvents = sql.prepare(`
    UPDATE events SET conversation_id = NULL, sequence = 0, type = 'conversation_deleted',
      data = @data
    WHERE conversation_id = @id`);
  // Events for the account alone: notes, callbacks, failure reasons and evaluations, which carry no
  // conversation id.
  const blankOwn = sql.prepare(`
    UPDATE events SET type = 'conversation_deleted', data = @data, about_conversation = NULL
    WHERE about_conversation = @uuid AND +account_id = @accountId`);
  // Deliveries not sent yet are dropped: they contain what is to be forgotten.
  const removeDeliveries = sql.prepare(`
    DELETE FROM webhook_deliveries WHERE conversation_uuid = @uuid
      AND endpoint_id IN (SELECT id FROM webhook_endpoints WHERE account_id = @accountId)`);
  const emptyToolCalls = sql.prepare(`
    UPDATE tool_calls SET result = '{}' WHERE result IS NOT NULL AND +account_id = @accountId
      AND scope IN (SELECT 'turn:' || CAST(id AS TEXT) FROM turns WHERE conversation_id = @id)`);
  const forgetTrouble = sql.prepare(`
    UPDATE accounts SET trouble_conversation = NULL
    WHERE id = @accountId AND trouble_conversation = @uuid`);
  const parts = PARTS.map((table) =>
    sql.prepare(`DELETE FROM ${table} WHERE conversation_id = @id`));
  // Ledger entries name the turns, and ids must not be reused: the rows stay, emptied.
  const emptied = [LET_GO, `
    UPDATE messages SET content = '', function_calls = NULL, author = NULL, idempotency_key = NULL,
      rating = NULL, attachments = NULL
    WHERE conversation_id = @id`, `
    UPDATE turns SET idempotency_key = NULL, request_hash = NULL, error = NULL, failure = NULL
    WHERE conversation_id = @id`, `
    UPDATE conversations SET uuid = '${DELETED}-' || CAST(id AS TEXT), type = '${DELETED}',
      state = 'ended', variables = '{}', external_identifier = NULL, visitor_id = NULL, page = NULL,
      evaluation = NULL, evaluation_error = NULL, evaluation_due = NULL, desk = 'assistant',
      desk_holder = NULL, desk_holder_name = NULL, desk_reason = NULL, desk_at = NULL,
      visitor_read_at = NULL, score = NULL, score_comment = NULL, scored_at = NULL
    WHERE id = @id`].map((text) => sql.prepare(text));
  return async (given: { id: number; accountId: number; uuid: string; data: string }) => {
    await blankOwn.run(given);
    await blankEvents.run(given);
    await removeDeliveries.run(given);
    await emptyToolCalls.run(given);
    await search.forgetMessages(given.id);
    for (const part of [...parts, ...emptied]) await part.run(given);
    await forgetTrouble.run(given);
  };
}

function createDelete(sql: Sql, search: SearchCommands) {
  const find = sql.prepare<object, { id: number; busy: number }>(`
    SELECT c.id, CASE WHEN EXISTS (
        SELECT 1 FROM turns t WHERE t.conversation_id = c.id AND t.state = 'open'
      ) OR EXISTS (
        SELECT 1 FROM calls WHERE account_id = @accountId AND conversation_uuid = @uuid AND ${IS_LIVE}
      ) THEN 1 ELSE 0 END AS busy
    FROM conversations c WHERE c.uuid = @uuid AND c.account_id = @accountId`);
  const remove = createRemoval(sql, search);
  const append = createAccountAppender(sql);
  const note = createNoteAudit(sql);
  return async ({ accountId, uuids, by, now }: DeleteArgs): Promise<Deleted> => {
    const done: Deleted = { deleted: [], busy: [], events: [] };
    for (const uuid of uuids) {
      const found = await find.get({ accountId, uuid });
      if (!found) continue;
      if (found.busy === 1) {
        done.busy.push(uuid);
        continue;
      }
      const data = { type: "conversation_deleted", conversation_id: uuid } as const;
      await remove({ id: found.id, accountId, uuid, data: JSON.stringify(data) });
      done.deleted.push(uuid);
      done.events.push(await append(accountId, data, now));
      await note({
        accountId, now,
        note: {
          ...by, action: "conversation.delete", object: { type: "conversation", id: uuid },
          details: {},
        },
      });
    }
    return done;
  };
}

function createLabel(sql: Sql) {
  const label = sql.prepare<object, { name: string }>(
    "SELECT name FROM labels WHERE id = @labelId AND account_id = @accountId");
  const add = sql.prepare(`
    INSERT INTO conversation_labels (conversation_id, label_id)
    SELECT id, CAST(@labelId AS BIGINT) FROM conversations
    WHERE uuid = @uuid AND account_id = @accountId
    ON CONFLICT (conversation_id, label_id) DO NOTHING`);
  const take = sql.prepare(`
    DELETE FROM conversation_labels WHERE label_id = @labelId AND conversation_id = (
      SELECT id FROM conversations WHERE uuid = @uuid AND account_id = @accountId)`);
  const note = createNoteAudit(sql);
  return async (
    { accountId, uuids, labelId, isTaken, by, now }: LabelArgs,
  ): Promise<Labelled> => {
    const found = await label.get({ accountId, labelId });
    if (!found) return { kind: "no_such_label" };
    const changed: string[] = [];
    for (const uuid of uuids) {
      const { changes } = await (isTaken ? take : add).run({ accountId, uuid, labelId });
      if (changes === 0) continue;
      changed.push(uuid);
      await note({
        accountId, now,
        note: {
          ...by, action: "conversation.set_labels", object: { type: "conversation", id: uuid },
          details: { [isTaken ? "taken" : "added"]: found.name },
        },
      });
    }
    return { kind: "labelled", changed };
  };
}
