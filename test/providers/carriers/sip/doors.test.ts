// Trunks that mean harm: where their answers, calls and sound would lead the server. Everything
// they name is listened at, and has to stay silent.
import assert from "node:assert/strict";
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { createServer } from "node:net";
import { networkInterfaces } from "node:os";
import { after } from "node:test";
import { mayBeTelephone } from "#core/networks.ts";
import { createAddressPolicy } from "#outbound/addresses.ts";
import type { LegEvent, Offer } from "#providers/carriers/port.ts";
import {
  answerChallenge, chooseChallenge, createDigestServer,
} from "#providers/carriers/sip/grammar/digest.ts";
import type { SipRequest } from "#providers/carriers/sip/grammar/message.ts";
import { test } from "#support/bounded-test.ts";
import { freePorts } from "#support/free-ports.ts";
import { createManualSystem } from "#support/manual-clock.ts";
import { createReceived } from "#support/received.ts";
import { createCarrierTo } from "#support/sip/sip-hops.ts";
import {
  createPhone, createWire, requestText, responseText, wireCall, type Wire,
} from "#support/sip/sip-phones.ts";

const TRUNK = "127.0.0.9";
const { allows } = createAddressPolicy([`${TRUNK}/32`]);
const OWN = Object.values(networkInterfaces()).flatMap((list) => list ?? [])
  .filter(({ internal, family }) => !internal && family === "IPv4").map(({ address }) => address);

/** Each leads inside, or is none that anybody should look up. */
const HOSTS = [
  "0.0.0.0", "127.0.0.1", "127.255.255.254", "10.0.0.1", "172.16.0.1", "192.168.0.1", "100.64.0.1",
  "169.254.169.254", "198.18.0.1", "198.19.255.255", "168.63.129.16", "192.0.0.192", "192.0.2.1",
  "224.0.0.1", "255.255.255.255", "localhost", "localhost.", "2130706433", "0x7f000001", "0x7f.1",
  "0177.0.0.1", "127.1", "[::]", "[::1]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]",
  "[::ffff:7f00:1]", "[::ffff:0:127.0.0.1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]",
  "[2002:7f00:1::]", "[fe80::1]", "[fc00::1]", ...OWN,
];

const requestOf = ({ message }: { message: unknown }) => message as SipRequest;

const opened: { close(): unknown }[] = [];
after(() => Promise.all(opened.map((it) => it.close())));
const open = <T extends { close(): unknown }>(it: T): T => {
  opened.push(it);
  return it;
};

async function listenUdp(
  type: "udp4" | "udp6", host: string, port: number, hear: (bytes: Buffer) => void,
): Promise<Socket> {
  const socket = open(createSocket({ type, reuseAddr: true, ipv6Only: type === "udp6" }));
  socket.on("message", hear).bind(port, host);
  await once(socket, "listening");
  return socket;
}

/** All of this machine at a port; what comes there is written down. */
async function listenEverywhere(port: number): Promise<string[]> {
  const heard: string[] = [];
  for (const host of ["0.0.0.0", "::"]) {
    const server = open(createServer((socket) => {
      heard.push(`tcp from ${socket.remotePort}`);
      socket.on("error", () => undefined).destroy();
    }));
    server.listen({ port, host, ipv6Only: true });
    await once(server, "listening");
    await listenUdp(host === "::" ? "udp6" : "udp4", host, port, (bytes) => {
      heard.push(bytes.toString("latin1", 0, 60));
    });
  }
  return heard;
}

const KEY_30 = Buffer.alloc(30, 1).toString("base64");
const KEY_46 = Buffer.alloc(46, 1).toString("base64");
const offerOf = (port: number, crypto: string[]): string =>
  `v=0\r\no=- 1 1 IN IP4 ${TRUNK}\r\ns=-\r\nc=IN IP4 ${TRUNK}\r\nt=0 0\r\n`
  + `m=audio ${port} RTP/${crypto.length > 0 ? "S" : ""}AVP 0\r\n`
  + crypto.map((line) => `a=crypto:${line}\r\n`).join("");

test("[SC194] [SI139] a trunk that requires SRTP refuses unencrypted calls with 488, in both directions", async () => {
  const trunk = open(await createWire(TRUNK));
  const offers = createReceived<{ kind: "offer"; offer: Offer }>();
  const carrier = open(await createCarrierTo(
    [trunk], { address: TRUNK, port: trunk.peer.port, allowedNetworks: [TRUNK], requireSrtp: true },
    allows, "0.0.0.0", (offer) => offers.receive({ kind: "offer", offer })));
  const at = { host: "127.0.0.1", port: carrier.at.port, transport: "udp" } as const;
  const invite = (sdp: string) => {
    const text = requestText("INVITE", trunk, {}, sdp);
    trunk.say(at, text.replace("sip:bob@", "sip:+14155550100@"));
  };
  invite(offerOf(40_000, []));
  const refused = (await trunk.heard.event("488")).message;
  assert.match(refused.headers.get("Warning")!, /^302 parley ".*SRTP.*require_srtp/);
  invite(offerOf(40_000, [`1 AES_CM_128_HMAC_SHA1_32 inline:${KEY_30}`]).replace("SAVP 0", "SAVP 3"));
  const foreign = (await trunk.heard.event("488", 1)).message;
  assert.match(foreign.headers.get("Warning")!, /^305 parley ".*codec/);
  assert.deepEqual(offers.kinds(), []);
  for (const [index, line] of [
    `1 AES_256_CM_HMAC_SHA1_80 inline:${KEY_46}`, `2 AES_CM_128_HMAC_SHA1_32 inline:${KEY_30}`,
  ].entries()) {
    invite(offerOf(40_000, [line]));
    const { offer } = await offers.event("offer", index);
    const leg = carrier.inbound.answer(offer.id, () => undefined);
    const { message } = await trunk.heard.event("200", index);
    const answered = message.body.toString();
    assert.match(answered, /m=audio \d+ RTP\/SAVP 0/);
    assert.ok(answered.includes(`a=crypto:${line.split(" inline")[0]} inline:`), answered);
    leg.hangUp();
  }
  const { received } = carrier.dial();
  const placed = requestOf(await trunk.heard.event("INVITE"));
  const offered = placed.body.toString();
  assert.deepEqual([...offered.matchAll(/a=crypto:\d (\S+)/g)].map(([, suite]) => suite), [
    "AES_256_CM_HMAC_SHA1_80", "AES_CM_128_HMAC_SHA1_80",
    "AES_256_CM_HMAC_SHA1_32", "AES_CM_128_HMAC_SHA1_32",
  ]);
  trunk.say(at, responseText(placed, 200, [`Contact: <sip:w@${TRUNK}:${trunk.peer.port}>`],
    offerOf(40_000, [])));
  const { cause, detail } = await received.event("ended");
  assert.equal(cause, "failed");
  assert.match(detail!, /SRTP/);
});

interface KeyedCall {
  profile: "RTP/SAVP" | "RTP/AVP";
  requireSrtp?: boolean;
  /** Whether the re-INVITE has an offer; else it is asked for one. */
  offersAgain: boolean;
}

/** A caller whose offer has a key is answered with one, which stays through a re-INVITE. */
async function assertKeyStays(
  { profile, requireSrtp = false, offersAgain }: KeyedCall,
): Promise<void> {
  const trunk = open(await createWire(TRUNK));
  const offers = createReceived<{ kind: "offer"; offer: Offer }>();
  const carrier = open(await createCarrierTo(
    [trunk],
    { address: TRUNK, port: trunk.peer.port, allowedNetworks: [TRUNK], requireSrtp },
    allows, "0.0.0.0", (offer) => offers.receive({ kind: "offer", offer })));
  const at = { host: "127.0.0.1", port: carrier.at.port, transport: "udp" } as const;
  const sdp = offerOf(40_000, [`7 AES_CM_128_HMAC_SHA1_80 inline:${KEY_30}`])
    .replace("RTP/SAVP", profile);
  const call = { "From": "<sip:wire@example.org>;tag=srtp", "Call-ID": "srtp-over-udp" };
  const say = (method: string, cseq: string, to: string | null, body = "") => trunk.say(at,
    requestText(method, trunk, { ...call, "CSeq": cseq, "To": to }, body)
      .replace("sip:bob@127", "sip:+14155550100@127"));
  const answer = new RegExp(
    String.raw`m=audio \d+ ${profile} 0[^]*a=crypto:(7 AES_CM_128\S+ inline:\S+)`);
  const keyIn = ({ body }: { body: Buffer }) => answer.exec(body.toString())?.[1];
  say("INVITE", "1 INVITE", "<sip:bob@example.org>", sdp);
  const { offer } = await offers.event("offer");
  const leg = carrier.inbound.answer(offer.id, () => undefined);
  const { message: first } = await trunk.heard.event("200");
  assert.ok(keyIn(first), first.body.toString());
  const to = first.headers.get("To");
  say("ACK", "1 ACK", to);
  say("INVITE", "2 INVITE", to, offersAgain ? sdp : "");
  const { message: second } = await trunk.heard.event("200", 1);
  assert.equal(keyIn(second), keyIn(first));
  leg.hangUp();
}

test("[SI172] a telephone with optional SRTP (keys under RTP/AVP) gets it, even if the trunk requires it, and later offers keep that form", () =>
  assertKeyStays({ profile: "RTP/AVP", requireSrtp: true, offersAgain: false }));

test("[SI180] a call with optional SRTP continues unencrypted if the other side of a later offer has no keys, unless the trunk requires them", async () => {
  for (const requireSrtp of [false, true]) {
    const trunk = open(await createWire(TRUNK));
    const offers = createReceived<{ kind: "offer"; offer: Offer }>();
    const carrier = open(await createCarrierTo(
      [trunk], { address: TRUNK, port: trunk.peer.port, allowedNetworks: [TRUNK], requireSrtp },
      allows, "0.0.0.0", (offer) => offers.receive({ kind: "offer", offer })));
    const at = { host: "127.0.0.1", port: carrier.at.port, transport: "udp" } as const;
    const plain = offerOf(40_000, []);
    const call = { "From": "<sip:wire@example.org>;tag=handed", "Call-ID": "handed-on" };
    const say = (method: string, cseq: number, to: string, body = "") => trunk.say(at,
      requestText(method, trunk, { ...call, "CSeq": `${cseq} ${method}`, "To": to }, body)
        .replace("sip:bob@127", "sip:+14155550100@127"));
    say("INVITE", 1, "<sip:bob@example.org>",
      `${plain}a=crypto:7 AES_CM_128_HMAC_SHA1_80 inline:${KEY_30}\r\n`);
    const events = createReceived<LegEvent>();
    const leg = carrier.inbound.answer((await offers.event("offer")).offer.id, events.receive);
    const to = (await trunk.heard.event("200")).message.headers.get("To")!;
    say("ACK", 1, to);
    await events.event("answered");
    say("INVITE", 2, to);
    const { message: offered } = await trunk.heard.event("200", 1);
    assert.match(offered.body.toString(), /RTP\/AVP [^]*a=crypto:7 /);
    say("ACK", 2, to, plain);
    say("INVITE", 3, to);
    const next = await Promise.race([trunk.heard.event("200", 2), events.event("ended")]);
    if (requireSrtp) {
      assert.match("detail" in next ? next.detail! : "", /no keys for encrypted audio/);
      continue;
    }
    assert.ok("message" in next, JSON.stringify(next));
    assert.match(next.message.body.toString(), /RTP\/AVP /);
    assert.doesNotMatch(next.message.body.toString(), /crypto/);
    assert.deepEqual(events.kinds(), ["answered"]);
    leg.hangUp();
  }
});

test("[SI134] a caller who requires SRTP gets it over UDP too, and keeps its key through a re-INVITE", () =>
  assertKeyStays({ profile: "RTP/SAVP", offersAgain: true }));

test("[SI198] a call over IPv6 about audio over IPv4 is answered with IPv4", async () => {
  const trunk = open(await createWire("::1"));
  const offers = createReceived<{ kind: "offer"; offer: Offer }>();
  const carrier = open(await createCarrierTo(
    [trunk], { address: "::1", port: trunk.peer.port, allowedNetworks: ["::1"] }, () => false, "::",
    (offer) => offers.receive({ kind: "offer", offer })));
  trunk.say(carrier.at.port, requestText("INVITE", trunk, {
    Via: `SIP/2.0/UDP [::1]:${trunk.peer.port};branch=z9hG4bKfamily;rport`,
    Contact: `<sip:w@[::1]:${trunk.peer.port}>`,
  }, offerOf(4000, [])).replace("sip:bob@", "sip:+14155550100@"));
  carrier.inbound.answer((await offers.event("offer")).offer.id, () => undefined);
  const { body, headers } = (await trunk.heard.event("200")).message;
  assert.match(body.toString(), /c=IN IP4 127\.0\.0\.\d+\r/);
  assert.match(headers.get("Contact") ?? "", /@\[::1\]:/);
});

test("[SI107] listening on :: accepts and places calls over IPv6 and IPv4, with audio", async () => {
  for (const host of [TRUNK, "::1"]) {
    const trunk = open(await createWire(host));
    const sound = createSocket(host.includes(":") ? "udp6" : "udp4").bind(0, host);
    open(sound);
    await once(sound, "listening");
    const offers = createReceived<{ kind: "offer"; offer: Offer }>();
    const carrier = open(await createCarrierTo(
      [trunk], { address: host, port: trunk.peer.port, allowedNetworks: [host] }, () => true, "::",
      (offer) => offers.receive({ kind: "offer", offer })));
    const sdp = offerOf(sound.address().port, [])
      .replaceAll(`IP4 ${TRUNK}`, `${host.includes(":") ? "IP6" : "IP4"} ${host}`);
    const at = carrier.at.port;
    const { leg } = carrier.dial();
    const invite = requestOf(await trunk.heard.event("INVITE"));
    const shownHost = host.includes(":") ? `[${host}]` : host;
    trunk.say(at, responseText(invite, 200, [`Contact: <sip:w@${shownHost}:${trunk.peer.port}>`], sdp));
    await trunk.heard.event("ACK");
    const heard = once(sound, "message");
    leg.send(new Int16Array(160));
    await heard;
    leg.hangUp();
    await trunk.heard.event("BYE");
    trunk.say(at, requestText("INVITE", trunk, {
      Via: `SIP/2.0/UDP ${shownHost}:${trunk.peer.port};branch=z9hG4bKsix;rport`,
      Contact: `<sip:w@${shownHost}:${trunk.peer.port}>`,
    }, sdp).replace("sip:bob@", "sip:+14155550100@"));
    const { offer } = await offers.event("offer");
    assert.equal(offer.sourceAddress, host === TRUNK ? TRUNK : "::1");
    carrier.inbound.answer(offer.id, () => undefined);
    assert.match((await trunk.heard.event("200")).message.body.toString(),
      host === TRUNK ? /c=IN IP4 127\./ : /c=IN IP6 ::1/);
  }
});

const sdpAt = (host: string, port: number, rtcp: number): string => {
  const bare = host.replace(/^\[|\]$/g, "");
  const address = `IN ${bare.includes(":") ? "IP6" : "IP4"} ${bare}`;
  return `v=0\r\no=- 1 1 ${address}\r\ns=-\r\nc=IN IP4 ${TRUNK}\r\nt=0 0\r\n`
    + `m=audio ${port} RTP/AVP 0\r\nc=${address}\r\na=rtcp:${rtcp} ${address}\r\n`;
};

test("[SI101] a hostile trunk's answers and calls cause traffic only to itself, however addresses are spelled", async () => {
  const inside = await freePorts(1, "0.0.0.0");
  const sound = await freePorts(2, "0.0.0.0");
  const heard = [await listenEverywhere(inside), await listenEverywhere(sound),
    await listenEverywhere(sound + 1)];
  const trunk = open(await createWire(TRUNK));
  let packets = 0;
  const told = new EventTarget();
  await listenUdp("udp4", TRUNK, sound, () => {
    packets += 1;
    told.dispatchEvent(new Event("packet"));
  });
  let reports = 0;
  await listenUdp("udp4", TRUNK, inside, () => void (reports += 1));
  const carrier = open(await createCarrierTo(
    [trunk], { address: TRUNK, port: trunk.peer.port }, allows, "0.0.0.0"));
  const frame = new Int16Array(160);
  for (const [index, host] of HOSTS.entries()) {
    const { leg, received: legReceived } = carrier.dial();
    const invite = requestOf(await trunk.heard.event("INVITE", index));
    const named = `${host}:${inside};transport=${index % 2 === 0 ? "tcp" : "udp"}`;
    const isRouted = index % 3 === 0;
    trunk.say({ host: "127.0.0.1", port: carrier.at.port, transport: "udp" }, responseText(
      invite, 200, isRouted
        ? [`Contact: <sip:w@${TRUNK}:${trunk.peer.port}>`, `Record-Route: <sip:${named};lr>`]
        : [`Contact: <sip:w@${named}>`],
      sdpAt(host, sound, inside)));
    await trunk.heard.event("ACK", index);
    const isAnswered = await Promise.race([
      legReceived.event("answered").then(() => true), legReceived.event("ended").then(() => false),
    ]);
    // What is no address is no description of sound, and ends the call; two mean a hold.
    if (isAnswered && host !== "0.0.0.0" && host !== "[::]") {
      const packet = once(told as never, "packet");
      leg.send(frame);
      await packet;
    }
    leg.hangUp();
    await trunk.heard.event("BYE", index);
  }
  assert.ok(packets > HOSTS.length / 2, `${packets} packets`);
  assert.ok(reports > 0);
  assert.deepEqual(heard, [[], [], []]);
});

test("[SI101] neither do a hostile caller's Contact, Record-Route and Via", async () => {
  const inside = await freePorts(1, "0.0.0.0");
  const heard = await listenEverywhere(inside);
  const bob = open(await createPhone({ host: "0.0.0.0", mayReach: allows }));
  const to = { ...bob, peer: { ...bob.peer, host: "127.0.0.1" } };
  const caller: Wire = open(await createWire(TRUNK));
  for (const [index, host] of HOSTS.entries()) {
    const named = `${host}:${inside};transport=${index % 2 === 0 ? "tcp" : "udp"}`;
    const call = await wireCall(caller, to, index % 3 === 0
      ? { "Record-Route": `<sip:${named};lr>` }
      : { Contact: `<sip:w@${named}>`,
        Via: `SIP/2.0/UDP ${host}:${inside};branch=z9hG4bKh${index};received=10.0.0.1;rport` });
    call.say("ACK", 1);
    await call.received.event("confirmed");
    call.dialog.bye();
    const bye = requestOf(await caller.heard.event("BYE", index));
    caller.say(to.peer, responseText(bye, 200));
  }
  assert.deepEqual(heard, []);
});

test("[SI102] signalling and audio never go to ports that no telephone uses, whoever names them", async () => {
  const refused = [0, 22, 25, 53, 80, 443, 1023, 1900, 2375, 3306, 5353, 5432, 6379, 11211, 65_536];
  for (const port of refused) assert.equal(mayBeTelephone(port), false, String(port));
  for (const port of [1024, 5060, 5061, 8000, 10_000, 49_152, 65_535]) {
    assert.equal(mayBeTelephone(port), true, String(port));
  }
  const trunk = open(await createWire(TRUNK));
  const carrier = open(await createCarrierTo(
    [trunk], { address: TRUNK, port: trunk.peer.port }, allows, "0.0.0.0"));
  const at = { host: "127.0.0.1", port: carrier.at.port, transport: "udp" } as const;
  for (const [index, port] of [22, 6379].entries()) {
    const { leg, received } = carrier.dial();
    const invite = requestOf(await trunk.heard.event("INVITE", index));
    // Its own host, which it may name; the port it may not.
    trunk.say(at, responseText(invite, 200, [`Contact: <sip:w@${TRUNK}:${port};transport=tcp>`],
      sdpAt(TRUNK, port, port)));
    await trunk.heard.event("ACK", index);
    await received.event("answered");
    leg.send(new Int16Array(160));
    leg.hangUp();
    await trunk.heard.event("BYE", index);
  }
  // Without rport an answer goes to the port its Via names.
  const bob = open(await createPhone({ host: "0.0.0.0", mayReach: allows }));
  const options = requestText("OPTIONS", trunk, {
    Via: `SIP/2.0/UDP ${TRUNK}:22;branch=z9hG4bKport`,
  });
  trunk.say({ ...bob.peer, host: "127.0.0.1" }, options);
  await trunk.heard.event("200");
  // A trunk's own port and those DNS names are held to the same, but for TLS over the web's.
  const nowhere = open(await createCarrierTo([trunk], { address: TRUNK, port: 25 }, allows));
  const { received } = nowhere.dial();
  assert.equal((await received.event("ended")).cause, "failed");
});

test("[SI104] a digest response is valid only for the request it names, whatever its parameters", () => {
  const server = createDigestServer({ realm: "parley", system: createManualSystem() });
  const shown = (uri: string) => answerChallenge({
    challenge: chooseChallenge(server.challenges())!, method: "INVITE", uri, username: "anna",
    password: "secret", nonceCount: 1, cnonce: "c",
  });
  const kind = (named: string, uri: string) =>
    server.verify(shown(named), { method: "INVITE", uri }, () => "secret").kind;
  for (const named of ["sip:1@b", "sip:1@B", "sip:1@b;user=phone", "sip:1@b:5060"]) {
    assert.equal(kind(named, named.endsWith("5060") ? named : "sip:1@b;transport=tcp"), "ok", named);
  }
  for (const named of ["sip:2@b", "sip:1@c", "sip:b", "sips:1@b", "sip:1@b:5070", "x", ""]) {
    assert.equal(kind(named, "sip:1@b"), "mismatched", named);
  }
  assert.deepEqual([server.isForUs(shown("x")), server.isForUs(shown("x").replace("parley", "pbx")),
    server.isForUs("Basic x")], [true, false, false]);
});
