// Recordings kept as Opus: made of the WAV after the call, served by the same link, and played and
// sought by a real browser.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { createStereoRecorder } from "#audio/wav.ts";
import { sineOf } from "#support/calls/spectrum.ts";
import { noBrowser, until } from "#support/pages/browser.ts";
import { startDashboard } from "#support/pages/dashboard-page.ts";
import { newAssistant, testDataDir } from "#support/server.ts";

const skip = noBrowser();
const dataDir = testDataDir();
const { server, withDashboard, close } = await startDashboard({
  PARLEY_DATA_DIR: dataDir, PARLEY_CALL_PRICE: "0.001", PARLEY_RECORDING_FORMAT: "opus",
});
const { key, accountId } = server;
after(async () => {
  await close();
  await server.close();
  rmSync(dataDir, { recursive: true });
});
const RATE = 16_000;
const SECONDS = 6;
const UUID = "5d0f5c41-6a0e-4f6e-8a11-0c6f4f2a7b90";
const fileOf = (suffix: string): string => join(dataDir, "recordings", UUID + suffix);

/** A call that was recorded: the assistant for three seconds, then the customer. */
async function recordedCall(): Promise<number> {
  mkdirSync(join(dataDir, "recordings"), { recursive: true });
  const recorder = createStereoRecorder({ file: fileOf(".wav"), rate: RATE });
  const [tone, silence] = [sineOf(440, RATE, SECONDS / 2), new Int16Array((RATE * SECONDS) / 2)];
  recorder.write(silence, tone);
  recorder.write(tone, silence);
  await recorder.close();
  const { id: assistantId } = await newAssistant(server, {
    status: "active", type: "outbound", name: "Sales desk", initial_message: "Hi.",
    post_call_evaluation: false,
  });
  const { assistants, calls } = server.app.features;
  const assistant = await assistants.find(accountId, assistantId);
  assert.ok(assistant);
  const { call: { id } } = await calls.begin({
    assistant, type: "outbound", conversationUuid: null, assistantPhone: null,
    customerPhone: "+15550109999", variables: {},
  });
  const call = { id, accountId };
  await calls.change(call, "ringing", {});
  await calls.change(call, "in-progress", { recordingFile: `${UUID}.wav` });
  await calls.addTranscript(call, {
    speaker: "assistant", text: "Good morning.", startMs: 0, endMs: 2900, interrupted: false,
    functionCalls: [],
  });
  await calls.end(call, {
    finalStatus: "ended_by_customer", reason: "customer_hung_up", failureReason: null,
    charge: "full", turns: [], hasRecording: true,
  });
  await calls.finish(call, { evaluation: {}, evaluationError: null });
  return id;
}

const recordingUrl = async (id: number): Promise<string> =>
  String((await server.call("GET", `/user/calls/${id}`, { key })).body.recording_url);

test("[CR360] an Opus recording: made after the call, same link and ranges, plays, seeks, goes with its call", { skip, timeout: 180_000 }, async (t) => {
  const id = await recordedCall();
  const url = await recordingUrl(id);
  const before = await fetch(url);
  assert.equal(before.headers.get("content-type"), "audio/wav");
  const wavBytes = (await before.arrayBuffer()).byteLength;
  await server.app.features.recordings.keep(`${UUID}.wav`);
  // The copy it was made of is read as long as it is there.
  const copy = join(dataDir, "scratch", `${UUID}.wav`);
  while (existsSync(fileOf(".wav")) || existsSync(copy)) await new Promise((resolve) => setTimeout(resolve, 50));
  const { size } = statSync(fileOf(".ogg"));
  t.diagnostic(`${wavBytes} bytes as WAV, ${size} as Opus`);
  assert.ok(size < wavBytes / 8, `${size} of ${wavBytes}`);
  const whole = await fetch(url);
  assert.equal(whole.headers.get("content-type"), "audio/ogg");
  const bytes = Buffer.from(await whole.arrayBuffer());
  assert.equal(bytes.toString("latin1", 0, 4), "OggS");
  const part = await fetch(url, { headers: { range: "bytes=10-19" } });
  assert.deepEqual(
    [part.status, part.headers.get("content-range"), part.headers.get("content-type")],
    [206, `bytes 10-19/${size}`, "audio/ogg"]);
  assert.deepEqual(Buffer.from(await part.arrayBuffer()), bytes.subarray(10, 20));
  await withDashboard(async ({ page, go }) => {
    await go(`/calls/${id}`);
    await page.getByText("0:00 / 0:06").waitFor();
    assert.equal(await page.evaluate("document.querySelector('audio').error"), null);
    await page.getByLabel("Position in the recording").fill("4");
    await page.getByRole("button", { name: "Play", exact: true }).click();
    await until(page, "document.querySelector('audio').currentTime > 4.4");
    // What the browser decodes: as long, and each side where it was.
    const sides = await page.evaluate(`(async () => {
      const url = document.querySelector('audio').currentSrc;
      const bytes = await (await fetch(url)).arrayBuffer();
      const sound = await new OfflineAudioContext(2, 1, ${RATE}).decodeAudioData(bytes);
      const loud = (channel) => {
        const samples = [...sound.getChannelData(channel)];
        const isLoud = (sample) => Math.abs(sample) > 0.05;
        return [samples.findIndex(isLoud), samples.findLastIndex(isLoud)].map((at) => at / ${RATE});
      };
      return [sound.duration, ...loud(0), ...loud(1)];
    })()`) as number[];
    t.diagnostic(`decoded: ${sides.map((at) => at.toFixed(3)).join(" ")}`);
    [SECONDS, 3, 6, 0, 3].forEach((want, at) =>
      assert.ok(Math.abs(sides[at]! - want) < 0.02, `${sides}`));
  }, { key });
  assert.equal((await server.call("DELETE", `/user/calls/${id}`, { key })).status, 200);
  assert.ok(!existsSync(fileOf(".ogg")));
  assert.equal((await fetch(url)).status, 404);
});
