// Pages whose own libraries are hard on the widget: they rewrite what every script uses, take what
// is scrolled and typed for theirs, and put the page together anew.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { noBrowser } from "#support/browser.ts";
import { isAnswered, open, startWorld } from "#support/widget-page.ts";

const skip = noBrowser();
const { withWidget, close } = await startWorld();
after(close);

test("[WG312] on a page of Prototype.js, whose lists have other `entries`, the chat is opened and answers", { skip }, async () => {
  const prepare = "Array.prototype.entries = function () { return this.slice(); };";
  await withWidget({ prepare }, async (seen) => {
    await open(seen);
    await seen.say("Hello");
    await isAnswered(seen);
    assert.equal((await seen.replies()).length, 2);
  });
});
