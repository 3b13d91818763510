// A tool tried by its owner: the same request and the same rules as in a turn, shown.
import assert from "node:assert/strict";
import { after, beforeEach, test } from "node:test";
import { LIMITS } from "#core/limits.ts";
import { createAddressPolicy } from "#outbound/addresses.ts";
import { mayNotBeCalled } from "#outbound/unreachable.ts";
import { rowsBeside } from "#support/databases/beside.ts";
import { startEndpoint } from "#support/endpoint.ts";
import { startTestServer } from "#support/server.ts";

const endpoint = await startEndpoint();
const env = { PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8" };
const server = await startTestServer({ env });
after(async () => {
  await server.close();
  await endpoint.close();
});
beforeEach(() => {
  endpoint.requests.length = 0;
  endpoint.answer((_, response) => response.end('{"ok":true}'));
});

const INSIDE = "The tool's endpoint may not be called: its address is private or on this machine, "
  + "which the operator of the server must allow (PARLEY_ALLOW_PRIVATE_NETWORKS).";
const NO_WEB_URL = "its URL must be http or https, without a password, on a port used for web servers";
const SECRET = "Bearer canary-77d1";
const ARGUMENTS = { item: "tube", count: "2", other: 1 };
const toolBody = (changes: object = {}) => ({
  name: "look_up",
  description: "Looks something up",
  endpoint: `${endpoint.url}/items`,
  method: "POST",
  headers: [{ name: "Authorization", value: SECRET }, { name: "X-Who", value: "{{who}}" }],
  schema: [
    { name: "item", type: "string", description: "What to look up" },
    { name: "count", type: "number", description: "How many of them" },
  ],
  ...changes,
});

async function newTool(changes: object = {}, at = server): Promise<number> {
  const { status, body } = await at.call("POST", "/user/tools", { body: toolBody(changes) });
  assert.equal(status, 201, JSON.stringify(body));
  return body.data.id as number;
}

const tryTool = (id: number, body: object = { arguments: ARGUMENTS }, key = server.key) =>
  server.call("POST", `/user/tools/${id}/try`, { key, body });

test("[TL80] a trial sends what a turn would send, and shows it with secrets masked", async () => {
  endpoint.answer((_, response) => {
    response.setHeader("content-type", "application/json");
    response.setHeader("set-cookie", "session=1");
    response.end('{"price":79,"note":"a\\u202eb"}');
  });
  const id = await newTool();
  const { status, body } = await tryTool(id, { arguments: ARGUMENTS, variables: { who: "Eva" } });
  assert.equal(status, 200);
  assert.equal(endpoint.requests.length, 1);
  const [sent] = endpoint.requests;
  assert.equal(sent?.headers.authorization, SECRET);
  assert.equal(sent?.headers["x-who"], "Eva");
  assert.deepEqual(JSON.parse(sent?.body ?? ""), { item: "tube", count: 2 });
  assert.ok(Number.isInteger(body.duration_ms));
  const { duration_ms: _, ...shown } = body;
  assert.deepEqual(shown, {
    ok: true,
    request: {
      method: sent?.method,
      url: endpoint.url + String(sent?.url),
      headers: {
        authorization: "***",
        "x-who": "***",
        "content-type": sent?.headers["content-type"],
        "idempotency-key": sent?.headers["idempotency-key"],
      },
      body: sent?.body,
    },
    response: {
      status: 200,
      headers: { "content-type": "application/json" },
      body: '{"price":79,"note":"a\\u202eb"}',
    },
    result: { price: 79, note: "ab" },
    error: null,
  });
  assert.ok(!JSON.stringify(body).includes("canary"));
});

test("[TL140] a tool can be tried before it is saved, under the same rules, and nothing is stored", async () => {
  const { body: before } = await server.call("GET", "/user/tools");
  const tried = (changes: object) => server.call("POST", "/user/tools/try", {
    body: { ...toolBody(), arguments: ARGUMENTS, variables: { who: "Eva" }, ...changes },
  });
  const { status, body } = await tried({});
  assert.equal(status, 200, JSON.stringify(body));
  assert.deepEqual([body.ok, body.result, body.request.headers.authorization], [true, { ok: true }, "***"]);
  const [sent] = endpoint.requests;
  assert.deepEqual([sent?.headers.authorization, sent?.headers["x-who"]], [SECRET, "Eva"]);
  assert.deepEqual(JSON.parse(sent?.body ?? ""), { item: "tube", count: 2 });
  const wrong: [changes: object, field: string][] = [
    [{ name: "Not So" }, "name"], [{ endpoint: "ftp://x" }, "endpoint"],
    [{ arguments: {} }, "arguments.item"], [{ headers: [{ name: "Host", value: "x" }] }, "headers.0.name"],
  ];
  for (const [changes, field] of wrong) {
    const refused = await tried(changes);
    assert.equal(refused.status, 422);
    assert.ok(refused.body.errors[field], JSON.stringify(refused.body));
  }
  assert.equal((await tried({ endpoint: "http://10.0.0.1/x" })).body.error, INSIDE);
  const reader = await server.app.features.accounts.createKey(
    server.accountId, "reads", { scopes: ["read"] });
  const readOnly = await server.call("POST", "/user/tools/try", {
    body: { ...toolBody(), arguments: ARGUMENTS }, key: reader.token,
  });
  assert.equal(readOnly.status, 403);
  assert.equal(endpoint.requests.length, 1);
  assert.deepEqual((await server.call("GET", "/user/tools")).body, before);
});

test("[TL81] a trial's result is the one a turn gets, whatever the endpoint answers", async () => {
  const { tools, invokeTool } = server.app.features;
  const long = "x".repeat(LIMITS.functionResultCharsMax * 2);
  const answers: [status: number, body: string][] = [
    [200, '{"a":[1,{"b":null}]}'], [200, "[1,2]"], [200, "plain\u202e text"], [200, ""],
    [201, long], [200, JSON.stringify({ long })], [404, '{"why":"gone"}'], [302, ""], [500, long],
    [200, "y".repeat(LIMITS.toolResponseBytesMax + 1)],
  ];
  const id = await newTool();
  const tool = await tools.find(server.accountId, id);
  assert.ok(tool);
  for (const [index, [status, text]] of answers.entries()) {
    endpoint.answer((_, response) => response.writeHead(status).end(text));
    const turn = await invokeTool(tool, ARGUMENTS, { scope: `test:${index}`, variables: {} });
    const { body } = await tryTool(id);
    assert.deepEqual(body.result, turn, `${status} ${text.slice(0, 20)}`);
    assert.equal(body.ok, !("error" in turn));
    assert.equal(body.error, turn.error ?? null);
    if (text.length > LIMITS.toolResponseBytesMax) {
      assert.equal(body.response, null);
      continue;
    }
    assert.equal(body.response.status, status);
    assert.equal(body.response.body, text.replace("\u202e", "").slice(0, LIMITS.functionResultCharsMax));
  }
});

test("[OB3] a refused private address names the setting that allows it; other URLs, the form they need", () => {
  for (const [url, why] of [
    ["http://127.0.0.1:3999/x", INSIDE], ["http://[::1]/", INSIDE], ["http://100.64.0.1/", INSIDE],
    ["http://user@127.0.0.1/", `The tool's endpoint may not be called: ${NO_WEB_URL}.`],
    ["https://example.com:22/", `The tool's endpoint may not be called: ${NO_WEB_URL}.`],
  ] as const) {
    const reason = createAddressPolicy([]).refusalOf(url);
    assert.equal(`${mayNotBeCalled("The tool's endpoint", reason)}.`, why, url);
  }
});

test("[TL82] refusals, timeouts and dead endpoints are reported in the words a model gets", async () => {
  const hung = Promise.withResolvers<void>();
  endpoint.answer(() => hung.resolve());
  const gone = await startEndpoint();
  await gone.close();
  const cases: [changes: object, error: string][] = [
    [{ endpoint: "http://10.0.0.1/x" }, INSIDE],
    [{ endpoint: "http://169.254.169.254/latest" }, INSIDE],
    [{ endpoint: gone.url }, "The tool's endpoint could not be reached: the connection was refused."],
    [{ timeout: 1 }, "The tool's endpoint did not answer in time."],
    [{ endpoint: "http://{item}.example.com/", method: "GET" },
      `The tool's endpoint may not be called: ${NO_WEB_URL}.`],
  ];
  for (const [changes, error] of cases) {
    const { status, body } = await tryTool(await newTool(changes), {
      arguments: { item: "no host", count: 1 },
    });
    assert.equal(status, 200);
    assert.deepEqual([body.ok, body.error, body.response], [false, error, null]);
    assert.deepEqual(body.result, { error });
  }
  await hung.promise;
  assert.equal(endpoint.requests.length, 1, "the one that hung");
});

test("[TL83] invalid arguments are named, and nothing is called", async () => {
  const id = await newTool({ endpoint: `${endpoint.url}/{item}` });
  const cases: [given: object, field: string, message: string][] = [
    [{ arguments: { item: "x" } }, "arguments.count", "The argument count is missing."],
    [{ arguments: { item: "x", count: "many" } }, "arguments.count",
      "The argument count must be a number."],
    [{ arguments: { item: [], count: 1 } }, "arguments.item", "The argument item must be a string."],
    [{ arguments: { item: "..", count: 1 } }, "arguments.item",
      "The argument item cannot be used in the URL."],
    [{}, "arguments.item", "The argument item is missing."],
  ];
  for (const [given, field, message] of cases) {
    const { status, body } = await tryTool(id, given);
    assert.equal(status, 422);
    assert.deepEqual(body, { message, errors: { [field]: [message] } });
  }
  for (const given of [{ arguments: [] }, { arguments: ARGUMENTS, variables: { a: { b: 1 } } }]) {
    const { status, body } = await tryTool(id, given);
    assert.equal(status, 422);
    assert.ok(body.errors, JSON.stringify(body));
  }
  assert.equal(endpoint.requests.length, 0);
});

test("[TL84] another account's tool answers 404, a read-only key 403; nothing is called", async () => {
  const id = await newTool();
  const other = await server.newAccount();
  for (const [tried, key] of [[id, other.key], [id + 1000, server.key]] as const) {
    const { status, body } = await tryTool(tried, undefined, key);
    assert.deepEqual([status, body], [404, { message: "Tool not found" }]);
  }
  const { token } = await server.app.features.accounts.createKey(
    server.accountId, "reader", { scopes: ["read"] });
  assert.equal((await tryTool(id, undefined, token)).status, 403);
  assert.equal((await server.call("POST", `/user/tools/${id}/try`, { key: null })).status, 401);
  assert.equal(endpoint.requests.length, 0);
});

test("[TL85] every trial is a call of its own and leaves nothing behind", async () => {
  const id = await newTool();
  for (let count = 0; count < 2; count += 1) assert.equal((await tryTool(id)).body.ok, true);
  const keys = endpoint.requests.map(({ headers }) => headers["idempotency-key"]);
  assert.equal(new Set(keys).size, 2);
  assert.deepEqual(
    await rowsBeside(server.dataDir, "SELECT id FROM tool_calls WHERE tool_id = @id", { id }), []);
});

test("[TL86] trials count against the key's rate limit like any other write", async () => {
  const strict = await startTestServer({
    env: { ...env, PARLEY_RATE_LIMITS: "on", PARLEY_RATE_KEY_BURST: "2" },
  });
  const id = await newTool({}, strict);
  const again = () => strict.call("POST", `/user/tools/${id}/try`, { body: { arguments: ARGUMENTS } });
  assert.equal((await again()).status, 200);
  assert.equal((await again()).status, 429);
  assert.equal(endpoint.requests.length, 1);
  await strict.close();
});
