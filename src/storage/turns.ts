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
import { assistantAnswers } from "#features/conversations/desk.ts";
import { messagePrice } from "#features/conversations/records.ts";
import type { Micros } from "#core/money.ts";
import { isoMicros, utcDay, type Instant } from "#core/system.ts";
import type {
  CommittedEvent, DeskState, FunctionCall, MessageBody,
} from "#events/events.ts";
import { createTrouble } from "./conversation-commands.ts";
import { createEnd } from "./conversation-evaluations.ts";
import { MESSAGE, messageFromRow, type MessageRow } from "./conversations.ts";
import { createAsk, createDeskMove } from "./desk-commands.ts";
import { createEventAppender } from "./events.ts";
import { createLedger, type AccountRow, type AppendPaid } from "./ledger.ts";
import { chain, together, type Awaitable, type Sql } from "./sql.ts";

interface ConversationState {
  id: number;
  uuid: string;
  assistant_id: number;
  type: ConversationType;
  desk: DeskState;
  message_count: number;
  event_sequence: number;
  has_ended: number;
  /** The newest event number of its account. */
  account_sequence: number;
}

type TurnState = "open" | "stored" | "done" | "stopped" | "failed" | "interrupted";

interface TurnRow {
  turn_id: number;
  state: TurnState;
  request_hash: string;
  user_sequence: number;
  reply_message_id: number | null;
}

/** An open turn with what its end goes on from; `event_sequence` is its account's. */
interface OpenRow extends AccountRow {
  price_micros: number;
  user_sequence: number;
  begun_at: number;
  conversation_sequence: number;
  has_ended: number;
}

export interface OpenTurn {
  turnId: number;
  accountId: number;
  conversation: Omit<FailTurn["conversation"], "accountId">;
}

/** Names the billed thing in the ledger. */
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

/** Steps more than one command takes. */
function createTurnRows(sql: Sql) {
  const insertMessage = sql.prepare(`
    INSERT INTO messages (conversation_id, role, content, function_calls, stopped, truncated,
      input_tokens, output_tokens, created_at)
    VALUES (@conversationId, @role, @content, @functionCalls, @stopped, @truncated,
      @inputTokens, @outputTokens, @now)`);
  const advance = sql.prepare(`
    UPDATE conversations SET event_sequence = event_sequence + @events,
      message_count = message_count + @messages,
      total_cost_micros = total_cost_micros + @costMicros,
      last_message_at = @now, updated_at = @now
    WHERE id = @conversationId`);
  const reopen = sql.prepare("UPDATE conversations SET state = 'open' WHERE id = @conversationId");
  const open = sql.prepare<object, OpenRow>(`
    SELECT t.price_micros, t.user_sequence, t.begun_at,
      c.event_sequence AS conversation_sequence, c.state = 'ended' AS has_ended,
      a.balance_micros, a.reserved_micros, a.ledger_entries, a.ledger_hash, a.event_sequence
    FROM turns t JOIN conversations c ON c.id = t.conversation_id
    JOIN accounts a ON a.id = c.account_id
    WHERE t.id = +@turnId AND t.conversation_id = +@conversationId AND t.state = 'open'
      AND a.id = +@accountId`);
  const drawNumbers = sql.prepare(
    "UPDATE accounts SET event_sequence = event_sequence + @events WHERE id = @accountId");
  return {
    ledger: createLedger(sql),
    append: createEventAppender(sql),
    /** Draws account event numbers, which the caller reckons from those it has read. */
    drawNumbers: (args: { accountId: number; events: number }): Awaitable<unknown> =>
      drawNumbers.run(args),
    /**
     * Draws event numbers of the conversation, which the caller reckons likewise, and counts
     * messages and cost. One that has ended is open again.
     */
    advance: (args: {
      conversationId: number; hasEnded: boolean; events: number; messages: 0 | 1;
      costMicros: Micros; now: Instant;
    }): Awaitable<unknown> => (args.hasEnded
      ? together(reopen.run(args), advance.run(args))
      : advance.run(args)),
    /** Undefined when the turn is not open: somebody closed it first. */
    open: (args: {
      turnId: number; conversationId: number; accountId: number;
    }): Awaitable<OpenRow | undefined> => open.get(args),
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
    SELECT c.id, c.uuid, c.assistant_id, c.type, c.desk, c.message_count, c.event_sequence,
      c.state = 'ended' AS has_ended, a.event_sequence AS account_sequence,
      t.id AS turn_id, t.state, t.request_hash, t.user_sequence, t.reply_message_id
    FROM conversations c JOIN accounts a ON a.id = c.account_id
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
    const refused = await hold(state.assistant_id, priceMicros, 0, args);
    if (refused) return refused;
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

/** Opens a turn with its user message; where a person has it, the message is only stored. */
function createOpen(sql: Sql, rows: TurnRows, hold: Hold) {
  const insertTurn = sql.prepare(`
    INSERT INTO turns (conversation_id, state, idempotency_key, request_hash, user_sequence,
      price_micros, begun_at, finished_at)
    VALUES (@conversationId, @state, @key, @requestHash, @userSequence, @priceMicros, @now,
      @finishedAt)`);
  const ask = createAsk(sql);
  return async (conversation: ConversationState, args: BeginTurn): Promise<BeginOutcome> => {
    const { id: conversationId, uuid } = conversation;
    const { accountId, now, text } = args;
    const answers = assistantAnswers(conversation.desk);
    const priceMicros = answers ? messagePrice(conversation.type, args.messagePriceMicros) : 0;
    const userSequence = conversation.event_sequence + 1;
    const refused = await hold(conversation.assistant_id, priceMicros, 1, args);
    if (refused) return refused;
    const [, , turnId] = await together(
      rows.advance({
        conversationId, hasEnded: conversation.has_ended === 1, events: 1, messages: 1,
        costMicros: 0, now,
      }),
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
    const message: MessageBody = { role: "user", content: text, created_at: isoMicros(now) };
    const event = await rows.append({
      accountId,
      accountSequence: conversation.account_sequence + 1,
      conversation: { id: conversationId, uuid, sequence: userSequence },
      data: { type: "message_added", conversation_id: uuid, turn_id: turnId, message },
      now,
    });
    if (!answers) return { kind: "stored", events: [event] };
    const events = [event, ...args.asks ? await ask({ accountId, uuid }, args.asks, now) : []];
    const baseSequence = userSequence + events.length - 1;
    return { kind: "started", turnId, priceMicros, baseSequence, events };
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

type Refused = { kind: "balance_too_low" } | { kind: "daily_cap_reached" };

/**
 * Sets the price aside, of which the open turn is the record, and draws `events` account event
 * numbers; null: done. A refusal has written nothing.
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
  return (
    assistantId: number, amountMicros: Micros, events: 0 | 1, args: BeginTurn,
  ): Awaitable<Refused | null> => {
    const { accountId, day } = args;
    if (amountMicros === 0) return chain(rows.drawNumbers({ accountId, events }), () => null);
    return chain(isCapped(assistantId, amountMicros, args), (capped) => {
      if (capped) return { kind: "daily_cap_reached" };
      return chain(rows.ledger.hold({ accountId, amountMicros, events }), (isHeld) => (isHeld
        ? chain(spend.run({ assistantId, day, micros: amountMicros }), () => null)
        : { kind: "balance_too_low" }));
    });
  };
}

type Hold = ReturnType<typeof createHold>;

function createComplete(
  sql: Sql, rows: TurnRows,
): (args: CompleteTurn) => Promise<CommittedEvent[]> {
  const end = createEnd(sql);
  const moveDesk = createDeskMove(sql);
  const ask = createAsk(sql);
  const charge = createCharge(rows);
  const closeTurn = sql.prepare(`
    UPDATE turns SET state = @state, reply_message_id = @replyMessageId, finished_at = @now
    WHERE id = @turnId`);

  /** The conversation's last event, for a reply that ended it. */
  const ended = async (
    { conversation, now }: CompleteTurn, accountSequence: number, sequence: number,
  ): Promise<CommittedEvent> => {
    const { id: conversationId, uuid, accountId } = conversation;
    await rows.advance({
      conversationId, hasEnded: false, events: 1, messages: 0, costMicros: 0, now,
    });
    await end({ id: conversationId, now });
    await rows.drawNumbers({ accountId, events: 1 });
    return rows.append({
      accountId,
      accountSequence,
      conversation: { id: conversationId, uuid, sequence },
      data: { type: "conversation_ended", conversation_id: uuid, reason: "assistant" },
      now,
    });
  };

  return async (args) => {
    const { turnId, conversation, text, functionCalls, stopped, truncated, usage, now } = args;
    const { id: conversationId, uuid, accountId } = conversation;
    const open = await rows.open({ turnId, conversationId, accountId });
    if (!open) throw new Error(`turn ${turnId} is not open`);
    const sequence = open.conversation_sequence + 1;
    const message: MessageBody = {
      role: "assistant",
      content: text,
      ...(functionCalls.length > 0 ? { function_calls: functionCalls } : {}),
      ...(stopped ? { stopped: true } : {}),
      ...(truncated ? { truncated: true } : {}),
      created_at: isoMicros(now),
    };
    const replyMessageId = await rows.insertMessage({
      conversationId, role: "assistant", content: text, functionCalls, stopped, truncated, usage,
      now,
    });
    const [, , events] = await together(
      closeTurn.run({ turnId, state: stopped ? "stopped" : "done", replyMessageId, now }),
      rows.advance({
        conversationId, hasEnded: open.has_ended === 1, events: 1, messages: 1,
        costMicros: open.price_micros, now,
      }),
      charge(open, args, (numbers) => rows.append({
        accountId,
        ...numbers,
        conversation: { id: conversationId, uuid, sequence },
        data: { type: "message_added", conversation_id: uuid, turn_id: turnId, message },
        now,
      })),
    );
    if (args.asks) return [...events, ...await ask(conversation, args.asks, now)];
    if (!args.ends) return events;
    const accountSequence = open.event_sequence + events.length + 1;
    const last = await ended(args, accountSequence, sequence + 1);
    const moved = await moveDesk({
      accountId, uuid, move: "end", by: { role: "assistant" }, reason: "ended", holder: null,
      note: null, now,
    });
    return [...events, last, ...moved.kind === "moved" ? moved.events : []];
  };
}

/** Enters what the turn set aside, with its event and the change it made; an event alone for 0. */
function createCharge(rows: TurnRows) {
  return (
    open: OpenRow, { conversation, now }: CompleteTurn, paidFor: AppendPaid,
  ): Awaitable<CommittedEvent[]> => {
    const { id, accountId } = conversation;
    if (open.price_micros === 0) {
      const numbers = { accountSequence: open.event_sequence + 1 };
      return chain(rows.drawNumbers({ accountId, events: 1 }), () =>
        chain(paidFor(numbers), (event) => [event]));
    }
    const posted = rows.ledger.charge(open, {
      accountId, kind: "message", reference: turnReference(id, open.user_sequence),
      amountMicros: -open.price_micros, now,
    }, paidFor);
    return chain(posted, ({ events }) => events);
  };
}

function createFail(sql: Sql, rows: TurnRows): (args: FailTurn) => Promise<CommittedEvent[]> {
  const unspend = sql.prepare(`
    UPDATE assistant_spend SET micros = micros - @micros
    WHERE assistant_id = @assistantId AND day = @day`);
  const closeTurn = sql.prepare(`
    UPDATE turns SET state = @reason, error = @error, failure = @failure, finished_at = @now
    WHERE id = @turnId`);
  const note = createTrouble(sql);
  const ask = createAsk(sql);

  return async ({ turnId, conversation, reason, error, cause, asks, now }) => {
    const { id: conversationId, uuid, accountId, assistantId } = conversation;
    const open = await rows.open({ turnId, conversationId, accountId });
    if (!open) return [];
    await closeTurn.run({
      turnId, reason, error: cause?.error ?? error, failure: cause?.failure ?? null, now,
    });
    const micros = open.price_micros;
    if (micros > 0) {
      await rows.ledger.unhold({ accountId, amountMicros: micros });
      await unspend.run({ assistantId, day: utcDay(open.begun_at), micros });
    }
    if (reason === "failed") {
      await note({ accountId, reason: "reply_failed", conversationUuid: uuid, now });
    }
    await rows.advance({
      conversationId, hasEnded: open.has_ended === 1, events: 1, messages: 0, costMicros: 0, now,
    });
    await rows.drawNumbers({ accountId, events: cause === null ? 1 : 2 });
    const failed = await rows.append({
      accountId,
      accountSequence: open.event_sequence + 1,
      conversation: { id: conversationId, uuid, sequence: open.conversation_sequence + 1 },
      data: { type: "reply_failed", conversation_id: uuid, turn_id: turnId, reason, error },
      now,
    });
    const events = [failed];
    if (cause !== null) events.push(await rows.append({
      accountId,
      accountSequence: open.event_sequence + 2,
      conversation: null,
      data: { type: "reply_failure_explained", conversation_id: uuid, turn_id: turnId, ...cause },
      now,
    }));
    return asks ? [...events, ...await ask(conversation, asks, now)] : events;
  };
}
