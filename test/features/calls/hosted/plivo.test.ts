// Calls over an account at Plivo with the real server: REST requests, signed reports and questions
// by a double, sound by a phone that does what Plivo's documentation says. No live account was
// tried.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { PlivoPhone, type PlivoPhoneOptions } from "#support/carriers/plivo-phone.ts";
import { postAsPlivo } from "#support/carriers/plivo-server.ts";
import { CUSTOMER, startPlivoWorld } from "#support/carriers/server-with-plivo.ts";
import { callingOnce, startScriptedModel } from "#support/vendors/scripted-model.ts";

const model = await startScriptedModel();
const world = await startPlivoWorld({
  PARLEY_MODEL_URL: model.url, PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8",
});
after(async () => {
  await world.close();
  await model.close();
});
const { plivo, server, voiceUrl } = world;

const BY_KEYS = { tools: [{ type: "collect_keypad" }] };
const doing = (...what: Parameters<typeof callingOnce>): void => model.script(callingOnce(...what));

/** A call that was answered and has heard the greeting. */
async function talking(
  settings: Record<string, unknown> = {}, signedAs?: PlivoPhoneOptions["signedAs"],
) {
  const desk = await world.desk({ ...BY_KEYS, ...settings });
  const dialled = await world.dial(desk.id);
  await plivo.ring(dialled.plivoId);
  await world.when(dialled.callId, "ringing");
  const { text: document } = await plivo.pickUp(dialled.plivoId);
  const phone = await PlivoPhone.talk({
    document, callId: dialled.plivoId, ...(signedAs === undefined ? {} : { signedAs }),
  });
  await phone.hears("Hi there.");
  // Sent when the greeting is over for the server too.
  await phone.gets("checkpoint");
  return { ...desk, ...dialled, phone };
}

const requests = (plivoId: string): string[] => plivo.received.events
  .filter(({ kind, callId }) => callId === plivoId && !kind.includes(" ")).map(({ kind }) => kind);

test("[PX20] a call to a telephone is dialled, greeted, answered, and hung up by the assistant", async () => {
  doing("hang_up", {}, ["See ", "you."]);
  const { callId, call, number, phone, plivoId } = await talking({
    tools: [...BY_KEYS.tools, { type: "end_call", description: "" }],
  });
  const { from, to, ring_timeout, machine_detection, hangup_url } = call.order;
  assert.deepEqual([from, to, ring_timeout, machine_detection],
    [number.slice(1), CUSTOMER.slice(1), 30, undefined]);
  assert.match(String(hangup_url), /\/carriers\/plivo\/status\/[0-9a-f-]{36}$/);
  phone.press("7#");
  await phone.hears("See you.", 2);
  await plivo.received.event<string>(`hangup ${plivoId}`);
  await phone.closed();
  const ended = await world.when(callId, "ended_by_assistant");
  assert.equal(ended.end_reason, "assistant_ended");
  assert.equal(ended.transcript, "AI: Hi there.\nCustomer: [Keypad input: 7]\nAI: See you.");
  assert.deepEqual([ended.type, ended.client_phone_number, ended.assistant_phone_number],
    ["outbound", CUSTOMER, number]);
  assert.deepEqual(world.statuses(callId).slice(0, 2), ["ringing", "in-progress"]);
  assert.deepEqual(requests(plivoId), ["dial", "hangup"]);
});

test("[PX21] an unanswered call ends as Plivo says, and costs nothing", async () => {
  const { id } = await world.desk();
  const endings = [
    [{ CallStatus: "busy", HangupCauseCode: "3010" }, "busy", "busy"],
    [{ CallStatus: "no-answer", HangupCauseCode: "6010" }, "no-answer", "no_answer"],
    [{ CallStatus: "failed", HangupCauseCode: "2000" }, "failed", "carrier_failed"],
    [{ CallStatus: "busy", HangupCauseCode: "3020" }, "failed", "rejected"],
  ] as const;
  for (const [fields, status, reason] of endings) {
    const { callId, plivoId } = await world.dial(id);
    await plivo.ring(plivoId);
    await plivo.end(plivoId, fields);
    const call = await world.when(callId, status);
    assert.deepEqual([call.end_reason, call.total_cost], [reason, 0]);
    assert.deepEqual(requests(plivoId), ["dial"]);
  }
  // Picked up, and its sound never came.
  const mute = await world.dial(id);
  await plivo.pickUp(mute.plivoId);
  await plivo.end(mute.plivoId);
  assert.equal((await world.when(mute.callId, "failed")).total_cost, 0);
});

test("[PX22] a call from a telephone is greeted, and over when the caller closes the stream", async () => {
  model.script(() => ({ tokens: ["We ", "open ", "at ", "nine."] }));
  const { number } = await world.desk(BY_KEYS);
  const { id: plivoId, status, contentType, text } = await plivo.arrive(voiceUrl,
    { from: CUSTOMER.slice(1), to: number.slice(1) });
  assert.deepEqual([status, contentType], [200, "text/xml; charset=utf-8"]);
  const phone = await PlivoPhone.talk({ document: text, callId: plivoId });
  await phone.hears("Hi there.");
  phone.press("1#");
  await phone.hears("We open at nine.", 2);
  await plivo.end(plivoId);
  phone.hangUp();
  const { id } = await world.newestCall();
  const call = await world.when(id, "ended_by_customer");
  assert.deepEqual([call.type, call.assistant_phone_number, call.client_phone_number],
    ["inbound", number, CUSTOMER]);
  // Nobody said that it is over there too: it is asked for, and found to be.
  await plivo.received.event<string>(`cancel ${plivoId}`);
  assert.deepEqual(requests(plivoId), ["hangup", "cancel"]);
});

test("[PX23] a call to nobody is refused, and later reports of it have no effect", async () => {
  const { text, id } = await plivo.arrive(voiceUrl, { from: CUSTOMER.slice(1), to: "14155559999" });
  assert.equal(text,
    '<?xml version="1.0" encoding="UTF-8"?><Response><Hangup reason="rejected"/></Response>');
  const over = { CallUUID: id, Direction: "inbound", Event: "Hangup", CallStatus: "completed" };
  const { status, text: said } = await postAsPlivo(voiceUrl, over);
  assert.deepEqual([status, said], [204, ""]);
});

test("[PX24] a call is transferred by the document Plivo fetches, and then no longer hung up by the server", async () => {
  doing("transfer_call", {}, ["One ", "moment."]);
  const { callId, number, phone, plivoId } = await talking({
    tools: [...BY_KEYS.tools, {
      type: "call_transfer", description: "", phone_number: "+14155550177", custom: false,
    }],
  });
  phone.press("1#");
  await phone.hears("One moment.", 2);
  await plivo.received.event<string>(`transfer ${plivoId}`);
  assert.equal((await world.when(callId, "completed")).end_reason, "transferred");
  // Plivo asks when the stream is over.
  await phone.closed();
  const { status, text } = await plivo.follow(plivoId);
  assert.equal(status, 200);
  assert.ok(text.includes(`<Response><Dial callerId="${number.slice(1)}" timeout="60"><Number>14155550177</Number></Dial></Response>`), text);
  await plivo.end(plivoId);
  assert.deepEqual(requests(plivoId), ["dial", "transfer"]);
});

test("[PX25] keys are sent over the stream", async () => {
  doing("send_dtmf", { digits: "5#" }, ["Pressed."]);
  const { callId, phone, plivoId } = await talking({
    tools: [...BY_KEYS.tools, { type: "dtmf_input", description: "" }],
  }, "http");
  phone.press("1#");
  const { dtmf } = await phone.gets("sendDTMF");
  assert.equal(dtmf, "5#");
  await plivo.end(plivoId);
  phone.hangUp();
  await world.when(callId, "ended_by_customer");
  assert.deepEqual(requests(plivoId), ["dial"]);
});

test("[PX26] requests not signed by Plivo are refused and have no effect", async () => {
  const { id, number } = await world.desk();
  const { callId, call, plivoId } = await world.dial(id);
  const { answer_url: answerUrl, hangup_url: statusUrl } = call.order as Record<string, string>;
  const fields = { CallUUID: plivoId, Direction: "outbound", CallStatus: "busy", Event: "Hangup" };
  for (const signature of [null, "AAAA"]) {
    assert.equal((await postAsPlivo(statusUrl!, fields, signature)).status, 403);
    const inbound = { ...fields, Direction: "inbound", CallStatus: "ringing", To: number.slice(1) };
    assert.equal((await postAsPlivo(voiceUrl, inbound, signature)).status, 403);
    assert.equal((await postAsPlivo(answerUrl!, fields, signature)).status, 403);
  }
  const { text: document } = await plivo.pickUp(plivoId);
  assert.equal(await PlivoPhone.open({ document, callId: plivoId, signedAs: null }), 403);
  assert.deepEqual(world.statuses(callId), []);
  // The token is still good: nobody has shown it.
  const phone = await PlivoPhone.talk({ document, callId: plivoId });
  await phone.hears("Hi there.");
  const again = await PlivoPhone.talk({ document, callId: plivoId });
  await again.closed();
  assert.equal(again.closedWith, 4500);
  await plivo.end(plivoId);
  phone.hangUp();
  await world.when(callId, "ended_by_customer");
});

test("[PX27] if the assistant handles voicemail, Plivo detects answering machines", async () => {
  const { call, callId, plivoId } = await talking({ end_call_on_voicemail: true });
  assert.equal(call.order.machine_detection, "true");
  assert.equal((await plivo.detect(plivoId, true)).status, 204);
  const ended = await world.when(callId, "ended_by_assistant");
  assert.deepEqual([ended.answered_by, ended.end_reason], ["machine", "voicemail"]);
  await plivo.received.event<string>(`hangup ${plivoId}`);
});

test("[PX28] a call ended while its order is queued is cancelled; one with a lost response is recognised by its report", async () => {
  const { id } = await world.desk();
  const waiting = await world.dial(id);
  assert.equal((await server.call("POST", `/user/calls/${waiting.callId}/end`)).status, 200);
  await plivo.received.event<string>(`cancel ${waiting.plivoId}`);
  assert.equal(plivo.call(waiting.plivoId).state, "over");
  plivo.behave(({ kind }) => (kind === "dial" ? "lose" : "pass"));
  const lost = await world.dial(id);
  plivo.behave(null);
  await plivo.ring(lost.plivoId);
  await world.when(lost.callId, "ringing");
  assert.equal((await server.call("POST", `/user/calls/${lost.callId}/end`)).status, 200);
  await plivo.received.event<string>(`hangup ${lost.plivoId}`);
  assert.deepEqual(requests(lost.plivoId), ["dial", "hangup"]);
});
