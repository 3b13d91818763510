// Which ends of calls and conversations are sent to an assistant's own webhooks, and how long
// deliveries are kept. Asked through the storage port of every engine.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { AssistantSettings } from "#features/assistants/settings.ts";
import { createWorld, DAY, ENGINES, openFor, PRICE, system } from "#support/databases/contract-world.ts";

const SETTINGS = {
  is_webhook_active: true, webhook_url: "https://a.example/calls",
  send_webhook_only_on_completed: true, include_recording_in_webhook: false,
  conversation_ended_webhook_url: "https://a.example/ended", conversation_ended_retrigger: false,
  post_call_evaluation: true, post_call_schema: [{ name: "happy" }], timezone: "UTC",
};

for (const engine of ENGINES.filter(({ skip }) => !skip)) {
  const storage = await openFor({ after }, engine);
  const world = createWorld(storage);

  const withSettings = async (changes: Partial<typeof SETTINGS>) => {
    const { accountId } = await world.newConversation(10 * PRICE);
    const made = await storage.assistants.create({
      uuid: system.uuid(), accountId, now: system.now(), assistantsMax: 9,
      settings: { ...SETTINGS, ...changes } as unknown as AssistantSettings,
      columns: {
        name: "B", type: "inbound", status: "active", mode: "pipeline", folderId: null,
        phoneNumberId: null, labelIds: [],
      },
    });
    assert.ok(made.kind === "created");
    return world.another({ accountId, assistantId: made.assistantId });
  };
  const sentTo = async (accountId: number) =>
    (await storage.webhooks.deliveries(accountId, {}, 0, 99)).map(({ type, needsEvaluation }) =>
      needsEvaluation ? `${type}, to be evaluated` : type);

  test(`[MU24] ${engine.name}: the end of a call is sent where the webhook is on, and of one that failed only where asked for`, async () => {
    for (const [changes, finalStatus, sent] of [
      [{}, "ended_by_assistant", 1], [{}, "ended_by_customer", 1], [{}, "completed", 1],
      [{}, "failed", 0], [{ send_webhook_only_on_completed: false }, "failed", 1],
      [{ is_webhook_active: false }, "completed", 0], [{ webhook_url: "" }, "completed", 0],
    ] as const) {
      const conversation = await withSettings(changes);
      const { accountId } = conversation;
      const call = { accountId, callId: await world.newCall(conversation), now: system.now() };
      await storage.calls.change({ ...call, to: "in-progress" });
      await storage.calls.end({
        ...call, finalStatus, reason: "customer_hung_up", turns: [], hasRecording: false,
      });
      await storage.calls.finish({ ...call, evaluation: {}, evaluationError: null });
      const expected = sent === 1 ? ["post_call"] : [];
      assert.deepEqual(
        await sentTo(accountId), expected, `${JSON.stringify(changes)} ${finalStatus}`);
    }
  });

  test(`[MU25] ${engine.name}: the end of a visitor's chat is sent, evaluated where that is on, and of no other`, async () => {
    const asIs = "conversation_ended";
    for (const [changes, type, sent] of [
      [{}, "widget", [`${asIs}, to be evaluated`]], [{}, "api", []], [{}, "test", []],
      [{ post_call_evaluation: false }, "widget", [asIs]], [{ post_call_schema: [] }, "widget", [asIs]],
      [{ conversation_ended_webhook_url: "" }, "widget", []],
    ] as const) {
      const { accountId, assistantId } = await withSettings(changes as Partial<typeof SETTINGS>);
      const created = await storage.conversations.create({
        uuid: system.uuid(), accountId, now: system.now(), type, variables: {},
        initialMessage: "", externalIdentifier: null, visitor: null, priceMicros: 0,
        inactivityMinutes: 30, dailyCapMicros: null, day: DAY,
        assistant: { id: assistantId, uuid: system.uuid() },
      });
      assert.ok(created.kind === "created");
      const { turnId } = await world.started(created.conversation);
      await world.complete(turnId, created.conversation, { ends: true });
      assert.deepEqual(await sentTo(accountId), sent, `${JSON.stringify(changes)} ${type}`);
    }
  });

  test(`[MU26] ${engine.name}: deliveries go some time after they were delivered or given up, waiting ones never`, async () => {
    const { accountId } = await world.newConversation(PRICE);
    const now = system.now();
    const endpoint = await storage.webhooks.createEndpoint({
      accountId, url: "https://a.example", events: ["balance_changed"], max: 9, now,
    });
    assert.ok(endpoint);
    const endpointId = endpoint.id;
    await storage.webhooks.take({ accountId, endpointId });
    for (const outcome of ["delivered", "delivered", "dead", "retry"] as const) {
      const made = await storage.webhooks.enqueue({ accountId, endpointId, type: "test", body: {}, now });
      assert.ok(made);
      await storage.webhooks.record({
        accountId, deliveryId: made.id, endpoint, outcome, status: 200, response: "", error: null,
        disables: null, now: outcome === "dead" ? now + 5 : now, nextAt: now,
      });
    }
    const left = async () => (await storage.webhooks.deliveries(accountId, {}, 0, 99))
      .map(({ state }) => state).toReversed();
    const trim = (deliveredBefore: number, deadBefore: number, rows = 9) =>
      storage.webhooks.trim({ deliveredBefore, deadBefore, rows });
    assert.equal(await trim(now, now + 5), 0, "none is older");
    assert.equal(await trim(now + 1, now + 6, 1), 1, "some at a time");
    assert.deepEqual(await left(), ["delivered", "dead", "pending"]);
    await trim(now + 1, now + 5);
    assert.deepEqual(await left(), ["dead", "pending"]);
    await trim(now + 1, now + 6);
    assert.deepEqual(await left(), ["pending"]);
  });
}
