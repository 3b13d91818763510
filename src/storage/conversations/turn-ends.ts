// The commands that end a turn: complete (post) and fail (void). The other half is in turns.ts.
import type { CompleteTurn, FailTurn } from "#features/conversations/records.ts";
import { isoMicros, utcDay, type Instant } from "#core/system.ts";
import type { CommittedEvent, MessageBody } from "#events/events.ts";
import { createTrouble } from "./commands.ts";
import { createEnd } from "./evaluations.ts";
import { createAsk, createDeskMove } from "./desk-commands.ts";
import type { AppendPaid } from "#storage/accounts/ledger.ts";
import type { AsNode } from "#storage/nodes/nodes.ts";
import { chain, together, type Awaitable, type Sql } from "#storage/sql.ts";
import type { OpenRow, TurnRows } from "./turn-rows.ts";

/** The reference of a turn in the ledger. */
const turnReference = (conversationId: number, userSequence: number): string =>
  `turn:${conversationId}.${userSequence}`;

export type Fail = (args: AsNode<FailTurn>) => Promise<CommittedEvent[]>;

/** How a turn fails when its process is gone. */
export const interrupted = (
  turn: Pick<AsNode<FailTurn>, "turnId" | "conversation" | "nodeId">, now: Instant,
): AsNode<FailTurn> => ({
  ...turn, now,
  reason: "interrupted",
  error: "The server was restarted before the reply was complete.",
  cause: null,
  asks: null,
});

export function createComplete(
  sql: Sql, rows: TurnRows,
): (args: AsNode<CompleteTurn>) => Promise<CommittedEvent[]> {
  const end = createEnd(sql);
  const moveDesk = createDeskMove(sql);
  const ask = createAsk(sql);
  const charge = createCharge(rows);
  const closeTurn = sql.prepare(`
    UPDATE turns SET state = @state, reply_message_id = @replyMessageId, finished_at = @now
    WHERE id = @turnId`);

  /** Appends the conversation's last event, for a reply that ended it. */
  const ended = async (
    { conversation, now }: CompleteTurn, accountSequence: number, sequence: number,
  ): Promise<CommittedEvent> => {
    const { id: conversationId, uuid, accountId } = conversation;
    await rows.advance({
      conversationId, hasEnded: false, messages: 0, costMicros: 0, now,
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
    const { turnId, conversation, text, functionCalls, stopped, truncated, now } = args;
    const { id: conversationId, uuid, accountId } = conversation;
    const open = await rows.open({ turnId, conversationId, accountId, nodeId: args.nodeId });
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
    const replyMessageId = await rows.insertReply(conversationId, args);
    const [, , events] = await together(
      closeTurn.run({ turnId, state: stopped ? "stopped" : "done", replyMessageId, now }),
      rows.advance({
        conversationId, hasEnded: open.has_ended === 1, messages: 1,
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

/** Charges what the turn set aside and appends the events; at a price of 0 only appends one. */
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

export function createFail(sql: Sql, rows: TurnRows): Fail {
  const unspend = sql.prepare(`
    UPDATE assistant_spend SET micros = micros - @micros
    WHERE assistant_id = @assistantId AND day = @day`);
  const closeTurn = sql.prepare(`
    UPDATE turns SET state = @reason, error = @error, failure = @failure, finished_at = @now
    WHERE id = @turnId`);
  const note = createTrouble(sql);
  const ask = createAsk(sql);

  return async ({ turnId, conversation, nodeId, reason, error, cause, asks, now }) => {
    const { id: conversationId, uuid, accountId, assistantId } = conversation;
    const open = await rows.open({ turnId, conversationId, accountId, nodeId });
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
      conversationId, hasEnded: open.has_ended === 1, messages: 0, costMicros: 0, now,
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
