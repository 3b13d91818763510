// The page of a call that is over in a real browser: recording and transcript together, what was
// waited for and how it sounded, transfers, deletion.
import assert from "node:assert/strict";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import type { Locator, Page } from "playwright-core";
import { createStereoRecorder } from "#audio/wav.ts";
import { placedCalls, QUALITY, TURN } from "#support/carriers/placed-calls.ts";
import { noBrowser, until } from "#support/pages/browser.ts";
import { startDashboard } from "#support/pages/dashboard-page.ts";
import { newAssistant, testDataDir } from "#support/server.ts";

const skip = noBrowser();
const dataDir = testDataDir();
const { server, withDashboard, close } = await startDashboard({
  PARLEY_DATA_DIR: dataDir, PARLEY_CALL_PRICE: "0.001",
});
const { key, accountId } = server;
after(async () => {
  await close();
  await server.close();
  rmSync(dataDir, { recursive: true });
});
const LONG = "Donaudampfschifffahrtsgesellschaftskapitänsmützenfabrik".repeat(3);
const outbound = await newAssistant(server, {
  status: "active", post_call_evaluation: false, type: "outbound", name: "Sales desk",
});
const inbound = await newAssistant(server, { status: "active", name: "Front desk" });
const { calls } = server.app.features;
const { clock, begin, answered, said, end } = placedCalls(() => server, outbound.id);
const entries = (page: Page): Locator =>
  page.getByRole("list", { name: "Transcript" }).getByRole("listitem");

/** Six seconds of a tone, as the media thread writes recordings. */
async function record(uuid: string): Promise<void> {
  const rate = 16_000;
  mkdirSync(join(dataDir, "recordings"), { recursive: true });
  const recorder = createStereoRecorder({ file: join(dataDir, "recordings", `${uuid}.wav`), rate });
  const tone = Int16Array.from({ length: 6 * rate }, (_, at) => 8000 * Math.sin(at / 20));
  recorder.write(tone, tone);
  await recorder.close();
}

test("[DB44] [DB682] an ended call: recording and transcript run together, tool calls open, deletion asks", { skip }, async () => {
  const uuid = "0b1f6b7e-3f0c-4c5e-9a54-0d6a4f1f2c11";
  await record(uuid);
  const id = await begin({ variables: { name: LONG } });
  await calls.change({ id, accountId }, "ringing", {});
  await calls.change({ id, accountId }, "in-progress", {
    recordingFile: `${uuid}.wav`, answeredBy: "human",
  });
  clock.ms = -1000;
  await said(id, "assistant", "Good morning.");
  await said(id, "customer", "<img src=x onerror=alert(1)>", []);
  await said(id, "assistant", "I have booked it.", [
    { name: "book_table", arguments: { seats: 4 }, result: { ok: true, note: LONG } },
  ]);
  clock.ms = 4000;
  await said(id, "customer", "Thank you.");
  await end(id, { hasRecording: true, evaluation: { outcome: "booked", score: 9 } });
  await withDashboard(async ({ page, go, look }) => {
    await go(`/calls/${id}`);
    await page.getByText("booked", { exact: true }).waitFor();
    await page.getByText("Customer hung up").waitFor();
    await page.getByText("Timeline", { exact: true }).click();
    await page.getByRole("list", { name: "What happened" }).getByText("Ended: Customer hung up").waitFor();
    await page.getByText("Timeline", { exact: true }).click();
    // It goes a task after it is closed, and has the same words.
    await page.locator(".calls-time-line li").first().waitFor({ state: "detached" });
    await page.getByText("560 ms").first().waitFor();
    await page.getByText("<img src=x").waitFor();
    await page.getByText("0:00 / 0:06").waitFor();
    await page.getByText("book_table").click();
    await page.getByText('"seats": 4').waitFor();
    await page.getByText('"ok": true').waitFor();
    // In Safari keys reach only what can have the focus.
    for (const name of ["Arguments", "Result"]) {
      const text = page.getByRole("group", { name });
      await text.focus();
      await text.and(page.locator(":focus")).waitFor();
    }
    assert.equal(await page.evaluate("document.querySelector('audio').paused"), true);
    await entries(page).getByText("I have booked it.").click();
    const current = page.locator(".calls-entry.current");
    await current.getByText("I have booked it.").waitFor();
    await until(page, "document.querySelector('audio').currentTime > 2.2");
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByLabel("Position in the recording").fill("0.5");
    await current.getByText("Good morning.").waitFor();
    assert.ok(Number(await page.evaluate("document.querySelector('audio').currentTime")) < 1);
    await page.getByLabel("Speed").selectOption("2");
    // Standing still: a busy machine may look later than the words last.
    await page.getByLabel("Position in the recording").fill("1.4");
    await current.getByText("<img src=x").waitFor();
    await look();
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete call" }).click();
    await page.getByText("Call deleted successfully").waitFor();
    await page.getByRole("heading", { name: "Calls", level: 1 }).waitFor();
    assert.equal((await server.call("GET", `/user/calls/${id}`, { key })).status, 404);
  });
});

test("[DB520] latency per reply and jitter over the call are charts whose points play the recording; unknown values are named", { skip }, async () => {
  const uuid = "0b1f6b7e-3f0c-4c5e-9a54-0d6a4f1f2c12";
  await record(uuid);
  const recorded = await begin({ phone: "+15550105200" });
  await calls.change({ id: recorded, accountId }, "ringing", {});
  await calls.change({ id: recorded, accountId }, "in-progress", { recordingFile: `${uuid}.wav` });
  const { answeredAt } = await calls.findById(recorded) ?? {};
  assert.ok(answeredAt);
  await end(recorded, {
    hasRecording: true,
    turns: [{ ...TURN, atMs: 1000 }, { ...TURN, atMs: 4000, heardMs: 900 }],
    // The first stretch ended before the answer.
    quality: {
      ...QUALITY,
      jitterOverTime: { at: answeredAt - 1_000_000, stepMs: 1000, values: [9, 1.5, null, 2.5] },
    },
  });
  const older = await answered({ phone: "+15550105201" });
  await end(older, { quality: QUALITY });
  const silent = await answered({ phone: "+15550105202" });
  await end(silent, { turns: [] });
  await withDashboard(async ({ page, go, look }) => {
    await go(`/calls/${recorded}`);
    const waits = page.getByRole("figure", { name: "Latency of each reply" });
    const jitter = page.getByRole("figure", { name: "Jitter of the caller’s audio" });
    await page.getByText("0:00 / 0:06").waitFor();
    await waits.getByText("Figures").click();
    assert.deepEqual(await waits.getByRole("row").allTextContents(), [
      "TimeUntil the model’s first wordFrom the first word until heard",
      "Reply 1, 0:01420 ms140 ms", "Reply 2, 0:04420 ms480 ms",
    ]);
    await jitter.getByText("Figures").click();
    assert.deepEqual(await jitter.getByRole("row").allTextContents(),
      ["TimeJitter", "0:001.5 ms", "0:01–", "0:022.5 ms"]);
    await look();
    await waits.getByRole("button", { name: "Reply 2" }).press("Enter");
    await until(page, "document.querySelector('audio').currentTime > 4.2");
    await page.getByRole("button", { name: "Pause" }).click();
    const { width = 0, height = 0 } = await jitter.locator(".area").boundingBox() ?? {};
    await jitter.locator(".area").click({ position: { x: width - 10, y: height / 2 } });
    await until(page, "(({ paused, currentTime: at }) => !paused && at > 2 && at < 4)(document.querySelector('audio'))");
    await go(`/calls/${older}`);
    await waits.getByText("Figures").click();
    await waits.getByRole("rowheader", { name: "Reply 1" }).waitFor();
    assert.equal(await waits.getByRole("button").count(), 0);
    await jitter.getByText("The audio was not measured.").waitFor();
    await go(`/calls/${silent}`);
    await page.getByText("There was no reply to wait for, and the audio was not measured.").waitFor();
    assert.equal(await page.getByRole("figure").count(), 0);
  });
});

test("[DB323] the call's page shows each transfer with its target, kind, outcome and failure reason", { skip }, async () => {
  const id = await answered({ phone: "+15550104400" });
  const call = { id, accountId };
  const tried = { assistantUuid: null, status: "in-progress", failureReason: null } as const;
  await calls.addTransfer(call, { ...tried, type: "call_transfer", to: "+15550177" });
  await calls.failTransfer(call, "The other side answered 603.");
  await calls.addTransfer(call, {
    ...tried, type: "assistant_transfer", to: "Front desk", assistantUuid: inbound.uuid,
    status: "completed",
  });
  await calls.addTransfer(call, {
    ...tried, type: "warm_call_transfer", to: `sip:${LONG}@pbx.example`,
  });
  await end(id);
  await withDashboard(async ({ page, go, look }) => {
    await go(`/calls/${id}`);
    const rows = page.getByRole("list", { name: "Transfers" }).getByRole("listitem");
    await rows.nth(2).waitFor();
    const [first, second, third] = await rows.allTextContents();
    assert.match(first ?? "", /^\+1 5550177FailedTransferred, .+The other side answered 603\.$/);
    assert.match(second ?? "", /^Front deskCompletedHanded over to an assistant, /);
    assert.match(third ?? "", /^sip:.+FailedTransferred with a briefing, .+The call ended before/);
    await look();
    await rows.nth(1).getByRole("link", { name: "Front desk" }).click();
    await page.getByRole("heading", { name: "Front desk" }).waitFor();
    const plain = await answered();
    await end(plain);
    await go(`/calls/${plain}`);
    await page.getByText("Customer hung up").waitFor();
    assert.equal(await page.getByText("Transfers").count(), 0);
  });
});

test("[DB340] the call's page shows the audio quality with units, or nothing if it is unknown", { skip }, async () => {
  const [known, unknown] = [
    await answered({ phone: "+15550104401" }), await answered({ phone: "+15550104402" }),
  ];
  await end(known, { quality: QUALITY });
  await end(unknown);
  await withDashboard(async ({ page, go, look }) => {
    await go(`/calls/${known}`);
    const card = page.locator("section").filter({ has: page.getByRole("heading", { name: "Sound" }) });
    await card.getByText("4.38 of 4.5").waitFor();
    assert.match(await card.textContent() ?? "",
      /very good.*Jitter1\.8 ms6\.2 ms at worst.*Not heard0\.19 %lost or too late/);
    await card.getByText("In detail").click();
    await card.getByText("120 ms", { exact: true }).waitFor();
    await card.getByText("2 (0.06 %)").waitFor();
    await look();
    await go(`/calls/${unknown}`);
    await page.getByText("Customer hung up").waitFor();
    assert.equal(await page.getByRole("heading", { name: "Sound" }).count(), 0);
  });
});

test("[DB799] shares and what was measured are written as the reader's language writes numbers", { skip }, async () => {
  const id = await answered({ phone: "+15550104403" });
  await end(id, { quality: QUALITY });
  await withDashboard(async ({ page, go }) => {
    await go(`/calls/${id}`);
    await page.getByText("4,38 von 4,5").waitFor();
    await page.getByText("0,19 %").first().waitFor();
    await page.getByText("höchstens 6,2 ms").waitFor();
    await go("/money");
    await page.getByRole("cell", { name: /^\d+\s%$/ }).first().waitFor();
  }, { context: { locale: "de" } });
});
