// Where dialogs stand, and how what is in them is laid out.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Locator } from "playwright-core";
import { noBrowser } from "#support/pages/browser.ts";
import { startDashboard } from "#support/pages/dashboard-page.ts";

const skip = noBrowser();
const { server, withDashboard, close } = await startDashboard();
after(close);

const boxOf = async (element: Locator) => await element.boundingBox() ?? assert.fail();

test("[UI301] a dialog is in the middle of the window, wherever on the page it is opened", { skip }, async () => {
  const { body } = await server.call("POST", "/user/knowledgebases", { body: { name: "Rules" } });
  await withDashboard(async ({ page, go }) => {
    await page.setViewportSize({ width: 1280, height: 800 });
    for (const [path, opens] of [
      ["/knowledgebases", "New knowledgebase"], [`/knowledgebases/${body.data.id}`, "Rename"],
      ["/keys", "New key"],
    ] as const) {
      await go(path);
      await page.getByRole("button", { name: opens }).click();
      const { y, height } = await boxOf(page.getByRole("dialog"));
      assert.ok(Math.abs(y - (800 - y - height)) <= 1, `${opens}: ${y}, ${height}`);
      await page.keyboard.press("Escape");
      await page.getByRole("dialog").waitFor({ state: "detached" });
    }
  });
});

test("[UI302] the first question's label keeps its distance from the title above it", { skip }, async () => {
  const { body } = await server.call("POST", "/user/knowledgebases", { body: { name: "Asked" } });
  await withDashboard(async ({ page, go }) => {
    await go(`/knowledgebases/${body.data.id}`);
    await page.getByRole("button", { name: "Add questions" }).click();
    const title = await boxOf(page.getByLabel("Title"));
    const label = await boxOf(page.getByText("Question 1", { exact: true }));
    assert.ok(label.y - title.y - title.height >= 10, `${label.y}, ${title.y + title.height}`);
  });
});
