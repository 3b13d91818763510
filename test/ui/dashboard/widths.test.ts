// What has a width of its own: long names, money, times and states at the widths people have.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Page } from "playwright-core";
import { askUntil } from "#support/asking.ts";
import { noBrowser } from "#support/browser.ts";
import { overhangOf, startDashboard } from "#support/dashboard-page.ts";
import { newAssistant, newConversation } from "#support/server.ts";

const skip = noBrowser();
const { model, server, withDashboard, close } = await startDashboard();
after(close);

const NAME = "Zoë Müller-Lüdenscheidt von und zu Hohenfels-Waldburg";

/** Numbers, money and states that are not to be read whole. */
const cutIn = (page: Page): Promise<unknown> => page.evaluate(`
  [...document.querySelectorAll("main td.end, main td .badge")]
    .filter((element) => element.scrollWidth > element.clientWidth)
    .map((element) => element.textContent)`);

test("[DB545] at 1280 px lists cut no number, money or state, and a long name widens nothing on a telephone", { skip }, async () => {
  model.script(() => ({ tokens: ["At nine."] }));
  await server.app.features.accounts.credit(server.accountId, 20_000_000);
  const { uuid } = await newAssistant(server, { name: "Front desk of Harbour Bikes", status: "active" });
  const talk = await newConversation(server, uuid, { variables: { customer_name: NAME } });
  await server.call("POST", `/conversations/${talk}/messages`, { body: { message: "When?" } });
  await server.call("POST", `/user/conversations/${talk}/request-human`);
  const { id: caller } = await newAssistant(server, {
    type: "outbound", status: "active", post_call_evaluation: false,
  });
  // A voicemail answers, and the assistant hangs up.
  const made = await server.call("POST", "/user/make_call", {
    body: { assistant_id: caller, phone_number: "+14155550003" },
  });
  const { call_id: call } = made.body as { call_id: number };
  await askUntil(async () => (await server.call("GET", `/user/calls/${call}`)).body.status,
    (status) => status === "ended_by_assistant");
  await withDashboard(async ({ page, go }) => {
    await page.setViewportSize({ width: 1280, height: 800 });
    await go("/conversations");
    await page.locator("main td .badge", { hasText: "Waits for a person" }).waitFor();
    await page.locator("main td.end").getByText("$0.01").first().waitFor();
    assert.deepEqual(await cutIn(page), []);
    await go("/calls");
    await page.locator("main td .badge", { hasText: "Ended by assistant" }).waitFor();
    assert.deepEqual(await cutIn(page), []);
    await page.setViewportSize({ width: 360, height: 740 });
    await go("/inbox");
    const row = page.getByRole("list", { name: "Conversations" }).getByRole("link");
    await row.waitFor();
    assert.ok(await overhangOf(page) <= 0);
    for (const part of [row.locator("time"), row.locator(".badge")]) {
      const { x, width } = await part.boundingBox() ?? assert.fail();
      assert.ok(x + width <= 360, `ends at ${x + width}`);
    }
  });
});
