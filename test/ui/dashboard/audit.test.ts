// What is on record, in the words of people.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { ROUTE_RIGHTS } from "#app/rights.ts";
import { noBrowser } from "#support/pages/browser.ts";
import { startDashboard } from "#support/pages/dashboard-page.ts";
import { newAssistant } from "#support/server.ts";
import { DEEDS, detailsOf, objectOf, type Entry } from "#ui/dashboard/pages/audit/deeds.ts";

const skip = noBrowser();
const { server, withDashboard, close } = await startDashboard();
after(close);

const entry = (action: string, details: Entry["details"], id: string | null = "7"): Entry => ({
  number: 1, action, details, object: { type: action.split(".")[0] ?? "", id },
  actor: { kind: "user", id: "user:1", name: "Ada" }, ip: null, created_at: "2026-03-01T10:00:00Z",
});

test("[DB560] every audited action has a sentence, its object's name and the values before and after", () => {
  const actions = Object.values(ROUTE_RIGHTS).flatMap(([, action]) => action ?? []);
  assert.ok(actions.length > 80);
  assert.deepEqual(actions.filter((action) => !Object.hasOwn(DEEDS, action)), []);
  const renamed = entry("assistant.update", {
    fields: ["name"], before: { name: "Ann", folder_id: null }, after: { name: "Bea", folder_id: 3 },
  });
  assert.deepEqual(objectOf(renamed), { name: "Bea", href: "#/assistants/7" });
  assert.equal(detailsOf(renamed), "name: Ann → Bea, folder_id: – → 3");
  const gone = entry("lead.delete", { before: { phone_number: "+4930", status: "created" } });
  assert.deepEqual(objectOf(gone), { name: "+4930", href: null });
  assert.equal(detailsOf(gone), "phone_number: +4930, status: created");
  const made = entry("call.create", { fields: ["assistant_id", "phone_number"] });
  assert.deepEqual(objectOf(made), { name: "7", href: "#/calls/7" });
  assert.equal(detailsOf(made), "assistant_id, phone_number");
  assert.equal(detailsOf(entry("session.open", {}, null)), "–");
});

test("[DB749] every action shows the whole number, name or conversation it was on, and links to it", () => {
  const named = { fields: ["events"], name: "hooks.example.org" };
  assert.deepEqual(objectOf(entry("webhook.update", named)),
    { name: "hooks.example.org", href: "#/webhooks/endpoints/7" });
  assert.equal(detailsOf(entry("webhook.update", named)), "events");
  assert.equal(objectOf(entry("webhook.replay", named)).href, "#/webhooks/deliveries/7");
  assert.equal(objectOf(entry("calendar.update", { name: "Ada" })).href, "#/assistants/7");
  const blocked = entry("blocked_number.create", { fields: ["phone_number"] }, "+493012345678");
  assert.deepEqual(objectOf(blocked), { name: "+493012345678", href: null });
  const uuid = "0b0e4a3c-7c3b-4f0e-9c52-0d9a55a1f6de";
  assert.deepEqual(objectOf(entry("assistant.test", { fields: ["message"] }, uuid)),
    { name: "0b0e4a3c", href: `#/conversations/${uuid}` });
});

test("[DB561] the Audit page links to the object of each action", { skip }, async () => {
  const { id } = await newAssistant(server, { name: "Early" });
  await server.call("PATCH", `/user/assistant/${id}`, { key: server.key, body: { name: "Late" } });
  await withDashboard(async ({ page, go, look }) => {
    await go("/audit");
    const row = page.getByRole("row").filter({ hasText: "Assistant changed" });
    await row.getByText("name: Early → Late").waitFor();
    await look();
    await row.getByRole("link", { name: "Late" }).click();
    await page.getByRole("heading", { name: "Late", level: 1 }).waitFor();
  });
});

test("[DB1184] the audit log keeps its filters after a reload, and for people who come back to it", { skip }, async () => {
  const { id } = await newAssistant(server, { name: "Filtered" });
  await withDashboard(async ({ page, go }) => {
    await go("/audit");
    const what = page.getByLabel("What");
    await what.selectOption("assistant.");
    await page.reload();
    await page.getByRole("link", { name: "Filtered" }).first().waitFor();
    assert.equal(await what.inputValue(), "assistant.");
    await go(`/assistants/${id}`);
    await page.getByRole("heading", { name: "Filtered", level: 1 }).waitFor();
    await page.goBack();
    await page.getByRole("link", { name: "Filtered" }).first().waitFor();
    assert.equal(await what.inputValue(), "assistant.");
  });
});
