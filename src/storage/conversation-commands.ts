// The commands of a conversation outside its turns: create, switch the AI, end by inactivity.
import type { CreateOutcome, NewConversation } from "#features/conversations/records.ts";
import type { RefusedVisitor } from "#features/conversations/refusals.ts";
import { isoMicros, type Instant } from "#core/system.ts";
import type { CommittedData, CommittedEvent, Refused } from "#events/events.ts";
import { createEnd } from "./conversation-evaluations.ts";
import { CONVERSATION, conversationFromRow, type ConversationRow } from "./conversations.ts";
import type { Db } from "./engines/sqlite/database.ts";
import { createAccountSequence, createEventAppender } from "./events.ts";

const MINUTE_MICROS = 60_000_000;
/** Looked at again this long after it should have gone quiet, at the earliest. */
const DEFAULT_INACTIVITY_MINUTES = 30;

export function conversationCommands(db: Db) {
  const appendEvent = createConversationAppender(db);
  return {
    "conversations.create": createCreate(db, appendEvent),
    "conversations.tellRefused": createTellRefused(db),
    "conversations.setAi": createSetAi(db, appendEvent),
    "conversations.endInactive": createEndInactive(db, appendEvent),
  };
}

type AppendEvent = (
  conversation: { id: number; uuid: string; accountId: number },
  data: CommittedData,
  now: Instant,
) => CommittedEvent;

/** Appends an event outside the hot path: draws both sequence numbers itself. */
function createConversationAppender(db: Db): AppendEvent {
  const append = createEventAppender(db);
  const nextAccountSequence = createAccountSequence(db);
  const advance = db.prepare<[object], { sequence: number }>(`
    UPDATE conversations SET event_sequence = event_sequence + 1 WHERE id = @id
    RETURNING event_sequence AS sequence`);
  return ({ id, uuid, accountId }, data, now) => {
    const row = advance.get({ id });
    if (!row) throw new Error("an event needs an existing conversation");
    return append({
      accountId,
      accountSequence: nextAccountSequence(accountId, 1),
      conversation: { id, uuid, sequence: row.sequence },
      data,
      now,
    });
  };
}

function createCreate(db: Db, appendEvent: AppendEvent): (args: NewConversation) => CreateOutcome {
  const findByCustomer = db.prepare<[object], ConversationRow>(`
    SELECT ${CONVERSATION} FROM conversations
    WHERE assistant_id = @assistantId AND external_identifier = @externalIdentifier`);
  const setVariables = db.prepare("UPDATE conversations SET variables = @variables WHERE id = @id");
  const spent = db.prepare<[object], { micros: number }>(
    "SELECT micros FROM assistant_spend WHERE assistant_id = @assistantId AND day = @day");
  const free = db.prepare<[object], { micros: number }>(
    "SELECT balance_micros - reserved_micros AS micros FROM accounts WHERE id = @accountId");
  const insert = db.prepare<[object], ConversationRow>(`
    INSERT INTO conversations (uuid, account_id, assistant_id, type, variables, external_identifier,
      message_count, last_message_at, check_at, created_at, updated_at)
    VALUES (@uuid, @accountId, @assistantId, @type, @variables, @externalIdentifier,
      @messageCount, @now, @checkAt, @now, @now)
    RETURNING ${CONVERSATION}`);
  const insertMessage = db.prepare(`
    INSERT INTO messages (conversation_id, role, content, created_at)
    VALUES (@conversationId, 'assistant', @content, @now)`);

  const reuse = (row: ConversationRow, args: NewConversation): CreateOutcome => {
    const conversation = conversationFromRow(row);
    conversation.variables = { ...conversation.variables, ...args.variables };
    setVariables.run({ id: row.id, variables: JSON.stringify(conversation.variables) });
    return { kind: "found", conversation };
  };

  return (args) => {
    const { now, assistant } = args;
    const existing = args.externalIdentifier === null
      ? undefined
      : findByCustomer.get({
          assistantId: assistant.id, externalIdentifier: args.externalIdentifier,
        });
    if (existing) return reuse(existing, args);
    const available = free.get({ accountId: args.accountId })?.micros ?? 0;
    if (available < args.priceMicros) return { kind: "balance_too_low" };
    if (args.dailyCapMicros !== null && args.priceMicros > 0) {
      const today = spent.get({ assistantId: assistant.id, day: args.day })?.micros ?? 0;
      if (today + args.priceMicros > args.dailyCapMicros) return { kind: "daily_cap_reached" };
    }
    const row = insert.get({
      uuid: args.uuid,
      accountId: args.accountId,
      assistantId: assistant.id,
      type: args.type,
      variables: JSON.stringify(args.variables),
      externalIdentifier: args.externalIdentifier,
      messageCount: args.initialMessage === "" ? 0 : 1,
      checkAt: now + args.inactivityMinutes * MINUTE_MICROS,
      now,
    });
    if (!row) throw new Error("an insert returned no row");
    const conversation = conversationFromRow(row);
    const events = [appendEvent(conversation, {
      type: "conversation_created",
      conversation_id: args.uuid,
      assistant_id: assistant.uuid,
      conversation_type: args.type,
    }, now)];
    if (args.initialMessage !== "") {
      insertMessage.run({ conversationId: row.id, content: args.initialMessage, now });
      events.push(appendEvent(conversation, {
        type: "message_added",
        conversation_id: args.uuid,
        turn_id: null,
        message: { role: "assistant", content: args.initialMessage, created_at: isoMicros(now) },
      }, now));
    }
    return { kind: "created", conversation, events };
  };
}

/** Notes the newest trouble of an account's visitors; who tests sees it anyway. */
export function createTrouble(db: Db): (args: {
  accountId: number; reason: Refused | "reply_failed"; conversationUuid: string | null; now: Instant;
}) => void {
  const note = db.prepare(`
    UPDATE accounts SET trouble_at = @now, trouble_reason = @reason,
      trouble_conversation = @conversationUuid
    WHERE id = @accountId AND NOT EXISTS (
      SELECT 1 FROM conversations WHERE uuid = @conversationUuid AND type = 'test')`);
  return ({ accountId, reason, conversationUuid, now }) =>
    void note.run({ accountId, reason, conversationUuid, now });
}

const REFUSED: Record<Refused, string> = {
  balance_too_low: "The balance is too low: a visitor was not answered. Add credit to the account.",
  daily_cap_reached: "The assistant has reached its daily spending limit: a visitor was not "
    + "answered. Raise the limit, or wait for the next day (UTC).",
};

function createTellRefused(db: Db) {
  const append = createEventAppender(db);
  const nextAccountSequence = createAccountSequence(db);
  const note = createTrouble(db);
  return (args: RefusedVisitor & { now: Instant }): CommittedEvent[] => {
    const { accountId, conversationUuid, assistantUuid, reason, now } = args;
    note(args);
    return [append({
      accountId,
      accountSequence: nextAccountSequence(accountId, 1),
      // Told to the account alone: visitors read the conversation's own log.
      conversation: null,
      data: {
        type: "conversation_failed", conversation_id: conversationUuid, assistant_id: assistantUuid,
        reason, error: REFUSED[reason],
      },
      now,
    })];
  };
}

function createSetAi(db: Db, appendEvent: AppendEvent) {
  const update = db.prepare<[object], { id: number }>(`
    UPDATE conversations SET ai_enabled = @enabled, updated_at = @now
    WHERE uuid = @uuid AND account_id = @accountId RETURNING id`);
  return (args: {
    accountId: number;
    uuid: string;
    enabled: boolean;
    now: Instant;
  }): CommittedEvent[] | null => {
    const { accountId, uuid, now, enabled } = args;
    const row = update.get({ accountId, uuid, now, enabled: enabled ? 1 : 0 });
    if (!row) return null;
    return [appendEvent({ id: row.id, uuid, accountId }, {
      type: "ai_toggled", conversation_id: uuid, ai_enabled: enabled,
    }, now)];
  };
}

function createEndInactive(db: Db, appendEvent: AppendEvent) {
  const due = db.prepare<[object], {
    id: number;
    uuid: string;
    account_id: number;
    last_message_at: number;
    settings: string;
    answering: number;
  }>(`
    SELECT c.id, c.uuid, c.account_id, c.last_message_at, a.settings,
      EXISTS (SELECT 1 FROM turns t WHERE t.state = 'open' AND t.conversation_id = c.id) AS answering
    FROM conversations c JOIN assistants a ON a.id = c.assistant_id
    WHERE c.state = 'open' AND c.check_at <= @now ORDER BY c.check_at LIMIT @rows`);
  const lookAgain = db.prepare("UPDATE conversations SET check_at = @checkAt WHERE id = @id");
  const end = createEnd(db);

  return ({ now, rows }: { now: Instant; rows: number }) => {
    const conversations = due.all({ now, rows });
    const events: CommittedEvent[] = [];
    for (const row of conversations) {
      const settings = JSON.parse(row.settings) as { conversation_inactivity_timeout?: number };
      const minutes = settings.conversation_inactivity_timeout ?? DEFAULT_INACTIVITY_MINUTES;
      const quietAt = row.last_message_at + minutes * MINUTE_MICROS;
      if (quietAt > now || row.answering === 1) {
        lookAgain.run({ id: row.id, checkAt: Math.max(quietAt, now + MINUTE_MICROS) });
        continue;
      }
      end({ id: row.id, now });
      events.push(appendEvent({ id: row.id, uuid: row.uuid, accountId: row.account_id }, {
        type: "conversation_ended", conversation_id: row.uuid, reason: "inactivity",
      }, now));
    }
    return { looked: conversations.length, events };
  };
}
