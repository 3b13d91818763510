// What is recorded of a webhook message. Asked through the storage port of every engine.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { createWorld, ENGINES, openFor, PRICE, system } from "#support/databases/contract-world.ts";

for (const engine of ENGINES.filter(({ skip }) => !skip)) {
  const storage = await openFor({ after }, engine);
  const world = createWorld(storage);

  test(`[WH272] ${engine.name}: an endpoint's answer to an event of a call is not the answer on the call`, async () => {
    const conversation = await world.newConversation(PRICE);
    const { accountId } = conversation;
    const now = system.now();
    const endpoint = await storage.webhooks.createEndpoint({
      accountId, url: "https://a.example", events: ["call_created"], max: 9, now,
    });
    assert.ok(endpoint);
    const callId = await world.newCall(conversation);
    const endpointId = endpoint.id;
    await storage.webhooks.take({ accountId, endpointId });
    const head = await storage.webhooks.head(endpointId);
    assert.equal(head?.delivery.callId, callId);
    await storage.webhooks.record({
      accountId, deliveryId: head.delivery.id, endpoint, outcome: "delivered", status: 200,
      response: "{\"ticket\":7}", error: null, disables: null, now, nextAt: now,
    });
    assert.equal(await storage.webhooks.head(endpointId), null, "it was recorded");
    const call = await storage.calls.find(accountId, callId);
    assert.deepEqual(call?.webhookResponse, {});
  });

  test(`[WH273] ${engine.name}: a replayed message names the call or conversation that it is about`, async () => {
    const conversation = await world.newConversation(2 * PRICE);
    const { accountId, uuid } = conversation;
    const now = system.now();
    await storage.webhooks.createEndpoint({
      accountId, url: "https://a.example", events: ["*"], max: 9, now,
    });
    const callId = await world.newCall(conversation);
    const { turnId } = await world.started(conversation);
    await world.fail(turnId, conversation);
    const subjectsOf = async () => (await storage.webhooks.deliveries(accountId, {}, 0, 99))
      .map(({ type, callId: call, conversationUuid: talk }) => [type, call, talk]);
    const first = await subjectsOf();
    for (const { id: deliveryId } of await storage.webhooks.deliveries(accountId, {}, 0, 99)) {
      await storage.webhooks.replay({ accountId, deliveryId, now });
    }
    assert.deepEqual(await subjectsOf(), [...first.toReversed(), ...first]);
    assert.deepEqual(first, [
      ["reply_failed", null, uuid], ["message_added", null, uuid], ["call_created", callId, null],
    ]);
  });

  test(`[WH396] ${engine.name}: what was refused under an earlier secret is sent again at once, under the new one`, async () => {
    const { accountId } = await world.newConversation(PRICE);
    const now = system.now();
    const endpoint = await storage.webhooks.createEndpoint({
      accountId, url: "https://a.example", events: ["*"], max: 9, now,
    });
    assert.ok(endpoint);
    const endpointId = endpoint.id;
    await storage.webhooks.enqueue({ accountId, endpointId, type: "test", body: {}, now });
    await storage.webhooks.take({ accountId, endpointId });
    const head = await storage.webhooks.head(endpointId);
    assert.ok(head);
    await storage.webhooks.updateEndpoint({ accountId, endpointId, rotates: true, now });
    const refused = {
      accountId, deliveryId: head.delivery.id, outcome: "dead", status: 410, response: "",
      error: "gone", disables: "gone", now, nextAt: now + 1,
    } as const;
    await storage.webhooks.record({ ...refused, endpoint });
    const again = await storage.webhooks.head(endpointId);
    assert.deepEqual([again?.delivery.id, again?.delivery.nextAt], [head.delivery.id, now]);
    await storage.webhooks.record({ ...refused, endpoint: again?.endpoint ?? endpoint });
    const disabled = await storage.webhooks.endpoint(accountId, endpointId);
    assert.equal(disabled?.status, "disabled");
  });

  test(`[MU9] ${engine.name}: an endpoint is failing from a first failure as it is now, until it accepts a message`, async () => {
    const { accountId } = await world.newConversation(PRICE);
    const now = system.now();
    const endpoint = await storage.webhooks.createEndpoint({
      accountId, url: "https://a.example", events: ["*"], max: 9, now,
    });
    assert.ok(endpoint);
    const endpointId = endpoint.id;
    await storage.webhooks.enqueue({ accountId, endpointId, type: "test", body: {}, now });
    await storage.webhooks.take({ accountId, endpointId });
    const head = await storage.webhooks.head(endpointId);
    assert.ok(head);
    const sinceAfter = async (
      outcome: "retry" | "delivered", at: number, { url } = endpoint,
    ) => {
      await storage.webhooks.record({
        accountId, deliveryId: head.delivery.id, endpoint: { ...endpoint, url }, outcome,
        status: 500, response: "",
        error: null, disables: null, now: at, nextAt: at,
      });
      return (await storage.webhooks.endpoint(accountId, endpointId))?.failingSince;
    };
    const before = { ...endpoint, url: "https://earlier.example" };
    assert.equal(await sinceAfter("retry", now - 1, before), null);
    assert.deepEqual(
      [await sinceAfter("retry", now), await sinceAfter("retry", now + 1)], [now, now]);
    assert.equal(await sinceAfter("delivered", now + 2), null);
    assert.equal(await sinceAfter("retry", now + 3), null, "it is over");
  });

  test(`[MU10] ${engine.name}: an account lists its own deliveries only, whatever it filters by`, async () => {
    const conversation = await world.newConversation(PRICE);
    const { accountId } = conversation;
    const { accountId: strangerId } = await world.newConversation(PRICE);
    const now = system.now();
    const endpoint = await storage.webhooks.createEndpoint({
      accountId, url: "https://a.example", events: ["*"], max: 9, now,
    });
    assert.ok(endpoint);
    const endpointId = endpoint.id;
    const callId = await world.newCall(conversation);
    await storage.webhooks.enqueue({ accountId, endpointId, type: "test", body: {}, now });
    await storage.webhooks.updateEndpoint({ accountId, endpointId, status: "disabled", now });
    await storage.webhooks.giveUp({ accountId, endpointId, rows: 1, now });
    for (const filter of [
      {}, { callId }, { state: "pending" }, { state: "dead" }, { type: "test" }, { endpointId },
    ] as const) {
      const [own, others] = await Promise.all([accountId, strangerId].map((id) => Promise.all([
        storage.webhooks.deliveries(id, filter, 0, 9), storage.webhooks.countDeliveries(id, filter),
      ])));
      assert.ok(own && own[0].length > 0 && own[1] === own[0].length, JSON.stringify(filter));
      assert.deepEqual(others, [[], 0], JSON.stringify(filter));
    }
  });

  test(`[MU43] ${engine.name}: a message of an event in a restored database has another id than the lost one`, async () => {
    const { accountId } = await world.newConversation(PRICE);
    const now = system.now();
    await storage.webhooks.createEndpoint({
      accountId, url: "https://a.example", events: ["balance_changed"], max: 9, now,
    });
    await storage.accounts.credit({
      accountId, amountMicros: PRICE, reference: system.uuid(), now: now + 7,
    });
    const [delivery] = await storage.webhooks.deliveries(accountId, {}, 0, 1);
    const [event] = (await storage.events.ofAccount(accountId, 0, 99)).toReversed();
    assert.equal(
      delivery?.messageId, `msg_${accountId}_${event?.accountSequence}_${now + 7}`,
      "places in the log come again, their times do not");
  });
}
