// The dashboard's frame in a real browser: signing in and out, the connection and what is stale,
// themes, keyboards, long lists.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { noBrowser } from "./support/browser.ts";
import { startDashboard } from "./support/dashboard-page.ts";

const skip = noBrowser();
const { withDashboard, close } = await startDashboard();
after(close);

test("[DB1] the frame stands at every width, light and dark", { skip }, async () => {
  await withDashboard(async ({ page, look }) => {
    await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor();
    await look();
    assert.equal(await page.title(), "Overview · Parley");
  });
});
