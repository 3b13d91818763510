// Campaigns in the dashboard: made by hand, started and stopped, calling before people's eyes.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Page } from "playwright-core";
import { dayAfter } from "#core/days.ts";
import { LIMITS } from "#core/limits.ts";
import { dayAt } from "#core/zones.ts";
import { openWriter } from "#storage/engines/sqlite/database.ts";
import { outreachOf } from "#support/calls/outreach.ts";
import { noBrowser } from "#support/pages/browser.ts";
import { startDashboard } from "#support/pages/dashboard-page.ts";

const skip = noBrowser();
const { server, withDashboard, close } = await startDashboard();
after(close);
const { newCaller, newCampaign, leadsOf, add } = outreachOf(server);

const LONG = "Donaudampfschifffahrtsgesellschaftskapitänsmützenfabrik".repeat(3);

const campaignsOf = async (key: string) =>
  (await server.call("GET", "/user/campaigns", { key })).body as Record<string, unknown>[];

const dialogButton = (page: Page, name: string) =>
  page.getByRole("dialog").getByRole("button", { name, exact: true });
const rowOf = (page: Page, name: string) => page.getByRole("row", { name });

test("[DB70] a campaign is created and changed in its form; errors appear beside their fields", { skip }, async () => {
  const { key, assistantId } = await newCaller({
    name: LONG, timezone: "Europe/Vienna",
    post_call_schema: [{ name: "booked", type: "bool", description: "Booked a table" }],
  });
  await withDashboard(async ({ page, go, look }) => {
    await go("/campaigns");
    await page.getByText("No campaigns yet").waitFor();
    await look();
    await page.getByRole("link", { name: "New campaign" }).first().click();
    await page.getByLabel("Name").fill("Autumn");
    await page.getByLabel("From", { exact: true }).fill("17:00");
    await page.getByLabel("To", { exact: true }).fill("09:00");
    await page.getByLabel("Saturday").check();
    await page.getByLabel("Call goal").selectOption("booked");
    await page.getByLabel("Try again until the goal is reached").check();
    await page.getByRole("button", { name: "Create" }).click();
    await page.getByText("The allowed hours end time must be after the start time.").waitFor();
    await look();
    await page.getByLabel("To", { exact: true }).fill("19:30");
    await page.getByRole("button", { name: "Create" }).click();
    await page.getByRole("heading", { name: "Autumn", level: 1 }).waitFor();
    const [made] = await campaignsOf(key);
    assert.equal(made?.assistant_id, assistantId);
    assert.equal(made.timezone, "Europe/Vienna");
    assert.deepEqual([made.allowed_hours_start_time, made.allowed_hours_end_time], ["17:00:00", "19:30:00"]);
    assert.deepEqual(made.allowed_days,
      ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday"]);
    assert.deepEqual([made.goal_completion_variable, made.retry_on_goal_incomplete], ["booked", true]);
    await page.getByRole("link", { name: "Edit" }).click();
    await page.getByLabel("Name").fill(LONG);
    await page.getByLabel("Minutes between attempts").fill("15");
    const asked = page.waitForRequest((request) => request.method() === "PATCH");
    await page.getByRole("button", { name: "Save" }).click();
    assert.deepEqual((await asked).postDataJSON(), { name: LONG, retry_interval: 15 });
    await page.getByRole("heading", { name: LONG, level: 1 }).waitFor();
    await page.getByText("3 times, every 15 min").waitFor();
    await look();
    await go("/campaigns");
    await rowOf(page, LONG).getByText("No leads").waitFor();
    await look();
  }, { key });
});

test("[DB650] [DB71] starting asks first and explains a refusal; progress shows lead by lead, and stopping stops", { skip }, async () => {
  const caller = await newCaller();
  const { key } = caller;
  const id = await newCampaign(caller);
  const statusNow = async () => (await campaignsOf(key))[0]?.status;
  await withDashboard(async ({ page, go, look }) => {
    await go(`/campaigns/${id}`);
    await page.getByText("It has no leads yet.").waitFor();
    await page.getByRole("button", { name: "Start" }).click();
    await dialogButton(page, "Start calling").click();
    await page.getByRole("alert").getByText("No leads to call.").waitFor();
    await dialogButton(page, "Cancel").click();
    await page.getByRole("button", { name: "Add lead" }).click();
    await page.getByLabel("Phone number").fill("+15550100001");
    await dialogButton(page, "Add").click();
    await rowOf(page, "+1 555 010 0001").getByText("Created").waitFor();
    await page.getByRole("button", { name: "Created 1" }).waitFor();
    await add(key, id, "+15550110006", { variables: { name: "Ada" } });
    await page.getByRole("button", { name: "Start" }).click();
    assert.equal(await statusNow(), "draft");
    await dialogButton(page, "Start calling").click();
    // The busy one is to be tried again, the other one is on the line; nobody reloads.
    await rowOf(page, "+1 555 010 0001").getByText("Rescheduled").waitFor();
    await page.getByRole("button", { name: "Rescheduled 1" }).waitFor();
    await page.getByRole("button", { name: "Processing 1" }).waitFor();
    await page.getByRole("button", { name: "Processing 1" }).click();
    await rowOf(page, "+1 555 011 0006").getByRole("link", { name: /^Call \d/ }).waitFor();
    await rowOf(page, "+1 555 010 0001").waitFor({ state: "detached" });
    await page.getByRole("list", { name: "Being called now" }).getByText("+1 555 011 0006").waitFor();
    await look();
    await page.getByRole("button", { name: "Stop" }).click();
    await page.getByLabel("Reason").fill("Wrong list");
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Start" }).waitFor();
    await page.getByText("Wrong list").waitFor();
    assert.equal(await statusNow(), "stopped");
    const [lead] = (await leadsOf(key, "&status=processing")).data;
    await server.call("POST", `/user/calls/${String(lead?.last_call_id)}/end`, { key });
    await page.getByRole("button", { name: "Completed 1" }).waitFor();
    await page.getByText("1 of 2 leads completed").waitFor();
    await page.getByText("Nobody is being called right now.").waitFor();
    await page.getByRole("figure", { name: "How calls ended" }).waitFor();
    await look();
    // One that is through in vain is found by its reason and called once more.
    const [, busy] = (await leadsOf(key)).data;
    await server.call("PATCH", `/user/leads/${String(busy?.id)}`, {
      key, body: { status: "reached-max-retries" },
    });
    await page.getByRole("button", { name: "Busy 1" }).click();
    await rowOf(page, "+1 555 010 0001").getByText("Reached max retries").waitFor();
    await page.getByRole("button", { name: "Call again" }).click();
    await look();
    await dialogButton(page, "Call again").click();
    await page.getByText("1 lead is called once more.").waitFor();
    await page.getByRole("button", { name: "Rescheduled 1" }).waitFor();
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByText("its leads are deleted with it").waitFor();
    await dialogButton(page, "Delete").click();
    await page.getByText("No campaigns yet").waitFor();
    assert.deepEqual(await campaignsOf(key), []);
  }, { key });
});

test("[DB1178] only questions before something that cannot be undone have a red button", { skip }, async () => {
  const caller = await newCaller();
  const id = await newCampaign(caller);
  await withDashboard(async ({ page, go }) => {
    await go(`/campaigns/${id}`);
    const colourOf = async (opener: string, name: string): Promise<unknown> => {
      await page.getByRole("button", { name: opener }).click();
      await dialogButton(page, name).waitFor();
      const colour = await page.evaluate(
        "getComputedStyle(document.querySelector('dialog [type=submit]')).backgroundColor");
      await dialogButton(page, "Cancel").click();
      return colour;
    };
    const red = await colourOf("Delete", "Delete");
    assert.notEqual(await colourOf("Start", "Start calling"), red);
  }, { key: caller.key });
});

test("[DB72] a campaign whose carrier fails shows until when no calls are made", { skip }, async () => {
  const caller = await newCaller();
  const { key } = caller;
  const id = await newCampaign(caller, { max_calls_in_parallel: 5 });
  for (let made = 0; made < LIMITS.breakerFailures + 3; made += 1) {
    await add(key, id, `+155502${made}0005`);
  }
  await withDashboard(async ({ page, go, look }) => {
    await go(`/campaigns/${id}`);
    await page.getByRole("button", { name: "Start" }).click();
    await dialogButton(page, "Start calling").click();
    await page.getByText("The carrier failed several times in a row").waitFor();
    await look();
    assert.ok((await campaignsOf(key))[0]?.paused_until);
    await go("/campaigns");
    await rowOf(page, "Autumn").getByText("Paused").waitFor();
  }, { key });
});

test("[DB573] a concurrent change of a campaign is not overwritten unseen", { skip }, async () => {
  const caller = await newCaller();
  const { key } = caller;
  const id = await newCampaign(caller);
  const call = async (method: string, body?: object) =>
    (await server.call(method, `/user/campaigns/${id}`, { key, ...body ? { body } : {} })).body;
  await withDashboard(async ({ page, go }) => {
    await go(`/campaigns/${id}/edit`);
    await page.getByLabel("Name").fill("Mine");
    await call("PATCH", { name: "Theirs", max_calls_in_parallel: 7 });
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("alert").getByText("Somebody else has changed this in the meantime.").waitFor();
    assert.equal(await page.getByLabel("Name").inputValue(), "Mine");
    assert.equal((await call("GET")).name, "Theirs");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("heading", { name: "Mine", level: 1 }).waitFor();
    const { name, max_calls_in_parallel: atOnce } = await call("GET");
    assert.deepEqual([name, atOnce], ["Mine", 7]);
  }, { key });
});

test("[DB587] the days of a campaign's charts follow its own calendar, wherever the account is", { skip }, async () => {
  const caller = await newCaller();
  const { key } = caller;
  const timezone = "America/Los_Angeles";
  const id = await newCampaign(caller, { timezone });
  const first = dayAfter(dayAt(Date.now() * 1000, timezone), -2);
  const db = openWriter(server.dataDir, { migrate: false });
  // In the evening there, when it is the next day in Tokyo already.
  db.prepare(`INSERT INTO campaign_figures VALUES (?, ?, 1, 1, 0, 0, 0, 0, 0, 60, 10000)`)
    .run(id, Date.parse(`${dayAfter(first)}T04:00:00Z`) * 1000);
  db.close();
  await server.call("PUT", "/user/settings", { key, body: { time_zone: "Asia/Tokyo" } });
  await withDashboard(async ({ page, go }) => {
    await go(`/campaigns/${id}`);
    await page.getByRole("button", { name: "Days", exact: true }).click();
    const days = page.locator('[aria-label="How calls ended: figures"] tbody th');
    const label = (day: string): string => new Date(`${day}T00:00:00Z`)
      .toLocaleDateString("en", { day: "numeric", month: "short", timeZone: "UTC" });
    await days.filter({ hasText: /^[^:]+$/ }).first().waitFor({ state: "attached" });
    assert.deepEqual((await days.allTextContents()).slice(0, 2),
      [label(first), label(dayAfter(first))]);
  }, { key });
});
