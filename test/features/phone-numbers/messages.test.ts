// SMS and WhatsApp: what clients read that ask for them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { startTestServer } from "#support/server.ts";

test("[PN91] with a valid key, SMS and WhatsApp routes answer 501 with an explanation", async () => {
  const server = await startTestServer();
  const sms = await server.call("POST", "/user/sms", { body: { from: 1, to: "+1", body: "Hi" } });
  assert.equal(sms.status, 501);
  assert.deepEqual(Object.keys(sms.body as object), ["message"]);
  assert.match((sms.body as { message: string }).message, /cannot send SMS/);
  for (const [method, path] of [
    ["GET", "senders"], ["GET", "senders/1/templates"], ["POST", "send"],
    ["POST", "send-freeform"], ["GET", "session-status"],
  ] as const) {
    const { status, body } = await server.call(method, `/user/whatsapp/${path}`);
    assert.equal(status, 501, path);
    const told = "This server cannot use WhatsApp. Use the API of your WhatsApp provider.";
    assert.deepEqual(body, {
      success: false, error: told, error_code: "NOT_SUPPORTED", message: told,
    });
    const strange = await server.call(method, `/user/whatsapp/${path}`, { key: null });
    assert.equal(strange.status, 401, path);
  }
  await server.close();
});
