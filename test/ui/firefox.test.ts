// Firefox, where it is installed: the ways that everybody takes, and what only Firefox got wrong.
// All other tests of pages run in Chromium.
import { after, test } from "node:test";
import { noFirefox } from "#support/firefox.ts";
import { startDashboard } from "#support/dashboard-page.ts";
import { newAssistant, newConversation } from "#support/server.ts";

process.env.PARLEY_TEST_BROWSER = "firefox";
const skip = noFirefox();
const dashboard = await startDashboard();
after(dashboard.close);

test("[FX1] in Firefox the dashboard is live in several tabs at once", { skip }, async () => {
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
