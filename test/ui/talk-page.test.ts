// The page people talk from, in a real browser: hanging up, muting and losing the device; what is
// seen and pressed. What goes over its socket is looked at here, with speech made of numbers;
// talk-peer.test.ts has people who are heard and answered, and the other way for their sound.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, test } from "node:test";
import type { Page } from "playwright-core";
import {
  ALL_FREE, LOW_CONTRAST, noBrowser, openBrowser, until, WATCH,
  type BrowserKind, type Microphone, type TestBrowser,
} from "#support/pages/browser.ts";
import { onlyProof } from "#support/proof.ts";
import { newAssistant, startTestServer } from "#support/server.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";

const skip = noBrowser();
const model = await startScriptedModel();
/** Where nobody needs to be understood. */
const server = await startTestServer({
  env: { PARLEY_MODEL_URL: model.url, PARLEY_WEBRTC: "off", PARLEY_SPEECH: "loopback" },
});
/** Its microphone beeps. */
const browser = skip ? null : await openBrowser("beeps");
after(async () => {
  await browser?.close();
  await server.close();
  await model.close();
});

async function withPage(
  work: (page: Page) => Promise<void>, asked: TestBrowser = browser!,
): Promise<void> {
  const { uuid } = await newAssistant(server, {
    initial_message: "Hello there.", post_call_evaluation: false,
  });
  const context = await asked.newContext();
  try {
    const page = await context.newPage();
    await page.addInitScript(WATCH);
    await page.goto(`${server.url}/talk/${uuid}`);
    await work(page);
  } finally {
    await context.close();
  }
}

/** In a browser of its own, which has what the others' has not. */
async function withPageOf(
  microphone: Microphone, kind: BrowserKind, work: (page: Page) => Promise<void>,
): Promise<void> {
  const other = await openBrowser(microphone, kind);
  try {
    await withPage(work, other);
  } finally {
    await other.close();
  }
}

const press = (page: Page, name: string): Promise<void> =>
  page.getByRole("button", { name, exact: true }).click();
const inState = (page: Page, state: string): Promise<void> =>
  page.locator(`body[data-state="${state}"]`).waitFor();
const isOver = (page: Page): Promise<void> =>
  page.getByRole("button", { name: "Call again" }).waitFor();

test("[UI2] without a microphone the page says so; one can type, hear the answers and scroll up undisturbed", { skip, timeout: 180_000 }, async () => {
  await withPageOf("refused", "light", async (page) => {
    await press(page, "Start the call");
    await page.getByRole("alert").waitFor();
    assert.match(await page.getByRole("alert").innerText(), /microphone/i);
    model.script(() => ({ tokens: ["We ", "open ", "at ", "nine."] }));
    await press(page, "Type instead");
    // Who writes before it is heard would not be greeted.
    await page.getByText("Hello there.", { exact: true }).waitFor();
    const words = page.getByRole("textbox", { name: "What you say" });
    await words.fill("When are you open?");
    await words.press("Enter");
    await page.getByText("We open at nine.").waitFor();
    // Who has scrolled up to read again is left there.
    await page.setViewportSize({ width: 360, height: 420 });
    await until(page, "log.scrollHeight - log.clientHeight > 60");
    await page.evaluate("log.scrollTop = 0");
    model.script(() => ({ tokens: ["On ", "Sunday ", "we ", "are ", "closed."] }));
    await words.fill("And on Sunday?");
    await words.press("Enter");
    await page.getByText("On Sunday we are closed.").waitFor();
    assert.equal(await page.evaluate("log.scrollTop"), 0);
    await press(page, "Hang up");
    await isOver(page);
    assert.equal(await page.getByRole("button", { name: "Type instead" }).isVisible(), false);
  });
});

test("[UI231] the talk page of no assistant, or of one that takes no calls, says so before anybody calls", { skip }, async () => {
  await withPage(async (page) => {
    const start = page.getByRole("button", { name: "Start the call" });
    await page.route("**/api/widget/*", async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, json: { ...await response.json(), calls: false } });
    });
    await page.reload();
    await page.getByRole("alert").getByText("This assistant takes no calls here.").waitFor();
    assert.equal(await start.isVisible(), false);
    await page.unroute("**/api/widget/*");
    await page.goto(`${server.url}/talk/${randomUUID()}`);
    await page.getByRole("alert").getByText("Assistant not found").waitFor();
    assert.equal(await start.isVisible(), false);
  });
});

type Frames = { wait(isEnough: (isSilent: boolean) => boolean): Promise<void> };

/** Frames of the microphone as they are sent; `wait` ends with the first that makes it true. */
function watchFrames(page: Page): Frames {
  let look: (isSilent: boolean) => void = () => undefined;
  page.on("websocket", (socket) => socket.on("framesent", ({ payload }) => {
    if (typeof payload !== "string") look(payload.every((byte) => byte === 0));
  }));
  return {
    wait: (isEnough) => new Promise((resolve) => {
      look = (isSilent) => {
        if (isEnough(isSilent)) resolve();
      };
    }),
  };
}

test("[UI140] a page whose audio never starts, as without a sound device, says so during the call", { skip, timeout: 180_000 }, async () => {
  await withPage(async (page) => {
    // As in Firefox without a sound device.
    await page.addInitScript(`
      Object.defineProperty(AudioContext.prototype, "state", { get: () => "suspended" });`);
    await page.reload();
    await press(page, "Start the call");
    await inState(page, "listening");
    await page.getByRole("alert").getByText("paused the sound").waitFor();
    await press(page, "Hang up");
    await isOver(page);
  });
});

test("[UI3] mute silences the microphone of one call and is off again in the next", { skip, timeout: 180_000 }, async () => {
  await withPage(async (page) => {
    const mute = page.getByRole("button", { name: "Mute" });
    const frames = watchFrames(page);
    await press(page, "Start the call");
    await frames.wait((isSilent) => !isSilent);
    await mute.click();
    assert.equal(await mute.getAttribute("aria-pressed"), "true");
    await page.getByRole("status").getByText("(you are muted)").waitFor();
    // Longer than from one beep to the next; what was under way at the click may still come.
    let count = 0;
    const loud: number[] = [];
    await frames.wait((isSilent) => {
      if (!isSilent) loud.push(count);
      count += 1;
      return count === 65;
    });
    assert.ok(loud.every((at) => at < 10), `${loud}`);
    await press(page, "Hang up");
    await isOver(page);
    await press(page, "Call again");
    await inState(page, "listening");
    assert.equal(await mute.getAttribute("aria-pressed"), "false");
    await frames.wait((isSilent) => !isSilent);
  });
});

test("[UI4] hanging up works at every stage of connecting and releases the microphone", { skip, timeout: 180_000 }, async () => {
  await withPage(async (page) => {
    const idle = async (): Promise<void> => {
      await press(page, "Hang up");
      await inState(page, "idle");
      assert.equal(await page.getByRole("alert").isVisible(), false);
    };
    await page.evaluate("opened.wait = true");
    await press(page, "Start the call");
    await until(page, "opened.allow");
    // Safari's rule: sound that does not begin within the click is not heard.
    assert.deepEqual(await page.evaluate("opened.order"), ["context", "resume", "microphone"]);
    await idle();
    await page.evaluate("opened.wait = false, opened.allow()");
    await until(page, "opened.tracks.length === 1");
    await until(page, ALL_FREE);

    for (const path of ["**/api/conversations", "**/call-ticket"]) {
      const asked = Promise.withResolvers<void>();
      await page.route(path, () => asked.resolve());
      await press(page, "Start the call");
      await asked.promise;
      await idle();
      await until(page, ALL_FREE);
      await page.unroute(path);
    }

    const started = Promise.withResolvers<void>();
    const closed = Promise.withResolvers<void>();
    await page.routeWebSocket("**/call?*", (socket) => {
      socket.onMessage(() => started.resolve());
      socket.onClose(() => closed.resolve());
    });
    await press(page, "Start the call");
    await started.promise;
    await idle();
    await closed.promise;
    await until(page, ALL_FREE);
  });
});

test("[UI5] a call ends when its microphone is lost or its page is left, and the page says why", { skip, timeout: 180_000 }, async () => {
  await withPage(async (page) => {
    await press(page, "Start the call");
    await inState(page, "listening");
    // What browsers tell of a device; the one Chromium pretends to have cannot be unplugged.
    await page.evaluate(`Object.defineProperty(opened.tracks[0], "muted", { value: true, writable: true });
      opened.tracks[0].dispatchEvent(new Event("mute"))`);
    await page.getByRole("alert").getByText("silenced the microphone").waitFor();
    await page.evaluate(`opened.tracks[0].muted = false;
      opened.tracks[0].dispatchEvent(new Event("unmute"))`);
    await page.getByRole("alert").waitFor({ state: "hidden" });
    await page.evaluate("opened.contexts[0].suspend()");
    await page.getByRole("alert").getByText("paused the sound").waitFor();
    await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))");
    await page.getByRole("alert").waitFor({ state: "hidden" });
    await page.evaluate("opened.tracks[0].dispatchEvent(new Event('ended'))");
    await isOver(page);
    assert.match(await page.getByRole("alert").innerText(), /microphone was disconnected/);
    await until(page, ALL_FREE);

    await press(page, "Call again");
    await inState(page, "listening");
    // As a browser tells it, which may keep the page as it is then and show it again.
    await page.evaluate("dispatchEvent(new Event('pagehide'))");
    await isOver(page);
    assert.match(await page.getByRole("alert").innerText(), /page was left/);
    await until(page, ALL_FREE);
  });
});

test("[UI5] a page left in a call and restored from the back/forward cache says that the call is over", { skip: skip || onlyProof, timeout: 180_000 }, async () => {
  await withPageOf("beeps", "whole", async (page) => {
    await press(page, "Start the call");
    await inState(page, "listening");
    const url = page.url();
    await page.goto(`${server.url}/talk/talk.css`);
    await page.goBack({ waitUntil: "commit" });
    assert.equal(page.url(), url);
    await isOver(page);
    assert.match(await page.getByRole("alert").innerText(), /page was left/);
    await until(page, ALL_FREE);
  });
});

test("[UI134] [UI135] a silent connection is reported, cleared once it is back, and given up after half a minute", { skip, timeout: 180_000 }, async () => {
  await withPage(async (page) => {
    const opened = Promise.withResolvers<(message: object) => void>();
    await page.routeWebSocket("**/call?*", (socket) => socket.onMessage((message) => {
      if (typeof message !== "string" || !message.includes('"start"')) return;
      const say = (what: object): void => socket.send(JSON.stringify(what));
      say({ type: "ready", call_id: 1 });
      opened.resolve(say);
    }));
    await page.clock.install();
    await press(page, "Start the call");
    const say = await opened.promise;
    await inState(page, "listening");
    await page.clock.runFor(8000);
    const alert = page.getByRole("alert");
    await alert.getByText("The connection is interrupted.").waitFor({ timeout: 5000 });
    say({ type: "pong" });
    await alert.waitFor({ state: "hidden" });
    // [UI135] What is said in Hebrew is written from the right on a page in English.
    say({ type: "transcript", role: "assistant", text: "אנחנו פותחים בתשע.", final: true });
    await until(page, `getComputedStyle(lines.querySelector("p") ?? lines).direction === "rtl"`);
    await page.clock.runFor(40_000);
    await isOver(page);
    await alert.getByText("The connection was lost.").waitFor();
    await until(page, ALL_FREE);
  });
});

test("[UI6] the assistant's last words are played to the end, with the microphone already released", { skip, timeout: 180_000 }, async () => {
  await withPage(async (page) => {
    const ended = Promise.withResolvers<number>();
    await page.routeWebSocket("**/call?*", (socket) => {
      socket.onMessage((message) => {
        if (typeof message !== "string") return;
        socket.send(JSON.stringify({ type: "ready", call_id: 1 }));
        for (const role of ["customer", "assistant", "operator"]) {
          socket.send(JSON.stringify({ type: "transcript", role, text: "Good day.", final: true }));
        }
        socket.send(Buffer.from(new Int16Array(12_800).fill(1000).buffer));
        socket.send(JSON.stringify({ type: "end", reason: "assistant_ended" }));
        void socket.close();
        ended.resolve(performance.now());
      });
    });
    await press(page, "Start the call");
    const sinceMs = await ended.promise;
    await until(page, "opened.tracks.every(({ readyState }) => readyState === 'ended')");
    assert.equal(await page.locator("body").getAttribute("data-state"), "listening");
    await isOver(page);
    // Eight tenths of a second, and clocks may differ a little.
    assert.ok(performance.now() - sinceMs > 700);
    assert.equal(await page.getByRole("alert").isVisible(), false);
    assert.deepEqual(
      await page.locator("#lines .who").allInnerTexts(), ["You", "Assistant", "A colleague"]);
    await until(page, ALL_FREE);
  });
});

test("[UI7] the page is readable in light and dark, its targets fit a thumb, and it works by keyboard", { skip, timeout: 180_000 }, async () => {
  await withPage(async (page) => {
    const pressed = Promise.withResolvers<string>();
    page.on("websocket", (socket) => socket.on("framesent", ({ payload }) => {
      if (typeof payload === "string" && payload.includes("dtmf")) pressed.resolve(payload);
    }));
    await page.setViewportSize({ width: 360, height: 640 });
    await page.keyboard.press("Tab");
    if (await page.evaluate("document.activeElement.id") === "log") await page.keyboard.press("Tab");
    // Held down, Enter must not go on to press what has taken the place of the button.
    await page.keyboard.down("Enter");
    await page.keyboard.down("Enter");
    await page.keyboard.up("Enter");
    await page.getByText("Hello there.").waitFor();
    assert.equal(await page.evaluate("document.activeElement.id"), "end");
    const keys = page.locator("#keys");
    assert.equal(await keys.innerText(), "Keypad");
    await keys.press("Enter");
    assert.equal(await keys.getAttribute("aria-expanded"), "true");
    await page.getByRole("button", { name: "Hash" }).press("Space");
    assert.deepEqual(JSON.parse(await pressed.promise), { type: "dtmf", digit: "#" });
    await page.evaluate(`document.getElementById("lines").insertAdjacentHTML("beforeend",
      '<li class="customer partial"><span class="who">You</span><p>How much</p></li>')`);
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      assert.deepEqual(await page.evaluate(LOW_CONTRAST), [], colorScheme);
    }
    for (const button of await page.getByRole("button").all()) {
      const box = await button.boundingBox();
      assert.ok(box && box.width >= 44 && box.height >= 44 && box.x + box.width <= 360);
      assert.notEqual(await button.innerText(), "");
    }
    await page.emulateMedia({ reducedMotion: "reduce" });
    await page.evaluate("document.body.dataset.state = 'speaking'");
    assert.equal(await page.evaluate("getComputedStyle(orb).animationName"), "none");
    await page.getByRole("button", { name: "Hang up" }).press("Enter");
    await isOver(page);
    assert.equal(await page.evaluate("document.activeElement.id"), "start");
    assert.equal(await keys.getAttribute("aria-expanded"), "false");
  });
});

test("[UI138] at 320 by 256 px the keypad scrolls into view, and fixed buttons never cover the focus", { skip }, async () => {
  await withPage(async (page) => {
    await page.setViewportSize({ width: 320, height: 256 });
    await press(page, "Start the call");
    await page.locator("#keys").click();
    const isSeen = (one: string): Promise<boolean> => page.locator(one).evaluate((key) => {
      const { left, top, width, height } = key.getBoundingClientRect();
      return document.elementFromPoint(left + width / 2, top + height / 2) === key;
    });
    assert.deepEqual(await Promise.all(["1", "9"].map((digit) => isSeen(`[value="${digit}"]`))),
      [true, true]);
    await page.evaluate("scrollTo(0, 0)");
    await page.locator("#log").focus();
    for (let digit = 1; digit <= 9; digit += 1) {
      await page.keyboard.press("Tab");
      assert.equal(await isSeen(":focus"), true, String(digit));
    }
  });
});

test("[UI8] the page's CSP forbids foreign resources and inline scripts", async () => {
  const { headers } = await fetch(`${server.url}/talk/00000000-0000-4000-8000-000000000000`);
  const policy = headers.get("content-security-policy") ?? "";
  assert.match(policy, /default-src 'none'; script-src 'self'; style-src 'self';/);
  assert.match(policy, /base-uri 'none'; form-action 'none'; frame-ancestors 'none'/);
  assert.doesNotMatch(policy, /unsafe|\*/);
});
