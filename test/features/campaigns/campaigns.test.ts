// Campaigns over HTTP: the contract's routes, the rules of hours, retries and breaker, and real
// calls over the loopback carrier. Days of calling are in dialler.test.ts.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { WEEKDAYS, type Weekday } from "#core/days.ts";
import { LEAD_STATUSES } from "#features/leads/leads.ts";
import { isOpenAt } from "#features/campaigns/hours.ts";
import { outcomeOf, breakerAfter, type EndedCall } from "#features/campaigns/rules.ts";
import { createSystem } from "#core/system.ts";
import { rowsBeside } from "#support/databases/beside.ts";
import { newAssistant, openBeside, startTestServer } from "#support/server.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";

const real = createSystem();
let aheadMicros = 0;
// Says little, so that real calls are short.
const model = await startScriptedModel({ tokens: 1 });
const server = await startTestServer({
  env: { PARLEY_SPEECH: "loopback", PARLEY_CALL_PRICE: "0.01", PARLEY_MODEL_URL: model.url },
  system: { ...real, now: () => real.now() + aheadMicros },
});
after(async () => {
  await server.close();
  await model.close();
});
const assistant = await newAssistant(server, {
  type: "outbound", status: "active", timezone: "Europe/Vienna", initial_message: "Hi there.",
  post_call_evaluation: false, endpoint_sensitivity: 1,
});
const stranger = await server.newAccount();
const MINUTE = 60_000;
const create = (body: object = {}, key = server.key) =>
  server.call("POST", "/user/campaigns", {
    key, body: { name: "Spring", assistant_id: assistant.id, ...body },
  });
const setStatus = (body: object, key = server.key) =>
  server.call("POST", "/user/campaigns/update-status", { key, body });
const addLead = async (campaignId: number, number: string) =>
  (await server.call("POST", "/user/lead", {
    body: { campaign_id: campaignId, phone_number: number },
  })).body.data.id as number;

test("[CP1] created with the contract's defaults, listed, read, changed, deleted", async () => {
  const { status, body } = await create();
  assert.equal(status, 201);
  assert.equal(body.message, "Campaign created successfully");
  const { id, created_at, updated_at, ...rest } = body.data;
  assert.match(created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
  assert.equal(updated_at, created_at);
  assert.deepEqual(rest, {
    name: "Spring", status: "draft", assistant_id: assistant.id, timezone: "Europe/Vienna",
    max_calls_in_parallel: 3, mark_complete_when_no_leads: true,
    allowed_hours_start_time: "00:00:00", allowed_hours_end_time: "23:59:00",
    allowed_days: [...WEEKDAYS], max_retries: 3, retry_interval: 60, retry_on_voicemail: false,
    retry_on_goal_incomplete: false, goal_completion_variable: null, phone_number_ids: [],
    calls_made: 0, paused_until: null, pause: null,
  });
  const list = await server.call("GET", "/user/campaigns");
  assert.deepEqual(list.body.at(-1), body.data);
  const { body: read } = await server.call("GET", `/user/campaigns/${id}`);
  const sentBack = await server.call("PUT", `/user/campaigns/${id}`, { body: read });
  assert.equal(sentBack.status, 200, JSON.stringify(sentBack.body));
  const changed = await server.call("PUT", `/user/campaigns/${id}`, {
    body: { allowed_hours_end_time: "17:30", allowed_days: ["Sunday", "monday"], max_retries: "5" },
  });
  const { data } = changed.body;
  assert.deepEqual(
    [data.allowed_hours_end_time, data.allowed_days, data.max_retries, data.name],
    ["17:30:00", ["monday", "sunday"], 5, "Spring"]);
  for (const method of ["GET", "PUT", "DELETE"]) {
    const path = `/user/campaigns/${id}`;
    const answer = await server.call(method, path, {
      key: stranger.key, ...(method === "PUT" ? { body: { name: "x" } } : {}),
    });
    assert.deepEqual([answer.status, answer.body], [404, { message: "Campaign not found" }]);
  }
  const leadId = await addLead(id as number, "+15550100006");
  const gone = await server.call("DELETE", `/user/campaign/${id}`);
  assert.deepEqual([gone.status, gone.body], [200, { message: "Campaign deleted successfully" }]);
  assert.equal((await server.call("DELETE", `/user/campaign/${id}`)).status, 404);
  assert.equal((await server.call("GET", `/user/leads/${leadId}`)).status, 404);
});

test("[CP28] deleting a campaign deletes its leads' events and webhooks, in steps; a repeat completes it", async () => {
  const { key, accountId } = await server.newAccount();
  const ask = (path: string, body: object) => server.call("POST", path, { key, body });
  const caller = await newAssistant(server, { type: "outbound", status: "active" }, key);
  await ask("/user/webhook-endpoints", { url: "https://nowhere.invalid", events: ["*"] });
  const campaignId = (await create({ assistant_id: caller.id }, key)).body.data.id as number;
  const other = (await create({ assistant_id: caller.id }, key)).body.data.id as number;
  const numbers = Array.from({ length: 5 }, (_, at) => `+1555010020${at}`);
  const [kept, contact] = ["+15550100210", "+15550100211"];
  for (const [at, phone_number] of numbers.entries()) {
    const secondary_contacts = at === 1 ? [{ phone_number: contact }] : [];
    await ask("/user/lead", { campaign_id: campaignId, phone_number, secondary_contacts });
  }
  await ask("/user/lead", { campaign_id: other, phone_number: kept });
  for (const phone_number of [...numbers, contact, kept]) {
    await ask("/user/blocked-numbers", { phone_number });
  }
  /** Which of the numbers the account's events and webhooks still have. */
  const told = async (): Promise<string[]> => {
    const rows = await rowsBeside<{ text: string }>(server.dataDir, `
      SELECT data AS text FROM events WHERE account_id = @accountId
      UNION ALL SELECT body AS text FROM webhook_deliveries WHERE account_id = @accountId`,
    { accountId });
    const has = (number: string) => rows.some(({ text }) => text.includes(number));
    return [...numbers, contact, kept].filter(has);
  };
  assert.deepEqual(await told(), [...numbers, contact, kept]);
  const storage = await openBeside(server.dataDir);
  const part = () => storage.campaigns.remove({ accountId, campaignId, rows: 2, now: real.now() });
  assert.deepEqual(await part(), { isGone: false, events: [] });
  assert.deepEqual(await told(), [...numbers.slice(2), kept]);
  assert.equal((await part())?.isGone, false);
  await storage.close();
  const left = await server.call("GET", `/user/leads?campaign_id=${campaignId}`, { key });
  assert.equal(left.body.total, 1);
  assert.equal((await server.call("DELETE", `/user/campaign/${campaignId}`, { key })).status, 200);
  assert.deepEqual(await told(), [kept]);
  const { body } = await server.call("GET", "/user/audit?action=campaign.delete", { key });
  assert.deepEqual(body.data.map(({ object }: { object: unknown }) => object),
    [{ type: "campaign", id: String(campaignId) }]);
});

test("[CP11] its leads are counted by state, including empty states, without contacts", async () => {
  const { id } = (await create()).body.data as { id: number };
  const counts = (key = server.key) => server.call("GET", `/user/campaigns/${id}/lead-counts`, { key });
  const none = Object.fromEntries(LEAD_STATUSES.map((status) => [status, 0]));
  assert.deepEqual((await counts()).body, { data: none });
  const [leadId] = [await addLead(id, "+15550100011"), await addLead(id, "+15550100012")];
  await server.call("POST", "/user/lead", {
    body: {
      campaign_id: id, phone_number: "+15550100013",
      secondary_contacts: [{ phone_number: "+15550100014" }],
    },
  });
  await server.call("PUT", `/user/leads/${leadId}`, { body: { status: "completed" } });
  assert.deepEqual((await counts()).body, { data: { ...none, created: 2, completed: 1 } });
  assert.deepEqual((await counts(stranger.key)).status, 404);
});

test("[CP2] [CP261] invalid campaigns are refused by field; the plan caps them", async () => {
  const inbound = await newAssistant(server, { type: "inbound" });
  for (const [changes, field] of [
    [{ name: " " }, "name"], [{ timezone: "Mars" }, "timezone"],
    [{ max_calls_in_parallel: 11 }, "max_calls_in_parallel"],
    [{ allowed_hours_start_time: "25:00" }, "allowed_hours_start_time"],
    [{ allowed_hours_start_time: "10:00", allowed_hours_end_time: "09:00" },
      "allowed_hours_end_time"],
    [{ allowed_days: ["funday"] }, "allowed_days.0"], [{ allowed_days: [] }, "allowed_days"],
    [{ max_retries: 6 }, "max_retries"], [{ retry_interval: 9 }, "retry_interval"],
    [{ retry_on_goal_incomplete: true }, "goal_completion_variable"],
    [{ goal_completion_variable: "summary" }, "goal_completion_variable"],
    [{ phone_number_ids: [1, 1] }, "phone_number_ids"],
    [{ phone_number_ids: [99] }, "phone_number_ids"],
  ] as [object, string][]) {
    const { status, body } = await create(changes);
    assert.deepEqual([status, body.message], [422, "The given data was invalid."], field);
    assert.deepEqual(Object.keys(body.errors as object), [field]);
  }
  assert.deepEqual((await create({ retry_on_goal_incomplete: true })).body.errors, {
    goal_completion_variable: [
      "The goal completion variable field is required when retry on goal incomplete is true."],
  });
  for (const id of [inbound.id, 999_999]) {
    const { status, body } = await create({ assistant_id: id });
    assert.deepEqual([status, body], [
      404, { message: "Assistant not found or not an outbound assistant." }]);
  }
  assert.equal((await create({}, stranger.key)).status, 404);
  assert.equal((await create({
    retry_on_goal_incomplete: true, goal_completion_variable: "status",
  })).status, 201);
  const many = await server.newAccount();
  const own = await newAssistant(server, { type: "outbound" }, many.key);
  const made = await Promise.all(
    Array.from({ length: 101 }, () => create({ assistant_id: own.id }, many.key)));
  const refused = made.filter(({ status }) => status !== 201);
  assert.deepEqual(refused.map(({ status, body }) => [status, body]), [
    [403, { message: "You have reached the maximum number of campaigns allowed by your plan." }]]);
});

test("[CP3] start and stop: every answer of the contract", async () => {
  const { body: { data: { id } } } = await create({ allowed_days: ["monday"] });
  const answer = async (body: object, key?: string) => {
    const { status, body: said } = await setStatus(body, key);
    return [status, said];
  };
  const invalidAction = [400, {
    message: "Invalid action. Must be either 'start' or 'stop'.", success: false,
  }];
  assert.deepEqual(await answer({ campaign_id: id, action: "pause" }), invalidAction);
  assert.deepEqual(await answer({ campaign_id: id }), invalidAction);
  assert.equal((await answer({ action: "start" }))[0], 422);
  assert.deepEqual(await answer({ campaign_id: 999_999, action: "start" }), [
    404, { message: "Campaign not found.", success: false }]);
  assert.deepEqual(await answer({ campaign_id: id, action: "start" }, stranger.key), [403, {
    message: "Access denied - Campaign does not belong to authenticated user.", success: false,
  }]);
  const data = (status: string) => ({ campaign_id: id, status });
  assert.deepEqual(await answer({ campaign_id: id, action: "start" }), [
    400, { message: "No leads to call.", success: false, data: data("draft") }]);
  assert.deepEqual(await answer({ campaign_id: id, action: "stop" }), [
    400, { message: "Campaign is not running.", success: false, data: data("draft") }]);
  const today = new Date((real.now() + aheadMicros) / 1000);
  const other = WEEKDAYS[(today.getUTCDay() + 3) % 7];
  await server.call("PUT", `/user/campaigns/${id}`, { body: { allowed_days: [other] } });
  await addLead(id as number, "+15550100006");
  assert.deepEqual(await answer({ campaign_id: String(id), status: "start" }), [200, {
    message: "Campaign started successfully.", success: true, data: data("in-progress"),
  }]);
  assert.deepEqual(await answer({ campaign_id: id, action: "start" }), [400, {
    message: "Campaign is already in progress.", success: false, data: data("in-progress"),
  }]);
  assert.deepEqual(await answer({ campaign_id: id, action: "stop" }), [200, {
    message: "Campaign stopped successfully.", success: true, data: data("stopped"),
  }]);
  const change = (status: string) =>
    server.call("PUT", `/user/assistant/${assistant.id}`, { body: { status } });
  await change("inactive");
  assert.deepEqual(await answer({ campaign_id: id, action: "start" }), [
    422, { message: "The assistant is not active.", success: false }]);
  await change("active");
  const poor = await server.newAccount({ balance: "0.004" });
  const own = await newAssistant(server, { type: "outbound", status: "active" }, poor.key);
  const { body: { data: { id: poorId } } } = await create({ assistant_id: own.id }, poor.key);
  await server.call("POST", "/user/lead", {
    key: poor.key, body: { campaign_id: poorId, phone_number: "+15550100006" },
  });
  assert.deepEqual(await answer({ campaign_id: poorId, action: "start" }, poor.key), [400, {
    message: "Insufficient balance to start the campaign. Please top up your account.",
    success: false, data: { campaign_id: poorId, status: "draft" },
  }]);
});

test("[CP22] the audit log has a campaign's state before and after, whoever starts or stops it", async () => {
  const { body: { data: { id } } } = await create({ mark_complete_when_no_leads: false });
  await setStatus({ campaign_id: id, action: "start" });
  await setStatus({ campaign_id: id, action: "stop" });
  const { body } = await server.call("GET", `/user/audit?action=campaign.set_status&object=${id}`);
  assert.deepEqual(
    body.data.map(({ object, details }: Record<string, Record<string, unknown>>) =>
      [object!.id, details!.before, details!.after]),
    [
      [String(id), { status: "in-progress" }, { status: "stopped" }],
      [String(id), { status: "draft" }, { status: "in-progress" }],
    ]);
});

test("[CP26] over HTTP: figures of a campaign, a stop with its reason and author, an audited retry", async () => {
  const { body: { data: made } } = await create({ mark_complete_when_no_leads: false });
  const id = made.id as number;
  assert.equal(made.pause, null);
  const read = async (path: string) => (await server.call("GET", path)).body;
  const { data } = await read(`/user/campaigns/${id}/figures?by=day`);
  assert.equal(data.totals.calls, 0);
  assert.deepEqual([data.answer_rate, data.goal_rate, data.calls_per_hour, data.estimated_end],
    [null, null, null, null]);
  assert.deepEqual([data.leads, data.calling, data.periods], [[], [], []]);
  await setStatus({ campaign_id: id, action: "start" });
  const [, said] = [0, await setStatus({ campaign_id: id, action: "stop", reason: " Wrong list " })];
  assert.equal(said.status, 200);
  const { pause } = await read(`/user/campaigns/${id}`);
  assert.deepEqual([pause.reason, pause.note, pause.until], ["requested", "Wrong list", null]);
  assert.ok(pause.by && pause.since);
  const retry = (body: object, key = server.key) =>
    server.call("POST", `/user/campaigns/${id}/retry`, { key, body });
  assert.equal((await retry({ outcomes: ["answered"] })).status, 422);
  assert.equal((await retry({ outcomes: ["busy"] }, stranger.key)).status, 404);
  assert.deepEqual((await retry({ outcomes: ["busy"] })).body, {
    message: "0 leads are called once more.", data: { retried: 0 },
  });
  const audit = await read(`/user/audit?action=campaign.retry&object=${id}`);
  assert.equal(audit.data.length, 1);
  const leads = await read(`/user/leads?campaign_id=${id}&order=active&due=true`);
  assert.equal(leads.total, 0);
});

test("[CP4] calling hours are local time: gaps, overlaps, half hours, weekdays of the zone", () => {
  const at = (iso: string): number => Date.parse(iso) * 1000;
  const open = (from: string, to: string, days: readonly Weekday[] = WEEKDAYS) => {
    const minute = (clock: string): number =>
      Number(clock.slice(0, 2)) * 60 + Number(clock.slice(3));
    return { startMinute: minute(from), endMinute: minute(to), days };
  };
  const hours = open("02:15", "02:45");
  const minutes = (iso: string, zone: string): number => Array.from({ length: 24 * 60 },
    (_, minute) => isOpenAt(hours, zone, at(iso) + minute * 60_000_000)).filter(Boolean).length;
  // Berlin: 02:00 to 03:00 is left out in spring and comes twice in autumn.
  assert.equal(minutes("2026-03-28T12:00:00Z", "Europe/Berlin"), 0);
  assert.equal(minutes("2026-10-24T12:00:00Z", "Europe/Berlin"), 62);
  assert.equal(minutes("2026-07-01T12:00:00Z", "Europe/Berlin"), 31);
  assert.equal(isOpenAt(open("09:00", "17:00"), "Asia/Kolkata", at("2026-07-01T03:30:00Z")), true);
  assert.equal(isOpenAt(open("09:00", "17:00"), "Asia/Kolkata", at("2026-07-01T03:29:59Z")), false);
  assert.equal(isOpenAt(open("09:00", "17:00"), "UTC", at("2026-07-01T17:00:59Z")), true);
  assert.equal(isOpenAt(open("09:00", "17:00"), "UTC", at("2026-07-01T17:01:00Z")), false);
  const tuesday = open("00:00", "23:59", ["tuesday"]);
  assert.equal(isOpenAt(tuesday, "Pacific/Auckland", at("2026-06-29T12:00:00Z")), true);
  assert.equal(isOpenAt(tuesday, "America/New_York", at("2026-07-01T03:59:00Z")), true);
  assert.equal(isOpenAt(tuesday, "America/New_York", at("2026-06-30T03:59:00Z")), false);
});

test("[CP5] the meaning of each call outcome, and how long the breaker stays open", () => {
  const rules = { retryOnVoicemail: false, retryOnGoalIncomplete: false, goalVariable: null };
  const call = (changes: Partial<EndedCall>): EndedCall => ({
    status: "ended_by_customer", endReason: "customer_hung_up", answeredBy: "human",
    evaluation: {}, ...changes,
  });
  const goal = { ...rules, retryOnGoalIncomplete: true, goalVariable: "sold" };
  assert.equal(outcomeOf(rules, call({})), "reached");
  assert.equal(outcomeOf(rules, call({ answeredBy: "machine" })), "reached");
  const again = { ...rules, retryOnVoicemail: true };
  assert.equal(outcomeOf(again, call({ answeredBy: "machine" })), "retry");
  assert.equal(outcomeOf(goal, call({ evaluation: { sold: true } })), "reached");
  assert.equal(outcomeOf(goal, call({ evaluation: { sold: "true" } })), "retry");
  assert.equal(outcomeOf(goal, call({})), "retry");
  for (const status of ["busy", "no-answer", "failed"] as const) {
    assert.equal(outcomeOf(rules, call({ status, endReason: "carrier_failed" })), "retry");
  }
  const cut = call({ status: "failed", endReason: "server_restarted" });
  assert.equal(outcomeOf(rules, cut), "uncounted");
  assert.equal(outcomeOf(rules, null), "retry");
  const bad = call({ status: "failed", endReason: "carrier_failed" });
  let [breaker, now] = [{ failures: 0, pausedUntil: null as number | null }, 0];
  const pauses: number[] = [];
  for (let at = 0; at < 14; at += 1) {
    breaker = breakerAfter(breaker, bad, now);
    pauses.push(((breaker.pausedUntil ?? now) - now) / 60_000_000);
    const during = breakerAfter(breaker, bad, now);
    if (breaker.pausedUntil !== null) assert.deepEqual(during, breaker);
    now = breaker.pausedUntil ?? now;
  }
  assert.deepEqual(pauses, [0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 60, 60, 60, 60]);
  const busy = call({ status: "busy", endReason: "carrier_failed" });
  assert.deepEqual(breakerAfter(breaker, busy, now), { failures: 0, pausedUntil: null });
});

/** Resolves once the campaign's lead is in none of these states any more. */
async function leadLeaves(leadId: number, ...states: string[]): Promise<string> {
  const moved = Promise.withResolvers<void>();
  const read = async (): Promise<string> =>
    (await server.call("GET", `/user/leads/${leadId}`)).body.status as string;
  const stop = server.app.features.bus.subscribe(`account:${server.accountId}`, (notice) => {
    if (notice.kind !== "committed" || notice.event.type !== "lead_status_changed") return;
    const data = JSON.parse(notice.event.json) as { lead_id: number; status: string };
    if (data.lead_id === leadId && !states.includes(data.status)) moved.resolve();
  });
  if (states.includes(await read())) await moved.promise;
  stop();
  return read();
}

test("[CP10] real calls: reached, busy, mailbox, failed; each is a call of its campaign", async () => {
  const { body: { data: { id, name } } } = await create({
    name: "Real", max_calls_in_parallel: 4, max_retries: 1, retry_interval: 10,
    retry_on_voicemail: true,
  });
  const leads = await Promise.all(["0042", "0001", "0003", "0005"].map((ending) =>
    addLead(id as number, `+1555010${ending}`)));
  const [human, busy] = leads;
  assert.equal((await setStatus({ campaign_id: id, action: "start" })).status, 200);
  const first = await Promise.all(leads.map((one) => leadLeaves(one, "created", "processing")));
  assert.deepEqual(first, ["completed", "rescheduled", "rescheduled", "rescheduled"]);
  const calls = await server.call("GET", `/user/calls?campaign_id=${id}`);
  assert.equal(calls.body.total, 4);
  for (const call of calls.body.data) {
    assert.deepEqual([call.campaign_name, call.campaign_id, call.type], [name, id, "outbound"]);
  }
  assert.equal((await server.call("GET", "/user/calls?campaign_id=999999")).body.total, 0);
  aheadMicros += 11 * MINUTE * 1000;
  server.app.features.dialler.wake();
  const last = await Promise.all(leads.map((one) =>
    leadLeaves(one, "rescheduled", "processing")));
  assert.deepEqual(last, [
    "completed", "reached-max-retries", "reached-max-retries", "reached-max-retries"]);
  await server.app.features.dialler.idle();
  const { body: done } = await server.call("GET", `/user/campaigns/${id}`);
  assert.deepEqual([done.status, done.calls_made], ["completed", 7]);
  const { body: lead } = await server.call("GET", `/user/leads/${busy}`);
  assert.equal(lead.call_tries, 2);
  assert.equal((await server.call("GET", `/user/leads/${human}`)).body.call_tries, 1);
});
