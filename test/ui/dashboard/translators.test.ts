// The dashboard while the browser translates it: what translators do to a page, done by a script.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { noBrowser } from "#support/pages/browser.ts";
import { startDashboard } from "#support/pages/dashboard-page.ts";
import { newAssistant, newConversation } from "#support/server.ts";

const skip = noBrowser();
const { server, model, withDashboard, close } = await startDashboard();
after(close);

/** As Chrome's: each text gives way to an element, and new ones do as they come. */
const TRANSLATE = `
  const originals = new Map();
  const translate = (text) => {
    if (!text.data.trim() || text.parentElement?.closest("font, script, style") !== null) return;
    const [outer, inner] = [document.createElement("font"), document.createElement("font")];
    inner.textContent = "«" + text.data + "»";
    outer.append(inner);
    text.replaceWith(outer);
    originals.set(outer, text);
  };
  const translateAll = (root) => {
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    const texts = root instanceof Text ? [root] : [];
    while (walker.nextNode()) texts.push(walker.currentNode);
    texts.forEach(translate);
  };
  const translator = new MutationObserver((records) => records
    .flatMap(({ target, addedNodes }) => [target, ...addedNodes])
    .filter((node) => node.isConnected).forEach(translateAll));
  translator.observe(document.body, { childList: true, characterData: true, subtree: true });
  window.showOriginal = () => {
    translator.disconnect();
    for (const [outer, text] of originals) if (outer.isConnected) outer.replaceWith(text);
  };
  translateAll(document.body);`;

test("[DB746] a page translated by the browser shows changes once, and completely when it shows the original again", { skip }, async () => {
  const { uuid } = await newAssistant(server, { name: "Early" });
  const talk = await newConversation(server, uuid);
  model.script(() => ({ tokens: ["At nine."] }));
  await withDashboard(async ({ page, go }) => {
    await go("/assistants");
    await page.getByText("Early", { exact: true }).waitFor();
    await page.evaluate(TRANSLATE);
    await page.getByText("«Early»", { exact: true }).waitFor();
    await server.call("POST", `/conversations/${talk}/messages`, { body: { message: "When?" } });
    await page.getByText("«$4.99»", { exact: true }).waitFor();
    await page.evaluate('location.hash = "#/calls"');
    await page.getByRole("heading", { name: "«Calls»", level: 1 }).waitFor();
    const shown = String(await page.evaluate("document.body.innerText"));
    assert.ok(!shown.includes("$5.00"), shown);
    await page.evaluate("showOriginal()");
    await page.getByRole("heading", { name: "Calls", exact: true, level: 1 }).waitFor();
    assert.doesNotMatch(String(await page.evaluate("document.body.innerText")), /[«»]/);
  });
});

test("[DB747] text removed from a page is removed from its translation too", { skip }, async () => {
  const { uuid } = await newAssistant(server, { name: "Late", desk: { visitor_may_ask: true } });
  const talk = await newConversation(server, uuid);
  await server.call("POST", `/conversations/${talk}/request-human`);
  const type = (typing: boolean) =>
    server.call("POST", `/conversations/${talk}/typing`, { body: { typing } });
  await withDashboard(async ({ page, go }) => {
    await go(`/inbox/${talk}`);
    await page.getByRole("button", { name: "Take over", exact: true }).click();
    await page.getByText("You have this conversation. The assistant is silent.").waitFor();
    await type(true);
    await page.getByText("The visitor is typing…", { exact: true }).waitFor();
    await page.evaluate(TRANSLATE);
    const translated = page.getByText("«The visitor is typing…»", { exact: true });
    await translated.waitFor();
    await type(false);
    await translated.waitFor({ state: "detached", timeout: 15_000 });
    await page.evaluate("showOriginal()");
    assert.equal(await page.getByText("The visitor is typing").count(), 0);
  });
});
