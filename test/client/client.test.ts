// The typed client against the real server, through a proxy that breaks connections.
import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { after, mock, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { createParley, ParleyError, type Frame } from "#client/client.ts";
import { newAssistant, newConversation, startTestServer } from "#support/server.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";

const WORDS = Array.from({ length: 60 }, (_, index) => `word${index} `);
const REPLY = WORDS.join("");
const model = await startScriptedModel();
model.script(() => ({ tokens: WORDS, gapMs: 12 }));
const server = await startTestServer({ env: { PARLEY_MODEL_URL: model.url } });
const closings: (() => void)[] = [];
after(async () => {
  for (const close of closings) close();
  await server.close();
  await model.close();
});

/** Forwards to the server; each connection is cut after so many bytes from it, the last is not. */
async function startProxy(cutAfterBytes: number[]) {
  const sockets = new Set<Socket>();
  let connections = 0;
  const proxy = createServer((client) => {
    const bytesMax = cutAfterBytes[connections] ?? Infinity;
    connections += 1;
    const upstream = connect(server.port, "127.0.0.1");
    let bytes = 0;
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", () => undefined);
    }
    client.pipe(upstream);
    upstream.on("data", (chunk: Buffer) => {
      const rest = chunk.subarray(0, Math.max(0, bytesMax - bytes));
      bytes += chunk.length;
      client.write(rest);
      if (bytes < bytesMax) return;
      client.destroy();
      upstream.destroy();
    });
    upstream.on("close", () => client.destroy());
    client.on("close", () => upstream.destroy());
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const { port } = proxy.address() as AddressInfo;
  closings.push(() => {
    for (const socket of sockets) socket.destroy();
    proxy.close();
  });
  return {
    parley: createParley({ baseUrl: `http://127.0.0.1:${port}/api`, apiKey: server.key }),
    connections: () => connections,
  };
}

const textOf = (frames: Frame[]): string =>
  frames.map(({ type, text }) => (type === "reply_delta" ? String(text) : "")).join("");

test("[CC1] routes are called by name and typed; a refusal is returned, not thrown", async () => {
  const parley = createParley({ baseUrl: `${server.url}/api`, apiKey: server.key });
  const { data } = await parley.GET("/user/me");
  assert.equal(typeof data?.total_balance, "number");
  const missing = await parley.GET("/user/calls/{id}", { params: { path: { id: 99 } } });
  assert.deepEqual([missing.response.status, missing.error], [404, { message: "Call not found" }]);
  const stranger = createParley({ baseUrl: `${server.url}/api` });
  assert.equal((await stranger.GET("/user/me")).response.status, 401);
});

test("[CC2] a reply arrives whole and once, however often the connection breaks, and costs once", async () => {
  const { uuid } = await newAssistant(server);
  const balance = async () => (await server.call("GET", "/user/me")).body.total_balance as number;
  for (const cuts of [[], [900], [700, 1300, 400], [300, 2500, 2600]]) {
    const proxy = await startProxy(cuts);
    const conversation = await newConversation(server, uuid, { type: "widget" });
    const before = await balance();
    const frames: Frame[] = [];
    for await (const frame of proxy.parley.send(conversation, "Hello")) frames.push(frame);
    assert.equal(textOf(frames), REPLY, JSON.stringify(cuts));
    const last = frames.at(-1);
    assert.equal(last?.type, "message_added");
    assert.equal((last.message as { content: string }).content, REPLY);
    const committed = frames.filter(({ type }) => type === "message_added");
    assert.equal(committed.length, 2, "the question and the answer, once each");
    assert.ok(proxy.connections() > Math.min(cuts.length, 1));
    assert.equal(Math.round((before - await balance()) * 100), 1);
  }
});

test("[CC3] a watched conversation neither misses nor repeats an event across cuts, until the client leaves", async () => {
  const { uuid } = await newAssistant(server);
  const conversation = await newConversation(server, uuid, { type: "test" });
  const proxy = await startProxy([600, 1500, 1000]);
  const states: boolean[] = [];
  const leaving = new AbortController();
  const watched: Frame[] = [];
  const watching = (async () => {
    const stream = proxy.parley.watchConversation(conversation, {
      after: "0", signal: leaving.signal, onState: (isConnected) => states.push(isConnected),
    });
    for await (const frame of stream) {
      watched.push(frame);
      const replies = watched.filter(({ type }) => type === "reply_end").length;
      if (replies === 2 && frame.type === "message_added") leaving.abort();
    }
  })();
  for (const message of ["One", "Two"]) {
    await server.call("POST", `/conversations/${conversation}/messages`, { body: { message } });
  }
  await watching;
  assert.equal(textOf(watched), REPLY.repeat(2));
  const added = watched.filter(({ type }) => type === "message_added").map(({ id }) => id);
  assert.equal(new Set(added).size, added.length);
  assert.equal(added.length, 5, "the greeting, two questions, two answers");
  assert.ok(states.includes(false) && states[0] === true);
});

test("[CC4] a refused message throws with the server's text; a temporary refusal is retried", async () => {
  const { uuid } = await newAssistant(server);
  const conversation = await newConversation(server, uuid, { type: "test" });
  const parley = createParley({ baseUrl: `${server.url}/api` });
  await assert.rejects(
    parley.send("11111111-2222-4333-8444-555555555555", "x").next(),
    (error: ParleyError) => error.status === 404 && error.message === "Conversation not found");
  let calls = 0;
  const flaky = createParley({
    baseUrl: `${server.url}/api`,
    fetch: (...args) => {
      calls += 1;
      return calls < 3 ? Promise.resolve(new Response("{}", { status: 503 })) : fetch(...args);
    },
  });
  const frames: Frame[] = [];
  for await (const frame of flaky.send(conversation, "Hello")) frames.push(frame);
  assert.equal(textOf(frames), REPLY);
  assert.equal(calls, 3);
});

test("[CC5] a stream resumes at once when the browser is online again, however long it was offline", async (context) => {
  const page = new EventTarget();
  let waits = 0;
  Object.assign(globalThis, {
    addEventListener: (name: string, heard: () => void) => {
      if (name === "online") waits += 1;
      page.addEventListener(name, heard);
    },
    removeEventListener: page.removeEventListener.bind(page),
  });
  context.after(() => {
    for (const name of ["addEventListener", "removeEventListener"]) Reflect.deleteProperty(globalThis, name);
  });
  // The time to wait never comes.
  mock.timers.enable({ apis: ["setTimeout"] });
  context.after(() => mock.timers.reset());
  let asked = 0;
  const leaving = new AbortController();
  const parley = createParley({
    baseUrl: `${server.url}/api`,
    fetch: () => {
      asked += 1;
      return Promise.reject(new TypeError("Failed to fetch"));
    },
  });
  const stream = parley.watchAccount({ signal: leaving.signal });
  const ended = stream.next();
  for (let tries = 1; tries <= 3; tries += 1) {
    while (waits < tries) await turn();
    assert.equal(asked, tries);
    page.dispatchEvent(new Event("online"));
  }
  while (waits < 4) await turn();
  leaving.abort();
  assert.equal((await ended).done, true);
  assert.equal(asked, 4);
});

test("[CC6] a wrong baseUrl is reported at once, and so is an address where another server answers", async () => {
  for (const baseUrl of [
    "", "/api", "localhost:8080/api", "parley.example/api", "ftp://127.0.0.1/api",
    "http://me:secret@127.0.0.1/api",
  ]) {
    assert.throws(() => createParley({ baseUrl }), (error: Error) =>
      error instanceof TypeError && /^baseUrl /.test(error.message) && !/secret/.test(error.message),
    baseUrl);
  }
  const copied = createParley({ baseUrl: `${server.url}/api`, apiKey: "1|x\u2026" });
  await assert.rejects(copied.watchAccount().next(), TypeError);
  // A site that has its page for every address, as most single-page applications do.
  const page = () => Promise.resolve(
    new Response("<p>Hello</p>", { headers: { "Content-Type": "text/html" } }));
  const parley = createParley({ baseUrl: "https://site.example", fetch: page });
  for (const stream of [parley.send("11111111-2222-4333-8444-555555555555", "x"), parley.watchAccount()]) {
    await assert.rejects(stream.next(), (error: Error) => error instanceof ParleyError
      && /https:\/\/site\.example.*not a Parley server.*text\/html.*baseUrl/.test(error.message));
  }
  for (const status of [401, 403, 404]) {
    const refusing = createParley({
      baseUrl: "https://site.example", fetch: () => Promise.resolve(new Response("no", { status })),
    });
    await assert.rejects(refusing.watchAccount().next(), { name: "ParleyError", status });
  }
});

test("[CC7] the client follows Retry-After, up to a minute", async (context) => {
  mock.timers.enable({ apis: ["setTimeout", "Date"], now: Date.parse("2026-01-01T00:00:00Z") });
  context.after(() => mock.timers.reset());
  for (const [status, after, seconds] of [
    [429, "30", 30], [503, "Thu, 01 Jan 2026 00:00:20 GMT", 20], [503, "86400", 60],
    [503, "soon", 0],
  ] as const) {
    mock.timers.setTime(Date.parse("2026-01-01T00:00:00Z"));
    const leaving = new AbortController();
    let asked = 0;
    const refused = new EventEmitter();
    const parley = createParley({
      baseUrl: `${server.url}/api`,
      fetch: () => {
        asked += 1;
        return Promise.resolve(new Response("{}", { status, headers: { "Retry-After": after } }));
      },
    });
    const ended = parley.watchAccount({
      signal: leaving.signal, onState: () => refused.emit("state"),
    }).next();
    await once(refused, "state");
    const again = once(refused, "state");
    if (seconds > 0) mock.timers.tick(seconds * 1000 - 1);
    await turn();
    assert.equal(asked, 1, `before ${after}`);
    mock.timers.tick(1001);
    await again;
    assert.equal(asked, 2, `after ${after}`);
    leaving.abort();
    await ended;
  }
});

test("[CC48] a watcher ahead of the server's data is told of the reset and what comes after it", async () => {
  const parley = createParley({ baseUrl: `${server.url}/api` });
  const { uuid } = await newAssistant(server);
  const conversation = await newConversation(server, uuid, { type: "test" });
  const leaving = new AbortController();
  const types: string[] = [];
  const acts = async (isConnected: boolean): Promise<void> => {
    if (!isConnected) return;
    const path = `/conversations/${conversation}`;
    await server.call("POST", `${path}/messages`, { body: { message: "Hello" } });
    await server.call("POST", `${path}/typing`, { body: { typing: true } });
  };
  const watched = parley.watchConversation(conversation, {
    after: "999", signal: leaving.signal, onState: (isConnected) => void acts(isConnected),
  });
  for await (const { type } of watched) {
    types.push(type);
    if (type === "typing_started") leaving.abort();
  }
  assert.deepEqual(types.filter((type) => !type.startsWith("reply_")),
    ["stream_reset", "message_added", "message_added", "typing_started"]);
});
