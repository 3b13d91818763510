// Balances that run low: forecast, alerts by event, webhook and mail, and money put in by payment.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { after, test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { createSystem } from "#core/system.ts";
import { rowsBeside } from "#support/databases/beside.ts";
import { startEndpoint } from "#support/endpoint.ts";
import {
  newAssistant, newConversation, openBeside, startTestServer, testDataDir,
} from "#support/server.ts";
import { startMailServer } from "#support/vendors/mail-server.ts";
import {
  startStripeServer, STRIPE_KEY, STRIPE_SECRET, stripeReport,
} from "#support/vendors/stripe-server.ts";

const mail = await startMailServer();
const stripe = await startStripeServer();
const env = {
  PARLEY_SMTP_URL: mail.url, PARLEY_SMTP_FROM: "Parley <parley@example.com>",
  PARLEY_STRIPE_KEY: STRIPE_KEY, PARLEY_STRIPE_WEBHOOK_SECRET: STRIPE_SECRET,
  PARLEY_STRIPE_URL: stripe.url, PARLEY_PUBLIC_URL: "https://talk.example.com",
  PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8",
};
const server = await startTestServer({ env });
after(async () => {
  await server.close();
  await stripe.close();
  await mail.close();
});

const { accounts, costs } = server.app.features;
const balanceOf = async (key: string) => {
  const { status, body } = await server.call("GET", "/user/balance", { key });
  assert.equal(status, 200, JSON.stringify(body));
  return body;
};
const lowOf = async (key: string) => (await server.call("GET", "/user/events?after=0", { key })).body
  .data.filter(({ type }: { type: string }) => type === "balance_low")
  .map(({ threshold, balance }: { threshold: number; balance: number }) => [threshold, balance]);
const take = (accountId: number, dollars: number, name: string) =>
  accounts.credit(accountId, -dollars * 1_000_000, `fee:${accountId}:${name}`);

test("[BL92] each threshold alerts once when crossed, and again only after the balance was above it", async () => {
  const { key, accountId } = await server.newAccount({ balance: "30" });
  const set = await server.call("PUT", "/user/balance/alerts", {
    key, body: { amounts: [5, 20, 5], emails: [`a${accountId}@example.com`] },
  });
  assert.deepEqual([set.status, set.body.amounts], [200, [20, 5]]);
  const mailsTo = () => mail.taken.filter(({ to }) => to.includes(`a${accountId}@example.com`));
  await take(accountId, 9.99, "above");
  assert.deepEqual(await lowOf(key), []);
  await take(accountId, 0.01, "at it");
  await take(accountId, 1, "below");
  assert.deepEqual(await lowOf(key), [[20, 20]]);
  await accounts.credit(accountId, 11_000_000, `more:${accountId}`);
  // Both at once, each by itself.
  await take(accountId, 26, "deep");
  assert.deepEqual(await lowOf(key), [[20, 20], [20, 4], [5, 4]]);
  while (mailsTo().length < 3) await mail.until(mail.taken.length + 1);
  assert.match(mailsTo()[0]?.raw ?? "", /^Message-ID: <balance\.\d+\.\d+@parley>/im);
  assert.match(mailsTo().at(-1)?.text ?? "", /has fallen to \$4\.00[^]*https:\/\/talk\.example\.com\/#\/money/);
  const { key: stranger } = await server.newAccount();
  assert.deepEqual(await lowOf(stranger), []);
  for (const body of [{ amounts: [-1], emails: [] }, { amounts: [1], emails: ["no address"] }]) {
    assert.equal((await server.call("PUT", "/user/balance/alerts", { key, body })).status, 422);
  }
});

test("[BL93] a webhook endpoint receives balance_low with the amount and the balance", async () => {
  const endpoint = await startEndpoint();
  const { key, accountId } = await server.newAccount({ balance: "3" });
  await server.call("POST", "/user/webhook-endpoints", {
    key, body: { url: endpoint.url, events: ["balance_low"] },
  });
  await server.call("PUT", "/user/balance/alerts", { key, body: { amounts: [2], emails: [] } });
  await take(accountId, 1.5, "half");
  while (endpoint.requests.length === 0) await setTimeout(20);
  const said = JSON.parse(endpoint.requests[0]?.body ?? "") as { type: string; data: object };
  assert.equal(said.type, "balance_low");
  assert.match(JSON.stringify(said), /"threshold":2\b/);
  assert.match(JSON.stringify(said), /"balance":1\.5\b/);
  await endpoint.close();
});

test("[BL94] killed between crossing and sending, the next start sends the mail once", async () => {
  const dataDir = testDataDir();
  const system = createSystem();
  // No server runs: what crossed was committed by a process that ended before it could send.
  const storage = await openBeside(dataDir, "durable");
  const { id: accountId } = await storage.accounts.createAccount(
    { name: "Ada", email: "", plan: "self-hosted", now: system.now() });
  const credit = (amountMicros: number, reference: string) =>
    storage.accounts.credit({ accountId, amountMicros, reference, now: system.now() });
  await credit(10_000_000, "credit:1");
  await storage.balance.setAlerts({
    accountId, amountsMicros: [5_000_000], emails: ["killed@example.com"],
  });
  await credit(-6_000_000, "fee:1");
  const [due] = await storage.balance.dueMails({ now: system.now(), since: 0, rows: 10 });
  assert.equal(due?.address, "killed@example.com");
  await storage.close();
  const sent = () => mail.taken.filter(({ to }) => to.includes("killed@example.com")).length;
  const next = await startTestServer({ dataDir, env });
  const { balanceMails } = next.app.features;
  await Promise.all([balanceMails.sweep(), balanceMails.sweep()]);
  assert.equal(sent(), 1);
  await balanceMails.sweep();
  assert.equal(sent(), 1);
  await next.close();
  rmSync(dataDir, { recursive: true, force: true });
});

test("[GR10] a balance mail that was sent, or is old when the next amount is crossed, is forgotten", async () => {
  const dataDir = testDataDir();
  const storage = await openBeside(dataDir, "forgets");
  const now = createSystem().now();
  const { id: accountId } = await storage.accounts.createAccount(
    { name: "Ada", email: "", plan: "self-hosted", now });
  const credit = (amountMicros: number, at: number) => storage.accounts.credit(
    { accountId, amountMicros, reference: `credit:${amountMicros}`, now: at });
  await credit(10, now);
  await storage.balance.setAlerts(
    { accountId, amountsMicros: [9, 7, 5], emails: ["ada@example.com"] });
  await credit(-1, now - 4 * 24 * 60 * 60_000_000);
  await credit(-2, now);
  await credit(-3, now);
  const due = await storage.balance.dueMails({ now, since: 0, rows: 10 });
  assert.deepEqual(due.map(({ thresholdMicros }) => thresholdMicros), [7, 5]);
  for (const { id } of due) await storage.balance.mailSent({ accountId, id });
  await storage.close();
  assert.deepEqual(await rowsBeside(dataDir, "SELECT * FROM balance_mails"), []);
  rmSync(dataDir, { recursive: true, force: true });
});

test("[BL246] a mail interrupted by a crash and a clock set back is sent by the current clock", async () => {
  const storage = await openBeside(testDataDir(), "forgets");
  const [then, now] = [Date.UTC(2027, 0, 2) * 1000, Date.UTC(2027, 0, 1) * 1000];
  const { id: accountId } = await storage.accounts.createAccount(
    { name: "Ada", email: "", plan: "self-hosted", now: then });
  const credit = (amountMicros: number, reference: string) =>
    storage.accounts.credit({ accountId, amountMicros, reference, now: then });
  await credit(2, "credit:1");
  await storage.balance.setAlerts({ accountId, amountsMicros: [1], emails: ["ada@example.com"] });
  await credit(-1, "fee:1");
  const minutes = (count: number) => count * 60_000_000;
  const claim = (at: number) => storage.balance.claimMail(
    { accountId, id: 1, now: at, until: at + minutes(10) });
  assert.equal(await claim(then), true);
  assert.equal(await claim(then + minutes(9)), false);
  assert.equal((await storage.balance.dueMails({ now, since: 0, rows: 10 })).length, 1);
  assert.equal(await claim(now), true);
  assert.equal(await claim(now + minutes(9)), false);
  assert.deepEqual(
    await storage.balance.dueMails({ now: now + minutes(9), since: 0, rows: 10 }), []);
  await storage.close();
});

test("[BL95] the forecast uses the pace of the last seven days; an empty balance says so", async () => {
  const { key, accountId } = await server.newAccount({ balance: "0.03" });
  const { uuid } = await newAssistant(server, { status: "active" }, key);
  const talk = await newConversation(server, uuid);
  const say = async (): Promise<void> => {
    const sent = await server.call(
      "POST", `/conversations/${talk}/messages`, { body: { message: "Hi" } });
    assert.equal(sent.status, 200);
    await costs.sweep();
  };
  const fresh = await balanceOf(key);
  assert.deepEqual([fresh.state, fresh.per_day, fresh.lasts_until], ["ok", 0, null]);
  await say();
  // The account is of today: what it spent so far is a day's.
  const low = await balanceOf(key);
  assert.deepEqual([low.state, low.per_day, low.balance], ["low", 0.01, 0.02]);
  const inDays = (Date.parse(low.lasts_until) - createSystem().now() / 1000) / 86_400_000;
  assert.ok(inDays > 1.9 && inDays <= 2, String(inDays));
  // What the operator takes is no pace.
  await take(accountId, 0.015, "taken");
  await costs.sweep();
  const empty = await balanceOf(key);
  assert.deepEqual([empty.state, empty.per_day], ["empty", 0.01]);
  const { body: me } = await server.call("GET", "/user/me", { key });
  assert.deepEqual([me.balance_state, typeof me.balance_lasts_until], ["empty", "string"]);
  await accounts.credit(accountId, 5_000_000, `credit:${accountId}`);
  assert.equal((await balanceOf(key)).state, "ok");
});

const report = async (given: { body: string; signature: string }) => {
  const answer = await fetch(`${server.url}/payments/stripe`, {
    method: "POST", body: given.body,
    headers: { "content-type": "application/json", "stripe-signature": given.signature },
  });
  return answer.status;
};
const nowSeconds = (): number => Math.floor(createSystem().now() / 1_000_000);

test("[BL96] a paid session is credited exactly once, however often and by however many it is reported", async () => {
  const { key, accountId } = await server.newAccount({ balance: "1" });
  assert.equal((await balanceOf(key)).top_up, "checkout");
  const begun = await server.call("POST", "/user/top-ups", { key, body: { amount: 25 } });
  assert.equal(begun.status, 201);
  const made = stripe.sessions.at(-1);
  assert.equal(begun.body.url, `https://checkout.stripe.com/c/pay/${made?.id}`);
  assert.equal(made?.form.get("line_items[0][price_data][unit_amount]"), "2500");
  assert.equal(made?.form.get("client_reference_id"), String(accountId));
  assert.equal(made?.form.get("success_url"), "https://talk.example.com/#/money");
  const session = made?.id ?? "";
  const paid = { session, cents: 2500 };
  // None of these is a payment.
  assert.equal(await report(stripeReport(paid, nowSeconds(), "whsec_of_somebody")), 400);
  assert.equal(await report(stripeReport(paid, nowSeconds() - 3600)), 400);
  const { body, signature } = stripeReport(paid, nowSeconds());
  assert.equal(await report({ body: body.replace("2500", "9900"), signature }), 400);
  assert.equal(await report({ body, signature: "" }), 400);
  assert.equal(await report(stripeReport({ ...paid, status: "unpaid" }, nowSeconds())), 200);
  assert.equal(await report(stripeReport({ ...paid, currency: "jpy" }, nowSeconds())), 200);
  assert.equal(await report(stripeReport({ ...paid, session: "cs_of_another_shop" }, nowSeconds())), 200);
  assert.equal(await report(stripeReport({ ...paid, type: "checkout.session.expired" }, nowSeconds())), 200);
  assert.equal((await balanceOf(key)).balance, 1);
  const genuine = stripeReport(paid, nowSeconds());
  const late = stripeReport({ ...paid, type: "checkout.session.async_payment_succeeded" }, nowSeconds());
  const answers = await Promise.all([genuine, genuine, late, genuine, late].map(report));
  assert.deepEqual(answers, [200, 200, 200, 200, 200]);
  assert.equal((await balanceOf(key)).balance, 26);
  const { body: ledger } = await server.call("GET", "/user/ledger?kind=credit", { key });
  assert.deepEqual(ledger.data.map(({ reference }: { reference: string }) => reference)
    .filter((text: string) => text.includes("stripe")), [`credit:stripe:${session}`]);
  for (const amount of [0.5, 10_001]) {
    assert.equal((await server.call("POST", "/user/top-ups", { key, body: { amount } })).status, 422);
  }
});

test("[BL97] killed between payment and its report, the report is credited after the next start", async () => {
  const dataDir = testDataDir();
  const first = await startTestServer({ dataDir, env });
  const { key } = await first.newAccount({ balance: "1" });
  const begun = await first.call("POST", "/user/top-ups", { key, body: { amount: 10 } });
  assert.equal(begun.status, 201);
  const session = stripe.sessions.at(-1)?.id ?? "";
  await first.close();
  const next = await startTestServer({ dataDir, env });
  const { body, signature } = stripeReport({ session, cents: 1000 }, nowSeconds());
  const receive = () => next.app.features.topUps.receive({ signature, body: Buffer.from(body) });
  assert.deepEqual((await Promise.all([receive(), receive()])).sort(), ["credited", "repeated"]);
  assert.equal((await next.call("GET", "/user/balance", { key })).body.balance, 11);
  await next.close();
  rmSync(dataDir, { recursive: true, force: true });
});

test("[BL98] without a payment page the operator's link is filled in; without a link a top-up is refused", async () => {
  const dataDir = testDataDir();
  const linked = await startTestServer({
    dataDir, env: { PARLEY_TOPUP_URL: "https://pay.example.com/a/{account_id}?for={name}&mail={email}" },
  });
  const { key, accountId } = await linked.newAccount();
  const { status, body } = await linked.call("POST", "/user/top-ups", { key, body: { amount: 5 } });
  assert.equal(status, 201);
  assert.ok(body.url.startsWith(`https://pay.example.com/a/${accountId}?for=`), body.url);
  assert.doesNotMatch(body.url, /[{}]/);
  assert.equal((await linked.call("GET", "/user/balance", { key })).body.top_up, "link");
  await linked.close();
  rmSync(dataDir, { recursive: true, force: true });
  const bare = await startTestServer();
  const refused = await bare.call("POST", "/user/top-ups", { body: { amount: 5 } });
  assert.deepEqual([refused.status, refused.body.message], [
    409, "No way to pay is configured on this server: ask its operator."]);
  assert.equal((await bare.call("GET", "/user/balance")).body.top_up, "none");
  await bare.close();
});

test("[BL408] the payment page alone needs the amount of a top-up", async () => {
  const { key } = await server.newAccount();
  const missing = await server.call("POST", "/user/top-ups", { key });
  assert.deepEqual([missing.status, missing.body.errors],
    [422, { amount: ["The amount field is required."] }]);
  const linked = await startTestServer({
    env: { PARLEY_TOPUP_URL: "https://pay.example.com/a/{account_id}" },
  });
  const { status, body } = await linked.call("POST", "/user/top-ups");
  assert.deepEqual([status, body], [201, { url: `https://pay.example.com/a/${linked.accountId}` }]);
  await linked.close();
  const bare = await startTestServer();
  assert.equal((await bare.call("POST", "/user/top-ups")).status, 409);
  await bare.close();
});
