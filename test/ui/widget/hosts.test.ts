// Pages that are hard on the widget: they have its tag twice, take it out and put it in again, and
// put another body in place of their own.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Page } from "playwright-core";
import { noBrowser, until } from "#support/browser.ts";
import { isAnswered, open, startWorld } from "#support/widget-page.ts";

const skip = noBrowser();
const timeout = 120_000;
const { server, withWidget, held, close } = await startWorld();
after(close);

/** A page that may add tags by script, as those of tag managers and frameworks do. */
const LAX = { headers: { "content-security-policy": "default-src * data: 'unsafe-inline'" } };

/** Adds one more tag; resolves once its script has run. */
const addTag = (page: Page, uuid: string, place: "head" | "body", isKept = true): Promise<unknown> =>
  page.evaluate(`new Promise((done) => {
    const script = document.createElement("script");
    script.src = ${JSON.stringify(`${server.url}/widget.js`)};
    script.dataset.assistant = ${JSON.stringify(uuid)};
    script.onload = done;
    document.${place}.append(script);
    if (!${isKept}) script.remove();
  })`);

test("[WG235] an assistant whose tag is on the page twice is there once, and not at all where the tag was gone before it came", { skip, timeout }, async () => {
  await withWidget({ ...LAX }, async (seen, uuid) => {
    await open(seen);
    await addTag(seen.page, uuid, "body");
    await seen.log.getByText("Hi!").waitFor();
    assert.equal(await seen.page.locator("assistant-chat").count(), 1);
    await seen.page.evaluate(`document.querySelector("assistant-chat").remove()`);
    await addTag(seen.page, uuid, "body", false);
    assert.equal(await seen.page.locator("assistant-chat").count(), 0);
  });
});

test("[WG236] a widget that is taken out of the page lets go of its stream, and goes on when it is put back", { skip, timeout }, async () => {
  await withWidget({}, async (seen) => {
    const reply = held(2);
    await open(seen);
    await seen.say("Hello");
    await seen.log.getByText("One two", { exact: true }).waitFor();
    await seen.box.fill("Not sent yet");
    const gone = seen.page.waitForEvent("requestfailed", {
      predicate: (request) => request.url().includes("/stream?"), timeout: 10_000,
    });
    await seen.page.evaluate(
      `(window.taken = document.querySelector("assistant-chat")).remove()`);
    await gone;
    await seen.page.evaluate("document.body.append(taken)");
    reply.go();
    await seen.log.getByText("One two three four.").waitFor();
    await isAnswered(seen);
    assert.equal(await seen.box.inputValue(), "Not sent yet");
    assert.deepEqual(await seen.replies(), ["Hi!", "One two three four."]);
    assert.equal(await seen.log.locator(".item.user").count(), 1);
  });
});

test("[WG237] a page that puts another body in place of its own keeps the widget whose tag is in the head", { skip, timeout }, async () => {
  await withWidget({ ...LAX, script: null }, async (seen, uuid) => {
    await addTag(seen.page, uuid, "head");
    const reply = held(2);
    await open(seen);
    await seen.say("Hello");
    await seen.log.getByText("One two", { exact: true }).waitFor();
    await seen.page.evaluate(`{
      const next = document.createElement("body");
      next.append("The next page");
      document.body.replaceWith(next);
    }`);
    reply.go();
    await seen.log.getByText("One two three four.").waitFor();
    assert.equal(await seen.page.locator("body > assistant-chat").count(), 1);
    await seen.page.evaluate(`{
      document.querySelector("head script").remove();
      document.body.replaceWith(document.createElement("body"));
    }`);
    await until(seen.page, `document.querySelector("assistant-chat") === null`);
  });
});
