// The dashboard in many tabs of one browser, which has six connections to a server without HTTP/2;
// and whose session ends in one of them.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { BrowserContext, Page, WebSocket } from "playwright-core";
import { memberOf, PASSWORD } from "#support/members.ts";
import { noBrowser } from "#support/pages/browser.ts";
import { seriousOf, startDashboard } from "#support/pages/dashboard-page.ts";
import { onlyProof } from "#support/proof.ts";
import { newAssistant, newConversation } from "#support/server.ts";

const skip = noBrowser();
const { server, browser, withDashboard, close } = await startDashboard();
after(close);

/** More than there are connections, each with two streams: the account's and its conversation's. */
const TABS = 8;

test("[DB562] many tabs are live at once, each with a conversation open", { skip: skip || onlyProof, timeout: 180_000 }, async () => {
  const { uuid } = await newAssistant(server);
  const conversation = await newConversation(server, uuid);
  await withDashboard(async ({ page }) => {
    const context = page.context();
    const tabs = [];
    for (let count = 0; count < TABS; count += 1) {
      const tab = await context.newPage();
      await tab.addInitScript(
        `sessionStorage.setItem("parley-api-key", ${JSON.stringify(server.key)});`);
      await tab.goto(`${server.url}/#/conversations/${conversation}`);
      await tab.getByText("Live", { exact: true }).waitFor();
      tabs.push(tab);
    }
    await server.call("POST", `/conversations/${conversation}/messages`, {
      body: { message: "Is anybody there?" },
    });
    for (const tab of tabs) {
      await tab.getByRole("main").getByText("Is anybody there?").first().waitFor();
    }
  });
});

test("[DB715] lists without live events drop what was deleted elsewhere once people come back to the page", { skip }, async () => {
  const made = async (path: string, body: object): Promise<number> =>
    (await server.call("POST", path, { body })).body.data.id as number;
  const { id } = await newAssistant(server, { name: "Gone desk", type: "outbound" });
  const base = await made("/user/knowledgebases", { name: "Gone papers" });
  const tool = await made("/user/tools", {
    name: "gone_tool", description: "Looks up", method: "POST",
    endpoint: `${server.url}/nothing`, schema: [],
  });
  const campaign = await made("/user/campaigns", { name: "Gone autumn", assistant_id: id });
  const lead = await made("/user/lead", { campaign_id: campaign, phone_number: "+14155550177" });
  // A list is gone before what it needs.
  const lists = [
    ["/leads", "0177", `/user/leads/${lead}`],
    ["/campaigns", "Gone autumn", `/user/campaigns/${campaign}`],
    ["/tools", "gone_tool", `/user/tools/${tool}`],
    ["/knowledgebases", "Gone papers", `/user/knowledgebases/${base}`],
    ["/assistants", "Gone desk", `/user/assistant/${id}`],
  ] as const;
  await withDashboard(async ({ page, go }) => {
    for (const [list, name, path] of lists) {
      await go(list);
      const row = page.getByRole("row", { name });
      await row.waitFor();
      assert.equal((await server.call("DELETE", path)).status, 200, path);
      await page.evaluate("dispatchEvent(new Event('focus'))");
      await row.waitFor({ state: "detached" });
    }
  });
});

test("[DB730] returning to a list loads it once", { skip }, async () => {
  await withDashboard(async ({ page, go }) => {
    await go("/tools");
    await page.waitForLoadState("networkidle");
    const asked: string[] = [];
    page.on("request", (request) => asked.push(new URL(request.url()).pathname));
    const answered = page.waitForResponse(/user\/tools/);
    await page.evaluate(`document.dispatchEvent(new Event("visibilitychange"));
      dispatchEvent(new Event("focus"));`);
    await answered;
    await go("/assistants");
    await page.waitForLoadState("networkidle");
    assert.equal(asked.filter((path) => path.endsWith("/tools")).length, 1);
  });
});

/** As behind a proxy that passes no upgrade on. */
const NO_SOCKETS = `
  window.WebSocket = class extends EventTarget {
    static OPEN = 1;
    readyState = 3;
    constructor() {
      super();
      setTimeout(() => this.dispatchEvent(new Event("error")));
    }
    close() {}
  };`;

test("[DB563] without WebSocket the dashboard is live all the same", { skip, timeout: 180_000 }, async () => {
  const { uuid } = await newAssistant(server);
  const conversation = await newConversation(server, uuid);
  await withDashboard(async ({ page, go }) => {
    await page.addInitScript(NO_SOCKETS);
    const streamed = page.waitForResponse(/\/user\/stream$/);
    await page.reload();
    assert.equal((await streamed).headers()["content-type"], "text/event-stream; charset=utf-8");
    await go(`/conversations/${conversation}`);
    await page.getByText("Live", { exact: true }).waitFor();
    await server.call("POST", `/conversations/${conversation}/messages`, {
      body: { message: "Is anybody there?" },
    });
    await page.getByRole("main").getByText("Is anybody there?").first().waitFor();
  });
});

test("[DB564] an idle stream stays open: pings show that the server is still there", { skip, timeout: 180_000 }, async () => {
  await withDashboard(async ({ page, go }) => {
    await go("/assistants");
    await page.clock.install();
    const opened: WebSocket[] = [];
    page.on("websocket", (socket) => opened.push(socket));
    const first = page.waitForEvent("websocket");
    await page.reload();
    const socket = await first;
    await socket.waitForEvent("framereceived");
    await page.getByText("Live", { exact: true }).waitFor();
    // A client gives up what is silent for 40 s.
    for (let seconds = 0; seconds < 90; seconds += 15) {
      const answered = socket.waitForEvent("framereceived", ({ payload }) =>
        payload.toString().includes(`"pong"`));
      await page.clock.runFor(15_000);
      await answered;
    }
    assert.equal(opened.length, 1);
  });
});

async function signIn(context: BrowserContext, email: string): Promise<Page> {
  const page = await context.newPage();
  await page.goto(`${server.url}/livez`);
  await page.evaluate(`fetch("/api/auth/login", {
    method: "POST", headers: { "content-type": "application/json" },
    body: ${JSON.stringify(JSON.stringify({ email, password: PASSWORD, remember: false }))},
  })`);
  await page.goto(`${server.url}/#/tools/new`);
  await page.getByTitle(email).waitFor();
  return page;
}

test("[DB664] signing in as somebody else in one tab does so in all, with nothing left of the previous user", { skip }, async () => {
  const { key } = await server.newAccount();
  const ana = await memberOf(server, "builder", server.key);
  const ben = await memberOf(server, "builder", key);
  const context = await browser!.newContext();
  const first = await signIn(context, ana.email);
  const name = first.getByRole("textbox", { name: "Name" });
  await name.fill("secret_of_ana");
  const same = await signIn(context, ana.email);
  assert.equal(await name.inputValue(), "secret_of_ana");
  await same.close();
  await signIn(context, ben.email);
  await first.getByTitle(ben.email).waitFor();
  await first.getByText("Live", { exact: true }).waitFor();
  assert.equal(await name.inputValue(), "");
  await context.close();
});

test("[DB1783] a tab that learns only from the server that somebody else has signed in keeps nothing of the previous user", { skip }, async () => {
  const { key } = await server.newAccount();
  const ana = await memberOf(server, "builder", server.key);
  const ben = await memberOf(server, "builder", key);
  const context = await browser!.newContext();
  await context.addInitScript("BroadcastChannel.prototype.postMessage = () => undefined;");
  const first = await signIn(context, ana.email);
  await first.getByText("Live", { exact: true }).waitFor();
  const name = first.getByRole("textbox", { name: "Name" });
  await name.fill("secret_of_ana");
  await signIn(context, ben.email);
  const { uuid } = await newAssistant(server);
  await server.call("POST", `/conversations/${await newConversation(server, uuid)}/messages`, {
    body: { message: "This changes the balance" },
  });
  await first.getByTitle(ben.email).waitFor();
  await first.getByText("Live", { exact: true }).waitFor();
  assert.equal(await name.inputValue(), "");
  await context.close();
});

/** Ends all sessions but the one it is asked by. */
async function endSessions(who: Awaited<ReturnType<typeof memberOf>>): Promise<void> {
  const { body } = await who.call("GET", "/user/sessions");
  for (const { id, is_this: isOwn } of body.data) {
    if (!isOwn) await who.call("DELETE", `/user/sessions/${id}`);
  }
}

async function signInAgain(page: Page, email: string): Promise<void> {
  const again = page.getByRole("dialog", { name: "Sign in" });
  await again.getByText("Your session is over.").waitFor();
  assert.deepEqual(await seriousOf(page), []);
  await again.getByLabel("E-mail").fill(email);
  await again.getByLabel("Password").fill(PASSWORD);
  await again.getByRole("button", { name: "Sign in", exact: true }).click();
  await again.waitFor({ state: "hidden" });
}

test("[DB572] if the session ends under a half-filled form its user signs in and continues; another user finds nothing of it", { skip, timeout: 180_000 }, async () => {
  const ana = await memberOf(server, "builder", server.key);
  const ben = await memberOf(server, "builder", server.key);
  const context = await browser!.newContext();
  const page = await signIn(context, ana.email);
  // In a dialog, which keeps everything else from being used.
  const named = page.getByRole("textbox", { name: "Name" });
  await page.goto(`${server.url}/#/knowledgebases`);
  await page.getByRole("button", { name: "New knowledgebase" }).first().click();
  await named.fill("House rules of Ana");
  await endSessions(ana);
  await signInAgain(page, ana.email);
  assert.equal(await named.inputValue(), "House rules of Ana");
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByRole("heading", { name: "House rules of Ana" }).waitFor();
  await page.getByText("Live", { exact: true }).waitFor();
  // Somebody else at the same screen.
  await page.goto(`${server.url}/#/tools/new`);
  await named.fill("secret_of_ana");
  await endSessions(ana);
  await signInAgain(page, ben.email);
  await page.getByTitle(ben.email).waitFor();
  await page.getByText("Live", { exact: true }).waitFor();
  assert.equal(await named.inputValue(), "");
  // Who signs out in one tab leaves nothing in the other.
  await named.fill("secret_of_ben");
  const other = await context.newPage();
  await other.goto(`${server.url}/`);
  await other.getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("Password").waitFor();
  assert.equal(await page.getByText("Your session is over.").count(), 0);
  assert.equal(await named.count(), 0);
  await context.close();
});

test("[DB716] signing in again over an edited assistant or tool does not overwrite others' earlier changes unseen", { skip, timeout: 180_000 }, async () => {
  const ana = await memberOf(server, "builder", server.key);
  const { id } = await newAssistant(server);
  const { body: tool } = await server.call("POST", "/user/tools", {
    body: {
      name: "stock", description: "Before", method: "POST", endpoint: `${server.url}/x`, schema: [],
    },
  });
  const context = await browser!.newContext();
  const page = await signIn(context, ana.email);
  const edited = [
    [`/assistants/${id}`, "Prompt", `/user/assistant/${id}`, "system_prompt", "initial_message"],
    [`/tools/${tool.data.id}`, "Description", `/user/tools/${tool.data.id}`, "description", "name"],
  ] as const;
  for (const [at, label, path, member, other] of edited) {
    await page.goto(`${server.url}/#${at}`);
    const field = page.getByLabel(label, { exact: true }).first();
    await field.fill("Mine");
    await server.call("PATCH", path, { body: { [member]: "Theirs", [other]: "theirs" } });
    await endSessions(ana);
    const read = page.waitForResponse((response) => response.url().endsWith(path)
      && response.ok());
    await signInAgain(page, ana.email);
    await read;
    await page.getByText("Live", { exact: true }).waitFor();
    await page.keyboard.press("Control+s");
    await page.getByText("Somebody else has changed this in the meantime.").first().waitFor();
    const { body } = await server.call("GET", path);
    assert.deepEqual([body[member], body[other]], ["Theirs", "theirs"]);
    assert.equal(await field.inputValue(), "Mine");
    await page.keyboard.press("Control+s");
    await page.getByRole("region", { name: "Unsaved changes" }).waitFor({ state: "detached" });
    const { body: after } = await server.call("GET", path);
    assert.deepEqual([after[member], after[other]], ["Mine", "theirs"]);
  }
  await context.close();
});
