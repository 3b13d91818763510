// What goes wrong or on during calls over SIP, with Debian's sipp at the other end, through the
// real server: who may call, keys, hold, messages that are lost or doubled, registration, and a
// server that stops. The scenarios are in test/sipp.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { testDataDir } from "#support/server.ts";
import { newNumber, openRtpSink, startSipWorld, type SipWorld } from "#support/sip/server-with-sip.ts";
import { createWire, requestText, SDP, type Wire } from "#support/sip/sip-phones.ts";
import { TRUNKS } from "#support/sip/sip-trunks.ts";
import { createSippPhones } from "#support/sip/sipp-phones.ts";
import { headerOf, noSipp, type SippOptions } from "#support/sip/sipp.ts";
import { startScriptedModel, type ScriptedModel } from "#support/vendors/scripted-model.ts";

const skip = noSipp();
const LIMITED = { skip, timeout: 180_000 };
const model: ScriptedModel | null = skip ? null : await startScriptedModel();
const rates = testDataDir();
writeFileSync(join(rates, "rates.json"), JSON.stringify([{ carrier: "sip", per_minute: 0.004 }]));
const world: SipWorld | null = skip ? null : await startSipWorld({
  PARLEY_MODEL_URL: model!.url, PARLEY_CARRIER_RATES_FILE: join(rates, "rates.json"),
});
const { start: sipp, caller, arrived, stop } = createSippPhones(() => world!);
const phones: Wire[] = [];
const PASSWORD = "s3cret-enough";
after(async () => {
  await stop();
  for (const phone of phones) await phone.close();
  await world?.server.close();
  await model?.close();
  rmSync(rates, { recursive: true });
});

/** What a caller receives that is not put through. */
async function refusal(number: string, more: Partial<SippOptions> = {}, scenario = "try") {
  const phone = await caller(scenario, number, more);
  const heard = (await phone.done).filter(({ direction, line }) =>
    direction === "received" && !/ 1\d\d /.test(line));
  return heard.at(-1)!;
}

test("[SC10] an unauthorised caller learns nothing about a number; an inactive assistant is unavailable", LIMITED, async () => {
  const elsewhere = await world!.trunk({ allowed_inbound_ips: ["192.0.2.1"] });
  await world!.assistant(elsewhere.id);
  const inactive = await world!.trunk();
  await world!.assistant(inactive.id, { status: "inactive" });
  const empty = await world!.trunk();
  const [unknown, forbidden] = [await refusal("+14155559999"), await refusal(elsewhere.number)];
  const alike = ({ text }: typeof unknown): string => text
    .replaceAll(/tag=\w+|branch=[\w-]+|Call-ID: .*|rport=\d+|received=.*|\+1\d{10}|:\d{4,5}/g, "");
  assert.equal(unknown.line, "SIP/2.0 404 Not Found");
  assert.equal(alike(forbidden), alike(unknown));
  assert.match((await refusal(inactive.number)).line, / 480 /);
  assert.match((await refusal(empty.number)).line, / 480 /);
  assert.equal(world!.news.events.length, 0);
});

test("[SC11] calls beyond the plan's lines get busy", LIMITED, async () => {
  const { key } = await world!.server.newAccount({ balance: "100.00" });
  const trunk = await world!.trunk({}, key);
  await world!.assistant(trunk.id, {}, key);
  const ten = await sipp({
    scenario: "load", to: world!.sipPort, numbers: [trunk.number], calls: 10, perSecond: 100,
    pauseMs: 3000,
  });
  await ten.saw("sent", "ACK", 9);
  assert.match((await refusal(trunk.number)).line, / 486 /);
  await ten.done;
  const one = await caller("call", trunk.number, { pauseMs: 0 });
  await one.done;
});

/** Calls over a bare socket, and answers the challenge of that algorithm as RFC 7616 has it. */
async function login(
  from: string, number: string, { algorithm = "SHA-256", username = "desk", password = PASSWORD },
) {
  const phone = await createWire(from);
  phones.push(phone);
  const own = { "Call-ID": `login-${phones.length}`, "From": `<sip:desk@pbx.example>;tag=t` };
  const say = (method: string, cseq: number, more: Record<string, string | null>, body = "") =>
    phone.say(world!.sipPort, requestText(method, phone, {
      ...own, CSeq: `${cseq} ${method}`, ...more,
    }, body).replace("sip:bob@", `sip:${number}@`));
  const sdp = SDP("phone").replace("4000", String(phone.peer.port));
  say("INVITE", 1, { Via: `SIP/2.0/UDP ${from}:${phone.peer.port};branch=z9hG4bKfirst` }, sdp);
  const { headers } = (await phone.heard.event("401")).message;
  say("ACK", 1, { Via: headers.get("Via"), To: headers.get("To") });
  const offered = headers.all("WWW-Authenticate");
  const nonce = /nonce="([^"]+)"/.exec(offered.find((one) =>
    one.includes(`algorithm=${algorithm}`))!)![1];
  const hash = (text: string): string =>
    createHash(algorithm.replace("-", "")).update(text).digest("hex");
  const uri = `sip:${number}@127.0.0.1`;
  const response = hash(`${hash(`${username}:parley:${password}`)}:${nonce}:00000001:c:auth:` +
    hash(`INVITE:${uri}`));
  say("INVITE", 2, {
    Authorization: `Digest username="${username}", realm="parley", nonce="${nonce}", uri="${uri}", ` +
      `response="${response}", algorithm=${algorithm}, qop=auth, nc=00000001, cnonce="c"`,
  }, sdp);
  const { kind: status, message } = await Promise.race(["200", "403", "404"].map((one) =>
    phone.heard.event(one)));
  say("ACK", 2, { Via: message.headers.get("Via"), To: message.headers.get("To") });
  const hangUp = () => say("BYE", 3, { To: message.headers.get("To") });
  return { offered, status, hangUp };
}

test("[SC12] a trunk with a login is challenged once and admitted with the right password, from any address", LIMITED, async () => {
  const loggingIn = {
    inbound_authorization_type: "auth", sip_username: "desk", sip_password: PASSWORD,
    sip_address: "127.0.0.9", allowed_inbound_ips: undefined,
  };
  const trunk = await world!.trunk(loggingIn);
  await world!.assistant(trunk.id);
  for (const [place, algorithm] of ["SHA-256", "MD5"].entries()) {
    const right = await login(`127.0.0.${place + 1}`, trunk.number, { algorithm });
    assert.deepEqual(right.offered.map((one) => /algorithm=([\w-]+)/.exec(one)?.[1]),
      ["SHA-256", "MD5"]);
    assert.ok(right.offered.every((one) => one.startsWith('Digest realm="parley"')));
    assert.equal(right.status, "200", algorithm);
    right.hangUp();
    await world!.when(await world!.nextCall(trunk.number, place), "ended_by_customer");
  }
  for (const wrong of [{ password: "guessed" }, { username: "nobody" }, { algorithm: "MD5", password: "" }]) {
    const { status } = await login("127.0.0.1", trunk.number, wrong);
    assert.equal(status, "403", JSON.stringify(wrong));
  }
  // Right name and password, but the number is somebody else's.
  const { key } = await world!.server.newAccount();
  const other = await world!.trunk({ ...loggingIn, sip_username: "other" }, key);
  assert.equal((await login("127.0.0.1", other.number, {})).status, "404");
});

const pcaps = existsSync("/usr/share/sip-tester/dtmf_2833_2.pcap") && process.getuid?.() === 0
  ? skip : skip || "sipp sends recorded packets only as root";
for (const [scenario, why] of [["keys", pcaps], ["keys-info", skip]] as const) {
  test(`[SC13] keys pressed during a call reach the assistant (${scenario})`, { skip: why, timeout: 180_000 }, async () => {
    model!.script(({ messages }) => ({
      tokens: ["keys ", JSON.stringify(messages.at(-1)?.content).replace(/\D/g, "")],
    }));
    const { number } = await world!.desk();
    const phone = await caller(scenario, number, { pauseMs: 700 });
    const callId = await arrived(phone, number);
    await replied(callId, "keys 42");
    await world!.server.call("POST", `/user/calls/${callId}/end`);
    await phone.done;
    model!.script(null);
  });
}

/** Once the assistant has begun to say it. */
async function replied(callId: number, words: string): Promise<void> {
  await new Promise<void>((resolve) => {
    const stop = world!.server.app.features.bus.subscribe(`call:${callId}`, (notice) => {
      const told = notice.kind === "committed" ? notice.event.json : JSON.stringify(notice);
      if (!told.includes(words)) return;
      stop();
      resolve();
    });
  });
}

test("[SC20] [CR347] [CR349] a call whose transfer is not taken continues with the assistant", LIMITED, async () => {
  model!.script(({ messages }) => messages.at(-1)?.role === "tool"
    ? { tokens: ["One ", "moment."] }
    : { toolCalls: [{ id: "c1", name: "transfer_call", arguments: "{}" }] });
  const { number } = await world!.desk({
    tools: [{ type: "call_transfer", description: "", phone_number: "+15550177" }],
  });
  const phone = await caller("refuse-refer", number, { pauseMs: 700 });
  const callId = await arrived(phone, number);
  await replied(callId, "could not put you through");
  await world!.server.call("POST", `/user/calls/${callId}/end`);
  await phone.done;
  model!.script(null);
  const call = await world!.when(callId, "ended_by_assistant");
  assert.match(String(call.transcript), /One moment\.\nAI: I am sorry, I could not put you/);
  const [tried, ...others] = call.transfers as Record<string, unknown>[];
  assert.deepEqual(
    [tried?.status, tried?.transfer_to, tried?.failure_reason, others.length],
    ["failed", "+15550177", "The other side answered 403.", 0]);
  assert.deepEqual([call.carrier_cost, call.total_cost], [0.004, 0.054]);
});

test("[SC14] a held call is silent, resumes where it was, and stays one call", LIMITED, async () => {
  const { number } = await world!.desk({ initial_message: "Hello and welcome. ".repeat(10) });
  const sink = await openRtpSink();
  const phone = await caller("hold", number, {
    pauseMs: 600, keys: { rtp_port: String(sink.port) },
  });
  const callId = await arrived(phone, number);
  const answeredAt = async (place: number): Promise<number> => {
    await phone.saw("received", "SIP/2.0 200", place);
    return performance.now();
  };
  const [heldMs, backMs] = [await answeredAt(1), await answeredAt(2)];
  const messages = await phone.done;
  await world!.when(callId, "ended_by_customer");
  const answers = messages.filter(({ direction, line }) =>
    direction === "received" && line.startsWith("SIP/2.0 200"));
  assert.match(answers[1]!.text, /a=recvonly/);
  assert.match(answers[2]!.text, /a=sendrecv/);
  const versions = answers.slice(0, 3).map(({ text }) => /o=\S+ (\d+) (\d+)/.exec(text)!.slice(1));
  assert.deepEqual(versions.map(([id]) => id), Array(3).fill(versions[0]![0]));
  assert.deepEqual(versions.map(([, version]) => Number(version)), [1, 2, 3]);
  const between = (from: number, to: number) =>
    sink.packets.filter(({ atMs }) => atMs > from && atMs < to).length;
  assert.ok(between(0, heldMs) > 20, `${between(0, heldMs)}`);
  assert.equal(between(heldMs + 60, backMs - 60), 0);
  assert.ok(between(backMs, backMs + 600) > 20, `${between(backMs, backMs + 600)}`);
  assert.equal(new Set(sink.packets.map(({ ssrc }) => ssrc)).size, 1);
  await sink.close();
});

test("[SC15] an answer whose ACK is lost is retransmitted, and the call stays one call", LIMITED, async () => {
  const { number } = await world!.desk();
  const phone = await caller("lost-ack", number, { pauseMs: 300 });
  const callId = await arrived(phone, number);
  const answers = (await phone.done).filter(({ direction, line, text }) =>
    direction === "received" && line.startsWith("SIP/2.0 200") && text.includes("INVITE"));
  assert.ok(answers.length >= 2);
  assert.equal(answers[0]!.text.trim(), answers[1]!.text.trim());
  const call = await world!.when(callId, "ended_by_customer");
  assert.equal(call.end_reason, "customer_hung_up");
});

test("[SC16] a duplicate INVITE rings and is answered once", LIMITED, async () => {
  const { number } = await world!.desk();
  const phone = await caller("twice", number, { pauseMs: 300 });
  const callId = await arrived(phone, number);
  await phone.done;
  await world!.when(callId, "ended_by_customer");
  assert.equal(world!.news.kinds().filter((kind) => kind === `arrived ${number}`).length, 1);
});

test("[SC17] a trunk with a login is registered and kept registered, and calls to the registered contact ring", LIMITED, async () => {
  const registrar = await sipp({
    scenario: "registrar", keys: { granted: "10" }, calls: 20,
  });
  const trunk = await world!.trunk({
    inbound_authorization_type: "auth", sip_username: "desk@pbx.example", sip_password: "s3cret-enough",
    sip_port: registrar.port, allowed_inbound_ips: undefined,
  });
  await world!.assistant(trunk.id);
  const [asked, shown] = [
    await registrar.saw("received", "REGISTER"), await registrar.saw("received", "REGISTER", 1),
  ];
  assert.equal(asked.line, "REGISTER sip:pbx.example SIP/2.0");
  assert.equal(headerOf(asked, "Authorization"), null);
  assert.match(headerOf(shown, "Authorization")!, /username="desk".*uri="sip:pbx\.example"/);
  assert.match(headerOf(shown, "To")!, /<sip:desk@pbx\.example>/);
  assert.match(headerOf(shown, "Contact")!, new RegExp(
    `<sip:trunk-${trunk.id}@127\\.0\\.0\\.1:${world!.sipPort}>`));
  await registrar.saw("sent", "SIP/2.0 200");
  const phone = await caller("call", `trunk-${trunk.id}`, {
    keys: { called: trunk.number }, pauseMs: 100,
  });
  const callId = await arrived(phone, trunk.number);
  await phone.done;
  const call = await world!.when(callId, "ended_by_customer");
  assert.equal(call.assistant_phone_number, trunk.number);
  // It comes again by itself; SI46 proves when, on a clock by hand.
  const again = await registrar.saw("received", "REGISTER", 2);
  assert.equal(headerOf(again, "Call-ID"), headerOf(shown, "Call-ID"));
  // A changed trunk takes leave and registers anew; one given up takes leave.
  await world!.server.call("PUT", `${TRUNKS}/${trunk.id}`, { body: { sip_username: "front@pbx.example" } });
  const leave = await registrar.saw("received", "REGISTER", 3);
  assert.equal(headerOf(leave, "Expires"), "0");
  assert.match(headerOf(leave, "To")!, /desk@/);
  const anew = await registrar.saw("received", "REGISTER", 4);
  assert.match(headerOf(anew, "To")!, /front@/);
  await registrar.saw("received", "REGISTER", 5);
  await registrar.saw("sent", "SIP/2.0 200", 3);
  const gone = await world!.server.call("DELETE", `/user/phone-numbers/${trunk.id}`);
  assert.equal(gone.status, 200, JSON.stringify(gone.body));
  assert.equal(headerOf(await registrar.saw("received", "REGISTER", 6), "Expires"), "0");
  await registrar.stop();
});

test("[SC19] an operator who ends a ringing call stops the ringing", LIMITED, async () => {
  const phone = await sipp({ scenario: "ring" });
  const { id } = await world!.trunk({ sip_port: phone.port });
  const assistant = await world!.assistant(id, { type: "outbound" });
  const callId = await world!.dial(assistant.id, newNumber());
  await world!.when(callId, "ringing");
  assert.equal((await world!.server.call("POST", `/user/calls/${callId}/end`)).status, 200);
  await phone.done;
  const call = await world!.when(callId, "failed");
  assert.deepEqual([call.end_reason, call.total_cost], ["operator", 0]);
});

test("[SC18] a server that stops hangs up, cancels what rings, and unregisters", LIMITED, async () => {
  const stopping = await startSipWorld();
  const registrar = await sipp({ scenario: "registrar", keys: { granted: "300" }, calls: 5 });
  await stopping.trunk({
    inbound_authorization_type: "auth", sip_port: registrar.port, allowed_inbound_ips: undefined,
  });
  await registrar.saw("sent", "SIP/2.0 200");
  const { number } = await stopping.desk();
  const talking = await sipp({ scenario: "call-stay", number, to: stopping.sipPort });
  const talkId = await stopping.nextCall(number);
  await stopping.when(talkId, "in-progress");
  const ringing = await sipp({ scenario: "ring" });
  const out = await stopping.trunk({ sip_port: ringing.port });
  const assistant = await stopping.assistant(out.id, { type: "outbound" });
  const ringId = await stopping.dial(assistant.id, newNumber());
  await stopping.when(ringId, "ringing");
  await stopping.server.close();
  await talking.done;
  await ringing.done;
  const leave = await registrar.saw("received", "REGISTER", 2);
  assert.equal(headerOf(leave, "Expires"), "0");
  assert.equal(stopping.statuses(talkId).at(-1), "completed");
  assert.equal(stopping.statuses(ringId).at(-1), "failed");
  await registrar.stop();
});
