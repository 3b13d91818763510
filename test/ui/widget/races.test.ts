// The chat widget where two things happen at once: a reply ends while its page is away, two tabs
// write, a visitor is moved to another conversation in mid-reply.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { after, test } from "node:test";
import { LIMITS } from "#core/limits.ts";
import { createSystem, type System } from "#core/system.ts";
import { noBrowser } from "#support/pages/browser.ts";
import {
  isAnswered, open, openPage, openTab, startWorld, type Seen,
} from "#support/pages/widget-page.ts";
import { newAssistant, openBeside } from "#support/server.ts";

const skip = noBrowser();
const timeout = 180_000;
const real = createSystem();
let turnWaitMs: number = LIMITS.turnWaitMs;
const system: System = {
  ...real,
  after: (ms, work) => real.after(ms === LIMITS.turnWaitMs ? turnWaitMs : ms, work),
};
const {
  model, server, host, browser, withWidget, held, close,
} = await startWorld("refused", system);
after(close);

const lines = async ({ log }: Seen): Promise<string[]> =>
  (await log.locator(".item").allInnerTexts()).map((text) => text.replaceAll(/\s+/g, " ").trim());
/** The conversation the page is in, as soon as it watches one. */
const conversationOf = async ({ page }: Seen): Promise<string> => {
  const request = await page.waitForRequest(/\/stream\?after=/);
  return /conversations\/([\w-]{36})/.exec(request.url())?.[1] ?? "";
};
/** Resolves once the conversation has that many messages of the assistant. */
const finished = async (uuid: string, replies: number): Promise<void> => {
  for (;;) {
    const { body } = await server.call("GET", `/conversations/${uuid}`);
    const list = body.history as { role: string }[];
    if (list.filter(({ role }) => role === "assistant").length >= replies) return;
  }
};
const trim = async (): Promise<void> => {
  const storage = await openBeside(server.dataDir);
  await storage.trimLog(Number.MAX_SAFE_INTEGER, 100_000);
  await storage.close();
};

/** The page is offline while a reply ends, which leaves the log. Returns the conversation. */
async function missReply(seen: Seen): Promise<string> {
  const found = conversationOf(seen);
  const reply = held(2);
  await open(seen);
  const uuid = await found;
  await seen.say("Hello");
  await seen.log.getByText("One two", { exact: true }).waitFor();
  await seen.page.context().setOffline(true);
  reply.go();
  await finished(uuid, 2);
  await trim();
  return uuid;
}

test("[WG326] a reply that ended beyond the kept event log is shown, the next message can be sent, and one that was not sent yet stays", { skip, timeout }, async () => {
  await withWidget({}, async (seen) => {
    const uuid = await missReply(seen);
    await seen.page.context().setOffline(false);
    await seen.log.getByText("One two three four.").waitFor();
    await isAnswered(seen);
    const expected = ["Assistant: Hi!", "You: Hello", "Assistant: One two three four."];
    assert.deepEqual(await lines(seen), expected);
    // What has not been sent stays to be sent.
    await seen.page.context().setOffline(true);
    await seen.say("Later");
    const retry = seen.page.getByRole("button", { name: "Try again" });
    await retry.waitFor();
    const { body } = await server.call(
      "POST", `/conversations/${uuid}/messages`, { body: { message: "From elsewhere" } });
    await trim();
    await seen.page.route("**/messages", (route) => route.fulfill({
      status: 503, json: { status: false, error: "The server is overloaded." },
      headers: { "Access-Control-Allow-Origin": "*" },
    }));
    await seen.page.context().setOffline(false);
    await seen.log.getByText("From elsewhere").waitFor();
    const grown = [...expected, "You: From elsewhere", `Assistant: ${body.message}`];
    assert.deepEqual(await lines(seen), [...grown, "You: Later"]);
    await seen.page.unroute("**/messages");
    model.script(() => ({ tokens: ["At last."] }));
    await retry.click();
    await seen.log.getByText("At last.").waitFor();
    assert.deepEqual(await lines(seen), [...grown, "You: Later", "Assistant: At last."]);
  });
});

test("[WG331] a history that the server does not give at first is asked for again", { skip, timeout }, async () => {
  await withWidget({}, async (seen) => {
    const uuid = await missReply(seen);
    await seen.page.route(`**/conversations/${uuid}`, (route) => route.fulfill({
      status: 503, json: { status: false, error: "The server is overloaded." },
      headers: { "Access-Control-Allow-Origin": "*" },
    }), { times: 1 });
    const refused = seen.page.waitForResponse((response) => response.status() === 503);
    await seen.page.context().setOffline(false);
    await refused;
    await seen.log.getByText("One two three four.").waitFor({ timeout: 20_000 });
    await isAnswered(seen);
    assert.equal((await lines(seen)).length, 3);
  });
});

test("[WG560] what is said while the history is read after a gap is shown once, and what the history has can be rated", { skip, timeout }, async () => {
  await withWidget({}, async (seen) => {
    const uuid = await missReply(seen);
    const [read, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    await seen.page.route(`**/conversations/${uuid}`, async (route) => {
      const response = await route.fetch();
      read.resolve();
      await go.promise;
      await route.fulfill({ response });
    }, { times: 1 });
    await seen.page.context().setOffline(false);
    await read.promise;
    model.script(() => ({ tokens: ["Meanwhile."] }));
    await server.call(
      "POST", `/conversations/${uuid}/messages`, { body: { message: "From elsewhere" } });
    go.resolve();
    const thumbs = seen.page.getByRole("button", { name: "Helpful", exact: true });
    await thumbs.nth(1).waitFor();
    const expected = [
      "Assistant: Hi!", "You: Hello", "Assistant: One two three four.", "You: From elsewhere",
      "Assistant: Meanwhile.",
    ];
    assert.deepEqual(await lines(seen), expected);
    const rated = seen.page.waitForResponse(/\/ratings$/);
    await thumbs.first().click();
    await rated;
    // Loaded anew, the history also says how a reply was rated.
    await seen.page.context().setOffline(true);
    await server.call("POST", `/conversations/${uuid}/messages`, { body: { message: "Later" } });
    await trim();
    await seen.page.context().setOffline(false);
    await seen.log.getByText("Later").waitFor();
    assert.deepEqual(await lines(seen), [...expected, "You: Later", "Assistant: Meanwhile."]);
    assert.equal(await thumbs.first().getAttribute("aria-pressed"), "true");
  });
});

/** One more tab of the same visitor, with the chat open. */
const secondTab = async ({ page }: Seen): Promise<Seen> => {
  const tab = await openTab(page.context(), page.url());
  await tab.launcher.click();
  await tab.log.getByText("Hi!").waitFor();
  return tab;
};

test("[WG327] two tabs that write at once show the same, and a reply to one leaves the other waiting for its own", { skip, timeout }, async () => {
  await withWidget({}, async (first) => {
    await open(first);
    const [one, two] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    model.script(({ messages }) => {
      const text = String(messages.at(-1)?.content);
      const { promise: hold } = text === "one" ? one : two;
      return { tokens: ["To ", text], hold, holdAfter: 1 };
    });
    const connected = Promise.withResolvers<void>();
    await first.page.context().route("**/stream?*", async (route) => {
      await connected.promise;
      await route.continue();
    });
    const second = await secondTab(first);
    await first.say("one");
    await first.log.getByText("To", { exact: true }).waitFor();
    const asked = second.page.waitForRequest(/\/messages$/);
    await second.say("two");
    await asked;
    connected.resolve();
    await second.log.getByText("To", { exact: true }).waitFor();
    one.resolve();
    await second.log.getByText("To one").waitFor();
    await second.page.getByRole("button", { name: "Stop the reply" }).waitFor();
    two.resolve();
    const expected = [
      "Assistant: Hi!", "You: one", "Assistant: To one", "You: two", "Assistant: To two",
    ];
    for (const tab of [first, second]) {
      await tab.log.getByText("To two").waitFor();
      await isAnswered(tab);
      assert.deepEqual(await lines(tab), expected);
    }
  });
});

test("[WG328] a message that waited too long for an earlier reply is kept, and can be sent again", { skip, timeout }, async () => {
  await withWidget({}, async (first) => {
    await open(first);
    const second = await secondTab(first);
    const reply = held(1);
    await first.say("one");
    await second.log.getByText("One", { exact: true }).waitFor();
    turnWaitMs = 100;
    const refused = second.page.waitForResponse((response) => response.status() === 409);
    await second.say("two");
    await refused;
    turnWaitMs = LIMITS.turnWaitMs;
    reply.go();
    await second.log.getByText("One two three four.").waitFor();
    await second.page.getByText("The chat is busy right now.").waitFor();
    model.script(() => ({ tokens: ["To two"] }));
    await second.page.getByRole("button", { name: "Try again" }).click();
    const expected = [
      "Assistant: Hi!", "You: one", "Assistant: One two three four.", "You: two",
      "Assistant: To two",
    ];
    for (const tab of [first, second]) {
      await tab.log.getByText("To two").waitFor();
      await isAnswered(tab);
      assert.deepEqual(await lines(tab), expected);
    }
  });
});

/** The page of a signed-in visitor who has said something, and what begins a chat elsewhere. */
const signedIn = async (): Promise<{ seen: Seen; beginElsewhere: () => Promise<string> }> => {
  const { id, uuid } = await newAssistant(
    server, { initial_message: "Hi!", desk: { visitor_may_ask: true } });
  const made = await server.call("POST", `/user/assistants/${id}/identity-secret`);
  const hash = createHmac("sha256", made.body.secret as string).update("ada").digest("hex");
  const attributes = { "data-assistant": uuid, "data-user-id": "ada", "data-user-hash": hash };
  assert.ok(browser);
  const seen = await openPage(browser, host.add({ attributes }));
  model.script(() => ({ tokens: ["Once."] }));
  await open(seen);
  await seen.say("First?");
  await seen.log.getByText("Once.").waitFor();
  await isAnswered(seen);
  return {
    seen,
    beginElsewhere: async () => {
      const { body } = await server.call("POST", "/conversations", {
        body: { assistant_id: uuid, visitor: { id: "ada", hash }, anew: true },
      });
      return body.conversation_id as string;
    },
  };
};

test("[WG329] a signed-in visitor who has begun a chat elsewhere is moved to it with its stream", { skip, timeout }, async () => {
  const { seen, beginElsewhere } = await signedIn();
  const { page, log } = seen;
  const reply = held(1);
  await seen.say("Second?");
  await log.getByText("One", { exact: true }).waitFor();
  // The page does not ask where the visitor is while a reply is being written.
  await page.reload();
  await page.getByRole("button", { name: "Stop the reply" }).waitFor();
  const there = await beginElsewhere();
  reply.go();
  await log.getByText("One two three four.").waitFor();
  await isAnswered(seen);
  const moved = page.waitForRequest((request) =>
    request.url().includes(`${there}/stream`), { timeout: 10_000 });
  await page.getByRole("button", { name: "Talk to a person" }).click();
  await moved;
  await page.getByText("A person has been asked to join.").waitFor();
  assert.deepEqual(await lines(seen), ["Assistant: Hi!"]);
  await page.context().close();
});

test("[WG329] a message sent before it is known that the visitor has begun elsewhere is answered where it was sent", { skip, timeout }, async () => {
  const { seen, beginElsewhere } = await signedIn();
  const { page, log } = seen;
  await beginElsewhere();
  const known = Promise.withResolvers<void>();
  await page.route("**/api/conversations", async (route) => {
    await known.promise;
    await route.continue();
  });
  await page.reload();
  await log.getByText("Once.").waitFor();
  const reply = held(1);
  const told = page.waitForResponse(/\/api\/conversations$/);
  await seen.say("Second?");
  await log.getByText("One", { exact: true }).waitFor();
  known.resolve();
  await told;
  reply.go();
  await log.getByText("One two three four.").waitFor();
  await isAnswered(seen);
  assert.deepEqual(await lines(seen), [
    "Assistant: Hi!", "You: First?", "Assistant: Once.", "You: Second?",
    "Assistant: One two three four.",
  ]);
  await page.context().close();
});
