// What a visitor sees of the people behind the chat, and gives them: the place in line, the face of
// who answers, files, and the chat by e-mail.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Locator, Page } from "playwright-core";
import { noBrowser } from "#support/pages/browser.ts";
import { assertAccessible, isAnswered, open, startWorld, type Seen } from "#support/pages/widget-page.ts";
import { newAssistant, newConversation } from "#support/server.ts";

const skip = noBrowser();
const { model, server, withWidget, close } = await startWorld();
after(close);

/** A picture of 8 by 8, green. */
const PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEElEQVR42mNgaGDAjoaWBACBfCABP+ifpgAAAABJRU5ErkJggg==";
const AVATAR = `data:image/png;base64,${PICTURE}`;

const begun = async (seen: Seen): Promise<string> => {
  const made = seen.page.waitForRequest(/\/stream\?after=/);
  await open(seen);
  return /conversations\/([\w-]{36})/.exec((await made).url())?.[1] ?? "";
};

test("[WG227] a waiting visitor sees their place in line, then the face and name of who answers, in both themes", { skip }, async () => {
  const account = await server.newAccount();
  const { token: ana } = await server.app.features.accounts.createKey(account.accountId, "Ana Berg");
  const asAna = (method: string, path: string, body: object = {}) =>
    server.call(method, path, { key: ana, body });
  const ahead = await newAssistant(server, { desk: { visitor_may_ask: true } }, account.key);
  const first = await newConversation(server, ahead.uuid);
  await server.call("POST", `/conversations/${first}/request-human`);
  for (const theme of ["light", "dark"]) {
    await withWidget({
      key: account.key,
      settings: {
        desk: { visitor_may_ask: true }, widget_settings: { theme, avatar: AVATAR },
      },
    }, async (seen) => {
      const { page, panel } = seen;
      const uuid = await begun(seen);
      await panel.locator("header .face canvas").waitFor({ state: "attached" });
      await page.getByRole("button", { name: "Talk to a person" }).click();
      await page.getByText("You are number 2 in line.").waitFor();
      await assertAccessible(seen);
      if (theme === "dark") await asAna("PUT", "/user/avatar", { avatar: AVATAR });
      assert.equal((await asAna("POST", `/user/conversations/${uuid}/take-over`)).status, 200);
      await panel.locator(".desk").getByText("Ana Berg is answering.").waitFor();
      const face = panel.locator(".desk .face");
      if (theme === "dark") await face.locator("canvas").waitFor({ state: "attached" });
      else assert.equal(await face.textContent(), "AB");
      await page.reload();
      await panel.locator(".desk").getByText("Ana Berg is answering.").waitFor();
      if (theme === "dark") await face.locator("canvas").waitFor({ state: "attached" });
      await assertAccessible(seen);
    });
  }
});

/** A picture comes to the message box, by itself or with the words it is a picture of. */
const bring = (page: Page, how: "paste" | "drop", name: string, text = ""): Promise<unknown> =>
  page.evaluate(`(() => {
    const given = new DataTransfer();
    const bytes = Uint8Array.from(atob("${PICTURE}"), (one) => one.charCodeAt(0));
    given.items.add(new File([bytes], "${name}", { type: "image/png" }));
    if (${JSON.stringify(text)}) given.setData("text/plain", ${JSON.stringify(text)});
    const init = { clipboardData: given, dataTransfer: given, bubbles: true, cancelable: true };
    const event = new ${how === "drop" ? "DragEvent" : "ClipboardEvent"}("${how}", init);
    document.querySelector("assistant-chat").shadowRoot.querySelector(".say textarea")
      .dispatchEvent(event);
    return event.defaultPrevented;
  })()`);

test("[WG228] [WG270] [WG271] files are chosen, pasted or dropped, can be removed, and are sent with the next message", { skip }, async () => {
  await withWidget({ settings: { widget_settings: { attachments: true } } }, async (seen) => {
    const { page, log } = seen;
    const uuid = await begun(seen);
    const choose = (name: string, mimeType: string, buffer: Buffer) =>
      page.locator("input[type=file]").setInputFiles({ name, mimeType, buffer });
    await choose("notes.txt", "text/plain", Buffer.from("no"));
    await page.getByText("Only pictures and PDF files can be sent.").waitFor();
    await choose("huge.png", "image/png", Buffer.alloc(10 * 1024 * 1024 + 1));
    await page.getByText("A file may be at most 10 MB.").waitFor();
    await choose("wrong.pdf", "application/pdf", Buffer.from("%PDF-1.7 taken away"));
    await page.getByRole("button", { name: "Remove wrong.pdf" }).click();
    await bring(page, "paste", "cells.png", "1\t2");
    await bring(page, "paste", "bike.png");
    await page.getByRole("button", { name: "Remove bike.png" }).waitFor();
    assert.equal(await page.getByRole("button", { name: "Remove cells.png" }).count(), 0);
    assert.equal(await bring(page, "drop", "dropped.png"), true, "the browser opens the file");
    await page.getByRole("button", { name: "Remove dropped.png" }).click();
    await assertAccessible(seen);
    // What was chosen is there after a reload.
    await page.reload();
    await page.getByRole("button", { name: "Remove bike.png" }).waitFor();
    model.script(() => ({ tokens: ["A fine bike."] }));
    await seen.box.press("Enter");
    await log.getByText("A fine bike.").waitFor();
    await isAnswered(seen);
    const link = log.getByRole("link", { name: "bike.png" });
    assert.match(await link.getAttribute("href") ?? "", new RegExp(`/conversations/${uuid}/attachments/`));
    await link.locator("canvas").waitFor({ state: "attached" });
    const { body } = await server.call("GET", `/conversations/${uuid}`);
    assert.deepEqual(
      body.history.slice(1).map(({ role, content, attachments }:
        { role: string; content: string; attachments?: { name: string }[] }) =>
        [role, content, attachments?.map(({ name }) => name)]),
      [["user", "", ["bike.png"]], ["assistant", "A fine bike.", undefined]]);
    await assertAccessible(seen);
  });
});

test("[WG281] choosing more files than a message takes shows a message", { skip }, async () => {
  await withWidget({ settings: { widget_settings: { attachments: true } } }, async (seen) => {
    await begun(seen);
    const [field, chosen] = [seen.page.locator("input[type=file]"), seen.panel.locator(".chosen button")];
    const choose = (names: string[]) => field.setInputFiles(names.map((name) =>
      ({ name, mimeType: "application/pdf", buffer: Buffer.from(`%PDF-1.7 ${name}`) })));
    const told = seen.page.getByText("A message can have at most 4 files.");
    await choose(["1.pdf", "2.pdf", "3.pdf", "4.pdf", "5.pdf"]);
    await told.waitFor();
    await chosen.nth(3).waitFor();
    await chosen.first().click();
    await choose(["6.pdf"]);
    await told.waitFor({ state: "hidden" });
    await seen.page.getByRole("button", { name: "Remove 6.pdf" }).waitFor();
    await choose(["7.pdf"]);
    await told.waitFor();
    assert.equal(await chosen.count(), 4);
  });
});

test("[WG229] the menu offers the chat by e-mail if that is enabled", { skip }, async () => {
  await withWidget({}, async (seen) => {
    const { page } = seen;
    await begun(seen);
    const menu = page.getByRole("button", { name: "More" });
    model.script(() => ({ tokens: ["At nine."] }));
    await seen.say("When?");
    await isAnswered(seen);
    await menu.click();
    await page.getByRole("button", { name: "Turn sound on" }).waitFor();
    assert.equal(await page.getByRole("button", { name: "Send this chat by e-mail" }).count(), 0);
    // This server has no mail server.
    await page.route(/\/api\/widget\//, async (route) => {
      const answer = await route.fetch();
      const json = { ...await answer.json() as object, transcripts: true };
      await route.fulfill({ response: answer, json });
    });
    let status = 429;
    await page.route(/\/transcript$/, (route) => route.fulfill({
      status, json: { status: status === 202 }, headers: { "access-control-allow-origin": "*" },
    }));
    await page.reload();
    await menu.click();
    await page.getByRole("button", { name: "Send this chat by e-mail" }).click();
    await page.getByLabel("Your e-mail address").fill("ada@shop.example");
    await assertAccessible(seen);
    await page.keyboard.press("Enter");
    await page.getByText("The chat could not be sent.").waitFor();
    status = 202;
    await page.keyboard.press("Enter");
    await page.getByText("The chat is on its way to ada@shop.example.").waitFor();
  });
});

const DAY_MS = 86_400_000;
const dayIn = (days: number): string =>
  new Date(Date.now() + days * DAY_MS).toISOString().slice(0, 10);

test("[WG230] visitors who ask for a person outside office hours read the next hours and leave contact details", { skip }, async () => {
  const day = [{ from: "09:00", to: "17:00" }];
  const hours = Object.fromEntries(
    ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"].map((name) => [name, day]));
  // Today may become tomorrow while this runs.
  const desk = (message: string, callback: boolean) => ({
    visitor_may_ask: true, office_hours: {
      time_zone: "UTC", hours, holidays: [dayIn(0), dayIn(1), dayIn(2)], message, callback,
    },
  });
  const opens = new Date(`${dayIn(3)}T09:00:00Z`);
  const context = { timezoneId: "UTC", locale: "en-GB" };
  await withWidget({ settings: { desk: desk("", true) }, context }, async (seen) => {
    const { page, panel } = seen;
    const uuid = await begun(seen);
    await page.getByRole("button", { name: "Talk to a person" }).click();
    const bar = panel.locator(".desk");
    const date = opens.toLocaleDateString("en", { weekday: "long", month: "long", day: "numeric", timeZone: "UTC" });
    await bar.getByText(`Nobody is available right now. Back again: ${date}`).waitFor();
    await bar.getByText("9:00 AM").waitFor();
    await page.getByRole("button", { name: "Leave your contact details" }).click();
    await page.getByLabel("Your name").fill("Bo");
    await assertAccessible(seen);
    // The form scrolls where there is no room for it; where one writes stays in view.
    const bottomOf = async (place: Locator): Promise<number> => {
      const { y, height } = await place.boundingBox() ?? assert.fail();
      return y + height;
    };
    assert.ok(await bottomOf(seen.box) < await bottomOf(panel));
    await panel.locator("form.mail").getByRole("button", { name: "Send" }).click();
    await page.getByText("Please give a phone number or an e-mail address.").waitFor();
    await page.getByLabel("Your phone number").fill("call me");
    await page.getByLabel("What is it about? (optional)").fill("My order");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.getByText("That could not be sent. Please check what you wrote.").waitFor();
    await page.getByLabel("Your phone number").fill("+49 30 1234");
    await page.keyboard.press("Enter");
    await page.getByText("Thank you. We will get back to you.").waitFor();
    await panel.locator("form.mail").getByRole("button", { name: "Dismiss" }).click();
    assert.equal(await page.getByText("Thank you. We will get back to you.").isVisible(), false);
    // Nobody is asked twice, also after a reload.
    await page.reload();
    await bar.getByText("Nobody is available right now.").waitFor();
    assert.equal(await page.getByRole("button", { name: "Leave your contact details" }).count(), 0);
    const [row] = (await server.call("GET", `/user/conversations/${uuid}/callbacks`)).body.data;
    assert.deepEqual([row.name, row.phone, row.email, row.wish], ["Bo", "+49 30 1234", null, "My order"]);
  });
  await withWidget({
    settings: { desk: desk("Wir sind im Urlaub.", false) }, lang: "de", context,
  }, async ({ page, panel, launcher }) => {
    await launcher.click();
    await page.getByRole("button", { name: "Mit einem Menschen sprechen" }).click();
    const date = opens.toLocaleDateString("de", { weekday: "long", month: "long", day: "numeric", timeZone: "UTC" });
    await panel.locator(".desk").getByText(`Wir sind im Urlaub. Wieder da: ${date}`).waitFor();
    assert.equal(await page.getByRole("button", { name: "Kontakt hinterlassen" }).count(), 0);
  });
});

test("[WG240] visitors who scrolled up stay there while an operator is typing", { skip }, async () => {
  const account = await server.newAccount();
  await withWidget({ key: account.key }, async (seen) => {
    const { panel, log } = seen;
    const uuid = await begun(seen);
    const asDesk = (path: string, body: object = {}) =>
      server.call("POST", `/user/conversations/${uuid}/${path}`, { key: account.key, body });
    const top = (): Promise<unknown> => log.evaluate((list) => list.scrollTop);
    model.script(() => ({ tokens: ["Line\n\n".repeat(60)] }));
    await seen.say("Hello");
    await isAnswered(seen);
    assert.equal((await asDesk("take-over")).status, 200);
    await seen.say("Is anybody there?");
    await log.getByText("Is anybody there?").waitFor();
    assert.notEqual(await top(), 0, "what one has written is shown");
    await log.evaluate((list) => list.scrollTo(0, 0));
    await asDesk("typing", { typing: true });
    await panel.locator(".desk").getByText("is typing").waitFor();
    assert.equal(await top(), 0);
  });
});
