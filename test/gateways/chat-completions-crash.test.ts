// Chat completions of a real process that dies or is stopped: what a client that tries again by its
// key gets, and what it pays.
import assert from "node:assert/strict";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { test } from "node:test";
import { ask, callApi } from "#support/api.ts";
import { auditBeside, refuseBeside, rowsBeside, scriptBeside } from "#support/databases/beside.ts";
import { isOverPostgres } from "#support/engines.ts";
import { shippedMigrations } from "#storage/migrations.ts";
import { accountEvent } from "#support/account-events.ts";
import { startProcess, type Running } from "#support/process.ts";
import { testDataDir } from "#support/server.ts";
import { startScriptedModel, type ScriptedModel } from "#support/vendors/scripted-model.ts";

interface Answer {
  status: number;
  replayed: string | null;
  id: string;
  text: string | undefined;
  param: string | undefined;
}

/** What a client of the demo account does; it may well outlive a server. */
function clientOf(first: Running) {
  const { key, assistant } = first;
  return {
    complete: async ({ url }: Running, name: string, content = "Hello"): Promise<Answer> => {
      const { status, headers, body } = await callApi(url, "POST", "/v1/chat/completions", {
        key, headers: { "Idempotency-Key": name },
        body: { model: assistant, messages: [{ role: "user", content }] },
      });
      return {
        status, replayed: headers.get("idempotency-replayed"),
        id: body.id, text: body.choices?.[0]?.message.content, param: body.error?.param,
      };
    },
    list: async ({ url }: Running): Promise<
      { variables: object | null; message_count: number; total_cost: number }[]
    > => (await ask({ url, key }, "/user/conversations?type=api")).data,
  };
}

async function end({ process: child }: Running, signal: "SIGKILL" | "SIGTERM"): Promise<void> {
  const gone = once(child, "exit");
  child.kill(signal);
  await gone;
}

/** Nothing is wrong with the books, and this many messages were charged. */
async function assertCharged(dataDir: string, count: number): Promise<void> {
  const charged = await rowsBeside(dataDir, "SELECT kind FROM ledger WHERE kind = 'message'");
  const held = await rowsBeside(dataDir, "SELECT id FROM turns WHERE state = 'open'");
  const { problems } = await auditBeside(dataDir);
  assert.deepEqual([problems, charged.length, held.length], [[], count, 0]);
}

async function startModel(): Promise<ScriptedModel> {
  const model = await startScriptedModel();
  model.script(() => ({ tokens: ["one ", "two"] }));
  return model;
}

test("[PR87] a completion killed before its turn began can be retried with its key and is charged once", async () => {
  const model = await startModel();
  const dataDir = testDataDir();
  const env = { PARLEY_MODEL_URL: model.url };
  let server = await startProcess(dataDir, env);
  const client = clientOf(server);
  // The conversation is made; the begin of its turn never comes to its end.
  const refused = await refuseBeside(dataDir, "INSERT", "turns");
  assert.equal((await client.complete(server, "k")).status, 500);
  assert.equal((await client.list(server)).length, 1);
  await end(server, "SIGKILL");
  await refused.allow();
  await assertCharged(dataDir, 0);

  server = await startProcess(dataDir, env);
  const answer = await client.complete(server, "k");
  assert.deepEqual([answer.status, answer.text, answer.replayed], [200, "one two", null]);
  const again = await client.complete(server, "k");
  assert.deepEqual(again, { ...answer, replayed: "true" });
  const other = await client.complete(server, "k", "Something else");
  assert.deepEqual([other.status, other.param], [400, "idempotency_key"]);
  const [conversation, ...more] = await client.list(server);
  assert.deepEqual(more, []);
  assert.deepEqual([conversation?.message_count, conversation?.total_cost], [2, 0.01]);
  assert.equal(conversation?.variables, null, "what tells requests apart is not the owner's");
  await end(server, "SIGTERM");
  await assertCharged(dataDir, 1);
  await model.close();
  rmSync(dataDir, { recursive: true });
});

test("[PR88] a completion killed in mid-reply can be retried with its key and is charged once", async () => {
  const model = await startModel();
  const hold = Promise.withResolvers<void>();
  model.script(() => ({ tokens: ["one ", "two"], hold: hold.promise, holdAfter: 1 }));
  const dataDir = testDataDir();
  const env = { PARLEY_MODEL_URL: model.url };
  let server = await startProcess(dataDir, env);
  const client = clientOf(server);
  const lost = assert.rejects(client.complete(server, "k"));
  await accountEvent(server, ({ type, message }) =>
    type === "message_added" && (message as { role: string }).role === "user");
  await end(server, "SIGKILL");
  await lost;
  hold.resolve();
  model.script(() => ({ tokens: ["one ", "two"] }));

  server = await startProcess(dataDir, env);
  const other = await client.complete(server, "k", "Something else");
  assert.deepEqual([other.status, other.param], [400, "idempotency_key"]);
  const answers = await Promise.all([1, 2, 3].map(() => client.complete(server, "k")));
  for (const { status, text } of answers) assert.deepEqual([status, text], [200, "one two"]);
  assert.equal(answers.filter(({ replayed }) => replayed === null).length, 1);
  assert.equal((await client.list(server))[0]?.message_count, 2);
  await end(server, "SIGTERM");
  await assertCharged(dataDir, 1);
  await model.close();
  rmSync(dataDir, { recursive: true });
});

test("[PR89] SIGTERM waits for running completions and for requests that joined them by idempotency key", async () => {
  const model = await startModel();
  const hold = Promise.withResolvers<void>();
  model.script(() => ({ tokens: ["one ", "two"], hold: hold.promise, holdAfter: 1 }));
  const dataDir = testDataDir();
  const server = await startProcess(dataDir, { PARLEY_MODEL_URL: model.url });
  const client = clientOf(server);
  const first = client.complete(server, "k");
  await model.waitFor("requests");
  const others = [client.complete(server, "k"), client.complete(server, "other")];
  await model.waitFor("requests", 2);
  const exited = once(server.process, "exit");
  server.process.kill("SIGTERM");
  hold.resolve();
  const answers = await Promise.all([first, ...others]);
  for (const { status, text } of answers) assert.deepEqual([status, text], [200, "one two"]);
  assert.deepEqual(answers.map(({ replayed }) => replayed), [null, "true", null]);
  assert.equal(answers[1]?.id, answers[0]?.id);
  assert.deepEqual(await exited, [0, null]);
  await assertCharged(dataDir, 2);
  await model.close();
  rmSync(dataDir, { recursive: true });
});

test("[PR90] idempotency keys used before turns stored their request's hash stay valid", async () => {
  const model = await startModel();
  const dataDir = testDataDir();
  const env = { PARLEY_MODEL_URL: model.url };
  let server = await startProcess(dataDir, env);
  const client = clientOf(server);
  const answer = await client.complete(server, "k");
  await end(server, "SIGTERM");
  const migration = shippedMigrations(isOverPostgres ? "postgres" : "sqlite").find(({ name }) => name.includes("completion_requests"));
  await scriptBeside(dataDir, [`
    UPDATE conversations SET variables = '{"request_' || substr((SELECT request_hash FROM turns), 1, 32)
      || '":"1","request_${"0".repeat(32)}":"1"}' WHERE type = 'api';
    UPDATE turns SET request_hash = 'of the text alone';
    ${migration?.sql}`]);

  server = await startProcess(dataDir, env);
  assert.deepEqual(await client.complete(server, "k"), { ...answer, replayed: "true" });
  const other = await client.complete(server, "k", "Something else");
  assert.deepEqual([other.status, other.param], [400, "idempotency_key"]);
  assert.equal((await client.list(server))[0]?.variables, null);
  await end(server, "SIGTERM");
  await assertCharged(dataDir, 1);
  await model.close();
  rmSync(dataDir, { recursive: true });
});
