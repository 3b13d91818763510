// What a model does after it has given a call away, in the same turn.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { newAssistant, startTestServer } from "#support/server.ts";
import { startScriptedModel, type Plan } from "#support/vendors/scripted-model.ts";

const model = await startScriptedModel();
const server = await startTestServer({
  env: {
    PARLEY_SPEECH: "loopback", PARLEY_MODEL_URL: model.url,
    PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8",
  },
});
after(async () => {
  await server.close();
  await model.close();
});

const calling = (name: string): Plan => ({ toolCalls: [{ id: "c1", name, arguments: "{}" }] });

test("[MX20] an assistant that hands a call to another one and hangs up does not end the call", async () => {
  const { key } = await server.newAccount();
  let steps = 0;
  model.script(({ messages }) => {
    if (String(messages[0]?.content).includes("second desk")) return { tokens: ["We bill monthly."] };
    steps += 1;
    return steps === 1 ? calling("transfer_to_assistant")
      : steps === 2 ? calling("hang_up") : { tokens: ["Goodbye."] };
  });
  const settings = { type: "outbound", status: "active", endpoint_sensitivity: 1 };
  const second = await newAssistant(server, {
    ...settings, system_prompt: "You are the second desk.", initial_message: "Billing here.",
  }, key);
  const first = await newAssistant(server, {
    ...settings, system_prompt: "You are the first desk.", initial_message: "Hi there.",
    tools: [
      { type: "assistant_transfer", description: "", assistant_id: second.id },
      { type: "end_call", description: "" },
    ],
  }, key);
  const over = Promise.withResolvers<void>();
  const { body } = await server.call("POST", "/user/make_call", {
    key, body: { phone_number: "+15550100042", assistant_id: first.id },
  });
  server.app.features.bus.subscribe(`call:${body.call_id}`, (notice) => {
    if (notice.kind === "committed" && notice.event.type === "call_ended") over.resolve();
  });
  await over.promise;
  const call = (await server.call("GET", `/user/calls/${body.call_id}`, { key })).body;
  assert.match(call.transcript, /AI: Billing here\./);
  assert.match(call.transcript, /AI: We bill monthly\./);
  assert.equal(call.end_reason, "customer_hung_up");
});
