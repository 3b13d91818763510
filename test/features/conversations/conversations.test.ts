// Text conversations through the real server and a scripted model: shapes, prices, keys, stop.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { createSystem } from "#core/system.ts";
import { newAssistant, newConversation, startTestServer } from "#support/server.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";

const model = await startScriptedModel();
const server = await startTestServer({ env: { PARLEY_MODEL_URL: model.url } });
after(async () => {
  await server.close();
  await model.close();
});

const NOBODY = "11111111-2222-4333-8444-555555555555";
const REPLY = Array.from({ length: 20 }, (_, index) => `t${index} `).join("");

const send = (uuid: string, message: string, headers: Record<string, string> = {}) =>
  server.call("POST", `/conversations/${uuid}/messages`, { body: { message }, headers });

async function balanceOf(key: string): Promise<number> {
  return (await server.call("GET", "/user/me", { key })).body.total_balance as number;
}

/** An account of its own, so that tests can run side by side. */
async function fresh(settings: Record<string, unknown> = {}, balance = "5.00") {
  const account = await server.newAccount({ balance });
  const assistant = await newAssistant(server, settings, account.key);
  return { ...account, assistant };
}

test("[CV1] a conversation starts with the initial message, variables filled in once", async () => {
  const { assistant } = await fresh({
    initial_message: "Hi {{name}}, {{unknown}}", variables: { name: "you" },
  });
  const { status, body } = await server.call("POST", "/conversations", {
    body: { assistant_id: assistant.uuid, variables: { name: "{{company}}", company: "X" } },
  });
  assert.equal(status, 200);
  assert.equal(body.status, true);
  assert.match(body.conversation_id, /^[0-9a-f-]{36}$/);
  assert.deepEqual(body.history, [{ role: "assistant", content: "Hi {{company}}, {{unknown}}" }]);
});

test("[CV2] unknown assistants and conversations answer 404 in the contract's shape", async () => {
  const created = await server.call("POST", "/conversations", { body: { assistant_id: NOBODY } });
  assert.equal(created.status, 404);
  assert.deepEqual(created.body, { status: false, error: "Assistant not found" });
  for (const read of [await send(NOBODY, "x"), await server.call("GET", `/conversations/${NOBODY}`)]) {
    assert.equal(read.status, 404);
    assert.deepEqual(read.body, { status: false, error: "Conversation not found" });
  }
});

test("[CV3] a widget message costs 0.01 and is charged once; a test message is free", async () => {
  const { key, assistant } = await fresh();
  const widget = await newConversation(server, assistant.uuid);
  const reply = await send(widget, "Hello");
  assert.equal(reply.status, 200);
  assert.deepEqual(reply.body, { status: true, message: REPLY, function_calls: [] });
  assert.equal(await balanceOf(key), 4.99);
  const free = await newConversation(server, assistant.uuid, { type: "test" });
  assert.equal((await send(free, "Hello")).status, 200);
  assert.equal(await balanceOf(key), 4.99);
  const { body } = await server.call("GET", `/conversations/${widget}`);
  const roles = (body.history as { role: string }[]).map((item) => item.role);
  assert.deepEqual(roles, ["assistant", "user", "assistant"]);
});

test("[CV4] without balance no conversation starts and no message is accepted", async () => {
  const { key, assistant } = await fresh({}, "0.01");
  const uuid = await newConversation(server, assistant.uuid);
  assert.equal((await send(uuid, "Hello")).status, 200);
  const refused = await send(uuid, "Again");
  const error = "Insufficient balance. Please top up your account.";
  assert.equal(refused.status, 400);
  assert.deepEqual(refused.body, { status: false, error });
  const created = await server.call("POST", "/conversations", {
    body: { assistant_id: assistant.uuid },
  });
  assert.equal(created.status, 400);
  assert.deepEqual(created.body, { status: false, error });
  assert.equal(await balanceOf(key), 0);
});

test("[CV5] a missing, blank or too long message answers 422 and stores nothing", async () => {
  const { assistant } = await fresh();
  const uuid = await newConversation(server, assistant.uuid);
  const required = "The message field is required.";
  for (const body of [{}, { message: "  " }, { message: null }]) {
    const refused = await server.call("POST", `/conversations/${uuid}/messages`, { body });
    assert.equal(refused.status, 422);
    assert.deepEqual(refused.body, { message: required, errors: { message: [required] } });
  }
  const long = await send(uuid, "x".repeat(2001));
  assert.equal(long.status, 422);
  assert.match(long.body.errors.message[0], /2000/);
  const { body } = await server.call("GET", `/conversations/${uuid}`);
  assert.equal(body.history.length, 1);
});

test("[CV6] a failed reply answers 400, keeps the message and costs nothing", async () => {
  const { key, assistant } = await fresh();
  const uuid = await newConversation(server, assistant.uuid);
  model.script(() => ({ status: 400 }));
  const failed = await send(uuid, "Hello", { "Idempotency-Key": "k" });
  assert.equal(failed.status, 400);
  assert.equal(failed.body.status, false);
  assert.match(failed.body.error, /^Failed to process message: /);
  assert.equal(await balanceOf(key), 5);
  model.script(null);
  const retried = await send(uuid, "Hello", { "Idempotency-Key": "k" });
  assert.equal(retried.status, 200);
  const { body } = await server.call("GET", `/conversations/${uuid}`);
  assert.equal(body.history.length, 3, "the user message is there once");
  assert.equal(await balanceOf(key), 4.99);
});

test("[CV7] the same key and body gets one answer and one charge, also when sent concurrently", async () => {
  const { key, assistant } = await fresh();
  const uuid = await newConversation(server, assistant.uuid);
  const headers = { "Idempotency-Key": "k1" };
  const tries = await Promise.all(Array.from({ length: 8 }, () => send(uuid, "Hello", headers)));
  for (const { status, body } of tries) {
    assert.equal(status, 200);
    assert.equal(body.message, REPLY);
  }
  const later = await send(uuid, "Hello", headers);
  assert.equal(later.headers.get("idempotency-replayed"), "true");
  assert.equal(await balanceOf(key), 4.99);
  const other = await send(uuid, "Something else", headers);
  assert.equal(other.status, 422);
  assert.equal(await balanceOf(key), 4.99);
});

test("[CV8] one turn at a time: later messages queue in order, too many are refused", async () => {
  const { assistant } = await fresh();
  const uuid = await newConversation(server, assistant.uuid);
  const gate = Promise.withResolvers<void>();
  model.script(() => ({ tokens: ["ok"], hold: gate.promise }));
  const first = model.counts.requests;
  const sends = Array.from({ length: 6 }, (_, index) => send(uuid, `m${index}`));
  await model.waitFor("requests", first + 1);
  const refused = await Promise.race(sends);
  assert.equal(refused.status, 429);
  assert.ok(refused.headers.get("retry-after"));
  gate.resolve();
  model.script(null);
  const statuses = (await Promise.all(sends)).map(({ status }) => status).sort();
  assert.deepEqual(statuses, [200, 200, 200, 200, 200, 429]);
});

test("[OA92] accepted encodings are read in any letter case, and a weight of zero is a refusal", async () => {
  const { assistant } = await fresh();
  const uuid = await newConversation(server, assistant.uuid);
  for (const [accept, type] of [
    ["Text/Event-Stream", /^text\/event-stream/],
    ["application/json, text/event-stream; q=0.5", /^text\/event-stream/],
    ["application/json, text/event-stream;q=0.0", /^application\/json/],
  ] as const) {
    const response = await fetch(`${server.url}/api/conversations/${uuid}/messages`, {
      method: "POST", headers: { Accept: accept, "Content-Type": "application/json" },
      body: JSON.stringify({ message: "Hello" }),
    });
    await response.text();
    assert.match(response.headers.get("content-type") ?? "", type, accept);
  }
});

test("[CV9] stop keeps and charges what was shown; before any text it costs nothing", async () => {
  const { key, assistant } = await fresh();
  const uuid = await newConversation(server, assistant.uuid);
  const gate = Promise.withResolvers<void>();
  model.script(() => ({ tokens: ["one ", "two ", "three"], hold: gate.promise, holdAfter: 1 }));
  const response = await fetch(`${server.url}/api/conversations/${uuid}/messages`, {
    method: "POST",
    headers: { Accept: "text/event-stream", "Content-Type": "application/json" },
    body: JSON.stringify({ message: "Hello" }),
  });
  let seen = "";
  const decoder = new TextDecoder();
  const body = response.body as AsyncIterable<Uint8Array> | null;
  assert.ok(body);
  for await (const chunk of body) {
    const hadText = seen.includes("reply_delta");
    seen += decoder.decode(chunk, { stream: true });
    if (!hadText && seen.includes("reply_delta")) {
      const turn = Number(/"turn_id":(\d+)/.exec(seen)?.[1]);
      const stop = (body: object) =>
        server.call("POST", `/conversations/${uuid}/stop`, { body });
      assert.deepEqual((await stop({ turn_id: turn - 1 })).body, { status: true, stopped: false });
      assert.equal((await stop({ turn_id: "first" })).status, 422);
      const stopped = await stop({ turn_id: turn });
      assert.deepEqual(stopped.body, { status: true, stopped: true });
    }
  }
  const { body: read } = await server.call("GET", `/conversations/${uuid}`);
  assert.deepEqual(read.history[2], { role: "assistant", content: "one ", stopped: true });
  assert.equal(await balanceOf(key), 4.99);
  model.script(() => ({ hold: gate.promise }));
  const before = model.counts.requests;
  const silent = send(uuid, "Again");
  await model.waitFor("requests", before + 1);
  assert.equal((await server.call("POST", `/conversations/${uuid}/stop`)).body.stopped, true);
  assert.deepEqual((await silent).body, {
    status: true, message: "", function_calls: [], stopped: true,
  });
  assert.equal(await balanceOf(key), 4.99);
  const idle = await server.call("POST", `/conversations/${uuid}/stop`);
  assert.deepEqual(idle.body, { status: true, stopped: false });
  gate.resolve();
  model.script(null);
});

test("[CV10] with AI off a message is stored and free; only the owner switches it", async () => {
  const { key, assistant } = await fresh();
  const uuid = await newConversation(server, assistant.uuid);
  const path = `/automate/conversations/${uuid}`;
  const foreign = await server.call("POST", `${path}/disable-ai`);
  assert.equal(foreign.status, 404);
  const off = await server.call("POST", `${path}/disable-ai`, { key });
  assert.deepEqual(off.body, { status: true, ai_enabled: false });
  const stored = await send(uuid, "Hello");
  assert.deepEqual(stored.body, {
    status: true, message: "", function_calls: [], ai_disabled: true,
  });
  assert.equal(await balanceOf(key), 5);
  const on = await server.call("POST", `${path}/enable-ai`, { key });
  assert.deepEqual(on.body, { status: true, ai_enabled: true });
  assert.equal((await send(uuid, "And now?")).body.message, REPLY);
});

test("[CV11] generate-reply keeps one conversation per customer", async () => {
  const { key, assistant } = await fresh();
  const body = { assistant_id: String(assistant.id), customer_identifier: "c1", message: "Hello" };
  const first = await server.call("POST", "/user/ai/generate-reply", { key, body });
  assert.equal(first.status, 200);
  assert.deepEqual(first.body, {
    success: true, conversation_id: first.body.conversation_id, customer_identifier: "c1",
    reply: REPLY, function_calls: [], ai_disabled: false,
  });
  const second = await server.call("POST", "/ai/generate-reply", { key, body });
  assert.equal(second.body.conversation_id, first.body.conversation_id);
  const foreign = await server.call("POST", "/user/ai/generate-reply", { body });
  assert.equal(foreign.status, 404);
  assert.equal(foreign.body.error_code, "ASSISTANT_NOT_FOUND");
});

test("[CV957] a repeated generate-reply says that it is repeated, also while a person answers", async () => {
  const { key, assistant } = await fresh();
  const reply = async (name: string) => {
    const { status, body, headers } = await server.call("POST", "/user/ai/generate-reply", {
      key, headers: { "Idempotency-Key": name },
      body: { assistant_id: assistant.id, customer_identifier: "c1", message: "Hello" },
    });
    assert.equal(status, 200);
    return { body, replayed: headers.get("idempotency-replayed") };
  };
  const first = await reply("k1");
  assert.equal(first.replayed, null);
  assert.deepEqual(await reply("k1"), { body: first.body, replayed: "true" });
  const uuid = first.body.conversation_id as string;
  await server.call("POST", `/automate/conversations/${uuid}/disable-ai`, { key });
  const stored = await reply("k2");
  assert.deepEqual([stored.body.ai_disabled, stored.replayed], [true, null]);
  assert.deepEqual(await reply("k2"), { body: stored.body, replayed: "true" });
});

test("[CV12] the list pages by cursor, newest first, and shows only the account's own", async () => {
  const { key, assistant } = await fresh();
  const made: string[] = [];
  for (let count = 0; count < 3; count += 1) {
    made.push(await newConversation(server, assistant.uuid));
  }
  const page = await server.call("GET", "/user/conversations?per_page=2", { key });
  assert.equal(page.status, 200);
  const ids = (body: { data: { id: string }[] }) => body.data.map((row) => row.id);
  assert.deepEqual(ids(page.body), [made[2], made[1]]);
  const next = await server.call(
    "GET", `/user/conversations?per_page=2&cursor=${page.body.next_cursor}`, { key });
  assert.deepEqual(ids(next.body), [made[0]]);
  assert.equal(next.body.next_cursor, null);
  const one = await server.call("GET", `/user/conversations/${made[0]}`, { key });
  const { last_message: last, ...record } = next.body.data[0];
  assert.deepEqual(one.body, { data: record });
  assert.deepEqual([last.role, last.content], ["assistant", "Hello"]);
  const foreign = await server.call("GET", `/user/conversations/${made[0]}`);
  assert.deepEqual([foreign.status, foreign.body], [404, { message: "Conversation not found" }]);
});

/** Sends and reads the whole stream; resolves to the types of its frames, repeats left out. */
async function streamTypes(uuid: string, message: string, key: string): Promise<string[]> {
  const response = await fetch(`${server.url}/api/conversations/${uuid}/messages`, {
    method: "POST",
    headers: {
      Accept: "text/event-stream", "Content-Type": "application/json", "Idempotency-Key": key,
    },
    body: JSON.stringify({ message }),
    signal: AbortSignal.timeout(5000),
  });
  assert.equal(response.status, 200);
  const types = [...(await response.text()).matchAll(/^event: (\w+)$/gm)].map(([, type]) => type ?? "");
  return types.filter((type, index) => type !== types[index - 1]);
}

test("[CV13] a failed send retried under its key streams the new reply, never the old failure", async () => {
  const { key, assistant } = await fresh();
  const uuid = await newConversation(server, assistant.uuid);
  model.script(() => ({ status: 400 }));
  const failed = await streamTypes(uuid, "Hello", "k");
  assert.deepEqual(failed, ["message_added", "reply_start", "reply_failed"].filter((type) =>
    type !== "reply_start" || failed.includes(type)));
  model.script(null);
  const whole = ["reply_start", "reply_delta", "reply_end", "message_added"];
  assert.deepEqual(await streamTypes(uuid, "Hello", "k"), whole);
  assert.equal(await balanceOf(key), 4.99);
  assert.deepEqual((await streamTypes(uuid, "Hello", "k")).slice(-4), whole);
  assert.equal(await balanceOf(key), 4.99);
});

test("[CV14] an idle conversation ends once, publishes that, and reopens when used", async () => {
  const real = createSystem();
  let aheadMicros = 0;
  const system = { ...real, now: () => real.now() + aheadMicros };
  const on = await startTestServer({ env: { PARLEY_MODEL_URL: model.url }, system });
  const quick = await newAssistant(on, { conversation_inactivity_timeout: 5 });
  const uuid = await newConversation(on, quick.uuid);
  const { conversations } = on.app.features;
  const stateOf = async () => (await conversations.get(uuid)).state;
  const say = () => on.call("POST", `/conversations/${uuid}/messages`, { body: { message: "Hi" } });
  aheadMicros = 4 * 60_000_000;
  assert.equal((await say()).status, 200);
  aheadMicros = 8 * 60_000_000;
  await conversations.sweep();
  assert.equal(await stateOf(), "open", "the message moved its end");
  aheadMicros = 10 * 60_000_000;
  const stream = await fetch(`${on.url}/api/conversations/${uuid}/stream`);
  await Promise.all([conversations.sweep(), conversations.sweep()]);
  assert.equal(await stateOf(), "ended");
  const reader = stream.body?.pipeThrough(new TextDecoderStream()).getReader();
  let told = "";
  while (!told.includes("conversation_ended")) told += (await reader?.read())?.value ?? "";
  assert.match(told, /"reason":"inactivity"/);
  await reader?.cancel();
  assert.equal((await say()).status, 200);
  assert.equal(await stateOf(), "open");
  await on.close();
});

test("[CV150] a draft answers the test it is sent with, is validated like an update and not stored", async () => {
  const { key, assistant } = await fresh({
    system_prompt: "Be saved.", initial_message: "Saved", variables: { who: "nobody" },
  });
  const settings = {
    system_prompt: "Be a draft for {{who}}.", initial_message: "Hello {{who}}", llm_temperature: 0.9,
  };
  const begun = await server.call("POST", `/user/assistant/${assistant.id}/tests`, {
    key, body: { settings, variables: { who: "Ada" } },
  });
  assert.equal(begun.status, 200);
  assert.deepEqual(begun.body.history, [{ role: "assistant", content: "Hello Ada" }]);
  const uuid = begun.body.conversation_id as string;
  const asked: string[] = [];
  model.script(({ messages, temperature }) => {
    asked.push(`${messages[0]?.content as string} ${temperature}`);
    return { tokens: ["Yes."] };
  });
  const path = `/user/conversations/${uuid}/test-messages`;
  const reply = await server.call("POST", path, { key, body: { message: "And?", settings } });
  assert.deepEqual(reply.body, { status: true, message: "Yes.", function_calls: [] });
  // Whoever comes by the public way, a visitor too, talks with what is saved.
  await send(uuid, "And now?");
  model.script(null);
  assert.match(asked[0] ?? "", /^Be a draft for Ada\..* 0\.9$/s);
  assert.match(asked[1] ?? "", /^Be saved\..* 0\.1$/s);
  const { body: kept } = await server.call("GET", `/user/assistant/${assistant.id}`, { key });
  assert.deepEqual([kept.system_prompt, kept.initial_message], ["Be saved.", "Saved"]);
  const { body: listed } = await server.call("GET", "/user/conversations?type=test", { key });
  assert.deepEqual([listed.data[0].id, listed.data[0].total_cost], [uuid, 0]);
  assert.equal(await balanceOf(key), 5);
  const wrong = await server.call("POST", path, {
    key, body: { message: "Again", settings: { max_duration: 5000, voice_id: 0 } },
  });
  const update = await server.call("PATCH", `/user/assistant/${assistant.id}`, {
    key, body: { max_duration: 5000, voice_id: 0 },
  });
  assert.equal(wrong.status, 422);
  assert.deepEqual(wrong.body.errors, update.body.errors);
  assert.equal((await server.call("GET", `/conversations/${uuid}`)).body.history.length, 5);
});

test("[CV151] a draft runs only in test conversations of one's own account, for those who may build", async () => {
  const { key, assistant } = await fresh();
  const other = await server.newAccount({ balance: "1.00" });
  const body = { message: "Hi", settings: { name: "Draft" } };
  const [test, widget] = await Promise.all([
    newConversation(server, assistant.uuid, { type: "test" }),
    newConversation(server, assistant.uuid),
  ]);
  const at = (uuid: string, sender: string) =>
    server.call("POST", `/user/conversations/${uuid}/test-messages`, { key: sender, body });
  assert.equal((await at(test, other.key)).status, 404);
  assert.equal((await at(widget, key)).status, 404);
  const begun = await server.call(
    "POST", `/user/assistant/${assistant.id}/tests`, { key: other.key, body: {} });
  assert.equal(begun.status, 404);
  const made = await server.call(
    "POST", "/user/api-keys", { key, body: { name: "Reads", scopes: ["read"] } });
  assert.equal((await at(test, made.body.api_key.token as string)).status, 403);
  assert.equal((await at(test, key)).status, 200);
});
