// What the SIP user agent does with passwords, clocks, connections and with people who mean harm.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { after } from "node:test";
import { createSystem } from "#core/system.ts";
import { createDigestServer } from "#providers/carriers/sip/grammar/digest.ts";
import { createFloodGuard } from "#providers/carriers/sip/transport/flood-guard.ts";
import { nextHop, type Peer } from "#providers/carriers/sip/transport/peer.ts";
import { SIGNALLING_LIMITS } from "#providers/carriers/sip/grammar/signalling-limits.ts";
import type { RegistrationState } from "#providers/carriers/sip/dialogs/registration.ts";
import { test } from "#support/bounded-test.ts";
import { createManualSystem } from "#support/manual-clock.ts";
import { createReceived } from "#support/received.ts";
import { caughtUp, request } from "#support/sip/sip-hops.ts";
import {
  createExchange, listen, requestText, responseText, SDP, wireCall, type Phone, type Wire,
} from "#support/sip/sip-phones.ts";
import { selfSignedCertificate, type Certificate } from "#support/vendors/realtime-server.ts";

const { phone, wire, close } = createExchange();
after(close);

const credentials = { username: "alice", password: "secret" };
const passwordOf = (username: string) => (username === "alice" ? "secret" : null);

/** However it ends. */
const closing = (socket: Socket) => new Promise<void>((resolve) => {
  socket.on("error", () => undefined).on("close", () => resolve()).resume();
});

function registrations(of: Phone, to: Wire, changes = {}) {
  const received = createReceived<{ kind: RegistrationState }>();
  const registration = of.agent.register({
    peer: to.peer, registrar: "sip:example.org", aor: "sip:alice@example.org",
    contactUser: "alice", credentials, expiresS: 600, ...changes,
  }, (kind) => received.receive({ kind }));
  return { received, registration };
}

test("[SI46] registration: with digest, renewed at 80 % of the granted time, removed at the end", async () => {
  const system = createManualSystem();
  const [alice, registrar] = [await phone({ system }), await wire()];
  const digest = createDigestServer({ realm: "example.org", system });
  const { received, registration } = registrations(alice, registrar);
  const first = request(await registrar.heard.event("REGISTER"));
  const challenges = digest.challenges().map((value) => `WWW-Authenticate: ${value}`);
  registrar.say(alice.peer, responseText(first, 401, challenges));
  const second = request(await registrar.heard.event("REGISTER", 1));
  assert.equal(second.headers.get("CSeq"), "2 REGISTER");
  assert.equal(second.headers.get("Call-ID"), first.headers.get("Call-ID"));
  const proof = second.headers.get("Authorization");
  assert.deepEqual(digest.verify(proof, second, passwordOf), { kind: "ok", username: "alice" });
  const contact = second.headers.get("Contact");
  assert.equal(contact, `<sip:alice@127.0.0.1:${alice.agent.port}>`);
  registrar.say(alice.peer, responseText(second, 200, [
    "Contact: <sip:other@192.0.2.1>;expires=20", `Contact: ${contact};expires=100`,
  ]));
  await received.event("registered");
  system.advance(79_999);
  await caughtUp(registrar, alice.peer);
  assert.equal(registrar.heard.kinds().filter((kind) => kind === "REGISTER").length, 2);
  system.advance(1);
  const third = request(await registrar.heard.event("REGISTER", 2));
  // The nonce is known already: one request less, and its counter has gone on.
  assert.match(third.headers.get("Authorization")!, /nc=00000002/);
  registrar.say(alice.peer, responseText(third, 200, [`Contact: ${contact};expires=100`]));
  const closed = registration.close();
  const last = request(await registrar.heard.event("REGISTER", 3));
  assert.equal(last.headers.get("Expires"), "0");
  registrar.say(alice.peer, responseText(last, 200));
  await closed;
  assert.deepEqual(received.kinds(), ["registered"]);
});

test("[SI47] a registration that is refused or unanswered is reported and retried later", async () => {
  const system = createManualSystem();
  const [alice, registrar] = [await phone({ system }), await wire()];
  const { received, registration } = registrations(alice, registrar);
  const challenge = 'WWW-Authenticate: Digest realm="r", nonce="n", qop="auth"';
  for (const number of [0, 1]) {
    const asked = request(await registrar.heard.event("REGISTER", number));
    registrar.say(alice.peer, responseText(asked, 401, [challenge]));
  }
  await received.event("refused");
  // A wrong password is not tried once a second: half a minute to a minute.
  system.advance(29_000);
  await caughtUp(registrar, alice.peer);
  assert.equal(registrar.heard.kinds().filter((kind) => kind === "REGISTER").length, 2);
  system.advance(31_000);
  const brief = request(await registrar.heard.event("REGISTER", 2));
  registrar.say(alice.peer, responseText(brief, 423, ["Min-Expires: 1200"]));
  const longer = request(await registrar.heard.event("REGISTER", 3));
  assert.equal(longer.headers.get("Expires"), "1200");
  system.advance(32_000);
  await received.event("unreachable");
  assert.deepEqual(received.kinds(), ["refused", "unreachable"]);
  const closed = registration.close();
  // Nobody answers; two seconds and no more.
  while (!registrar.heard.events.some(({ message }) => message.headers.get("Expires") === "0")) {
    await registrar.heard.event("REGISTER", registrar.heard.kinds()
      .filter((kind) => kind === "REGISTER").length);
  }
  system.advance(SIGNALLING_LIMITS.farewellMs);
  await closed;
});

test("[SI48] a challenged call is sent again with credentials: once, or twice if the nonce was stale", async () => {
  const digest = createDigestServer({ realm: "us", system: createSystem() });
  const bob = await phone({
    atOnce: (invite) => {
      const proof = invite.request.headers.get("Authorization");
      if (digest.verify(proof, invite.request, passwordOf).kind === "ok") return;
      invite.refuse(401, undefined, digest.challenges()
        .map((value): [string, string] => ["WWW-Authenticate", value]));
    },
  });
  const alice = await phone();
  const good = alice.call(bob.peer, { credentials });
  const invite = await bob.invite(1);
  assert.equal(invite.request.headers.get("CSeq"), "2 INVITE");
  const received = listen(invite.accept(SDP("answer")));
  (await good.received.event("answered")).dialog.bye();
  await received.event("ended");
  const wrong = alice.call(bob.peer, { credentials: { ...credentials, password: "guess" } });
  assert.equal((await wrong.received.event("failed")).status, 401);
  const none = alice.call(bob.peer);
  assert.equal((await none.received.event("failed")).status, 401);

  const far = await wire();
  const stale = alice.call(far.peer, { credentials });
  for (const [number, extra] of [[0, ""], [1, ", stale=true"], [2, ", stale=true"]] as const) {
    const asked = request(await far.heard.event("INVITE", number));
    assert.equal(asked.headers.get("Proxy-Authorization") === null, number === 0);
    far.say(alice.peer, responseText(asked, 407, [
      `Proxy-Authenticate: Digest realm="p", nonce="n${number}", qop="auth"${extra}`,
    ]));
  }
  assert.equal((await stale.received.event("failed")).status, 407);
  await caughtUp(far, alice.peer);
  assert.equal(far.heard.kinds().filter((kind) => kind === "INVITE").length, 3);
});

test("[SI51] only the peer and its proxies can end a call, and old requests do not count", async () => {
  const [bob, from, stranger] = [await phone(), await wire(), await wire("127.0.0.2")];
  const { received, say, within } = await wireCall(from, bob);
  say("ACK", 1);
  await received.event("confirmed");
  // Has seen all there is to see, but cannot be where the peer is.
  stranger.say(bob.peer, requestText("BYE", stranger, { ...within, CSeq: "50 BYE" }));
  await stranger.heard.event("481");
  say("BYE", 50, { To: "<sip:bob@example.org>;tag=other" });
  await from.heard.event("481");
  say("BYE", 1);
  await from.heard.event("500");
  assert.deepEqual(received.kinds(), ["confirmed"]);
  say("BYE", 51);
  assert.deepEqual((await received.event("ended")).cause, { by: "far", status: null });
  say("BYE", 52);
  await from.heard.event("481", 1);
});

test("[SI52] unsupported requests are refused and leave no state", async () => {
  const [bob, from] = [await phone(), await wire()];
  const cases: [string, string, string?][] = [
    ["501", requestText("FROBNICATE", from)],
    ["405", requestText("REGISTER", from)],
    ["420", requestText("INVITE", from, { Require: "replaces, timer" }, SDP("x")), "Unsupported"],
    ["481", requestText("BYE", from, { To: "<sip:bob@example.org>;tag=unknown" })],
    ["481", requestText("CANCEL", from)],
    ["481", requestText("BYE", from)],
    ["483", requestText("INVITE", from, { "Max-Forwards": "0" }, SDP("x"))],
    ["400", requestText("INVITE", from, { Contact: null }, SDP("x"))],
    ["415", requestText("INVITE", from, { "Content-Type": "text/html" }, "hello"), "Accept"],
    ["416", requestText("OPTIONS", from).replace("sip:bob@127.0.0.1 SIP", "http:bob SIP")],
    ["505", requestText("OPTIONS", from).replace("SIP/2.0\r\n", "SIP/3.0\r\n")],
  ];
  const counts: Record<string, number> = {};
  for (const [status, text, header] of cases) {
    from.say(bob.peer, text);
    const { message } = await from.heard.event(status, counts[status] ?? 0);
    counts[status] = (counts[status] ?? 0) + 1;
    if (header) assert.ok(message.headers.get(header), `${status} has ${header}`);
  }
  from.say(bob.peer, requestText("OPTIONS", from));
  const { headers } = (await from.heard.event("200")).message;
  assert.match(headers.all("Allow").join(), /INVITE.*BYE/);
  assert.equal(headers.get("Accept"), "application/sdp");
  assert.match(headers.get("To")!, /tag=/);
  assert.equal(bob.agent.counts().transactions, 0);
  assert.equal(bob.invites.events.length, 0);
});

test("[SI197] a caller who requires reliable provisional responses is answered without any", async () => {
  const [bob, from] = [await phone(), await wire()];
  const call = { "Call-ID": "reliable", "From": "<sip:wire@example.org>;tag=rel" };
  from.say(bob.peer, requestText("INVITE", from, { ...call, Require: "100rel" }, SDP("x")));
  const invite = await bob.invite();
  invite.ring();
  invite.accept(SDP("reply"));
  await from.heard.event("200");
  assert.deepEqual(from.heard.kinds(), ["100", "200"]);
});

test("[SI53] the same INVITE arriving by a second path is refused with 482", async () => {
  const [bob, from] = [await phone(), await wire()];
  const text = requestText("INVITE", from, {}, SDP("x"));
  from.say(bob.peer, text);
  (await bob.invite()).ring();
  from.say(bob.peer, text.replace("branch=z9hG4bK", "branch=z9hG4bKother"));
  await from.heard.event("482");
  assert.equal(bob.invites.events.length, 1);
});

test("[SI54] a flood of INVITEs is bounded: refused with 503, then ignored", async () => {
  const system = createManualSystem();
  const [bob, from] = [await phone({ system }), await wire()];
  const { say } = await wireCall(from, bob);
  const { invitesBurstMax, refusalsPerSecondMax, invitesPerSecondMax } = SIGNALLING_LIMITS;
  for (let number = 0; number < 300; number++) {
    from.say(bob.peer, requestText("INVITE", from, {}, SDP("x")));
    // One after the other is not the point; the socket's buffer is small.
    if (number % 20 === 0) await new Promise<void>((resolve) => setImmediate(resolve));
  }
  // The call that was there before goes on; its answer comes when all else has been looked at.
  say("INFO", 2);
  await from.heard.event("200", 1);
  const { message } = await from.heard.event("503");
  assert.equal(message.headers.get("Retry-After"), "5");
  const count = (kind: string) => from.heard.kinds().filter((it) => it === kind).length;
  assert.equal(count("503"), refusalsPerSecondMax);
  assert.equal(bob.invites.events.length, invitesBurstMax);
  assert.equal(bob.agent.counts().transactions, invitesBurstMax + 1);
  system.advance(1000);
  for (let number = 0; number < invitesPerSecondMax; number++) {
    from.say(bob.peer, requestText("INVITE", from, {}, SDP("x")));
  }
  await bob.invite(invitesBurstMax + invitesPerSecondMax - 1);

  const guard = createFloodGuard(system);
  for (let number = 0; number < 3 * SIGNALLING_LIMITS.sourcesMax; number++) {
    guard.mayAnswer(`10.0.${number >> 8}.${number & 255}`);
  }
  assert.equal(guard.size(), SIGNALLING_LIMITS.sourcesMax);
});

test("[SI55] an INVITE refused at once leaves no state, and an exception in the handler is a 500", async () => {
  const [alice, bob] = [await phone(), await phone({ atOnce: (invite) => invite.refuse(403) })];
  const { received } = alice.call(bob.peer);
  assert.equal((await received.event("failed")).status, 403);
  assert.equal(bob.agent.counts().transactions, 0);
  const broken = await phone({
    atOnce: () => {
      throw new Error("broken");
    },
  });
  const failing = alice.call(broken.peer);
  assert.equal((await failing.received.event("failed")).status, 500);
});

test("[SI56] datagrams that are not SIP are ignored", async () => {
  const [bob, from] = [await phone(), await wire()];
  for (const garbage of [
    Buffer.alloc(0), Buffer.from("\r\n\r\n"), Buffer.alloc(1400, 0xff), Buffer.from("GET / HTTP/1.1"),
    Buffer.from("INVITE sip:bob SIP/2.0\r\n\r\n"), Buffer.alloc(60_000, "a"),
    Buffer.from(requestText("ACK", from)), createSystem().randomBytes(1000),
    Buffer.from(requestText("INVITE", from).replace("Call-ID: ", "")),
  ]) from.say(bob.peer, garbage);
  await caughtUp(from, bob.peer);
  assert.deepEqual(from.heard.kinds().filter((kind) => kind !== "400"), ["200"]);
  assert.equal(bob.agent.counts().transactions, 0);
  assert.equal(bob.invites.events.length, 0);
});

test("[SI57] over TCP a call uses one connection; one that never sends a message is closed", async () => {
  const system = createManualSystem();
  const [alice, bob] = [await phone(), await phone({ system, transport: "tcp" })];
  const placed = alice.call(bob.peer);
  const invite = await bob.invite();
  assert.equal(invite.peer.transport, "tcp");
  const theirs = invite.accept(SDP("answer"));
  const received = listen(theirs);
  await received.event("confirmed");
  theirs.bye();
  assert.equal((await placed.received.event("ended")).cause.by, "far");
  assert.equal(alice.agent.counts().connections, 1);
  assert.equal(bob.agent.counts().connections, 1);

  const socket = connect(bob.agent.port, "127.0.0.1");
  socket.write("OPTIONS sip:bob@127.0.0.1 SIP/2.0\r\nVia: ");
  const pinger = connect(bob.agent.port, "127.0.0.1");
  pinger.write("\r\n\r\n");
  const [pong] = await once(pinger, "data") as [Buffer];
  assert.equal(pong.toString(), "\r\n");
  const closed = closing(socket);
  // Bytes put nothing off, only a message does.
  socket.write("SIP/2.0/TCP 127.0.0.1");
  system.advance(SIGNALLING_LIMITS.messageMs);
  await closed;
  const babbler = connect(bob.agent.port, "127.0.0.1");
  babbler.write("a".repeat(200_000));
  await closing(babbler);
  pinger.destroy();
});

test("[SI58] over TLS the peer's certificate is verified unless that is disabled", async (t) => {
  let certificate: Certificate;
  try {
    certificate = await selfSignedCertificate();
  } catch {
    return t.skip("openssl is not there to make a certificate");
  }
  const bob = await phone({ tls: certificate, transport: "tls" });
  assert.equal(bob.agent.tlsPort, bob.agent.port + 1);
  const strict = (await phone()).call(bob.peer);
  assert.equal((await strict.received.event("failed")).status, 408);
  assert.equal(bob.invites.events.length, 0);
  for (const options of [{ tlsVerify: false }, { tlsCa: certificate.cert }]) {
    const { received } = (await phone(options)).call(bob.peer);
    const invite = await bob.invite(bob.invites.events.length);
    assert.match(invite.request.headers.get("Contact")!, /transport=tls/);
    const theirs = invite.accept(SDP("answer"));
    await listen(theirs).event("confirmed");
    theirs.bye();
    await received.event("ended");
  }
  const misnamed: Peer = { ...bob.peer, serverName: "sip.example.org" };
  const wrong = (await phone({ tlsCa: certificate.cert })).call(misnamed);
  assert.equal((await wrong.received.event("failed")).status, 408);
});

test("[SI59] a dialog's next request goes to its route, unless that address is impossible", async () => {
  const peer: Peer = { host: "198.51.100.1", port: 5080, transport: "udp" };
  const to = (uri: string, from = peer) => {
    const { host, port, transport } = nextHop(uri, from, () => true);
    return `${transport}:${host}:${port}`;
  };
  assert.equal(to("sip:a@203.0.113.5"), "udp:203.0.113.5:5060");
  assert.equal(to("sip:a@203.0.113.5:5070;transport=TCP"), "tcp:203.0.113.5:5070");
  assert.equal(to("sips:a@203.0.113.5"), "tls:203.0.113.5:5061");
  assert.equal(to("sip:a@[2001:db8::1]:5070"), "udp:2001:db8::1:5070");
  assert.equal(to("sip:a@pbx.example.org"), "udp:198.51.100.1:5080");
  assert.equal(to("sip:a@192.168.1.20:5060"), "udp:198.51.100.1:5080");
  assert.equal(to("sip:a@192.168.1.20:5060", { ...peer, host: "10.0.0.2" }),
    "udp:192.168.1.20:5060");
  const [alice, bob] = [await phone({ publicHost: "203.0.113.9" }), await phone()];
  alice.call(bob.peer);
  const { headers } = (await bob.invite()).request;
  assert.equal(headers.get("Contact"), `<sip:alice@203.0.113.9:${alice.agent.port}>`);
  assert.match(headers.get("Via")!, /203\.0\.113\.9:.*received=127\.0\.0\.1/);
  // Ending the program ends what it was doing.
  await alice.close();
  assert.equal(alice.agent.counts().transactions, 0);
});
