// What is offered and answered later in a call: as the two ends had agreed, with what they say now.
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { after } from "node:test";
import { connect } from "node:tls";
import { createLogger } from "#core/logger.ts";
import { createSystem } from "#core/system.ts";
import type { LegEvent, Offer } from "#providers/carriers/port.ts";
import { createFramer, parseMessage, type SipMessage } from "#providers/carriers/sip/grammar/message.ts";
import { RTP_HEADER_BYTES, writeRtpHeader } from "#providers/carriers/sip/media/rtp.ts";
import { writeTelephoneEvent } from "#providers/carriers/sip/media/telephone-event.ts";
import { createSipCarrier } from "#providers/carriers/sip/sip.ts";
import { test } from "#support/bounded-test.ts";
import { createReceived } from "#support/received.ts";
import { contactOf, createCarrierTo, inviteAt, trunkOf } from "#support/sip/sip-hops.ts";
import { createWire, requestText, responseText, SDP, type Wire } from "#support/sip/sip-phones.ts";
import { selfSignedCertificate } from "#support/vendors/realtime-server.ts";

const opened: { close(): unknown }[] = [];
after(() => Promise.all(opened.map((it) => it.close())));
const open = <T extends { close(): unknown }>(it: T): T => {
  opened.push(it);
  return it;
};

async function openTlsCarrier() {
  const offers = createReceived<{ kind: "offer"; offer: Offer }>();
  const carrier = open(await createSipCarrier({
    host: "127.0.0.1", port: 0, publicHost: null, tls: await selfSignedCertificate(),
    rtpPorts: null, mayReach: () => true, system: createSystem(), log: createLogger("silent"),
    onOffer: (offer) => offers.receive({ kind: "offer", offer }),
  }));
  carrier.setTrunks([trunkOf({ transport: "tls" })]);
  const socket = connect({ port: carrier.tlsPort!, host: "127.0.0.1", rejectUnauthorized: false });
  open({ close: () => socket.destroy() });
  await once(socket, "secureConnect");
  const heard = createReceived<{ kind: string; message: SipMessage }>();
  const framer = createFramer();
  socket.on("data", (bytes: Buffer) => {
    for (const frame of framer.push(bytes).frames) {
      const parsed = parseMessage(frame);
      if (parsed.kind !== "message") continue;
      const { message } = parsed;
      const kind = message.kind === "request" ? message.method : String(message.status);
      heard.receive({ kind, message });
    }
  });
  const from = { peer: { host: "127.0.0.1", port: 5061, transport: "tls" } } as Wire;
  const call = { "From": "<sip:wire@example.org>;tag=tls", "Call-ID": "over-tls" };
  const say = (method: string, cseq: number, to: string | null, body = "") => void socket.write(
    requestText(method, from, { ...call, "CSeq": `${cseq} ${method}`, "To": to }, body)
      .replace("sip:bob@127", "sip:+14155550100@127").replace("SIP/2.0/UDP", "SIP/2.0/TLS"));
  return { carrier, offers, heard, say };
}

test("[SI147] a request for an offer in an unencrypted call gets an unencrypted one, over TLS too", async () => {
  const { carrier, offers, heard, say } = await openTlsCarrier();
  say("INVITE", 1, "<sip:bob@example.org>", SDP("wire"));
  const received = createReceived<LegEvent>();
  const leg = carrier.inbound.answer((await offers.event("offer")).offer.id, received.receive);
  const { message: answer } = await heard.event<string>("200");
  assert.match(answer.body.toString(), /m=audio \d+ RTP\/AVP /);
  const to = answer.headers.get("To");
  say("ACK", 1, to);
  await received.event("answered");
  say("INVITE", 2, to);
  const { message: offer } = await heard.event<string>("200", 1);
  assert.match(offer.body.toString(), /m=audio \d+ RTP\/AVP /);
  say("ACK", 2, to, SDP("wire"));
  say("INVITE", 3, to, SDP("wire"));
  await heard.event<string>("200", 2);
  assert.deepEqual(received.kinds().filter((kind) => kind === "ended"), []);
  leg.hangUp();
});

test("[SI160] if a requested offer is answered with nothing, or without keys, the call ends and the record says why", async () => {
  const answers: [string, RegExp][] = [
    ["", /did not answer it, which allowed SRTP only$/],
    [SDP("wire").replace("audio 4000 RTP/AVP", "audio 0 RTP/SAVP"), /no keys for encrypted audio/],
    [SDP("wire"), /no keys for encrypted audio/],
  ];
  for (const [answer, why] of answers) {
    const { carrier, offers, heard, say } = await openTlsCarrier();
    say("INVITE", 1, "<sip:bob@example.org>");
    const received = createReceived<LegEvent>();
    carrier.inbound.answer((await offers.event("offer")).offer.id, received.receive);
    say("ACK", 1, (await heard.event<string>("200")).message.headers.get("To"), answer);
    const { cause, detail } = await received.event("ended");
    assert.equal(cause, "failed");
    assert.match(detail ?? "", why);
    assert.deepEqual(received.kinds(), ["ended"], "it never was a talk");
    await heard.event<string>("BYE");
  }
});

test("[SI163] a peer that answers our offer with its own payload types is heard with those and with ours", async () => {
  const far = open(await createWire());
  const carrier = open(await createCarrierTo([far], { address: "127.0.0.1", port: far.peer.port }));
  const { received, leg } = carrier.dial();
  const invite = await inviteAt(far);
  const line = /m=audio (\d+) RTP\/AVP [\d ]*?(\d+)\r/.exec(invite.body.toString())!;
  const [port, ours] = [Number(line[1]), Number(line[2])];
  const media = open(createSocket("udp4").bind(0, "127.0.0.1"));
  await once(media, "listening");
  const answer = SDP("wire").replace("audio 4000 RTP/AVP 0", `audio ${media.address().port} RTP/AVP 0 97`)
    + "a=rtpmap:97 telephone-event/8000\r\n";
  far.say(carrier.at, responseText(invite, 200, [contactOf(far)], answer));
  await received.event("answered");
  for (const [at, payloadType] of [97, ours, 98].entries()) {
    const packet = Buffer.alloc(RTP_HEADER_BYTES + 4);
    writeRtpHeader(
      packet, { payloadType, marker: true, sequence: at, timestamp: at * 8000, ssrc: 7 });
    writeTelephoneEvent(
      packet, RTP_HEADER_BYTES, { event: at + 1, isEnd: true, volume: 10, duration: 800 });
    media.send(packet, port, "127.0.0.1");
  }
  const keys = [await received.event("dtmf"), await received.event("dtmf", 1)];
  assert.deepEqual(keys.map(({ digit }) => digit), ["1", "2"]);
  leg.hangUp();
});

test("[SI148] the answer to a refresh updates the session's audio", async () => {
  const far = open(await createWire());
  const carrier = open(await createCarrierTo([far], { address: "127.0.0.1", port: far.peer.port }));
  const { received, leg } = carrier.dial();
  const media = open(createSocket("udp4").bind(0, "127.0.0.1"));
  await once(media, "listening");
  const sdpAt = (port: number) => SDP("wire").replace("4000", String(port));
  const terms = [contactOf(far), "Session-Expires: 90;refresher=uac"];
  far.say(carrier.at, responseText(await inviteAt(far), 200, terms, sdpAt(40_000)));
  await received.event("answered");
  carrier.system.advance(45_000);
  const refresh = await inviteAt(far, 1);
  far.say(carrier.at, responseText(refresh, 200, terms, sdpAt(media.address().port)));
  await far.heard.event("ACK", 1);
  const came = once(media, "message");
  leg.send(new Int16Array(160));
  await came;
  leg.hangUp();
});
