// The edge: framing, bodies, keys, scopes, origins, rates.
import assert from "node:assert/strict";
import { connect } from "node:net";
import { after, test } from "node:test";
import { gzipSync } from "node:zlib";
import { newAssistant, newConversation, startTestServer } from "#support/server.ts";

const server = await startTestServer();
after(() => server.close());

/** Sends raw bytes and resolves to everything answered until the server closes or `enough`. */
function raw(bytes: string, enough = /\r\n\r\n[^]*[}\]]/): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = "";
    const socket = connect(server.port, "127.0.0.1", () => socket.write(bytes));
    socket.on("data", (chunk) => {
      answer += chunk.toString("latin1");
      if (enough.test(answer)) socket.destroy();
    });
    socket.on("close", () => resolve(answer));
    socket.on("error", reject);
  });
}

const post = (headers: string, body: string): string =>
  `POST /api/conversations HTTP/1.1\r\nHost: x\r\n${headers}\r\n\r\n${body}`;

/** Two readers could each see another length, or another host, in these. */
const AMBIGUOUS = [
  ...["2\r\nContent-Length: 3", "2\r\nContent-Length: 2", "2, 2", "2, 3", "+2", "-2", "0x2", "", "2a",
    "2 2", "9".repeat(20), "2.0"].map((value) => `Content-Length: ${value}`),
  ...["xchunked", "identity", "chunked, identity", "identity, chunked", "gzip, chunked", "Chunked",
    "chunked,", '"chunked"', "", "chunked\r\nTransfer-Encoding: chunked",
    "chunked\r\nTransfer-Encoding: identity", "chunked\r\nContent-Length: 4",
    "chunked\r\nContent-Length: 0"].map((value) => `Transfer-Encoding: ${value}`),
  "Content-Length: 4\r\nTransfer-Encoding: chunked",
  "Host: y", "Host: x", "A: b\r\nHost: a b",
];
/** What would be seen if anything behind the refused request were read. */
const SMUGGLED = "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n";
const statusesOf = (answer: string): string[] =>
  [...answer.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => status ?? "");

test("[ER1] ambiguous framing answers 400, closes the connection, and nothing behind it is executed", async () => {
  for (const headers of AMBIGUOUS) {
    for (const body of ["{}", "0\r\n\r\n"]) {
      // The answer is everything until the server closes.
      const answer = await raw(post(headers, body) + SMUGGLED, /$^/);
      assert.deepEqual(statusesOf(answer), ["400"], headers);
    }
  }
  const upgrade = await raw("GET /api/user/socket HTTP/1.1\r\nHost: x\r\nHost: y\r\nUpgrade: websocket\r\n"
    + `Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n${SMUGGLED}`, /$^/);
  assert.deepEqual(statusesOf(upgrade), ["400"]);
  assert.deepEqual(statusesOf(await raw(`GET /livez HTTP/1.1\r\nA: b\r\n\r\n${SMUGGLED}`, /$^/)), ["400"]);
  assert.equal((await fetch(`${server.url}/livez`)).status, 200);
});

test("[ER147] no pipelined request takes effect without its answer", async () => {
  const { uuid } = await newAssistant(server);
  const conversations = async (): Promise<number> => {
    const { body } = await server.call("GET", "/user/conversations");
    return (body.data as unknown[]).length;
  };
  const body = JSON.stringify({ assistant_id: uuid });
  const create = post(`Content-Length: ${body.length}`, body);
  const before = await conversations();
  for (const bytes of [create + SMUGGLED, create + create, create + SMUGGLED + SMUGGLED]) {
    assert.equal(await raw(bytes, /$^/), "", "closed, so that the client sends it again");
  }
  assert.equal(await conversations(), before);
  // What is answered while it is read keeps its place: the answers come in order.
  const answer = await raw(SMUGGLED + create, /conversation_id/);
  assert.deepEqual(statusesOf(answer), ["200", "200"]);
  assert.equal(await conversations(), before + 1);
});

test("[ER2] bodies are bounded, with or without a declared length; an abort midway harms nobody", async () => {
  const large = await server.call("POST", "/conversations", {
    body: `"${"x".repeat(300_000)}"`, headers: { Origin: "https://shop.example" },
  });
  assert.equal(large.status, 413);
  assert.deepEqual(large.body, { status: false, error: "The request body is too large." });
  // Told to pages too.
  assert.ok(large.headers.get("access-control-allow-origin"));
  const socket = connect(server.port, "127.0.0.1");
  socket.write(post("Content-Length: 500", "{"));
  socket.resetAndDestroy();
  assert.equal((await fetch(`${server.url}/livez`)).status, 200);
});

test("[ER3] bodies that are not safe JSON objects answer 400 in the route's shape", async () => {
  const bodies = ["{", "[]", "null", '{"__proto__":1}', "[".repeat(5000), '"\\ud800"'];
  for (const body of bodies) {
    const refused = await server.call("POST", "/conversations", { body });
    assert.equal(refused.status, 400, body.slice(0, 20));
    assert.equal(refused.body.status, false);
    assert.equal(typeof refused.body.error, "string");
  }
});

test("[ER156] a body may begin with a byte order mark; compressed or non-UTF-8 bodies are refused as such", async () => {
  const marked = await server.call("POST", "/conversations", {
    body: `\ufeff${JSON.stringify({ assistant_id: "none" })}`,
  });
  assert.deepEqual([marked.status, marked.body.error], [404, "Assistant not found"]);
  const packed = await fetch(`${server.url}/api/conversations`, {
    method: "POST", body: gzipSync("{}"),
    headers: { "content-type": "application/json", "content-encoding": "gzip" },
  });
  assert.equal(packed.status, 400);
  assert.equal((await packed.json() as { error: string }).error,
    "The request body is not valid UTF-8: send it as UTF-8, not compressed.");
});

test("[ER4] unknown paths answer 404, wrong methods 405 with Allow, both in JSON", async () => {
  const unknown = await server.call("GET", "/nothing");
  assert.deepEqual([unknown.status, unknown.body], [404, { message: "Not found." }]);
  const wrong = await server.call("DELETE", "/user/me");
  assert.equal(wrong.status, 405);
  assert.equal(wrong.headers.get("allow"), "GET");
  const several = await server.call("PATCH", "/user/calls/live");
  assert.equal(several.headers.get("allow"), "GET, DELETE");
});

test("[ER6] HEAD answers with the head of GET, and nothing of a stream", async () => {
  for (const path of ["/", "/widget.js", "/livez", "/api/user/me", "/api/user/stream", "/docs", "/none"]) {
    const ask = (method: string) => fetch(`${server.url}${path}`, {
      method, headers: { Authorization: `Bearer ${server.key}`, "Accept-Encoding": "identity" },
    });
    const headers = (response: Response) => [...response.headers].filter(([name]) =>
      !["date", "x-request-id", "transfer-encoding", "content-length"].includes(name));
    const [head, got] = [await ask("HEAD"), await ask("GET")];
    assert.deepEqual([head.status, headers(head)], [got.status, headers(got)], path);
    const isStream = path === "/api/user/stream";
    const body = isStream ? null : Buffer.from(await got.arrayBuffer());
    if (isStream) await got.body?.cancel();
    assert.equal(head.headers.get("content-length"), body && String(body.length), path);
    // Whatever followed the head would be taken for the next answer of the connection.
    const rest = await raw(`HEAD ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`, /$^/);
    assert.match(rest, /^HTTP[^]*?\r\n\r\n$/);
  }
});

test("[ER5] a safe request id is echoed, another is replaced", async () => {
  const echoed = await server.call("GET", "/user/me", { headers: { "X-Request-Id": "abc-1" } });
  assert.equal(echoed.headers.get("x-request-id"), "abc-1");
  const replaced = await server.call("GET", "/user/me", { headers: { "X-Request-Id": "a b" } });
  assert.match(replaced.headers.get("x-request-id") ?? "", /^[0-9a-f-]{36}$/);
});

test("[AU1] without a valid key every account route answers 401", async () => {
  for (const key of [null, "1|wrong", `${server.key}x`, "1"]) {
    const refused = await server.call("GET", "/user/me", { key });
    assert.equal(refused.status, 401);
    assert.equal(refused.body.message, "Unauthenticated.");
  }
});

test("[AU2] a key is shown once, listed without its secret and dead once deleted", async () => {
  const made = await server.call("POST", "/user/api-keys", { body: { name: "ci" } });
  assert.equal(made.status, 201);
  const { token, id } = made.body.api_key as { token: string; id: number };
  assert.equal((await server.call("GET", "/user/me", { key: token })).status, 200);
  const listed = await server.call("GET", "/user/api-keys");
  assert.ok(!JSON.stringify(listed.body).includes(token.split("|")[1] ?? "?"));
  const other = await server.newAccount();
  const foreign = await server.call("DELETE", `/user/api-keys/${id}`, { key: other.key });
  assert.deepEqual([foreign.status, foreign.body], [404, { message: "API key not found." }]);
  assert.equal((await server.call("DELETE", `/user/api-keys/${id}`)).status, 200);
  assert.equal((await server.call("GET", "/user/me", { key: token })).status, 401);
});

test("[AU3] [AU689] a read-only key cannot write; an expired key is dead", async () => {
  const read = await server.call("POST", "/user/api-keys", {
    body: { name: "r", scopes: ["read"] },
  });
  const key = read.body.api_key.token as string;
  assert.equal((await server.call("GET", "/user/me", { key })).status, 200);
  const refused = await server.call("POST", "/user/api-keys", { key, body: { name: "x" } });
  assert.equal(refused.status, 403);
  const old = await server.call("POST", "/user/api-keys", {
    body: { name: "e", expires_at: "2020-01-01T00:00:00Z" },
  });
  const message = "The expires at must be a date after now.";
  assert.deepEqual([old.status, old.body], [422, { message, errors: { expires_at: [message] } }]);
  const expired = await server.app.features.accounts.createKey(server.accountId, "e", { expiresAt: 1 });
  assert.equal((await server.call("GET", "/user/me", { key: expired.token })).status, 401);
  for (const expires_at of ["2097-02-30", "2097-02-30T00:00:00Z", "1", "March 7, 2097", "", "+275760-09-13"]) {
    const { status, body } = await server.call("POST", "/user/api-keys", {
      body: { name: "e", expires_at },
    });
    assert.deepEqual([status, body.message], [422, "The expires at is not a valid date."], expires_at);
  }
  for (const expires_at of ["2097-03-01", "2097-03-01T09:30:00.000000Z", "2097-03-01T09:30+01:00", null]) {
    const { status } = await server.call("POST", "/user/api-keys", { body: { name: "e", expires_at } });
    assert.equal(status, 201, String(expires_at));
  }
});

test("[AU4] only allowed origins may use an assistant from a page", async () => {
  const assistant = await newAssistant(server, { allowed_origins: ["https://good.example"] });
  const uuid = await newConversation(server, assistant.uuid);
  const ask = (method: string, origin: string) =>
    fetch(`${server.url}/api/conversations/${uuid}`, { method, headers: { Origin: origin } });
  const good = await ask("GET", "https://good.example");
  assert.equal(good.headers.get("access-control-allow-origin"), "https://good.example");
  assert.match(good.headers.get("vary") ?? "", /Origin/);
  const bad = await ask("GET", "https://bad.example");
  assert.equal(bad.status, 403);
  assert.equal(bad.headers.get("access-control-allow-origin"), null);
  assert.equal((await ask("OPTIONS", "https://good.example")).status, 204);
  assert.equal((await ask("OPTIONS", "https://bad.example")).status, 403);
});

test("[AU334] a page of any origin can read that an API path is misspelt, but nothing of account routes", async () => {
  const ask = async (method: string, path: string, headers: Record<string, string> = {}) => {
    const Origin = "https://page.example";
    const reply = await fetch(server.url + path, { method, headers: { Origin, ...headers } });
    const shown = reply.headers.get("access-control-allow-origin");
    return [reply.status, shown === Origin, await reply.text()];
  };
  const preflight = { "Access-Control-Request-Method": "POST" };
  const unknown = '{"message":"Not found."}';
  for (const path of ["/api/conversation", "/api/conversations/", "/api/user/nothing"]) {
    assert.deepEqual(await ask("OPTIONS", path, preflight), [204, true, ""], path);
    assert.deepEqual(await ask("POST", path), [404, true, unknown], path);
    assert.deepEqual(await ask("GET", path), [404, true, unknown], path);
  }
  assert.deepEqual((await ask("GET", "/api/conversations")).slice(0, 2), [405, true]);
  for (const [method, path] of [
    ["OPTIONS", "/api/user/me"], ["POST", "/api/user/me"], ["GET", "/api/auth/login"],
    ["OPTIONS", "/api/auth/login"], ["OPTIONS", "/mcp"]] as const) {
    const [refused, isShown] = await ask(method, path, method === "OPTIONS" ? preflight : {});
    assert.ok(Number(refused) >= 400 && isShown === false, `${method} ${path}`);
  }
});

test("[AU286] [VS2] preflights name only allowed origins: the conversation's assistant's, or any for a new one", async () => {
  const strict = await startTestServer({
    env: { PARLEY_ALLOWED_ORIGINS: "https://house.example" },
  });
  const preflight = async (path: string, origin: string) => {
    const { status, headers } = await fetch(`${strict.url}/api${path}`, {
      method: "OPTIONS", headers: { Origin: origin, "Access-Control-Request-Method": "POST" },
    });
    assert.equal(headers.get("vary"), "Origin");
    const cors = [...headers.keys()].filter((name) => name.startsWith("access-control-"));
    assert.equal(status, cors.length > 0 ? 204 : 403, path);
    return headers.get("access-control-allow-origin");
  };
  const [own, house] = ["https://own.example", "https://house.example"];
  const start = () => Promise.all([own, house, "https://bad.example"]
    .map((origin) => preflight("/conversations", origin)));
  for (const { id } of (await strict.call("GET", "/user/assistants/get")).body.data ?? []) {
    assert.equal((await strict.call("DELETE", `/user/assistant/${id}`)).status, 200);
  }
  assert.deepEqual(await start(), [null, null, null]);
  const ofIts = await newAssistant(strict, { allowed_origins: [own] });
  assert.deepEqual(await start(), [own, null, null]);
  const ofHouse = await newAssistant(strict);
  assert.deepEqual(await start(), [own, house, null]);

  const conversation = await newConversation(strict, ofIts.uuid);
  const unknown = "00000000-0000-4000-8000-000000000000";
  const paths = ["", "/messages", "/stream", "/stop"];
  for (const rest of paths) {
    assert.equal(await preflight(`/conversations/${conversation}${rest}`, own), own);
    assert.equal(await preflight(`/conversations/${conversation}${rest}`, house), null);
    assert.equal(await preflight(`/conversations/${unknown}${rest}`, own), own);
    assert.equal(await preflight(`/conversations/${unknown}${rest}`, "https://bad.example"), null);
  }
  assert.equal(await preflight(`/widget/${ofHouse.uuid}`, house), house);
  assert.equal(await preflight(`/widget/${ofHouse.uuid}`, own), null);
  assert.equal(await preflight(`/widget/${unknown}`, own), null);
  // The preflight was for any assistant; the request itself is judged by its own.
  const refused = await strict.call("POST", "/conversations", {
    key: null, body: { assistant_id: ofHouse.uuid }, headers: { Origin: own },
  });
  assert.equal(refused.status, 403);
  assert.equal(refused.headers.get("access-control-allow-origin"), null);

  await strict.call("PATCH", `/user/assistant/${ofIts.id}`, { body: { allowed_origins: ["*"] } });
  assert.deepEqual(await start(), [own, house, "https://bad.example"]);
  await strict.call("DELETE", `/user/assistant/${ofIts.id}`);
  assert.deepEqual(await start(), [null, house, null]);
  assert.equal(await preflight(`/conversations/${conversation}`, own), null);
  assert.equal(await preflight("/v1/models", "https://bad.example"), "https://bad.example");
  await strict.close();
});

test("[LM1] a key gets 20 requests in 10 seconds, then 429; headers show the tightest window", async () => {
  const limited = await startTestServer({ env: { PARLEY_RATE_LIMITS: "on" } });
  for (let count = 0; count < 20; count += 1) {
    const { status, headers } = await limited.call("GET", "/user/me");
    assert.equal(status, 200);
    // There are two windows, 100 in a minute and 20 in 10 seconds: the one with less left shows.
    assert.equal(headers.get("x-ratelimit-limit"), "20");
    assert.equal(headers.get("x-ratelimit-remaining"), String(19 - count));
  }
  const refused = await limited.call("GET", "/user/me");
  assert.equal(refused.status, 429);
  assert.equal(refused.body.error, "Rate limit exceeded");
  assert.ok(Number.isInteger(refused.body.retry_after));
  const stated = ["limit", "remaining"].map((name) => refused.headers.get(`x-ratelimit-${name}`));
  assert.deepEqual(stated, ["20", "0"]);
  const reset = Number(refused.headers.get("x-ratelimit-reset")) - Date.now() / 1000;
  assert.ok(reset < 12, `the window that refused is over in ten seconds, not ${reset}`);
  assert.equal(refused.headers.get("retry-after"), String(refused.body.retry_after));
  await limited.close();
});

test("[AS151] each account gets ten voice samples a minute", async () => {
  const limited = await startTestServer({
    env: { PARLEY_RATE_LIMITS: "on", PARLEY_RATE_KEY_BURST: "100", PARLEY_SPEECH: "loopback" },
  });
  const ask = async (key: string): Promise<number> => (await limited.call(
    "POST", "/user/assistants/voice-sample", { key, body: { voice_id: 1, language_id: 1 } })).status;
  const other = await limited.newAccount();
  for (let at = 0; at < 10; at += 1) assert.notEqual(await ask(limited.key), 429);
  assert.equal(await ask(limited.key), 429);
  assert.notEqual(await ask(other.key), 429);
  await limited.close();
});

test("[LM2] creating and sending are limited per address and per conversation", async () => {
  const env = { PARLEY_RATE_LIMITS: "on", PARLEY_RATE_CONVERSATION_PER_MINUTE: "2" };
  const limited = await startTestServer({ env: { ...env, PARLEY_RATE_ADDRESS_PER_MINUTE: "3" } });
  const assistant = await newAssistant(limited);
  const uuid = await newConversation(limited, assistant.uuid);
  const send = () =>
    limited.call("POST", `/conversations/${uuid}/messages`, { body: { message: "Hello" } });
  const statuses = [(await send()).status, (await send()).status, (await send()).status];
  assert.deepEqual(statuses, [200, 200, 429]);
  const create = () =>
    limited.call("POST", "/conversations", { body: { assistant_id: assistant.uuid } });
  const created = [(await create()).status, (await create()).status, (await create()).status];
  assert.deepEqual(created, [200, 200, 429]);
  await limited.close();
});

test("[LM3] an assistant spends no more than its daily cap", async () => {
  const { uuid: assistantUuid } = await newAssistant(server, { daily_spend_cap: 0.02 });
  const uuid = await newConversation(server, assistantUuid);
  const send = () =>
    server.call("POST", `/conversations/${uuid}/messages`, { body: { message: "Hello" } });
  const statuses = [(await send()).status, (await send()).status, (await send()).status];
  assert.deepEqual(statuses, [200, 200, 429]);
  const refused = await send();
  const toMidnight = 86_400 - Math.floor(Date.now() / 1000) % 86_400;
  const wait = Number(refused.headers.get("retry-after"));
  assert.ok(Math.abs(wait - toMidnight) < 3600, `${wait} s, where the day lasts ${toMidnight}`);
});

test("[ER148] JSON is neither cached nor taken for a page; no header names the version", async () => {
  for (const path of ["/livez", "/api/user/me", "/api/none"]) {
    const { headers } = await fetch(server.url + path);
    assert.equal(headers.get("cache-control"), "no-store", path);
    assert.equal(headers.get("x-content-type-options"), "nosniff", path);
    assert.deepEqual([headers.get("uwebsockets"), headers.get("server")], [null, null]);
  }
});

test("[ER149] links say https only when a trusted proxy says so", async () => {
  const behind = await startTestServer({ env: { PARLEY_TRUSTED_PROXIES: "127.0.0.1" } });
  const firstPage = async (at: typeof server): Promise<string> => {
    const headers = { "X-Forwarded-Proto": "https" };
    const { status, body } = await at.call("GET", "/user/calls", { headers });
    assert.equal(status, 200);
    return new URL(body.first_page_url as string).protocol;
  };
  assert.equal(await firstPage(behind), "https:");
  assert.equal(await firstPage(server), "http:");
  await behind.close();
});

test("[ER151] create routes treat null or blank for an optional field as left out", async () => {
  const { id } = await newAssistant(server, { type: "outbound" });
  const blank = Object.fromEntries([
    "timezone", "max_calls_in_parallel", "allowed_days", "allowed_hours_start_time",
    "phone_number_ids", "max_retries", "allowed_hours_end_time", "retry_on_voicemail",
  ].map((field, at) => [field, at % 2 === 0 ? null : ""]));
  const made = await server.call("POST", "/user/campaigns", {
    body: { name: "Spring", assistant_id: id, ...blank },
  });
  assert.equal(made.status, 201, JSON.stringify(made.body));
  assert.deepEqual(
    [made.body.data.timezone, made.body.data.max_retries, made.body.data.allowed_days.length],
    ["UTC", 3, 7]);
  const campaign_id = made.body.data.id as number;
  const lead = await server.call("POST", "/user/lead", {
    body: {
      campaign_id, phone_number: "+4915112345678", variables: null, allow_dupplicate: null,
      secondary_contacts: null,
    },
  });
  assert.equal(lead.status, 200, JSON.stringify(lead.body));
  // What is changed by null has a meaning of its own, and what has to be there is missed.
  const change = await server.call("PUT", `/user/campaigns/${campaign_id}`, { body: { timezone: null } });
  assert.equal(change.status, 422);
  const nameless = await server.call("POST", "/user/campaigns", { body: { name: "", assistant_id: id } });
  assert.deepEqual(nameless.body.errors, { name: ["The name field is required."] });
});

test("[ER152] a value outside a fixed set is refused with the allowed ones", async () => {
  const { status, body } = await server.call("GET", "/user/leads?order=oldest&status=new");
  assert.equal(status, 422);
  assert.deepEqual(body.errors.order, ["The selected order is invalid: it is one of newest, active."]);
  assert.match(body.errors.status[0], /^The selected status is invalid: it is one of created, .*blacklisted\.$/);
});

test("[ER153] [ER641] numbers too large to store are refused, and pages beyond the last are empty", async () => {
  const most = "may not be greater than 9007199254740991.";
  for (const [campaign_id, why] of [
    [1e308, most], [2 ** 63, most], [-(2 ** 63), "must be at least -9007199254740991."],
    ["9".repeat(30), most], ["9007199254740992", most], ["9.5", "must be an integer."],
  ] as const) {
    const { status, body } = await server.call("POST", "/user/lead", {
      body: { campaign_id, phone_number: "+4915112345678" },
    });
    assert.deepEqual([status, body.errors], [
      422, { campaign_id: [`The campaign id ${why}`] }], String(campaign_id));
  }
  const page = await server.call("GET", "/user/leads?page=1234567890123456");
  assert.deepEqual([page.status, page.body.errors], [
    422, { page: ["The page may not be greater than 1000000000."] }]);
  for (const list of ["leads", "calls", "ledger", "blocked-numbers", "assistants/get", "folders"]) {
    const { status, body } = await server.call("GET", `/user/${list}?page=1000000000&per_page=100`);
    assert.equal(status, 200, list);
    assert.deepEqual([body.data, body.from, body.to, body.next_page_url], [[], null, null, null]);
    assert.equal(body.current_page, 1_000_000_000);
  }
});
