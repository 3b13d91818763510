// Reads that may look through much of what an account has, over a file as the server reads it.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { StorageFailure } from "#core/faults.ts";
import { openWriter } from "#storage/engines/sqlite/database.ts";
import { createThreadReader, readerOver, type SqliteReader } from "#storage/engines/sqlite/reader.ts";
import { storageOver } from "#storage/engines/sqlite/storage.ts";
import { aside, type Sql } from "#storage/sql.ts";
import { testDataDir } from "#support/server.ts";

const RANGE = { from: 0, to: 1 };

test("[SO86] lists and reports are read off the main thread", async () => {
  const place = testDataDir();
  const db = openWriter(place, { migrate: true });
  const inner = readerOver(db, db);
  const here = (): never => {
    throw new Error("read on the main thread");
  };
  const reader: SqliteReader = {
    ...inner, prepare: () => ({ get: here, one: here, all: here, run: here, insert: here }),
  };
  const storage = storageOver(reader, {
    write: () => Promise.reject(new Error("nothing is written")),
    failure: () => null, isRefusing: () => false, close: () => Promise.resolve(),
  });
  const inbox = {
    accountId: 1, holderId: "", after: null, filter: {}, rows: 1, search: null,
  };
  const reads: Record<string, () => Promise<unknown>> = {
    "leads": () => storage.leads.list(1, {}, 0, 1),
    "leads counted": () => storage.leads.count(1, {}),
    "calls": () => storage.calls.list(1, {}, 0, 1),
    "calls counted": () => storage.calls.count(1, {}),
    "deliveries": () => storage.webhooks.deliveries(1, {}, 0, 1),
    "deliveries counted": () => storage.webhooks.countDeliveries(1, {}),
    "conversations": () => storage.conversations.list(1, {}, 0, 1),
    "inbox": () => storage.inbox.page({ ...inbox, queue: "all" }),
    "inbox counted": () => storage.inbox.counts(1, ""),
    "ledger": () => storage.statements.page(1, {}, 0, 1),
    "strays of the ledger": () => storage.ledger.strayReferences(),
    "audit log": () => storage.audit.page(1, {}, null, 1),
    "costs": () => storage.costs.sum(1, RANGE, "kind"),
    "overview": () => storage.overview.figures({ accountId: 1, assistantId: null, ...RANGE }),
  };
  const held: string[] = [];
  for (const [name, read] of Object.entries(reads)) {
    await read().catch(() => held.push(name));
  }
  db.close();
  rmSync(place, { recursive: true });
  assert.deepEqual(held, []);
});

test("[SO86] reads off the main thread block nobody, and see what was stored before them", async () => {
  const place = testDataDir();
  const db = openWriter(place, { migrate: true });
  const reader = createThreadReader(place);
  const zones = () => reader.snapshot(async (sql) =>
    sql.prepare<object, { name: string }>("SELECT name FROM accounts WHERE id > @id").all({ id: 0 }));
  assert.deepEqual(await zones(), []);
  db.exec("INSERT INTO accounts (name, email, plan, created_at) VALUES ('A', '', '', 0)");
  assert.deepEqual(await zones(), [{ name: "A" }]);
  await assert.rejects(
    reader.snapshot(async (sql) => sql.prepare("SELECT lost").get({})), /no such column: lost/);
  assert.deepEqual(await zones(), [{ name: "A" }]);
  const counted = aside<object, { rows: number }>(reader, `
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < @last)
    SELECT count(*) AS rows FROM n`);
  let turns = 0;
  const turn = (): void => {
    turns += 1;
    next = setImmediate(turn);
  };
  let next = setImmediate(turn);
  assert.deepEqual(await counted.get({ last: 1_000_000 }), { rows: 1_000_000 });
  clearImmediate(next);
  assert.ok(turns > 1, String(turns));
  await reader.close();
  await assert.rejects(zones(), /the database was closed/);
  db.close();
  rmSync(place, { recursive: true });
});

test("[SO101] a reading thread that ends rejects its own reads only; the next read gets a new one", async (t) => {
  const place = testDataDir();
  const db = openWriter(place, { migrate: true });
  const reader = createThreadReader(place);
  const threads: Worker[] = [];
  const { postMessage } = Worker.prototype;
  t.mock.method(Worker.prototype, "postMessage", function post(this: Worker, message: unknown) {
    if (!threads.includes(this)) threads.push(this);
    postMessage.call(this, message);
  });
  const COUNT = `
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < @last)
    SELECT count(*) AS rows FROM n`;
  const count = async (sql: Sql, last: number): Promise<{ rows: number }> =>
    sql.prepare<object, { rows: number }>(COUNT).one({ last });
  const ended = (error: unknown): boolean =>
    error instanceof StorageFailure && error.message === "the reading thread ended";
  const busy = reader.snapshot((sql) => {
    const counted = count(sql, 300_000);
    void threads[0]?.terminate();
    return counted;
  });
  const behind = reader.snapshot((sql) => count(sql, 2));
  await assert.rejects(busy, ended);
  assert.deepEqual(await behind, { rows: 2 });
  await assert.rejects(reader.snapshot(async (sql) => {
    await count(sql, 3);
    await threads[1]?.terminate();
    return count(sql, 3);
  }), ended);
  await assert.rejects(reader.snapshot(async (sql) => {
    const counted = await count(sql, 3);
    await threads[2]?.terminate();
    return counted;
  }), ended);
  assert.deepEqual(await reader.snapshot((sql) => count(sql, 4)), { rows: 4 });
  assert.equal(threads.length, 4);
  await reader.close();
  db.close();
  rmSync(place, { recursive: true });
});
