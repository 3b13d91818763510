// Pages whose own libraries are hard on the widget: they rewrite what every script uses, take what
// is scrolled and typed for theirs, and put the page together anew.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Locator } from "playwright-core";
import { noBrowser, until } from "#support/pages/browser.ts";
import { isAnswered, open, startWorld } from "#support/pages/widget-page.ts";

const skip = noBrowser();
const { withWidget, close } = await startWorld();
after(close);

/** A page that has styles and scripts of its own. */
const LAX = { headers: { "content-security-policy": "default-src * data: 'unsafe-inline'" } };

test("[WG312] on a page with Prototype.js, which replaces Array's `entries`, the chat opens and answers", { skip }, async () => {
  const prepare = "Array.prototype.entries = function () { return this.slice(); };";
  await withWidget({ prepare }, async (seen) => {
    await open(seen);
    await seen.say("Hello");
    await isAnswered(seen);
    assert.equal((await seen.replies()).length, 2);
  });
});

/** As smooth scrolling, a dialog that keeps the focus and a page that forbids copying do it. */
const GRASPING = `
  addEventListener("wheel", (event) => event.preventDefault(), { passive: false });
  document.addEventListener("focusin", ({ target }) => {
    if (target !== document.body) target.blur();
  });
  for (const type of ["copy", "cut", "paste", "contextmenu", "selectstart"]) {
    document.addEventListener(type, (event) => event.preventDefault());
  }`;

test("[WG313] no page can take the chat's scrolling, focus, copy or paste", { skip }, async () => {
  await withWidget({ prepare: GRASPING }, async (seen) => {
    const { page, box, log } = seen;
    await open(seen);
    await box.click();
    await page.keyboard.type("to copy");
    for (const key of ["Control+A", "Control+X", "Control+V", "Control+V"]) {
      await page.keyboard.press(key);
    }
    assert.equal(await box.inputValue(), "to copyto copy");
    for (let count = 0; count < 4; count += 1) {
      await seen.say("A\nB\nC\nD\nE\nF\nG\nH");
      await isAnswered(seen);
    }
    const scrolled = log.evaluate((element) =>
      new Promise((resolve) => element.addEventListener("scroll", () => resolve(true))));
    await log.hover();
    await page.mouse.wheel(0, -200);
    assert.equal(await scrolled, true);
  });
});

test("[WG314] a prerendered page starts no chat and greets nobody", { skip }, async () => {
  const prepare = `
    Object.defineProperty(document, "prerendering", { value: true, configurable: true });
    window.visit = () => {
      delete document.prerendering;
      document.dispatchEvent(new Event("prerenderingchange"));
    };`;
  await withWidget({ prepare, attributes: { "data-open": "" } }, async ({ page, log }) => {
    // Loaded, with its script.
    assert.equal(await page.evaluate("document.readyState"), "complete");
    assert.equal(await page.locator("assistant-chat").count(), 0);
    await page.evaluate("visit()");
    await log.getByText("Hi!").waitFor();
  });
});

test("[WG315] on a page whose body is a grid or flex container the widget takes no space", { skip }, async () => {
  await withWidget({ ...LAX }, async ({ page, launcher }) => {
    await launcher.waitFor();
    const widget = page.locator("assistant-chat");
    for (const body of ["display: grid; gap: 40px", "display: flex; justify-content: space-between"]) {
      await page.addStyleTag({
        content: `body { ${body}; flex-direction: column; min-height: 100vh } main { flex: 1 }`,
      });
      const places: unknown[] = [];
      for (const display of ["", "none"]) {
        await widget.evaluate(({ style }, value) => {
          style.display = value;
        }, display);
        places.push(await page.locator("main").boundingBox());
      }
      assert.deepEqual(places[0], places[1]);
    }
    await page.addStyleTag({
      content: "body > * { display: block; inset: 0; min-height: 9px; border: 9px solid; padding: 9px }",
    });
    const area = await widget.evaluate((element) => {
      element.style.display = "";
      const { width, height } = element.getBoundingClientRect();
      return width + height;
    });
    assert.equal(area, 0);
  });
});

test("[WG316] when Turbo morphs one page into the next the open chat stays, and copies of it vanish", { skip }, async () => {
  await withWidget({}, async (seen) => {
    await open(seen);
    await seen.box.fill("Not sent yet");
    await seen.page.evaluate(`{
      const widget = document.querySelector("assistant-chat");
      document.body.append(widget.cloneNode(true));
      for (const element of [...document.body.children]) {
        if (!element.hasAttribute("data-turbo-permanent")) element.remove();
      }
    }`);
    assert.equal(await seen.page.locator("assistant-chat").count(), 1);
    assert.equal(await seen.box.inputValue(), "Not sent yet");
  });
});

test("[WG317] turning a phone with the chat open reaches the page beside it and keeps the draft and the caret", { skip }, async () => {
  await withWidget({ context: { viewport: { width: 390, height: 844 } } }, async (seen) => {
    const { page, panel, box } = seen;
    const isModal = (): Promise<boolean> => panel.evaluate((element) => element.matches(":modal"));
    await open(seen);
    await box.fill("Not sent yet");
    assert.equal(await isModal(), true);
    await page.setViewportSize({ width: 844, height: 390 });
    await until(page, "innerWidth === 844");
    await page.getByRole("link", { name: "More" }).click();
    assert.equal(await page.evaluate("location.hash"), "#more");
    await box.focus();
    await page.setViewportSize({ width: 390, height: 844 });
    await until(page, "innerWidth === 390");
    assert.equal(await isModal(), true);
    assert.equal(await box.evaluate((element) => element.matches(":focus")), true);
    assert.equal(await box.inputValue(), "Not sent yet");
  });
});

test("[WG318] a page that starts to filter or transform its body keeps launcher and open chat in view", { skip }, async () => {
  await withWidget({ ...LAX }, async (seen) => {
    const { page, launcher, panel } = seen;
    const there = async (part: Locator): Promise<void> => {
      const place = await part.boundingBox();
      for (const rule of ["filter: grayscale(1)", "transform: scale(1)"]) {
        await page.evaluate(`document.body.style = "height: 3000px; ${rule}"`);
        await until(page, `(${JSON.stringify(place)}).y === document.querySelector("assistant-chat")
          .shadowRoot.querySelector(".panel[open], .launcher:not([hidden])").getBoundingClientRect().y`);
        await page.evaluate(`document.body.style = ""`);
      }
    };
    await launcher.waitFor();
    await there(launcher);
    await page.reload();
    await open(seen);
    await there(panel);
  });
});

test("[WG319] whatever custom properties a page defines, the chat fills a phone's screen", { skip }, async () => {
  await withWidget({ ...LAX, context: { viewport: { width: 390, height: 700 } } }, async (seen) => {
    const names = ["top", "height", "gap", "step", "past", "before", "others"];
    await seen.page.addStyleTag({ content: `:root { ${names.map((name) => `--${name}: 64px;`).join("")} }` });
    await open(seen);
    assert.deepEqual(await seen.panel.boundingBox(), { x: 0, y: 0, width: 390, height: 700 });
  });
});

test("[WG320] in a single-page application the greeting appears on the pages it is for", { skip }, async () => {
  const greeting = { text: "May we help you?", after_seconds: 0, pages: ["/shop/*"] };
  await withWidget({ settings: { widget_settings: { greeting } } }, async ({ page, launcher }) => {
    const words = page.getByText("May we help you?");
    await launcher.waitFor();
    assert.equal(await words.isVisible(), false);
    await page.evaluate(`history.pushState({}, "", "/shop/bikes")`);
    await words.waitFor();
  });
});

test("[WG321] visitors who are at the end of the log stay there when a keyboard or rotation shrinks the chat", { skip }, async () => {
  await withWidget({ context: { viewport: { width: 390, height: 700 } } }, async (seen) => {
    await open(seen);
    for (let count = 0; count < 4; count += 1) {
      await seen.say("A\nB\nC\nD\nE\nF\nG\nH");
      await isAnswered(seen);
    }
    const isLow = `(() => {
      const { scrollTop, scrollHeight, clientHeight } =
        document.querySelector("assistant-chat").shadowRoot.querySelector(".log");
      return clientHeight < 300 && scrollHeight - scrollTop - clientHeight < 2;
    })()`;
    await seen.page.setViewportSize({ width: 390, height: 400 });
    await until(seen.page, isLow);
    await seen.page.setViewportSize({ width: 700, height: 390 });
    await until(seen.page, isLow);
  });
});
