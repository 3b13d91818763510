// What has a width of its own: long names, money, times and states at the widths people have.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Locator, Page } from "playwright-core";
import { askUntil } from "#support/asking.ts";
import { noBrowser } from "#support/pages/browser.ts";
import { overhangOf, startDashboard } from "#support/pages/dashboard-page.ts";
import { onlyProof } from "#support/proof.ts";
import { newAssistant, newConversation } from "#support/server.ts";

const skip = noBrowser();
const { model, server, withDashboard, close } = await startDashboard();
after(close);

const NAME = "Zoë Müller-Lüdenscheidt von und zu Hohenfels-Waldburg";

/** Numbers, money and states that are not to be read whole. */
const cutIn = (page: Page): Promise<unknown> => page.evaluate(`
  [...document.querySelectorAll("main td.end, main td .badge")]
    .filter((element) => element.scrollWidth > element.clientWidth)
    .map((element) => element.textContent)`);

test("[DB545] at 1280 px lists truncate no number, amount or state, and a long name does not widen a phone's page", { skip: skip || onlyProof }, async () => {
  model.script(() => ({ tokens: ["At nine."] }));
  await server.app.features.accounts.credit(server.accountId, 20_000_000);
  const { uuid } = await newAssistant(server, { name: "Front desk of Harbour Bikes", status: "active" });
  const talk = await newConversation(server, uuid, { variables: { customer_name: NAME } });
  await server.call("POST", `/conversations/${talk}/messages`, { body: { message: "When?" } });
  await server.call("POST", `/user/conversations/${talk}/request-human`);
  const { id: caller } = await newAssistant(server, {
    type: "outbound", status: "active", post_call_evaluation: false,
  });
  // A voicemail answers, and the assistant hangs up.
  const made = await server.call("POST", "/user/make_call", {
    body: { assistant_id: caller, phone_number: "+14155550003" },
  });
  const { call_id: call } = made.body as { call_id: number };
  await askUntil(async () => (await server.call("GET", `/user/calls/${call}`)).body.status,
    (status) => status === "ended_by_assistant");
  await withDashboard(async ({ page, go }) => {
    await page.setViewportSize({ width: 1280, height: 800 });
    await go("/conversations");
    await page.locator("main td .badge", { hasText: "Waiting for a person" }).waitFor();
    await page.locator("main td.end").getByText("$0.01").first().waitFor();
    assert.deepEqual(await cutIn(page), []);
    await go("/calls");
    await page.locator("main td .badge", { hasText: "Ended by assistant" }).waitFor();
    assert.deepEqual(await cutIn(page), []);
    await page.setViewportSize({ width: 360, height: 740 });
    await go("/inbox");
    const row = page.getByRole("list", { name: "Conversations" }).getByRole("link");
    await row.waitFor();
    assert.ok(await overhangOf(page) <= 0);
    for (const part of [row.locator("time"), row.locator(".badge")]) {
      const { x, width } = await part.boundingBox() ?? assert.fail();
      assert.ok(x + width <= 360, `ends at ${x + width}`);
    }
  });
});

/** WCAG's spacing of letters, words and lines, as people have their browsers set it. */
const SPACED = `{
  const sheet = new CSSStyleSheet();
  sheet.replaceSync("* { line-height: 1.5 !important; letter-spacing: 0.12em !important;"
    + " word-spacing: 0.16em !important; }");
  document.adoptedStyleSheets.push(sheet);
}`;

test("[DB710] at 320 px (400 % zoom) a lead's number is whole, and with wider letter spacing the states of calls are", { skip: skip || onlyProof }, async () => {
  const { id: caller } = await newAssistant(server, {
    type: "outbound", status: "active", post_call_evaluation: false,
  });
  const { data: campaign } = (await server.call("POST", "/user/campaigns", {
    body: { name: "Winter", assistant_id: caller },
  })).body;
  await server.call("POST", "/user/lead", {
    body: { campaign_id: campaign.id, phone_number: "+4930123456780" },
  });
  const { call_id: call } = (await server.call("POST", "/user/make_call", {
    body: { assistant_id: caller, phone_number: "+14155550003" },
  })).body as { call_id: number };
  await askUntil(async () => (await server.call("GET", `/user/calls/${call}`)).body.status,
    (status) => status === "ended_by_assistant");
  await withDashboard(async ({ page, go }) => {
    const isWhole = async (text: Locator): Promise<void> => {
      await text.waitFor();
      const wide = await text.evaluate((one) => one.scrollWidth - one.clientWidth);
      assert.ok(wide <= 0, `${wide} px of ${await text.textContent()}`);
    };
    await page.setViewportSize({ width: 320, height: 256 });
    await go("/leads");
    await isWhole(page.locator(".two-lines > span", { hasText: "+49 30 123456780" }));
    await page.setViewportSize({ width: 1280, height: 800 });
    await go("/calls");
    await page.evaluate(SPACED);
    await isWhole(page.locator("td .badge", { hasText: "Ended by assistant" }).first());
  });
});

test("[DB750] at 1280 px column headings and built-in words in lists are whole in German, and in English with wider letter spacing", { skip: skip || onlyProof }, async () => {
  await newAssistant(server, { name: "Ada", type: "outbound" });
  await server.call("POST", "/user/invitations", { body: { email: "ben@example.org", role: "operator" } });
  for (const locale of ["de-DE", "en-US"]) {
    await withDashboard(async ({ page, go }) => {
      await page.setViewportSize({ width: 1280, height: 800 });
      if (locale === "en-US") await page.evaluate(SPACED);
      for (const [path, words] of [
        ["/assistants", /^(Ausgehend|Outbound)$/], ["/calls", /^(Ausgehend|Outbound)$/],
        ["/keys", /^(Lesen und schreiben|Read and write|Kommandozeile|Command line)$/],
        ["/audit", /^(Assistent angelegt|Assistant created)$/], ["/leads", /^\+49 /],
        ["/team", /:\d\d/],
      ] as const) {
        await go(path);
        await page.locator("main td", { hasText: words }).first().waitFor();
        assert.deepEqual(await page.evaluate(`[...document.querySelectorAll(".list th, .list td")]
          .filter((cell) => (cell.tagName === "TH" || ${String(words)}.test(cell.textContent))
            && cell.scrollWidth > cell.clientWidth).map((cell) => cell.textContent)`), [], path);
        assert.deepEqual(await page.evaluate(`[...document.querySelectorAll(".list tbody tr")]
          .filter((row) => row.offsetHeight > 53).map((row) => row.textContent)`), [], path);
      }
    }, { context: { locale } });
  }
});

test("[DB593] at 360 px lists truncate no phone number, time, state or button, in German too; at 320 px the open tab is in view", { skip: skip || onlyProof }, async () => {
  const { id: caller } = await newAssistant(server, {
    type: "outbound", status: "active", post_call_evaluation: false,
  });
  const number = "+4930123456789";
  const { data: campaign } = (await server.call("POST", "/user/campaigns", {
    body: { name: "Autumn", assistant_id: caller },
  })).body;
  const lead = { campaign_id: campaign.id, phone_number: number };
  await server.call("POST", "/user/lead", { body: lead });
  const made = await server.call("POST", "/user/make_call", {
    body: { assistant_id: caller, phone_number: number },
  });
  const { call_id: call } = made.body as { call_id: number };
  await askUntil(async () => (await server.call("GET", `/user/calls/${call}`)).body.status,
    (status) => status.startsWith("ended"));
  await server.call("POST", "/user/blocked-numbers", { body: { phone_number: number } });
  const cells = "main td, main td .badge, main td .button, main .two-lines > :first-child";
  const cut = (page: Page, where = cells): Promise<unknown> => page.evaluate(`
    [...document.querySelectorAll("${where}")]
    .filter((element) => element.scrollWidth > element.clientWidth
      || [...element.querySelectorAll(".button")].some((button) =>
        button.getBoundingClientRect().right > element.getBoundingClientRect().right))
    .map((element) => element.textContent)`);
  await withDashboard(async ({ page, go }) => {
    await page.setViewportSize({ width: 360, height: 740 });
    for (const path of ["/calls", "/leads", "/leads/blocked"]) {
      await go(path);
      await page.locator("main td").getByText("+49 30 123456789").first().waitFor();
      assert.deepEqual(await cut(page), [], path);
    }
    await go("/audit");
    await page.locator("main td").getByText("Anruf").first().waitFor();
    // What was done may be long, and says itself whole to who points at it.
    assert.deepEqual(await cut(page, "main td:has(time), main .two-lines > small"), []);
    await go("/keys");
    await page.locator("main td").getByText("Widerrufen").first().waitFor();
    assert.deepEqual(await cut(page), []);
    await page.setViewportSize({ width: 320, height: 740 });
    await go("/numbers/sip-trunks");
    const tab = page.locator(".tabs [aria-current]");
    await tab.waitFor();
    const { x, width } = await tab.boundingBox() ?? assert.fail();
    assert.ok(x >= 0 && x + width <= 320, `${x} to ${x + width}`);
  }, { context: { locale: "de" } });
});

test("[DB614] on a phone a state that has its own column is not repeated", { skip }, async () => {
  const { uuid, id } = await newAssistant(server, { type: "outbound", status: "active" });
  const talk = await newConversation(server, uuid, { variables: { customer_name: "Ada" } });
  await server.call("POST", `/user/conversations/${talk}/request-human`);
  await server.call("POST", "/user/make_call", {
    body: { assistant_id: id, phone_number: "+14155550109" },
  });
  await withDashboard(async ({ page, go }) => {
    await page.setViewportSize({ width: 360, height: 740 });
    for (const [path, name, column] of [
      ["/calls", "0109", "Status"], ["/conversations", "Ada", "State"],
    ] as const) {
      await go(path);
      const row = page.locator("main tbody tr").filter({ hasText: name });
      await row.locator(".badge").waitFor();
      await page.getByText("Columns", { exact: true }).click();
      await page.getByRole("checkbox", { name: "Assistant", exact: true }).click();
      await page.getByRole("columnheader", { name: column, exact: true }).waitFor();
      assert.equal(await row.locator(".badge").count(), 1, path);
    }
  });
});

test("[DB615] [DB642] the dashboard follows the browser's font size, list rows too, without horizontal scrolling", { skip }, async () => {
  await server.call("POST", "/user/api-keys", { body: { name: "second" } });
  await withDashboard(async ({ page, go }) => {
    await page.setViewportSize({ width: 1280, height: 800 });
    const chromium = await page.context().newCDPSession(page);
    await chromium.send("Page.setFontSizes", { fontSizes: { standard: 32, fixed: 26 } });
    await page.reload();
    for (const path of ["/", "/inbox", "/conversations", "/team"]) {
      await go(path);
      await page.getByRole("heading", { level: 1 }).waitFor();
      assert.ok(await overhangOf(page) <= 0, path);
    }
    await go("/keys");
    const row = page.getByRole("table", { name: "API keys" }).locator("tbody tr").first();
    await row.waitFor();
    const { height = 0 } = await row.boundingBox() ?? {};
    assert.ok(Math.abs(height - 104) < 1, `a row is ${height} px high`);
    assert.equal(await page.evaluate("getComputedStyle(document.body).fontSize"), "30px");
    // [DB642]
    await page.setViewportSize({ width: 360, height: 740 });
    await page.keyboard.press("?");
    const keys = page.getByRole("dialog").locator(".dialog-body");
    await keys.waitFor();
    assert.ok(await keys.evaluate((body) => body.scrollWidth - body.clientWidth) <= 0);
  });
});

test("[DB575] a printed conversation has all its messages and no controls", { skip }, async () => {
  model.script(() => ({ tokens: ["Line\n\n".repeat(60)] }));
  const { uuid } = await newAssistant(server);
  const talk = await newConversation(server, uuid);
  await server.call("POST", `/conversations/${talk}/messages`, { body: { message: "When?" } });
  await withDashboard(async ({ page, go }) => {
    await page.setViewportSize({ width: 794, height: 1123 });
    await page.emulateMedia({ media: "print" });
    for (const path of ["/conversations/", "/inbox/"]) {
      await go(path + talk);
      await page.getByText("When?").first().waitFor();
      const log = page.locator(".conversations-messages > ol");
      await log.getByText("Line").last().waitFor();
      assert.equal(await log.evaluate((list) => list.scrollHeight - list.clientHeight), 0, path);
      assert.equal(await page.locator("nav, header.top, main .button, .inbox-composer")
        .filter({ visible: true }).count(), 0, path);
    }
  });
});

test("[DB673] neither the account's balance nor skip links are printed with a conversation", { skip }, async () => {
  const { key } = await server.newAccount({ balance: "0" });
  const { uuid } = await newAssistant(server, {}, key);
  const talk = await newConversation(server, uuid, { type: "test" });
  await server.call("POST", `/user/conversations/${talk}/end`, { key });
  await withDashboard(async ({ page, go }) => {
    await go(`/conversations/${talk}`);
    await page.getByText("The conversation has ended.").waitFor();
    const kept = [page.getByText("The balance is used up"), page.getByText("Skip to content")];
    for (const one of kept) await one.waitFor();
    await page.emulateMedia({ media: "print" });
    for (const one of kept) assert.equal(await one.isVisible(), false);
    assert.ok(await page.getByText("The conversation has ended.").isVisible());
  }, { key });
});

test("[DB576] long names take one line in the inbox, and the German menu breaks no word and fits 320 px", { skip }, async () => {
  const { uuid } = await newAssistant(server, { name: `${NAME} `.repeat(4).trim() });
  const talk = await newConversation(server, uuid);
  await server.call("POST", `/user/conversations/${talk}/request-human`);
  await withDashboard(async ({ page, go }) => {
    await go("/inbox");
    const foot = page.getByRole("link").filter({ hasText: NAME }).locator(".inbox-foot");
    const { height } = await foot.first().boundingBox() ?? assert.fail();
    assert.ok(height < 40, `${height}`);
    const link = page.getByRole("navigation").getByRole("link", { name: "Posteingang" });
    const lines = await link.evaluate((element) => {
      const range = document.createRange();
      range.selectNodeContents([...element.childNodes].find(({ nodeType }) => nodeType === 3)!);
      return range.getClientRects().length;
    });
    assert.equal(lines, 1);
    await page.setViewportSize({ width: 320, height: 640 });
    await go("/");
    await page.getByRole("button", { name: "90 Tage" }).waitFor();
    assert.ok(await overhangOf(page) <= 0);
  }, { context: { locale: "de" } });
});

test("[DB582] at 320 px (400 % zoom) no page scrolls sideways, however large the balance", { skip }, async () => {
  const { key } = await server.newAccount({ balance: "104994.00" });
  await withDashboard(async ({ page, go }) => {
    await page.setViewportSize({ width: 320, height: 640 });
    await go("/");
    await page.locator("header.top").getByText("$104,994.00").waitFor();
    assert.ok(await overhangOf(page) <= 0, String(await overhangOf(page)));
  }, { key });
});

/** Whether its first word is in what is shown of this element. */
const isBegun = (element: Locator): Promise<boolean> => element.evaluate((cell) => {
  const text = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT).nextNode()!;
  const word = document.createRange();
  word.setStart(text, 0);
  word.setEnd(text, 4);
  const { left, right } = word.getBoundingClientRect();
  const box = cell.getBoundingClientRect();
  return left >= box.left && right <= box.right;
});

test("[DB583] right-to-left text starts on the right in lists, in the inbox and in text fields", { skip }, async () => {
  const words = "مكتب الاستقبال في المدينة القديمة عند البوابة الشرقية ".repeat(4).trim();
  model.script(() => ({ tokens: [words] }));
  const { uuid } = await newAssistant(server, { name: words });
  const talk = await newConversation(server, uuid, { variables: { customer_name: words } });
  await server.call("POST", `/conversations/${talk}/messages`, { body: { message: words } });
  await server.call("POST", `/user/conversations/${talk}/request-human`);
  await withDashboard(async ({ page, go }) => {
    const begins = async (selector: string): Promise<void> => {
      const element = page.locator(selector, { hasText: "مكتب" }).first();
      await element.waitFor();
      assert.ok(await isBegun(element), selector);
    };
    await go("/assistants");
    await begins("main td");
    await go("/conversations");
    await begins("main td");
    await begins("main td .two");
    await go(`/inbox/${talk}`);
    for (const part of [".inbox-head strong", ".inbox-last", ".inbox-foot > span"]) await begins(part);
    const reply = page.getByLabel("Your reply");
    await reply.fill(words);
    assert.equal(await reply.evaluate((box) => getComputedStyle(box).direction), "rtl");
  });
});

test("[DB579] [DB641] in forced colours switches, selections and bars are visible, and messages and notices have a border", { skip }, async () => {
  const { uuid } = await newAssistant(server, { status: "active" });
  const talk = await newConversation(server, uuid);
  await withDashboard(async ({ page, go }) => {
    await page.emulateMedia({ forcedColors: "active" });
    await go(`/conversations/${talk}`);
    const toggle = page.getByRole("switch", { name: "The AI answers" });
    const image = async (): Promise<string> => {
      await toggle.blur();
      return (await toggle.screenshot()).toString("base64");
    };
    await toggle.waitFor();
    const on = await image();
    await toggle.click();
    await page.getByText("Off: messages are kept").waitFor();
    assert.notEqual(await image(), on);
    const edge = await page.locator(".conversations-message").first()
      .evaluate((message) => getComputedStyle(message).borderTopStyle);
    assert.equal(edge, "solid");
    // [DB641]
    const colour = (element: Locator): Promise<string> =>
      element.evaluate((one) => getComputedStyle(one).backgroundColor);
    await go("/");
    const [chosen, other] = ["30 days", "7 days"].map((name) => page.getByRole("button", { name }));
    await chosen!.waitFor();
    assert.notEqual(await colour(chosen!), await colour(other!));
    const pages = page.getByRole("navigation").getByRole("link");
    assert.notEqual(await colour(pages.filter({ hasText: "Overview" })),
      await colour(pages.filter({ hasText: "Calls" })));
    const square = page.locator(".chart .legend i").first();
    await square.waitFor();
    assert.notEqual(await colour(square), await colour(page.locator(".card").first()));
  });
});

/** Where the focus is, if anything lies above it. */
const COVERED = `(() => {
  const { left, top, width, height } = document.activeElement.getBoundingClientRect();
  const above = document.elementFromPoint(left + width / 2, top + Math.min(height / 2, 15));
  return above?.closest(".top, .unsaved-bar, .chosen-bar, .form-actions:not(:focus-within)") && [
    document.activeElement.outerHTML.slice(0, 99), above.outerHTML.slice(0, 99)];
})()`;

test("[DB652] the focused element is never hidden under a fixed bar, even at 400 % zoom", { skip }, async () => {
  const { id, uuid } = await newAssistant(server, { name: "Front desk" });
  await Promise.all(Array.from({ length: 15 }, () => newConversation(server, uuid)));
  await withDashboard(async ({ page, go }) => {
    const walk = async (keys: string[], steps: number): Promise<void> => {
      for (const key of keys.flatMap((one) => Array<string>(steps).fill(one))) {
        await page.keyboard.press(key);
        assert.equal(await page.evaluate(COVERED), null, key);
      }
    };
    await page.setViewportSize({ width: 320, height: 256 });
    await go(`/assistants/${id}`);
    const name = page.getByLabel("Name", { exact: true });
    await name.fill("Reception");
    await page.getByRole("region", { name: "Unsaved changes" }).waitFor();
    await walk(["Tab", "Shift+Tab"], 6);
    await name.fill("Front desk");
    await go("/webhooks");
    await page.getByRole("button", { name: "New endpoint" }).first().click();
    await page.getByLabel("All events").click();
    await walk(["Tab"], 8);
    await page.keyboard.press("Escape");
    await page.setViewportSize({ width: 1280, height: 600 });
    await go("/conversations");
    const boxes = page.locator("main tbody input[type=checkbox]");
    await boxes.nth(8).focus();
    await page.keyboard.press("Space");
    await page.locator(".chosen-bar").waitFor();
    await walk(["Shift+Tab"], 8);
    await page.evaluate("scrollTo(0, 700)");
    assert.equal(await page.evaluate(`{
      const { left, top } = document.querySelector(".chosen-bar").getBoundingClientRect();
      Boolean(document.elementFromPoint(left + 5, top + 5).closest(".chosen-bar"));
    }`), true);
  });
});

test("[DB653] a table in a reply is scrolled within its message, with its words whole and cells apart", { skip }, async () => {
  const names = Array.from({ length: 12 }, (_, at) => `Wednesday ${at}`);
  const line = (cells: string[]): string => `| ${cells.join(" | ")} |`;
  model.script(() => ({ tokens: [[line(names), line(names.map(() => "---")), line(names)].join("\n")] }));
  const { uuid } = await newAssistant(server, { name: "Timetable" });
  const talk = await newConversation(server, uuid);
  await server.call("POST", `/conversations/${talk}/messages`, { body: { message: "When?" } });
  await withDashboard(async ({ page, go }) => {
    await page.setViewportSize({ width: 360, height: 740 });
    await go(`/conversations/${talk}`);
    await page.getByRole("group", { name: "Table" }).waitFor();
    assert.deepEqual(await page.evaluate(`(() => {
      const group = document.querySelector(".markdown [role=group]");
      const list = group.closest("ol");
      const cell = group.querySelector("td");
      const { paddingLeft, lineHeight, borderLeftWidth } = getComputedStyle(cell);
      return {
        scrolls: group.scrollWidth > group.clientWidth, listScrolls: list.scrollWidth > list.clientWidth,
        isApart: parseFloat(paddingLeft) > 0 && parseFloat(borderLeftWidth) > 0,
        isBroken: cell.clientHeight > parseFloat(lineHeight) * 3,
      };
    })()`), { scrolls: true, listScrolls: false, isApart: true, isBroken: false });
  });
});

test("[DB660] lists nested twelve deep stay within their message, with room for their words", { skip }, async () => {
  const deep = Array.from({ length: 12 }, (_, at) => `${"   ".repeat(at)}1. Step ${at} of all`).join("\n");
  model.script(() => ({ tokens: [deep] }));
  const { uuid } = await newAssistant(server, { name: "Steps" });
  const talk = await newConversation(server, uuid);
  await server.call("POST", `/conversations/${talk}/messages`, { body: { message: "How?" } });
  await withDashboard(async ({ page, go }) => {
    await page.setViewportSize({ width: 320, height: 640 });
    await go(`/conversations/${talk}`);
    const items = page.locator(".markdown li");
    await items.nth(11).waitFor();
    const widths = await items.evaluateAll((all) => all.map((item) =>
      item.getBoundingClientRect().right > item.closest(".markdown")!.getBoundingClientRect().right
        ? 0 : item.clientWidth));
    assert.ok(Math.min(...widths) > 60, String(widths));
  });
});
