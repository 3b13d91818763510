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
import { together, type Awaitable, type Sql } from "./sql.ts";

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
  id: number;
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
  const findConversation = sql.prepare<object, ConversationState>(`
    SELECT id, uuid, assistant_id, type, ai_enabled, message_count, event_sequence
    FROM conversations WHERE uuid = @uuid AND account_id = @accountId`);
  const findTurn = sql.prepare<object, TurnRow>(`
    SELECT id, state, request_hash, user_sequence, reply_message_id FROM turns
    WHERE conversation_id = @conversationId AND idempotency_key = @key`);
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
    await reopenTurn.run({ turnId: turn.id, priceMicros, now: args.now });
    const baseSequence = state.event_sequence;
    return { kind: "started", turnId: turn.id, priceMicros, baseSequence, events: [] };
  };

  return async (args) => {
    const conversation = await findConversation.get({
      uuid: args.conversationUuid, accountId: args.accountId,
    });
    if (!conversation) return { kind: "not_found" };
    const earlier = args.idempotencyKey === null
      ? undefined
      : await findTurn.get({ conversationId: conversation.id, key: args.idempotencyKey });
    if (earlier) return await repeat(earlier, args) ?? await reopen(earlier, conversation, args);
    if (conversation.message_count + 2 > args.messagesMax) return { kind: "conversation_full" };
    return await openNew(conversation, args);
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
      turnId: turn.id,
      userSequence: turn.user_sequence,
      stored: turn.state === "stored",
      reply: reply ? messageFromRow(reply) : null,
    };
  };
}

type Held =
  | { kind: "held"; accountSequence: number }
  | { kind: "balance_too_low" }
  | { kind: "daily_cap_reached" };

/** Sets the price aside and draws `events` account event numbers. A refusal has written nothing. */
function createHold(sql: Sql, rows: TurnRows) {
  const spend = sql.prepare(`
    INSERT INTO assistant_spend (assistant_id, day, micros) VALUES (@assistantId, @day, @micros)
    ON CONFLICT (assistant_id, day) DO UPDATE SET micros = assistant_spend.micros + excluded.micros`);
  const spent = sql.prepare<object, { micros: number }>(
    "SELECT micros FROM assistant_spend WHERE assistant_id = @assistantId AND day = @day");
  return async (
    conversation: ConversationState,
    userSequence: number,
    amountMicros: Micros,
    events: 0 | 1,
    { accountId, day, dailyCapMicros, now }: BeginTurn,
  ): Promise<Held> => {
    const { assistant_id: assistantId } = conversation;
    if (amountMicros === 0) {
      return { kind: "held", accountSequence: await rows.nextAccountSequence(accountId, events) };
    }
    if (dailyCapMicros !== null) {
      const today = (await spent.get({ assistantId, day }))?.micros ?? 0;
      if (today + amountMicros > dailyCapMicros) return { kind: "daily_cap_reached" };
    }
    const reference = turnReference(conversation.id, userSequence);
    const reserved = await rows.ledger.reserve({ accountId, reference, amountMicros, events, now });
    if (!reserved) return { kind: "balance_too_low" };
    await spend.run({ assistantId, day, micros: amountMicros });
    return { kind: "held", accountSequence: reserved.accountSequence };
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
    const messageId = await rows.insertMessage({
      conversationId, role: "assistant", content: text, functionCalls, stopped, truncated, usage, now,
    });
    const closed = await rows.closeTurn({
      turnId, conversationId, state: stopped ? "stopped" : "done", replyMessageId: messageId, error: null,
      failure: null, now,
    });
    if (!closed) throw new Error(`turn ${turnId} is not open`);
    const costMicros = closed.price_micros;
    const reference = turnReference(conversationId, closed.user_sequence);
    const sequence = numberOf(
      await rows.advance({ accountId, conversationId, messages: 1, costMicros, now }));
    const message: MessageBody = {
      role: "assistant",
      content: text,
      ...(functionCalls.length > 0 ? { function_calls: functionCalls } : {}),
      ...(stopped ? { stopped: true } : {}),
      ...(truncated ? { truncated: true } : {}),
      created_at: isoMicros(now),
    };
    const added = (accountSequence: number): Promise<CommittedEvent> => rows.append({
      accountId,
      accountSequence,
      conversation: { id: conversationId, uuid, sequence },
      data: { type: "message_added", conversation_id: uuid, turn_id: turnId, message },
      now,
    });
    const events = costMicros > 0
      ? (await rows.ledger.post({ accountId, reference, kind: "message", reason: added, now }))?.events
      : [await added(await rows.nextAccountSequence(accountId, 1))];
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
    const told = await rows.append({
      accountId,
      accountSequence: await rows.nextAccountSequence(accountId, 1),
      conversation: { id: conversationId, uuid, sequence },
      data: { type: "reply_failed", conversation_id: uuid, turn_id: turnId, reason, error },
      now,
    });
    if (cause === null) return [told];
    return [told, await rows.append({
      accountId,
      accountSequence: await rows.nextAccountSequence(accountId, 1),
      conversation: null,
      data: { type: "reply_failure_explained", conversation_id: uuid, turn_id: turnId, ...cause },
      now,
    })];
  };
}
