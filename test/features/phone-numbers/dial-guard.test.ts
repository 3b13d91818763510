// The guards of what may be dialled and how fast: as they are, and before every outbound call.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { test } from "node:test";
import fc from "fast-check";
import { barredReason, dialTurn } from "#features/phone-numbers/dial-guard.ts";
import { createManualSystem } from "#support/manual-clock.ts";
import { newAssistant, startTestServer, testDataDir, type TestServer } from "#support/server.ts";

test("[DG1] premium-rate, shared-cost and satellite numbers are never dialled; countries follow the list", () => {
  const never = {
    "Premium-rate": ["+19005551234", "+449098790000", "+979123456789", "+33899123456"],
    "Shared-cost": ["+4918012345"],
    Satellite: ["+881612345678", "+870773111632", "+88213123456", "+883510012345678"],
  };
  for (const [what, numbers] of Object.entries(never)) {
    for (const number of numbers) {
      const reason = `${what} phone numbers cannot be called.`;
      assert.equal(barredReason(number, []), reason, number);
      assert.equal(barredReason(number, ["US", "GB", "FR", "DE"]), reason, number);
    }
  }
  for (const number of ["+4930123456", "+4915112345678", "+12015550123", "+18005550199", "+15550100000"]) {
    assert.equal(barredReason(number, []), null, number);
  }
  assert.equal(barredReason("+4930123456", ["US", "DE"]), null);
  assert.equal(barredReason("+12423221234", ["US", "DE"]), "Phone numbers of the country BS cannot be called.");
  for (const unknown of ["+15550100000", "+99912345678"]) {
    assert.match(barredReason(unknown, ["US"])!, /country is not known/);
  }
});

test("[DG2] the rate bucket allows at most a minute's calls plus a burst and never starves, whatever the clock", () => {
  const SECOND = 1_000_000;
  const MANY = { minLength: 1, maxLength: 400, size: "max" } as const;
  fc.assert(fc.property(
    fc.integer({ min: 1, max: 500 }),
    fc.oneof(
      fc.array(fc.integer({ min: -5 * SECOND, max: 20 * SECOND }), MANY),
      // Bursts after quiet times.
      fc.array(fc.oneof(
        { weight: 50, arbitrary: fc.integer({ min: 0, max: SECOND / 10 }) },
        { weight: 1, arbitrary: fc.integer({ min: 0, max: 600 * SECOND }) },
      ), MANY),
    ),
    (perMinute, steps) => {
      let now = 1_000 * SECOND;
      let spent: number | null = null;
      const passed: number[] = [];
      for (const step of steps) {
        now += step;
        const turn = dialTurn(spent, perMinute, now);
        if (turn.kind === "wait") {
          assert.ok(turn.until > now && turn.until <= now + 121 * SECOND);
          assert.equal(dialTurn(spent, perMinute, turn.until).kind, "now");
          assert.equal(dialTurn(spent, perMinute, turn.until - 1).kind, "wait");
          continue;
        }
        spent = turn.spentUntil;
        passed.push(now);
      }
      if (steps.some((step) => step < 0)) return;
      for (const from of passed) {
        const inMinute = passed.filter((at) => at >= from && at < from + 60 * SECOND).length;
        assert.ok(inMinute <= perMinute + Math.ceil(perMinute / 6), `${inMinute} of ${perMinute}`);
      }
    }));
  // A clock that was put back an hour costs nobody an hour.
  const ahead = dialTurn(null, 6, 7_200 * SECOND);
  assert.ok(ahead.kind === "now");
  assert.deepEqual(dialTurn(ahead.spentUntil, 6, 3_600 * SECOND),
    { kind: "now", spentUntil: 3_610 * SECOND });
});

const LIMITED = {
  PARLEY_SPEECH: "loopback", PARLEY_RATE_LIMITS: "on", PARLEY_RATE_KEY_PER_MINUTE: "100000",
  PARLEY_RATE_KEY_BURST: "100000", PARLEY_CALL_PRICE: "0",
};
const makeCall = (on: TestServer, assistantId: number, phoneNumber: string, key = on.key) =>
  on.call("POST", "/user/make_call", {
    key, body: { assistant_id: assistantId, phone_number: phoneNumber },
  });
const OUTBOUND = { type: "outbound", status: "active" };

test("[DG3] make_call: 422 for barred numbers, 429 above the rate; neither a restart nor a deletion resets it", async () => {
  const clock = createManualSystem();
  const dataDir = testDataDir();
  const env = {
    ...LIMITED, PARLEY_DIAL_RATE_PER_MINUTE: "12", PARLEY_DIAL_COUNTRIES: "us, de",
  };
  const start = () => startTestServer({ system: clock, dataDir, env });
  let limited = await start();
  const { key } = limited;
  const { id } = await newAssistant(limited, OUTBOUND, key);
  const refused = async (number: string) => {
    const { status, body } = await makeCall(limited, id, number, key);
    return [status, body];
  };
  assert.deepEqual(await refused("+33142685300"),
    [422, { message: "Phone numbers of the country FR cannot be called." }]);
  assert.deepEqual(await refused("+19005551234"),
    [422, { message: "Premium-rate phone numbers cannot be called." }]);
  const calls = async () => (await limited.call("GET", "/user/calls", { key })).body as
    { total: number; data: { id: number }[] };
  assert.equal((await calls()).total, 0);
  // A sixth of twelve at once; what was refused before was not counted.
  for (const number of ["+493012340001", "+493012340001"]) {
    assert.equal((await makeCall(limited, id, number, key)).status, 200);
  }
  const tooFast = await makeCall(limited, id, "+493012340001", key);
  assert.deepEqual([tooFast.status, tooFast.body, tooFast.headers.get("retry-after")], [429, {
    message: "Too many calls were placed in a minute. Try again in 5 seconds.", retry_after: 5,
  }, "5"]);
  const other = await limited.newAccount();
  const theirs = await newAssistant(limited, OUTBOUND, other.key);
  assert.equal((await makeCall(limited, theirs.id, "+493012340001", other.key)).status, 200);

  await limited.close();
  limited = await start();
  for (const { id: callId } of (await calls()).data) {
    assert.equal((await limited.call("DELETE", `/user/calls/${callId}`, { key })).status, 200);
  }
  assert.equal((await makeCall(limited, id, "+493012340001", key)).status, 429);
  clock.advance(5000);
  assert.equal((await makeCall(limited, id, "+493012340001", key)).status, 200);
  assert.equal((await makeCall(limited, id, "+493012340001", key)).status, 429);
  await limited.close();
  rmSync(dataDir, { recursive: true });
});

test("[DG4] a campaign waits for the rate limit, and a barred lead waits behind the others without using an attempt", async () => {
  const clock = createManualSystem();
  const limited = await startTestServer({
    system: clock, env: { ...LIMITED, PARLEY_DIAL_RATE_PER_MINUTE: "6" },
  });
  const { dialler } = limited.app.features;
  const { id: assistantId } = await newAssistant(limited, OUTBOUND);
  const { body: { data: { id: campaignId } } } = await limited.call("POST", "/user/campaigns", {
    body: { name: "C", assistant_id: assistantId, timezone: "UTC" },
  });
  const NUMBERS = ["+19005551234", "+15550100006", "+15550110006", "+15550120006"];
  for (const number of NUMBERS) {
    const { status } = await limited.call("POST", "/user/lead", {
      body: { phone_number: number, campaign_id: campaignId },
    });
    assert.equal(status, 200);
  }
  const leads = async () => {
    const { data } = (await limited.call("GET", "/user/leads")).body as
      { data: { phone_number: string; status: string; call_tries: number }[] };
    const byNumber = new Map(data.map((lead) =>
      [lead.phone_number, `${lead.status} ${lead.call_tries}`]));
    return NUMBERS.map((number) => byNumber.get(number));
  };
  const started = await limited.call("POST", "/user/campaigns/update-status", {
    body: { campaign_id: campaignId, action: "start" },
  });
  assert.equal(started.status, 200);
  await dialler.idle();
  assert.deepEqual(await leads(), ["rescheduled 0", "processing 1", "created 0", "created 0"]);
  for (const expected of ["created 0", "processing 1"]) {
    clock.advance(10_000);
    await dialler.idle();
    assert.deepEqual(await leads(), ["rescheduled 0", "processing 1", "processing 1", expected]);
  }
  const { campaigns } = limited.app.features;
  const { status } = await campaigns.get(limited.accountId, campaignId as number);
  assert.equal(status, "in-progress");
  await limited.close();
});
