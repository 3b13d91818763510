// Phone numbers over HTTP: search, purchase with everything that may go wrong, list, name, give up.
// Twilio is a double that speaks as documented; no live account was tried.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { LIMITS } from "#core/limits.ts";
import type { CallOptions } from "#support/api.ts";
import { startTwilioNumbers, type TwilioRequest } from "#support/carriers/twilio-numbers-server.ts";
import { auditBeside, insertBeside, rowsBeside, runBeside } from "#support/databases/beside.ts";
import { createManualSystem } from "#support/manual-clock.ts";
import { newAssistant, openBeside, startTestServer } from "#support/server.ts";

const twilio = await startTwilioNumbers();
const system = createManualSystem();
const server = await startTestServer({ system, env: { ...twilio.env, PARLEY_SPEECH: "loopback" } });
after(async () => {
  await server.close();
  await twilio.close();
});
const { phoneNumbers, bus } = server.app.features;

let made = 0;
/** A number nobody had before, that Twilio sells. */
function onSale(country = "US"): string {
  made += 1;
  const number = `${country === "DE" ? "+4930" : "+1201"}555${String(made).padStart(4, "0")}`;
  twilio.available.set(number, country);
  return number;
}
const STOCKED = { countryCode: "US", smsCapable: false, monthlyMicros: null, carrier: null };
async function inStock(phoneNumber: string, changes: object = {}): Promise<void> {
  const storage = await openBeside(server.dataDir);
  await storage.numberInventory.stock({
    now: 1, numbers: [{ phoneNumber, ...STOCKED, ...changes }],
  });
  await storage.close();
}
const buy = (number: unknown, options: CallOptions = {}) =>
  server.call("POST", "/user/phone-numbers/purchase", {
    body: { phone_number: number }, ...options,
  });
const withKey = (idempotencyKey: string, key: string): CallOptions =>
  ({ key, headers: { "Idempotency-Key": idempotencyKey } });
const all = async (key = server.key) =>
  (await server.call("GET", "/user/phone-numbers/all", { key })).body.data as
    Record<string, unknown>[];
const balance = async (key = server.key) =>
  (await server.call("GET", "/user/me", { key })).body.total_balance as number;
const posts = () => twilio.requests.filter(({ method }) => method === "POST").length;

/** Everything the ledger, the balance and the reservations disagree about. */
async function problems(): Promise<string[]> {
  const { problems: found } = await auditBeside(server.dataDir);
  const holding = await rowsBeside<{ id: number }>(
    server.dataDir, "SELECT id FROM accounts WHERE reserved_micros <> 0");
  return [...found, ...holding.map(({ id }) => `account ${id} has something reserved`)];
}

const NOT_AVAILABLE = {
  error: "This phone number is not available for purchase. Please search for available numbers first.",
};
const NOT_FOUND = { error: "Phone number not found." };
const PROVIDER_FAILED = {
  error: "Failed to purchase phone number from provider. Please contact support.",
};

test("[PN10] [PN235] search: own stock first, then the provider; by country and digits, bounded", async () => {
  const search = async (query: string) =>
    server.call("GET", `/user/phone-numbers/search?${query}`);
  const twilioNumber = onSale();
  await inStock("+12015559001", { smsCapable: true, monthlyMicros: 1_500_000 });
  const { status, body } = await search("contains=201555");
  assert.equal(status, 200);
  assert.deepEqual(body.data, [
    {
      phone_number: "+12015559001", phone_number_formatted: "+1 201 555 9001",
      country_code: "US", price: 1.5, stripe_price_id: null, address_requirements: "none",
      sms_capable: false,
    },
    {
      phone_number: twilioNumber, phone_number_formatted: "+1 201 555 0001",
      country_code: "US", price: 3.99, stripe_price_id: null, address_requirements: "none",
      sms_capable: false,
    },
  ]);
  assert.deepEqual(body.result, body.data);
  const german = onSale("DE");
  const numbersOf = async (query: string) =>
    ((await search(query)).body.data as { phone_number: string }[]).map((one) => one.phone_number);
  assert.deepEqual(await numbersOf("country_code=de"), [german]);
  assert.deepEqual(await numbersOf("country_code=DE&contains=9999999"), []);
  // Twilio takes no pattern of one digit: what it then finds is narrowed here.
  assert.deepEqual(await numbersOf("country_code=DE&contains=8"), []);
  // A country without a price is not sold, whatever the provider has.
  twilio.available.set("+33123456789", "FR");
  assert.deepEqual(await numbersOf("country_code=FR"), []);
  twilio.available.delete("+33123456789");
  for (const bad of ["country_code=USA", "contains=12a", "contains=12345678901"]) {
    const refused = await search(bad);
    assert.equal(refused.status, 422, bad);
    assert.equal(Object.keys(refused.body.errors as object).length, 1, bad);
  }
  const international = await search("contains=%2B49");
  assert.deepEqual([international.status, international.body.errors], [
    422, { contains: ["The contains must be 1 to 10 digits, without + and spaces."] }]);
  for (let at = 0; at < LIMITS.numberSearchMax + 5; at += 1) onSale();
  assert.equal((await numbersOf("")).length, LIMITS.numberSearchMax);
  twilio.intercept(() => ({ status: 503, body: {} }));
  assert.deepEqual(await numbersOf(""), ["+12015559001"]);
  const silent = await search("country_code=DE");
  twilio.intercept();
  assert.deepEqual([silent.status, silent.body],
    [500, { error: "Failed to search for phone numbers. Please try again." }]);
});

test("[PN11] a purchase charges a month, assigns the number and publishes both; Twilio stores its name", async () => {
  const number = onSale();
  const told: Record<string, unknown>[] = [];
  const { key, accountId } = await server.newAccount();
  const stop = bus.subscribe(`account:${accountId}`, (notice) => {
    if (notice.kind === "committed") told.push(JSON.parse(notice.event.json) as typeof told[0]);
  });
  // A sweep that comes round meanwhile leaves the order alone.
  twilio.intercept((_, act) => phoneNumbers.sweep().then(act));
  const { status, body } = await buy(` ${number.slice(0, 5)} ${number.slice(5)}`, { key });
  twilio.intercept();
  stop();
  assert.equal(status, 201);
  const { id } = body.data as { id: number };
  assert.deepEqual(body, {
    message: "Phone number purchased successfully.",
    data: { id, phone_number: number, country_code: "US", type: "normal", sms_capable: false },
  });
  assert.equal(await balance(key), 1.01);
  const paidUntil = "2026-02-15T12:00:00.000000Z";
  assert.deepEqual(told, [
    {
      type: "phone_number_purchased", phone_number_id: id, phone_number: number,
      monthly_price: 3.99, paid_until: paidUntil,
    },
    { type: "balance_changed", balance: 1.01, change: -3.99, kind: "number" },
  ]);
  const [listed] = await all(key);
  assert.deepEqual(listed, {
    id, phone_number: number, nickname: null, country_code: "US", type: "normal",
    type_label: "Dedicated Number", sms_capable: false, region: "us1",
    has_active_subscription: true, created_at: "2026-01-15T12:00:00.000000Z",
    status: "active", monthly_price: 3.99, paid_until: paidUntil, grace_until: null,
    released_at: null,
  });
  const bought = twilio.incoming.find((row) => row.phone_number === number);
  assert.match(bought?.friendly_name ?? "", /^parley [0-9a-f-]{36}$/);
  const { body: assignable } = await server.call("GET", "/user/assistants/phone-numbers", { key });
  assert.deepEqual(assignable, [{
    id, phone_number: number, country_code: "US", type_label: "Normal", is_available: true,
  }]);
  assert.deepEqual(await problems(), []);
});

test("[PN12] each refusal of a purchase has its exact text, charges nothing and leaves nothing behind", async () => {
  const number = onSale();
  const refused = async (
    expected: [number, object], wanted: unknown, options: CallOptions = {},
  ) => {
    const { status, body } = await buy(wanted, options);
    assert.deepEqual([status, body], expected, String(wanted));
  };
  const unparsable = {
    error: "Unable to parse phone number. Please provide a valid E.164 format number.",
  };
  for (const bad of ["2015550123", "+1201", "hello", "+", "+999999999999"]) {
    await refused([422, unparsable], bad);
  }
  const message = "The phone number field is required.";
  await refused([422, { message, errors: { phone_number: [message] } }], undefined);
  await refused([400, NOT_AVAILABLE], "+12015550999");
  twilio.available.set("+33123456789", "FR");
  await refused([400, NOT_AVAILABLE], "+33123456789");
  twilio.available.delete("+33123456789");
  const never = await server.newAccount({ balance: "0" });
  await refused([402, {
    error: "No payment method found. Please add a payment method to your account.",
  }], number, { key: never.key });
  const short = await server.newAccount({ balance: "3.98" });
  await refused([402, { error: "Payment failed. Please update your payment method." }], number, {
    key: short.key,
  });
  const before = posts();
  twilio.intercept(() => ({ status: 401, body: { code: 20003 } }));
  const { key } = await server.newAccount();
  await refused([500, PROVIDER_FAILED], number, { key });
  twilio.intercept();
  assert.equal(posts(), before);
  assert.equal((await buy(number, { key })).status, 201);
  await refused([400, { error: "This phone number is already in use." }], number);
  const unauthenticated = { message: "Unauthenticated.", error: "Unauthorized", reason: "missing" };
  await refused([401, unauthenticated], number, { key: null });
  assert.deepEqual([await balance(), await balance(short.key), await all()], [5, 3.98, []]);
  assert.deepEqual(await problems(), []);
});

test("[PN13] the same Idempotency-Key buys once and repeats the answer; for another number it is refused", async () => {
  const { key } = await server.newAccount({ balance: "20" });
  const [number, other] = [onSale(), onSale()];
  const replays = (headers: Headers) => headers.get("idempotency-replayed") === "true";
  const before = posts();
  const answers = await Promise.all(
    Array.from({ length: 4 }, () => buy(number, withKey("one", key))));
  answers.push(await buy(number, withKey("one", key)));
  assert.equal(posts(), before + 1);
  for (const { status, body } of answers) {
    assert.deepEqual([status, body], [201, answers[0]?.body]);
  }
  assert.deepEqual(answers.map(({ headers }) => replays(headers)).sort(),
    [false, true, true, true, true]);
  assert.equal(await balance(key), 16.01);
  const mismatch = await buy(other, withKey("one", key));
  const message = "The Idempotency-Key was used for another phone number.";
  assert.deepEqual([mismatch.status, mismatch.body],
    [422, { message, errors: { idempotency_key: [message] } }]);
  assert.equal((await buy(number, withKey("k".repeat(256), key))).status, 422);
  // What was ordered and failed has had its answer; what was refused before it may be tried again.
  twilio.intercept(({ method }) =>
    method === "POST" ? { status: 400, body: { code: 21631 } } : undefined);
  const failed = await buy(other, withKey("two", key));
  const again = await buy(other, withKey("two", key));
  assert.deepEqual([failed.status, failed.body], [500, PROVIDER_FAILED]);
  assert.deepEqual([again.status, again.body], [500, PROVIDER_FAILED]);
  assert.ok(replays(again.headers) && !replays(failed.headers));
  twilio.intercept();
  const missing = "+12015550888";
  assert.equal((await buy(missing, withKey("three", key))).status, 400);
  twilio.available.set(missing, "US");
  assert.equal((await buy(missing, withKey("three", key))).status, 201);
  // Keys are each account's own.
  const stranger = await server.newAccount();
  assert.equal((await buy(other, withKey("one", stranger.key))).status, 201);
  assert.deepEqual(await problems(), []);
});

test("[PN14] of many concurrent purchases of one number, one gets it and pays", async () => {
  await inStock("+12015559002");
  for (const number of [onSale(), "+12015559002"]) {
    const buyers = await Promise.all(Array.from({ length: 5 }, () => server.newAccount()));
    const answers = await Promise.all(buyers.map(({ key }) => buy(number, { key })));
    const statuses = answers.map(({ status }) => status).sort();
    assert.deepEqual(statuses, [201, 400, 400, 400, 400], number);
    const balances = await Promise.all(buyers.map(({ key }) => balance(key)));
    assert.deepEqual(balances.sort(), [1.01, 5, 5, 5, 5]);
  }
  // One account with money for one of two numbers gets one.
  const { key } = await server.newAccount();
  const both = await Promise.all([buy(onSale(), { key }), buy(onSale(), { key })]);
  assert.deepEqual(both.map(({ status }) => status).sort(), [201, 402]);
  assert.equal((await all(key)).length, 1);
  assert.deepEqual(await problems(), []);
});

test("[PN15] whatever the provider does to an order, it completes or leaves nothing, and no number is lost", async () => {
  const isOrder = ({ method }: TwilioRequest) => method === "POST";
  const { key } = await server.newAccount();
  const unchanged = async (number: string) => {
    assert.equal(await balance(key), 5);
    assert.deepEqual(await all(key), []);
    assert.equal(twilio.incoming.some((row) => row.phone_number === number), false);
    assert.deepEqual(await problems(), []);
  };
  // Sold to somebody else between the look and the order.
  const gone = onSale();
  twilio.intercept((request) => {
    if (isOrder(request)) twilio.available.delete(gone);
    return undefined;
  });
  assert.deepEqual((await buy(gone, { key })).body, NOT_AVAILABLE);
  await unchanged(gone);
  for (const answer of [{ status: 401, body: {} }, { status: 403, body: {} }]) {
    const refused = onSale();
    twilio.intercept((request) => (isOrder(request) ? answer : undefined));
    assert.equal((await buy(refused, { key })).status, 500);
    await unchanged(refused);
  }
  // It acts and its answer is lost, or is none: found again by its name.
  for (const lost of [null, { status: 502, body: "no" }, { status: 201, body: { hello: 1 } }]) {
    const number = onSale();
    twilio.intercept((request, act) => {
      if (!isOrder(request)) return undefined;
      act();
      return lost;
    });
    const account = await server.newAccount();
    assert.equal((await buy(number, { key: account.key })).status, 201);
    assert.equal(await balance(account.key), 1.01);
  }
  // It says nothing and acts later: refused, not charged, and given back once it has turned up.
  const slow = onSale();
  let act = (): unknown => undefined;
  twilio.intercept((request, actNow) => {
    if (!isOrder(request)) return undefined;
    act = actNow;
    return null;
  });
  assert.deepEqual((await buy(slow, { key })).body, PROVIDER_FAILED);
  twilio.intercept();
  await phoneNumbers.sweep();
  await unchanged(slow);
  const other = await server.newAccount();
  assert.equal((await buy(slow, { key: other.key })).status, 400); // Until it is known.
  act();
  assert.ok(twilio.incoming.some((row) => row.phone_number === slow));
  await phoneNumbers.sweep();
  await unchanged(slow);
  assert.equal((await buy(slow, { key: other.key })).status, 201);
  // It never turns up: after a while it is given up.
  const never = onSale();
  twilio.intercept((request) => (isOrder(request) ? null : undefined));
  assert.equal((await buy(never, { key })).status, 500);
  twilio.intercept();
  system.advance(LIMITS.numberSettleMs + 1);
  await phoneNumbers.sweep();
  assert.equal((await buy(never, { key })).status, 201);
});

test("[PN16] list, read, name: what the owner sees; no number sends SMS where the server cannot", async () => {
  const { key } = await server.newAccount({ balance: "20" });
  await inStock("+12015559003", { monthlyMicros: 0 });
  const sms = (await buy(onSale(), { key })).body.data as { id: number; phone_number: string };
  const free = (await buy("+12015559003", { key })).body.data as { id: number };
  assert.equal(await balance(key), 16.01);
  assert.deepEqual((await all(key)).map(({ id }) => id), [sms.id, free.id]);
  const legacy = await server.call("GET", "/user/phone-numbers", { key });
  assert.deepEqual([legacy.status, legacy.body], [200, []]);
  const path = `/user/phone-numbers/${sms.id}`;
  const name = (nickname: unknown) => server.call("PUT", path, { key, body: { nickname } });
  const named = await name("Front desk");
  assert.deepEqual([named.status, named.body], [200, {
    message: "Phone number updated successfully.",
    data: {
      id: sms.id, phone_number: sms.phone_number, nickname: "Front desk", country_code: "US",
      type: "normal",
    },
  }]);
  assert.equal((await name("n".repeat(50))).status, 200);
  const message = "The nickname must not exceed 50 characters.";
  const long = await name("n".repeat(51));
  assert.deepEqual([long.status, long.body], [422, { message, errors: { nickname: [message] } }]);
  const unnamed = await server.call("PUT", path, { key, body: {} });
  assert.equal(unnamed.body.data.nickname, "n".repeat(50));
  for (const cleared of ["", null]) {
    await name("Front desk");
    assert.equal((await name(cleared)).body.data.nickname, null);
  }
  const read = await server.call("GET", path, { key });
  assert.deepEqual([read.status, read.body.data], [200, (await all(key))[0]]);
});

test("[PN17] a released number works until its month ends, then is detached everywhere; its calls stay", async () => {
  const { key, accountId } = await server.newAccount({ balance: "20" });
  const number = onSale();
  const { id } = (await buy(number, { key })).body.data as { id: number };
  const assistant = await newAssistant(
    server, { phone_number_id: id, type: "outbound", status: "active" }, key);
  const campaign = await insertBeside(server.dataDir, `
    INSERT INTO campaigns (account_id, assistant_id, name, status, timezone, max_calls_in_parallel,
      start_minute, end_minute, allowed_days, max_retries, retry_interval_minutes,
      retry_on_voicemail, retry_on_goal_incomplete, mark_complete_when_no_leads,
      phone_number_ids, created_at, updated_at)
    VALUES (@accountId, @assistantId, 'C', 'draft', 'UTC', 1, 0, 1, '[]', 0, 10, 0, 0, 0, @ids, 1, 1)`,
  { accountId, assistantId: assistant.id, ids: `[${id},99]` });
  const callId = await insertBeside(server.dataDir, `
    INSERT INTO calls (account_id, assistant_id, type, status, assistant_phone, price_per_minute,
      created_at, updated_at, variables)
    VALUES (@accountId, @assistantId, 'outbound', 'completed', @number, 0, 1, 1, '{}')`,
  { accountId, assistantId: assistant.id, number });
  const path = `/user/phone-numbers/${id}`;
  const release = () => server.call("DELETE", path, { key });
  const released = await release();
  assert.deepEqual([released.status, released.body], [200, {
    message: "Phone number released successfully. It will be removed at the end of the billing period.",
  }]);
  const again = await release();
  assert.deepEqual([again.status, again.body],
    [400, { error: "Phone number is already scheduled for release." }]);
  assert.notEqual((await all(key))[0]?.released_at, null);
  const numberOf = async () =>
    (await server.call("GET", `/user/assistant/${assistant.id}`, { key })).body.phone_number_id;
  assert.equal(await numberOf(), id);
  // The end of its month, without a month of ticks.
  await runBeside(server.dataDir, `
    UPDATE phone_numbers SET paid_until = @now, due_at = @now WHERE id = @id`,
  { now: system.now(), id });
  let refusals = 0;
  twilio.intercept(({ method }) => {
    if (method !== "DELETE") return undefined;
    refusals += 1;
    return { status: 503, body: {} };
  });
  await phoneNumbers.sweep();
  assert.equal(refusals, 1);
  assert.deepEqual(await all(key), []);
  assert.equal(await numberOf(), null);
  assert.deepEqual(await rowsBeside(
    server.dataDir, "SELECT phone_number_ids FROM campaigns WHERE id = @campaign", { campaign }),
  [{ phone_number_ids: "[99]" }]);
  const kept = await server.call("GET", `/user/calls/${callId}`, { key });
  assert.equal(kept.body.assistant_phone_number, number);
  assert.equal(await balance(key), 16.01);
  assert.ok(twilio.incoming.some((row) => row.phone_number === number));
  twilio.intercept();
  await phoneNumbers.sweep();
  assert.equal(twilio.incoming.some((row) => row.phone_number === number), false);
  const gone = await release();
  assert.deepEqual([gone.status, gone.body], [404, NOT_FOUND]);
});

test("[PN18] numbers without a subscription are released at once; an own number is for sale again", async () => {
  const { key, accountId } = await server.newAccount({ balance: "20" });
  for (const type of ["sip", "caller_id"]) {
    const id = await insertBeside(server.dataDir, `
      INSERT INTO phone_numbers (account_id, phone_number, country_code, type, created_at)
      VALUES (@accountId, '100', 'US', @type, 1)`, { accountId, type });
    const { status, body } = await server.call("DELETE", `/user/phone-numbers/${id}`, { key });
    assert.deepEqual([status, body], [200, { message: "Phone number deleted successfully." }]);
  }
  assert.deepEqual(await all(key), []);
  await inStock("+12015559004");
  const { id } = (await buy("+12015559004", { key })).body.data as { id: number };
  assert.equal((await buy("+12015559004")).status, 400);
  await server.call("DELETE", `/user/phone-numbers/${id}`, { key });
  await runBeside(
    server.dataDir, "UPDATE phone_numbers SET paid_until = 1, due_at = 1 WHERE id = @id", { id });
  await phoneNumbers.sweep();
  assert.equal((await buy("+12015559004", { key })).status, 201);
});

test("[PN19] another account's number is not found on any route", async () => {
  const { key } = await server.newAccount();
  const { id } = (await buy(onSale(), { key })).body.data as { id: number };
  for (const path of [`/user/phone-numbers/${id}`, "/user/phone-numbers/999999"]) {
    for (const method of ["GET", "PUT", "DELETE"]) {
      const body = method === "PUT" ? { nickname: "mine" } : undefined;
      const answer = await server.call(method, path, { body });
      assert.deepEqual([answer.status, answer.body], [404, NOT_FOUND], `${method} ${path}`);
    }
  }
  assert.deepEqual(await all(), []);
  assert.equal((await all(key))[0]?.nickname, null);
});
