// Fills a database as a busy year does, with statements that both engines accept: two accounts with
// the same amount of everything. Used by reports.ts.
import type { Sql } from "#storage/sql.ts";

export interface Size {
  /** Per account; each has ten messages and five ledger entries. */
  conversations: number;
  /** Per account; each has eight entries of transcript. */
  calls: number;
  leads: number;
  /** The number of days over which all of it happened. */
  days: number;
}

const DAY_MICROS = 24 * 60 * 60 * 1_000_000;
export const MESSAGES_EACH = 10;
const ENTRIES_EACH = 8;
/** One in this many conversations is open, and one in this many calls live. */
const OPEN_EACH = 20;
const WORDS = ["bike", "rental", "brakes", "invoice", "battery", "appointment", "delivery", "warranty"];

/** An `INSERT` of `@count` rows, each made from its number `i`. */
const rowsOf = (table: string, columns: Record<string, string>): string => `
  INSERT INTO ${table} (${Object.keys(columns).join(", ")})
  WITH RECURSIVE n (i) AS (
    SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < @count
  )
  SELECT ${Object.values(columns).join(", ")} FROM n`.replaceAll(/@\w+/g, "CAST($& AS BIGINT)");

/** Each of the eight words is in every eighth message; each number is in one message only. */
const text = (number: string): string => `CASE ${number} % ${WORDS.length}
  ${WORDS.map((word, at) => `WHEN ${at} THEN 'I have a question about the ${word} that I ordered, number '`).join(" ")}
  END || CAST(${number} AS TEXT) || CASE ${number} % 997 WHEN 0 THEN ' and want a refund' ELSE '' END`;

/** Times are evenly spread: the first `@span` ago, the last now. */
const AT = "@now - (@span - i * @span / @count)";

/** An account's rows have ids in a range of its own, so that statements need not look them up. */
export async function fill(
  sql: Sql, { conversations, calls, leads, days }: Size, account: {
    id: number; assistantIds: number[]; now: number;
  },
): Promise<void> {
  const base = account.id * 10_000_000;
  const span = days * DAY_MICROS;
  const common = { accountId: account.id, base, now: account.now, span };
  const [first = 0, ...more] = account.assistantIds;
  const assistant = `CAST(${first} + i % ${more.length + 1} AS BIGINT)`;
  const run = (statement: string, count: number, others: object = {}): unknown =>
    sql.prepare<object>(statement).run(named(statement, { ...common, ...others, count }));
  await run(rowsOf("conversations", {
    id: "@base + i", uuid: "'c-' || CAST(@base + i AS TEXT)", account_id: "@accountId",
    assistant_id: assistant, type: "CASE i % 3 WHEN 0 THEN 'test' ELSE 'widget' END",
    state: `CASE i % ${OPEN_EACH} WHEN 0 THEN 'open' ELSE 'ended' END`,
    variables: `'{"name":"visitor ' || CAST(i AS TEXT) || '"}'`,
    message_count: String(MESSAGES_EACH), total_cost_micros: "50000",
    last_message_at: AT, check_at: "@now + @span", created_at: AT,
    updated_at: AT,
    desk: `CASE i % ${OPEN_EACH * 10} WHEN 0 THEN 'waiting' ELSE 'assistant' END`,
    desk_at: AT,
  }), conversations);
  await run(rowsOf("messages", {
    id: `@base + i`, conversation_id: `@base + 1 + (i - 1) / ${MESSAGES_EACH}`,
    role: "CASE i % 2 WHEN 1 THEN 'user' ELSE 'assistant' END", content: text("i"),
    created_at: `${AT} + i % ${MESSAGES_EACH} * 2000000`,
  }), conversations * MESSAGES_EACH);
  await run(rowsOf("campaigns", {
    id: "@base + i", account_id: "@accountId", assistant_id: String(first),
    name: "'Campaign ' || CAST(i AS TEXT)", status: "'stopped'", timezone: "'UTC'",
    max_calls_in_parallel: "5", start_minute: "0", end_minute: "1439", allowed_days: "'[]'",
    max_retries: "3", retry_interval_minutes: "60", retry_on_voicemail: "0",
    retry_on_goal_incomplete: "0", mark_complete_when_no_leads: "0", phone_number_ids: "'[]'",
    created_at: "@now", updated_at: "@now",
  }), 5);
  await run(rowsOf("calls", {
    id: "@base + i", account_id: "@accountId", assistant_id: assistant,
    type: "CASE i % 3 WHEN 0 THEN 'outbound' ELSE 'inbound' END",
    status: "CASE i % 5 WHEN 0 THEN 'no-answer' WHEN 1 THEN 'ended_by_customer' ELSE 'completed' END",
    customer_phone: "'+4915' || CAST(10000000 + i AS TEXT)", answered_by: "'human'",
    answered_at: `CASE i % 5 WHEN 0 THEN NULL ELSE ${AT} END`,
    ended_at: AT, duration_seconds: "i % 300", price_per_minute: "100000",
    total_cost_micros: "i % 300 * 1666", created_at: AT, updated_at: AT,
    variables: `'{"name":"caller ' || CAST(i AS TEXT) || '"}'`,
    campaign_id: "CASE i % 3 WHEN 0 THEN @base + 1 + i % 5 ELSE NULL END",
    turns: `'[${Array.from({ length: 4 }, () =>
      '{"endpointMs":300,"finalTranscriptMs":120,"firstTokenMs":400,"firstAudioMs":250,"heardMs":900}').join(",")}]'`,
  }), calls);
  await run(rowsOf("call_entries", {
    call_id: `@base + 1 + (i - 1) / ${ENTRIES_EACH}`, number: `1 + (i - 1) % ${ENTRIES_EACH}`,
    speaker: "CASE i % 2 WHEN 1 THEN 'customer' ELSE 'assistant' END", text: text("i"),
    start_ms: "i % 8 * 3000", end_ms: "i % 8 * 3000 + 2500", interrupted: "0",
  }), calls * ENTRIES_EACH);
  await run(rowsOf("leads", {
    id: "@base + i", account_id: "@accountId", campaign_id: "@base + 1 + i % 5",
    phone_number: "'+4915' || CAST(10000000 + i AS TEXT)", timezone: "'UTC'",
    variables: `'{"name":"lead ' || CAST(i AS TEXT) || '"}'`,
    status: "CASE i % 4 WHEN 0 THEN 'scheduled' WHEN 1 THEN 'created' ELSE 'completed' END",
    outcome: "CASE i % 4 WHEN 0 THEN '' WHEN 1 THEN '' WHEN 2 THEN 'answered' ELSE 'busy' END",
    next_try_at: "CASE i % 4 WHEN 0 THEN @now ELSE NULL END", created_at: AT,
    updated_at: AT,
  }), leads);
  const turns = conversations * MESSAGES_EACH / 2;
  await run(rowsOf("ledger", {
    account_id: "@accountId", number: "@head + i",
    kind: `CASE i % 6 WHEN 0 THEN 'call' ELSE 'message' END`,
    reference: `CASE i % 6 WHEN 0 THEN 'call:' || CAST(@base + i / 6 AS TEXT)
      ELSE 'turn:' || CAST(@base + 1 + i * ${conversations} / (@count + 1) AS TEXT) || '.' || CAST(i AS TEXT) END`,
    amount_micros: "-10000", balance_after_micros: "1000000", created_at: AT, hash: "'x'",
  }), turns + calls, { head: 1000 });
  const counted = "UPDATE accounts SET ledger_entries = @count WHERE id = @accountId";
  await run(counted, 1000 + turns + calls);
}

/** Only the parameters that the statement names: SQLite refuses others. */
const named = (statement: string, parameters: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(parameters)
    .filter(([name]) => new RegExp(`@${name}\\b`).test(statement)));
