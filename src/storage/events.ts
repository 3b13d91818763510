// The event log's rows. Commands of other features append here inside their own transaction;
// realtime sessions read from here by sequence number.
//
// A row whose event was paid for names the ledger's entry and stands for two events of its account:
// its own, and the `balance_changed` under the next number, which is made from the entry.
import type { CommittedData, CommittedEvent } from "#events/events.ts";
import type { EventLog } from "#events/log.ts";
import type { LedgerKind } from "#features/accounts/money/ledger.ts";
import { dollarsFromMicros, type Micros } from "#core/money.ts";
import type { Instant } from "#core/system.ts";
import { chain, type Awaitable, type Reader, type Sql } from "./sql.ts";
import { createEnqueue } from "./webhooks/outbox.ts";

interface EventRow {
  id: number;
  account_id: number;
  account_sequence: number;
  conversation_uuid: string | null;
  call_id: number | null;
  sequence: number;
  type: CommittedData["type"];
  data: string;
  created_at: number;
}

/** `change_kind`: null where no money moved with the event. */
interface AccountEventRow extends EventRow {
  change_kind: LedgerKind | null;
  change_micros: Micros;
  balance_micros: Micros;
}

/** What an entry of the ledger did to the balance. */
interface BalanceChange {
  kind: LedgerKind;
  amountMicros: Micros;
  balanceMicros: Micros;
}

export const balanceChanged = (
  { kind, amountMicros, balanceMicros }: BalanceChange,
): Extract<CommittedData, { type: "balance_changed" }> => ({
  type: "balance_changed",
  balance: dollarsFromMicros(balanceMicros),
  change: dollarsFromMicros(amountMicros),
  kind,
});

/** The second event of a row that was paid for: the change of the balance. */
export function changeAfter(paid: CommittedEvent, change: BalanceChange): CommittedEvent {
  return {
    ...paid,
    accountSequence: paid.accountSequence + 1,
    conversationId: null,
    callId: null,
    sequence: 0,
    type: "balance_changed",
    json: JSON.stringify(balanceChanged(change)),
  };
}

function accountEventsFromRow(row: AccountEventRow): CommittedEvent[] {
  const event = eventFromRow(row);
  if (row.change_kind === null) return [event];
  const { change_kind: kind, change_micros: amountMicros, balance_micros: balanceMicros } = row;
  return [event, changeAfter(event, { kind, amountMicros, balanceMicros })];
}

function eventFromRow(row: EventRow, conversationId = row.conversation_uuid): CommittedEvent {
  return {
    id: row.id,
    accountId: row.account_id,
    accountSequence: row.account_sequence,
    conversationId,
    callId: row.call_id,
    sequence: row.sequence,
    type: row.type,
    json: row.data,
    createdAt: row.created_at,
  };
}

interface NewEvent {
  accountId: number;
  accountSequence: number;
  /** Row id and uuid of the conversation, or null for an event of the account alone. */
  conversation: { id: number; uuid: string; sequence: number } | null;
  call?: { id: number; sequence: number };
  /**
   * The ledger entry that paid for it; the account's next event number belongs to
   * `balance_changed`.
   */
  ledgerNumber?: number;
  data: CommittedData;
  now: Instant;
}

/**
 * The conversation that an account-only event is about; the event is blanked when that conversation
 * is deleted.
 */
function conversationIn(data: CommittedData): string | null {
  switch (data.type) {
    case "note_added":
    case "callback_requested":
    case "callback_done":
    case "conversation_evaluated":
    case "reply_failure_explained":
      return data.conversation_id;
    default:
      return null;
  }
}

/**
 * Inserts one event, whose sequence numbers the caller has drawn from its own rows, and the webhook
 * deliveries that report it.
 */
export function createEventAppender(sql: Sql): (event: NewEvent) => Awaitable<CommittedEvent> {
  const insert = sql.prepare(`
    INSERT INTO events (account_id, account_sequence, conversation_id, call_id, sequence, type, data,
      created_at, ledger_number, lead_id, about_conversation)
    VALUES (@accountId, @accountSequence, @conversationId, @callId, @sequence, @type, @json, @now,
      @ledgerNumber, @leadId, @about)`);
  const enqueue = createEnqueue(sql);
  return ({ accountId, accountSequence, conversation, call, ledgerNumber, data, now }) => {
    const sequence = conversation?.sequence ?? call?.sequence ?? 0;
    const callId = call?.id ?? null;
    const json = JSON.stringify(data);
    const inserted = insert.insert({
      accountId,
      accountSequence,
      conversationId: conversation?.id ?? null,
      callId,
      sequence,
      type: data.type,
      json,
      now,
      ledgerNumber: ledgerNumber ?? null,
      leadId: data.type === "lead_status_changed" ? data.lead_id : null,
      about: conversation === null ? conversationIn(data) : null,
    });
    return chain(inserted, (id) => {
      const event: CommittedEvent = {
        id,
        accountId,
        accountSequence,
        conversationId: conversation?.uuid ?? null,
        callId,
        sequence,
        type: data.type,
        json,
        createdAt: now,
      };
      return chain(enqueue(event, now), () => event);
    });
  };
}

/** Draws the next sequence number of an account. */
export function createAccountSequence(sql: Sql): (accountId: number) => Awaitable<number> {
  const advance = sql.prepare<object, { sequence: number }>(`
    UPDATE accounts SET event_sequence = event_sequence + 1 WHERE id = @accountId
    RETURNING event_sequence AS sequence`);
  return (accountId) => chain(advance.get({ accountId }), (row) => {
    if (!row) throw new Error("an event needs an existing account");
    return row.sequence;
  });
}

/** Appends an event that the account alone receives: no visitor, and no watcher of a call. */
export function createAccountAppender(
  sql: Sql,
): (accountId: number, data: CommittedData, now: Instant) => Awaitable<CommittedEvent> {
  const append = createEventAppender(sql);
  const next = createAccountSequence(sql);
  return (accountId, data, now) => chain(next(accountId), (accountSequence) =>
    append({ accountId, accountSequence, conversation: null, data, now }));
}

export function eventCommands(sql: Sql) {
  const trim = sql.prepare(`
    DELETE FROM events WHERE +account_id = @accountId AND ${sql.dialect.among("id", "@ids")}`);
  return {
    /** Removes events older than the retention, oldest first; returns how many. */
    "events.trim": async (args: { accountId: number; ids: number[] }): Promise<number> =>
      (await trim.run(args)).changes,
  };
}

const OWN_COLUMNS = `e.id, e.account_id, e.account_sequence, e.call_id, e.sequence, e.type, e.data,
  e.created_at`;
const COLUMNS = `${OWN_COLUMNS}, c.uuid AS conversation_uuid`;
const TABLES = "events e LEFT JOIN conversations c ON c.id = e.conversation_id";
const EVENT = `SELECT ${COLUMNS} FROM ${TABLES}`;
const ACCOUNT_EVENT = `SELECT ${COLUMNS}, l.kind AS change_kind, l.amount_micros AS change_micros,
    l.balance_after_micros AS balance_micros
  FROM ${TABLES}
  LEFT JOIN ledger l ON l.account_id = e.account_id AND l.number = e.ledger_number`;

export function createEventLog(reader: Reader): EventLog {
  const ofConversation = reader.prepare<object, EventRow>(`SELECT ${OWN_COLUMNS} FROM events e
    WHERE e.conversation_id = (SELECT id FROM conversations WHERE uuid = @uuid)
      AND e.sequence > @after ORDER BY e.sequence LIMIT (@rows + 0)`);
  // Starts at the number asked for: its row may stand for the next number too.
  const ofAccount = reader.prepare<object, AccountEventRow>(`${ACCOUNT_EVENT}
    WHERE e.account_id = +@accountId AND e.account_sequence >= @after
    ORDER BY e.account_sequence LIMIT (@rows + 0)`);
  const ofCall = reader.prepare<object, EventRow>(`${EVENT}
    WHERE e.call_id = +@callId AND e.sequence > @after ORDER BY e.sequence LIMIT (@rows + 0)`);
  const conversation = reader.prepare<object, { sequence: number }>(
    "SELECT event_sequence AS sequence FROM conversations WHERE uuid = @uuid");
  const account = reader.prepare<object, { sequence: number }>(
    "SELECT event_sequence AS sequence FROM accounts WHERE id = @accountId");
  const call = reader.prepare<object, { sequence: number }>(
    "SELECT event_sequence AS sequence FROM calls WHERE id = @callId");
  const heads = reader.prepare<object, { id: number; sequence: number }>(`
    SELECT id, event_sequence AS sequence FROM accounts
    WHERE ${reader.dialect.among("id", "@accountIds")}`);
  return {
    ofConversation: async (uuid, after, rows) =>
      (await ofConversation.all({ uuid, after, rows })).map((row) => eventFromRow(row, uuid)),
    ofAccount: async (accountId, after, rows) =>
      (await ofAccount.all({ accountId, after, rows: rows + 1 })).flatMap(accountEventsFromRow)
        .filter(({ accountSequence }) => accountSequence > after).slice(0, rows),
    ofCall: async (callId, after, rows) =>
      (await ofCall.all({ callId, after, rows })).map((row) => eventFromRow(row)),
    newestOfCall: async (callId) => (await call.get({ callId }))?.sequence ?? 0,
    newestOfConversation: async (uuid) => (await conversation.get({ uuid }))?.sequence ?? 0,
    newestOfAccount: async (accountId) => (await account.get({ accountId }))?.sequence ?? 0,
    heads: async (accountIds) =>
      new Map((await heads.all({ accountIds })).map(({ id, sequence }) => [id, sequence])),
  };
}
