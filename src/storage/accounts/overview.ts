// An account's figures by day, read over a snapshot. Every query reads a range of one account's
// time index, so that it costs what happened in the range and no more.
import type {
  DayFigures, OverviewScope, OverviewStore, Spend, TurnTimes,
} from "#features/accounts/overview/overview.ts";
import { IS_LIVE } from "#storage/calls/rows.ts";
import { perSession, together, type Reader, type Sql } from "#storage/sql.ts";

interface AccountRow {
  balance_micros: number;
  reserved_micros: number;
  event_sequence: number;
  live_calls: number;
}
interface CallsRow {
  status: string;
  calls: number;
  answered: number;
  seconds: number;
}
interface ConversationsRow {
  conversations: number;
  messages: number;
  micros: number;
}
interface MessageRow {
  role: "user" | "assistant" | "operator";
  created_at: number;
}

const IN_RANGE = "account_id = @accountId AND created_at >= @from AND created_at < @to";

/**
 * Spending by kind of ledger entry. Any other entry was made by a person: what it takes out is
 * other spending, what it puts in is none.
 */
const MEMBERS: Record<string, keyof Spend> = {
  message: "messages", call: "calls", number: "numbers",
};

/** `which`: a condition that limits the figures to one assistant; empty: all assistants. */
const figureReads = (sql: Sql, which: string) => ({
  conversations: sql.prepare<object, ConversationsRow>(`
    SELECT count(*) AS conversations, coalesce(sum(message_count), 0) AS messages,
      coalesce(sum(total_cost_micros), 0) AS micros
    FROM conversations WHERE ${IN_RANGE}${which}`),
  calls: sql.prepare<object, CallsRow & { micros: number }>(`
    SELECT status, count(*) AS calls, count(answered_at) AS answered,
      sum(duration_seconds) AS seconds, sum(total_cost_micros) AS micros
    FROM calls WHERE ${IN_RANGE}${which} GROUP BY status`),
  turns: sql.prepare<object, { turns: string }>(`
    SELECT turns FROM calls WHERE ${IN_RANGE}${which} AND answered_at IS NOT NULL
    ORDER BY created_at DESC LIMIT (@rows + 0)`),
  newest: sql.prepare<object, { id: number }>(`
    SELECT id FROM conversations WHERE ${IN_RANGE}${which}
    ORDER BY created_at DESC LIMIT (@rows + 0)`),
});

const overviewReads = perSession((sql) => ({
  ofAll: figureReads(sql, ""),
  ofOne: figureReads(sql, " AND assistant_id = @assistantId"),
  account: sql.prepare<object, AccountRow>(`
    SELECT balance_micros, reserved_micros, event_sequence,
      (SELECT count(*) FROM calls WHERE account_id = @accountId AND ${IS_LIVE}) AS live_calls
    FROM accounts WHERE id = @accountId`),
  spend: sql.prepare<object, { kind: string; micros: number }>(`
    SELECT kind, -sum(amount_micros) AS micros FROM ledger
    WHERE ${IN_RANGE} AND (kind <> 'credit' OR amount_micros < 0) GROUP BY kind`),
  messages: sql.prepare<object, MessageRow>(`
    SELECT CASE WHEN author IS NULL THEN role ELSE 'operator' END AS role, created_at
    FROM messages WHERE conversation_id = +@conversationId
    ORDER BY id DESC LIMIT (@rows + 0)`),
}));

type Reads = ReturnType<typeof overviewReads>;

const readsOf = (reads: Reads, { assistantId }: OverviewScope): Reads["ofAll"] =>
  assistantId === null ? reads.ofAll : reads.ofOne;

async function figuresOf(sql: Sql, scope: OverviewScope): Promise<DayFigures> {
  const reads = overviewReads(sql);
  const { conversations: counted, calls: called } = readsOf(reads, scope);
  const [entered, conversations, calls] = await together(
    scope.assistantId === null ? reads.spend.all(scope) : [],
    counted.one(scope), called.all(scope),
  );
  const spend: Spend = { messages: 0, calls: 0, numbers: 0, other: 0 };
  for (const { kind, micros } of entered) spend[MEMBERS[kind] ?? "other"] += micros;
  if (scope.assistantId !== null) {
    spend.messages = conversations.micros;
    for (const { micros } of calls) spend.calls += micros;
  }
  const { conversations: begun, messages } = conversations;
  return {
    spend, conversations: begun, messages,
    calls: calls.map(({ status, calls: made, answered, seconds }) =>
      ({ status, calls: made, answered, seconds })),
  };
}

export function createOverviewStore(reader: Reader): OverviewStore {
  const { messages } = overviewReads(reader);
  return {
    present: async (scope) => reader.snapshot(async (sql) => {
      const row = await overviewReads(sql).account.get(scope);
      return row
        ? {
            balanceMicros: row.balance_micros,
            reservedMicros: row.reserved_micros,
            sequence: row.event_sequence,
            liveCalls: row.live_calls,
            figures: await figuresOf(sql, scope),
          }
        : null;
    }, scope.accountId),
    figures: (scope) => reader.snapshot((sql) => figuresOf(sql, scope), scope.accountId),
    callTurns: async (scope, rows) => {
      const found = await reader.snapshot(async (sql) =>
        readsOf(overviewReads(sql), scope).turns.all({ ...scope, rows }), scope.accountId);
      return found.map(({ turns }) => JSON.parse(turns) as TurnTimes[]);
    },
    conversations: async (scope, rows) =>
      (await reader.snapshot(
        async (sql) => readsOf(overviewReads(sql), scope).newest.all({ ...scope, rows }),
        scope.accountId)).map(({ id }) => id),
    replyTimes: async (conversationId, rows) => {
      const newestFirst = await messages.all({ conversationId, rows });
      return newestFirst.flatMap(({ role, created_at: at }, index) => {
        const asked = newestFirst[index + 1];
        return role === "assistant" && asked?.role === "user" ? [(at - asked.created_at) / 1000] : [];
      });
    },
  };
}
