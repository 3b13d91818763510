// Web calls over a real socket and the real media thread, in the loopback speech: transcript,
// record, money, recording, tickets, and what happens when either side goes away.
import assert from "node:assert/strict";
import { on, once } from "node:events";
import { after, test } from "node:test";
import { WebSocket } from "ws";
import { LIMITS } from "#core/limits.ts";
import { createSystem } from "#core/system.ts";
import { accountEvent } from "#support/account-events.ts";
import { parseWav } from "#support/calls/wav.ts";
import { callTicket, WebCaller } from "#support/calls/web-caller.ts";
import { newAssistant, newConversation, openBeside, startTestServer } from "#support/server.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";

const model = await startScriptedModel();
const real = createSystem();
/** How far the machine's clock was set. */
let setByMicros = 0;
const BEAT_MS = 100;
/** How much time went by at once. */
let passedMs = 0;
const server = await startTestServer({
  system: {
    ...real,
    now: () => real.now() + setByMicros,
    monotonicMs: () => real.monotonicMs() + passedMs,
    every: (ms, run) => real.every(ms === LIMITS.callBeatMs ? BEAT_MS : ms, run),
  },
  env: { PARLEY_MODEL_URL: model.url, PARLEY_SPEECH: "loopback" },
});
after(async () => {
  await server.close();
  await model.close();
});

const TALK = { initial_message: "Hi there.", post_call_evaluation: false, endpoint_sensitivity: 1 };

async function startCall(settings: object = {}) {
  const assistant = await newAssistant(server, { ...TALK, ...settings });
  const conversation = await newConversation(server, assistant.uuid);
  const caller = await WebCaller.open(server, conversation, await callTicket(server, conversation));
  return { caller, conversation, assistant };
}

/** The record of a call that is over. */
async function record(callId: number, status: string) {
  const ended = await accountEvent(server, ({ type, call_id: id }) =>
    type === "call_ended" && id === callId);
  assert.equal(ended.status, status);
  return (await server.call("GET", `/user/calls/${callId}`)).body;
}

test("[WC1] [CR350] a web call is heard, answered, recorded and paid for", async () => {
  model.script(() => ({ tokens: ["We ", "open ", "at ", "nine."] }));
  const { caller } = await startCall({ record: true });
  await caller.until(() => caller.words.join(" ") === "Hi there.");
  caller.say("When are you open?");
  await caller.until(() => caller.words.length === 6);
  assert.deepEqual(caller.words, ["Hi", "there.", "We", "open", "at", "nine."]);
  await caller.until(() => caller.lines.length === 3);
  assert.deepEqual(caller.lines, [
    "assistant: Hi there.", "customer: When are you open?", "assistant: We open at nine.",
  ]);
  caller.send({ type: "end" });
  await caller.closed();
  assert.equal(caller.messages.at(-1)?.reason, "customer_hung_up");
  const call = await record(caller.callId, "ended_by_customer");
  assert.equal(call.transcript, "AI: Hi there.\nCustomer: When are you open?\nAI: We open at nine.");
  assert.equal(call.type, "web");
  assert.equal(call.total_cost, 0.05);
  assert.equal(call.latency.length, 1);
  const { codec, jitter_ms: jitterMs, packets_lost: lost, mos } = call.quality;
  assert.deepEqual([codec, lost, mos], ["pcm", null, null]);
  assert.ok(jitterMs >= 0 && jitterMs < 1000, `${jitterMs}`);
  const [turn] = call.latency;
  assert.ok(turn.heard_ms >= turn.endpoint_ms);
  const [, question, answer] = call.transcript_entries;
  assert.ok(Math.abs(turn.at_ms - question.end_ms) <= 1 && turn.at_ms < answer.start_ms);
  const { from_ms: fromMs, step_ms: stepMs, values } = call.quality.jitter_over_time;
  assert.ok(Math.abs(fromMs) < 5000 && stepMs === 5000, JSON.stringify(call.quality));
  assert.ok(values.length >= 1 && values.every((one: number) => one >= 0), JSON.stringify(values));
  const recording = await fetch(call.recording_url);
  assert.equal(recording.status, 200);
  const sound = parseWav(Buffer.from(await recording.arrayBuffer()));
  const { rate, channels: [customer, voice] } = sound;
  assert.equal(rate, 16_000);
  assert.ok(customer && voice && customer.length === voice.length);
  assert.ok(Math.abs(customer.length / rate - call.duration) < 1.2);
  assert.ok(customer.some((sample) => sample > 1000) && voice.some((sample) => sample > 1000));
  const tampered = call.recording_url.replace("signature=", "signature=x");
  assert.equal((await fetch(tampered)).status, 404);
  model.script(null);
});

test("[WC2] speech over a reply clears the audio; the transcript holds what was heard", async () => {
  model.script(() => ({ tokens: "one two three four five six seven eight nine ten.".split(/(?<= )/) }));
  const { caller } = await startCall({ interrupt_sensitivity: 1 });
  await caller.until(() => caller.words.length === 2);
  caller.say("Count please.");
  await caller.until(() => caller.words.length === 5);
  caller.say("Stop it now please.");
  await caller.until(() => caller.messages.some(({ type }) => type === "clear"));
  await caller.until(() => caller.lines.length >= 3);
  const heard = caller.words.slice(2).join(" ");
  assert.equal(caller.lines[2], `assistant: ${heard}`);
  assert.ok(caller.words.length < 12);
  caller.hangUp();
  const { transcript_entries: entries } = await record(caller.callId, "ended_by_customer");
  assert.equal(entries[2].interrupted, true);
  assert.equal(entries[2].text, heard);
  model.script(null);
});

test("[WC3] a ticket opens one call, for its own conversation, and no call opens without one", async () => {
  const { uuid } = await newAssistant(server, TALK);
  const conversation = await newConversation(server, uuid);
  const other = await newConversation(server, uuid);
  const ticket = await callTicket(server, conversation);
  const refused = async (path: string): Promise<number> => {
    const socket = new WebSocket(`${server.url.replace("http", "ws")}/api/conversations/${path}`);
    socket.on("error", () => undefined);
    const [, response] = (await once(socket, "unexpected-response")) as [unknown, { statusCode: number }];
    return response.statusCode;
  };
  assert.equal(await refused(`${conversation}/call`), 401);
  assert.equal(await refused(`${other}/call?ticket=${ticket}`), 401);
  // A ticket shown at the wrong door is used up.
  assert.equal(await refused(`${conversation}/call?ticket=${ticket}`), 401);
  const caller = await WebCaller.open(server, conversation, await callTicket(server, conversation));
  caller.hangUp();
  assert.equal((await server.call("POST", `/conversations/${"0".repeat(8)}-0000-4000-8000-${"0".repeat(12)}/call-ticket`)).status, 404);
});

test("[CR467] a web call that its page ends during set-up is over", async () => {
  const { uuid } = await newAssistant(server, TALK);
  const conversation = await newConversation(server, uuid);
  const ticket = await callTicket(server, conversation);
  const socket = new WebSocket(
    `${server.url.replace("http", "ws")}/api/conversations/${conversation}/call?ticket=${ticket}`);
  await once(socket, "open");
  const types: string[] = [];
  for (const type of ["start", "end"]) socket.send(JSON.stringify({ type }));
  for await (const [data, isBinary] of on(socket, "message") as AsyncIterable<[Buffer, boolean]>) {
    types.push(isBinary ? "sound" : (JSON.parse(data.toString("utf8")) as { type: string }).type);
    if (types.includes("end") || types.includes("sound")) break;
  }
  socket.close();
  assert.deepEqual([types[0], types.at(-1)], ["ready", "end"]);
});

test("[WC4] a call ends politely when the assistant says so, and hangs up by itself", async () => {
  model.script((_body, call) => call % 2 === 0
    ? { tokens: ["Good", "bye."], toolCalls: [{ id: "t1", name: "hang_up", arguments: "{}" }] }
    : { tokens: ["See ", "you."] });
  const { caller } = await startCall({ tools: [{ type: "end_call" }] });
  await caller.until(() => caller.words.length === 2);
  caller.say("Bye.");
  await caller.closed();
  assert.equal(caller.messages.at(-1)?.reason, "assistant_ended");
  const call = await record(caller.callId, "ended_by_assistant");
  assert.deepEqual(caller.words.slice(2).join(" "), "Goodbye. See you.");
  assert.equal(call.transcript_entries.at(-1).function_calls[0].name, "hang_up");
  model.script(null);
});

test("[WC6] the end of each utterance is marked; the page's reply to the mark measures the playout delay", async () => {
  model.script(() => ({ tokens: ["Nine."] }));
  const { caller } = await startCall();
  await caller.until(() => caller.messages.some(({ type }) => type === "mark"));
  const [mark] = caller.messages.filter(({ type }) => type === "mark");
  assert.equal(mark?.name, "1");
  const metrics = () => server.app.features.metrics.registry.metrics();
  assert.match(await metrics(), /^parley_calls_live 1$/m);
  assert.match(await metrics(), /^parley_web_call_playout_seconds_count 0$/m);
  // Only the mark that was sent counts, and once.
  for (const name of ["7", "1", "1"]) caller.send({ type: "mark", name });
  caller.send({ type: "ping" });
  await caller.until(() => caller.messages.some(({ type }) => type === "pong"));
  assert.match(await metrics(), /^parley_web_call_playout_seconds_count 1$/m);
  caller.send({ type: "end" });
  await caller.closed();
});

test("[WC5] malformed messages on the call's socket get errors and do not end the call", async () => {
  const { caller } = await startCall();
  caller.send({ type: "nonsense" });
  caller.send({ type: "cleared", dropped_ms: -5 });
  caller.send({ type: "dtmf", digit: "xx" });
  await caller.until(() => caller.messages.filter(({ type }) => type === "error").length >= 3);
  caller.send({ type: "ping" });
  await caller.until(() => caller.messages.some(({ type }) => type === "pong"));
  caller.send({ type: "end" });
  await caller.closed();
});

test("[CR57] [CR460] a call costs the time it lasted, and jitter keeps its place, wherever the clock is set meanwhile", async () => {
  for (const minutes of [30, -30]) {
    const { caller } = await startCall();
    await caller.until(() => caller.words.length === 2);
    setByMicros = minutes * 60_000_000;
    caller.send({ type: "end" });
    await caller.closed();
    const { duration, total_cost: cost, quality } = await record(
      caller.callId, "ended_by_customer");
    setByMicros = 0;
    const { from_ms: fromMs } = quality.jitter_over_time;
    assert.ok(Math.abs(fromMs) < 5000, `${fromMs} ms`);
    assert.ok(duration >= 1 && duration < 30, `${String(duration)} s`);
    assert.equal(cost, 0.05);
  }
});

async function killServer(): Promise<void> {
  const { nodes, close } = await openBeside(server.dataDir);
  for (const { id: deadId, beatAt } of await nodes.list()) {
    await nodes.bury({ deadId, beatAt, now: real.now() + setByMicros });
  }
  await close();
  await server.app.features.calls.recover();
}

test("[CR456] a web call that is cut off costs the time until its last sound and no minute more", async () => {
  const cut = async (silentMs: number) => {
    const { caller } = await startCall();
    await caller.until(() => caller.words.length === 2);
    await caller.fallSilent();
    passedMs += silentMs;
    caller.vanish();
    const { duration, total_cost: cost, end_reason: reason } = await record(
      caller.callId, "ended_by_customer");
    return { duration, cost, reason };
  };
  const lost = await cut(50_000);
  assert.equal(lost.reason, "media_timeout");
  assert.ok(lost.duration >= 1 && lost.duration < 30, `${String(lost.duration)} s`);
  assert.ok(lost.cost > 0 && lost.cost < 0.05, String(lost.cost));
  // A page that is killed while it talks has left.
  const left = await cut(0);
  assert.deepEqual([left.reason, left.cost], ["customer_hung_up", 0.05]);
});

test("[CR457] killed while a web call is cut off: the silence is not billed", async () => {
  const { caller } = await startCall();
  await caller.until(() => caller.words.length === 2);
  await caller.fallSilent();
  passedMs += 50_000;
  const { frames } = caller;
  await caller.until(() => caller.frames > frames + BEAT_MS / 4);
  await killServer();
  const { duration, total_cost: cost } = await record(caller.callId, "failed");
  assert.ok(duration >= 1 && duration < 30, `${String(duration)} s`);
  assert.ok(cost > 0 && cost < 0.05, String(cost));
  caller.hangUp();
});

test("[CR455] a call whose process died costs the time it lasted, wherever the clock was set meanwhile", async () => {
  for (const minutes of [30, -30]) {
    const { caller } = await startCall();
    await caller.until(() => caller.words.length === 2);
    setByMicros = minutes * 60_000_000;
    const { frames } = caller;
    await caller.until(() => caller.frames > frames + BEAT_MS / 4);
    await killServer();
    const { duration, total_cost: cost } = await record(caller.callId, "failed");
    setByMicros = 0;
    assert.ok(duration >= 1 && duration < 30, `${String(duration)} s`);
    assert.ok(cost > 0 && cost < 0.05, String(cost));
    caller.hangUp();
  }
});

test("[WT30] the time for a colleague follows the balance, even if the system clock changes in mid-call", async () => {
  const { key } = await server.newAccount();
  const number = "+12015550177";
  const { numberInventory, close } = await openBeside(server.dataDir);
  await numberInventory.stock({ now: 1, numbers: [{
    phoneNumber: number, countryCode: "US", smsCapable: false, monthlyMicros: 0, carrier: null,
  }] });
  await close();
  const { body: bought } = await server.call("POST", "/user/phone-numbers/purchase", {
    key, body: { phone_number: number },
  });
  const { id: assistantId } = await newAssistant(server, {
    ...TALK, type: "outbound", status: "active",
    tools: [{
      type: "warm_call_transfer", description: "When a person is asked for",
      supervisor_phone: "+15550177", outbound_phone_id: bought.data.id,
    }],
  }, key);
  model.script(({ messages, tools }) => {
    const { name } = (tools?.[0]?.function ?? {}) as { name?: string };
    if (name === undefined || messages.at(-1)?.role === "tool") return { tokens: ["Yes."] };
    setByMicros = 60 * 60_000_000;
    return { toolCalls: [{ id: "c1", name, arguments: "{}" }] };
  });
  const { body: { call_id: callId } } = await server.call("POST", "/user/make_call", {
    key, body: { phone_number: "+15550100042", assistant_id: assistantId },
  });
  const { transfer } = await accountEvent(
    { ...server, key }, ({ type }) => type === "call_transfer_changed");
  const { stage, failure_reason: why } = transfer as Record<string, unknown>;
  assert.deepEqual([stage, why], ["announcing", null]);
  await server.call("POST", `/user/calls/${callId}/end`, { key, body: {} });
  await accountEvent({ ...server, key }, ({ type }) => type === "call_ended");
  setByMicros = 0;
  model.script(null);
  const { body: { transfers: [one] } } = await server.call("GET", `/user/calls/${callId}`, { key });
  assert.ok(one.created_at <= one.finished_at, JSON.stringify(one));
});

test("[CR561] speech heard before keys interrupted it is recorded, even if the page hangs up right after", async () => {
  const { caller } = await startCall({
    initial_message: "For sales press one, for all the rest stay on the line until we come.",
    tools: [{ type: "collect_keypad" }],
  });
  const send = caller.send.bind(caller);
  caller.send = (message) => {
    if (!("played_ms" in message)) send(message);
  };
  await caller.until(() => caller.words.length === 4);
  for (const digit of ["1", "#"]) caller.send({ type: "dtmf", digit });
  await caller.until(() => caller.messages.some(({ type }) => type === "clear"));
  caller.send({ type: "end" });
  const { transcript } = await record(caller.callId, "ended_by_customer");
  assert.match(String(transcript), /^AI: For sales press one,[^\n]*\nCustomer: \[Keypad input: 1\]$/);
});
