// The dashboard where answers are lost, or are a proxy's page instead of the server's.
import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { connect, createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { after, test } from "node:test";
import type { Page } from "playwright-core";
import { memberOf, PASSWORD } from "#support/members.ts";
import { noBrowser } from "#support/pages/browser.ts";
import { startDashboard } from "#support/pages/dashboard-page.ts";
import { newAssistant } from "#support/server.ts";

const skip = noBrowser();
const timeout = 180_000;
const { server, browser, withDashboard, close } = await startDashboard();
after(close);

/** Until what it returns is called, a proxy answers in place of the server. */
async function loseAnswers(page: Page, path: string): Promise<() => Promise<void>> {
  const url = `**/api${path}`;
  await page.route(url, (route) => route.fulfill({
    status: 502, contentType: "text/html", body: "<html><h1>Bad Gateway</h1></html>",
  }));
  return () => page.unroute(url);
}

async function signedIn(page: Page, email: string, path = "/"): Promise<void> {
  await page.goto(`${server.url}/#${path}`);
  await page.getByLabel("E-mail").fill(email);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByText("Live", { exact: true }).waitFor();
}

test("[DB758] signing out while the server is unreachable says that one is still signed in", { skip, timeout }, async () => {
  const ana = await memberOf(server, "builder", server.key);
  const context = await browser!.newContext();
  const page = await context.newPage();
  await signedIn(page, ana.email);
  const other = await context.newPage();
  await other.goto(server.url);
  await other.getByText("Live", { exact: true }).waitFor();
  const reached = await loseAnswers(page, "/auth/logout");
  const out = page.getByRole("button", { name: "Sign out" });
  await out.click();
  await page.getByRole("status").getByText("You are still signed in").waitFor();
  assert.ok(await other.getByText("Live", { exact: true }).isVisible());
  await reached();
  await out.click();
  for (const tab of [page, other]) {
    await tab.getByLabel("E-mail").waitFor();
    await tab.reload();
    await tab.getByLabel("E-mail").waitFor();
  }
  await context.close();
});

test("[DB759] signing in again over a form keeps the form, even if a response is lost", { skip, timeout }, async () => {
  const ana = await memberOf(server, "builder", server.key);
  const context = await browser!.newContext();
  const page = await context.newPage();
  await signedIn(page, ana.email, "/tools/new");
  const name = page.getByRole("textbox", { name: "Name" });
  await name.fill("typed_by_ana");
  const { body } = await ana.call("GET", "/user/sessions");
  for (const { id, is_this: isOwn } of body.data) {
    if (!isOwn) await ana.call("DELETE", `/user/sessions/${id}`);
  }
  const again = page.getByRole("dialog", { name: "Sign in" });
  await again.getByLabel("E-mail").fill(ana.email);
  await again.getByLabel("Password").fill(PASSWORD);
  const enter = again.getByRole("button", { name: "Sign in", exact: true });
  const reached = await loseAnswers(page, "/user/me");
  await enter.click();
  await again.getByRole("alert").getByText("the server answered 502").waitFor();
  await reached();
  await enter.click();
  await again.waitFor({ state: "hidden" });
  assert.equal(await name.inputValue(), "typed_by_ana");
  await page.getByText("Live", { exact: true }).waitFor();
  await context.close();
});

test("[DB760] an invitation link that could not be checked is not called used, and is checked again", { skip, timeout }, async () => {
  const { body } = await server.call("POST", "/user/invitations", {
    body: { email: "late@example.org", role: "operator" },
  });
  const page = await browser!.newPage();
  const reached = await loseAnswers(page, "/auth/invitation");
  await page.goto(body.link);
  const failure = page.getByRole("alert");
  await failure.getByText("the server answered 502").waitFor();
  await reached();
  await failure.getByRole("button", { name: "Try again" }).click();
  await page.getByRole("button", { name: "Join" }).waitFor();
  await page.goto(`${body.link}x`);
  await page.reload();
  await page.getByText("This link was used, withdrawn or has expired.").waitFor();
  await page.close();
});

test("[DB761] a member who opens the dashboard while the server is unreachable is not asked for a password", { skip, timeout }, async () => {
  const ana = await memberOf(server, "builder", server.key);
  const context = await browser!.newContext();
  const page = await context.newPage();
  await signedIn(page, ana.email);
  const reached = await loseAnswers(page, "/auth");
  await page.reload();
  const again = page.getByRole("button", { name: "Try again" });
  await again.waitFor();
  assert.equal(await page.getByLabel("Password").count(), 0);
  await reached();
  await again.click();
  await page.getByTitle(ana.email).waitFor();
  await context.close();
});

test("[DB762] a page from before a server update says so when it needs a script of the old version", { skip, timeout }, async () => {
  await withDashboard(async ({ page, go, look }) => {
    await page.route("**/dashboard/dashboard.js", async (route) => {
      const headers = { ...route.request().headers(), "if-none-match": "" };
      const response = await route.fetch({ headers });
      const body = (await response.text()).replace(/(dashboard-more\.js)[^"]*/, "$1?v=before");
      await route.fulfill({ contentType: "text/javascript", body });
    });
    await go("/inbox");
    await page.reload();
    await page.getByText("Live", { exact: true }).waitFor();
    await go("/tools");
    const updated = page.getByText("The server was updated.");
    await updated.waitFor();
    await look();
    // What the page has itself is shown as before.
    await go("/calls");
    await page.getByRole("heading", { level: 1, name: "Calls" }).waitFor();
    await go("/tools");
    await updated.waitFor();
    await page.unroute("**/dashboard/dashboard.js");
    await page.getByRole("button", { name: "Reload" }).click();
    await page.getByRole("heading", { level: 1, name: "Tools" }).waitFor();
  });
});

test("[DB764] the dashboard goes live again after a proxy answered 404 for a starting server", { skip, timeout }, async () => {
  await withDashboard(async ({ page }) => {
    await page.route("**/api/**", (route) => route.fulfill({
      status: 404, contentType: "text/plain", body: "404 page not found",
    }));
    const away = page.waitForResponse((response) =>
      response.url().endsWith("/user/stream") && response.status() === 404);
    await page.context().setOffline(true);
    await page.context().setOffline(false);
    await away;
    await page.getByRole("status").getByText("Reconnecting").waitFor();
    await page.unroute("**/api/**");
    await page.getByText("Live", { exact: true }).waitFor();
  });
});

test("[DB766] the second script is retried at a new address, as Firefox needs", { skip, timeout }, async () => {
  await withDashboard(async ({ page, go }) => {
    const heading = page.getByRole("heading", { level: 1, name: "Tools" });
    await go("/tools");
    await heading.waitFor();
    const asked: string[] = [];
    await page.route("**/dashboard/dashboard-more.js*", (route) => {
      asked.push(route.request().url());
      return asked.length > 1 ? route.continue() : route.fulfill({
        status: 502, contentType: "text/html", body: "<html><h1>Bad Gateway</h1></html>",
      });
    });
    await page.reload();
    await page.getByRole("button", { name: "Try again" }).click();
    await heading.waitFor();
    assert.equal(new Set(asked).size, 2);
  });
});

test("[DB1177] a widget preview whose test could not begin begins it on trying again", { skip, timeout }, async () => {
  const { id } = await newAssistant(server, { initial_message: "We are open." });
  await withDashboard(async ({ page, go }) => {
    await page.route("**/user/assistant/*/tests", (route) => route.abort(), { times: 1 });
    await go(`/assistants/${id}/widget`);
    const inner = page.frameLocator("iframe[title='Widget preview']");
    await inner.getByRole("button", { name: "Try again" }).click();
    await inner.getByText("We are open.").first().waitFor();
  });
});

test("[DB1183] a widget preview that is shown at last no longer says that the server cannot be reached", { skip, timeout }, async () => {
  const { id } = await newAssistant(server);
  await withDashboard(async ({ page, go }) => {
    await page.route("**/user/assistant/*/widget-preview", (route) => route.abort(), { times: 1 });
    await go(`/assistants/${id}/widget`);
    const said = page.getByText("The server cannot be reached.");
    await said.waitFor();
    await page.frameLocator("iframe[title='Widget preview']").getByRole("textbox").waitFor();
    await said.waitFor({ state: "detached", timeout: 10_000 });
  });
});

/** A door that closes each connection in place of the answer to a POST, until it is mended. */
async function openLosingDoor(path: string) {
  let isLosing = true;
  let lost = 0;
  const door = createServer({ noDelay: true }, (outside) => {
    const inside = connect({ port: server.port, host: "127.0.0.1", noDelay: true });
    let isAsked = false;
    outside.on("data", (chunk) => {
      isAsked ||= chunk.includes(`POST /api${path} `);
      inside.write(chunk);
    });
    inside.on("data", (chunk) => {
      if (!isAsked || !isLosing) return void outside.write(chunk);
      lost += 1;
      outside.destroy();
    });
    for (const [one, other] of [[outside, inside], [inside, outside]] as const) {
      one.on("error", () => undefined).on("close", () => other.destroy());
    }
  });
  door.listen(0, "127.0.0.1");
  await once(door, "listening");
  return {
    url: `http://127.0.0.1:${(door.address() as AddressInfo).port}`,
    lost: () => lost,
    mend: () => (isLosing = false),
    close: () => door.close(),
  };
}

test("[DB1250] an API key whose answer is lost, however often the browser or the person asks again, is created once and shown", { skip, timeout }, async () => {
  const door = await openLosingDoor("/user/api-keys");
  await withDashboard(async ({ page }) => {
    await page.goto(`${door.url}/#/keys`);
    await page.getByRole("button", { name: "New key" }).click();
    const dialog = page.getByRole("dialog").last();
    await dialog.getByLabel("Name").fill("Shop");
    const create = dialog.getByRole("button", { name: "Create" });
    await create.click();
    await dialog.getByText("The server cannot be reached.").waitFor();
    door.mend();
    await create.click();
    await page.getByLabel("Token").waitFor();
    assert.ok(door.lost() > 0);
    const { body } = await server.call("GET", "/user/api-keys");
    assert.equal(body.api_keys.filter(({ name }: { name: string }) => name === "Shop").length, 1);
    // What is asked for after an answer is something new.
    await page.getByRole("button", { name: "Done" }).click();
    await page.getByRole("button", { name: "New key" }).click();
    await page.getByRole("dialog").last().getByLabel("Name").fill("Shop");
    await page.getByRole("dialog").last().getByRole("button", { name: "Create" }).click();
    await page.getByLabel("Token").waitFor();
    const { body: later } = await server.call("GET", "/user/api-keys");
    assert.equal(later.api_keys.filter(({ name }: { name: string }) => name === "Shop").length, 2);
  }, { key: server.key });
  door.close();
});

test("[DB1251] an import of leads whose answer is lost adds each lead once when it is sent again", { skip, timeout }, async () => {
  const { id } = await newAssistant(server, { type: "outbound" });
  await server.call("POST", "/user/campaigns", { body: { name: "Spring", assistant_id: id } });
  const door = await openLosingDoor("/user/leads/import");
  await withDashboard(async ({ page }) => {
    await page.goto(`${door.url}/#/leads`);
    await page.getByRole("button", { name: "Import" }).first().click();
    const dialog = page.getByRole("dialog").last();
    await dialog.locator("input[type=file]").setInputFiles({
      name: "leads.csv", mimeType: "text/csv", buffer: Buffer.from("phone\n+4930123456\n"),
    });
    await dialog.getByLabel("Numbers already in the campaign").selectOption("add");
    const send = dialog.getByRole("button", { name: /^Import/ });
    await send.click();
    await dialog.getByText("The server cannot be reached.").waitFor();
    door.mend();
    await send.click();
    await dialog.getByRole("button", { name: "Done" }).waitFor();
    assert.ok(door.lost() > 0);
    const { body } = await server.call("GET", "/user/leads");
    assert.equal(body.data.length, 1);
  }, { key: server.key });
  door.close();
});

test("[DB1250] a document whose answer is lost is created once when its file is chosen again", { skip, timeout }, async () => {
  await withDashboard(async ({ page, go }) => {
    const { body: { data: base } } = await server.call("POST", "/user/knowledgebases", {
      body: { name: "Lost and found" },
    });
    const documents = `/user/knowledgebases/${base.id}/documents`;
    await go(`/knowledgebases/${base.id}`);
    await page.route(`**/api${documents}`, async (route) => {
      if (route.request().method() !== "POST") return route.continue();
      await route.fetch();
      await route.abort("connectionreset");
    });
    const file = join(server.dataDir, "hours.txt");
    writeFileSync(file, "From nine to five.");
    const input = page.locator("input[type=file]").first();
    await input.setInputFiles(file);
    await page.getByRole("alert").waitFor();
    await page.unroute(`**/api${documents}`);
    await input.setInputFiles(file);
    await page.getByRole("row", { name: "hours.txt" }).waitFor();
    assert.equal((await server.call("GET", documents)).body.data.length, 1);
  });
});

test("[DB1250] what was created although a 500 answered is not created again when the button is pressed again", { skip, timeout }, async () => {
  await withDashboard(async ({ page, go }) => {
    await page.route("**/api/user/knowledgebases**", async (route) => {
      if (route.request().method() !== "POST") return route.continue();
      await route.fetch();
      await route.fulfill({ status: 500, json: { message: "Server Error" } });
    });
    await go("/knowledgebases");
    await page.getByRole("button", { name: "New knowledgebase" }).click();
    await page.getByRole("textbox", { name: "Name" }).fill("Failed and found");
    const create = page.getByRole("button", { name: "Create" });
    await create.click();
    await page.getByRole("alert").waitFor();
    await page.unroute("**/api/user/knowledgebases**");
    await create.click();
    await page.getByRole("heading", { name: "Failed and found", level: 1 }).waitFor();
    const { body: { data } } = await server.call("GET", "/user/knowledgebases");
    assert.equal(data.filter(({ name }: { name: string }) => name === "Failed and found").length, 1);
  });
});
