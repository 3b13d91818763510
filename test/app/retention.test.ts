// What is past its time goes, however much of it there is.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { indexMessages } from "#features/conversations/desk/inbox.ts";
import { LIMITS } from "#core/limits.ts";
import { createSystem, keepAwake, nextTurn } from "#core/system.ts";
import { databasePath, openForInspection, openWriter } from "#storage/engines/sqlite/database.ts";
import { askUntil } from "#support/asking.ts";
import { aboutTheFile } from "#support/engines.ts";
import { createManualSystem } from "#support/manual-clock.ts";
import {
  newAssistant, newConversation, startTestServer, testDataDir,
} from "#support/server.ts";

const EVENTS = 6000;
const TURNS_MAX = 20_000;

async function served(context: TestContext, env: Record<string, string> = {}) {
  const dataDir = testDataDir();
  const system = createManualSystem();
  const server = await startTestServer({ dataDir, system, env });
  context.after(() => server.close());
  return { dataDir, system, server };
}

test("[OP184] a sweep removes everything expired, step by step, and continues at the next", {
  skip: aboutTheFile,
}, async (context) => {
  const { dataDir, system } = await served(context);
  const db = openWriter(dataDir, { migrate: false });
  db.exec("DELETE FROM events");
  db.prepare(`
    INSERT INTO events (account_id, account_sequence, sequence, created_at, type, data)
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${EVENTS})
    SELECT id, 1000000 + i, 0, i, 'ai_toggled', '{}' FROM n, accounts LIMIT ${EVENTS}`).run();
  db.close();
  const reader = openForInspection(databasePath(dataDir));
  context.after(() => reader.close());
  const left = reader.prepare<[], { left: number }>(
    `SELECT count(*) AS left FROM events WHERE created_at <= ${EVENTS}`);
  const count = (): number => left.get()?.left ?? -1;
  assert.equal(count(), EVENTS);
  system.advance(LIMITS.retentionSweepMs);
  const seen = new Set<number>();
  for (let turn = 0; count() > 0 && turn < TURNS_MAX; turn += 1) {
    await nextTurn();
    seen.add(count());
    system.advance(LIMITS.retentionPauseMs);
  }
  assert.equal(count(), 0);
  assert.ok(seen.size >= EVENTS / LIMITS.retentionRowsMax - 1, `${seen.size} steps were seen`);
});

test("[OP242] a clock that jumps ahead and back removes nothing; one that stays ahead is followed", {
  skip: aboutTheFile,
}, async (context) => {
  const { dataDir, system } = await served(context);
  const reader = openForInspection(databasePath(dataDir));
  context.after(() => reader.close());
  const left = reader.prepare<[], { left: number }>("SELECT count(*) AS left FROM events");
  const before = left.get()?.left ?? 0;
  assert.ok(before > 0);
  const swept = async (): Promise<number> => {
    system.advance(LIMITS.retentionSweepMs);
    for (let turn = 0; left.get()?.left === before && turn < TURNS_MAX; turn += 1) await nextTurn();
    return left.get()?.left ?? 0;
  };
  const YEARS_MS = 14 * 365 * 86_400_000;
  system.step(YEARS_MS);
  assert.equal(await swept(), before);
  system.step(-YEARS_MS);
  assert.equal(await swept(), before);
  system.step(YEARS_MS);
  await swept();
  await swept();
  assert.ok(await swept() < before);
});

test("[MU32] events, the audit log and recordings are each kept as long as their own setting says", {
  skip: aboutTheFile,
}, async (context) => {
  const { dataDir, system, server } = await served(context, {
    PARLEY_EVENT_RETENTION_DAYS: "2", PARLEY_AUDIT_DAYS: "4", PARLEY_RECORDING_DAYS: "8",
  });
  const { id: assistantId } = await newAssistant(server);
  const db = openWriter(dataDir, { migrate: false });
  context.after(() => db.close());
  db.exec("DELETE FROM events; DELETE FROM audit_log");
  for (const [index, age] of [9, 5, 3, 1].entries()) {
    const row = { at: system.now() - age * 86_400_000_000, number: index + 1, assistantId };
    db.prepare(`
      INSERT INTO events (account_id, account_sequence, sequence, created_at, type, data)
      SELECT account_id, 1000 + @number, 0, @at, 'ai_toggled', '{}' FROM assistants
      WHERE id = @assistantId`).run(row);
    db.prepare(`
      INSERT INTO audit_log (account_id, number, actor_kind, actor_id, actor_name, action, details,
        created_at)
      SELECT account_id, @number, 'key', '1', 'A', 'key.create', '{}', @at FROM assistants
      WHERE id = @assistantId`).run(row);
    db.prepare(`
      INSERT INTO calls (account_id, assistant_id, type, status, price_per_minute, recording_file,
        ended_at, created_at, updated_at, variables)
      SELECT account_id, id, 'web', 'completed', 0, 'none-' || @number, @at, @at, @at, '{}'
      FROM assistants WHERE id = @assistantId`).run(row);
  }
  const left = db.prepare<[], number>(`
    SELECT count(*) FROM events UNION ALL SELECT count(*) FROM audit_log
    UNION ALL SELECT count(recording_file) FROM calls`).pluck();
  assert.deepEqual(left.all(), [4, 4, 4]);
  system.advance(LIMITS.retentionSweepMs);
  await askUntil(() => left.all(), ([events, , recordings]) => events === 1 && recordings === 3);
  await askUntil(() => left.all(), ([, audit]) => audit === 2);
});

test("[OP185] a stopping server does not wait for all messages to be indexed", async (context) => {
  let steps = 0;
  const store = {
    indexMessages: (rows: number) => {
      steps += 1;
      return steps < 9 ? Promise.resolve(rows) : Promise.reject(new Error("it goes on"));
    },
  };
  const awake = keepAwake();
  context.after(() => awake.cancel());
  await indexMessages(store, createSystem(), () => steps === 3);
  assert.equal(steps, 3);
});

test("[OP261] a clock that jumps an hour ahead and back ends no conversation; one that stays ahead does", {
  skip: aboutTheFile,
}, async (context) => {
  const { system, server } = await served(context);
  const { uuid: assistantUuid } = await newAssistant(server);
  const uuid = await newConversation(server, assistantUuid);
  const { conversations } = server.app.features;
  const state = async (): Promise<string> => (await conversations.get(uuid)).state;
  const swept = async (): Promise<string> => {
    system.advance(LIMITS.inactivitySweepMs);
    for (let turn = 0; await state() === "open" && turn < 200; turn += 1) await nextTurn();
    return state();
  };
  const HOUR_MS = 3_600_000;
  system.step(HOUR_MS);
  assert.equal(await swept(), "open");
  system.step(-HOUR_MS);
  assert.equal(await swept(), "open");
  system.step(HOUR_MS);
  assert.equal(await swept(), "open");
  system.advance(LIMITS.clockBelievedMs);
  await askUntil(swept, (now) => now === "ended");
});
