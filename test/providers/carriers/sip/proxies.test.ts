// What telephone systems and proxies that are strict want of a trunk: their own port in what is
// addressed to them, and proof within calls that they brought.
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { after } from "node:test";
import { failureOf } from "#features/calls/records/failures.ts";
import type { LegEvent, Offer } from "#providers/carriers/port.ts";
import type { SipRequest } from "#providers/carriers/sip/grammar/message.ts";
import { writeRtpHeader } from "#providers/carriers/sip/media/rtp.ts";
import type { TrunkSetup } from "#providers/carriers/sip/trunks/trunk.ts";
import { identityOf, routeTo } from "#providers/carriers/sip/trunks/trunk-roster.ts";
import { test } from "#support/bounded-test.ts";
import { createReceived } from "#support/received.ts";
import {
  caughtUp, contactOf, count, createCarrierTo, inviteAt, request, trunkOf,
} from "#support/sip/sip-hops.ts";
import { createWire, requestText, responseText, SDP, type Wire } from "#support/sip/sip-phones.ts";

const open: { close(): Promise<unknown> }[] = [];
after(async () => {
  for (const it of open.reverse()) await it.close();
});

const CHALLENGE = 'Digest realm="pbx", nonce="n1", qop="auth"';

async function trunkAt(changes: (port: number) => Partial<TrunkSetup>) {
  const far = await createWire();
  const offers = createReceived<{ kind: "offer"; offer: Offer }>();
  const carrier = await createCarrierTo([far], changes(far.peer.port), undefined, undefined,
    (offer) => offers.receive({ kind: "offer", offer }));
  open.push(far, carrier);
  return { far, offers, ...carrier };
}

test("[SC215] a trunk with its own port is addressed with it, a proxy with its transport too", async () => {
  const named = await trunkAt((port) => ({ address: "127.0.0.1", port }));
  named.dial();
  const plain = await inviteAt(named.far);
  assert.equal(plain.uri, `sip:+14155550199@127.0.0.1:${named.far.peer.port}`);
  // A name has no port: RFC 3261, 19.1.1.
  assert.equal(plain.headers.get("To"), "<sip:+14155550199@127.0.0.1>");
  assert.match(plain.headers.get("From")!, /^<sip:\+14155550100@127\.0\.0\.1>;tag=/);
  const proxied = await trunkAt((port) => ({
    address: "127.0.0.1", port, username: "alice@pbx.example", outboundProxy: true,
  }));
  proxied.dial();
  const routed = await inviteAt(proxied.far);
  assert.equal(routed.uri, "sip:+14155550199@pbx.example");
  assert.equal(routed.headers.get("Route"), `<sip:127.0.0.1:${proxied.far.peer.port};lr>`);
  const routes = [{}, { port: 5060 }, { port: 5080, transport: "tcp" },
    { port: 5061, transport: "tls" }, { address: "::1", port: 5070 }] as const;
  assert.deepEqual(routes.map((changes) => routeTo(trunkOf(changes))), [
    "<sip:sip.example.com;lr>", "<sip:sip.example.com;lr>",
    "<sip:sip.example.com:5080;transport=tcp;lr>", "<sip:sip.example.com;transport=tls;lr>",
    "<sip:[::1]:5070;lr>",
  ]);
  assert.equal(identityOf(trunkOf({ port: 5080 })).authority, "sip.example.com:5080");
});

type Trunk = Awaited<ReturnType<typeof trunkAt>>;

/** Our BYE in a call that `far` brings, where its Contact leads to. */
async function goodbyeTo(
  far: Wire, { offers, at, inbound }: Pick<Trunk, "offers" | "at" | "inbound">, contact = far,
): Promise<SipRequest> {
  const { peer: { host, port } } = contact;
  const lines = { Contact: `<sip:wire@${host}:${port}>` };
  far.say(at, requestText("INVITE", far, lines, SDP("wire"))
    .replace("sip:bob@", "sip:+14155550100@"));
  const { offer } = await offers.event("offer");
  const leg = inbound.answer(offer.id, createReceived<LegEvent>().receive);
  const { message } = await far.heard.event("200");
  const within = Object.fromEntries(["From", "To", "Call-ID"].map((name) =>
    [name, message.headers.get(name)]));
  far.say(at, requestText("ACK", far, { ...within, CSeq: "1 ACK" }));
  leg.hangUp();
  return request(await contact.heard.event("BYE"));
}

test("[SI131] a telephone system that challenges our BYE gets credentials", async () => {
  const { far, offers, at, inbound } = await trunkAt(() => ({}));
  const first = await goodbyeTo(far, { offers, at, inbound });
  assert.equal(first.headers.get("Proxy-Authorization"), null);
  far.say(at, responseText(first, 407, [`Proxy-Authenticate: ${CHALLENGE}`]));
  const second = request(await far.heard.event("BYE", 1));
  assert.match(second.headers.get("Proxy-Authorization")!, /^Digest username="alice", realm="pbx"/);
  far.say(at, responseText(second, 200));
});

test("[SI133] a caller from an admitted address that is not the trunk's own gets no proof of its password", async () => {
  const { far, offers, at, inbound } = await trunkAt(() => ({ address: "127.0.0.9", port: 5060 }));
  const bye = await goodbyeTo(far, { offers, at, inbound });
  far.say(at, responseText(bye, 401, [`WWW-Authenticate: ${CHALLENGE}`]));
  await caughtUp(far, at);
  assert.equal(count(far, "BYE"), 1);
});

test("[SI133] nor does the address in a caller's Contact", async () => {
  const { far, offers, at, inbound } = await trunkAt(() => ({}));
  const elsewhere = await createWire("127.0.0.2");
  open.push(elsewhere);
  const bye = await goodbyeTo(far, { offers, at, inbound }, elsewhere);
  elsewhere.say(at, responseText(bye, 407, [`Proxy-Authenticate: ${CHALLENGE}`]));
  await caughtUp(elsewhere, at);
  assert.equal(count(elsewhere, "BYE"), 1);
});

test("[SI133] nor does a callee that answers from elsewhere: not in ACK or BYE, challenged or not", async () => {
  const { far, at, dial } = await trunkAt(() => ({}));
  const elsewhere = await createWire("127.0.0.2");
  open.push(elsewhere);
  const { leg, received } = dial();
  far.say(at, responseText(await inviteAt(far), 407, [`Proxy-Authenticate: ${CHALLENGE}`]));
  const proven = await inviteAt(far, 1);
  assert.match(proven.headers.get("Proxy-Authorization")!, /^Digest username="alice", realm="pbx"/);
  far.say(at, responseText(proven, 200, [contactOf(elsewhere)], SDP("answer")));
  await received.event("answered");
  const ack = request(await elsewhere.heard.event("ACK"));
  assert.equal(ack.headers.get("Proxy-Authorization"), null);
  leg.hangUp();
  const bye = request(await elsewhere.heard.event("BYE"));
  assert.equal(bye.headers.get("Proxy-Authorization"), null);
  elsewhere.say(at, responseText(bye, 401, [`WWW-Authenticate: ${CHALLENGE}`]));
  await caughtUp(elsewhere, at);
  assert.equal(count(elsewhere, "BYE"), 1);
});

test("[SI142] a call that ends without an ACK or a refresh says so and what to check", async () => {
  const bring = async (changes: Record<string, string>, acknowledged: boolean) => {
    const { far, offers, at, inbound, system } = await trunkAt(() => ({}));
    // On hold: no sound is waited for.
    far.say(at, requestText("INVITE", far, changes, `${SDP("wire")}a=inactive\r\n`)
      .replace("sip:bob@", "sip:+14155550100@"));
    const { offer } = await offers.event("offer");
    const received = createReceived<LegEvent>();
    inbound.answer(offer.id, received.receive);
    const { message } = await far.heard.event("200");
    if (acknowledged) {
      const within = Object.fromEntries(["From", "To", "Call-ID"].map((name) =>
        [name, message.headers.get(name)]));
      far.say(at, requestText("ACK", far, { ...within, CSeq: "1 ACK" }));
      await received.event("answered");
    }
    system.advance(acknowledged ? 60_000 : 32_000);
    const { cause, detail } = await received.event("ended");
    assert.equal(cause, "failed");
    return failureOf({
      reason: "carrier_failed", isAnswered: acknowledged, isOwnLine: false, wasMute: false,
      detail: detail ?? null,
    });
  };
  assert.match((await bring({}, false))!, /\(ACK\)\. .*PARLEY_SIP_PUBLIC_HOST/);
  const timed = { "Supported": "timer", "Session-Expires": "90;refresher=uac" };
  assert.match((await bring(timed, true))!, /session/);
});

test("[SI144] a call that ends without a refresh says since when nothing was heard, and is billed until then", async () => {
  const silenceOf = async (...soundsAtS: number[]) => {
    const { far, offers, at, inbound, system } = await trunkAt(() => ({}));
    const timed = { "Supported": "timer", "Session-Expires": "90;refresher=uac" };
    const media = createSocket("udp4").bind(0, "127.0.0.1");
    await once(media, "listening");
    const sdp = SDP("wire").replace("4000", String(media.address().port));
    far.say(at, requestText("INVITE", far, timed, sdp)
      .replace("sip:bob@", "sip:+14155550100@"));
    const { offer } = await offers.event("offer");
    const received = createReceived<LegEvent>();
    inbound.answer(offer.id, received.receive);
    const { message } = await far.heard.event("200");
    const port = Number(/m=audio (\d+)/.exec(message.body.toString())![1]);
    const within = Object.fromEntries(["From", "To", "Call-ID"].map((name) =>
      [name, message.headers.get(name)]));
    far.say(at, requestText("ACK", far, { ...within, CSeq: "1 ACK" }));
    await received.event("answered");
    let nowS = 0;
    for (const [index, soundAtS] of soundsAtS.entries()) {
      system.advance((soundAtS - nowS) * 1000);
      nowS = soundAtS;
      const packet = Buffer.alloc(172);
      writeRtpHeader(packet, {
        payloadType: 0, marker: false, sequence: index, timestamp: index * 160, ssrc: 7,
      });
      media.send(packet, port, "127.0.0.1");
      // Each follows a silence that was noticed.
      await received.event("sound", 2 * index + 1);
    }
    media.close();
    system.advance((60 - nowS) * 1000);
    const { cause, silentMs } = await received.event("ended");
    assert.equal(cause, "failed");
    return silentMs;
  };
  assert.equal(await silenceOf(20), 40_000);
  assert.equal(await silenceOf(20, 58), undefined, "only the signalling was lost");
});

test("[SI132] the dialled number is escaped in our Contact as a URI requires, whatever characters it has", async () => {
  const { far, offers, at, inbound } = await trunkAt(() => ({ phoneNumber: "+4155550100" }));
  for (const [number, user] of ["%23%3E%20%40+14155550100", "*4155550100"].entries()) {
    far.say(at, requestText("INVITE", far, {}, SDP("wire")).replace("sip:bob@", `sip:${user}@`));
    const { offer } = await offers.event("offer", number);
    inbound.answer(offer.id, createReceived<LegEvent>().receive);
    const { message } = await far.heard.event("200", number);
    assert.equal(message.headers.get("Contact"), `<sip:${user}@127.0.0.1:${at.port}>`);
  }
});

test("[SI191] a number the network asserts and the caller withholds is not disclosed", async () => {
  const { far, offers, at } = await trunkAt(() => ({}));
  const nobody = "<sip:anonymous@anonymous.invalid>;tag=1";
  const tellOf = async (place: number, changes: Record<string, string>) => {
    far.say(at, requestText("INVITE", far, {
      "From": nobody, "P-Asserted-Identity": "<sip:+14155550177@pstn>", ...changes,
    }, SDP("wire")).replace("sip:bob@", "sip:+14155550100@"));
    return (await offers.event("offer", place)).offer.from;
  };
  assert.equal(await tellOf(0, { Privacy: "id" }), null);
  assert.equal(await tellOf(1, { Privacy: "user; ID;critical" }), null);
  assert.equal(await tellOf(2, { Privacy: "id", From: "<sip:100@pbx>;tag=1" }), "100");
  assert.equal(await tellOf(3, { Privacy: "none" }), "+14155550177");
  assert.equal(await tellOf(4, {}), "+14155550177");
});

test("[SI193] an anonymous caller name gives no number", async () => {
  const { far, offers, at } = await trunkAt(() => ({}));
  const told = async (place: number, from: string) => {
    far.say(at, requestText("INVITE", far, { From: `${from};tag=1` }, SDP("wire"))
      .replace("sip:bob@", "sip:+14155550100@"));
    return (await offers.event("offer", place)).offer.from;
  };
  assert.equal(await told(0, "\"Unavailable\" <sip:unavailable@unknown.invalid>"), null);
  assert.equal(await told(1, "<sip:c8oqz84zk7z@anonymous.invalid>"), null);
  assert.equal(await told(2, "<sip:Restricted@198.51.100.7>"), null);
  assert.equal(await told(3, "<sip:unavailable2@198.51.100.7>"), "unavailable2");
});
