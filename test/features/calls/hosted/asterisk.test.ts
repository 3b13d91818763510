// Calls over a real Asterisk, by ARI and chan_websocket. The telephones are Asterisk's own
// dialplan, at the far end of a SIP trunk from it to itself: what they hear and what becomes of
// them is judged by its recordings and events, the call by its record here.
import assert from "node:assert/strict";
import { once } from "node:events";
import { after, test, type TestContext } from "node:test";
import { ask } from "#support/api.ts";
import { tone } from "#support/calls/tone.ts";
import { parseWav, wavOf } from "#support/calls/wav.ts";
import { CUSTOMER, startAsteriskWorld, type AsteriskWorld } from "#support/carriers/server-with-asterisk.ts";
import { startProcess } from "#support/process.ts";
import { extension, noAsterisk, type AsteriskEvent } from "#support/sip/asterisk.ts";
import { RATE } from "#support/sip/baresip.ts";
import { startScriptedModel, type Plan, type ScriptedModel } from "#support/vendors/scripted-model.ts";

const skip = noAsterisk();
const LIMITED = { skip, timeout: 180_000 };

const DIALLED = {
  talks: "+14155550180", listens: "+14155550181", busy: "+14155550182", declined: "+14155550183",
  away: "+14155550184", nobody: "+14155550185", congestion: "+14155550186", rings: "+14155550187",
  presses: "+14155550188", reads: "+14155550189", colleague: "+14155550190", quick: "+14155550191",
  interrupts: "+14155550192",
};

const RECORDED = "MixMonitor(FOLDER/${EXTEN}.wav,r(FOLDER/${EXTEN}-heard.wav))";
const STORY = [
  extension(
    DIALLED.talks, "Ringing()", "Answer()", RECORDED, "Wait(1)", "Playback(FOLDER/tone)",
    "Wait(0.2)", "Hangup()"),
  extension(
    DIALLED.listens, "UserEvent(Rung,Caller: ${CALLERID(num)})", "Answer()", RECORDED, "Wait(60)"),
  extension(DIALLED.busy, "Hangup(17)"),
  extension(DIALLED.declined, "Hangup(21)"),
  extension(DIALLED.away, "Ringing()", "Hangup(19)"),
  extension(DIALLED.congestion, "Congestion(5)"),
  extension(DIALLED.rings, "Ringing()", "UserEvent(Rings)", "Wait(60)"),
  extension(DIALLED.presses, "Answer()", "Wait(0.7)", "SendDTMF(42#,100,150)", "Wait(60)"),
  extension(
    DIALLED.reads, "Answer()", "Read(KEYS,,4,,1,10)", "UserEvent(Keys,Keys: ${KEYS})", "Wait(60)"),
  extension(
    DIALLED.colleague, "UserEvent(Transferred,Caller: ${CALLERID(num)})", "Answer()", "Wait(60)"),
  extension(
    DIALLED.interrupts, "Answer()", "Wait(0.7)", "SendDTMF(1#,100,100)", "Wait(1.2)",
    "SendDTMF(2#,100,100)", "Wait(60)"),
  extension(DIALLED.quick, "Answer()", "Hangup()"),
  extension("h", "StopMixMonitor()", "UserEvent(Over)"),
  // Those who ring us: what happens once they are answered.
  extension("talk", RECORDED, "Wait(1)", "Playback(FOLDER/tone)", "Wait(0.2)", "Hangup()"),
  extension("stay", "Wait(60)"),
  // As the operator has to set it up.
  "[inward]\n", extension("_+X.", "Stasis(parley)", "Hangup()"),
  "[parley]\n", extension("transfer", "Dial(${PARLEY_TRANSFER},60)"),
].join("");

/** A line to this same Asterisk, where calls come in as those of the endpoint named second. */
const loop = (name: string, at: string): string => [
  `[${name}]`, "type=endpoint", `aors=${name}`, `from_user=${at}`, "send_pai=yes",
  "trust_id_outbound=yes", `[${name}]`, "type=aor", "contact=sip:127.0.0.1:SIP_PORT",
  `[${at}]`, "type=endpoint", `context=${at}`, "identify_by=username", "trust_id_inbound=yes", "",
].join("\n");
const SOUND = ["disallow=all", "allow=ulaw", "direct_media=no", "media_address=127.0.0.1",
  "bind_rtp_to_media_address=yes", ""].join("\n");
const PJSIP = [loop("trunk", "far"), loop("ringer", "inward")].join("")
  .replaceAll("type=endpoint\n", `type=endpoint\n${SOUND}`);

let model: ScriptedModel;
let world: AsteriskWorld;
if (!skip) {
  model = await startScriptedModel();
  world = await startAsteriskWorld({
    pjsip: PJSIP, extensions: STORY, sounds: { tone: wavOf(tone, RATE) },
  }, { PARLEY_MODEL_URL: model.url, PARLEY_ASTERISK_ENDPOINT: "PJSIP/{number}@trunk" });
}
after(async () => {
  await world?.close();
  await model?.close();
});

const event = (values: AsteriskEvent, number = 0): Promise<AsteriskEvent> =>
  world.asterisk.saw("UserEvent", values, number);
const eventsOf = (values: AsteriskEvent): number => world.asterisk.count("UserEvent", values);
/** What ends by itself after the call: nothing of it stays at Asterisk. */
const nothingLeft = (): Promise<void> => world.isEmpty();

/** The assistant calls this telephone. */
async function calling(number: string, changes: Record<string, unknown> = {}) {
  const desk = await world.desk(changes);
  return { ...desk, callId: await world.dial(desk.id, number) };
}

/** This telephone, and nobody else, rings the number; what happens there once it is answered. */
const ring = (number: string, becomes = "stay"): Promise<void> =>
  world.asterisk.originate("", becomes, `"Bob" <${CUSTOMER}>`, { Channel: `PJSIP/${number}@ringer` });

async function end(callId: number): Promise<void> {
  const { status } = await world.server.call("POST", `/user/calls/${callId}/end`);
  assert.equal(status, 200);
}

/** Once those words, the greeting unless told, are on record. */
async function said(callId: number, words = "Hello"): Promise<void> {
  const { calls, bus } = world.server.app.features;
  const { promise, resolve } = Promise.withResolvers<void>();
  const look = async (): Promise<void> => {
    if ((await calls.transcript(callId)).some(({ text }) => text.includes(words))) resolve();
  };
  const stop = bus.subscribe(`call:${callId}`, () => void look());
  await look();
  await promise;
  stop();
}

/** How much of it is loud; a busy machine puts pauses between what it is late with. */
function loudMs(pcm: Int16Array): number {
  const block = 80;
  let blocks = 0;
  for (let at = 0; at < pcm.length; at += block) {
    if (pcm.subarray(at, at + block).some((sample) => Math.abs(sample) > 1000)) blocks += 1;
  }
  return blocks * 10;
}

/** "Hello" in speech made of numbers, and the tone: all of it was heard. */
function assertHeard(hello: Int16Array, beep: Int16Array, t: TestContext): void {
  t.diagnostic(`greeting of ${loudMs(hello)} ms, tone of ${loudMs(beep)} ms`);
  assert.ok(Math.abs(loudMs(hello) - 300) <= 40, `${loudMs(hello)} ms`);
  assert.ok(Math.abs(loudMs(beep) - 1000) <= 60, `${loudMs(beep)} ms`);
}

async function recordingOf(call: Record<string, unknown>) {
  const response = await fetch(String(call.recording_url));
  assert.equal(response.status, 200);
  const { rate, channels } = parseWav(Buffer.from(await response.arrayBuffer()));
  assert.equal(rate, 16_000);
  // As `tone.ts` has it.
  return channels.map((one) => one.filter((_, at) => at % 2 === 0)) as [Int16Array, Int16Array];
}

test("[AX1] a call to a telephone rings, is greeted, heard and recorded; the telephone hangs up", LIMITED, async (t) => {
  const { callId, number } = await calling(DIALLED.talks, { record: true });
  const call = await world.when(callId, "ended_by_customer");
  assert.deepEqual(world.statuses(callId), ["ringing", "in-progress", "ended", "ended_by_customer"]);
  assert.deepEqual(
    [call.type, call.client_phone_number, call.assistant_phone_number, call.end_reason],
    ["outbound", DIALLED.talks, number, "customer_hung_up"]);
  await event({ UserEvent: "Over" });
  const [customer] = await recordingOf(call);
  assertHeard(world.asterisk.recording(`${DIALLED.talks}-heard`), customer, t);
  await nothingLeft();
});

test("[AX2] the assistant's side hangs up, and the telephone is notified", LIMITED, async () => {
  const before = eventsOf({ UserEvent: "Over" });
  const { callId, number } = await calling(DIALLED.listens);
  await said(callId);
  assert.equal((await event({ UserEvent: "Rung" })).Caller, number);
  await end(callId);
  await world.when(callId, "ended_by_assistant");
  await event({ UserEvent: "Over" }, before);
  await nothingLeft();
});

const REFUSALS: [string, string, string, string, string[]][] = [
  ["busy", DIALLED.busy, "busy", "busy", []],
  ["declined", DIALLED.declined, "failed", "rejected", []],
  ["nobody answered", DIALLED.away, "no-answer", "no_answer", ["ringing"]],
  ["no such number", DIALLED.nobody, "failed", "carrier_failed", []],
  ["congestion", DIALLED.congestion, "failed", "carrier_failed", []],
];
for (const [what, number, becomes, reason, before] of REFUSALS) {
  test(`[AX3] an unanswered call: ${what}`, LIMITED, async () => {
    const { callId } = await calling(number);
    const call = await world.when(callId, becomes);
    assert.deepEqual([call.end_reason, call.duration, call.total_cost], [reason, 0, 0]);
    assert.deepEqual(world.statuses(callId), [...before, becomes]);
    await nothingLeft();
  });
}

test("[AX4] a ringing call is given up when its time is over, or when it is ended here", LIMITED, async () => {
  const slow = await calling(DIALLED.rings, { ringing_time: 5 });
  const given = await calling(DIALLED.rings);
  await world.when(given.callId, "ringing");
  await end(given.callId);
  assert.equal((await world.when(given.callId, "failed")).total_cost, 0);
  await world.when(slow.callId, "no-answer");
  assert.deepEqual(world.statuses(slow.callId), ["ringing", "no-answer"]);
  await nothingLeft();
});

test("[AX5] an incoming call is answered by this server only, greeted and heard; the caller hangs up", LIMITED, async (t) => {
  const before = eventsOf({ UserEvent: "Over" });
  const { number } = await world.desk({ record: true });
  await ring(number, "talk");
  const { id: callId } = await world.newestCall();
  const call = await world.when(callId, "ended_by_customer");
  assert.deepEqual(
    [call.type, call.client_phone_number, call.assistant_phone_number, call.end_reason],
    ["inbound", CUSTOMER, number, "customer_hung_up"]);
  assert.deepEqual(world.statuses(callId), ["in-progress", "ended", "ended_by_customer"]);
  await event({ UserEvent: "Over" }, before);
  const [customer] = await recordingOf(call);
  assertHeard(world.asterisk.recording("talk-heard"), customer, t);
  await nothingLeft();
});

test("[AX6] an incoming call that cannot be taken is refused unanswered, with its reason", LIMITED, async () => {
  const refused = async (number: string): Promise<string | undefined> => {
    const before = world.asterisk.count("Hangup");
    await assert.rejects(ring(number), /not answered/);
    for (let at = before; ; at += 1) {
      const hangup = await world.asterisk.saw("Hangup", {}, at);
      // Ours, whose end says how the caller's was refused.
      if (hangup.Channel?.startsWith("PJSIP/inward-")) return hangup.Cause;
    }
  };
  assert.equal(await refused("+14155550999"), "21");
  const { id, number } = await world.desk();
  await world.server.call("PUT", `/user/assistant/${id}`, { body: { status: "inactive" } });
  assert.equal(await refused(number), "21");
  await nothingLeft();
});

test("[AX7] keys are received, and sent so that the telephone gets them", LIMITED, async () => {
  model.script(({ messages }) => {
    const keys = /\[Keypad input: (\S+)\]/.exec(String(messages.at(-1)?.content))?.[1];
    return { tokens: [keys === undefined ? "What?" : `Keys ${keys}`] };
  });
  const heard = await calling(DIALLED.presses, { tools: [{ type: "collect_keypad" }] });
  await said(heard.callId, "Keys 42");
  await end(heard.callId);

  doing(calls("send_dtmf", { digits: "19*0" }), ["Pressed."]);
  const pressed = await calling(DIALLED.reads, {
    tools: [{ type: "dtmf_input", description: "" }], max_silence_duration: 1,
  });
  assert.equal((await event({ UserEvent: "Keys" })).Keys, "19*0");
  await end(pressed.callId);
  await nothingLeft();
});

const calls = (name: string, args: object = {}): Plan =>
  ({ toolCalls: [{ id: "t1", name, arguments: JSON.stringify(args) }] });
/** The model calls the function, and then says these words. */
const doing = (plan: Plan, tokens: string[]): void =>
  model.script(({ messages }) => (messages.at(-1)?.role === "tool" ? { tokens } : plan));
const HANDING = {
  max_silence_duration: 1,
  tools: [{ type: "call_transfer", description: "", phone_number: DIALLED.colleague }],
};
/** Channels there are at Asterisk. */
const channels = async (): Promise<string[]> =>
  (await world.asterisk.command("core show channels concise")).split("\n").filter((one) => one !== "");

test("[AX8] a call is transferred, whoever placed it, and survives the end of this server", LIMITED, async () => {
  doing(calls("transfer_call"), ["One ", "moment."]);
  const out = await calling(DIALLED.listens, HANDING);
  assert.equal((await event({ UserEvent: "Transferred" })).Caller, out.number);
  assert.equal((await world.when(out.callId, "completed")).end_reason, "transferred");

  const { number } = await world.desk(HANDING);
  await ring(number);
  const { id: callId } = await world.newestCall();
  assert.equal((await event({ UserEvent: "Transferred" }, 1)).Caller, number);
  assert.equal((await world.when(callId, "completed")).end_reason, "transferred");
  // Neither a media channel nor a bridge of ours is left, and the calls are.
  const before = await channels();
  assert.ok(before.length >= 8, before.join("\n"));
  assert.ok(!before.some((one) => one.startsWith("WebSocket/")), before.join("\n"));
  await world.server.close();
  await world.cleared();
  assert.equal((await channels()).length, before.length);
  await world.asterisk.command("channel request hangup all");
  await nothingLeft();
  model.script(null);
});

test("[AX9] speech over a reply drops the audio on its way, and is answered", LIMITED, async () => {
  const long = "one two three four five six seven eight nine ten eleven twelve".split(/(?<= )/);
  model.script(({ messages }) =>
    ({ tokens: JSON.stringify(messages).includes("Keypad input: 2") ? ["Yes?"] : long }));
  const { callId } = await calling(DIALLED.interrupts, {
    tools: [{ type: "collect_keypad" }], interrupt_sensitivity: 1,
  });
  await said(callId, "Yes?");
  await end(callId);
  const call = await world.when(callId, "ended_by_assistant");
  const cut = (call.transcript_entries as { interrupted: boolean; text: string }[])
    .filter(({ interrupted }) => interrupted);
  assert.equal(cut.length, 1);
  await nothingLeft();
  model.script(null);
});

test("[AX10] a telephone that hangs up while answering leaves no audio waiting for it", LIMITED, async () => {
  for (let round = 0; round < 5; round += 1) {
    const { callId } = await calling(DIALLED.quick);
    await Promise.race(["failed", "ended_by_customer"].map((status) => world.when(callId, status)));
  }
  await nothingLeft();
});

test("[AX11] after a crash of this server its successor hangs up the calls, ringing or not", LIMITED, async () => {
  const { id, number } = await world.desk();
  const { key, dataDir } = world.server;
  await world.server.close();
  const { process, url } = await startProcess(dataDir, { ...world.env, PARLEY_DEMO: "off" });
  world.lead(Number(new URL(url).port));
  await world.connected();
  const before = [eventsOf({ UserEvent: "Rings" }), world.asterisk.count("BridgeEnter")] as const;
  const call = (phone: string) =>
    ask({ url, key }, "/user/make_call", { assistant_id: id, phone_number: phone });
  await call(DIALLED.rings);
  await event({ UserEvent: "Rings" }, before[0]);
  await call(DIALLED.listens);
  await ring(number);
  // Both are in their rooms, with the sound of ours.
  await world.asterisk.saw("BridgeEnter", {}, before[1] + 3);
  const ended = once(process, "exit");
  process.kill("SIGKILL");
  await ended;
  // The ringing one and those that talk, each with its other end in Asterisk itself.
  assert.ok((await channels()).length >= 6);
  await world.startServer();
  await nothingLeft();
});

test("[AX13] a server that stops hangs up all calls first", LIMITED, async () => {
  const { callId } = await calling(DIALLED.listens);
  await said(callId);
  const ringing = await calling(DIALLED.rings);
  await world.when(ringing.callId, "ringing");
  const before = eventsOf({ UserEvent: "Over" });
  await world.server.close();
  // Hung up, not only deserted.
  await event({ UserEvent: "Over" }, before + 1);
  await nothingLeft();
  await world.startServer();
});

test("[AX12] if Asterisk crashes the call ends, and the next one works", LIMITED, async () => {
  const ringing = await calling(DIALLED.rings);
  await world.when(ringing.callId, "ringing");
  const talking = await calling(DIALLED.listens);
  await said(talking.callId);
  await world.asterisk.restart();
  await world.when(talking.callId, "ended_by_customer");
  await world.connected();
  await world.when(ringing.callId, "failed");
  const next = await calling(DIALLED.listens);
  await said(next.callId);
  await end(next.callId);
  await world.when(next.callId, "ended_by_assistant");
  await nothingLeft();
});
