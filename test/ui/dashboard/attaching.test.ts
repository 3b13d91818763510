// Files that a person at the desk sends to a visitor: two real browsers, the inbox and the widget.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Page } from "playwright-core";
import { noBrowser } from "#support/pages/browser.ts";
import { startDashboard } from "#support/pages/dashboard-page.ts";
import { askForPerson, assertAccessible, startHost } from "#support/pages/widget-page.ts";
import { newAssistant } from "#support/server.ts";

const skip = noBrowser();
const { server, browser, withDashboard, close } = await startDashboard();
const host = await startHost(server.url);
after(async () => {
  await host.close();
  await close();
});

const PICTURE = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEElEQVR42mNgaGDAjoaWBACBfCABP+ifpgAAAABJRU5ErkJggg==",
  "base64");

/** As a screen shot, or cells of a table, which come with a picture of themselves, are pasted. */
const paste = (page: Page, text: string, name = "pasted.png"): Promise<unknown> =>
  bring(page, ".inbox-composer textarea", "ClipboardEvent", "paste", text, name);

const bring = (
  page: Page, place: string, event: string, type: string, text: string, name: string,
): Promise<unknown> => page.evaluate(`
  (() => {
    const given = new DataTransfer();
    const bytes = Uint8Array.from(atob("${PICTURE.toString("base64")}"), (one) => one.charCodeAt(0));
    given.items.add(new File([bytes], "${name}", { type: "image/png" }));
    if (${JSON.stringify(text)}) given.setData("text/plain", ${JSON.stringify(text)});
    const event = new ${event}("${type}", {
      clipboardData: given, dataTransfer: given, bubbles: true, cancelable: true,
    });
    document.querySelector("${place}").dispatchEvent(event);
    return event.defaultPrevented;
  })()`);

test("[DB544] [DB680] [DB681] an operator chooses, pastes or drops files, removes or sends them, and the visitor gets them in the widget", { skip }, async () => {
  assert.ok(browser);
  const { uuid: assistant } = await newAssistant(server, {
    status: "active", initial_message: "Hi!", desk: { visitor_may_ask: true },
  });
  const visitor = await askForPerson(browser, host.add({ attributes: { "data-assistant": assistant } }));
  await withDashboard(async ({ page, go, look }) => {
    await go(`/inbox/${visitor.uuid}`);
    const files = page.getByRole("list", { name: "Attached files" });
    const choose = (name: string, mimeType: string, buffer: Buffer) =>
      page.locator(".inbox-composer input[type=file]").setInputFiles({ name, mimeType, buffer });
    await page.getByRole("button", { name: "Attach files" }).waitFor();
    await choose("notes.txt", "text/plain", Buffer.from("no"));
    await page.getByText("Only pictures (PNG, JPEG, GIF, WebP) and PDF files can be attached.").waitFor();
    await choose("offer.pdf", "application/pdf", Buffer.from("%PDF-1.7 an offer"));
    await files.getByText("offer.pdf").waitFor();
    // Wherever on the page: a browser opens what is dropped beside.
    assert.equal(await bring(page, "main", "DragEvent", "drop", "", "bike.png"), true);
    await files.getByText("bike.png").waitFor();
    await page.getByRole("button", { name: "Remove bike.png" }).click();
    await paste(page, "1\t2");
    await paste(page, "");
    await files.getByText("pasted.png").waitFor();
    // As a Mac's Finder has a file, and Firefox an image of a page.
    await paste(page, "copied.png", "copied.png");
    await files.getByText("copied.png").waitFor();
    await paste(page, "https://example.org/bike", "image.png");
    await files.getByText("image.png").waitFor();
    assert.deepEqual((await files.getByRole("listitem").allTextContents()),
      ["offer.pdf", "pasted.png", "copied.png", "image.png"]);
    await look();
    // What is attached is there when one comes back, as what is written is.
    await go("/inbox");
    await go(`/inbox/${visitor.uuid}`);
    await files.getByText("offer.pdf").waitFor();
    await page.getByRole("button", { name: "Send", exact: true }).click();
    await page.getByRole("list", { name: "Messages" }).getByRole("link", { name: /offer\.pdf/ }).waitFor();
    await files.waitFor({ state: "detached" });
    await page.getByText("You have this conversation.").waitFor();
  });
  const link = visitor.log.getByRole("link", { name: "offer.pdf" });
  assert.match(await link.getAttribute("href") ?? "", new RegExp(`/conversations/${visitor.uuid}/attachments/`));
  await visitor.log.getByRole("link", { name: "pasted.png" }).locator("canvas").waitFor({ state: "attached" });
  await visitor.page.reload();
  await link.waitFor();
  await assertAccessible(visitor);
  assert.deepEqual(visitor.problems, []);
  await visitor.page.context().close();
});

test("[DB772] files dropped while others are being uploaded are attached after them", { skip }, async () => {
  assert.ok(browser);
  const { uuid: assistant } = await newAssistant(server, {
    status: "active", initial_message: "Hi!", desk: { visitor_may_ask: true },
  });
  const visitor = await askForPerson(browser, host.add({ attributes: { "data-assistant": assistant } }));
  await withDashboard(async ({ page, go }) => {
    await go(`/inbox/${visitor.uuid}`);
    await page.getByRole("button", { name: "Attach files" }).waitFor();
    const held = Promise.withResolvers<void>();
    await page.route("**/attachments", (route) => held.promise.then(() => route.continue()), { times: 1 });
    const uploading = page.waitForRequest(/\/attachments$/);
    await bring(page, "main", "DragEvent", "drop", "", "bike.png");
    await uploading;
    await page.locator("main button[aria-busy=true]").first().waitFor();
    await bring(page, "main", "DragEvent", "drop", "", "bell.png");
    held.resolve();
    const files = page.getByRole("list", { name: "Attached files" });
    await files.getByText("bell.png").waitFor();
    assert.deepEqual(await files.getByRole("listitem").allTextContents(), ["bike.png", "bell.png"]);
  });
});
