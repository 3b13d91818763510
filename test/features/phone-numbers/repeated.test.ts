// A purchase that is asked for again while the first one is under way.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { startTwilioNumbers } from "#support/carriers/twilio-numbers-server.ts";
import { startTestServer } from "#support/server.ts";

const twilio = await startTwilioNumbers();
const server = await startTestServer({ env: { ...twilio.env, PARLEY_SPEECH: "loopback" } });
after(async () => {
  await server.close();
  await twilio.close();
});

test("[PN32] a repeated purchase whose lookup comes late gets the first one's answer", async () => {
  const number = "+12015550777";
  twilio.available.set(number, "US");
  const bought = Promise.withResolvers<void>();
  let looks = 0;
  twilio.intercept(({ method }, act) => {
    // The second to look sees the number when it is sold.
    if (method !== "GET" || (looks += 1) !== 2) return undefined;
    return bought.promise.then(act);
  });
  const buy = () => server.call("POST", "/user/phone-numbers/purchase", {
    body: { phone_number: number }, key: server.key, headers: { "Idempotency-Key": "late" },
  });
  const asked = [buy(), buy()];
  void Promise.race(asked).then(() => bought.resolve());
  const [one, other] = await Promise.all(asked);
  assert.deepEqual([one?.status, other?.status], [201, 201]);
  assert.deepEqual(one?.body, other?.body);
  const { body } = await server.call("GET", "/user/me");
  assert.equal(body.total_balance, 1.01);
});
