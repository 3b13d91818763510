// A visitor who waits for a person, and goes on with the assistant meanwhile.
import assert from "node:assert/strict";
import { test } from "node:test";
import { newAssistant, newConversation, startTestServer } from "#support/server.ts";
import { startScriptedModel, type ScriptedRequest } from "#support/vendors/scripted-model.ts";

test("[MX24] while a visitor waits for a person the assistant cannot end the conversation", async (t) => {
  const model = await startScriptedModel();
  const server = await startTestServer({ env: { PARLEY_MODEL_URL: model.url } });
  t.after(async () => {
    await server.close();
    await model.close();
  });
  const { key } = await server.newAccount();
  const offered: string[][] = [];
  model.script(({ tools = [] }: ScriptedRequest) => {
    offered.push(tools.map((one) => (one.function as { name: string }).name));
    return { tokens: ["Goodbye."] };
  });
  const { uuid: assistant } = await newAssistant(server, {
    tools: [{ type: "end_call", description: "" }], desk: { visitor_may_ask: true },
  }, key);
  const uuid = await newConversation(server, assistant);
  const send = (message: string) =>
    server.call("POST", `/conversations/${uuid}/messages`, { body: { message } });
  await send("Hello");
  const { body } = await server.call("POST", `/conversations/${uuid}/request-human`, { body: {} });
  assert.equal(body.desk, "waiting");
  await send("Thank you, bye");
  await server.call("POST", `/user/conversations/${uuid}/hand-back`, { key, body: {} });
  await send("Are you there?");
  assert.deepEqual(offered, [["end_conversation"], [], ["end_conversation"]]);
});
