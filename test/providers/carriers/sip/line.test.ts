// What happens to a line in the middle of a call, through the real server and over real sockets: a
// far end that moves, holds, gives up or vanishes, and what its record says then.
import assert from "node:assert/strict";
import { after, type TestContext } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { askUntil } from "#support/asking.ts";
import type { LegEvent, Offer } from "#providers/carriers/port.ts";
import { test } from "#support/bounded-test.ts";
import { parseWav } from "#support/calls/wav.ts";
import { IS_PROOF } from "#support/proof.ts";
import { createReceived } from "#support/received.ts";
import { startSipWorld } from "#support/sip/server-with-sip.ts";
import { openCaller, type SipCaller } from "#support/sip/sip-caller.ts";
import { createCarrierTo } from "#support/sip/sip-hops.ts";
import { startScriptedModel } from "#support/vendors/scripted-model.ts";

/** From the INVITE to the CANCEL, or once the answer is on its way; null: the caller vanishes. */
const CANCEL_AFTER_MS = [0, 0, 2, 5, 10, 20, 35, 50, "answered", null] as const;
const LONG = "Hello and welcome. ".repeat(10);
const model = await startScriptedModel();
const world = await startSipWorld({ PARLEY_MODEL_URL: model.url });
after(async () => {
  await world.server.close();
  await model.close();
});

async function callerOf(t: TestContext, number: string): Promise<SipCaller> {
  const caller = await openCaller(world.sipPort, number);
  t.after(() => caller.close());
  return caller;
}

/** Until so many packets have come. */
const heard = ({ talker }: SipCaller, count: number) =>
  askUntil(() => talker.heard.length, (length) => length >= count);

test("[SC98] a caller whose NAT changes its address in mid-call is answered there within 500 ms", async (t) => {
  const { number } = await world.desk({ initial_message: LONG });
  const caller = await callerOf(t, number);
  await caller.call();
  await heard(caller, 50);
  const movedMs = await caller.talker.move();
  await askUntil(() => caller.talker.heard.at(-1)?.socket, (socket) => socket === 1);
  const first = caller.talker.heard.find(({ socket }) => socket === 1)!;
  const tookMs = first.atMs - movedMs;
  t.diagnostic(`sound at the new address after ${Math.round(tookMs)} ms`);
  assert.ok(tookMs <= 500, `${tookMs} ms`);
  await delay(300);
  const old = caller.talker.heard.filter(({ socket, atMs }) =>
    socket === 0 && atMs > first.atMs + 40);
  assert.equal(old.length, 0);
  const callId = await world.nextCall(number);
  caller.say("BYE");
  await world.when(callId, "ended_by_customer");
});

const RATE = 8000;
const MUSIC_HZ = 1000;
const VOICE_HZ = 400;

const toneOf = (hertz: number, ms: number): Int16Array =>
  Int16Array.from({ length: (RATE * ms) / 1000 }, (_, at) =>
    Math.round(8000 * Math.sin((2 * Math.PI * hertz * at) / RATE)));

/** The milliseconds of 20 ms frames in which the frequency is heard. */
function millisecondsOf(pcm: Int16Array, hertz: number): number {
  let count = 0;
  for (let from = 0; from + 160 <= pcm.length; from += 160) {
    let [cosine, sine] = [0, 0];
    for (let at = 0; at < 160; at += 1) {
      const angle = (2 * Math.PI * hertz * at) / RATE;
      cosine += pcm[from + at]! * Math.cos(angle);
      sine += pcm[from + at]! * Math.sin(angle);
    }
    if ((2 * Math.hypot(cosine, sine)) / 160 > 2000) count += 1;
  }
  return count * 20;
}

test("[SC99] hold music of a telephone system is neither heard nor recorded, however the hold is signalled", async (t) => {
  const { number } = await world.desk({ record: true, initial_message: "Hello", max_silence_duration: 1 });
  const caller = await callerOf(t, number);
  await caller.call();
  const callId = await world.nextCall(number);
  const holds = [
    ["INVITE", { direction: "sendonly" }], ["INVITE", { direction: "inactive" }],
    ["INVITE", { host: "0.0.0.0" }], ["UPDATE", { direction: "sendonly" }],
  ] as const;
  await delay(500);
  for (const [method, hold] of holds) {
    await caller.offer(hold, method);
    caller.talker.say(toneOf(MUSIC_HZ, 1100));
    const before = caller.talker.heard.length;
    await delay(1300);
    assert.ok(caller.talker.heard.length - before <= 3, "what is on hold is sent nothing");
    await caller.offer({}, method);
    caller.talker.say(toneOf(VOICE_HZ, 300));
    await delay(500);
  }
  caller.say("BYE");
  const call = await world.when(callId, "ended_by_customer");
  const recording = Buffer.from(await (await fetch(String(call.recording_url))).arrayBuffer());
  const { channels: [customer] } = parseWav(recording);
  assert.ok(customer);
  assert.equal(millisecondsOf(customer, MUSIC_HZ), 0);
  const voiceMs = millisecondsOf(customer, VOICE_HZ);
  assert.ok(voiceMs >= holds.length * 240, `${voiceMs}`);
  // A second of silence is asked about, five of hold are not.
  const asked = (call.transcript_entries as { sender: string; text: string }[])
    .filter(({ text }) => text !== "Hello");
  assert.deepEqual(asked, []);
});

const balance = async (): Promise<number> =>
  (await world.server.call("GET", "/user/me")).body.total_balance as number;

test("[SC100] a caller who cancels at any moment of the answer, or vanishes before the ACK, pays nothing", async (t) => {
  const { number } = await world.desk();
  const before = await balance();
  const callers = await Promise.all(CANCEL_AFTER_MS.map(async (ms) => {
    const caller = await callerOf(t, number);
    caller.ring();
    if (ms === null) return caller;
    if (ms === "answered") await caller.wire.heard.event("200");
    else await delay(ms);
    caller.cancel();
    return caller;
  }));
  const places = callers.map((_, place) => place);
  const callIds = await Promise.all(places.map((place) => world.nextCall(number, place)));
  // Each has an end in sight: refused as it wished, or an answer that it never acknowledges.
  for (const { wire } of callers) {
    await Promise.race([wire.heard.event("487"), wire.heard.event("200", 1)]);
  }
  const cancelled = callers.filter(({ wire }) => wire.heard.kinds().includes("487")).length;
  t.diagnostic(`${cancelled} of ${callers.length} cancelled before the answer`);
  assert.ok(cancelled > 0 && cancelled < callers.length);
  await askUntil(
    () => callIds.filter((callId) => world.statuses(callId).includes("no-answer")).length,
    (count) => count >= cancelled);
  for (const callId of callIds) assert.ok(!world.statuses(callId).includes("in-progress"));
  if (!IS_PROOF) return;
  for (const callId of callIds) {
    await world.news.event<string>(`${callId} over`);
    const { status, duration, total_cost: cost } = (await world.server.call("GET", `/user/calls/${callId}`)).body;
    assert.ok(["no-answer", "failed"].includes(String(status)), String(status));
    assert.deepEqual([duration, cost], [0, 0]);
  }
  assert.equal(await balance(), before);
});

test("[SC100] an unacknowledged answer ends after 32 s as a failed call, not as an answered one", async (t) => {
  const offers = createReceived<{ kind: "offer"; offer: Offer }>();
  const { system, at, inbound, close } = await createCarrierTo(
    [], {}, () => true, "127.0.0.1", (offer) => offers.receive({ kind: "offer", offer }));
  t.after(close);
  const caller = await openCaller(at.port, "+14155550100");
  t.after(() => caller.close());
  caller.ring();
  const { offer } = await offers.event("offer");
  const received = createReceived<LegEvent>();
  inbound.answer(offer.id, received.receive);
  await caller.wire.heard.event("200");
  system.advance(31_000);
  assert.ok(!received.kinds().includes("ended"));
  system.advance(2000);
  assert.equal((await received.event("ended")).cause, "failed");
  assert.ok(!received.kinds().includes("answered"));
  await caller.wire.heard.event("BYE");
});

test("[SC103] a transferred call without further reports ends when its time is up", async (t) => {
  if (!IS_PROOF) return t.skip("twenty seconds: npm run prove");
  model.script(({ messages }) => messages.at(-1)?.role === "tool"
    ? { tokens: ["One ", "moment."] }
    : { toolCalls: [{ id: "c1", name: "transfer_call", arguments: "{}" }] });
  const { number } = await world.desk({
    max_duration: 20, tools: [{ type: "call_transfer", description: "", phone_number: "+15550177" }],
  });
  const caller = await callerOf(t, number);
  await caller.call();
  const callId = await world.nextCall(number);
  for (const key of "42#") {
    const body = `Signal=${key}\r\nDuration=160\r\n`;
    caller.say("INFO", { "Content-Type": "application/dtmf-relay" }, body);
  }
  const { message } = await caller.wire.heard.event("REFER");
  caller.answer(message, 202);
  const call = await world.when(callId, "ended_by_assistant");
  assert.equal(call.end_reason, "max_duration");
  // The second that has begun when the line is told counts.
  assert.ok([20, 21].includes(call.duration as number), `${call.duration} s`);
  const [tried] = call.transfers as { status: string }[];
  assert.equal(tried?.status, "failed");
  await caller.wire.heard.event("BYE");
});
