// A database that an earlier program left is taken along by the migrations.
import assert from "node:assert/strict";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import Database from "better-sqlite3";
import { auditDatabase } from "#storage/engines/sqlite/backup.ts";
import {
  databasePath, openForInspection,
} from "#storage/engines/sqlite/database.ts";
import { openStorage } from "#storage/engines/sqlite/storage.ts";
import { shippedMigrations } from "#storage/migrations.ts";
import { testDataDir } from "#support/server.ts";

const DATA = join(import.meta.dirname, "..", "data");

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

test("[SO19] a database of schema 25 is taken along: its books, its log and the turn it died in", async () => {
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
