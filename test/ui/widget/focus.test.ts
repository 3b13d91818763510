// Where the focus goes when the part of the widget that has it goes: whoever has no mouse must not
// begin at the top of the page again, and Escape must still close the chat.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { createSystem } from "#core/system.ts";
import { noBrowser, until } from "#support/pages/browser.ts";
import { isAnswered, open, startWorld, type Seen } from "#support/pages/widget-page.ts";

const skip = noBrowser();
const real = createSystem();
let aheadMicros = 0;
const system = { ...real, now: () => real.now() + aheadMicros };
const { server, withWidget, held, close } = await startWorld("refused", system);
after(close);

/** What has the focus in the widget once two frames are drawn: browsers notice late what went. */
const focused = async ({ page }: Seen): Promise<unknown> => {
  for (let frame = 0; frame < 2; frame += 1) await until(page, "true");
  return page.evaluate(`(({ activeElement: one }) => one && (one.ariaLabel || one.textContent))(
    document.querySelector("assistant-chat").shadowRoot)`);
};
const press = async ({ page }: Seen, name: string): Promise<void> => {
  await page.getByRole("button", { name, exact: true }).focus();
  await page.keyboard.press("Enter");
};

test("[WG330] whoever dismisses the greeting by keyboard is at the launcher", { skip }, async () => {
  const greeting = { text: "May we help?", after_seconds: 0 };
  await withWidget({ settings: { widget_settings: { greeting } } }, async (seen) => {
    await seen.page.getByText("May we help?").waitFor();
    await press(seen, "Dismiss");
    assert.equal(await focused(seen), "Chat with Front desk");
  });
});

test("[WG330] when a reply ends while Stop has the focus, the message box gets it", { skip }, async () => {
  await withWidget({}, async (seen) => {
    const reply = held(1);
    await open(seen);
    await seen.say("Hello");
    await seen.page.getByRole("button", { name: "Stop the reply" }).focus();
    reply.go();
    await isAnswered(seen);
    assert.equal(await focused(seen), "Your message");
  });
});

test("[WG330] the form for the chat by e-mail gives the focus back to the message box", { skip }, async () => {
  await withWidget({}, async (seen) => {
    await seen.page.route(/\/api\/widget\//, async (route) => {
      const answer = await route.fetch();
      const json = { ...await answer.json() as object, transcripts: true };
      await route.fulfill({ response: answer, json });
    });
    await seen.page.reload();
    await open(seen);
    await seen.say("Hello");
    await isAnswered(seen);
    await press(seen, "More");
    await press(seen, "Send this chat by e-mail");
    await press(seen, "Cancel");
    assert.equal(await focused(seen), "Your message");
  });
});

test("[WG330] when the chat ends while one writes, Escape still closes it and Enter begins the next", { skip }, async () => {
  const settings = { conversation_inactivity_timeout: 5 };
  await withWidget({ settings }, async (seen) => {
    await open(seen);
    assert.equal(await focused(seen), "Your message");
    aheadMicros += 600_000_000;
    await server.app.features.conversations.sweep();
    await seen.page.getByText("This conversation has ended.").waitFor();
    assert.equal(await focused(seen), "New conversation");
    await seen.page.keyboard.press("Escape");
    await seen.launcher.waitFor();
    assert.equal(await focused(seen), "Chat with Front desk");
    await seen.page.keyboard.press("Enter");
    await seen.panel.waitFor();
    assert.equal(await focused(seen), "New conversation");
    await seen.page.keyboard.press("Enter");
    await seen.box.waitFor();
    assert.equal(await focused(seen), "Your message");
  });
});
