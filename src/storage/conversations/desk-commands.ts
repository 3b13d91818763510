// The commands of the desk: who holds a conversation, what a person writes in it and notes about
// it, and ending it by hand. The allowed changes are in features/conversations/desk/desk.ts.
import {
  assistantAnswers, changeDesk, type Desk, type MoveDesk,
} from "#features/conversations/desk/desk.ts";
import type { Note } from "#features/conversations/desk/inbox.ts";
import type { AsksForPerson, MoveOutcome, Say, SayOutcome } from "#features/conversations/records.ts";
import { isoMicros, type Instant } from "#core/system.ts";
import type { Author, CommittedEvent, MessageBody } from "#events/events.ts";
import { createSending } from "./attachments.ts";
import { createEnd } from "./evaluations.ts";
import { createConversationAppender, type AppendEvent } from "./events.ts";
import { DESK, deskFromRow, MESSAGE, messageFromRow, type DeskRow, type MessageRow } from "./rows.ts";
import { createAccountAppender } from "#storage/events.ts";
import type { Sql } from "#storage/sql.ts";

interface Found extends DeskRow {
  id: number;
  state: "open" | "ended";
  message_count: number;
}

type FindConversation = (args: { uuid: string; accountId: number }) => Promise<Found | undefined>;

export function deskCommands(sql: Sql) {
  const append = createConversationAppender(sql);
  const find = createFind(sql);
  return {
    "desk.move": createDeskMove(sql),
    "desk.say": createSay(sql, find, append),
    "desk.end": createEndByHand(sql, find, append),
    "desk.note": createAddNote(sql, find),
  };
}

function createFind(sql: Sql): FindConversation {
  const find = sql.prepare<object, Found>(`
    SELECT id, state, message_count, ${DESK} FROM conversations
    WHERE uuid = @uuid AND account_id = @accountId`);
  return async (args) => find.get(args);
}

/** Changes who holds a conversation; asking for a person or taking it reopens it. */
export function createDeskMove(sql: Sql): (args: MoveDesk) => Promise<MoveOutcome> {
  const find = createFind(sql);
  const append = createConversationAppender(sql);
  const note = createNote(sql);
  const update = sql.prepare(`
    UPDATE conversations SET desk = @desk, desk_holder = @holderId, desk_holder_name = @holderName,
      desk_reason = @reason, desk_at = @now, updated_at = @now
    WHERE id = @id`);
  const reopen = sql.prepare("UPDATE conversations SET state = 'open' WHERE id = @id");

  return async (args) => {
    const { accountId, uuid, move, by, reason, holder: wished, note: text, away, now } = args;
    const row = await find({ accountId, uuid });
    if (!row) return { kind: "not_found" };
    const before = deskFromRow(row);
    const conversation = { id: row.id, uuid, accountId };
    const change = changeDesk(before, move, wished);
    if (change.kind === "held") return change;
    const isOver = row.state === "ended" && (move === "hand_back" || move === "end");
    const events: CommittedEvent[] = [];
    let desk = before;
    if (change.kind === "changed") {
      const { state, holder } = change;
      desk = { state, holder, reason, at: now };
      await update.run({
        id: row.id, desk: state, holderId: holder?.id ?? null, holderName: holder?.name ?? null,
        reason, now,
      });
      if (!isOver && move !== "end") await reopen.run({ id: row.id });
      events.push(await append(conversation, {
        type: "desk_changed", conversation_id: uuid, desk: state, by, reason, holder,
        ...state === "waiting" ? { away: away ?? null } : {},
      }, now));
      const answers = assistantAnswers(state);
      if (answers !== assistantAnswers(before.state)) {
        events.push(await append(conversation, {
          type: "ai_toggled", conversation_id: uuid, ai_enabled: answers,
        }, now));
      }
    }
    if (text !== null) {
      const author = by.role === "operator" ? { id: by.id, name: by.name } : null;
      events.push((await note({ conversation, author, text, now })).event);
    }
    return { kind: "moved", desk, events };
  };
}

/** Asks for a person in the transaction that stores a turn. */
export function createAsk(sql: Sql) {
  const moveDesk = createDeskMove(sql);
  return async (
    { accountId, uuid }: { accountId: number; uuid: string },
    { by, reason, note, away = null }: AsksForPerson, now: Instant,
  ): Promise<CommittedEvent[]> => {
    const moved = await moveDesk({
      accountId, uuid, move: "ask", by: { role: by }, reason, holder: null, note, away, now,
    });
    return moved.kind === "moved" ? moved.events : [];
  };
}

function createAddNote(sql: Sql, find: FindConversation) {
  const note = createNote(sql);
  return async ({ accountId, uuid, author, text, now }: {
    accountId: number; uuid: string; author: Author; text: string; now: Instant;
  }): Promise<{ note: Note; events: CommittedEvent[] } | null> => {
    const row = await find({ accountId, uuid });
    if (!row) return null;
    const { id, event } = await note(
      { conversation: { id: row.id, uuid, accountId }, author, text, now });
    return { note: { id, author, text, createdAt: now }, events: [event] };
  };
}

/** Adds a note and its event, which only the account receives. */
function createNote(sql: Sql) {
  const append = createAccountAppender(sql);
  const insert = sql.prepare(`
    INSERT INTO conversation_notes (account_id, conversation_id, author, text, created_at)
    VALUES (@accountId, @conversationId, @author, @text, @now)`);
  return async ({ conversation: { id, uuid, accountId }, author, text, now }: {
    conversation: { id: number; uuid: string; accountId: number };
    author: Author | null; text: string; now: Instant;
  }): Promise<{ id: number; event: CommittedEvent }> => {
    const noteId = await insert.insert({
      accountId, conversationId: id, author: author && JSON.stringify(author), text, now,
    });
    const event = await append(
      accountId, { type: "note_added", conversation_id: uuid, note_id: noteId, author, text }, now);
    return { id: noteId, event };
  };
}

function createSay(
  sql: Sql, find: FindConversation, append: AppendEvent,
): (args: Say) => Promise<SayOutcome> {
  const findByKey = sql.prepare<object, MessageRow>(`
    SELECT ${MESSAGE} FROM messages
    WHERE conversation_id = @id AND idempotency_key = @idempotencyKey`);
  const insert = sql.prepare(`
    INSERT INTO messages
      (conversation_id, role, content, attachments, author, idempotency_key, created_at)
    VALUES (@id, 'assistant', @text, @files, @author, @idempotencyKey, @now)`);
  const send = createSending(sql);
  const count = sql.prepare(`
    UPDATE conversations SET message_count = message_count + 1, last_message_at = @now,
      updated_at = @now
    WHERE id = @id`);
  return async (say) => {
    const { accountId, uuid, author, text, attachments, idempotencyKey, messagesMax, now } = say;
    const files = attachments.length > 0 ? JSON.stringify(attachments) : null;
    const row = await find({ accountId, uuid });
    if (!row) return { kind: "not_found" };
    const { id } = row;
    const earlier = idempotencyKey === null
      ? undefined
      : await findByKey.get({ id, idempotencyKey });
    if (earlier) {
      const message = messageFromRow(earlier);
      const isSame = message.content === text && message.author?.id === author.id
        && earlier.attachments === files;
      return isSame
        ? { kind: "repeated", message, events: [] }
        : { kind: "key_reused" };
    }
    const refused = whyNot(deskFromRow(row), author);
    if (refused) return refused;
    if (row.message_count + 1 > messagesMax) return { kind: "conversation_full" };
    const written = JSON.stringify(author);
    await insert.run({ id, text, files, author: written, idempotencyKey, now });
    await send(id, attachments, now);
    await count.run({ id, now });
    const body: MessageBody = {
      role: "operator", content: text, author, ...files === null ? {} : { attachments },
      created_at: isoMicros(now),
    };
    const event = await append({ id, uuid, accountId }, {
      type: "message_added", conversation_id: uuid, turn_id: null, message: body,
    }, now);
    const message = messageFromRow({
      role: "assistant", content: text, function_calls: null, stopped: 0, truncated: 0,
      input_tokens: null, output_tokens: null, author: written, rating: null, attachments: files,
      created_at: now,
    });
    return { kind: "said", message, events: [event] };
  };
}

function whyNot(
  { state, holder }: Desk, author: Author,
): Extract<SayOutcome, { kind: "held" | "not_taken" }> | null {
  if (state !== "person" || !holder) return { kind: "not_taken" };
  return holder.id === author.id ? null : { kind: "held", holder };
}

function createEndByHand(sql: Sql, find: FindConversation, append: AppendEvent) {
  const end = createEnd(sql);
  const move = createDeskMove(sql);
  return async ({ accountId, uuid, by, now }: {
    accountId: number; uuid: string; by: Author; now: Instant;
  }): Promise<CommittedEvent[] | null> => {
    const row = await find({ accountId, uuid });
    if (!row) return null;
    if (row.state === "ended") return [];
    await end({ id: row.id, now });
    const ended = await append({ id: row.id, uuid, accountId }, {
      type: "conversation_ended", conversation_id: uuid, reason: "operator",
    }, now);
    const moved = await move({
      accountId, uuid, move: "end", by: { role: "operator", ...by }, reason: "ended", holder: null,
      note: null, now,
    });
    return [ended, ...moved.kind === "moved" ? moved.events : []];
  };
}
