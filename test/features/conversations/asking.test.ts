// A turn's model is asked while the turn is still being stored: what then goes wrong. The database
// is held by a transaction of the test's own, so that a turn stays on its way to the disk.
import assert from "node:assert/strict";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { test } from "node:test";
import { callApi } from "#support/api.ts";
import { auditBeside, holdWrites, rowsBeside, runBeside } from "#support/databases/beside.ts";
import { startProcess, type Running } from "#support/process.ts";
import { newAssistant, newConversation, startTestServer, testDataDir } from "#support/server.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";

const post = ({ url }: Running, path: string, body: object, key = "") =>
  callApi(url, "POST", path, { body, headers: key ? { "Idempotency-Key": key } : {} });

async function books(dataDir: string) {
  const { problems } = await auditBeside(dataDir);
  const charged = await rowsBeside(dataDir, "SELECT kind FROM ledger WHERE kind = 'message'");
  const said = await rowsBeside<{ content: string }>(
    dataDir, "SELECT content FROM messages WHERE role = 'user'");
  return { problems, charged: charged.length, said: said.map(({ content }) => content) };
}

test("[CV130] killed between asking the model and storing, a turn leaves nothing; its key is charged once", async () => {
  const model = await startScriptedModel({ tokens: 2 });
  const dataDir = testDataDir();
  const env = { PARLEY_MODEL_URL: model.url };
  const first = await startProcess(dataDir, env);
  const created = await post(first, "/conversations", { assistant_id: first.assistant });
  const path = `/conversations/${String(created.body.conversation_id)}/messages`;
  const held = await holdWrites(dataDir);
  const cut = assert.rejects(post(first, path, { message: "When?" }, "k1"));
  await model.waitFor("requests", 1);
  const gone = once(first.process, "exit");
  first.process.kill("SIGKILL");
  await Promise.all([gone, cut]);
  await held.letGo();
  assert.deepEqual(await books(dataDir), { problems: [], charged: 0, said: [] });
  const second = await startProcess(dataDir, env);
  const answered = await post(second, path, { message: "When?" }, "k1");
  assert.deepEqual([answered.status, answered.body.message], [200, "t0 t1 "]);
  const again = await post(second, path, { message: "When?" }, "k1");
  assert.equal(again.body.message, "t0 t1 ");
  assert.equal(model.counts.requests, 2, "what was answered is not asked again");
  const ended = once(second.process, "exit");
  second.process.kill("SIGTERM");
  await ended;
  assert.deepEqual(await books(dataDir), { problems: [], charged: 1, said: ["When?"] });
  await model.close();
  rmSync(dataDir, { recursive: true });
});

test("[CV131] a turn refused after its model request started aborts it, shows nothing and costs nothing", async () => {
  const model = await startScriptedModel();
  const dataDir = testDataDir();
  const server = await startTestServer({ dataDir, env: { PARLEY_MODEL_URL: model.url } });
  const { accountId, key } = await server.newAccount({ balance: "1.00" });
  const { uuid: assistant } = await newAssistant(server, { initial_message: "Hi" }, key);
  const uuid = await newConversation(server, assistant);
  const watched = await fetch(`${server.url}/api/conversations/${uuid}/stream`, {
    headers: { Accept: "text/event-stream" },
  });
  model.script(() => ({
    tokens: ["Never ", "seen."], hold: new Promise<void>(() => undefined), holdAfter: 1,
  }));
  const holds = (micros: number): string =>
    `UPDATE accounts SET reserved_micros = ${micros} WHERE id = ${accountId}`;
  const held = await holdWrites(dataDir);
  await held.run(holds(1_000_000));
  const sent = server.call("POST", `/conversations/${uuid}/messages`, { body: { message: "When?" } });
  await model.waitFor("requests", 1);
  await held.letGo();
  const { status, body } = await sent;
  assert.deepEqual(
    [status, body.error], [400, "Insufficient balance. Please top up your account."]);
  await model.waitFor("aborted", 1);
  await runBeside(dataDir, holds(0));
  model.script(null);
  const next = await server.call(
    "POST", `/conversations/${uuid}/messages`, { body: { message: "And now?" } });
  assert.equal(next.status, 200);
  const read = await server.call("GET", `/conversations/${uuid}`);
  assert.deepEqual(read.body.history.map(({ content }: { content: string }) => content),
    ["Hi", "And now?", next.body.message]);
  let seen = "";
  const decoder = new TextDecoder();
  for await (const chunk of watched.body as unknown as AsyncIterable<Uint8Array>) {
    seen += decoder.decode(chunk, { stream: true });
    if (seen.includes(`"content":"${String(next.body.message)}"`)) break;
  }
  assert.ok(!seen.includes("Never"));
  await server.close();
  await model.close();
  assert.deepEqual(await books(dataDir), { problems: [], charged: 1, said: ["And now?"] });
  rmSync(dataDir, { recursive: true });
});
