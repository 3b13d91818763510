// A node that stops while chats that have ended are being evaluated there.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { askUntil } from "#support/asking.ts";
import { databaseAt, withoutPostgres } from "#support/engines.ts";
import { withoutNats } from "#support/nodes/nats.ts";
import { startNodes } from "#support/nodes/nodes.ts";
import { newAssistant, newConversation } from "#support/server.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";

test("[ND73] a chat being evaluated on a stopping server is not evaluated by another meanwhile", {
  skip: withoutPostgres || withoutNats,
}, async () => {
  const model = await startScriptedModel();
  const nodes = await startNodes(2, { PARLEY_MODEL_URL: model.url });
  after(async () => {
    await nodes.close();
    await model.close();
  });
  const [here, there] = nodes.all;
  assert.ok(here && there);
  const evaluating = Promise.withResolvers<void>();
  const evaluated = Promise.withResolvers<void>();
  const replying = Promise.withResolvers<void>();
  const replied = Promise.withResolvers<void>();
  let asked = 0;
  model.script(({ messages }) => {
    if (String(messages[0]?.content).includes("evaluate finished")) {
      asked += 1;
      evaluating.resolve();
      return { tokens: ["{\"happy\":true}"], hold: evaluated.promise };
    }
    if (messages.at(-1)?.content !== "Wait") return { tokens: ["Nine."] };
    replying.resolve();
    return { tokens: ["Yes."], hold: replied.promise };
  });
  const { uuid: assistant } = await newAssistant(here, {
    status: "active", post_call_evaluation: true,
    post_call_schema: [{ name: "happy", type: "bool", description: "Were they happy?" }],
  });
  const say = async (uuid: string, message: string) =>
    (await here.call("POST", `/conversations/${uuid}/messages`, { body: { message } })).status;
  const uuid = await newConversation(here, assistant);
  assert.equal(await say(uuid, "When?"), 200);
  assert.equal((await here.call("POST", `/user/conversations/${uuid}/end`)).status, 200);
  await evaluating.promise;
  // Until it is there, its node has not stopped.
  const last = say(await newConversation(here, assistant), "Wait");
  await replying.promise;
  const stopped = here.app.close();
  const database = await databaseAt(here.dataDir, "durable");
  const look = async () => {
    const [one, two] = await database.query<{ state: string; beat_at: string; clock: number }>(`
      SELECT state, beat_at, (SELECT count(*)::int FROM leases WHERE name = 'clock'
        AND node_id = nodes.id) AS clock FROM nodes ORDER BY id`);
    return { stopping: one?.state, beatAt: two?.beat_at, hasClock: two?.clock === 1 };
  };
  let { beatAt } = await askUntil(look, ({ stopping }) => stopping === "draining");
  for (const beat of ["which may be under way", "after the node has said that it stops"]) {
    const seen = await askUntil(look, (now) => now.beatAt !== beatAt);
    assert.equal(seen.hasClock, false, beat);
    ({ beatAt } = seen);
  }
  evaluated.resolve();
  await askUntil(look, ({ hasClock }) => hasClock === true);
  replied.resolve();
  assert.equal(await last, 200);
  await stopped;
  const { body } = await there.call("GET", `/user/conversations/${uuid}`, { key: here.key });
  assert.deepEqual([body.data.evaluation, asked], [{ happy: true }, 1]);
});
