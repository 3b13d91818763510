// Tools of MCP servers, against servers of the official SDK: listed, taken over, called by a turn
// at most once, described anew; guarded as every address.
import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { after, test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { rowsBeside } from "#support/databases/beside.ts";
import { startEndpoint } from "#support/endpoint.ts";
import { newAssistant, newConversation, startTestServer } from "#support/server.ts";
import { startMcpServer } from "#support/vendors/mcp-server.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";

const SECRET = "Bearer canary-mcp-71";
const headers = [{ name: "Authorization", value: SECRET }];
const model = await startScriptedModel();
const weather = await startMcpServer();
const server = await startTestServer({
  env: { PARLEY_MODEL_URL: model.url, PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8" },
});
after(async () => {
  await server.close();
  await Promise.all([model.close(), weather.close()]);
});

const listOf = (endpoint: string) =>
  server.call("POST", "/user/tools/mcp", { body: { endpoint, headers } });

async function newTool(tool = "get-weather", endpoint = weather.url): Promise<number> {
  const { body: { data } } = await listOf(endpoint);
  const found = (data as { name: string; description: string; input_schema: object }[])
    .find(({ name }) => name === tool);
  const { status, body } = await server.call("POST", "/user/tools", {
    body: {
      name: "weather", description: found?.description, endpoint, method: "POST", headers,
      mcp: { tool, input_schema: found?.input_schema },
    },
  });
  assert.equal(status, 201, JSON.stringify(body));
  return body.data.id as number;
}

/** A turn whose model calls the tool so often with the same arguments. */
async function turnWith(id: number, args: object, times = 1) {
  const assistant = await newAssistant(server, { tool_ids: [id] });
  const uuid = await newConversation(server, assistant.uuid);
  let step = 0;
  model.script(() => {
    step += 1;
    if (step > times) return { tokens: ["Done."] };
    const call = { id: `c${step}`, name: "weather", arguments: JSON.stringify(args) };
    return { tokens: [], toolCalls: [call], finishReason: "tool_calls" };
  });
  const { body } = await server.call("POST", `/conversations/${uuid}/messages`, {
    body: { message: "How is the weather?" },
  });
  model.script(null);
  return (body.function_calls as { result: Record<string, unknown> }[]).map(({ result }) => result);
}

test("[TL130] an assistant calls an MCP server's tool, at most once in a turn, with its secret sealed", async () => {
  const { body: list } = await listOf(weather.url);
  assert.deepEqual(list.data.map(({ name }: { name: string }) => name), ["get-weather", "fail"]);
  const id = await newTool();
  weather.asked.length = 0;
  assert.deepEqual(await turnWith(id, { city: "Oslo", days: [1, 2] }, 2),
    [{ text: "Sunny in Oslo." }, { text: "Sunny in Oslo." }]);
  assert.deepEqual(weather.cities, ["Oslo"]);
  assert.deepEqual(weather.asked.map(({ method }) => method),
    ["initialize", "notifications/initialized", "tools/call"]);
  assert.ok(weather.asked.every(({ headers: { authorization } }) => authorization === SECRET));
  assert.match(String(weather.asked[2]?.headers["idempotency-key"]), /^[0-9a-f]{40}$/);
  // The model received the server's own schema.
  const offered = JSON.stringify(model.requests.at(-1));
  assert.ok(offered.includes('"items":{"type":"number"}'), offered.slice(0, 2000));
  const rows = await rowsBeside(server.dataDir, "SELECT headers FROM tools WHERE id = @id", { id });
  assert.ok(!JSON.stringify(rows).includes("canary"));
  const { body: calls } = await server.call("GET", `/user/tools/${id}/calls`);
  assert.deepEqual(calls.map(({ state }: { state: string }) => state), ["answered"]);
});

test("[TL131] an MCP server that answers in JSON, rejects arguments or fails says so to the model", async () => {
  const plain = await startMcpServer({ isPlain: true });
  const id = await newTool("get-weather", plain.url);
  assert.deepEqual(await turnWith(id, { city: "Rome" }), [{ text: "Sunny in Rome." }]);
  const [refused] = await turnWith(id, { city: 4 });
  assert.match(String(refused?.error), /city|invalid|validation/i);
  const failing = await newTool("fail", plain.url);
  assert.deepEqual(await turnWith(failing, {}), [{ error: "No luck today." }]);
  const tried = await server.call("POST", `/user/tools/${id}/try`, {
    body: { arguments: { city: "Bern" } },
  });
  assert.deepEqual([tried.body.ok, tried.body.result], [true, { text: "Sunny in Bern." }]);
  assert.deepEqual(JSON.parse(tried.body.request.body as string), {
    method: "tools/call", params: { name: "get-weather", arguments: { city: "Bern" } },
  });
  await plain.close();
  // Hello was never answered: the call has certainly had no effect.
  const [gone] = await turnWith(id, { city: "Rome" });
  assert.match(String(gone?.error), /could not be reached/);
});

test("[TL134] an MCP session id goes with each request and is released, and nobody waits for that", async () => {
  const endpoint = await startEndpoint();
  const letGo = Promise.withResolvers<{ end(): void }>();
  endpoint.answer(({ method, body }, response) => {
    if (method === "DELETE") return letGo.resolve(response);
    const { id, method: asked } = JSON.parse(body) as { id?: number; method: string };
    response.setHeader("content-type", "application/json");
    if (asked === "initialize") response.setHeader("mcp-session-id", "s-1");
    response.end(JSON.stringify({ jsonrpc: "2.0", id, result: { tools: [] } }));
  });
  assert.deepEqual((await listOf(endpoint.url)).body.data, []);
  (await letGo.promise).end();
  const [, ...later] = endpoint.requests;
  assert.deepEqual(later.map(({ method }) => method), ["POST", "POST", "DELETE"]);
  for (const { headers: given } of later) assert.equal(given["mcp-session-id"], "s-1");
  await endpoint.close();
});

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!await holds()) await setTimeout(20);
}

/** An MCP server that keeps sessions, as the protocol has them; `forget` is its restart. */
async function startKeeper() {
  const endpoint = await startEndpoint();
  const state = {
    opened: 0, current: "", refusal: 404, saysPlainly: false, isSilent: false,
    schema: { type: "object" } as object,
  };
  const cities: string[] = [];
  let isListChanged = false;
  let lists = 0;
  endpoint.answer(({ method, body, headers: given }, response) => {
    if (method === "DELETE") return response.end();
    const { id, method: asked, params } = JSON.parse(body) as {
      id?: number; method: string; params?: { arguments?: { city: string } };
    };
    const say = (result: object, more = ""): void => {
      response.setHeader("content-type", "text/event-stream");
      response.end(`${more}data: ${JSON.stringify({ jsonrpc: "2.0", id, result })}\n\n`);
    };
    if (asked === "initialize") {
      state.opened += 1;
      state.current = `s-${state.opened}`;
      response.setHeader("mcp-session-id", state.current);
      return say({ protocolVersion: "2025-06-18", capabilities: { tools: { listChanged: true } } });
    }
    if (given["mcp-session-id"] !== state.current) {
      const message = "Bad Request: No valid session ID provided";
      return response.writeHead(state.refusal).end(state.saysPlainly
        ? message
        : JSON.stringify({ jsonrpc: "2.0", id: null, error: { code: -32000, message } }));
    }
    if (id === undefined) return response.writeHead(202).end();
    if (asked === "tools/list") {
      const { schema: inputSchema } = state;
      lists += 1;
      return say({ tools: [{ name: "get-weather", description: "Other words.", inputSchema }] });
    }
    if (state.isSilent) return;
    cities.push(params?.arguments?.city ?? "");
    const notice = { jsonrpc: "2.0", method: "notifications/tools/list_changed" };
    say({ content: [{ type: "text", text: "Sunny." }] },
      isListChanged ? `data: ${JSON.stringify(notice)}\n\n` : "");
    isListChanged = false;
  });
  return {
    endpoint, state, cities,
    forget: () => (state.current = "gone"),
    changeTools: (schema: object) => {
      state.schema = schema;
      isListChanged = true;
    },
    lists: () => lists,
    /** Lists aside: they are read beside all else. */
    asked: () => endpoint.requests.filter(({ method }) => method === "POST")
      .map(({ body }) => (JSON.parse(body) as { method: string }).method)
      .filter((method) => method !== "tools/list"),
  };
}

const HELLO = ["initialize", "notifications/initialized"];

test("[TL135] an MCP session starts once, again when the server forgot it; each call has one effect", async () => {
  const keeper = await startKeeper();
  const id = await newTool("get-weather", keeper.endpoint.url);
  keeper.endpoint.requests.length = 0;
  await turnWith(id, { city: "Oslo" });
  await turnWith(id, { city: "Rome" });
  assert.deepEqual(keeper.asked(), [...HELLO, "tools/call", "tools/call"]);
  const ids = keeper.endpoint.requests.flatMap(({ method, body }) =>
    method === "POST" ? (JSON.parse(body) as { id?: number }).id ?? [] : []);
  assert.equal(new Set(ids).size, ids.length, "no id is used twice in a session");
  for (const refusal of [404, 400]) {
    // The list is read once more after a new hello, whenever that may be.
    if (refusal === 400) await until(() => keeper.lists() > 1);
    keeper.state.refusal = refusal;
    keeper.forget();
    keeper.endpoint.requests.length = 0;
    assert.deepEqual(await turnWith(id, { city: `Bern ${refusal}` }, 2),
      [{ text: "Sunny." }, { text: "Sunny." }]);
    assert.deepEqual(keeper.asked().slice(0, 4), ["tools/call", ...HELLO, "tools/call"]);
    const calls = keeper.endpoint.requests.filter(({ body }) => body.includes("tools/call"));
    const keys = calls.map(({ headers: given }) => given["idempotency-key"]);
    assert.equal(new Set(keys).size, 1, "a call sent again has the key it had");
  }
  assert.deepEqual(keeper.cities, ["Oslo", "Rome", "Bern 404", "Bern 400"]);
  // Another account is another session, though the server and its headers are the same.
  const stranger = await server.newAccount();
  keeper.endpoint.requests.length = 0;
  const tried = await server.call("POST", "/user/tools/try", {
    key: stranger.key,
    body: {
      name: "weather", description: "Weather", endpoint: keeper.endpoint.url, method: "POST",
      headers, mcp: { tool: "get-weather", input_schema: { type: "object" } }, arguments: {},
    },
  });
  assert.equal(tried.body.ok, true, JSON.stringify(tried.body));
  assert.deepEqual(keeper.asked(), [...HELLO, "tools/call"]);
  await keeper.endpoint.close();
});

test("[TL138] an MCP server that says in words that it forgot the session gets the call again", async () => {
  const keeper = await startKeeper();
  const id = await newTool("get-weather", keeper.endpoint.url);
  await turnWith(id, { city: "Oslo" });
  // As Python's SDK did until 2026.
  Object.assign(keeper.state, { refusal: 400, saysPlainly: true });
  keeper.forget();
  assert.deepEqual(await turnWith(id, { city: "Rome" }), [{ text: "Sunny." }]);
  assert.deepEqual(keeper.cities, ["Oslo", "Rome"]);
  await keeper.endpoint.close();
});

test("[TL139] an MCP server is told when a call is no longer waited for", async () => {
  const keeper = await startKeeper();
  const id = await newTool("get-weather", keeper.endpoint.url);
  await server.call("PATCH", `/user/tools/${id}`, { body: { timeout: 1 } });
  keeper.state.isSilent = true;
  const [late] = await turnWith(id, { city: "Oslo" });
  assert.match(String(late?.error), /did not answer in time/);
  await until(() => keeper.asked().includes("notifications/cancelled"));
  const [call, told] = keeper.endpoint.requests
    .filter(({ body }) => /tools\/call|cancelled/.test(body))
    .map(({ body, headers: given }) => ({
      ...JSON.parse(body) as { id?: number; params: { requestId?: number } }, given,
    }));
  assert.ok(call?.id !== undefined && told?.params.requestId === call.id);
  assert.equal(told.given["mcp-session-id"], keeper.state.current);
  await keeper.endpoint.close();
});

test("[TL136] changed input schemas of an MCP server are adopted automatically; its descriptions are not", async () => {
  const keeper = await startKeeper();
  const id = await newTool("get-weather", keeper.endpoint.url);
  await server.call("PATCH", `/user/tools/${id}`, { body: { description: "My own words." } });
  const schemaIs = (wanted: object): Promise<void> => until(async () => {
    const { body } = await server.call("GET", `/user/tools/${id}`);
    const { description, mcp } = body.data ?? body;
    assert.equal(description, "My own words.");
    return JSON.stringify(mcp.input_schema) === JSON.stringify(wanted);
  });
  const withDays = { type: "object", properties: { days: { type: "number" } } };
  keeper.changeTools(withDays);
  await turnWith(id, { city: "Oslo" });
  await schemaIs(withDays);
  // A server that was started anew may have other tools.
  const withHours = { type: "object", properties: { hours: { type: "number" } } };
  keeper.state.schema = withHours;
  keeper.forget();
  await turnWith(id, { city: "Oslo" });
  await schemaIs(withHours);
  await keeper.endpoint.close();
});

test("[TL132] refresh takes a tool's description anew from its MCP server, cut between two characters", async () => {
  const id = await newTool();
  weather.describe(`${"w".repeat(254)}🌦 and more`);
  const { status, body } = await server.call("POST", `/user/tools/${id}/refresh`);
  assert.equal(status, 200);
  assert.equal(body.data.description, "w".repeat(254));
  assert.equal(body.data.mcp.tool, "get-weather");
  const stranger = await server.newAccount();
  const other = await server.call("POST", `/user/tools/${id}/refresh`, { key: stranger.key });
  assert.equal(other.status, 404);
});

test("[TL133] an address that is no MCP server, or may not be reached, is refused with the reason", async () => {
  const endpoint = await startEndpoint();
  endpoint.answer((_, response) => response.end("{}"));
  const none = await listOf(endpoint.url);
  assert.deepEqual([none.status, none.body.message], [422, "What answers at this address is not an MCP server."]);
  for (const [status, hint] of [
    [401, ": it requires a key: send it in a header such as Authorization."],
    [405, ": it must support Streamable HTTP at this address; the older SSE transport is not supported."],
    [500, "."],
  ] as const) {
    endpoint.answer((_, response) => response.writeHead(status).end());
    assert.equal((await listOf(endpoint.url)).body.message,
      `The MCP server answered with status ${status}${hint}`);
  }
  endpoint.requests.length = 0;
  const guarded = await startTestServer();
  const refused = await guarded.call("POST", "/user/tools/mcp", { body: { endpoint: endpoint.url } });
  assert.match(`${refused.status} ${refused.body.message}`, /^422 .+ \(PARLEY_ALLOW_PRIVATE_NETWORKS\)/);
  assert.equal(endpoint.requests.length, 0);
  const long = await server.call("POST", "/user/tools", {
    body: {
      name: "long", description: "Long", endpoint: endpoint.url, method: "POST",
      mcp: { tool: "x", input_schema: { description: "x".repeat(20_000) } },
    },
  });
  assert.equal(long.status, 422);
  await guarded.close();
  await endpoint.close();
});

test("[TL181] tool and webhook addresses with a name and password are refused with that reason", async () => {
  const endpoint = "https://me:secret@hooks.example/mcp";
  const why = "must be a valid URL, without a user name or password.";
  assert.equal((await listOf(endpoint)).body.message, `The endpoint ${why}`);
  const tool = await server.call("POST", "/user/tools", {
    body: { name: "x", description: "x", endpoint, method: "POST" },
  });
  assert.deepEqual(tool.body.errors.endpoint, [`The endpoint ${why}`]);
  const hook = await server.call("POST", "/user/webhook-endpoints", { body: { url: endpoint } });
  assert.deepEqual(hook.body.errors.url, [`The url ${why}`]);
});

test("[TL137] resources an MCP server embeds are read, and linked ones are named with their address", async (t) => {
  const files = await startEndpoint();
  t.after(() => files.close());
  const uri = "repo://a/readme.md";
  const linked = { name: "License", description: "of a", uri: "repo://a/license" };
  const results: Record<string, object> = {
    "initialize": { protocolVersion: "2025-06-18", capabilities: {}, serverInfo: {} },
    "tools/list": { tools: [{ name: "read", description: "reads", inputSchema: { type: "object" } }] },
    "tools/call": { content: [
      { type: "text", text: "Here:" },
      { type: "resource", resource: { uri, mimeType: "text/markdown", text: "# Open at nine" } },
      { type: "resource", resource: { uri: "repo://a/logo.png", blob: "iVBORw0KGgo=" } },
      { type: "resource_link", ...linked },
      { type: "image", data: "iVBORw0KGgo=", mimeType: "image/png" },
    ] },
  };
  files.answer(({ body }, response) => {
    const { id, method } = JSON.parse(body) as { id?: number; method: string };
    if (id === undefined) return response.writeHead(202).end();
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ jsonrpc: "2.0", id, result: results[method] }));
  });
  const id = await newTool("read", files.url);
  const text = ["Here:", `[resource ${uri}]`, "# Open at nine", "[resource repo://a/logo.png]",
    "[resource_link License of a repo://a/license]", "[image]"].join("\n");
  assert.deepEqual(await turnWith(id, {}), [{ text }]);
});

test("[TL179] an MCP server that sends requests before its result gets answers, and need not end its stream", async (t) => {
  const told: unknown[] = [];
  const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const asking = await startEndpoint();
  t.after(() => asking.close());
  const call = async (id: unknown, response: ServerResponse): Promise<void> => {
    response.setHeader("content-type", "text/event-stream");
    const send = (members: object) =>
      response.write(`data: ${JSON.stringify({ jsonrpc: "2.0", ...members })}\n\n`);
    send({ id: 0, method: "ping" });
    await gates[0]?.promise;
    send({ id: "e", method: "elicitation/create", params: { message: "Which city?" } });
    await gates[1]?.promise;
    send({ id, result: { content: [{ type: "text", text: "No city." }] } });
  };
  const results: Record<string, object> = {
    "initialize": { protocolVersion: "2025-11-25", capabilities: {}, serverInfo: {} },
    "tools/list": {
      tools: [{ name: "ask", description: "asks", inputSchema: { type: "object" } }],
    },
  };
  asking.answer(({ body, method: verb }, response) => {
    const message = JSON.parse(body || "{}") as { id?: unknown; method?: string };
    const { id, method = "" } = message;
    if (method === "tools/call") return void call(id, response);
    if (method === "" && verb === "POST") gates[told.push(message) - 1]?.resolve();
    if (!results[method]) return response.writeHead(202).end();
    response.setHeader("content-type", "application/json");
    response.setHeader("mcp-session-id", "s1");
    response.end(JSON.stringify({ jsonrpc: "2.0", id, result: results[method] }));
  });
  const id = await newTool("ask", asking.url);
  assert.deepEqual(await turnWith(id, {}), [{ text: "No city." }]);
  assert.deepEqual(told, [
    { jsonrpc: "2.0", id: 0, result: {} },
    {
      jsonrpc: "2.0", id: "e",
      error: { code: -32601, message: "The method elicitation/create is not supported." },
    },
  ]);
});

test("[TL180] an MCP server whose stream ends early is asked for the rest, never for the call again", async (t) => {
  const polling = await startEndpoint();
  t.after(() => polling.close());
  const answer = (id: unknown, text: string) => `data: ${JSON.stringify(
    { jsonrpc: "2.0", id, result: { content: [{ type: "text", text }] } })}\n\n`;
  const results: Record<string, object> = {
    "initialize": { protocolVersion: "2025-11-25", capabilities: {}, serverInfo: {} },
    "tools/list": {
      tools: [{ name: "slow", description: "slow", inputSchema: { type: "object" } }],
    },
  };
  let called: unknown[] = [];
  let isForgetful = false;
  let places: [place: unknown, session: unknown][] = [];
  const steps: ((response: ServerResponse) => void)[] = [
    (response) => response.end("id: p2\ndata:\n\n"),
    // The connection is lost in the middle of an event: its place has not been reached.
    (response) => {
      response.write('id: p3\ndata: {"jsonrpc":"2.0","meth');
      setImmediate(() => response.destroy());
    },
    (response) => response.end(`id: p4\n${answer(called[0], "At last.")}`),
  ];
  polling.answer(({ body, method: verb, headers: given }, response) => {
    response.setHeader("content-type", "text/event-stream");
    if (verb === "GET") {
      places.push([given["last-event-id"], given["mcp-session-id"]]);
      if (isForgetful) return response.writeHead(404).end();
      return steps[places.length - 1]?.(response);
    }
    const { id, method = "" } = JSON.parse(body || "{}") as { id?: unknown; method?: string };
    if (method === "tools/call") {
      called.push(id);
      return response.end("id: p1\nretry: 1\ndata:\n\n");
    }
    if (!results[method]) return response.writeHead(202).end();
    response.setHeader("content-type", "application/json");
    response.setHeader("mcp-session-id", "s1");
    response.end(JSON.stringify({ jsonrpc: "2.0", id, result: results[method] }));
  });
  const id = await newTool("slow", polling.url);
  assert.deepEqual(await turnWith(id, {}), [{ text: "At last." }]);
  assert.deepEqual(places, [["p1", "s1"], ["p2", "s1"], ["p2", "s1"]]);
  assert.equal(called.length, 1);
  // Whoever knows neither the stream nor the session any more may well have done what it was asked.
  [called, places, isForgetful] = [[], [], true];
  const lost = await turnWith(id, {}, 2);
  assert.deepEqual(lost, Array(2).fill({ error: "The tool's endpoint answered with status 404." }));
  assert.equal(called.length, 1);
});
