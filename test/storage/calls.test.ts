// The end of a call, and its records afterwards. Asked through the storage port of every engine.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { createWorld, ENGINES, openFor, PRICE, system, typesOf } from "#support/databases/contract-world.ts";

for (const engine of ENGINES.filter(({ skip }) => !skip)) {
  const storage = await openFor({ after }, engine);
  const world = createWorld(storage);

  test(`[CR676] ${engine.name}: nothing is written into a call's transcript after its call_ended`, async () => {
    const conversation = await world.newConversation(PRICE);
    const now = system.now();
    const { accountId } = conversation;
    const ref = { accountId, callId: await world.newCall(conversation), now };
    const say = async (text: string) => typesOf(await storage.calls.addTranscript({
      ...ref,
      entry: {
        speaker: "customer", text, startMs: 0, endMs: 1, interrupted: false, functionCalls: [],
      },
    }));
    await storage.calls.change({ ...ref, to: "in-progress" });
    assert.deepEqual(await say("Hello."), ["transcript_added"]);
    await storage.calls.end({
      ...ref, finalStatus: "completed", reason: "customer_hung_up", turns: [], hasRecording: false,
    });
    assert.deepEqual(await say("Are you there?"), ["transcript_added"], "not yet evaluated");
    const ended = await storage.calls.finish({ ...ref, evaluation: {}, evaluationError: null });
    assert.equal(ended.at(-1)?.type, "call_ended");
    assert.deepEqual(await say("Late."), []);
  });

  test(`[CR797] ${engine.name}: a call that was answered ends by its end alone, which posts its cost`, async () => {
    const conversation = await world.newConversation(PRICE);
    const { accountId } = conversation;
    const callId = await world.newCall(conversation);
    const answeredAt = system.now();
    const ref = { accountId, callId, now: answeredAt + 60_000_000 };
    await storage.calls.change({ ...ref, to: "in-progress", now: answeredAt });
    for (const to of ["ended", "failed", "completed"] as const) {
      assert.deepEqual(await storage.calls.change({ ...ref, to }), []);
    }
    const ended = await storage.calls.end({
      ...ref, finalStatus: "completed", reason: "customer_hung_up", turns: [], hasRecording: false,
    });
    assert.deepEqual(typesOf(ended), ["balance_changed", "call_status_changed"]);
    for (const to of ["failed", "completed"] as const) {
      assert.deepEqual(await storage.calls.change({ ...ref, to }), []);
    }
    const call = await storage.calls.find(accountId, callId);
    assert.deepEqual([call?.status, call?.totalCostMicros], ["ended", 1000]);
  });

  test(`[CR798] ${engine.name}: a call is not over before it was answered, whatever the clock said`, async () => {
    const conversation = await world.newConversation(PRICE);
    const { accountId } = conversation;
    const now = system.now();
    const ref = { accountId, callId: await world.newCall(conversation), now };
    await storage.calls.change({ ...ref, to: "in-progress" });
    await storage.calls.end({
      ...ref, finalStatus: "completed", reason: "customer_hung_up", turns: [], hasRecording: false,
      endedAt: now - 1_000_000,
    });
    const call = await storage.calls.find(accountId, ref.callId);
    assert.deepEqual([call?.endedAt, call?.durationS], [now, 0]);
  });
}
