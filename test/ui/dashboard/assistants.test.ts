// The dashboard's pages of assistants in a real browser: found, created, edited, tested and
// embedded; what the server then has is what people saw.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Locator, Page } from "playwright-core";
import { startEndpoint } from "#support/endpoint.ts";
import { noBrowser } from "#support/pages/browser.ts";
import { startDashboard } from "#support/pages/dashboard-page.ts";
import { newAssistant } from "#support/server.ts";

const skip = noBrowser();
const { model, server, withDashboard, close } = await startDashboard();
const endpoint = await startEndpoint();
after(async () => {
  await endpoint.close();
  await close();
});

const LONG = "Donaudampfschifffahrtsgesellschaftskapitän".repeat(3);

// oxlint-disable-next-line typescript/no-explicit-any
const read = async (id: number): Promise<any> =>
  (await server.call("GET", `/user/assistant/${id}`)).body;

/** A reply whose rest waits until it is let go; its words come one by one. */
function held(count: number): { go: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  const tokens = ["One ", "two ", "three ", "four."];
  model.script(() => ({ tokens, gapMs: 60, hold: promise, holdAfter: count }));
  return { go: resolve };
}

const log = (page: Page): Locator => page.getByRole("log", { name: "Conversation" });
const saved = (page: Page): Promise<void> =>
  page.getByRole("region", { name: "Unsaved changes" }).waitFor({ state: "detached" });
const save = (page: Page): Promise<void> =>
  page.getByRole("button", { name: "Save", exact: true }).click();
const section = (page: Page, name: string): Locator =>
  page.locator("details").filter({ has: page.getByRole("heading", { name, exact: true }) });

async function openSection(page: Page, name: string): Promise<Locator> {
  const found = section(page, name);
  await found.getByRole("heading", { name }).click();
  return found;
}

async function say(page: Page, text: string): Promise<void> {
  await page.getByRole("textbox", { name: "Message", exact: true }).fill(text);
  await page.keyboard.press("Enter");
}

test("[DB20] assistants are found by name and filtered by their properties", { skip }, async () => {
  const { key } = await server.newAccount();
  const folder = await server.call("POST", "/user/folder", { key, body: { name: "Reception" } });
  const label = await server.call("POST", "/user/label", { key, body: { name: "German" } });
  await withDashboard(async ({ page, go, look }) => {
    await go("/assistants");
    await page.getByText("No assistants yet").waitFor();
    const names = Array.from({ length: 150 }, (_, at) => `Assistant ${at}`);
    await Promise.all(names.map((name) => newAssistant(server, { name, type: "outbound" }, key)));
    await newAssistant(server, { name: LONG, status: "active" }, key);
    await newAssistant(server, {
      name: "Front desk", folder_id: folder.body.data.id, label_ids: [label.body.data.id],
    }, key);
    await page.reload();
    const table = page.getByRole("table", { name: "Assistants" });
    await table.waitFor();
    assert.equal(await table.getAttribute("aria-rowcount"), "153");
    assert.ok(await table.getByRole("row").count() < 80, "only rows in view are drawn");
    await look();
    const narrow = async (label: string, option: string, expected: string): Promise<void> => {
      await page.getByLabel(label, { exact: true }).selectOption({ label: option });
      await table.and(page.locator("[aria-rowcount='2']")).waitFor();
      assert.equal(await table.locator("tbody a").textContent(), expected);
      await page.getByLabel(label, { exact: true }).selectOption("");
    };
    await narrow("Status", "Active", LONG);
    await narrow("Folder", "Reception", "Front desk");
    await narrow("Label", "German", "Front desk");
    await page.getByLabel("Type", { exact: true }).selectOption("outbound");
    await table.and(page.locator("[aria-rowcount='151']")).waitFor();
    await page.getByLabel("Search").fill("assistant 149");
    await table.and(page.locator("[aria-rowcount='2']")).waitFor();
    await table.getByRole("link", { name: "Assistant 149" }).click();
    await page.getByRole("heading", { name: "Assistant 149", level: 1 }).waitFor();
  }, { key });
});

test("[DB21] an assistant is created with a short form and sensible defaults", { skip }, async () => {
  await withDashboard(async ({ page, go, look }) => {
    await go("/assistants");
    await page.getByRole("button", { name: "New assistant" }).click();
    const dialog = page.getByRole("dialog", { name: "New assistant" });
    await dialog.getByRole("button", { name: "Create" }).click();
    await dialog.getByText("The name field is required.").first().waitFor();
    assert.equal(await dialog.getByLabel("Name").getAttribute("aria-invalid"), "true");
    await look();
    await dialog.getByLabel("Name").fill("Reception");
    await dialog.getByLabel("Language").selectOption({ label: "German" });
    await dialog.getByLabel("Greeting").fill("Guten Tag");
    await dialog.getByRole("button", { name: "Create" }).click();
    await page.getByRole("heading", { name: "Reception", level: 1 }).waitFor();
    const id = Number(new URL(page.url()).hash.split("/").at(-1));
    const { name, status, type, mode, language_id, initial_message, timezone } = await read(id);
    assert.deepEqual(
      { name, status, type, mode, language_id, initial_message, timezone },
      {
        name: "Reception", status: "active", type: "inbound", mode: "pipeline", language_id: 5,
        initial_message: "Guten Tag", timezone: "Europe/Vienna",
      });
  }, { context: { timezoneId: "Europe/Vienna" } });
});

test("[DB22] saving sends only what was changed", { skip }, async () => {
  const { id } = await newAssistant(server, { name: "Before", variables: { company: "Müller" } });
  await withDashboard(async ({ page, go }) => {
    await go(`/assistants/${id}`);
    await page.getByLabel("Name", { exact: true }).first().fill("After");
    await page.getByLabel("Prompt", { exact: true }).fill("Be kind to ");
    await page.getByRole("button", { name: "company", exact: true }).click();
    // Changed and changed back: not sent.
    await page.getByLabel("Greeting").fill("Other");
    await page.getByLabel("Greeting").fill("Hello");
    const sent = page.waitForRequest((request) => request.method() === "PATCH");
    await page.keyboard.press("Control+s");
    assert.deepEqual((await sent).postDataJSON(), {
      name: "After", system_prompt: "Be kind to {{company}}",
    });
    await page.getByRole("heading", { name: "After", level: 1 }).waitFor();
    await saved(page);
    assert.equal((await read(id)).system_prompt, "Be kind to {{company}}");
  });
});

test("[DB573] concurrent changes are not overwritten unseen, and stay if only other settings were changed", { skip }, async () => {
  const { id } = await newAssistant(server, { name: "Shared", initial_message: "Hello" });
  const bySomebodyElse = (body: object) => server.call("PATCH", `/user/assistant/${id}`, { body });
  await withDashboard(async ({ page, go }) => {
    await go(`/assistants/${id}`);
    await page.getByLabel("Prompt", { exact: true }).fill("Mine");
    await bySomebodyElse({ system_prompt: "Theirs", initial_message: "Their greeting" });
    await page.keyboard.press("Control+s");
    await page.getByRole("alert").getByText("Prompt: Somebody else has changed this in the meantime.").waitFor();
    assert.equal((await read(id)).system_prompt, "Theirs");
    assert.equal(await page.getByLabel("Prompt", { exact: true }).inputValue(), "Mine");
    assert.equal(await page.getByLabel("Greeting").inputValue(), "Their greeting");
    await page.keyboard.press("Control+s");
    await saved(page);
    assert.equal((await read(id)).system_prompt, "Mine");
    assert.equal((await read(id)).initial_message, "Their greeting");
  });
});

test("[DB23] a validation error opens its section and leads to the field", { skip }, async () => {
  const { id } = await newAssistant(server);
  await withDashboard(async ({ page, go }) => {
    await go(`/assistants/${id}`);
    const limits = await openSection(page, "Spend limit");
    await limits.getByLabel("Daily spending limit").fill("-1");
    const voice = await openSection(page, "Voice and speech");
    await voice.getByLabel("Stability").fill("0.3");
    await limits.getByRole("heading").click();
    await limits.getByLabel("Daily spending limit").waitFor({ state: "detached" });
    await page.getByRole("link", { name: "Embed" }).click();
    await page.getByText("On your website").waitFor();
    await save(page);
    const field = limits.getByLabel("Daily spending limit");
    await field.and(page.locator(":focus")).waitFor();
    const said = await limits.locator("small").textContent();
    assert.match(said ?? "", /^“Daily spending limit \(USD\)” must be at least 0/);
    await page.getByRole("alert").getByText(said ?? "").waitFor();
    await limits.getByText("1 to fix").waitFor();
    assert.equal((await read(id)).voice_stability, "0.70", "nothing of it was saved");
    await field.fill("2.5");
    await limits.getByText("1 to fix").waitFor({ state: "detached" });
    await save(page);
    await saved(page);
    const { daily_spend_cap, voice_stability } = await read(id);
    assert.deepEqual([daily_spend_cap, voice_stability], [2.5, "0.30"]);
  });
});

test("[DB24] unsaved changes are never lost without a question", { skip }, async () => {
  const { id } = await newAssistant(server, { name: "Kept" });
  await withDashboard(async ({ page, go }) => {
    await go("/tools");
    await go(`/assistants/${id}`);
    const name = page.getByLabel("Name", { exact: true }).first();
    const dialog = page.getByRole("dialog", { name: "Leave without saving?" });
    await name.fill("Changed");
    await page.getByRole("link", { name: "Calls" }).click();
    await dialog.getByRole("button", { name: "Stay" }).click();
    assert.equal(await name.inputValue(), "Changed");
    await page.goBack();
    await dialog.getByRole("button", { name: "Stay" }).click();
    assert.equal(new URL(page.url()).hash, `#/assistants/${id}`);
    // Tabs of the page are no leaving.
    await page.getByRole("link", { name: "Test chat" }).click();
    await page.getByText("uses your changes, which are not saved").waitFor();
    await page.getByRole("link", { name: "Settings" }).click();
    assert.equal(await name.inputValue(), "Changed");
    let asked = "";
    page.once("dialog", (native) => {
      asked = native.type();
      void native.accept();
    });
    await page.reload();
    assert.equal(asked, "beforeunload");
    assert.equal(await name.inputValue(), "Kept");
    await name.fill("Changed again");
    await page.getByRole("link", { name: "Calls" }).click();
    await dialog.getByRole("button", { name: "Leave" }).click();
    await page.getByRole("heading", { name: "Calls", level: 1 }).waitFor();
    await go(`/assistants/${id}`);
    await name.fill("Discarded");
    await page.getByRole("button", { name: "Discard" }).click();
    assert.equal(await name.inputValue(), "Kept");
    await page.getByRole("link", { name: "Calls" }).click();
    await page.getByRole("heading", { name: "Calls", level: 1 }).waitFor();
    assert.equal((await read(id)).name, "Kept");
  });
});

test("[DB25] an assistant can be enabled, copied, and deleted after a question", { skip }, async () => {
  const { id } = await newAssistant(server, { name: "Original", record: true });
  await withDashboard(async ({ page, go }) => {
    await go(`/assistants/${id}`);
    await page.getByRole("button", { name: "Enable" }).click();
    await page.getByRole("button", { name: "Disable" }).waitFor();
    assert.equal((await read(id)).status, "active");
    await page.getByRole("button", { name: "Duplicate" }).click();
    await page.getByRole("heading", { name: "Original (copy)", level: 1 }).waitFor();
    const copy = Number(new URL(page.url()).hash.split("/").at(-1));
    const { record, status } = await read(copy);
    assert.deepEqual([record, status], [true, "inactive"]);
    await page.getByRole("button", { name: "Delete" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("cannot be undone").waitFor();
    await dialog.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("heading", { name: "Assistants", level: 1 }).waitFor();
    assert.equal((await server.call("GET", `/user/assistant/${copy}`)).status, 404);
    assert.equal((await read(id)).name, "Original");
  });
});

test("[DB26] every section edits the API's fields", { skip }, async () => {
  const tool = await server.call("POST", "/user/tools", {
    body: { name: "order_status", description: "Where it is", method: "GET", endpoint: endpoint.url },
  });
  const { id } = await newAssistant(server, { initial_message: "Hello {{customer}}" });
  await withDashboard(async ({ page, go, look }) => {
    await go(`/assistants/${id}`);
    await page.getByRole("button", { name: "Open all sections" }).click();
    await page.getByRole("button", { name: "Add customer" }).click();
    await section(page, "Prompt and greeting").getByLabel("Default").fill("you");
    const voice = section(page, "Voice and speech");
    await voice.getByLabel("Language", { exact: true }).selectOption({ label: "German" });
    await voice.getByRole("button", { name: "Voice" }).click();
    await page.getByLabel("Search").fill("british");
    await page.getByRole("list", { name: "Voices for the language" }).getByRole("button").first().click();
    await page.getByLabel("Record calls").check();
    await page.getByLabel("Longest call").fill("300");
    const functions = section(page, "Functions");
    await functions.getByLabel("Add a function").selectOption("call_transfer");
    await functions.getByRole("button", { name: "Add", exact: true }).click();
    await functions.getByLabel("order_status").check();
    await page.getByLabel("Only on sites named here").check();
    await page.getByLabel("Allowed origins").fill("https://one.example\nhttps://two.example\n");
    await page.getByLabel("Colour", { exact: true }).fill("#aa0000");
    await page.getByLabel("Before an inbound call", { exact: true }).check();
    await page.getByLabel("Before an inbound call: URL").fill("https://hooks.example/in");
    await page.getByRole("button", { name: "Add field" }).click();
    const third = page.getByRole("group", { name: "Field 3" });
    await third.getByLabel("Name").fill("mood");
    await third.getByLabel("What to find out").fill("How the caller felt");
    await save(page);
    // The function's number is missing.
    const number = functions.getByLabel("Phone number", { exact: true });
    await number.and(page.locator(":focus")).waitFor();
    await look();
    await number.fill("+4930123456");
    await save(page);
    await saved(page);
    const now = await read(id);
    assert.deepEqual(now.variables, { customer: "you" });
    const voices = await server.call("GET", "/user/assistants/voices?language_id=5&search=british");
    assert.deepEqual([now.language_id, now.voice_id], [5, voices.body[0].id]);
    assert.deepEqual([now.record, now.max_duration], [true, 300]);
    assert.equal(now.tools[0].type, "call_transfer");
    assert.equal(now.tools[0].data.phone_number, "+4930123456");
    assert.deepEqual(now.tool_ids, [tool.body.data.id]);
    assert.deepEqual(now.allowed_origins, ["https://one.example", "https://two.example"]);
    assert.equal(now.widget_settings.color, "#aa0000");
    assert.equal(now.inbound_webhook_url, "https://hooks.example/in");
    assert.deepEqual(now.post_call_schema.at(-1), {
      name: "mood", type: "string", description: "How the caller felt",
    });
  });
});

test("[DB27] the test chat streams a free conversation, with variables and tool calls", { skip }, async () => {
  const tool = await server.call("POST", "/user/tools", {
    body: { name: "weather", description: "Tells it", method: "GET", endpoint: `${endpoint.url}/now` },
  });
  const { id } = await newAssistant(server, {
    initial_message: "Hello {{customer}}", tool_ids: [tool.body.data.id],
  });
  endpoint.answer((_, response) => {
    response.setHeader("content-type", "application/json").end('{"sky":"blue"}');
  });
  await withDashboard(async ({ page, go, look }) => {
    await go(`/assistants/${id}/test`);
    await page.getByRole("textbox", { name: "customer" }).fill("Ada");
    await page.getByRole("button", { name: "Start the conversation" }).click();
    await log(page).getByText("Hello Ada").waitFor();
    const reply = held(2);
    await say(page, "Count");
    await log(page).getByText("One two", { exact: true }).waitFor();
    assert.equal(await log(page).getAttribute("aria-busy"), "true");
    reply.go();
    await log(page).getByText("One two three four.").waitFor();
    await page.getByRole("button", { name: "Send" }).waitFor();
    model.script(({ messages }) => messages.at(-1)?.role === "tool"
      ? { tokens: [`It is **blue**, ${LONG}.`] }
      : { toolCalls: [{ id: "c1", name: "weather", arguments: "{}" }] });
    await say(page, "And the sky?");
    await log(page).locator("strong").getByText("blue").waitFor();
    const called = log(page).locator("details");
    await called.getByText("done").waitFor();
    await called.locator("summary").click();
    await called.getByText('"sky": "blue"').waitFor();
    await page.getByRole("button", { name: "Send" }).waitFor();
    await look();
    const { body } = await server.call("GET", "/user/conversations?type=test");
    assert.equal(body.data[0].message_count, 5);
    assert.equal(body.data[0].total_cost, 0);
    assert.deepEqual(body.data[0].variables, { customer: "Ada" });
    await page.getByRole("button", { name: "New conversation" }).click();
    await page.getByRole("button", { name: "Start the conversation" }).waitFor();
  });
});

test("[DB322] a truncated reply says so in the test chat, even after a reload", { skip }, async () => {
  const { id } = await newAssistant(server);
  model.script(() => ({ tokens: ["Half a"], finishReason: "length" }));
  await withDashboard(async ({ page, go }) => {
    await go(`/assistants/${id}/test`);
    await say(page, "All of it?");
    await log(page).getByText("Cut off at the maximum length of a reply").waitFor();
    await page.reload();
    await log(page).getByText("Cut off at the maximum length of a reply").waitFor();
    await log(page).getByText("Half a", { exact: true }).waitFor();
  });
});

test("[DB28] a reply can be stopped; a failed one is retried and the question asked once", { skip }, async () => {
  const { id } = await newAssistant(server);
  await withDashboard(async ({ page, go }) => {
    await go(`/assistants/${id}/test`);
    const reply = held(1);
    await say(page, "Count");
    await log(page).getByText("One", { exact: true }).waitFor();
    const stopped = page.waitForRequest(/\/stop$/);
    await page.getByRole("button", { name: "Stop" }).click();
    // A stop that comes late is not for the next reply.
    assert.ok(Number.isInteger((await stopped).postDataJSON().turn_id));
    await log(page).getByText("Stopped").waitFor();
    reply.go();
    model.script(() => ({ status: 400 }));
    await say(page, "Fail");
    await page.getByRole("alert").waitFor();
    model.script(() => ({ tokens: ["Better."] }));
    await page.getByRole("button", { name: "Try again" }).click();
    await log(page).getByText("Better.").waitFor();
    await page.getByRole("alert").waitFor({ state: "detached" });
    // The text is seen while it is written; the page is free again once it is stored.
    await page.getByRole("button", { name: "Send" }).waitFor();
    const { body } = await server.call("GET", `/user/conversations?assistant_id=${id}`);
    const { history } = (await server.call("GET", `/conversations/${body.data[0].id}`)).body;
    assert.deepEqual(
      history.map(({ content }: { content: string }) => content.trim()),
      ["Hello", "Count", "One", "Fail", "Better."]);
  });
});

test("[DB29] a network failure or reload in mid-reply costs nothing and doubles nothing", { skip }, async () => {
  const { id } = await newAssistant(server);
  await withDashboard(async ({ page, go }) => {
    await go(`/assistants/${id}/test`);
    const reply = held(2);
    await say(page, "Count");
    await log(page).getByText("One two", { exact: true }).waitFor();
    await page.reload();
    await log(page).getByText("One two", { exact: true }).waitFor();
    await page.context().setOffline(true);
    server.app.features.streams.closeAll();
    await page.getByText("Reconnecting").waitFor();
    await page.context().setOffline(false);
    reply.go();
    await log(page).getByText("One two three four.").waitFor();
    await page.getByRole("button", { name: "Send" }).waitFor();
    assert.equal(await log(page).getByText("Count").count(), 1);
    assert.equal(await log(page).getByText("One two").count(), 1);
    const { body } = await server.call("GET", `/user/conversations?assistant_id=${id}`);
    assert.deepEqual(body.data.map((row: { message_count: number }) => row.message_count), [3]);
  });
});

test("[DB30] the embed tag is built and copied, and the widget tried", { skip }, async () => {
  const { id, uuid } = await newAssistant(server);
  await withDashboard(async ({ page, go, look }) => {
    await go(`/assistants/${id}/embed`);
    await page.getByLabel("Title").fill('Ask "us" <now>');
    await page.getByLabel("Opens by itself").check();
    await page.getByRole("button", { name: "Copy" }).first().click();
    await page.getByText("Copied").waitFor();
    assert.equal(
      await page.evaluate("navigator.clipboard.readText()"),
      `<script async src="${server.url}/widget.js" data-assistant="${uuid}" data-header-title="Ask &quot;us&quot; &lt;now>" data-open="true"></script>`);
    await look();
    await page.getByRole("button", { name: "Show the widget here" }).click();
    await page.locator("assistant-chat").getByText('Ask "us" <now>').waitFor();
    await page.getByRole("button", { name: "Hide the widget" }).click();
    await page.locator("assistant-chat").waitFor({ state: "detached" });
    await page.locator(`a[href='/talk/${uuid}']`).waitFor();
  }, { context: { permissions: ["clipboard-read", "clipboard-write"] } });
});

test("[DB31] text by people and models is shown as text, never as markup", { skip }, async () => {
  const hostile = `<img src=x onerror="document.title='owned'"><script>1</script>`;
  await newAssistant(server, {
    name: hostile, initial_message: hostile, variables: { company: hostile },
  });
  await withDashboard(async ({ page, go }) => {
    await go("/assistants");
    await page.getByRole("link", { name: hostile }).click();
    await page.getByRole("heading", { name: hostile, level: 1 }).waitFor();
    model.script(() => ({ tokens: [`${hostile} [run](javascript:document.title='owned')`] }));
    await page.getByRole("link", { name: "Test chat" }).click();
    await say(page, hostile);
    await log(page).getByText("run").waitFor();
    assert.equal(await log(page).getByText(hostile).count(), 3);
    assert.equal(await page.locator("main img, main script, main a[href^=javascript]").count(), 0);
    assert.equal(await page.title(), `${hostile} · Parley`);
  });
});
