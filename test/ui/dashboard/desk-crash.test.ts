// Two people at the desk and three visitors, each in a browser of their own, while the real process
// is killed at once and started again at the same address, again and again.
import assert from "node:assert/strict";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { test } from "node:test";
import type { Page } from "playwright-core";
import { ask } from "#support/api.ts";
import { askUntil } from "#support/asking.ts";
import { freePorts } from "#support/free-ports.ts";
import { noBrowser, openBrowser, type TestBrowser } from "#support/pages/browser.ts";
import { askForPerson, type Seen, startHost } from "#support/pages/widget-page.ts";
import { startProcess } from "#support/process.ts";
import { onlyProof } from "#support/proof.ts";
import { assistantBody, testDataDir } from "#support/server.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";

// The suite has its quiet form in inbox.test.ts and the kill over HTTP in desk-crash.test.ts.
const skip = noBrowser() || onlyProof;
const KILLS = 5;
const ROUNDS = 2 * KILLS + 2;
const NAMES = ["Ana", "Ben"] as const;

const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });

/** The dashboard, signed in with the key. */
async function openDesk(browser: TestBrowser, url: string, key: string): Promise<Page> {
  const page = await (await browser.newContext()).newPage();
  await page.addInitScript(`sessionStorage.setItem("parley-api-key", ${JSON.stringify(key)});`);
  await page.goto(`${url}/`);
  await page.getByText("Live", { exact: true }).waitFor();
  return page;
}

/** Sends by hand until it is sent: a dead server leaves the text in its field. */
async function reply(page: Page, text: string): Promise<void> {
  const field = page.getByLabel("Your reply");
  await field.fill(text);
  await askUntil(async () => {
    if (await button(page, "Send").isEnabled()) await field.press("Enter");
    return field.inputValue();
  }, (left) => left === "");
}

/** Says it, and presses "Try again" as often as the widget offers it, until the person has it. */
async function say({ page, say: write }: Seen, text: string, desk: Page): Promise<void> {
  await write(text);
  const again = page.locator("assistant-chat .notice button").first();
  const arrived = desk.getByRole("list", { name: "Messages" }).getByText(text, { exact: true });
  await askUntil(async () => {
    // Gone between look and click where the widget went on by itself.
    if (await again.isVisible()) await again.click({ timeout: 1000 }).catch(() => null);
    return arrived.count();
  }, (count) => count > 0);
}

test("[DB357] after a server kill while two operators and three visitors write, nothing is lost, doubled or out of order, one voice answers at a time, and the inbox counts are right", { skip, timeout: 240_000 }, async (context) => {
  const dataDir = testDataDir();
  const model = await startScriptedModel();
  model.script(() => ({ tokens: ["I am the assistant."] }));
  const port = await freePorts();
  const env = {
    PARLEY_MODEL_URL: model.url, PARLEY_PORT: String(port),
    PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8",
  };
  let server = await startProcess(dataDir, env);
  const { url, key } = server;
  assert.ok(key);
  const host = await startHost(url);
  const browser = await openBrowser("refused");
  context.after(async () => {
    await browser.close();
    await host.close();
    server.process.kill("SIGKILL");
    await model.close();
    rmSync(dataDir, { recursive: true, maxRetries: 5 });
  });
  const restart = async (): Promise<void> => {
    const gone = once(server.process, "exit");
    server.process.kill("SIGKILL");
    await gone;
    server = await startProcess(dataDir, env);
  };
  const { data: { uuid: assistant } } = await ask(
    { url, key }, "/user/assistant", assistantBody({
      status: "active", initial_message: "Hi!", desk: { visitor_may_ask: true },
    }));
  const widget = host.add({ attributes: { "data-assistant": assistant } });
  const visit = () => askForPerson(browser, widget);
  const visitors = [await visit(), await visit(), await visit()] as const;
  const desks = await Promise.all(NAMES.map(async (name) => {
    const made = await ask({ url, key }, "/user/api-keys", { name });
    return openDesk(browser, url, made.api_key.token);
  }));
  for (const [at, page] of desks.entries()) {
    await page.goto(`${url}/#/inbox/${visitors[at]?.uuid}`);
    await button(page, "Take over").click();
    await page.getByText("You have this conversation.").waitFor();
  }
  const written = Promise.all(desks.flatMap((page, at) => {
    const visitor = visitors[at]!;
    const numbers = Array.from({ length: ROUNDS }, (_, index) => index + 1);
    return [
      numbers.reduce((before, number) => before.then(() => reply(page, `p${number}`)), Promise.resolve()),
      numbers.reduce((before, number) => before.then(() => say(visitor, `v${number}`, page)), Promise.resolve()),
    ];
  }));
  for (let kill = 0; kill < KILLS; kill += 1) {
    await desks[kill % 2]!.getByRole("list", { name: "Messages" })
      .getByText(`p${kill * 2 + 2}`, { exact: true }).waitFor();
    await restart();
  }
  await written;
  // The third waits still; the assistant answers it meanwhile.
  const [, , third] = visitors;
  await third.say("Hello?");
  await third.log.getByText("I am the assistant.").last().waitFor();
  const histories = await Promise.all(visitors.map(async ({ uuid }) =>
    (await ask({ url, key }, `/conversations/${uuid}`)).history as
      { role: string; content: string }[]));
  for (const [at, history] of histories.slice(0, 2).entries()) {
    for (const [role, name] of [["user", "v"], ["operator", "p"]] as const) {
      assert.deepEqual(
        history.filter((message) => message.role === role).map(({ content }) => content),
        Array.from({ length: ROUNDS }, (_, index) => `${name}${index + 1}`));
    }
    assert.deepEqual(
      history.filter(({ role }) => role === "assistant").map(({ content }) => content), ["Hi!"]);
    // What both see is what is stored, in its order, once.
    const stored = history.slice(1).map(({ content }) => content);
    const shown = (texts: string[]): string[] =>
      texts.flatMap((text) => /\b[vp]\d+\b/.exec(text)?.[0] ?? []);
    const messages = desks[at]!.getByRole("list", { name: "Messages" });
    for (const list of [visitors[at]!.log.locator(".item"), messages.locator("li")]) {
      await askUntil(async () => shown(await list.allInnerTexts()),
        ({ length }) => length >= stored.length);
      assert.deepEqual(shown(await list.allInnerTexts()), stored);
    }
  }
  await desks[0]!.goto(`${url}/#/inbox`);
  await desks[0]!.getByRole("button", { name: /^Waiting\s*1$/ }).waitFor();
  await desks[0]!.getByRole("button", { name: /^Mine\s*1$/ }).waitFor();
});
