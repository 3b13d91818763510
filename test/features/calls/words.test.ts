// Calls on a server that recognises no speech: the loopback caller's known lines, and the words a
// page tells, over the real media thread with the embedded voice.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Page } from "playwright-core";
import { createLegTranscriber } from "#features/calls/voice/leg-transcriber.ts";
import { LIMITS } from "#core/limits.ts";
import type { TranscriptEvent } from "#providers/speech/port.ts";
import { accountEvent } from "#support/account-events.ts";
import { lines, playCall } from "#support/calls/calls-by-clock.ts";
import { callTicket, WebCaller } from "#support/calls/web-caller.ts";
import { createManualSystem } from "#support/manual-clock.ts";
import { noBrowser, openBrowser, until, WATCH, type TestBrowser } from "#support/pages/browser.ts";
import { newAssistant, newConversation, startTestServer } from "#support/server.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";

const model = await startScriptedModel();
const server = await startTestServer({
  env: { PARLEY_MODEL_URL: model.url, PARLEY_WEBRTC: "off" },
});
model.script(() => ({ tokens: ["We ", "open ", "at ", "nine."] }));
after(async () => {
  await server.close();
  await model.close();
});

/** German: no recogniser of a server without vendors understands it. */
const DEAF = {
  language_id: 5, initial_message: "Hallo.", post_call_evaluation: false, status: "active",
  noise_cancellation: "off",
};

test("[VL163] a caller whose words arrive as text is understood without a recogniser, at speaking pace", () => {
  const steps = [
    { quietMs: 900 }, { say: "Hello there. When are you open on Saturday?" },
    { words: 3 }, { say: "Stop it now please." }, { quietMs: 1500 }, { hangUp: true as const },
  ];
  const answer = (): string => "one two three four five six seven eight nine ten";
  const heard = playCall({ steps, answer });
  const known = playCall({ steps, answer, knowsWords: true });
  assert.deepEqual(known.questions, ["Hello there. When are you open on Saturday?", "Stop it now please."]);
  assert.deepEqual(known.questions, heard.questions);
  assert.equal(lines(known).length, lines(heard).length);
  const spoken = known.said.find(({ speaker }) => speaker === "customer");
  const same = heard.said.find(({ speaker }) => speaker === "customer");
  assert.ok(spoken && same && Math.abs(spoken.startMs - same.startMs) <= 200);
  assert.ok(known.said.some(({ interrupted }) => interrupted), "the reply was not interrupted");
  assert.ok(Math.abs(known.lengthMs - heard.lengthMs) < 1000);
});

test("[VL164] words sent as text: a late final is waited for and never delivered twice", () => {
  const system = createManualSystem();
  const words = createLegTranscriber(system);
  const events: TranscriptEvent[] = [];
  const heard = { rate: 8000, language: "en", languages: ["en"], hints: [] };
  const stream = words.transcriber.open(heard, (event) => events.push(event));
  const told = (text: string, isFinal: boolean): void =>
    words.receive({ kind: "words", text, isFinal });
  const taken = (): string[] => events.splice(0).map((event) =>
    event.kind === "partial" || event.kind === "final" ? `${event.kind}: ${event.text}` : event.kind);

  let voice = (): void => undefined;
  const vad = words.watch({
    name: "test", frameSamples: () => 160,
    open: (_rate, tell) => {
      voice = () => tell(1);
      return { push: () => undefined, close: () => undefined };
    },
  });
  vad.open(8000, () => undefined);
  stream.finalize();
  assert.deepEqual(taken(), ["final: "]);
  voice();
  told("when are", false);
  stream.finalize();
  assert.deepEqual(taken(), ["partial: when are"]);
  told("When are you open?", true);
  system.advance(5000);
  assert.deepEqual(taken(), ["final: When are you open?"]);

  voice();
  told("how much", false);
  stream.finalize();
  system.advance(5000);
  assert.deepEqual(taken(), ["partial: how much", "final: how much"]);
  told("How much?", true);
  assert.deepEqual(taken(), []);
  // Part of what was said comes when the voice is over: the whole is answered, not the part.
  told("how much", false);
  assert.deepEqual(taken(), []);
  system.advance(5000);
  told("How much is it?", true);
  assert.deepEqual(taken(), ["final: how much", "final: is it?"]);
  stream.close();
  told("gone", true);
  assert.deepEqual(taken(), []);
});

async function record(callId: number, status: string) {
  const ended = await accountEvent(server, ({ type, call_id: of }) =>
    type === "call_ended" && of === callId);
  assert.equal(ended.status, status);
  return (await server.call("GET", `/user/calls/${callId}`)).body;
}

test("[CR201] the server's own caller rings even where nothing can recognise speech", { timeout: 180_000 }, async () => {
  const assistant = await newAssistant(server, DEAF);
  const { status, body } = await server.call("POST", "/user/try_call", {
    body: { assistant_id: assistant.id, lines: ["When are you open?"] },
  });
  assert.equal(status, 200, JSON.stringify(body));
  const call = await record(body.call_id, "ended_by_customer");
  assert.equal(call.hearing, "script");
  assert.equal(call.transcript, "AI: Hallo.\nCustomer: When are you open?\nAI: We open at nine.");
});

test("[WC127] without a recogniser on the server, a page sends a call's words as text: bounded and kept", { timeout: 180_000 }, async () => {
  const assistant = await newAssistant(server, DEAF);
  const widget = await server.call("GET", `/widget/${assistant.uuid}`);
  const { calls, hears, language } = widget.body;
  assert.deepEqual({ calls, hears, language }, { calls: true, hears: false, language: "de" });
  const conversation = await newConversation(server, assistant.uuid);
  const ticket = await callTicket(server, conversation);
  const caller = await WebCaller.open(server, conversation, ticket, { hearing: "browser" });
  assert.equal(caller.messages.find(({ type }) => type === "ready")?.hearing, "browser");
  await caller.until(() => caller.lines.length === 1);
  caller.send({ type: "words", text: "x".repeat(LIMITS.givenWordsCharsMax + 1), final: true });
  await caller.until(() => caller.messages.some(({ type }) => type === "error"));
  caller.send({ type: "words", text: "When are", final: false });
  caller.send({ type: "words", text: "When are\u0000\u2028you open?", final: true });
  await caller.until(() => caller.lines.length === 3);
  assert.deepEqual(caller.lines, [
    "assistant: Hallo.", "customer: When are you open?", "assistant: We open at nine.",
  ]);
  // More than anybody says; those that count are one at a time.
  for (let count = 0; count < 5 * LIMITS.givenWordsPerSecondMax; count += 1) {
    caller.send({ type: "words", text: "again", final: true });
  }
  caller.send({ type: "end" });
  await caller.closed();
  const call = await record(caller.callId, "ended_by_customer");
  assert.equal(call.hearing, "browser");
  const again = (call.transcript as string).match(/again/g)?.length ?? 0;
  assert.ok(again <= 2 * LIMITS.givenWordsPerSecondMax, `${again}`);
});

/** What is typed once the assistant has greeted is answered; then the call ends. */
async function assertRead(caller: WebCaller): Promise<void> {
  await caller.until(() => caller.lines.length === 1);
  caller.send({ type: "words", text: "When are you open?", final: true });
  await caller.until(() => caller.lines.length === 3);
  assert.deepEqual(caller.lines,
    ["assistant: Hi.", "customer: When are you open?", "assistant: We open at nine."]);
  caller.send({ type: "end" });
  await caller.closed();
}

test("[WC129] typed words are read, even where the server has a recogniser", { timeout: 180_000 }, async () => {
  const assistant = await newAssistant(server, { ...DEAF, language_id: 1, initial_message: "Hi." });
  const { body } = await server.call("GET", `/widget/${assistant.uuid}`);
  assert.equal(body.hears, true);
  const conversation = await newConversation(server, assistant.uuid);
  const ticket = await callTicket(server, conversation);
  const caller = await WebCaller.open(server, conversation, ticket, { hearing: "typed" });
  assert.equal(caller.messages.find(({ type }) => type === "ready")?.hearing, "typed");
  await assertRead(caller);
  assert.equal((await record(caller.callId, "ended_by_customer")).hearing, "typed");
});

test("[VL271] typed words are answered in a browser that cannot play sound and so sends none", { timeout: 180_000 }, async () => {
  const assistant = await newAssistant(server, { ...DEAF, initial_message: "Hi." });
  const conversation = await newConversation(server, assistant.uuid);
  const ticket = await callTicket(server, conversation);
  const caller = await WebCaller.open(server, conversation, ticket, { hearing: "typed" });
  await caller.fallSilent();
  await assertRead(caller);
});

test("[WC128] without such words the call is refused in a sentence meant for visitors", async () => {
  const assistant = await newAssistant(server, DEAF);
  const conversation = await newConversation(server, assistant.uuid);
  const caller = await WebCaller.open(server, conversation, await callTicket(server, conversation));
  const refusal = caller.messages.at(-1);
  assert.equal(refusal?.type, "error");
  assert.equal(refusal?.error, "Calls with this assistant are not possible at the moment.");
  await caller.closed();
});

/** What Chromium's own sends to its maker's servers, which no test reaches. */
const RECOGNITION = `
  window.SpeechRecognition = window.webkitSpeechRecognition = class {
    start() { window.hears = this; }
    abort() { window.hears = null; }
  };
  window.told = (transcript, isFinal) => window.hears.onresult({
    resultIndex: 0, results: [Object.assign([{ transcript }], { isFinal })],
  });`;
const NO_RECOGNITION = "delete window.SpeechRecognition; delete window.webkitSpeechRecognition;";

async function withPage(
  browser: TestBrowser, script: string, work: (page: Page) => Promise<void>,
): Promise<void> {
  const { uuid } = await newAssistant(server, DEAF);
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.addInitScript(WATCH);
  await page.addInitScript(script);
  await page.goto(`${server.url}/talk/${uuid}`);
  await work(page);
  assert.doesNotMatch(await page.locator("body").innerText(), /PARLEY_|422/);
  await context.close();
}

test("[UI129] if the server has no recogniser the browser's is used, and the page says so; without either one types", { skip: noBrowser(), timeout: 180_000 }, async (t) => {
  const browser = await openBrowser("beeps");
  t.after(() => browser.close());
  await withPage(browser, RECOGNITION, async (page) => {
    await page.getByText("your browser understands what you say").waitFor();
    await page.getByRole("button", { name: "Start the call" }).click();
    await until(page, "window.hears?.lang === 'de'");
    await page.getByText("Hallo.").waitFor();
    await page.evaluate("told('When are', false)");
    await page.evaluate("told('When are you open?', true)");
    await page.getByText("We open at nine.").waitFor();
    assert.equal(await page.locator("#typing").isVisible(), false);
    // The service of its maker may be out of reach: nobody is left without a way to answer.
    await page.evaluate("hears.onerror({ error: 'network' })");
    await page.getByRole("alert").getByText("You can type instead").waitFor();
    await page.getByRole("textbox", { name: "What you say" }).waitFor();
    await page.getByRole("button", { name: "Hang up" }).click();
    await page.getByRole("button", { name: "Call again" }).waitFor();
    assert.equal(await page.evaluate("window.hears"), null);
  });
  await withPage(browser, NO_RECOGNITION, async (page) => {
    await page.getByText("You type, and hear the answers").waitFor();
    await page.getByRole("button", { name: "Start the call" }).click();
    const words = page.getByRole("textbox", { name: "What you say" });
    await words.fill("When are you open?");
    await words.press("Enter");
    await page.getByText("We open at nine.").waitFor();
    assert.equal(await page.evaluate("opened.tracks.length"), 0);
    await page.getByRole("button", { name: "Hang up" }).click();
    await page.getByRole("button", { name: "Call again" }).waitFor();
  });
});
