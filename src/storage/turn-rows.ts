// Steps that the commands which begin a turn and those which end it have in common. Used by
// turns.ts and turn-ends.ts.
import type { Message } from "#features/conversations/records.ts";
import type { Micros } from "#core/money.ts";
import type { Instant } from "#core/system.ts";
import type { AttachmentBody, FunctionCall } from "#events/events.ts";
import { createEventAppender } from "./events.ts";
import { createLedger, type AccountRow } from "./ledger.ts";
import { NOBODY } from "./nodes.ts";
import { together, type Awaitable, type Sql } from "./sql.ts";

/** An open turn with what its end goes on from; `event_sequence` is its account's. */
export interface OpenRow extends AccountRow {
  price_micros: number;
  user_sequence: number;
  begun_at: number;
  conversation_sequence: number;
  has_ended: number;
}

export function createTurnRows(sql: Sql) {
  const insertMessage = sql.prepare(`
    INSERT INTO messages (conversation_id, role, content, function_calls, stopped, truncated,
      input_tokens, output_tokens, attachments, created_at)
    VALUES (@conversationId, @role, @content, @functionCalls, @stopped, @truncated,
      @inputTokens, @outputTokens, @attachments, @now)`);
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
      AND coalesce(t.node_id, ${NOBODY}) = +@nodeId AND a.id = +@accountId`);
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
    /** Undefined when the turn is not open as this node's: somebody closed it first. */
    open: (args: {
      turnId: number; conversationId: number; accountId: number; nodeId: number;
    }): Awaitable<OpenRow | undefined> => open.get(args),
    insertMessage: (args: {
      conversationId: number; role: "user" | "assistant"; content: string;
      functionCalls?: FunctionCall[]; stopped?: boolean; truncated?: boolean;
      usage?: Message["usage"]; attachments?: AttachmentBody[]; now: Instant;
    }): Awaitable<number> => {
      const { conversationId, role, content, functionCalls = [], usage = null, now } = args;
      const { attachments = [] } = args;
      return insertMessage.insert({
        conversationId, role, content, now,
        functionCalls: functionCalls.length > 0 ? JSON.stringify(functionCalls) : null,
        attachments: attachments.length > 0 ? JSON.stringify(attachments) : null,
        stopped: args.stopped === true ? 1 : 0,
        truncated: args.truncated === true ? 1 : 0,
        inputTokens: usage?.inputTokens ?? null,
        outputTokens: usage?.outputTokens ?? null,
      });
    },
  };
}

export type TurnRows = ReturnType<typeof createTurnRows>;
