// What PostgreSQL's engine owes while the database has no room, on a small file system of its own.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { test, type TestContext } from "node:test";
import pg from "pg";
import { StorageFailure } from "#core/faults.ts";
import { createSystem } from "#core/system.ts";
import { openPostgres } from "#storage/engines/postgres/storage.ts";
import { askUntil } from "#support/asking.ts";
import { createWorld, system } from "#support/databases/contract-world.ts";
import { asPostgres } from "#support/databases/postgres-user.ts";
import { databaseAt, withoutPostgres } from "#support/engines.ts";
import { parley, startProcess } from "#support/process.ts";
import { assistantBody, testDataDir } from "#support/server.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";

const skip = withoutPostgres
  || (spawnSync("unshare", ["-m", "true"]).status === 0 ? false : "needs a mount of its own");

/** More than what is free in the pages a table has. */
const long = (): string => randomBytes(20_000).toString("hex");

/** A folder of PostgreSQL's on a small disk, which goes with the process that is first in it. */
async function startSmallDisk(context: TestContext): Promise<string> {
  const folder = testDataDir();
  const holder = spawn("unshare", [
    "-m", "sh", "-c",
    'mount -t tmpfs -o size=24m small "$0" && chown postgres "$0" && exec "$@"', folder,
    ...asPostgres("sh", ["-c", "echo; exec cat"]).flat(),
  ], { stdio: ["pipe", "pipe", "inherit"] });
  await once(holder.stdout, "data");
  context.after(async () => {
    const exited = once(holder, "exit");
    holder.stdin.end();
    await exited;
    rmSync(folder, { recursive: true });
  });
  return `/proc/${holder.pid}/root${folder}`;
}

/** A database whose tables are on a small disk. */
async function databaseOnSmallDisk(
  context: TestContext, place: string, kind: "forgets" | "durable" = "forgets",
) {
  const disk = await startSmallDisk(context);
  const database = await databaseAt(`${place} ${process.pid}`, kind);
  const space = `small_${process.pid}`;
  await database.query(`CREATE TABLESPACE ${space} LOCATION '${disk}'`);
  await database.query(`ALTER TABLE ALL IN TABLESPACE pg_default SET TABLESPACE ${space}`);
  context.after(async () => {
    await database.drop();
    const connectionString = database.url.replace(database.name, "postgres");
    const admin = new pg.Client({ connectionString });
    await admin.connect();
    await admin.query(`DROP TABLESPACE ${space}`);
    await admin.end();
  });
  return {
    ...database,
    fill: () => void spawnSync("dd", ["if=/dev/zero", `of=${disk}/full`, "bs=4k"]),
    makeRoom: () => rmSync(`${disk}/full`),
  };
}

test("[SO131] a refused write is told until the next is stored, and for a minute where none follows", {
  skip: withoutPostgres,
}, async (context) => {
  const database = await databaseAt(`told ${process.pid}`, "forgets");
  context.after(() => database.drop());
  const clock = createSystem();
  let passedMs = 0;
  const storage = await openPostgres({
    url: database.url, writesMax: 100, mayForget: true,
    system: { ...clock, monotonicMs: () => clock.monotonicMs() + passedMs },
  });
  context.after(() => storage.close());
  const { id: accountId } = await storage.accounts.createAccount(
    { name: "A", email: "", plan: "p", now: clock.now() });
  const change = () => storage.accounts.setPlan({ accountId, plan: "q" });
  const setReadOnly = async (value: "on" | "off"): Promise<void> => {
    await database.query(`BEGIN READ WRITE;
      ALTER DATABASE "${database.name}" SET default_transaction_read_only = ${value}; COMMIT`);
    await database.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND pid <> pg_backend_pid()`);
  };
  const refused = async (): Promise<void> => {
    await setReadOnly("on");
    await askUntil(() => change().then(String, ({ message }: Error) => message),
      (outcome) => outcome.includes("refused a change"));
    assert.ok(storage.isRefusing());
    await setReadOnly("off");
  };
  await refused();
  await askUntil(() => change().catch(() => false), Boolean);
  assert.ok(!storage.isRefusing());
  await refused();
  passedMs = 61_000;
  // The session that was ended may not be back yet, which counts as that time without one.
  await askUntil(() => storage.isRefusing(), (is) => !is);
});

test("[SO56] ends a full PostgreSQL disk refused are stored in order once it has room; a close rejects them", { skip }, async (context) => {
  const { url, fill, makeRoom } = await databaseOnSmallDisk(context, "full");
  const storage = await openPostgres({ url, writesMax: 100, mayForget: true });
  context.after(() => storage.close());
  const { newConversation, newCall, started, complete, said, money } = createWorld(storage);
  const conversation = await newConversation(1e6);
  const { accountId } = conversation;
  const [callId, lastId] = [await newCall(conversation), await newCall(conversation)];
  const { turnId } = await started(conversation);
  const end = (id: number) => storage.calls.end({
    accountId, callId: id, now: system.now(), finalStatus: "completed", reason: "completed",
    turns: [], hasRecording: false,
  } as never);
  const refused = () => assert.rejects(
    storage.accounts.setPlan({ accountId, plan: long() }), StorageFailure);
  const ended: string[] = [];
  const noted = (name: string) => (): void => void ended.push(name);

  fill();
  await refused();
  assert.ok(storage.isRefusing() && storage.failure() === null);
  const text = long();
  const ends = Promise.all([
    complete(turnId, conversation, { text }).then(noted("reply")),
    storage.calls.change({ accountId, callId, now: system.now(), to: "in-progress" } as never)
      .then(noted("start")),
    end(callId).then(noted("end")),
  ]);
  // The line of the account is answered in turn: they have been refused by then.
  await refused();
  assert.deepEqual(ended, []);
  makeRoom();
  await ends;
  assert.deepEqual(ended, ["reply", "start", "end"]);
  assert.deepEqual((await said(conversation)).slice(-1), [text]);
  assert.equal((await storage.calls.find(accountId, callId))?.status, "ended");
  assert.equal((await money(accountId))[1], 1000);
  assert.ok(!storage.isRefusing());

  const { turnId: lastTurnId } = await started(conversation);
  fill();
  await refused();
  const last = [complete(lastTurnId, conversation, { text: long() }), end(lastId)];
  await refused();
  await Promise.all([...last.map((one) => assert.rejects(one, StorageFailure)), storage.close()]);
});

test("[SO57] killed while a full PostgreSQL disk holds back ends, the next start ends them and bills once", { skip }, async (context) => {
  const database = await databaseOnSmallDisk(context, "killed", "durable");
  const model = await startScriptedModel();
  context.after(() => model.close());
  const dataDir = testDataDir();
  context.after(() => rmSync(dataDir, { recursive: true }));
  const env = {
    PARLEY_DATABASE_URL: database.url, PARLEY_MODEL_URL: model.url, PARLEY_SPEECH: "loopback",
    PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8",
  };
  const { process: child, url, key } = await startProcess(dataDir, env);
  const ask = (path: string, body?: object): Promise<Response> => fetch(`${url}/api${path}`, {
    method: body ? "POST" : "GET",
    headers: {
      Authorization: `Bearer ${key}`, "Content-Type": "application/json",
      Accept: path.endsWith("/messages") ? "text/event-stream" : "application/json",
    },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  type Body = Record<string, unknown> & { data: Record<string, unknown> };
  const json = async (path: string, body?: object) => await (await ask(path, body)).json() as Body;
  const { data: { id, uuid } } = await json("/user/assistant", assistantBody({
    type: "outbound", status: "active", initial_message: "Hello. ".repeat(25), record: false,
    post_call_evaluation: false,
  }));
  const { conversation_id: conversation } = await json("/conversations", { assistant_id: uuid });
  const rest = Promise.withResolvers<void>();
  model.script(() => ({ tokens: ["Yes", long().slice(0, 8000), "END"], hold: rest.promise, holdAfter: 1 }));
  const reply = await ask(`/conversations/${String(conversation)}/messages`, { message: "Open?" });
  const { call_id: callId } = await json("/user/make_call", {
    phone_number: "+15550100042", assistant_id: id,
  });
  const statusOf = async () => (await json(`/user/calls/${String(callId)}`)).status;
  await askUntil(statusOf, (status) => status === "in-progress");
  // As a call that has talked for a minute by its last sign of life.
  await database.query("UPDATE calls SET answered_at = answered_at - 60000000");
  const open = async () => (await database.query<Record<string, unknown>>(`
    SELECT (SELECT count(*) FROM turns WHERE state = 'open') AS turns,
      (SELECT sum(reserved_micros) FROM accounts) AS reserved,
      (SELECT string_agg(reference, ' ') FROM ledger WHERE amount_micros < 0) AS billed`))[0];
  database.fill();
  rest.resolve();
  const words = new TextDecoder();
  let seen = "";
  for await (const bytes of reply.body ?? []) {
    seen += words.decode(bytes as Uint8Array, { stream: true });
    if (seen.includes("END")) break;
  }
  void ask(`/user/calls/${String(callId)}/end`, {}).catch(() => undefined);
  const metrics = async () => await (await fetch(`${url}/metrics`)).text();
  await askUntil(metrics, (told) => told.includes("\nparley_storage_failed 1\n"));
  assert.equal(await statusOf(), "in-progress");
  assert.equal((await open())?.turns, "1");
  const gone = once(child, "exit");
  child.kill("SIGKILL");
  await gone;
  database.makeRoom();
  const next = await startProcess(dataDir, env);
  assert.deepEqual(await open(), { turns: "0", reserved: "0", billed: "call:1" });
  const books = await parley(dataDir, ["ledger", "verify"], env);
  assert.equal(books.code, 0, books.err);
  const exited = once(next.process, "exit");
  next.process.kill("SIGTERM");
  assert.deepEqual(await exited, [0, null]);
});
