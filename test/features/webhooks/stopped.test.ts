// The server is stopped while a receiver keeps it waiting.
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { ask } from "#support/api.ts";
import { startProcess } from "#support/process.ts";
import { testDataDir } from "#support/server.ts";
import { startWebhookReceiver } from "#support/webhook-receiver.ts";

test("[WH95] a receiver that never answers does not keep a server from stopping; it gets the message again", async (t) => {
  const receiver = await startWebhookReceiver();
  t.after(receiver.close);
  receiver.answer(() => undefined);
  const dir = testDataDir();
  const env = {
    PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8", PARLEY_WEBHOOK_SECONDS_MAX: "120",
    PARLEY_DRAIN_SECONDS: "1",
  };
  const stopped = await startProcess(dir, env);
  await ask(stopped, "/user/webhook-endpoints",
    { url: receiver.url, events: ["conversation_created"] });
  await ask(stopped, "/conversations", { assistant_id: stopped.assistant });
  const [before] = await receiver.until(1);
  stopped.process.kill("SIGTERM");
  assert.deepEqual(await once(stopped.process, "exit"), [0, null]);
  receiver.answer(null);
  const again = await startProcess(dir, env);
  t.after(() => again.process.kill("SIGKILL"));
  const [, after] = await receiver.until(2);
  assert.equal(after?.id, before?.id);
});
