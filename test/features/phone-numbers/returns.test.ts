// Numbers that go back to a provider which refuses one of them. Twilio is a double that speaks as
// documented.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { startTwilioNumbers } from "#support/carriers/twilio-numbers-server.ts";
import { runBeside } from "#support/databases/beside.ts";
import { startTestServer } from "#support/server.ts";

const twilio = await startTwilioNumbers();
const server = await startTestServer({ env: { ...twilio.env, PARLEY_SPEECH: "loopback" } });
after(async () => {
  await server.close();
  await twilio.close();
});

test("[PN260] a number that its provider never takes back does not keep the others", async () => {
  const { key } = await server.newAccount({ balance: "20" });
  const numbers = ["+12015550301", "+12015550302", "+12015550303"];
  for (const number of numbers) {
    twilio.available.set(number, "US");
    const bought = await server.call(
      "POST", "/user/phone-numbers/purchase", { key, body: { phone_number: number } });
    assert.equal(bought.status, 201);
    await server.call("DELETE", `/user/phone-numbers/${bought.body.data?.id}`, { key });
  }
  await runBeside(server.dataDir, "UPDATE phone_numbers SET paid_until = 1, due_at = 1");
  const [kept] = twilio.incoming;
  twilio.intercept(({ method, path }) => {
    const isKept = method === "DELETE" && path.includes(String(kept?.sid));
    return isKept ? { status: 409, body: { message: "it is part of a service" } } : undefined;
  });
  const { sweep } = server.app.features.phoneNumbers;
  await sweep();
  await sweep();
  assert.deepEqual(twilio.incoming, [kept]);
  // Once it is taken back, it is not asked for again.
  twilio.intercept();
  await sweep();
  assert.deepEqual(twilio.incoming, []);
  const asked = twilio.requests.length;
  await sweep();
  assert.equal(twilio.requests.length, asked);
});
