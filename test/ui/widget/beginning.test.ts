// How a chat begins: the questions before it, which the server minds, and the greeting that comes
// by itself.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { isOn } from "#ui/widget/greeting.ts";
import { noBrowser } from "#support/browser.ts";
import { newAssistant } from "#support/server.ts";
import { startWorld } from "#support/widget-page.ts";

const skip = noBrowser();
const { server, withWidget, close } = await startWorld();
after(close);

const form = {
  title: "Who is it?",
  fields: [
    { name: "email", label: "Your e-mail", type: "email", required: true },
    { name: "phone", label: "Telephone", type: "tel" },
  ],
};

test("[WG221] no chat begins without the answers the assistant requires, whoever asks the server", async () => {
  const { uuid } = await newAssistant(server, { widget_settings: { form } });
  const create = (variables: object, type = "widget") =>
    server.call("POST", "/conversations", { body: { assistant_id: uuid, variables, type } });
  for (const variables of [{}, { email: " " }, { email: "ada" }, { email: "a@b.example", phone: "no" }]) {
    const { status } = await create(variables);
    assert.equal(status, 422, JSON.stringify(variables));
  }
  assert.equal((await create({ email: "a@b.example", phone: "+49 30 1234567" })).status, 200);
  assert.equal((await create({ email: "a@b.example" })).status, 200);
  // The owner's own test is no visitor.
  assert.equal((await create({}, "test")).status, 200);
  const wrong = await server.call("POST", "/user/assistant", {
    body: { name: "A", widget_settings: { form: { fields: [{ name: "a b", label: "x" }] } } },
  });
  assert.equal(wrong.status, 422);
});

test("[WG222] the questions of the settings are asked, and their answers are the conversation's variables", { skip }, async () => {
  await withWidget({ settings: { widget_settings: { form } } }, async (seen) => {
    const { page } = seen;
    await seen.launcher.click();
    await page.getByText("Who is it?").waitFor();
    await page.getByLabel("Telephone (optional)").waitFor();
    await page.getByLabel("Your e-mail").fill("ada@shop.example");
    const made = page.waitForResponse((response) =>
      response.url().endsWith("/api/conversations") && response.ok());
    await page.getByRole("button", { name: "Start the chat" }).click();
    const { conversation_id: uuid } = await (await made).json() as { conversation_id: string };
    await seen.box.waitFor();
    const { body } = await server.call("GET", `/conversations/${uuid}`);
    assert.deepEqual(body.variables, { email: "ada@shop.example" });
  });
});

test("[WG223] the greeting comes by itself on the pages it is for, and not twice to one visitor", { skip }, async () => {
  assert.equal(isOn(["/shop/*"], "/shop/bikes"), true);
  assert.equal(isOn(["/shop", "/cart"], "/shop/bikes"), false);
  assert.equal(isOn([], "/"), true);
  const greeting = { text: "May we help you?", after_seconds: 0 };
  await withWidget({ settings: { widget_settings: { greeting } } }, async (seen) => {
    const { page } = seen;
    const words = page.getByRole("button", { name: "May we help you?" });
    await words.waitFor();
    await page.reload();
    await seen.launcher.waitFor();
    await page.waitForTimeout(300);
    assert.equal(await words.isVisible(), false);
    // As if it had been long ago.
    await page.evaluate(`for (const key of Object.keys(localStorage)) {
      if (key.includes("greeted")) localStorage.setItem(key, "1");
    }`);
    await page.reload();
    await words.click();
    await seen.box.waitFor();
    assert.equal(await words.isVisible(), false);
  });
  await withWidget({
    settings: { widget_settings: { greeting: { ...greeting, pages: ["/elsewhere"] } } },
  }, async (seen) => {
    await seen.launcher.waitFor();
    await seen.page.waitForTimeout(300);
    assert.equal(await seen.page.getByText("May we help you?").isVisible(), false);
  });
});
