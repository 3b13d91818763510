// The manners of Safari and what iPhones of some years ago lack, put on to Chromium: what WebKitGTK
// does not do as Safari does cannot be seen in it (../webkit.test.ts).
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { noBrowser, until } from "#support/pages/browser.ts";
import { isAnswered, open, startWorld } from "#support/pages/widget-page.ts";

const skip = noBrowser();
const timeout = 180_000;
const { model, withWidget, close } = await startWorld();
after(close);

/** A pressed button takes no focus, and what had it loses it, unless the page forbids. */
const UNFOCUSED = `addEventListener("mousedown", (event) => {
  if (event.defaultPrevented || !event.composedPath().some(({ tagName }) => tagName === "BUTTON")) return;
  event.preventDefault();
  let active = document.activeElement;
  while (active?.shadowRoot?.activeElement) active = active.shadowRoot.activeElement;
  active?.blur();
});`;

test("[WG231] the menu works in browsers where a pressed button gets no focus", { skip, timeout }, async () => {
  await withWidget({ prepare: UNFOCUSED }, async (seen) => {
    await open(seen);
    const more = seen.page.getByRole("button", { name: "More" });
    await more.click();
    await seen.page.getByRole("button", { name: "Sound on" }).click();
    await more.click();
    await seen.page.getByRole("button", { name: "Sound off" }).waitFor();
    await more.click();
    assert.equal(await seen.page.getByRole("button", { name: "Sound off" }).isVisible(), false);
  });
});

test("[WG232] the panel fills what the keyboard leaves of a phone's screen, even a shifted one", { skip, timeout }, async () => {
  await withWidget({ context: { viewport: { width: 390, height: 740 } } }, async (seen) => {
    await open(seen);
    await seen.page.evaluate(`{
      for (const [name, value] of Object.entries({ height: 400, offsetTop: 120 })) {
        Object.defineProperty(visualViewport, name, { value });
      }
      visualViewport.dispatchEvent(new Event("scroll"));
    }`);
    const edges = `document.querySelector("assistant-chat").shadowRoot.querySelector("dialog")
      .getBoundingClientRect()`;
    await until(seen.page, `${edges}.top === 120 && ${edges}.height === 400`);
  });
});

const OF_2022 = `
  for (const name of ["with", "toSpliced", "toSorted", "toReversed"]) delete Array.prototype[name];
  delete URL.canParse;
  delete Intl.Segmenter;
  delete Document.prototype.adoptedStyleSheets;
  delete ShadowRoot.prototype.adoptedStyleSheets;
  window.CSSStyleSheet = class { constructor() { throw new TypeError("Illegal constructor"); } };`;

test("[WG233] the widget answers and looks right in a browser of 2022", { skip, timeout }, async () => {
  // Without adopted styles a page that forbids styles in itself shows a plain one.
  const given = { prepare: OF_2022, headers: { "content-security-policy": "base-uri 'none'" } };
  await withWidget(given, async (seen) => {
    await open(seen);
    model.script(() => ({ tokens: ["See [the *list*](https://good.example/). ", "At _nine_."] }));
    await seen.say("When?");
    await seen.log.getByText("At nine.").waitFor();
    await isAnswered(seen);
    await seen.page.reload();
    await seen.log.getByText("At nine.").waitFor();
    assert.equal(await seen.log.getByRole("link").getAttribute("href"), "https://good.example/");
    const { width } = await seen.panel.boundingBox() ?? {};
    assert.equal(width, 400);
  });
});
