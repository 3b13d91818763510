// People who go on at once, while the server is still answering: nothing is lost, and nothing is in
// their way once it has.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { noBrowser } from "#support/pages/browser.ts";
import { startDashboard } from "#support/pages/dashboard-page.ts";
import { newAssistant } from "#support/server.ts";

const skip = noBrowser();
const { model, server, withDashboard, close } = await startDashboard();
after(close);

test("[DB540] an assistant submitted before the catalogs have loaded is sent once they have", { skip }, async () => {
  await withDashboard(async ({ page, go }) => {
    const hold = Promise.withResolvers<void>();
    await page.route(/assistants\/voices/, async (route) => {
      await hold.promise;
      await route.continue();
    });
    await go("/assistants");
    await page.getByRole("button", { name: "New assistant" }).click();
    const dialog = page.getByRole("dialog", { name: "New assistant" });
    await dialog.getByLabel("Name").fill("Quick");
    const create = dialog.getByRole("button", { name: "Create" });
    assert.ok(await create.isDisabled());
    hold.resolve();
    await create.click();
    await page.getByRole("heading", { name: "Quick", level: 1 }).waitFor();
  });
});

test("[DB541] leaving a page while changes are being saved waits for the save", { skip }, async () => {
  const { id } = await newAssistant(server, { name: "Early" });
  await withDashboard(async ({ page, go }) => {
    const hold = Promise.withResolvers<void>();
    await page.route(/user\/assistant\/\d+$/, async (route) => {
      if (route.request().method() === "PATCH") await hold.promise;
      await route.continue();
    });
    await go(`/assistants/${id}`);
    await page.getByLabel("Name", { exact: true }).first().fill("Late");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByRole("link", { name: "Calls" }).click();
    await page.getByRole("dialog", { name: "Leave without saving?" }).waitFor();
    hold.resolve();
    await page.getByRole("heading", { name: "Calls", level: 1 }).waitFor();
    assert.equal((await server.call("GET", `/user/assistant/${id}`)).body.name, "Late");
  });
});

test("[DB577] a test chat message that is too long is marked as such, neither sent nor truncated", { skip }, async () => {
  const { id } = await newAssistant(server);
  await withDashboard(async ({ page, go }) => {
    const message = page.getByRole("textbox", { name: "Message", exact: true });
    await go(`/assistants/${id}`);
    const long = `${"word ".repeat(500)}end`;
    await message.fill(long);
    await page.getByText("This is too long: 2,503 of at most 2,000 characters.").waitFor();
    await message.press("Enter");
    assert.equal(await message.inputValue(), long);
    await message.fill("Short");
    await message.press("Enter");
    await page.getByRole("log", { name: "Conversation" }).getByText("Short").waitFor();
  });
});

test("[DB578] the test chat shows why there was no reply", { skip }, async () => {
  const { id } = await newAssistant(server);
  model.script(() => ({ status: 401 }));
  await withDashboard(async ({ page, go }) => {
    await go(`/assistants/${id}`);
    const message = page.getByRole("textbox", { name: "Message", exact: true });
    await message.fill("Hello");
    await message.press("Enter");
    await page.getByText("the model server answered 401: scripted 401").waitFor();
  });
});
