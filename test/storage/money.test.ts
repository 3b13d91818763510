// The promises about money, under concurrency and under SIGKILL of the real process.
import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import { rmSync } from "node:fs";
import { test } from "node:test";
import { auditDatabase } from "#storage/engines/sqlite/backup.ts";
import { databasePath, openForInspection } from "#storage/engines/sqlite/database.ts";
import { ask } from "#support/api.ts";
import { databaseAt, withoutPostgres } from "#support/engines.ts";
import { runCli, startProcess, type Running } from "#support/process.ts";
import { IS_PROOF } from "#support/proof.ts";
import {
  assistantBody, newAssistant, newConversation, startTestServer, testDataDir,
} from "#support/server.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";

async function audit(dataDir: string) {
  const db = openForInspection(databasePath(dataDir));
  const result = await auditDatabase(db);
  const charged = db.prepare<[], { count: number }>(
    "SELECT count(*) AS count FROM ledger WHERE kind = 'message'").get()?.count;
  const open = db.prepare<[], { count: number }>(
    `SELECT (SELECT count(*) FROM reservations)
      + (SELECT count(*) FROM turns WHERE state = 'open') AS count`).get()?.count;
  db.close();
  return { problems: result.problems, charged, open };
}

test("[BL1] of 1,000 concurrent sends against a balance for 100, exactly 100 succeed", async () => {
  const model = await startScriptedModel({ tokens: 3 });
  const dataDir = testDataDir();
  const server = await startTestServer({ dataDir, env: { PARLEY_MODEL_URL: model.url } });
  const { key } = await server.newAccount({ balance: "1.00" });
  const assistant = await newAssistant(server, { initial_message: "Hi" }, key);
  const uuids: string[] = [];
  for (let count = 0; count < 1000; count += 1) {
    uuids.push(await newConversation(server, assistant.uuid));
  }
  const results = await Promise.all(uuids.map((uuid) =>
    server.call("POST", `/conversations/${uuid}/messages`, { body: { message: "Hello" } })));
  assert.equal(results.filter(({ status }) => status === 200).length, 100);
  const refused = results.filter(({ status }) => status === 400);
  assert.equal(refused.length, 900);
  for (const { body } of refused) {
    assert.deepEqual(body, {
      status: false, error: "Insufficient balance. Please top up your account.",
    });
  }
  assert.equal((await server.call("GET", "/user/me", { key })).body.total_balance, 0);
  assert.equal(model.counts.requests, 100, "nobody is asked for a message that is refused");
  await server.close();
  await model.close();
  assert.deepEqual(await audit(dataDir), { problems: [], charged: 100, open: 0 });
  rmSync(dataDir, { recursive: true });
});

test("[BL208] PARLEY_MESSAGE_PRICE is the price of an answered message", async () => {
  const model = await startScriptedModel({ tokens: 3 });
  const dataDir = testDataDir();
  const server = await startTestServer({
    dataDir, env: { PARLEY_MODEL_URL: model.url, PARLEY_MESSAGE_PRICE: "0.25" },
  });
  const { key } = await server.newAccount({ balance: "0.30" });
  const assistant = await newAssistant(server, { initial_message: "Hi" }, key);
  const uuid = await newConversation(server, assistant.uuid);
  const send = () =>
    server.call("POST", `/conversations/${uuid}/messages`, { body: { message: "Hello" } });
  assert.equal((await send()).status, 200);
  assert.equal((await send()).status, 400);
  assert.equal((await server.call("GET", "/user/me", { key })).body.total_balance, 0.05);
  await server.close();
  await model.close();
  assert.deepEqual(await audit(dataDir), { problems: [], charged: 1, open: 0 });
  rmSync(dataDir, { recursive: true });
});

test("[BL209] a price of 0 turns billing off: no balance needed, nothing reserved or charged", async () => {
  const model = await startScriptedModel({ tokens: 3 });
  const dataDir = testDataDir();
  const server = await startTestServer({
    dataDir,
    env: {
      PARLEY_MODEL_URL: model.url, PARLEY_SPEECH: "loopback", PARLEY_MESSAGE_PRICE: "0",
      PARLEY_CALL_PRICE: "0",
    },
  });
  const { key, accountId } = await server.newAccount({ balance: "0" });
  const assistant = await newAssistant(server, {
    initial_message: "Hi", status: "active", post_call_evaluation: false,
  }, key);
  const uuid = await newConversation(server, assistant.uuid);
  const sent = await server.call("POST", `/conversations/${uuid}/messages`, {
    body: { message: "Hello" },
  });
  assert.equal(sent.status, 200, JSON.stringify(sent.body));
  const ended = Promise.withResolvers<number>();
  const { bus, calls } = server.app.features;
  bus.watch(() => void calls.page(accountId, {}, { page: 1, perPage: 1 }).then(({ items }) => {
    if (items[0]?.status === "ended_by_customer") ended.resolve(items[0].totalCostMicros);
  }));
  const made = await server.call("POST", "/user/try_call", {
    key, body: { assistant_id: assistant.id, lines: ["Hello."] },
  });
  assert.equal(made.status, 200, JSON.stringify(made.body));
  assert.equal(await ended.promise, 0);
  assert.equal((await server.call("GET", "/user/me", { key })).body.total_balance, 0);
  assert.equal((await server.call("GET", "/user/ledger", { key })).body.total, 0);
  await server.close();
  await model.close();
  assert.deepEqual(await audit(dataDir), { problems: [], charged: 0, open: 0 });
  rmSync(dataDir, { recursive: true });
});

/** `npm run prove` runs this longer than the suite has time for. */
const KILLS = IS_PROOF ? 30 : 3;
const CLIENTS = IS_PROOF ? 16 : 10;
const SENDS_PER_CLIENT = IS_PROOF ? 400 : 16;

interface Storm {
  env: Record<string, string>;
  kills: number;
  clients: number;
  sends: number;
  /** At the first start, before anybody sends. */
  begin?(server: Running): Promise<void>;
  /** After the last start, when all was sent. */
  check?(server: Running): Promise<void>;
}

/** Clients that retry by key go on sending while the process is killed; no answer is lost. */
async function weather(dataDir: string, { env, kills, clients, sends, ...more }: Storm) {
  let server = await startProcess(dataDir, env);
  const { assistant } = server;
  await more.begin?.(server);
  let up = Promise.resolve();
  let sent = 0;
  const progress = new EventEmitter();
  const post = async (path: string, body: object, key?: string): Promise<unknown> => {
    for (;;) {
      await up;
      try {
        const response = await fetch(`${server.url}/api${path}`, {
          method: "POST",
          headers: {
            "Content-Type": "application/json", ...(key ? { "Idempotency-Key": key } : {}),
          },
          body: JSON.stringify(body),
        });
        const answer: unknown = await response.json();
        if (response.status === 200) return answer;
        assert.ok([409, 429, 503].includes(response.status), JSON.stringify(answer));
      } catch (error) {
        // The process died under the request: the same key, against the next one.
        if (error instanceof assert.AssertionError) throw error;
      }
    }
  };
  const outcomes: { uuid: string; key: string; text: string; message: string }[] = [];
  const client = async (number: number): Promise<void> => {
    const created = await post("/conversations", { assistant_id: assistant });
    const uuid = (created as { conversation_id: string }).conversation_id;
    for (let count = 0; count < sends; count += 1) {
      const key = `c${number}-${count}`;
      const text = `message ${key}`;
      const answer = await post(`/conversations/${uuid}/messages`, { message: text }, key);
      outcomes.push({ uuid, key, text, message: (answer as { message: string }).message });
      sent += 1;
      progress.emit("sent");
    }
  };
  const kill = async (): Promise<void> => {
    const total = clients * sends;
    for (let count = 1; count <= kills; count += 1) {
      const goal = Math.floor((total * count) / (kills + 1) - Math.random() * 20);
      while (sent < goal) await once(progress, "sent");
      const old = server.process;
      const gate = Promise.withResolvers<void>();
      up = gate.promise;
      const gone = once(old, "exit");
      old.kill("SIGKILL");
      await gone;
      server = await startProcess(dataDir, env);
      gate.resolve();
    }
  };
  await Promise.all([kill(), ...Array.from({ length: clients }, (_, number) => client(number))]);
  for (const { uuid, key, text, message } of outcomes) {
    const again = await post(`/conversations/${uuid}/messages`, { message: text }, key);
    assert.equal((again as { message: string }).message, message);
  }
  await more.check?.(server);
  const exited = once(server.process, "exit");
  server.process.kill("SIGTERM");
  assert.deepEqual(await exited, [0, null]);
}

test("[BL2] killed at random moments, with clients that retry by key: each is charged once", async () => {
  const model = await startScriptedModel({ tokens: 5, gapMs: 2 });
  const dataDir = testDataDir();
  await weather(dataDir, {
    env: { PARLEY_MODEL_URL: model.url }, kills: KILLS, clients: CLIENTS, sends: SENDS_PER_CLIENT,
    begin: () => {
      runCli(dataDir, ["balance", "add", "--account", "1", "--amount", "100"]);
      return Promise.resolve();
    },
  });
  await model.close();
  const charged = CLIENTS * SENDS_PER_CLIENT;
  assert.deepEqual(await audit(dataDir), { problems: [], charged, open: 0 });
  rmSync(dataDir, { recursive: true });
});

test("[BL2] over PostgreSQL, killed at random moments: each is charged once, and the commands agree", {
  skip: withoutPostgres,
}, async () => {
  const model = await startScriptedModel({ tokens: 5, gapMs: 2 });
  const dataDir = testDataDir();
  const database = await databaseAt(dataDir, "durable");
  const env = { PARLEY_DATABASE_URL: database.url };
  const [clients, sends] = [8, IS_PROOF ? 400 : 10];
  await weather(dataDir, {
    env: { PARLEY_MODEL_URL: model.url, ...env }, kills: IS_PROOF ? KILLS : 2, clients, sends,
    begin: () => {
      runCli(dataDir, ["balance", "add", "--account", "1", "--amount", "100"], env);
      return Promise.resolve();
    },
  });
  await model.close();
  assert.match(runCli(dataDir, ["ledger", "verify"], env), /^the ledger is correct: 1 accounts/);
  assert.match(runCli(dataDir, ["doctor"], env), /database +PostgreSQL, ledger of 1 accounts correct/);
  assert.throws(() => runCli(dataDir, ["backup", `${dataDir}/copy`], env), /pg_dump/);
  const [counts] = await database.query<{ charged: string; open: string }>(`
    SELECT (SELECT count(*) FROM ledger WHERE kind = 'message') AS charged,
      (SELECT count(*) FROM turns WHERE state = 'open')
        + (SELECT count(*) FROM reservations) AS open`);
  assert.deepEqual(counts, { charged: String(clients * sends), open: "0" });
  await database.drop();
  rmSync(dataDir, { recursive: true });
});

const REPLY = { tokens: ["one ", "two ", "three ", "four ", "five."], gapMs: 2 };

test("[BL230] killed midway with billing off: nothing is charged, no message and no call is lost", async () => {
  const model = await startScriptedModel();
  const asked = Promise.withResolvers<void>();
  model.script(({ messages }) => {
    if (!JSON.stringify(messages[0]).includes("the telephone desk")) return REPLY;
    asked.resolve();
    // The call is cut while the model thinks.
    return { tokens: ["Late ", "words."], fault: "stall_midway" };
  });
  const dataDir = testDataDir();
  const call = ({ url }: Running, path: string, body?: object) => ask({ url, key }, path, body);
  const fundsOf = async (server: Running) =>
    [(await call(server, "/user/me")).total_balance, (await call(server, "/user/ledger")).data];
  let key: string | null = null;
  let funds: unknown;
  await weather(dataDir, {
    env: {
      PARLEY_MODEL_URL: model.url, PARLEY_SPEECH: "loopback", PARLEY_MESSAGE_PRICE: "0",
      PARLEY_CALL_PRICE: "0",
    },
    kills: IS_PROOF ? 2 : 1, clients: 6, sends: 10,
    begin: async (server) => {
      key = server.key;
      funds = await fundsOf(server);
      const { data } = await call(server, "/user/assistant", assistantBody({
        system_prompt: "You are the telephone desk.", initial_message: "Hi there.",
        status: "active", post_call_evaluation: false, endpoint_sensitivity: 1,
      }));
      await call(server, "/user/try_call", { assistant_id: data.id, lines: ["Hello."] });
      await asked.promise;
    },
    check: async (server) => {
      assert.deepEqual(await fundsOf(server), funds);
      const { data: [cut, ...others] } = await call(server, "/user/calls");
      assert.deepEqual(
        [cut.status, cut.end_reason, cut.total_cost, others.length],
        ["failed", "server_restarted", 0, 0]);
      assert.match(cut.transcript, /^AI: Hi there\./);
    },
  });
  await model.close();
  assert.deepEqual(await audit(dataDir), { problems: [], charged: 0, open: 0 });
  rmSync(dataDir, { recursive: true });
});
