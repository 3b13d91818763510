// Campaigns where clocks differ: leads of other time zones, calendars of all zones, and a machine
// whose clock is set back.
import assert from "node:assert/strict";
import { test } from "node:test";
import { endOf, paceOf, periodsOf } from "#features/campaigns/figures.ts";
import { campaignOf, createWorld } from "#support/calls/campaigns-by-clock.ts";

const MINUTE = 60_000;
const NOON = Date.UTC(2026, 5, 3, 12);

test("[CP29] hours of leads in other time zones are stated in theirs", async () => {
  const world = await createWorld({ startMs: NOON, fate: () => ({ fate: "human", seconds: 60 }) });
  // It is 8 in New York, where the campaign is, 14 in Berlin and 21 in Tokyo.
  const { id } = await world.newCampaign({ startMinute: 9 * 60, endMinute: 18 * 60 });
  const { campaigns } = world.features;
  const pause = async () => (await campaigns.withPause(await campaignOf(world, id))).pause;
  await world.addLead(id, "+4915112345001");
  await world.start(id);
  assert.equal(world.dialled.length, 1);
  assert.equal(await pause(), null);
  await world.addLead(id, "+81312345678");
  await world.step(60_000);
  const inTokyo = Date.UTC(2026, 5, 4) * 1000;
  assert.deepEqual([(await pause())?.reason, (await pause())?.until], ["hours", inTokyo]);
  const { campaign, figures, now } = await campaigns.figures(world.accountId, id, 2);
  const end = endOf(campaign, figures, paceOf(campaign, figures.slots, now), now) ?? 0;
  assert.ok(end > inTokyo && end < inTokyo + 3_600_000_000);
  await world.step(inTokyo / 1000 - now / 1000);
  assert.equal(world.dialled.length, 2);
  await world.close();
});

test("[CP32] the next opening of hours of a few minutes is stated to the minute", async () => {
  const world = await createWorld({ startMs: NOON, fate: () => ({ fate: "human", seconds: 60 }) });
  const { id } = await world.newCampaign({ startMinute: 9 * 60 + 5, endMinute: 9 * 60 + 10 });
  const { campaigns } = world.features;
  await world.addLead(id, "+4915112345001");
  await world.start(id);
  const pause = async () => (await campaigns.withPause(await campaignOf(world, id))).pause;
  const inBerlin = Date.UTC(2026, 5, 4, 7, 5) * 1000;
  assert.deepEqual([(await pause())?.reason, (await pause())?.until], ["hours", inBerlin]);
  await world.addLead(id, "+911123456789");
  assert.equal((await pause())?.until, Date.UTC(2026, 5, 4, 3, 35) * 1000, "in India");
  await world.close();
});

test("[CP30] days of its figures are its own zone's, at half-hour offsets and clock changes too", () => {
  const none = {
    answered: 0, voicemail: 0, goals: 0, busy: 0, noAnswer: 0, failed: 0, talkSeconds: 0,
    costMicros: 0,
  };
  const daysOf = (timeZone: string, now: string, ...calls: string[]) => periodsOf(
    { timeZone }, calls.map((at) => ({ slot: Date.parse(at) * 1000, calls: 1, ...none })), "day",
    Date.parse(now) * 1000,
  ).map(({ start, figures }) => [new Date(start / 1000).toISOString(), figures.calls]);
  assert.deepEqual(
    daysOf("Asia/Kolkata", "2026-06-02T18:45:00Z",
      "2026-06-01T18:15:00Z", "2026-06-01T18:30:00Z", "2026-06-02T18:15:00Z"),
    [["2026-05-31T18:30:00.000Z", 1], ["2026-06-01T18:30:00.000Z", 2],
      ["2026-06-02T18:30:00.000Z", 0]]);
  // 23 and a half hours: clocks go forward by half an hour there.
  assert.deepEqual(
    daysOf("Australia/Lord_Howe", "2026-10-04T13:00:00Z",
      "2026-10-03T13:30:00Z", "2026-10-04T12:45:00Z", "2026-10-04T13:00:00Z"),
    [["2026-10-03T13:30:00.000Z", 2], ["2026-10-04T13:00:00.000Z", 1]]);
});

test("[CP31] a clock set back delays neither leads due by the old clock nor a paused carrier", async () => {
  const world = await createWorld({ startMs: NOON, fate: () => ({ fate: "failed", seconds: 1 }) });
  const { id } = await world.newCampaign({ parallelMax: 10, retryIntervalMinutes: 600 });
  const yearMs = 365 * 24 * 60 * MINUTE;
  world.system.step(yearMs);
  for (let at = 0; at < 5; at += 1) await world.addLead(id, `+1555010010${at}`);
  await world.start(id);
  await world.step(2000);
  assert.ok(((await campaignOf(world, id)).pausedUntil ?? 0) > world.system.now());
  assert.equal(world.dialled.length, 5);
  world.system.step(-yearMs);
  await world.step(2 * MINUTE);
  assert.equal(world.dialled.length, 6, "one call tries whether the carrier is well");
  await world.step(2000);
  const pausedUntil = (await campaignOf(world, id)).pausedUntil ?? 0;
  assert.ok(pausedUntil > world.system.now());
  assert.ok(pausedUntil < world.system.now() + 60 * MINUTE * 1000, "by the clock as it is set");
  await world.close();
});
