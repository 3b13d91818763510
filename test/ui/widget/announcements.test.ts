// What the chat announces to screen readers while a reply is written, in a real browser.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { noBrowser, until } from "#support/pages/browser.ts";
import { isAnswered, open, startWorld } from "#support/pages/widget-page.ts";

const skip = noBrowser();
const { withWidget, held, close } = await startWorld();
after(close);

/** Keeps in `lines` what is announced to screen readers, and in `told` its words. */
const TOLD = `{
  const region = document.querySelector("assistant-chat").shadowRoot.querySelector("[aria-live=polite]");
  window.lines = [...region.children].map((line) => line.textContent);
  window.told = lines.map((line) => line.trim());
  new MutationObserver((changes) => changes.forEach(({ addedNodes }) =>
    addedNodes.forEach((line) => {
      lines.push(line.textContent);
      told.push(line.textContent.trim());
    }))).observe(region, { childList: true });
}`;

test("[WG16] screen readers announce whole sentences, each once", { skip }, async () => {
  await withWidget({}, async (seen) => {
    // A panel that comes late finds the greeting there.
    const greeted = seen.page.waitForResponse(/\/stream\?after=/);
    await seen.page.route("**/widget-chat.js", (route) => greeted.then(() => route.continue()));
    await open(seen);
    await seen.page.evaluate(TOLD);
    const reply = held(4, ["**We open", "** at nine. ", "On Sun", "days we are ", "closed"]);
    await seen.say("Hello");
    await until(seen.page, `told.includes("We open at nine.")`);
    reply.go();
    await isAnswered(seen);
    await until(seen.page, "told.length >= 3");
    assert.deepEqual(await seen.page.evaluate("told"), [
      "Hi!", "We open at nine.", "On Sundays we are closed",
    ]);
  });
});

test("[WG322] screen readers announce words, not the marks of lists, tables, quotes and code", { skip }, async () => {
  await withWidget({}, async (seen) => {
    await open(seen);
    await seen.page.evaluate(TOLD);
    const reply = held(4, [
      "1. ", "Tea", "\n2. ", "Milk\n\n", "| Day | Open |\n|---|:--|\n| Monday | nine |\n\n> So it",
      " is.\n\n---\n\n```js\nlet tea;\n```\n\n~~Ten~~ **Nine**",
    ]);
    await seen.say("Hello");
    await until(seen.page, `told.some((line) => line.includes("Tea"))`);
    reply.go();
    await isAnswered(seen);
    await until(seen.page, `told.at(-1).includes("Nine")`);
    const told = await seen.page.evaluate<string[]>("told");
    assert.equal(told.slice(told.indexOf("Hi!") + 1).join(" ").replaceAll(/\s+/g, " "),
      "1. Tea 2. Milk Day, Open Monday, nine So it is. let tea; Ten Nine");
    assert.deepEqual(told.filter((line) => /^\d+\.$/.test(line)), []);
  });
});

test("[WG323] no announcement has the very text of a line in the log", { skip }, async () => {
  await withWidget({}, async (seen) => {
    await open(seen);
    await seen.page.evaluate(TOLD);
    const reply = held(1, ["Yes, we do.\n\nShall", " I book one?"]);
    await seen.say("Hello");
    await until(seen.page, `told.includes("Yes, we do.")`);
    reply.go();
    await isAnswered(seen);
    await until(seen.page, `told.includes("Shall I book one?")`);
    const shown = await seen.log.locator("p").allTextContents();
    assert.deepEqual(shown, ["Hi!", "Yes, we do.", "Shall I book one?"]);
    const lines = await seen.page.evaluate<string[]>("lines");
    assert.deepEqual(lines.filter((line) => shown.includes(line)), []);
  });
});
