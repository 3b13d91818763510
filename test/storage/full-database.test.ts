// What PostgreSQL's engine owes while the database has no room, on a small file system of its own.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { test, type TestContext } from "node:test";
import pg from "pg";
import { StorageFailure } from "#core/faults.ts";
import { openPostgres } from "#storage/engines/postgres/storage.ts";
import { createWorld, system } from "#support/contract-world.ts";
import { databaseAt, withoutPostgres } from "#support/engines.ts";
import { asPostgres } from "#support/postgres-user.ts";
import { testDataDir } from "#support/server.ts";

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
async function openOnSmallDisk(context: TestContext, place: string) {
  const disk = await startSmallDisk(context);
  const database = await databaseAt(`${place} ${process.pid}`);
  const space = `small_${process.pid}`;
  await database.query(`CREATE TABLESPACE ${space} LOCATION '${disk}'`);
  await database.query(`ALTER TABLE ALL IN TABLESPACE pg_default SET TABLESPACE ${space}`);
  const storage = await openPostgres({ url: database.url, writesMax: 100, mayForget: true });
  context.after(async () => {
    await storage.close();
    await database.drop();
    const connectionString = database.url.replace(database.name, "postgres");
    const admin = new pg.Client({ connectionString });
    await admin.connect();
    await admin.query(`DROP TABLESPACE ${space}`);
    await admin.end();
  });
  return {
    storage,
    fill: () => void spawnSync("dd", ["if=/dev/zero", `of=${disk}/full`, "bs=4k"]),
    makeRoom: () => rmSync(`${disk}/full`),
  };
}

test("[SO56] ends that PostgreSQL's disk has no room for are stored in their order once it has; a close refuses them", { skip }, async (context) => {
  const { storage, fill, makeRoom } = await openOnSmallDisk(context, "full");
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
