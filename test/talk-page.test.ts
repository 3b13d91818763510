// A whole web call in a real browser: the page, a microphone that plays a spoken line, the embedded
// voice and recogniser, interruption, recording. Nothing is doubled but the language model.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { createResampler } from "../src/audio/resampler.ts";
import { parseWav } from "../src/audio/wav.ts";
import { createLogger } from "../src/core/logger.ts";
import { createEmbeddedVoices } from "../src/providers/speech/embedded-voices.ts";
import { pocketSphinxMissing } from "../src/providers/speech/pocketsphinx.ts";
import { noBrowser, openBrowser, writeMicrophone } from "./support/browser.ts";
import { startScriptedModel } from "./support/scripted-model.ts";
import { newAssistant, startTestServer } from "./support/server.ts";

const folder = mkdtempSync(join(tmpdir(), "parley-talk-"));
const model = await startScriptedModel();
const server = await startTestServer({ env: { PARLEY_MODEL_URL: model.url } });
after(async () => {
  await server.close();
  await model.close();
  rmSync(folder, { recursive: true });
});

const GREETING = "Good morning, this is Harbour Bikes speaking. We repair and rent bicycles of all "
  + "kinds. Please tell me now, in your own words, what I can do for you on this fine day.";
const skip = noBrowser() || pocketSphinxMissing() || false;

/** The line at 48 kHz, after some seconds of silence. */
async function microphone(text: string, leadSeconds: number): Promise<string> {
  const voices = createEmbeddedVoices(createLogger("silent"));
  const done = Promise.withResolvers<void>();
  const samples: number[] = [];
  const stream = voices.flite.open({
    rate: 16_000, voice: "rms", gender: "male", language: "en", speed: 1, stability: 1, similarity: 1,
  }, (event) => {
    if (event.kind === "audio") samples.push(...event.pcm);
    if (event.kind === "failed") done.reject(event.error);
    if (event.kind === "done") done.resolve();
  });
  stream.write(text);
  stream.end();
  // The voices' thread does not keep a process alive by itself.
  const alive = setInterval(() => undefined, 1000);
  await done.promise.finally(() => clearInterval(alive));
  await voices.close();
  const line = createResampler(16_000, 48_000).process(Int16Array.from(samples));
  const sound = new Int16Array(48_000 * (leadSeconds + 30) + line.length);
  sound.set(line, 48_000 * leadSeconds);
  const file = join(folder, "microphone.wav");
  writeMicrophone(file, sound);
  return file;
}

interface Cleared {
  played_ms: number;
  dropped_ms: number;
}

test("[UI1] a person opens the page, interrupts, is understood, answered and recorded", { skip, timeout: 90_000 }, async () => {
  model.script(() => ({ tokens: ["We ", "open ", "at ", "nine ", "o'clock."] }));
  const { uuid } = await newAssistant(server, {
    initial_message: GREETING, record: true, post_call_evaluation: false, endpoint_sensitivity: 1,
  });
  const browser = await openBrowser(await microphone("When are you open on Saturday?", 5));
  try {
    const page = await browser.newPage();
    const problems: string[] = [];
    page.on("pageerror", (error) => problems.push(error.message));
    page.on("console", (message) => {
      if (message.type() === "error") problems.push(message.text());
    });
    const cleared = Promise.withResolvers<Cleared>();
    const callId = Promise.withResolvers<number>();
    page.on("websocket", (socket) => {
      socket.on("framesent", ({ payload }) => {
        if (typeof payload !== "string") return;
        const message = JSON.parse(payload) as { type: string } & Cleared;
        if (message.type === "cleared") cleared.resolve(message);
      });
      socket.on("framereceived", ({ payload }) => {
        if (typeof payload !== "string") return;
        const message = JSON.parse(payload) as { type: string; call_id: number };
        if (message.type === "ready") callId.resolve(message.call_id);
      });
    });
    await page.goto(`${server.url}/talk/${uuid}`);
    await page.getByRole("button", { name: "Start the call" }).click();
    const { played_ms: playedMs, dropped_ms: droppedMs } = await cleared.promise;
    assert.ok(playedMs > 3000 && playedMs < 12_000, `${playedMs}`);
    assert.ok(droppedMs >= 0 && droppedMs <= 300, `${droppedMs}`);
    await page.getByText("We open at nine o'clock.").waitFor();
    await page.waitForFunction("document.body.dataset.state === 'listening'");
    await page.getByRole("button", { name: "Hang up" }).click();
    await page.getByRole("button", { name: "Call again" }).waitFor();
    assert.deepEqual(problems, []);
    const id = await callId.promise;
    let { body } = await server.call("GET", `/user/calls/${id}`);
    while (body.status !== "ended_by_customer") {
      await new Promise((resolve) => setTimeout(resolve, 20));
      ({ body } = await server.call("GET", `/user/calls/${id}`));
    }
    const [greeting, question, answer] = body.transcript_entries;
    assert.equal(greeting.interrupted, true);
    assert.ok(GREETING.startsWith(greeting.text) && greeting.text.length < GREETING.length);
    const expected = "when are you open on saturday".split(" ");
    const heard = (question.text as string).split(" ");
    assert.ok(expected.filter((word) => heard.includes(word)).length >= 4, question.text);
    assert.equal(answer.text, "We open at nine o'clock.");
    const recording = await fetch(server.url + body.recording_url);
    const sound = parseWav(Buffer.from(await recording.arrayBuffer()));
    const { rate, channels: [customer, voice] } = sound;
    assert.ok(customer && voice);
    assert.ok(Math.abs(customer.length / rate - body.duration) < 1.5);
    const loudest = (pcm: Int16Array, fromMs: number, toMs: number): number =>
      Math.max(...pcm.subarray((fromMs * rate) / 1000, (toMs * rate) / 1000).map(Math.abs));
    assert.ok(loudest(customer, question.start_ms, question.end_ms) > 1000);
    assert.ok(loudest(voice, answer.start_ms, answer.end_ms) > 1000);
  } finally {
    await browser.close();
    model.script(null);
  }
});

test("[UI2] without a microphone the page says why there is no call", { skip }, async () => {
  const { uuid } = await newAssistant(server);
  const browser = await openBrowser(null);
  try {
    const context = await browser.newContext({ permissions: [] });
    const page = await context.newPage();
    await page.goto(`${server.url}/talk/${uuid}`);
    await page.getByRole("button", { name: "Start the call" }).click();
    await page.getByRole("alert").waitFor();
    assert.match(await page.getByRole("alert").innerText(), /microphone/i);
  } finally {
    await browser.close();
  }
});
