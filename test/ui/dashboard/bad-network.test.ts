// The dashboard where answers are lost, or are a proxy's page instead of the server's.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Page } from "playwright-core";
import { noBrowser } from "#support/browser.ts";
import { startDashboard } from "#support/dashboard-page.ts";
import { memberOf, PASSWORD } from "#support/members.ts";

const skip = noBrowser();
const timeout = 180_000;
const { server, browser, close } = await startDashboard();
after(close);

/** Until what it returns is called, a proxy answers in place of the server. */
async function loseAnswers(page: Page, path: string): Promise<() => Promise<void>> {
  const url = `**/api${path}`;
  await page.route(url, (route) => route.fulfill({
    status: 502, contentType: "text/html", body: "<html><h1>Bad Gateway</h1></html>",
  }));
  return () => page.unroute(url);
}

async function signedIn(page: Page, email: string, path = "/"): Promise<void> {
  await page.goto(`${server.url}/#${path}`);
  await page.getByLabel("E-mail").fill(email);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByText("Live", { exact: true }).waitFor();
}

test("[DB758] who signs out where the server is not reached is told to be signed in still", { skip, timeout }, async () => {
  const ana = await memberOf(server, "builder", server.key);
  const context = await browser!.newContext();
  const page = await context.newPage();
  await signedIn(page, ana.email);
  const other = await context.newPage();
  await other.goto(server.url);
  await other.getByText("Live", { exact: true }).waitFor();
  const reached = await loseAnswers(page, "/auth/logout");
  const out = page.getByRole("button", { name: "Sign out" });
  await out.click();
  await page.getByRole("status").getByText("You are still signed in").waitFor();
  assert.ok(await other.getByText("Live", { exact: true }).isVisible());
  await reached();
  await out.click();
  for (const tab of [page, other]) {
    await tab.getByLabel("E-mail").waitFor();
    await tab.reload();
    await tab.getByLabel("E-mail").waitFor();
  }
  await context.close();
});
