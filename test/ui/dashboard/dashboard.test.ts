// The dashboard's frame in a real browser: signing in and out, the connection and what is stale,
// themes, keyboards, long lists.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { bundlePage } from "#ui/build.ts";
import { noBrowser, until } from "#support/pages/browser.ts";
import { drawn, startDashboard } from "#support/pages/dashboard-page.ts";
import { newAssistant, newConversation } from "#support/server.ts";

const skip = noBrowser();
const { server, browser, withDashboard, close } = await startDashboard();
after(close);

test("[DB1] the layout fits at every width, light and dark", { skip }, async () => {
  await withDashboard(async ({ page, look }) => {
    await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor();
    await look();
    assert.equal(await page.title(), "Overview · Parley");
  });
});

test("[DB2] a wrong key is reported, the right one signs in, and signing out forgets it", { skip }, async () => {
  assert.ok(browser);
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(server.url);
  await page.getByLabel("API key").fill("1|wrong");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("alert").getByText("This server does not know this API key.").waitFor();
  await page.getByLabel("API key").fill(server.key);
  await page.getByLabel("Stay signed in").check();
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("Live", { exact: true }).waitFor();
  // On this device: another tab is signed in.
  const other = await context.newPage();
  await other.goto(server.url);
  await other.getByText("Live", { exact: true }).waitFor();
  await other.getByRole("button", { name: "Sign out" }).click();
  await other.getByRole("button", { name: "Sign in" }).waitFor();
  assert.equal(await other.evaluate("JSON.stringify([{ ...localStorage }, { ...sessionStorage }])"), "[{},{}]");
  await context.close();
});

test("[DB873] the sign-in page says whether a key is unknown, revoked or expired", { skip }, async () => {
  assert.ok(browser);
  const { accounts } = server.app.features;
  const [account] = await accounts.list();
  assert.ok(account);
  const { token: expired } = await accounts.createKey(account.id, "old", { expiresAt: 1 });
  const { key, token: revoked } = await accounts.createKey(account.id, "lost");
  await accounts.revokeKey(account.id, key.id);
  const page = await browser.newPage();
  await page.goto(server.url);
  for (const [given, words] of [
    ["1|wrong", "This server does not know this API key."],
    [revoked, "This API key was revoked."], [expired, "This API key has expired."],
  ] as const) {
    await page.getByLabel("API key").fill(given);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("alert").getByText(words).waitFor();
  }
  await page.close();
});

test("[DB685] a browser that stores nothing can sign in with a key and work until the page is closed", { skip }, async () => {
  assert.ok(browser);
  const page = await browser.newPage();
  const problems: string[] = [];
  page.on("pageerror", (error) => problems.push(error.message));
  // As where cookies are blocked.
  await page.addInitScript(`for (const name of ["localStorage", "sessionStorage"]) {
    Object.defineProperty(window, name, {
      get() { throw new DOMException("The operation is insecure.", "SecurityError"); },
    });
  }`);
  await page.goto(server.url);
  await page.getByLabel("API key").fill(server.key);
  await page.getByLabel("Stay signed in").check();
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("Live", { exact: true }).waitFor();
  await page.goto(`${server.url}/#/inbox`);
  await page.getByRole("heading", { name: "Inbox", level: 1 }).waitFor();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("button", { name: "Sign in" }).waitFor();
  // The guides, too, show one language at a time there.
  await page.goto(`${server.url}/docs/stream`);
  await page.locator(".languages").first().waitFor();
  assert.deepEqual(problems, []);
  await page.close();
});

test("[DB718] a browser with full storage can sign in with a key and work until the page is closed", { skip }, async () => {
  assert.ok(browser);
  const page = await browser.newPage();
  await page.addInitScript(`Storage.prototype.setItem = () => {
    throw new DOMException("The quota has been exceeded.", "QuotaExceededError");
  };`);
  await page.goto(server.url);
  await page.getByLabel("API key").fill(server.key);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("Live", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Light or dark" }).click();
  await page.goto(`${server.url}/#/inbox`);
  await page.getByRole("heading", { name: "Inbox", level: 1 }).waitFor();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("button", { name: "Sign in" }).waitFor();
  await page.close();
});

test("[DB687] if the browser keeps no cookie, sign-in says so instead of reporting an ended session", { skip }, async () => {
  assert.ok(browser);
  const page = await browser.newPage();
  await page.route("**/api/auth/login", (route) => route.fulfill({ json: { user: {} } }));
  await page.goto(server.url);
  await page.getByRole("button", { name: "Use e-mail and password instead" }).click();
  await page.getByLabel("E-mail").fill("ana@example.org");
  await page.getByLabel("Password").fill("a quite long password");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("alert").getByText("The browser kept no cookie.").waitFor();
  assert.equal(await page.getByText("Your session is over.").count(), 0);
  await page.close();
});

test("[DB645] the sign-in page names the command as it is called here", { skip }, async () => {
  assert.ok(browser);
  const page = await browser.newPage();
  await page.goto(server.url);
  await page.getByText("npm run -s parley -- key create", { exact: true }).waitFor();
  await page.close();
});

test("[DB538] after signing in no list is filtered by the previous user's filters", { skip }, async () => {
  const other = await server.newAccount();
  await withDashboard(async ({ page }) => {
    // As links do: the page is not loaded again.
    const go = (path: string) => page.evaluate(`location.hash = "${path}"`);
    await go("/leads");
    await page.getByLabel("Phone number").fill("555");
    await go("/webhooks/deliveries");
    await page.getByLabel("State").selectOption("dead");
    await go("/inbox");
    await page.getByLabel("Search messages").fill("refund");
    // From list to narrowed list, each stands as it was left.
    await go("/leads");
    await page.getByLabel("Phone number").waitFor();
    assert.equal(await page.getByLabel("Phone number").inputValue(), "555");
    await go("/tools");
    await page.getByRole("heading", { name: "Tools" }).waitFor();
    await go("/inbox");
    await page.getByLabel("Search messages").waitFor();
    assert.equal(await page.getByLabel("Search messages").inputValue(), "refund");
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("API key").fill(other.key);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByLabel("Search messages").waitFor();
    assert.equal(await page.getByLabel("Search messages").inputValue(), "");
    await go("/leads");
    assert.equal(await page.getByLabel("Phone number").inputValue(), "");
    await go("/webhooks/deliveries");
    assert.equal(await page.getByLabel("State").inputValue(), "");
  });
});

test("[DB3] a lost connection is shown with its time, and missed events are caught up", { skip }, async () => {
  await withDashboard(async ({ page, go }) => {
    await go("/assistants");
    await page.context().setOffline(true);
    await page.getByText(/^Reconnecting… as of /).waitFor();
    const { accounts } = server.app.features;
    await accounts.credit(server.accountId, 1_230_000, "DB3");
    await page.context().setOffline(false);
    await page.getByText("Live", { exact: true }).waitFor();
    await page.getByRole("link", { name: "$6.23" }).waitFor();
  });
});

test("[DB590] what could not be loaded while the server was down is loaded by itself once it is back", { skip }, async () => {
  await withDashboard(async ({ page, go }) => {
    await go("/assistants");
    for (const [path, loaded] of [["/team", "No members yet"], ["/leads", "No leads yet"]]) {
      await page.context().setOffline(true);
      await page.getByText(/^Reconnecting… as of /).waitFor();
      await page.evaluate(`location.hash = "${path}"`);
      await page.getByText("The server cannot be reached.").first().waitFor();
      await page.context().setOffline(false);
      await page.getByText(loaded ?? "").waitFor();
    }
  });
});

test("[DB4] a revoked key is signed out automatically", { skip }, async () => {
  const { accounts } = server.app.features;
  const { key, token } = await accounts.createKey(server.accountId, "DB4");
  await withDashboard(async ({ page, go }) => {
    await accounts.revokeKey(server.accountId, key.id);
    await go("/tools");
    await page.getByRole("button", { name: "Sign in" }).waitFor();
  }, { key: token });
});

test("[DB5] the theme follows the system until somebody chooses one", { skip }, async () => {
  await withDashboard(async ({ page }) => {
    const paper = (): Promise<unknown> => page.evaluate("getComputedStyle(document.body).backgroundColor");
    const light = await paper();
    await page.emulateMedia({ colorScheme: "dark" });
    const dark = await paper();
    assert.notEqual(dark, light);
    await page.getByRole("button", { name: "Light or dark" }).click();
    assert.equal(await paper(), light);
    await page.reload();
    await page.getByText("Live", { exact: true }).waitFor();
    assert.equal(await paper(), light);
  });
});

test("[DB1180] a chosen theme is there before the dashboard's script has arrived", { skip }, async () => {
  await withDashboard(async ({ page }) => {
    const paper = (): Promise<unknown> => page.evaluate("getComputedStyle(document.body).backgroundColor");
    await page.getByRole("button", { name: "Light or dark" }).click();
    const chosen = await paper();
    const late = Promise.withResolvers<void>();
    await page.route("**/dashboard/dashboard.js", async (route) => {
      await late.promise;
      await route.continue();
    });
    await page.reload({ waitUntil: "commit" });
    await until(page, "document.styleSheets.length > 0 && document.body");
    assert.equal(await paper(), chosen);
    late.resolve();
    await page.getByText("Live", { exact: true }).waitFor();
  });
});

test("[DB6] by keyboard the content is reached at once, and every page by its name", { skip }, async () => {
  await withDashboard(async ({ page }) => {
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    assert.equal(await page.evaluate("document.activeElement.id"), "main");
    // What only some may open is in the menu once it is known who is signed in.
    await page.getByRole("banner").getByTitle("Balance").waitFor();
    const names = await page.getByRole("navigation", { name: "Main" }).getByRole("link").allInnerTexts();
    // The overview is shown already, and the last leads elsewhere.
    for (const name of names.slice(0, -1).filter((one) => one !== "Overview")) {
      await page.getByRole("navigation", { name: "Main" }).getByRole("link", { name, exact: true }).focus();
      await page.keyboard.press("Enter");
      await until(page, `document.activeElement.tagName === "H1"`);
      assert.ok((await page.title()).endsWith(" · Parley"), name);
    }
  });
});

test("[DB420] Ctrl+K opens a page or an assistant by name, and ? lists the keys", { skip }, async () => {
  const { key } = await server.newAccount();
  const { id } = await newAssistant(server, { name: "Night porter" }, key) as { id: number };
  await withDashboard(async ({ page, look }) => {
    await page.keyboard.press("Control+k");
    const box = page.getByRole("combobox", { name: "Page, assistant, number or person" });
    await box.fill("night");
    await page.getByRole("option", { name: "Night porter Assistant" }).waitFor();
    await look();
    await box.press("Enter");
    await page.getByRole("heading", { level: 1, name: "Night porter" }).waitFor();
    assert.ok(page.url().endsWith(`#/assistants/${id}`));
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keyboard" }).waitFor();
    await look();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
  }, { key });
});

test("[DB711] what the arrows select in the Ctrl+K list is in view, however low the window", { skip }, async () => {
  await withDashboard(async ({ page }) => {
    await page.setViewportSize({ width: 320, height: 256 });
    await page.keyboard.press("Control+k");
    const options = page.getByRole("listbox", { name: "Found" }).getByRole("option");
    await options.last().waitFor();
    // Upwards from the first is the last.
    for (const [key, one] of [["ArrowUp", options.last()], ["ArrowDown", options.first()]] as const) {
      await page.keyboard.press(key);
      await page.locator("[aria-selected=true]").and(one).waitFor();
      await drawn(page);
      const { y, height } = (await one.boundingBox())!;
      const dialog = (await page.getByRole("dialog").boundingBox())!;
      assert.ok(y >= dialog.y && y + height <= dialog.y + dialog.height, `${key}: ${y}`);
    }
  });
});

test("[DB7] on a narrow screen the menu is behind a button, and closes again", { skip }, async () => {
  await withDashboard(async ({ page }) => {
    const link = page.getByRole("link", { name: "Webhooks", exact: true });
    assert.equal(await link.isVisible(), false);
    await page.getByRole("button", { name: "Menu" }).click();
    await link.click();
    await page.getByRole("heading", { level: 1, name: "Webhooks" }).waitFor();
    await link.waitFor({ state: "hidden" });
  }, { context: { viewport: { width: 360, height: 740 } } });
});

const ROWS = 10_000;

test("[DB8] of 10,000 rows only those in view are in the page, wherever it is scrolled", { skip }, async () => {
  const { key, accountId } = await server.newAccount();
  const { id: assistantId } = await newAssistant(server, { type: "outbound" }, key) as { id: number };
  const { campaigns, leads } = server.app.features;
  assert.ok(campaigns && leads && accountId);
  const campaign = await server.call("POST", "/user/campaigns", {
    key,
    body: {
      name: "Long", assistant_id: assistantId, timezone: "UTC", max_calls_in_parallel: 1,
      allowed_hours_start_time: "09:00", allowed_hours_end_time: "17:00",
    },
  });
  const csv = ["phone_number,name", ...Array.from({ length: ROWS }, (_, index) =>
    `+1415${String(5_550_000 + index)},Person ${index}`)].join("\n");
  const form = new FormData();
  form.set("campaign_id", String(campaign.body.data?.id ?? campaign.body.id));
  form.set("file", new Blob([csv], { type: "text/csv" }), "leads.csv");
  const imported = await fetch(`${server.url}/api/user/leads/import`, {
    method: "POST", headers: { Authorization: `Bearer ${key}` }, body: form,
  });
  assert.equal(imported.status, 200, await imported.clone().text());
  await withDashboard(async ({ page, go }) => {
    await go("/leads");
    await page.locator(`table.list[aria-rowcount="${ROWS + 1}"]`).waitFor();
    const last = page.locator(`tr[aria-rowindex="${ROWS + 1}"]`);
    await page.evaluate("scrollTo(0, document.documentElement.scrollHeight)");
    await last.getByText("+1 415").waitFor();
    assert.ok(await page.locator("table.list tbody tr").count() < 100);
  }, { key });
});

test("[DB9] the dashboard's first script and styles are small; its other pages have a script of their own", async () => {
  const [js, shared, css, more] = await Promise.all(([
    "dashboard.js", "dashboard-shared.js", "dashboard.css", "dashboard-more.js",
  ] as const).map(bundlePage));
  assert.ok(js && shared && css && more);
  const first = js.gzip.length + shared.gzip.length;
  assert.ok(first < 120 * 1024, `${first} bytes`);
  assert.ok(css.gzip.length < 20 * 1024, `${css.gzip.length} bytes`);
  assert.ok(more.gzip.length > 10 * 1024, `${more.gzip.length} bytes`);
  const asked = await fetch(`${server.url}/dashboard/dashboard.js`, { headers: { "if-none-match": js.etag } });
  assert.equal(asked.status, 304);
});

test("[DB1782] that an assistant has reached its daily limit is on every page until the day is over", { skip }, async () => {
  const { uuid } = await newAssistant(server, { daily_spend_cap: 0.001 });
  const conversation = await newConversation(server, uuid);
  const refused = await server.call(
    "POST", `/conversations/${conversation}/messages`, { body: { message: "Hello?" } });
  assert.deepEqual([refused.status, refused.body.error],
    [429, "The assistant has reached its daily spending limit."]);
  const { at } = (await server.call("GET", "/user/me")).body.trouble;
  await withDashboard(async ({ page, go }) => {
    const banner = page.getByText("an assistant has reached its daily spending limit");
    await go("/tools");
    await banner.waitFor();
    await page.clock.setFixedTime(new Date(`${at.slice(0, 10)}T00:00:00Z`).getTime() + 86_400_000);
    const known = page.waitForResponse((response) => response.url().endsWith("/api/user/me"));
    await page.reload();
    await known;
    await page.getByRole("heading", { name: "Tools" }).waitFor();
    assert.equal(await banner.count(), 0);
  });
});

test("[VS3] the banner of a daily limit goes when the limit is changed, and is back when that is reached", { skip }, async () => {
  const { id, uuid } = await newAssistant(server, { daily_spend_cap: 0.001 });
  const conversation = await newConversation(server, uuid);
  const send = async (): Promise<number> => (await server.call(
    "POST", `/conversations/${conversation}/messages`, { body: { message: "Hello?" } })).status;
  assert.equal(await send(), 429);
  await withDashboard(async ({ page, go }) => {
    const banner = page.getByText("an assistant has reached its daily spending limit");
    await go(`/assistants/${id}`);
    await banner.waitFor();
    await page.getByText("Spend limit", { exact: true }).click();
    await page.getByLabel("Daily spending limit").fill("0.01");
    await page.getByRole("button", { name: "Save" }).click();
    await banner.waitFor({ state: "detached" });
    assert.deepEqual([await send(), await send()], [200, 429]);
    await banner.waitFor();
  });
});
