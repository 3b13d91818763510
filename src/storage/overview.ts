// An account's figures by day in SQLite, read on the main thread. Every query is of a range of one
// account's time index, so that it costs what happened in the range and no more.
import type { DayFigures, OverviewStore, Spend, TurnTimes } from "#features/accounts/overview.ts";
import { IS_LIVE } from "./calls.ts";
import { perSession, together, type Reader, type Sql } from "./sql.ts";

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
interface MessageRow {
  role: "user" | "assistant" | "operator";
  created_at: number;
}

const IN_RANGE = "account_id = @accountId AND created_at >= @from AND created_at < @to";

/** What is no message's, call's or number's is other people's doing; put in, it is no spend. */
const MEMBERS: Record<string, keyof Spend> = {
  message: "messages", call: "calls", number: "numbers",
};

const overviewReads = perSession((sql) => ({
  account: sql.prepare<object, AccountRow>(`
    SELECT balance_micros, reserved_micros, event_sequence,
      (SELECT count(*) FROM calls WHERE account_id = @accountId AND ${IS_LIVE}) AS live_calls
    FROM accounts WHERE id = @accountId`),
  spend: sql.prepare<object, { kind: string; micros: number }>(`
    SELECT kind, -sum(amount_micros) AS micros FROM ledger
    WHERE ${IN_RANGE} AND (kind <> 'credit' OR amount_micros < 0) GROUP BY kind`),
  conversations: sql.prepare<object, { conversations: number; messages: number }>(`
    SELECT count(*) AS conversations, coalesce(sum(message_count), 0) AS messages
    FROM conversations WHERE ${IN_RANGE}`),
  calls: sql.prepare<object, CallsRow>(`
    SELECT status, count(*) AS calls, count(answered_at) AS answered,
      sum(duration_seconds) AS seconds
    FROM calls WHERE ${IN_RANGE} GROUP BY status`),
  turns: sql.prepare<object, { turns: string }>(`
    SELECT turns FROM calls WHERE ${IN_RANGE} AND answered_at IS NOT NULL
    ORDER BY created_at DESC LIMIT (@rows + 0)`),
  newest: sql.prepare<object, { id: number }>(`
    SELECT id FROM conversations WHERE ${IN_RANGE}
    ORDER BY created_at DESC LIMIT (@rows + 0)`),
  messages: sql.prepare<object, MessageRow>(`
    SELECT CASE WHEN author IS NULL THEN role ELSE 'operator' END AS role, created_at
    FROM messages WHERE conversation_id = +@conversationId
    ORDER BY id DESC LIMIT (@rows + 0)`),
}));

async function figuresOf(
  sql: Sql, accountId: number, range: { from: number; to: number },
): Promise<DayFigures> {
  const reads = overviewReads(sql);
  const parameters = { accountId, ...range };
  const [entered, conversations, calls] = await together(
    reads.spend.all(parameters), reads.conversations.get(parameters), reads.calls.all(parameters),
  );
  const spend: Spend = { messages: 0, calls: 0, numbers: 0, other: 0 };
  for (const { kind, micros } of entered) spend[MEMBERS[kind] ?? "other"] += micros;
  return { spend, ...(conversations ?? { conversations: 0, messages: 0 }), calls };
}

export function createOverviewStore(reader: Reader): OverviewStore {
  const reads = overviewReads(reader);
  return {
    present: async (accountId, range) => reader.snapshot(async (sql) => {
      const row = await overviewReads(sql).account.get({ accountId });
      return row
        ? {
            balanceMicros: row.balance_micros,
            reservedMicros: row.reserved_micros,
            sequence: row.event_sequence,
            liveCalls: row.live_calls,
            figures: await figuresOf(sql, accountId, range),
          }
        : null;
    }),
    figures: (accountId, range) => figuresOf(reader, accountId, range),
    callTurns: async (accountId, range, rows) => {
      const found = await reads.turns.all({ accountId, ...range, rows });
      return found.map(({ turns }) => JSON.parse(turns) as TurnTimes[]);
    },
    conversations: async (accountId, range, rows) =>
      (await reads.newest.all({ accountId, ...range, rows })).map(({ id }) => id),
    replyTimes: async (conversationId, rows) => {
      const newestFirst = await reads.messages.all({ conversationId, rows });
      return newestFirst.flatMap(({ role, created_at: at }, index) => {
        const asked = newestFirst[index + 1];
        return role === "assistant" && asked?.role === "user" ? [(at - asked.created_at) / 1000] : [];
      });
    },
  };
}
