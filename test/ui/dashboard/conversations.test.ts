// The dashboard's pages about conversations in a real browser: the list, one as it is written, the
// AI switched off and on, suggestions; through a lost network, a restart, a reload, a trimmed log.
import assert from "node:assert/strict";
import { readFileSync, rmSync } from "node:fs";
import { after, test } from "node:test";
import type { Locator, Page } from "playwright-core";
import { startEndpoint } from "#support/endpoint.ts";
import { noBrowser, until } from "#support/pages/browser.ts";
import { startDashboard } from "#support/pages/dashboard-page.ts";
import { openFrontDoor } from "#support/pages/front-door.ts";
import {
  newAssistant, newConversation, openBeside, startTestServer, testDataDir, type TestServer,
} from "#support/server.ts";
import { callingOnce } from "#support/vendors/scripted-model.ts";

const skip = noBrowser();
const dataDir = testDataDir();
const dashboard = await startDashboard({ PARLEY_DATA_DIR: dataDir });
const { withDashboard, model } = dashboard;
/** The one that runs: a test starts it again. */
let server: TestServer = dashboard.server;
const { key } = server;
after(async () => {
  await dashboard.close();
  await server.close();
  rmSync(dataDir, { recursive: true });
});
const LONG = "Donaudampfschifffahrtsgesellschaftskapitänsmützenfabrik".repeat(3);
const assistant = await newAssistant(server, {
  name: "Front desk", status: "active", initial_message: "Hello",
  tools: [{ type: "end_call", data: { description: "when done" } }],
});
const other = await newAssistant(server, { name: "Night desk", status: "active" });
const ask: TestServer["call"] = (method, path, options) =>
  server.call(method, path, { key, ...options });

const send = async (uuid: string, message: string): Promise<void> => {
  const { status, body } = await server.call("POST", `/conversations/${uuid}/messages`, {
    body: { message },
  });
  assert.equal(status, 200, JSON.stringify(body));
};
const messages = (page: Page): Locator =>
  page.getByRole("list", { name: "Messages" }).getByRole("listitem");
const texts = (page: Page): Promise<string[]> => messages(page).locator("p").allTextContents();
const gone = (locator: Locator): Promise<void> => locator.waitFor({ state: "detached" });
const trim = async (): Promise<void> => {
  const storage = await openBeside(dataDir);
  await storage.trimLog(Number.MAX_SAFE_INTEGER, 100_000);
  await storage.close();
};
const answer = (...tokens: string[]): void => model.script(() => ({ tokens }));

test("[DB50] [DB654] the conversation list: filters, live rows, a notice for readers further down, saved views, columns and a CSV file", { skip }, async () => {
  await Promise.all(Array.from({ length: 110 }, (_, index) =>
    newConversation(server, assistant.uuid, { type: index % 2 ? "test" : "widget" })));
  const night = await newConversation(server, other.uuid);
  await withDashboard(async ({ page, go, look }) => {
    await go("/conversations");
    const table = page.getByRole("table", { name: "Conversations" });
    const row = (uuid: string): Locator => table.getByRole("row", { name: uuid.slice(0, 8) });
    await row(night).waitFor();
    const fresh = await newConversation(server, assistant.uuid);
    await row(fresh).waitFor();
    answer("Sure.");
    await send(fresh, "Hello?");
    await row(fresh).getByRole("cell", { name: "3", exact: true }).waitFor();
    await page.evaluate("scrollTo(0, document.body.scrollHeight)");
    await until(page, `Number(document.querySelector("table.list").getAttribute("aria-rowcount")) > 60`);
    const late = await newConversation(server, assistant.uuid);
    await page.getByRole("button", { name: "Show it" }).click();
    await row(late).waitFor();
    await page.getByLabel("Assistant").selectOption("Night desk");
    await gone(row(late));
    await row(night).waitFor();
    await look();
    await page.getByLabel("Type").selectOption("test");
    await page.getByText("No conversations match these filters.").waitFor();
    await page.getByRole("button", { name: "Clear filters" }).click();
    // Narrowed by words, kept in the address, saved under a name, and found again by it.
    answer("Of course.");
    await send(fresh, "A refund, please");
    await page.getByLabel("Search").fill("refund");
    await gone(row(night));
    await row(fresh).getByText("Of course.").waitFor();
    assert.match(page.url(), /search=refund/);
    await page.getByText("Views", { exact: true }).click();
    await page.getByLabel("Save this view as").fill("Greetings");
    await page.getByRole("button", { name: "Save view" }).click();
    await page.getByRole("button", { name: "Clear filters" }).click();
    await row(night).waitFor();
    // Nothing is narrowed now.
    await page.getByLabel("Save this view as").fill("All");
    await page.getByText("Filter the list or choose columns first: a view keeps those.").waitFor();
    await page.keyboard.press("Enter");
    assert.ok(await page.getByRole("button", { name: "Save view" }).isDisabled());
    await page.getByRole("button", { name: "Greetings", exact: true }).click();
    await gone(row(night));
    await look();
    await page.getByText("Columns", { exact: true }).click();
    await page.getByRole("checkbox", { name: "Rating" }).click();
    await gone(page.getByRole("columnheader", { name: "Rating" }));
    await page.getByText("Export", { exact: true }).click();
    const [file] = await Promise.all([
      page.waitForEvent("download"), page.getByRole("button", { name: "As CSV" }).click(),
    ]);
    assert.equal(file.suggestedFilename(), "conversations.csv");
    await page.getByRole("button", { name: "Clear filters" }).click();
    await row(night).click();
    await page.getByRole("heading", { name: `Visitor ${night.slice(0, 8)}` }).waitFor();
  });
});

test("[DB510] selected ones are exported, labelled and deleted together, and busy ones are named; one is deleted on its page", { skip }, async () => {
  const made = (name: string): Promise<string> =>
    newConversation(server, assistant.uuid, { variables: { name } });
  // No name that could stand in a visitor's number, which is hexadecimal.
  const [olga, boris, carla] = [await made("Olga"), await made("Boris"), await made("Carla")];
  await ask("POST", "/user/label", { body: { name: "Spam", color: "red" } });
  await withDashboard(async ({ page, go, look }) => {
    await go("/conversations");
    const row = (name: string): Locator =>
      page.getByRole("table", { name: "Conversations" }).getByRole("row", { name });
    for (const name of ["Olga", "Boris", "Carla"]) {
      await page.getByRole("checkbox", { name: `Select ${name}` }).check();
    }
    const bar = page.getByRole("group", { name: "Selected conversations" });
    await bar.getByText("3 selected").waitFor();
    const [file] = await Promise.all([
      page.waitForEvent("download"), bar.getByRole("button", { name: "Export as CSV" }).click(),
    ]);
    const lines = readFileSync(await file.path(), "utf8").split("\n");
    assert.equal(lines.length, 4);
    const text = lines.join();
    assert.ok([olga, boris, carla].every((uuid) => text.includes(uuid)));
    await look();
    await bar.getByRole("button", { name: "Label" }).click();
    await page.getByRole("dialog").getByLabel("Label").selectOption("Spam");
    await page.getByRole("dialog").getByRole("button", { name: "Add", exact: true }).click();
    await page.getByText("3 conversations got the label.").waitFor();
    const { body: labelled } = await ask("GET", `/user/conversations/${olga}/labels`);
    assert.deepEqual(labelled.data.map(({ name }: { name: string }) => name), ["Spam"]);
    const asked = Promise.withResolvers<void>();
    const hold = Promise.withResolvers<void>();
    model.script(() => {
      asked.resolve();
      return { tokens: ["Yes."], hold: hold.promise };
    });
    const sent = send(carla, "Anybody?");
    await asked.promise;
    await bar.getByRole("button", { name: "Delete" }).click();
    const dialog = page.getByRole("dialog", { name: "Delete 3 conversations?" });
    await dialog.getByText("Olga, Boris, Carla: their messages, files, notes and labels are deleted").waitFor();
    await dialog.getByRole("button", { name: "Delete" }).click();
    await page.getByText("so they were not deleted: Carla").waitFor();
    await gone(row("Olga"));
    await gone(row("Boris"));
    await bar.getByText("1 selected").waitFor();
    assert.equal((await ask("GET", `/user/conversations/${olga}`)).status, 404);
    hold.resolve();
    await sent;
    await row("Carla").getByRole("link").click();
    await messages(page).getByText("Yes.").waitFor();
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByText("The conversation is deleted.").waitFor();
    await page.getByRole("heading", { name: "Conversations", level: 1 }).waitFor();
    await gone(row("Carla"));
    assert.equal((await ask("GET", `/user/conversations/${carla}`)).status, 404);
  });
});

test("[DB51] a conversation shows each piece as it is written, Markdown like the widget, and markup as text", { skip }, async () => {
  const uuid = await newConversation(server, assistant.uuid, { variables: { name: LONG } });
  await withDashboard(async ({ page, go, look }) => {
    await go(`/conversations/${uuid}`);
    await messages(page).getByText("Hello", { exact: true }).waitFor();
    const hold = Promise.withResolvers<void>();
    model.script(() => ({
      tokens: ["**Nine** ", "<b>to</b> ", "five."], hold: hold.promise, holdAfter: 2,
    }));
    const sent = send(uuid, `When? ${LONG}`);
    await messages(page).last().locator("strong", { hasText: "Nine" }).waitFor();
    await messages(page).last().getByText("<b>to</b>", { exact: false }).waitFor();
    await page.getByText("Writing").waitFor();
    await look();
    hold.resolve();
    await sent;
    await messages(page).last().getByText("Nine <b>to</b> five.").waitFor();
    await gone(page.getByText("Writing"));
    assert.deepEqual(await texts(page), ["Hello", `When? ${LONG}`, "Nine <b>to</b> five."]);
    await page.locator("dd").getByText(LONG).waitFor();
    await page.getByRole("link", { name: "Front desk" }).waitFor();
  });
});

test("[DB612] in a long conversation only new messages are rendered, not the whole log", { skip }, async () => {
  const uuid = await newConversation(server, assistant.uuid);
  await ask("POST", `/automate/conversations/${uuid}/disable-ai`);
  for (let at = 0; at < 20; at += 1) await send(uuid, `Before ${at}`);
  await withDashboard(async ({ page, go }) => {
    // Each message that is drawn says when it was written.
    await page.addInitScript(`{
      window.written = 0;
      const { get } = Object.getOwnPropertyDescriptor(Intl.DateTimeFormat.prototype, "format");
      Object.defineProperty(Intl.DateTimeFormat.prototype, "format", { get() {
        window.written += 1;
        return get.call(this);
      } });
    }`);
    await page.reload();
    await go(`/conversations/${uuid}`);
    await messages(page).getByText("Before 19").waitFor();
    await page.evaluate("window.written = 0");
    for (let at = 0; at < 10; at += 1) {
      await send(uuid, `After ${at}`);
      await messages(page).getByText(`After ${at}`).waitFor();
    }
    const written = Number(await page.evaluate("window.written"));
    assert.ok(written < 150, `${written} instants were written for 10 messages behind 21`);
  });
});

test("[DB613] a truncated tool result is shown line by line, like JSON", { skip }, async () => {
  const orders = Array.from({ length: 300 }, (_, id) => ({ id, name: 'A "city" bike', of: [] }));
  const endpoint = await startEndpoint();
  endpoint.answer((_, response) => response.setHeader("content-type", "application/json")
    .end(JSON.stringify({ orders })));
  try {
    const { body } = await ask("POST", "/user/tools", { body: {
      name: "orders", description: "Lists orders", method: "GET", endpoint: endpoint.url,
      headers: [], schema: [],
    } });
    const { uuid: of } = await newAssistant(server, { status: "active", tool_ids: [body.data.id] });
    model.script(callingOnce("orders", {}, ["Three hundred."]));
    const uuid = await newConversation(server, of);
    await send(uuid, "Which orders are there?");
    await withDashboard(async ({ page, go }) => {
      await go(`/conversations/${uuid}`);
      await page.getByText("orders", { exact: true }).click();
      const result = page.locator(".calls-function pre").last();
      const shown = await result.innerText();
      assert.ok(shown.startsWith([
        "{", '  "orders": [', "    {", '      "id": 0,', String.raw`      "name": "A \"city\" bike",`,
        '      "of": []', "    },",
      ].join("\n")), shown.slice(0, 200));
      assert.match(shown, /…$/);
    });
  } finally {
    await endpoint.close();
  }
});

test("[DB594] a growing log stays at its newest message even before the scroll event, and readers who scroll up stay there", { skip }, async () => {
  model.script(() => ({ tokens: ["At nine.\n\n".repeat(30)] }));
  const uuid = await newConversation(server, assistant.uuid);
  await send(uuid, "When?");
  await withDashboard(async ({ page, go }) => {
    await go(`/conversations/${uuid}`);
    const log = page.locator(".conversations-messages > ol");
    await log.getByText("At nine.").last().waitFor();
    const newest = page.getByRole("button", { name: "Jump to the newest" });
    // As where more is drawn between the scrolling and the word of it.
    await log.evaluate((list) => {
      (list.lastElementChild as HTMLElement).style.minHeight = "3000px";
      list.dispatchEvent(new Event("scroll"));
    });
    await send(uuid, "And on Sundays?");
    await log.getByText("And on Sundays?").waitFor();
    await until(page, `document.querySelectorAll(".conversations-message").length === 5`);
    const rest = `(({ scrollHeight, scrollTop, clientHeight }) =>
      scrollHeight - scrollTop - clientHeight)(document.querySelector(".conversations-messages > ol"))`;
    await until(page, `${rest} < 60`);
    assert.equal(await newest.count(), 0);
    await log.hover();
    await page.mouse.wheel(0, -600);
    await newest.waitFor();
    await send(uuid, "And on Mondays?");
    await log.getByText("And on Mondays?").waitFor();
    assert.ok(Number(await page.evaluate(rest)) > 60);
  });
});

test("[DB52] the AI is switched off and on as the server confirms, and other people's switching shows", { skip }, async () => {
  const uuid = await newConversation(server, assistant.uuid);
  await withDashboard(async ({ page, go }) => {
    await go(`/conversations/${uuid}`);
    const toggle = page.getByRole("switch", { name: "The AI answers" });
    await messages(page).first().waitFor();
    assert.ok(await toggle.isChecked());
    const answered = page.waitForResponse(/disable-ai/);
    await toggle.click();
    assert.equal((await answered).status(), 200);
    await until(page, `!document.querySelector("input[role=switch]").checked`);
    await send(uuid, "Anybody?");
    await messages(page).getByText("Anybody?").waitFor();
    assert.equal((await ask("GET", `/conversations/${uuid}`)).body.history.length, 2);
    await ask("POST", `/automate/conversations/${uuid}/enable-ai`);
    await until(page, `document.querySelector("input[role=switch]").checked`);
  });
});

test("[DB581] text typed while a reply is being sent does not resend that reply", { skip }, async () => {
  const uuid = await newConversation(server, assistant.uuid);
  await withDashboard(async ({ page, go }) => {
    const { promise: answered, resolve: answerNow } = Promise.withResolvers<void>();
    await page.route("**/messages", async (route) => {
      if (route.request().method() === "POST") await answered;
      await route.continue();
    });
    await go(`/inbox/${uuid}`);
    const reply = page.getByLabel("Your reply");
    await reply.fill("At nine.");
    const sent = page.waitForResponse((response) => response.request().method() === "POST"
      && response.url().endsWith("/messages"));
    await reply.press("Enter");
    await reply.press("End");
    await reply.pressSequentially("Bring your card.");
    answerNow();
    await sent;
    await messages(page).getByText("At nine.").waitFor();
    await until(page, `document.querySelector(".inbox-composer textarea").value === "Bring your card."`);
    await reply.press("Enter");
    await messages(page).getByText("Bring your card.").waitFor();
    assert.deepEqual((await texts(page)).slice(-2), ["At nine.", "Bring your card."]);
  });
});

test("[DB53] a suggestion is shown and stays out of the customer's conversation", { skip }, async () => {
  const uuid = await newConversation(server, assistant.uuid);
  answer("First.");
  await send(uuid, "When are you open?");
  await withDashboard(async ({ page, go, look }) => {
    answer("Say: nine ", "to five.");
    await go(`/conversations/${uuid}`);
    await messages(page).getByText("First.").waitFor();
    await page.getByRole("button", { name: "Suggest a reply" }).click();
    const dialog = page.getByRole("dialog");
    const field = dialog.getByLabel("The customer's message");
    assert.equal(await field.inputValue(), "When are you open?");
    await dialog.getByRole("button", { name: "Suggest", exact: true }).click();
    await dialog.getByText("Say: nine to five.").waitFor();
    await look();
    assert.equal((await ask("GET", `/conversations/${uuid}`)).body.history.length, 3);
    const { body } = await ask("GET", `/user/conversations?external_identifier=suggestion:${uuid}`);
    assert.equal(body.data.length, 1);
  });
});

test("[DB322] a truncated reply says so, and each reply shows its token count", { skip }, async () => {
  const uuid = await newConversation(server, assistant.uuid);
  model.script(() => ({ tokens: ["Half", " a"], finishReason: "length" }));
  await send(uuid, "All of it?");
  answer("Whole", " at", " last.");
  await send(uuid, "And now?");
  await withDashboard(async ({ page, go, look }) => {
    await go(`/conversations/${uuid}`);
    const [cut, whole] = [messages(page).nth(2), messages(page).nth(4)];
    await cut.getByText("Half a", { exact: true }).waitFor();
    await cut.getByText("Cut off at the maximum length of a reply").waitFor();
    await cut.getByText("7 tokens read, 2 written").waitFor();
    await whole.getByText("7 tokens read, 3 written").waitFor();
    assert.equal(await page.getByText("Cut off at the maximum").count(), 1);
    assert.equal(await messages(page).getByText("tokens read").count(), 2);
    await look();
  });
});

test("[DB54] if the event log is no longer kept the history is loaded, and new events join it once", { skip }, async () => {
  const uuid = await newConversation(server, assistant.uuid);
  answer("One.");
  await send(uuid, "First?");
  await trim();
  answer("Two.");
  await send(uuid, "Second?");
  await withDashboard(async ({ page, go }) => {
    answer("Three.");
    await go(`/conversations/${uuid}`);
    await messages(page).getByText("One.").waitFor();
    await send(uuid, "Third?");
    await messages(page).getByText("Three.").waitFor();
    assert.deepEqual(
      await texts(page), ["Hello", "First?", "One.", "Second?", "Two.", "Third?", "Three."]);
  });
});

test("[DB1582] a conversation whose event log is no longer kept shows that it has ended, ratings that come, and what is said while its history is read", { skip }, async () => {
  const uuid = await newConversation(server, assistant.uuid);
  answer("One.");
  await send(uuid, "First?");
  assert.equal((await ask("POST", `/user/conversations/${uuid}/end`)).status, 200);
  await trim();
  const { turn_ids: turns } = (await server.call("GET", `/conversations/${uuid}`)).body;
  await withDashboard(async ({ page, go }) => {
    const [read, shown] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let reads = 0;
    await page.route(`**/api/conversations/${uuid}`, async (route) => {
      // The server restarts during the first read, and during another, for the variables.
      if ((reads += 1) <= 2) return route.fulfill({ status: 503 });
      const response = await route.fetch();
      read.resolve();
      await shown.promise.then(() => route.fulfill({ response }));
    });
    await go(`/conversations/${uuid}`);
    await read.promise;
    const rated = { body: { turn_id: turns.at(-1), rating: "up" } };
    assert.equal((await server.call("POST", `/conversations/${uuid}/ratings`, rated)).status, 200);
    shown.resolve();
    await page.getByText("The conversation has ended.").waitFor();
    await messages(page).nth(2).getByText("Rated helpful").waitFor();
    answer("One.");
    await send(uuid, "First?");
    await messages(page).nth(4).waitFor();
    await gone(page.getByText("The conversation has ended."));
    assert.deepEqual(await texts(page), ["Hello", "First?", "One.", "First?", "One."]);
  });
});

test("[DB55] lost network, restart and reload: staleness is shown and nothing is doubled", { skip }, async () => {
  const uuid = await newConversation(server, assistant.uuid);
  const door = await openFrontDoor(() => server.port);
  try {
    await withDashboard(async ({ page }) => {
      answer("One.");
      await page.goto(`${door.url}/#/conversations/${uuid}`);
      await messages(page).getByText("Hello", { exact: true }).waitFor();
      await page.context().setOffline(true);
      server.app.features.streams.closeAll();
      await page.getByText("The connection is lost.").waitFor();
      await send(uuid, "First?");
      assert.deepEqual(await texts(page), ["Hello"]);
      await page.context().setOffline(false);
      await messages(page).getByText("One.").waitFor();
      await gone(page.getByText("The connection is lost."));
      await server.close();
      await page.getByText("The connection is lost.").waitFor();
      server = await startTestServer({ dataDir, env: { PARLEY_MODEL_URL: model.url } });
      answer("Two.");
      await send(uuid, "Second?");
      await messages(page).getByText("Two.").waitFor();
      const all = ["Hello", "First?", "One.", "Second?", "Two."];
      assert.deepEqual(await texts(page), all);
      await page.reload();
      await messages(page).getByText("Two.").waitFor();
      assert.deepEqual(await texts(page), all);
    });
  } finally {
    await door.close();
  }
});
