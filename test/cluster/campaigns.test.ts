// A campaign over two nodes: both dial it, and nobody is called twice.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { askUntil } from "#support/asking.ts";
import { databaseAt, withoutPostgres } from "#support/engines.ts";
import { withoutNats } from "#support/nodes/nats.ts";
import { startNodes, type Nodes } from "#support/nodes/nodes.ts";
import { newAssistant } from "#support/server.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";

const skip = withoutPostgres || withoutNats;
const LEADS = 3;
const { promise: hold, resolve: goOn } = Promise.withResolvers<void>();
const model = await startScriptedModel({ tokens: 1 });
// Nobody says anything until both nodes have a call.
model.script(() => ({ tokens: ["Hi."], hold }));
let nodes: Nodes;
before(async () => {
  if (skip) return;
  nodes = await startNodes(2, {
    PARLEY_MODEL_URL: model.url, PARLEY_SPEECH: "loopback", PARLEY_CALLS_MAX: "1",
  });
});
after(async () => {
  goOn();
  if (!skip) await nodes.close();
  await model.close();
});

test("[ND22] two nodes share a campaign's dialling, and nobody is called twice", { skip }, async () => {
  const { door } = nodes;
  const assistant = await newAssistant(door, {
    type: "outbound", status: "active", timezone: "UTC", initial_message: "Hi there.",
    post_call_evaluation: false, endpoint_sensitivity: 1,
  });
  const { body: { data: { id: campaignId } } } = await door.call("POST", "/user/campaigns", {
    body: { name: "Spring", assistant_id: assistant.id, max_calls_in_parallel: 4, max_retries: 1 },
  });
  for (let number = 0; number < LEADS; number += 1) {
    const { status } = await door.call("POST", "/user/lead", {
      body: { campaign_id: campaignId, phone_number: `+1415555012${number}` },
    });
    assert.equal(status, 200);
  }
  const started = await door.call("POST", "/user/campaigns/update-status", {
    body: { campaign_id: campaignId, action: "start" },
  });
  assert.equal(started.status, 200, JSON.stringify(started.body));
  const database = await databaseAt(door.dataDir, "durable");
  const calls = () => database.query<{ lead_id: string; node_id: string; ended: boolean }>(
    "SELECT lead_id, node_id, ended_at IS NOT NULL AS ended FROM calls ORDER BY id");
  await askUntil(calls, (rows) => new Set(rows.map((row) => row.node_id)).size === 2);
  assert.ok((await calls()).length <= 2, "each node has room for one");
  goOn();
  const all = await askUntil(calls, (rows) =>
    rows.filter(({ ended }) => ended).length >= LEADS);
  assert.deepEqual(all.map((row) => row.lead_id).toSorted(),
    [...new Set(all.map((row) => row.lead_id))].toSorted());
});
