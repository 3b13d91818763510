// OpenAI's chat completions through the clients people use them with, the openai package and the
// AI SDK's OpenAI-compatible provider, against the real server.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { streamText } from "ai";
import assert from "node:assert/strict";
import { after, beforeEach, test } from "node:test";
import OpenAI from "openai";
import { newAssistant, startTestServer } from "#support/server.ts";
import { clientOf, REPLY, startProtocolWorld } from "#support/vendors/server-with-model.ts";

const world = await startProtocolWorld();
const { model, endpoint, env, server, fresh, balanceOf, withTool, holdHalfway } = world;
after(() => world.close());
beforeEach(() => model.script(null));

const NOBODY = "11111111-2222-4333-8444-555555555555";
const ASK = [{ role: "user" as const, content: "Hello" }];

async function list(key: string) {
  const { body } = await server.call("GET", "/user/conversations", { key });
  return body.data as { id: string; type: string; total_cost: number; message_count: number }[];
}

test("[PR1] a chat completion is a billed turn of the assistant", async () => {
  const { key, uuid, id, openai } = await fresh();
  const reply = await openai.chat.completions.create({ model: uuid, messages: ASK, user: "u" });
  assert.equal(reply.object, "chat.completion");
  assert.equal(reply.model, uuid);
  assert.deepEqual(reply.choices, [{
    index: 0, logprobs: null, finish_reason: "stop",
    message: { role: "assistant", content: REPLY, refusal: null },
  }]);
  assert.deepEqual(reply.usage, { prompt_tokens: 7, completion_tokens: 20, total_tokens: 27 });
  assert.equal(await balanceOf(key), 4.99);
  const [conversation] = await list(key);
  assert.equal(reply.id, `chatcmpl-${conversation?.id}`);
  assert.deepEqual(
    [conversation?.type, conversation?.total_cost, conversation?.message_count], ["api", 0.01, 2]);
  const byId = await openai.chat.completions.create({ model: String(id), messages: ASK });
  assert.equal(byId.choices[0]?.message.content, REPLY);
  assert.equal(await balanceOf(key), 4.98);
});

test("[PR2] a streamed completion sends the role, text as it comes, the finish reason, and usage if requested", async () => {
  const { key, uuid, openai } = await fresh();
  const release = holdHalfway();
  const stream = await openai.chat.completions.create({
    model: uuid, messages: ASK, stream: true, stream_options: { include_usage: true },
  });
  const chunks: OpenAI.ChatCompletionChunk[] = [];
  for await (const chunk of stream) {
    chunks.push(chunk);
    if (chunk.choices[0]?.delta.content === "One ") release();
  }
  assert.equal(chunks[0]?.choices[0]?.delta.role, "assistant");
  assert.equal(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join(""), "One two.");
  assert.deepEqual(
    chunks.map((chunk) => chunk.choices[0]?.finish_reason).filter(Boolean), ["stop"]);
  const last = chunks.at(-1);
  assert.deepEqual(last?.choices, []);
  assert.deepEqual(last?.usage, { prompt_tokens: 7, completion_tokens: 2, total_tokens: 9 });
  assert.ok(chunks.every((chunk) => chunk.id === last?.id));
  assert.equal(await balanceOf(key), 4.99);

  model.script(null);
  const plain = await server.call("POST", "/v1/chat/completions", {
    key, body: { model: uuid, messages: ASK, stream: true },
  });
  assert.match(plain.headers.get("content-type") ?? "", /^text\/event-stream/);
  assert.match(plain.body as string, /data: \[DONE\]\n\n$/);
  assert.doesNotMatch(plain.body as string, /usage/);
});

test("[PR3] the client's history is used; its instructions follow the assistant's", async () => {
  const { uuid, openai } = await fresh({
    system_prompt: "You are {{who}}.", variables: { who: "Ann" }, initial_message: "Greeting",
  });
  const first = model.requests.length;
  await openai.chat.completions.create({
    model: uuid, temperature: 1.7, max_tokens: 9, metadata: { a: "b" },
    messages: [
      { role: "system", content: "Be {{brief}}." },
      { role: "user", content: "One" },
      { role: "assistant", content: "Two" },
      { role: "developer", content: [{ type: "text", text: "Rhyme." }] },
      { role: "user", content: [{ type: "text", text: "Th" }, { type: "text", text: "ree" }] },
    ],
  });
  const asked = model.requests[first];
  assert.deepEqual(asked?.messages, [
    { role: "system", content: "You are Ann.\n\nThe language of this conversation is English, "
      + "unless these instructions say otherwise.\n\nBe {{brief}}.\n\nRhyme." },
    { role: "user", content: "One" },
    { role: "assistant", content: "Two" },
    { role: "user", content: "Three" },
  ]);
  assert.equal(asked?.temperature, 1);
  assert.equal(asked?.max_tokens ?? asked?.max_completion_tokens, 9);
});

test("[PR4] unsupported parameters are refused like OpenAI refuses them, at no cost", async () => {
  const { key, uuid, openai } = await fresh();
  const user = (content: unknown) => [{ role: "user", content }];
  const cases: [members: object, param: RegExp, code: string | null][] = [
    [{ n: 2 }, /^n$/, "unsupported_parameter"],
    [{ tools: [{ type: "function", function: { name: "f" } }] }, /^tools$/, "unsupported_parameter"],
    [{ messages: user([{ type: "image_url", image_url: { url: "data:," } }]) },
      /^messages\.0\.content$/, "unsupported_content"],
    [{ messages: [] }, /^messages$/, null],
    [{ messages: [...ASK, { role: "assistant", content: "x" }] }, /^messages\.1$/, null],
    [{ messages: user(" ") }, /^messages\.0$/, null],
    [{ stop: ["\n"] }, /^stop$/, "unsupported_parameter"],
    [{ response_format: { type: "json_object" } }, /^response_format$/, "unsupported_parameter"],
    [{ tool_choice: "required" }, /^tool_choice$/, "unsupported_parameter"],
    [{ function_call: { name: "f" } }, /^function_call$/, "unsupported_parameter"],
    [{ modalities: ["text", "audio"] }, /^modalities$/, "unsupported_parameter"],
    [{ logprobs: true, top_logprobs: 2 }, /^logprobs$/, "unsupported_parameter"],
    [{ logit_bias: { 42: -100 } }, /^logit_bias$/, "unsupported_parameter"],
    [{ web_search_options: {} }, /^web_search_options$/, "unsupported_parameter"],
    [{ messages: Array.from({ length: 201 }, () => ASK[0]) }, /^messages$/, null],
    [{ messages: [{ role: "tool", tool_call_id: "c", content: "x" }, ...ASK] },
      /^messages\.0\.role$/, null],
    [{ temperature: 3 }, /^temperature$/, null],
    [{ stream: "maybe" }, /^stream$/, null],
  ];
  for (const [members, param, code] of cases) {
    const request = { model: uuid, messages: ASK, ...members } as never;
    await assert.rejects(openai.chat.completions.create(request), (error: unknown) => {
      assert.ok(error instanceof OpenAI.BadRequestError, JSON.stringify(members).slice(0, 100));
      assert.match(error.param ?? "", param);
      assert.equal(error.code, code);
      assert.equal(error.type, "invalid_request_error");
      return true;
    });
  }
  const { status, body } = await server.call("POST", "/v1/chat/completions", { key, body: "{" });
  assert.deepEqual([status, body], [400, { error: {
    message: "The request body is not valid JSON.", type: "invalid_request_error", param: null,
    code: null,
  } }]);
  assert.equal(await balanceOf(key), 5);
  assert.deepEqual(await list(key), []);
});

test("[PR5] bad keys, unknown models, low balance and rate limits are refused in OpenAI's error classes", async () => {
  const { uuid, openai, accountId } = await fresh();
  const create = (client: OpenAI, name: string) =>
    client.chat.completions.create({ model: name, messages: ASK });
  await assert.rejects(create(clientOf("1|wrong", server), uuid), (error: unknown) => {
    assert.ok(error instanceof OpenAI.AuthenticationError);
    return error.code === "invalid_api_key";
  });
  const { token } = await server.app.features.accounts.createKey(accountId, "reader", { scopes: ["read"] });
  await assert.rejects(create(clientOf(token, server), uuid), OpenAI.PermissionDeniedError);
  const stranger = await fresh();
  for (const name of [stranger.uuid, String(stranger.id), NOBODY, "gpt-4o"]) {
    await assert.rejects(create(openai, name), (error: unknown) => {
      assert.ok(error instanceof OpenAI.NotFoundError);
      return error.code === "model_not_found" && error.param === "model";
    });
  }
  const poor = await fresh({}, "0");
  await assert.rejects(create(poor.openai, poor.uuid), (error: unknown) => {
    assert.ok(error instanceof OpenAI.APIError);
    return error.status === 402 && error.type === "insufficient_quota";
  });
  assert.deepEqual(await list(poor.key), []);

  const strict = await startTestServer({
    env: { ...env, PARLEY_RATE_LIMITS: "on", PARLEY_RATE_KEY_BURST: "2" },
  });
  const limited = clientOf(strict.key, strict);
  await limited.models.list();
  await limited.models.list();
  await assert.rejects(limited.models.list(), (error: unknown) => {
    assert.ok(error instanceof OpenAI.RateLimitError);
    return Number(error.headers.get("retry-after")) >= 1 && error.code === "rate_limit_exceeded";
  });
  await strict.close();
});

test("[PR6] the assistant's own tools run on the server and do not appear as tool calls", async () => {
  const { key, uuid, openai } = await withTool();
  endpoint.requests.length = 0;
  const reply = await openai.chat.completions.create({ model: uuid, messages: ASK });
  assert.equal(reply.choices[0]?.message.content, "Let me look. Done.");
  assert.equal(reply.choices[0].message.tool_calls, undefined);
  assert.equal(reply.choices[0].finish_reason, "stop");
  assert.deepEqual(reply.usage, { prompt_tokens: 14, completion_tokens: 3, total_tokens: 17 });
  assert.deepEqual(JSON.parse(endpoint.requests[0]?.body ?? ""), { item: "bikes" });
  let text = "";
  const stream = await openai.chat.completions.create({ model: uuid, messages: ASK, stream: true });
  for await (const { choices: [choice] } of stream) {
    assert.equal(choice?.delta.tool_calls, undefined);
    text += choice?.delta.content ?? "";
  }
  assert.equal(text, "Let me look. Done.");
  assert.equal(endpoint.requests.length, 2);
  assert.equal(await balanceOf(key), 4.98);
});

test("[PR7] a failed reply is a server error, even in mid-stream, and costs nothing", async () => {
  const { key, uuid, openai } = await fresh();
  model.script(() => ({ status: 400 }));
  await assert.rejects(
    openai.chat.completions.create({ model: uuid, messages: ASK }), OpenAI.InternalServerError);
  model.script(() => ({ tokens: ["a", "b", "c", "d"], fault: "error_event" }));
  const stream = await openai.chat.completions.create({ model: uuid, messages: ASK, stream: true });
  let text = "";
  await assert.rejects(async () => {
    for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? "";
  }, (error: unknown) => {
    assert.ok(error instanceof OpenAI.APIError);
    assert.equal(error.type, "server_error");
    return /^Failed to process message: /.test(error.message);
  });
  assert.equal(text, "ab");
  assert.equal(await balanceOf(key), 5);
});

test("[PR8] a client that disconnects in mid-reply pays once and can fetch the whole reply", async () => {
  const { key, uuid, openai } = await fresh();
  const release = holdHalfway();
  const headers = { "Idempotency-Key": "left" };
  const asked = { model: uuid, messages: ASK };
  const stream = await openai.chat.completions.create({ ...asked, stream: true }, { headers });
  for await (const chunk of stream) if (chunk.choices[0]?.delta.content === "One ") break;
  assert.ok(stream.controller.signal.aborted);
  release();
  const { data, response } = await openai.chat.completions
    .create(asked, { headers }).withResponse();
  assert.equal(response.headers.get("idempotency-replayed"), "true");
  assert.equal(data.choices[0]?.message.content, "One two.");
  assert.equal(await balanceOf(key), 4.99);
});

test("[PR9] one idempotency key is one request: answered once, charged once, retried if it failed", async () => {
  const { key, uuid, openai } = await fresh();
  const headers = { "Idempotency-Key": "k1" };
  const asked = { model: uuid, messages: ASK };
  model.script(() => ({ status: 400 }));
  await assert.rejects(
    openai.chat.completions.create(asked, { headers }), OpenAI.InternalServerError);
  model.script(null);
  const replies = await Promise.all(
    Array.from({ length: 6 }, () => openai.chat.completions.create(asked, { headers })));
  assert.equal(new Set(replies.map((reply) => reply.id)).size, 1);
  for (const reply of replies) assert.equal(reply.choices[0]?.message.content, REPLY);
  let text = "";
  const again = await openai.chat.completions.create({ ...asked, stream: true }, { headers });
  for await (const chunk of again) text += chunk.choices[0]?.delta.content ?? "";
  assert.equal(text, REPLY);
  const other = [{ role: "user" as const, content: "Before" }, { role: "assistant" as const,
    content: "Yes" }, ...ASK];
  for (const messages of [other, other]) {
    await assert.rejects(openai.chat.completions.create({ model: uuid, messages }, { headers }),
      (error: unknown) => error instanceof OpenAI.BadRequestError
        && error.param === "idempotency_key");
  }
  await openai.chat.completions.create(asked, { headers });
  assert.equal(await balanceOf(key), 4.99);
  assert.equal((await list(key)).length, 1);
});

test("[PR10] the models are the account's active assistants", async () => {
  const { key, uuid, openai } = await fresh({ name: "Desk", status: "active" });
  await newAssistant(server, { status: "inactive" }, key);
  const models = (await openai.models.list()).data as (OpenAI.Model & { name: string })[];
  assert.deepEqual(models.map(({ id, object, owned_by, name }) => [id, object, owned_by, name]),
    [[uuid, "model", "parley", "Desk"]]);
  assert.ok(Math.abs((models[0]?.created ?? 0) - Date.now() / 1000) < 60);
  assert.deepEqual(await openai.models.retrieve(uuid), models[0]);
  for (const model of [NOBODY, "gpt-4", "999999"]) {
    await assert.rejects(openai.models.retrieve(model), (error: unknown) =>
      error instanceof OpenAI.NotFoundError && error.code === "model_not_found"
        && error.message.includes(`The model ${model} does not exist`));
  }
});

test("[CF120] an inactive assistant is not listed as a model but answers by its uuid, as documented", async () => {
  const { uuid, openai } = await fresh({ status: "inactive" });
  assert.deepEqual((await openai.models.list()).data, []);
  assert.equal((await openai.models.retrieve(uuid)).id, uuid);
  const messages = [{ role: "user" as const, content: "Hello" }];
  assert.ok((await openai.chat.completions.create({ model: uuid, messages })).choices[0]);
  const reference = await (await fetch(`${server.url}/openapi.json`)).text();
  assert.match(reference, /whose `status` is active\. An inactive assistant still answers/);
});

test("[PR11] the AI SDK streams from it like from any OpenAI-compatible server", async () => {
  const { key, uuid } = await fresh();
  const parley = createOpenAICompatible({
    name: "parley", apiKey: key, baseURL: `${server.url}/api/v1`, includeUsage: true,
  });
  const result = streamText({ model: parley(uuid), prompt: "Hello", maxRetries: 0 });
  assert.equal(await result.text, REPLY);
  assert.equal(await result.finishReason, "stop");
  const usage = await result.usage;
  assert.deepEqual([usage.inputTokens, usage.outputTokens], [7, 20]);
  assert.equal(await balanceOf(key), 4.99);
  model.script(() => ({ tokens: ["a", "b"], fault: "truncate" }));
  const errors: unknown[] = [];
  const failed = streamText({
    model: parley(uuid), prompt: "Hello", maxRetries: 0,
    onError: ({ error }) => void errors.push(error),
  });
  await failed.consumeStream();
  assert.equal(errors.length, 1);
});

test("[PR12] a completion can be watched, stopped and drained like any other reply", async () => {
  const { key, uuid, openai } = await fresh();
  const release = holdHalfway();
  const stream = await openai.chat.completions.create({ model: uuid, messages: ASK, stream: true });
  let text = "";
  let beside: ReturnType<typeof server.call> | null = null;
  for await (const chunk of stream) {
    text += chunk.choices[0]?.delta.content ?? "";
    if (text !== "One " || chunk.choices[0]?.delta.content !== text) continue;
    const conversation = chunk.id.replace("chatcmpl-", "");
    beside = server.call("POST", `/conversations/${conversation}/messages`, {
      body: { message: "And?" },
    });
    const { body } = await server.call("POST", `/conversations/${conversation}/stop`);
    assert.equal(body.stopped, true);
  }
  release();
  assert.equal(text, "One ");
  assert.equal((await beside)?.status, 200, "a message beside it waits for it, as for any other");
  assert.equal(await balanceOf(key), 4.98);

  const other = await startTestServer({ env });
  const { uuid: model2 } = await newAssistant(other);
  const go = holdHalfway();
  const before = model.counts.requests;
  const reply = clientOf(other.key, other).chat.completions.create({
    model: model2, messages: ASK,
  });
  await model.waitFor("requests", before + 1);
  const closed = other.close();
  go();
  assert.equal((await reply).choices[0]?.message.content, "One two.");
  await closed;
});

test("[PR84] a long last message is accepted; unknown routes are refused in OpenAI's error format", async () => {
  const { key, uuid, openai } = await fresh();
  const content = "x".repeat(5000);
  await openai.chat.completions.create({
    model: uuid, messages: [{ role: "user", content }], stop: null,
    response_format: { type: "text" },
  });
  assert.equal(model.requests.at(-1)?.messages.at(-1)?.content, content);
  const refusals = await Promise.all([
    server.call("POST", "/v1/embeddings", { key, body: {} }),
    server.call("GET", "/v1/models/", { key }),
    server.call("GET", "/v1/chat/completions", { key }),
    server.call("POST", "/v1/chat/completions", { key, body: "x".repeat(300_000) }),
  ]);
  assert.deepEqual(refusals.map(({ status }) => status), [404, 404, 405, 413]);
  for (const { body } of refusals) {
    assert.deepEqual(Object.keys(body.error as object), ["message", "type", "param", "code"]);
    assert.equal(body.error.type, "invalid_request_error");
  }
});

test("[ER60] a path with a trailing slash is no route", async () => {
  const { key } = await fresh();
  for (const path of ["/user/me", "/user/assistants", "/user/conversations"]) {
    const { status, body } = await server.call("GET", `${path}/`, { key });
    assert.deepEqual([status, body], [404, { message: "Not found." }], path);
  }
});
