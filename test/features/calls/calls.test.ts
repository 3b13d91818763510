// Calls as records: the contract's routes, the table of states under shuffled and doubled carrier
// events, and money to the cent.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import fc from "fast-check";
import { monoWav } from "#audio/wav.ts";
import { LIMITS } from "#core/limits.ts";
import { nextTurn } from "#core/system.ts";
import { CALL_STATUSES, isFinal, mayChange, type CallStatus } from "#features/calls/records/status.ts";
import { askUntil } from "#support/asking.ts";
import { auditBeside } from "#support/databases/beside.ts";
import { createManualSystem } from "#support/manual-clock.ts";
import { newAssistant, openBeside, startTestServer } from "#support/server.ts";

const system = createManualSystem();
const server = await startTestServer({ system, env: { PARLEY_SPEECH: "loopback" } });
after(() => server.close());
const { calls, assistants } = server.app.features;
const { accountId } = server;
const created = await newAssistant(server, { status: "active", type: "outbound" });
const assistant = await assistants.find(server.accountId, created.id);
assert.ok(assistant);

const begin = (changes: object = {}) => calls.begin({
  assistant, type: "outbound", conversationUuid: null, assistantPhone: "+15550199",
  customerPhone: "+15550100", variables: { name: "Eva" }, ...changes,
});
const ENDED = {
  reason: "customer_hung_up", turns: [], hasRecording: false,
} as const;
const EVALUATED = { evaluation: { summary: "short" }, evaluationError: null };
const totals = async () => (await server.call("GET", "/user/me")).body.total_balance as number;

/** Everything the ledger, the balance and the reservations disagree about. */
const problems = async (): Promise<string[]> => (await auditBeside(server.dataDir)).problems;

/** What the next process does when the server's has died: here the server stands for both. */
async function recover(): Promise<void> {
  const { nodes, close } = await openBeside(server.dataDir);
  for (const { id: deadId, beatAt } of await nodes.list()) {
    await nodes.bury({ deadId, beatAt, now: system.now() });
  }
  await close();
  await calls.recover();
}

async function talk(seconds: number): Promise<number> {
  const { call } = await begin();
  await calls.change(call, "ringing", {});
  await calls.change(call, "in-progress", { answeredBy: "human" });
  system.advance(seconds * 1000);
  await calls.end(call, { finalStatus: "ended_by_customer", ...ENDED });
  await calls.finish(call, EVALUATED);
  return call.id;
}

test("[CR1] the table of states: no transition outside it, in whatever order and however often events come", async () => {
  const step = fc.constantFrom<CallStatus | "end" | "end_failed" | "finish">(
    ...CALL_STATUSES, "end", "end_failed", "finish");
  await fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
    const { call } = await begin();
    const history: CallStatus[] = ["initiated"];
    const stop = server.app.features.bus.subscribe(`call:${call.id}`, (notice) => {
      if (notice.kind !== "committed") return;
      const data = JSON.parse(notice.event.json) as { type: string; status: CallStatus };
      if (data.type === "call_status_changed") history.push(data.status);
    });
    let ends = 0;
    const stopEnds = server.app.features.bus.subscribe(`call:${call.id}`, (notice) => {
      if (notice.kind === "committed" && notice.event.type === "call_ended") ends += 1;
    });
    for (const [index, what] of steps.entries()) {
      system.advance(1000);
      if (what === "end" || what === "end_failed") {
        const finalStatus = what === "end" ? "ended_by_customer" : "failed";
        await calls.end(call, { finalStatus, ...ENDED });
      } else if (what === "finish") await calls.finish(call, EVALUATED);
      else for (let twice = index % 2; twice < 2; twice += 1) await calls.change(call, what, {});
    }
    for (let at = 1; at < history.length; at += 1) {
      assert.ok(mayChange(history[at - 1]!, history[at]!), history.join(" → "));
    }
    // Events are published in the next tick, all of a commit in order.
    await new Promise((resolve) => setImmediate(resolve));
    const { status } = await askUntil(
      () => calls.get(server.accountId, call.id), (one) => one.status === history.at(-1));
    assert.equal(ends, isFinal(status) ? 1 : 0);
    // Leaves nothing live behind, so that the next history has room.
    await calls.change(call, "failed", {});
    await calls.end(call, { finalStatus: "failed", ...ENDED });
    await calls.finish(call, EVALUATED);
    stop();
    stopEnds();
  }), { numRuns: 60 });
  assert.deepEqual(await problems(), []);
});

test("[CR2] a call costs at least half a minute, then by the second, and is charged once", async () => {
  for (const [seconds, cost] of [[1, 0.05], [30, 0.05], [31, 0.051667], [90, 0.15]] as const) {
    const before = await totals();
    const id = await talk(seconds);
    assert.equal(Number((before - await totals()).toFixed(6)), cost);
    const { body } = await server.call("GET", `/user/calls/${id}`);
    assert.deepEqual([body.total_cost, body.duration, body.status], [cost, seconds, "ended_by_customer"]);
    await calls.end({ id, accountId }, { finalStatus: "failed", ...ENDED });
    await calls.finish({ id, accountId }, EVALUATED);
  }
  const before = await totals();
  const { call } = await begin();
  await calls.change(call, "no-answer", { reason: "carrier_failed" });
  assert.equal(await totals(), before);
  assert.deepEqual(await problems(), []);
});

test("[CR55] a call whose other side was lost costs the time until its last sound and no minute more", async () => {
  const lost = async (seconds: number, silentS: number) => {
    const before = await totals();
    const { call } = await begin();
    await calls.change(call, "ringing", {});
    await calls.change(call, "in-progress", { answeredBy: "human" });
    system.advance(seconds * 1000);
    await calls.end(call, {
      ...ENDED, finalStatus: "ended_by_customer", reason: "media_timeout", charge: "lasted",
      endedAt: system.now() - silentS * 1_000_000,
    });
    await calls.finish(call, EVALUATED);
    const { body } = await server.call("GET", `/user/calls/${call.id}`);
    return [
      body.status, body.end_reason, body.duration, Number((before - await totals()).toFixed(6)),
    ];
  };
  assert.deepEqual(await lost(90, 60), ["ended_by_customer", "media_timeout", 30, 0.05]);
  assert.deepEqual(await lost(72, 60), ["ended_by_customer", "media_timeout", 12, 0.02]);
  assert.deepEqual(await lost(60, 61), ["ended_by_customer", "media_timeout", 0, 0]);
  assert.deepEqual(await problems(), []);
});

test("[CR3] a reservation bounds the call; calls together never go below zero", async () => {
  const poor = await server.newAccount({ balance: "0.12" });
  const { id } = await newAssistant(server, { status: "active", type: "outbound" }, poor.key);
  const poorest = await assistants.find(poor.accountId, id);
  assert.ok(poorest);
  const asked = await Promise.allSettled(
    Array.from({ length: 5 }, () => begin({ assistant: poorest })));
  const made = asked.filter((one) => one.status === "fulfilled").map(({ value }) => value);
  assert.equal(made.length, 1);
  assert.equal(made[0]?.secondsMax, 72);
  const refused = asked.find((one) => one.status === "rejected");
  assert.match(String(refused?.reason), /Insufficient balance to make call/);
  await calls.change(made[0]!.call, "ringing", {});
  await calls.change(made[0]!.call, "in-progress", {});
  system.advance(500_000);
  await calls.end(made[0]!.call, { finalStatus: "ended_by_customer", ...ENDED });
  const { body } = await server.call("GET", "/user/me", { key: poor.key });
  assert.equal(body.total_balance, 0);
  assert.deepEqual(await problems(), []);
});

test("[CR4] the list, its filters and its envelope; nobody sees another account's calls", async () => {
  const id = await talk(40);
  const list = async (query: string, key = server.key) =>
    (await server.call("GET", `/user/calls?${query}`, { key })).body;
  const first = await list("per_page=1");
  assert.equal(first.data[0].id, id);
  assert.deepEqual([first.per_page, first.current_page, first.from], [1, 1, 1]);
  const day = new Date(system.now() / 1000).toISOString().slice(0, 10);
  for (const [query, finds] of [
    ["status=ended_by_customer", true], ["status=busy", false], ["type=outbound", true],
    ["type=web", false], ["phone_number=%2B15550100", true], ["phone_number=+15550100", true],
    ["phone_number=%2B1555", false], [`assistant_id=${created.id}`, true], ["assistant_id=999", false],
    ["campaign_id=1", false], [`date_from=${day}&date_to=${day}`, true], ["date_to=2020-01-01", false],
  ] as const) {
    const { data } = await list(`per_page=100&${query}`);
    assert.equal((data as { id: number }[]).some((call) => call.id === id), finds, query);
  }
  for (const bad of ["status=gone", "per_page=101", "date_from=2026-13-40", "type=fax"]) {
    assert.equal((await server.call("GET", `/user/calls?${bad}`)).status, 422, bad);
  }
  const stranger = await server.newAccount();
  assert.equal((await list("", stranger.key)).total, 0);
  const read = await server.call("GET", `/user/calls/${id}`, { key: stranger.key });
  assert.deepEqual([read.status, read.body], [404, { message: "Call not found" }]);
});

test("[CR5] a deleted call loses its transcript; its cost stays", async () => {
  const id = await talk(30);
  await calls.addTranscript({ id, accountId }, {
    speaker: "customer", text: "secret words", startMs: 0, endMs: 1, interrupted: false, functionCalls: [],
  });
  const stranger = await server.newAccount();
  const path = `/user/calls/${id}`;
  const refused = await server.call("DELETE", path, { key: stranger.key });
  assert.equal(refused.body.message, "Call not found or does not belong to the authenticated user");
  const { call } = await begin();
  assert.equal((await server.call("DELETE", `/user/calls/${call.id}`)).status, 409);
  await calls.change(call, "busy", {});
  const gone = await server.call("DELETE", path);
  assert.deepEqual([gone.status, gone.body], [200, { message: "Call deleted successfully" }]);
  assert.equal((await server.call("GET", path)).status, 404);
  const storage = await openBeside(server.dataDir);
  const told = await storage.events.ofAccount(server.accountId, 0, 100_000);
  await storage.close();
  assert.ok(!told.some(({ json }) => json.includes("secret words")));
  assert.deepEqual(
    told.map(({ accountSequence }) => accountSequence), told.map((_, index) => index + 1));
  assert.deepEqual(await problems(), []);
});

test("[CR348] a transfer under way when the process dies has failed; one requested in its place, too", async () => {
  const { call } = await begin();
  await calls.change(call, "in-progress", {});
  const transfer = {
    type: "call_transfer", assistantUuid: null, status: "in-progress", failureReason: null,
  } as const;
  await calls.addTransfer(call, { ...transfer, to: "+15550111" });
  await calls.addTransfer(call, { ...transfer, to: "+15550112" });
  const read = async () => (await server.call("GET", `/user/calls/${call.id}`)).body.transfers
    .map((one: Record<string, unknown>) => [one.transfer_to, one.status, one.failure_reason]);
  const replaced = ["+15550111", "failed", "Another transfer was asked for before this one was made."];
  assert.deepEqual(await read(), [replaced, ["+15550112", "in-progress", null]]);
  await recover();
  const [, lost] = await read();
  assert.deepEqual(lost.slice(0, 2), ["+15550112", "failed"]);
  assert.match(lost[2], /^The server was stopped or restarted during the call\./);
});

test("[CR349] carrier cost: started minutes at its rate, in the total, not charged; after a crash too", async () => {
  const talked = async (seconds: number) => {
    const { call } = await begin();
    await calls.change(call, "in-progress", { carrierMicrosPerMinute: 13_500 });
    await calls.beat([call]);
    system.advance(seconds * 1000);
    return call.id;
  };
  const costs = async (id: number) => {
    const { body } = await server.call("GET", `/user/calls/${id}`);
    return [body.carrier_cost, body.total_cost];
  };
  for (const [seconds, ours, carriers] of [
    [1, 0.05, 0.0135], [60, 0.1, 0.0135], [61, 0.101667, 0.027],
  ] as const) {
    const before = await totals();
    const id = await talked(seconds);
    await calls.end({ id, accountId }, { finalStatus: "ended_by_customer", ...ENDED });
    await calls.finish({ id, accountId }, EVALUATED);
    assert.equal(Number((before - await totals()).toFixed(6)), ours);
    assert.deepEqual(await costs(id), [carriers, Number((ours + carriers).toFixed(6))]);
  }
  const before = await totals();
  const cut = await talked(90);
  await calls.beat([{ id: cut, accountId }]);
  system.advance(600_000);
  await recover();
  assert.equal(Number((before - await totals()).toFixed(6)), 0.15);
  assert.deepEqual(await costs(cut), [0.027, 0.177]);
  const { call } = await begin();
  await calls.change(call, "no-answer", { reason: "no_answer" });
  assert.deepEqual(await costs(call.id), [0, 0]);
  assert.deepEqual(await problems(), []);
});

test("[CR461] an ended call left unfinished is finished by its node a moment later", async () => {
  const { call } = await begin();
  await calls.change(call, "in-progress", {});
  system.advance(LIMITS.diskRetryMs);
  await calls.end(call, { finalStatus: "ended_by_customer", ...ENDED });
  const statusOf = async () => (await calls.get(accountId, call.id)).status;
  await nextTurn();
  assert.equal(await statusOf(), "ended");
  for (let looks = 0; looks < 2; looks += 1) system.advance(LIMITS.diskRetryMs);
  assert.equal(await askUntil(statusOf, (status) => status !== "ended"), "ended_by_customer");
});

test("[CR462] a call that ended under a clock since set back is finished all the same", async () => {
  const HOUR_MS = 3_600_000;
  const { call } = await begin();
  await calls.change(call, "in-progress", {});
  system.step(HOUR_MS);
  await calls.end(call, { finalStatus: "ended_by_customer", ...ENDED });
  system.step(-HOUR_MS);
  for (let looks = 0; looks < 2; looks += 1) system.advance(LIMITS.diskRetryMs);
  await askUntil(
    async () => (await calls.get(accountId, call.id)).status,
    (status) => status === "ended_by_customer");
});

test("[CR454] a call cut by a crash before anything was recorded has no recording", async () => {
  const scratch = join(server.dataDir, "scratch");
  const hasLink = async (sound: Uint8Array | null): Promise<boolean> => {
    const { call } = await begin();
    const recordingFile = `${randomUUID()}.wav`;
    await calls.change(call, "in-progress", { recordingFile });
    if (sound) writeFileSync(join(scratch, recordingFile), sound);
    await recover();
    return (await server.call("GET", `/user/calls/${call.id}`)).body.recording_url !== null;
  };
  assert.equal(await hasLink(monoWav([], 8000)), false);
  assert.equal(await hasLink(monoWav([new Int16Array(8000)], 8000)), true);
  assert.equal(await hasLink(null), false);
});

test("[CR6] make_call: every refusal of the contract, numbers as text, the assistant's uuid in any case", async () => {
  const call = (body: object) => server.call("POST", "/user/make_call", { body });
  const phone_number = "+15550100001";
  const bad = await call({ phone_number: "0555", assistant_id: created.id });
  assert.deepEqual([bad.status, bad.body], [400, {
    message: "Invalid phone number format. Please use E.164 format (e.g. +1234567890)",
  }]);
  const unknown = await call({ phone_number, assistant_id: 99_999 });
  assert.deepEqual([unknown.status, unknown.body], [404, {
    message: "Assistant not found or does not belong to the authenticated user",
  }]);
  const idle = await newAssistant(server, { type: "outbound" });
  assert.equal((await call({ phone_number, assistant_id: idle.id })).status, 422);
  for (const assistant_id of [String(created.id), created.uuid, created.uuid.toUpperCase()]) {
    const { status, body } = await call({ phone_number, assistant_id, variables: { "Full Name": 7 } });
    assert.deepEqual([status, body.message, body.status], [200, "Call initiated successfully", "initiated"]);
    await server.call("POST", `/user/calls/${body.call_id}/end`);
    assert.deepEqual((await server.call("GET", `/user/calls/${body.call_id}`)).body.variables, { "Full Name": "7" });
  }
  const poor = await server.newAccount({ balance: "0.01" });
  const { id } = await newAssistant(server, { status: "active", type: "outbound" }, poor.key);
  const broke = await server.call("POST", "/user/make_call", {
    key: poor.key, body: { phone_number, assistant_id: id },
  });
  assert.deepEqual([broke.status, broke.body.message], [
    422, "Insufficient balance to make call. Please top up your account.",
  ]);
});

test("[CR442] make_call and try_call with one Idempotency-Key: one call, however often it is requested", async () => {
  const inbound = await newAssistant(server, { status: "active", type: "inbound" });
  const phone_number = "+15550100002";
  for (const [path, id] of [["/user/make_call", created.id], ["/user/try_call", inbound.id]] as const) {
    const ask = (key: string, changes: object = {}) => server.call("POST", path, {
      headers: { "Idempotency-Key": `${key} ${path}` }, body: { phone_number, assistant_id: id, ...changes },
    });
    const rung = async () => (await server.call("GET", `/user/calls?assistant_id=${id}`)).body.total as number;
    const before = await rung();
    const answers = await Promise.all(Array.from({ length: 5 }, () => ask("once")));
    for (const { status, body } of answers) assert.equal(status, 200, body.message);
    assert.equal(new Set(answers.map(({ body }) => body.call_id)).size, 1);
    const replayed = answers.filter(({ headers }) => headers.get("idempotency-replayed") === "true");
    assert.equal(replayed.length, 4);
    const [{ body: { call_id: call } } = assert.fail()] = answers;
    await server.call("POST", `/user/calls/${call}/end`);
    const late = await ask("once");
    assert.deepEqual([late.status, late.body.call_id], [200, call], "when it is over, too");
    assert.notEqual(late.body.status, "initiated");
    assert.equal(await rung(), before + 1);
    const other = await ask("once", { phone_number: "+15550100003" });
    assert.deepEqual([other.status, other.body.errors], [
      422, { idempotency_key: ["The Idempotency-Key was used for another call."] },
    ]);
    const next = await ask("twice");
    assert.notEqual(next.body.call_id, call);
    assert.equal(next.headers.get("idempotency-replayed"), null);
    await server.call("POST", `/user/calls/${next.body.call_id}/end`);
  }
  assert.deepEqual(await problems(), []);
});
