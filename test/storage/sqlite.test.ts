// What is SQLite's alone: how the `Sql` port stands on the driver, and how a batch is kept whole.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { after, test } from "node:test";
import { StorageFailure } from "#core/faults.ts";
import { createBatchRunner } from "#storage/engines/sqlite/batch.ts";
import { openWriter } from "#storage/engines/sqlite/database.ts";
import { LIMITS } from "#core/limits.ts";
import { commandsOver, createSql } from "#storage/engines/sqlite/sql.ts";
import { startThreadWriter } from "#storage/engines/sqlite/writer.ts";
import { lockOf } from "#storage/locks.ts";
import { testDataDir } from "#support/server.ts";

const dataDir = testDataDir();
const db = openWriter(dataDir, { migrate: true });
after(() => {
  db.close();
  rmSync(dataDir, { recursive: true, force: true });
});

test("[SO10] a statement takes named parameters, lists among them, and an insert returns its id", async () => {
  const sql = createSql(db);
  const insert = sql.prepare(
    "INSERT INTO accounts (name, email, plan, created_at) VALUES (@name, '', '', @now)");
  const ids = [];
  for (const name of ["a", "b", "c"]) ids.push(await insert.insert({ name, now: 1, more: 2 }));
  assert.deepEqual(ids, [1, 2, 3]);
  const chosen = sql.prepare<object, { name: string }>(
    `SELECT name FROM accounts WHERE ${sql.dialect.among("id", "@ids")} ORDER BY id`);
  assert.deepEqual(await chosen.all({ ids: [1, 3, 9] }), [{ name: "a" }, { name: "c" }]);
  assert.deepEqual(await chosen.all({ ids: [] }), []);
  assert.equal(await chosen.get({ ids: [9] }), undefined);
  const rename = sql.prepare("UPDATE accounts SET name = @name");
  assert.equal((await rename.run({ name: "d" })).changes, 3);
});

test("[SO11] commands of a batch run one after another, each seeing the writes of those before", async () => {
  const sql = createSql(db);
  const credit = sql.prepare("UPDATE accounts SET balance_micros = balance_micros + 1 WHERE id = 1");
  const read = sql.prepare<object, { micros: number }>(
    "SELECT balance_micros AS micros FROM accounts WHERE id = 1");
  const run = createBatchRunner(db, () => ({
    add: async () => {
      const before = (await read.get({}))?.micros ?? 0;
      await credit.run({});
      return before;
    },
    refuse: async () => {
      await credit.run({});
      throw new Error("no");
    },
  }));
  const outcomes = await run(["add", "refuse", "add"].map((command) => ({ command, args: {} })));
  assert.deepEqual(outcomes.map((outcome) =>
    (outcome.kind === "done" ? outcome.value : outcome.kind)), [0, "threw", 1]);
  const [unknown] = await run([{ command: "nothing", args: {} }]);
  assert.equal(unknown?.kind, "threw");
});

test("[SO49] a batch the disk had no room for has no effect, and leaves nothing in memory", async () => {
  const run = createBatchRunner(db, () => commandsOver(db));
  const credit = (reference: string) => ({
    command: "accounts.credit",
    args: { accountId: 1, amountMicros: 10, reference, now: 1 },
  });
  // The credit's event finds the endpoint that was made before it.
  const endpoint = {
    command: "webhooks.createEndpoint",
    args: {
      accountId: 1, url: "https://hooks.example.com", events: ["*"], secret: "s", max: 9, now: 1,
      purpose: "account",
    },
  };
  const large = {
    command: "knowledgebases.create",
    args: { accountId: 1, name: "K", description: "x".repeat(1_000_000), now: 1 },
  };
  const kinds = async (...requests: Parameters<typeof run>[0]): Promise<string[]> =>
    (await run(requests)).map(({ kind }) => kind);
  db.pragma(`max_page_count = ${Number(db.pragma("page_count", { simple: true })) + 20}`);
  assert.deepEqual(await kinds(endpoint, credit("a"), large), ["full", "full", "full"]);
  db.pragma("max_page_count = 1000000");
  assert.deepEqual(await kinds(credit("b"), large), ["done", "done"]);
  const left = db.prepare("SELECT count(*) AS count FROM webhook_endpoints").get();
  assert.deepEqual(left, { count: 0 });
});

test("[SO12] a command that awaits anything but a statement ends its process", () => {
  const { status, stderr } = spawnSync(process.execPath, ["--input-type=module", "--eval", `
    import { createBatchRunner } from "#storage/engines/sqlite/batch.ts";
    import { openWriter } from "#storage/engines/sqlite/database.ts";
    const db = openWriter(process.env.PLACE, { migrate: false });
    const run = createBatchRunner(db, () => ({
      wait: () => new Promise((resolve) => setTimeout(resolve, 1000)),
    }));
    await run([{ command: "wait", args: {} }]);
  `], { env: { ...process.env, PLACE: dataDir }, encoding: "utf8" });
  assert.notEqual(status, 0);
  assert.match(stderr, /awaited something else than a statement/);
});

test("[SO13] every command runs under a lock: its account's, or one for shared data", () => {
  const owned = { accountId: 7 };
  const args = { ...owned, calendar: owned, tool: owned, conversation: owned } as never;
  const names = Object.keys(commandsOver(db)) as Parameters<typeof lockOf>[0][];
  const locks = names.map((name) => [name, lockOf(name, args)] as const);
  const shared = locks.filter(([, lock]) => !("account" in lock)).map(([name]) => name);
  assert.deepEqual(shared.sort(), [
    "accounts.create", "messages.forgetIndex", "messages.index", "nodes.beat", "nodes.bury",
    "nodes.giveLeaseBack", "nodes.join", "nodes.leave", "nodes.recovered", "nodes.takeLease",
    "phoneNumbers.finishReturn", "phoneNumbers.putBack", "phoneNumbers.stock", "phoneNumbers.take",
    "removals.forget", "removals.note",
    "sipTrunks.approve", "sipTrunks.create", "sipTrunks.giveBack", "sipTrunks.take",
    "sipTrunks.update", "users.tryPassword",
  ]);
  for (const [name, lock] of locks) {
    if ("account" in lock) assert.deepEqual(lock, { account: 7 }, name);
  }
});

test("[SO62] a write that ends something is accepted however long the write queue is", async () => {
  const place = testDataDir();
  const writer = await startThreadWriter(place, 2);
  const plan = (accountId: number) => writer.write("accounts.setPlan", { accountId, plan: "p" });
  const asked = await Promise.allSettled([plan(1), plan(1), writer.write(
    "calls.failTransfer", { accountId: 1, callId: 1, failureReason: "x", now: 1 })]);
  assert.deepEqual(asked.map(({ status }) => status), ["fulfilled", "rejected", "fulfilled"]);
  assert.equal(await plan(1), false, "what was answered leaves room");
  await writer.close();
  rmSync(place, { recursive: true });
});

test("[CL190] while another program locks the database ends wait and the rest is refused as by a full disk", async () => {
  const place = testDataDir();
  const writer = await startThreadWriter(place);
  const other = openWriter(place, { migrate: false });
  other.exec("BEGIN IMMEDIATE");
  const end = writer.write(
    "calls.failTransfer", { accountId: 1, callId: 1, failureReason: "x", now: 1 });
  const plan = () => writer.write("accounts.setPlan", { accountId: 1, plan: "p" });
  await assert.rejects(plan(), StorageFailure);
  assert.ok(writer.isRefusing() && writer.failure() === null);
  other.exec("ROLLBACK");
  await end;
  assert.equal(await plan(), false);
  assert.ok(!writer.isRefusing());
  other.close();
  await writer.close();
  rmSync(place, { recursive: true });
});

test("[SO15] one account fills at most half of the write queue; others' writes are still accepted", async () => {
  const place = testDataDir();
  const writer = await startThreadWriter(place);
  const ask = (accountId: number) => writer.write("accounts.setPlan", { accountId, plan: "p" });
  const most = LIMITS.writeQueueMax / 2;
  const first = Promise.allSettled(Array.from({ length: most + 1 }, () => ask(1)));
  assert.equal(await ask(2), false);
  const refused = (await first).filter(({ status }) => status === "rejected");
  assert.equal(refused.length, 1);
  assert.match(String((refused[0] as PromiseRejectedResult).reason), /overloaded/);
  assert.equal(await ask(1), false, "what was answered leaves room");
  await writer.close();
  rmSync(place, { recursive: true });
});
