// What a newcomer does with the dashboard, from one end to the other: a document is uploaded, an
// assistant is given it, and answers from it.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { noBrowser } from "#support/pages/browser.ts";
import { startDashboard } from "#support/pages/dashboard-page.ts";
import { newAssistant } from "#support/server.ts";

const skip = noBrowser();
const { model, server, withDashboard, close } = await startDashboard();
after(close);

test("[DB10] a document is uploaded, given to an assistant, and used in its answers", { skip }, async () => {
  const file = join(server.dataDir, "Opening hours.txt");
  writeFileSync(file, "The lighthouse may be visited on Thursdays from four until sunset.\n");
  const { id } = await newAssistant(server, { name: "Keeper" }) as { id: number };
  await withDashboard(async ({ page, go }) => {
    await go("/knowledgebases");
    await page.getByRole("button", { name: /new knowledgebase/i }).first().click();
    await page.getByLabel("Name").fill("Lighthouse");
    await page.getByRole("dialog").getByRole("button", { name: /create/i }).click();
    await page.getByRole("heading", { level: 1, name: "Lighthouse" }).waitFor();
    await page.locator("input[type=file]").setInputFiles(file);
    const row = page.getByRole("row", { name: /Opening hours/ });
    await row.getByText("Active").waitFor();

    await go(`/assistants/${id}`);
    await page.getByRole("button", { name: "Open all sections" }).click();
    await page.getByLabel("Knowledgebase", { exact: true }).selectOption({ label: "Lighthouse" });
    await page.getByLabel("How it is used").selectOption("prompt");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Saved", { exact: true }).first().waitFor();

    model.script(({ messages }) => ({
      tokens: JSON.stringify(messages).includes("Thursdays from four")
        ? ["On Thursdays ", "from four."]
        : ["I do not know."],
    }));
    await page.getByRole("link", { name: "Test chat" }).click();
    const box = page.getByRole("textbox", { name: "Message", exact: true });
    await box.fill("When can I visit?");
    await box.press("Enter");
    await page.getByText("On Thursdays from four.").waitFor();
  });
  const { body } = await server.call("GET", `/user/assistant/${id}`);
  assert.equal((body.data ?? body).knowledgebase_mode, "prompt");
});
