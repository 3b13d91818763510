// Calls over Telnyx alone: what is asked for, what is reported, who is believed. Telnyx is a double
// that speaks as documented, and what its own SDK sends and verifies (telnyx 7.24.0, written down
// here, because it is large); no live account was tried.
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { after, test } from "node:test";
import fc from "fast-check";
import { ProviderError } from "#core/faults.ts";
import type {
  CarrierRequest, HostedCalls, HostedDial, Join,
} from "#providers/carriers/hosted/port.ts";
import { createTelnyxCalls, type TelnyxCallsOptions } from "#providers/carriers/hosted/telnyx-calls.ts";
import { assertOrders, type OrderOutcome } from "#support/carriers/hosted-orders.ts";
import {
  postSigned, startTelnyxServer, TELNYX_API_KEY, TELNYX_CONNECTION, TELNYX_PUBLIC_KEY,
  type Behaviour,
} from "#support/carriers/telnyx-server.ts";
import { startEndpoint, type EndpointRequest } from "#support/endpoint.ts";

const receiver = await startEndpoint();
const telnyx = await startTelnyxServer();
const closings: (() => Promise<void>)[] = [receiver.close, telnyx.close];
after(async () => {
  for (const close of closings.reverse()) await close();
});

const system = { now: () => Date.now() * 1000 };

function callsAt(url: string, more: Partial<TelnyxCallsOptions> = {}): HostedCalls {
  const calls = createTelnyxCalls({
    url, apiKey: TELNYX_API_KEY, publicKey: TELNYX_PUBLIC_KEY, connectionId: TELNYX_CONNECTION,
    system, ...more,
  });
  closings.push(calls.close);
  return calls;
}
const calls = callsAt(telnyx.url);

const STATUS = "https://a.example/status/1";

const asked = (path: string, body: string | object): CarrierRequest => ({
  method: "POST", url: path, header: () => null,
  body: Buffer.from(typeof body === "string" ? body : JSON.stringify(body)),
});
const webhook = (event: string, payload: object = {}, url = STATUS) =>
  asked(url, { data: { event_type: event, payload: { call_control_id: "v3:a", ...payload } } });

const join = (statusUrl = `${receiver.url}/status/1`): Join =>
  ({ url: "wss://a.example/media", parameters: { token: "t1" }, statusUrl });
const order = (more: Partial<HostedDial> = {}): HostedDial => ({
  to: "+14155550100", from: "+14155550200", ringingMs: 30_000, join: join(), detectMachine: true, ...more,
});

const isOver = (error: unknown) =>
  error instanceof ProviderError && /the call is over/.test(error.message) && !error.retryable;

// What is reported

test("[TX1] Telnyx' reports become events of a leg", () => {
  const told = (event: string, payload?: object, direction = "outbound") =>
    calls.read(webhook(event, payload, `${STATUS}?direction=${direction}`))!.events;
  const endings: [object, string, string?][] = [
    [{ hangup_cause: "normal_clearing", hangup_source: "callee" }, "far_hung_up"],
    [{ hangup_cause: "normal_clearing", hangup_source: "unknown" }, "far_hung_up"],
    [{ hangup_cause: "normal_clearing", hangup_source: "caller" }, "we_hung_up"],
    [{ hangup_cause: "normal_clearing", hangup_source: "caller" }, "far_hung_up", "inbound"],
    [{ hangup_cause: "normal_clearing", hangup_source: "callee" }, "we_hung_up", "inbound"],
    [{ hangup_cause: "normal_clearing", hangup_source: "callee" }, "far_hung_up", "unheard"],
    [{ hangup_cause: "originator_cancel" }, "we_hung_up"],
    [{ hangup_cause: "originator_cancel" }, "far_hung_up", "inbound"],
    [{ hangup_cause: "timeout", sip_hangup_cause: "487" }, "no_answer"],
    [{ hangup_cause: "no_answer" }, "no_answer"],
    [{ hangup_cause: "user_busy", sip_hangup_cause: "603" }, "busy"],
    [{ hangup_cause: "call_rejected", sip_hangup_cause: "403" }, "rejected"],
    [{ hangup_cause: "not_found", sip_hangup_cause: "480" }, "failed"],
    [{ hangup_cause: "unspecified", sip_hangup_cause: "486" }, "busy"],
    [{ hangup_cause: "unspecified", sip_hangup_cause: "unspecified" }, "failed"],
    [{ hangup_cause: "time_limit" }, "failed"], [{ hangup_cause: "toString" }, "failed"],
    [{ hangup_cause: ["timeout"], sip_hangup_cause: 486 }, "failed"], [{}, "failed"],
  ];
  for (const [payload, cause, direction] of endings) {
    assert.deepEqual(told("call.hangup", payload, direction), [{ kind: "ended", cause }],
      `${JSON.stringify(payload)} ${direction}`);
  }
  assert.deepEqual(told("call.initiated"), [{ kind: "ringing" }]);
  assert.deepEqual(told("call.initiated", { direction: "incoming" }, "inbound"), []);
  for (const direction of ["inbound", "outbound"]) {
    assert.deepEqual(told("call.answered", {}, direction), [{ kind: "answered" }]);
  }
  const answerers = {
    human: "human", human_residence: "human", human_business: "human", machine: "machine",
    fax_detected: "machine", silence: "unknown", not_sure: "unknown", toString: "unknown",
  };
  for (const [result, by] of Object.entries(answerers)) {
    for (const kind of ["", "premium."]) {
      assert.deepEqual(told(`call.machine.${kind}detection.ended`, { result }), [{ kind: "answered_by", by }]);
    }
  }
  // The call lives without a stream.
  for (const event of ["streaming.failed", "streaming.stopped"]) {
    assert.deepEqual(told(event), [{ kind: "answered" }]);
  }
  // The stream says the keys itself.
  for (const event of [
    "streaming.started", "call.bridged", "call.dtmf.received",
    "call.machine.greeting.ended", "call.cost", "", "toString",
  ]) assert.deepEqual(told(event), [], event);
});

test("[TX2] an incoming call is an offer, and nothing else is", () => {
  const parked = { direction: "incoming", from: "+14155550100", to: "+14155550200", state: "parked" };
  assert.deepEqual(calls.read(webhook("call.initiated", parked)), {
    callId: "v3:a", from: "+14155550100", to: "+14155550200",
    isOffer: true, events: [], reply: { status: 200, contentType: "text/plain", body: "" },
  });
  const others: [string, object][] = [
    ["call.initiated", { ...parked, direction: "outgoing" }], ["call.initiated", {}],
    ["call.answered", parked], ["call.hangup", parked], ["streaming.started", parked],
  ];
  for (const [event, payload] of others) {
    assert.equal(calls.read(webhook(event, payload))?.isOffer, false, event);
  }
  const odd = calls.read(webhook("call.initiated", { direction: "incoming", from: 7, to: null }));
  assert.deepEqual([odd?.from, odd?.to, odd?.isOffer], [null, null, true]);
});

test("[TX3] reports about a transfer's target only tell the call that nobody took it", () => {
  const url = `${STATUS}?handed_on=${encodeURIComponent("v3:a")}`;
  const of = (id: string, event: string, payload: object = {}) => {
    const report = calls.read(webhook(event, { call_control_id: id, ...payload }, url))!;
    const { callId, isOffer, events } = report;
    assert.equal(isOffer, false);
    return [callId, events];
  };
  for (const hangup_cause of ["timeout", "user_busy", "call_rejected", "not_found", "unspecified"]) {
    assert.deepEqual(of("v3:b", "call.hangup", { hangup_cause }), ["v3:a", [{ kind: "transfer_failed" }]]);
  }
  assert.deepEqual(of("v3:b", "call.hangup", { hangup_cause: "normal_clearing" }), ["v3:a", []]);
  for (const event of ["call.initiated", "call.answered", "call.bridged"]) {
    assert.deepEqual(of("v3:b", event, { direction: "outgoing" }), ["v3:a", []], event);
  }
  assert.deepEqual(of("v3:a", "call.hangup", { hangup_cause: "normal_clearing" }),
    ["v3:a", [{ kind: "ended", cause: "far_hung_up" }]]);
});

// Who is believed

const asCarrier = ({ headers, body, url }: EndpointRequest): CarrierRequest => ({
  method: "POST", url: receiver.url + url, body: Buffer.from(body),
  header: (name) => (typeof headers[name] === "string" ? headers[name] : null),
});

test("[TX4] what Telnyx' SDK accepts as signed is accepted, and nothing else", async () => {
  const body = '{"data":{"event_type":"call.hangup","payload":{"call_control_id":"v3:a","from":"é"}}}';
  const seconds = 1768478400;
  const headers: Record<string, string> = {
    "telnyx-timestamp": String(seconds),
    "telnyx-signature-ed25519":
      "7fLx9zqN/gLXf1/QCxeqAdIVEWCq6n9AK4M+87HL3q1nhB8m1wTMb0K8MHVVsIbH61vELhl9Xs1xKb5TC2SuCA==",
  };
  const at = (nowS: number) => callsAt(telnyx.url, {
    publicKey: "OadqbhnMCItoyCHq+40CMn6qmOsaK9wk52OMnyPcqrY=", system: { now: () => nowS * 1e6 },
  });
  const sent = (changes: Record<string, string> = {}, text = body): CarrierRequest => ({
    ...asked(STATUS, text), header: (name) => ({ ...headers, ...changes })[name] ?? null,
  });
  assert.ok(at(seconds).isGenuine(sent()));
  assert.ok(at(seconds + 300).isGenuine(sent()));
  assert.equal(at(seconds + 301).isGenuine(sent()), false);
  assert.equal(at(seconds).isGenuine(sent({}, `${body} `)), false);
  assert.equal(at(seconds).isGenuine(sent({ "telnyx-timestamp": String(seconds + 1) })), false);
  assert.equal(at(seconds).isGenuine(sent({ "telnyx-signature-ed25519": "" })), false);
  // And of the double, whose key another is not.
  receiver.requests.length = 0;
  await postSigned(`${receiver.url}/voice`, body);
  await postSigned(`${receiver.url}/voice`, body, { key: generateKeyPairSync("ed25519").privateKey });
  assert.deepEqual(receiver.requests.map((got) => calls.isGenuine(asCarrier(got))), [true, false]);
  assert.equal(calls.signsSockets, false);
});

test("[TX5] no input throws", async () => {
  const anyText = fc.oneof(fc.string(), fc.constantFrom("call.hangup", "call.initiated", "incoming", "v3:a"));
  const anyValue = fc.oneof(anyText, fc.jsonValue());
  const anyWebhook = fc.record({
    data: fc.oneof(anyValue, fc.record({
      event_type: anyValue,
      payload: fc.oneof(anyValue, fc.record({
        call_control_id: anyValue, direction: anyValue, hangup_cause: anyValue, from: anyValue,
        result: anyValue, sip_hangup_cause: anyValue, hangup_source: anyValue,
      })),
    })),
  });
  const bodies = fc.oneof(
    fc.uint8Array(), anyWebhook.map((one) => Buffer.from(JSON.stringify(one))),
    fc.jsonValue().map((one) => Buffer.from(JSON.stringify(one))),
  );
  const urls = fc.webUrl({ withQueryParameters: true });
  fc.assert(fc.property(bodies, urls, anyText, anyText, (body, url, timestamp, signature) => {
    const request: CarrierRequest = {
      method: "POST", url, body,
      header: (name) => (name === "telnyx-timestamp" ? timestamp : signature),
    };
    assert.equal(calls.isGenuine(request), false);
    const report = calls.read(request);
    assert.ok(report === null || report.callId !== "");
  }), { numRuns: 100 });
  for (const body of ["", "{", "null", "[]", '{"data":{"event_type":"call.hangup","payload":{}}}']) {
    assert.equal(calls.read(asked(STATUS, body)), null, body);
  }
  for (const id of ["", ".", "..", "a".repeat(600)]) {
    await assert.rejects(calls.hangUp(id), /there is no call with this id/);
  }
  const asks = telnyx.count("hangup");
  await calls.hangUp("../../v2/x?y=1#z");
  assert.equal(telnyx.received.events.at(-1)?.callId, "../../v2/x?y=1#z");
  assert.equal(telnyx.count("hangup"), asks + 1);
});

// What is asked for

test("[TX6] our commands match those Telnyx' SDK sends", async () => {
  const vendor = await startEndpoint();
  closings.push(vendor.close);
  vendor.answer((_, response) => void response.end('{"data":{"result":"ok","call_control_id":"v3:a_b-c"}}'));
  const ours = callsAt(`${vendor.url}/`, { connectionId: "149" });
  const { parameters, url } = join();
  const joinHere: Join = { url, parameters, statusUrl: STATUS };
  assert.deepEqual(await ours.dial(order({ join: joinHere })), { kind: "placed", callId: "v3:a_b-c" });
  const taken = { status: 200, contentType: "text/plain", body: "" };
  assert.deepEqual(await ours.answer("v3:a_b-c", joinHere), taken);
  assert.deepEqual(await ours.refuse("v3:a_b-c", "busy"), taken);
  await ours.hangUp("v3:a_b-c");
  await ours.transfer({
    callId: "v3:a_b-c", to: "+14155550199", callerId: "+14155550200", statusUrl: STATUS,
  });
  await ours.sendDtmf!("v3:a_b-c", "5#");
  const stream = {
    stream_url: "wss://a.example/media", stream_track: "inbound_track", stream_codec: "PCMU",
    stream_bidirectional_mode: "rtp", stream_bidirectional_codec: "PCMU",
    stream_bidirectional_target_legs: "self", client_state: "eyJ0b2tlbiI6InQxIn0=",
    webhook_url_method: "POST",
  };
  const { command_id: id } = JSON.parse(vendor.requests[0]!.body) as { command_id: string };
  // What the SDK made of the same values, the id of the command put in.
  const theirs: [string, object][] = [
    ["/v2/calls", {
      connection_id: "149", to: "+14155550100", from: "+14155550200", timeout_secs: 30,
      retry_on_timeout: false, answering_machine_detection: "detect", ...stream, command_id: id,
      webhook_url: "https://a.example/status/1?direction=outbound",
    }],
    ["/v2/calls/v3:a_b-c/actions/answer", {
      ...stream, command_id: id, webhook_url: "https://a.example/status/1?direction=inbound",
    }],
    ["/v2/calls/v3:a_b-c/actions/reject", { cause: "USER_BUSY" }],
    ["/v2/calls/v3:a_b-c/actions/hangup", {}],
    ["/v2/calls/v3:a_b-c/actions/transfer", {
      to: "+14155550199", from: "+14155550200", timeout_secs: 60,
      webhook_url: "https://a.example/status/1?handed_on=v3%3Aa_b-c", webhook_url_method: "POST",
    }],
    ["/v2/calls/v3:a_b-c/actions/send_dtmf", { digits: "5#" }],
  ];
  assert.deepEqual(vendor.requests.map(({ url: path, body }) => [path, JSON.parse(body)]), theirs);
  for (const { method, headers } of vendor.requests) {
    assert.deepEqual([method, headers.authorization, headers["content-type"]],
      ["POST", "Bearer KEY0123_test", "application/json"]);
  }
});

test("[TX7] command ids belong to one call; the ringing time stays within Telnyx' limits; unset options are not sent", async () => {
  const sent: Record<string, unknown>[] = [];
  for (const [ringingMs, seconds] of [[1, 5], [30_001, 31], [3_600_000, 600]] as const) {
    const placed = await calls.dial(order({
      ringingMs, detectMachine: false, join: join(`${receiver.url}/status/${seconds}`),
    }));
    assert.ok(placed.kind === "placed");
    const { body } = telnyx.received.events.at(-1)!;
    assert.equal(body.timeout_secs, seconds);
    assert.ok(!("answering_machine_detection" in body));
    sent.push(body);
  }
  assert.equal(new Set(sent.map(({ command_id: id }) => id)).size, 3);
  const { call } = await telnyx.ring(`${receiver.url}/voice`, "+14155550200", "+14155550100");
  await calls.answer(call.id, join());
  await calls.transfer({ callId: call.id, to: "sip:desk@a.example", callerId: null, statusUrl: STATUS });
  const transfer = await telnyx.command("transfer", call.id);
  assert.deepEqual([transfer.to, "from" in transfer], ["sip:desk@a.example", false]);
});

test("[TX8] a call order is sent once whatever happens, and is reported as placed, refused or unknown", async () => {
  const vendor = await startEndpoint();
  closings.push(vendor.close);
  const ours = callsAt(vendor.url);
  const impatient = callsAt(vendor.url, { limits: { answerMs: 1000 } });
  const fault = (code: string) => JSON.stringify({ errors: [{ code, title: "No" }] });
  const outcomes: OrderOutcome[] = [
    ["placed", 200, '{"data":{"call_control_id":"v3:a"}}', "placed", null],
    ["no such number", 422, fault("10016"), "refused", /^Telnyx answered 422, code 10016, No$/, false],
    ["too fast", 429, fault("10011"), "refused", /code 10011/, true],
    ["wrong key", 401, fault("10009"), "refused", /code 10009/, false],
    ["without an id", 200, '{"data":{"call_control_id":""}}', "unknown", /answered 200/, false],
    ["no answer in words", 200, "<html>", "unknown", /answered 200/, false],
    ["its gateway", 502, "", "unknown", /answered 502/, true],
    ["a dropped connection", 0, "", "unknown", /Telnyx did not answer; the call may have been placed/, false],
    ["silence", null, "", "unknown", /the call may have been placed/, false],
  ];
  await assertOrders(
    vendor, (status) => (status === null ? impatient : ours).dial(order()), outcomes);
  await vendor.close();
  closings.splice(closings.indexOf(vendor.close), 1);
  const nobody = await ours.dial(order());
  assert.ok(nobody.kind === "refused" && nobody.error.retryable);
  assert.match(nobody.error.message, /could not be reached/);
});

test("[TX9] hanging up or refusing an ended call succeeds; all other commands fail", async () => {
  const { call } = await telnyx.ring(`${receiver.url}/voice`, "+14155550200", "+14155550100");
  await telnyx.end(call, { hangup_cause: "originator_cancel" });
  for (const id of [call.id, "v3:never-was"]) {
    await calls.hangUp(id);
    assert.equal((await calls.refuse(id, "rejected")).status, 200);
    assert.deepEqual(await telnyx.command("reject", id), { cause: "CALL_REJECTED" });
    await assert.rejects(calls.answer(id, join()), isOver);
    await assert.rejects(calls.sendDtmf!(id, "1"), isOver);
    const handover = { callId: id, to: "+14155550199", callerId: null, statusUrl: STATUS };
    await assert.rejects(calls.transfer(handover), isOver);
  }
});

test("[TX10] a command that fails otherwise reports it, and is not repeated", async () => {
  const placed = await calls.dial(order());
  assert.ok(placed.kind === "placed");
  const id = placed.callId;
  const all: [string, () => Promise<unknown>][] = [
    ["hangup", () => calls.hangUp(id)], ["answer", () => calls.answer(id, join())],
    ["reject", () => calls.refuse(id, "busy")], ["send_dtmf", () => calls.sendDtmf!(id, "1")],
    ["transfer", () => calls.transfer({ callId: id, to: "+14155550199", callerId: null, statusUrl: STATUS })],
  ];
  const fails = (ask: () => Promise<unknown>, message: RegExp, retryable: boolean) =>
    assert.rejects(ask(), (error) => error instanceof ProviderError
      && message.test(error.message) && error.retryable === retryable);
  const refusals: [Behaviour, RegExp, boolean][] = [
    [{ status: 503, body: {} }, /^Telnyx answered 503$/, true],
    [{ status: 422, body: { errors: [{ code: "90061", title: "No" }] } }, /code 90061, No$/, false],
  ];
  for (const [how, message, retryable] of refusals) {
    telnyx.behave(() => how);
    for (const [action, ask] of all) {
      const before = telnyx.count(action);
      await fails(ask, message, retryable);
      assert.equal(telnyx.count(action), before + 1, action);
    }
  }
  telnyx.behave(() => "lose");
  await fails(() => calls.hangUp(id), /^Telnyx could not be reached$/, true);
  assert.equal(telnyx.count("hangup", id), 3);
  telnyx.behave(null);
  const stranger = callsAt(telnyx.url, { apiKey: "KEY_of_another" });
  await assert.rejects(stranger.hangUp(id), /answered 401, code 10009/);
});
