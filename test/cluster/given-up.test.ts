// A server that stood still, as a frozen machine does, until others gave it up: what it still had
// under way. The real server, and a store beside it that does what another node would.
import assert from "node:assert/strict";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { after, test } from "node:test";
import { createSystem } from "#core/system.ts";
import { ask } from "#support/api.ts";
import { auditBeside, storeOfNode } from "#support/databases/beside.ts";
import { databaseAt, withoutPostgres } from "#support/engines.ts";
import { freePorts } from "#support/free-ports.ts";
import { startProcess } from "#support/process.ts";
import {
  assistantBody, newAssistant, newConversation, startTestServer, testDataDir,
} from "#support/server.ts";
import { openCaller } from "#support/sip/sip-caller.ts";
import { trunkBody, TRUNKS } from "#support/sip/sip-trunks.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";

const model = await startScriptedModel();
const server = await startTestServer({ env: { PARLEY_MODEL_URL: model.url } });
after(async () => {
  await server.close();
  await model.close();
});

test("[ND82] a reply that others closed as interrupted ends for its waiter with a 503 to retry", async () => {
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

test("[ND85] callers of a node that is given up are hung up on before it exits", {
  skip: withoutPostgres,
}, async (t) => {
  const dataDir = testDataDir();
  const database = await databaseAt(dataDir, "durable");
  const sipPort = await freePorts();
  const node = await startProcess(dataDir, {
    PARLEY_DATABASE_URL: database.url, PARLEY_SPEECH: "loopback",
    PARLEY_SIP_PORT: String(sipPort), PARLEY_SIP_HOST: "127.0.0.1",
    PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8",
  });
  const exited = once(node.process, "exit");
  const { data: trunk } = await ask(node, TRUNKS, trunkBody({
    sip_address: "127.0.0.1", inbound_authorization_type: "ip", allowed_inbound_ips: ["127.0.0.1"],
  }));
  await ask(node, "/user/assistant", assistantBody({ status: "active", phone_number_id: trunk.id }));
  const caller = await openCaller(sipPort, String(trunk.phone_number));
  t.after(async () => {
    await caller.close();
    await database.drop();
    rmSync(dataDir, { recursive: true });
  });
  await caller.call();
  await database.query("UPDATE nodes SET state = 'gone', gone_at = beat_at");
  const hungUp = caller.wire.heard.event("BYE").then(() => "hung up");
  assert.equal(await Promise.race([hungUp, exited]), "hung up");
  assert.deepEqual(await exited, [75, null]);
});
