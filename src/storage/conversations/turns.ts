// The commands of a turn: begin (reserve), complete (post), fail (void), recover. Each upholds the
// law of docs/money.md: a message is charged once, in the transaction that stores its reply.
import {
  messagePrice, type BeginOutcome, type BeginTurn, type ConversationType, type FailTurn,
} from "#features/conversations/records.ts";
import { assistantAnswers } from "#features/conversations/desk/desk.ts";
import type { Micros } from "#core/money.ts";
import { isoMicros, type Instant } from "#core/system.ts";
import type { CommittedEvent, DeskState, MessageBody } from "#events/events.ts";
import { createSending } from "./attachments.ts";
import { MESSAGE, messageFromRow, type MessageRow } from "./rows.ts";
import { createAsk } from "./desk-commands.ts";
import { NOBODY, type AsNode } from "#storage/nodes/nodes.ts";
import { chain, together, type Awaitable, type Exists, type Sql } from "#storage/sql.ts";
import { createComplete, createFail, interrupted, type Fail } from "./turn-ends.ts";
import { createTurnRows, type TurnRows } from "./turn-rows.ts";

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
  /** The turn in progress, and the node it runs on. */
  open_turn_id: number | null;
  open_node_id: number | null;
}

type TurnState = "open" | "stored" | "done" | "stopped" | "failed" | "interrupted";

interface TurnRow {
  turn_id: number;
  state: TurnState;
  request_hash: string;
  user_sequence: number;
  reply_message_id: number | null;
}

export interface OpenTurn {
  turnId: number;
  /** The node that had it. */
  nodeId: number;
  accountId: number;
  conversation: Omit<FailTurn["conversation"], "accountId">;
}

export function turnCommands(sql: Sql) {
  const rows = createTurnRows(sql);
  const fail = createFail(sql, rows);
  return {
    "turns.begin": createBegin(sql, rows, fail),
    "turns.complete": createComplete(sql, rows),
    "turns.fail": fail,
    /** Fails the turns of one account that a dead process left open. */
    "turns.recover": async (
      { accountId, turns, now }: { accountId: number; turns: OpenTurn[]; now: Instant },
    ): Promise<CommittedEvent[]> => {
      const events: CommittedEvent[] = [];
      for (const { conversation, ...turn } of turns) {
        events.push(...await fail(
          interrupted({ ...turn, conversation: { ...conversation, accountId } }, now)));
      }
      return events;
    },
  };
}

type Begin = AsNode<BeginTurn>;

function createBegin(
  sql: Sql, rows: TurnRows, fail: Fail,
): (args: Begin) => Promise<BeginOutcome> {
  const isLiving = createIsLiving(sql);
  const repeat = createRepeat(sql, isLiving);
  const hold = createHold(sql, rows);
  const openNew = createOpen(sql, rows, hold);
  const find = sql.prepare<object, ConversationState & (TurnRow | { turn_id: null })>(`
    SELECT c.id, c.uuid, c.assistant_id, c.type, c.desk, c.message_count, c.event_sequence,
      c.state = 'ended' AS has_ended, a.event_sequence AS account_sequence,
      o.id AS open_turn_id, coalesce(o.node_id, ${NOBODY}) AS open_node_id,
      t.id AS turn_id, t.state, t.request_hash, t.user_sequence, t.reply_message_id
    FROM conversations c JOIN accounts a ON a.id = c.account_id
    LEFT JOIN turns o ON o.conversation_id = c.id AND o.state = 'open'
    LEFT JOIN turns t ON t.conversation_id = c.id AND t.idempotency_key = +@idempotencyKey
    WHERE c.uuid = +@conversationUuid AND c.account_id = +@accountId`);
  const reopenTurn = sql.prepare(`
    UPDATE turns SET state = @state, error = NULL, failure = NULL, price_micros = @priceMicros,
      begun_at = @now, finished_at = @finishedAt, node_id = @nodeId
    WHERE id = @turnId`);

  /**
   * Retries a failed or interrupted turn under its key, unless a person has the conversation; its
   * user message is stored already.
   */
  const reopen = async (
    turn: TurnRow, state: ConversationState, args: Begin,
  ): Promise<BeginOutcome> => {
    const answers = assistantAnswers(state.desk);
    const priceMicros = answers ? messagePrice(state.type, args.messagePriceMicros) : 0;
    const refused = await hold(state.assistant_id, priceMicros, 0, args);
    if (refused) return refused;
    const { nodeId, now } = args;
    await reopenTurn.run({
      turnId: turn.turn_id, state: answers ? "open" : "stored", priceMicros, nodeId, now,
      finishedAt: answers ? null : now,
    });
    if (!answers) return { kind: "stored", events: [] };
    const baseSequence = state.event_sequence;
    return { kind: "started", turnId: turn.turn_id, priceMicros, baseSequence, events: [] };
  };
  const begin = async (args: Begin): Promise<BeginOutcome> => {
    const found = await find.get(args);
    if (!found) return { kind: "not_found" };
    const repeated = found.turn_id === null ? null : await repeat(found, found, args);
    if (repeated) return repeated;
    const isNew = found.turn_id === null;
    if (isNew && found.message_count + 2 > args.messagesMax) return { kind: "conversation_full" };
    const { open_turn_id: turnId, open_node_id: nodeId } = found;
    if (turnId !== null && nodeId !== null) {
      if (nodeId !== args.nodeId && await isLiving(nodeId)) return { kind: "busy", nodeId };
      // Nobody is working on it: its node is gone, or could not store how it ended.
      const { id, uuid, assistant_id: assistantId } = found;
      const conversation = { id, uuid, assistantId, accountId: args.accountId };
      return after(await fail(interrupted({ turnId, nodeId, conversation }, args.now)),
        await begin(args));
    }
    return found.turn_id === null
      ? await openNew(found, args)
      : await reopen(found, found, args);
  };
  return begin;
}

/** Puts these events before those of the outcome, as they are in the log. */
const after = (events: CommittedEvent[], outcome: BeginOutcome): BeginOutcome =>
  (outcome.kind === "started" || outcome.kind === "stored"
    ? { ...outcome, events: [...events, ...outcome.events] }
    : outcome);

function createIsLiving(sql: Sql): (nodeId: number) => Promise<boolean> {
  const living = sql.prepare<object, Exists>(
    "SELECT 1 FROM nodes WHERE id = @nodeId AND state <> 'gone'");
  return async (nodeId) => await living.get({ nodeId }) !== undefined;
}

/** Opens a turn with its user message; when a person holds the conversation, only stores it. */
function createOpen(sql: Sql, rows: TurnRows, hold: Hold) {
  const insertTurn = sql.prepare(`
    INSERT INTO turns (conversation_id, state, idempotency_key, request_hash, user_sequence,
      price_micros, begun_at, finished_at, node_id)
    VALUES (@conversationId, @state, @key, @requestHash, @userSequence, @priceMicros, @now,
      @finishedAt, @nodeId)`);
  const ask = createAsk(sql);
  const send = createSending(sql);
  return async (conversation: ConversationState, args: Begin): Promise<BeginOutcome> => {
    const { id: conversationId, uuid } = conversation;
    const { accountId, nodeId, now, text, attachments = [] } = args;
    const answers = assistantAnswers(conversation.desk);
    const priceMicros = answers ? messagePrice(conversation.type, args.messagePriceMicros) : 0;
    const userSequence = conversation.event_sequence + 1;
    const refused = await hold(conversation.assistant_id, priceMicros, 1, args);
    if (refused) return refused;
    const [, , turnId] = await together(
      rows.advance({
        conversationId, hasEnded: conversation.has_ended === 1, messages: 1, costMicros: 0, now,
      }),
      rows.insertQuestion({ conversationId, text, attachments, now }),
      insertTurn.insert({
        conversationId,
        state: answers ? "open" : "stored",
        key: args.idempotencyKey,
        requestHash: args.requestHash,
        userSequence,
        priceMicros,
        now,
        nodeId,
        finishedAt: answers ? null : now,
      }),
    );
    if (attachments.length > 0) await send(conversationId, attachments, now);
    const message: MessageBody = {
      role: "user", content: text, ...attachments.length > 0 ? { attachments } : {},
      created_at: isoMicros(now),
    };
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

/** The outcome of a repeated send, by its key's earlier turn; null: that failed, so try again. */
function createRepeat(sql: Sql, isLiving: (nodeId: number) => Promise<boolean>) {
  const findMessage = sql.prepare<object, MessageRow>(
    `SELECT ${MESSAGE} FROM messages WHERE id = @id`);
  return async (
    turn: TurnRow, conversation: ConversationState, args: Begin,
  ): Promise<BeginOutcome | null> => {
    if (turn.request_hash !== args.requestHash) return { kind: "key_reused" };
    if (turn.state === "open") {
      const nodeId = conversation.open_node_id ?? NOBODY;
      if (nodeId !== args.nodeId && !await isLiving(nodeId)) return null;
      const { event_sequence: newest } = conversation;
      // Starts before the message, unless more was written since it: then a first try has failed.
      const baseSequence = turn.user_sequence === newest ? newest - 1 : newest;
      return { kind: "running", turnId: turn.turn_id, baseSequence, nodeId };
    }
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
 * Reserves the price, recorded by the open turn itself, and draws `events` account event numbers;
 * null: done. A refusal has written nothing.
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
