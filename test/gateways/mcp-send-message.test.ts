// What the tool send_message takes, and that it leaves nothing behind where it refuses.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { newAssistant, startTestServer } from "#support/server.ts";
import { createMcpCaller, type Free } from "#support/vendors/mcp-caller.ts";

const server = await startTestServer();
after(() => server.close());
const assistant = await newAssistant(server);
const { modern, use, refusal } = createMcpCaller(server);

test("[MC73] send_message requires a message and starts nothing without one", async () => {
  const { tools } = (await modern("tools/list")).body.result;
  const { inputSchema } = tools.find(({ name }: Free) => name === "send_message");
  assert.deepEqual(inputSchema.required, ["message"]);
  assert.doesNotMatch(inputSchema.properties.message.description, /messages/);
  for (const message of [undefined, "", " \n"]) {
    assert.match(await refusal("send_message", { assistant_id: assistant.id, message }), /message/);
  }
  assert.deepEqual((await use("list_conversations")).structuredContent.data, []);
});
