// The widget in the dashboard where it is not shown as visitors would see it.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { noBrowser } from "#support/pages/browser.ts";
import { startDashboard } from "#support/pages/dashboard-page.ts";
import { newAssistant } from "#support/server.ts";

const skip = noBrowser();
const { server, withDashboard, close } = await startDashboard();
after(close);

test("[UI300] the preview of a widget that is switched off says so, and switches it on again", { skip }, async () => {
  const { id } = await newAssistant(server, {
    initial_message: "Back again", widget_settings: { enabled: false, theme: "dark" },
  });
  await withDashboard(async ({ page, go, look }) => {
    const isOff = page.getByText("The widget is switched off: visitors do not see it.");
    await go(`/assistants/${id}/embed`);
    await isOff.waitFor();
    await go(`/assistants/${id}/widget`);
    await isOff.waitFor();
    await look();
    await page.getByRole("button", { name: "Switch it on" }).click();
    const inner = page.frameLocator("iframe[title='Widget preview']");
    await inner.getByText("Back again").first().waitFor();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Saved", { exact: true }).waitFor();
    const { body } = await server.call("GET", `/user/assistant/${id}`);
    const { enabled, theme } = body.widget_settings;
    assert.deepEqual([enabled, theme], [true, "dark"]);
  });
});
