// Callbacks in the database. Used by the stores and the commands.
import {
  callbackItem, type Callback, type CallbackStore, type CallbackWish,
} from "#features/conversations/desk/callbacks.ts";
import type { Instant } from "#core/system.ts";
import type { Author, Away, CommittedEvent } from "#events/events.ts";
import { createDeskMove } from "./desk-commands.ts";
import { createAccountAppender } from "#storage/events.ts";
import type { Reader, Sql } from "#storage/sql.ts";
import { writes, type WriterOf } from "#storage/writer.ts";

export interface CallbackRow {
  id: number;
  name: string;
  phone: string | null;
  email: string | null;
  wish: string | null;
  wanted_time: string | null;
  created_at: number;
  done_at: number | null;
}

export const CALLBACK = "id, name, phone, email, wish, wanted_time, created_at, done_at";

export const callbackFromRow = (row: CallbackRow): Callback => ({
  id: row.id, name: row.name, phone: row.phone, email: row.email, wish: row.wish,
  time: row.wanted_time, createdAt: row.created_at, doneAt: row.done_at,
});

type Outcome = { callback: Callback; events: CommittedEvent[] } | null;

/** Only the account receives the contact details that visitors leave. */
function createAppend(sql: Sql) {
  const append = createAccountAppender(sql);
  return async (
    type: "callback_requested" | "callback_done", accountId: number, uuid: string,
    callback: Callback, now: Instant,
  ): Promise<CommittedEvent> =>
    append(accountId, { type, conversation_id: uuid, callback: callbackItem(callback) }, now);
}

export function callbackCommands(sql: Sql) {
  const append = createAppend(sql);
  const moveDesk = createDeskMove(sql);
  const find = sql.prepare<object, { id: number }>(
    "SELECT id FROM conversations WHERE uuid = @uuid AND account_id = @accountId");
  const replace = sql.prepare<object, CallbackRow>(`
    UPDATE callbacks SET name = @name, phone = @phone, email = @email, wish = @wish,
      wanted_time = @time, created_at = @now
    WHERE conversation_id = @conversationId AND done_at IS NULL RETURNING ${CALLBACK}`);
  const insert = sql.prepare<object, CallbackRow>(`
    INSERT INTO callbacks (account_id, conversation_id, name, phone, email, wish, wanted_time,
      created_at)
    VALUES (@accountId, @conversationId, @name, @phone, @email, @wish, @time, @now)
    RETURNING ${CALLBACK}`);
  const finish = sql.prepare<object, CallbackRow>(`
    UPDATE callbacks SET done_at = @now, done_by = @doneBy
    WHERE conversation_id = @conversationId AND done_at IS NULL RETURNING ${CALLBACK}`);
  return {
    "callbacks.request": async (args: CallbackWish & {
      accountId: number; uuid: string; away: Away | null; now: Instant;
    }): Promise<Outcome> => {
      const { accountId, uuid, away, now } = args;
      const row = await find.get(args);
      if (!row) return null;
      const wish = { ...args, conversationId: row.id };
      const callback = callbackFromRow(await replace.get(wish) ?? await insert.one(wish));
      const requested = await append("callback_requested", accountId, uuid, callback, now);
      const moved = await moveDesk({
        accountId, uuid, move: "ask", by: { role: "visitor" }, reason: "callback", holder: null,
        note: null, away, now,
      });
      return { callback, events: [requested, ...moved.kind === "moved" ? moved.events : []] };
    },
    "callbacks.finish": async (
      args: { accountId: number; uuid: string; author: Author; now: Instant },
    ): Promise<Outcome> => {
      const { accountId, uuid, author, now } = args;
      const row = await find.get(args);
      const done = row && await finish.get(
        { conversationId: row.id, doneBy: JSON.stringify(author), now });
      if (!done) return null;
      const callback = callbackFromRow(done);
      return { callback, events: [await append("callback_done", accountId, uuid, callback, now)] };
    },
  };
}

export function createCallbackStore(
  reader: Reader, writer: WriterOf<typeof callbackCommands>,
): CallbackStore {
  const list = reader.prepare<object, CallbackRow>(`
    SELECT ${CALLBACK} FROM callbacks WHERE conversation_id = @conversationId ORDER BY id DESC`);
  return {
    ...writes(writer, "callbacks", "request", "finish"),
    list: async (conversationId) => (await list.all({ conversationId })).map(callbackFromRow),
  };
}
