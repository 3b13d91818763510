// Sessions that have to be refreshed (RFC 4028): by whom, how often, and what a far end may refuse.
import assert from "node:assert/strict";
import { after } from "node:test";
import { test } from "#support/bounded-test.ts";
import { createManualSystem } from "#support/manual-clock.ts";
import { caughtUp, contactOf, count, inviteAt, request } from "#support/sip/sip-hops.ts";
import {
  createExchange, listen, requestText, responseText, SDP, type Phone, type Wire,
} from "#support/sip/sip-phones.ts";

const { phone, wire, close } = createExchange();
after(close);

const WITH_UPDATE = "Allow: INVITE, BYE, UPDATE";

interface Answer {
  terms: string;
  /** What the far end may be sent later. */
  allow?: string[];
  /** How many INVITEs it has had before. */
  number?: number;
  offer?: () => string;
}

/** A call of ours that the far end has answered with these terms for its session. */
async function answeredCall(
  alice: Phone, far: Wire, { terms, allow = [WITH_UPDATE], number = 0, offer }: Answer,
) {
  const { received } = alice.call(far.peer, {}, offer);
  const invite = await inviteAt(far, number);
  far.say(alice.peer, responseText(invite, 200,
    [contactOf(far), ...allow, `Session-Expires: ${terms}`], SDP("answer"), `tag${number}`));
  await received.event("answered");
  return { received, invite };
}

test("[SI49] the agreed side refreshes the session; without a refresh the call is hung up", async () => {
  const system = createManualSystem();
  const [alice, far] = [await phone({ system }), await wire()];
  const answered = async (refresher: string, number: number) => {
    const { received, invite } =
      await answeredCall(alice, far, { terms: `90;refresher=${refresher}`, number });
    assert.equal(invite.headers.get("Session-Expires"), "1800");
    return received;
  };
  const ours = await answered("uac", 0);
  system.advance(45_000);
  const refresh = request(await far.heard.event("UPDATE"));
  assert.equal(refresh.headers.get("Session-Expires"), "90;refresher=uac");
  far.say(alice.peer, responseText(refresh, 405));
  // Then with an INVITE, which everybody understands.
  const again = request(await far.heard.event("INVITE", 1));
  assert.equal(again.body.toString(), SDP("offer"));
  far.say(alice.peer, responseText(again, 200, ["Session-Expires: 90;refresher=uac"], SDP("x")));
  await far.heard.event("ACK", 1);
  system.advance(44_000);
  await caughtUp(far, alice.peer);
  assert.ok(!ours.kinds().includes("ended"));
  (await ours.event("answered")).dialog.bye();
  far.say(alice.peer, responseText(request(await far.heard.event("BYE")), 200));

  const theirs = await answered("uas", 2);
  system.advance(59_999);
  assert.ok(!theirs.kinds().includes("ended"));
  system.advance(1);
  assert.deepEqual((await theirs.event("ended")).cause, { by: "timeout", status: 408 });
  await far.heard.event("BYE", 1);
});

test("[SI140] [SI143] a refresh refused for now (500, 503) is retried as long as the session lasts", async () => {
  const system = createManualSystem();
  const [alice, far] = [await phone({ system }), await wire()];
  const { received } = await answeredCall(alice, far, { terms: "180;refresher=uac" });
  system.advance(90_000);
  const refuse = async (number: number, status: number, extra: string[]) => {
    far.say(alice.peer,
      responseText(request(await far.heard.event("UPDATE", number)), status, extra));
    await caughtUp(far, alice.peer);
  };
  await refuse(0, 500, ["Retry-After: 3"]);
  system.advance(3000);
  await refuse(1, 503, []);
  system.advance(5000);
  await refuse(2, 500, ["Retry-After: 0"]);
  system.advance(999);
  await caughtUp(far, alice.peer);
  assert.equal(count(far, "UPDATE"), 3);
  system.advance(1);
  await refuse(3, 200, ["Session-Expires: 180;refresher=uac"]);
  system.advance(80_000);
  await caughtUp(far, alice.peer);
  assert.ok(!received.kinds().includes("ended"));
});

test("[SI145] an UPDATE refused for any reason is followed by a re-INVITE", async () => {
  const system = createManualSystem();
  const [alice, far] = [await phone({ system }), await wire()];
  for (const [number, status] of [403, 400, 488, 401].entries()) {
    const { received } =
      await answeredCall(alice, far, { terms: "90;refresher=uac", number: 2 * number });
    system.advance(45_000);
    far.say(alice.peer, responseText(request(await far.heard.event("UPDATE", number)), status));
    const again = request(await far.heard.event("INVITE", 2 * number + 1));
    far.say(alice.peer, responseText(again, 200, ["Session-Expires: 90;refresher=uac"], SDP("x")));
    await far.heard.event("ACK", 2 * number + 1);
    system.advance(44_000);
    await caughtUp(far, alice.peer);
    assert.ok(!received.kinds().includes("ended"), `${status}`);
    (await received.event("answered")).dialog.bye();
    far.say(alice.peer, responseText(request(await far.heard.event("BYE", number)), 200));
  }
});

test("[SI50] a session interval that is too small is refused with 422, and ours is raised after a 422", async () => {
  const [bob, far] = [await phone(), await wire()];
  far.say(bob.peer, requestText("INVITE", far, {
    "Session-Expires": "60", "Supported": "timer",
  }, SDP("x")));
  assert.equal((await far.heard.event("422")).message.headers.get("Min-SE"), "90");
  far.say(bob.peer, requestText("INVITE", far, {
    "Session-Expires": "120;refresher=uac", "Supported": "timer",
  }, SDP("x")));
  listen((await bob.invite()).accept(SDP("answer")));
  const { headers } = (await far.heard.event("200")).message;
  assert.equal(headers.get("Session-Expires"), "120;refresher=uac");
  assert.equal(headers.get("Require"), "timer");
  bob.call(far.peer);
  const first = request(await far.heard.event("INVITE"));
  far.say(bob.peer, responseText(first, 422, ["Min-SE: 3600"]));
  const second = request(await far.heard.event("INVITE", 1));
  assert.equal(second.headers.get("Session-Expires"), "3600");
  assert.equal(second.headers.get("Min-SE"), "3600");
});

test("[SI146] an interval under 90 s that cannot be refused is kept as it is", async () => {
  const system = createManualSystem();
  const [alice, far] = [await phone({ system }), await wire()];
  await answeredCall(alice, far, { terms: "60;refresher=uac" });
  // It hangs up after 40 s (RFC 4028 10).
  system.advance(30_000);
  const refresh = request(await far.heard.event("UPDATE"));
  far.say(alice.peer, responseText(refresh, 200, ["Session-Expires: 60;refresher=uac"]));
  // A caller without timers, whose proxy wants them.
  far.say(alice.peer, requestText("INVITE", far, { "Session-Expires": "60" }, SDP("x")));
  listen((await alice.invite()).accept(SDP("answer")));
  const { headers } = (await far.heard.event("200")).message;
  assert.equal(headers.get("Session-Expires"), "60;refresher=uas");
  assert.equal(headers.get("Require"), null);
});

test("[SI37] [SI149] a refresh that collides with their offer is retried, and describes what was agreed in between", async () => {
  const system = createManualSystem();
  const [alice, far] = [await phone({ system }), await wire()];
  await answeredCall(alice, far, {
    terms: "90;refresher=uac", allow: [], offer: () => SDP("held"),
  });
  system.advance(45_000);
  const refresh = request(await far.heard.event("INVITE", 1));
  const within = {
    "From": refresh.headers.get("To"), "To": refresh.headers.get("From"),
    "Call-ID": refresh.headers.get("Call-ID"), "Supported": "timer",
  };
  const offer = (number: number) => far.say(alice.peer, requestText("INVITE", far, {
    ...within, "CSeq": `${number} INVITE`, "Session-Expires": "90;refresher=uas",
  }, SDP("hold")));
  offer(1);
  await far.heard.event("491");
  far.say(alice.peer, responseText(refresh, 491));
  await far.heard.event("ACK", 1);
  offer(2);
  await far.heard.event("200");
  far.say(alice.peer, requestText("ACK", far, { ...within, CSeq: "2 ACK" }));
  await caughtUp(far, alice.peer);
  system.advance(4000);
  const again = request(await far.heard.event("INVITE", 2));
  assert.equal(again.body.toString(), SDP("held"));
});
