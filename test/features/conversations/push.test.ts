// Notifications of browsers, through the real server to a push service whose browsers decrypt.
import assert from "node:assert/strict";
import { createECDH } from "node:crypto";
import { after, test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { createPush, type PushSubscription } from "#features/conversations/desk/push.ts";
import { createLogger } from "#core/logger.ts";
import { createSystem } from "#core/system.ts";
import { createMemoryBus } from "#events/bus.ts";
import { createOutbound } from "#outbound/request.ts";
import { encrypt, keyPairFrom } from "#providers/push/encryption.ts";
import type { PushOutcome } from "#providers/push/port.ts";
import { createWebPush } from "#providers/push/web-push.ts";
import { askUntil } from "#support/asking.ts";
import { createManualSystem, type ManualSystem } from "#support/manual-clock.ts";
import { memberOf } from "#support/members.ts";
import { newAssistant, newConversation, openBeside, startTestServer } from "#support/server.ts";
import { startPushService, type PushBrowser } from "#support/vendors/push-service.ts";

const service = await startPushService();
const server = await startTestServer({
  env: {
    PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8", PARLEY_PUBLIC_URL: "https://talk.example.com",
  },
});
const stored = await openBeside(server.dataDir);
after(async () => {
  await stored.close();
  await server.close();
  await service.close();
});

test("[DK31] a push message is encrypted as in RFC 8291's example, and a secret yields one key pair", () => {
  const own = createECDH("prime256v1");
  own.setPrivateKey("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw", "base64url");
  const sealed = encrypt("When I grow up, I want to be a watermelon", {
    endpoint: "https://push.example.net/push/JzLQ3raZJfFBR0aqvOMsLrt54w4rJUsV",
    publicKey: "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
    auth: "BTBZMqHH6r4Tts7J_aSIgg",
  }, own, Buffer.from("DGv6ra1nlYgDCS1FRnbzlw", "base64url"));
  assert.equal(sealed.toString("base64url"),
    "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN");
  const key = (secret: string): string => keyPairFrom(secret).getPublicKey("base64url");
  assert.equal(key("a"), key("a"));
  assert.notEqual(key("a"), key("b"));
});

const subscribe = async (
  as: (method: string, path: string, body?: unknown) => Promise<{ status: number; body: unknown }>,
  { subscription }: PushBrowser,
): Promise<void> => {
  const { status, body } = await as("POST", "/user/push/subscriptions", subscription);
  assert.equal(status, 201, JSON.stringify(body));
};

const untilStored = (accountId: number, browsers: PushBrowser[]) => askUntil(
  async () => (await stored.push.list(accountId)).map(({ endpoint }) => endpoint).sort(),
  (found) => isDeepStrictEqual(
    found, browsers.map(({ subscription }) => subscription.endpoint).sort()));

test("[DK32] members' browsers get signed, encrypted push for waits and callbacks while they may see them", async () => {
  const { accountId, key } = await server.newAccount();
  const assistant = await newAssistant(server, {
    name: "Front desk", desk: {
      visitor_may_ask: true,
      office_hours: { time_zone: "UTC", hours: {}, message: "Later.", callback: true },
    },
  }, key);
  const [ana, ben, cleo] = [
    await memberOf(server, "operator", key), await memberOf(server, "operator", key),
    await memberOf(server, "viewer", key),
  ];
  const [anas, bens, gone] = [service.newBrowser(), service.newBrowser(), service.newBrowser()];
  assert.equal((await cleo.call("POST", "/user/push/subscriptions", anas.subscription)).status, 403);
  for (const wrong of [{ endpoint: "ftp://x" }, { endpoint: "http://[" }, { keys: { p256dh: "BAAA", auth: "AA" } }]) {
    const body = { ...anas.subscription, ...wrong };
    assert.equal((await ana.call("POST", "/user/push/subscriptions", body)).status, 422);
  }
  await subscribe(ana.call, anas);
  await subscribe(ana.call, anas);
  await subscribe(ben.call, bens);
  await subscribe(ben.call, gone);
  gone.answers = [410];
  const begin = async (name: string): Promise<string> => {
    const variables = { customer_name: name };
    const uuid = await newConversation(server, assistant.uuid, { variables });
    await server.call("POST", `/conversations/${uuid}/request-human`);
    return uuid;
  };
  const zoe = await begin("Zoë");
  assert.deepEqual(await anas.until(1),
    [{
      title: "Zoë waits for a person", body: "Front desk", conversation_id: zoe, for_session: true,
    }]);
  await bens.until(1);
  const [{ aud, sub = "", exp } = { aud: "", exp: 0 }] = service.claims;
  assert.deepEqual([aud, sub], [service.url, "https://talk.example.com"]);
  assert.ok(exp * 1000 > Date.now() && exp * 1000 < Date.now() + 86_400_000);
  const { body: { public_key: publicKey } } = await ana.call("GET", "/user/push");
  const { authorization, urgency, ttl } = anas.headers[0] ?? {};
  assert.ok(authorization?.endsWith(`k=${publicKey}`));
  assert.deepEqual([urgency, ttl], ["high", "3600"]);

  await untilStored(accountId, [anas, bens]);
  const callback = { name: "Zoë", phone: "+4930123456" };
  await server.call("POST", `/conversations/${zoe}/callback`, { body: callback });
  const told = await bens.until(2);
  assert.equal(told[1]?.title, "Zoë wants to be reached");
  assert.equal(gone.asked, 1, "what has ended is not asked again");

  await server.call("PATCH", `/user/members/${ben.id}`, { key, body: { role: "viewer" } });
  await begin("Max");
  await anas.until(3);
  await ana.call("DELETE", "/user/push/subscriptions", { endpoint: anas.subscription.endpoint });
  const other = service.newBrowser();
  await subscribe((method, path, body) => server.call(method, path, { key, body }), other);
  await begin("Eve");
  const [byKey] = await other.until(1);
  assert.equal(byKey?.title, "Eve waits for a person");
  assert.equal(byKey?.for_session, undefined, "a key has no session");
  assert.deepEqual([anas.asked, bens.asked], [3, 2]);
  await untilStored(accountId, [other]);
});

/** Notifications by `send`, to these browsers of every account. */
async function pushOver(
  system: ManualSystem, browsers: PushSubscription[], send: () => Promise<PushOutcome>,
) {
  const bus = createMemoryBus();
  const nothing = async (): Promise<void> => undefined;
  const push = createPush({
    bus, system, log: createLogger("silent"),
    store: { list: async () => browsers, add: nothing, remove: nothing },
    pusher: { publicKey: "", close: nothing, send },
    findConversation: (uuid) => stored.conversations.find(uuid),
    findAssistant: (id) => server.app.features.assistants.findById(id),
    findAuthor: async () => ({ id: "key:1", name: "Ana" }),
  });
  const { uuid } = await newAssistant(server, { name: "Front desk" });
  const conversationId = await newConversation(server, uuid);
  const json = JSON.stringify({
    type: "desk_changed", conversation_id: conversationId, desk: "waiting", reason: "asked",
  });
  return {
    push,
    /** A visitor of the account asks for a person. */
    ask: (accountId: number): void => bus.publishCommitted([{
      type: "desk_changed", accountId, accountSequence: 1, sequence: 1, id: 1,
      conversationId, callId: null, json, createdAt: 0,
    }]),
  };
}

test("[DK33] a push message not accepted is retried a few times; a private address is never contacted", async () => {
  const guarded = createWebPush({
    outbound: createOutbound({ allowPrivateNetworks: [] }), secret: "s", contact: null,
    system: createSystem(),
  });
  const own = service.newBrowser();
  const { endpoint, keys } = own.subscription;
  const target = { endpoint, publicKey: keys.p256dh, auth: keys.auth };
  const message = { text: "{}", topic: "t" };
  const refused = await guarded.send(target, message);
  assert.ok(refused.kind === "failed" && !refused.retryable, JSON.stringify(refused));
  const noPoint = await guarded.send({ ...target, publicKey: `B${"A".repeat(86)}` }, message);
  assert.ok(noPoint.kind === "failed" && !noPoint.retryable);
  assert.equal(own.asked, 0);
  await guarded.close();

  const system = createManualSystem();
  const failed = (retryAfterS = 0): PushOutcome =>
    ({ kind: "failed", error: "503", retryable: true, retryAfterS });
  const outcomes = [failed(), failed(60), failed(), failed(), failed()];
  let [sent, asked] = [0, (): void => undefined];
  const next = (): Promise<void> => new Promise((resolve) => {
    asked = resolve;
  });
  const { push, ask } = await pushOver(system, [{ id: 1, person: "key:1", ...target }], async () => {
    sent += 1;
    asked();
    return outcomes.shift() ?? { kind: "taken" };
  });
  const first = next();
  ask(server.accountId);
  await first;
  for (const [waitS, count] of [[5, 2], [60, 3], [120, 4]] as const) {
    await new Promise((resolve) => setImmediate(resolve));
    system.advance(waitS * 1000 - 1);
    assert.equal(sent, count - 1);
    const again = next();
    system.advance(1);
    await again;
  }
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(system.pending(), 0, "the fourth is the last");
  await push.close();
});

test("[DK38] notifications go a bounded number at a time, and those of one account leave others room", async () => {
  const answers: (() => void)[] = [];
  const browsers = Array.from({ length: 40 }, (_, id) =>
    ({ id, person: "key:1", endpoint: `https://push.test/${id}`, publicKey: "", auth: "" }));
  const { push, ask } = await pushOver(createManualSystem(), browsers, () =>
    new Promise((resolve) => answers.push(() => resolve({ kind: "taken" }))));
  ask(1);
  await askUntil(async () => answers.length, (sent) => sent === 28);
  ask(2);
  await askUntil(async () => answers.length, (sent) => sent > 28);
  assert.ok(answers.length <= 32);
  await push.close();
  for (const answer of answers) answer();
  await new Promise((resolve) => setImmediate(resolve));
  assert.ok(answers.length <= 32, "none is sent after the end");
});
