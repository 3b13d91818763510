// The server is stopped while its model is still evaluating a call that is over.
import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { ask } from "#support/api.ts";
import { askUntil } from "#support/asking.ts";
import { startProcess } from "#support/process.ts";
import { assistantBody, testDataDir } from "#support/server.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";

const VALUES = '{"status":true,"summary":"They asked when we are open."}';

test("[CR480] a call whose evaluation a server stop interrupts is evaluated at the next start", async (t) => {
  const model = await startScriptedModel();
  t.after(model.close);
  const asked = Promise.withResolvers<void>();
  const never = new Promise<void>(() => undefined);
  model.script(({ messages }) => {
    if (!String(messages[0]?.content).startsWith("You evaluate")) return { tokens: ["At nine."] };
    asked.resolve();
    return { tokens: [VALUES], hold: never };
  });
  const dir = testDataDir();
  const env = {
    PARLEY_MODEL_URL: model.url, PARLEY_MODEL_NAME: "scripted", PARLEY_SPEECH: "loopback",
  };
  const stopped = await startProcess(dir, env);
  const { key } = stopped;
  const made = await ask(stopped, "/user/assistant",
    assistantBody({ type: "inbound", status: "active", post_call_evaluation: true }));
  const { call_id: id } = await ask(stopped, "/user/try_call",
    { assistant_id: made.data.id, lines: ["When are you open?"] });
  await asked.promise;
  stopped.process.kill("SIGTERM");
  assert.deepEqual(await once(stopped.process, "exit"), [0, null]);
  model.script(() => ({ tokens: [VALUES] }));
  const again = await startProcess(dir, env);
  t.after(() => again.process.kill("SIGKILL"));
  const call = await askUntil(
    () => ask({ ...again, key }, `/user/calls/${id}`), ({ status }) => status !== "ended");
  assert.deepEqual([call.evaluation, call.evaluation_error], [JSON.parse(VALUES), null]);
});
