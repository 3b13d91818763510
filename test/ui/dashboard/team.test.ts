// Signing in as a member, the pages Team and Audit, and what a role is shown, in a real browser.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, test } from "node:test";
import type { BrowserContext, Page } from "playwright-core";
import { callTicket, WebCaller } from "#support/calls/web-caller.ts";
import { memberOf, PASSWORD } from "#support/members.ts";
import { noBrowser } from "#support/pages/browser.ts";
import { startDashboard } from "#support/pages/dashboard-page.ts";
import { onlyProof } from "#support/proof.ts";
import { newAssistant, newConversation } from "#support/server.ts";
import { newTrunk } from "#support/sip/sip-trunks.ts";

const skip = noBrowser();
const timeout = 240_000;
const { server, browser, withDashboard, close } = await startDashboard();
after(close);

/** A browser nobody is signed in with. */
async function freshPage(): Promise<{ page: Page; context: BrowserContext }> {
  assert.ok(browser);
  const context = await browser.newContext();
  return { context, page: await context.newPage() };
}

async function signInAs(page: Page, email: string): Promise<void> {
  await page.goto(`${server.url}/`);
  await page.getByLabel("E-mail").fill(email);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByText("Live", { exact: true }).waitFor();
}

test("[DB330] anyone with a key can invite; invited people join by the link and stay signed in", { skip, timeout }, async () => {
  let link = "";
  await withDashboard(async ({ page, go, look }) => {
    await go("/team");
    await page.getByText("No members yet").waitFor();
    await page.getByRole("button", { name: "Invite" }).click();
    await page.getByLabel("E-mail").fill("ana@example.org");
    await page.getByLabel("Role").selectOption("owner");
    await look();
    await page.getByRole("button", { name: "Create the link" }).click();
    link = await page.getByRole("group", { name: "Link" }).innerText();
    await page.getByRole("button", { name: "Done" }).click();
    await page.getByText("Open invitations").waitFor();
    await look();
    await page.goto(link);
    await page.reload();
    await page.getByLabel("Your name").waitFor();
    await look();
  });
  const { page, context } = await freshPage();
  await page.goto(link);
  await page.getByText("ana@example.org").waitFor();
  await page.getByLabel("Your name").fill("Ana");
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Join" }).click();
  await page.getByText("Live", { exact: true }).waitFor();
  await page.getByRole("link", { name: "Ana", exact: true }).waitFor();
  assert.ok(!page.url().includes("join"), "the link is not gone back to");
  await page.reload();
  await page.getByText("Live", { exact: true }).waitFor();
  assert.equal(await page.evaluate("document.cookie"), "", "no script reads the session");
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("Password").waitFor();
  await page.reload();
  await page.getByLabel("Password").waitFor();
  await page.goto(link);
  await page.reload();
  await page.getByText("This link was used").waitFor();
  await context.close();
});

test("[DB331] a role sees what it may do; other buttons are disabled and say why", { skip, timeout }, async () => {
  const viewer = await memberOf(server, "viewer", server.key);
  const { uuid: assistant } = await newAssistant(server);
  const uuid = await newConversation(server, assistant);
  const { page, context } = await freshPage();
  await signInAs(page, viewer.email);
  // Who is signed in is known, and so is what they may do.
  await page.getByTitle(viewer.email).waitFor();
  const navigation = page.getByRole("navigation", { name: "Main" });
  for (const name of ["API keys", "Ledger", "Audit"]) {
    assert.equal(await navigation.getByRole("link", { name }).count(), 0, name);
  }
  await page.goto(`${server.url}/#/assistants`);
  const add = page.getByRole("button", { name: "New assistant" });
  await add.waitFor();
  assert.equal(await add.isDisabled(), true);
  assert.equal(await add.getAttribute("title"), "Your role, viewer, may not do this.");
  await page.goto(`${server.url}/#/inbox/${uuid}`);
  const take = page.getByRole("button", { name: "Take over" });
  await take.waitFor();
  assert.equal(await take.isDisabled(), true);
  // A promotion applies without signing in again.
  const members = await server.call("GET", "/user/members");
  assert.ok(members.body.data.some(({ id }: { id: number }) => id === viewer.id));
  await server.call("PATCH", `/user/members/${viewer.id}`, { body: { role: "operator" } });
  await page.reload();
  await page.getByRole("button", { name: "Take over" }).click();
  await page.getByText("You have this conversation").waitFor();
  const ben = await memberOf(server, "operator", server.key);
  await page.reload();
  await page.getByLabel("Assign to").selectOption({ label: ben.name });
  await page.getByText(`${ben.name} has this conversation.`).first().waitFor();
  // Removed while at work: the page is the one of signing in, without being reloaded.
  await server.call("DELETE", `/user/members/${viewer.id}`);
  await page.goto(`${server.url}/#/calls`);
  await page.getByLabel("Password").waitFor();
  await context.close();
});

test("[DB500] the account's time zone is set and reset on the Team page; all times and days use it", { skip, timeout }, async () => {
  const { key } = await server.newAccount();
  await newAssistant(server, {}, key);
  const zones = { "Pacific/Kiritimati": 14, "Pacific/Pago_Pago": -11 };
  await withDashboard(async ({ page, go, look }) => {
    const choice = page.getByLabel("Account time zone");
    for (const [zone, hours] of Object.entries(zones)) {
      await go("/team");
      await choice.selectOption(zone);
      await page.getByText("The time zone was changed.").first().waitFor();
      const noted = (await server.call("GET", "/user/audit?action=settings.update", { key })).body.data;
      const there = new Date(Date.parse(noted[0].created_at) + hours * 3_600_000);
      const text = there.toLocaleString("en-US", { timeZone: "UTC", dateStyle: "medium", timeStyle: "medium" });
      await go("/audit");
      await page.locator("time").first().waitFor();
      await page.waitForFunction((exact) =>
        [...document.querySelectorAll("time")].some(({ title }) => title === exact), text);
      await go("/calls");
      await Promise.all([
        page.waitForRequest((request) =>
          new URL(request.url()).searchParams.get("timezone") === zone),
        page.getByLabel("From day").fill("2026-03-29"),
      ]);
    }
    await go("/team");
    await choice.waitFor();
    await look();
    await choice.selectOption("");
    await page.getByRole("button", { name: "Undo" }).last().click();
    await page.waitForFunction(() =>
      document.querySelector<HTMLSelectElement>("main select")?.value === "Pacific/Pago_Pago");
  }, { key, context: { locale: "en-US" } });
});

test("[DB332] the Audit page shows live who did what, and axe finds nothing on the new pages", { skip, timeout }, async () => {
  const owner = await memberOf(server, "owner", server.key);
  await withDashboard(async ({ page, go, look }) => {
    await go("/audit");
    await page.getByRole("table", { name: "Audit log" }).waitFor();
    await newAssistant(server);
    await page.getByText("Assistant created").first().waitFor();
    await look();
    const [file] = await Promise.all([
      page.waitForEvent("download"), page.getByRole("button", { name: "Export CSV" }).click(),
    ]);
    assert.equal(file.suggestedFilename(), "audit.csv");
    assert.match(await readFile(await file.path(), "utf8"), /^\ufeffnumber,/);
    await page.getByLabel("What").selectOption("member.");
    await page.getByText("Member joined").first().waitFor();
    await go("/team");
    await page.getByText(owner.email).waitFor();
    await look();
  });
  await withDashboard(async ({ page, look }) => {
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("Password").waitFor();
    await look();
    await page.getByRole("button", { name: "Use an API key instead" }).click();
    await page.getByLabel("API key").waitFor();
    await look();
  });
});

test("[DB546] the Audit page shows entries added before its stream was open", { skip, timeout }, async () => {
  const { key } = await server.newAccount();
  await withDashboard(async ({ page, go }) => {
    const { promise: isAdded, resolve: added } = Promise.withResolvers<void>();
    await page.route("**/api/user/audit/stream", async (route) => {
      await isAdded;
      await route.continue();
    });
    const listed = page.waitForResponse((response) => response.url().includes("/user/audit?"));
    await go("/audit");
    await (await listed).finished();
    await newAssistant(server, {}, key);
    added();
    await page.getByText("Assistant created").first().waitFor();
  }, { key });
});

test("[DB571] events from before the account's stream is open are shown once it is", { skip, timeout }, async () => {
  const { key } = await server.newAccount();
  const member = await memberOf(server, "operator", key);
  const { uuid } = await newAssistant(server, { desk: { visitor_may_ask: true } }, key);
  const ways = [
    (page: Page) => page.addInitScript(
      `sessionStorage.setItem("parley-api-key", ${JSON.stringify(key)});`),
    (page: Page) => page.context().addCookies([{
      name: "parley", value: member.cookie.split("=")[1] ?? "", url: server.url,
    }]),
  ];
  for (const [number, signIn] of ways.entries()) {
    const { page, context } = await freshPage();
    const { promise: hasHappened, resolve: happened } = Promise.withResolvers<void>();
    await page.route("**/api/user/stream-tickets", async (route) => {
      await hasHappened;
      await route.continue();
    });
    await signIn(page);
    const counted = page.waitForResponse((response) => response.url().includes("/user/inbox?"));
    await page.goto(`${server.url}/#/tools`);
    await (await counted).finished();
    const visitor = await newConversation(server, uuid);
    const asked = await server.call("POST", `/conversations/${visitor}/request-human`, { body: {} });
    assert.equal(asked.status, 200);
    happened();
    await page.getByRole("link", { name: "Inbox" }).getByText(String(number + 1))
      .waitFor({ timeout: 20_000 });
    await context.close();
  }
});

test("[DB547] [OA93] until the user is known nothing restricted is shown, and the menu keeps its layout", { skip, timeout }, async () => {
  const viewer = await memberOf(server, "viewer", server.key);
  const owner = await memberOf(server, "owner", server.key);
  const hidden = ["Money", "Ledger", "API keys", "Audit"];
  for (const { email, shown } of [{ ...viewer, shown: 0 }, { ...owner, shown: 1 }]) {
    const { page, context } = await freshPage();
    const { promise: isKnown, resolve: known } = Promise.withResolvers<void>();
    await page.route("**/api/user/me", async (route) => {
      await isKnown;
      await route.continue();
    });
    await signInAs(page, email);
    const menu = page.getByRole("navigation", { name: "Main" });
    const team = menu.getByRole("link", { name: "Team" });
    const counts = async (): Promise<number[]> => {
      const links = hidden.map((name) => menu.getByRole("link", { name }).count());
      await page.keyboard.press("Control+k");
      const palette = page.getByRole("dialog", { name: "Go to" });
      const name = palette.getByRole("combobox");
      await name.fill("ledger");
      const found = palette.getByRole("option", { name: "Ledger" });
      await found.or(palette.getByText("Nothing has that name.")).waitFor();
      const all = await Promise.all([...links, found.count()]);
      await name.press("Escape");
      await palette.waitFor({ state: "detached" });
      return all;
    };
    const place = await team.boundingBox();
    assert.deepEqual(await counts(), [0, 0, 0, 0, 0], email);
    known();
    await page.getByTitle(email).waitFor();
    assert.deepEqual(await counts(), Array(5).fill(shown), email);
    if (shown === 1) assert.deepEqual(await team.boundingBox(), place, "moved under a pointer");
    await context.close();
  }
});

test("[DB333] a page of another site can do nothing with a member's cookie", { skip, timeout }, async () => {
  const owner = await memberOf(server, "owner", server.key);
  const { page, context } = await freshPage();
  await signInAs(page, owner.email);
  // Another port is another origin, and the same site: the cookie's own rule does not hold it.
  const evil = await context.newPage();
  await evil.route("http://127.0.0.1:9/**", (route) =>
    route.fulfill({ contentType: "text/html", body: "<title>evil</title>" }));
  await evil.goto("http://127.0.0.1:9/");
  const status = await evil.evaluate(async (url) => {
    const answers = [];
    for (const [method, path] of [["POST", "/user/stream-tickets"], ["GET", "/user/me"]] as const) {
      answers.push(await fetch(`${url}/api${path}`, { method, credentials: "include", mode: "no-cors" })
        .then((response) => response.type, () => "refused"));
    }
    const sent = await fetch(`${url}/api/user/invitations`, {
      method: "POST", credentials: "include", mode: "no-cors",
      headers: { "Content-Type": "text/plain" },
      body: JSON.stringify({ email: "eve@evil.example", role: "owner" }),
    }).then(({ type }) => type, () => "refused");
    return [...answers, sent];
  }, server.url);
  assert.ok(status.every((one) => one === "opaque" || one === "refused"), String(status));
  const list = await server.call("GET", "/user/invitations");
  assert.ok(!JSON.stringify(list.body).includes("evil.example"));
  await context.close();
});

/** The names of what can be pressed on the page. */
const PRESSABLE = `[...document.querySelectorAll(
  "main button:not(:disabled), main a.button, main input:is([role=switch], [type=file]):not(:disabled)")]
  .filter((one) => one.checkVisibility())
  .map((one) => (one.ariaLabel || one.labels?.[0]?.textContent || one.textContent).trim())`;

/** What leads to pages of those who see money, keys and who did what. */
const CLOSED = ["money", "ledger", "keys", "audit"].map((name) => `a[href="#/${name}"]`).join();

/** What asks the server for nothing, or for what every role may do; then what operators may. */
const EVERYBODYS = [
  /^(Columns|Copy|Clear|Clear filters|Show all|Refresh|Today|\d+ days|As CSV|As JSON)$/,
  /^(Open all sections|Close all sections|Start the conversation|Send|Search|Talk by voice)$/,
  /^(Look it up|Sound when somebody is waiting|Browser notification|Listen in|Change password)$/,
  /^(Waiting|Mine|All|Created|Due) \d+$/, /^\+[\d ]+$/, /^(Add variable|Add header|Add parameter)$/,
  /^(Add fixed field|[a-z]+_[a-z]+)$/, /^(Sign out|End) /,
];
const OPERATORS = [
  /^(Take over|Hand back|End call|Say|Whisper|Use the microphone|Keep the assistant on the call)$/,
  /^(Mute assistant|New lead|Add lead|Block|Remove \+\d+|Add note|Suggest a reply)$/,
  /^(The AI answers|Choose a picture|Save view|Urgent|Attach files)$/,
];

test("[DB334][DB646] no page lets a viewer or an operator press a button whose request their role forbids", { skip: skip || onlyProof, timeout }, async () => {
  const { key } = await server.newAccount();
  const made = async (path: string, body: object): Promise<number> => {
    const { status, body: answer } = await server.call("POST", path, { key, body });
    assert.ok(status === 200 || status === 201, `${path} ${JSON.stringify(answer)}`);
    return (answer.data ?? answer).id;
  };
  const assistant = await newAssistant(server, { name: "Front desk", status: "active" }, key);
  const uuid = await newConversation(server, assistant.uuid);
  const caller = await WebCaller.open(server, uuid, await callTicket(server, uuid));
  const knowledge = await made("/user/knowledgebases", { name: "Prices" });
  const tool = await made("/user/tools", {
    name: "look_up", description: "Looks up", endpoint: "https://tools.example/look", method: "GET",
  });
  const outbound = await newAssistant(server, { name: "Callers", type: "outbound" }, key);
  const campaign = await made("/user/campaigns", { name: "Autumn", assistant_id: outbound.id });
  const lead = await made("/user/lead", { phone_number: "+15550100123", campaign_id: campaign });
  const hook = await made("/user/webhook-endpoints", {
    url: "https://hooks.example/", events: ["call_ended"],
  });
  await newTrunk(server, {}, key);
  await made("/user/blocked-numbers", { phone_number: "+15550100999" });
  await made("/user/label", { name: "Urgent", color: "red" });
  // One route never after itself: a page is drawn when its heading is another.
  const pages = [
    `/inbox/${uuid}`, "/", "/assistants", `/assistants/${assistant.id}`, "/calls",
    `/assistants/${assistant.id}/test`, `/calls/${caller.callId}`, "/conversations",
    `/conversations/${uuid}`, "/knowledgebases", `/knowledgebases/${knowledge}`, "/tools",
    `/tools/${tool}`, "/numbers", "/campaigns", "/numbers/sip-trunks", `/campaigns/${campaign}`,
    "/leads", `/leads/${lead}`, "/leads/blocked", "/webhooks", `/campaigns/${campaign}/leads`,
    `/webhooks/endpoints/${hook}`, "/team",
  ];
  const roles = { viewer: EVERYBODYS, operator: [...EVERYBODYS, ...OPERATORS] };
  for (const [role, mine] of Object.entries(roles)) {
    const member = await memberOf(server, role, key);
    const { page, context } = await freshPage();
    await signInAs(page, member.email);
    await page.locator(".you").waitFor();
    for (const path of pages) {
      await page.evaluate(`document.querySelector("main h1")?.setAttribute("data-seen", "")`);
      await page.goto(`${server.url}/#${path}`);
      await page.locator("main h1:not([data-seen])").waitFor();
      await page.waitForFunction(() => !document.querySelector("main .skeleton"));
      // Where the balance has to be said it is.
      if (path === "/") await page.getByText("was added to the balance").first().waitFor();
      const beyond = (await page.evaluate(PRESSABLE) as string[])
        .filter((name) => !mine.some((one) => one.test(name)));
      assert.deepEqual(beyond, [], `${role} at ${path}`);
      assert.equal(await page.locator("main").locator(CLOSED).count(), 0, `${role} at ${path}`);
    }
    await context.close();
  }
  caller.hangUp();
});

test("[DB573] a concurrent change of the balance alert's recipients is not overwritten unseen", { skip }, async () => {
  const { key } = await server.newAccount({ balance: "50" });
  const put = (amounts: number[], emails: string[]) =>
    server.call("PUT", "/user/balance/alerts", { key, body: { amounts, emails } });
  const kept = async () => (await server.call("GET", "/user/balance", { key })).body.alerts;
  await put([5], ["ada@example.org"]);
  await withDashboard(async ({ page, go }) => {
    await go("/money");
    const amounts = page.getByLabel("Amounts (USD)");
    const save = () => page.getByRole("button", { name: "Save" }).click();
    await amounts.fill("20, 5");
    await put([5], ["ada@example.org", "bo@example.org"]);
    await save();
    await page.getByText("Saved.").waitFor();
    assert.deepEqual(await kept(), { amounts: [20, 5], emails: ["ada@example.org", "bo@example.org"] });
    await amounts.fill("30");
    await put([10], ["ada@example.org"]);
    await save();
    await page.getByText("Somebody else has changed this").first().waitFor();
    assert.deepEqual(await kept(), { amounts: [10], emails: ["ada@example.org"] });
    const asked = page.waitForResponse((response) => response.request().method() === "PUT");
    await save();
    await (await asked).finished();
    assert.deepEqual(await kept(), { amounts: [30], emails: ["ada@example.org"] });
  }, { key });
});

test("[DB798] an invitation names its role in the reader's language", { skip }, async () => {
  const { link } = (await server.call("POST", "/user/invitations", {
    body: { email: "ines@example.org", role: "operator" },
  })).body as { link: string };
  await withDashboard(async ({ page }) => {
    await page.goto(server.url + new URL(link).hash.replace("#", "/#"));
    await page.reload();
    await page.getByText("als Mitarbeiter zu").waitFor();
  }, { context: { locale: "de" } });
});
