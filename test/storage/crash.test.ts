// SIGKILL of the real process in the middle of a tool call and of a document.
import assert from "node:assert/strict";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { test } from "node:test";
import { accountEvent } from "#support/account-events.ts";
import { ask, callApi } from "#support/api.ts";
import { startEndpoint } from "#support/endpoint.ts";
import { startProcess, type Running } from "#support/process.ts";
import { IS_PROOF } from "#support/proof.ts";
import { assistantBody, testDataDir } from "#support/server.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";

async function kill({ process: child }: Running, signal: "SIGKILL" | "SIGTERM"): Promise<void> {
  const gone = once(child, "exit");
  child.kill(signal);
  await gone;
}

test("[TL15] killed while an endpoint works, a call is reported as unknown and not sent again", async () => {
  const endpoint = await startEndpoint();
  const arrived = Promise.withResolvers<void>();
  endpoint.answer(() => arrived.resolve());
  const model = await startScriptedModel();
  model.script((body) => {
    if (body.messages.some(({ role }) => role === "tool")) return { tokens: ["Done."] };
    const toolCall = { id: "c", name: "charge_card", arguments: "{}" };
    return { tokens: [], toolCalls: [toolCall], finishReason: "tool_calls" };
  });
  const dataDir = testDataDir();
  const env = { PARLEY_MODEL_URL: model.url, PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8" };
  let server = await startProcess(dataDir, env);
  const { key } = server;
  const tool = await ask(server, "/user/tools", {
    name: "charge_card", description: "Charges", endpoint: `${endpoint.url}/x`, method: "POST",
  });
  const assistant = await ask(
    server, "/user/assistant", assistantBody({ tool_ids: [tool.data.id] }));
  const { conversation_id: uuid } = await ask(server, "/conversations", {
    assistant_id: assistant.data.uuid,
  });
  const send = () => callApi(server.url, "POST", `/conversations/${uuid}/messages`, {
    key, body: { message: "Pay" }, headers: { "Idempotency-Key": "k" },
  });
  const lost = assert.rejects(send());
  await arrived.promise;
  await kill(server, "SIGKILL");
  await lost;
  server = await startProcess(dataDir, env);
  const { body } = await send();
  assert.equal(body.message, "Done.");
  assert.match(body.function_calls[0].result.error, /unknown/);
  assert.equal(endpoint.requests.length, 1);
  await kill(server, "SIGTERM");
  await Promise.all([endpoint.close(), model.close()]);
  rmSync(dataDir, { recursive: true });
});

/** A first time may be forgiven where a second is not; `npm run prove` goes on for longer. */
const KILLS = IS_PROOF ? 4 : 2;

test("[KB14] killed while reading, however often, a server reads the document again after restart", async () => {
  const site = await startEndpoint();
  const asked = Promise.withResolvers<void>();
  site.answer(({ url }, response) => {
    if (url === "/robots.txt") response.writeHead(404).end();
    else asked.resolve();
  });
  const dataDir = testDataDir();
  const env = { PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8" };
  let server = await startProcess(dataDir, env);
  const { key } = server;
  const made = await ask(server, "/user/knowledgebases", { name: "K" });
  const path = `/user/knowledgebases/${made.data.id}/documents`;
  const document = await ask(server, path, { name: "Site", type: "website", url: site.url });
  await asked.promise;
  await kill(server, "SIGKILL");
  // However often: the server's deaths are not the document's fault.
  for (let killed = 1; killed < KILLS; killed += 1) {
    const again = Promise.withResolvers<void>();
    site.answer(({ url }, response) => {
      if (url === "/robots.txt") response.writeHead(404).end();
      else again.resolve();
    });
    server = await startProcess(dataDir, env);
    await again.promise;
    await kill(server, "SIGKILL");
  }
  site.answer(({ url }, response) => {
    response.setHeader("content-type", "text/html");
    response.writeHead(url === "/robots.txt" ? 404 : 200).end("<p>Here again.</p>");
  });
  server = await startProcess(dataDir, env);
  const read = await accountEvent({ url: server.url, key }, ({ type, document_id: id, status }) =>
    type === "document_status_changed" && id === document.data.id && status !== "processing");
  assert.equal(read.status, "active");
  await kill(server, "SIGTERM");
  await site.close();
  rmSync(dataDir, { recursive: true });
});
