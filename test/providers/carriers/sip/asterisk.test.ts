// Calls over SIP with Asterisk as registrar and trunk: what a telephone system people run thinks of
// our registrations, calls, keys, transfers and sound, judged by its own events and recordings and
// by the call's record here.
import assert from "node:assert/strict";
import { after, test, type TestContext } from "node:test";
import { askUntil } from "#support/asking.ts";
import { assertHello, assertTone, loud, tone } from "#support/calls/tone.ts";
import { parseWav, wavOf } from "#support/calls/wav.ts";
import {
  extension, line, LINE_PASSWORD, noAsterisk, startAsterisk, type Asterisk, type AsteriskEvent,
} from "#support/sip/asterisk.ts";
import { noBaresip, RATE, startBaresip } from "#support/sip/baresip.ts";
import { startSipWorld, type SipWorld } from "#support/sip/server-with-sip.ts";
import { startScriptedModel, type ScriptedModel } from "#support/vendors/scripted-model.ts";

const skip = noAsterisk();
const LIMITED = { skip, timeout: 180_000 };
const CALLER = "+14155550123";

/** Numbers behind the trunk, and what happens there. */
const DIALLED = {
  echo: "+14155550180", tone: "+14155550181", busy: "+14155550182", congestion: "+14155550183",
  declined: "+14155550184", away: "+14155550185", silent: "+14155550186", nobody: "+14155550187",
  keys: "+14155550188", bridged: "+14155550189", colleague: "+14155550190",
  assistant: "+14155550191", early: "+14155550192",
};

const RECORDED = "MixMonitor(FOLDER/${CHANNEL(endpoint)}.wav,r(FOLDER/${CHANNEL(endpoint)}-heard.wav))";
const EXTENSIONS = [
  extension(DIALLED.echo, "Answer()", "Echo()"),
  extension(DIALLED.tone, "Answer()", RECORDED, "Wait(0.8)", "Playback(FOLDER/tone)", "Hangup()"),
  extension(DIALLED.busy, "Busy(5)"),
  extension(DIALLED.congestion, "Congestion(5)"),
  extension(DIALLED.declined, "Hangup(21)"),
  extension(DIALLED.away, "Hangup(19)"),
  extension(DIALLED.silent, "Ringing()", "Wait(30)"),
  extension(DIALLED.early, "Progress()", "Playback(FOLDER/tone,noanswer)", "Hangup(17)"),
  extension(
    DIALLED.keys, "Answer()", "Read(KEYS,,4,,1,10)",
    "UserEvent(Keys,Keys: ${KEYS},Line: ${CHANNEL(endpoint)})", "Wait(20)"),
  extension(DIALLED.bridged, "Dial(Local/person@far/n)"),
  extension("person", "Answer()", "Wait(30)"),
  extension(
    DIALLED.colleague, "UserEvent(Transferred)", "Ringing()", "Wait(0.3)", "Dial(Local/person@far)"),
  extension(DIALLED.assistant, "Dial(PJSIP/direct-b)"),
  extension("talk", RECORDED, "Wait(1.2)", "Playback(FOLDER/tone)", "Wait(0.2)", "Hangup()"),
  extension("press", "Wait(0.5)", "SendDTMF(42#,150,200)", "Wait(20)"),
  extension("inward", "Dial(PJSIP/inward)"),
  extension("desk", "Dial(PJSIP/held)"),
  // Recordings are whole when this has been published.
  extension("h", "StopMixMonitor()", "UserEvent(Over,Line: ${CHANNEL(endpoint)})"),
].join("");

const PJSIP = [
  line("plain"), line("out"),
  line("refusing"), line("timed", ["timers=required", "timers_sess_expires=90"]),
  line("events", ["dtmf_mode=rfc4733"]), line("info", ["dtmf_mode=info"]), line("handing"),
  line("inband", ["dtmf_mode=inband"]),
  line("direct-a", ["direct_media=yes"]), line("direct-b", ["direct_media=yes"]),
  line("held", ["moh_passthrough=yes"]),
  line("alaw", ["allow=alaw"]),
  line("inward"), "[telephone]", "type=endpoint", "context=far", "disallow=all", "allow=ulaw", "direct_media=no",
  "media_address=127.0.0.1", "bind_rtp_to_media_address=yes", "identify_by=username", "",
].join("\n");

let model: ScriptedModel;
let asterisk: Asterisk;
let world: SipWorld;
if (!skip) {
  model = await startScriptedModel();
  asterisk = await startAsterisk({
    pjsip: PJSIP, extensions: EXTENSIONS, sounds: { tone: wavOf(tone, RATE) },
  });
  world = await startSipWorld({ PARLEY_MODEL_URL: model.url });
}
after(async () => {
  await world?.server.close();
  await asterisk?.close();
  await model?.close();
});

/** A trunk to the line, once Asterisk has it registered and its question was answered. */
async function trunkTo(name: string, changes: Record<string, unknown> = {}) {
  const seen = asterisk.count("ContactStatus", { AOR: name, ContactStatus: "Reachable" });
  const trunk = await world.trunk({
    inbound_authorization_type: "auth", allowed_inbound_ips: undefined,
    sip_username: name, sip_password: LINE_PASSWORD, sip_port: asterisk.port, ...changes,
  });
  await asterisk.saw("ContactStatus", { AOR: name, ContactStatus: "Reachable" }, seen);
  return trunk;
}

/** The call that comes of Asterisk calling the line. */
async function called(name: string, to: string, assistant: Record<string, unknown> = {}) {
  const trunk = await trunkTo(name);
  await world.assistant(trunk.id, assistant);
  const [callId] = await Promise.all([
    world.nextCall(trunk.number), asterisk.originate(name, to, `"Bob" <${CALLER}>`),
  ]);
  return { callId, trunk };
}

/** The assistant calls a number behind the line. */
async function calling(name: string, number: string, changes: Record<string, unknown> = {}) {
  const trunk = await trunkTo(name);
  const assistant = await world.assistant(trunk.id, { type: "outbound", ...changes });
  return { trunk, callId: await world.dial(assistant.id, number) };
}

/** The line's call of this number, from 0, is over and its recordings are whole. */
const over = (name: string, number = 0): Promise<AsteriskEvent> =>
  asterisk.saw("UserEvent", { UserEvent: "Over", Line: name }, number);
const endCall = async (callId: number): Promise<void> => {
  const { status } = await world.server.call("POST", `/user/calls/${callId}/end`);
  assert.equal(status, 200);
};

/** Both sides as the call's own recording has them. */
async function recordingOf(call: Record<string, unknown>) {
  const response = await fetch(String(call.recording_url));
  assert.equal(response.status, 200);
  const { rate, channels } = parseWav(Buffer.from(await response.arrayBuffer()));
  assert.equal(rate, RATE);
  const [customer, assistant] = channels as [Int16Array, Int16Array];
  return { customer, assistant };
}

/** A call that comes in over the line: the greeting is heard there, the tone here. */
async function talk(name: string, t: TestContext) {
  const { callId, trunk } = await called(name, "talk", { record: true });
  await over(name);
  const call = await world.when(callId, "ended_by_customer");
  assert.deepEqual(
    [call.type, call.client_phone_number, call.assistant_phone_number, call.end_reason],
    ["inbound", CALLER, trunk.number, "customer_hung_up"]);
  assert.deepEqual(world.statuses(callId), ["created", "in-progress", "ended", "ended_by_customer"]);
  assertHello(asterisk.recording(`${name}-heard`));
  const { customer, assistant } = await recordingOf(call);
  assertTone(customer, t);
  assertHello(assistant);
}

test("[SC71] a call Asterisk places to the registered contact is answered, heard at both ends, and recorded", LIMITED, (t) => talk("plain", t));

test("[SC72] a call through the trunk: Asterisk echoes it, and either side hangs up", LIMITED, async (t) => {
  const { callId, trunk } = await calling(
    "out", DIALLED.echo, { record: true, allow_interruptions: false });
  const begun = await asterisk.saw("Newexten", { Extension: DIALLED.echo, Application: "Answer" });
  assert.equal(begun.CallerIDNum, trunk.number);
  await world.when(callId, "in-progress");
  await said(callId);
  await endCall(callId);
  const call = await world.when(callId, "ended_by_assistant");
  await over("out");
  const { customer, assistant } = await recordingOf(call);
  const [echo, greeting] = [loud(customer), loud(assistant)];
  t.diagnostic(`echo after ${Math.round(echo.fromMs - greeting.fromMs)} ms`);
  assert.ok(echo.fromMs - greeting.fromMs > 10 && echo.fromMs - greeting.fromMs <= 200);
  assert.ok(Math.abs(echo.forMs - greeting.forMs) <= 20, `${echo.forMs} ${greeting.forMs}`);

  await dialTone("out", t);
});

/** Once those words, the greeting unless told, are on record: they have been heard. */
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

/** What Asterisk says to a call, and what the record says then. */
const REFUSALS: [string, string, string, string][] = [
  ["busy", DIALLED.busy, "busy", "busy"],
  ["congestion", DIALLED.congestion, "failed", "carrier_failed"],
  ["declined", DIALLED.declined, "failed", "rejected"],
  ["nobody answered", DIALLED.away, "no-answer", "no_answer"],
  ["no such extension", DIALLED.nobody, "failed", "carrier_failed"],
  ["an announcement, then busy", DIALLED.early, "busy", "busy"],
];
for (const [what, number, becomes, reason] of REFUSALS) {
  test(`[SC73] a call Asterisk does not connect: ${what}`, LIMITED, async () => {
    const { callId } = await calling("refusing", number);
    const call = await world.when(callId, becomes);
    assert.deepEqual([call.end_reason, call.duration, call.total_cost], [reason, 0, 0]);
    const rang = number === DIALLED.early ? ["ringing"] : [];
    assert.deepEqual(world.statuses(callId), ["created", ...rang, becomes]);
  });
}

test("[SC73] a call Asterisk lets ring is given up, and Asterisk is notified", LIMITED, async () => {
  const before = asterisk.count("UserEvent", { UserEvent: "Over", Line: "refusing" });
  const { callId } = await calling("refusing", DIALLED.silent, { ringing_time: 5 });
  await world.when(callId, "no-answer");
  assert.deepEqual(world.statuses(callId), ["created", "ringing", "no-answer"]);
  await over("refusing", before);
});

for (const [name, how] of [["events", "as telephone events"], ["info", "as INFO"]] as const) {
  test(`[SC74] keys sent by Asterisk are received: ${how}`, LIMITED, async () => {
    model.script(({ messages }) => {
      const keys = /\[Keypad input: (\S+)\]/.exec(String(messages.at(-1)?.content))?.[1];
      return { tokens: [keys === undefined ? "What?" : `Keys ${keys}`] };
    });
    const { callId } = await called(name, "press");
    await said(callId, "Keys 42");
    await endCall(callId);
    await world.when(callId, "ended_by_assistant");
  });
}

for (const [name, how] of [["events", "as telephone events"], ["inband", "as tones"]] as const) {
  test(`[SC75] keys sent by the assistant reach Asterisk: ${how}`, LIMITED, async () => {
    model.script(({ messages }) => (messages.at(-1)?.role === "tool" ? { tokens: ["Pressed"] }
      : { toolCalls: [{ id: "c1", name: "send_dtmf", arguments: "{\"digits\":\"19*0\"}" }] }));
    const { callId } = await calling(name, DIALLED.keys, {
      tools: [{ type: "dtmf_input", description: "" }], max_silence_duration: 1,
    });
    const { Keys } = await asterisk.saw("UserEvent", { UserEvent: "Keys", Line: name });
    assert.equal(Keys, "19*0");
    await endCall(callId);
    await world.when(callId, "ended_by_assistant");
  });
}

interface Invited {
  offer: string;
  answer: string;
}

/** The INVITEs Asterisk has sent us and what we answered, since it began to keep them. */
async function invited(): Promise<Invited[]> {
  const list = await asterisk.command("pjsip show history");
  const ours = [...list.matchAll(/^(\d+) +\d+ \* (==> \S+ +INVITE|<== \S+ +SIP\/2\.0 200)/gm)];
  const texts = await Promise.all(ours.map(([, number]) =>
    asterisk.command(`pjsip show history entry ${number}`)));
  const idOf = (text: string): string =>
    ["Call-ID", "CSeq"].map((name) => new RegExp(`^${name}: (.*)`, "m").exec(text)?.[1]).join();
  const offers = texts.filter((text) => /^INVITE /m.test(text));
  return offers.flatMap((offer) => {
    const answer = texts.find((text) => text !== offer && idOf(text) === idOf(offer));
    return answer === undefined ? [] : [{ offer, answer }];
  });
}

/** Once so many have been answered. */
const invitedTimes = (count: number): Promise<Invited[]> =>
  askUntil(invited, (all) => all.length >= count);

async function keepHistory(): Promise<void> {
  await asterisk.command("pjsip set history clear");
  await asterisk.command("pjsip set history on");
}

const mediaPort = (sdp: string): string => /^m=audio (\d+)/m.exec(sdp)?.[1] ?? "none";
const direction = (sdp: string): string =>
  /^a=(sendrecv|sendonly|recvonly|inactive)/m.exec(sdp)?.[1] ?? "none";

test("[SC76] two assistants talk through Asterisk, which takes itself out of the media path", LIMITED, async (t) => {
  await keepHistory();
  model.script(() => ({ tokens: ["Anybody"] }));
  const b = await trunkTo("direct-b");
  await world.assistant(b.id, { record: true });
  const a = await calling("direct-a", DIALLED.assistant, {
    record: true, wait_for_customer: true, max_silence_duration: 2,
  });
  const inbound = await world.nextCall(b.number);
  // The call that comes in, and from then on each is notified where the other's sound is.
  const [, ...changes] = await invitedTimes(3);
  const isB = ({ offer }: Invited): boolean => offer.includes(`INVITE sip:trunk-${b.id}@`);
  const atA = changes.find((one) => !isB(one))!;
  const atB = changes.find(isB)!;
  assert.equal(mediaPort(atA.offer), mediaPort(atB.answer));
  assert.equal(mediaPort(atB.offer), mediaPort(atA.answer));
  await said(a.callId, "Anybody");
  await endCall(a.callId);
  const calls = [
    await world.when(a.callId, "ended_by_assistant"),
    await world.when(inbound, "ended_by_customer"),
  ];
  const [endA, endB] = [await recordingOf(calls[0]), await recordingOf(calls[1])];
  // What each says is what the other hears.
  for (const [spoken, heard] of [
    [loud(endA.assistant), loud(endB.customer)], [loud(endB.assistant), loud(endA.customer)],
  ] as const) {
    t.diagnostic(`${Math.round(spoken.forMs)} ms said, ${Math.round(heard.forMs)} ms heard`);
    assert.ok(Math.abs(spoken.forMs - heard.forMs) <= 60, `${spoken.forMs} ${heard.forMs}`);
  }
});

test("[SC77] a telephone behind Asterisk that holds and resumes the call", { ...LIMITED, skip: skip || noBaresip() }, async () => {
  await keepHistory();
  const trunk = await trunkTo("held");
  await world.assistant(trunk.id);
  const phone = await startBaresip({ microphone: new Int16Array(15 * RATE) });
  try {
    await phone.command("dial", `sip:desk@127.0.0.1:${asterisk.port}`);
    const callId = await world.nextCall(trunk.number);
    await said(callId);
    await phone.command("hold");
    await invitedTimes(2);
    await phone.command("resume");
    const offers = await invitedTimes(3);
    const directions = offers.map(({ offer, answer }) => [direction(offer), direction(answer)]);
    assert.deepEqual(directions, [
      ["sendrecv", "sendrecv"], ["sendonly", "recvonly"], ["sendrecv", "sendrecv"],
    ]);
    await phone.command("hangup");
    const call = await world.when(callId, "ended_by_customer");
    assert.equal(call.client_phone_number, "telephone");
  } finally {
    await phone.close();
  }
});

/** The model hands the call on as soon as it is asked anything. */
const handsOn = (): void => model.script(({ messages }) =>
  (messages.at(-1)?.role === "tool" ? { tokens: ["Goodbye"] }
    : { toolCalls: [{ id: "c1", name: "transfer_call", arguments: "{}" }] }));
const HANDING = {
  max_silence_duration: 1,
  tools: [{ type: "call_transfer", description: "", phone_number: DIALLED.colleague }],
};

test("[SC78] Asterisk connects a call to the assistant's transfer target, whoever placed the call", LIMITED, async () => {
  handsOn();
  const out = await calling("handing", DIALLED.bridged, HANDING);
  const transferred = (number: number) =>
    asterisk.saw("UserEvent", { UserEvent: "Transferred" }, number);
  assert.match((await transferred(0)).Channel!, /^Local\/person@far-/);
  const first = await world.when(out.callId, "completed");
  assert.equal(first.end_reason, "transferred");

  const trunk = await trunkTo("inward");
  await world.assistant(trunk.id, HANDING);
  const [inbound] = await Promise.all([
    world.nextCall(trunk.number), asterisk.originate("", "person", CALLER, { Channel: "Local/inward@far" }),
  ]);
  assert.match((await transferred(1)).Channel!, /^Local\/inward@far-/);
  const second = await world.when(inbound, "completed");
  assert.deepEqual([second.end_reason, second.client_phone_number], ["transferred", CALLER]);
});

/** The tone is heard by the assistant, its greeting there, in the second call of the line. */
async function dialTone(name: string, t: TestContext): Promise<void> {
  const { callId } = await calling(name, DIALLED.tone, { record: true });
  const call = await world.when(callId, "ended_by_customer");
  assertTone((await recordingOf(call)).customer, t);
  await over(name, 1);
  assertHello(asterisk.recording(`${name}-heard`));
}

test("[SC79] trunks that require A-law only, or session timers, both ways", LIMITED, async (t) => {
  await Promise.all(["alaw", "timed"].map(async (name) => {
    await talk(name, t);
    await dialTone(name, t);
  }));
});
