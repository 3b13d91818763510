// Pages that are hard on the widget: they have its tag twice, take it out and put it in again, put
// another body in its place, and have rules and shortcuts for everything.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Locator, Page } from "playwright-core";
import { noBrowser, until } from "#support/pages/browser.ts";
import { drawn } from "#support/pages/dashboard-page.ts";
import { isAnswered, open, startWorld } from "#support/pages/widget-page.ts";
import { newAssistant } from "#support/server.ts";

const skip = noBrowser();
const { model, server, withWidget, held, close } = await startWorld();
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

test("[WG235] an assistant whose tag is on the page twice appears once; if the tag is removed early, not at all", { skip }, async () => {
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

test("[WG251] a tag in a shadow tree adds its own assistant's widget to the page, beside another's", { skip }, async () => {
  const { uuid: other } = await newAssistant(server, { name: "Other desk", status: "active" });
  await withWidget({ ...LAX }, async (seen) => {
    await open(seen);
    await seen.page.evaluate(`new Promise((done) => {
      const script = document.createElement("script");
      script.src = ${JSON.stringify(`${server.url}/widget.js`)};
      script.dataset.assistant = ${JSON.stringify(other)};
      script.onload = done;
      const element = document.createElement("div");
      document.body.append(element);
      element.attachShadow({ mode: "open" }).append(script);
    })`);
    assert.deepEqual(await seen.page.evaluate(
      `[...document.querySelectorAll("assistant-chat")].map(({ owner }) => owner.split(" ")[1] === ${JSON.stringify(other)})`),
    [false, true]);
    await seen.log.getByText("Hi!").waitFor();
  });
});

test("[WG290] widgets of two assistants in one corner do not cover each other: both open, greetings stay clear, and one moves up when the other goes", { skip }, async () => {
  const greeting = { text: "May we help you?", after_seconds: 0 };
  const { uuid: other } = await newAssistant(server, { name: "Other desk", initial_message: "Ho!" });
  await withWidget({ ...LAX, settings: { widget_settings: { greeting } } }, async ({ page }) => {
    await addTag(page, other, "body");
    const [first, second] = [0, 1].map((at) => page.locator("assistant-chat").nth(at));
    const of = (widget: Locator | undefined, part: string): Locator => widget!.locator(part);
    await until(page, `[...document.querySelectorAll("assistant-chat")].filter(({ shadowRoot }) =>
      shadowRoot.querySelector(".launcher").checkVisibility()).length === 2`);
    await of(first, ".greeting").waitFor();
    const topOf = async (widget: Locator | undefined, part: string): Promise<number> =>
      (await of(widget, part).boundingBox())!.y;
    const low = await topOf(first, ".launcher");
    assert.ok(await topOf(second, ".launcher") + 60 <= low);
    assert.ok(await topOf(first, ".greeting") < await topOf(second, ".launcher") - 44);
    await of(second, ".launcher").click();
    await page.getByRole("log").getByText("Ho!").waitFor();
    await page.getByRole("button", { name: "Close" }).click();
    // Nothing of the other lies over what is opened.
    await of(first, ".launcher").click();
    await page.getByRole("log").getByText("Hi!").waitFor();
    const { x, y } = (await of(second, ".launcher").boundingBox())!;
    assert.equal(await page.evaluate(
      `document.elementFromPoint(${x + 30}, ${y + 30}) === document.querySelector("assistant-chat")`), true);
    await page.getByRole("button", { name: "Close" }).click();
    await first!.evaluate((element) => element.remove());
    await until(page, `document.querySelector("assistant-chat").shadowRoot
      .querySelector(".launcher").getBoundingClientRect().y === ${low}`);
  });
});

test("[WG295] of several assistants with greetings one greets at a time, the next once it is dismissed and nothing is open", { skip }, async () => {
  const settings = (text: string) =>
    ({ widget_settings: { greeting: { text, after_seconds: 0 } } });
  const { uuid: other } = await newAssistant(server, settings("Or may we?"));
  await withWidget({ ...LAX, settings: settings("May we help you?") }, async ({ page }) => {
    const first = page.getByRole("button", { name: "May we help you?" });
    const second = page.getByRole("button", { name: "Or may we?" });
    await first.waitFor();
    await page.clock.install();
    await addTag(page, other, "body");
    await page.locator("assistant-chat").nth(1).locator(".launcher").waitFor();
    await page.clock.runFor(5000);
    assert.deepEqual([await first.isVisible(), await second.isVisible()], [true, false]);
    await first.click();
    await page.getByRole("log").getByText("Hi!").waitFor();
    await page.clock.runFor(5000);
    assert.equal(await second.isVisible(), false);
    await page.getByRole("button", { name: "Close" }).click();
    await page.clock.runFor(5000);
    await second.click();
  });
});

test("[WG306] an assistant hidden by the page's CSS does not keep another from greeting", { skip }, async () => {
  const settings = (text: string) =>
    ({ widget_settings: { greeting: { text, after_seconds: 0 } } });
  const { uuid: other } = await newAssistant(server, settings("Or may we?"));
  await withWidget({ ...LAX, settings: settings("May we help you?") }, async ({ page }) => {
    await page.getByRole("button", { name: "May we help you?" }).waitFor();
    await page.addStyleTag({ content: "assistant-chat:first-of-type { display: none }" });
    await addTag(page, other, "body");
    await page.getByRole("button", { name: "Or may we?" }).click();
  });
});

test("[WG236] a widget removed from the page closes its stream, and continues when it is put back", { skip }, async () => {
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

test("[WG250] an opened widget that the page removed and forgot is garbage-collected", { skip }, async () => {
  await withWidget({}, async (seen) => {
    await open(seen);
    await seen.box.waitFor();
    await seen.page.evaluate(`{
      const widget = document.querySelector("assistant-chat");
      window.held = new WeakRef(widget);
      widget.remove();
    }`);
    const devtools = await seen.page.context().newCDPSession(seen.page);
    let isHeld = true;
    // What has asked the server lets go once that is over.
    for (let tries = 0; isHeld && tries < 50; tries += 1) {
      await devtools.send("HeapProfiler.collectGarbage");
      isHeld = await seen.page.evaluate("held.deref() !== undefined") as boolean;
    }
    assert.equal(isHeld, false);
  });
});

test("[WG237] a page that replaces its body keeps the widget whose tag is in the head", { skip }, async () => {
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

test("[WG325] a page replaced by one whose equal tag does not run again, as Astro does, keeps the chat", { skip }, async () => {
  await withWidget({ ...LAX, script: null }, async (seen, uuid) => {
    await addTag(seen.page, uuid, "head");
    await open(seen);
    await seen.box.fill("Not sent yet");
    // The tag of the next page is in the head, that of the one after in its body.
    for (const place of ["head", "body"]) {
      await seen.page.evaluate(`{
        const tag = document.querySelector("script[data-assistant]");
        const { documentElement: next } = new DOMParser().parseFromString(
          "<head></head><body>The next page</body>", "text/html");
        const copy = new DOMParser().parseFromString(tag.outerHTML, "text/html").scripts[0];
        tag.remove();
        next.querySelector("${place}").append(copy);
        document.head.append(...next.querySelector("head").children);
        document.body.replaceWith(next.querySelector("body"));
      }`);
      await seen.page.locator("body > assistant-chat").waitFor({ state: "attached" });
      assert.equal(await seen.box.inputValue(), "Not sent yet");
    }
    await seen.say("Hello");
    await isAnswered(seen);
    assert.equal((await seen.replies()).length, 2);
  });
});

/** What theme builders and resets write; the page's own words are all the worse for it. */
const HARD = `
  * {
    all: unset !important; letter-spacing: 6px !important; text-transform: uppercase !important;
    line-height: 3 !important; cursor: none !important; opacity: 0.1 !important;
    word-spacing: 9px !important; text-indent: 30px !important; color: red !important;
    text-align: right !important; white-space: nowrap !important;
  }
  body > * {
    transform: translateX(-300px) !important; filter: blur(2px) !important;
    position: relative !important; z-index: 0 !important; contain: strict !important;
  }`;

test("[WG238] no global CSS of a page changes or covers the widget, and a page can hide it", { skip }, async () => {
  const looks: string[] = [];
  const places: unknown[] = [];
  for (const css of ["/* none */", HARD]) {
    await withWidget({ ...LAX }, async (seen) => {
      await seen.page.addStyleTag({ content: css });
      await seen.page.evaluate(`{
        const bar = document.createElement("div");
        bar.style.cssText = "position: fixed !important; inset: 0 !important; z-index: 5 !important;"
          + "display: block !important; transform: none !important; contain: none !important";
        document.body.append(bar);
      }`);
      await open(seen);
      const words = seen.log.getByText("Hi!");
      looks.push(await words.evaluate((element) => {
        const style = getComputedStyle(element);
        return [...style].filter((name) => !name.startsWith("--"))
          .map((name) => `${name}: ${style.getPropertyValue(name)}`).join("\n");
      }));
      places.push(await seen.panel.boundingBox());
      assert.equal(await seen.page.evaluate(
        `getComputedStyle(document.querySelector("assistant-chat")).opacity`), "1");
      await seen.page.addStyleTag({ content: "assistant-chat { display: none !important }" });
      await seen.panel.waitFor({ state: "hidden" });
    });
  }
  assert.equal(looks[1], looks[0]);
  assert.deepEqual(places[1], places[0]);
});

test("[WG280] on a page with a transform or filter on its body the widget stays in the window", { skip }, async () => {
  const places: unknown[] = [];
  for (const css of ["/* none */", "body { transform: translateZ(0) }", "body { filter: grayscale(1) }"]) {
    await withWidget({ ...LAX }, async (seen) => {
      await seen.launcher.waitFor();
      await seen.page.addStyleTag({ content: css });
      const there = [];
      await open(seen);
      there.push(await seen.panel.boundingBox());
      assert.equal(await seen.box.evaluate((box) => box.matches(":focus")), true, css);
      await seen.page.keyboard.press("Escape");
      await seen.launcher.waitFor();
      there.push(await seen.launcher.boundingBox());
      assert.equal(await seen.launcher.evaluate((button) => button.matches(":focus")), true, css);
      places.push(there);
    });
  }
  assert.deepEqual(places[1], places[0]);
  assert.deepEqual(places[2], places[0]);
});

test("[WG239] typing in the widget triggers no shortcut of the page, and printed pages have no widget", { skip }, async () => {
  await withWidget({
    prepare: `window.heard = [];
      for (const type of ["keydown", "keypress", "keyup"]) {
        document.addEventListener(type, (event) => {
          heard.push(type + " " + event.key);
          event.preventDefault();
        });
      }`,
  }, async (seen) => {
    model.script(() => ({ tokens: ["Fine."] }));
    // Nothing that is hidden yet takes the focus.
    await seen.launcher.waitFor();
    await seen.launcher.focus();
    await seen.page.keyboard.press("Enter");
    await seen.box.waitFor();
    await seen.box.pressSequentially("hi ?");
    await seen.box.press("Enter");
    await seen.log.getByText("Fine.").waitFor();
    await seen.box.press("Escape");
    await seen.launcher.waitFor();
    assert.deepEqual(await seen.page.evaluate("heard"), []);
    await seen.page.emulateMedia({ media: "print" });
    await seen.launcher.waitFor({ state: "hidden" });
  });
});

test("[WG256] in a sandboxed frame without forms the questions can be answered and messages sent", { skip }, async () => {
  await withWidget({
    headers: { "content-security-policy": "sandbox allow-scripts allow-same-origin" },
    attributes: { "data-fields": JSON.stringify([{ name: "name", label: "Name", required: true }]) },
  }, async (seen) => {
    model.script(() => ({ tokens: ["Fine."] }));
    await seen.launcher.click();
    const name = seen.page.getByRole("textbox", { name: "Name" });
    await name.press("Enter");
    assert.equal(await name.evaluate((input) => input.matches(":focus:invalid")), true);
    await name.fill("Ana");
    await name.press("Enter");
    await seen.box.fill("How are you?");
    await seen.page.getByRole("button", { name: "Send" }).click();
    await seen.log.getByText("Fine.").waitFor();
  });
});

test("[WG242] on a zoomed page the widget stays within the window", { skip }, async () => {
  for (const viewport of [{ width: 1280, height: 720 }, { width: 400, height: 600 }]) {
    await withWidget({ ...LAX, context: { viewport } }, async (seen) => {
      await seen.page.addStyleTag({ content: "html { zoom: 1.25 }" });
      await open(seen);
      const { x, y, width, height } = await seen.panel.boundingBox() ?? assert.fail();
      assert.ok(x >= 0 && x + width <= viewport.width, `${x} ${width}`);
      assert.ok(y >= 0 && y + height <= viewport.height, `${y} ${height}`);
      assert.ok(height >= viewport.height * 0.9);
    });
  }
});

test("[WG252] [WG253] in a low window (keyboard, or 400 % zoom) the whole chat stays within it, even on a zoomed page", { skip }, async () => {
  await withWidget({ ...LAX, context: { viewport: { width: 400, height: 800 } } }, async (seen) => {
    await seen.page.addStyleTag({ content: "html { zoom: 1.5 }" });
    await open(seen);
    await seen.page.setViewportSize({ width: 400, height: 500 });
    await until(seen.page, "innerHeight === 500");
    await drawn(seen.page);
    assert.deepEqual(await seen.panel.boundingBox(), { x: 0, y: 0, width: 400, height: 500 });
    // [WG253]
    await seen.page.addStyleTag({ content: "html { zoom: 1 }" });
    await seen.page.setViewportSize({ width: 320, height: 256 });
    await until(seen.page, "innerHeight === 256");
    await seen.box.fill("One\ntwo\nthree\nfour\nfive\nsix\nseven");
    await drawn(seen.page);
    for (const name of ["Close", "Send"]) {
      const { y, height } = await seen.panel.getByRole("button", { name }).boundingBox() ?? assert.fail();
      assert.ok(y >= 0 && y + height <= 256, `${name}: ${y} ${height}`);
    }
  });
});

test("[WG258] [WG291] at 320 by 256 px three lines of the chat are visible, and its form is scrolled, with room for a field and its label", { skip }, async () => {
  const settings = { desk: {
    visitor_may_ask: true, office_hours: { hours: {}, message: "Nobody is here.", callback: true },
  } };
  const context = { viewport: { width: 320, height: 256 } };
  await withWidget({ settings, context }, async (seen) => {
    const { page, panel } = seen;
    const press = (name: string): Promise<void> => page.getByRole("button", { name }).click();
    const roomIn = (form: string): Promise<number> => panel.locator(form).evaluate((element) => {
      const { top, bottom } = element.getBoundingClientRect();
      const isScrolled = getComputedStyle(element).overflowY === "auto";
      return isScrolled && bottom <= innerHeight ? bottom - top : 0;
    });
    await open(seen);
    // [WG291] Three lines, beside the button that asks for a person.
    assert.ok(await seen.log.evaluate(({ clientHeight }) => clientHeight) > 90);
    await press("Talk to a person");
    await press("Leave your contact details");
    assert.ok(await roomIn("form.mail:not([hidden])") > 100);
    await press("Cancel");
    await seen.say("Hello");
    await isAnswered(seen);
    assert.equal(await seen.log.evaluate(({ scrollTop, scrollHeight, clientHeight }) =>
      scrollHeight - scrollTop - clientHeight < 2), true);
    await press("More");
    await press("New conversation");
    assert.ok(await roomIn("form.opinion") > 100);
    await press("No, thank you");
    await seen.box.waitFor();
  });
});

test("[WG243] [WG248] [UI136] [UI137] the widget and the talk page follow the browser's font size, whatever the page does with its own", { skip }, async () => {
  await withWidget({ ...LAX }, async (seen, uuid) => {
    await seen.page.addStyleTag({ content: "html { font-size: 62.5% }" });
    await open(seen);
    const words = seen.log.getByText("Hi!");
    const size = (): Promise<string> =>
      words.evaluate((element) => getComputedStyle(element).fontSize);
    assert.equal(await size(), "16px");
    const chromium = await seen.page.context().newCDPSession(seen.page);
    await chromium.send("Page.setFontSizes", { fontSizes: { standard: 32, fixed: 26 } });
    await until(seen.page, `getComputedStyle(document.querySelector("assistant-chat")
      .shadowRoot.querySelector(".log")).fontSize === "32px"`);
    assert.equal(await size(), "32px");
    // [WG248]
    const iconPx = await seen.panel.locator("header svg").first()
      .evaluate((icon) => icon.getBoundingClientRect().height);
    assert.ok(iconPx >= 32, `${iconPx}`);
    const { x, y } = await seen.panel.boundingBox() ?? assert.fail();
    assert.ok(x >= 0 && y >= 0);
    const overhang = await seen.panel.evaluate((panel) => panel.scrollWidth - panel.clientWidth);
    assert.equal(overhang, 0);
    await seen.page.goto(`${server.url}/talk/${uuid}`);
    await seen.page.getByRole("button", { name: "Start the call" }).waitFor();
    await until(seen.page, `getComputedStyle(document.querySelector("#start")).fontSize === "32px"`);
    // [UI137] As it is in a call.
    await seen.page.evaluate(`for (const id of ["notice", "mute", "keys", "keypad", "end", "path"]) {
      document.getElementById(id).hidden = false;
    }
    document.getElementById("path").textContent = "Sound by WebSocket";
    document.getElementById("start").hidden = true;`);
    for (const [standard, width, height] of [[32, 360, 740], [16, 320, 256]] as const) {
      await chromium.send("Page.setFontSizes", { fontSizes: { standard, fixed: standard } });
      await seen.page.setViewportSize({ width, height });
      await until(seen.page, `getComputedStyle(document.querySelector("#end")).fontSize === "${standard}px"`);
      assert.equal(await seen.page.evaluate("document.documentElement.scrollWidth"), width);
      const { y: top, height: high } = await seen.page.locator("#end").boundingBox()
        ?? assert.fail();
      assert.ok(top + high <= height, `${top + high}`);
    }
  });
});

test("[WG244] in a right-to-left language the empty message box starts at the right", { skip }, async () => {
  await withWidget({ attributes: { "data-language": "ar" }, dir: "rtl" }, async (seen) => {
    await seen.launcher.click();
    const box = seen.panel.locator("form.say textarea");
    const direction = (): Promise<string> =>
      box.evaluate((element) => getComputedStyle(element).direction);
    await box.waitFor();
    assert.equal(await direction(), "rtl");
    await box.fill("Hello");
    assert.equal(await direction(), "ltr", "as what is written in it");
  });
});
