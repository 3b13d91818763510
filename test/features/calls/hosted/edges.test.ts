// What reaches a server from Twilio, or from somebody who says so, apart from a talk that goes
// well: refusals, forgeries, reports in disorder, sockets that end, a process that dies.
import assert from "node:assert/strict";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { after, test } from "node:test";
import twilio from "twilio";
import { ask } from "#support/api.ts";
import {
  CUSTOMER, EMULATED_SID, EMULATED_TOKEN, ENV, newNumber, phoneAt, postSigned, startTwilioWorld,
} from "#support/carriers/server-with-twilio.ts";
import { startTwilioEmulator } from "#support/carriers/twilio-emulator.ts";
import { openPublicDoor, startTwilioFront } from "#support/carriers/twilio-front.ts";
import { readStream, TwilioPhone } from "#support/carriers/twilio-phone.ts";
import { freePorts } from "#support/free-ports.ts";
import { startProcess } from "#support/process.ts";
import { assistantBody, newAssistant, startTestServer, testDataDir } from "#support/server.ts";

const world = await startTwilioWorld();
after(() => world.close());
const { front, server } = world;
const voiceUrl = `${world.door.url}/carriers/twilio/voice`;
const SHOWN = { authToken: EMULATED_TOKEN, accountSid: EMULATED_SID };

const callCount = async (): Promise<number> =>
  (await server.call("GET", "/user/calls?per_page=1")).body.total as number;

async function talking(settings: Record<string, unknown> = {}) {
  const desk = await world.desk(settings);
  const placed = await world.dial(desk.id);
  await world.report(placed.sid, "in-progress");
  const phone = await phoneAt({ document: placed.document, callSid: placed.sid });
  await world.when(placed.callId, "in-progress");
  return { ...desk, ...placed, phone };
}

test("[TW72] an incoming call that cannot be taken is refused with its reason, and without a record", async () => {
  const before = await callCount();
  const offer = { CallSid: "CA1", CallStatus: "ringing", Direction: "inbound", From: CUSTOMER };
  const answerTo = async (To: string) => (await world.post(voiceUrl, { ...offer, To })).text;
  const { id, number } = await world.desk();
  assert.match(await answerTo("+14155550999"), /<Reject reason="rejected"\/>/);
  assert.match(await answerTo(""), /<Reject reason="rejected"\/>/);
  const idle = newNumber();
  await world.buy(idle);
  assert.match(await answerTo(idle), /<Reject reason="rejected"\/>/);
  await server.call("PUT", `/user/assistant/${id}`, { body: { status: "inactive" } });
  assert.match(await answerTo(number), /<Reject reason="rejected"\/>/);
  assert.equal(await callCount(), before);
  // The calls the plan allows at a time are the lines there are.
  const { key, accountId } = await server.newAccount();
  await server.app.features.accounts.credit(accountId, 500_000_000);
  const busy = await world.desk({}, key);
  front.behave(() => ({ status: 502, body: {} }));
  for (let live = 0; live < 10; live += 1) await world.make(busy.id, key);
  front.behave(null);
  assert.match(await answerTo(busy.number), /<Reject reason="busy"\/>/);
});

test("[TW73] without Twilio's signature no request has any effect", async () => {
  const { id, number } = await world.desk();
  const placed = await world.dial(id);
  await world.when(placed.callId, "ringing");
  const before = await callCount();
  const offer = {
    CallSid: "CA2", CallStatus: "ringing", Direction: "inbound", From: CUSTOMER, To: number,
  };
  const over = { CallSid: placed.sid, CallStatus: "completed", Direction: "outbound-api" };
  const elsewhere = twilio.getExpectedTwilioSignature(
    EMULATED_TOKEN, `${server.url}/carriers/twilio/voice`, offer);
  for (const signature of [null, "", "x", elsewhere]) {
    assert.equal((await postSigned(voiceUrl, offer, signature)).status, 403);
    assert.equal((await postSigned(placed.statusUrl, over, signature)).status, 403);
    const refused = await TwilioPhone.open({
      ...SHOWN, document: placed.document, callSid: placed.sid, signature,
    });
    assert.equal(refused, 403);
  }
  const large = { ...offer, Filler: "x".repeat(70_000) };
  assert.equal((await postSigned(voiceUrl, large)).status, 413);
  assert.equal(await callCount(), before);
  assert.deepEqual(world.statuses(placed.callId), ["ringing"]);
  const phone = await phoneAt({ document: placed.document, callSid: placed.sid });
  await world.when(placed.callId, "in-progress");
  phone.hangUp();
  await world.when(placed.callId, "ended_by_customer");
});

test("[TW74] a repeated webhook of an incoming call gets the same answer and the same record", async () => {
  const { number } = await world.desk();
  const before = await callCount();
  const form = { CallSid: "CA3", CallStatus: "ringing", Direction: "inbound", From: "+266696687", To: number };
  const answers = await Promise.all([world.post(voiceUrl, form), world.post(voiceUrl, form)]);
  answers.push(await world.post(voiceUrl, form));
  assert.equal(new Set(answers.map(({ text }) => text)).size, 1);
  assert.equal(await callCount(), before + 1);
  const { id, client_phone_number: from } = await world.newestCall();
  // ANONYMOUS, spelt on the keypad.
  assert.equal(from, null);
  const phone = await phoneAt({ document: answers[0]!.text, callSid: "CA3" });
  await phone.hears("Hi there.");
  phone.hangUp();
  await world.when(id, "ended_by_customer");
  // Nothing else is a call that comes in.
  for (const other of [{ ...form, Direction: "outbound-api" }, { ...form, CallStatus: "completed" }, { a: "b" }]) {
    assert.equal((await world.post(voiceUrl, other)).status, 204);
  }
  assert.equal(await callCount(), before + 1);
});

test("[TW75] a stream opens one call, once, and only its own", async () => {
  const { callId, document, phone, sid } = await talking();
  const again = await phoneAt({ document, callSid: sid });
  await again.closed();
  assert.equal(again.closedWith?.code, 4500);
  const { id } = await world.desk();
  const other = await world.dial(id);
  for (const parameters of [{}, { token: "x" }, readStream(document).parameters]) {
    const stranger = await phoneAt({ document, callSid: sid, parameters });
    await stranger.closed();
    assert.equal(stranger.closedWith?.code, 4500);
  }
  // The right token with another call's id.
  const mixed = await phoneAt({ document: other.document, callSid: sid });
  await mixed.closed();
  assert.equal(mixed.closedWith?.code, 4500);
  await world.when(other.callId, "ringing");
  assert.deepEqual([phone.closedWith, world.statuses(other.callId)], [null, ["ringing"]]);
  phone.hangUp();
  await world.when(callId, "ended_by_customer");
});

test("[TW76] unexpected audio, malformed messages and floods do no harm", async () => {
  const { id } = await world.desk();
  const placed = await world.dial(id);
  const linear = { encoding: "audio/l16", sampleRate: 16_000, channels: 1 };
  const wrong = await phoneAt({
    document: placed.document, callSid: placed.sid, mediaFormat: linear,
  });
  await wrong.closed();
  assert.equal(wrong.closedWith?.code, 4500);
  const { callId, phone, sid } = await talking();
  for (const rubbish of ["", "[]", "{", "null", '{"event":"media"}', '{"event":"media","media":{"payload":7}}',
    '{"event":"dtmf","dtmf":{"digit":"99"}}', '{"event":"mark"}', '{"event":"start"}']) phone.send(rubbish);
  await phone.hears("Hi there.");
  // A frame beyond every bound ends the socket, and with it the call.
  phone.send("x".repeat(70_000));
  await phone.closed();
  await world.when(callId, "ended_by_customer");
  assert.equal((await front.update(sid)).get("Status"), "completed");
});

test("[TW77] a socket that closes without a stop ends the call, with the reported reason if there is one", async () => {
  const silent = await talking();
  silent.phone.cut();
  assert.equal((await world.when(silent.callId, "ended_by_customer")).end_reason, "customer_hung_up");
  assert.equal((await front.update(silent.sid)).get("Status"), "completed");
  const told = await talking();
  told.phone.cut();
  await world.report(told.sid, "failed");
  assert.equal((await world.when(told.callId, "failed")).end_reason, "carrier_failed");
  assert.equal(front.count("update", told.sid), 0);
});

test("[TW78] duplicate, late, reordered and foreign reports change nothing", async () => {
  const { callId, phone, sid, statusUrl } = await talking();
  const report = (CallStatus: string, CallSid = sid) =>
    world.post(statusUrl, { CallSid, CallStatus, Direction: "outbound-api" });
  for (const status of ["in-progress", "ringing", "initiated", "queued", "ringing", "nonsense"]) await report(status);
  await report("completed", "CA9");
  await world.post(statusUrl, { a: "b" });
  await phone.hears("Hi there.");
  await report("completed");
  await world.when(callId, "ended_by_customer");
  for (const status of ["completed", "busy", "in-progress", "ringing"]) await report(status);
  assert.deepEqual(world.statuses(callId), ["ringing", "in-progress", "ended", "ended_by_customer"]);
  assert.equal(front.count("update", sid), 0);
  // A call nobody here knows, of which nothing says that it goes on.
  const unknown = `${world.door.url}/carriers/twilio/status/${"0".repeat(8)}-0000-4000-8000-${"0".repeat(12)}`;
  const before = front.count("update");
  await world.post(unknown, { CallSid: sid, CallStatus: "completed", Direction: "outbound-api" });
  await world.post(unknown, { CallSid: sid, AnsweredBy: "human" });
  await world.post(`${unknown}x`, { CallSid: sid, CallStatus: "ringing", Direction: "outbound-api" });
  assert.equal(front.count("update"), before);
});

async function inAProcess() {
  const door = await openPublicDoor();
  const emulator = await startTwilioEmulator(`${door.url}/unused`);
  const rest = await startTwilioFront(emulator.url);
  const dataDir = testDataDir();
  // The process names the public address when it listens, so its port is chosen here.
  const port = await freePorts();
  door.lead(port);
  const env = {
    ...ENV, PARLEY_PUBLIC_URL: door.url, PARLEY_TWILIO_URL: rest.url, PARLEY_PORT: String(port),
  };
  let running = await startProcess(dataDir, env);
  const { key } = running;
  const call = (path: string, body?: object) =>
    ask({ url: `http://127.0.0.1:${port}`, key }, path, body);
  const end = async (signal: "SIGKILL" | "SIGTERM"): Promise<void> => {
    const gone = once(running.process, "exit");
    running.process.kill(signal);
    await gone;
  };
  return {
    rest, call, emulator,
    /** The carrier asks what to do with a call. */
    bring: async (CallSid: string, To: string): Promise<string> => {
      const form = { CallSid, CallStatus: "ringing", Direction: "inbound", From: CUSTOMER, To };
      return (await postSigned(`${door.url}/carriers/twilio/voice`, form)).text;
    },
    kill: async () => {
      await end("SIGKILL");
      running = await startProcess(dataDir, env);
    },
    close: async () => {
      await end("SIGTERM");
      await Promise.all([door.close(), emulator.close(), rest.close()]);
      rmSync(dataDir, { recursive: true });
    },
  };
}

test("[TW79][ND72] a crash leaves failed calls, charged correctly; what still rings is hung up", async (context) => {
  const { rest, call, emulator, bring, kill, close } = await inAProcess();
  context.after(close);
  const number = newNumber();
  rest.numbers.push(number);
  const bought = await call("/user/phone-numbers/purchase", { phone_number: number }) as { data: { id: number } };
  const made = await call("/user/assistant", assistantBody({
    status: "active", phone_number_id: bought.data.id, post_call_evaluation: false, initial_message: "Hi there.",
    max_duration: 60,
  })) as { data: { id: number } };
  const dial = async (index: number) => {
    const answer = await call("/user/make_call", { assistant_id: made.data.id, phone_number: CUSTOMER });
    const id = answer.call_id;
    assert.ok(id, JSON.stringify(answer));
    const { form, sid } = await rest.received.event<string>("dialled", index);
    return { id: id as number, sid, document: form.get("Twiml")!, statusUrl: form.get("StatusCallback")! };
  };
  const talked = await dial(0);
  const ringing = await dial(1);
  const phone = await phoneAt({ document: talked.document, callSid: talked.sid });
  await phone.hears("Hi there.");
  const lost = await bring("CA7", number);
  await kill();
  await phone.closed();
  const recordOf = async ({ id }: { id: number }) => call(`/user/calls/${id}`);
  const [cut, never] = [await recordOf(talked), await recordOf(ringing)];
  assert.deepEqual([cut.status, cut.end_reason], ["failed", "server_restarted"]);
  // What the server itself ended costs what it lasted at most, at ten cents a minute.
  const [cost, seconds] = [Number(cut.total_cost), Number(cut.duration)];
  assert.ok(cost <= seconds * 0.1 / 60, `${cost} for ${seconds} s`);
  assert.deepEqual([never.status, never.total_cost], ["failed", 0]);
  // The next report of what still rings; its stream would not be taken either.
  await emulator.simulate("call-status", { CallSid: ringing.sid, Status: "in-progress" });
  assert.equal((await rest.update(ringing.sid)).get("Status"), "completed");
  const late = await phoneAt({ document: ringing.document, callSid: ringing.sid });
  await late.closed();
  assert.equal(late.closedWith?.code, 4500);
  assert.equal((await recordOf(ringing)).status, "failed");
  const again = await bring("CA7", number);
  assert.notEqual(again, lost);
  const caller = await phoneAt({ document: again, callSid: "CA7" });
  await caller.hears("Hi there.");
  caller.hangUp();
  const { data } = await call("/user/calls?type=inbound") as { data: { status: string }[] };
  assert.equal(data.length, 2);
  assert.equal(data[1]?.status, "failed");
});

test("[TW80] a server that stops hangs up its calls", async () => {
  const other = await startTwilioWorld();
  const { id, number } = await other.desk();
  const placed = await other.dial(id);
  const phone = await phoneAt({ document: placed.document, callSid: placed.sid });
  await phone.hears("Hi there.");
  const coming = await other.dial(id);
  await other.server.close();
  for (const { sid } of [placed, coming]) {
    assert.equal((await other.front.update(sid)).get("Status"), "completed");
  }
  assert.equal(phone.closedWith !== null, true);
  await Promise.all([other.front.close(), other.emulator.close(), other.door.close()]);
  assert.ok(number);
});

test("[TW81] without a public address numbers can be bought, but calls over them are refused", async () => {
  const emulator = await startTwilioEmulator("http://127.0.0.1:9/unused");
  const rest = await startTwilioFront(emulator.url);
  const alone = await startTestServer({ env: { ...ENV, PARLEY_TWILIO_URL: rest.url } });
  const number = newNumber();
  rest.numbers.push(number);
  const { body: bought } = await alone.call("POST", "/user/phone-numbers/purchase", { body: { phone_number: number } });
  const sold = rest.received.events.find(({ form }) => form.get("PhoneNumber") === number);
  assert.equal(sold?.form.get("VoiceUrl"), null);
  const { id } = await newAssistant(alone, { status: "active", phone_number_id: bought.data.id });
  const placed = { assistant_id: id, phone_number: CUSTOMER };
  const { status, body } = await alone.call("POST", "/user/make_call", { body: placed });
  assert.deepEqual([status, /need .*PARLEY_PUBLIC_URL/.test(body.message as string)], [422, true]);
  assert.equal((await alone.call("GET", "/user/calls")).body.total, 0);
  assert.equal((await alone.call("POST", "/user/try_call", { body: placed })).status, 200);
  assert.equal((await fetch(`${alone.url}/carriers/twilio/voice`, { method: "POST" })).status, 404);
  assert.equal(rest.count("dial"), 0);
  await alone.close();
  await Promise.all([rest.close(), emulator.close()]);
});

test("[TW82] SignalWire has its own address, signing key and header, and does not sign sockets", async () => {
  const PREFIX = "/api/laml";
  const door = await openPublicDoor();
  const emulator = await startTwilioEmulator(`${door.url}/unused`);
  const rest = await startTwilioFront(emulator.url, PREFIX);
  const env = {
    ...ENV, PARLEY_TWILIO_URL: rest.url, PARLEY_PUBLIC_URL: door.url, PARLEY_TWILIO_SIGNING_KEY: "PSK_1",
  };
  const wired = await startTestServer({ env });
  door.lead(wired.port);
  const number = newNumber();
  rest.numbers.push(number);
  const { body: bought } = await wired.call("POST", "/user/phone-numbers/purchase", { body: { phone_number: number } });
  await newAssistant(wired, { status: "active", phone_number_id: bought.data.id, initial_message: "Hi there." });
  const url = `${door.url}/carriers/twilio/voice`;
  const form = { CallSid: "c-1", CallStatus: "ringing", Direction: "inbound", From: CUSTOMER, To: number };
  const offer = (key: string, header: string) => fetch(url, {
    method: "POST", body: new URLSearchParams(form),
    headers: { [header]: twilio.getExpectedTwilioSignature(key, url, form) },
  });
  assert.equal((await offer("PSK_1", "X-Twilio-Signature")).status, 403);
  assert.equal((await offer(EMULATED_TOKEN, "X-SignalWire-Signature")).status, 403);
  const document = await (await offer("PSK_1", "X-SignalWire-Signature")).text();
  const phone = await phoneAt({ document, callSid: "c-1", signature: null });
  await phone.hears("Hi there.");
  phone.hangUp();
  await phone.closed();
  await wired.close();
  await Promise.all([rest.close(), emulator.close(), door.close()]);
});

test("[TW98] with PARLEY_NODE_URL a call's reports and audio come to its node, offers to any; each needs its own signature", async (context) => {
  const node = await openPublicDoor();
  const own = await startTwilioWorld({ PARLEY_NODE_URL: node.url });
  context.after(() => Promise.all([own.close(), node.close()]));
  node.lead(own.server.port);
  const desk = await own.desk();
  const placed = await own.dial(desk.id);
  assert.ok(placed.statusUrl.startsWith(`${node.url}/carriers/twilio/status/`), placed.statusUrl);
  assert.ok(placed.document.includes(`${node.url.replace("http", "ws")}/carriers/twilio/media`), placed.document);
  await own.report(placed.sid, "in-progress");
  const phone = await phoneAt({ document: placed.document, callSid: placed.sid });
  await own.when(placed.callId, "in-progress");
  phone.hangUp();
  await own.report(placed.sid, "completed");
  await own.when(placed.callId, "ended_by_customer");
  // An offer may come by the address of all nodes or of this one; not by a third.
  const offer = { CallSid: "CA9", CallStatus: "ringing", Direction: "inbound", From: CUSTOMER, To: "" };
  for (const address of [own.door.url, node.url]) {
    const { status, text } = await own.post(`${address}/carriers/twilio/voice`, offer);
    assert.deepEqual([status, /<Reject/.test(text)], [200, true]);
  }
  const third = `http://127.0.0.1:${own.server.port}/carriers/twilio/voice`;
  assert.equal((await own.post(third, offer)).status, 403);
});
