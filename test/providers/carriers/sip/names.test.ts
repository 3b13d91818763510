// Names where a telephone's description has its address (RFC 8866 5.7): resolved while the call
// goes on, and led to no place that an address would not lead to. Where that leaves a call silent,
// the log says so.
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { after } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { createLogger } from "#core/logger.ts";
import { createSystem } from "#core/system.ts";
import type { LegEvent, Offer } from "#providers/carriers/port.ts";
import { writeRtpHeader } from "#providers/carriers/sip/media/rtp.ts";
import { createSipCarrier } from "#providers/carriers/sip/sip.ts";
import { isBehindNat } from "#providers/carriers/sip/transport/peer.ts";
import { test } from "#support/bounded-test.ts";
import { createManualSystem } from "#support/manual-clock.ts";
import { createReceived } from "#support/received.ts";
import { trunkOf } from "#support/sip/sip-hops.ts";
import { createWire, requestText, SDP } from "#support/sip/sip-phones.ts";

const opened: { close(): unknown }[] = [];
after(() => Promise.all(opened.map((it) => it.close())));
const open = <T extends { close(): unknown }>(it: T): T => {
  opened.push(it);
  return it;
};

const ADDRESSES: Record<string, string[]> = {
  "media.example.com": ["::1", "127.0.0.2"],
  "forbidden.example.com": ["127.0.0.3"],
};

async function openCarrier(system = createSystem()) {
  const asked: string[] = [];
  const warned: unknown[] = [];
  const log = Object.assign(createLogger("silent"), { warn: (it: unknown) => warned.push(it) });
  const offers = createReceived<{ kind: "offer"; offer: Offer }>();
  const carrier = open(await createSipCarrier({
    host: "0.0.0.0", port: 0, publicHost: null, tls: null, rtpPorts: null,
    mayReach: (address) => address !== "127.0.0.3",
    names: {
      services: () => Promise.resolve([]),
      addresses: (name) => {
        asked.push(name);
        const found = ADDRESSES[name];
        return found ? Promise.resolve(found) : Promise.reject(new Error("ENOTFOUND"));
      },
    },
    system, log,
    onOffer: (offer) => offers.receive({ kind: "offer", offer }),
  }));
  carrier.setTrunks([trunkOf({ address: "127.0.0.1" })]);
  return { carrier, offers, asked, warned };
}

async function openMedia(host: string, port: number) {
  const media = open(createSocket("udp4").bind(port, host));
  await once(media, "listening");
  return media;
}

test("[SI196] sound goes where a name in the SDP leads; where it leads nowhere, to where the signalling comes from", async () => {
  const { carrier, offers, asked } = await openCarrier();
  const far = await openMedia("127.0.0.2", 0);
  const { port } = far.address();
  const near = await openMedia("127.0.0.1", port);
  const cases: [string, typeof far][] = [
    ["media.example.com", far], ["Media.example.com", far],
    ["forbidden.example.com", near], ["missing.example.com", near],
  ];
  for (const [at, [name, media]] of cases.entries()) {
    const wire = open(await createWire());
    const call = { "Call-ID": `named-${at}`, "From": "<sip:wire@example.org>;tag=named" };
    const sdp = (direction: string) => SDP("wire")
      .replace("c=IN IP4 127.0.0.1", `c=IN IP4 ${name}`)
      .replace("audio 4000", `audio ${port}`) + `a=${direction}\r\n`;
    const say = (method: string, cseq: number, to: string | null, body = "") =>
      wire.say(carrier.port, requestText(method, wire, {
        ...call, "CSeq": `${cseq} ${method}`, ...(to === null ? {} : { "To": to }),
      }, body).replace("sip:bob@127", "sip:+14155550100@127"));
    say("INVITE", 1, null, sdp("sendrecv"));
    const received = createReceived<LegEvent>();
    const { offer } = await offers.event("offer", at);
    const leg = carrier.inbound.answer(offer.id, received.receive);
    const to = (await wire.heard.event("200")).message.headers.get("To");
    say("ACK", 1, to);
    await received.event("answered");
    const heard = once(media, "message");
    leg.send(new Int16Array(160));
    await heard;
    say("INVITE", 2, to, sdp("sendonly"));
    await wire.heard.event("200", 1);
    say("ACK", 2, to);
    say("INVITE", 3, to, sdp("sendrecv"));
    await wire.heard.event("200", 2);
    say("ACK", 3, to);
    const again = once(media, "message");
    leg.send(new Int16Array(160));
    await again;
    leg.hangUp();
    assert.equal(asked.length, at + 1, "each name is resolved once in a call");
  }
  assert.deepEqual(asked, cases.map(([name]) => name.toLowerCase()));
});

test("[SI196] a call has at most four names resolved", async () => {
  const { carrier, offers, asked } = await openCarrier();
  const wire = open(await createWire());
  const named = (number: number) =>
    SDP("wire").replace("c=IN IP4 127.0.0.1", `c=IN IP4 n${number}.example.com`);
  const say = (method: string, cseq: number, to: string | null) =>
    wire.say(carrier.port, requestText(method, wire, {
      "Call-ID": "many", "From": "<sip:wire@example.org>;tag=many", "CSeq": `${cseq} ${method}`,
      ...(to === null ? {} : { "To": to }),
    }, method === "ACK" ? "" : named(cseq)).replace("sip:bob@127", "sip:+14155550100@127"));
  say("INVITE", 1, null);
  const received = createReceived<LegEvent>();
  const leg = carrier.inbound.answer((await offers.event("offer")).offer.id, received.receive);
  let to: string | null = null;
  for (const cseq of [1, 2, 3, 4, 5, 6]) {
    if (cseq > 1) say("INVITE", cseq, to);
    to = (await wire.heard.event("200", cseq - 1)).message.headers.get("To");
    say("ACK", cseq, to);
  }
  assert.deepEqual(asked, [1, 2, 3, 4].map((number) => `n${number}.example.com`));
  leg.hangUp();
});

test("[SI199] a call that is silent because its audio is at an address the server may not send to is logged, once, unless a NAT explains it or the call is held", async () => {
  const system = createManualSystem();
  const { carrier, offers, warned } = await openCarrier(system);
  const wire = open(await createWire());
  const media = await openMedia("127.0.0.1", 0);
  const say = (method: string, cseq: number, to: string | null, host = "", direction = "sendrecv") => {
    const sdp = `${SDP("wire").replace("c=IN IP4 127.0.0.1", `c=IN IP4 ${host}`)}a=${direction}\r\n`;
    wire.say(carrier.port, requestText(method, wire, {
      "Call-ID": "silent", "From": "<sip:wire@example.org>;tag=silent", "CSeq": `${cseq} ${method}`,
      ...(to === null ? {} : { "To": to }),
    }, host === "" ? "" : sdp).replace("sip:bob@127", "sip:+14155550100@127"));
  };
  say("INVITE", 1, null, "0.0.0.0");
  const received = createReceived<LegEvent>();
  const leg = carrier.inbound.answer((await offers.event("offer")).offer.id, received.receive);
  const answer = (await wire.heard.event("200")).message;
  const to = answer.headers.get("To");
  say("ACK", 1, to);
  await received.event("answered");
  let answers = 1;
  const offered = async (cseq: number, host: string, direction?: string) => {
    say("INVITE", cseq, to, host, direction);
    // Earlier answers may come again.
    while (!wire.heard.events.some(({ kind, message }) =>
      kind === "200" && message.headers.get("CSeq") === `${cseq} INVITE`)) {
      await wire.heard.event("200", answers++);
    }
    say("ACK", cseq, to);
  };
  let packets = 0;
  const speak = async () => {
    const before = leg.quality?.()?.packetsReceived ?? 0;
    const port = Number(/m=audio (\d+)/.exec(answer.body.toString())?.[1]);
    while ((leg.quality?.()?.packetsReceived ?? 0) === before) {
      packets += 1;
      const rtp = Buffer.alloc(172, 0xff);
      writeRtpHeader(rtp, {
        payloadType: 0, marker: false, sequence: packets, timestamp: packets * 160, ssrc: 7,
      });
      media.send(rtp, port, "127.0.0.1");
      await nextTurn();
    }
  };
  await offered(2, "127.0.0.3", "sendonly");
  system.advance(10_000);
  await offered(3, "127.0.0.2");
  system.advance(10_000);
  await offered(4, "127.0.0.3");
  // It is heard from where the signalling comes from, and then sends nothing while it is silent.
  await speak();
  system.advance(10_000);
  assert.deepEqual(warned, []);
  await offered(5, "127.0.0.2");
  await offered(6, "127.0.0.3");
  system.advance(4000);
  assert.deepEqual(warned, []);
  system.advance(2000);
  await offered(7, "127.0.0.3");
  system.advance(10_000);
  assert.deepEqual(warned, [{ address: "127.0.0.3", source: "127.0.0.1" }]);
  leg.hangUp();
  assert.equal(isBehindNat("10.0.0.1", "198.51.100.7"), true);
  assert.equal(isBehindNat("10.0.0.1", "192.168.0.1"), false);
});
