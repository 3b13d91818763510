// A call that somebody ends before it is open.
import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { after, test } from "node:test";
import { accountEvent } from "#support/account-events.ts";
import { newAssistant, startTestServer } from "#support/server.ts";
import { startWebhookReceiver } from "#support/webhook-receiver.ts";

test("[CR530] a call ended while its inbound webhook is asked is ended once it is open", async () => {
  const receiver = await startWebhookReceiver();
  const server = await startTestServer({
    env: { PARLEY_SPEECH: "loopback", PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8" },
  });
  after(async () => {
    await server.close();
    await receiver.close();
  });
  const asked = Promise.withResolvers<ServerResponse>();
  receiver.answer((_, response) => asked.resolve(response));
  const { id } = await newAssistant(server, {
    status: "active", inbound_webhook_url: receiver.url,
  });
  const { body: { call_id: callId } } = await server.call("POST", "/user/try_call", {
    body: { assistant_id: id },
  });
  const response = await asked.promise;
  const ending = server.call("POST", `/user/calls/${callId}/end`);
  const over = accountEvent(server, ({ type, call_id: of }) =>
    type === "call_ended" && of === callId);
  const first = await Promise.race([ending, server.call("GET", `/user/calls/${callId}`)]);
  assert.equal(first.body.ok, undefined, "it is not known yet");
  response.end("{}");
  assert.deepEqual((await ending).body, { ok: true });
  await over;
  const { body } = await server.call("GET", `/user/calls/${callId}`);
  assert.equal(body.end_reason, "operator");
});
