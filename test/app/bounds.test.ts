// Bounds an operator may change, through the real server: each holds where its setting says.
import assert from "node:assert/strict";
import { once } from "node:events";
import { after, test } from "node:test";
import { WebSocket } from "ws";
import { readConfig } from "#config/config.ts";
import { LIMITS } from "#core/limits.ts";
import { newAssistant, newConversation, startTestServer } from "#support/server.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";

const model = await startScriptedModel();
const server = await startTestServer({
  env: {
    PARLEY_MODEL_URL: model.url,
    PARLEY_STREAMS_PER_CONVERSATION_MAX: "1", PARLEY_STREAMS_PER_ACCOUNT_MAX: "2",
    PARLEY_TURNS_MAX: "1", PARLEY_CONVERSATION_MESSAGES_MAX: "3",
    PARLEY_WEBHOOK_ENDPOINTS_MAX: "1", PARLEY_UPLOADS_MAX: "1",
    PARLEY_MODEL_FIRST_BYTE_SECONDS: "2", PARLEY_MODEL_STALL_SECONDS: "1",
  },
});
const assistant = await newAssistant(server, { initial_message: "Hi" });
after(async () => {
  await server.close();
  await model.close();
});

/** Opens a socket of the account; the code it was closed with, or null where it stays open. */
async function open(path: string): Promise<{ socket: WebSocket; closed: number | null }> {
  const socket = new WebSocket(`ws://127.0.0.1:${server.port}/api${path}`, {
    headers: { authorization: `Bearer ${server.key}` },
  });
  socket.on("error", () => undefined);
  const closed = await Promise.race([
    once(socket, "message").then(() => null),
    once(socket, "close").then(([code]) => code as number),
    once(socket, "unexpected-response").then(() => 0),
    new Promise<null>((resolve) => setTimeout(() => resolve(null), 500)),
  ]);
  return { socket, closed };
}

test("[CF77] the operator limits open streams per conversation and per account", async () => {
  const uuid = await newConversation(server, assistant.uuid);
  const path = `/conversations/${uuid}/stream`;
  const stop = new AbortController();
  const first = await fetch(`${server.url}/api${path}`, { signal: stop.signal });
  assert.equal(first.status, 200);
  const second = await server.call("GET", path);
  assert.equal(second.status, 429);
  const other = await newConversation(server, assistant.uuid);
  const elsewhere = await fetch(`${server.url}/api/conversations/${other}/stream`, {
    signal: stop.signal,
  });
  assert.equal(elsewhere.status, 200, "a bound of each conversation");
  const opened = [];
  for (let number = 0; number < 3; number += 1) opened.push(await open("/user/socket"));
  assert.deepEqual(opened.map(({ closed }) => closed === null), [true, true, false]);
  for (const { socket } of opened) socket.terminate();
  stop.abort();
});

test("[EV178] a streamed send that is refused a stream has stored nothing", async () => {
  const refused = [];
  for (let ticks = 0; ticks < 60; ticks += 1) {
    const uuid = await newConversation(server, assistant.uuid);
    const stop = new AbortController();
    const sending = fetch(`${server.url}/api/conversations/${uuid}/messages`, {
      method: "POST",
      headers: { Accept: "text/event-stream", "Content-Type": "application/json" },
      body: JSON.stringify({ message: "Hello" }),
    });
    // A little later each time: somewhere in between, the send is being stored.
    for (let tick = 0; tick < ticks; tick += 1) await new Promise((go) => { setImmediate(go); });
    const watched = await fetch(`${server.url}/api/conversations/${uuid}/stream`, {
      signal: stop.signal,
    });
    const sent = await sending;
    if (sent.status === 200) await sent.text();
    stop.abort();
    assert.ok(sent.status === 200 || watched.status === 200, "one of them has the place");
    const { body } = await server.call("GET", `/conversations/${uuid}`);
    if (sent.status === 429) refused.push(body.history.length);
  }
  assert.deepEqual(new Set([1, ...refused]), new Set([1]), "the greeting alone");
});

test("[EV403] of streams that are opened at once for the last place, one opens and the others get 429", async () => {
  const uuid = await newConversation(server, assistant.uuid);
  const stop = new AbortController();
  const statuses = await Promise.all(Array.from({ length: 8 }, async () => {
    const url = `${server.url}/api/conversations/${uuid}/stream`;
    return (await fetch(url, { signal: stop.signal })).status;
  }));
  assert.deepEqual(statuses.toSorted(), [200, ...Array<number>(7).fill(429)]);
  stop.abort();
});

test("[CF78] the operator limits messages under way, a conversation's length and an account's endpoints", async () => {
  const say = async (uuid: string) =>
    await server.call("POST", `/conversations/${uuid}/messages`, { body: { message: "Hello" } });
  const [one, two] = [
    await newConversation(server, assistant.uuid), await newConversation(server, assistant.uuid),
  ];
  const statuses = (await Promise.all([say(one), say(two)])).map(({ status }) => status);
  assert.deepEqual(statuses.toSorted(), [200, 503]);
  const answered = statuses[0] === 200 ? one : two;
  assert.equal((await say(answered)).status, 400, "three messages are there: the greeting and a turn");
  const hook = { url: "https://example.com/hook", events: ["balance_changed"] };
  const endpoints = [];
  for (let number = 0; number < 2; number += 1) {
    endpoints.push(await server.call("POST", "/user/webhook-endpoints", { body: hook }));
  }
  assert.deepEqual(endpoints.map(({ status }) => status), [201, 422]);
  assert.match(JSON.stringify(endpoints[1]?.body), /more than 1 webhook endpoint/);
});

test("[LM85] messages refused with 503 do not count against the conversation's rate", async () => {
  const limited = await startTestServer({
    env: {
      PARLEY_MODEL_URL: model.url, PARLEY_TURNS_MAX: "1", PARLEY_RATE_LIMITS: "on",
      PARLEY_RATE_CONVERSATION_PER_MINUTE: "2",
    },
  });
  const { uuid: assistantUuid } = await newAssistant(limited);
  const [busy, uuid] = [
    await newConversation(limited, assistantUuid), await newConversation(limited, assistantUuid),
  ];
  const [asked, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  model.script(() => {
    asked.resolve();
    return { tokens: ["a"], hold: held.promise };
  });
  const say = async (to: string) => (await limited.call("POST", `/conversations/${to}/messages`, {
    body: { message: "Hello" },
  })).status;
  const first = say(busy);
  await asked.promise;
  for (let time = 0; time < 4; time += 1) assert.equal(await say(uuid), 503);
  held.resolve();
  assert.equal(await first, 200);
  assert.deepEqual([await say(uuid), await say(uuid), await say(uuid)], [200, 200, 429]);
  await limited.close();
});

test("[CF101] the operator sets how long a model server may be silent", async () => {
  const never = new Promise<void>(() => {});
  const uuid = await newConversation(server, assistant.uuid);
  const silences = { PARLEY_MODEL_FIRST_BYTE_SECONDS: 0, PARLEY_MODEL_STALL_SECONDS: 1 };
  for (const [setting, holdAfter] of Object.entries(silences)) {
    model.script(() => ({ tokens: ["a", "b"], hold: never, holdAfter, headers: { "x-early": "yes" } }));
    const { body } = await server.call("POST", `/conversations/${uuid}/messages`, {
      body: { message: "Hello" }, headers: { "Idempotency-Key": "k" },
    });
    assert.equal(body.error, "Failed to process message: the assistant could not answer just now");
    const record = await server.call("GET", `/user/conversations/${uuid}/messages`);
    const seconds = setting === "PARLEY_MODEL_STALL_SECONDS" ? 1 : 2;
    const said = `the model server was silent for ${seconds} s (${setting})`;
    assert.equal(record.body.failures.at(-1).error, said);
  }
});

test("[CF79] every bound in the settings has its default in the limits and refuses invalid values", () => {
  const bounds = {
    PARLEY_STREAMS_PER_CONVERSATION_MAX: LIMITS.streamsPerConversationMax,
    PARLEY_STREAMS_PER_ACCOUNT_MAX: LIMITS.streamsPerAccountMax,
    PARLEY_TURNS_MAX: LIMITS.turnsInFlightMax,
    PARLEY_MODEL_CONNECTIONS_MAX: LIMITS.modelConnectionsMax,
    PARLEY_MODEL_FIRST_BYTE_SECONDS: LIMITS.modelFirstByteMs / 1000,
    PARLEY_MODEL_STALL_SECONDS: LIMITS.modelStallMs / 1000,
    PARLEY_CONVERSATION_MESSAGES_MAX: LIMITS.conversationMessagesMax,
    PARLEY_WRITES_MAX: LIMITS.writeQueueMax,
    PARLEY_TOOL_THREADS_MAX: LIMITS.toolThreadsMax,
    PARLEY_UPLOADS_MAX: LIMITS.uploadsAtOnceMax,
    PARLEY_DOCUMENTS_MAX: LIMITS.documentsAtOnceMax,
    PARLEY_EVALUATIONS_MAX: LIMITS.evaluationsAtOnceMax,
    PARLEY_WEBHOOKS_MAX: LIMITS.webhooksAtOnceMax,
    PARLEY_WEBHOOK_ENDPOINTS_MAX: LIMITS.webhookEndpointsMax,
    PARLEY_SIP_TRUNKS_MAX: LIMITS.sipTrunksMax,
  };
  const plain = readConfig({});
  assert.ok(plain.kind === "ok");
  for (const [name, value] of Object.entries(bounds)) {
    assert.equal(plain.config[name as keyof typeof bounds], value, name);
    for (const wrong of ["0", "-1", "1.5", "many"]) {
      const outcome = readConfig({ [name]: wrong });
      assert.ok(outcome.kind === "invalid", `${name}=${wrong}`);
      assert.deepEqual(outcome.problems.length, 1);
      assert.ok(outcome.problems[0]?.startsWith(`${name} `), outcome.problems[0]);
    }
  }
});
