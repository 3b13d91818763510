// Calls inside the chat widget: on a page of another origin under its strict policy, with a
// microphone that beeps and speech made of numbers; what is heard, seen and pressed; and the window
// that opens where a page or its browser allows no call.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { bundlePage } from "#ui/build.ts";
import { loopbackAudio } from "#providers/speech/loopback.ts";
import { ALL_FREE, noBrowser, until, WATCH } from "#support/pages/browser.ts";
import { MicrophoneSocket } from "#support/pages/microphone-socket.ts";
import { isAnswered, open, startWorld, strictPolicy, type Seen } from "#support/pages/widget-page.ts";
import { newAssistant } from "#support/server.ts";

const skip = noBrowser();
const { model, server, withWidget, close } = await startWorld("beeps");
after(close);

const settings = { post_call_evaluation: false };
const timeout = 180_000;

const bar = ({ page }: Seen) => page.getByRole("group", { name: "Call" });
const press = ({ page }: Seen, name: string): Promise<void> =>
  page.getByRole("button", { name, exact: true }).click();
const inState = (seen: Seen, words: string): Promise<void> =>
  bar(seen).getByText(words, { exact: true }).waitFor();
/** From now on; whether one was told, however soon it was another. */
async function watchStates(seen: Seen): Promise<(words: string) => string> {
  await bar(seen).locator(".state").evaluate((element) => {
    const states: string[] = [];
    new MutationObserver(() => states.push(element.textContent.trim()))
      .observe(element, { childList: true, subtree: true });
    Object.assign(window, { states });
  });
  return (words) => `states.includes("${words}")`;
}

const isOver = (seen: Seen): Promise<void> => bar(seen).waitFor({ state: "detached" });
const FOCUSED = "document.activeElement.shadowRoot.activeElement?.getAttribute('aria-label')";

/**
 * Words in place of the microphone's beeps. That they were said to their end is told once the page
 * has shown that somebody speaks: a busy one draws late. All of it in the page: frames that go
 * through the test and back come minutes late on a busy machine.
 */
const SPEAKS_WORDS = `{
  const { addEventListener: listen, send } = WebSocket.prototype;
  window.line = new Int16Array(0);
  window.shown = null;
  WebSocket.prototype.send = function (data) {
    if (typeof data === "string") return send.call(this, data);
    const frame = new Int16Array(320);
    frame.set(line.subarray(0, 320));
    line = line.slice(320);
    send.call(this, frame);
  };
  const isWhole = ({ data }) => {
    const { type, role, final } = typeof data === "string" ? JSON.parse(data) : {};
    return type === "transcript" && role === "customer" && final;
  };
  WebSocket.prototype.addEventListener = function (type, hear, options) {
    let told = Promise.resolve();
    listen.call(this, type, type !== "message" ? hear : (event) => {
      told = told.then(() => (isWhole(event) ? shown : null)).then(() => hear(event));
    }, options);
  };
}`;

/** Items of the log that were said in the call, partial or not. */
const said = ({ log }: Seen): Promise<string[]> => log.locator(".item").allInnerTexts();
/** Until the page shows that somebody says it, however soon it is another's turn. */
const speak = ({ log }: Seen, text: string): Promise<void> => log.evaluate((element, line) => {
  const shown = new Promise<void>((resolve) => {
    const look = (): void => {
      if (element.querySelector(".item.user.partial")) resolve();
    };
    const all = { childList: true, subtree: true, attributes: true };
    new MutationObserver(look).observe(element, all);
    look();
  });
  Object.assign(window, { line: Int16Array.from(line), shown });
  return shown;
}, [...loopbackAudio(text, 16_000)]);

test("[WG20] a call starts in the chat, in the open conversation, and the chat continues after it", { skip, timeout }, async () => {
  await withWidget({ settings, prepare: WATCH }, async (seen) => {
    const { page } = seen;
    const scripts: string[] = [];
    page.on("request", (request) => scripts.push(new URL(request.url()).pathname));
    await open(seen);
    assert.ok(!scripts.includes("/widget-call.js"), "loaded before anybody called");
    const socketUrl = page.waitForEvent("websocket").then((socket) => socket.url());
    const created = scripts.filter((path) => path === "/api/conversations").length;
    await press(seen, "Start a call");
    await inState(seen, "Listening");
    assert.equal(await page.evaluate(FOCUSED), "Hang up");
    assert.equal(await seen.box.isVisible(), false);
    await until(page, "opened.contexts[0].state === 'running'");
    // The greeting of the chat, and that of the call.
    await seen.log.getByText("Hi!").nth(1).waitFor();
    assert.equal(scripts.filter((path) => path === "/api/conversations").length, created);
    const uuid = (await socketUrl).match(/conversations\/([\w-]{36})\/call\?/)?.[1];
    const conversation = await server.call("GET", `/conversations/${uuid}`);
    assert.equal(conversation.body.history[0].content, "Hi!");
    await page.keyboard.press("Enter");
    await isOver(seen);
    await until(page, ALL_FREE);
    assert.equal(await page.evaluate(FOCUSED), "Your message");
    model.script(() => ({ tokens: ["At nine."] }));
    await seen.say("When do you open?");
    await seen.log.getByText("At nine.").waitFor();
    await isAnswered(seen);
    assert.deepEqual((await said(seen)).map((text) => text.replace(/^\w+:\s+/, "")), [
      "Hi!", "Hi!", "The call has ended.", "When do you open?", "At nine.",
    ]);
    const after = await server.call("GET", `/conversations/${uuid}`);
    assert.equal(after.body.history.at(-1).content, "At nine.");
  });
});

test("[WG308] screen readers announce once each that a call has ended and that a colleague has left", { skip, timeout }, async () => {
  await withWidget({ settings }, async (seen) => {
    const { page } = seen;
    await open(seen);
    await page.evaluate(`{
      const region = document.querySelector("assistant-chat").shadowRoot.querySelector("[aria-live=polite]");
      window.told = [];
      new MutationObserver((changes) => changes.forEach(({ addedNodes }) =>
        addedNodes.forEach((line) => told.push(line.textContent.trim()))))
        .observe(region, { childList: true });
    }`);
    await press(seen, "Start a call");
    await seen.log.getByText("Hi!").nth(1).waitFor();
    await press(seen, "Hang up");
    await isOver(seen);
    await until(page, `told.includes("The call has ended.")`);
    const [row] = (await server.call("GET", "/user/conversations")).body.data;
    for (const [does, words] of [
      ["take-over", "joined the chat."], ["hand-back", "left. The assistant answers."],
    ] as const) {
      const done = await server.call("POST", `/user/conversations/${row.id}/${does}`);
      assert.equal(done.status, 200, JSON.stringify(done.body));
      await seen.log.getByText(words).waitFor();
    }
    await until(page, "told.length >= 2");
    const told = await page.evaluate("told") as string[];
    assert.deepEqual(told.map((line) => line.replace(/^.+ (?=left)/, "")), [
      "The call has ended.", "left. The assistant answers.",
    ]);
  });
});

test("[WG21] the log shows what both say, a colleague who takes over, and the assistant's actions, live", { skip, timeout }, async () => {
  await withWidget({
    settings: { ...settings, endpoint_sensitivity: 1 }, prepare: SPEAKS_WORDS,
  }, async (seen) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const answer = "We open at nine.";
    model.script(() => ({ tokens: [answer], hold: promise, holdAfter: 0 }));
    await open(seen);
    await press(seen, "Start a call");
    await inState(seen, "Listening");
    await seen.log.getByText("Hi!").nth(1).waitFor();
    const states = await watchStates(seen);
    await speak(seen, "When do you open");
    await inState(seen, "Thinking…");
    resolve();
    await until(seen.page, states("Speaking"));
    await seen.log.getByText(answer).waitFor();
    await inState(seen, "Listening");
    const { body: { calls: [live] } } = await server.call("GET", "/user/calls/live");
    assert.equal((await server.call("POST", `/user/calls/${live.id}/take-over`)).status, 200);
    const microphone = await MicrophoneSocket.open(server, live.id as number);
    microphone.say("This is Ana.");
    await seen.log.getByText("This is Ana.").and(seen.log.locator(".item:not(.partial)")).waitFor();
    microphone.drop();
    await seen.page.reload();
    await seen.log.getByText("The call has ended.").waitFor();
    const texts = (await said(seen)).map((text) => text.replace(/:\s+/, ": ").toLowerCase());
    assert.deepEqual(texts, [
      "assistant: hi!", "assistant: hi!", "you: when do you open",
      `assistant: ${answer.toLowerCase()}`, "a colleague: this is ana.", "the call has ended.",
    ]);
    assert.equal(await seen.log.locator(".partial").count(), 0);
  });
});

const REJECTS = `navigator.mediaDevices.getUserMedia = () =>
  Promise.reject(new DOMException("no", window.rejection));`;

test("[WG23] a refused, missing or busy microphone is explained", { skip, timeout }, async () => {
  await withWidget({ settings, prepare: REJECTS }, async (seen, uuid) => {
    const { page } = seen;
    await open(seen);
    for (const [name, words, hasLink] of [
      ["NotFoundError", "No microphone was found.", false],
      ["NotAllowedError", "Allow it in the browser's settings", true],
      ["NotReadableError", "used by another program", false],
    ] as const) {
      await page.evaluate(`window.rejection = "${name}"`);
      await press(seen, "Start a call");
      await page.getByText(words).waitFor();
      await isOver(seen);
      const link = page.getByRole("link", { name: "Call in a new window" });
      assert.equal(await link.isVisible(), hasLink);
      if (hasLink) assert.equal(await link.getAttribute("href"), `${server.url}/talk/${uuid}`);
      // The chat is as it was, and what one writes takes the words away.
      model.script(() => ({ tokens: [`Fine after ${name}.`] }));
      await seen.say("Hello");
      await seen.log.getByText(`Fine after ${name}.`).waitFor();
      await isAnswered(seen);
      assert.equal(await page.getByText(words).isVisible(), false);
    }
  });
});

test("[WG24] if the browser rules out a call beforehand, a link opens the talk window instead", { skip, timeout }, async () => {
  for (const given of [
    { headers: { "permissions-policy": "microphone=()" } },
    { prepare: 'Object.defineProperty(window, "isSecureContext", { value: false });' },
  ]) {
    await withWidget({ settings, ...given }, async (seen, uuid) => {
      const { page } = seen;
      await open(seen);
      const link = page.getByRole("link", { name: "Start a call (opens a new window)" });
      assert.equal(await link.getAttribute("href"), `${server.url}/talk/${uuid}`);
      assert.equal(await page.getByRole("button", { name: "Start a call" }).count(), 0);
      if (!("headers" in given)) return;
      const opened = page.context().waitForEvent("page");
      await link.click();
      assert.equal((await opened).url(), `${server.url}/talk/${uuid}`);
    });
  }
});

test("[WG25] if the page's CSP blocks the call's audio or socket, the talk window opens and the chat explains it", { skip, timeout }, async () => {
  for (const [policy, expects, attributes] of [
    // A nonce is handed on to modules, but not to an audio thread's.
    [strictPolicy(server.url, "'nonce-n'"), /script-src/, { nonce: "n" }],
    [strictPolicy(server.url, server.url), /connect-src/, {}],
  ] as const) {
    await withWidget({
      settings, attributes, expects, prepare: WATCH, headers: { "content-security-policy": policy },
    }, async (seen, uuid) => {
      const { page } = seen;
      await open(seen);
      const opened = page.context().waitForEvent("page");
      await press(seen, "Start a call");
      assert.equal((await opened).url(), `${server.url}/talk/${uuid}`);
      await page.getByText("Calls do not work inside this page.").waitFor();
      await page.getByRole("link", { name: "Call in a new window" }).waitFor();
      await page.getByRole("link", { name: "Start a call (opens a new window)" }).waitFor();
      await until(page, ALL_FREE);
      assert.equal(await seen.box.isVisible(), true);
    });
  }
});

test("[WG22] [WG26] mute silences the microphone and says so; a call continues with the chat closed, its launcher leads back, and no call survives the page", { skip, timeout }, async () => {
  await withWidget({ settings, prepare: WATCH }, async (seen) => {
    const { page } = seen;
    await open(seen);
    await press(seen, "Start a call");
    await inState(seen, "Listening");
    assert.equal(await page.evaluate("opened.tracks[0].enabled"), true);
    const mute = page.getByRole("button", { name: "Mute" });
    await mute.click();
    assert.equal(await mute.getAttribute("aria-pressed"), "true");
    assert.equal(await page.evaluate("opened.tracks[0].enabled"), false);
    await inState(seen, "Listening (you are muted)");
    await mute.click();
    assert.equal(await page.evaluate("opened.tracks[0].enabled"), true);
    await page.evaluate("opened.tracks[0].dispatchEvent(new Event('ended'))");
    await isOver(seen);
    await page.getByText("the microphone was disconnected").waitFor();
    await until(page, ALL_FREE);
    await press(seen, "Start a call");
    await inState(seen, "Listening");
    await press(seen, "Close the chat");
    await page.getByRole("button", { name: "Back to the call" }).click();
    await inState(seen, "Listening");
    assert.equal(await page.evaluate(FOCUSED), "Hang up");
    await press(seen, "Close the chat");
    await page.reload();
    await page.getByRole("button", { name: "Chat with Front desk" }).click();
    await page.getByText("The call has ended.").nth(1).waitFor();
    assert.equal(await bar(seen).count(), 0);
  });
});

test("[WG27] answers given before the chat are known in the call, which cannot start without them", { skip, timeout }, async () => {
  await withWidget({
    settings: { ...settings, initial_message: "Hello {{customer_name}}, hi!" },
    attributes: { "data-fields": '[{"name":"customer_name","label":"Your name"}]' },
  }, async (seen) => {
    const { page } = seen;
    await seen.launcher.click();
    await page.getByLabel("Your name").fill("Ada");
    assert.equal(await page.getByRole("button", { name: "Start a call" }).isVisible(), false);
    await page.keyboard.press("Enter");
    await press(seen, "Start a call");
    await seen.log.getByText("Hello Ada, hi!").nth(1).waitFor();
    await press(seen, "Hang up");
    await isOver(seen);
  });
});

test("[WG28] the server's reason for a call that fails or is cut short is shown", { skip, timeout }, async () => {
  const { key } = await server.newAccount({ balance: "0.01" });
  await withWidget({ settings, key }, async (seen) => {
    const { page } = seen;
    await open(seen);
    await press(seen, "Start a call");
    await page.getByText(/balance/i).waitFor();
    await isOver(seen);
    await page.routeWebSocket("**/call?*", (socket) => socket.onMessage((message) => {
      if (typeof message !== "string") return;
      socket.send(JSON.stringify({ type: "ready", call_id: 1 }));
      socket.send(JSON.stringify({ type: "end", reason: "silence" }));
      void socket.close();
    }));
    await press(seen, "Start a call");
    await page.getByText("The call ended because nobody spoke.").waitFor();
    await isOver(seen);
    assert.equal(await page.getByRole("link", { name: "new window" }).count(), 0);
  });
});

test("[WG29] any page may load the scripts of a call, and nothing else of the talk page", async () => {
  const { uuid } = await newAssistant(server);
  const { plain, gzip } = await bundlePage("widget-call.js");
  assert.ok(gzip.length <= 8 * 1024, `${gzip.length}`);
  for (const path of ["/widget-call.js", "/talk/worklet.js", "/talk/resample.js"]) {
    const response = await fetch(server.url + path, { headers: { Origin: "https://a.example" } });
    assert.equal(response.status, 200);
    assert.equal(response.headers.get("access-control-allow-origin"), "*");
    assert.equal(response.headers.get("cross-origin-resource-policy"), "cross-origin");
    const text = await response.text();
    if (path === "/widget-call.js") assert.equal(text, plain.toString());
  }
  for (const path of [`/talk/${uuid}`, "/talk/talk.js", "/talk/talk.css"]) {
    const { headers } = await fetch(server.url + path, { headers: { Origin: "https://a.example" } });
    assert.equal(headers.get("access-control-allow-origin"), null);
  }
});
