// The commands of a turn: begin (reserve), complete (post), fail (void), recover. Each keeps
// the law of docs/money.md: a message is charged when its reply is stored, in the same
// transaction, once.
import type {
  BeginOutcome,
  BeginTurn,
  CompleteTurn,
  ConversationType,
  FailTurn,
  Message,
} from "#features/conversations/records.ts";
import { messagePrice } from "#features/conversations/records.ts";
import type { Micros } from "#core/money.ts";
import { isoMicros, utcDay, type Instant } from "#core/system.ts";
import type {
  CommittedEvent, FailureClass, FunctionCall, MessageBody,
} from "#events/events.ts";
import { createTrouble } from "./conversation-commands.ts";
import { createEnd } from "./conversation-evaluations.ts";
import { MESSAGE, messageFromRow, type MessageRow } from "./conversations.ts";
import { createAccountSequence, createEventAppender } from "./events.ts";
import { createLedger } from "./ledger.ts";
import { chain, together, type Awaitable, type Sql } from "./sql.ts";

interface ConversationState {
  id: number;
  uuid: string;
  assistant_id: number;
  type: ConversationType;
  ai_enabled: number;
  message_count: number;
  event_sequence: number;
}

type TurnState = "open" | "stored" | "done" | "stopped" | "failed" | "interrupted";

interface TurnRow {
  turn_id: number;
  state: TurnState;
  request_hash: string;
  user_sequence: number;
  reply_message_id: number | null;
}

interface ClosedTurn {
  price_micros: number;
  user_sequence: number;
  begun_at: number;
}

export interface OpenTurn {
  turnId: number;
  accountId: number;
  conversation: Omit<FailTurn["conversation"], "accountId">;
}

/** Names the billed thing; known before the turn's row is, so that money can be set aside first. */
const turnReference = (conversationId: number, userSequence: number): string =>
  `turn:${conversationId}.${userSequence}`;

export function turnCommands(sql: Sql) {
  const rows = createTurnRows(sql);
  const fail = createFail(sql, rows);
  return {
    "turns.begin": createBegin(sql, rows),
    "turns.complete": createComplete(sql, rows),
    "turns.fail": fail,
    /** The turns are those of one account that a dead process left open. */
    "turns.recover": async (
      { accountId, turns, now }: { accountId: number; turns: OpenTurn[]; now: Instant },
    ): Promise<CommittedEvent[]> => {
      const events: CommittedEvent[] = [];
      for (const { turnId, conversation } of turns) {
        events.push(...await fail({
          turnId,
          conversation: { ...conversation, accountId },
          reason: "interrupted",
          error: "The server was restarted before the reply was complete.",
          cause: null,
          now,
        }));
      }
      return events;
    },
  };
}

interface Drawn {
  sequence: number;
}

const numberOf = (drawn: Drawn | undefined): number => {
  if (!drawn) throw new Error("the conversation of a turn is gone");
  return drawn.sequence;
};

/** Steps more than one command takes. */
function createTurnRows(sql: Sql) {
  const insertMessage = sql.prepare(`
    INSERT INTO messages (conversation_id, role, content, function_calls, stopped, truncated,
      input_tokens, output_tokens, created_at)
    VALUES (@conversationId, @role, @content, @functionCalls, @stopped, @truncated,
      @inputTokens, @outputTokens, @now)`);
  const advance = sql.prepare<object, Drawn>(`
    UPDATE conversations SET event_sequence = event_sequence + 1, state = 'open',
      message_count = message_count + @messages,
      total_cost_micros = total_cost_micros + @costMicros,
      last_message_at = @now, updated_at = @now
    WHERE id = @conversationId AND account_id = @accountId RETURNING event_sequence AS sequence`);
  const closeTurn = sql.prepare<object, ClosedTurn>(`
    UPDATE turns SET state = @state, reply_message_id = @replyMessageId, error = @error,
      failure = @failure, finished_at = @now
    WHERE id = @turnId AND conversation_id = @conversationId AND state = 'open'
    RETURNING price_micros, user_sequence, begun_at`);
  return {
    ledger: createLedger(sql),
    append: createEventAppender(sql),
    nextAccountSequence: createAccountSequence(sql),
    /** Draws the conversation's next event number, counting messages and cost. */
    advance: (args: {
      accountId: number; conversationId: number; messages: 0 | 1; costMicros: Micros; now: Instant;
    }): Awaitable<Drawn | undefined> => advance.get(args),
    /** Undefined when the turn is not open: somebody closed it first. */
    closeTurn: (args: {
      turnId: number; conversationId: number; state: TurnState;
      replyMessageId: number | null; error: string | null; failure: FailureClass | null;
      now: Instant;
    }): Awaitable<ClosedTurn | undefined> => closeTurn.get(args),
    insertMessage: (args: {
      conversationId: number; role: "user" | "assistant"; content: string;
      functionCalls?: FunctionCall[]; stopped?: boolean; truncated?: boolean;
      usage?: Message["usage"]; now: Instant;
    }): Awaitable<number> => {
      const { conversationId, role, content, functionCalls = [], usage = null, now } = args;
      return insertMessage.insert({
        conversationId, role, content, now,
        functionCalls: functionCalls.length > 0 ? JSON.stringify(functionCalls) : null,
        stopped: args.stopped === true ? 1 : 0,
        truncated: args.truncated === true ? 1 : 0,
        inputTokens: usage?.inputTokens ?? null,
        outputTokens: usage?.outputTokens ?? null,
      });
    },
  };
}

type TurnRows = ReturnType<typeof createTurnRows>;

function createBegin(sql: Sql, rows: TurnRows): (args: BeginTurn) => Promise<BeginOutcome> {
  const repeat = createRepeat(sql);
  const hold = createHold(sql, rows);
  const openNew = createOpen(sql, rows, hold);
  const find = sql.prepare<object, ConversationState & (TurnRow | { turn_id: null })>(`
    SELECT c.id, c.uuid, c.assistant_id, c.type, c.ai_enabled, c.message_count, c.event_sequence,
      t.id AS turn_id, t.state, t.request_hash, t.user_sequence, t.reply_message_id
    FROM conversations c
    LEFT JOIN turns t ON t.conversation_id = c.id AND t.idempotency_key = +@idempotencyKey
    WHERE c.uuid = +@conversationUuid AND c.account_id = +@accountId`);
  const reopenTurn = sql.prepare(`
    UPDATE turns SET state = 'open', error = NULL, failure = NULL, price_micros = @priceMicros, begun_at = @now,
      finished_at = NULL WHERE id = @turnId`);

  /** A failed or interrupted turn is tried again under its key; its user message is there. */
  const reopen = async (
    turn: TurnRow, state: ConversationState, args: BeginTurn,
  ): Promise<BeginOutcome> => {
    const priceMicros = messagePrice(state.type, args.messagePriceMicros);
    const held = await hold(state, turn.user_sequence, priceMicros, 0, args);
    if (held.kind !== "held") return held;
    await held.written;
    await reopenTurn.run({ turnId: turn.turn_id, priceMicros, now: args.now });
    const baseSequence = state.event_sequence;
    return { kind: "started", turnId: turn.turn_id, priceMicros, baseSequence, events: [] };
  };

  return async (args) => {
    const found = await find.get(args);
    if (!found) return { kind: "not_found" };
    if (found.turn_id !== null) {
      return await repeat(found, args) ?? await reopen(found, found, args);
    }
    if (found.message_count + 2 > args.messagesMax) return { kind: "conversation_full" };
    return await openNew(found, args);
  };
}

/** Opens a turn with its user message; where the AI is switched off, the message is only stored. */
function createOpen(sql: Sql, rows: TurnRows, hold: Hold) {
  const insertTurn = sql.prepare(`
    INSERT INTO turns (conversation_id, state, idempotency_key, request_hash, user_sequence,
      price_micros, begun_at, finished_at)
    VALUES (@conversationId, @state, @key, @requestHash, @userSequence, @priceMicros, @now,
      @finishedAt)`);
  return async (conversation: ConversationState, args: BeginTurn): Promise<BeginOutcome> => {
    const { id: conversationId, uuid } = conversation;
    const { accountId, now, text } = args;
    const answers = conversation.ai_enabled === 1;
    const priceMicros = answers ? messagePrice(conversation.type, args.messagePriceMicros) : 0;
    const userSequence = conversation.event_sequence + 1;
    const held = await hold(conversation, userSequence, priceMicros, 1, args);
    if (held.kind !== "held") return held;
    const [drawn, , turnId] = await together(
      rows.advance({ accountId, conversationId, messages: 1, costMicros: 0, now }),
      rows.insertMessage({ conversationId, role: "user", content: text, now }),
      insertTurn.insert({
        conversationId,
        state: answers ? "open" : "stored",
        key: args.idempotencyKey,
        requestHash: args.requestHash,
        userSequence,
        priceMicros,
        now,
        finishedAt: answers ? null : now,
      }),
      held.written,
    );
    const sequence = numberOf(drawn);
    const message: MessageBody = { role: "user", content: text, created_at: isoMicros(now) };
    const event = await rows.append({
      accountId,
      accountSequence: held.accountSequence,
      conversation: { id: conversationId, uuid, sequence },
      data: { type: "message_added", conversation_id: uuid, turn_id: turnId, message },
      now,
    });
    return answers
      ? { kind: "started", turnId, priceMicros, baseSequence: sequence, events: [event] }
      : { kind: "stored", events: [event] };
  };
}

/** What the key's earlier turn means for a repeated send; null: it failed, so try it again. */
function createRepeat(sql: Sql): (turn: TurnRow, args: BeginTurn) => Promise<BeginOutcome | null> {
  const findMessage = sql.prepare<object, MessageRow>(
    `SELECT ${MESSAGE} FROM messages WHERE id = @id`);
  return async (turn, args) => {
    if (turn.request_hash !== args.requestHash) return { kind: "key_reused" };
    if (turn.state === "open") return { kind: "running" };
    if (turn.state === "failed" || turn.state === "interrupted") return null;
    const reply = turn.reply_message_id === null
      ? undefined
      : await findMessage.get({ id: turn.reply_message_id });
    return {
      kind: "repeated",
      turnId: turn.turn_id,
      userSequence: turn.user_sequence,
      stored: turn.state === "stored",
      reply: reply ? messageFromRow(reply) : null,
    };
  };
}

type Held =
  | { kind: "held"; accountSequence: number; written: Awaitable<unknown> }
  | { kind: "balance_too_low" }
  | { kind: "daily_cap_reached" };

/**
 * Sets the price aside and draws `events` account event numbers; `written` is to be waited for. A
 * refusal has written nothing.
 */
function createHold(sql: Sql, rows: TurnRows) {
  const spend = sql.prepare(`
    INSERT INTO assistant_spend (assistant_id, day, micros) VALUES (@assistantId, @day, @micros)
    ON CONFLICT (assistant_id, day) DO UPDATE SET micros = assistant_spend.micros + excluded.micros`);
  const spent = sql.prepare<object, { micros: number }>(
    "SELECT micros FROM assistant_spend WHERE assistant_id = @assistantId AND day = @day");
  const isCapped = (
    assistantId: number, amountMicros: Micros, { day, dailyCapMicros }: BeginTurn,
  ): Awaitable<boolean> =>
    dailyCapMicros !== null && chain(spent.get({ assistantId, day }), (today) =>
      (today?.micros ?? 0) + amountMicros > dailyCapMicros);
  const reserve = (
    assistantId: number, reference: string, amountMicros: Micros, events: 0 | 1,
    { accountId, day, now }: BeginTurn,
  ): Awaitable<Held> => {
    const reserved = rows.ledger.reserve({ accountId, reference, amountMicros, events, now });
    return chain(reserved, (held) => {
      if (!held) return { kind: "balance_too_low" };
      const { accountSequence, written } = held;
      const counted = spend.run({ assistantId, day, micros: amountMicros });
      return { kind: "held", accountSequence, written: together(written, counted) };
    });
  };
  return (
    conversation: ConversationState, userSequence: number, amountMicros: Micros, events: 0 | 1,
    args: BeginTurn,
  ): Awaitable<Held> => {
    if (amountMicros === 0) {
      return chain(rows.nextAccountSequence(args.accountId, events), (accountSequence) =>
        ({ kind: "held", accountSequence, written: undefined }));
    }
    const { id, assistant_id: assistantId } = conversation;
    return chain(isCapped(assistantId, amountMicros, args), (capped) => {
      if (capped) return { kind: "daily_cap_reached" };
      const reference = turnReference(id, userSequence);
      return reserve(assistantId, reference, amountMicros, events, args);
    });
  };
}

type Hold = ReturnType<typeof createHold>;

function createComplete(
  sql: Sql, rows: TurnRows,
): (args: CompleteTurn) => Promise<CommittedEvent[]> {
  const end = createEnd(sql);

  /** The conversation's last event, for a reply that ended it. */
  const ended = async ({ conversation, now }: CompleteTurn): Promise<CommittedEvent> => {
    const { id: conversationId, uuid, accountId } = conversation;
    const sequence = numberOf(
      await rows.advance({ accountId, conversationId, messages: 0, costMicros: 0, now }));
    await end({ id: conversationId, now });
    return rows.append({
      accountId,
      accountSequence: await rows.nextAccountSequence(accountId, 1),
      conversation: { id: conversationId, uuid, sequence },
      data: { type: "conversation_ended", conversation_id: uuid, reason: "assistant" },
      now,
    });
  };

  return async (args) => {
    const { turnId, conversation, text, functionCalls, stopped, truncated, usage, now } = args;
    const { id: conversationId, uuid, accountId } = conversation;
    const replyMessageId = await rows.insertMessage({
      conversationId, role: "assistant", content: text, functionCalls, stopped, truncated, usage,
      now,
    });
    const closed = await rows.closeTurn({
      turnId, conversationId, state: stopped ? "stopped" : "done", replyMessageId, error: null,
      failure: null, now,
    });
    if (!closed) throw new Error(`turn ${turnId} is not open`);
    const costMicros = closed.price_micros;
    const reference = turnReference(conversationId, closed.user_sequence);
    const message: MessageBody = {
      role: "assistant",
      content: text,
      ...(functionCalls.length > 0 ? { function_calls: functionCalls } : {}),
      ...(stopped ? { stopped: true } : {}),
      ...(truncated ? { truncated: true } : {}),
      created_at: isoMicros(now),
    };
    const drawn = rows.advance({ accountId, conversationId, messages: 1, costMicros, now });
    const added = (accountSequence: number): Awaitable<CommittedEvent> =>
      chain(drawn, (numbered) => rows.append({
        accountId,
        accountSequence,
        conversation: { id: conversationId, uuid, sequence: numberOf(numbered) },
        data: { type: "message_added", conversation_id: uuid, turn_id: turnId, message },
        now,
      }));
    const [, events] = await together(drawn, costMicros > 0
      ? chain(
          rows.ledger.post({ accountId, reference, kind: "message", reason: added, now }),
          (posted) => posted?.events)
      : chain(chain(rows.nextAccountSequence(accountId, 1), added), (event) => [event]));
    if (!events) throw new Error(`turn ${turnId} has no reservation`);
    return args.ends ? [...events, await ended(args)] : events;
  };
}

function createFail(sql: Sql, rows: TurnRows): (args: FailTurn) => Promise<CommittedEvent[]> {
  const unspend = sql.prepare(`
    UPDATE assistant_spend SET micros = micros - @micros
    WHERE assistant_id = @assistantId AND day = @day`);
  const note = createTrouble(sql);

  return async ({ turnId, conversation, reason, error, cause, now }) => {
    const { id: conversationId, uuid, accountId, assistantId } = conversation;
    const closed = await rows.closeTurn({
      turnId, conversationId, state: reason, replyMessageId: null, error: cause?.error ?? error,
      failure: cause?.failure ?? null, now,
    });
    if (!closed) return [];
    const micros = await rows.ledger.release(
      accountId, turnReference(conversationId, closed.user_sequence));
    if (micros > 0) await unspend.run({ assistantId, day: utcDay(closed.begun_at), micros });
    if (reason === "failed") {
      await note({ accountId, reason: "reply_failed", conversationUuid: uuid, now });
    }
    const sequence = numberOf(
      await rows.advance({ accountId, conversationId, messages: 0, costMicros: 0, now }));
    const failed = await rows.append({
      accountId,
      accountSequence: await rows.nextAccountSequence(accountId, 1),
      conversation: { id: conversationId, uuid, sequence },
      data: { type: "reply_failed", conversation_id: uuid, turn_id: turnId, reason, error },
      now,
    });
    if (cause === null) return [failed];
    return [failed, await rows.append({
      accountId,
      accountSequence: await rows.nextAccountSequence(accountId, 1),
      conversation: null,
      data: { type: "reply_failure_explained", conversation_id: uuid, turn_id: turnId, ...cause },
      now,
    })];
  };
}
