// The chat widget in a real browser, on a page of another origin under a strict policy: streaming,
// reload, lost networks, stop, retries and their price, hostile text, looks and access.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { after, test } from "node:test";
import { bundlePage } from "#ui/build.ts";
import { contrast, inkOn, palette, parseColour, readableOn } from "#ui/widget/colour.ts";
import { startEndpoint } from "#support/endpoint.ts";
import { noBrowser, until } from "#support/pages/browser.ts";
import {
  HOSTILE, isAnswered, open, openPage, startWorld, type Seen,
} from "#support/pages/widget-page.ts";
import { newAssistant } from "#support/server.ts";

const skip = noBrowser();
const { model, server, host, browser, withWidget, held, close } = await startWorld();
after(close);

test("[WG1] a reply is drawn while it is being written", { skip }, async () => {
  await withWidget({}, async (seen) => {
    const reply = held(1);
    await open(seen);
    await seen.say("Hello");
    await seen.log.getByText("One", { exact: true }).waitFor();
    assert.deepEqual(await seen.replies(), ["Hi!", "One"]);
    reply.go();
    await seen.log.getByText("One two three four.").waitFor();
    await isAnswered(seen);
    assert.deepEqual(await seen.replies(), ["Hi!", "One two three four."]);
  });
});

test("[WG2] a page reloaded in mid-reply continues where it was", { skip }, async () => {
  await withWidget({}, async (seen) => {
    const reply = held(2);
    await open(seen);
    await seen.say("Hello");
    await seen.log.getByText("One two", { exact: true }).waitFor();
    const resumed = seen.page.waitForRequest(/\/stream\?after=/);
    await seen.page.reload();
    assert.match((await resumed).url(), /after=\d+\.8$/);
    await seen.log.getByText("One two", { exact: true }).waitFor();
    reply.go();
    await seen.log.getByText("One two three four.").waitFor();
    await isAnswered(seen);
    assert.deepEqual(await seen.replies(), ["Hi!", "One two three four."]);
    assert.equal(await seen.log.locator(".item.user").count(), 1);
  });
});

test("[WG3] a network failure in mid-reply costs nothing and doubles nothing", { skip }, async () => {
  await withWidget({}, async (seen) => {
    const reply = held(2);
    await open(seen);
    await seen.say("Hello");
    await seen.log.getByText("One two", { exact: true }).waitFor();
    await seen.page.context().setOffline(true);
    await seen.page.getByText("No connection.").waitFor();
    reply.go();
    const resumed = seen.page.waitForRequest(/\/stream\?after=\d+\.8$/);
    await seen.page.context().setOffline(false);
    await resumed;
    await seen.log.getByText("One two three four.").waitFor();
    await isAnswered(seen);
    assert.deepEqual(await seen.replies(), ["Hi!", "One two three four."]);
    assert.equal(await seen.page.getByText("No connection.").isVisible(), false);
  });
});

test("[WG4] stop keeps the text shown so far, and the next message can be sent", { skip }, async () => {
  await withWidget({}, async (seen) => {
    const reply = held(2);
    await open(seen);
    await seen.say("Hello");
    await seen.log.getByText("One two", { exact: true }).waitFor();
    await seen.page.getByRole("button", { name: "Stop the reply" }).click();
    await seen.log.getByText("Stopped").waitFor();
    reply.go();
    await isAnswered(seen);
    model.script(() => ({ tokens: ["Fine."] }));
    await seen.say("Again");
    await seen.log.getByText("Fine.").waitFor();
    assert.deepEqual((await seen.replies()).map((text) => text.split("\n")[0]), [
      "Hi!", "One two", "Fine.",
    ]);
  });
});

test("[WG5] a failed send is retried with its idempotency key and charged once", { skip }, async () => {
  const { key } = await server.newAccount();
  const balance = async (): Promise<number> =>
    (await server.call("GET", "/user/me", { key })).body.total_balance as number;
  await withWidget({ key }, async (seen) => {
    const keys: (string | undefined)[] = [];
    let attempts = 0;
    await seen.page.route("**/messages", async (route) => {
      if (route.request().method() !== "POST") return route.continue();
      keys.push(route.request().headers()["idempotency-key"]);
      attempts += 1;
      // Lost on the way there, then on the way back.
      if (attempts === 2) await route.fetch();
      return attempts < 3 ? route.abort() : route.continue();
    });
    model.script(() => (attempts < 3 ? { status: 400 } : { tokens: ["All ", "well."] }));
    await open(seen);
    await seen.say("Hello");
    await seen.page.getByText("could not be sent").waitFor();
    assert.equal(await balance(), 5);
    await seen.page.getByRole("button", { name: "Try again" }).click();
    await seen.page.getByText("could not be answered").waitFor();
    assert.equal(await balance(), 5);
    await seen.page.getByRole("button", { name: "Try again" }).click();
    await seen.log.getByText("All well.").waitFor();
    await isAnswered(seen);
    assert.equal(keys.length, 3);
    assert.equal(new Set(keys).size, 1);
    assert.match(keys[0] ?? "", /^[0-9a-f]{32}$/);
    assert.equal(await balance(), 4.99);
    assert.equal(await seen.log.locator(".item.user").count(), 1);
    assert.deepEqual(await seen.replies(), ["Hi!", "All well."]);
  });
});

test("[WG6] a reply's text becomes only words, lists, code and safe links", { skip }, async () => {
  await withWidget({}, async (seen) => {
    model.script(() => ({ tokens: HOSTILE.match(/[^]{1,7}/g) ?? [] }));
    await open(seen);
    await seen.say("Hello");
    await isAnswered(seen);
    await seen.log.getByText('document.title = "owned"').waitFor();
    assert.equal(await seen.page.title(), "Harbour Bikes");
    const reply = seen.log.locator(".item.assistant").last();
    const names = await reply.locator("*").evaluateAll((all) =>
      [...new Set(all.map(({ localName }) => localName))].sort());
    assert.deepEqual(names, ["a", "br", "code", "em", "li", "ol", "p", "pre", "span", "strong", "ul"]);
    const attributes = await reply.locator("*").evaluateAll((all) =>
      [...new Set(all.flatMap((one) => one.getAttributeNames()))].sort());
    assert.deepEqual(attributes, [
      "aria-label", "class", "dir", "href", "rel", "role", "start", "tabindex", "target",
    ]);
    const links = await reply.locator("a").evaluateAll((all) =>
      (all as HTMLAnchorElement[]).map(({ href, rel, target }) => [href, rel, target].join(" ")));
    for (const link of links) assert.match(link, /^(https:\/\/|mailto:)\S+ noopener noreferrer _blank$/);
    assert.deepEqual(links.map((link) => new URL(link.split(" ")[0] ?? "").host), [
      "a.example", "x.example", "ok.example", "good.example", "", "plain.example",
    ]);
  });
});

test("[WG7] with any colour setting all text keeps a contrast of 4.5", () => {
  const rgb = (text: string): [number, number, number] => text.startsWith("#")
    ? [...parseColour(text)] as [number, number, number]
    : (text.match(/\d+/g) ?? []).map(Number) as [number, number, number];
  const random = (): string =>
    `#${Math.floor(Math.random() * 0x1000000).toString(16).padStart(6, "0")}`;
  const colours = ["#fff", "#000", "#ffff00", "#777777", ...Array.from({ length: 50 }, random)];
  for (const colour of colours) {
    for (const isDark of [false, true]) {
      const made = palette(colour, isDark);
      const pairs = [
        ["--on-accent", "--accent"], ["--on-strong", "--strong"], ["--strong", "--paper"],
        ["--strong", "--card"], ["--ink", "--card"], ["--ink", "--paper"], ["--soft", "--paper"],
        ["--soft", "--card"], ["--danger", "--card"],
      ] as const;
      for (const [text, behind] of pairs) {
        const found = contrast(rgb(made[text] ?? ""), rgb(made[behind] ?? ""));
        assert.ok(found >= 4.5, `${colour} ${isDark} ${text} on ${behind}: ${found}`);
      }
      assert.ok(contrast(rgb(made["--edge"] ?? ""), rgb(made["--card"] ?? "")) >= 3);
    }
  }
  assert.ok(Math.abs(contrast([255, 255, 255], [0, 0, 0]) - 21) < 1e-9);
  assert.deepEqual(inkOn([255, 255, 0]), [0, 0, 0]);
  assert.deepEqual(readableOn([0, 0, 139], [255, 255, 255]), [0, 0, 139]);
  assert.deepEqual(parseColour("no colour"), parseColour("#2563eb"));
});

const focused = `(() => {
  const inner = document.activeElement.shadowRoot?.activeElement;
  return inner ? inner.getAttribute("aria-label") ?? inner.textContent : document.activeElement.localName;
})()`;

test("[WG8] everything works by keyboard, and the focus returns to where it was", { skip }, async () => {
  await withWidget({}, async (seen) => {
    const { page } = seen;
    const reply = held(1);
    await seen.launcher.waitFor();
    await page.getByRole("link", { name: "More" }).focus();
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(focused), "Chat with Front desk");
    await page.keyboard.press("Enter");
    await seen.log.getByText("Hi!").waitFor();
    assert.equal(await page.evaluate(focused), "Your message");
    await page.keyboard.type("First line");
    await page.keyboard.press("Shift+Enter");
    await page.keyboard.type("second");
    await page.keyboard.press("Enter");
    await seen.log.getByText("First line").waitFor();
    await page.getByRole("button", { name: "Stop the reply" }).waitFor();
    await seen.log.getByText("One", { exact: true }).waitFor();
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(focused), "Stop the reply");
    await page.keyboard.press("Enter");
    await seen.log.getByText("Stopped").waitFor();
    assert.equal(await page.evaluate(focused), "Your message");
    reply.go();
    await page.keyboard.press("Shift+Tab");
    assert.equal(await page.evaluate(focused), "Messages");
    await page.keyboard.press("Escape");
    assert.equal(await page.evaluate(focused), "Chat with Front desk");
    assert.equal(await seen.panel.count(), 0);
  });
});

interface Violation {
  id: string;
  impact: string;
  nodes: { html: string; failureSummary: string }[];
}

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

async function seriousIn({ page }: Seen): Promise<string[]> {
  await page.evaluate(AXE);
  const found = await page.evaluate("axe.run().then(({ violations }) => violations)") as Violation[];
  return found.filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html + node.failureSummary).join()}`);
}

test("[WG9] axe finds nothing serious, closed or open, light or dark, in awkward colours", { skip }, async () => {
  for (const [color, colorScheme] of [["#ffe600", "light"], ["#777777", "dark"]] as const) {
    await withWidget({
      settings: { widget_settings: { color } },
      context: { colorScheme, reducedMotion: "reduce" },
      attributes: { "data-header-subtitle": "We answer at once" },
    }, async (seen) => {
      model.script(() => ({ tokens: [`See [this](https://a.example/) and \`code\`.\n\n\`\`\`\n${"wide ".repeat(40)}\n\`\`\``] }));
      await seen.launcher.waitFor();
      assert.deepEqual(await seriousIn(seen), []);
      await open(seen);
      await seen.say("Hello");
      await seen.log.getByText("See this").waitFor();
      await isAnswered(seen);
      assert.deepEqual(await seriousIn(seen), []);
    });
  }
});

test("[WG10] both script addresses serve the same small file, cached by its content", async () => {
  const { gzip, plain } = await bundlePage("widget.js");
  assert.ok(gzip.length <= 15 * 1024, `${gzip.length}`);
  for (const name of ["widget.js", "embed.js"]) {
    const response = await fetch(`${server.url}/${name}`);
    assert.equal(response.status, 200);
    assert.equal(await response.text(), plain.toString());
    assert.equal(response.headers.get("content-encoding"), "gzip");
    assert.equal(response.headers.get("access-control-allow-origin"), "*");
    assert.match(response.headers.get("cache-control") ?? "", /public, max-age=\d+/);
    const etag = response.headers.get("etag") ?? "";
    assert.match(etag, /^"[\w-]{22}"$/);
    const again = await fetch(`${server.url}/${name}`, { headers: { "If-None-Match": etag } });
    assert.equal(again.status, 304);
    assert.equal(await again.text(), "");
  }
});

test("[WG11] the widget adds no global to the page", { skip }, async () => {
  const names = "Reflect.ownKeys(window).map(String).filter((name) => !/^\\d+$/.test(name)).sort()";
  let without: unknown;
  await withWidget({ script: null }, async ({ page }) => {
    without = await page.evaluate(names);
  });
  await withWidget({}, async (seen) => {
    await open(seen);
    assert.deepEqual(await seen.page.evaluate(names), without);
    assert.equal(await seen.page.locator("body > *").count(), 3);
  });
});

test("[WG12] on a right-to-left page the chat is right-to-left, in the corner it is set to", { skip }, async () => {
  await withWidget({
    dir: "rtl", settings: { widget_settings: { position: "top-left" } },
  }, async (seen) => {
    model.script(() => ({ tokens: ["مرحبا بك."] }));
    await open(seen);
    await seen.say("سلام");
    await seen.log.getByText("مرحبا بك.").waitFor();
    const panel = (await seen.panel.boundingBox())!;
    assert.ok(panel.x < 30 && panel.y < 30);
    const log = (await seen.log.boundingBox())!;
    const mine = (await seen.log.locator(".item.user").boundingBox())!;
    const reply = (await seen.log.locator(".item.assistant").last().boundingBox())!;
    assert.ok(mine.x - log.x < 30, "what one said is at the left");
    assert.ok(log.x + log.width - reply.x - reply.width < 30, "the reply is at the right");
  });
});

test("[WG13] at 360 pixels the chat fills the screen without overflow, and all targets fit a thumb", { skip }, async () => {
  await withWidget({
    context: { viewport: { width: 360, height: 640 }, hasTouch: true, isMobile: true },
  }, async (seen) => {
    const { page } = seen;
    model.script(() => ({ tokens: [`${"long".repeat(40)} https://a.example/${"b".repeat(90)}`] }));
    await open(seen);
    await seen.say("Hello");
    await seen.log.getByText("longlong").waitFor();
    await isAnswered(seen);
    assert.deepEqual(await seen.panel.boundingBox(), { x: 0, y: 0, width: 360, height: 640 });
    const wide = await seen.panel.locator("*").evaluateAll((all) => all
      .filter((one) => one.checkVisibility() && !one.closest(".quiet"))
      .filter((one) => one.getBoundingClientRect().right > 360.5 || one.scrollWidth > 360)
      .map(({ outerHTML }) => outerHTML));
    assert.deepEqual(wide, []);
    const small = await seen.panel.locator("button, textarea, header a").evaluateAll((all) => all
      .filter((one) => one.checkVisibility())
      .map((one) => [one.outerHTML, one.getBoundingClientRect()] as const)
      .filter(([, { width, height }]) => width < 44 || height < 44).map(([text]) => text));
    assert.deepEqual(small, []);
    for (let presses = 0; presses < 8; presses += 1) {
      await page.keyboard.press("Tab");
      assert.notEqual(await page.evaluate("document.activeElement.localName"), "a");
    }
  });
});

test("[WG14] answers given before the chat become the conversation's variables", { skip }, async () => {
  const fields = [
    { name: "customer_name", label: "Your name", required: true },
    { name: "email", label: "E-mail", type: "email" },
  ];
  await withWidget({
    settings: { initial_message: "Hello {{customer_name}} of {{city}}, hi!" },
    attributes: {
      "data-fields": JSON.stringify(fields), "data-variables": '{"city":"Kiel"}',
      "data-modal-title": "Who are you?",
    },
  }, async (seen) => {
    const { page } = seen;
    await seen.launcher.click();
    await page.getByRole("heading", { name: "Who are you?" }).waitFor();
    assert.equal(await page.evaluate(
      `document.activeElement.shadowRoot.activeElement.name`), "customer_name");
    await page.getByRole("button", { name: "Start the chat" }).click();
    assert.equal(await seen.log.isVisible(), false);
    await page.getByLabel("Your name").fill("Ada");
    await page.keyboard.press("Enter");
    await seen.log.getByText("Hello Ada of Kiel, hi!").waitFor();
    assert.equal(await page.evaluate(focused), "Your message");
  });
});

test("[WG15] attributes of older embed codes override the settings, and a call can be started", { skip }, async () => {
  const { uuid } = await newAssistant(server, { initial_message: "Hi!" });
  const url = host.add({
    script: "embed.js",
    attributes: {
      "data-assistant-id": uuid, "data-position": "left-bottom", "data-color": "#800000",
      "data-header-title": "Bike desk", "data-button-main-text": "Ask us",
      "data-start-button-text": "Call",
    },
  });
  assert.ok(browser);
  const seen = await openPage(browser, url);
  await seen.page.getByRole("button", { name: "Ask us" }).click();
  await seen.log.getByText("Hi!").waitFor();
  await seen.page.getByRole("heading", { name: "Bike desk" }).waitFor();
  const panel = (await seen.panel.boundingBox())!;
  assert.ok(panel.x < 30 && panel.y > 30);
  const header = seen.panel.locator("header");
  assert.equal(
    await header.evaluate((one) => getComputedStyle(one).backgroundColor), "rgb(128, 0, 0)");
  await seen.page.getByRole("button", { name: "Call", exact: true }).waitFor();
  assert.deepEqual(seen.problems, []);
  await seen.page.context().close();
});

test("[WG17] a running tool is shown", { skip }, async () => {
  const endpoint = await startEndpoint();
  const { promise: asked, resolve: isAsked } = Promise.withResolvers<() => void>();
  endpoint.answer((_, response) => isAsked(() => response.end('{"free":true}')));
  const { status, body } = await server.call("POST", "/user/tools", {
    body: {
      name: "look_up_slots", description: "Looks up free slots", endpoint: endpoint.url,
      method: "POST", schema: [{ name: "day", type: "string", description: "Which day" }],
    },
  });
  assert.equal(status, 201);
  await withWidget({ settings: { tool_ids: [body.data.id] } }, async (seen) => {
    const call = { id: "c", name: "look_up_slots", arguments: '{"day":"Monday"}' };
    model.script(({ messages }) => messages.some(({ role }) => role === "tool")
      ? { tokens: ["Monday is free."] }
      : { tokens: [], toolCalls: [call], finishReason: "tool_calls" });
    await open(seen);
    await seen.say("Monday?");
    const answer = await asked;
    await seen.log.getByText("Using look up slots…").waitFor();
    answer();
    await seen.log.getByText("Monday is free.").waitFor();
    assert.deepEqual(await seen.replies(), ["Hi!", "Monday is free."]);
  });
  await endpoint.close();
});

test("[WG18] an assistant that is not allowed on this page shows nothing", { skip }, async () => {
  const settings = { allowed_origins: ["https://elsewhere.example"] };
  const { uuid } = await newAssistant(server, settings);
  const refused = await server.call("GET", `/widget/${uuid}`, {
    headers: { Origin: host.origin },
  });
  assert.equal(refused.status, 403);
  assert.deepEqual(refused.body, {
    status: false, error: "This origin may not use this assistant.",
  });
  assert.ok(browser);
  const seen = await openPage(browser, host.add({ attributes: { "data-assistant": uuid } }));
  const asked = seen.page.waitForEvent("requestfailed", (request) => request.url().includes(uuid));
  await seen.page.reload();
  await asked;
  await until(seen.page, "document.readyState === 'complete'");
  assert.equal(await seen.launcher.isVisible(), false);
  await seen.page.context().close();
});
