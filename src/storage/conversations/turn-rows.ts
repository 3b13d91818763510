// Steps shared by the commands that begin a turn and those that end it. Used by turns.ts and
// turn-ends.ts.
import type { CompleteTurn } from "#features/conversations/records.ts";
import type { Micros } from "#core/money.ts";
import type { Instant } from "#core/system.ts";
import type { AttachmentBody } from "#events/events.ts";
import { createEventAppender } from "#storage/events.ts";
import { createLedger, type ChargedRow } from "#storage/accounts/ledger.ts";
import { NOBODY } from "#storage/nodes/nodes.ts";
import { together, type Awaitable, type Sql } from "#storage/sql.ts";

/** An open turn with the state its end continues from; `event_sequence` is its account's. */
export interface OpenRow extends ChargedRow {
  price_micros: number;
  user_sequence: number;
  begun_at: number;
  conversation_sequence: number;
  has_ended: number;
}

export function createTurnRows(sql: Sql) {
  const insertQuestion = sql.prepare(`
    INSERT INTO messages (conversation_id, role, content, attachments, created_at)
    VALUES (@conversationId, 'user', @text, @attachments, @now)`);
  const insertReply = sql.prepare(`
    INSERT INTO messages (conversation_id, role, content, function_calls, stopped, truncated,
      input_tokens, output_tokens, created_at)
    VALUES (@conversationId, 'assistant', @text, @functionCalls, @stopped, @truncated,
      @inputTokens, @outputTokens, @now)`);
  const advance = sql.prepare(`
    UPDATE conversations SET event_sequence = event_sequence + 1,
      message_count = message_count + @messages,
      total_cost_micros = total_cost_micros + @costMicros,
      last_message_at = @now, updated_at = @now
    WHERE id = @conversationId`);
  const reopen = sql.prepare("UPDATE conversations SET state = 'open' WHERE id = @conversationId");
  const open = sql.prepare<object, OpenRow>(`
    SELECT t.price_micros, t.user_sequence, t.begun_at,
      c.event_sequence AS conversation_sequence, c.state = 'ended' AS has_ended,
      a.balance_micros, a.reserved_micros, a.ledger_entries, a.ledger_hash, a.event_sequence,
      a.alert_micros
    FROM turns t JOIN conversations c ON c.id = t.conversation_id
    JOIN accounts a ON a.id = c.account_id
    WHERE t.id = +@turnId AND t.conversation_id = +@conversationId AND t.state = 'open'
      AND coalesce(t.node_id, ${NOBODY}) = +@nodeId AND a.id = +@accountId`);
  const drawNumbers = sql.prepare(
    "UPDATE accounts SET event_sequence = event_sequence + @events WHERE id = @accountId");
  return {
    ledger: createLedger(sql),
    append: createEventAppender(sql),
    /** Draws account event numbers, which the caller computes from those it has read. */
    drawNumbers: (args: { accountId: number; events: number }): Awaitable<unknown> =>
      drawNumbers.run(args),
    /**
     * Draws an event number of the conversation, which the caller computes likewise, and counts
     * messages and cost. An ended conversation is reopened.
     */
    advance: (args: {
      conversationId: number; hasEnded: boolean; messages: 0 | 1; costMicros: Micros; now: Instant;
    }): Awaitable<unknown> => (args.hasEnded
      ? together(reopen.run(args), advance.run(args))
      : advance.run(args)),
    /** Undefined when the turn is not open, or not this node's: something closed it first. */
    open: (args: {
      turnId: number; conversationId: number; accountId: number; nodeId: number;
    }): Awaitable<OpenRow | undefined> => open.get(args),
    /** The user's message; the statement binds only what it needs, because each value costs. */
    insertQuestion: (args: {
      conversationId: number; text: string; attachments: AttachmentBody[]; now: Instant;
    }): Awaitable<number> => insertQuestion.insert({
      ...args, attachments: args.attachments.length > 0 ? JSON.stringify(args.attachments) : null,
    }),
    insertReply: (
      conversationId: number,
      { text, functionCalls, stopped, truncated, usage, now }: Pick<
        CompleteTurn, "text" | "functionCalls" | "stopped" | "truncated" | "usage" | "now">,
    ): Awaitable<number> => insertReply.insert({
      conversationId, text, now,
      functionCalls: functionCalls.length > 0 ? JSON.stringify(functionCalls) : null,
      stopped: stopped ? 1 : 0,
      truncated: truncated ? 1 : 0,
      inputTokens: usage?.inputTokens ?? null,
      outputTokens: usage?.outputTokens ?? null,
    }),
  };
}

export type TurnRows = ReturnType<typeof createTurnRows>;
