// The page of API keys where its reader is in another time zone than the account.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { noBrowser } from "#support/browser.ts";
import { startDashboard } from "#support/dashboard-page.ts";

const skip = noBrowser();
const { server, withDashboard, close } = await startDashboard();
after(close);

test("[DB542] the last day of a key ends where the account is", { skip }, async () => {
  const { key } = await server.newAccount();
  await server.call("PUT", "/user/settings", { key, body: { time_zone: "Pacific/Auckland" } });
  await withDashboard(async ({ page, go }) => {
    await go("/keys");
    await page.getByRole("button", { name: "New key" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill("Until January");
    await dialog.getByLabel("Expires").selectOption("day");
    await dialog.getByLabel("Last day").fill("2099-01-15");
    await dialog.getByRole("button", { name: "Create" }).click();
    await dialog.getByLabel("Token").waitFor();
    const { api_keys: keys } = (await server.call("GET", "/user/api-keys", { key })).body;
    const made = keys.find(({ name }: { name: string }) => name === "Until January");
    // Auckland is 13 hours ahead in January.
    assert.equal(Date.parse(made.expires_at), Date.parse("2099-01-15T10:59:59Z"));
  }, { key, context: { timezoneId: "America/New_York" } });
});
