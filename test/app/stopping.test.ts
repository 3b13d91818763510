// Stopping the real process: under load, by its own signal and by npm's.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { test } from "node:test";
import { WebSocket } from "ws";
import { askUntil } from "#support/asking.ts";
import { holdWrites, rowsBeside } from "#support/databases/beside.ts";
import { databaseAt, withoutPostgres } from "#support/engines.ts";
import { startProcess, type Running } from "#support/process.ts";
import { testDataDir } from "#support/server.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";

const CONVERSATIONS = 40;

/** Resolves to the body of a 200, to null for what was refused or never reached the server. */
async function send(url: string): Promise<{ message?: string } | null> {
  try {
    const response = await fetch(url, {
      method: "POST", body: JSON.stringify({ message: "Hello" }),
      headers: { "Content-Type": "application/json" },
    });
    const body = await response.json() as object;
    if (response.status === 503) return null;
    assert.equal(response.status, 200, JSON.stringify(body));
    return body;
  } catch (error) {
    // The connection was refused or closed before the request was taken: fetch knows no more.
    if (error instanceof TypeError) return null;
    throw error;
  }
}

/** Makes a conversation and resolves to where messages of it go. */
async function newConversation({ url }: Running, assistant: string | null): Promise<string> {
  const response = await fetch(`${url}/api/conversations`, {
    method: "POST", body: JSON.stringify({ assistant_id: assistant }),
  });
  const { conversation_id: uuid } = (await response.json()) as { conversation_id: string };
  return `${url}/api/conversations/${uuid}/messages`;
}

/** How the turns of a stopped server ended. */
const turnStates = (dataDir: string): Promise<object[]> =>
  rowsBeside(dataDir, "SELECT state, count(*) AS turns FROM turns GROUP BY state");

test("[OP146] SIGTERM lets turns still being stored, and those in the queue, be answered", async () => {
  const model = await startScriptedModel();
  model.script(() => ({ tokens: ["one ", "two"] }));
  const dataDir = testDataDir();
  const server = await startProcess(dataDir, { PARLEY_MODEL_URL: model.url });
  const url = await newConversation(server, server.assistant);
  const lines = createInterface({ input: server.process.stdout as Readable });
  const stopping = new Promise<void>((resolve) => lines.on("line", (line) => {
    if (line.includes('"msg":"stopping"')) resolve();
  }));
  // It keeps the server's writer waiting in the middle of a begin.
  const held = await holdWrites(dataDir);
  // One socket keeps the order: once the ping is answered, what was sent before it is taken on.
  const socket = new WebSocket(url.replace("http", "ws").replace("/messages", "/socket"));
  const answers: unknown[] = [];
  const taken = Promise.withResolvers<void>();
  socket.on("message", (text: Buffer) => {
    const frame = JSON.parse(text.toString()) as { type: string; message?: string; error?: string };
    if (frame.type === "pong") taken.resolve();
    if (frame.type === "send_result" || frame.type === "error") answers.push(frame.message ?? frame.error);
  });
  await once(socket, "open");
  for (let count = 0; count < 3; count += 1) {
    socket.send(JSON.stringify({ type: "send", message: "Hello" }));
  }
  socket.send(JSON.stringify({ type: "ping" }));
  await taken.promise;
  const left = once(socket, "close");
  const exited = once(server.process, "exit");
  server.process.kill("SIGTERM");
  await stopping;
  await held.letGo();
  await left;
  assert.deepEqual(answers, ["one two", "one two", "one two"]);
  assert.deepEqual(await exited, [0, null]);
  assert.deepEqual(await turnStates(dataDir), [{ state: "done", turns: 3 }]);
  await model.close();
  rmSync(dataDir, { recursive: true });
});

test("[OP146] SIGTERM under load interrupts no accepted turn, and answers each of them", async () => {
  const model = await startScriptedModel();
  model.script(() => ({ tokens: ["one ", "two"], firstDelayMs: 50 }));
  const dataDir = testDataDir();
  const server = await startProcess(dataDir, { PARLEY_MODEL_URL: model.url });
  const urls = await Promise.all(Array.from({ length: CONVERSATIONS }, () =>
    newConversation(server, server.assistant)));
  // One send of each is answered while the other waits in line.
  const sends = [...urls, ...urls].map(send);
  await model.waitFor("requests");
  const exited = once(server.process, "exit");
  server.process.kill("SIGTERM");
  const answers = (await Promise.all(sends)).filter((reply) => reply !== null);
  assert.ok(answers.every(({ message }) => message === "one two"));
  assert.ok(answers.length > 0);
  assert.deepEqual(await exited, [0, null]);
  assert.deepEqual(await turnStates(dataDir), [{ state: "done", turns: answers.length }]);
  await model.close();
  rmSync(dataDir, { recursive: true });
});

test("[OP300] with PARLEY_STOP_NOTICE_SECONDS a server announces its stop, serves on that long, then stops", async () => {
  const model = await startScriptedModel();
  model.script(() => ({ tokens: ["one ", "two"] }));
  const start = async (seconds: number): Promise<Running & { dataDir: string }> => {
    const dataDir = testDataDir();
    const env = { PARLEY_MODEL_URL: model.url, PARLEY_STOP_NOTICE_SECONDS: String(seconds) };
    return { ...await startProcess(dataDir, env), dataDir };
  };
  const [long, short] = await Promise.all([start(3600), start(1)]);
  const url = await newConversation(long, long.assistant);
  const exits = [long, short].map(({ process: child }) => once(child, "exit"));
  for (const { process: child } of [long, short]) child.kill("SIGTERM");
  const ready = await askUntil(() => fetch(`${long.url}/readyz`), ({ status }) => status === 503);
  assert.match(await ready.text(), /the server is stopping/);
  assert.equal((await send(url))?.message, "one two");
  assert.deepEqual(await exits[1], [0, null]);
  // Whoever does not want to wait says so a second time.
  long.process.kill("SIGTERM");
  assert.deepEqual(await exits[0], [1, null]);
  await model.close();
  for (const { dataDir } of [long, short]) rmSync(dataDir, { recursive: true });
});

test("[OP304] a node given up during its stop notice exits at once, to be restarted", {
  skip: withoutPostgres,
}, async () => {
  const dataDir = testDataDir();
  const database = await databaseAt(dataDir, "durable");
  const server = await startProcess(dataDir, {
    PARLEY_DATABASE_URL: database.url, PARLEY_STOP_NOTICE_SECONDS: "3600",
  });
  const exited = once(server.process, "exit");
  server.process.kill("SIGTERM");
  await askUntil(() => fetch(`${server.url}/readyz`), ({ status }) => status === 503);
  await database.query("UPDATE nodes SET state = 'gone', gone_at = beat_at");
  assert.deepEqual(await exited, [75, null]);
  await database.drop();
  rmSync(dataDir, { recursive: true });
});

test("[OP147] SIGTERM to `npm start` alone stops the server", async () => {
  const dataDir = testDataDir();
  const npm = spawn("npm", ["start"], {
    cwd: new URL("../..", import.meta.url).pathname,
    env: { ...process.env, PARLEY_PORT: "0", PARLEY_DATA_DIR: dataDir, PARLEY_DEMO: "off" },
    stdio: ["ignore", "pipe", "ignore"],
  });
  // Whoever is left behind holds the pipe's other end, and it never ends.
  let lastLine = "";
  for await (const line of createInterface({ input: npm.stdout })) {
    if (line.includes('"msg":"listening"')) npm.kill("SIGTERM");
    if (line.trim() !== "") lastLine = line;
  }
  assert.match(lastLine, /"code":0,"msg":"stopped"/);
  rmSync(dataDir, { recursive: true });
});
