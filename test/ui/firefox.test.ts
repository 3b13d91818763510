// Firefox, where it is installed: the ways that everybody takes, and what only Firefox got wrong.
// All other tests of pages run in Chromium.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { getDocument } from "pdfjs-dist/legacy/build/pdf.mjs";
import { startDashboard } from "#support/pages/dashboard-page.ts";
import { noFirefox } from "#support/pages/firefox.ts";
import { isAnswered, open, startWorld } from "#support/pages/widget-page.ts";
import { onlyProof } from "#support/proof.ts";
import { newAssistant, newConversation } from "#support/server.ts";

process.env.TEST_BROWSER = "firefox";
const skip = noFirefox();
const dashboard = await startDashboard();
const widget = await startWorld("beeps");
// Other files of the same process want Chromium.
delete process.env.TEST_BROWSER;
after(async () => {
  await dashboard.close();
  await widget.close();
});

test("[FX1] in Firefox the dashboard is live in several tabs at once", { skip: skip || onlyProof }, async () => {
  await dashboard.withDashboard(async ({ page }) => {
    const second = await page.context().newPage();
    await second.goto(`${dashboard.server.url}/livez`);
    await second.evaluate(`sessionStorage.setItem("parley-api-key", "${dashboard.server.key}")`);
    for (const tab of [page, second]) {
      await tab.goto(`${dashboard.server.url}/#/conversations`);
      await tab.getByText("Live", { exact: true }).waitFor();
    }
    const { uuid } = await newAssistant(dashboard.server);
    const made = await newConversation(dashboard.server, uuid);
    for (const tab of [page, second]) {
      await tab.getByRole("row", { name: made.slice(0, 8) }).waitFor();
    }
  });
});

test("[FX2] in Firefox the widget answers, survives a reload and hears a call", { skip }, async () => {
  await widget.withWidget({ settings: { post_call_evaluation: false } }, async (seen) => {
    const { page, log, replies } = seen;
    widget.model.script(() => ({ tokens: ["At ", "**nine**."] }));
    await open(seen);
    await seen.say("When do you open?");
    await log.getByText("At nine.").waitFor();
    await isAnswered(seen);
    await page.reload();
    await log.getByText("At nine.").waitFor();
    assert.deepEqual(await replies(), ["Hi!", "At nine."]);
    const call = page.getByRole("group", { name: "Call" });
    await page.getByRole("button", { name: "Start a call", exact: true }).click();
    // Drawn when the server has sent it: that it is heard needs a device, which tests have not.
    await log.getByText("Hi!").nth(1).waitFor();
    await page.getByRole("button", { name: "Hang up" }).click();
    await call.waitFor({ state: "detached" });
    await log.getByText("The call has ended.").waitFor();
  });
});

test("[FX3] in Firefox a day in a list's filters is fully readable at 1280 px", { skip }, async () => {
  await dashboard.withDashboard(async ({ page, go }) => {
    await page.setViewportSize({ width: 1280, height: 800 });
    await go("/calls");
    for (const label of ["From day", "To day"]) {
      const day = page.getByLabel(label);
      await day.fill("2026-11-23");
      // As wide as the browser would make it by itself.
      assert.deepEqual(await day.evaluate((input) => {
        const given = input.getBoundingClientRect().width;
        input.style.width = "max-content";
        const wanted = input.getBoundingClientRect().width;
        input.style.width = "";
        return given >= wanted ? "whole" : `${given} of ${wanted} px`;
      }), "whole");
    }
  });
});

test("[DB700] in Firefox a printed conversation starts on the first page, not below an empty one", { skip: skip || onlyProof }, async () => {
  const { model, server, withDashboard } = dashboard;
  model.script(() => ({ tokens: ["Line\n\n".repeat(20)] }));
  const { uuid } = await newAssistant(server, { initial_message: "Good morning." });
  const talk = await newConversation(server, uuid);
  for (const message of ["One?", "Two?", "Three?", "Four?"]) {
    await server.call("POST", `/conversations/${talk}/messages`, { body: { message } });
  }
  await withDashboard(async ({ page, go }) => {
    for (const path of ["/conversations/", "/inbox/"]) {
      await go(path + talk);
      await page.getByText("Four?").first().waitFor();
      // A4: Playwright takes its inches for Firefox's centimetres.
      const data = new Uint8Array(await page.pdf({ width: "21in", height: "29.7in" }));
      const first = await (await getDocument({ data }).promise).getPage(1);
      const { items } = await first.getTextContent();
      const words = items.map((item) => "str" in item ? item.str : "").join(" ");
      assert.match(words, /Good morning\./, path);
    }
  });
});
