// A campaign's call that is deleted before the dialler has heard of its end.
import assert from "node:assert/strict";
import { test } from "node:test";
import { campaignOf, createWorld } from "#support/calls/campaigns-by-clock.ts";

test("[CP180] a lead whose call is deleted as soon as it has ended is settled by that call", async () => {
  const world = await createWorld({
    startMs: Date.UTC(2026, 5, 3, 12), fate: () => ({ fate: "human", seconds: 600 }),
  });
  const { id } = await world.newCampaign();
  await world.addLead(id, "+15550100101");
  await world.start(id);
  await world.settle();
  const { calls, leads } = world.features;
  const [{ callId = 0 } = {}] = world.dialled;
  const call = { id: callId, accountId: world.accountId };
  await calls.end(call, {
    finalStatus: "ended_by_customer", reason: "customer_hung_up", turns: [], hasRecording: false,
  });
  // One commit after the other: the dialler learns of both once the call is gone.
  await Promise.all([
    calls.finish(call, { evaluation: {}, evaluationError: null }),
    calls.remove(world.accountId, callId),
  ]);
  await world.settle();
  const { items: [lead] } = await leads.page(
    world.accountId, { campaignId: id }, { page: 1, perPage: 10 });
  assert.deepEqual([lead?.status, lead?.outcome], ["completed", "answered"]);
  assert.equal((await campaignOf(world, id)).status, "completed");
  await world.step(2 * 3_600_000);
  assert.equal(world.dialled.length, 1);
  await world.close();
});
