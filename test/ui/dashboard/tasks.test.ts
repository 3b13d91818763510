// What people come to the dashboard for, with the clicks each takes counted by the page itself:
// never more than when it was first measured, and nothing is impossible. Each begins at the
// overview. Fields are reached by the keyboard, forms sent by Enter, a file chosen is a click.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { setTimeout } from "node:timers/promises";
import type { Page } from "playwright-core";
import { createSystem } from "#core/system.ts";
import { startTwilioNumbers } from "#support/carriers/twilio-numbers-server.ts";
import { makePdf } from "#support/documents/documents.ts";
import { startEndpoint } from "#support/endpoint.ts";
import { noBrowser } from "#support/pages/browser.ts";
import { startDashboard } from "#support/pages/dashboard-page.ts";
import { onlyProof } from "#support/proof.ts";
import { newAssistant, newConversation } from "#support/server.ts";
import {
  startStripeServer, STRIPE_KEY, STRIPE_SECRET, stripeReport,
} from "#support/vendors/stripe-server.ts";

const skip = noBrowser();
const twilio = await startTwilioNumbers();
const shop = await startEndpoint();
const stripe = await startStripeServer();
const { model, server, withDashboard, close } = await startDashboard({
  ...twilio.env, PARLEY_STRIPE_KEY: STRIPE_KEY, PARLEY_STRIPE_WEBHOOK_SECRET: STRIPE_SECRET,
  PARLEY_STRIPE_URL: stripe.url,
});
after(async () => {
  await close();
  await Promise.all([twilio.close(), shop.close(), stripe.close()]);
});
await server.app.features.accounts.credit(server.accountId, 50_000_000);

/** A trusted click with a place on the screen: those that keys make have none. */
const COUNT = `addEventListener("click", (event) => {
  if (event.isTrusted && event.detail > 0) window.clicks = (window.clicks ?? 0) + 1;
}, true);`;

interface Hand {
  page: Page;
  click(role: "button" | "link" | "row", name: string | RegExp): Promise<void>;
  navigate(name: string): Promise<void>;
  file(path: string): Promise<void>;
}

/** Does the task from the overview on, and says how many clicks it took. */
async function clicksOf(page: Page, work: (hand: Hand) => Promise<void>): Promise<number> {
  await page.goto(`${server.url}/#/`);
  await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor();
  await page.evaluate("window.clicks = 0");
  let files = 0;
  const click: Hand["click"] = (role, name) => {
    const place = page.getByRole("dialog").or(page.getByRole("main")).last();
    return place.getByRole(role, { name, exact: typeof name === "string" }).first().click();
  };
  await work({
    page, click,
    navigate: (name) => page.getByRole("navigation", { name: "Main" })
      .getByRole("link", { name, exact: true }).click(),
    file: async (path) => {
      await page.locator("input[type=file]").first().setInputFiles(path);
      files += 1;
    },
  });
  return Number(await page.evaluate("window.clicks")) + files;
}

/** Why the call that is looked at failed. */
let reason = "";

/** The most clicks it may take, and how it is done. */
type Task = [most: number, work: (hand: Hand) => Promise<void>];

const ASSISTANT: Task = [7, async ({ page, click, navigate }) => {
  await navigate("Assistants");
  await click("button", "New assistant");
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name", { exact: true }).fill("Front desk");
  await dialog.getByLabel("Prompt").fill("You answer.");
  await click("button", "Create");
  await page.getByRole("heading", { name: "Front desk", level: 1 }).waitFor();
  await click("link", "Test chat");
  const box = page.getByRole("textbox", { name: "Message", exact: true });
  await box.fill("When are you open?");
  await box.press("Enter");
  await page.getByText("From nine to five.").waitFor();
  await click("link", "Embed");
  await page.getByText("data-assistant=").first().waitFor();
  await navigate("Conversations");
  await page.getByRole("row", { name: /From nine/ }).first().click();
  await page.getByRole("main").getByText("From nine to five.").first().waitFor();
}];

const DOCUMENT: Task = [9, async ({ page, click, navigate, file }) => {
  const path = join(server.dataDir, "Prices.pdf");
  writeFileSync(path, makePdf([[{ x: 72, y: 700, text: "A city bike costs 20 dollars." }]]));
  await navigate("Knowledge");
  await click("button", /new knowledgebase/i);
  await page.getByLabel("Name").fill("Prices");
  await page.getByLabel("Name").press("Enter");
  await page.getByRole("heading", { name: "Prices", level: 1 }).waitFor();
  await file(path);
  await page.getByRole("row", { name: /Prices/ }).getByText("Active").waitFor();
  const question = page.getByLabel("Question");
  await question.fill("What does a city bike cost?");
  await question.press("Enter");
  await page.getByText("20 dollars").first().waitFor();
}];

const TOOL: Task = [8, async ({ page, click, navigate }) => {
  await navigate("Tools");
  await click("link", /New tool/);
  await page.getByLabel("Name", { exact: true }).first().fill("order_status");
  await page.getByLabel("Description", { exact: true }).first().fill("Where an order is");
  await page.getByLabel("Endpoint").fill(`${shop.url}/orders`);
  await click("button", "Call the endpoint");
  await page.getByLabel("What the model receives").waitFor();
  await click("button", "Create");
  await page.getByRole("heading", { name: "order_status", level: 1 }).waitFor();
}];

const NUMBER: Task = [7, async ({ page, click, navigate }) => {
  twilio.available.set("+14155550199", "US");
  await navigate("Numbers");
  await click("link", /Buy a number/);
  await click("button", "Buy +1 415 555 0199");
  await click("button", /^Buy for/);
  // The number stands in the list of offers, too; while the dialog is open, keys are the dialog's.
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.getByRole("row", { name: "+1 415 555 0199" }).waitFor();
  // The palette does not open over a dialog, and the one just answered goes a moment later.
  await page.locator("dialog[open]").waitFor({ state: "detached" });
  await page.keyboard.press("Control+k");
  const box = page.getByRole("combobox", { name: "Page, assistant, number or person" });
  await box.fill("Night porter");
  await page.getByRole("option", { name: /Night porter/ }).waitFor();
  await box.press("Enter");
  await page.getByRole("heading", { name: "Night porter", level: 1 }).waitFor();
  const number = page.getByLabel("Phone number", { exact: true });
  const option = number.locator("option", { hasText: "0199" });
  await option.waitFor({ state: "attached" });
  // A list to choose from: it is opened by a click, and the choice in it is another.
  await number.click();
  await page.keyboard.press("Escape");
  await number.selectOption(await option.getAttribute("value"));
  await click("button", "Save");
  // Without `exact` it is also in what says that changes are not saved.
  await page.getByText("Saved", { exact: true }).waitFor();
}];

const CAMPAIGN: Task = [9, async ({ page, click, navigate, file }) => {
  const path = join(server.dataDir, "leads.csv");
  writeFileSync(path, "phone_number,name\n+14155550123,Ada\n+14155550124,Ben\n");
  await navigate("Campaigns");
  await click("link", /New campaign/);
  await page.getByLabel("Name", { exact: true }).fill("Autumn");
  await click("button", "Create");
  await page.getByRole("heading", { name: "Autumn", level: 1 }).waitFor();
  await click("button", "Import leads");
  await file(path);
  await click("button", "Import");
  await page.getByRole("dialog").getByText("Imported", { exact: true }).waitFor();
  await click("button", "Done");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await click("button", "Start");
  await click("button", "Start calling");
  await page.getByText(/In progress|Running/i).first().waitFor();
}];

const FAILURE: Task = [2, async ({ page, click, navigate }) => {
  await navigate("Calls");
  await click("row", /555 ?0005/);
  await page.getByRole("main").getByText(reason).first().waitFor();
}];

const TEAMMATE: Task = [3, async ({ page, click, navigate }) => {
  await navigate("Team");
  await click("button", "Invite");
  await page.getByLabel("E-mail").fill("ana@example.org");
  await click("button", "Create the link");
  await page.getByRole("group", { name: "Link" }).waitFor();
}];

const EXPORT: Task = [3, async ({ page, navigate }) => {
  await navigate("Conversations");
  await page.getByRole("row", { name: /From nine/ }).first().waitFor();
  const download = page.waitForEvent("download");
  await page.locator("summary", { hasText: "Export" }).click();
  await page.getByRole("button", { name: "As CSV" }).click();
  assert.match((await download).suggestedFilename(), /\.csv$/);
}];

const COSTS: Task = [1, async ({ page, navigate }) => {
  await navigate("Money");
  await page.getByRole("region", { name: "Costs by assistant" }).getByText("Night porter").waitFor();
}];

/** Stripe reports that the last session was paid, as its webhook does. */
async function pay(cents: number): Promise<void> {
  const session = stripe.sessions.at(-1)?.id ?? "";
  const { body, signature } = stripeReport(
    { session, cents }, Math.floor(createSystem().now() / 1_000_000));
  const { status } = await fetch(`${server.url}/payments/stripe`, {
    method: "POST", body,
    headers: { "content-type": "application/json", "stripe-signature": signature },
  });
  assert.equal(status, 200);
}

const TOP_UP: Task = [2, async ({ page, click, navigate }) => {
  // Stripe's own page is not opened: an answer without content leaves people where they are.
  const checkout = "https://checkout.stripe.com/**";
  await page.route(checkout, (route) => route.fulfill({ status: 204 }));
  await navigate("Money");
  const amount = page.getByLabel("Amount (USD)", { exact: true });
  await amount.fill("4000");
  const asked = page.waitForRequest(checkout);
  await click("button", "Add money");
  await asked;
  await pay(400_000);
  await page.getByRole("banner").getByTitle("Balance").getByText("$4,0").waitFor();
  await page.unroute(checkout);
}];

const DELETE_CHAT: Task = [4, async ({ page, click, navigate }) => {
  await navigate("Conversations");
  const row = page.getByRole("row", { name: /From nine/ });
  await row.first().waitFor();
  const before = await row.count();
  await row.first().click();
  await click("button", "Delete");
  const question = page.getByRole("dialog", { name: "Delete the conversation?" });
  await question.waitFor();
  await click("button", "Delete");
  await page.getByRole("heading", { name: "Conversations", level: 1 }).waitFor();
  // One of the others says that the list is there, which may be the one from before at first.
  await row.nth(before - 2).waitFor();
  await row.nth(before - 1).waitFor({ state: "detached" });
  assert.equal(await row.count(), before - 1);
}];

const KEY: Task = [5, async ({ page, click, navigate }) => {
  await navigate("API keys");
  await click("button", "New key");
  await page.getByLabel("Name", { exact: true }).fill("New one");
  await page.getByLabel("Name", { exact: true }).press("Enter");
  await click("button", "Done");
  await click("button", "Revoke Old one");
  await click("button", "Revoke");
  await page.getByRole("button", { name: "Revoke Old one" }).waitFor({ state: "detached" });
}];

const TASKS: Record<string, Task> = {
  "assistant, chat, embed, conversation": ASSISTANT, "PDF, question": DOCUMENT, "tool, trial": TOOL,
  "number, assistant": NUMBER, "CSV, campaign, watch": CAMPAIGN, "why a call failed": FAILURE,
  "a teammate": TEAMMATE, "an export": EXPORT, "cost by assistant": COSTS, "a new key": KEY,
  "money put in": TOP_UP, "a chat deleted": DELETE_CHAT,
};

/** The record of the call, once it is over. */
async function ended(id: number, key = server.key): Promise<Record<string, unknown>> {
  for (;;) {
    const { body } = await server.call("GET", `/user/calls/${id}`, { key });
    if (body.end_reason !== null) return body as Record<string, unknown>;
    await setTimeout(50);
  }
}

test("[DB470] no task takes more clicks than before, and a failed call's page says why in two", { skip: skip || onlyProof }, async () => {
  model.script(() => ({ tokens: ["From nine ", "to five."] }));
  const { uuid } = await newAssistant(server, { name: "Night porter" });
  const { id: caller } = await newAssistant(server, {
    name: "Caller", type: "outbound", status: "active", post_call_evaluation: false,
  });
  const conversation = await newConversation(server, uuid);
  await server.call("POST", `/conversations/${conversation}/messages`, {
    body: { message: "Is a bike free?" },
  });
  const made = await server.call("POST", "/user/make_call", {
    body: { assistant_id: caller, phone_number: "+14155550005" },
  });
  await server.app.features.accounts.createKey(server.accountId, "Old one");
  reason = String((await ended(made.body.call_id as number)).failure_reason);
  await withDashboard(async ({ page }) => {
    await page.addInitScript(COUNT);
    await page.reload();
    for (const [name, [most, work]] of Object.entries(TASKS)) {
      const clicks = await clicksOf(page, work);
      assert.ok(clicks > 0 && clicks <= most, `${name}: ${clicks} clicks, ${most} at most`);
    }
  });
});

test("[DB650] Enter in the amount adds money, and in a view's name saves it", { skip }, async () => {
  await withDashboard(async ({ page, go }) => {
    await page.route("https://checkout.stripe.com/**", (route) => route.fulfill({ status: 204 }));
    await go("/money");
    await page.getByLabel("Amount (USD)", { exact: true }).fill("30");
    const asked = page.waitForRequest("https://checkout.stripe.com/**");
    await page.keyboard.press("Enter");
    await asked;
    await go("/calls");
    await page.getByLabel("From day").fill("2026-01-01");
    await page.getByText("Views", { exact: true }).click();
    await page.getByLabel("Save this view as").fill("Mine");
    await page.locator("button:enabled", { hasText: "Save view" }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Mine", exact: true }).waitFor();
  });
});

test("[DB471] a template creates assistant, knowledge and test call together, and they are removed together", { skip }, async () => {
  const { key } = await server.newAccount();
  await withDashboard(async ({ page, go, look }) => {
    await go("/templates");
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("list", { name: "Templates" }).getByRole("button").nth(5).waitFor();
    assert.equal(await dialog.getByRole("list", { name: "Templates" }).getByRole("button").count(), 6);
    await look();
    await dialog.getByRole("button", { name: /Customer support/ }).click();
    await dialog.getByLabel("Company").fill("Harbour Bikes");
    await look();
    await dialog.getByRole("button", { name: "Create everything" }).click();
    await page.getByText("Customer support: all of it is there.").waitFor();
    const { body: sets } = await server.call("GET", "/user/template-sets", { key });
    assert.ok(sets.data[0].assistant_id && sets.data[0].knowledgebase_id && sets.data[0].call_id);
    // Its other side would talk for a while yet.
    await server.call("POST", `/user/calls/${sets.data[0].call_id}/end`, { key });
    await ended(sets.data[0].call_id as number, key);
    await go("/templates");
    await dialog.getByRole("button", { name: "Remove everything" }).click();
    await page.getByRole("dialog", { name: "Remove everything that was created together?" })
      .getByRole("button", { name: "Remove everything" }).click();
    await page.getByText("Created from templates").waitFor({ state: "detached" });
    for (const path of ["/user/assistants/get", "/user/knowledgebases", "/user/template-sets"]) {
      const { body } = await server.call("GET", path, { key });
      assert.deepEqual(body.data, [], path);
    }
  }, { key });
});
