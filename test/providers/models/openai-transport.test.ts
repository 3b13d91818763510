// Refusals, retries, deadlines, backpressure, aborts and connections of the same adaptor.
import assert from "node:assert/strict";
import { getEventListeners, once } from "node:events";
import type { ServerResponse } from "node:http";
import { createServer as createSocketServer, type AddressInfo } from "node:net";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { ProviderError } from "#core/faults.ts";
import { createSystem } from "#core/system.ts";
import {
  REQUEST,
  never,
  ask,
  setUp,
  adaptor,
  quickSystem,
  bareServer,
  chunk,
  END,
  assertProviderError,
  type Reply,
} from "#support/vendors/model-calls.ts";
import { startScriptedModel, type Plan } from "#support/vendors/scripted-model.ts";

test("[MO17] transient refusals are retried twice after a random wait", async (t) => {
  for (const status of [408, 409, 429, 500, 503]) {
    const { system, waitsMs } = quickSystem();
    const { server, model } = await setUp(t, [{ status }, { status }, { tokens: ["a"] }], { system });
    assert.equal((await ask(model)).text, "a");
    assert.deepEqual([waitsMs, server.counts.requests], [[125, 250], 3]);
    const failing = await setUp(t, [{ status }]);
    const { error } = await ask(failing.model);
    const message = `the model server answered ${status}: scripted ${status}`;
    assertProviderError(error, { message, retryable: true });
    assert.equal(failing.server.counts.requests, 3);
  }
});

test("[MO18] other refusals are final, and reported briefly without the key", async (t) => {
  const key = "sk-very-secret";
  const answered = (status: number, text: string) => `the model server answered ${status}${text}`;
  const cases: [Plan, message: string][] = [
    [{ status: 401, body: `{"error":{"message":"bad key ${key}\\n!"}}` }, ": bad key *** !"],
    [{ status: 400, body: '{"detail":"no such field"}' }, ": no such field"],
    [{ status: 404, body: '{"message":"no such model"}' }, ": no such model"],
    [{ status: 404, body: "<h1>gone</h1>" }, ": <h1>gone</h1>"],
    [{ status: 422, body: '{"detail":[{"loc":[]}]}' }, ""],
    [{ status: 400, body: '[{"error":{"code":400,"message":"no signature"}}]' }, ": no signature"],
    [{ status: 422, body: '{"message":{"detail":[{"loc":["body","n"],"msg":"no more"},{"msg":"x"}]}}' },
      ": body.n: no more; x"],
    [{ status: 400, body: `${'{"error":'.repeat(400)}"deep"${"}".repeat(400)}` }, ""],
    [{ status: 403, body: "" }, ""],
    [{ status: 302, headers: { location: "/" }, body: "" }, ""],
    [{ status: 400, body: "y".repeat(300_000) }, `: ${"y".repeat(200)}`],
    [{ status: 400, body: "z".repeat(100), fault: "stall_midway" }, ""],
  ];
  for (const [plan, text] of cases) {
    const limits = plan.fault === "stall_midway" ? { modelStallMs: 30 } : {};
    const { server, model } = await setUp(t, [plan], { key, limits });
    const message = answered(plan.status!, text);
    assertProviderError((await ask(model)).error, { message, retryable: false });
    assert.equal(server.counts.requests, 1);
  }
  const endless = await setUp(t, [{ status: 400, body: "y".repeat(20_000_000) }]);
  await ask(endless.model);
  await endless.server.waitFor("aborted");
});

test("[MO19] Retry-After is read as seconds or a date; a wait beyond the bound is not attempted", async (t) => {
  const cases = { "3": 3000, "12": 12_000, soon: 125, "0": 125 };
  for (const [retryAfter, waitMs] of Object.entries(cases)) {
    const { system, waitsMs } = quickSystem();
    const refusal = { status: 429, headers: { "retry-after": retryAfter } };
    const { model } = await setUp(t, [refusal, { tokens: ["a"] }], { system });
    assert.equal((await ask(model)).text, "a");
    assert.deepEqual(waitsMs, [waitMs]);
  }
  const { model } = await setUp(t, [{ status: 429, headers: { "retry-after": "3" } }]);
  const { error } = await ask(model);
  assert.equal(error instanceof ProviderError && error.retryAfterMs, 3000);
  const inOneHour = new Date(Date.now() + 3_600_000).toUTCString();
  for (const retryAfter of ["12.1", "99999", inOneHour]) {
    const { system, waitsMs } = quickSystem();
    const refusal = { status: 429, headers: { "retry-after": retryAfter } };
    const far = await setUp(t, [refusal, { tokens: ["a"] }], { system });
    assertProviderError((await ask(far.model)).error, { message: /answered 429/, retryable: true });
    assert.deepEqual([waitsMs, far.server.counts.requests], [[], 1]);
  }
});

test("[MO20] a connection that fails before the first byte is retried", async (t) => {
  const { server, model } = await setUp(t, [{ fault: "reset_before_headers" }, { tokens: ["a"] }]);
  assert.equal((await ask(model)).text, "a");
  assert.equal(server.counts.requests, 2);
  const gone = await startScriptedModel();
  await gone.close();
  const { system, waitsMs } = quickSystem();
  const refused = adaptor({ url: gone.url, system });
  t.after(() => refused.close());
  const { error } = await ask(refused);
  const message = "the connection to the model server failed (ECONNREFUSED)";
  assertProviderError(error, { message, retryable: true });
  assert.ok(error.cause instanceof Error);
  assert.deepEqual(waitsMs, [125, 250]);
});

test("[MO21] a reply that breaks off is not restarted", async (t) => {
  const { server, model } = await setUp(t, [{ tokens: ["a", "b"], fault: "reset_midway" }]);
  const { error, text } = await ask(model);
  assert.deepEqual([text, server.counts.requests], ["a", 1]);
  const message = /^the connection to the model server failed \((ECONNRESET|UND_ERR_SOCKET)\)$/;
  assertProviderError(error, { message, retryable: false });
});

test("[MO22] a model that sends nothing before the deadline is not retried", async (t) => {
  const hold = new Promise<void>(() => {});
  const message = "the model server was silent for 30 s (PARLEY_MODEL_FIRST_BYTE_SECONDS)";
  for (const plan of [{ firstDelayMs: 60_000 }, { hold, headers: { "x-early": "yes" } }]) {
    const { system, leap, pending } = quickSystem();
    const { server, model } = await setUp(t, [plan], { system });
    const reply = ask(model);
    await server.waitFor("requests");
    leap(29_000);
    assert.equal(pending(), 1);
    leap(1001);
    assertProviderError((await reply).error, { message, retryable: true });
    assert.equal(server.counts.requests, 1);
  }
  const short = await setUp(t, [{ hold }], { limits: { modelFirstByteMs: 20 } });
  assertProviderError((await ask(short.model)).error, { message: /silent for 0.02 s/, retryable: true });
});

test("[MO23] a stalled reply fails; any byte, even of a comment, resets the timer", async (t) => {
  const { leap, readings, system } = quickSystem();
  const { next, url } = await bareServer(t);
  const model = adaptor({ url, system });
  t.after(() => model.close());
  const stream = model.stream(REQUEST, never)[Symbol.asyncIterator]();
  const first = stream.next();
  const response = await next();
  response.write(chunk({ content: "a" }));
  assert.deepEqual((await first).value, [{ kind: "text", text: "a" }]);
  const second = stream.next();
  leap(14_000);
  const before = readings();
  response.write(": still thinking\n\n");
  while (readings() === before) await nextTurn();
  leap(14_000);
  response.write(chunk({ content: "b" }));
  assert.deepEqual((await second).value, [{ kind: "text", text: "b" }]);
  const third = assert.rejects(Promise.resolve(stream.next()), (error) => {
    const message = "the model server was silent for 15 s (PARLEY_MODEL_STALL_SECONDS)";
    assertProviderError(error, { message, retryable: false });
    return true;
  });
  leap(15_001);
  await third;
  const short = await setUp(t, [{ tokens: ["a", "b"], fault: "stall_midway" }], {
    limits: { modelStallMs: 20 },
  });
  assertProviderError((await ask(short.model)).error, { message: /silent for 0.02 s/, retryable: false });
});

test("[MO24] a server that accepts connections but never completes them is given up on", async (t) => {
  const sockets = new Set<{ destroy(): void }>();
  const server = createSocketServer((socket) => sockets.add(socket.on("error", () => {})));
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  const limits = { modelConnectMs: 400, modelRetriesMax: 0 };
  const model = adaptor({ url: `https://127.0.0.1:${port}/v1`, limits });
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
    return model.close();
  });
  const message = "the connection to the model server failed (UND_ERR_CONNECT_TIMEOUT)";
  assertProviderError((await ask(model)).error, { message, retryable: true });
  assert.equal(sockets.size, 1);
});

test("[MO25] replies beyond the connection limit wait for a connection, but not forever", async (t) => {
  const { promise: hold, resolve: release } = Promise.withResolvers<void>();
  const limits = { modelConnectionsMax: 1, modelConnectMs: 100, modelFirstByteMs: 900 };
  const { server, model } = await setUp(t, [{ tokens: ["a", "b"], hold, holdAfter: 1 }], { limits });
  const first = ask(model);
  await server.waitFor("requests");
  const message = /was free for 1 s \(PARLEY_MODEL_CONNECTIONS_MAX\)/;
  assertProviderError((await ask(model)).error, { message, retryable: true });
  release();
  assert.equal((await first).text, "ab");
  assert.equal((await ask(model)).text, "ab");
  assert.deepEqual([server.counts.requests, server.counts.connections], [2, 2]);
});

test("[MO26] a slow reader slows the server down, and the server is not blamed for it", async (t) => {
  const { leap, system } = quickSystem();
  const text = "x".repeat(32 * 1024);
  const body = chunk({ content: text }).repeat(256) + END;
  const { model } = await setUp(t, [{ body }], { system });
  let chars = 0;
  for await (const deltas of model.stream(REQUEST, never)) {
    if (chars < 10 * text.length) for (let turn = 0; turn < 100; turn += 1) await nextTurn();
    if (chars < 10 * text.length) leap(60_000);
    for (const delta of deltas) {
      if (delta.kind !== "text") continue;
      assert.ok(delta.text.length <= 5 * text.length, `${delta.text.length} characters at once`);
      chars += delta.text.length;
    }
  }
  assert.equal(chars, 256 * text.length);
});

test("[MO27] an abort ends a reply at once, at any point", async (t) => {
  const aborted = { message: "the model request was aborted", retryable: false };
  const check = async (start: (signal: AbortSignal) => Promise<Reply>, when: Promise<void>) => {
    const controller = new AbortController();
    const reply = start(controller.signal);
    await when;
    const reason = new Error("stop pressed");
    controller.abort(reason);
    const { error } = await reply;
    assertProviderError(error, aborted);
    assert.equal(error.cause, reason);
  };
  const { server, model } = await setUp(t, [{ tokens: ["a"], hold: new Promise(() => {}) }], {
    name: null,
  });
  const gone = AbortSignal.abort("early");
  const early = (await ask(model, gone)).error;
  assertProviderError(early, aborted);
  const { counts } = server;
  assert.deepEqual([early.cause, counts.modelLists, counts.requests], ["early", 0, 0]);
  await check((signal) => ask(model, signal), server.waitFor("requests"));
  await server.waitFor("aborted");

  const busy = await startScriptedModel();
  busy.script(() => ({ status: 503, headers: { "retry-after": "9" } }));
  const patient = adaptor({ url: busy.url, system: createSystem() });
  await check((signal) => ask(patient, signal), busy.waitFor("requests"));
  const bare = await bareServer(t);
  const nameless = adaptor({ url: bare.url, name: null, limits: { modelConnectMs: 600_000 } });
  await check((signal) => ask(nameless, signal), bare.next().then(() => {}));
  await Promise.all([patient.close(), nameless.close(), busy.close()]);
});

test("[MO28] a reply leaves no timer and no listener, however it ended", async (t) => {
  const { pending, system } = quickSystem();
  const options = { system, limits: { modelStallMs: 20 } };
  const controller = new AbortController();
  const { signal } = controller;
  const isClean = () => pending() === 0 && getEventListeners(signal, "abort").length === 0;
  const tokens = ["a", "b"];
  const faults = ["truncate", "reset_midway", "stall_midway", "error_event", "json_body"] as const;
  const plans: Plan[] = [{ tokens }, { status: 400 }, { status: 503 }, { body: "" }];
  for (const plan of [...plans, ...faults.map((fault) => ({ tokens, fault }))]) {
    const { model } = await setUp(t, [plan], { ...options, name: null });
    await ask(model, signal);
    assert.ok(isClean(), JSON.stringify(plan));
  }
  const hold = new Promise<void>(() => {});
  const { server, model } = await setUp(t, [{ tokens, hold, holdAfter: 1 }], { system });
  for await (const _ of model.stream(REQUEST, signal)) break;
  await server.waitFor("aborted");
  assert.ok(isClean());
  const reply = ask(model, signal);
  await server.waitFor("requests", 2);
  controller.abort();
  await reply;
  assert.ok(isClean());
});

test("[MO29] successive replies reuse one connection, even when responses end late", async (t) => {
  const { leap, pending, system } = quickSystem();
  const plans = [{ tokens: ["a"] }, { tokens: ["a"], chunkBytes: 9 }];
  const { server, model } = await setUp(t, plans, { system });
  for (let turn = 0; turn < 3; turn += 1) {
    assert.equal((await ask(model)).text, "a");
    while (pending() > 0) await nextTurn();
    // undici gives a connection free one event-loop turn after its response.
    await nextTurn();
  }
  assert.equal(server.counts.connections, 1);

  const bare = await bareServer(t);
  const late = adaptor({ url: bare.url, system });
  t.after(() => late.close());
  const begin = async (): Promise<ServerResponse> => {
    const [response, reply] = [bare.next(), ask(late)];
    (await response).write(chunk({ content: "a" }) + END);
    assert.equal((await reply).text, "a");
    assert.equal(pending(), 1);
    return response;
  };
  const first = await begin();
  const { socket } = first;
  first.end();
  while (pending() > 0) await nextTurn();
  await nextTurn();
  const second = await begin();
  assert.equal(second.socket, socket);
  leap(1000);
  await once(second, "close");
});

test("[MO30] closing fails what is in flight, and is idempotent", async (t) => {
  const { server, model } = await setUp(t, [{ tokens: ["a"], hold: new Promise(() => {}) }]);
  const reply = ask(model);
  await server.waitFor("requests");
  await Promise.all([model.close(), model.close()]);
  const message = "the connection to the model server failed (UND_ERR_DESTROYED)";
  assertProviderError((await reply).error, { message, retryable: false });
  assertProviderError((await ask(model)).error, { message, retryable: false });
  assert.equal(server.counts.requests, 1);
});
