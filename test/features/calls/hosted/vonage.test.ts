// Calls over an account at Vonage with the real server: REST and signed reports by a double, sound
// by a phone that does what Vonage's documentation says. No live account was tried.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { CUSTOMER, startVonageWorld } from "#support/carriers/server-with-vonage.ts";
import { VonagePhone } from "#support/carriers/vonage-phone.ts";
import { postVonage, type VonageOrder } from "#support/carriers/vonage-server.ts";
import { vonageBearer } from "#support/carriers/vonage-signing.ts";
import { callingOnce, startScriptedModel } from "#support/vendors/scripted-model.ts";

const model = await startScriptedModel();
const world = await startVonageWorld({
  PARLEY_MODEL_URL: model.url, PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8",
});
after(async () => {
  await world.close();
  await model.close();
});
const { vonage } = world;

const ANSWER = ["At ", "nine."];
const BY_KEYS = { tools: [{ type: "collect_keypad" }] };
const doing = (...what: Parameters<typeof callingOnce>): void => model.script(callingOnce(...what));

/** A leg of another call, or another leg of the same. */
const LEG = { uuid: "11111111-2222-4333-8444-555555555555", direction: "outbound" };

/** A call that was answered and has heard the greeting. */
async function talking(
  settings: Record<string, unknown> = {},
  first: (order: VonageOrder) => Promise<void> = () => Promise.resolve(),
) {
  const desk = await world.desk({ ...BY_KEYS, ...settings });
  const placed = await world.dial(desk.id);
  await first(placed.order);
  for (const status of ["ringing", "answered"]) assert.equal(await vonage.report(placed.uuid, status), 204);
  const phone = await VonagePhone.talk(placed.order.ncco);
  await phone.hears("Hi there.");
  // Sent when the greeting is over for the server too.
  await phone.until(() => phone.messages.some(({ action }) => action === "notify"));
  return { ...desk, ...placed, phone };
}

test("[VX20] a call to a telephone is dialled, greeted, answered by words and keys, and hung up by the customer", async () => {
  model.script(() => ({ tokens: ANSWER }));
  const { callId, number, order, phone, uuid } = await talking();
  assert.deepEqual([order.to[0]!.number, order.from.number], [CUSTOMER.slice(1), number.slice(1)]);
  assert.equal(order.advanced_machine_detection, undefined);
  assert.ok(order.event_url[0]!.startsWith(`${world.door.url}/carriers/vonage/status/`));
  phone.press("7#");
  await phone.hears("At nine.", 2);
  phone.hangUp();
  await vonage.report(uuid, "completed", { disconnected_by: "user", sip_code: 200 });
  const call = await world.when(callId, "ended_by_customer");
  assert.deepEqual(world.statuses(callId), ["ringing", "in-progress", "ended", "ended_by_customer"]);
  assert.equal(call.transcript, "AI: Hi there.\nCustomer: [Keypad input: 7]\nAI: At nine.");
  assert.equal(vonage.count(`update ${uuid}`), 0);
});

test("[VX21] the assistant hangs up once its last words were heard", async () => {
  doing("hang_up", {}, ["See ", "you."]);
  const { callId, phone, uuid } = await talking({
    tools: [...BY_KEYS.tools, { type: "end_call", description: "" }],
  });
  phone.press("1#");
  await phone.hears("See you.", 2);
  const { body } = await vonage.received.event<string>(`update ${uuid}`);
  assert.deepEqual(body, { action: "hangup" });
  await phone.closed();
  assert.equal(phone.closedWith?.code, 1000);
  const call = await world.when(callId, "ended_by_assistant");
  assert.equal(call.end_reason, "assistant_ended");
  await vonage.report(uuid, "completed", { disconnected_by: "platform" });
  assert.equal(vonage.count(`update ${uuid}`), 1);
});

test("[VX22] an unanswered call ends as Vonage says, and costs nothing", async () => {
  const { id } = await world.desk();
  for (const [status, more, expected] of [
    ["busy", { sip_code: 486 }, "busy"], ["timeout", {}, "no-answer"],
    ["unanswered", { detail: "unavailable", sip_code: 480 }, "no-answer"],
    ["rejected", { detail: "declined" }, "failed"], ["failed", { detail: "cannot_route", sip_code: 404 }, "failed"],
  ] as const) {
    const { callId, uuid } = await world.dial(id);
    await vonage.report(uuid, "ringing");
    await vonage.report(uuid, status, more);
    assert.equal((await world.when(callId, expected)).total_cost, 0, status);
    assert.equal(vonage.count(`update ${uuid}`), 0);
  }
  vonage.behave(() => ({ status: 401, body: { type: "UNAUTHORIZED" } }));
  const before = vonage.count("dial");
  const refused = await world.when(await world.make(id), "failed");
  vonage.behave(null);
  assert.deepEqual([refused.end_reason, refused.total_cost, vonage.count("dial")], ["carrier_failed", 0, before + 1]);
});

test("[VX23] if the assistant handles voicemail, Vonage detects what answered", async () => {
  const { callId, order, uuid } = await talking({ end_call_on_voicemail: true });
  assert.deepEqual(order.advanced_machine_detection, { behavior: "continue", mode: "default" });
  await vonage.detected(uuid, "machine");
  const call = await world.when(callId, "ended_by_assistant");
  assert.deepEqual([call.answered_by, call.end_reason], ["machine", "voicemail"]);
  assert.deepEqual((await vonage.received.event<string>(`update ${uuid}`)).body, { action: "hangup" });
});

test("[VX24] a call is transferred, and reports about the transfer's target change nothing", async () => {
  doing("transfer_call", {}, ["One ", "moment."]);
  const { callId, number, phone, uuid } = await talking({
    tools: [...BY_KEYS.tools, {
      type: "call_transfer", description: "", phone_number: "+14155550177", custom: false,
    }],
  });
  phone.press("1#");
  await phone.hears("One moment.", 2);
  const { body: { action, destination } } = await vonage.received.event<string>(`update ${uuid}`);
  assert.equal((await world.when(callId, "completed")).end_reason, "transferred");
  const [{ from, endpoint, eventUrl } = assert.fail("no document")] = destination?.ncco ?? [];
  assert.deepEqual([action, from, endpoint], ["transfer", number.slice(1), [{ type: "phone", number: "14155550177" }]]);
  await phone.closed();
  // A server that was started anew knows nothing of it: a call that nobody knows is hung up, but
  // not whoever it was handed on to.
  const taken = { ...LEG, from: number.slice(1), to: "14155550177", status: "answered" };
  const elsewhere = eventUrl[0]!.replace(/[0-9a-f-]{36}/, LEG.uuid);
  assert.equal((await postVonage(elsewhere, taken)).status, 204);
  const stray = { ...taken, uuid: "11111111-2222-4333-8444-666666666666" };
  await postVonage(elsewhere.split("?")[0]!, stray);
  await vonage.received.event<string>(`update ${stray.uuid}`);
  assert.deepEqual([vonage.count(`update ${LEG.uuid}`), vonage.count(`update ${uuid}`)], [0, 1]);
});

test("[VX25] keys are sent by Vonage", async () => {
  doing("send_dtmf", { digits: "5" }, ["Pressed."]);
  const { callId, phone, uuid } = await talking({
    tools: [...BY_KEYS.tools, { type: "dtmf_input", description: "" }],
  });
  phone.press("1#");
  assert.deepEqual((await vonage.received.event<string>(`dtmf ${uuid}`)).body, { digits: "5" });
  await vonage.report(uuid, "completed");
  await world.when(callId, "ended_by_customer");
});

test("[VX26] a call whose order got no response is placed once, and recognised by its own first report", async () => {
  doing("hang_up", {}, ["Bye."]);
  vonage.behave(({ kind }) => (kind === "dial" ? "lose" : "pass"));
  const before = vonage.count("dial");
  const { callId, phone, uuid } = await talking({
    tools: [...BY_KEYS.tools, { type: "end_call", description: "" }],
  }, async ({ event_url: urls, ncco }) => {
    const leg = { ...LEG, from: "14155550300", to: ncco[0]!.endpoint[0]!.uri, status: "answered" };
    for (const url of [...urls, ...ncco[0]!.eventUrl]) await postVonage(url, leg);
  });
  vonage.behave(null);
  phone.press("1#");
  await phone.hears("Bye.", 2);
  assert.deepEqual((await vonage.received.event<string>(`update ${uuid}`)).body, { action: "hangup" });
  await world.when(callId, "ended_by_assistant");
  assert.equal(vonage.count("dial"), before + 1);
});

test("[VX27] a call from a telephone is greeted, understood, and over when the caller hangs up", async () => {
  model.script(() => ({ tokens: ANSWER }));
  const { number } = await world.desk();
  const { ncco, status, uuid } = await world.ring(number);
  assert.equal(status, 200);
  assert.equal(ncco[0]!.endpoint[0]!.headers!.call_uuid, uuid);
  const phone = await VonagePhone.talk(ncco);
  await phone.hears("Hi there.");
  phone.say("when");
  await phone.hears("At nine.", 2);
  phone.hangUp();
  const { id } = await world.newestCall();
  const call = await world.when(id, "ended_by_customer");
  assert.deepEqual([call.type, call.client_phone_number, call.assistant_phone_number], ["inbound", CUSTOMER, number]);
  assert.equal(call.transcript, "AI: Hi there.\nCustomer: when\nAI: At nine.");
  // The telephone's own leg is reported where calls come in, and asks for nothing.
  const own = { uuid, from: CUSTOMER.slice(1), to: number.slice(1), direction: "inbound", status: "completed" };
  assert.deepEqual(await postVonage(world.voiceUrl, own), { status: 204, text: "" });
});

test("[VX28] an incoming call to nobody is refused without a record", async () => {
  const { id } = await world.desk();
  const { callId, uuid } = await world.dial(id);
  await vonage.report(uuid, "busy");
  await world.when(callId, "busy");
  const { ncco, status } = await world.ring("+14155559999");
  assert.deepEqual([status, ncco], [200, []]);
  assert.equal((await world.newestCall()).id, callId);
});

test("[VX29] without Vonage's signature no request has any effect", async () => {
  const { id, number } = await world.desk();
  const { callId, uuid, order } = await world.dial(id);
  const ended = { uuid, status: "busy", direction: "outbound" };
  const offer = { uuid: "u", to: number.slice(1), from: CUSTOMER.slice(1) };
  const wrong = vonageBearer(JSON.stringify(ended), "another secret of 32 characters and more");
  const other = vonageBearer("{}");
  for (const authorization of [null, "Bearer a.b.c", wrong, other]) {
    assert.equal((await postVonage(order.event_url[0]!, ended, authorization)).status, 403);
    assert.equal((await postVonage(world.voiceUrl, offer, authorization)).status, 403);
    assert.equal(await VonagePhone.open({ ncco: order.ncco, authorization }), 403);
  }
  assert.equal((await world.newestCall()).id, callId);
  // Signed, and with another call's id or another token.
  const { ncco } = await world.ring(number);
  const { headers: right } = ncco[0]!.endpoint[0]!;
  for (const headers of [{ token: LEG.uuid }, { ...right, call_uuid: uuid }]) {
    const phone = await VonagePhone.open({ ncco, headers });
    assert.ok(phone instanceof VonagePhone);
    await phone.closed();
    assert.equal(phone.closedWith?.code, 4500);
  }
  const phone = await VonagePhone.talk(order.ncco);
  await phone.hears("Hi there.");
  await vonage.report(uuid, "completed");
  await world.when(callId, "ended_by_customer");
});
