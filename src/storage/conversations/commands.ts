// The commands of a conversation outside its turns and its desk: create, end by inactivity.
import type { CreateOutcome, NewConversation } from "#features/conversations/records.ts";
import type { RefusedVisitor } from "#features/conversations/refusals.ts";
import { isoMicros, type Instant } from "#core/system.ts";
import { mergedVariables } from "#core/variables.ts";
import { MINUTE_MICROS } from "#core/zones.ts";
import type { CommittedEvent, Refused } from "#events/events.ts";
import { createEnd } from "./evaluations.ts";
import { CONVERSATION, conversationFromRow, type ConversationRow } from "./rows.ts";
import { createConversationAppender, type AppendEvent } from "./events.ts";
import { createDeskMove } from "./desk-commands.ts";
import { createAccountAppender } from "#storage/events.ts";
import type { Sql } from "#storage/sql.ts";

/** The default inactivity timeout, for assistants that set none. */
const DEFAULT_INACTIVITY_MINUTES = 30;

export function conversationCommands(sql: Sql) {
  const appendEvent = createConversationAppender(sql);
  return {
    "conversations.create": createCreate(sql, appendEvent),
    "conversations.publishRefused": createPublishRefused(sql),
    "conversations.endInactive": createEndInactive(sql, appendEvent),
  };
}

/** Why the account could not pay for a message of the conversation; null when it can. */
function createRefusal(sql: Sql) {
  const spent = sql.prepare<object, { micros: number }>(
    "SELECT micros FROM assistant_spend WHERE assistant_id = @assistantId AND day = @day");
  const free = sql.prepare<object, { micros: number }>(
    "SELECT balance_micros - reserved_micros AS micros FROM accounts WHERE id = @accountId");
  return async (
    { accountId, assistant, priceMicros, dailyCapMicros, day }: NewConversation,
  ): Promise<CreateOutcome | null> => {
    const available = (await free.get({ accountId }))?.micros ?? 0;
    if (available < priceMicros) return { kind: "balance_too_low" };
    if (dailyCapMicros === null || priceMicros === 0) return null;
    const today = (await spent.get({ assistantId: assistant.id, day }))?.micros ?? 0;
    return today + priceMicros > dailyCapMicros ? { kind: "daily_cap_reached" } : null;
  };
}

/** Finds the conversation that the client already has, by its own identifier or as a visitor. */
function createReuse(
  sql: Sql,
): (args: NewConversation) => Promise<CreateOutcome | null> {
  const findByCustomer = sql.prepare<object, ConversationRow>(`
    SELECT ${CONVERSATION} FROM conversations
    WHERE assistant_id = @assistantId AND external_identifier = @externalIdentifier
      AND account_id = @accountId`);
  const findByVisitor = sql.prepare<object, ConversationRow>(`
    SELECT ${CONVERSATION} FROM conversations
    WHERE assistant_id = @assistantId AND visitor_id = @visitorId AND account_id = @accountId
      AND type = @type
    ORDER BY id DESC LIMIT 1`);
  const set = sql.prepare(`
    UPDATE conversations SET variables = @variables, page = coalesce(@page, page) WHERE id = @id`);
  const find = async (
    { accountId, assistant, type, externalIdentifier, visitor }: NewConversation,
  ): Promise<ConversationRow | undefined> => {
    const assistantId = assistant.id;
    if (externalIdentifier !== null) {
      return findByCustomer.get({ accountId, assistantId, externalIdentifier });
    }
    return visitor?.continues === true
      ? findByVisitor.get({ accountId, assistantId, type, visitorId: visitor.id })
      : undefined;
  };
  return async (args) => {
    const row = await find(args);
    if (!row) return null;
    const conversation = conversationFromRow(row);
    conversation.variables = mergedVariables(conversation.variables, args.variables);
    const { id } = row;
    await set.run({
      id, variables: JSON.stringify(conversation.variables), page: args.page ?? null,
    });
    return { kind: "found", conversation };
  };
}

function createCreate(
  sql: Sql, appendEvent: AppendEvent,
): (args: NewConversation) => Promise<CreateOutcome> {
  const refuse = createRefusal(sql);
  const reuse = createReuse(sql);
  const insert = sql.prepare<object, ConversationRow>(`
    INSERT INTO conversations (uuid, account_id, assistant_id, type, variables, external_identifier,
      visitor_id, page, message_count, last_message_at, check_at, created_at, updated_at)
    VALUES (@uuid, @accountId, @assistantId, @type, @variables, @externalIdentifier,
      @visitorId, @page, @messageCount, @now, @checkAt, @now, @now)
    RETURNING ${CONVERSATION}`);
  const insertMessage = sql.prepare(`
    INSERT INTO messages (conversation_id, role, content, created_at)
    VALUES (@conversationId, 'assistant', @content, @now)`);

  return async (args) => {
    const { now, assistant } = args;
    const settled = await reuse(args) ?? await refuse(args);
    if (settled) return settled;
    const row = await insert.one({
      uuid: args.uuid,
      accountId: args.accountId,
      assistantId: assistant.id,
      type: args.type,
      variables: JSON.stringify(args.variables),
      externalIdentifier: args.externalIdentifier,
      visitorId: args.visitor?.id ?? null,
      page: args.page ?? null,
      messageCount: args.initialMessage === "" ? 0 : 1,
      checkAt: now + args.inactivityMinutes * MINUTE_MICROS,
      now,
    });
    const conversation = conversationFromRow(row);
    const events = [await appendEvent(conversation, {
      type: "conversation_created",
      conversation_id: args.uuid,
      assistant_id: assistant.uuid,
      conversation_type: args.type,
    }, now)];
    if (args.initialMessage !== "") {
      await insertMessage.run({ conversationId: row.id, content: args.initialMessage, now });
      events.push(await appendEvent(conversation, {
        type: "message_added",
        conversation_id: args.uuid,
        turn_id: null,
        message: { role: "assistant", content: args.initialMessage, created_at: isoMicros(now) },
      }, now));
    }
    return { kind: "created", conversation, events };
  };
}

/** Notes the account's newest visitor trouble; in a test conversation the tester sees it anyway. */
export function createTrouble(sql: Sql): (args: {
  accountId: number; reason: Refused | "reply_failed"; conversationUuid: string | null; now: Instant;
}) => Promise<void> {
  const note = sql.prepare(`
    UPDATE accounts SET trouble_at = @now, trouble_reason = @reason,
      trouble_conversation = @conversationUuid
    WHERE id = @accountId AND NOT EXISTS (
      SELECT 1 FROM conversations WHERE uuid = @conversationUuid AND type = 'test')`);
  return async ({ accountId, reason, conversationUuid, now }) => {
    await note.run({ accountId, reason, conversationUuid, now });
  };
}

const REFUSED: Record<Refused, string> = {
  balance_too_low: "The balance is too low: a visitor was not answered. Add credit to the account.",
  daily_cap_reached: "The assistant has reached its daily spending limit: a visitor was not "
    + "answered. Raise the limit, or wait for the next day (UTC).",
};

function createPublishRefused(sql: Sql) {
  const append = createAccountAppender(sql);
  const note = createTrouble(sql);
  return async (args: RefusedVisitor & { now: Instant }): Promise<CommittedEvent[]> => {
    const { accountId, conversationUuid, assistantUuid, reason, now } = args;
    await note(args);
    // Goes to the account alone, because visitors read the conversation's own log.
    return [await append(accountId, {
      type: "conversation_failed", conversation_id: conversationUuid, assistant_id: assistantUuid,
      reason, error: REFUSED[reason],
    }, now)];
  };
}

function createEndInactive(sql: Sql, appendEvent: AppendEvent) {
  const due = sql.prepare<object, {
    uuid: string;
    last_message_at: number;
    desk_at: number | null;
    is_waiting: number;
    settings: string;
    answering: number;
  }>(`
    SELECT c.uuid, c.last_message_at, c.desk_at, c.desk = 'waiting' AS is_waiting, a.settings,
      EXISTS (SELECT 1 FROM turns t WHERE t.state = 'open' AND t.conversation_id = c.id) AS answering
    FROM conversations c JOIN assistants a ON a.id = c.assistant_id
    WHERE c.id = @id AND c.account_id = @accountId AND c.state = 'open' AND c.check_at <= @now`);
  const lookAgain = sql.prepare("UPDATE conversations SET check_at = @checkAt WHERE id = @id");
  const end = createEnd(sql);
  const moveDesk = createDeskMove(sql);

  return async (
    { accountId, ids, now }: { accountId: number; ids: number[]; now: Instant },
  ): Promise<CommittedEvent[]> => {
    const events: CommittedEvent[] = [];
    for (const id of ids) {
      const row = await due.get({ accountId, id, now });
      if (!row) continue;
      const settings = JSON.parse(row.settings) as { conversation_inactivity_timeout?: number };
      const minutes = settings.conversation_inactivity_timeout ?? DEFAULT_INACTIVITY_MINUTES;
      const timeout = minutes * MINUTE_MICROS;
      const quietAt = Math.max(row.last_message_at, row.desk_at ?? 0) + timeout;
      // A conversation that waits for a person does not end through inactivity. It may wait for
      // months: it is due again when it could end if it stopped waiting at once.
      const again = row.is_waiting === 1 ? timeout : MINUTE_MICROS;
      if (quietAt > now || row.answering === 1 || row.is_waiting === 1) {
        await lookAgain.run({ id, checkAt: Math.max(quietAt, now + again) });
        continue;
      }
      await end({ id, now });
      events.push(await appendEvent({ id, uuid: row.uuid, accountId }, {
        type: "conversation_ended", conversation_id: row.uuid, reason: "inactivity",
      }, now));
      const moved = await moveDesk({
        accountId, uuid: row.uuid, move: "end", by: { role: "rule" }, reason: "ended",
        holder: null, note: null, now,
      });
      if (moved.kind === "moved") events.push(...moved.events);
    }
    return events;
  };
}
