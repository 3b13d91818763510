// The dialler on a manual clock: days of calling across changes of the clock and crashes, a carrier
// that fails, money that runs short, and a stop in the middle.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { WEEKDAYS, type Weekday } from "#core/days.ts";
import { endOf, paceOf, periodsOf } from "#features/campaigns/figures.ts";
import {
  campaignOf, createWorld, type Dialled, type Fate, type World,
} from "#support/calls/campaigns-by-clock.ts";
import { IS_PROOF } from "#support/proof.ts";
import { assistantBody } from "#support/server.ts";

const MINUTE = 60_000;
/** Three minutes each on average: more than any plan needs. */
const STEPS_MAX = 100_000;
/** Each is days of calling, and a second or two of a core. */
const RUNS = IS_PROOF ? 200 : 4;

/** Minute and day of the zone's calendar, computed in another way than the program does. */
function localTime(at: number, zone: string): { minute: number; day: string } {
  const text = new Date(at / 1000).toLocaleString("en-GB", {
    timeZone: zone, weekday: "long", hour: "2-digit", minute: "2-digit", hourCycle: "h23",
  });
  const [, day = "", hours = "", minutes = ""] = /^(\w+)\D+(\d\d):(\d\d)$/.exec(text) ?? [];
  return { day: day.toLowerCase(), minute: Number(hours) * 60 + Number(minutes) };
}

const ZONES: Record<string, string> = {
  "+49": "Europe/Berlin", "+81": "Asia/Tokyo", "+15": "America/New_York",
};
const plan = fc.record({
  startMs: fc.constantFrom(
    Date.UTC(2026, 2, 27, 20), Date.UTC(2026, 9, 23, 20), Date.UTC(2026, 2, 6, 20)),
  window: fc.tuple(fc.integer({ min: 0, max: 1300 }), fc.integer({ min: 60, max: 900 })),
  days: fc.subarray([...WEEKDAYS], { minLength: 4 }),
  parallelMax: fc.integer({ min: 1, max: 4 }),
  maxRetries: fc.integer({ min: 1, max: 3 }),
  retryIntervalMinutes: fc.integer({ min: 10, max: 600 }),
  retryOnVoicemail: fc.boolean(),
  retryOnGoalIncomplete: fc.boolean(),
  leads: fc.array(fc.tuple(
    fc.constantFrom("+4915112345", "+8131234", "+1555010"), fc.integer({ min: 0, max: 2 })),
  { minLength: 3, maxLength: 12 }),
  fates: fc.array(fc.tuple(
    fc.constantFrom<Fate>(
      "human", "goal", "machine", "busy", "no-answer", "failed", "failed", "crash"),
    fc.integer({ min: 20, max: 1500 })), { minLength: 10, maxLength: 40 }),
  crashEvery: fc.integer({ min: 20, max: 400 }),
});

/** Who was called when, against every promise at once. */
async function check(world: World, campaignId: number): Promise<void> {
  const { leads } = world.features;
  const campaign = await campaignOf(world, campaignId);
  const page = await leads.page(world.accountId, { campaignId }, { page: 1, perPage: 100 });
  const log = new Map<number, Dialled[]>();
  for (const entry of world.dialled) {
    log.set(entry.leadId, [...log.get(entry.leadId) ?? [], entry]);
  }
  const uncounted = new Set((await world.features.calls.page(
    world.accountId, { campaignId }, { page: 1, perPage: 10_000 })).items
    .filter(({ endReason }) => endReason === "server_restarted").map(({ id }) => id));
  assert.equal(new Set(world.dialled.map(({ callId }) => callId)).size, world.dialled.length);
  for (const main of page.items) {
    const finals = ["completed", "reached-max-retries"];
    assert.ok(finals.includes(main.status), `lead ${main.id} is ${main.status}`);
    const isExhausted = main.status === "reached-max-retries";
    let before = Math.max(0, ...(log.get(main.id) ?? []).map(({ endedAt }) => endedAt ?? 0));
    let isTurn = isExhausted;
    for (const contact of [main, ...main.contacts]) {
      const tried = log.get(contact.id) ?? [];
      const counted = tried.filter(({ callId }) => !uncounted.has(callId)).length;
      assert.equal(contact.callTries, counted);
      assert.ok(counted <= campaign.maxRetries + 1);
      for (const [index, entry] of tried.entries()) {
        const last = tried[index - 1];
        const waited = entry.at - (last?.endedAt ?? -Infinity);
        assert.ok(waited >= campaign.retryIntervalMinutes * 60_000_000, "called again too soon");
      }
      if (contact === main) continue;
      if (!isTurn) {
        assert.deepEqual([contact.status, tried.length], ["created", 0]);
        continue;
      }
      assert.ok(finals.includes(contact.status), `contact ${contact.id} is ${contact.status}`);
      assert.ok((tried[0]?.at ?? Infinity) >= before, "called before its turn");
      before = tried.at(-1)?.endedAt ?? before;
      isTurn = contact.status === "reached-max-retries";
    }
  }
  assert.equal(campaign.status, "completed");
}

test("[CP6] days of calling across clock changes and crashes keep every promise", async () => {
  let dialled = 0;
  let crashes = 0;
  await fc.assert(fc.asyncProperty(plan, async (given) => {
    const { startMs, window: [startMinute, length], leads, fates, crashEvery, ...fields } = given;
    const endMinute = Math.min(1439, startMinute + length);
    let next = 0;
    const world: World = await createWorld({
      startMs,
      fate: () => {
        const [fate, seconds] = fates[next++ % fates.length]!;
        if (fate === "crash") crashes += 1;
        return { fate, seconds };
      },
      onDial: (entry, live) => {
        const zone = ZONES[entry.number.slice(0, 3)] ?? "";
        const { day, minute } = localTime(entry.at, zone);
        assert.ok(fields.days.includes(day as Weekday), `${day} is no day of the campaign`);
        assert.ok(minute >= startMinute && minute <= endMinute, "outside the hours");
        assert.ok(live.length < fields.parallelMax, "more calls than may be");
        assert.ok(live.every(({ leadId }) => leadId !== entry.leadId), "called twice at once");
      },
    });
    const campaign = await world.newCampaign({
      ...fields, startMinute, endMinute,
      goalVariable: fields.retryOnGoalIncomplete ? "reached" : null,
    });
    for (const [index, [prefix, contacts]] of leads.entries()) {
      const number = (at: number): string => `${prefix}${String(1000 + index * 10 + at)}`;
      await world.addLead(
        campaign.id, number(0), Array.from({ length: contacts }, (_, at) => number(at + 1)));
    }
    await world.start(campaign.id);
    const isOver = async (): Promise<boolean> =>
      (await campaignOf(world, campaign.id)).status !== "in-progress";
    for (let step = 1; step < STEPS_MAX && !await isOver(); step += 1) {
      await world.step(step % 3 === 0 ? MINUTE : 4 * MINUTE);
      if (step % crashEvery === 0 && step < 5000) {
        crashes += 1;
        await world.crash();
        await world.settle();
      }
    }
    await check(world, campaign.id);
    dialled += world.dialled.length;
    await world.close();
  }), { numRuns: RUNS, includeErrorInReport: true, endOnFailure: true });
  assert.ok(dialled > 7 * RUNS && crashes > RUNS, `${dialled} calls, ${crashes} crashes`);
});

const NOON = Date.UTC(2026, 5, 3, 12);
interface StatusEvent {
  type: string; status: string; previous_status: string; reason: string;
  paused_until: string | null;
}
/** What the account's log says about its campaigns, in order. */
const told = async ({ storage, accountId }: World): Promise<StatusEvent[]> =>
  (await storage.events.ofAccount(accountId, 0, 10_000))
    .map(({ json }) => JSON.parse(json) as StatusEvent)
    .filter(({ type }) => type === "campaign_status_changed");
const statusOf = async (world: World, leadId: number): Promise<string> =>
  (await world.features.leads.get(world.accountId, leadId)).status;

test("[CP7] a failing carrier pauses the campaign, longer each time; one call tests it again", async () => {
  let isWell = false;
  const world = await createWorld({
    startMs: NOON, fate: () => ({ fate: isWell ? "human" : "failed", seconds: 1 }),
  });
  const { id } = await world.newCampaign({ parallelMax: 3 });
  for (let at = 0; at < 12; at += 1) await world.addLead(id, `+15550100${100 + at}`);
  await world.start(id);
  for (let second = 0; second < 50; second += 1) await world.step(1000);
  const before = world.dialled.length;
  assert.ok(before >= 5 && before <= 7, `${before} calls before the pause`);
  const paused = (await campaignOf(world, id)).pausedUntil;
  assert.ok(paused !== null && (await told(world)).some(({ reason, paused_until }) =>
    reason === "carrier_failures" && paused_until !== null));
  await world.step(20_000);
  await world.step(2000);
  assert.equal(world.dialled.length, before + 1);
  await world.step(60_000);
  assert.equal(world.dialled.length, before + 1);
  isWell = true;
  for (let second = 0; second < 120; second += 1) await world.step(1000);
  assert.equal((await campaignOf(world, id)).pausedUntil, null);
  assert.equal(world.dialled.length, 12);
  await world.close();
});

test("[CP8] a low balance stops the campaign with the reason; nobody is forgotten", async () => {
  const world = await createWorld({
    startMs: NOON, balanceMicros: 120_000, fate: () => ({ fate: "human", seconds: 600 }),
  });
  const { id } = await world.newCampaign();
  const leads = await Promise.all(
    ["+15550100101", "+15550100102"].map((number) => world.addLead(id, number)));
  await world.start(id);
  assert.equal((await campaignOf(world, id)).status, "stopped");
  assert.deepEqual(
    (await told(world)).map(({ status, reason }) => [status, reason]),
    [["in-progress", "requested"], ["stopped", "balance_too_low"]]);
  assert.deepEqual(await Promise.all(leads.map((one) => statusOf(world, one.id))), ["processing", "created"]);
  await world.step(700_000);
  assert.deepEqual(await Promise.all(leads.map((one) => statusOf(world, one.id))), ["completed", "created"]);
  await world.close();
});

test("[CP12] while the server has no room for calls nobody is dialled, and then everybody is", async () => {
  let hasRoom = false;
  const world = await createWorld({
    startMs: NOON, fate: () => ({ fate: "human", seconds: 5 }), hasRoom: () => hasRoom,
  });
  const { id } = await world.newCampaign();
  const leads = await Promise.all(
    ["+15550100101", "+15550100102"].map((number) => world.addLead(id, number)));
  await world.start(id);
  await world.step(15_000);
  assert.deepEqual(await Promise.all(leads.map((one) => statusOf(world, one.id))), ["created", "created"]);
  assert.equal((await campaignOf(world, id)).status, "in-progress");
  hasRoom = true;
  // Nothing wakes the dialler but its own clock.
  await world.step(10_000);
  await world.step(6000);
  assert.deepEqual(await Promise.all(leads.map((one) => statusOf(world, one.id))), ["completed", "completed"]);
  await world.close();
});

test("[CP27] a campaign that keeps failing stops no other, and continues once the fault is gone", async () => {
  let failing = 0;
  const world = await createWorld({
    startMs: NOON, fate: () => ({ fate: "human", seconds: 5 }), fails: (id) => id === failing,
  });
  const [broken, sound] = [await world.newCampaign(), await world.newCampaign()];
  failing = broken.id;
  for (const { id } of [broken, sound]) {
    for (const number of ["+15550100101", "+15550100102", "+15550100103"]) {
      await world.addLead(id, number);
    }
  }
  const called = () => world.dialled.map(({ campaignId }) => campaignId);
  await world.start(broken.id);
  await world.start(sound.id);
  assert.deepEqual(called(), [sound.id, sound.id, sound.id]);
  failing = 0;
  await world.step(10_000);
  assert.deepEqual(called().slice(3), [broken.id, broken.id, broken.id]);
  await world.close();
});

test("[CR466] a campaign whose assistant is replaced goes on with the new one, even if the old is deleted", async () => {
  const changed = Promise.withResolvers<void>();
  const world = await createWorld({
    startMs: NOON, fate: () => ({ fate: "human", seconds: 5 }),
    onDial: ({ campaignId }) => {
      if (world.dialled.length > 0) return;
      const { campaigns, assistants } = world.features;
      const { accountId } = world;
      campaigns.update(accountId, campaignId, { assistantId: other.id })
        .then(() => assistants.remove(accountId, world.assistant.id))
        .then(() => changed.resolve(), changed.reject);
    },
  });
  const other = await world.features.assistants.create(
    world.accountId, assistantBody({ type: "outbound", status: "active" }) as never);
  const { id } = await world.newCampaign();
  for (let last = 1; last <= 3; last += 1) await world.addLead(id, `+1555010010${last}`);
  await world.start(id);
  await changed.promise;
  await world.settle();
  const { calls } = world.features;
  const by = await Promise.all(world.dialled.map(async ({ callId }) =>
    (await calls.findById(callId))?.assistantId));
  assert.deepEqual(by, [world.assistant.id, other.id, other.id]);
  assert.equal((await campaignOf(world, id)).status, "in-progress");
  await world.close();
});

test("[CP21] a freed place is taken at once; one nobody waited for triggers nothing", async () => {
  let hasRoom = false;
  let asked = 0;
  const world = await createWorld({
    startMs: NOON, fate: () => ({ fate: "human", seconds: 5 }),
    hasRoom: () => {
      asked += 1;
      return hasRoom;
    },
  });
  const { id } = await world.newCampaign({ completesWhenDone: false });
  await world.addLead(id, "+15550100101");
  await world.start(id);
  assert.equal(world.dialled.length, 0);
  hasRoom = true;
  world.freed();
  await world.settle();
  assert.equal(world.dialled.length, 1);
  const before = asked;
  world.freed();
  await world.settle();
  assert.equal(asked, before);
  await world.close();
});

test("[CP23] figures match the calls, by state and by hour, with pace and end; active ones first", async () => {
  const fates: Record<string, Fate> = {
    "1": "busy", "2": "machine", "3": "human", "4": "goal", "5": "failed", "6": "no-answer",
  };
  const world = await createWorld({
    startMs: NOON, fate: ({ number }) => ({ fate: fates[number.at(-1)!]!, seconds: 60 }),
  });
  const { id } = await world.newCampaign({
    parallelMax: 2, maxRetries: 1, retryOnVoicemail: true, goalVariable: "reached",
  });
  for (let at = 1; at <= 6; at += 1) await world.addLead(id, `+1555010010${at}`);
  await world.start(id);
  const { campaigns, leads } = world.features;
  const read = () => campaigns.figures(world.accountId, id, 2);
  const { calling } = (await read()).figures;
  assert.deepEqual(calling.map(({ phoneNumber }) => phoneNumber), ["+15550100101", "+15550100102"]);
  await world.step(60_000);
  const page = (filter: object) =>
    leads.page(
      world.accountId, { campaignId: id, isByActivity: true, ...filter }, { page: 1, perPage: 3 });
  const first = await page({});
  assert.equal(first.total, 6);
  assert.deepEqual(first.items.map(({ status }) => status), ["processing", "processing", "rescheduled"]);
  assert.equal((await page({ isDueAt: world.system.now() })).total, 2);
  for (let pass = 0; pass < 4; pass += 1) await world.step(60_000);
  const { campaign, figures, now } = await read();
  const { talkSeconds, ...totals } = figures.totals;
  assert.deepEqual(totals, {
    calls: 6, answered: 2, voicemail: 1, goals: 1, busy: 1, noAnswer: 1, failed: 1, costMicros: 0,
  });
  assert.ok(talkSeconds >= 179 && talkSeconds <= 181, String(talkSeconds));
  assert.deepEqual(
    figures.states.map(({ status, outcome, leads: many }) => `${status} ${outcome} ${many}`)
      .toSorted(), [
      "completed answered 1", "completed goal_missed 1", "rescheduled busy 1",
      "rescheduled carrier_failed 1", "rescheduled no_answer 1", "rescheduled voicemail 1",
    ]);
  const [hour, ...more] = periodsOf(campaign, figures.slots, "hour", now);
  assert.deepEqual([hour?.figures.calls, more.length], [6, 0]);
  const pace = paceOf(campaign, figures.slots, now);
  assert.equal(pace, 72);
  const end = endOf(campaign, figures, pace, now) ?? 0;
  assert.ok(end > now && end < now + 3_600_000_000);
  assert.equal((await page({ outcome: "busy" })).total, 1);
  await world.close();
});

test("[CP24] failed leads are retried by reason, once however often requested, and no blocked ones", async () => {
  const world = await createWorld({
    startMs: NOON,
    fate: ({ number }) => ({ fate: number.endsWith("9") ? "failed" : "busy", seconds: 5 }),
  });
  const { id } = await world.newCampaign({
    parallelMax: 10, maxRetries: 1, retryIntervalMinutes: 10,
  });
  const [first, blocked, other] = await Promise.all(
    ["+15550100101", "+15550100102", "+15550100109"].map((number) => world.addLead(id, number)));
  await world.start(id);
  for (let pass = 0; pass < 3; pass += 1) {
    await world.step(6_000);
    await world.step(11 * MINUTE);
  }
  assert.equal((await campaignOf(world, id)).status, "completed");
  const triesBefore = world.dialled.length;
  const { campaigns, leads } = world.features;
  await leads.block(world.accountId, "+15550100102", null);
  const asked = await Promise.all(
    [1, 2].map(() => campaigns.retry(world.accountId, id, ["busy"])));
  assert.deepEqual(asked.toSorted(), [0, 1]);
  await world.start(id);
  for (let pass = 0; pass < 3; pass += 1) await world.step(11 * MINUTE);
  assert.equal(world.dialled.length, triesBefore + 1);
  assert.equal(world.dialled.at(-1)?.leadId, first!.id);
  assert.deepEqual(
    await Promise.all([first, blocked, other].map((one) => statusOf(world, one!.id))),
    ["reached-max-retries", "blacklisted", "reached-max-retries"]);
  await world.close();
});

test("[CP25] a campaign that calls nobody says why, since when, and when it goes on", async () => {
  const world = await createWorld({ startMs: NOON, fate: () => ({ fate: "failed", seconds: 1 }) });
  const { id } = await world.newCampaign({ parallelMax: 10, retryIntervalMinutes: 600 });
  const { campaigns } = world.features;
  const pause = async () => (await campaigns.withPause(await campaignOf(world, id))).pause;
  assert.equal(await pause(), null);
  for (let at = 0; at < 6; at += 1) await world.addLead(id, `+1555010010${at}`);
  await world.start(id);
  assert.equal(await pause(), null);
  await world.step(2000);
  assert.equal((await pause())?.reason, "carrier_failures");
  assert.ok(((await pause())?.until ?? 0) > world.system.now());
  await world.step(2 * 60 * MINUTE);
  const opens = Math.floor((world.system.now() / 60_000_000) % 1440) + 30;
  // The world's zone is New York, hours behind; what matters is the distance.
  const { timeZone } = await campaigns.update(world.accountId, id, { timeZone: "UTC" });
  assert.equal(timeZone, "UTC");
  await campaigns.update(world.accountId, id, { startMinute: opens, endMinute: opens + 60 });
  const waits = await pause();
  assert.equal(waits?.reason, "hours");
  assert.equal(Math.floor((waits?.until ?? 0) / 60_000_000) % 1440, opens);
  await campaigns.stop(world.accountId, id, "Wrong list");
  assert.deepEqual(await pause(), {
    reason: "requested", note: "Wrong list", by: null, since: world.system.now(), until: null,
  });
  await world.close();
});

test("[CP9] stopped, calls go on to their end; numbers in turn; blocked mid-call; the plan's limit", async () => {
  const world = await createWorld({
    startMs: NOON, fate: () => ({ fate: "busy", seconds: 100 }),
  });
  const { id } = await world.newCampaign({ parallelMax: 2, phoneNumberIds: [1, 2] });
  const [first, second, third] = await Promise.all(
    ["+15550100101", "+15550100102", "+15550100103"].map((number) => world.addLead(id, number)));
  await world.start(id);
  assert.deepEqual(world.dialled.map(({ from }) => from), ["+15550200001", "+15550200002"]);
  await assert.rejects(
    world.features.leads.remove(world.accountId, first!.id), /being called right now/);
  await world.features.leads.block(world.accountId, "+15550100102", null);
  await world.features.campaigns.stop(world.accountId, id);
  await world.step(200_000);
  assert.deepEqual(
    await Promise.all([first, second, third].map((one) => statusOf(world, one!.id))),
    ["rescheduled", "blacklisted", "created"]);
  assert.equal(world.dialled.length, 2);
  const crowd = await world.newCampaign({ parallelMax: 10 });
  const other = await world.newCampaign({ parallelMax: 10 });
  for (let at = 0; at < 9; at += 1) {
    await world.addLead(crowd.id, `+15550101${100 + at}`);
    await world.addLead(other.id, `+15550102${100 + at}`);
  }
  await world.start(crowd.id);
  await world.start(other.id);
  const live = world.dialled.filter(({ endedAt }) => endedAt === null);
  assert.equal(live.length, 10);
  await world.step(100_000);
  const after = world.dialled.filter(({ campaignId }) => campaignId === other.id);
  assert.equal(after.length, 9);
  await world.close();
});
