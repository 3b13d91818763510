// What a call's end means where several campaigns, nodes or requests meet: asked of the real
// dialler on a manual clock, and of its store.
import assert from "node:assert/strict";
import { test } from "node:test";
import { breakerAfter } from "#features/campaigns/rules.ts";
import { campaignOf, createWorld } from "#support/calls/campaigns-by-clock.ts";

const NOON = Date.UTC(2026, 5, 3, 12);

test("[MU11] each campaign has as many calls as it may, whatever others of the account have", async () => {
  const world = await createWorld({ startMs: NOON, fate: () => ({ fate: "human", seconds: 60 }) });
  const campaigns = [
    await world.newCampaign({ parallelMax: 2 }), await world.newCampaign({ parallelMax: 1 }),
  ];
  for (const [at, { id }] of campaigns.entries()) {
    for (let lead = 1; lead <= 3; lead += 1) await world.addLead(id, `+1555010${at}10${lead}`);
    await world.start(id);
  }
  const [first, second] = campaigns.map(({ id }) =>
    world.dialled.filter(({ campaignId }) => campaignId === id).length);
  assert.deepEqual([first, second], [2, 1]);
  await world.close();
});

test("[MU16] a lead that is due does not wait for one of another time zone that is not", async () => {
  const world = await createWorld({ startMs: NOON, fate: () => ({ fate: "busy", seconds: 1 }) });
  const { id } = await world.newCampaign({ retryIntervalMinutes: 600 });
  await world.addLead(id, "+4915112345001");
  await world.addLead(id, "+15550100101");
  await world.start(id);
  await world.step(2000);
  for (const number of ["+15550100102", "+4915112345002", "+81312345678"]) {
    await world.addLead(id, number);
  }
  await world.step(60_000);
  assert.equal(world.dialled.length, 5);
  await world.close();
});

test("[MU12] a lead is settled once, whoever tries it again, and not while its call goes on", async () => {
  const world = await createWorld({ startMs: NOON, fate: () => ({ fate: "busy", seconds: 60 }) });
  const { id } = await world.newCampaign();
  const lead = await world.addLead(id, "+15550100101");
  const { accountId, storage, features, system } = world;
  const settle = () =>
    storage.campaigns.settle({ accountId, leadId: lead.id, now: system.now() });
  const read = async () => {
    const { status, callTries, nextTryAt } = await features.leads.get(accountId, lead.id);
    const { figures } = await features.campaigns.figures(accountId, id, 1);
    return { status, callTries, nextTryAt, calls: figures.totals.calls };
  };
  await world.start(id);
  assert.deepEqual(await settle(), []);
  assert.equal((await read()).status, "processing");
  await world.step(60_000);
  const settled = await read();
  assert.deepEqual([settled.status, settled.calls], ["rescheduled", 1]);
  assert.deepEqual(await settle(), []);
  assert.deepEqual(await read(), settled);
  await world.close();
});

test("[MU13] a campaign is not stopped for an assistant that it has no more", async () => {
  const world = await createWorld({ startMs: NOON, fate: () => ({ fate: "human", seconds: 60 }) });
  const { accountId, assistant, storage, system } = world;
  const { id: campaignId } = await world.newCampaign();
  await world.addLead(campaignId, "+15550100101");
  await world.start(campaignId);
  const stopFor = (assistantId: number) => storage.campaigns.stop({
    accountId, campaignId, reason: "assistant_unavailable", by: null, note: null, assistantId,
    now: system.now(),
  });
  assert.equal(await stopFor(assistant.id + 1), null);
  assert.equal((await campaignOf(world, campaignId)).status, "in-progress");
  assert.equal((await stopFor(assistant.id))?.length, 1);
  assert.equal((await campaignOf(world, campaignId)).status, "stopped");
  await world.close();
});

test("[MU14] a campaign that is started again calls at once, though its carrier had failed before", async () => {
  let fate: "failed" | "human" = "failed";
  const world = await createWorld({ startMs: NOON, fate: () => ({ fate, seconds: 1 }) });
  const { id } = await world.newCampaign({ parallelMax: 5 });
  for (let at = 1; at <= 8; at += 1) await world.addLead(id, `+1555010010${at}`);
  await world.start(id);
  await world.step(2000);
  await world.step(2000);
  assert.equal(world.dialled.length, 5, "it pauses");
  fate = "human";
  await world.features.campaigns.stop(world.accountId, id);
  await world.start(id);
  assert.equal(world.dialled.length, 8);
  await world.close();
});

test("[MU15] a call that a restart cut off says nothing about the carrier", () => {
  const cut = {
    status: "failed", endReason: "server_restarted", answeredBy: "unknown", evaluation: {},
  } as const;
  for (const breaker of [{ failures: 3, pausedUntil: null }, { failures: 6, pausedUntil: 9 }]) {
    assert.deepEqual(breakerAfter(breaker, cut, 5), breaker);
  }
});

test("[MU37] a campaign waits while the account has as many calls as its plan allows", async () => {
  const world = await createWorld({ startMs: NOON, fate: () => ({ fate: "human", seconds: 300 }) });
  const { id } = await world.newCampaign({ parallelMax: 20 });
  for (let at = 10; at < 22; at += 1) await world.addLead(id, `+155501001${at}`);
  await world.start(id);
  await world.step(60_000);
  await world.step(60_000);
  assert.equal(world.dialled.length, 10);
  await world.step(180_000);
  assert.equal(world.dialled.length, 12);
  await world.close();
});

test("[MU38] a place that becomes free goes to the campaign that has waited longest", async () => {
  const world = await createWorld({
    startMs: NOON,
    fate: () => ({ fate: "human", seconds: world.dialled.length === 0 ? 100 : 1000 }),
  });
  const [large, small] = [
    await world.newCampaign({ parallelMax: 10 }), await world.newCampaign({ parallelMax: 10 }),
  ];
  for (let at = 10; at < 25; at += 1) await world.addLead(large.id, `+155501001${at}`);
  await world.addLead(small.id, "+15550100201");
  await world.step(1000);
  await world.start(large.id);
  await world.start(small.id);
  assert.equal(world.dialled.length, 10);
  await world.step(100_000);
  assert.deepEqual(world.dialled.slice(10).map(({ campaignId }) => campaignId), [small.id]);
  await world.close();
});

test("[MU39] a lead that was reached by one number is called by no other", async () => {
  const world = await createWorld({ startMs: NOON, fate: ({ number }) =>
    ({ fate: number.endsWith("2") ? "human" : "busy", seconds: 1 }) });
  const { id } = await world.newCampaign({ maxRetries: 0, completesWhenDone: false });
  const { accountId, features: { leads, campaigns } } = world;
  const lead = await world.addLead(id, "+15550100101", ["+15550100102", "+15550100103"]);
  await world.start(id);
  for (let pass = 0; pass < 3; pass += 1) await world.step(60_000);
  const called = () => world.dialled.map(({ number }) => number.slice(-1));
  assert.deepEqual(called(), ["1", "2"]);
  assert.equal(await campaigns.retry(accountId, id, ["busy"]), 0);
  await leads.update(accountId, lead.id, { status: "reached-max-retries" });
  world.wake();
  await world.step(60_000);
  assert.deepEqual(called(), ["1", "2"]);
  await world.close();
});

test("[MU40] a blocked contact is passed over; of another account's leads nothing changes", async () => {
  const world = await createWorld({ startMs: NOON, fate: () => ({ fate: "busy", seconds: 60 }) });
  const { id } = await world.newCampaign({ maxRetries: 0 });
  const { accountId, features: { accounts, leads, campaigns } } = world;
  const lead = await world.addLead(id, "+15550100101", ["+15550100102", "+15550100103"]);
  const read = () => leads.get(accountId, lead.id);
  const statuses = async () => {
    const { status, contacts } = await read();
    return [status, ...contacts.map((one) => one.status)];
  };
  await world.start(id);
  const stranger = await accounts.create("Other", "other@example.org");
  await leads.block(stranger.id, "+15550100103", null);
  await leads.block(accountId, "+15550100102", null);
  assert.deepEqual(await statuses(), ["processing", "blacklisted", "created"]);
  await world.step(60_000);
  assert.deepEqual(await statuses(), ["reached-max-retries", "blacklisted", "processing"]);
  // Its contact is being called, so it can neither go nor move.
  await assert.rejects(leads.remove(accountId, lead.id), /being called right now/);
  await leads.block(accountId, "+15550100103", null);
  assert.deepEqual(await statuses(), ["reached-max-retries", "blacklisted", "processing"]);
  await world.step(60_000);
  assert.deepEqual(await statuses(), ["reached-max-retries", "blacklisted", "blacklisted"]);
  assert.equal((await campaigns.figures(accountId, id, 1)).figures.totals.calls, 2);

  const { id: draft } = await world.newCampaign();
  const other = await world.addLead(draft, "+15550100201", ["+15550100202", "+15550100204"]);
  await leads.update(accountId, other.id, { status: "reached-max-retries" });
  await leads.block(accountId, "+15550100202", null);
  assert.deepEqual(
    (await leads.get(accountId, other.id)).contacts.map(({ status }) => status),
    ["blacklisted", "scheduled"], "blocked while it was queued");
  await world.close();
});
