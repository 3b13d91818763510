// PostgreSQL goes away under a server and comes back: it says so meanwhile, and goes on by itself.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { after, test } from "node:test";
import pg from "pg";
import { loadSecret } from "#core/secrets.ts";
import { createSystem } from "#core/system.ts";
import { askUntil } from "#support/asking.ts";
import { callTicket, WebCaller } from "#support/calls/web-caller.ts";
import { startOwnPostgres, type OwnPostgres } from "#support/databases/own-postgres.ts";
import { withoutPostgres } from "#support/engines.ts";
import { parley } from "#support/process.ts";
import {
  newAssistant, newConversation, startTestServer, testDataDir, type TestServer,
} from "#support/server.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";

const skip = withoutPostgres;
const EVALUATED = {
  post_call_evaluation: true,
  post_call_schema: [{ name: "happy", type: "bool", description: "Were they happy?" }],
};

/** A call that is over, whose transcript nobody may read: what comes after it cannot be done. */
async function endedCall(server: TestServer, own: OwnPostgres): Promise<number> {
  const assistant = await newAssistant(server, { initial_message: "Hi there." });
  const conversation = await newConversation(server, assistant.uuid);
  const caller = await WebCaller.open(server, conversation, await callTicket(server, conversation));
  await caller.until(() => caller.words.length === 2);
  const { callId } = caller;
  await askUntil(
    () => own.query(`SELECT 1 FROM call_entries WHERE call_id = ${callId}`),
    ({ length }) => length === 1);
  const locker = new pg.Client({ connectionString: own.url });
  locker.on("error", () => undefined);
  await locker.connect();
  await locker.query("BEGIN; LOCK TABLE call_entries");
  caller.hangUp();
  await askUntil(
    () => own.query(`SELECT 1 FROM calls WHERE status = 'ended' AND id = ${callId}`),
    ({ length }) => length === 1);
  return callId;
}

test("[ND36][ND40][ND46][ND47][ND48][ND49] while PostgreSQL is away requests are refused in their own shape, replies, calls, evaluations and stops complete; nothing is lost or doubled", { skip }, async () => {
  const own = await startOwnPostgres();
  const model = await startScriptedModel();
  const dataDir = testDataDir();
  const server = await startTestServer({
    dataDir,
    env: {
      PARLEY_DATABASE_URL: own.url, PARLEY_MODEL_URL: model.url, PARLEY_SPEECH: "loopback",
      // It says nothing until the database has been away for a while.
      PARLEY_MODEL_STALL_SECONDS: "120",
    },
  });
  after(async () => {
    await server.close();
    await model.close();
    await own.close();
    rmSync(dataDir, { recursive: true, force: true });
  });
  const otherDir = testDataDir();
  after(() => rmSync(otherDir, { recursive: true, force: true }));
  const leaving = await startTestServer({
    dataDir: otherDir,
    env: {
      PARLEY_DATABASE_URL: own.url, PARLEY_MODEL_URL: model.url,
      PARLEY_SECRET: loadSecret(null, dataDir, createSystem()),
    },
  });
  const { uuid: assistantUuid } = await newAssistant(server);
  const uuid = await newConversation(server, assistantUuid);
  model.script(() => ({ tokens: ["At ", "nine."] }));
  const send = (key: string) => server.call("POST", `/conversations/${uuid}/messages`, {
    body: { message: `When? ${key}` }, headers: { "Idempotency-Key": key },
  });
  const { uuid: askingUuid } = await newAssistant(server, { desk: { after_unanswered: 1 } });
  const failing = `/conversations/${await newConversation(server, askingUuid)}/messages`;
  const ready = () => fetch(`${server.url}/readyz`);
  assert.equal((await send("before")).status, 200);
  assert.equal((await ready()).status, 200);

  const ended = await newConversation(server, (await newAssistant(server, EVALUATED)).uuid);
  const bye = { body: { message: "Bye" } };
  assert.equal((await server.call("POST", `/conversations/${ended}/messages`, bye)).status, 200);
  const cut = Promise.withResolvers<void>();
  const evaluations: unknown[] = [];
  model.script(({ messages }) => {
    const isChat = !String(messages[0]?.content).includes("evaluate finished");
    if (isChat) return { tokens: ["At "], hold: cut.promise, holdAfter: 1, fault: "reset_midway" };
    // The call is evaluated as well, at whichever moment the database is back.
    if (messages.some(({ content }) => String(content).includes("Bye"))) evaluations.push(messages);
    return { tokens: ["{\"happy\":true}"], hold: cut.promise };
  });
  const evaluated = `/user/conversations/${ended}`;
  assert.equal((await server.call("POST", `${evaluated}/end`)).status, 200);
  await askUntil(() => evaluations.length, (asked) => asked === 1);
  const failed = server.call("POST", failing, { body: { message: "When?" } });
  await model.waitFor("requests", 4);
  await askUntil(
    () => own.query("SELECT 1 FROM turns WHERE state = 'open'"), ({ length }) => length === 1);
  const callId = await endedCall(server, own);
  await own.stop();
  // Whichever connections notice first, that nothing can be written is said before all else.
  await askUntil(async () => await (await ready()).json() as { status: string; reason?: string },
    ({ status, reason }) =>
      status === "unavailable" && reason === "the database cannot be written");
  assert.equal((await ready()).status, 503);
  assert.equal((await fetch(`${server.url}/livez`)).status, 200, "it is not to be restarted");
  await leaving.close();
  cut.resolve();
  const refused = await send("meanwhile");
  assert.equal(refused.status, 503);
  assert.deepEqual(Object.keys(refused.body as object).toSorted(), ["error", "status"]);
  assert.equal(refused.body.status, false);
  assert.ok(Number(refused.headers.get("retry-after")) >= 1);
  const mine = await server.call("GET", "/user/me");
  assert.equal(mine.status, 503);
  assert.equal(typeof mine.body.message, "string");
  assert.ok(Number(mine.headers.get("retry-after")) >= 1);

  await own.start();
  const back = await askUntil(ready, ({ status }) => status === 200);
  assert.equal(back.status, 200);
  assert.equal((await failed).status, 400);
  assert.deepEqual(await own.query("SELECT state FROM turns WHERE state <> 'done'"),
    [{ state: "failed" }]);
  model.script(() => ({ tokens: ["At ", "nine."] }));
  const again = await askUntil(() => send("meanwhile"), ({ status }) => status !== 503);
  assert.equal(again.status, 200, JSON.stringify(again.body));
  const repeated = await send("meanwhile");
  assert.deepEqual(repeated.body, again.body);
  assert.equal((await send("before")).body.message, "At nine.");
  assert.equal((await server.call("GET", "/user/me")).body.total_balance, 4.92);
  const messages = await own.query<{ content: string }>(
    "SELECT content FROM messages WHERE role = 'user' ORDER BY id");
  assert.deepEqual(messages.map(({ content }) => content), ["When? before", "Bye", "When?", "When? meanwhile"]);
  const events = await own.query<{ sequence: string }>(
    "SELECT sequence FROM events JOIN conversations c ON c.id = conversation_id WHERE uuid = '"
      + `${uuid}' ORDER BY 1`);
  assert.deepEqual(events.map(({ sequence }) => Number(sequence)),
    events.map((_, index) => index + 1), "no number is missing");
  const chat = await askUntil(
    () => server.call("GET", evaluated), ({ body }) => body.data?.evaluation);
  assert.deepEqual([chat.body.data.evaluation, evaluations.length], [{ happy: true }, 1]);
  const call = await askUntil(
    () => server.call("GET", `/user/calls/${callId}`), ({ body }) => body.status !== "ended");
  assert.equal(call.body.status, "ended_by_customer");
  const books = await parley(dataDir, ["ledger", "verify"], { PARLEY_DATABASE_URL: own.url });
  assert.equal(books.out, "the ledger is correct: 2 accounts, 6 ledger entries\n", books.err);
});

test("[NP1] a request that came to nothing while PostgreSQL went away is carried out when it is repeated with its key", { skip }, async () => {
  const own = await startOwnPostgres();
  const server = await startTestServer({ env: { PARLEY_DATABASE_URL: own.url } });
  after(async () => {
    await server.close();
    await own.close();
  });
  const create = () => server.call("POST", "/user/labels", {
    body: { name: "Urgent" },
    headers: { "Idempotency-Key": "once" },
  });
  const locker = new pg.Client({ connectionString: own.url });
  locker.on("error", () => undefined);
  await locker.connect();
  await locker.query("BEGIN; LOCK TABLE labels IN SHARE ROW EXCLUSIVE MODE");
  const first = create();
  await askUntil(
    () => own.query("SELECT 1 FROM pg_locks WHERE NOT granted"), ({ length }) => length === 1);
  await own.stop();
  assert.equal((await first).status, 503);
  await own.start();
  // 409: what became of the first is being stored.
  const again = await askUntil(create, ({ status }) => status !== 503 && status !== 409);
  assert.equal(again.status, 201, JSON.stringify(again.body));
  assert.equal((await own.query("SELECT 1 FROM labels")).length, 1);
});
