// A database that an earlier program left is taken along by the migrations.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import Database from "better-sqlite3";
import { auditDatabase } from "#storage/engines/sqlite/backup.ts";
import {
  databasePath, lockDataDir, openForInspection,
} from "#storage/engines/sqlite/database.ts";
import { openStorage } from "#storage/engines/sqlite/storage.ts";
import { openPostgres } from "#storage/engines/postgres/storage.ts";
import { translateSchema } from "#storage/engines/postgres/translate.ts";
import { shippedMigrations } from "#storage/migrations.ts";
import { askUntil } from "#support/asking.ts";
import { databaseAt, isOverPostgres, withoutPostgres } from "#support/engines.ts";
import { CLI, parley, startProcess } from "#support/process.ts";
import { testDataDir } from "#support/server.ts";

const DATA = join(import.meta.dirname, "..", "data");
const HURRIED = join(import.meta.dirname, "../support/databases/hurried.ts");

/** The turns with the columns that every schema has. */
const turnsOf = (db: Database.Database): unknown[] => db.prepare(`
  SELECT id, conversation_id, state, idempotency_key, request_hash, user_sequence,
    reply_message_id, price_micros, error, begun_at, finished_at, failure
  FROM turns ORDER BY id`).all();

/** Returns the turns it left. */
function leave(dataDir: string, schema: number): unknown[] {
  const db = new Database(databasePath(dataDir));
  for (const { version, sql } of shippedMigrations("sqlite")) if (version <= schema) db.exec(sql);
  db.exec(readFileSync(join(DATA, `schema-${schema}.sql`), "utf8"));
  db.pragma(`user_version = ${schema}`);
  const turns = turnsOf(db);
  db.close();
  return turns;
}

/** Rows of schema 57: what an account was told, and was to be told, of a lead and its contact. */
const LEADS_57 = `
  INSERT INTO accounts (id, name, email, plan, event_sequence, created_at) VALUES (1, 'A', '', 'self-hosted', 4, 1);
  INSERT INTO assistants (id, uuid, account_id, name, type, status, mode, created_at, updated_at, settings)
    VALUES (1, 'u', 1, 'A', 'outbound', 'active', 'pipeline', 1, 1, '{}');
  INSERT INTO campaigns (id, account_id, assistant_id, name, status, timezone, max_calls_in_parallel,
      start_minute, end_minute, allowed_days, max_retries, retry_interval_minutes, retry_on_voicemail,
      retry_on_goal_incomplete, mark_complete_when_no_leads, phone_number_ids, created_at, updated_at)
    VALUES (1, 1, 1, 'C', 'draft', 'UTC', 1, 0, 1439, '[]', 1, 60, 0, 0, 1, '[]', 1, 1);
  INSERT INTO webhook_endpoints (id, account_id, purpose, url, created_at, updated_at)
    VALUES (1, 1, 'account', 'https://example.com', 1, 1);
  ${[[1, null], [2, 1], [12, null]].map(([id, main]) => `
    INSERT INTO leads (id, account_id, campaign_id, main_id, phone_number, timezone, variables, status,
      created_at, updated_at) VALUES (${id}, 1, 1, ${main}, '+1555010000${id}', '', '{}', 'created', 1, 1);
    INSERT INTO events (account_id, account_sequence, sequence, type, data, created_at)
      VALUES (1, ${id}, 0, 'lead_status_changed', '${said(id!, main!)}', 1);
    INSERT INTO webhook_deliveries (account_id, endpoint_id, message_id, type, state, next_at,
      created_at, body) VALUES (1, 1, 'msg_${id}', 'lead_status_changed', 'pending', 1, 1,
        '{"type":"lead_status_changed","data":${said(id!, main!)}}');`).join("")}
  INSERT INTO events (account_id, account_sequence, sequence, type, data, created_at)
    VALUES (1, 3, 0, 'campaign_status_changed', '{"type":"campaign_status_changed","campaign_id":1}', 1);`;

function said(id: number, main: number | null): string {
  return JSON.stringify({
    type: "lead_status_changed", main_lead_id: main, lead_id: id, phone_number: `+1555010000${id}`,
  });
}

const OLDER = [
  {
    name: "SQLite",
    make: (dataDir: string) => {
      const db = new Database(databasePath(dataDir));
      for (const { version, sql } of shippedMigrations("sqlite")) if (version <= 57) db.exec(sql);
      db.exec(LEADS_57);
      db.pragma("user_version = 57");
      db.close();
      return Promise.resolve({
        open: () => openStorage(dataDir, "inline"),
        read: (query: string) => {
          const taken = openForInspection(databasePath(dataDir));
          const rows = taken.prepare<[], { text: string }>(query).all();
          taken.close();
          return Promise.resolve(rows);
        },
      });
    },
  },
  {
    name: "PostgreSQL",
    skip: withoutPostgres,
    make: async (dataDir: string) => {
      const { url, query } = await databaseAt(dataDir);
      const older = shippedMigrations("postgres").filter(({ version }) => version <= 57);
      for (const text of [
        "DROP SCHEMA public CASCADE", "CREATE SCHEMA public",
        ...older.map(({ sql }) => translateSchema(sql)), LEADS_57,
        "CREATE TABLE schema_version (version BIGINT NOT NULL)", "INSERT INTO schema_version VALUES (57)",
      ]) await query(text);
      return {
        open: () => openPostgres({ url, writesMax: 10, isSmall: true, mayForget: true }),
        read: (text: string) => query<{ text: string }>(text),
      };
    },
  },
];

for (const { name, skip = false, make } of OLDER) {
  test(`[SO48] ${name}: a lead's events and webhooks stored by an older version are deleted with it`, { skip }, async () => {
    const dataDir = testDataDir();
    const { open, read } = await make(dataDir);
    const storage = await open();
    const done = await storage.leads.remove({ accountId: 1, leadId: 1, now: 2 });
    assert.equal(done.kind, "removed");
    await storage.close();
    const numbers = (rows: { text: string }[]) => rows.map(({ text }) => /\+\d+/.exec(text)?.[0] ?? null);
    assert.deepEqual(
      numbers(await read("SELECT data AS text FROM events ORDER BY id")),
      [null, null, "+155501000012", null]);
    assert.deepEqual(
      numbers(await read("SELECT body AS text FROM webhook_deliveries ORDER BY id")), ["+155501000012"]);
    rmSync(dataDir, { recursive: true });
  });
}

test("[OP190] a start names the migration of an older database, and none for a new one", {
  skip: isOverPostgres ? "of the file" : false,
}, async () => {
  const said = async (dataDir: string): Promise<string[]> => {
    const server = await startProcess(dataDir, { PARLEY_SECRET: "s".repeat(32) });
    const gone = once(server.process, "exit");
    server.process.kill();
    await gone;
    rmSync(dataDir, { recursive: true });
    return [...server.said.matchAll(
      /"migration":"(\d+)_\w+\.sql","msg":"bringing the database up to date"/g)].map(([, name]) => name!);
  };
  const dataDir = testDataDir();
  leave(dataDir, 25);
  const newer = shippedMigrations("sqlite").filter(({ version }) => version > 25);
  assert.deepEqual(await said(dataDir), newer.map(({ name }) => name.slice(0, 4)));
  assert.deepEqual(await said(testDataDir()), []);
});

test("[OP270] a command waits for a running migration, however long it takes", {
  skip: isOverPostgres ? "of the file" : false,
}, async () => {
  const dataDir = testDataDir();
  leave(dataDir, 25);
  const db = new Database(databasePath(dataDir));
  db.pragma("journal_mode = WAL");
  const server = lockDataDir(dataDir);
  db.exec("BEGIN IMMEDIATE");
  const waits = join(dataDir, "waits");
  writeFileSync(waits, "");
  const listed = parley(dataDir, ["account", "list"], { WAITS: waits }, ["--import", HURRIED]);
  // More often than it waits for a server that is about to begin.
  const isPatient = askUntil(() => statSync(waits).size, (count) => count > 100);
  assert.equal(typeof await Promise.race([listed, isPatient]), "number");
  // In the other order it might see an old schema with a server beside it, and refuse.
  server?.release();
  db.exec("ROLLBACK");
  db.close();
  const { code, out, err } = await listed;
  assert.equal(code, 0, err);
  assert.match(out, /^account_id /);
  rmSync(dataDir, { recursive: true });
});

test("[SO111] a command that migrates an older database names the migration, apart from its output", {
  skip: isOverPostgres ? "of the file" : false,
}, () => {
  const dataDir = testDataDir();
  leave(dataDir, 25);
  const list = () => {
    const { stdout, stderr, status } = spawnSync(
      process.execPath, [CLI, "account", "list", "--json"],
      { env: { PARLEY_DATA_DIR: dataDir }, encoding: "utf8" });
    assert.equal(status, 0, stderr);
    assert.equal((JSON.parse(stdout) as object[]).length, 1);
    return stderr;
  };
  const newer = shippedMigrations("sqlite").filter(({ version }) => version > 25);
  assert.equal(list(), newer.map(({ name }) =>
    `parley: bringing the database up to date (${name})\n`).join(""));
  assert.equal(list(), "");
  rmSync(dataDir, { recursive: true });
});

test("[SO19] a database of schema 25 is migrated: its ledger, its log and the turn it died in", async () => {
  const dataDir = testDataDir();
  const left = leave(dataDir, 25);
  const storage = await openStorage(dataDir, "inline");
  const taken = openForInspection(databasePath(dataDir));
  assert.deepEqual(turnsOf(taken), left);
  assert.equal(left.length, 3);
  taken.close();
  const claims = await storage.statements.claims(1);
  assert.deepEqual(
    [claims?.totals.balanceMicros, claims?.totals.reservedMicros, claims?.openMicros],
    [4_500_000, 250_000, 250_000], "the open turn is what is set aside");
  const events = await storage.events.ofAccount(1, 0, 100);
  assert.deepEqual(events.map(({ accountSequence }) => accountSequence),
    Array.from({ length: 12 }, (_, index) => index + 1));
  assert.deepEqual(events.filter(({ type }) => type === "balance_changed").map(({ json }) => json), [
    '{"type":"balance_changed","balance":5,"change":5,"kind":"credit"}',
    '{"type":"balance_changed","balance":4.75,"change":-0.25,"kind":"message"}',
    '{"type":"balance_changed","balance":4.5,"change":-0.25,"kind":"message"}',
  ]);
  const now = 1_795_349_800_000_000;
  const [closed] = await storage.conversations.recover({ now });
  assert.deepEqual([closed?.type, closed?.accountSequence], ["reply_failed", 13]);
  const conversation = closed?.conversationId ?? "";
  const tried = await storage.conversations.beginTurn({
    accountId: 1, conversationUuid: conversation, text: "Where is it?", idempotencyKey: null,
    requestHash: "0", messagePriceMicros: 250_000, dailyCapMicros: null, day: "2026-11-22",
    messagesMax: 100, now,
  });
  assert.ok(tried.kind === "started");
  await storage.conversations.completeTurn({
    turnId: tried.turnId, text: "At the harbour.", functionCalls: [], stopped: false,
    truncated: false, usage: null, ends: false, now,
    conversation: { accountId: 1, id: 2, uuid: conversation, assistantId: 1 },
  });
  await storage.close();
  const db = openForInspection(databasePath(dataDir));
  assert.deepEqual((await auditDatabase(db)).problems, []);
  assert.equal(db.pragma("integrity_check", { simple: true }), "ok");
  db.close();
  rmSync(dataDir, { recursive: true });
});
