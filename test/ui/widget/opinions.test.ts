// What visitors think: thumbs beside replies, the question at the end, and beginning again; sound.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { noBrowser } from "#support/pages/browser.ts";
import { assertAccessible, isAnswered, open, startWorld, type Seen } from "#support/pages/widget-page.ts";
import { newAssistant, newConversation } from "#support/server.ts";

const skip = noBrowser();
const { model, server, withWidget, close } = await startWorld();
after(close);

const begun = async (seen: Seen): Promise<string> => {
  const made = seen.page.waitForRequest(/\/stream\?after=/);
  await open(seen);
  return /conversations\/([\w-]{36})/.exec((await made).url())?.[1] ?? "";
};
const answered = async (seen: Seen, text: string): Promise<void> => {
  model.script(() => ({ tokens: [text] }));
  await seen.say("Hello");
  await seen.log.getByText(text).waitFor();
  await isAnswered(seen);
};
const record = async (uuid: string) =>
  (await server.call("GET", `/user/conversations/${uuid}`)).body.data as {
    satisfaction: { score: number; comment: string | null } | null;
  };
const ratingsOf = async (uuid: string): Promise<unknown[]> =>
  ((await server.call("GET", `/conversations/${uuid}`)).body.history as { rating?: string }[])
    .map(({ rating }) => rating);
const thumb = ({ page }: Seen, name: "Helpful" | "Not helpful") =>
  page.getByRole("button", { name, exact: true }).last();
const isPressed = (seen: Seen, name: "Helpful" | "Not helpful", value: boolean) =>
  seen.page.locator(`[aria-label="${name}"][aria-pressed="${value}"]`).last().waitFor();
const stored = (seen: Seen, path: string) =>
  seen.page.waitForResponse((response) => response.url().endsWith(path) && response.ok());

test("[WG216] [WG246] a reply gets a thumb, which may change, be removed, and shows in all tabs", { skip }, async () => {
  await withWidget({}, async (seen) => {
    const uuid = await begun(seen);
    // What the assistant says first is no answer.
    assert.equal(await thumb(seen, "Helpful").count(), 0);
    await answered(seen, "At nine.");
    for (const [name, rating] of [["Helpful", "up"], ["Not helpful", "down"]] as const) {
      const done = stored(seen, "/ratings");
      await thumb(seen, name).click();
      await done;
      await isPressed(seen, name, true);
      assert.deepEqual(await ratingsOf(uuid), [undefined, undefined, rating]);
    }
    await isPressed(seen, "Helpful", false);
    // [WG246]
    await seen.page.emulateMedia({ forcedColors: "active" });
    const [up, down] = await Promise.all((["Helpful", "Not helpful"] as const).map((name) =>
      thumb(seen, name).evaluate((button) => getComputedStyle(button).color)));
    assert.notEqual(up, down);
    await seen.page.emulateMedia({ forcedColors: null });
    await seen.page.reload();
    await isPressed(seen, "Not helpful", true);
    const back = stored(seen, "/ratings");
    await thumb(seen, "Not helpful").click();
    await back;
    assert.deepEqual(await ratingsOf(uuid), [undefined, undefined, undefined]);
  });
  await withWidget({ settings: { widget_settings: { ratings: false } } }, async (seen) => {
    await begun(seen);
    await answered(seen, "At nine.");
    assert.equal(await thumb(seen, "Helpful").count(), 0);
  });
});

test("[WG217] visitors who start anew are asked for a rating, and the account can read it", { skip }, async () => {
  await withWidget({}, async (seen) => {
    const { page } = seen;
    const uuid = await begun(seen);
    await answered(seen, "At nine.");
    await page.getByRole("button", { name: "More" }).click();
    await page.getByRole("button", { name: "New conversation" }).click();
    await page.getByText("How was this chat?").waitFor();
    await assertAccessible(seen);
    await page.getByRole("radio", { name: "4 of 5" }).check();
    await page.getByRole("textbox", { name: /Anything/ }).fill("Quick.");
    const made = page.waitForRequest((request) => request.url().endsWith("/api/conversations"));
    const done = stored(seen, "/satisfaction");
    await page.locator("assistant-chat .opinion .main").click();
    await Promise.all([made, done]);
    await seen.box.waitFor();
    assert.equal(await seen.log.locator(".item.user").count(), 0);
    const { satisfaction } = await record(uuid);
    assert.deepEqual([satisfaction?.score, satisfaction?.comment], [4, "Quick."]);
  });
});

test("[WG218] an ended chat asks for a rating once; visitors who decline are left alone", { skip }, async () => {
  await withWidget({}, async (seen) => {
    const { page } = seen;
    const uuid = await begun(seen);
    await answered(seen, "At nine.");
    await server.call("POST", `/user/conversations/${uuid}/end`);
    await page.getByText("How was this chat?").waitFor();
    await page.getByRole("button", { name: "No, thank you" }).click();
    await page.getByText("How was this chat?").waitFor({ state: "hidden" });
    assert.equal((await record(uuid)).satisfaction, null);
    await page.reload();
    await page.getByText("This conversation has ended.").waitFor();
    assert.equal(await page.getByText("How was this chat?").isVisible(), false);
    await page.getByRole("button", { name: "New conversation", exact: true }).click();
    await seen.box.waitFor();
  });
});

test("[WG260] visitors who rate an ended chat are thanked, audibly for screen readers too", { skip }, async () => {
  await withWidget({}, async (seen) => {
    const { page } = seen;
    const uuid = await begun(seen);
    await answered(seen, "At nine.");
    await server.call("POST", `/user/conversations/${uuid}/end`);
    await page.getByRole("radio", { name: "5 of 5" }).check();
    const done = stored(seen, "/satisfaction");
    await page.locator("assistant-chat .opinion .main").click();
    await done;
    await page.getByRole("status").getByText("Thank you for telling us. This conversation has ended.")
      .waitFor();
  });
});

test("[WG219] ratings are refused where they make no sense, and an empty comment is dropped", async () => {
  const { uuid: assistant } = await newAssistant(server);
  const uuid = await newConversation(server, assistant);
  const rate = (path: string, of: object) =>
    server.call("POST", `/conversations/${uuid}/${path}`, { body: of });
  assert.equal((await rate("ratings", { turn_id: 1, rating: "great" })).status, 422);
  const missing = await rate("ratings", { turn_id: 999_999, rating: "up" });
  assert.deepEqual([missing.status, missing.body.error], [404, "Reply not found"]);
  for (const score of [0, 6, 2.5, "many"]) {
    assert.equal((await rate("satisfaction", { score })).status, 422, `${score}`);
  }
  assert.equal((await rate("satisfaction", { score: 5, comment: "  " })).status, 200);
  assert.deepEqual((await record(uuid)).satisfaction?.comment, null);
});

test("[WG220] [WG247] sound is off until it is turned on, and stays on in the next visit", { skip }, async () => {
  await withWidget({ prepare: "window.sounds = 0; const start = OscillatorNode.prototype.start; OscillatorNode.prototype.start = function (...given) { sounds += 1; return start.apply(this, given); };" }, async (seen) => {
    const { page } = seen;
    const uuid = await begun(seen);
    const menu = page.getByRole("button", { name: "More" });
    await menu.click();
    await page.getByRole("button", { name: "Turn sound on" }).click();
    await menu.click();
    await page.getByRole("button", { name: "Turn sound off" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Turn sound off" }).waitFor({ state: "hidden" });
    assert.equal(await seen.panel.isVisible(), true);
    // [WG247] Where the chat fills the screen, too.
    await page.setViewportSize({ width: 360, height: 640 });
    await page.reload();
    await page.getByRole("button", { name: "More" }).click();
    await page.getByRole("button", { name: "Turn sound off" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Turn sound off" }).waitFor({ state: "hidden" });
    assert.equal(await seen.panel.isVisible(), true);
    assert.match(uuid, /^[\w-]{36}$/);
  });
});
