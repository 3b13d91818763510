// A server that stood still, as a frozen machine does, until others gave it up: what it still had
// under way. The real server, and a store beside it that does what another node would.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { createSystem } from "#core/system.ts";
import { auditBeside, storeOfNode } from "#support/beside.ts";
import { startScriptedModel } from "#support/scripted-model.ts";
import { newAssistant, newConversation, startTestServer } from "#support/server.ts";

const model = await startScriptedModel();
const server = await startTestServer({ env: { PARLEY_MODEL_URL: model.url } });
after(async () => {
  await server.close();
  await model.close();
});

test("[ND82] a reply that others have closed as interrupted ends so for whoever waits: 503, and to be tried again", async () => {
  const { uuid } = await newAssistant(server);
  const talk = await newConversation(server, uuid);
  const [asked, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  model.script(() => {
    asked.resolve();
    return { tokens: ["At ", "nine."], hold: gate.promise, holdAfter: 1 };
  });
  const send = () => server.call("POST", `/conversations/${talk}/messages`, {
    body: { message: "When?" }, headers: { "Idempotency-Key": "k" },
  });
  const answer = send();
  await asked.promise;
  const { now } = createSystem();
  const other = await storeOfNode(server.dataDir, now());
  const dead = (await other.nodes.list()).find(({ id }) => id !== other.nodeId());
  assert.ok(dead && await other.nodes.bury({ deadId: dead.id, beatAt: dead.beatAt, now: now() }));
  const closed = await other.conversations.recover({ now: now() });
  assert.deepEqual(closed.map(({ type }) => type), ["reply_failed"]);
  gate.resolve();
  const { status, headers, body } = await answer;
  assert.deepEqual([status, headers.get("retry-after"), body.status], [503, "1", false]);
  await other.close();
  assert.deepEqual((await auditBeside(server.dataDir)).problems, []);
});
