// The leg of a warm transfer on record: its steps as numbered events, and money to the cent,
// however the call of both ends.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { randomUUID } from "node:crypto";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { monoWav } from "#audio/wav.ts";
import { keepAll } from "#features/calls/after-call.ts";
import { mayStep, WARM_STAGES, type TransferOutcome, type WarmStage } from "#features/calls/records/warm-stages.ts";
import { LIMITS } from "#core/limits.ts";
import { withRecordings } from "#features/webhooks/payloads.ts";
import { auditBeside } from "#support/databases/beside.ts";
import { createManualSystem } from "#support/manual-clock.ts";
import { newAssistant, openBeside, startTestServer } from "#support/server.ts";

const system = createManualSystem();
const server = await startTestServer({ system, env: { PARLEY_SPEECH: "loopback" } });
after(() => server.close());
const { calls, assistants } = server.app.features;
const { accountId } = server;
const created = await newAssistant(server, { status: "active", type: "outbound" });
const assistant = await assistants.find(accountId, created.id);
assert.ok(assistant);

const ENDED = { reason: "customer_hung_up", turns: [], hasRecording: false } as const;
const EVALUATED = { evaluation: {}, evaluationError: null };
const totals = async () => (await server.call("GET", "/user/me")).body.total_balance as number;
const spent = async (before: number) => Number((before - await totals()).toFixed(6));

const problems = async (): Promise<string[]> => (await auditBeside(server.dataDir)).problems;

async function recover(): Promise<void> {
  const { nodes, close } = await openBeside(server.dataDir);
  for (const { id: deadId, beatAt } of await nodes.list()) {
    await nodes.bury({ deadId, beatAt, now: system.now() });
  }
  await close();
  await calls.recover();
}

async function talking(): Promise<number> {
  const { call } = await calls.begin({
    assistant: assistant!, type: "inbound", conversationUuid: null, assistantPhone: "+15550199",
    customerPhone: "+15550100", variables: {},
  });
  await calls.change(call, "in-progress", { carrierMicrosPerMinute: 10_000 });
  return call.id;
}

const asked = (id: number, to = "+15550177") => calls.beginTransfer({ id, accountId }, {
  type: "warm_call_transfer", to, carrierMicrosPerMinute: 20_000,
});
const step = (
  id: number, stage: WarmStage, outcome: TransferOutcome | null = null, number = 1,
): Promise<void> =>
  calls.stepTransfer({ id, accountId }, { number, stage, outcome, failureReason: null });
const shown = async (id: number) => (await server.call("GET", `/user/calls/${id}`)).body;
const end = (id: number, how: object = {}) =>
  calls.end({ id, accountId }, { finalStatus: "completed", ...ENDED, ...how });

test("[WT10] both legs are billed once, from answer to end, at least half a minute each", async () => {
  const before = await totals();
  const id = await talking();
  system.advance(20_000);
  assert.equal((await asked(id)).kind, "begun");
  await step(id, "dialling");
  await step(id, "ringing");
  system.advance(10_000);
  await step(id, "briefing");
  system.advance(15_000);
  await step(id, "connected");
  system.advance(45_000);
  await step(id, "over", "completed");
  await end(id, { reason: "transferred" });
  await calls.finish({ id, accountId }, EVALUATED);
  // 90 seconds with the caller and 60 with the colleague, at ten cents a minute.
  assert.equal(await spent(before), 0.25);
  const call = await shown(id);
  assert.deepEqual(
    [call.duration, call.carrier_cost, call.total_cost, call.status], [90, 0.04, 0.29, "completed"]);
  assert.equal(call.transfers.length, 1);
  const { created_at: _asked, started_at: _begun, finished_at: done, ended_at: over, ...one } =
    call.transfers[0];
  assert.equal(done, over);
  assert.deepEqual(one, {
    id: 1, type: "warm_call_transfer", kind: "warm", status: "completed", outcome: "completed",
    stage: "over", failure_reason: null, to: "+15550177", transfer_to: "+15550177",
    assistant_id: null, duration: 60, carrier_cost: 0.02, recording_url: null, transcript: null,
    formatted_transcript: "",
  });
  await end(id);
  assert.equal(await spent(before), 0.25);
  assert.deepEqual(await problems(), []);
});

test("[WT11] a colleague who never answers costs nothing; one who declines costs the minimum", async () => {
  const before = await totals();
  const id = await talking();
  await asked(id);
  await step(id, "dialling");
  system.advance(30_000);
  await step(id, "over", "no_answer");
  assert.equal((await asked(id, "+15550178")).kind, "begun");
  await step(id, "dialling", null, 2);
  await step(id, "briefing", null, 2);
  system.advance(5000);
  await step(id, "over", "declined", 2);
  system.advance(25_000);
  await end(id, { finalStatus: "ended_by_customer" });
  await calls.finish({ id, accountId }, EVALUATED);
  assert.equal(await spent(before), 0.15);
  const { transfers } = await shown(id);
  assert.deepEqual(
    transfers.map(({ outcome, status, duration, failure_reason: why }: Record<string, unknown>) =>
      [outcome, status, duration, why]),
    [
      ["no_answer", "failed", 0, "The colleague did not answer."],
      ["declined", "failed", 5, "The colleague did not take the call."],
    ]);
  assert.deepEqual(await problems(), []);
});

test("[WT12] every step is a numbered call event, and none outside the table is taken", async () => {
  await fc.assert(fc.asyncProperty(
    fc.array(fc.constantFrom(...WARM_STAGES), { maxLength: 12 }), async (stages) => {
      const id = await talking();
      const seen: { type: string; stage: WarmStage; sequence: number }[] = [];
      const stop = server.app.features.bus.subscribe(`call:${id}`, (notice) => {
        if (notice.kind !== "committed") return;
        const { type, transfer } = JSON.parse(notice.event.json);
        seen.push({ type, stage: transfer?.stage, sequence: notice.event.sequence });
      });
      await asked(id);
      for (const stage of stages) {
        system.advance(1000);
        await step(id, stage, stage === "over" ? "declined" : null);
      }
      await end(id);
      await calls.finish({ id, accountId }, EVALUATED);
      await new Promise((resolve) => setImmediate(resolve));
      stop();
      const steps = seen.filter(({ type }) => type === "call_transfer_changed");
      assert.equal(steps[0]?.stage, "announcing");
      for (let at = 1; at < steps.length; at += 1) {
        assert.ok(mayStep(steps[at - 1]!.stage, steps[at]!.stage), JSON.stringify(steps));
      }
      // The end of the call closes what was open.
      assert.equal(steps.at(-1)?.stage, "over");
      assert.deepEqual(
        seen.map(({ sequence }) => sequence), seen.map((_, at) => seen[0]!.sequence + at));
      assert.equal(seen.at(-1)?.type, "call_ended");
    }), { numRuns: 25 });
  assert.deepEqual(await problems(), []);
});

test("[WT13] after a crash in any stage both legs are closed and billed once", async () => {
  for (const last of WARM_STAGES) {
    const before = await totals();
    const id = await talking();
    await calls.beat([{ id, accountId }]);
    await asked(id);
    const way: WarmStage[] = ["dialling", "ringing", "briefing", "asking", "connected"];
    for (const stage of way.slice(0, way.indexOf(last) + 1)) await step(id, stage);
    if (last === "over") await step(id, "over", "failed");
    system.advance(12_000);
    await calls.beat([{ id, accountId }]);
    system.advance(600_000);
    await recover();
    const call = await shown(id);
    const isAnswered = ["briefing", "asking", "connected"].includes(last);
    // As long as they are known to have lasted: twelve seconds each.
    assert.equal(await spent(before), isAnswered ? 0.04 : 0.02, last);
    assert.deepEqual([call.status, call.transfers[0].stage], ["failed", "over"]);
    assert.deepEqual(
      [call.transfers[0].outcome, call.transfers[0].duration],
      [last === "connected" ? "completed" : "failed", isAnswered ? 12 : 0], last);
  }
  assert.deepEqual(await problems(), []);
});

test("[WT27] answered legs are recorded beside their call, linked in record and webhook, and deleted with it", async () => {
  const { call } = await calls.begin({
    assistant: assistant!, type: "inbound", conversationUuid: null, assistantPhone: "+15550199",
    customerPhone: "+15550100", variables: {},
  });
  const { id } = call;
  const uuid = randomUUID();
  const file = `${uuid}.wav`;
  await calls.change(call, "in-progress", { recordingFile: file });
  await asked(id);
  await step(id, "over", "busy");
  const begun = await asked(id);
  assert.equal(begun.kind === "begun" && begun.recordingFile, `${uuid}-2.wav`);
  await step(id, "dialling", null, 2);
  await step(id, "briefing", null, 2);
  system.advance(5000);
  await step(id, "over", "declined", 2);
  const urls = async () => (await shown(id)).transfers
    .map(({ recording_url: url }: { recording_url: string | null }) =>
      url?.replace(/expires.*/, "").replace(/.*recordings/, "") ?? null);
  assert.deepEqual(await urls(), [null, null], "the call goes on");
  await end(id, { hasRecording: true });
  await calls.finish({ id, accountId }, EVALUATED);
  assert.deepEqual(await urls(), [null, `/${uuid}?leg=2&`]);
  const { transfers } = await shown(id);
  const body = JSON.parse(withRecordings(
    JSON.stringify({ transfers }), file, (name) => `link of ${name}`));
  assert.deepEqual(
    [body, ...body.transfers].map((one: { recording_url: string }) => one.recording_url),
    [`link of ${file}`, null, `link of ${uuid}-2.wav`]);
  const storage = await openBeside(server.dataDir);
  assert.deepEqual(
    [await storage.calls.hasRecording(`${uuid}-2.wav`), await storage.calls.hasRecording(file)],
    [true, true]);
  assert.deepEqual(
    await storage.calls.expireRecordings({
      before: system.now() + 1, rows: 100, now: system.now(),
    }),
    [file, `${uuid}-2.wav`]);
  assert.equal(await storage.calls.hasRecording(`${uuid}-2.wav`), false);
  await storage.close();
  assert.deepEqual(await urls(), [null, null]);
});

test("[GR8] where nothing of a call itself was recorded, what a leg of it has is removed", async () => {
  const { call } = await calls.begin({
    assistant: assistant!, type: "inbound", conversationUuid: null, assistantPhone: "+15550199",
    customerPhone: "+15550100", variables: {},
  });
  const uuid = randomUUID();
  await calls.change(call, "in-progress", { recordingFile: `${uuid}.wav` });
  await asked(call.id);
  await step(call.id, "dialling");
  await step(call.id, "briefing");
  const leg = join(server.dataDir, "scratch", `${uuid}-1.wav`);
  writeFileSync(leg, monoWav([new Int16Array(8000)], 8000));
  await end(call.id, { hasRecording: false });
  const ended = await calls.findById(call.id);
  assert.ok(ended);
  await keepAll(server.app.features, ended);
  assert.equal(existsSync(leg), false);
});

test("[WT29] a leg cut by a crash before anything was recorded has no recording", async () => {
  const hasLink = async (sound: Uint8Array | null): Promise<boolean> => {
    const { call } = await calls.begin({
      assistant: assistant!, type: "inbound", conversationUuid: null, assistantPhone: "+15550199",
      customerPhone: "+15550100", variables: {},
    });
    const uuid = randomUUID();
    await calls.change(call, "in-progress", { recordingFile: `${uuid}.wav` });
    await asked(call.id);
    await step(call.id, "dialling");
    await step(call.id, "briefing");
    const pathOf = (file: string): string => join(server.dataDir, "scratch", file);
    writeFileSync(pathOf(`${uuid}.wav`), monoWav([new Int16Array(8000)], 8000));
    if (sound) writeFileSync(pathOf(`${uuid}-1.wav`), sound);
    await recover();
    const { recording_url: whole, transfers: [leg] } = await shown(call.id);
    assert.ok(whole);
    return leg.recording_url !== null;
  };
  assert.equal(await hasLink(monoWav([], 8000)), false);
  assert.equal(await hasLink(monoWav([new Int16Array(8000)], 8000)), true);
  assert.equal(await hasLink(null), false);
  assert.deepEqual(await problems(), []);
});

test("[WT14] a forbidden or unaffordable number is refused, and the reason is kept", async () => {
  const id = await talking();
  const reasonOf = async (to: string) => {
    const outcome = await asked(id, to);
    return outcome.kind === "refused" ? outcome.reason : outcome.kind;
  };
  assert.equal(await reasonOf("+19005550199"), "Premium-rate phone numbers cannot be called.");
  assert.equal(await reasonOf("+15550177"), "begun");
  assert.equal(await reasonOf("+15550178"), "A colleague is already being called.");
  await step(id, "over", "busy", 2);
  for (let left = 4; left > 0; left -= 1) {
    assert.equal(await reasonOf("+15550177"), "begun");
    await step(id, "over", "busy", (await shown(id)).transfers.length);
  }
  assert.equal(
    await reasonOf("+15550177"), "This call has reached its limit of calls to colleagues.");
  await end(id);
  assert.equal((await asked(id)).kind, "over");
  await calls.finish({ id, accountId }, EVALUATED);
  assert.deepEqual(
    (await shown(id)).transfers.map(({ outcome }: { outcome: string }) => outcome),
    ["refused", "busy", "refused", "busy", "busy", "busy", "busy", "refused"]);
  assert.deepEqual(await problems(), []);
});

test("[WT111] however often a transfer is asked for, the others keep their ids and get their own outcomes", async () => {
  const id = await talking();
  assert.equal((await asked(id, "+19005550199")).kind, "refused");
  const begun = await asked(id);
  assert.deepEqual([begun.kind, "number" in begun && begun.number], ["begun", 2]);
  for (let again = 0; again < LIMITS.callTransfersMax; again += 1) await asked(id, "+15550178");
  await step(id, "over", "busy", 2);
  const later = await asked(id);
  assert.deepEqual(
    [later.kind, "number" in later && later.number], ["begun", LIMITS.callTransfersMax]);
  await step(id, "over", "declined", LIMITS.callTransfersMax);
  await end(id);
  await calls.finish({ id, accountId }, EVALUATED);
  const { transfers } = await shown(id);
  assert.equal(transfers.length, LIMITS.callTransfersMax);
  assert.deepEqual(
    [transfers[1], transfers.at(-1)].map(({ kind, outcome }) => [kind, outcome]),
    [["warm", "busy"], ["warm", "declined"]]);
});

test("[WT15] the free balance decides how long both may talk; no more than the hold is charged", async () => {
  const id = await talking();
  const outcome = await asked(id);
  assert.equal(outcome.kind, "begun");
  const { secondsMax } = outcome as { secondsMax: number };
  assert.ok(secondsMax >= 30 && secondsMax <= 7200, String(secondsMax));
  const before = await totals();
  await step(id, "dialling");
  await step(id, "briefing");
  await step(id, "connected");
  system.advance(secondsMax * 1000);
  await step(id, "over", "completed");
  await end(id, { reason: "transferred" });
  await calls.finish({ id, accountId }, EVALUATED);
  const paid = await spent(before);
  assert.ok(Math.abs(paid - (2 * secondsMax * 0.1) / 60) < 0.0001, String(paid));
  assert.deepEqual(await problems(), []);
});
