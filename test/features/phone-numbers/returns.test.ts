// Numbers that go back to a provider which refuses one of them. Twilio is a double that speaks as
// documented.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { LIMITS } from "#core/limits.ts";
import { startTwilioNumbers } from "#support/carriers/twilio-numbers-server.ts";
import { rowsBeside, runBeside } from "#support/databases/beside.ts";
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

test("[NP4] what is left of a provider that is no longer configured keeps no other waiting", async () => {
  const { key } = await server.newAccount({ balance: "20" });
  twilio.available.set("+12015550311", "US");
  const bought = await server.call(
    "POST", "/user/phone-numbers/purchase", { key, body: { phone_number: "+12015550311" } });
  assert.equal(bought.status, 201);
  await server.call("DELETE", `/user/phone-numbers/${bought.body.data?.id}`, { key });
  const numbers = Array.from({ length: LIMITS.numberSweepRowsMax }, (_, at) => at);
  const orderOf = (provider: string, name: string | number): string =>
    `('${provider}-${name}', ${server.accountId}, '${name}', 'US', 0, '${provider}', 0, 'lost', 1, 1)`;
  const orders = [...numbers.map((at) => orderOf("former", at)), orderOf("twilio", "lost")];
  for (const text of [
    "UPDATE phone_numbers SET paid_until = 1, due_at = 1",
    `INSERT INTO number_returns (provider, provider_sid, phone_number, created_at)
      VALUES ${numbers.map((at) => `('former', '${at}', '${at}', 1)`).join(",")}`,
    `INSERT INTO number_purchases (uuid, account_id, phone_number, country_code, sms_capable,
      provider, price_micros, state, created_at, finished_at) VALUES ${orders.join(",")}`,
  ]) await runBeside(server.dataDir, text);
  await server.app.features.phoneNumbers.sweep();
  assert.deepEqual(twilio.incoming, [], "the number is given back");
  assert.deepEqual(await rowsBeside(server.dataDir,
    "SELECT state FROM number_purchases WHERE uuid = 'twilio-lost'"), [{ state: "failed" }]);
});
