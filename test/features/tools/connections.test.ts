// Connections to tools' endpoints: many at once, and kept ones that endpoints close as they like.
import assert from "node:assert/strict";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { LookupAddress } from "node:dns";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { after, test } from "node:test";
import { setImmediate as nextPhase } from "node:timers/promises";
import { LIMITS } from "#core/limits.ts";
import { createLogger } from "#core/logger.ts";
import { createToolThreads } from "#features/tools/threads.ts";
import { createOutbound } from "#outbound/request.ts";
import { startClosingEndpoint } from "#support/closing-endpoint.ts";
import { startEndpoint } from "#support/endpoint.ts";
import { lookUpBy } from "#support/names.ts";
import { startTestServer } from "#support/server.ts";

const env = { PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8" };

const post = (url: string, body: string) =>
  ({ url, method: "POST", body, totalMs: 10_000, bytesMax: 1000 });

async function withOutbound(
  work: (parts: {
    endpoint: Awaited<ReturnType<typeof startClosingEndpoint>>;
    outbound: ReturnType<typeof createOutbound>;
  }) => Promise<void>,
): Promise<void> {
  const endpoint = await startClosingEndpoint();
  const outbound = createOutbound({ allowPrivateNetworks: ["127.0.0.0/8"] });
  try {
    await work({ endpoint, outbound });
  } finally {
    // A failed test leaves none behind that would order about an endpoint that has stopped.
    stopWatching();
    await outbound.close();
    await endpoint.stop();
  }
}

test("[OU2] many slow tools are called at once, those of one account leave others room also at the same host, and a call that found none in time is not made", async () => {
  const endpoint = await startEndpoint();
  const threads = createToolThreads({
    allowPrivateNetworks: ["127.0.0.0/8"], threadsMax: 1, log: createLogger("silent"),
  });
  after(async () => {
    await threads.close();
    await endpoint.close();
  });
  const askAs = (accountId: number, path: string, totalMs: number) => threads.send({
    accountId, url: `${endpoint.url}${path}`, method: "GET", headers: {}, totalMs, bytesMax: 100, resultCharsMax: 100,
  });
  const ask = (path: string, totalMs: number) => askAs(1, path, totalMs);
  const atOnce = 20;
  const waiting: ServerResponse[] = [];
  endpoint.answer((_, response) => {
    waiting.push(response);
    if (waiting.length === atOnce) waiting.forEach((one) => one.end("{}"));
  });
  const replies = await Promise.all(Array.from({ length: atOnce }, () => ask("/", 10_000)));
  assert.deepEqual(new Set(replies.map(({ kind }) => kind)), new Set(["result"]));
  endpoint.answer(({ url }, response) => {
    if (url === "/others") response.end("{}");
  });
  const slowMs = LIMITS.toolThreadGraceMs + 1000;
  const length = LIMITS.toolCallsPerThreadMax * 7 / 8;
  const room = Array.from({ length }, () => ask("/slow", slowMs));
  const late = assert.rejects(ask("/late", 1), /too long/);
  const { kind } = await askAs(2, "/others", slowMs - 1000);
  assert.equal(kind, "result");
  await late;
  await Promise.all(room);
  await ask("/next", 1);
  assert.equal(endpoint.requests.some(({ url }) => url === "/late"), false);
});

test("[OU3] a name is looked up once for all who wait for it, and again for who asks later", (context) =>
  withOutbound(async ({ endpoint, outbound }) => {
    const answers = [1, 2].map(() => Promise.withResolvers<LookupAddress[]>());
    let asked = 0;
    lookUpBy(context, () => answers[asked++]?.promise ?? Promise.resolve([]));
    const url = `http://shop.test:${new URL(endpoint.url).port}/`;
    const connecting = Promise.withResolvers<void>();
    let begun = 0;
    const seen = (): void => {
      begun += 1;
      if (begun === 3) connecting.resolve();
    };
    subscribe("undici:client:beforeConnect", seen);
    context.after(() => unsubscribe("undici:client:beforeConnect", seen));
    const waiting = ["1", "2", "3"].map((body) => outbound.request(post(url, body)));
    await connecting.promise;
    await nextPhase();
    assert.equal(asked, 1);
    answers[0]?.reject(Object.assign(new Error("unknown"), { code: "ENOTFOUND" }));
    for (const reply of await Promise.all(waiting)) {
      assert.equal(reply.kind === "failed" && reply.why, "its host name does not resolve");
    }
    const later = outbound.request(post(url, "4"));
    answers[1]?.resolve([{ address: "127.0.0.1", family: 4 }]);
    assert.equal((await later).kind, "reply");
    assert.equal(asked, 2);
    assert.deepEqual(await endpoint.bodies(), ["4"]);
  }));

test("[FA2] a name whose DNS is silent holds no thread, and names that no DNS knows are asked for one after the other", (context) =>
  withOutbound(async ({ endpoint, outbound }) => {
    const asked: string[] = [];
    const waiting: (() => void)[] = [];
    const next = [1, 2].map(() => Promise.withResolvers<void>());
    lookUpBy(context, (name) => new Promise((resolve) => {
      asked.push(name);
      waiting.push(() => resolve([{ address: "127.0.0.1", family: 4 }]));
      next[asked.length - 1]?.resolve();
    }), (name) => {
      if (name === "shop.test") return Promise.resolve(["127.0.0.1"]);
      const code = name === "silent.test" ? "ETIMEOUT" : "ENOTFOUND";
      return Promise.reject(Object.assign(new Error(code), { code }));
    });
    const { port } = new URL(endpoint.url);
    const ask = (name: string) => outbound.request(post(`http://${name}:${port}/`, name));
    assert.deepEqual(await ask("silent.test"), {
      kind: "failed", reason: "unreachable", sent: false, why: "its host name does not resolve",
    });
    const inner = [ask("one.inner.test"), ask("two.inner.test")];
    await next[0]?.promise;
    assert.equal((await ask("shop.test")).kind, "reply");
    assert.deepEqual(asked, ["one.inner.test"]);
    waiting[0]?.();
    await next[1]?.promise;
    waiting[1]?.();
    for (const reply of await Promise.all(inner)) assert.equal(reply.kind, "reply");
    assert.deepEqual(asked, ["one.inner.test", "two.inner.test"]);
  }));

test("[TL107] calls reach an endpoint that closes its kept-alive connections", async () => {
  const sockets: { socket: Socket; closed: Promise<unknown> }[] = [];
  const endpoint = createServer((request, response) => {
    request.resume();
    response.writeHead(200, { connection: "keep-alive" }).end("{}");
  });
  // Closed only when the idle thread has heard of it and closed its own side.
  endpoint.on("connection", (socket: Socket) =>
    sockets.push({ socket, closed: once(socket, "close") }));
  endpoint.listen(0, "127.0.0.1");
  await once(endpoint, "listening");
  const server = await startTestServer({ env });
  after(async () => {
    await server.close();
    endpoint.close();
    endpoint.closeAllConnections();
  });
  const { port } = endpoint.address() as AddressInfo;
  const { body } = await server.call("POST", "/user/tools", {
    body: {
      name: "look_up", description: "Looks up", method: "POST",
      endpoint: `http://127.0.0.1:${port}/`, headers: [], schema: [],
    },
  });
  for (let count = 1; count <= 5; count += 1) {
    const trial = await server.call("POST", `/user/tools/${body.data.id}/try`, { body: {} });
    assert.equal(trial.status, 200);
    assert.deepEqual({ error: trial.body.error, connections: sockets.length }, {
      error: null, connections: count,
    });
    const { socket, closed } = sockets.at(-1)!;
    socket.end();
    await closed;
  }
});

test("[TL108] a connection closed while the thread was busy is not written to", () =>
  withOutbound(async ({ endpoint, outbound }) => {
    for (const body of ["1", "2", "3"]) {
      const reply = await outbound.request(post(endpoint.url, body));
      assert.equal(reply.kind, "reply");
      // Continues in the phase of the event loop that has already heard of what arrived.
      endpoint.closeNow(await endpoint.latest());
    }
    assert.deepEqual(await endpoint.bodies(), ["1", "2", "3"]);
  }));

let stopWatching = (): void => undefined;

/** Lets something happen to the connection in the moment before the next request is written. */
function beforeNextWrite(run: (from: number) => void): void {
  const seen = (message: unknown): void => {
    stopWatching();
    run((message as { socket: Socket }).socket.localPort!);
  };
  subscribe("undici:client:sendHeaders", seen);
  stopWatching = () => void unsubscribe("undici:client:sendHeaders", seen);
}

test("[TL109] a request that could not be written is sent once more, on a new connection", () =>
  withOutbound(async ({ endpoint, outbound }) => {
    await outbound.request(post(endpoint.url, "first"));
    beforeNextWrite(endpoint.resetNow);
    assert.equal((await outbound.request(post(endpoint.url, "again"))).kind, "reply");
    assert.deepEqual(await endpoint.bodies(), ["first", "again"]);
    // The second attempt is the last, and nothing has been sent.
    beforeNextWrite((from) => {
      endpoint.resetNow(from);
      beforeNextWrite(endpoint.resetNow);
    });
    const reply = await outbound.request(post(endpoint.url, "never"));
    assert.deepEqual(reply, {
      kind: "failed", reason: "unreachable", sent: false, why: "it closed the connection without an answer",
    });
    assert.deepEqual(await endpoint.bodies(), ["first", "again"]);
  }));

test("[TL110] a request that may have been read is not sent again", () =>
  withOutbound(async ({ endpoint, outbound }) => {
    await outbound.request(post(endpoint.url, "first"));
    beforeNextWrite(endpoint.closeNow);
    const reply = await outbound.request(post(endpoint.url, "again"));
    assert.deepEqual(reply, {
      kind: "failed", reason: "unreachable", sent: true, why: "it closed the connection without an answer",
    });
    assert.deepEqual(await endpoint.bodies(), ["first"]);
  }));
