// Keys we press for telephones that take no telephone events but keys in INFO: over real sockets,
// with a clock that only moves when told to.
import assert from "node:assert/strict";
import { after } from "node:test";
import type { SipRequest } from "#providers/carriers/sip/grammar/message.ts";
import type { Peer } from "#providers/carriers/sip/transport/peer.ts";
import { test } from "#support/bounded-test.ts";
import { createManualSystem } from "#support/manual-clock.ts";
import { createCarrierTo } from "#support/sip/sip-hops.ts";
import {
  createPhone, createWire, requestText, responseText, SDP, wireCall, type Wire,
} from "#support/sip/sip-phones.ts";

const open: { close(): Promise<unknown> }[] = [];
after(async () => {
  for (const it of open.reverse()) await it.close();
});

const TAKES = ["Allow: INVITE, ACK, BYE, CANCEL, INFO", "Accept: application/sdp, Application/DTMF-Relay"];
const WITH_EVENTS = SDP("answer").replace("RTP/AVP 0", "RTP/AVP 0 101")
  + "a=rtpmap:101 telephone-event/8000\r\n";

/** The INFOs the far end has by now: what is asked last comes after all before it. */
async function infosAt(far: Wire, to: Peer): Promise<SipRequest[]> {
  const before = far.heard.kinds().filter((kind) => kind === "200").length;
  far.say(to, requestText("OPTIONS", far));
  await far.heard.event("200", before);
  return far.heard.events.filter(({ kind }) => kind === "INFO")
    .map(({ message }) => message as SipRequest);
}

/** A call the far end answered with these headers and this SDP. */
async function answered(headers: string[], sdp: string) {
  const far = await createWire();
  open.push(far);
  const world = await createCarrierTo([far]);
  open.push(world);
  const { received, leg } = world.dial();
  const invite = (await far.heard.event("INVITE")).message;
  const contact = `Contact: <sip:wire@127.0.0.1:${far.peer.port}>`;
  far.say(world.at, responseText(invite, 200, [contact, ...headers], sdp));
  await received.event("answered");
  return { ...world, far, leg };
}

test("[SC90] keys go in INFO, one by one, to a peer without telephone events that accepts INFO", async () => {
  const { system, at, far, leg } = await answered(TAKES, SDP("answer"));
  leg.sendDtmf("1x");
  leg.sendDtmf("#d");
  const [first, ...none] = await infosAt(far, at);
  assert.equal(none.length, 0);
  assert.equal(first!.headers.get("Content-Type"), "application/dtmf-relay");
  assert.equal(first!.body.toString(), "Signal=1\r\nDuration=160\r\n");
  system.advance(240);
  assert.equal(new Set((await infosAt(far, at)).map(({ headers }) => headers.get("CSeq"))).size, 1);
  far.say(at, responseText(first!, 200));
  await infosAt(far, at);
  const before = (await infosAt(far, at)).length;
  system.advance(239);
  assert.equal((await infosAt(far, at)).length, before);
  system.advance(1);
  const second = (await infosAt(far, at)).at(-1)!;
  assert.equal(second.body.toString(), "Signal=#\r\nDuration=160\r\n");
  // Refused after all: what is left is not sent.
  far.say(at, responseText(second, 415));
  await infosAt(far, at);
  system.advance(240);
  assert.equal((await infosAt(far, at)).at(-1)!.body.toString(), second.body.toString());
});

test("[SC90] other peers get keys as before: those with telephone events, or without INFO for keys", async () => {
  for (const [headers, sdp] of [
    [TAKES, WITH_EVENTS], [TAKES.slice(0, 1), SDP("answer")], [TAKES.slice(1), SDP("answer")],
  ] as const) {
    const { at, far, leg } = await answered([...headers], sdp);
    leg.sendDtmf("1");
    assert.deepEqual(await infosAt(far, at), []);
  }
});

test("[SC90] a caller announces in its INVITE that it accepts keys in INFO", async () => {
  const system = createManualSystem();
  const [from, bob] = [await createWire(), await createPhone({ system })];
  open.push(from, bob);
  const { dialog } = await wireCall(from, bob, {
    Allow: "INVITE, INFO", Accept: "application/dtmf-relay",
  });
  assert.equal(dialog.press("7"), true);
  const info = (await from.heard.event("INFO")).message;
  assert.match(info.body.toString(), /^Signal=7\r\n/);
  const other = await wireCall(from, bob);
  assert.equal(other.dialog.press("7"), false);
  dialog.bye();
  // Nothing follows a goodbye.
  assert.equal(dialog.press("8"), false);
});
