// The assistant's editor about what this server can do: settings without effect, models and voices
// that are not set up, samples of voices. Answers are changed here to have what no test machine
// has; [DB325] has them as they are. And the questions of an event at Cal.com.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Locator, Page } from "playwright-core";
import { wavOf } from "#support/calls/wav.ts";
import { noBrowser } from "#support/pages/browser.ts";
import { startDashboard } from "#support/pages/dashboard-page.ts";
import { newAssistant } from "#support/server.ts";

const skip = noBrowser();
const timeout = 180_000;
const { model, server, withDashboard, close } = await startDashboard({ PARLEY_SPEECH: "auto" });
after(close);

/** A picture of 8 by 8, green. */
const PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEElEQVR42mNgaGDAjoaWBACBfCABP+ifpgAAAABJRU5ErkJggg==";

/** Changes what the server answers at this address. */
async function answered<Body>(
  page: Page, url: string, change: (body: Body) => Body,
): Promise<void> {
  await page.route(url, async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: change(await response.json() as Body) });
  });
}

const section = (page: Page, title: string) =>
  page.locator("details.assistants-section").filter({ has: page.getByRole("heading", { name: title }) });

interface Item {
  id: number;
  name: string;
  available?: boolean;
  missing?: string | null;
  preview_url?: string | null;
}

test("[DB259] settings without effect say so at their field; unavailable ones are greyed out with what is missing", { skip, timeout }, async () => {
  const { id } = await newAssistant(server);
  await withDashboard(async ({ page, go, look }) => {
    await answered<{ warnings?: object[] }>(page, `**/api/user/assistant/${id}`, (body) => ({
      ...body,
      warnings: [
        { field: "tts_emotion_enabled", message: "The voice of this server has no emotions." },
        { field: "voice_id", message: "Nothing on this server speaks with this voice." },
        { field: "tools.0.calcom_api_key", message: "Cal.com is not reached." },
      ],
    }));
    await answered<Item[]>(page, "**/api/user/assistants/models?type=llm", (models) =>
      models.map((model) => model.id === 1
        ? { ...model, available: true, missing: null }
        : { ...model, available: false, missing: "OPENAI_API_KEY" }));
    await answered<Item[]>(page, "**/api/user/assistants/models?type=dualplex", (models) =>
      models.map((model) => ({ ...model, available: false, missing: "GEMINI_API_KEY" })));
    await answered<Item[]>(page, "**/api/user/assistants/models?type=multimodal", (models) =>
      models.map((model, at) => ({ ...model, available: at === 1, missing: at === 1 ? null : "A_KEY" })));
    await answered<Item[]>(page, "**/api/user/assistants/languages", (languages) =>
      languages.map((one) => one.name === "Danish"
        ? { ...one, available: false, missing: "No voice on this server speaks it." }
        : { ...one, available: true, missing: null }));
    await go(`/assistants/${id}`);
    await section(page, "Voice and speech").getByText("2 without effect").waitFor();
    await section(page, "Functions").getByText("1 without effect").waitFor();
    await page.getByRole("button", { name: "Open all sections" }).click();
    const emotion = page.getByRole("switch", { name: "Emotion in the voice" });
    assert.equal(await emotion.evaluate((one) =>
      document.getElementById(one.getAttribute("aria-describedby") ?? "")?.textContent),
    "The voice of this server has no emotions.");
    await section(page, "Voice and speech").getByText("Nothing on this server speaks with").waitFor();
    await section(page, "Functions").getByText("Cal.com is not reached.").waitFor();
    const models = section(page, "Model").getByLabel("Model", { exact: true }).locator("option");
    await models.nth(2).waitFor({ state: "attached" });
    const options = await models.evaluateAll((all) =>
      (all as HTMLOptionElement[]).map(({ label, disabled }) => ({ label, disabled })));
    const greyed = options.filter(({ label }) => label.includes("OPENAI_API_KEY"));
    assert.ok(greyed.length > 0 && greyed.every(({ disabled }) => disabled));
    // The first chooses none, the second is the one that is there.
    assert.deepEqual(options.slice(0, 2).map(({ disabled }) => disabled), [false, false]);
    const modes = section(page, "Model").getByLabel("Mode", { exact: true }).locator("option");
    assert.deepEqual(await modes.evaluateAll((all) =>
      (all as HTMLOptionElement[]).map(({ value, disabled }) => [value, disabled])),
    [["pipeline", false], ["multimodal", false], ["dualplex", true]]);
    await modes.getByText("GEMINI_API_KEY").waitFor({ state: "attached" });
    const danish = section(page, "Voice and speech").getByLabel("Language", { exact: true })
      .locator("option").filter({ hasText: "Danish" });
    assert.equal(await danish.textContent(), "Danish (chats only: No voice on this server speaks it.)");
    assert.deepEqual([await danish.isDisabled(), await danish.getAttribute("class")], [false, "soft"]);
    await page.getByText("Other languages it understands").click();
    await section(page, "Voice and speech").getByLabel("Danish (chats only:").waitFor();
    await look();
    await emotion.click();
    await page.getByText("The voice of this server has no emotions.").waitFor({ state: "detached" });
  });
});

test("[DB260] a voice with a sample can be heard before it is chosen", { skip, timeout }, async () => {
  const { id } = await newAssistant(server);
  await withDashboard(async ({ page, go, look }) => {
    await page.route("**/sample.wav", (route) => route.fulfill({
      contentType: "audio/wav", body: Buffer.from(wavOf(new Int16Array(8000), 16_000)),
    }));
    await answered<Item[]>(page, "**/api/user/assistants/voices?**", (voices) =>
      voices.map((voice, at) => ({
        ...voice,
        preview_url: at === 0 ? "/sample.wav" : null,
        available: at !== 1, missing: at === 1 ? "ELEVENLABS_API_KEY" : null,
      })));
    await go(`/assistants/${id}`);
    await page.getByRole("heading", { name: "Voice and speech" }).click();
    await page.getByRole("button", { name: "Voice", exact: true }).click();
    const list = page.getByRole("list", { name: "Voices for the language" });
    const second = list.getByRole("button", { name: "ELEVENLABS_API_KEY" });
    assert.equal(await second.isDisabled(), true);
    assert.equal(await list.getByRole("button", { name: "Listen to" }).count(), 1);
    await look();
    const heard = page.waitForRequest("**/sample.wav");
    await list.getByRole("button", { name: "Listen to" }).click();
    await heard;
    // It is over by itself.
    await list.getByRole("button", { name: "Stop" }).waitFor();
    await list.getByRole("button", { name: "Listen to" }).waitFor();
  });
});

test("[DB325] the editor shows the server's own information about settings, models and voices", { skip, timeout }, async () => {
  const other = await newAssistant(server, { name: "Gone" });
  const { id } = await newAssistant(server, {
    recogniser_hints: ["Zwickau"],
    tools: [{ type: "assistant_transfer", assistant_id: other.id, description: "" }],
  });
  assert.equal((await server.call("DELETE", `/user/assistant/${other.id}`)).status, 200);
  const { warnings } = (await server.call("GET", `/user/assistant/${id}`)).body as {
    warnings: { field: string; message: string }[];
  };
  assert.deepEqual(
    warnings.map(({ field }) => field).sort(), ["recogniser_hints", "tools.0.assistant_id"]);
  const models = (await server.call("GET", "/user/assistants/models?type=llm")).body as Item[];
  const voices = (await server.call("GET", "/user/assistants/voices?mode=pipeline&language_id=1"))
    .body as Item[];
  const heard = voices.find(({ preview_url: url }) => url);
  const silent = voices.find(({ preview_url: url, missing }) => !url && missing);
  assert.ok(heard && silent);
  await withDashboard(async ({ page, go }) => {
    await go(`/assistants/${id}`);
    await page.getByRole("button", { name: "Open all sections" }).click();
    for (const { message } of warnings) await page.getByText(message).waitFor();
    const choices = section(page, "Model").getByLabel("Model", { exact: true }).locator("option");
    await choices.nth(models.length).waitFor({ state: "attached" });
    const options = await choices.evaluateAll((all) =>
      (all as HTMLOptionElement[]).map(({ label, disabled, value }) =>
        ({ label, disabled, value })));
    for (const one of models) {
      const option = options.find(({ value }) => value === String(one.id));
      assert.equal(option?.disabled, !one.available, one.name);
      if (one.missing) assert.ok(option?.label.includes(one.missing), option?.label);
    }
    await page.getByRole("button", { name: "Voice", exact: true }).click();
    const list = page.getByRole("list", { name: "Voices for the language" });
    const row = ({ name }: Item) => list.getByRole("listitem").filter({ hasText: name }).first();
    await row(silent).getByText(silent.missing ?? "").waitFor();
    assert.equal(await row(silent).getByRole("button").first().isDisabled(), true);
    await row(heard).getByRole("button", { name: "Listen to" }).click();
    await row(heard).getByRole("button", { name: "Stop" }).waitFor();
    await row(heard).getByRole("button", { name: "Listen to" }).waitFor();
    // And with the manner that is chosen, before it is saved.
    await row(heard).getByRole("button").first().click();
    await page.getByLabel("Speed").fill("1.2");
    const sample = page.waitForResponse("**/api/user/assistants/voice-sample");
    await page.getByRole("button", { name: "Hear these settings" }).click();
    const answer = await sample;
    assert.equal(answer.status(), 200);
    assert.equal(answer.headers()["content-type"], "audio/wav");
    const { voice_id, speech_speed } = answer.request().postDataJSON();
    assert.deepEqual([voice_id, speech_speed], [heard.id, 1.2]);
    await page.getByRole("button", { name: "Discard" }).click();
  });
});

test("[AS150] [AS205] a voice sample plays unsaved settings; it is free, short and validated, its text too", async () => {
  const manner = { voice_id: 1, language_id: 1, speech_speed: 0.7 };
  const { key } = await server.newAccount({ balance: "0.00" });
  const ask = (body: object) => fetch(`${server.url}/api/user/assistants/voice-sample`, {
    method: "POST", body: JSON.stringify(body),
    headers: { "Content-Type": "application/json", Authorization: `Bearer ${key}` },
  });
  const slow = await ask(manner);
  assert.equal(slow.status, 200);
  const bytes = (await slow.arrayBuffer()).byteLength;
  const quick = await ask({ ...manner, speech_speed: 1.2 });
  assert.ok((await quick.arrayBuffer()).byteLength < bytes, "a faster voice needs less time");
  const long = await ask({ ...manner, text: "x".repeat(201) });
  assert.equal(long.status, 422);
  const empty = await ask({ ...manner, text: "🙂" });
  assert.equal(empty.status, 422, "nothing to say is no fault of the engine");
  const wrong = await ask({ ...manner, voice_id: 99_999 });
  assert.deepEqual((await wrong.json() as { errors: object }).errors, {
    voice_id: ["The selected voice id is invalid."],
  });
});

test("[DB324] the questions of a Cal.com event are added, changed and removed", { skip, timeout }, async () => {
  const field = { slug: "company", type: "text", label: "Your company", required: true };
  const calcom = {
    type: "calendar_integration", calcom_api_key: "cal_live_1", calcom_event_slug: "intro",
    calcom_booking_fields: [field, { ...field, slug: "old" }],
  };
  const { id } = await newAssistant(server, { tools: [calcom] });
  await withDashboard(async ({ page, go, look }) => {
    await go(`/assistants/${id}`);
    await page.getByRole("heading", { name: "Functions" }).click();
    const functions = section(page, "Functions");
    const save = page.getByRole("button", { name: "Save", exact: true });
    const question = (at: number): Locator =>
      functions.getByRole("group", { name: `Question ${at}`, exact: true });
    assert.equal(await question(1).getByLabel("Name at Cal.com").inputValue(), "company");
    await question(1).getByLabel("What to ask for").fill("Which company?");
    await question(1).getByLabel("Required for bookings").uncheck();
    await functions.getByRole("button", { name: "Remove question old" }).click();
    await functions.getByRole("button", { name: "Add question" }).click();
    await question(2).getByLabel("What to ask for").fill("Which colour?");
    await question(2).getByLabel("Type").selectOption("select");
    await question(2).getByLabel("Choices").fill("Red\nBlue\n");
    await save.click();
    // Its name is missing.
    const name = question(2).getByLabel("Name at Cal.com");
    await name.and(page.locator(":focus")).waitFor();
    await look();
    await name.fill("colour");
    await save.click();
    await page.getByRole("region", { name: "Unsaved changes" }).waitFor({ state: "detached" });
    const { tools: [{ data }] } = (await server.call("GET", `/user/assistant/${id}`)).body;
    assert.deepEqual(data.calcom_booking_fields, [
      { ...field, label: "Which company?", required: false },
      {
        slug: "colour", type: "select", label: "Which colour?", required: false,
        options: ["Red", "Blue"],
      },
    ]);
    assert.equal(data.calcom_api_key, "***");
  });
});

test("[DB261] the two silence settings explain what they do", { skip, timeout }, async () => {
  const silence = { max_silence_duration: 12, reengagement_interval: 34 };
  const { id } = await newAssistant(server, silence);
  await withDashboard(async ({ page, go }) => {
    await go(`/assistants/${id}`);
    await page.getByRole("button", { name: "Open all sections" }).click();
    assert.equal(await page.getByLabel("Ask a silent caller after (s)").inputValue(), "12");
    assert.equal(await page.getByLabel("Ask again every (s)").inputValue(), "34");
  });
});

test("[DB432] a setting is found by its label, API name or hint, and opened with the focus on it", { skip, timeout }, async () => {
  const { id } = await newAssistant(server, { tools: [{ type: "end_call", description: "" }] });
  await withDashboard(async ({ page, go, look }) => {
    await go(`/assistants/${id}`);
    const search = page.getByRole("searchbox", { name: "Find a setting" });
    const found = page.getByRole("list", { name: "Settings found" });
    const focused = (field: Locator) => field.and(page.locator(":focus")).waitFor();
    await search.fill("longest");
    await found.getByRole("button", { name: "Longest call (s)" }).waitFor();
    await look();
    await found.getByRole("button", { name: "Longest call (s)" }).click();
    await focused(page.getByLabel("Longest call (s)"));
    await found.waitFor({ state: "detached" });
    await search.fill("daily_spend");
    await page.keyboard.press("Enter");
    await focused(page.getByLabel("Daily spending limit (USD)"));
    await search.fill("1.2 s of silence");
    await page.keyboard.press("Enter");
    await focused(page.getByLabel("How soon it answers"));
    await search.fill("similarity");
    await page.keyboard.press("Enter");
    await focused(page.getByLabel("Similarity"));
    await search.fill("widget_settings.color");
    await page.keyboard.press("Enter");
    await focused(page.getByLabel("Colour", { exact: true }));
    await search.fill("when to use");
    await page.keyboard.press("Enter");
    await focused(section(page, "Functions").getByLabel("When to use it"));
    await search.fill("People");
    await page.keyboard.press("Enter");
    await focused(section(page, "People").locator("summary").first());
    await search.fill("no such thing");
    await found.getByText("No setting has that name.").waitFor();
    await search.press("Escape");
    await found.waitFor({ state: "detached" });
  });
});

test("[DB265] [DB662] office hours, form, texts and pictures are set in the editor, and a secret for signed visitors is shown once", { skip, timeout }, async () => {
  const { id } = await newAssistant(server);
  const settings = async () => (await server.call("GET", `/user/assistant/${id}`)).body as {
    desk: { office_hours: object | null }; widget_settings: Record<string, unknown>;
  };
  await withDashboard(async ({ page, go, look }) => {
    await go(`/assistants/${id}`);
    await page.getByRole("button", { name: "Open all sections" }).click();
    const people = section(page, "People");
    await people.getByRole("switch", { name: "People are available at certain hours" }).click();
    await people.getByLabel("Monday").fill("09:00-12:00, 13:00-25:00");
    await people.getByLabel("Saturday").fill("10:00-12:00");
    await people.getByLabel("Time zone").selectOption("Asia/Tokyo"); // [DB662]
    await people.getByLabel("What visitors see outside these hours").fill("Back soon.");
    const widget = section(page, "Widget");
    await widget.getByRole("switch", { name: "Asks questions before the chat" }).click();
    await widget.getByRole("button", { name: "Another question" }).click();
    await widget.getByLabel("Question 2", { exact: true }).fill("Your order");
    await widget.getByLabel("Variable 2").fill("order");
    await widget.getByLabel("Your own texts").fill("person = Ask our shop\nno word");
    await widget.getByRole("switch", { name: "Visitors can attach images and PDF" }).click();
    await widget.locator("input[type=file]").setInputFiles({
      name: "face.png", mimeType: "image/png", buffer: Buffer.from(PICTURE, "base64"),
    });
    await widget.getByAltText("assistant’s picture").waitFor();
    await look();
    const save = page.getByRole("button", { name: "Save", exact: true });
    await save.click();
    // The server minds the hour that is none.
    await people.getByLabel("Monday").and(page.locator("[aria-invalid=true]")).waitFor();
    await people.getByLabel("Monday").fill("09:00-12:00, 13:00-17:00");
    await save.click();
    await save.waitFor({ state: "detached" });
    const { desk, widget_settings: stored } = await settings();
    const office = desk.office_hours as { hours: Record<string, unknown>; [name: string]: unknown };
    assert.equal(office.time_zone, "Asia/Tokyo");
    assert.deepEqual(office.hours.monday, [{ from: "09:00", to: "12:00" }, { from: "13:00", to: "17:00" }]);
    assert.deepEqual(office.hours.saturday, [{ from: "10:00", to: "12:00" }]);
    assert.equal(office.message, "Back soon.");
    assert.deepEqual(stored.form, {
      fields: [
        { name: "email", label: "Your e-mail", type: "email", required: true },
        { name: "order", label: "Your order", type: "text", required: false },
      ],
    });
    assert.deepEqual(stored.texts, { en: { person: "Ask our shop" } });
    assert.equal(stored.attachments, true);
    assert.match(stored.avatar as string, /^data:image\/png;base64,/);
    await go(`/assistants/${id}/embed`);
    await page.getByRole("button", { name: "Create a secret" }).click();
    const secret = await page.getByRole("group", { name: "Identity secret" }).textContent();
    assert.match(secret ?? "", /^[0-9a-f]{64}$/);
    await look();
    await page.reload();
    await page.getByRole("button", { name: "New secret" }).waitFor();
    assert.equal(await page.getByText(secret ?? "", { exact: true }).count(), 0);
  });
});

const log = (page: Page): Locator => page.getByRole("log", { name: "Conversation" });

async function say(page: Page, text: string): Promise<void> {
  await page.getByRole("textbox", { name: "Message", exact: true }).fill(text);
  await page.keyboard.press("Enter");
}

// oxlint-disable-next-line typescript/no-explicit-any
const saved = async (id: number): Promise<any> =>
  (await server.call("GET", `/user/assistant/${id}`)).body;

test("[DB433] unsaved settings answer in the test beside them, side by side on wide screens", { skip, timeout }, async () => {
  const { id } = await newAssistant(server, { system_prompt: "Be saved." });
  await withDashboard(async ({ page, go, look }) => {
    await go(`/assistants/${id}`);
    const prompts: string[] = [];
    model.script(({ messages }) => {
      prompts.push(String(messages[0]?.content));
      return { tokens: [`Answer ${prompts.length}.`] };
    });
    await page.getByLabel("Prompt", { exact: true }).fill("Be a draft.");
    await page.getByLabel("Greeting").fill("Hello from the draft");
    await say(page, "Who are you?");
    await log(page).getByText("Hello from the draft").waitFor();
    await log(page).getByText("Answer 1.").waitFor();
    await page.getByRole("button", { name: "Send" }).waitFor();
    await page.getByLabel("Prompt", { exact: true }).fill("Be another draft.");
    await say(page, "And now?");
    await log(page).getByText("Answer 2.").waitFor();
    await page.getByRole("button", { name: "Send" }).waitFor();
    assert.match(prompts[0] ?? "", /^Be a draft\./);
    assert.match(prompts[1] ?? "", /^Be another draft\./);
    assert.equal((await saved(id)).system_prompt, "Be saved.");
    await look();
    const boxes = async () => {
      const [prompt, test] = await Promise.all([
        section(page, "Basics").boundingBox(), page.getByRole("complementary", { name: "Test" }).boundingBox(),
      ]);
      assert.ok(prompt && test);
      return { prompt, test };
    };
    const wide = await boxes();
    assert.ok(wide.test.x >= wide.prompt.x + wide.prompt.width, "side by side");
    await page.setViewportSize({ width: 390, height: 844 });
    const narrow = await boxes();
    assert.ok(narrow.test.y > narrow.prompt.y && narrow.test.x === narrow.prompt.x, "one under the other");
    // What is wrong in the draft is said in the label's words.
    await page.getByRole("searchbox", { name: "Find a setting" }).fill("max_duration");
    await page.keyboard.press("Enter");
    await page.getByLabel("Longest call (s)").fill("5000");
    await say(page, "Still there?");
    await page.getByRole("alert").getByText("“Longest call (s)” may not be greater than 1200.").waitFor();
    await page.getByLabel("Longest call (s)").fill("500");
    await page.getByRole("button", { name: "Try again" }).click();
    await log(page).getByText("Answer 3.").waitFor();
    await page.getByRole("button", { name: "Send" }).waitFor();
    await page.getByRole("button", { name: "Discard" }).click();
  });
});

test("[DB434] the widget's look, texts and form are edited beside the widget itself, which shows and uses the draft", { skip, timeout }, async () => {
  const { id } = await newAssistant(server, { system_prompt: "Be saved.", initial_message: "Saved" });
  await withDashboard(async ({ page, go, look }) => {
    await go(`/assistants/${id}`);
    await page.getByLabel("Greeting").fill("Hello from the draft");
    await page.getByRole("link", { name: "Widget", exact: true }).click();
    const inner = page.frameLocator("iframe[title='Widget preview']");
    await inner.getByText("Hello from the draft").first().waitFor();
    await page.getByLabel("Colour", { exact: true }).fill("#aa0000");
    await page.getByLabel("Your own texts").fill("send = Off it goes");
    await inner.getByRole("button", { name: "Off it goes" }).waitFor();
    // Drawn anew, it leaves the focus where people write.
    await page.getByLabel("Your own texts").and(page.locator(":focus")).waitFor();
    const prompts: string[] = [];
    model.script(({ messages }) => {
      prompts.push(String(messages[0]?.content));
      return { tokens: ["We are open."] };
    });
    await inner.getByRole("textbox").fill("When?");
    await inner.getByRole("button", { name: "Off it goes" }).click();
    await inner.getByText("We are open.").first().waitFor();
    await look();
    const { body } = await server.call("GET", `/user/conversations?assistant_id=${id}`);
    assert.deepEqual(body.data.map(({ type }: { type: string }) => type), ["test"]);
    await page.getByRole("switch", { name: "Asks questions before the chat" }).click();
    await inner.getByLabel("Your e-mail").waitFor();
    await page.getByLabel("Colour", { exact: true }).fill("red");
    await page.getByRole("alert").getByText("Colour").waitFor();
    // Nothing of it was kept: neither by the server nor by this browser.
    const { widget_settings: look_, initial_message: greeting } = await saved(id);
    assert.deepEqual([look_.color ?? "#2563eb", greeting], ["#2563eb", "Saved"]);
    assert.deepEqual(await page.evaluate(
      "Object.keys(localStorage).filter((name) => name.startsWith('assistant-chat'))"), []);
    await page.getByRole("button", { name: "Discard" }).click();
  });
});
