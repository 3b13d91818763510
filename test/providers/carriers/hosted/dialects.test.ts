// Calls over hosted carriers: Twilio's REST interface and what it reports. Twilio is an emulator
// and Twilio's own SDK; no live account was tried.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import fc from "fast-check";
import twilio from "twilio";
import { ProviderError } from "#core/faults.ts";
import type {
  CarrierRequest, Handover, HostedCalls, HostedDial,
} from "#providers/carriers/hosted/port.ts";
import { createCallProgress, twilioEvents } from "#providers/carriers/hosted/status.ts";
import {
  createTwilioCalls, type TwilioCallsOptions,
} from "#providers/carriers/hosted/twilio-calls.ts";
import { connectTwiml, dialTwiml, rejectTwiml } from "#providers/carriers/hosted/twiml.ts";
import type { LegEvent } from "#providers/carriers/port.ts";
import { assertOrders, type OrderOutcome } from "#support/carriers/hosted-orders.ts";
import {
  EMULATED_NUMBER, EMULATED_SID, EMULATED_TOKEN, startTwilioEmulator,
} from "#support/carriers/twilio-emulator.ts";
import { startEndpoint, type EndpointRequest } from "#support/endpoint.ts";

const receiver = await startEndpoint();
const emulator = await startTwilioEmulator(`${receiver.url}/voice?x=1`);
const closings: (() => Promise<void>)[] = [receiver.close, emulator.close];
after(async () => {
  for (const close of closings.reverse()) await close();
});

const bytesOf = (text: string) => Buffer.from(text);

// What Twilio reports

const reported = (fields: Record<string, string>) => twilioEvents(new URLSearchParams(fields));

test("[TW40] statuses, SIP codes and answering machine results become events of a leg", () => {
  const endings: [string, string | null, string][] = [
    ["completed", "200", "far_hung_up"], ["completed", null, "far_hung_up"], ["completed", "487", "far_hung_up"],
    ["busy", "486", "busy"], ["busy", "600", "busy"], ["busy", "603", "rejected"], ["busy", null, "busy"],
    ["no-answer", "487", "no_answer"], ["no-answer", null, "no_answer"], ["no-answer", "603", "rejected"],
    ["failed", "404", "failed"], ["failed", "480", "no_answer"], ["failed", "603", "rejected"],
    ["failed", "toString", "failed"], ["canceled", "487", "we_hung_up"],
  ];
  for (const [CallStatus, code, cause] of endings) {
    const events = reported({ CallStatus, ...(code === null ? {} : { SipResponseCode: code }) });
    assert.deepEqual(events, [{ kind: "ended", cause }], `${CallStatus} ${code}`);
  }
  for (const CallStatus of ["queued", "initiated", "", "toString", "new"]) assert.deepEqual(reported({ CallStatus }), []);
  assert.deepEqual(reported({ CallStatus: "ringing" }), [{ kind: "ringing" }]);
  for (const CallStatus of ["in-progress", "answered"]) assert.deepEqual(reported({ CallStatus }), [{ kind: "answered" }]);
  const answerers = {
    human: "human", machine_start: "machine", machine_end_beep: "machine", machine_end_silence: "machine",
    machine_end_other: "machine", fax: "machine", unknown: "unknown", new: "unknown",
  };
  for (const [AnsweredBy, by] of Object.entries(answerers)) {
    assert.deepEqual(reported({ AnsweredBy }), [{ kind: "answered_by", by }]);
  }
  assert.deepEqual(reported({ CallStatus: "in-progress", AnsweredBy: "human" }),
    [{ kind: "answered" }, { kind: "answered_by", by: "human" }]);
  assert.deepEqual(reported({ CallStatus: "completed", AnsweredBy: "fax" }).map(({ kind }) => kind), ["answered_by", "ended"]);
});

test("[TW41] with late, duplicate and reordered reports a leg rings, is answered and ends once", () => {
  const anyReport = fc.constantFrom<LegEvent>(
    { kind: "ringing" }, { kind: "answered" }, { kind: "answered_by", by: "human" },
    { kind: "ended", cause: "far_hung_up" }, { kind: "ended", cause: "busy" },
  );
  fc.assert(fc.property(fc.array(fc.array(anyReport, { maxLength: 3 })), (reports) => {
    const progress = createCallProgress();
    const told = reports.flatMap((events) => progress.receive(events)).map(({ kind }) => kind);
    assert.equal(new Set(told).size, told.length);
    assert.ok(!told.includes("ended") || told.at(-1) === "ended");
    assert.ok(!told.includes("answered") || told.lastIndexOf("ringing") < told.indexOf("answered"));
    const flat = reports.flat().map(({ kind }) => kind);
    assert.equal(told.includes("ended"), flat.includes("ended"));
  }));
});

// REST

function callsAt(url: string, more: Partial<TwilioCallsOptions> = {}): HostedCalls {
  const calls = createTwilioCalls({
    name: "twilio", url, accountSid: EMULATED_SID, authToken: EMULATED_TOKEN, ...more,
  });
  closings.push(calls.close);
  return calls;
}

const asCarrier = ({ method, url, headers, body }: EndpointRequest): CarrierRequest => ({
  method: method === "GET" ? "GET" : "POST",
  url: receiver.url + url,
  header: (name) => (typeof headers[name] === "string" ? headers[name] : null),
  body: bytesOf(body),
});

const request = (more: Partial<HostedDial> = {}): HostedDial => ({
  to: "+14155550100", from: EMULATED_NUMBER, ringingMs: 30_000,
  join: {
    url: "wss://a.example/media", parameters: { token: "t&1" },
    statusUrl: `${receiver.url}/status/1`,
  },
  detectMachine: true, ...more,
});

const handover = (callId: string, callerId: string | null = null): Handover =>
  ({ callId, to: "+14155550199", callerId, statusUrl: `${receiver.url}/status/1` });

const CALL = { to: "+14155550100", from: EMULATED_NUMBER };

test("[TW50] a call at the emulator is placed, reported and ended, and every report is genuine for us and for the SDK", async () => {
  const calls = callsAt(emulator.url);
  receiver.requests.length = 0;
  const placed = await calls.dial(request());
  assert.ok(placed.kind === "placed");
  const { callId } = placed;
  for (const Status of ["in-progress", "completed"]) await emulator.simulate("call-status", { CallSid: callId, Status });
  await calls.hangUp(callId);
  const progress = createCallProgress();
  const told = receiver.requests.flatMap((got) => {
    const carrier = asCarrier(got);
    const params = Object.fromEntries(new URLSearchParams(got.body));
    const signature = carrier.header("x-twilio-signature")!;
    assert.ok(twilio.validateRequest(EMULATED_TOKEN, signature, carrier.url, params));
    assert.ok(calls.isGenuine(carrier));
    assert.equal(calls.isGenuine({ ...carrier, body: bytesOf(`${got.body}&a=b`) }), false);
    assert.equal(calls.isGenuine({ ...carrier, url: `${carrier.url}2` }), false);
    const report = calls.read(carrier)!;
    const { events, ...rest } = report;
    assert.deepEqual(rest, { ...CALL, callId, isOffer: false, reply: null });
    return progress.receive(events);
  });
  assert.deepEqual(told, [{ kind: "ringing" }, { kind: "answered" }, { kind: "ended", cause: "far_hung_up" }]);
  assert.equal(receiver.requests.length, 4);
});

test("[TW51] an inbound call is an offer, answered with a document", async () => {
  const calls = callsAt(emulator.url);
  receiver.requests.length = 0;
  const { sid } = await emulator.simulate("inbound-call", { To: EMULATED_NUMBER, From: "+14155550100" });
  const carrier = asCarrier(receiver.requests[0]!);
  assert.equal(carrier.url, `${receiver.url}/voice?x=1`);
  assert.ok(calls.isGenuine(carrier));
  const { events: _events, ...report } = calls.read(carrier)!;
  assert.deepEqual(report, {
    callId: sid, from: "+14155550100", to: EMULATED_NUMBER, isOffer: true, reply: null,
  });
  const xml = { status: 200, contentType: "text/xml; charset=utf-8" };
  assert.deepEqual(await calls.answer(sid, request().join),
    { ...xml, body: connectTwiml("wss://a.example/media", { token: "t&1" }) });
  assert.deepEqual(await calls.refuse(sid, "busy"), { ...xml, body: rejectTwiml("busy") });
  const ended = new URLSearchParams({ CallSid: sid, Direction: "inbound", CallStatus: "completed" });
  assert.equal(calls.read({ ...carrier, body: bytesOf(String(ended)) })?.isOffer, false);
  assert.equal(calls.read({ ...carrier, body: bytesOf("a=b") }), null);
  assert.equal(calls.read({ ...carrier, method: "GET" }), null);
});

test("[TW52] hanging up an ended call succeeds, transferring it fails", async () => {
  const calls = callsAt(emulator.url);
  const placed = await calls.dial(request());
  assert.ok(placed.kind === "placed");
  await calls.transfer(handover(placed.callId));
  await calls.hangUp(placed.callId);
  await calls.hangUp(`CA${"0".repeat(32)}`);
  await assert.rejects(calls.transfer(handover(`CA${"0".repeat(32)}`)),
    (error) => error instanceof ProviderError && /the call is over/.test(error.message) && !error.retryable);
  await assert.rejects(calls.hangUp(".."), /there is no call with this id/);
});

test("[TW53] our requests match those Twilio's SDK makes", async () => {
  const vendor = await startEndpoint();
  closings.push(vendor.close);
  vendor.answer((_, response) => void response.writeHead(201).end('{"sid":"CA1"}'));
  const calls = callsAt(vendor.url);
  await calls.dial(request());
  vendor.answer((_, response) => void response.writeHead(200).end('{"sid":"CA1"}'));
  await calls.hangUp("CA1");
  await calls.transfer(handover("CA1", EMULATED_NUMBER));
  const theirs: { uri: string; data: Record<string, unknown> }[] = [];
  const sdk = twilio(EMULATED_SID, EMULATED_TOKEN, {
    httpClient: {
      request: (options: { uri: string; data: Record<string, unknown> }) => {
        theirs.push(options);
        return Promise.resolve({ statusCode: theirs.length === 1 ? 201 : 200, body: { sid: "CA1" } });
      },
    } as never,
  });
  const statusUrl = `${receiver.url}/status/1`;
  await sdk.calls.create({
    to: "+14155550100", from: EMULATED_NUMBER, timeout: 30,
    twiml: connectTwiml("wss://a.example/media", { token: "t&1" }),
    statusCallback: statusUrl, statusCallbackMethod: "POST",
    statusCallbackEvent: ["initiated", "ringing", "answered", "completed"],
    machineDetection: "Enable", asyncAmd: "true",
    asyncAmdStatusCallback: statusUrl, asyncAmdStatusCallbackMethod: "POST",
  });
  await sdk.calls("CA1").update({ status: "completed" });
  await sdk.calls("CA1").update({ twiml: dialTwiml("+14155550199", EMULATED_NUMBER, 60) });
  const plain = (form: URLSearchParams) => Object.fromEntries([...new Set(form.keys())].sort()
    .map((key) => [key, form.getAll(key)]));
  const expected = theirs.map(({ uri, data }) => {
    const form = new URLSearchParams();
    for (const [key, value] of Object.entries(data)) {
      for (const one of [value].flat()) if (one !== undefined) form.append(key, String(one));
    }
    return [new URL(uri).pathname, plain(form)];
  });
  const ours = vendor.requests.map(({ url, body }) => [url, plain(new URLSearchParams(body))]);
  assert.deepEqual(ours, expected);
  assert.equal(vendor.requests[0]!.headers.authorization,
    `Basic ${Buffer.from(`${EMULATED_SID}:${EMULATED_TOKEN}`).toString("base64")}`);
});

test("[TW54] a call order is sent once whatever happens, and is reported as placed, refused or unknown", async () => {
  const vendor = await startEndpoint();
  closings.push(vendor.close);
  const calls = callsAt(vendor.url);
  const impatient = callsAt(vendor.url, { limits: { answerMs: 1000 } });
  const outcomes: OrderOutcome[] = [
    ["placed", 201, '{"sid":"CA1"}', "placed", null],
    ["refused by number", 400, '{"code":21211,"message":"Invalid To"}', "refused", /^Twilio answered 400, code 21211$/, false],
    ["too fast", 429, '{"code":20429}', "refused", /code 20429/, true],
    ["wrong token", 401, '{"code":20003}', "refused", /code 20003/, false],
    ["no answer in words", 201, "<html>", "unknown", /answered 201/, false],
    ["its gateway", 502, "", "unknown", /answered 502/, true],
    ["a dropped connection", 0, "", "unknown", /the call may have been placed/, false],
    ["silence", null, "", "unknown", /the call may have been placed/, false],
  ];
  await assertOrders(vendor, (status) =>
    (status === null ? impatient : calls).dial(request({ detectMachine: false })), outcomes);
  const { url } = vendor;
  await vendor.close();
  closings.splice(closings.indexOf(vendor.close), 1);
  const nobody = await callsAt(url).dial(request());
  assert.ok(nobody.kind === "refused" && nobody.error.retryable);
  await assert.rejects(callsAt(url).hangUp("CA1"),
    (error) => error instanceof ProviderError && error.retryable);
});

test("[TW55] SignalWire works alike, under its own address and name", async () => {
  const vendor = await startEndpoint();
  closings.push(vendor.close);
  vendor.answer((_, response) => void response.writeHead(403).end('{"code":"20403"}'));
  const calls = callsAt(`${vendor.url}/api/laml/`, { name: "signalwire" });
  const dialled = await calls.dial(request({ ringingMs: 1, detectMachine: false }));
  assert.equal(dialled.kind === "refused" && dialled.error.message, "SignalWire answered 403, code 20403");
  assert.equal(vendor.requests[0]!.url, `/api/laml/2010-04-01/Accounts/${EMULATED_SID}/Calls.json`);
  const form = new URLSearchParams(vendor.requests[0]!.body);
  assert.deepEqual([form.get("Timeout"), form.get("MachineDetection"), calls.dialect], ["1", null, "signalwire"]);
});
