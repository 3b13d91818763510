// Calls over an account at Plivo: its REST interface, what it reports and what it asks for. Plivo
// is a double; what its own SDK (plivo 4.79.0) sends and signs stands here as recorded. No live
// account was tried.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import fc from "fast-check";
import { ProviderError } from "#core/faults.ts";
import { openCodec } from "#providers/carriers/hosted/dialects.ts";
import {
  createPlivoCalls, type PlivoCallsOptions,
} from "#providers/carriers/hosted/plivo-calls.ts";
import type {
  CarrierRequest, CallReport, HostedCalls, HostedDial,
} from "#providers/carriers/hosted/port.ts";
import { assertOrders, type OrderOutcome } from "#support/carriers/hosted-orders.ts";
import {
  PLIVO_ID, PLIVO_TOKEN, plivoHeaders, plivoSignature, startPlivoServer,
} from "#support/carriers/plivo-server.ts";
import { startEndpoint, type EndpointRequest } from "#support/endpoint.ts";

const receiver = await startEndpoint();
const plivo = await startPlivoServer();
const closings: (() => Promise<void>)[] = [receiver.close, plivo.close];
after(async () => {
  for (const close of closings.reverse()) await close();
});

const TOKEN = "0b4ef1a6-3f0e-4c0a-8a51-0c3a5a7d8e9f";
const STREAM_URL = "wss://p.example/carriers/plivo/media";
const XML = { status: 200, contentType: "text/xml; charset=utf-8" };
const documentOf = (content: string) =>
  `<?xml version="1.0" encoding="UTF-8"?><Response>${content}</Response>`;

function callsAt(url: string, more: Partial<PlivoCallsOptions> = {}): HostedCalls {
  const calls = createPlivoCalls({ url, authId: PLIVO_ID, authToken: PLIVO_TOKEN, ...more });
  closings.push(calls.close);
  return calls;
}

const calls = callsAt(plivo.url);

const request = (more: Partial<HostedDial> = {}): HostedDial => ({
  to: "+14155550100", from: "+14155550111", ringingMs: 30_000, detectMachine: true,
  join: { url: STREAM_URL, parameters: { token: TOKEN }, statusUrl: `${receiver.url}/status/1` },
  ...more,
});

/** A webhook as it comes in, rightly signed unless told. */
function webhook(
  url: string, fields: Record<string, string>, headers = plivoHeaders("POST", url, fields),
): CarrierRequest {
  const all: Record<string, string> = { "Content-Type": "application/x-www-form-urlencoded", ...headers };
  const shown = new Map(Object.entries(all).map(([name, value]) => [name.toLowerCase(), value]));
  return {
    method: "POST", url, header: (name) => shown.get(name) ?? null,
    body: Buffer.from(String(new URLSearchParams(fields))),
  };
}

const asCarrier = ({ url, headers, body }: EndpointRequest): CarrierRequest => ({
  method: "POST", url: receiver.url + url,
  header: (name) => (typeof headers[name] === "string" ? headers[name] : null),
  body: Buffer.from(body),
});

const STATUS_URL = "https://p.example/carriers/plivo/status/1";
const reported = (fields: Record<string, string>, url = STATUS_URL): CallReport => {
  const report = calls.read(webhook(url, { CallUUID: "c1", Direction: "outbound", ...fields }));
  assert.ok(report);
  return report;
};

// What Plivo reports

test("[PX1] statuses, causes and answering machine results become events of a leg", () => {
  const endings: [string, string | null, string][] = [
    ["completed", "4000", "far_hung_up"], ["completed", "4010", "far_hung_up"], ["completed", null, "far_hung_up"],
    ["completed", "1000", "we_hung_up"], ["cancel", "1000", "we_hung_up"], ["cancel", null, "we_hung_up"],
    ["busy", "3010", "busy"], ["busy", null, "busy"], ["busy", "3020", "rejected"], ["failed", "3100", "busy"],
    ["no-answer", "3000", "no_answer"], ["no-answer", null, "no_answer"], ["timeout", "6010", "no_answer"],
    ["no-answer", "3110", "rejected"], ["failed", "3020", "rejected"],
    ["timeout", null, "failed"], ["timeout", "3070", "failed"], ["failed", "2000", "failed"],
    ["failed", "toString", "failed"],
  ];
  for (const [CallStatus, code, cause] of endings) {
    const { events } = reported({ Event: "Hangup", CallStatus, ...(code === null ? {} : { HangupCauseCode: code }) });
    assert.deepEqual(events, [{ kind: "ended", cause }], `${CallStatus} ${code}`);
  }
  for (const CallStatus of ["", "queued", "toString", "__proto__"]) assert.deepEqual(reported({ CallStatus }).events, []);
  assert.deepEqual(reported({ Event: "Ring", CallStatus: "ringing" }).events, [{ kind: "ringing" }]);
  assert.deepEqual(reported({ Event: "StartApp", CallStatus: "in-progress" }).events, [{ kind: "answered" }]);
  const detected = (Machine: string) => reported({ Event: "MachineDetection", CallStatus: "in-progress", Machine }).events;
  assert.deepEqual(detected("true"), [{ kind: "answered" }, { kind: "answered_by", by: "machine" }]);
  assert.deepEqual(detected("false"), [{ kind: "answered" }, { kind: "answered_by", by: "human" }]);
  assert.deepEqual(detected("maybe"), [{ kind: "answered" }]);
  assert.deepEqual(reported({ CallStatus: "completed", Machine: "true" }).events,
    [{ kind: "answered_by", by: "machine" }, { kind: "ended", cause: "far_hung_up" }]);
});

test("[PX2] what Plivo's SDK accepts as genuine is accepted here, and nothing else", () => {
  // [method, address, nonce, fields, signature]: validateV3Signature of the SDK takes each.
  const cases: ["GET" | "POST", string, string, Record<string, string>, string][] = [
    ["POST", `${STATUS_URL}?then=eyJraW5kIjoic3RyZWFtIn0`, "05429567804466091622", {
      CallUUID: "c1", RequestUUID: "c1", Direction: "outbound", From: "14155550111", To: "14155550100",
      CallStatus: "in-progress", Event: "StartApp",
    }, "/QIu5ceFWNYp9o1/647QI0iPf7HmTFiKQyxsO4KVPJU="],
    ["POST", "https://p.example/carriers/plivo/voice", "1", {
      CallUUID: "c1", Direction: "inbound", From: "anonymous", To: "14155550111", CallStatus: "ringing",
      Event: "StartApp", CallerName: '+1 415 & Söhne = "x"',
    }, "iYo1AG0TQ+VRbfxqjMkIrmoPjHssBjNQR2HfFlbQ9Ek="],
    ["GET", "https://p.example/carriers/plivo/media", "77", {}, "X1McneR8RA2BiCJfR2RAp5C8+MV9vo0a3pq/b4bFy1k="],
    ["GET", "wss://p.example/carriers/plivo/media", "77", {}, "00ZMQ1CAjt2quSI+nGpDoKJNFsCCcOk6MggbWgxltYY="],
  ];
  for (const [method, url, nonce, fields, signature] of cases) {
    assert.equal(plivoSignature(method, url, nonce, fields), signature, "the double signs as the SDK does");
    const headers = { "X-Plivo-Signature-V3": signature, "X-Plivo-Signature-V3-Nonce": nonce };
    const genuine: CarrierRequest = {
      ...webhook(url, fields, headers), method, url,
      ...(method === "GET" ? { body: Buffer.alloc(0) } : {}),
    };
    assert.equal(calls.isGenuine(genuine), true, url);
    const main = { "X-Plivo-Signature-V3": "AAAA", "X-Plivo-Signature-Ma-V3": signature, "X-Plivo-Signature-V3-Nonce": nonce };
    assert.equal(calls.isGenuine({ ...genuine, header: webhook(url, fields, main).header }), true, "by the main account");
    const forgeries: [string, Partial<CarrierRequest>][] = [
      ["another address", { url: `${url}x` }],
      ["no signature", { header: webhook(url, fields, {}).header }],
      ...(method === "GET" ? [] : [
        ["a field more", { body: Buffer.from(`${String(new URLSearchParams(fields))}&a=b`) }],
        ["no field", { body: Buffer.alloc(0) }],
        ["no form", { header: (name) => (name === "content-type" ? "text/plain" : genuine.header(name)) }],
      ] satisfies [string, Partial<CarrierRequest>][]),
    ];
    for (const [what, forged] of forgeries) {
      assert.equal(calls.isGenuine({ ...genuine, ...forged }), false, `${what}: ${url}`);
    }
    assert.equal(callsAt(plivo.url, { authToken: "another" }).isGenuine(genuine), false);
  }
  // Nothing covers a body that is no form, so it is nobody's.
  const bare = webhook(STATUS_URL, {}, { ...plivoHeaders("POST", STATUS_URL), "Content-Type": "application/json" });
  assert.deepEqual([calls.isGenuine(bare), calls.isGenuine({ ...bare, body: Buffer.from('{"CallUUID":"c1"}') })], [true, false]);
  // A WebSocket is signed as what it is, or as the request that opens it.
  const socket = { ...webhook("", {}), method: "GET", url: STREAM_URL, body: Buffer.alloc(0) } as const;
  for (const signedAs of [STREAM_URL, "https://p.example/carriers/plivo/media"]) {
    const { header } = webhook("", {}, plivoHeaders("GET", signedAs));
    assert.equal(calls.isGenuine({ ...socket, header }), true, signedAs);
  }
  assert.equal(calls.signsSockets, true);
});

// A call

test("[PX3] a call is placed, reports come back for the right call, and a stream is what Plivo is told", async () => {
  receiver.requests.length = 0;
  const placed = await calls.dial(request());
  assert.ok(placed.kind === "placed");
  const { callId } = placed;
  await plivo.ring(callId);
  await plivo.pickUp(callId);
  await plivo.detect(callId, true);
  await plivo.end(callId);
  assert.equal(receiver.requests.length, 4);
  const reports = receiver.requests.map((got) => {
    assert.ok(calls.isGenuine(asCarrier(got)));
    const { events, reply, ...report } = calls.read(asCarrier(got))!;
    assert.deepEqual(report, {
      callId, from: "+14155550111", to: "+14155550100", isOffer: false,
    });
    return { kinds: events.map(({ kind }) => kind), reply };
  });
  const stream = documentOf('<Stream bidirectional="true" keepCallAlive="true" '
    + `contentType="audio/x-mulaw;rate=8000" extraHeaders="token=${TOKEN}">${STREAM_URL}</Stream>`);
  assert.deepEqual(reports, [
    { kinds: ["ringing"], reply: null },
    { kinds: ["answered"], reply: { ...XML, body: stream } },
    { kinds: ["answered", "answered_by"], reply: null },
    { kinds: ["ended"], reply: null },
  ]);
});

test("[PX4] our requests match those Plivo's SDK makes", async () => {
  const vendor = await startEndpoint();
  closings.push(vendor.close);
  vendor.answer((_, response) => void response.writeHead(404).end('{"error":"not found"}'));
  const statusUrl = "https://p.example/s/1";
  const ours = callsAt(`${vendor.url}/`);
  const join = { ...request().join, statusUrl };
  await ours.dial(request({ join }));
  await ours.dial(request({ join, detectMachine: false, ringingMs: 1 }));
  await ours.hangUp("c1");
  await assert.rejects(ours.transfer({ callId: "c1", to: "+14155550199", callerId: null, statusUrl }));
  const asked = vendor.requests.map(({ method, url, body, headers }) => {
    assert.equal(headers.authorization, `Basic ${Buffer.from(`${PLIVO_ID}:${PLIVO_TOKEN}`).toString("base64")}`);
    return [method, url, body === "" ? {} : JSON.parse(body) as Record<string, unknown>] as const;
  });
  const root = `/v1/Account/${PLIVO_ID}`;
  // As plivo 4.79.0 sends them, but for what stands in the query of an address.
  const { answer_url } = asked[0]![2];
  const { aleg_url } = asked[4]![2];
  const dial = {
    answer_method: "POST", ring_url: statusUrl, ring_method: "POST", hangup_url: statusUrl,
    hangup_method: "POST", ring_timeout: 30, from: "14155550111", to: "14155550100", answer_url,
  };
  const detection = { machine_detection: "true", machine_detection_url: statusUrl, machine_detection_method: "POST" };
  assert.deepEqual(asked, [
    ["POST", `${root}/Call/`, { ...dial, ...detection }],
    ["POST", `${root}/Call/`, { ...dial, ring_timeout: 1 }],
    ["DELETE", `${root}/Call/c1/`, {}],
    ["DELETE", `${root}/Request/c1/`, {}],
    ["POST", `${root}/Call/c1/`, { legs: "aleg", aleg_url, aleg_method: "POST" }],
  ]);
  for (const url of [answer_url, aleg_url]) assert.match(String(url), /^https:\/\/p\.example\/s\/1\?then=[\w-]+$/);
});

test("[PX5] a call order is sent once whatever happens, and is reported as placed, refused or unknown", async () => {
  const vendor = await startEndpoint();
  closings.push(vendor.close);
  const ours = callsAt(vendor.url);
  const impatient = callsAt(vendor.url, { limits: { answerMs: 1000 } });
  const outcomes: OrderOutcome[] = [
    ["placed", 201, '{"request_uuid":"c1","message":"call fired"}', "placed", null],
    ["in bulk", 201, '{"request_uuid":["c1","c2"]}', "unknown", /^Plivo answered 201$/, false],
    ["refused", 400, '{"error":"from parameter is invalid"}', "refused", /^Plivo answered 400, from parameter is invalid$/, false],
    ["wrong token", 401, "Could not verify your access level", "refused", /answered 401/, false],
    ["too fast", 429, "{}", "refused", /answered 429/, true],
    ["its gateway", 502, "<html>", "unknown", /answered 502/, true],
    ["a dropped connection", 0, "", "unknown", /the call may have been placed/, false],
    ["silence", null, "", "unknown", /the call may have been placed/, false],
  ];
  await assertOrders(
    vendor, (status) => (status === null ? impatient : ours).dial(request()), outcomes);
});

test("[PX6] a queued, ringing or running call is hung up; for an ended one that succeeds too", async () => {
  const told = async (state: "queued" | "ringing" | "live") => {
    const placed = await calls.dial(request());
    assert.ok(placed.kind === "placed");
    const { callId } = placed;
    if (state !== "queued") await plivo.ring(callId);
    if (state === "live") await plivo.pickUp(callId);
    const earlier = plivo.received.events.length;
    await calls.hangUp(callId);
    assert.equal(plivo.call(callId).state, "over", state);
    const kinds = () => plivo.received.events.slice(earlier).map(({ kind }) => kind).filter((kind) => !kind.includes(" "));
    const first = kinds();
    await calls.hangUp(callId);
    return [first, kinds().slice(first.length)];
  };
  assert.deepEqual(await told("queued"), [["hangup", "cancel"], ["hangup", "cancel"]]);
  assert.deepEqual(await told("ringing"), [["hangup"], ["hangup", "cancel"]]);
  assert.deepEqual(await told("live"), [["hangup"], ["hangup", "cancel"]]);
  plivo.behave(() => ({ status: 500, body: {} }));
  await assert.rejects(calls.hangUp("c1"), (error) => error instanceof ProviderError && error.retryable);
  plivo.behave(({ kind }) => (kind === "cancel" ? { status: 401, body: {} } : "pass"));
  await assert.rejects(calls.hangUp("c1"), /Plivo answered 401/);
  plivo.behave(null);
  const earlier = plivo.received.events.length;
  for (const id of ["", "..", "a".repeat(513)]) await assert.rejects(calls.hangUp(id), /there is no call with this id/);
  assert.equal(plivo.received.events.length, earlier);
  await calls.hangUp("../../Other/Call/c1?a=b#c");
  assert.match(plivo.received.events.at(-1)!.path, /^\/Request\/[^/?#]+\/$/);
});

test("[PX7] a call is transferred to a number or SIP address by the document Plivo fetches; an ended one is not", async () => {
  receiver.requests.length = 0;
  const placed = await calls.dial(request());
  assert.ok(placed.kind === "placed");
  const { callId } = placed;
  await plivo.pickUp(callId);
  const { statusUrl } = request().join;
  const handedOn = async (to: string, callerId: string | null) => {
    await calls.transfer({ callId, to, callerId, statusUrl });
    await plivo.follow(callId);
    const asked = asCarrier(receiver.requests.at(-1)!);
    assert.ok(calls.isGenuine(asked));
    return calls.read(asked)?.reply;
  };
  assert.deepEqual(await handedOn("+14155550199", "+14155550111"), { ...XML, body: documentOf(
    '<Dial callerId="14155550111" timeout="60"><Number>14155550199</Number></Dial>') });
  assert.deepEqual(await handedOn("sip:a&b@x.example", null), { ...XML, body: documentOf(
    '<Dial timeout="60"><User>sip:a&amp;b@x.example</User></Dial>') });
  await plivo.end(callId);
  await assert.rejects(calls.transfer({ callId, to: "+14155550199", callerId: null, statusUrl }),
    (error) => error instanceof ProviderError && /the call is over/.test(error.message) && !error.retryable);
  plivo.behave(() => ({ status: 400, body: { error: "invalid" } }));
  await assert.rejects(calls.transfer({ callId, to: "+14155550199", callerId: null, statusUrl }), /Plivo answered 400/);
  plivo.behave(null);
  // Keys go over the stream.
  assert.equal(calls.sendDtmf, null);
});

test("[PX8] an inbound call is an offer until it ends, and is answered or refused with a document", async () => {
  const { statusUrl } = request().join;
  const arrived = { CallUUID: "c2", Direction: "inbound", From: "14155550100", To: "14155550111", Event: "StartApp", CallStatus: "ringing" };
  const { events: _events, ...report } = calls.read(webhook(statusUrl, arrived))!;
  assert.deepEqual(report, {
    callId: "c2", from: "+14155550100", to: "+14155550111", isOffer: true, reply: null,
  });
  const over = calls.read(webhook(statusUrl, { ...arrived, Event: "Hangup", CallStatus: "completed" }));
  assert.equal(over?.isOffer, false);
  assert.match((await calls.answer("c2", request().join)).body, /^<\?xml [^>]+><Response><Stream [^>]+>wss:[^<]+<\/Stream><\/Response>$/);
  assert.deepEqual(await calls.refuse("c2", "busy"), { ...XML, body: documentOf('<Hangup reason="busy"/>') });
  assert.deepEqual(await calls.refuse("c2", "rejected"), { ...XML, body: documentOf('<Hangup reason="rejected"/>') });
});

test("[PX9] numbers have a plus here and none at Plivo; what is not a number stays as it is", async () => {
  const spelt: [string, string][] = [
    ["917658035735", "+917658035735"], ["+14155550100", "+14155550100"], ["266696687", "+266696687"],
    ["anonymous", "anonymous"], ["sip:a@b.example", "sip:a@b.example"], ["08012345678", "08012345678"],
    ["1", "1"], ["1234567890123456", "1234567890123456"], ["", ""],
  ];
  for (const [theirs, ours] of spelt) {
    const { from, to } = reported({ From: theirs, To: theirs });
    assert.deepEqual([from, to], [ours, ours]);
  }
  const { from, to, isOffer } = calls.read(webhook(STATUS_URL, { RequestUUID: "c9", Direction: "up" }))!;
  assert.deepEqual([from, to, isOffer], [null, null, false]);
  await calls.dial(request({ to: "sip:a@b.example", from: "+4930123456" }));
  const { body } = plivo.received.events.findLast(({ kind }) => kind === "dial")!;
  assert.deepEqual([body.to, body.from], ["sip:a@b.example", "4930123456"]);
});

test("[PX10] stream parameters come back in its start; those that would not are refused", async () => {
  const { body } = await calls.answer("c1", request().join);
  const extraHeaders = /extraHeaders="([^"]*)"/.exec(body)?.[1] ?? "";
  for (const extra_headers of [extraHeaders, `{X-PH-token: ${TOKEN}}`]) {
    const [start] = openCodec("plivo").receive(JSON.stringify({
      event: "start", start: { callId: "c1", streamId: "s1" }, extra_headers,
    }));
    assert.deepEqual(start?.kind === "start" && [start.callSid, start.parameters], ["c1", { token: TOKEN }]);
  }
  for (const parameters of [
    { token: "a,b=c" }, { token: "a;b" }, { token: "" }, { "": "a" }, { "to ken": "a" }, { token: "ä" },
    { token: "a".repeat(507) },
  ]) {
    await assert.rejects(calls.answer("c1", { ...request().join, parameters }), /does not return these/);
  }
  assert.ok((await calls.answer("c1", { ...request().join, parameters: { token: "a".repeat(506) } })).body.includes("aaa"));
});

test("[PX29] parsing parameters is fast, whatever their length", () => {
  const blanks = " ".repeat(4000);
  for (const extra_headers of [blanks, `${blanks}X-PH-token${blanks}`, `token=a${blanks}b`]) {
    const begun = performance.now();
    const [start] = openCodec("plivo").receive(JSON.stringify({
      event: "start", start: { callId: "c1", streamId: "s1" },
      extra_headers: `X-PH-key${" ".repeat(9)}: a;${extra_headers}`,
    }));
    assert.ok(performance.now() - begun < 500);
    assert.deepEqual(start?.kind === "start" && start.parameters, { key: "a" });
  }
});

test("[PX11] no input throws, and only well-formed instructions are answered", () => {
  const then = (value: unknown) =>
    `${STATUS_URL}?then=${Buffer.from(typeof value === "string" ? value : JSON.stringify(value)).toString("base64url")}`;
  const replyTo = (url: string) => reported({ CallStatus: "in-progress" }, url).reply;
  const stream = { kind: "stream", url: STREAM_URL, parameters: { token: TOKEN } };
  assert.ok(replyTo(then(stream)));
  assert.equal(reported({ CallStatus: "completed" }, then(stream)).reply, null, "nothing is asked of a call that is over");
  for (const bad of [
    "", "{", "null", "[]", {}, { ...stream, kind: "dail" }, { ...stream, url: 1 }, { ...stream, parameters: { token: 1 } },
    { ...stream, parameters: null }, { ...stream, parameters: { token: '"/><Dial>' } }, { kind: "dial", to: "", callerId: null },
    { kind: "dial", to: "1" }, { kind: "dial", to: ["1"], callerId: null },
  ]) assert.equal(replyTo(then(bad)), null, JSON.stringify(bad));
  const evil = replyTo(then({ kind: "dial", to: '</Number><Number>+1900"', callerId: '"><x/>' }))!;
  assert.equal(evil.body, documentOf('<Dial callerId="&quot;&gt;&lt;x/&gt;" timeout="60"><Number>&lt;/Number&gt;&lt;Number&gt;+1900&quot;</Number></Dial>'));
  const wellFormed = (text: string) => text.toWellFormed();
  const names = fc.constantFrom("CallUUID", "RequestUUID", "Direction", "From", "To", "CallStatus", "HangupCauseCode", "Machine", "Event");
  const values = fc.oneof(fc.string({ unit: "binary" }), fc.constantFrom("inbound", "ringing", "completed", "__proto__"));
  const anyRequest = fc.record({
    method: fc.constantFrom<"GET" | "POST">("GET", "POST"),
    url: fc.oneof(fc.string({ unit: "binary" }), fc.string().map((text) => `${STATUS_URL}?then=${text}`), fc.json().map(then)),
    header: fc.oneof(fc.constant(null), fc.string(), fc.constant("application/x-www-form-urlencoded")).map((value) => () => value),
    body: fc.oneof(fc.uint8Array(), fc.array(fc.tuple(names, values)).map((pairs) =>
      Buffer.from(String(new URLSearchParams(pairs.map((pair) => pair.map(wellFormed))))))),
  });
  fc.assert(fc.property(anyRequest, (one) => {
    assert.equal(calls.isGenuine(one), false);
    const report = calls.read(one);
    assert.ok(report === null || (report.callId !== "" && one.method === "POST"));
  }));
  const fields = { CallUUID: "c1", CallStatus: "ringing" };
  const json = { ...webhook(STATUS_URL, fields), header: () => "application/json" };
  const opening = { ...webhook(STATUS_URL, fields), method: "GET" } as const;
  for (const one of [opening, json, webhook(STATUS_URL, { a: "b" })]) {
    assert.equal(calls.read(one), null);
  }
});
