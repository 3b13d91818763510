// SIGKILL of the real process in the middle of a tool call and of a document.
import assert from "node:assert/strict";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { test } from "node:test";
import { accountEvent } from "#support/account-events.ts";
import { startEndpoint } from "#support/endpoint.ts";
import { startProcess, type Running } from "#support/process.ts";
import { startScriptedModel } from "#support/scripted-model.ts";
import { assistantBody, testDataDir } from "#support/server.ts";

async function call(
  { url }: Running,
  key: string | null,
  path: string,
  body?: object,
  headers: Record<string, string> = {},
): Promise<Record<string, never>> {
  const response = await fetch(`${url}/api${path}`, {
    method: body ? "POST" : "GET",
    headers: { "Content-Type": "application/json", Authorization: `Bearer ${key}`, ...headers },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  return await response.json() as Record<string, never>;
}

async function kill({ process: child }: Running, signal: "SIGKILL" | "SIGTERM"): Promise<void> {
  const gone = once(child, "exit");
  child.kill(signal);
  await gone;
}

test("[TL15] killed while an endpoint works, a call is not sent again but reported as unknown", async () => {
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
  const tool = await call(server, key, "/user/tools", {
    name: "charge_card", description: "Charges", endpoint: `${endpoint.url}/x`, method: "POST",
  }) as { data?: { id: number } };
  const assistant = await call(server, key, "/user/assistant",
    assistantBody({ tool_ids: [tool.data?.id] })) as { data?: { uuid: string } };
  const { conversation_id: uuid } = await call(server, key, "/conversations", {
    assistant_id: assistant.data?.uuid,
  }) as { conversation_id?: string };
  const send = () => call(server, key, `/conversations/${uuid}/messages`, { message: "Pay" }, {
    "Idempotency-Key": "k",
  });
  const lost = assert.rejects(send());
  await arrived.promise;
  await kill(server, "SIGKILL");
  await lost;
  server = await startProcess(dataDir, env);
  const answer = await send() as {
    message?: string; function_calls?: { result: { error: string } }[];
  };
  assert.equal(answer.message, "Done.");
  assert.match(answer.function_calls?.[0]?.result.error ?? "", /unknown/);
  assert.equal(endpoint.requests.length, 1);
  await kill(server, "SIGTERM");
  await Promise.all([endpoint.close(), model.close()]);
  rmSync(dataDir, { recursive: true });
});

/** A first time may be forgiven where a second is not; `npm run prove` goes on for longer. */
const KILLS = process.env.PROOF === "long" ? 4 : 2;

test("[KB14] killed while it reads, however often, a server reads the document again when it is back", async () => {
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
  const made = await call(server, key, "/user/knowledgebases", { name: "K" }) as { data?: { id: number } };
  const path = `/user/knowledgebases/${made.data?.id}/documents`;
  const document = await call(server, key, path, {
    name: "Site", type: "website", url: site.url,
  }) as { data?: { id: number } };
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
    type === "document_status_changed" && id === document.data?.id && status !== "processing");
  assert.equal(read.status, "active");
  await kill(server, "SIGTERM");
  await site.close();
  rmSync(dataDir, { recursive: true });
});
