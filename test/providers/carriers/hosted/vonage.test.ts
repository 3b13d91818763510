// Calls over Vonage: its REST interface, what it reports and how both sides prove who they are.
// Vonage is a double and its own SDK; no live account was tried.
import assert from "node:assert/strict";
import { createPrivateKey, generateKeyPairSync } from "node:crypto";
import { after, test } from "node:test";
import { verifySignature } from "@vonage/jwt";
import fc from "fast-check";
import { ProviderError } from "#core/faults.ts";
import { createSystem } from "#core/system.ts";
import type { CarrierRequest, HostedCalls, HostedDial } from "#providers/carriers/hosted/port.ts";
import {
  createVonageCalls, type VonageCallsOptions,
} from "#providers/carriers/hosted/vonage-calls.ts";
import { rsaKeyProblem } from "#core/keys.ts";
import { assertOrders, type OrderOutcome } from "#support/carriers/hosted-orders.ts";
import { startVonageServer, VONAGE_KEY, VONAGE_PUBLIC_KEY } from "#support/carriers/vonage-server.ts";
import { VONAGE_APPLICATION, VONAGE_SECRET, vonageBearer } from "#support/carriers/vonage-signing.ts";
import { startEndpoint } from "#support/endpoint.ts";
import { createManualSystem } from "#support/manual-clock.ts";

const receiver = await startEndpoint();
const vonage = await startVonageServer();
const vendor = await startEndpoint();
const closings: (() => Promise<void>)[] = [receiver.close, vonage.close, vendor.close];
after(async () => {
  for (const close of closings.reverse()) await close();
});

function callsAt(url: string, more: Partial<VonageCallsOptions> = {}): HostedCalls {
  const calls = createVonageCalls({
    url, applicationId: VONAGE_APPLICATION, privateKey: VONAGE_KEY, signatureSecret: VONAGE_SECRET,
    system: createSystem(), ...more,
  });
  closings.push(calls.close);
  return calls;
}

const calls = callsAt(vonage.url);
const atVendor = callsAt(`${vendor.url}/`);
const impatient = callsAt(vendor.url, { limits: { answerMs: 1000 } });

const STATUS_URL = "https://p.example/carriers/vonage/status/1";
const posted = (body: unknown, more: Partial<CarrierRequest> = {}): CarrierRequest => ({
  method: "POST", url: STATUS_URL, header: () => null, body: Buffer.from(JSON.stringify(body)),
  ...more,
});
const UUID = "63f61863-4a51-4f6b-86e1-46edebcf9356";
const CONVERSATION = "CON-f972836a-550f-45fa-956c-12a2ab5b7d22";
/** A report as the webhook reference shows it. */
const reported = (status: string, more: object = {}) => ({
  from: "442079460000", to: "447700900000", uuid: UUID, conversation_uuid: CONVERSATION, status,
  direction: "outbound", timestamp: "2026-01-01T12:00:00.000Z", ...more,
});

// What Vonage reports

test("[VX1] statuses, details, SIP codes and answering machine results become events of a leg", () => {
  const events = (status: string, more: object = {}) =>
    calls.read(posted(reported(status, more)))!.events;
  const endings: [string, object, string][] = [
    ["completed", {}, "far_hung_up"], ["completed", { sip_code: 486 }, "far_hung_up"],
    ["completed", { disconnected_by: "user", sip_code: 200 }, "far_hung_up"],
    ["busy", {}, "busy"], ["busy", { sip_code: 486 }, "busy"], ["busy", { sip_code: 603 }, "rejected"],
    ["unanswered", {}, "no_answer"], ["unanswered", { sip_code: 480 }, "no_answer"],
    ["unanswered", { sip_code: "603" }, "rejected"], ["unanswered", { detail: "declined", sip_code: 480 }, "rejected"],
    ["timeout", {}, "no_answer"], ["timeout", { sip_code: 487 }, "no_answer"],
    ["rejected", {}, "rejected"], ["rejected", { sip_code: 486 }, "busy"], ["rejected", { detail: "restricted" }, "rejected"],
    ["failed", {}, "failed"], ["failed", { detail: "cannot_route", sip_code: 404 }, "failed"],
    ["failed", { detail: "unavailable" }, "no_answer"], ["failed", { detail: "toString", sip_code: "toString" }, "failed"],
    ["failed", { detail: {}, sip_code: [486] }, "failed"], ["cancelled", { sip_code: 487 }, "we_hung_up"],
  ];
  for (const [status, more, cause] of endings) {
    assert.deepEqual(events(status, more), [{ kind: "ended", cause }], `${status} ${JSON.stringify(more)}`);
  }
  for (const status of ["started", "disconnected", "transfer", "input", "", "toString"]) assert.deepEqual(events(status), []);
  assert.deepEqual(events("ringing"), [{ kind: "ringing" }]);
  assert.deepEqual(events("answered", { start_time: null, rate: null, network: null }), [{ kind: "answered" }]);
  for (const by of ["human", "machine"]) {
    const { uuid, direction: _direction, ...rest } = reported(by);
    const report = calls.read(posted({ ...rest, call_uuid: uuid }))!;
    assert.deepEqual([report.callId, report.events], [UUID, [{ kind: "answered_by", by }]]);
  }
  assert.deepEqual(events("machine", { sub_state: "beep_start" }), [{ kind: "answered_by", by: "machine" }]);
});

test("[VX2] numbers get their plus back; what is not a number stays as it is", () => {
  assert.deepEqual(calls.read(posted(reported("ringing"))), {
    callId: UUID, from: "+442079460000", to: "+447700900000", isOffer: false,
    events: [{ kind: "ringing" }], reply: null,
  });
  const from = (given: unknown) => calls.read(posted(reported("ringing", { from: given })))!.from;
  for (const same of ["anonymous", "Vonage", "+442079460000", "112", "sip:a@b.example", ""]) assert.equal(from(same), same);
  for (const none of [null, 442079460000, {}, ["442079460000"]]) assert.equal(from(none), null);
});

test("[VX3] reports about the WebSocket, a transfer's leg, errors or nothing concern no call", () => {
  const about = (body: unknown, more: Partial<CarrierRequest> = {}) =>
    calls.read(posted(body, more)) !== null;
  assert.ok(about(reported("answered")));
  for (const status of ["started", "answered", "disconnected", "completed", "failed", "unanswered"]) {
    assert.equal(about(reported(status, { to: "wss://a.example/media" })), false, status);
    assert.equal(about(reported(status, { from: "ws://a.example/media" })), false, status);
  }
  assert.equal(about(reported("answered"), { url: `${STATUS_URL}?leg=added` }), false);
  assert.equal(about({ reason: "Syntax error in NCCO.", conversation_uuid: CONVERSATION }), false);
  assert.equal(about(reported("answered"), { method: "GET" }), false);
  for (const uuid of [undefined, null, "", 7, {}, "a b", "../1", "x".repeat(65)]) assert.equal(about(reported("answered", { uuid })), false);
  for (const body of [null, [], "a", 7, {}]) assert.equal(about(body), false);
  assert.equal(calls.read(posted("", { body: Buffer.from("uuid=1") })), null);
});

test("[VX4] an incoming call is an offer, and the document that answers it returns its id", async () => {
  const { uuid } = await vonage.ring(`${receiver.url}/voice`, "442079460000", "447700900000");
  const [got] = receiver.requests.splice(0);
  const request = posted(null, {
    url: `${receiver.url}/voice`, body: Buffer.from(got!.body),
    header: (name) => String(got!.headers[name]),
  });
  assert.ok(calls.isGenuine(request));
  assert.deepEqual(calls.read(request), {
    callId: uuid, from: "+447700900000", to: "+442079460000", isOffer: true,
    events: [], reply: null,
  });
  assert.equal(calls.read(posted(reported("started", { direction: "inbound" })))!.isOffer, false);
  const { status, contentType, body } = await calls.answer(UUID, dialOf().join);
  assert.deepEqual([status, contentType], [200, "application/json; charset=utf-8"]);
  const [connect] = structuredClone(MEDIA_NCCO);
  Object.assign(connect!.endpoint[0]!.headers, { call_uuid: UUID });
  assert.deepEqual(JSON.parse(body), [connect]);
  for (const reason of ["busy", "rejected"] as const) {
    assert.deepEqual(await calls.refuse(UUID, reason), { status: 200, contentType, body: "[]" });
  }
});

// Who is who

test("[VX5] webhooks and WebSocket upgrades are genuine for us if Vonage's SDK accepts them", () => {
  const body = JSON.stringify(reported("answered"));
  const check = (text: string, authorization: string | null, method: "GET" | "POST" = "POST") =>
    calls.isGenuine({
      method, url: STATUS_URL, body: Buffer.from(text),
      header: (name) => (name === "authorization" ? authorization : null),
    });
  const bearer = vonageBearer(body);
  const token = (header: string) => header.replace("Bearer ", "");
  assert.ok(verifySignature(token(bearer), VONAGE_SECRET));
  assert.ok(check(body, bearer));
  assert.ok(check("", vonageBearer(null), "GET"));
  assert.ok(calls.signsSockets);
  const forged = vonageBearer(body, "another secret of 32 characters and more");
  assert.equal(verifySignature(token(forged), VONAGE_SECRET), false);
  for (const other of [forged, null, "", vonageBearer(null)]) assert.equal(check(body, other), false);
  assert.equal(check(`${body} `, bearer), false);
  // The SDK leaves the age of a token to its user.
  const late = createManualSystem(Date.now() + 6 * 60_000);
  assert.equal(callsAt(vonage.url, { system: late })
    .isGenuine(posted(null, { body: Buffer.from(body), header: () => bearer })), false);
});

test("[VX6] every request has its own token, valid for minutes and accepted by Vonage's SDK", async () => {
  const system = createSystem();
  vendor.requests.length = 0;
  vendor.answer((_, response) => void response.writeHead(204).end());
  for (const id of ["1", "2"]) await atVendor.hangUp(id);
  const tokens = vendor.requests.map(({ headers }) => /^Bearer (.+)$/.exec(headers.authorization!)![1]!);
  const claims = tokens.map((token) => {
    assert.ok(verifySignature(token, VONAGE_PUBLIC_KEY));
    const [head, body] = token.split(".").map((part) => Buffer.from(part, "base64url").toString());
    assert.deepEqual(JSON.parse(head!), { typ: "JWT", alg: "RS256" });
    return JSON.parse(body!) as { application_id: string; iat: number; exp: number; jti: string };
  });
  for (const { application_id: id, iat, exp } of claims) {
    assert.equal(id, VONAGE_APPLICATION);
    assert.ok(Math.abs(iat - system.now() / 1_000_000) < 60, String(iat));
    assert.equal(exp - iat, 300);
  }
  assert.notEqual(claims[0]!.jti, claims[1]!.jti);
});

test("[VX7] an invalid private key is detected at once, with the name of its setting", () => {
  const pkcs8 = { type: "pkcs8", format: "pem" } as const;
  const ec = String(generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey.export(pkcs8));
  const locked = String(createPrivateKey(VONAGE_KEY)
    .export({ ...pkcs8, cipher: "aes-256-cbc", passphrase: "a" }));
  assert.equal(rsaKeyProblem(VONAGE_KEY), null);
  for (const pem of ["", "a key", VONAGE_PUBLIC_KEY, ec, locked, VONAGE_KEY.slice(0, 800)]) {
    assert.match(rsaKeyProblem(pem)!, /^must be an RSA private key in PEM/);
    assert.throws(() => callsAt(vonage.url, { privateKey: pem }),
      (error) => error instanceof TypeError && /^PARLEY_VONAGE_PRIVATE_KEY must be an RSA/.test(error.message));
  }
});

// REST

const dialOf = (more: Partial<HostedDial> = {}): HostedDial => ({
  to: "+14155550100", from: "+15005550006", ringingMs: 30_000,
  join: { url: "wss://a.example/media", parameters: { token: "t&1" }, statusUrl: STATUS_URL },
  detectMachine: true, ...more,
});

const MEDIA_NCCO = [{
  action: "connect", eventUrl: [`${STATUS_URL}?leg=added`], eventMethod: "POST",
  endpoint: [{
    type: "websocket", uri: "wss://a.example/media", "content-type": "audio/l16;rate=16000",
    headers: { token: "t&1" }, authorization: { type: "vonage" },
  }],
}];

/** What @vonage/voice 1.21.0 sent for the same, but for the order of members. */
const BY_SDK: [string, string, object][] = [
  ["POST", "/v1/calls", {
    to: [{ type: "phone", number: "14155550100" }], from: { type: "phone", number: "15005550006" },
    ncco: MEDIA_NCCO, event_url: [STATUS_URL], event_method: "POST", ringing_timer: 30,
    advanced_machine_detection: { behavior: "continue", mode: "default" },
  }],
  ["PUT", "/v1/calls/u", { action: "hangup" }],
  ["PUT", "/v1/calls/u", { action: "transfer", destination: { type: "ncco", ncco: [{
    action: "connect", eventUrl: [`${STATUS_URL}?leg=added`], eventMethod: "POST",
    from: "15005550006", timeout: 60, endpoint: [{ type: "phone", number: "14155550199" }],
  }] } }],
  ["PUT", "/v1/calls/u/dtmf", { digits: "12#" }],
];

test("[VX8] our requests match those Vonage's SDK makes", async () => {
  vendor.requests.length = 0;
  vendor.answer((_, response) => void response.writeHead(200).end(`{"uuid":"u"}`));
  assert.deepEqual(await atVendor.dial(dialOf()), { kind: "placed", callId: "u" });
  await atVendor.hangUp("u");
  const handover = {
    callId: "u", to: "+14155550199", callerId: "+15005550006", statusUrl: STATUS_URL,
  };
  await atVendor.transfer(handover);
  await atVendor.sendDtmf!("u", "12#");
  const ours = vendor.requests.map(({ method, url, body }) => [method, url, JSON.parse(body)]);
  assert.deepEqual(ours, BY_SDK);
  assert.ok(vendor.requests.every(({ headers }) => headers["content-type"] === "application/json"));
  const ncco = () => (JSON.parse(vendor.requests.at(-1)!.body) as {
    destination: { ncco: Record<string, unknown>[] };
  }).destination.ncco;
  await atVendor.transfer({ ...handover, to: "sip:desk@pbx.example", callerId: null });
  assert.deepEqual(ncco()[0]!.endpoint, [{ type: "sip", uri: "sip:desk@pbx.example" }]);
  assert.equal(ncco()[0]!.from, undefined);
  for (const [ringingMs, seconds] of [[1, 1], [29_001, 30], [600_000, 120]] as const) {
    await atVendor.dial(dialOf({ ringingMs, detectMachine: false }));
    const order = JSON.parse(vendor.requests.at(-1)!.body) as Record<string, unknown>;
    assert.deepEqual([order.ringing_timer, order.advanced_machine_detection], [seconds, undefined]);
  }
});

test("[VX9] a call order is sent once whatever happens, and is reported as placed, refused or unknown", async () => {
  const outcomes: OrderOutcome[] = [
    ["placed", 201, `{"uuid":"${UUID}","status":"started"}`, "placed", null],
    ["refused", 400, '{"type":"a","title":"Bad Request"}', "refused", /^Vonage answered 400, Bad Request$/, false],
    ["wrong key", 401, '{"type":"UNAUTHORIZED"}', "refused", /answered 401/, false],
    ["too fast", 429, "", "refused", /answered 429/, true],
    ["no id", 201, "{}", "unknown", /answered 201/, false],
    ["its gateway", 502, "", "unknown", /answered 502/, true],
    ["a dropped connection", 0, "", "unknown", /the call may have been placed/, false],
    ["silence", null, "", "unknown", /the call may have been placed/, false],
  ];
  await assertOrders(
    vendor, (status) => (status === null ? impatient : atVendor).dial(dialOf()), outcomes);
  const nobody = await startEndpoint();
  await nobody.close();
  const dialled = await callsAt(nobody.url).dial(dialOf());
  assert.ok(dialled.kind === "refused" && dialled.error.retryable);
});

test("[VX10] a call at the test double is placed, reported, transferred and ended; hanging up an ended call succeeds", async () => {
  const statusUrl = `${receiver.url}/status/1`;
  const { join } = dialOf();
  const placed = await calls.dial(dialOf({ join: { ...join, statusUrl } }));
  assert.ok(placed.kind === "placed");
  const { callId } = placed;
  receiver.requests.length = 0;
  for (const status of ["ringing", "answered"]) await vonage.report(callId, status);
  await vonage.detected(callId, "human");
  const told = receiver.requests.map((got) => {
    const header = (name: string) => String(got.headers[name]);
    const request = posted(null, { body: Buffer.from(got.body), header });
    assert.ok(calls.isGenuine(request));
    const report = calls.read(request)!;
    assert.equal(report.callId, callId);
    return report.events[0]?.kind;
  });
  assert.deepEqual(told, ["ringing", "answered", "answered_by"]);
  const handover = { callId, to: "+14155550199", callerId: null, statusUrl };
  await calls.transfer(handover);
  await calls.sendDtmf!(callId, "1");
  await calls.hangUp(callId);
  await calls.hangUp(callId);
  await assert.rejects(calls.transfer(handover),
    (error) => error instanceof ProviderError && /the call is over/.test(error.message) && !error.retryable);
  await assert.rejects(calls.sendDtmf!(callId, "1"), /Vonage answered 404/);
  await assert.rejects(calls.hangUp(".."), /there is no call with this id/);
  // A call of another region may answer so, and goes on: it is not said to be hung up.
  vendor.answer((_, response) => void response.writeHead(400).end("{}"));
  await assert.rejects(atVendor.hangUp("u"), (error) => error instanceof ProviderError && !error.retryable);
  await assert.rejects(atVendor.transfer({ ...handover, callId: "u" }), /Vonage answered 400/);
  vendor.answer((_, response) => void response.destroy());
  await assert.rejects(atVendor.hangUp("u"), (error) => error instanceof ProviderError && error.retryable);
});

test("[VX11] no input throws or is trusted, and an id never escapes its place in a URL", async () => {
  const anyValue = fc.oneof(
    fc.jsonValue(),
    fc.constantFrom("wss://a", UUID, "__proto__", "completed", "../..", "1?a=b#c", "442079460000"),
  );
  const anyBody = fc.record({
    uuid: anyValue, call_uuid: anyValue, status: anyValue, to: anyValue, from: anyValue,
    direction: anyValue, detail: anyValue, sip_code: anyValue,
  }, { requiredKeys: [] });
  fc.assert(fc.property(anyBody, fc.uint8Array(), fc.string({ unit: "binary" }), (body, bytes, text) => {
    const report = calls.read(posted(body, { url: `https://p.example/${text}` }));
    if (report) assert.match(report.callId, /^[\w-]{1,64}$/);
    calls.read(posted(null, { body: bytes }));
    calls.read(posted(null, { body: Buffer.from(`${"[".repeat(30_000)}${text}`) }));
    assert.equal(calls.isGenuine(posted(body, { header: () => text })), false);
  }));
  vendor.answer((_, response) => void response.writeHead(204).end());
  await fc.assert(fc.asyncProperty(fc.string({ unit: "binary" }), async (id) => {
    vendor.requests.length = 0;
    await atVendor.hangUp(id).catch((error: unknown) => assert.ok(error instanceof ProviderError));
    for (const { url } of vendor.requests) assert.match(url, /^\/v1\/calls\/[^/?#]+$/);
  }), { numRuns: 25 });
});
