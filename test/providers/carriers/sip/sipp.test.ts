// Calls over SIP with Debian's sipp at the other end, through the real server: what becomes of a
// call the telephone refuses, lets ring, takes, puts on hold or forgets, and what the call's record
// says about it. The scenarios are in test/sipp.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, test, type TestContext } from "node:test";
import { startEndpoint } from "#support/endpoint.ts";
import { newNumber, openRtpSink, startSipWorld, type SipWorld } from "#support/sip/server-with-sip.ts";
import { createSippPhones } from "#support/sip/sipp-phones.ts";
import { headerOf, noSipp, type SippOptions } from "#support/sip/sipp.ts";

const skip = noSipp();
const LIMITED = { skip, timeout: 180_000 };
const world: SipWorld | null = skip ? null : await startSipWorld();
const { start: sipp, caller, arrived, stop } = createSippPhones(() => world!);
after(async () => {
  await stop();
  await world?.server.close();
});

/** A telephone, the trunk to it, and an assistant that calls it. */
async function outbound(
  scenario: string, options: Partial<SippOptions> = {}, changes: object = {}, trunk: object = {},
) {
  const phone = await sipp({ scenario, ...options });
  const { id, number } = await world!.trunk({ sip_port: phone.port, ...trunk });
  const assistant = await world!.assistant(id, { type: "outbound", ...changes });
  const to = newNumber();
  return { phone, number, to, callId: await world!.dial(assistant.id, to) };
}

test("[SC1] a caller is answered, hears the greeting and hangs up; the record names both numbers", LIMITED, async () => {
  const { number } = await world!.desk();
  const sink = await openRtpSink();
  const phone = await caller("call", number, {
    pauseMs: 700, keys: { rtp_port: String(sink.port), caller: "+14155550123" },
  });
  const callId = await arrived(phone, number);
  await phone.done;
  const call = await world!.when(callId, "ended_by_customer");
  assert.deepEqual(
    [call.type, call.client_phone_number, call.assistant_phone_number, call.end_reason],
    ["inbound", "+14155550123", number, "customer_hung_up"]);
  assert.deepEqual(world!.statuses(callId), [
    "created", "in-progress", "ended", "ended_by_customer",
  ]);
  // A frame every 20 ms without a gap in numbers or time, the first one marked as a beginning.
  const { packets } = sink;
  assert.ok(packets.length >= 30, `${packets.length} packets`);
  assert.ok(packets[0]!.marker);
  for (const [at, packet] of packets.entries()) {
    const first = packets[0]!;
    assert.equal((packet.sequence - first.sequence) & 0xffff, at);
    assert.equal((packet.timestamp - first.timestamp) >>> 0, at * 160);
    assert.deepEqual([packet.payloadType, packet.payload.length], [0, 160]);
  }
  // Speech, not silence, from the beginning.
  assert.ok(packets.slice(0, 10).every(({ payload }) =>
    payload.some((code) => (code & 0x7f) < 0x60)));
  await sink.close();
});

/** What a telephone says to a call, and what the record says then. */
const REFUSALS: [string, string, string, string, string][] = [
  ["486 Busy Here", "", "busy", "busy", "busy"],
  ["600 Busy Everywhere", "", "busy", "busy", "busy everywhere"],
  ["603 Decline", "", "failed", "rejected", "decline"],
  ["404 Not Found", "", "failed", "carrier_failed", "not found"],
  ["302 Moved Temporarily", "", "failed", "carrier_failed", "moved"],
  ["480 Temporarily Unavailable", "", "no-answer", "no_answer", "unavailable"],
  ["500 Server Internal Error", "Reason: Q.850;cause=17;text=\"User busy\"", "busy", "busy", "busy, as a gateway says it"],
  ["500 Server Internal Error", "Reason: Q.850;cause=19", "no-answer", "no_answer", "no answer, as a gateway says it"],
];
const ADVICE: Record<string, string> = {
  404: "Check the number: the carrier does not know it.",
  302: "The called side redirected the call, which is not followed: call the other number, "
    + "or let the trunk follow redirects.",
};
for (const [status, extra, becomes, reason, what] of REFUSALS) {
  test(`[SC2] [SI141] a telephone that refuses: ${what}`, LIMITED, async () => {
    const keys = { status, ...(extra === "" ? {} : { extra }) };
    const { phone, callId } = await outbound("refuse", { keys });
    await phone.done;
    const call = await world!.when(callId, becomes);
    assert.deepEqual([call.end_reason, call.duration, call.total_cost], [reason, 0, 0]);
    if (reason === "carrier_failed") {
      assert.equal(call.failure_reason, `The call could not be put through: the trunk answered ${status}. `
        + ADVICE[status.slice(0, 3)]);
    } else {
      assert.match(call.failure_reason, /^(The number was busy|Nobody answered|The called side refused)/);
    }
    assert.deepEqual(world!.statuses(callId), ["created", becomes]);
  });
}

test("[SC3] a telephone rings as long as the assistant's setting: no answer, and the ringing ends", LIMITED, async () => {
  const { phone, callId } = await outbound("ring", {}, { ringing_time: 5 });
  await world!.when(callId, "ringing");
  const call = await world!.when(callId, "no-answer");
  assert.equal(call.total_cost, 0);
  const messages = await phone.done;
  const cancel = messages.find(({ line }) => line.startsWith("CANCEL"))!;
  const invite = messages.find(({ line }) => line.startsWith("INVITE"))!;
  // How long it is; that it is kept to proves SC86, on a clock by hand.
  assert.equal(headerOf(invite, "Expires"), "5");
  assert.equal(headerOf(cancel, "Via"), headerOf(invite, "Via"));
});

test("[SC4] an outbound call is dialled in the trunk's format, from its number, until the operator ends it", LIMITED, async () => {
  const formats = [["+e164", (to: string) => to], ["e164", (to: string) => to.slice(1)],
    ["national", (to: string) => to.slice(2)]] as const;
  for (const [format, spell] of formats) {
    const { phone, number, to, callId } = await outbound(
      "answer", {}, {}, { sip_calling_format: format, sip_username: "desk@pbx.example" });
    await world!.when(callId, "in-progress");
    assert.equal((await world!.server.call("POST", `/user/calls/${callId}/end`)).status, 200);
    const invite = (await phone.done).find(({ line }) => line.startsWith("INVITE"))!;
    assert.equal(invite.line, `INVITE sip:${spell(to)}@pbx.example SIP/2.0`);
    assert.match(headerOf(invite, "From")!, new RegExp(`<sip:\\${number}@pbx\\.example>;tag=`));
    assert.equal(headerOf(invite, "To"), `<sip:${spell(to)}@pbx.example>`);
    assert.equal(headerOf(invite, "P-Asserted-Identity"), `<sip:${number}@pbx.example>`);
    const call = await world!.when(callId, "ended_by_assistant");
    assert.deepEqual(
      [call.type, call.client_phone_number, call.assistant_phone_number, call.end_reason],
      ["outbound", to, number, "operator"]);
    assert.deepEqual(world!.statuses(callId), [
      "created", "ringing", "in-progress", "ended", "ended_by_assistant",
    ]);
  }
});

test("[SC5] a called telephone that hangs up ends the call as the customer", LIMITED, async () => {
  const { phone, callId } = await outbound("answer-hang-up", { pauseMs: 300 });
  await phone.done;
  const call = await world!.when(callId, "ended_by_customer");
  assert.deepEqual([call.end_reason, call.answered_by === ""], ["customer_hung_up", false]);
});

for (const [status, challenge, authorization] of [
  ["401 Unauthorized", "WWW-Authenticate", "Authorization"],
  ["407 Proxy Authentication Required", "Proxy-Authenticate", "Proxy-Authorization"],
] as const) {
  test(`[SC6] a telephone that requires name and password: ${status}`, LIMITED, async () => {
    const keys = { status, challenge };
    const trunk = { sip_username: "desk@pbx.example", sip_password: "s3cret" };
    const right = await outbound("challenge", { keys }, {}, trunk);
    await world!.when(right.callId, "in-progress");
    await world!.server.call("POST", `/user/calls/${right.callId}/end`);
    const invites = (await right.phone.done).filter(({ line }) => line.startsWith("INVITE"));
    assert.deepEqual(invites.map((one) => headerOf(one, "CSeq")), ["1 INVITE", "2 INVITE"]);
    assert.equal(headerOf(invites[0]!, authorization), null);
    const shown = headerOf(invites[1]!, authorization) ?? "";
    const part = (name: string): string =>
      new RegExp(`[ ,]${name}="?([^",]*)`).exec(shown)?.[1] ?? "";
    const uri = `sip:${right.to}@pbx.example`;
    const md5 = (text: string): string => createHash("md5").update(text).digest("hex");
    assert.deepEqual(
      [part("username"), part("realm"), part("nonce"), part("uri"), part("response")],
      ["desk", "sipp.example", "n0nce", uri, md5([
        md5("desk:sipp.example:s3cret"), "n0nce", part("nc"), part("cnonce"), "auth",
        md5(`INVITE:${uri}`),
      ].join(":"))]);
    const wrong = await outbound("challenge-again", { keys }, {}, trunk);
    await wrong.phone.done;
    const call = await world!.when(wrong.callId, "failed");
    assert.equal(call.end_reason, "carrier_failed");
  });
}

test("[SC7] a caller who gives up while it rings was not answered", LIMITED, async (t: TestContext) => {
  // Rings as long as nobody has said who is calling.
  const endpoint = await startEndpoint();
  t.after(endpoint.close);
  let release = (): void => undefined;
  endpoint.answer((_, response) => {
    release = () => void response.end("{}");
  });
  const { number } = await world!.desk({ inbound_webhook_url: `${endpoint.url}/who` });
  const phone = await caller("cancel", number, { pauseMs: 100 });
  const callId = await arrived(phone, number);
  await phone.done;
  release();
  const call = await world!.when(callId, "no-answer");
  assert.deepEqual([call.end_reason, call.total_cost], ["customer_hung_up", 0]);
});

test("[SC8] the greeting contains what the inbound webhook answered", LIMITED, async (t: TestContext) => {
  const endpoint = await startEndpoint();
  t.after(endpoint.close);
  endpoint.answer(({ body }, response) => {
    const told = JSON.parse(body) as Record<string, string>;
    const who = `Eva ${told.customer_phone} ${told.assistant_phone}`;
    response.end(JSON.stringify({ variables: { who } }));
  });
  const { number } = await world!.desk({
    inbound_webhook_url: `${endpoint.url}/who`, initial_message: "Hi {{who}}",
  });
  const phone = await caller("call", number, { pauseMs: 4500 });
  const callId = await arrived(phone, number);
  await phone.done;
  const call = await world!.when(callId, "ended_by_customer");
  assert.match(call.transcript as string, new RegExp(`^AI: Hi Eva \\+14155550199 \\${number}`));
});
