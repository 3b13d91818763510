// How the dashboard notifies whoever is at the desk. In a browser with all that draws windows: only
// that one is handed pushed messages.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Page } from "playwright-core";
import { askUntil } from "#support/asking.ts";
import { ALL_FREE, noBrowser, until, WATCH } from "#support/pages/browser.ts";
import { startDashboard } from "#support/pages/dashboard-page.ts";
import { newAssistant, newConversation } from "#support/server.ts";
import { startPushService, type PushBrowser } from "#support/vendors/push-service.ts";

const skip = noBrowser();
const dashboard = await startDashboard({}, "refused", "whole");
const { server, withDashboard } = dashboard;
after(() => dashboard.close());
const assistant = await newAssistant(server, {
  name: "Front desk", status: "active", initial_message: "Hello", desk: { visitor_may_ask: true },
});
const begin = (name: string): Promise<string> =>
  newConversation(server, assistant.uuid, { variables: { customer_name: name } });
const ask = (uuid: string) => server.call("POST", `/conversations/${uuid}/request-human`);
const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });

/** Makers' services are out of reach of the tests: the browser subscribes at one of their own. */
const subscribingAt = ({ subscription }: PushBrowser): string => `
  const made = {
    endpoint: ${JSON.stringify(subscription.endpoint)},
    toJSON: () => (${JSON.stringify(subscription)}),
    unsubscribe: async () => { sessionStorage.removeItem("subscribed"); return true; },
  };
  PushManager.prototype.subscribe = async ({ applicationServerKey: key }) => {
    sessionStorage.setItem("subscribed", key);
    return made;
  };
  PushManager.prototype.getSubscription = async () => sessionStorage.getItem("subscribed") ? made : null;`;

test("[DB355] a browser with notifications shows who waits while no dashboard page is visible, not after a remote sign-out, and is forgotten on sign-out", { skip }, async (context) => {
  const service = await startPushService();
  context.after(() => service.close());
  const pushed = service.newBrowser();
  const { server: { url } } = dashboard;
  await withDashboard(async ({ page, go }) => {
    await page.context().grantPermissions(["notifications"], { origin: url });
    await page.addInitScript(subscribingAt(pushed));
    await page.reload();
    await go("/inbox");
    await page.getByText("Notifications", { exact: true }).click();
    await page.getByText("While a page of the dashboard is open").waitFor();
    const isStored = page.waitForResponse(/\/user\/push\/subscriptions$/);
    await page.getByLabel("Browser notification").click();
    assert.equal((await isStored).status(), 201);
    await page.getByText("Even when no dashboard page is open").waitFor();
    const uuid = await begin("Yu");
    await ask(uuid);
    const [message] = await pushed.until(1);
    assert.deepEqual([message?.title, message?.conversation_id], ["Yu waits for a person", uuid]);
    const { body: { public_key: key } } = await server.call("GET", "/user/push");
    assert.equal(await page.evaluate(`sessionStorage.getItem("subscribed")`), key);
    // What the service hands to the browser reaches its worker.
    const debug = await page.context().newCDPSession(page);
    const registered = new Promise<string>((resolve) =>
      debug.on("ServiceWorker.workerRegistrationUpdated", ({ registrations: [first] }) => {
        if (first) resolve(first.registrationId);
      }));
    await debug.send("ServiceWorker.enable");
    const registrationId = await registered;
    const deliver = (more: object = {}) => debug.send("ServiceWorker.deliverPushMessage",
      { origin: url, registrationId, data: JSON.stringify({ ...message, ...more }) });
    /** Delivers it until it is shown: a worker that is only just starting may drop one. */
    const show = (id: string) => askUntil(async () => {
      await deliver({ conversation_id: id });
      return await page.evaluate(`navigator.serviceWorker.getRegistration("/")
        .then((found) => found.getNotifications())
        .then((all) => all.map(({ title, body, tag }) => [title, body, tag]))`) as string[][];
    }, (all) => all.some(([, , tag]) => tag === id));
    await page.goto(`${url}/talk/${assistant.uuid}`);
    assert.deepEqual(await show(uuid), [[message?.title, message?.body, uuid]]);
    // No member is signed in with this browser, any more.
    await deliver({ conversation_id: "unseen", for_session: true });
    const later = await show("later");
    assert.deepEqual(later.map(([, , tag]) => tag).toSorted(), [uuid, "later"].toSorted());
    await page.goto(`${url}/#/inbox`);
    await page.getByRole("heading", { name: /^Inbox/ }).waitFor();
    const forgotten = page.waitForResponse((answer) => answer.request().method() === "DELETE");
    await button(page, "Sign out").click();
    assert.equal((await forgotten).status(), 200);
    await page.getByRole("button", { name: /Sign in/ }).first().waitFor();
    assert.equal(await page.evaluate(`sessionStorage.getItem("subscribed")`), null);
  });
});

/** Counts what the page itself shows, while it is said to be out of sight and nothing is pushed. */
const UNSEEN = `window.notices = [];
  PushManager.prototype.subscribe = () => Promise.reject(new Error("no push here"));
  window.Notification = class { static permission = "granted";
    static requestPermission = async () => "granted"; constructor(title) { notices.push(title); } };
  Object.defineProperty(document, "hidden", { get: () => true });`;

test("[DB523] sound and notification for waiting visitors are off until enabled, kept in the browser, and can be disabled", { skip }, async () => {
  await withDashboard(async ({ page, go }) => {
    await ask(await begin("Number 0"));
    await page.addInitScript(WATCH + UNSEEN);
    await page.reload();
    await go("/inbox");
    let waiting = 0;
    /** The window's title is written with what calls people. */
    const heading = async (): Promise<void> => {
      await page.getByRole("heading", { name: `(${waiting})` }).waitFor();
      await until(page, `document.title.startsWith("(${waiting})")`);
    };
    const more = async (): Promise<[sounds: number, notices: number]> => {
      await ask(await begin(`Number ${waiting}`));
      waiting += 1;
      await heading();
      return [
        Number(await page.evaluate("opened.contexts.length")),
        Number(await page.evaluate("notices.length")),
      ];
    };
    const title = await page.getByRole("heading", { name: /^Inbox \(/ }).textContent();
    waiting = Number(/\((\d+)\)/.exec(title ?? "")?.[1]);
    const sound = page.getByRole("switch", { name: "Sound when somebody is waiting" });
    const notice = page.getByRole("switch", { name: "Browser notification" });
    await page.getByText("Notifications", { exact: true }).click();
    assert.deepEqual([await sound.isChecked(), await notice.isChecked()], [false, false]);
    assert.deepEqual(await more(), [0, 0]);
    await sound.click();
    await notice.click();
    await page.reload();
    await heading();
    await page.getByText("Notifications", { exact: true }).click();
    assert.deepEqual([await sound.isChecked(), await notice.isChecked()], [true, true]);
    assert.deepEqual(await more(), [1, 1]);
    await until(page, ALL_FREE);
    await sound.click();
    await notice.click();
    assert.deepEqual(await more(), [1, 1]);
  });
});
