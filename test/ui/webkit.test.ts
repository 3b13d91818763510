// The widget and the dashboard in the engine of Safari, once along the way that most people go.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { noWebKit, openWebKit, type WebKit } from "#support/pages/webkit.ts";
import { startHost } from "#support/pages/widget-page.ts";
import { newAssistant, newConversation, startTestServer } from "#support/server.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";

const skip = noWebKit();
const timeout = 180_000;
const ENTER = "\uE007";

const model = await startScriptedModel();
const server = await startTestServer({ env: { PARLEY_MODEL_URL: model.url } });
const host = await startHost(server.url);
const { uuid } = await newAssistant(server, { initial_message: "Hi!" });
after(async () => {
  await host.close();
  await server.close();
  await model.close();
});

async function inWebKit(work: (page: WebKit) => Promise<void>): Promise<void> {
  const page = await openWebKit();
  try {
    await work(page);
  } finally {
    await page.close();
  }
}

test("[UI131] in WebKit the widget answers and shows the same after a reload", { skip, timeout }, async () => {
  const root = `document.querySelector("assistant-chat")?.shadowRoot`;
  const answer = `${root}?.querySelector(".item.assistant table td")?.textContent === "nine"`;
  model.script(() => ({ tokens: ["| Day | Open |\n", "|---|---|\n", "| nine | ten |\n"] }));
  await inWebKit(async (page) => {
    await page.go(host.add({ attributes: { "data-assistant": uuid } }));
    await page.until(`${root}?.querySelector(".launcher")`);
    await page.press(`${root}.querySelector(".launcher")`);
    await page.until(`${root}?.activeElement?.tagName === "TEXTAREA"`);
    await page.type(`When?${ENTER}`);
    await page.until(answer);
    await page.reload();
    await page.until(`${root}?.querySelector("dialog")?.open && ${answer}`);
  });
  model.script(null);
});

test("[UI132] in WebKit people sign in to the dashboard and see events live", { skip, timeout }, async () => {
  const shows = (text: string): string =>
    `document.querySelector("#app")?.innerText.includes(${JSON.stringify(text)})`;
  await inWebKit(async (page) => {
    await page.go(`${server.url}/`);
    const field = `document.querySelector("input[type=password]")`;
    await page.until(field);
    await page.run(`${field}.focus()`);
    await page.type(`${server.key}${ENTER}`);
    await page.until(`${shows("Recent activity")} && ${shows("Live")}`);
    await page.run(`location.hash = "/conversations"`);
    await page.until(`document.title.startsWith("Conversations")`);
    const conversation = await newConversation(server, uuid);
    const short = conversation.slice(0, 8);
    await server.call("POST", `/conversations/${conversation}/messages`, {
      body: { message: "Hello" },
    });
    await page.until(shows(short));
    assert.equal(await page.run("return document.documentElement.scrollWidth - innerWidth"), 0);
  });
});
