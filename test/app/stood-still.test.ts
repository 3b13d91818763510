// A server that stands still for a while, as on a machine that is moved, saved or out of memory:
// what arrived meanwhile is no silence. The real server process, stopped by SIGSTOP.
import assert from "node:assert/strict";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { createServer } from "node:http";
import { after, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { ask } from "#support/api.ts";
import { listenLocally } from "#support/local-server.ts";
import { startProcess } from "#support/process.ts";
import { assistantBody, testDataDir } from "#support/server.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";

/** Twice what the model may be silent, and more than a timer is ever late otherwise. */
const FROZEN_MS = 2500;

const folder = testDataDir();
const model = await startScriptedModel();
const server = await startProcess(folder, {
  PARLEY_MODEL_URL: model.url, PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8",
  PARLEY_MODEL_FIRST_BYTE_SECONDS: "1", PARLEY_MODEL_STALL_SECONDS: "1",
});
after(async () => {
  const ended = once(server.process, "exit");
  server.process.kill("SIGTERM");
  await ended;
  await model.close();
  rmSync(folder, { recursive: true });
});

const stop = (): void => void server.process.kill("SIGSTOP");
async function goOnLater(): Promise<void> {
  await delay(FROZEN_MS);
  server.process.kill("SIGCONT");
}

test("[OP321] replies the model wrote while the process was paused, beyond its timeout, are complete", async () => {
  const [asked, frozen] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  // The first reply stands in its middle, the second before its first byte.
  model.script((_, place) => {
    if (place === 1) asked.resolve();
    return { tokens: ["At ", "nine."], hold: frozen.promise, holdAfter: 1 - place };
  });
  const send = async (accept: string): Promise<Response> => {
    const { conversation_id: talk } = await ask(
      server, "/conversations", { assistant_id: server.assistant, type: "test" });
    return fetch(`${server.url}/api/conversations/${String(talk)}/messages`, {
      method: "POST", body: JSON.stringify({ message: "When?" }),
      headers: { "Content-Type": "application/json", "Accept": accept },
    });
  };
  const { body } = await send("text/event-stream");
  const streamed = body?.pipeThrough(new TextDecoderStream()).getReader();
  let shown = "";
  const read = async (): Promise<boolean> => {
    const { value = "", done = true } = await streamed?.read() ?? {};
    shown += value;
    return !done;
  };
  while (!shown.includes('"At "') && await read());
  const second = send("application/json");
  await asked.promise;
  stop();
  frozen.resolve();
  await goOnLater();
  while (await read());
  assert.match(shown, /"content":"At nine\."/);
  assert.equal((await (await second).json() as { message: string }).message, "At nine.");
  assert.equal(model.requests.length, 2, "neither was asked for again");
});

test("[OP324] a tool's answer that arrived while the process was paused, beyond its timeout, is its result", async (t) => {
  const asked = Promise.withResolvers<() => void>();
  const endpoint = await listenLocally(createServer((_, response) =>
    asked.resolve(() => void response.end('{"booked":"nine"}'))));
  t.after(() => endpoint.close());
  const { data: tool } = await ask(server, "/user/tools", {
    name: "book", description: "Books", endpoint: endpoint.url, method: "POST", timeout: 1, schema: [],
  });
  const { data: assistant } = await ask(
    server, "/user/assistant", assistantBody({ status: "active", tool_ids: [tool.id] }));
  model.script(({ messages }) => messages.at(-1)?.role === "tool"
    ? { tokens: ["Done."] }
    : { toolCalls: [{ id: "1", name: "book", arguments: "{}" }], finishReason: "tool_calls" });
  const { conversation_id: talk } = await ask(
    server, "/conversations", { assistant_id: assistant.uuid, type: "test" });
  const reply = ask(server, `/conversations/${String(talk)}/messages`, { message: "At nine." });
  const answer = await asked.promise;
  stop();
  answer();
  await goOnLater();
  const { message, function_calls: calls } = await reply;
  assert.equal(message, "Done.");
  assert.deepEqual(calls, [{ name: "book", arguments: {}, result: { booked: "nine" } }]);
});
