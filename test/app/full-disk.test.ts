// A server process whose disk fills up and has room again, on a small file system of its own.
import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { promisify } from "node:util";
import { ask, callApi } from "#support/api.ts";
import { askUntil } from "#support/asking.ts";
import { isOverPostgres } from "#support/engines.ts";
import { startProcess } from "#support/process.ts";
import { assistantBody, testDataDir } from "#support/server.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";

const SMALL_DISK = [
  "/usr/bin/unshare", "-m", "/bin/sh", "-c",
  'mount -t tmpfs -o size=16m small "$PARLEY_DATA_DIR" && exec "$@"', "sh",
];
const skip = spawnSync("unshare", ["-m", "true"]).status === 0 && !isOverPostgres
  ? false
  : "needs a mount of its own";

async function startOnSmallDisk(context: TestContext, env: Record<string, string> = {}) {
  const dataDir = testDataDir();
  const { process: child, url, key } = await startProcess(dataDir, env, SMALL_DISK);
  const folder = `/proc/${child.pid}/root${dataDir}`;
  context.after(async () => {
    const exited = once(child, "exit");
    child.kill("SIGTERM");
    assert.deepEqual(await exited, [0, null]);
    rmSync(dataDir, { recursive: true });
  });
  const post = (path: string, body: object) => callApi(url, "POST", path, { key, body });
  const create = async (): Promise<number> =>
    (await post("/user/knowledgebases", { name: "K", description: "x".repeat(200) })).status;
  return {
    url, key, post, create,
    /** Until nothing more can be stored. */
    fill: async (): Promise<void> => {
      spawnSync("dd", ["if=/dev/zero", `of=${folder}/full`, "bs=4k"]);
      let status = await create();
      for (let tries = 0; status === 201 && tries < 100; tries += 1) status = await create();
      assert.equal(status, 503);
    },
    makeRoom: () => rmSync(`${folder}/full`),
    /** How large files may be. */
    bound: (bytes: string): void =>
      void spawnSync("prlimit", [`--pid=${child.pid}`, `--fsize=${bytes}:unlimited`]),
  };
}

test("[OP171] [OP173] [OP176] what a full disk, or a file size limit, refused is stored once there is room, without a restart", { skip }, async (context) => {
  const { url, create, fill, makeRoom, bound } = await startOnSmallDisk(context);
  assert.equal(await create(), 201);
  await fill();
  assert.equal((await fetch(`${url}/readyz`)).status, 200);
  const isFailed = async () =>
    /^parley_storage_failed (\d)$/m.exec(await (await fetch(`${url}/metrics`)).text())?.[1];
  assert.equal(await isFailed(), "1");
  makeRoom();
  assert.equal(await create(), 201);
  // Metrics are those of the last second.
  await askUntil(isFailed, (told) => told === "0");
  bound("4096");
  // What changes nothing needs no room, and may come between.
  const toldAfterRefusal = async () => {
    assert.equal(await create(), 503);
    return isFailed();
  };
  await askUntil(toldAfterRefusal, (told) => told === "1");
  bound("unlimited");
  assert.equal(await create(), 201);
  await askUntil(isFailed, (told) => told === "0");
});

test("[OP174] a reply and a call that end on a full disk are finished and billed once there is room", { skip }, async (context) => {
  const model = await startScriptedModel();
  context.after(() => model.close());
  const rest = Promise.withResolvers<void>();
  const { url, key, post, fill, makeRoom } = await startOnSmallDisk(context, {
    PARLEY_MODEL_URL: model.url, PARLEY_SPEECH: "loopback",
    PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8",
  });
  const json = (path: string, body?: object) => ask({ url, key }, path, body);
  const { data: { id, uuid } } = await json("/user/assistant", assistantBody({
    type: "outbound", status: "active", initial_message: "Hello. ".repeat(25), record: false,
    post_call_evaluation: false,
  }));
  const { conversation_id: conversation } = await json("/conversations", { assistant_id: uuid });
  const messages = `/conversations/${String(conversation)}/messages`;
  model.script(() => ({ tokens: ["Yes", "."], hold: rest.promise, holdAfter: 1 }));
  const reply = json(messages, { message: "Open?" });
  await model.waitFor("requests", 1);
  const { call_id: callId } = await json("/user/make_call", {
    phone_number: "+15550100042", assistant_id: id,
  });
  const statusOf = async () => (await json(`/user/calls/${String(callId)}`)).status;
  await askUntil(statusOf, (status) => status === "in-progress");
  await fill();
  rest.resolve();
  // Both ends have been refused by the time this is answered.
  await post(`/user/calls/${String(callId)}/end`, {});
  assert.equal(await statusOf(), "in-progress");
  makeRoom();
  await askUntil(statusOf, (status) => status === "ended_by_assistant");
  assert.equal((await reply).message, "Yes.");
  model.script(null);
  const again = await post(messages, { message: "Sure?" });
  assert.equal(again.status, 200);
  const { total_cost: cost, duration } = await json(`/user/calls/${String(callId)}`);
  assert.ok(Number(cost) > 0 && Number(duration) >= 1, `${String(cost)}, ${String(duration)} s`);
});

test("[OP175] writes requested when the disk has room again run after those the full disk refused", { skip }, async () => {
  const dataDir = testDataDir();
  const [unshare = "", ...told] = SMALL_DISK;
  const program = join(import.meta.dirname, "../support/calls/full-disk-call.ts");
  const { stdout } = await promisify(execFile)(unshare, [...told, process.execPath, program], {
    env: { ...process.env, PARLEY_DATA_DIR: dataDir },
  });
  assert.deepEqual(JSON.parse(stdout), { status: "ended", reserved: 0 });
  rmSync(dataDir, { recursive: true });
});
