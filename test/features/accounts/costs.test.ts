// What an account's money went to: counted from its ledger, by any group and in any time zone.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { after, test } from "node:test";
import { createCosts, type CostGroup, type Costs } from "#features/accounts/money/costs.ts";
import { createSystem, utcDay } from "#core/system.ts";
import { DAY_MICROS } from "#core/zones.ts";
import { createManualSystem } from "#support/manual-clock.ts";
import {
  newAssistant, newConversation, openBeside, startTestServer, testDataDir,
} from "#support/server.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";

const system = createManualSystem();
const model = await startScriptedModel();
const server = await startTestServer({
  system, env: { PARLEY_MODEL_URL: model.url, PARLEY_SPEECH: "loopback", PARLEY_CALL_PRICE: "0.10" },
});
after(async () => {
  await server.close();
  await model.close();
});

const read = async (query: string, key = server.key) => {
  const { status, body } = await server.call("GET", `/user/costs${query}`, { key });
  assert.equal(status, 200, JSON.stringify(body));
  return body;
};
const shortly = (groups: { id: string | null; name: string | null; total: number }[]) =>
  groups.map(({ id, name, total }) => [id, name, total]);

test("[BL88] costs match the ledger by assistant, channel, model, kind and day; others see nothing", async () => {
  const { key, accountId } = await server.newAccount();
  const { accounts } = server.app.features;
  const first = await newAssistant(server, { name: "First", status: "active" }, key);
  const second = await newAssistant(server, { name: "Second", status: "active" }, key);
  model.script(() => ({ tokens: ["Good day."] }));
  const say = async (uuid: string, times: number): Promise<void> => {
    const talk = await newConversation(server, uuid);
    for (let time = 0; time < times; time += 1) {
      const sent = await server.call(
        "POST", `/conversations/${talk}/messages`, { body: { message: "Hi" } });
      assert.equal(sent.status, 200);
    }
  };
  await say(first.uuid, 2);
  await say(second.uuid, 1);
  await accounts.credit(accountId, -500_000, `fee:${accountId}`);
  const today = utcDay(system.now());
  const all = await read("", key);
  const { total, complete, timezone, group_by: grouped, days, date_to: to } = all;
  assert.deepEqual([total, complete, timezone, grouped, days.length, to],
    [0.53, true, "UTC", "assistant", 30, today]);
  assert.deepEqual(shortly(all.groups), [
    [null, null, 0.5], [first.uuid, "First", 0.02], [second.uuid, "Second", 0.01],
  ]);
  assert.deepEqual(
    all.groups.map((group: { entries: number; by_day: number[] }) =>
      [group.entries, group.by_day.length, group.by_day.at(-1)]),
    [[1, 30, 0.5], [2, 30, 0.02], [1, 30, 0.01]]);
  const by = async (group: string) =>
    shortly((await read(`?group_by=${group}&date_from=${today}`, key)).groups);
  assert.deepEqual(await by("channel"), [["other", null, 0.5], ["widget", null, 0.03]]);
  assert.deepEqual(await by("kind"), [["other", null, 0.5], ["message", null, 0.03]]);
  assert.deepEqual(await by("day"), [[today, null, 0.53]]);
  assert.deepEqual(await by("campaign"), [[null, null, 0.53]]);
  const models = await by("model");
  assert.equal(models.length, 2);
  const { body: listed } = await server.call("GET", "/user/assistants/models?type=llm", { key });
  assert.equal(models[1]?.[1], (listed.data ?? listed)[0].name);
  // Removed, they keep their name; what came in is no cost.
  await server.call("DELETE", `/user/assistant/${first.id}`, { key });
  await accounts.credit(accountId, 7_000_000, `more:${accountId}`);
  await say(second.uuid, 1);
  assert.deepEqual(shortly((await read("", key)).groups), [
    [null, null, 0.5], [first.uuid, "First", 0.02], [second.uuid, "Second", 0.02],
  ]);
  const { key: stranger } = await server.newAccount();
  assert.deepEqual((await read("", stranger)).groups, []);
  const spent = (await server.call("GET", "/user/overview?days=30", { key })).body.spend.total;
  assert.equal((await read("", key)).total, spent);
});

test("[BL611] a conversation deleted before its cost was aggregated still counts for its channel", async () => {
  const { key } = await server.newAccount();
  const { uuid } = await newAssistant(server, { status: "active" }, key);
  model.script(() => ({ tokens: ["Good day."] }));
  const talk = async (): Promise<string> => {
    const one = await newConversation(server, uuid);
    const { status } = await server.call(
      "POST", `/conversations/${one}/messages`, { body: { message: "Hi" } });
    assert.equal(status, 200);
    return one;
  };
  const alone = await server.call("DELETE", `/user/conversations/${await talk()}`, { key });
  assert.equal(alone.status, 200);
  const several = await server.call("POST", "/user/conversations/bulk-delete", {
    key, body: { conversation_ids: [await talk(), await talk()] },
  });
  assert.equal(several.body.deleted.length, 2);
  assert.deepEqual(
    shortly((await read("?group_by=channel", key)).groups), [["widget", null, 0.03]]);
});

test("[BL89] a range is any days of any time zone, at most a year", async () => {
  const { key, accountId } = await server.newAccount();
  const { accounts } = server.app.features;
  // Twenty to nine in the evening in UTC is the next day in India already, by half an hour's zone.
  const at = system.now();
  const evening = at - (at % DAY_MICROS) + 20 * 3_600_000_000 + 40 * 60_000_000;
  system.advance((evening - at) / 1000);
  await accounts.credit(accountId, -250_000, `fee:${accountId}`);
  const today = utcDay(evening);
  const tomorrow = utcDay(evening + DAY_MICROS);
  const india = await read(`?date_from=${today}&date_to=${tomorrow}&timezone=Asia/Kolkata`, key);
  assert.deepEqual([india.days, india.groups[0].by_day], [[today, tomorrow], [0, 0.25]]);
  assert.deepEqual(
    (await read(`?date_from=${today}&date_to=${tomorrow}`, key)).groups[0].by_day, [0.25, 0]);
  assert.deepEqual((await read(`?date_from=${tomorrow}&date_to=${tomorrow}`, key)).groups, []);
  for (const [query, field] of [
    ["?date_from=2026-02-30", "date_from"], ["?timezone=Mars/Olympus", "timezone"],
    ["?group_by=colour", "group_by"], ["?date_from=2026-01-02&date_to=2026-01-01", "date_to"],
    ["?date_from=2024-01-01&date_to=2026-01-01", "date_from"],
    ["?date_from=2026-01-01T14:00", "date_from"],
  ] as const) {
    const { status, body } = await server.call("GET", `/user/costs${query}`, { key });
    assert.equal(status, 422, query);
    assert.ok(body.errors[field], query);
  }
});

/** A bare database with one account, and entries written as the ledger has them. */
async function ledgerOf(entries: number) {
  const dataDir = testDataDir();
  const storage = await openBeside(dataDir, "forgets");
  const { id: accountId } = await storage.accounts.createAccount(
    { name: "A", email: "", plan: "self-hosted", now: 0 });
  const now = createSystem().now();
  for (let number = 0; number < entries; number += 1) {
    await storage.accounts.credit({
      accountId, amountMicros: number === 0 ? 1e9 : -10_000, reference: `fee:${number}`,
      now: now - number * 60_000_000,
    });
  }
  const costs = createCosts({ store: storage.costs, modelName: () => null });
  return {
    accountId, storage, costs, now,
    close: async () => {
      await storage.close();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

const lastDays = (now: number, count: number) => Array.from({ length: count }, (_, at) => {
  const from = now - (now % DAY_MICROS) - (count - 1 - at) * DAY_MICROS;
  return { date: utcDay(from), from, to: from + DAY_MICROS };
});
const totalOf = async (costs: Costs, accountId: number, now: number, by: CostGroup) =>
  (await costs.report(accountId, lastDays(now, 30), by)).groups
    .reduce((sum, { micros }) => sum + micros, 0);

test("[BL241] a count that runs beside a shorter one knows whether more remains", async () => {
  const { accountId, costs, storage, now, close } = await ledgerOf(4);
  const more = await Promise.all(
    [2, 100].map((rows) => storage.costs.count(accountId, rows)));
  assert.deepEqual(more, [true, true]);
  const [less, report] = await Promise.all(
    [storage.costs.count(accountId, 1), totalOf(costs, accountId, now, "kind")]);
  assert.deepEqual([less, report], [true, 30_000]);
  await close();
});

test("[BL90] each entry is counted once, however many count at the same time", async () => {
  const { accountId, costs, storage, now, close } = await ledgerOf(1301);
  await Promise.all([
    costs.sweep(), costs.sweep(), totalOf(costs, accountId, now, "kind"),
    ...Array.from({ length: 5 }, () => storage.costs.count(accountId, 100)),
  ]);
  for (const by of ["kind", "day", "assistant"] as const) {
    assert.equal(await totalOf(costs, accountId, now, by), 13_000_000, by);
  }
  assert.deepEqual(await storage.costs.uncounted(10), []);
  await close();
});

test("[BL91] groups are limited: the most expensive by name, the others as one", async () => {
  const { accountId, storage, now, close } = await ledgerOf(1);
  const store = {
    ...storage.costs,
    sum: () => Promise.resolve(Array.from({ length: 60 }, (_, at) =>
      ({ key: at + 1, micros: at + 1, entries: 1 }))),
  };
  const { groups } = await createCosts({ store, modelName: (id) => `M${id}` })
    .report(accountId, lastDays(now, 2), "model");
  assert.equal(groups.length, 51);
  assert.deepEqual([groups[0]?.name, groups[0]?.byDay], ["M60", [60, 60]]);
  assert.deepEqual([groups[50]?.isRest, groups[50]?.micros, groups[50]?.entries], [true, 110, 20]);
  await close();
});

test("[BL247] groups of equal cost have a fixed order, in whatever order the database returns them", async () => {
  const found = [7, 3, 12].map((key) => ({ key, micros: 10_000, entries: 1 }));
  const costs = createCosts({
    store: {
      count: () => Promise.resolve(false), uncounted: () => Promise.resolve([]),
      sum: () => Promise.resolve(found), names: () => Promise.resolve(new Map()),
    },
    modelName: () => null,
  });
  const { groups } = await costs.report(1, lastDays(0, 1), "model");
  assert.deepEqual(groups.map(({ id }) => id), ["3", "7", "12"]);
});
