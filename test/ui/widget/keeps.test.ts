// What the widget keeps: the way on when a reply fails, the owner's affairs from visitors, and one
// conversation in all tabs of a browser.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { noBrowser } from "#support/pages/browser.ts";
import { isAnswered, open, openTab, startWorld, type Seen } from "#support/pages/widget-page.ts";
import { assistantBody, newAssistant, newConversation } from "#support/server.ts";
import { startWebhookReceiver } from "#support/webhook-receiver.ts";

const skip = noBrowser();
const timeout = 180_000;
const { model, server, withWidget, close } = await startWorld();
after(close);

const answers = (text: string): void => model.script(() => ({ tokens: [text] }));
const lines = async ({ log }: Seen): Promise<string[]> =>
  (await log.locator(".item").allInnerTexts()).map((text) => text.replaceAll(/\s+/g, " "));

test("[WG199] a failed reply blocks nothing: visitors write on, even after a reload, or start anew", { skip, timeout }, async () => {
  await withWidget({}, async (seen) => {
    const { page } = seen;
    await open(seen);
    model.script(() => ({ status: 400 }));
    await seen.say("First?");
    await page.getByText("could not be answered").waitFor();
    await seen.say("Second?");
    await seen.log.getByText("Second?").waitFor();
    await page.getByText("could not be answered").waitFor();
    await page.reload();
    await page.getByText("could not be answered").waitFor();
    answers("Now it works.");
    await seen.say("Third?");
    await seen.log.getByText("Now it works.").waitFor();
    await isAnswered(seen);
    assert.equal(await page.getByText("could not be answered").isVisible(), false);
    assert.deepEqual(await lines(seen), [
      "Assistant: Hi!", "You: First?", "You: Second?", "You: Third?", "Assistant: Now it works.",
    ]);
    model.script(() => ({ status: 400 }));
    await seen.say("Fourth?");
    await page.getByRole("button", { name: "New conversation" }).click();
    answers("Fresh.");
    await seen.say("Anew");
    await seen.log.getByText("Fresh.").waitFor();
    assert.deepEqual(await lines(seen), ["Assistant: Hi!", "You: Anew", "Assistant: Fresh."]);
  });
});

test("[WG199] a message refused before it was stored is marked, and visitors write on", { skip, timeout }, async () => {
  await withWidget({}, async (seen) => {
    await open(seen);
    await seen.page.route("**/messages", (route) => route.fulfill({
      status: 503, json: { status: false, error: "The server is overloaded." },
    }), { times: 1 });
    await seen.say("Lost");
    await seen.page.getByText("could not be answered").waitFor();
    answers("Heard.");
    await seen.say("Kept");
    await seen.log.getByText("Heard.").waitFor();
    assert.deepEqual(await lines(seen), [
      "Assistant: Hi!", "You: Lost Not sent", "You: Kept", "Assistant: Heard.",
    ]);
    const words = seen.log.locator(".user .remark");
    const colours = await words.evaluate((one) =>
      [getComputedStyle(one).color, getComputedStyle(one.parentElement!).color]);
    assert.equal(colours[0], colours[1]);
  });
});

test("[VS1] a message that was not sent before its conversation was deleted is back in the box", { skip, timeout }, async () => {
  await withWidget({}, async (seen) => {
    const { page, box, log } = seen;
    await open(seen);
    answers("One.");
    await seen.say("First?");
    await log.getByText("One.").waitFor();
    await isAnswered(seen);
    const path = await page.evaluate(
      `Object.values(localStorage).map((one) => JSON.parse(one).conversation).join()`);
    await page.context().setOffline(true);
    await seen.say("A question that took a while to write");
    await page.getByRole("button", { name: "Try again" }).waitFor();
    const gone = await server.call("DELETE", `/user/conversations/${String(path)}`);
    assert.equal(gone.status, 200);
    await page.context().setOffline(false);
    await log.getByText("One.").waitFor({ state: "detached" });
    assert.equal(await box.inputValue(), "A question that took a while to write");
    answers("Two.");
    await box.press("Enter");
    await log.getByText("Two.").waitFor();
    await isAnswered(seen);
    assert.deepEqual(await lines(seen), [
      "Assistant: Hi!", "You: A question that took a while to write", "Assistant: Two.",
    ]);
  });
});

test("[WG200] visitors never read what is meant for the owner, who gets an event, a webhook and a banner", { skip, timeout }, async () => {
  const { key } = await server.newAccount({ balance: "0.01" });
  const receiver = await startWebhookReceiver();
  after(receiver.close);
  const made = await server.call("POST", "/user/webhook-endpoints", {
    key, body: { url: `${receiver.url}/hook`, events: ["conversation_failed"] },
  });
  assert.equal(made.status, 201);
  const me = async () => (await server.call("GET", "/user/me", { key })).body;
  assert.equal((await me()).trouble, null);
  await withWidget({ key }, async (seen, uuid) => {
    answers("Once.");
    await open(seen);
    await seen.say("Paid");
    await seen.log.getByText("Once.").waitFor();
    await isAnswered(seen);
    for (const text of ["Unpaid", "Unpaid again"]) {
      await seen.say(text);
      await seen.page.getByText("Sorry, that could not be answered just now.").waitFor();
    }
    const shown = await seen.panel.innerText();
    assert.doesNotMatch(shown, /balance|top up|account|credit/i);
    const [told] = await receiver.until(1);
    const { conversation_id: conversation } = told?.body.data as { conversation_id: string };
    assert.match(String(conversation), /^[\w-]{36}$/);
    const { body } = await server.call("GET", "/user/events", { key });
    const failed = (body.data as Record<string, unknown>[])
      .filter(({ type }) => type === "conversation_failed");
    // A visitor who goes on trying is told of once.
    assert.equal(failed.length, 1);
    const { id: _, created_at: __, ...event } = failed[0] ?? {};
    assert.deepEqual(event, {
      type: "conversation_failed", conversation_id: conversation, assistant_id: uuid,
      reason: "balance_too_low",
      error: "The balance is too low: a visitor was not answered. Add credit to the account.",
    });
    const { trouble } = await me();
    assert.deepEqual([trouble.reason, trouble.conversation_id], ["balance_too_low", conversation]);
    const watched = await fetch(`${server.url}/api/conversations/${conversation}/stream?after=0`);
    const reader = watched.body!.pipeThrough(new TextDecoderStream()).getReader();
    const { value } = await reader.read();
    await reader.cancel();
    assert.doesNotMatch(value ?? "", /conversation_failed|balance/);
  });
});

test("[WG200] a failed reply counts as the account's trouble, except in a test chat", { timeout }, async () => {
  const { key } = await server.newAccount();
  const { uuid } = await newAssistant(server, {}, key);
  model.script(() => ({ status: 400 }));
  const trouble = async () => (await server.call("GET", "/user/me", { key })).body.trouble;
  for (const [type, reason] of [["test", undefined], ["widget", "reply_failed"]]) {
    const conversation = await newConversation(server, uuid, { type });
    const sent = await server.call(
      "POST", `/conversations/${conversation}/messages`, { body: { message: "Hello?" } });
    assert.equal(sent.status, 400);
    assert.equal((await trouble())?.reason, reason);
  }
  model.script(null);
});

test("[WG201] all tabs share one conversation while it lasts, and start a new one together", { skip, timeout }, async () => {
  await withWidget({}, async (first) => {
    model.script(({ messages }) => ({ tokens: [`To ${messages.at(-1)?.content}`] }));
    await open(first);
    await first.say("one");
    await first.log.getByText("To one").waitFor();
    await isAnswered(first);
    const second = await openTab(first.page.context(), first.page.url());
    await second.launcher.click();
    await second.log.getByText("To one").waitFor();
    await second.say("two");
    await second.log.getByText("To two").waitFor();
    await isAnswered(second);
    await first.log.getByText("To two").waitFor();
    const expected = [
      "Assistant: Hi!", "You: one", "Assistant: To one", "You: two", "Assistant: To two",
    ];
    assert.deepEqual(await lines(first), expected);
    assert.deepEqual(await lines(second), expected);
    model.script(() => ({ status: 400 }));
    await second.say("three");
    await first.log.getByText("three").waitFor();
    await second.page.getByRole("button", { name: "New conversation" }).click();
    await second.log.getByText("To one").waitFor({ state: "detached" });
    await first.log.getByText("To one").waitFor({ state: "detached" });
    answers("Welcome.");
    await first.say("four");
    await second.log.getByText("Welcome.").waitFor();
    assert.deepEqual(await lines(second), ["Assistant: Hi!", "You: four", "Assistant: Welcome."]);
    assert.deepEqual(second.problems, []);
  });
});

const KEPT = `Object.values(localStorage).map((text) => JSON.parse(text))`;

test("[WG202] the conversation is kept for the assistant's number of days; with 0 days each tab has its own", { skip, timeout }, async () => {
  for (const [days, expected] of [[undefined, 7], [30, 30]] as const) {
    const widget_settings = days === undefined ? {} : { remember_days: days };
    await withWidget({ settings: { widget_settings } }, async (seen) => {
      answers("Kept.");
      await open(seen);
      await seen.say("Hello");
      await seen.log.getByText("Kept.").waitFor();
      await isAnswered(seen);
      const left = await seen.page.evaluate(`(${KEPT}[0].until - Date.now()) / 86400000`);
      assert.equal(Math.round(Number(left)), expected);
      await seen.page.evaluate(`for (const [name, text] of Object.entries(localStorage)) {
        localStorage.setItem(name, JSON.stringify({ ...JSON.parse(text), until: Date.now() - 1 }));
      }`);
      const later = await openTab(seen.page.context(), seen.page.url());
      await open(later);
      assert.deepEqual(await lines(later), ["Assistant: Hi!"]);
    });
  }
  await withWidget({ settings: { widget_settings: { remember_days: 0 } } }, async (seen) => {
    answers("Not kept.");
    await open(seen);
    await seen.say("Hello");
    await seen.log.getByText("Not kept.").waitFor();
    await isAnswered(seen);
    assert.deepEqual(await seen.page.evaluate(KEPT), []);
    const other = await openTab(seen.page.context(), seen.page.url());
    await open(other);
    assert.deepEqual(await lines(other), ["Assistant: Hi!"]);
    await seen.page.reload();
    await seen.log.getByText("Not kept.").waitFor();
  });
  const { body } = await server.call("POST", "/user/assistant", { body: {
    ...assistantBody(), widget_settings: { remember_days: 366 },
  } });
  assert.deepEqual(Object.keys(body.errors), ["widget_settings.remember_days"]);
});

test("[WG203] wide code can be scrolled by keyboard", { skip, timeout }, async () => {
  await withWidget({}, async (seen) => {
    model.script(() => ({ tokens: ["```\n", `curl ${"long".repeat(40)}`, "\n```"] }));
    await open(seen);
    await seen.say("How?");
    // The whole reply is drawn anew when it is stored; only then can it be rated.
    await seen.page.getByRole("button", { name: "Helpful", exact: true }).waitFor();
    await seen.log.focus();
    await seen.page.keyboard.press("Tab");
    const code = seen.log.getByRole("group", { name: "Code" });
    assert.ok(await code.evaluate((one) => one.matches(":focus")));
    await seen.page.keyboard.press("ArrowRight");
    await code.evaluate((one) => new Promise((resolve) => {
      if (one.scrollLeft > 0) resolve(null);
      else one.addEventListener("scroll", resolve, { once: true });
    }));
  });
});

test("[WG296] unreadable browser storage, as on pages with their own JSON format, loses the conversation, not the widget", { skip }, async () => {
  // As scripts of before browsers had JSON do it: lists become texts.
  const prepare = `Array.prototype.toJSON = function () { return "[" + this.join() + "]"; };`;
  await withWidget({ prepare }, async (seen) => {
    await open(seen);
    await seen.say("Hello");
    await isAnswered(seen);
    await seen.page.reload();
    await seen.launcher.click();
    await seen.say("Hello again");
    await isAnswered(seen);
  });
});
