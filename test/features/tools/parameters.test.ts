// What tools send beside plain parameters: optional ones, choices, arrays, forms, fields that are
// always sent; and who reads the secrets among it.
import assert from "node:assert/strict";
import { after, beforeEach, test } from "node:test";
import { LIMITS } from "#core/limits.ts";
import { startEndpoint } from "#support/endpoint.ts";
import { newAssistant, newConversation, startTestServer, testDataDir } from "#support/server.ts";
import { callingOnce, startScriptedModel } from "#support/vendors/scripted-model.ts";

const endpoint = await startEndpoint();
const model = await startScriptedModel();
const env = { PARLEY_MODEL_URL: model.url, PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8" };
const server = await startTestServer({ env });
after(async () => {
  await server.close();
  await Promise.all([model.close(), endpoint.close()]);
});
beforeEach(() => void (endpoint.requests.length = 0));

const SCHEMA = [
  { name: "item", type: "string", description: "What to order", enum: ["tube", "tyre"] },
  { name: "count", type: "float", description: "How many", required: false },
  {
    name: "sizes", type: "array", description: "Which sizes", required: false,
    items: { type: "number" }, enum: [26, 28],
  },
  { name: "notes", type: "array", description: "What else", required: false },
];
const toolBody = (changes: object = {}) => ({
  name: "place_order", description: "Orders", endpoint: `${endpoint.url}/orders`, method: "POST",
  schema: SCHEMA, ...changes,
});

async function newTool(changes: object = {}): Promise<number> {
  const { status, body } = await server.call("POST", "/user/tools", { body: toolBody(changes) });
  assert.equal(status, 201, JSON.stringify(body));
  return body.data.id as number;
}

const trial = (id: number, args: object, variables: object = {}) =>
  server.call("POST", `/user/tools/${id}/try`, { body: { arguments: args, variables } });

test("[TL111] the model is told which parameters are optional, their choices and which are lists", async () => {
  const id = await newTool();
  const assistant = await newAssistant(server, { tool_ids: [id] });
  const uuid = await newConversation(server, assistant.uuid);
  model.script(callingOnce("place_order", { item: "tube", sizes: [26] }, ["Done."]));
  const { body } = await server.call("POST", `/conversations/${uuid}/messages`, {
    body: { message: "A tube please" },
  });
  model.script(null);
  assert.equal(body.message, "Done.");
  assert.deepEqual(JSON.parse(endpoint.requests[0]?.body ?? ""), { item: "tube", sizes: [26] });
  const told = model.requests.at(-1)?.tools?.[0] as { function: { parameters: unknown } };
  assert.deepEqual(told.function.parameters, {
    type: "object",
    properties: {
      item: { type: "string", enum: ["tube", "tyre"], description: "What to order" },
      count: { type: "number", description: "How many" },
      sizes: {
        type: "array", items: { type: "number", enum: [26, 28] }, description: "Which sizes",
      },
      notes: { type: "array", items: { type: "string" }, description: "What else" },
    },
    required: ["item"],
    additionalProperties: false,
  });
});

test("[TL301] long arguments and long answers are cut between two characters", async (context) => {
  context.after(() => endpoint.answer((_, response) => response.end("{}")));
  endpoint.answer((_, response) => response.end(`${"a".repeat(8191)}😀`));
  const id = await newTool({ schema: [{ name: "item", type: "string", description: "What" }] });
  const { body } = await trial(id, { item: `${"a".repeat(1999)}😀` });
  const sent = JSON.parse(endpoint.requests[0]?.body ?? "") as { item: string };
  assert.equal(sent.item, "a".repeat(1999));
  assert.deepEqual(body.result, { text: "a".repeat(8191), truncated: true });
  assert.equal(body.response.body, "a".repeat(8191));
});

test("[FA7] an answer many times longer than a result is not read as JSON", async (context) => {
  context.after(() => endpoint.answer((_, response) => response.end("{}")));
  const id = await newTool({ schema: [] });
  const resultOf = async (answer: string) => {
    endpoint.answer((_, response) => response.end(answer));
    return (await trial(id, {})).body.result;
  };
  const spaces = (times: number) => " ".repeat(times * LIMITS.functionResultCharsMax);
  assert.deepEqual(await resultOf(`{"a":1}${spaces(15)}`), { a: 1 });
  assert.equal((await resultOf(`{"a":1}${spaces(16)}`)).truncated, true);
});

test("[OU1] half an emoji among the arguments or variables of a call is replaced, not a failure", async () => {
  const half = "tube\ud83d";
  const endpointOf = { endpoint: `${endpoint.url}/{item}?for={{who}}`, method: "GET" };
  const id = await newTool({
    ...endpointOf, schema: [{ name: "item", type: "string", description: "What" }],
  });
  const { status, body } = await trial(id, { item: half }, { who: "Eva\udc00" });
  assert.equal(status, 200, JSON.stringify(body));
  const assistant = await newAssistant(server, { tool_ids: [id] });
  const uuid = await newConversation(server, assistant.uuid);
  model.script(callingOnce("place_order", { item: half }, ["Done."]));
  const sent = await server.call("POST", `/conversations/${uuid}/messages`, {
    body: { message: "A tube please" },
  });
  model.script(null);
  assert.equal(sent.body.message, "Done.", JSON.stringify(sent.body));
  assert.deepEqual(endpoint.requests.map(({ url }) => decodeURIComponent(url)), [
    "/tube\ufffd?for=Eva\ufffd", "/tube\ufffd?for=",
  ]);
});

test("[TL112] arguments are converted by their parameters; those that do not fit are named", async () => {
  const id = await newTool();
  const fits = await trial(id, { item: "tyre", count: null, sizes: ["26", 28], notes: "soon" });
  assert.equal(fits.status, 200);
  assert.deepEqual(JSON.parse(fits.body.request.body), {
    item: "tyre", sizes: [26, 28], notes: ["soon"],
  });
  const cases: [object, string, string][] = [
    [{ count: 1 }, "item", "The argument item is missing."],
    [{ item: "pump" }, "item", "The argument item must be one of: tube, tyre."],
    [{ item: "tube", sizes: [27] }, "sizes", "The argument sizes may only contain: 26, 28."],
    [{ item: "tube", sizes: ["x"] }, "sizes", "The argument sizes must be an array of numbers."],
    [{ item: "tube", notes: [{}] }, "notes", "The argument notes must be an array of strings."],
    [{ item: "tube", notes: Array(51).fill("x") }, "notes",
      "The argument notes may not have more than 50 items."],
  ];
  endpoint.requests.length = 0;
  for (const [args, argument, message] of cases) {
    const { status, body } = await trial(id, args);
    assert.equal(status, 422);
    assert.deepEqual(body, { message, errors: { [`arguments.${argument}`]: [message] } });
  }
  assert.equal(endpoint.requests.length, 0);
});

test("[TL113] forms, lists and static fields are sent as the tool defines", async () => {
  const sent = async (changes: object, args: object) => {
    const { status, body } = await trial(await newTool(changes), args, { who: "Eva & Co" });
    assert.equal(status, 200, JSON.stringify(body));
    return endpoint.requests.at(-1)!;
  };
  const static_fields = [{ key: "by[name]", value: "{{who}}" }, { key: "channel", value: "voice" }];
  const args = { item: "tube", notes: ["a b", "c"], channel: "mine" };
  const json = await sent({ static_fields }, args);
  assert.deepEqual(JSON.parse(json.body), {
    item: "tube", notes: ["a b", "c"], "by[name]": "Eva & Co", channel: "voice",
  });
  const form = await sent({ static_fields, body_format: "form" }, args);
  assert.equal(form.headers["content-type"], "application/x-www-form-urlencoded");
  assert.deepEqual([...new URLSearchParams(form.body)], [
    ["item", "tube"], ["notes", "a b"], ["notes", "c"], ["by[name]", "Eva & Co"],
    ["channel", "voice"],
  ]);
  const query = await sent({
    static_fields, method: "GET", endpoint: `${endpoint.url}/{item}/x{count}y?for={{who}}`,
  }, args);
  const asked = new URL(query.url, endpoint.url);
  assert.equal(asked.pathname, "/tube/xy");
  assert.deepEqual([...asked.searchParams], [
    ["for", "Eva & Co"], ["notes", "a b"], ["notes", "c"], ["by[name]", "Eva & Co"],
    ["channel", "voice"],
  ]);
});

test("[TL177] names with spaces are filled in in endpoint, headers and static fields", async () => {
  const { status, body } = await trial(await newTool({
    schema: [], method: "GET", endpoint: `${endpoint.url}/for/{{Customer Name}}`,
    headers: [{ name: "X-Who", value: "{{ Customer Name }}" }],
    static_fields: [{ key: "who", value: "{{Customer Name}}!" }, { key: "no", value: "<{{No One}}>" }],
  }), {}, { "Customer Name": "Eva & Co" });
  assert.equal(status, 200, JSON.stringify(body));
  const { url, headers } = endpoint.requests.at(-1)!;
  assert.equal(url, "/for/Eva%20%26%20Co?who=Eva+%26+Co%21&no=%3C%3E");
  assert.equal(headers["x-who"], "Eva & Co");
});

test("[TL114] a contradictory definition is refused, field by field", async () => {
  const { status, body } = await server.call("POST", "/user/tools", {
    body: toolBody({
      body_format: "xml",
      schema: [
        { name: "item", type: "string", description: "What", enum: [1] },
        { name: "is_new", type: "boolean", description: "Whether", enum: ["true"] },
        { name: "count", type: "number", description: "How many", items: { type: "number" } },
      ],
      static_fields: [{ key: "item", value: "x" }, { key: "a", value: "x" }, { key: "a", value: "y" }],
    }),
  });
  assert.equal(status, 422);
  assert.deepEqual(Object.keys(body.errors).sort(), [
    "body_format", "schema.0.enum", "schema.1.enum", "schema.2.items", "static_fields.0.key",
    "static_fields.2.key",
  ]);
  const id = await newTool();
  const changed = await server.call("PATCH", `/user/tools/${id}`, {
    body: { static_fields: [{ key: "notes", value: "x" }] },
  });
  assert.equal(changed.status, 422);
  assert.ok(changed.body.errors["static_fields.0.key"]);
});

const SECRETS = {
  headers: [{ name: "Authorization", value: "Bearer canary-1" }],
  static_fields: [{ key: "token", value: "canary-2" }],
};

test("[TL115] a read-only key sees masks, and a mask sent back keeps the secret", async () => {
  const id = await newTool(SECRETS);
  const { token } = await server.app.features.accounts.createKey(
    server.accountId, "reader", { scopes: ["read"] });
  const read = await server.call("GET", `/user/tools/${id}`, { key: token });
  assert.deepEqual(read.body.headers, [{ name: "Authorization", value: "***" }]);
  assert.deepEqual(read.body.static_fields, [{ key: "token", value: "***" }]);
  const list = await server.call("GET", "/user/tools", { key: token });
  assert.equal(list.status, 200);
  assert.ok(!JSON.stringify(list.body).includes("canary"));
  const { id: _, created_at: __, ...record } = read.body;
  const back = await server.call("PUT", `/user/tools/${id}`, {
    body: {
      ...record,
      headers: [...record.headers, { name: "X-New", value: "new" }],
      static_fields: record.static_fields,
    },
  });
  assert.equal(back.status, 200, JSON.stringify(back.body));
  assert.deepEqual(back.body.data.headers, [...SECRETS.headers, { name: "X-New", value: "new" }]);
  assert.deepEqual(back.body.data.static_fields, SECRETS.static_fields);
});

test("[TL116] a tool whose secrets do not open says so, is not called, and can be written again", async () => {
  const dataDir = testDataDir();
  const first = await startTestServer({ env: { ...env, PARLEY_SECRET: "the first secret" }, dataDir });
  const { body } = await first.call("POST", "/user/tools", { body: toolBody(SECRETS) });
  const { id } = body.data as { id: number };
  const assistant = await newAssistant(first, { tool_ids: [id] });
  await first.close();
  const second = await startTestServer({ env: { ...env, PARLEY_SECRET: "the second secret" }, dataDir });
  after(() => second.close());
  const key = (await second.app.features.accounts.createKey(first.accountId, "again")).token;
  const list = await second.call("GET", "/user/tools", { key });
  assert.equal(list.status, 200);
  assert.match(list.body[0].problem, /encrypted with another PARLEY_SECRET/);
  assert.deepEqual([list.body[0].headers, list.body[0].static_fields], [[], []]);
  const tried = await second.call("POST", `/user/tools/${id}/try`, {
    key, body: { arguments: { item: "tube" } },
  });
  assert.equal(tried.status, 422);
  assert.equal(tried.body.message, list.body[0].problem);
  const uuid = await newConversation(second, assistant.uuid);
  model.script(callingOnce("place_order", { item: "tube" }, ["Done."]));
  const turn = await second.call("POST", `/conversations/${uuid}/messages`, {
    body: { message: "A tube" },
  });
  model.script(null);
  assert.match(turn.body.function_calls[0].result.error, /enter its headers again/);
  assert.equal(endpoint.requests.length, 0);
  // Renaming it loses nothing: the first secret would still open what it sealed.
  const renamed = await second.call("PATCH", `/user/tools/${id}`, { key, body: { name: "order" } });
  assert.equal(renamed.status, 200);
  assert.ok(renamed.body.data.problem);
  const healed = await second.call("PATCH", `/user/tools/${id}`, { key, body: SECRETS });
  assert.equal(healed.body.data.problem, null);
  assert.deepEqual(healed.body.data.headers, SECRETS.headers);
});
