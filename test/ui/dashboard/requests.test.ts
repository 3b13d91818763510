// What the dashboard asks the server for, with the limits every account has: few requests for each
// page, none twice, and words where it has to wait.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Page, Request } from "playwright-core";
import { noBrowser } from "#support/pages/browser.ts";
import { drawn, startDashboard } from "#support/pages/dashboard-page.ts";
import { newAssistant, newConversation } from "#support/server.ts";

const skip = noBrowser();
const timeout = 180_000;
const { model, server, withDashboard, close } = await startDashboard({
  PARLEY_RATE_LIMITS: "on", PARLEY_RATE_KEY_PER_MINUTE: "100", PARLEY_RATE_KEY_BURST: "20",
});
after(close);

/** What the page asks the API for, and what of it was refused. */
function requestsOf(page: Page) {
  const asked: string[] = [];
  const refused: string[] = [];
  const open = new Set<Request>();
  let wake = (): void => undefined;
  page.on("request", (request) => {
    // What a page that is left had asked for is not counted with the next one's.
    if (request.isNavigationRequest()) asked.length = 0;
    const { pathname, search } = new URL(request.url());
    if (!pathname.startsWith("/api/")) return;
    asked.push(`${request.method()} ${pathname}${search}`);
    if (!pathname.endsWith("/stream")) open.add(request);
  });
  const over = (request: Request): void => {
    open.delete(request);
    wake();
  };
  page.on("requestfinished", over);
  page.on("requestfailed", over);
  page.on("response", (response) => {
    if (response.status() >= 400) refused.push(`${response.status()} ${response.url()}`);
  });
  return {
    asked, refused,
    /** All of it is answered, but for streams, and nothing more was asked because of an answer. */
    settled: async (): Promise<void> => {
      for (let before = -1; before !== asked.length;) {
        while (open.size > 0) await new Promise<void>((resolve) => (wake = resolve));
        before = asked.length;
        await idle(page);
      }
    },
  };
}

/** What is shown asks after it was painted, when the page has nothing else to do. */
const idle = async (page: Page): Promise<void> => {
  await drawn(page);
  await page.evaluate("new Promise((done) => requestIdleCallback(() => done()))");
};

/** However long the walk takes, what is fresh for a minute stays so. */
const ONE_MOMENT = "performance.now = () => 0;";

test("[DB257] signing in and visiting all pages takes few requests, fewer the second time, and none is refused", { skip, timeout }, async () => {
  const { id, uuid } = await newAssistant(server);
  model.script(() => ({ tokens: ["Good day."] }));
  const talk = await newConversation(server, uuid);
  await server.call("POST", `/conversations/${talk}/messages`, { body: { message: "Hi" } });
  /** The most requests of each page: the first time, and when one comes back. */
  const pages: [path: string, heading: string, first: number, again: number][] = [
    ["/assistants", "Assistants", 6, 1],
    [`/assistants/${id}`, "Front desk", 3, 1],
    [`/assistants/${id}/test`, "Front desk", 0, 0],
    [`/assistants/${id}/embed`, "Front desk", 1, 1],
    ["/calls", "Calls", 2, 2],
    ["/conversations", "Conversations", 1, 1],
    [`/conversations/${talk}`, "", 4, 4],
    ["/knowledgebases", "Knowledge", 1, 1],
    ["/tools", "Tools", 1, 1],
    ["/numbers", "Numbers", 2, 0],
    ["/numbers/buy", "Numbers", 1, 1],
    ["/numbers/sip-trunks", "Numbers", 1, 1],
    ["/campaigns", "Campaigns", 1, 0],
    ["/leads", "Leads", 1, 1],
    ["/leads/blocked", "", 1, 1],
    ["/webhooks", "Webhooks", 1, 1],
    ["/webhooks/deliveries", "Webhooks", 2, 2],
    ["/ledger", "Ledger", 2, 2],
    ["/keys", "API keys", 1, 1],
    ["/", "Overview", 3, 3],
  ];
  await withDashboard(async ({ page, go }) => {
    const { asked, refused, settled } = requestsOf(page);
    const main = page.getByRole("main");
    const isWhole = async (heading: string): Promise<void> => {
      await main.getByRole("heading", { level: 1, name: heading }).waitFor();
      await main.getByLabel("Loading").first().waitFor({ state: "detached" });
      await settled();
    };
    await page.addInitScript(ONE_MOMENT);
    // What the page before it still asks is not counted.
    await page.goto(`${server.url}/livez`);
    asked.length = 0;
    await page.goto(server.url);
    await isWhole("Overview");
    // A session, its stream, the account; what the overview shows, and the assistants its charts
    // are narrowed to.
    assert.ok(asked.length <= 8, asked.join(", "));
    assert.equal(new Set(asked).size, asked.length, asked.join(", "));
    for (const round of ["first", "again"] as const) {
      for (const [path, heading, first, again] of pages) {
        asked.length = 0;
        await go(path);
        await isWhole(heading);
        const most = round === "first" ? first : again;
        assert.ok(asked.length <= most, `${round} ${path}: ${asked.join(", ")}`);
      }
    }
    assert.deepEqual(refused, []);
  });
});

test("[DB258] a page that is rate-limited says so and continues by itself", { skip, timeout }, async () => {
  await withDashboard(async ({ page, go, look }) => {
    const { promise: seen, resolve: isSeen } = Promise.withResolvers<void>();
    let asked = 0;
    await page.route("**/api/user/tools", async (route) => {
      asked += 1;
      if (asked > 2) return route.continue();
      // It waits on until the words were looked at.
      if (asked === 2) await seen;
      await route.fulfill({
        status: 429, headers: { "Retry-After": asked === 1 ? "1" : "3" },
        json: { message: "Too Many Requests" },
      });
    });
    await go("/tools");
    const words = page.getByRole("status").filter({ hasText: "waits and continues by itself" });
    await words.waitFor();
    await words.waitFor({ state: "detached" });
    isSeen();
    await words.waitFor();
    await look();
    await page.getByText("No tools yet").or(page.getByRole("table")).first().waitFor();
    await words.waitFor({ state: "detached" });
    assert.equal(asked, 3);
  });
});
