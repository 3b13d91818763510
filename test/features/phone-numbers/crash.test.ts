// SIGKILL of the real process between the steps of a purchase, and while a number goes back. Twilio
// is a double that speaks as documented; no live account was tried.
import assert from "node:assert/strict";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { after, test } from "node:test";
import { callApi } from "#support/api.ts";
import { startTwilioNumbers, type TwilioRequest } from "#support/carriers/twilio-numbers-server.ts";
import { auditBeside, rowsBeside, runBeside } from "#support/databases/beside.ts";
import { startProcess, type Running } from "#support/process.ts";
import { testDataDir } from "#support/server.ts";

const NUMBER = "+12015550123";
const twilio = await startTwilioNumbers();
after(() => twilio.close());

async function call(
  { url }: Running, key: string | null, method: string, path: string, body?: object,
) {
  const headers = { "Idempotency-Key": "k" };
  const answer = await callApi(url, method, path, { key, body, headers });
  return { ...answer, replayed: answer.headers.get("idempotency-replayed") === "true" };
}

async function kill({ process: child }: Running, signal: "SIGKILL" | "SIGTERM"): Promise<void> {
  const gone = once(child, "exit");
  child.kill(signal);
  await gone;
}

/** Kills the server where `stop` says so and answers what the next one makes of the same key. */
async function killDuringPurchase(
  stop: (killed: () => Promise<never>) => Parameters<typeof twilio.intercept>[0],
) {
  twilio.available.set(NUMBER, "US");
  twilio.incoming.length = 0;
  const dataDir = testDataDir();
  let server = await startProcess(dataDir, twilio.env);
  const { key } = server;
  const forever = (): Promise<never> => {
    server.process.kill("SIGKILL");
    return new Promise<never>(() => undefined);
  };
  const buy = () =>
    call(server, key, "POST", "/user/phone-numbers/purchase", { phone_number: NUMBER });
  twilio.intercept(stop(forever));
  const gone = once(server.process, "exit");
  await assert.rejects(buy());
  await gone;
  twilio.intercept();
  server = await startProcess(dataDir, twilio.env);
  const again = await buy();
  const { body: me } = await call(server, key, "GET", "/user/me");
  const { body: all } = await call(server, key, "GET", "/user/phone-numbers/all");
  await kill(server, "SIGTERM");
  const { problems } = await auditBeside(dataDir);
  assert.deepEqual(await rowsBeside(dataDir, "SELECT * FROM reservations"), []);
  rmSync(dataDir, { recursive: true });
  return {
    again, balance: me.total_balance, owned: all.data.length,
    sold: twilio.incoming.length, problems,
  };
}

const isOrder = ({ method }: TwilioRequest) => method === "POST";
const WHOLE = { balance: 1.01, owned: 1, sold: 1, problems: [] };
const NOTHING = { balance: 5, owned: 0, sold: 0, problems: [] };

test("[PN27] killed during the number lookup: nothing has happened, and the same key then buys it", async () => {
  const { again, ...left } = await killDuringPurchase((killed) =>
    ({ method }) => (method === "GET" ? killed() : undefined));
  assert.deepEqual([again.status, again.replayed], [201, false]);
  assert.deepEqual(left, WHOLE);
});

test("[PN28] killed after the order, before the provider acts: rolled back, and the key says so", async () => {
  const { again, ...left } = await killDuringPurchase((killed) =>
    (request) => (isOrder(request) ? killed() : undefined));
  assert.deepEqual([again.status, again.replayed, again.body], [500, true, {
    error: "Failed to purchase phone number from provider. Please contact support.",
  }]);
  assert.deepEqual(left, NOTHING);
});

test("[PN29] killed after the provider acted: found, completed and charged once; the key says so", async () => {
  const { again, ...left } = await killDuringPurchase((killed) =>
    (request, act) => {
      if (!isOrder(request)) return undefined;
      act();
      return killed();
    });
  assert.deepEqual([again.status, again.replayed, again.body.data?.phone_number],
    [201, true, NUMBER]);
  assert.deepEqual(left, WHOLE);
});

test("[PN30] killed twice, the second time while looking up the order: still once and complete", async () => {
  twilio.available.set(NUMBER, "US");
  twilio.incoming.length = 0;
  const dataDir = testDataDir();
  let server = await startProcess(dataDir, twilio.env);
  const { key } = server;
  const stopped = () => once(server.process, "exit");
  const hang = (): Promise<never> => {
    server.process.kill("SIGKILL");
    return new Promise<never>(() => undefined);
  };
  twilio.intercept((request, act) => {
    if (!isOrder(request)) return undefined;
    act();
    return hang();
  });
  let gone = stopped();
  const buy = () =>
    call(server, key, "POST", "/user/phone-numbers/purchase", { phone_number: NUMBER });
  await assert.rejects(buy());
  await gone;
  const asked = Promise.withResolvers<void>();
  twilio.intercept(({ path, method }) => {
    if (method !== "GET" || path !== "/IncomingPhoneNumbers.json") return undefined;
    asked.resolve();
    return new Promise<never>(() => undefined);
  });
  server = await startProcess(dataDir, twilio.env);
  gone = stopped();
  await asked.promise;
  server.process.kill("SIGKILL");
  await gone;
  // The provider is away: nobody is told what is not known.
  twilio.intercept(() => null);
  server = await startProcess(dataDir, twilio.env);
  assert.equal((await buy()).status, 503);
  twilio.intercept();
  const settled = await buy();
  assert.deepEqual([settled.status, settled.body.data?.phone_number], [201, NUMBER]);
  // Killed while the number goes back: it is brought again.
  await call(server, key, "DELETE", `/user/phone-numbers/${settled.body.data?.id}`);
  await kill(server, "SIGKILL");
  await runBeside(dataDir, "UPDATE phone_numbers SET paid_until = 1, due_at = 1");
  twilio.intercept(({ method }) => (method === "DELETE" ? hang() : undefined));
  server = await startProcess(dataDir, twilio.env);
  await stopped();
  assert.equal(twilio.incoming.length, 1);
  const back = Promise.withResolvers<void>();
  twilio.intercept(({ method }, act) => {
    if (method !== "DELETE") return undefined;
    const answer = act();
    back.resolve();
    return answer;
  });
  server = await startProcess(dataDir, twilio.env);
  await back.promise;
  assert.equal(twilio.incoming.length, 0);
  assert.equal((await call(server, key, "GET", "/user/me")).body.total_balance, 1.01);
  await kill(server, "SIGTERM");
  assert.deepEqual((await auditBeside(dataDir)).problems, []);
  rmSync(dataDir, { recursive: true });
});
