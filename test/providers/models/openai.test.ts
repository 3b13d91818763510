// What the OpenAI-compatible adaptor sends and how it reads replies, over real HTTP.
import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import fc from "fast-check";
import {
  REQUEST,
  never,
  ask,
  setUp,
  adaptor,
  quickSystem,
  bareServer,
  chunk,
  event,
  DONE,
  END,
  assertProviderError,
  type Reply,
} from "#support/vendors/model-calls.ts";
import { startScriptedModel, type Plan } from "#support/vendors/scripted-model.ts";

test("[MO1] the chat path is appended to a base address and kept in a full one", async (t) => {
  const { server } = await setUp(t, null);
  const origin = server.url.slice(0, -3);
  for (const path of ["", "/", "/v1", "/v1/", "/v1/chat/completions", "/api/ai?version=2"]) {
    const model = adaptor({ url: origin + path });
    assert.equal((await ask(model)).text, "t0 t1 t2 ");
    await model.close();
  }
  const v1 = "/v1/chat/completions";
  assert.deepEqual(server.paths, [v1, v1, v1, v1, v1, "/api/ai/chat/completions?version=2"]);
});

test("[MO2] requests have OpenAI's form, with the key and without compression", async (t) => {
  const { server, model } = await setUp(t, null, { key: "sk-1", name: "gpt" });
  const parameters = { type: "object", properties: {} };
  const functionCalls = [
    { id: "c1", name: "look", argumentsJson: '{"a":1}' },
    { id: "c2", name: "look", argumentsJson: '{"a"' },
  ];
  await ask(model, never, {
    ...REQUEST,
    messages: [
      { role: "system", content: "be brief" },
      { role: "user", content: "hi" },
      { role: "assistant", content: "", functionCalls },
      { role: "function", content: "found", functionCallId: "c1" },
      { role: "assistant", content: "so" },
    ],
    functions: [{ name: "look", description: "looks", parameters }],
  });
  const call = (id: string, json: string) => {
    return { id, type: "function", function: { name: "look", arguments: json } };
  };
  assert.deepEqual(server.requests[0], {
    model: "gpt",
    messages: [
      { role: "system", content: "be brief" },
      { role: "user", content: "hi" },
      { role: "assistant", content: null, tool_calls: [call("c1", '{"a":1}'), call("c2", "{}")] },
      { role: "tool", tool_call_id: "c1", content: "found" },
      { role: "assistant", content: "so" },
    ],
    tools: [{ type: "function", function: { name: "look", description: "looks", parameters } }],
    temperature: 0.3,
    max_tokens: 99,
    stream: true,
    stream_options: { include_usage: true },
  });
  assert.equal(server.headers[0]!.authorization, "Bearer sk-1");
  assert.equal(server.headers[0]!["accept-encoding"], "identity");
  assert.equal(server.headers[0]!["content-type"], "application/json");
});

test("[MO3] a model entry can fix temperature and the token limit's name; without tools no list is sent", async (t) => {
  const options = { temperature: 1, tokensField: "max_completion_tokens" } as const;
  const { server, model } = await setUp(t, null, options);
  await ask(model);
  const { messages, model: name, ...others } = server.requests[0]!;
  assert.deepEqual([name, messages.length], ["m", 1]);
  const streaming = { stream: true, stream_options: { include_usage: true } };
  assert.deepEqual(others, { temperature: 1, max_completion_tokens: 99, ...streaming });
  assert.equal(server.headers[0]!.authorization, undefined);
});

test("[MO59] a server that refuses max_tokens, temperature or usage is asked in its own form from then on", async (t) => {
  const refused = (message: string): Plan =>
    ({ status: 400, body: JSON.stringify({ error: { message, param: null } }) });
  const { server, model } = await setUp(t, null);
  server.script((body) => {
    if ("max_tokens" in body) return refused("Unsupported parameter: 'max_tokens' is not supported"
      + " with this model. Use 'max_completion_tokens' instead.");
    if ("temperature" in body) return refused("Unsupported value: 'temperature' does not support 0.3"
      + " with this model. Only the default (1) value is supported.");
    if ("stream_options" in body) return { status: 422, body: JSON.stringify({ detail: [
      { loc: ["body", "stream_options"], msg: "Extra inputs are not permitted" }] }) };
    return { tokens: ["a"] };
  });
  const replies = await Promise.all([ask(model), ask(model), ask(model)]);
  assert.deepEqual(replies.map(({ text }) => text), ["a", "a", "a"]);
  const before = server.counts.requests;
  assert.equal((await ask(model)).text, "a");
  assert.equal(server.counts.requests, before + 1);
  const { messages: _, ...last } = server.requests.at(-1)!;
  assert.deepEqual(last, { model: "m", max_completion_tokens: 99, stream: true });

  // What is wrong with a value is for whoever set it.
  for (const message of ["temperature: range: 0..1", "max_tokens is too large: 99",
    "max_completion_tokens: unsupported"]) {
    const other = await setUp(t, [refused(message)], { tokensField: "max_completion_tokens" });
    assert.equal((await ask(other.model)).text, "");
    assert.equal(other.server.counts.requests, 1);
  }
});

test("[MO4] everything from one read is one item, its text one delta", async (t) => {
  const { model } = await setUp(t, null);
  const usage = { inputTokens: 7, outputTokens: 3 };
  assert.deepEqual((await ask(model)).items, [
    [
      { kind: "text", text: "t0 t1 t2 " },
      { kind: "finish", reason: "stop", usage },
    ],
  ]);
});

test("[MO5] a model without a name is asked for once, and called default while that fails", async (t) => {
  const { server, model } = await setUp(t, null, { name: null });
  await Promise.all([ask(model), ask(model), ask(model)]);
  await ask(model);
  assert.equal(server.counts.modelLists, 1);
  assert.deepEqual(server.requests.map((request) => request.model), Array(4).fill("scripted"));

  const silent = await startScriptedModel({ models: null });
  const other = adaptor({ url: silent.url, name: null });
  t.after(() => Promise.all([other.close(), silent.close()]));
  await ask(other);
  await ask(other);
  assert.equal(silent.counts.modelLists, 2);
  assert.deepEqual(silent.requests.map((request) => request.model), ["default", "default"]);

  const { leap, system } = quickSystem();
  const bare = await bareServer(t);
  const hanging = adaptor({ url: bare.url, name: null, system });
  t.after(() => hanging.close());
  const reply = ask(hanging);
  assert.equal((await bare.next()).req.method, "GET");
  const chat = bare.next();
  leap(5000);
  const response = await chat;
  assert.equal(response.req.method, "POST");
  response.end(chunk({ content: "a" }) + END);
  assert.equal((await reply).text, "a");
});

test("[MO6] comments, CRLF, a byte order mark and any split of the bytes change nothing", async (t) => {
  const tokens = ["Grüße ", "日本 ", "👩‍🚀🚀", " end"];
  for (const chunkBytes of [1, 2, 3, 7, 64]) {
    for (const crlf of [false, true]) {
      const { model } = await setUp(t, [{ tokens, chunkBytes, crlf, keepAliveComments: true }]);
      const { error, finish, text } = await ask(model);
      assert.deepEqual([text, error], ["Grüße 日本 👩‍🚀🚀 end", undefined]);
      const usage = { inputTokens: 7, outputTokens: 4 };
      assert.deepEqual(finish, { kind: "finish", reason: "stop", usage });
    }
  }
  const { model } = await setUp(t, [{ body: `\ufeff${chunk({ content: "a" })}${END}` }]);
  assert.equal((await ask(model)).text, "a");
});

test("[MO7] however the bytes are split, the joined deltas are the same", async (t) => {
  const toolCalls = [{ id: "c1", name: "look", arguments: '{"q":"Zürich 🚀"}', chunks: 4 }];
  let plan: Plan = {};
  const { server, model } = await setUp(t, null);
  server.script(() => plan);
  const sizes = fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1, maxLength: 8 });
  const tokens = fc.array(fc.string({ unit: "grapheme", maxLength: 6 }), { maxLength: 6 });
  const property = fc.asyncProperty(tokens, sizes, fc.boolean(), async (said, chunkBytes, crlf) => {
    plan = { tokens: said, toolCalls, crlf };
    const whole = await ask(model);
    plan = { ...plan, chunkBytes };
    const cut = await ask(model);
    assert.equal(whole.text, said.join(""));
    assert.deepEqual([cut.text, cut.calls, cut.finish], [whole.text, whole.calls, whole.finish]);
    assert.deepEqual(whole.calls, [["c1", "look", '{"q":"Zürich 🚀"}']]);
    for (const delta of cut.items.flat()) if (delta.kind === "text") assert.notEqual(delta.text, "");
  });
  await fc.assert(property, { numRuns: 60 });
});

test("[MO8] no text ends inside a surrogate pair, and half a pair is replaced", async (t) => {
  const halves = event('{"choices":[{"delta":{"content":"a\\ud83d"}}]}');
  const rest = event('{"choices":[{"delta":{"content":"\\ude80b"}}]}');
  const chunkBytes = [halves.length, 10_000];
  const whole = await setUp(t, [{ body: halves + rest + END, chunkBytes }]);
  const texts = (await ask(whole.model)).items.flat().slice(0, 2);
  assert.deepEqual(texts, [{ kind: "text", text: "a" }, { kind: "text", text: "🚀b" }]);
  const broken = await setUp(t, [{ body: halves + END, chunkBytes }]);
  assert.equal((await ask(broken.model)).text, "a\ufffd");
});

test("[MO9] tool calls arrive whole, at the end, however they are split", async (t) => {
  const call = (fields: object, name: string | undefined, json: unknown) => {
    return { ...fields, function: { ...(name === undefined ? {} : { name }), arguments: json } };
  };
  const deltas = (...lists: object[][]) => lists.map((list) => chunk({ tool_calls: list })).join("");
  const cases: [body: string, expected: Reply["calls"]][] = [
    [
      deltas([call({ index: 0, id: "a" }, "f", "")], [call({ index: 0 }, undefined, '{"x"')],
        [call({ index: 1, id: "b" }, "g", "{}")], [call({ index: 0 }, undefined, ":1}")]),
      [["a", "f", '{"x":1}'], ["b", "g", "{}"]],
    ],
    [deltas([call({ id: "a" }, "f", "{}"), call({ id: "b" }, "f", '{"y":2}')]),
      [["a", "f", "{}"], ["b", "f", '{"y":2}']]],
    [deltas([call({ id: "a" }, "f", "")], [call({}, undefined, '{"x":')], [call({}, "", "1}")]),
      [["a", "f", '{"x":1}']]],
    [deltas([call({ index: 0, id: "a" }, "f", "{}")], [call({ index: 0, id: "b" }, "f", "{}")]),
      [["a", "f", "{}"], ["b", "f", "{}"]]],
    [deltas([call({ index: 0, id: "a" }, "f", "{}")], [call({ index: 0, id: "" }, "f", '{"y":2}')]),
      [["a", "f", "{}"], ["*", "f", '{"y":2}']]],
    [deltas([call({ index: 0, id: "a" }, "f", '{"x"')], [call({ index: 0 }, "f", ":1}")],
      [call({ index: 0 }, "f", "")]), [["a", "f", '{"x":1}']]],
    [deltas([call({ index: 0, id: "a" }, "f", "{")], [call({ index: 0, id: "a" }, "f", "}")]),
      [["a", "f", "{}"]]],
    [deltas([call({ index: 0, id: "a" }, "f", ""), call({ index: 1, id: "b" }, "g", undefined)]),
      [["a", "f", "{}"], ["b", "g", "{}"]]],
    [deltas([call({ index: 0, id: "a" }, "f", { x: 1 })]), [["a", "f", '{"x":1}']]],
    [deltas([call({ index: 0, id: "a" }, undefined, "{}")]), []],
  ];
  for (const [body, expected] of cases) {
    const { model } = await setUp(t, [{ body: chunk({ content: "so" }) + body + END }]);
    const { calls, finish, items, text } = await ask(model);
    const named = calls.map(([id, ...rest]) => [id.startsWith("call_") ? "*" : id, ...rest]);
    assert.deepEqual([text, named], ["so", expected]);
    const reason = expected.length > 0 ? "function_calls" : "stop";
    assert.deepEqual([items.flat().at(-1), finish], [finish, { kind: "finish", reason, usage: null }]);
  }
});

test("[MO10] a call without an id gets one; one cut off by the token limit is dropped", async (t) => {
  const nameless = chunk({ tool_calls: [{ function: { name: "f", arguments: "{}" } }] }) + END;
  const first = await setUp(t, [{ body: nameless }]);
  assert.match((await ask(first.model)).calls[0]![0], /^call_[0-9a-f-]{36}$/);
  const toolCalls = [
    { id: "a", name: "f", arguments: "{}" },
    { id: "b", name: "f", arguments: '{"x":' },
  ];
  const second = await setUp(t, [{ toolCalls, finishReason: "length" }]);
  const { calls, finish } = await ask(second.model);
  assert.deepEqual(calls, [["a", "f", "{}"]]);
  assert.equal(finish?.kind === "finish" && finish.reason, "length");
});

test("[MO11] a server that does not stream is understood too", async (t) => {
  const toolCalls = [{ id: "a", name: "f", arguments: '{"x":1}' }];
  const plan: Plan = { tokens: ["a ", "🚀"], toolCalls, fault: "json_body" };
  const { model } = await setUp(t, [plan, { ...plan, chunkBytes: 5 }]);
  for (let turn = 0; turn < 2; turn += 1) {
    const { calls, error, finish, text } = await ask(model);
    assert.deepEqual([text, calls, error], ["a 🚀", [["a", "f", '{"x":1}']], undefined]);
    const usage = { inputTokens: 7, outputTokens: 2 };
    assert.deepEqual(finish, { kind: "finish", reason: "function_calls", usage });
  }
  const headers = { "content-type": "application/json" };
  const body = '\ufeff{"choices":[{"message":{"content":"b"},"finish_reason":"stop"}]}';
  const marked = await setUp(t, [{ headers, body }]);
  assert.equal((await ask(marked.model)).text, "b");
  const failing = await setUp(t, [{ headers, body: '{"error":{"message":"no"}}' }]);
  const message = "the model server broke off with an error: no";
  assertProviderError((await ask(failing.model)).error, { message, retryable: false });
});

test("[MO12] a vendor field of the wrong type counts as absent", async (t) => {
  const parts = [{ type: "text", text: "b" }, { type: "image" }, null, 7, { text: 8 }, { text: "c" }];
  const odd = [null, 5, "x", [], [1], {}, { choices: null }, { choices: {} }, { choices: [null] }];
  const oddDeltas = [null, [], "x", { content: 5 }, { content: null }, { tool_calls: {} }];
  const oddCalls = [null, 1, [], {}, { function: 1 }, { function: {}, index: "0", id: 1 }];
  const body = [
    ...odd.map((value) => event(JSON.stringify(value))),
    ...oddDeltas.map((delta) => chunk(delta)),
    chunk({ content: "a", tool_calls: oddCalls }),
    chunk({ content: parts }),
    event('{"error":null,"usage":null,"choices":[{"delta":{"content":"d"},"finish_reason":""}]}'),
    event('{"usage":{"prompt_tokens":"1","completion_tokens":-1},"choices":[{"finish_reason":4}]}'),
    "id: 1\nretry: soon\nodd line\ndata:\n\n",
    chunk({}, "stop"),
    event('{"usage":{"prompt_tokens":1,"completion_tokens":2},"choices":[]}'),
    event('{"usage":null,"choices":[]}'),
    DONE,
  ].join("");
  const { model } = await setUp(t, [{ body }]);
  const { calls, error, finish, text } = await ask(model);
  assert.deepEqual([text, calls, error], ["abcd", [], undefined]);
  const usage = { inputTokens: 1, outputTokens: 2 };
  assert.deepEqual(finish, { kind: "finish", reason: "stop", usage });
});

test("[MO13] vendors' finish reasons are mapped to ours", async (t) => {
  const reasons = { stop: "stop", length: "length", tool_calls: "stop", content_filter: "stop" };
  for (const [theirs, ours] of Object.entries(reasons)) {
    const { model } = await setUp(t, [{ tokens: ["a"], finishReason: theirs }]);
    const { finish } = await ask(model);
    assert.equal(finish?.kind === "finish" && finish.reason, ours);
  }
});

test("[MO14] a reply may lack [DONE] or its finish reason, not both", async (t) => {
  const finished: Plan[] = [
    { tokens: ["a"], fault: "no_done" },
    { body: chunk({ content: "a" }) + DONE },
    { body: chunk({ content: "a" }, "stop").trimEnd() },
    { body: chunk({ content: "a" }, "stop") + "data: {half" },
    // The model had finished, only the connection broke.
    { body: chunk({ content: "a" }, "stop"), fault: "reset_midway" },
    { body: chunk({ content: "a" }, "stop"), fault: "stall_midway" },
  ];
  const { server, model } = await setUp(t, finished);
  const impatient = adaptor({ url: server.url, limits: { modelStallMs: 300 } });
  t.after(() => impatient.close());
  for (const plan of finished) {
    const { error, finish, text } = await ask(plan.fault === "stall_midway" ? impatient : model);
    assert.deepEqual([text, finish?.kind, error], ["a", "finish", undefined], JSON.stringify(plan));
  }
  server.script(() => ({ tokens: ["a", "b"], fault: "truncate" }));
  const { error, finish, text } = await ask(model);
  assert.deepEqual([text, finish], ["a", undefined]);
  const message = "the model server closed the connection before its reply was complete";
  assertProviderError(error, { message, retryable: false });
});

test("[MO15] an error in the stream or an event that is not JSON ends the reply", async (t) => {
  const broke = "the model server broke off with an error";
  const cases: [Plan, message: string][] = [
    [{ tokens: ["a", "b"], fault: "error_event" }, `${broke}: scripted failure`],
    [{ body: `${chunk({ content: "a" })}event: error\ndata: no\n  luck\n\n` }, `${broke}: no`],
    [{ body: chunk({ content: "a" }) + event('{"error":"k-123456 is bad"}') }, `${broke}: *** is bad`],
    [{ body: `${chunk({ content: "a" })}event: error\ndata: {"message":"m"}\n\n` }, `${broke}: m`],
    [{ body: chunk({ content: "a" }) + event('{"error":{"code":5}}') }, broke],
    [{ body: chunk({ content: "a" }) + chunk({ content: "" }, "error") + DONE }, broke],
    [{ body: chunk({ content: "a" })
      + event('{"choices":[{"error":{"message":"gone"},"finish_reason":"error"}]}') }, `${broke}: gone`],
    [{ tokens: ["a", "b"], fault: "garbage_json" }, "the model server sent an event that is not JSON"],
  ];
  for (const [plan, message] of cases) {
    const { server, model } = await setUp(t, [plan], { key: "k-123456" });
    const { error, finish, text } = await ask(model);
    assert.deepEqual([text, finish, server.counts.requests], ["a", undefined, 1]);
    assertProviderError(error, { message, retryable: false });
  }
});

test("[MO16] events, bodies, tool calls and their arguments have a maximum size", async (t) => {
  const limits = { modelEventBytesMax: 500 };
  const long = "x".repeat(600);
  const call = chunk({ tool_calls: [{ index: 0, function: { name: "f", arguments: long } }] });
  const many = Array.from({ length: 129 }, (_, index) => ({ index, function: { name: "f" } }));
  const calls = "the model server sent too many tool calls";
  const json = { "content-type": "application/json" };
  const cases: [Plan, message: string][] = [
    [{ body: `data: ${long}` }, "the model server sent an event that is too large"],
    [{ body: call + END }, calls],
    [{ body: chunk({ tool_calls: many }) + END }, calls],
    [{ headers: json, body: JSON.stringify({ long }) }, "the model server sent too much"],
  ];
  for (const [plan, message] of cases) {
    const { model } = await setUp(t, [plan], { limits });
    assertProviderError((await ask(model)).error, { message, retryable: false });
  }
});

test("[MO56] a whole completion and a stream are told apart by their text, not their content type", async (t) => {
  const body = '\n{"choices":[{"message":{"content":"whole"},"finish_reason":"stop"}]}';
  const cases: [Plan, text: string][] = [
    [{ headers: { "content-type": "text/plain" }, body }, "whole"],
    [{ headers: { "content-type": "text/event-stream" }, body, chunkBytes: 1 }, "whole"],
    [{ headers: { "content-type": "application/json" }, body: chunk({ content: "piece" }) + END,
      chunkBytes: 1 }, "piece"],
  ];
  for (const [plan, said] of cases) {
    const { model } = await setUp(t, [plan]);
    const { error, finish, text } = await ask(model);
    assert.deepEqual([text, finish?.kind, error], [said, "finish", undefined]);
  }
});

test("[MO57] a body that is no reply is reported with its first words and without the key", async (t) => {
  const page = "<title>Sign in</title>";
  const html = { "content-type": "text/html" };
  const json = { "content-type": "application/json" };
  const gzip = { "content-encoding": "gzip" };
  const bytes = gzipSync(chunk({ content: "a" }) + END);
  const other = 'event: response.created\ndata: {"type":"response.created"}\n\n';
  const cases: [Plan, message: string][] = [
    [{ headers: html, body: page }, `sent no reply, but text/html: ${page}`],
    [{ headers: json, body: '{"detail":"k-123456 may not"}' },
      "sent no reply, but application/json: *** may not"],
    [{ body: other },
      `sent no reply, but text/event-stream; charset=utf-8: ${other.replace(/\s+/g, " ").trim()}`],
    [{ body: "" }, "sent an empty reply"],
    [{ headers: gzip, body: bytes }, "compressed its reply (gzip), which was not requested"],
    [{ status: 400, headers: gzip, body: bytes }, "answered 400"],
  ];
  for (const [plan, message] of cases) {
    const { model } = await setUp(t, [plan], { key: "k-123456" });
    const { error } = await ask(model);
    assertProviderError(error, { message: `the model server ${message}`, retryable: false });
  }
});

test("[MO58] a model's refusal text is its answer", async (t) => {
  const refusal = [chunk({ role: "assistant", content: "", refusal: "" }), chunk({ refusal: "I can" }),
    chunk({ refusal: "not." }), END].join("");
  const headers = { "content-type": "application/json" };
  const whole = { message: { content: null, refusal: "I cannot." }, finish_reason: "stop" };
  const plans = [{ body: refusal }, { headers, body: JSON.stringify({ choices: [whole] }) }];
  const { model } = await setUp(t, plans);
  for (const _ of plans) assert.equal((await ask(model)).text, "I cannot.");
});
