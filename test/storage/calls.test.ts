// The records of a call that is over. Asked through the storage port of every engine.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { createWorld, ENGINES, openFor, PRICE, system, typesOf } from "#support/contract-world.ts";

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
}
