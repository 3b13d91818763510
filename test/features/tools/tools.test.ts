// Mid-call tools: their records, what is sent to endpoints, what comes of it.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { after, beforeEach, test } from "node:test";
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { LIMITS } from "#core/limits.ts";
import { createAddressPolicy } from "#outbound/addresses.ts";
import { createOutbound } from "#outbound/request.ts";
import { rowsBeside, runBeside } from "#support/databases/beside.ts";
import { startEndpoint } from "#support/endpoint.ts";
import { isOverPostgres } from "#support/engines.ts";
import { newAssistant, newConversation, startTestServer } from "#support/server.ts";
import { callingOnce, startScriptedModel } from "#support/vendors/scripted-model.ts";

const model = await startScriptedModel();
const endpoint = await startEndpoint();
const server = await startTestServer({
  env: { PARLEY_MODEL_URL: model.url, PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8" },
});
after(async () => {
  await server.close();
  await Promise.all([model.close(), endpoint.close()]);
});
beforeEach(() => {
  endpoint.requests.length = 0;
  endpoint.answer((_, response) => response.end('{"ok":true}'));
});

const SECRET = "Bearer canary-4f9a";
const toolBody = (changes: object = {}) => ({
  name: "look_up",
  description: "Looks something up",
  endpoint: `${endpoint.url}/items`,
  method: "POST",
  headers: [{ name: "Authorization", value: SECRET }],
  schema: [
    { name: "item", type: "string", description: "What to look up" },
    { name: "count", type: "number", description: "How many of them" },
  ],
  ...changes,
});

async function newTool(changes: object = {}, key?: string): Promise<{ id: number }> {
  const { status, body } = await server.call("POST", "/user/tools", {
    body: toolBody(changes), ...(key ? { key } : {}),
  });
  assert.equal(status, 201, JSON.stringify(body));
  return body.data as { id: number };
}

interface Call {
  name: string;
  arguments: Record<string, unknown>;
  result: Record<string, unknown>;
}

/** Lets an assistant with the tool answer once; the model calls it as told, then says "Done." */
async function turnWith(
  tool: object,
  args: object,
  times = 1,
): Promise<{ message: string; calls: Call[]; uuid: string }> {
  const { id } = await newTool(tool);
  const assistant = await newAssistant(server, { tool_ids: [id] });
  const uuid = await newConversation(server, assistant.uuid);
  let step = 0;
  model.script(() => {
    step += 1;
    if (step > times) return { tokens: ["Done."] };
    const call = { id: `c${step}`, name: "look_up", arguments: JSON.stringify(args) };
    return { tokens: [], toolCalls: [call], finishReason: "tool_calls" };
  });
  const { status, body } = await server.call("POST", `/conversations/${uuid}/messages`, {
    body: { message: "Look it up" },
  });
  model.script(null);
  assert.equal(status, 200, JSON.stringify(body));
  return { message: body.message as string, calls: body.function_calls as Call[], uuid };
}

test("[SO65] two concurrent changes of a tool are both kept", async () => {
  const { id } = await newTool();
  for (let turn = 1; turn <= 20; turn += 1) {
    const wanted = { description: `Looks up, ${turn}`, timeout: 4 + turn };
    const put = (body: object) => server.call("PUT", `/user/tools/${id}`, { body });
    const answers = await Promise.all([
      put({ description: wanted.description }), put({ timeout: wanted.timeout }),
    ]);
    assert.deepEqual(answers.map(({ status }) => status), [200, 200]);
    const { description, timeout } = (await server.call("GET", `/user/tools/${id}`)).body;
    assert.deepEqual({ description, timeout }, wanted);
  }
});

test("[TL1] create answers 201 with the record; all invalid fields are named at once", async () => {
  const { status, body } = await server.call("POST", "/user/tools", { body: toolBody() });
  assert.equal(status, 201);
  assert.equal(body.message, "Tool created successfully");
  assert.deepEqual(Object.keys(body.data), [
    "id", "name", "description", "endpoint", "method", "timeout", "headers", "schema",
    "body_format", "static_fields", "problem", "created_at", "updated_at",
  ]);
  assert.equal(body.data.timeout, 10);
  assert.match(body.data.created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
  const bad = await server.call("POST", "/user/tools", {
    body: {
      name: "Look-Up", endpoint: "ftp://x", method: "TRACE", timeout: 31,
      headers: [{ name: "Host", value: "x" }, { name: "a b", value: "x" }],
      schema: [{ name: "x", type: "object", description: "?" }],
    },
  });
  assert.equal(bad.status, 422);
  const rule = "must contain only lowercase letters and underscores, and start with a letter.";
  assert.equal(bad.body.message, `The name field ${rule}`);
  assert.deepEqual(bad.body.errors.name, [`Tool name ${rule}`]);
  assert.deepEqual(bad.body.errors.description, ["The description field is required."]);
  for (const field of ["endpoint", "method", "timeout", "headers.1.name", "schema.0.name",
    "schema.0.type", "schema.0.description"]) {
    assert.ok(bad.body.errors[field], field);
  }
});

test("[TL2] list is a bare array, get is bare, update changes what is sent, lists as a whole", async () => {
  const { key } = await server.newAccount();
  const { id } = await newTool({}, key);
  const list = await server.call("GET", "/user/tools", { key });
  assert.deepEqual(list.body.map((tool: { id: number }) => tool.id), [id]);
  const changed = await server.call("PUT", `/user/tools/${id}`, {
    key, body: { timeout: 3, headers: [], schema: null },
  });
  assert.equal(changed.body.message, "Tool updated successfully");
  const { timeout, headers, schema, name } = changed.body.data;
  assert.deepEqual({ timeout, headers, schema, name }, {
    timeout: 3, headers: [], schema: [], name: "look_up",
  });
  assert.deepEqual((await server.call("GET", `/user/tools/${id}`, { key })).body, changed.body.data);
  const bad = await server.call("PUT", `/user/tools/${id}`, { key, body: { name: "9" } });
  assert.equal(bad.status, 422);
  assert.equal(bad.body.message, "Validation failed");
});

test("[TL3] another account's tool answers 404, and 422 on an assistant; deleting detaches it", async () => {
  const other = await server.newAccount();
  const { id } = await newTool();
  for (const method of ["GET", "PUT", "DELETE"]) {
    const { status, body } = await server.call(method, `/user/tools/${id}`, {
      key: other.key, ...(method === "PUT" ? { body: {} } : {}),
    });
    assert.equal(status, 404);
    assert.deepEqual(body, { message: "Tool not found" });
  }
  const stranger = await newAssistant(server, {}, other.key);
  const attach = await server.call("PATCH", `/user/assistant/${stranger.id}`, {
    key: other.key, body: { tool_ids: [id] },
  });
  assert.equal(attach.status, 422);
  assert.ok(attach.body.errors["tool_ids.0"]);
  const assistant = await newAssistant(server, { tool_ids: [id] });
  const gone = await server.call("DELETE", `/user/tools/${id}`);
  assert.deepEqual(gone.body, { message: "Tool deleted successfully" });
  const { body } = await server.call("GET", `/user/assistant/${assistant.id}`);
  assert.deepEqual(body.tool_ids ?? body.data?.tool_ids, []);
});

test("[TL4] the plan caps the tools of an account and the refusal names the cap", async () => {
  const { key } = await server.newAccount();
  for (let count = 0; count < 100; count += 1) await newTool({}, key);
  const { status, body } = await server.call("POST", "/user/tools", { key, body: toolBody() });
  assert.equal(status, 422);
  assert.deepEqual(body, {
    message: "You have reached your plan limit of 100 mid call tools. "
      + "Please upgrade your plan to create more tools.",
  });
});

test("[TL5] a call sends validated arguments, configured headers and a stable key, and is reported", async () => {
  endpoint.answer((_, response) => response.end('{"price":79,"note":"a\\u202eb"}'));
  const { message, calls, uuid } = await turnWith({}, { item: "tube", count: "2", other: 1 });
  assert.equal(message, "Done.");
  assert.equal(endpoint.requests.length, 1);
  const [sent] = endpoint.requests;
  assert.equal(sent?.method, "POST");
  assert.deepEqual(JSON.parse(sent?.body ?? ""), { item: "tube", count: 2 });
  assert.equal(sent?.headers.authorization, SECRET);
  assert.match(String(sent?.headers["idempotency-key"]), /^[0-9a-f]{40}$/);
  assert.deepEqual(calls, [{
    name: "look_up", arguments: { item: "tube", count: "2", other: 1 },
    result: { price: 79, note: "ab" },
  }]);
  const { body } = await server.call("GET", `/conversations/${uuid}`);
  assert.deepEqual(body.history.at(-1).function_calls, calls);
});

test("[TL6] placeholders are encoded for their position; the rest goes into query or body", async () => {
  const path = `${endpoint.url}/a/{item}/b?who={{assistant_name}}`;
  await turnWith({ endpoint: path, method: "GET" }, { item: "x/../é?&#", count: 3 });
  const asked = new URL(endpoint.requests[0]?.url ?? "", endpoint.url);
  assert.equal(asked.pathname, "/a/x%2F..%2F%C3%A9%3F%26%23/b");
  assert.deepEqual([...asked.searchParams], [["who", "Front desk"], ["count", "3"]]);
  const { calls } = await turnWith({ endpoint: path, method: "DELETE" }, { item: "..", count: 3 });
  assert.deepEqual(calls[0]?.result, { error: "The argument item cannot be used in the URL." });
  assert.equal(endpoint.requests.length, 1);
});

test("[TL7] invalid arguments never reach the endpoint", async () => {
  for (const args of [{ item: "x" }, { item: { a: 1 }, count: 1 }, { item: "x", count: "many" }]) {
    const { calls } = await turnWith({}, args);
    assert.match(String(calls[0]?.result.error), /^The argument (count|item) (is missing|must be)/);
  }
  assert.equal(endpoint.requests.length, 0);
});

test("[TL8] failures have a short fixed text that reveals neither secrets nor causes", async () => {
  const cases: [RegExp, Parameters<typeof endpoint.answer>[0], object?][] = [
    [/status 500/, (_, response) => response.writeHead(500).end("stack trace " + SECRET)],
    [/redirect/, (_, response) => response.writeHead(302, { location: "http://169.254.169.254" }).end()],
    [/too much data/, (_, response) => response.end("x".repeat(LIMITS.toolResponseBytesMax + 1))],
    [/could not be reached/, (_, response) => response.destroy()],
    [/in time/, () => undefined, { timeout: 1 }],
    [/in time/, (_, response) => {
      const drip = setInterval(() => response.write(" "), 50);
      response.on("close", () => clearInterval(drip));
    }, { timeout: 1 }],
  ];
  for (const [text, answer, changes] of cases) {
    endpoint.answer(answer);
    const { calls, message } = await turnWith(changes ?? {}, { item: "x", count: 1 });
    assert.equal(message, "Done.");
    assert.match(String(calls[0]?.result.error), text);
    assert.ok(!JSON.stringify(calls).includes("canary"));
  }
});

test("[TL9] a long or odd reply becomes a bounded, clean result", async () => {
  endpoint.answer((_, response) => response.end(`<p>${"y".repeat(20_000)}</p>`));
  const long = await turnWith({}, { item: "x", count: 1 });
  assert.equal(long.calls[0]?.result.truncated, true);
  assert.ok(JSON.stringify(long.calls[0]?.result).length < LIMITS.functionResultCharsMax + 100);
  endpoint.answer((_, response) => response.end('[1,{"__proto__":{"a":1},"b":2}]'));
  const list = await turnWith({}, { item: "x", count: 1 });
  assert.deepEqual(list.calls[0]?.result, { data: [1, { b: 2 }] });
});

test("[TL178] compressed or differently encoded answers are read, or reported", async () => {
  const said = '{"city":"Zürich"}';
  const packed = "The tool's endpoint compressed its answer in an unsupported way.";
  const large = "The tool's endpoint sent too much data.";
  const gzip = { "content-encoding": "gzip" };
  const latin = { "content-type": "application/json; charset=ISO-8859-1" };
  const cases: [headers: Record<string, string>, body: Buffer, result: object][] = [
    [gzip, gzipSync(said), { city: "Zürich" }],
    [{ "content-encoding": "deflate" }, deflateSync(said), { city: "Zürich" }],
    [{ "content-encoding": "BR" }, brotliCompressSync(said), { city: "Zürich" }],
    [{ "content-encoding": "zstd" }, zstdCompressSync(said), { city: "Zürich" }],
    [{ "content-encoding": "identity" }, Buffer.from(said), { city: "Zürich" }],
    [gzip, Buffer.alloc(0), { text: "" }],
    [gzip, Buffer.from(said), { error: packed }],
    [{ "content-encoding": "own" }, Buffer.from(said), { error: packed }],
    [gzip, gzipSync(Buffer.alloc(LIMITS.toolResponseBytesMax + 1)), { error: large }],
    [latin, Buffer.from(said, "latin1"), { city: "Zürich" }],
    [latin, Buffer.from(said), { city: "Zürich" }],
    [{ "content-type": "text/plain; charset=none" }, Buffer.from("a\xff", "latin1"),
      { text: "a\ufffd" }],
    [{}, Buffer.from(`\ufeff${said}`), { city: "Zürich" }],
    [{}, Buffer.from(`\ufeff${said}`, "utf16le"), { city: "Zürich" }],
  ];
  for (const [headers, body, result] of cases) {
    endpoint.answer((_, response) => response.writeHead(200, headers).end(body));
    const { calls } = await turnWith({}, { item: "x", count: 1 });
    assert.deepEqual(calls[0]?.result, result, JSON.stringify(headers));
  }
  endpoint.answer((_, response) => response.writeHead(503, gzip).end("no"));
  const { calls } = await turnWith({}, { item: "x", count: 1 });
  assert.deepEqual(calls[0]?.result, { error: "The tool's endpoint answered with status 503." });
});

test("[TL10] the same call repeated in one turn has one effect and the first result", async () => {
  const { calls } = await turnWith({}, { item: "x", count: 1 }, 2);
  assert.equal(calls.length, 2);
  assert.deepEqual(calls[0]?.result, calls[1]?.result);
  assert.equal(endpoint.requests.length, 1);
});

test("[TL11] a call with a lost outcome is reported as unknown, and not sent again", async () => {
  const { id } = await newTool();
  const assistant = await newAssistant(server, { tool_ids: [id] });
  const uuid = await newConversation(server, assistant.uuid);
  let isBroken = true;
  model.script((body) => {
    const answered = body.messages.some(({ role }) => role === "tool");
    if (!answered) {
      const call = { id: "c", name: "look_up", arguments: '{"item":"x","count":1}' };
      return { tokens: [], toolCalls: [call], finishReason: "tool_calls" };
    }
    return isBroken ? { status: 400 } : { tokens: ["Done."] };
  });
  const post = () => server.call("POST", `/conversations/${uuid}/messages`, {
    body: { message: "Look it up" }, headers: { "Idempotency-Key": "k" },
  });
  assert.equal((await post()).status, 400);
  assert.equal(endpoint.requests.length, 1);
  // As a crash between sending and journaling leaves it.
  await runBeside(server.dataDir, `UPDATE tool_calls SET state = 'sent', result = NULL
    WHERE id = (SELECT max(id) FROM tool_calls)`);
  isBroken = false;
  const again = await post();
  model.script(null);
  assert.equal(again.status, 200);
  assert.match(again.body.function_calls[0].result.error, /unknown/);
  assert.equal(endpoint.requests.length, 1);
});

test("[TL12] header values appear nowhere in the database, its events or the metrics", async () => {
  await turnWith({}, { item: "x", count: 1 });
  const tables = await rowsBeside<{ name: string }>(server.dataDir, isOverPostgres
    ? "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'"
    : "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'chunk_index%'");
  assert.ok(tables.length > 20);
  for (const { name } of tables) {
    const text = JSON.stringify(await rowsBeside(server.dataDir, `SELECT * FROM ${name}`));
    assert.ok(!text.includes("canary"), name);
  }
  assert.ok(!(await (await fetch(`${server.url}/metrics`)).text()).includes("canary"));
  assert.ok(model.requests.every((request) => !JSON.stringify(request).includes("canary")));
});

test("[TL141][NP7] a tool's owner sees its last calls with their times and results", async () => {
  const { calls: [first] } = await turnWith({}, { item: "tube", count: 1 });
  assert.deepEqual(first?.result, { ok: true });
  const tools = await server.call("GET", "/user/tools");
  const { id } = tools.body.at(-1) as { id: number };
  const tool = await server.app.features.tools.find(server.accountId, id);
  assert.ok(tool);
  endpoint.answer((_, response) => response.writeHead(500).end());
  for (let number = 0; number < 20; number += 1) {
    await server.app.features.invokeTool(
      tool, { item: "tube", count: number }, { scope: `test:${number}`, variables: {} });
  }
  const { status, body } = await server.call("GET", `/user/tools/${id}/calls`);
  assert.equal(status, 200);
  assert.equal(body.length, 20);
  const [newest] = body;
  assert.deepEqual(
    [newest.state, newest.result],
    ["failed", { error: "The tool's endpoint answered with status 500." }]);
  assert.ok(Number.isInteger(newest.duration_ms) && !Number.isNaN(Date.parse(newest.created_at)));
  const numbers = body.map(({ id: number }: { id: number }) => number);
  assert.deepEqual(numbers, numbers.toSorted((a: number, b: number) => b - a));
  await runBeside(
    server.dataDir, `UPDATE tool_calls SET finished_at = created_at - 1000 WHERE id = ${newest.id}`);
  const { body: [setBack] } = await server.call("GET", `/user/tools/${id}/calls`);
  assert.deepEqual([setBack.id, setBack.duration_ms], [newest.id, 0]);
  const { body: mine } = await server.call("GET", `/user/tools/${(await newTool()).id}/calls`);
  assert.deepEqual(mine, []);
  const other = await server.newAccount();
  assert.equal((await server.call("GET", `/user/tools/${id}/calls`, { key: other.key })).status, 404);
});

test("[TL13] calls are streamed as they begin and end", async () => {
  const { id } = await newTool();
  const assistant = await newAssistant(server, { tool_ids: [id] });
  const uuid = await newConversation(server, assistant.uuid);
  let step = 0;
  model.script(() => {
    step += 1;
    if (step > 1) return { tokens: ["Done."] };
    const call = { id: "c", name: "look_up", arguments: '{"item":"x","count":1}' };
    return { tokens: ["Wait."], toolCalls: [call], finishReason: "tool_calls" };
  });
  const response = await fetch(`${server.url}/api/conversations/${uuid}/messages`, {
    method: "POST",
    headers: { Accept: "text/event-stream", "Content-Type": "application/json" },
    body: JSON.stringify({ message: "Look" }),
  });
  const types = [...(await response.text()).matchAll(/^event: (\w+)$/gm)].map(([, type]) => type);
  model.script(null);
  const told = types.filter((type, index) => type !== types[index - 1]);
  assert.deepEqual(told, [
    "message_added", "reply_start", "reply_delta", "function_call_start", "function_call_end",
    "reply_delta", "reply_end", "message_added",
  ]);
});

test("[TL14] end_call lets the assistant end a text conversation", async () => {
  const assistant = await newAssistant(server, { tools: [{ type: "end_call" }] });
  const uuid = await newConversation(server, assistant.uuid);
  model.script(callingOnce("end_conversation", {}, ["Goodbye."]));
  const { body } = await server.call("POST", `/conversations/${uuid}/messages`, {
    body: { message: "Bye" },
  });
  model.script(null);
  assert.deepEqual(body.function_calls[0].result, { ended: true });
  assert.equal((await server.app.features.conversations.get(uuid)).state, "ended");
  const stream = await fetch(`${server.url}/api/conversations/${uuid}/stream?after=0`);
  const reader = stream.body?.pipeThrough(new TextDecoderStream()).getReader();
  let told = "";
  while (!told.includes("conversation_ended")) told += (await reader?.read())?.value ?? "";
  assert.match(told, /"reason":"assistant"/);
  await reader?.cancel();
});

test("[OB1] only public addresses, plain ports and honest URLs pass, unless the operator allows others", () => {
  const strict = createAddressPolicy([]);
  const refused = [
    "http://127.0.0.1", "http://127.1", "http://2130706433", "http://0x7f.1", "http://0177.0.0.1",
    "http://１２７.0.0.1", "http://[::1]", "http://[::ffff:127.0.0.1]", "http://[::7f00:1]",
    "http://169.254.169.254", "http://168.63.129.16", "http://100.100.100.200", "http://10.0.0.1",
    "http://192.168.1.1", "http://[fd00:ec2::254]", "http://[64:ff9b::7f00:1]", "http://[fe80::1]",
    "http://[2002:7f00:1::]", "http://0.0.0.0", "http://user:pass@example.com",
    "http://example.com:22", "http://example.com:6379", "ftp://example.com", "file:///etc/passwd",
    "http://metadata.google.internal", "http://metadata.google.internal.", "javascript:alert(1)",
    `http://example.com/${"x".repeat(2100)}`, "http://", "",
  ];
  for (const url of refused) assert.equal(strict.readUrl(url), null, url);
  for (const url of ["http://example.com", "https://93.184.215.14", "http://example.com:8080/a?b"]) {
    assert.ok(strict.readUrl(url), url);
  }
  const open = createAddressPolicy(["10.0.0.0/8", "::1"]);
  assert.ok(open.readUrl("http://10.1.2.3"));
  assert.ok(open.readUrl("http://[::1]:8080"));
  assert.equal(open.readUrl("http://192.168.1.1"), null);
});

test("[OB2] a name that resolves to a private address is refused and never connected to", async () => {
  const trap = createServer((socket) => socket.destroy()).listen(0, "127.0.0.1");
  await once(trap, "listening");
  let connections = 0;
  trap.on("connection", () => (connections += 1));
  const { port } = trap.address() as AddressInfo;
  const outbound = createOutbound({ allowPrivateNetworks: [] });
  for (const host of ["localhost", "127.0.0.1", "[::ffff:127.0.0.1]"]) {
    const reply = await outbound.request({
      url: `http://${host}:${port}/`, method: "GET", totalMs: 2000, bytesMax: 1000,
    });
    assert.equal(reply.kind, "refused", host);
  }
  assert.equal(connections, 0);
  await outbound.close();
  trap.close();
});
