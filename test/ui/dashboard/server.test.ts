// The dashboard's page of the server in a real browser: one process alone, then nodes that come,
// drain and go.
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { after, test } from "node:test";
import { VERSION } from "#core/version.ts";
import { withoutPostgres } from "#support/engines.ts";
import { noBrowser } from "#support/pages/browser.ts";
import { startDashboard } from "#support/pages/dashboard-page.ts";
import { openPostgres } from "#storage/engines/postgres/storage.ts";
import { virginDatabase } from "#support/databases/virgin-database.ts";
import { testDataDir } from "#support/server.ts";

const skip = noBrowser();

test("[DB380] a single-process server says so, with its version and start time, and is in no menu", { skip }, async () => {
  const { withDashboard, server, close } = await startDashboard();
  await withDashboard(async ({ page, look }) => {
    await page.getByRole("link", { name: "Live" }).click();
    await page.getByText("One process serves everything from one file: there are no other nodes.").waitFor();
    assert.equal(await page.getByRole("heading", { name: /^Node/ }).count(), 0);
    const card = page.locator(".card", { hasText: "This server" });
    const facts = (await card.locator("dl").innerText()).replace(/\s+/g, " ");
    assert.match(facts, new RegExp(`Version ${VERSION} Up since .*Live calls 0 .*Documents waiting to be read 0`));
    assert.equal(await page.getByRole("navigation").getByText("Server").count(), 0);
    await look();
  });
  await server.newAccount();
  const { status, body } = await server.call("GET", "/user/server");
  assert.deepEqual([status, body.message], [403,
    "This server has several accounts: only its operator can see its nodes, by /metrics and parley doctor."]);
  await close();
});

test("[DB381] nodes are cards with their calls, streams and leases, and a draining one is marked", { skip: skip || withoutPostgres }, async () => {
  const database = await virginDatabase("page");
  const dataDir = testDataDir();
  const { withDashboard, close } = await startDashboard({
    PARLEY_DATABASE_URL: database.url, PARLEY_NODE_URL: "https://one.example.org",
  });
  after(() => rmSync(dataDir, { recursive: true, force: true }));
  const other = await openPostgres({ url: database.url, writesMax: 10, isSmall: true });
  const otherId = await other.join({ name: "two.internal:812", url: null, protocol: 1 });
  const beat = async (state: "live" | "draining"): Promise<void> => {
    const now = await other.nodes.clock();
    await other.nodes.beat({ state, calls: 2, streams: 7, now, leaseUntil: now + 600_000_000 });
  };
  await beat("live");
  await withDashboard(async ({ page, go, look }) => {
    await go("/server");
    const card = page.locator(".card", { hasText: "two.internal:812" });
    await card.getByText("Live", { exact: true }).waitFor();
    await card.getByText("7", { exact: true }).waitFor();
    await page.locator(".card", { hasText: "https://one.example.org" })
      .getByText("clock", { exact: true }).waitFor();
    await look();
    await beat("draining");
    await page.getByText(`Node ${otherId} (two.internal:812) is draining`).waitFor();
    await look();
    await other.nodes.leave({ now: await other.nodes.clock() });
    await card.getByText("Dead", { exact: true }).waitFor();
  });
  await other.close();
  await close();
  await database.drop();
});
