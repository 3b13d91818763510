// Calls over an account at Telnyx with the real server: commands and signed reports by a double
// that does what Telnyx' documentation says, and so does the phone that has the sound. No live
// account was tried.
import assert from "node:assert/strict";
import { generateKeyPairSync, randomUUID } from "node:crypto";
import { after, test } from "node:test";
import { decodeClientState, encodeClientState } from "#providers/carriers/hosted/dialect-table.ts";
import { CUSTOMER, startTelnyxWorld } from "#support/carriers/server-with-telnyx.ts";
import { TelnyxPhone } from "#support/carriers/telnyx-phone.ts";
import { postSigned, TELNYX_CONNECTION, webhookOf, type TelnyxCall } from "#support/carriers/telnyx-server.ts";
import { callingOnce, startScriptedModel } from "#support/vendors/scripted-model.ts";

const model = await startScriptedModel();
const world = await startTelnyxWorld({
  PARLEY_MODEL_URL: model.url, PARLEY_ALLOW_PRIVATE_NETWORKS: "127.0.0.0/8",
});
after(async () => {
  await world.close();
  await model.close();
});
const { server, telnyx } = world;

const BY_KEYS = [{ type: "collect_keypad" }];
const doing = (...what: Parameters<typeof callingOnce>): void => model.script(callingOnce(...what));

/** A call that was picked up and has heard the greeting. */
async function talking(settings: Record<string, unknown> = {}) {
  const desk = await world.desk({ tools: BY_KEYS, ...settings });
  const placed = await world.dial(desk.id);
  const phone = await pickedUp(placed.call);
  return { ...desk, ...placed, phone };
}

async function pickedUp(call: TelnyxCall): Promise<TelnyxPhone> {
  call.isAnswered = true;
  await telnyx.report(call, "call.answered", { state: "answered" });
  return greeted(call);
}

async function greeted(call: TelnyxCall): Promise<TelnyxPhone> {
  const phone = await TelnyxPhone.talk(call);
  await phone.far.hears("Hi there.");
  // Sent when the greeting is over for the server too.
  await phone.far.until(() => phone.messages.some(({ event }) => event === "mark"));
  return phone;
}

/** The telephone is put down: what Telnyx says of it over the stream, and then by webhook. */
async function putDown(call: TelnyxCall, phone: TelnyxPhone): Promise<void> {
  phone.hangUp();
  const hangup_source = call.direction === "incoming" ? "caller" : "callee";
  await telnyx.end(call, { hangup_cause: "normal_clearing", hangup_source, sip_hangup_cause: "200" });
}

test("[TX11] a call to a telephone is dialled, heard, answered, and hung up by the called party", async () => {
  model.script(() => ({ tokens: ["At ", "nine."] }));
  const { callId, call, number, phone } = await talking();
  const { stream } = call;
  assert.deepEqual(
    [stream.connection_id, call.to, call.from, stream.timeout_secs, "answering_machine_detection" in stream],
    [TELNYX_CONNECTION, CUSTOMER, number, 30, false]);
  assert.match(call.webhookUrl, /\/carriers\/telnyx\/status\/[0-9a-f-]{36}\?direction=outbound$/);
  assert.equal(stream.stream_url, `${world.door.url.replace("http", "ws")}/carriers/telnyx/media`);
  phone.press("7#");
  await phone.far.hears("At nine.", 2);
  await putDown(call, phone);
  const shown = await world.when(callId, "ended_by_customer");
  assert.deepEqual(world.statuses(callId), ["ringing", "in-progress", "ended", "ended_by_customer"]);
  assert.equal(shown.transcript, "AI: Hi there.\nCustomer: [Keypad input: 7]\nAI: At nine.");
  assert.deepEqual([shown.type, shown.total_cost > 0], ["outbound", true]);
  assert.equal(telnyx.count("dial"), 1);
});

test("[TX12] the assistant hangs up once its last words were heard", async () => {
  doing("hang_up", {}, ["See ", "you."]);
  const { callId, call, phone } = await talking({
    tools: [...BY_KEYS, { type: "end_call", description: "" }],
  });
  phone.press("1#");
  await phone.far.hears("See you.", 2);
  await telnyx.command("hangup", call.id);
  await phone.closed();
  assert.equal(phone.far.closedWith?.code, 1000);
  const shown = await world.when(callId, "ended_by_assistant");
  assert.equal(shown.end_reason, "assistant_ended");
  assert.equal(telnyx.count("hangup", call.id), 1);
});

test("[TX13] an unanswered call ends as Telnyx says, and costs nothing", async () => {
  const { id } = await world.desk();
  const endings = [
    [{ hangup_cause: "timeout" }, "no-answer", "no_answer"],
    [{ hangup_cause: "user_busy", sip_hangup_cause: "486" }, "busy", "busy"],
    [{ hangup_cause: "call_rejected", sip_hangup_cause: "603" }, "failed", "rejected"],
    [{ hangup_cause: "not_found", sip_hangup_cause: "404" }, "failed", "carrier_failed"],
  ] as const;
  for (const [hangup, status, reason] of endings) {
    const { callId, call } = await world.dial(id);
    await world.when(callId, "ringing");
    await telnyx.end(call, hangup);
    const shown = await world.when(callId, status);
    assert.deepEqual([shown.end_reason, shown.total_cost], [reason, 0]);
    assert.equal(telnyx.count("hangup", call.id), 0);
  }
});

test("[TX14] reordered reports change nothing: the call is answered when its audio starts", async () => {
  const { id } = await world.desk();
  const { callId, call } = await world.dial(id);
  await world.when(callId, "ringing");
  await telnyx.report(call, "call.answered");
  await telnyx.report(call, "streaming.started");
  assert.deepEqual(world.statuses(callId), ["ringing"]);
  const phone = await greeted(call);
  await telnyx.report(call, "call.initiated", { direction: "outgoing", state: "bridging" });
  await putDown(call, phone);
  await telnyx.report(call, "call.answered");
  await world.when(callId, "ended_by_customer");
  assert.deepEqual(world.statuses(callId), ["ringing", "in-progress", "ended", "ended_by_customer"]);
});

test("[TX15] if the assistant handles voicemail, Telnyx detects what answered", async () => {
  const { callId, call } = await talking({ end_call_on_voicemail: true });
  assert.equal(call.stream.answering_machine_detection, "detect");
  await telnyx.report(call, "call.machine.detection.ended", { result: "machine" });
  const shown = await world.when(callId, "ended_by_assistant");
  assert.deepEqual([shown.answered_by, shown.end_reason], ["machine", "voicemail"]);
  await telnyx.command("hangup", call.id);
});

test("[TX16] a call from a telephone is answered once, greeted, and hung up by the caller", async () => {
  model.script(() => ({ tokens: ["At ", "nine."] }));
  const { number } = await world.desk({ tools: BY_KEYS });
  const call = await world.ring(number);
  assert.equal(telnyx.count("answer", call.id), 1);
  assert.match(call.webhookUrl, /\/carriers\/telnyx\/status\/[0-9a-f-]{36}\?direction=inbound$/);
  const phone = await greeted(call);
  phone.press("1#");
  await phone.far.hears("At nine.", 2);
  await putDown(call, phone);
  const { id } = await world.newestCall();
  const shown = await world.when(id, "ended_by_customer");
  assert.deepEqual([shown.type, shown.client_phone_number, shown.assistant_phone_number], ["inbound", CUSTOMER, number]);
  assert.deepEqual(world.statuses(id), ["in-progress", "ended", "ended_by_customer"]);
});

test("[TX17] a call to a number without an assistant is refused, and a caller who gives up is no error", async () => {
  const total = async () => (await server.call("GET", "/user/calls?per_page=1")).body.total as number;
  const before = await total();
  const refused = await telnyx.ring(world.voiceUrl, "+14155550999", CUSTOMER);
  assert.deepEqual([refused.status, refused.text], [200, ""]);
  assert.deepEqual(await telnyx.command("reject", refused.call.id), { cause: "CALL_REJECTED" });
  assert.equal(await total(), before);
  // Over before the answer comes to Telnyx.
  const { number } = await world.desk();
  telnyx.behave(({ kind }) => kind === "answer"
    ? { status: 422, body: { errors: [{ code: "90018", title: "Call has already ended" }] } }
    : "pass");
  const { status } = await telnyx.ring(world.voiceUrl, number, CUSTOMER);
  telnyx.behave(null);
  assert.ok(status < 300, String(status));
  const { id } = await world.newestCall();
  assert.equal((await world.when(id, "failed")).total_cost, 0);
});

test("[TX18] [CR347] a call is transferred with our number; the server hangs it up again only if nobody takes it", async () => {
  doing("transfer_call", {}, ["One ", "moment."]);
  const { callId, call, number, phone } = await talking({
    tools: [...BY_KEYS, {
      type: "call_transfer", description: "", phone_number: "+14155550177", custom: false,
    }],
  });
  phone.press("1#");
  await phone.far.hears("One moment.", 2);
  const asked = await telnyx.command("transfer", call.id);
  assert.deepEqual([asked.to, asked.from, asked.timeout_secs], ["+14155550177", number, 60]);
  assert.equal(new URL(String(asked.webhook_url)).searchParams.get("handed_on"), call.id);
  const shown = await world.when(callId, "completed");
  const outcome = ({ transfers }: typeof shown): unknown[] =>
    (transfers as { status: string; failure_reason: string | null }[])
      .map(({ status, failure_reason: why }) => [status, why]);
  assert.deepEqual([shown.end_reason, outcome(shown)], ["transferred", [["completed", null]]]);
  await phone.closed();
  const other = [...telnyx.calls.values()].at(-1)!;
  await telnyx.report(other, "call.answered");
  await telnyx.report(call, "call.bridged");
  await telnyx.report(call, "streaming.stopped");
  assert.deepEqual([telnyx.count("hangup", call.id), telnyx.count("hangup", other.id)], [0, 0]);
  // Nobody takes it after all: the caller is not left with nobody there.
  await telnyx.report(other, "call.hangup", { hangup_cause: "timeout" });
  await telnyx.command("hangup", call.id);
  // Asked for after the outcome was to be kept, this write is committed after it.
  const { accountId } = world.server;
  await world.server.app.features.calls.setVariables({ id: callId, accountId }, {});
  assert.deepEqual(
    outcome((await world.server.call("GET", `/user/calls/${callId}`)).body),
    [["failed", "Nobody took the call."]]);
});

test("[TX19] keys are sent by Telnyx", async () => {
  doing("send_dtmf", { digits: "5#" }, ["Pressed."]);
  const { callId, call, phone } = await talking({
    tools: [...BY_KEYS, { type: "dtmf_input", description: "" }],
  });
  phone.press("1#");
  assert.deepEqual(await telnyx.command("send_dtmf", call.id), { digits: "5#" });
  await putDown(call, phone);
  await world.when(callId, "ended_by_customer");
});

test("[TX20] a request without Telnyx' signature, or with an old one, has no effect", async () => {
  const { id, number } = await world.desk();
  const { callId, call } = await world.dial(id);
  await world.when(callId, "ringing");
  const hangup = webhookOf(call, "call.hangup", { hangup_cause: "user_busy" });
  const offer = webhookOf({ ...call, id: "v3:forged", to: number }, "call.initiated", { direction: "incoming" });
  const forgeries = [
    { key: generateKeyPairSync("ed25519").privateKey }, { nowMs: Date.now() - 6 * 60_000 },
    { nowMs: Date.now() + 6 * 60_000 },
  ];
  for (const forgery of forgeries) {
    for (const [url, body] of [[call.webhookUrl, hangup], [world.voiceUrl, offer]] as const) {
      assert.equal((await postSigned(url, body, forgery)).status, 403);
    }
  }
  const unsigned = await fetch(call.webhookUrl, { method: "POST", body: hangup });
  assert.equal(unsigned.status, 403);
  assert.equal(telnyx.count("answer", "v3:forged"), 0);
  assert.deepEqual(world.statuses(callId), ["ringing"]);
  assert.deepEqual(await postSigned(call.webhookUrl, hangup), { status: 200, text: "" });
  await world.when(callId, "busy");
});

test("[TX21] a stream without the client state we sent is refused, and the call's own still accepted", async () => {
  const { id } = await world.desk();
  const { callId, call } = await world.dial(id);
  const parameters = decodeClientState(call.clientState) as Record<string, string>;
  assert.deepEqual(Object.keys(parameters), ["token"]);
  for (const state of [null, "", "%%%", encodeClientState({}), encodeClientState({ token: "another" })]) {
    const stranger = await TelnyxPhone.talk(call, state);
    await stranger.closed();
    assert.equal(stranger.far.closedWith?.code, 4500);
  }
  const phone = await pickedUp(call);
  await putDown(call, phone);
  await world.when(callId, "ended_by_customer");
});

test("[TX22] a call whose order got no response is placed once, and recognised by its first report", async () => {
  doing("hang_up", {}, ["Bye."]);
  telnyx.behave(({ kind }) => (kind === "dial" ? "lose" : "pass"));
  const before = telnyx.count("dial");
  const { callId, call, phone } = await talking({
    tools: [...BY_KEYS, { type: "end_call", description: "" }],
  });
  telnyx.behave(null);
  phone.press("1#");
  await phone.far.hears("Bye.", 2);
  await telnyx.command("hangup", call.id);
  await world.when(callId, "ended_by_assistant");
  assert.equal(telnyx.count("dial"), before + 1);
});

test("[TX23] a call that continues without its stream is hung up, even by a server that never knew it", async () => {
  const { callId, call, phone } = await talking();
  phone.hangUp();
  await world.when(callId, "ended_by_customer");
  await telnyx.command("hangup", call.id);
  const { phone: other, ...placed } = await talking();
  const webhookUrl = placed.call.webhookUrl.replace(/status\/[^?]*/, `status/${randomUUID()}`);
  await telnyx.report({ ...placed.call, webhookUrl }, "streaming.failed");
  await telnyx.command("hangup", placed.call.id);
  await world.when(placed.callId, "ended");
  other.hangUp();
});
