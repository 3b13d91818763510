// An outbound call whose next hop is of no use goes on to the next address its name leads to: to
// real UDP and TCP peers on loopback, with a clock that only moves when told to.
import assert from "node:assert/strict";
import { after } from "node:test";
import { createLogger } from "#core/logger.ts";
import { createClientTransactions } from "#providers/carriers/sip/transport/client-transactions.ts";
import type { Signalling } from "#providers/carriers/sip/dialogs/dialog.ts";
import { type SipRequest } from "#providers/carriers/sip/grammar/message.ts";
import { Outgoing } from "#providers/carriers/sip/dialogs/outgoing.ts";
import type { Peer } from "#providers/carriers/sip/transport/peer.ts";
import { SIGNALLING_LIMITS as LIMITS } from "#providers/carriers/sip/grammar/signalling-limits.ts";
import { test } from "#support/bounded-test.ts";
import { createManualSystem, type ManualSystem } from "#support/manual-clock.ts";
import { createReceived } from "#support/received.ts";
import {
  answerOf, branchOf, caughtUp, contactOf, count, createCarrierTo, createTcpWire, inviteAt, request,
  type TcpWire,
} from "#support/sip/sip-hops.ts";
import {
  createPhone, createWire, makeRequest, makeResponse, responseText, SDP, type Phone,
  type PhoneOptions, type Wire,
} from "#support/sip/sip-phones.ts";

const open: { close(): Promise<unknown> }[] = [];
// The caller first: what it still waits for is bounded by its own clock.
after(async () => {
  for (const it of open.reverse()) await it.close();
});

async function wire(host?: string): Promise<Wire> {
  const made = await createWire(host);
  open.push(made);
  return made;
}

async function tcpWire(): Promise<TcpWire> {
  const made = await createTcpWire();
  open.push(made);
  return made;
}

async function phone(system: ManualSystem, options: PhoneOptions = {}): Promise<Phone> {
  const made = await createPhone({ system, ...options });
  open.push(made);
  return made;
}

const endedBy = (cause: string, answer: string) =>
  ({ kind: "ended", cause, detail: `the trunk answered ${answer}` });

async function carrierTo(...args: Parameters<typeof createCarrierTo>) {
  const made = await createCarrierTo(...args);
  open.push(made);
  return made;
}

test("[SC80] an address silent for four seconds is left for the next: the same call, sent anew", async () => {
  const [dead, alive] = [await wire(), await wire()];
  const { system, at, dial } = await carrierTo([dead, alive]);
  const { received, leg } = dial();
  const first = await inviteAt(dead);
  system.advance(3999);
  // Sent again as ever, and nowhere else.
  await caughtUp(alive, at);
  await caughtUp(dead, at);
  assert.equal(count(dead, "INVITE"), 4);
  assert.equal(count(alive, "INVITE"), 0);
  system.advance(1);
  const second = await inviteAt(alive);
  assert.notEqual(branchOf(second), branchOf(first));
  for (const name of ["From", "To", "Call-ID", "CSeq", "Contact", "P-Asserted-Identity"]) {
    assert.equal(second.headers.get(name), first.headers.get(name), name);
  }
  assert.equal(second.uri, first.uri);
  assert.deepEqual(second.body, first.body);
  alive.say(at, responseText(second, 180));
  await received.event("ringing");
  alive.say(at, answerOf(alive, second));
  await received.event("answered");
  await alive.heard.event("ACK");
  // Who was given up is not asked again.
  system.advance(20_000);
  await caughtUp(dead, at);
  assert.equal(count(dead, "INVITE"), 4);
  leg.hangUp();
  await alive.heard.event("BYE");
  // In the twenty seconds no sound came.
  assert.deepEqual(received.kinds(), ["ringing", "answered", "sound", "ended"]);
  assert.equal(count(dead, "BYE") + count(dead, "CANCEL") + count(dead, "ACK"), 0);
});

test("[SC81] a 503, a refused connection and an unreachable address are left at once", async () => {
  const [busy, alive] = [await wire(), await wire()];
  const { at, dial } = await carrierTo([busy, alive]);
  const { received, leg } = dial();
  const refused = await inviteAt(busy);
  busy.say(at, responseText(refused, 503, ["Retry-After: 30"]));
  const next = await inviteAt(alive);
  assert.equal((await busy.heard.event("ACK")).message.headers.get("CSeq"), "1 ACK");
  assert.equal(next.headers.get("CSeq"), "1 INVITE");
  alive.say(at, answerOf(alive, next));
  await received.event("answered");
  leg.hangUp();
  await alive.heard.event("BYE");

  const system = createManualSystem();
  const alice = await phone(system);
  const listening = await tcpWire();
  // The port is taken, so that nobody else listens there, but at another address.
  const nobody: Peer = { ...listening.peer, host: "127.0.0.2" };
  const overTcp = alice.call(nobody, { others: [listening.peer] });
  const heard = await inviteAt(listening);
  listening.say(responseText(heard, 486));
  assert.equal((await overTcp.received.event("failed")).status, 486);
  // A socket for IPv4 sends nothing to IPv6.
  const other: Peer = { host: "2001:db8::1", port: 5060, transport: "udp" };
  const overUdp = alice.call(other, { others: [busy.peer] });
  const invite = await inviteAt(busy, 1);
  busy.say(alice.peer, responseText(invite, 486));
  assert.equal((await overUdp.received.event("failed")).status, 486);
});

test("[SC81] if an address has no route the next is tried, with an offer that names ours as it sees it", async () => {
  const system = createManualSystem();
  const peerAt = (host: string): Peer => ({ host, port: 5060, transport: "udp" });
  const begun = createReceived<{ kind: string; request: SipRequest; fail(): void }>();
  const ways: Record<string, string> = { "192.0.2.2": "198.51.100.2", "192.0.2.3": "198.51.100.3" };
  const signalling: Signalling = {
    system,
    log: createLogger("silent"),
    contact: (_peer, localHost) => `<sip:${localHost}>`,
    localHost: ({ host }) =>
      ways[host] ? Promise.resolve(ways[host]) : Promise.reject(new Error("no route")),
    hasConnection: () => false,
    mayReach: () => true,
    begin: (made, peer, _localHost, handlers) => {
      begun.receive({ kind: peer.host, request: made, fail: () => handlers.failed("transport") });
      return { request: made, peer, hush: () => undefined, stop: () => undefined };
    },
    beginAs: () => assert.fail("nothing to cancel"),
    post: () => assert.fail("nothing to acknowledge"),
    sessions: { add: () => undefined, remove: () => undefined },
  };
  const received = createReceived<{ kind: "failed"; status: number; reason: string }>();
  const call = new Outgoing(signalling, {
    peer: peerAt("192.0.2.1"), others: ["2", "3", "4"].map((last) => peerAt(`192.0.2.${last}`)),
    uri: "sip:bob@example.org", from: "sip:alice@example.org", to: "sip:bob@example.org",
    sdp: (localHost) => `offer from ${localHost}`, credentials: null, ringingMs: 60_000,
  }, {
    progress: () => assert.fail("nothing rings"),
    answered: () => assert.fail("nobody answers"),
    failed: (status, reason) => received.receive({ kind: "failed", status, reason }),
  }, () => undefined);
  await call.begin();
  for (const last of ["2", "3"]) {
    const { request: invite, fail } = await begun.event<string>(`192.0.2.${last}`);
    assert.equal(invite.body.toString(), `offer from 198.51.100.${last}`);
    assert.equal(invite.headers.get("Contact"), `<sip:198.51.100.${last}>`);
    fail();
  }
  const { status, reason } = await received.event("failed");
  assert.deepEqual([status, reason], [408, "Unreachable"]);
  assert.deepEqual(begun.kinds(), ["192.0.2.2", "192.0.2.3"]);
  assert.equal(system.pending(), 0);
});

/** What becomes of a call to which a trunk says this. */
async function assertCauses(outcomes: [number[], string][]): Promise<void> {
  for (const [answers, cause] of outcomes) {
    const trunk = await wire();
    const { at, dial } = await carrierTo([trunk]);
    const { received } = dial();
    const invite = await inviteAt(trunk);
    for (const status of answers) trunk.say(at, responseText(invite, status));
    assert.equal((await received.event("ended")).cause, cause, answers.join(" "));
  }
}

test("[SI135] [SI136] a call a proxy ends after ringing is unanswered, one that never rang has failed; 603, 607 and 608 are rejected", () =>
  assertCauses([
    [[180, 408], "no_answer"], [[183, 487], "no_answer"], [[408], "failed"], [[180, 404], "failed"],
    [[180, 603], "rejected"], [[607], "rejected"], [[608], "rejected"],
  ]));

test("[SC82] an address that has answered keeps the call; a proxy that only sent 100 may still leave it with a 503", async () => {
  const challenge = "WWW-Authenticate: Digest realm=\"r\", nonce=\"n\", algorithm=MD5, qop=\"auth\"";
  const outcomes: [number[], number][] = [
    [[100], 480], [[183], 480], [[401], 480], [[100, 183, 503], 503], [[486], 486], [[404], 404],
    [[500], 500],
  ];
  const letGo = [[503], [100, 503], [401, 100, 503]];
  for (const [answers, outcome] of [...outcomes, ...letGo.map((all) => [all, 404] as const)]) {
    const system = createManualSystem();
    const [first, second] = [await wire(), await wire()];
    const alice = await phone(system);
    const { received } = alice.call(first.peer, {
      others: [second.peer], ringingMs: 20_000,
      credentials: { username: "alice", password: "secret" },
    });
    const invite = await inviteAt(first);
    let asked = invite;
    for (const status of answers) {
      first.say(alice.peer, responseText(asked, status, status === 401 ? [challenge] : []));
      if (status === 401) asked = await inviteAt(first, 1);
    }
    await caughtUp(first, alice.peer);
    if (letGo.includes(answers as number[])) {
      second.say(alice.peer, responseText(await inviteAt(second), 404));
      assert.equal((await received.event("failed")).status, outcome);
      continue;
    }
    system.advance(20_000);
    assert.equal((await received.event("failed")).status, outcome);
    await caughtUp(second, alice.peer);
    assert.equal(count(second, "INVITE"), 0, answers.join(" "));
  }
});

test("[SC83] a 200 from an abandoned address is acknowledged and hung up without disturbing the call", async () => {
  const [early, late, alive] = [await wire(), await wire(), await wire()];
  const { system, at, dial } = await carrierTo([early, late, alive]);
  const { received, leg } = dial();
  const first = await inviteAt(early);
  system.advance(LIMITS.hopMs);
  const second = await inviteAt(late);
  system.advance(LIMITS.hopMs);
  const third = await inviteAt(alive);
  alive.say(at, responseText(third, 180));
  await received.event("ringing");
  early.say(at, answerOf(early, first, "early"));
  assert.equal((await early.heard.event("ACK")).message.headers.get("CSeq"), "1 ACK");
  const bye = request(await early.heard.event("BYE"));
  assert.match(bye.headers.get("To")!, /;tag=early$/);
  early.say(at, responseText(bye, 200));
  // It had not heard the ACK.
  early.say(at, answerOf(early, first, "early"));
  await early.heard.event("ACK", 1);
  await caughtUp(early, at);
  assert.equal(count(early, "BYE"), 1);
  assert.deepEqual(received.kinds(), ["ringing"]);
  alive.say(at, answerOf(alive, third, "theirs"));
  await received.event("answered");
  // Long after the time an INVITE is waited for: it may ring as long as a telephone may.
  system.advance(40_000);
  late.say(at, answerOf(late, second, "late"));
  assert.match((await late.heard.event("ACK")).message.headers.get("To")!, /;tag=late$/);
  await late.heard.event("BYE");
  await caughtUp(alive, at);
  assert.equal(count(alive, "BYE"), 0);
  assert.deepEqual(received.kinds(), ["ringing", "answered", "sound"]);
  leg.hangUp();
  await alive.heard.event("BYE");
});

test("[SC83] an INVITE whose sending failed may still have arrived: responses to it are handled", async () => {
  const system = createManualSystem();
  const failing: (() => void)[] = [];
  const clients = createClientTransactions(system, (_peer, _bytes, fail) => failing.push(fail));
  const told: string[] = [];
  const invite = makeRequest("INVITE", "z9hG4bK1");
  const peer: Peer = { host: "192.0.2.2", port: 5060, transport: "udp" };
  const transaction = clients.start(invite, peer, {
    response: ({ status }) => told.push(String(status)),
    failed: (why) => {
      told.push(why);
      transaction.hush(60_000);
    },
  });
  system.advance(500);
  failing[1]!();
  failing[0]!();
  system.advance(59_999);
  clients.receive(makeResponse(invite, 200), peer);
  assert.deepEqual(told, ["transport", "200"]);
  assert.equal(failing.length, 2);
  system.advance(32_000);
  assert.equal(clients.size() + system.pending(), 0);
});

test("[SC84] late ringing at an abandoned address is cancelled, and no further address is tried", async () => {
  const [late, silent, third] = [await wire(), await wire(), await wire()];
  const { system, at, dial } = await carrierTo([late, silent, third]);
  const { received } = dial(60_000);
  const first = await inviteAt(late);
  system.advance(LIMITS.hopMs);
  const second = await inviteAt(silent);
  late.say(at, responseText(first, 100));
  late.say(at, responseText(first, 180));
  const cancel = request(await late.heard.event("CANCEL"));
  assert.equal(branchOf(cancel), branchOf(first));
  late.say(at, responseText(cancel, 200));
  late.say(at, responseText(first, 487));
  await late.heard.event("ACK");
  system.advance(LIMITS.hopMs);
  await caughtUp(third, at);
  assert.equal(count(third, "INVITE"), 0);
  assert.equal(count(late, "CANCEL"), 1);
  // It is not told as ringing: that would be another telephone than the one that is waited for.
  assert.deepEqual(received.kinds(), []);
  silent.say(at, answerOf(silent, second));
  await received.event("answered");
});

test("[SC85] at most four addresses are tried, once each, and the last response is the call's", async () => {
  const hops = await Promise.all(Array.from({ length: 6 }, () => wire()));
  const [one, two, three, four, five] = hops as [Wire, Wire, Wire, Wire, Wire];
  const { system, at, dial } = await carrierTo([one, one, two, one, three, four, five]);
  const { received } = dial(60_000);
  await inviteAt(one);
  system.advance(LIMITS.hopMs);
  two.say(at, responseText(await inviteAt(two), 503));
  three.say(at, responseText(await inviteAt(three), 503));
  const last = await inviteAt(four);
  // Nowhere to go from here: this one is waited for as ever.
  system.advance(31_999);
  await caughtUp(four, at);
  assert.deepEqual(received.kinds(), []);
  assert.equal(count(four, "INVITE"), 7);
  assert.equal(branchOf(await inviteAt(four, 6)), branchOf(last));
  system.advance(1);
  assert.deepEqual(await received.event("ended"), endedBy("failed", "408 Request Timeout"));
  await caughtUp(five, at);
  assert.equal(count(five, "INVITE"), 0);
  await caughtUp(one, at);
  assert.equal(count(one, "INVITE"), 4);
  assert.equal(count(two, "INVITE") + count(three, "INVITE"), 2);
  assert.equal(LIMITS.hopsMax, 4);

  const alice = await phone(system);
  const refused = alice.call(one.peer, { others: [two.peer] });
  one.say(alice.peer, responseText(await inviteAt(one, 4), 503));
  two.say(alice.peer, responseText(await inviteAt(two, 1), 503, ["Retry-After: 30"]));
  const { status, reason } = await refused.received.event("failed");
  assert.deepEqual([status, reason], [503, "Said"]);
});

test("[SC86] the ringing time covers all addresses together, and giving up stops the failover", async () => {
  const [dead, ringing, third] = [await wire(), await wire(), await wire()];
  const { system, at, dial } = await carrierTo([dead, ringing, third]);
  const { received } = dial(20_000);
  assert.equal((await inviteAt(dead)).headers.get("Expires"), "20");
  system.advance(LIMITS.hopMs);
  const invite = await inviteAt(ringing);
  assert.equal(invite.headers.get("Expires"), "16");
  ringing.say(at, responseText(invite, 180));
  await received.event("ringing");
  system.advance(15_999);
  assert.deepEqual(received.kinds(), ["ringing"]);
  system.advance(1);
  assert.deepEqual(await received.event("ended"), endedBy("no_answer", "480 No Answer"));
  await ringing.heard.event("CANCEL");

  system.advance(LIMITS.hopAvoidedMs);
  const given = dial();
  const first = await inviteAt(dead, 4);
  system.advance(LIMITS.hopMs);
  const second = await inviteAt(ringing, 1);
  given.leg.hangUp();
  system.advance(LIMITS.hopMs);
  await caughtUp(third, at);
  assert.equal(count(third, "INVITE"), 0);
  // Both may still have been picked up.
  dead.say(at, answerOf(dead, first));
  ringing.say(at, answerOf(ringing, second, "other"));
  for (const hop of [dead, ringing]) {
    await hop.heard.event("ACK");
    await hop.heard.event("BYE");
  }
  assert.deepEqual(given.received.events, [{ kind: "ended", cause: "we_hung_up" }]);
});

test("[SC87] over a connection the wait exceeds the connection timeout, and a late answer is hung up", async () => {
  assert.ok(LIMITS.hopStreamMs > LIMITS.connectMs);
  const [late, alive] = [await tcpWire(), await tcpWire()];
  const system = createManualSystem();
  const alice = await phone(system);
  const { received } = alice.call(late.peer, { others: [alive.peer] });
  const first = await inviteAt(late);
  system.advance(LIMITS.hopStreamMs - 1);
  await caughtUp(await wire(), alice.peer);
  assert.equal(alice.agent.counts().connections, 1);
  system.advance(1);
  const second = await inviteAt(alive);
  assert.equal(second.headers.get("Call-ID"), first.headers.get("Call-ID"));
  alive.say(responseText(second, 200, [contactOf(alive)], SDP("answer"), "theirs"));
  await received.event("answered");
  late.say(responseText(first, 200, [contactOf(late)], SDP("answer"), "late"));
  await late.heard.event("ACK");
  const bye = request(await late.heard.event("BYE"));
  assert.match(bye.headers.get("To")!, /;tag=late$/);
  assert.equal(count(alive, "BYE"), 0);
});

test("[SC91] an address that did not respond is not tried first for five minutes", async () => {
  const [dead, alive] = [await wire(), await wire()];
  const { system, at, dial } = await carrierTo([dead, alive]);
  const refusedBy = async (by: Wire, call: ReturnType<typeof dial>, number: number) => {
    by.say(at, responseText(await inviteAt(by, number), 486));
    assert.equal((await call.received.event("ended")).cause, "busy");
  };
  const first = dial();
  await inviteAt(dead);
  system.advance(LIMITS.hopMs);
  await refusedBy(alive, first, 0);
  system.advance(LIMITS.hopAvoidedMs - 1);
  await refusedBy(alive, dial(), 1);
  const before = count(dead, "INVITE");
  system.advance(1);
  await refusedBy(dead, dial(), before);
  assert.equal(count(alive, "INVITE"), 2);
});

test("[SC89] an address the server may not reach is left out", async () => {
  const [closed, other] = [await wire("127.0.0.2"), await wire()];
  const { dial, system, at } = await carrierTo(
    [closed, other], {}, (address) => address !== closed.peer.host);
  const { received } = dial();
  const invite = await inviteAt(other);
  other.say(at, responseText(invite, 503));
  assert.equal((await received.event("ended")).cause, "failed");
  system.advance(60_000);
  await caughtUp(closed, at);
  assert.equal(count(closed, "INVITE"), 0);
});

test("[SC89] calls start where the registration is, and continue with the other addresses", async () => {
  const [first, second] = [await wire(), await wire()];
  const { system, at, dial } = await carrierTo(
    [first, second], { inboundAuth: "auth", registerS: 300 });
  await first.heard.event("REGISTER");
  // Nobody there: the registration moves to the other address.
  system.advance(32_000);
  await caughtUp(first, at);
  system.advance(30_000);
  for (let left = false; !left;) {
    // Its leave is waited for a bounded time.
    left = second.heard.kinds().includes("REGISTER");
    system.advance(LIMITS.farewellMs);
    await caughtUp(first, at);
  }
  const registering = request(await second.heard.event("REGISTER"));
  second.say(at, responseText(registering, 200));
  await caughtUp(second, at);
  const { received, leg } = dial();
  second.say(at, responseText(await inviteAt(second), 503));
  first.say(at, answerOf(first, await inviteAt(first)));
  await received.event("answered");
  leg.hangUp();
  await first.heard.event("BYE");
});
