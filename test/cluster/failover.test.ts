// A failover of PostgreSQL: the name leads to a standby for a while, which is promoted then.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { after, test } from "node:test";
import { askUntil } from "#support/asking.ts";
import { startOwnPostgres } from "#support/databases/own-postgres.ts";
import { withoutPostgres } from "#support/engines.ts";
import { parley } from "#support/process.ts";
import { newAssistant, newConversation, startTestServer, testDataDir } from "#support/server.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";

test("[ND60] an unpromoted standby is out of reach and never read, a start is to be retried; its promotion resumes all", { skip: withoutPostgres }, async () => {
  const own = await startOwnPostgres();
  const model = await startScriptedModel();
  const [dataDir, otherDir] = [testDataDir(), testDataDir()];
  const env = { PARLEY_DATABASE_URL: own.url, PARLEY_MODEL_URL: model.url };
  const server = await startTestServer({ dataDir, env });
  after(async () => {
    await server.close();
    await model.close();
    await own.close();
    for (const dir of [dataDir, otherDir]) rmSync(dir, { recursive: true, force: true });
  });
  const cut = Promise.withResolvers<void>();
  model.script(() => ({ tokens: ["At ", "nine."], hold: cut.promise, holdAfter: 1 }));
  const { uuid: assistantUuid } = await newAssistant(server);
  const uuid = await newConversation(server, assistantUuid);
  const send = (key: string) => server.call("POST", `/conversations/${uuid}/messages`, {
    body: { message: `When? ${key}` }, headers: { "Idempotency-Key": key },
  });
  const underWay = send("before");
  await askUntil(
    () => own.query("SELECT 1 FROM turns WHERE state = 'open'"), ({ length }) => length === 1);
  await own.stop();
  await own.startAsStandby();
  cut.resolve();
  const ready = () => fetch(`${server.url}/readyz`);
  // Reads may find it first: "cannot be read".
  const away = await askUntil(
    async () => (await ready()).json(), ({ reason }) => reason === "the database cannot be written");
  assert.equal(away.status, "unavailable");
  assert.equal((await send("meanwhile")).status, 503);
  assert.equal((await server.call("GET", "/user/me")).status, 503, "it may not have the newest");
  const started = await parley(otherDir, ["serve"], { ...env, PARLEY_PORT: "0" });
  assert.equal(started.code, 69, started.err);
  assert.match(started.err, /PARLEY_DATABASE_URL is unreachable: it is a read-only standby/);

  await own.query("SELECT pg_promote()");
  await askUntil(ready, ({ status }) => status === 200);
  const reply = await underWay;
  assert.deepEqual([reply.status, reply.body.message], [200, "At nine."]);
  assert.equal((await send("meanwhile")).status, 200);
  assert.deepEqual((await send("before")).body, reply.body);
  assert.equal((await server.call("GET", "/user/me")).body.total_balance, 4.98);
  const books = await parley(dataDir, ["ledger", "verify"], { PARLEY_DATABASE_URL: own.url });
  assert.equal(books.out, "the ledger is correct: 1 accounts, 3 ledger entries\n", books.err);
});
