// What PostgreSQL does for lists, searches and queues of many rows: it reads by an index, however
// often it was asked before, and empties a table at once.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { test } from "node:test";
import { fill } from "#bench/reports-fill.ts";
import { createSystem } from "#core/system.ts";
import { openSession } from "#storage/engines/postgres/session.ts";
import { openPostgres } from "#storage/engines/postgres/storage.ts";
import type { Storage } from "#storage/storage.ts";
import { createWorld } from "#support/databases/contract-world.ts";
import { databaseAt, withoutPostgres } from "#support/engines.ts";
import { testDataDir } from "#support/server.ts";

/** After the fifth time a plan for all values may take the place of one for these. */
const TIMES = 8;
const MINUTE_MS = 60_000;
/** Whole tables that were read, and rows met on the way from the newest message to the oldest. */
const READ = `
  SELECT relname AS name, seq_scan AS times FROM pg_stat_user_tables
  WHERE relname IN ('messages', 'call_entries')
  UNION ALL SELECT indexrelname, idx_tup_read FROM pg_stat_user_indexes
  WHERE indexrelname = 'message_index_pkey' ORDER BY 1`;

/** A database of a test's own, whose storage is opened as often as it likes. */
async function ownDatabase() {
  const place = testDataDir();
  const database = await databaseAt(place);
  return {
    database,
    open: () => openPostgres({
      url: database.url, writesMax: 1000, isSmall: true, mayForget: true,
    }),
    remove: async () => {
      await database.drop();
      rmSync(place, { recursive: true });
    },
  };
}

async function ask(storage: Storage, accountId: number, search: string | null): Promise<void> {
  await storage.conversations.list(accountId, search === null ? {} : { search }, 0, 25);
  await storage.inbox.page({
    accountId, queue: "waiting", search, holderId: "", filter: {}, after: null, rows: 25,
  });
  if (search === null) return;
  await storage.calls.list(accountId, { search }, 0, 25);
  await storage.calls.count(accountId, { search });
}

test("[SO621] [GR5] over PostgreSQL deliveries that wait are not looked for among those delivered, nor another account's among them", {
  skip: withoutPostgres,
}, async () => {
  const { database, open, remove } = await ownDatabase();
  const first = await open();
  const { newConversation } = createWorld(first);
  const [{ accountId }, other] = [await newConversation(0), await newConversation(0)];
  const now = createSystem().now();
  const fields = { url: "https://a.example", events: ["*"], max: 9, now };
  const endpoint = await first.webhooks.createEndpoint({ ...fields, accountId });
  await first.webhooks.createEndpoint({ ...fields, accountId: other.accountId });
  assert.ok(endpoint);
  await first.webhooks.take({ accountId, endpointId: endpoint.id });
  await first.close();
  await database.query(`INSERT INTO webhook_deliveries (account_id, endpoint_id, message_id, type,
      state, next_at, created_at, finished_at, body)
    SELECT ${accountId}, ${endpoint.id}, 'msg_' || i, 'test',
      CASE WHEN i > 10000 THEN 'pending' ELSE 'delivered' END, 0, 0,
      CASE WHEN i > 10000 THEN NULL ELSE 0 END, repeat('x', 500) FROM generate_series(1, 20000) AS i`);
  await database.query("ANALYZE webhook_deliveries");
  const storage = await open();
  const at = { accountId, endpointId: endpoint.id, now };
  for (let times = 0; times < TIMES; times += 1) {
    const head = await storage.webhooks.head(at.endpointId);
    assert.equal(head?.delivery.messageId, "msg_10001");
    await storage.webhooks.updateEndpoint({ ...at, rotates: true });
  }
  for (let times = 0; times < TIMES; times += 1) {
    const pending = { state: "pending" } as const;
    assert.deepEqual(await storage.webhooks.deliveries(other.accountId, pending, 0, 25), []);
    assert.equal(await storage.webhooks.countDeliveries(other.accountId, pending), 0);
  }
  await storage.webhooks.updateEndpoint({ ...at, status: "disabled" });
  for (let times = 0; times < TIMES; times += 1) {
    assert.equal(await storage.webhooks.giveUp({ ...at, rows: 10 }), 10);
  }
  await storage.close();
  const [read] = await database.query<{ rows: string }>(`
    SELECT i.idx_tup_read + t.seq_tup_read AS rows
    FROM pg_stat_user_indexes i JOIN pg_stat_user_tables t ON t.relid = i.relid
    WHERE indexrelname = 'webhook_deliveries_pkey'`);
  assert.ok(Number(read?.rows) < 1000, `${read?.rows} were read along the ids, or all`);
  await remove();
});

test("[FA3] over PostgreSQL nor are an account's leads, calls and deliveries", {
  skip: withoutPostgres,
}, async () => {
  const { database, open, remove } = await ownDatabase();
  const first = await open();
  const { newConversation } = createWorld(first);
  const [old, busy] = [await newConversation(0), await newConversation(0)];
  const now = createSystem().now();
  const endpoints = [];
  for (const { accountId } of [old, busy]) {
    endpoints.push(await first.webhooks.createEndpoint({
      url: "https://a.example", events: ["*"], max: 9, now, accountId,
    }));
  }
  await first.close();
  for (const [at, { accountId, assistantId }] of [old, busy].entries()) {
    await database.query(`INSERT INTO campaigns (account_id, assistant_id, name, status, timezone,
        max_calls_in_parallel, start_minute, end_minute, allowed_days, max_retries,
        retry_interval_minutes, retry_on_voicemail, retry_on_goal_incomplete,
        mark_complete_when_no_leads, phone_number_ids, created_at, updated_at)
      VALUES (${accountId}, ${assistantId}, 'c', 'draft', 'UTC', 1, 0, 1, '[]', 0, 0, 0, 0, 0, '[]', 0, 0)`);
    await database.query(`INSERT INTO leads (account_id, campaign_id, phone_number, timezone,
        variables, status, created_at, updated_at)
      SELECT ${accountId}, (SELECT max(id) FROM campaigns), '+1' || i, '', '{}', 'created', 0, 0
      FROM generate_series(1, 20000) AS i`);
    await database.query(`INSERT INTO webhook_deliveries (account_id, endpoint_id, message_id, type,
        state, next_at, created_at, finished_at, body)
      SELECT ${accountId}, ${endpoints[at]?.id}, 'msg_' || i, 'test', 'delivered', 0, 0, 0, '{}'
      FROM generate_series(1, 20000) AS i`);
    await database.query(`INSERT INTO calls (account_id, assistant_id, type, status,
        price_per_minute, variables, created_at, updated_at)
      SELECT ${accountId}, ${assistantId}, 'inbound', 'completed', 0, '{}', 0, 0
      FROM generate_series(1, 20000) AS i`);
  }
  await database.query("ANALYZE");
  const storage = await open();
  for (let time = 0; time < TIMES; time += 1) {
    for (const filter of [{}, { from: 0 }]) {
      assert.equal((await storage.leads.list(old.accountId, filter, 0, 25)).length, 25);
    }
    for (const search of ["%", undefined]) {
      const filter = search === undefined ? {} : { search };
      await storage.calls.list(old.accountId, filter, 0, 25);
    }
    for (const state of ["delivered", "dead", undefined] as const) {
      const filter = state === undefined ? {} : { state };
      const rows = await storage.webhooks.deliveries(old.accountId, filter, 0, 25);
      assert.equal(rows.length, state === "dead" ? 0 : 25);
    }
  }
  await storage.close();
  const read = await database.query<{ name: string; rows: string }>(`
    SELECT indexrelname AS name, i.idx_tup_read + t.seq_tup_read AS rows
    FROM pg_stat_user_indexes i JOIN pg_stat_user_tables t ON t.relid = i.relid
    WHERE indexrelname IN ('leads_pkey', 'calls_pkey', 'webhook_deliveries_pkey')`);
  assert.equal(read.length, 3);
  assert.deepEqual(read.filter(({ rows }) => Number(rows) > 5000), []);
  await remove();
});

test("[GR9] over PostgreSQL an account's conversations are not looked for among everybody's newer ones", {
  skip: withoutPostgres,
}, async () => {
  const { database, open, remove } = await ownDatabase();
  const first = await open();
  const { newConversation } = createWorld(first);
  const [old, busy] = [await newConversation(0), await newConversation(0)];
  await first.close();
  for (const { accountId, assistantId } of [old, busy]) {
    await database.query(`INSERT INTO conversations (uuid, account_id, assistant_id, type, variables,
        last_message_at, check_at, created_at, updated_at)
      SELECT '${accountId}-' || i, ${accountId}, ${assistantId}, 'widget', '{}', 0, 0, 0, 0
      FROM generate_series(1, 20000) AS i`);
  }
  await database.query("ANALYZE conversations");
  const storage = await open();
  const page = (before: number) => storage.conversations.list(old.accountId, {}, before, 25);
  const newest = await page(0);
  assert.deepEqual(newest.map(({ uuid }) => uuid),
    Array.from({ length: 25 }, (_, at) => `${old.accountId}-${20_000 - at}`));
  const [next] = await page(newest.at(-1)?.id ?? 0);
  assert.equal(next?.uuid, `${old.accountId}-19975`);
  await storage.close();
  const [read] = await database.query<{ rows: string }>(`
    SELECT i.idx_tup_read + t.seq_tup_read AS rows
    FROM pg_stat_user_indexes i JOIN pg_stat_user_tables t ON t.relid = i.relid
    WHERE indexrelname = 'conversations_pkey'`);
  assert.ok(Number(read?.rows) < 1000, `${read?.rows} were read along the ids, or all`);
  await remove();
});

test("[SO42] lists and searches over PostgreSQL never scan all messages or transcripts, however often run", {
  skip: withoutPostgres,
}, async () => {
  const { database, open, remove } = await ownDatabase();
  const system = createSystem();
  const first = await open();
  const { newConversation } = createWorld(first);
  const [{ accountId, assistantId }, other] =
    [await newConversation(0), await newConversation(0)];
  const session = await openSession({
    url: database.url, purpose: "test", statementMs: MINUTE_MS, idleMs: MINUTE_MS, system,
  });
  const size = { conversations: 1500, calls: 1500, leads: 10, days: 90 };
  for (const one of [{ accountId, assistantId }, other]) {
    await fill(session.sql, size, {
      id: one.accountId, assistantIds: [one.assistantId], now: system.now(),
    });
  }
  while (await first.inbox.indexMessages(5000) > 0);
  // What was seen is settled by the next looks.
  for (let look = 0; look < 3; look += 1) await first.inbox.indexMessages(5000);
  await first.close();
  await session.run("ANALYZE");
  await session.close();
  const read = () => database.query<{ name: string; times: string }>(READ);
  const before = await read();
  assert.equal(before.length, 3);
  const storage = await open();
  for (let times = 0; times < TIMES; times += 1) {
    for (const search of [null, "refund", "bike", "hovercraft"]) {
      await ask(storage, accountId, search);
    }
  }
  assert.notDeepEqual(await storage.calls.list(accountId, { search: "refund" }, 0, 25), []);
  // A session that ends tells what it counted.
  await storage.close();
  assert.deepEqual(await read(), before);
  await remove();
});

test("[SO623] over PostgreSQL the index of messages is emptied at once, however large it is", {
  skip: withoutPostgres,
}, async () => {
  const { database, open, remove } = await ownDatabase();
  const storage = await open();
  await database.query(`INSERT INTO message_index (message_id, conversation_id, words)
    SELECT i, 1, CAST('bike' AS tsvector) FROM generate_series(1, 1000) AS i`);
  await storage.inbox.forgetIndex();
  // Rows that are deleted one by one keep their room.
  const [left] = await database.query<{ bytes: string }>(
    "SELECT pg_relation_size('message_index') AS bytes");
  assert.equal(left?.bytes, "0");
  await storage.close();
  await remove();
});
