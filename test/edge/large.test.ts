// Requests larger than most: what proxies send on, and what browsers bring along; and answers that
// nobody takes.
import assert from "node:assert/strict";
import { once } from "node:events";
import { Agent, get, type IncomingMessage } from "node:http";
import { connect } from "node:net";
import { buffer } from "node:stream/consumers";
import { after, test } from "node:test";
import { WebSocket } from "ws";
import { createLogger } from "#core/logger.ts";
import { createSystem, nextTurn } from "#core/system.ts";
import { createHttpServer } from "#http/server.ts";
import { newAssistant, newConversation, startTestServer } from "#support/server.ts";

const server = await startTestServer();
after(() => server.close());

const MB = 1_000_000;

/** Reads nothing before all is sent, as proxies do; then another request on the same connection. */
function sendAll(head: string, bytes: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(server.port, "127.0.0.1");
    let answer = "";
    socket.on("error", reject);
    socket.on("close", () => resolve(answer));
    socket.pause();
    socket.write(`${head}Host: x\r\nContent-Length: ${bytes}\r\n\r\n`);
    socket.write(Buffer.alloc(bytes, "x"), () => {
      socket.write("GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
      socket.resume();
    });
    socket.on("data", (chunk) => (answer += chunk.toString("latin1")));
  });
}

test("[ER154] a client refused while still sending gets the answer and keeps the connection", async () => {
  const { body } = await server.call("POST", "/user/knowledgebases", { body: { name: "Shop" } });
  const documents = `POST /api/user/knowledgebases/${body.data.id}/documents HTTP/1.1\r\n`
    + "Content-Type: multipart/form-data; boundary=b\r\n";
  const statusesOf = async (head: string, bytes: number) =>
    [...(await sendAll(head, bytes)).matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => status);
  const key = `Authorization: Bearer ${server.key}\r\n`;
  assert.deepEqual(await statusesOf("POST /api/conversations HTTP/1.1\r\n", 10 * MB), ["413", "200"]);
  assert.deepEqual(await statusesOf(documents, 10 * MB), ["401", "200"]);
  assert.deepEqual(await statusesOf(documents + key, 30 * MB), ["422", "200"]);
});

test("[ER157] a file sent as text is reported as not a file", async () => {
  const { body } = await server.call("POST", "/user/knowledgebases", { body: { name: "Forms" } });
  const answerTo = async (file: string): Promise<unknown[]> => {
    const form = new FormData();
    form.append("type", "txt");
    form.append("name", "Prices");
    form.append("file", file);
    const answer = await fetch(`${server.url}/api/user/knowledgebases/${body.data.id}/documents`, {
      method: "POST", headers: { Authorization: `Bearer ${server.key}` }, body: form,
    });
    return [answer.status, (await answer.json() as { message: string }).message];
  };
  assert.deepEqual(await answerTo("[object Object]"),
    [422, "The file field must be a file: a part of the form with a filename."]);
  assert.deepEqual(await answerTo(""), [422, "A file is required for this document type."]);
});

test("[ER560] a form with several files is refused as such, not as malformed", async () => {
  const { body } = await server.call("POST", "/user/knowledgebases", { body: { name: "Forms" } });
  const form = new FormData();
  form.append("type", "txt");
  form.append("name", "Prices");
  for (const name of ["a.txt", "b.txt"]) form.append("file", new Blob(["A bell: 12 euros"]), name);
  const answer = await fetch(`${server.url}/api/user/knowledgebases/${body.data.id}/documents`, {
    method: "POST", headers: { Authorization: `Bearer ${server.key}` }, body: form,
  });
  assert.deepEqual([answer.status, await answer.json()], [
    400, { error: "The form has several files: send each in a request of its own." },
  ]);
});

test("[ER155] cookies of other programs on the page lock nobody out", async () => {
  const headers = { Cookie: `session=${"x".repeat(12_000)}` };
  assert.equal((await fetch(`${server.url}/widget.js`, { headers })).status, 200);
  const { uuid } = await newAssistant(server);
  const socket = new WebSocket(
    `${server.url.replace("http", "ws")}/api/conversations/${await newConversation(server, uuid)}/socket`,
    { headers });
  await new Promise((resolve, reject) => socket.once("message", resolve).once("error", reject));
  socket.terminate();
  const much = `GET /livez HTTP/1.1\r\nCookie: session=${"x".repeat(40_000)}\r\nHost: x\r\n\r\n`;
  const [answer] = await once(connect(server.port, "127.0.0.1").end(much), "data") as [Buffer];
  assert.match(answer.toString(), /^HTTP\/1.1 431 /);
});

test("[AU346] of pipelined answers nobody reads one waits, then it is closed; a late reader gets all of it", async (context) => {
  const answers = createHttpServer({
    tls: null, trustedProxies: [], uploadsMax: 1, log: createLogger("silent"),
    every: createSystem().every, newRequestId: () => "1",
    renderError: () => ({ status: 500, json: {} }),
  });
  context.after(() => answers.close());
  let asked = Promise.withResolvers<void>();
  let count = 0;
  const addRoute = (pattern: string, bytes: number): void => answers.route({
    method: "GET", pattern, bodyBytesMax: 0,
    handle: () => {
      count += 1;
      asked.resolve();
      return { status: 200, contentType: "text/plain", content: "x".repeat(bytes) };
    },
  });
  addRoute("/page", 12 * MB);
  addRoute("/line", 9_000);
  const port = await answers.listen("127.0.0.1", 0);
  /** How many are answered until the server closes, where none is read before the first is. */
  const answered = async (path: string, requests: number): Promise<number> => {
    count = 0;
    asked = Promise.withResolvers();
    const socket = connect(port, "127.0.0.1").on("error", () => null).pause();
    const closed = new Promise((resolve) => socket.once("close", resolve));
    const head = `GET ${path} HTTP/1.1\r\nHost: x\r\n`;
    socket.write(`${head}\r\n`.repeat(requests) + `${head}Connection: close\r\n\r\n`);
    await asked.promise;
    await nextTurn();
    socket.resume();
    await closed;
    return count;
  };
  assert.equal(await answered("/page", 20), 1);
  const lines = await answered("/line", 4_000);
  assert.ok(lines < 2_000, `${lines} lines`);

  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  context.after(() => agent.destroy());
  for (const isReused of [false, true]) {
    const request = get({ port, path: "/page", agent });
    const [answer] = await once(request, "response") as [IncomingMessage];
    await nextTurn();
    assert.equal((await buffer(answer)).length, 12 * MB);
    assert.equal(request.reusedSocket, isReused);
  }
});
