// Calls between SIP user agents over real sockets: from the INVITE to the BYE.
import assert from "node:assert/strict";
import { after } from "node:test";
import { parseNameAddr } from "#providers/carriers/sip/grammar/headers.ts";
import type { SipMessage, SipRequest } from "#providers/carriers/sip/grammar/message.ts";
import { test } from "#support/bounded-test.ts";
import { createManualSystem } from "#support/manual-clock.ts";
import {
  createExchange, createWire, listen, requestText, responseText, SDP, wireCall,
} from "#support/sip/sip-phones.ts";

const { phone, wire, close } = createExchange();
after(close);

const request = ({ message }: { message: unknown }) => message as SipRequest;

test("[SI32] a call rings, is answered and confirmed, and ends when the caller hangs up", async () => {
  const [alice, bob] = [await phone(), await phone()];
  const placed = alice.call(bob.peer, { headers: [["X-Call", "7"]] });
  const invite = await bob.invite();
  assert.equal(invite.request.headers.get("X-Call"), "7");
  assert.equal(invite.request.body.toString(), SDP("offer"));
  assert.equal(parseNameAddr(invite.request.headers.get("From")!)?.display, "Alice");
  invite.ring();
  assert.equal((await placed.received.event("progress")).status, 180);
  const theirs = listen(invite.accept(SDP("answer")));
  const { dialog, sdp } = await placed.received.event("answered");
  assert.equal(sdp, SDP("answer"));
  assert.deepEqual(await theirs.event("confirmed"), { kind: "confirmed", sdp: null });
  dialog.bye();
  dialog.bye();
  const end = await theirs.event("ended");
  assert.deepEqual(end.cause, { by: "far", status: null });
  assert.deepEqual(placed.received.kinds(), ["progress", "answered", "ended"]);
  assert.deepEqual((await placed.received.event("ended")).cause, { by: "us", status: null });
  assert.equal(alice.agent.counts().sessions + bob.agent.counts().sessions, 0);
});

test("[SI138] an offer that is not acceptable (488, 606) is followed once by the alternative, if there is one", async () => {
  const [alice, far] = [await phone(), await wire()];
  const invites = async (number: number) => request(await far.heard.event("INVITE", number));
  const refuse = (invite: SipRequest, status: number) =>
    far.say(alice.peer, responseText(invite, status));
  const placed = alice.call(far.peer, { otherSdp: () => SDP("other") });
  const first = await invites(0);
  assert.equal(first.body.toString(), SDP("offer"));
  refuse(first, 488);
  const second = await invites(1);
  assert.equal(second.body.toString(), SDP("other"));
  assert.equal(second.headers.get("Call-ID"), first.headers.get("Call-ID"));
  assert.equal(second.headers.get("CSeq"), "2 INVITE");
  refuse(second, 606);
  assert.equal((await placed.received.event("failed")).status, 606);
  const alone = alice.call(far.peer);
  refuse(await invites(2), 488);
  assert.equal((await alone.received.event("failed")).status, 488);
});

test("[SI33] the callee can hang up; a BYE before the ACK waits for it", async () => {
  const [alice, bob] = [await phone(), await phone()];
  const placed = alice.call(bob.peer);
  const theirs = (await bob.invite()).accept(SDP("answer"));
  await listen(theirs).event("confirmed");
  theirs.bye();
  assert.deepEqual((await placed.received.event("ended")).cause, { by: "far", status: null });

  const from = await wire();
  from.say(bob.peer, requestText("INVITE", from, {}, SDP("wire")));
  const early = (await bob.invite(1)).accept(SDP("answer"));
  const received = listen(early);
  const { message } = await from.heard.event("200");
  early.bye();
  assert.deepEqual(received.kinds(), ["ended"]);
  from.say(bob.peer, requestText("OPTIONS", from));
  await from.heard.event("200", 1);
  assert.ok(!from.heard.kinds().includes("BYE"));
  const { headers } = message;
  from.say(bob.peer, requestText("ACK", from, {
    "From": headers.get("From"), "To": headers.get("To"), "Call-ID": headers.get("Call-ID"),
  }));
  await from.heard.event("BYE");
  assert.deepEqual(received.kinds(), ["ended"]);
});

test("[SI34] a refusal reports its status, its reason phrase and the network's cause", async () => {
  const [alice, bob] = [await phone(), await phone()];
  const { received } = alice.call(bob.peer);
  (await bob.invite()).refuse(486, "Busy", [["Reason", "SIP;cause=486, Q.850;cause=17;text=\"x\""]]);
  assert.deepEqual(await received.event("failed"), {
    kind: "failed", status: 486, reason: "Busy", q850: 17,
  });
});

test("[SI35] a call cancelled while it rings fails with 487 and is withdrawn", async () => {
  const [alice, bob] = [await phone(), await phone()];
  const { call, received } = alice.call(bob.peer);
  const invite = await bob.invite();
  invite.ring();
  await received.event("progress");
  const cancelled = new Promise<void>((resolve) => invite.onCancelled(resolve));
  call.cancel();
  call.cancel();
  await cancelled;
  assert.deepEqual(received.events.map((event) => [event.kind, "status" in event && event.status]), [
    ["progress", 180], ["failed", 487],
  ]);
  // Too late: the dialog is one that has ended.
  const late = listen(invite.accept(SDP("late")));
  assert.deepEqual((await late.event("ended")).cause, { by: "far", status: 487 });
  assert.equal(bob.agent.counts().sessions, 0);
});

test("[SI137] a ringing call is a dialog: UPDATE is answered, BYE withdraws it, other requests wait", async () => {
  const [alice, bob, far] = [await phone(), await phone(), await wire()];
  const within = (of: SipMessage, method: string, cseq: number, from: string, to: string) =>
    requestText(method, far, {
      "Call-ID": of.headers.get("Call-ID"), From: from, To: to, CSeq: `${cseq} ${method}`,
    });
  const { received } = alice.call(far.peer);
  const invite = request(await far.heard.event("INVITE"));
  const callee = `${invite.headers.get("To")};tag=wire`;
  far.say(alice.peer, responseText(invite, 180));
  await received.event("progress");
  const ask = (method: string, cseq: number) =>
    far.say(alice.peer, within(invite, method, cseq, callee, invite.headers.get("From")!));
  ask("UPDATE", 1);
  const { message: updated } = await far.heard.event("200");
  assert.match(updated.headers.get("Contact")!, /^<sip:alice@127\.0\.0\.1:/);
  ask("INFO", 2);
  assert.equal((await far.heard.event("500")).message.headers.get("Retry-After"), "10");
  const contact = [`Contact: <sip:wire@127.0.0.1:${far.peer.port}>`];
  far.say(alice.peer, responseText(invite, 200, contact, SDP("answer")));
  await received.event("answered");

  const text = requestText("INVITE", far, {}, SDP("offer"));
  far.say(bob.peer, text);
  const ringing = await bob.invite();
  ringing.ring();
  const withdrawn = new Promise<void>((resolve) => ringing.onCancelled(resolve));
  const { message: heard } = await far.heard.event("180");
  const [from, to] = ["From", "To"].map((name) => heard.headers.get(name)!) as [string, string];
  far.say(bob.peer, within(heard, "UPDATE", 2, from, to));
  await far.heard.event("200", 1);
  far.say(bob.peer, within(heard, "BYE", 3, from, to.replace(/tag=.*/, "tag=other")));
  await far.heard.event("481");
  const bye = within(heard, "BYE", 3, from, to);
  far.say(bob.peer, bye);
  await withdrawn;
  assert.equal((await far.heard.event("487")).message.headers.get("CSeq"), "1 INVITE");
  // Whoever lost the answer asks again, and gets it again.
  far.say(bob.peer, bye);
  await far.heard.event("200", 3);
});

test("[SI36] CANCEL waits for a provisional response; a 200 that crosses it is hung up", async () => {
  const [alice, far] = [await phone(), await wire()];
  const { call, received } = alice.call(far.peer);
  const invite = request(await far.heard.event("INVITE"));
  call.cancel();
  assert.equal((await received.event("failed")).status, 487);
  assert.ok(!far.heard.kinds().includes("CANCEL"));
  far.say(alice.peer, responseText(invite, 100));
  const cancel = request(await far.heard.event("CANCEL"));
  assert.equal(cancel.headers.get("Via"), invite.headers.get("Via"));
  assert.equal(cancel.headers.get("CSeq"), "1 CANCEL");
  assert.equal(cancel.uri, invite.uri);
  const contact = [`Contact: <sip:wire@127.0.0.1:${far.peer.port}>`];
  far.say(alice.peer, responseText(invite, 200, contact, SDP("crossed")));
  const acknowledgement = request(await far.heard.event("ACK"));
  assert.equal(acknowledgement.uri, `sip:wire@127.0.0.1:${far.peer.port}`);
  const bye = request(await far.heard.event("BYE"));
  assert.equal(bye.headers.get("CSeq"), "2 BYE");
  assert.deepEqual(received.kinds(), ["failed"]);
});

test("[SI37] hold: a re-INVITE gets its answer or refusal", async () => {
  const [bob, from] = [await phone(), await wire()];
  const { dialog, received, say } = await wireCall(from, bob);
  say("ACK", 1);
  say("INVITE", 2, {}, SDP("hold"));
  assert.equal((await received.event("reinvite")).sdp, SDP("hold"));
  assert.equal((await from.heard.event("200", 1)).message.body.toString(), SDP("reply"));
  say("ACK", 2);
  listen(dialog, received, () => 488);
  say("INVITE", 3, {}, SDP("video"));
  await from.heard.event("488");
  assert.ok(!received.kinds().includes("ended"));
});

test("[SI38] keys in INFO and an UPDATE with an offer are accepted, an INFO of another type is not", async () => {
  const [bob, from] = [await phone(), await wire()];
  const { received, say, answer } = await wireCall(from, bob);
  say("ACK", 1);
  say("INFO", 2, { "Content-Type": "application/dtmf-relay" }, "Signal=5\r\nDuration=160\r\n");
  say("INFO", 3, { "Content-Type": "application/dtmf" }, "11");
  say("INFO", 4, { "Content-Type": "text/plain" }, "hello");
  await from.heard.event("415");
  say("UPDATE", 5, {}, SDP("update"));
  const { message } = await from.heard.event("200", 3);
  assert.equal(message.body.toString(), SDP("reply"));
  assert.deepEqual(received.kinds(), ["confirmed", "info", "info", "reinvite"]);
  assert.deepEqual(received.events.filter((event) => event.kind === "info").map(({ key }) => key), [
    "5", "#",
  ]);
  assert.match(answer.headers.all("Allow").join(), /UPDATE/);
});

test("[SI39] a transfer sends REFER and reports what NOTIFY says", async () => {
  const [bob, from] = [await phone(), await wire()];
  const { dialog, received, say } = await wireCall(from, bob);
  say("ACK", 1);
  await received.event("confirmed");
  dialog.refer("sip:carol@example.org");
  const refer = request(await from.heard.event("REFER"));
  assert.equal(refer.headers.get("Refer-To"), "<sip:carol@example.org>");
  assert.equal(refer.headers.get("Referred-By"), "<sip:bob@example.org>");
  from.say(bob.peer, responseText(refer, 202));
  assert.equal((await received.event("referred")).status, 100);
  const sipfrag = { "Content-Type": "message/sipfrag", "Event": "refer" };
  say("NOTIFY", 2, { ...sipfrag, "Subscription-State": "active" }, "SIP/2.0 180 Ringing\r\n");
  say("NOTIFY", 3, {
    ...sipfrag, "Subscription-State": "terminated;reason=noresource",
  }, "SIP/2.0 200 OK\r\n");
  await from.heard.event("200", 2);
  const statuses = () => received.events.flatMap((event) =>
    event.kind === "referred" ? [event.status] : []);
  assert.deepEqual(statuses(), [100, 180, 200]);
  dialog.refer("sip:dave@example.org");
  from.say(bob.peer, responseText(request(await from.heard.event("REFER", 1)), 603));
  await received.event("referred", 3);
  assert.deepEqual(statuses(), [100, 180, 200, 603]);
});

test("[SI40] an answer is retransmitted until its ACK; without one the call is hung up after 32 s", async () => {
  const system = createManualSystem();
  const [bob, from] = [await phone({ system }), await wire()];
  const { received } = await wireCall(from, bob);
  for (const [pauseMs, number] of [[500, 1], [1000, 2], [2000, 3], [4000, 4], [4000, 5]] as const) {
    system.advance(pauseMs);
    await from.heard.event("200", number);
  }
  system.advance(20_500);
  await from.heard.event("BYE");
  assert.deepEqual((await received.event("ended")).cause, { by: "timeout", status: 408 });
  assert.deepEqual(received.kinds(), ["ended"]);
});

test("[SI41] a retransmitted INVITE is offered once; each retransmitted 200 is acknowledged again", async () => {
  const [bob, from, alice] = [await phone(), await wire(), await phone()];
  const { text, received, say } = await wireCall(from, bob);
  from.say(bob.peer, text);
  say("ACK", 1);
  say("ACK", 1);
  await received.event("confirmed");
  say("BYE", 2);
  await received.event("ended");
  assert.equal(bob.invites.events.length, 1);
  assert.deepEqual(received.kinds(), ["confirmed", "ended"]);

  const placed = alice.call(from.peer);
  const invite = request(await from.heard.event("INVITE"));
  const contact = [`Contact: <sip:wire@127.0.0.1:${from.peer.port}>`];
  const answer = responseText(invite, 200, contact, SDP("answer"));
  for (const _ of [1, 2, 3]) from.say(alice.peer, answer);
  const [first, second] = [await from.heard.event("ACK"), await from.heard.event("ACK", 2)];
  assert.deepEqual(second.message, first.message);
  assert.equal(placed.received.kinds().filter((kind) => kind === "answered").length, 1);
  // Another telephone behind the same number picked up as well: it is notified that it lost.
  from.say(alice.peer, responseText(invite, 200, contact, SDP("fork"), "fork"));
  const bye = request(await from.heard.event("BYE"));
  assert.match(bye.headers.get("To")!, /tag=fork$/);
  assert.deepEqual(placed.received.kinds(), ["answered"]);
});

test("[SI42] in-dialog requests follow the route set of the proxies, and no other", async () => {
  const [alice, far] = [await phone(), await wire()];
  const proxy = await wire("127.0.0.3");
  const placed = alice.call(far.peer);
  const invite = request(await far.heard.event("INVITE"));
  // As the caller sees it: the nearest proxy is the last in the list.
  far.say(alice.peer, responseText(invite, 200, [
    "Contact: <sip:wire@192.0.2.7>",
    `Record-Route: <sip:192.0.2.8;lr>, <sip:127.0.0.3:${proxy.peer.port};lr>`,
  ], SDP("answer")));
  const acknowledgement = request(await proxy.heard.event("ACK"));
  assert.equal(acknowledgement.uri, "sip:wire@192.0.2.7");
  assert.deepEqual(acknowledgement.headers.all("Route"), [
    `<sip:127.0.0.3:${proxy.peer.port};lr>`, "<sip:192.0.2.8;lr>",
  ]);
  const { dialog } = await placed.received.event("answered");
  dialog.refer("sip:carol@example.org");
  assert.equal(request(await proxy.heard.event("REFER")).headers.get("CSeq"), "2 REFER");
  // The proxy is on the way, so what it passes on is believed.
  proxy.say(alice.peer, requestText("BYE", proxy, {
    "From": acknowledgement.headers.get("To"), "To": acknowledgement.headers.get("From"),
    "Call-ID": acknowledgement.headers.get("Call-ID"),
  }));
  assert.deepEqual((await placed.received.event("ended")).cause, { by: "far", status: null });
});

test("[SI43] an INVITE through a proxy is answered along its Record-Route", async () => {
  const [bob, from] = [await phone(), await wire()];
  const proxy = `<sip:127.0.0.1:${from.peer.port};lr>`;
  const { dialog, received, say, answer } = await wireCall(from, bob, {
    "Record-Route": `${proxy}, <sip:192.0.2.8;lr>`, "Contact": "<sip:wire@192.0.2.7>",
  });
  assert.deepEqual(answer.headers.all("Record-Route"), [proxy, "<sip:192.0.2.8;lr>"]);
  say("ACK", 1);
  await received.event("confirmed");
  dialog.bye();
  const bye = request(await from.heard.event("BYE"));
  assert.equal(bye.uri, "sip:wire@192.0.2.7");
  assert.deepEqual(bye.headers.all("Route"), [proxy, "<sip:192.0.2.8;lr>"]);
});

test("[SI44] an INVITE without an offer gets ours, and the ACK brings the answer", async () => {
  const [bob, from] = [await phone(), await wire()];
  from.say(bob.peer, requestText("INVITE", from));
  const received = listen((await bob.invite()).accept(SDP("our offer")));
  const { message } = await from.heard.event("200");
  assert.equal(message.body.toString(), SDP("our offer"));
  const within = {
    "From": message.headers.get("From"), "To": message.headers.get("To"),
    "Call-ID": message.headers.get("Call-ID"),
  };
  from.say(bob.peer, requestText("ACK", from, within, SDP("their answer")));
  assert.equal((await received.event("confirmed")).sdp, SDP("their answer"));
  from.say(bob.peer, requestText("INVITE", from, { ...within, CSeq: "2 INVITE" }));
  assert.equal((await received.event("reinvite")).sdp, null);
  assert.equal((await from.heard.event("200", 1)).message.body.toString(), SDP("reply"));
  from.say(bob.peer, requestText("ACK", from, { ...within, CSeq: "2 ACK" }, SDP("second answer")));
  assert.equal((await received.event("confirmed", 1)).sdp, SDP("second answer"));
});

test("[SI45] a call that rings too long ends with 480, and an unresponsive peer counts as 408", async () => {
  const system = createManualSystem();
  const [alice, far] = [await phone({ system }), await wire()];
  const rung = alice.call(far.peer, { ringingMs: 45_000 });
  const invite = request(await far.heard.event("INVITE"));
  assert.equal(invite.headers.get("Expires"), "45");
  far.say(alice.peer, responseText(invite, 183, [], SDP("early")));
  assert.equal((await rung.received.event("progress")).sdp, SDP("early"));
  system.advance(45_000);
  const failed = await rung.received.event("failed");
  assert.deepEqual([failed.status, failed.reason], [480, "No Answer"]);
  await far.heard.event("CANCEL");

  const silent = alice.call(far.peer);
  await far.heard.event("INVITE", 1);
  system.advance(32_000);
  assert.equal((await silent.received.event("failed")).status, 408);
  // Nobody listens there any more.
  const closed = await createWire();
  await closed.close();
  const unreachable = alice.call({ ...closed.peer, transport: "tcp" });
  assert.deepEqual(await unreachable.received.event("failed"), {
    kind: "failed", status: 408, reason: "Unreachable", q850: null,
  });
});
