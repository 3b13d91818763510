// What a screen reader is told of what comes by itself: each thing once.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { noBrowser } from "#support/pages/browser.ts";
import { startDashboard } from "#support/pages/dashboard-page.ts";
import { newAssistant, newConversation } from "#support/server.ts";

const skip = noBrowser();
const { server, withDashboard, close } = await startDashboard();
after(close);

/** As browsers take changes of live regions: all of an atomic region, else what was added. */
const LISTEN = `{
  const REGION = "[aria-live], [role=status], [role=alert], [role=log], [role=timer]";
  const isAtomic = (region) => (region.getAttribute("aria-atomic")
    ?? String(region.matches("[role=status], [role=alert]"))) === "true";
  window.said = [];
  new MutationObserver((records) => {
    const read = new Set();
    for (const { target, addedNodes } of records) {
      const region = (target.closest ? target : target.parentElement)?.closest(REGION);
      if (region?.matches("[role=timer], [aria-live=off]")) continue;
      if (region && isAtomic(region)) read.add(region);
      else if (region) {
        (addedNodes.length > 0 ? addedNodes : [target]).forEach((one) => read.add(one));
      } else for (const node of addedNodes) {
        if (node.matches?.(REGION)) read.add(node);
        node.querySelectorAll?.(REGION).forEach((one) => read.add(one));
      }
    }
    for (const one of read) said.push(one.textContent);
  }).observe(document.body, { childList: true, characterData: true, subtree: true });
}`;
const times = (words: string): string => `said.filter((one) => one.includes("${words}")).length`;

test("[DB755] a toast is announced once, even if another one appears meanwhile", { skip }, async () => {
  const { uuid } = await newAssistant(server, { status: "active" });
  const conversation = await newConversation(server, uuid);
  await withDashboard(async ({ page, go }) => {
    await page.clock.install();
    await go(`/inbox/${conversation}`);
    await page.evaluate(LISTEN);
    await page.getByRole("button", { name: "Take over" }).click();
    const notes = page.locator(".toasts p");
    await notes.filter({ hasText: "You have it now." }).waitFor();
    await page.getByRole("button", { name: "Hand back" }).click();
    await notes.filter({ hasText: "The assistant has it again." }).waitFor();
    assert.equal(await notes.count(), 2);
    for (const words of ["You have it now.", "The assistant has it again."]) {
      assert.equal(await page.evaluate(times(words)), 1, words);
    }
  });
});

test("[DB756] a waiting page is announced once, not every second", { skip }, async () => {
  await withDashboard(async ({ page, go }) => {
    let asked = 0;
    await page.route("**/api/user/tools", (route) => (asked += 1) > 1
      ? route.continue()
      : route.fulfill({
        status: 429, headers: { "Retry-After": "3" }, json: { message: "Too Many Requests" },
      }));
    await page.evaluate(LISTEN);
    await go("/tools");
    const words = page.getByRole("status").filter({ hasText: "waits and continues by itself" });
    await words.filter({ hasText: "in 3 s." }).waitFor();
    await words.filter({ hasText: "in 1 s." }).waitFor();
    assert.equal(await page.evaluate(times("waits and continues by itself")), 1);
    await words.waitFor({ state: "detached" });
  });
});

test("[DB791] a question before something that cannot be taken back is read out with what it would do", { skip }, async () => {
  const { id } = await newAssistant(server);
  await withDashboard(async ({ page, go }) => {
    await go(`/assistants/${id}`);
    await page.getByRole("button", { name: "Delete", exact: true }).click();
    const described = await page.getByRole("dialog").getAttribute("aria-describedby") ?? "";
    const text = page.locator(`[id="${described}"]`);
    assert.match(await text.textContent() ?? "", /^It stops answering .+cannot be undone\.$/);
  });
});
