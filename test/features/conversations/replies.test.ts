// What replies tell to whom: failures, bounds, what was counted. The real server, a scripted model.
import assert from "node:assert/strict";
import { after, beforeEach, test } from "node:test";
import { LIMITS } from "#core/limits.ts";
import { newConversation } from "#support/server.ts";
import { startProtocolWorld } from "#support/vendors/server-with-model.ts";

const world = await startProtocolWorld();
const { model, server, fresh, balanceOf } = world;
after(() => world.close());
beforeEach(() => model.script(null));

const SECRET = "Incorrect API key sk-abc of org acme";
const REFUSED = "Failed to process message: the assistant could not answer just now";

interface LoggedEvent extends Record<string, unknown> {
  type: string;
  message?: Record<string, unknown>;
}

const eventsOf = async (key: string): Promise<LoggedEvent[]> =>
  (await server.call("GET", "/user/events", { key })).body.data as LoggedEvent[];
const recordOf = (uuid: string, key: string) =>
  server.call("GET", `/user/conversations/${uuid}/messages`, { key });
const messagesOf = (uuid: string): string => `/conversations/${uuid}/messages`;

test("[CV60] strangers see only the class of a failure, the owner the vendor's text", async () => {
  const { key, uuid, id } = await fresh();
  const conversation = await newConversation(server, uuid);
  model.script(() => ({ status: 401, body: JSON.stringify({ error: { message: SECRET } }) }));
  const body = { message: "Hello" };
  const sent = await server.call("POST", messagesOf(conversation), { body });
  assert.deepEqual([sent.status, sent.body], [400, { status: false, error: REFUSED }]);
  const faces = await Promise.all([
    server.call("POST", messagesOf(conversation), { body, headers: { Accept: "text/event-stream" } }),
    server.call("POST", `${messagesOf(conversation)}?protocol=ai-sdk`, { body }),
    server.call("POST", "/v1/chat/completions", {
      key, body: { model: uuid, messages: [{ role: "user", content: "Hello" }] },
    }),
    server.call("POST", "/user/ai/generate-reply", {
      key, body: { assistant_id: id, customer_identifier: "c", message: "Hello" },
    }),
  ]);
  for (const face of faces) {
    const text = typeof face.body === "string" ? face.body : JSON.stringify(face.body);
    assert.ok(text.includes("could not answer just now"), text);
    assert.doesNotMatch(text, /acme|model server|\b401\b/);
  }
  const told = (await eventsOf(key)).filter(({ type }) => type === "reply_failure_explained");
  assert.equal(told.length, 5);
  assert.equal(told[0]?.conversation_id, conversation);
  assert.equal(told[0]?.failure, "model_failed");
  assert.ok(String(told[0]?.error).includes(SECRET));
  const { body: record } = await recordOf(conversation, key);
  assert.equal(record.failures.length, 3);
  assert.equal(record.failures[0].failure, "model_failed");
  assert.ok(String(record.failures[0].error).includes(SECRET));
  const stream = await fetch(`${server.url}/api/conversations/${conversation}/stream?after=0`);
  const reader = stream.body?.getReader();
  let seen = "";
  while (seen.split("event: reply_failed").length < 4) {
    const { value, done } = await reader!.read();
    assert.ok(!done);
    seen += Buffer.from(value).toString();
  }
  await reader!.cancel();
  assert.doesNotMatch(seen, /acme|reply_failure_explained/);
  assert.equal(await balanceOf(key), 5);
});

test("[MO60] a failed connection names the setting with the address, to the owner only", async () => {
  const { key, uuid } = await fresh();
  const conversation = await newConversation(server, uuid);
  model.script(() => ({ fault: "reset_before_headers" }));
  const sent = await server.call("POST", messagesOf(conversation), { body: { message: "Hello" } });
  assert.deepEqual([sent.status, sent.body], [400, { status: false, error: REFUSED }]);
  const { body: record } = await recordOf(conversation, key);
  assert.match(record.failures[0].error,
    /^the connection to the model server of PARLEY_MODEL_URL failed \((ECONNRESET|UND_ERR_SOCKET)\)$/);
});

test("[CV61] each kind of failure has its own text; once answered it is no longer listed", async () => {
  const { key, uuid } = await fresh();
  const conversation = await newConversation(server, uuid);
  const headers = { "Idempotency-Key": "k" };
  const send = () => server.call("POST", messagesOf(conversation), {
    body: { message: "Hello" }, headers,
  });
  model.script(() => ({ tokens: [" "] }));
  const empty = await send();
  assert.equal(empty.body.error, "Failed to process message: the assistant gave no answer");
  const { failures } = (await recordOf(conversation, key)).body;
  assert.deepEqual(
    [failures[0].failure, failures[0].error], ["no_answer", "the model gave no answer"]);
  model.script(() => ({ tokens: [], finishReason: "length" }));
  await send();
  const [thoughtful] = (await recordOf(conversation, key)).body.failures;
  assert.equal(thoughtful.failure, "no_answer");
  assert.match(thoughtful.error, /token limit before it answered.*PARLEY_REPLY_TOKENS_MAX/);
  model.script(null);
  assert.equal((await send()).status, 200);
  assert.deepEqual((await recordOf(conversation, key)).body.failures, []);
  const stranger = await server.newAccount();
  assert.equal((await recordOf(conversation, stranger.key)).status, 404);
});

test("[CV62] a reply past its limit is cut there and marked, keeps what was shown and is charged", async () => {
  const { key, uuid, openai } = await fresh();
  const conversation = await newConversation(server, uuid);
  const gone = model.counts.aborted;
  // More than sockets hold, in pieces none of which is more than an event may have.
  const tokens = Array.from({ length: 20 }, () => "😀x".repeat(200_000));
  model.script(() => ({ tokens, gapMs: 1 }));
  const { body } = await server.call("POST", messagesOf(conversation), {
    body: { message: "Hello" },
  });
  assert.equal(body.truncated, true);
  assert.ok(body.message.length <= LIMITS.replyCharsMax);
  assert.ok(body.message.length > LIMITS.replyCharsMax - 3);
  assert.ok(body.message.isWellFormed());
  await model.waitFor("aborted", gone + 1);
  const { history } = (await server.call("GET", `/conversations/${conversation}`)).body;
  assert.deepEqual([history[2].content, history[2].truncated], [body.message, true]);
  const told = (await eventsOf(key)).findLast(({ type }) => type === "message_added");
  assert.equal(told?.message?.truncated, true);
  assert.equal(await balanceOf(key), 4.99);
  const streamed = await server.call("POST", messagesOf(conversation), {
    body: { message: "More" }, headers: { Accept: "text/event-stream" },
  });
  assert.match(streamed.body as string, /event: reply_end\ndata: [^\n]*"truncated":true/);
  const chat = await server.call("POST", `${messagesOf(conversation)}?protocol=ai-sdk`, {
    body: { message: "More" },
  });
  assert.match(chat.body as string, /"finishReason":"length"/);
  const ask = { model: uuid, messages: [{ role: "user" as const, content: "Hello" }] };
  const whole = await openai.chat.completions.create(ask);
  assert.equal(whole.choices[0]?.finish_reason, "length");
  const reasons: (string | null | undefined)[] = [];
  for await (const chunk of await openai.chat.completions.create({ ...ask, stream: true })) {
    reasons.push(chunk.choices[0]?.finish_reason);
  }
  assert.ok(reasons.includes("length"));
});

test("[CV63] a reply that ran out of tokens says so; only the owner sees the model's token counts", async () => {
  const { key, uuid } = await fresh();
  const conversation = await newConversation(server, uuid);
  model.script(() => ({ tokens: ["Half ", "a"], finishReason: "length" }));
  const { body } = await server.call("POST", messagesOf(conversation), {
    body: { message: "Hello" },
  });
  assert.deepEqual([body.message, body.truncated], ["Half a", true]);
  const { data } = (await recordOf(conversation, key)).body;
  assert.deepEqual((data as { usage: unknown }[]).map(({ usage }) => usage),
    [null, null, { input_tokens: 7, output_tokens: 2 }]);
  const open = await server.call("GET", `/conversations/${conversation}`);
  assert.equal("usage" in open.body.history[2], false);
});

test("[CV67] tool results of a turn are in the model's context of the next", async () => {
  const { uuid } = await world.withTool();
  const conversation = await newConversation(server, uuid);
  const send = (message: string) =>
    server.call("POST", messagesOf(conversation), { body: { message } });
  assert.equal((await send("Look")).status, 200);
  model.script(() => ({ tokens: ["Yes."] }));
  assert.equal((await send("And?")).status, 200);
  const messages = model.requests.at(-1)?.messages ?? [];
  assert.deepEqual(messages.map(({ role }) => role),
    ["system", "assistant", "user", "assistant", "tool", "assistant", "user"]);
  const [call] = messages[3]?.tool_calls as { id: string; function: object }[];
  assert.deepEqual(call?.function, { name: "look_up", arguments: '{"item":"bikes"}' });
  assert.equal(messages[4]?.tool_call_id, call?.id);
  assert.match(String(messages[4]?.content), /ok/);
});

test("[CV68] a completion or reply refused by the daily cap leaves no empty conversation", async () => {
  const { key, uuid, id } = await fresh({ daily_spend_cap: 0.01 });
  const completion = () => server.call("POST", "/v1/chat/completions", {
    key, body: { model: uuid, messages: [{ role: "user", content: "Hello" }] },
  });
  const generate = () => server.call("POST", "/user/ai/generate-reply", {
    key, body: { assistant_id: id, customer_identifier: "c", message: "Hello" },
  });
  assert.equal((await completion()).status, 200);
  assert.deepEqual([(await completion()).status, (await generate()).status], [429, 429]);
  const { body } = await server.call("GET", "/user/conversations", { key });
  assert.equal(body.data.length, 1);
});

test("[EV60] a position the log has not reached is answered with stream_reset", async () => {
  const { uuid } = await fresh();
  const conversation = await newConversation(server, uuid);
  const response = await fetch(`${server.url}/api/conversations/${conversation}/stream`, {
    headers: { "Last-Event-ID": "999" },
  });
  const reader = response.body?.getReader();
  let seen = "";
  while (!seen.includes("stream_reset")) {
    const { value, done } = await reader!.read();
    assert.ok(!done, seen);
    seen += Buffer.from(value).toString();
  }
  await reader!.cancel();
  assert.match(seen, /event: stream_reset\ndata: \{"id":"2"/);
});

test("[AS80] ids of folders and labels are never reused", async () => {
  const { key } = await server.newAccount();
  for (const kind of ["folder", "label"]) {
    const made = async (): Promise<number> => (await server.call("POST", `/user/${kind}`, {
      key, body: { name: "N" },
    })).body.data.id as number;
    const first = await made();
    assert.equal((await server.call("DELETE", `/user/${kind}/${first}`, { key })).status, 200);
    assert.equal(await made(), first + 1);
  }
});

test("[CV69] generate-reply answers on each of its paths", async () => {
  const { key, id } = await fresh();
  for (const path of ["/user/ai/generate-reply", "/ai/generate-reply", "/ai-replies/generate"]) {
    const { status, body } = await server.call("POST", path, {
      key, body: { assistant_id: id, customer_identifier: "c", message: "Hello" },
    });
    assert.deepEqual([status, body.success], [200, true], path);
  }
});
