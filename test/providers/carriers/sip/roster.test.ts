// The trunks of the SIP carrier: where their names lead, how each stays registered, and whose a
// call is that comes in. Names and registrations are the test's own, time is a manual clock.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { createFailedAuthentications } from "#core/failed-authentications.ts";
import { LIMITS } from "#core/limits.ts";
import { createLogger, type Logger } from "#core/logger.ts";
import { answerChallenge, chooseChallenge, createDigestServer } from "#providers/carriers/sip/grammar/digest.ts";
import { calledNumber, callerNumber, identify } from "#providers/carriers/sip/trunks/identify.ts";
import { parseMessage, type SipRequest } from "#providers/carriers/sip/grammar/message.ts";
import { contactUserOf, resolveTrunk, TrunkRoster, type Names } from "#providers/carriers/sip/trunks/trunk-roster.ts";
import type { TrunkSetup } from "#providers/carriers/sip/trunks/trunk.ts";
import type { IncomingInvite } from "#providers/carriers/sip/dialogs/call-types.ts";
import type {
  RegistrationRequest, RegistrationState,
} from "#providers/carriers/sip/dialogs/registration.ts";
import { createManualSystem } from "#support/manual-clock.ts";

const trunkOf = (changes: Partial<TrunkSetup> = {}): TrunkSetup => ({
  id: 1, accountId: 1, trunkType: "number", phoneNumber: "+14155550100",
  username: "alice", password: "s3cret", address: "sip.example.com", port: null, transport: "udp", inboundAuth: "auth",
  allowedNetworks: null, registerS: 300, outboundProxy: false, requireSrtp: false, codecs: ["pcmu", "pcma"],
  ...changes,
});

interface Made {
  args: RegistrationRequest;
  state(state: RegistrationState): void;
  isClosed: boolean;
}

/** What DNS says; a name that is missing cannot be resolved. */
type Zone = Record<string, string[] | { name: string; port: number }[]>;

function createWorld(zone: Zone, mayReach: (address: string) => boolean = () => true) {
  const system = createManualSystem();
  const asked: string[] = [];
  const names: Names = {
    addresses: (name) => {
      asked.push(name);
      const found = zone[name];
      return found ? Promise.resolve(found as string[]) : Promise.reject(new Error(`no ${name}`));
    },
    services: (name) => {
      asked.push(name);
      return Promise.resolve((zone[name] ?? []) as { name: string; port: number }[]);
    },
  };
  const made: Made[] = [];
  const order: string[] = [];
  let leave: Promise<void> = Promise.resolve();
  const roster = new TrunkRoster({
    agent: {
      register: (args, onState) => {
        const one: Made = { args, state: onState, isClosed: false };
        made.push(one);
        order.push(`register ${args.aor} at ${args.peer.host}`);
        return {
          close: async () => {
            order.push(`leaving ${args.aor} at ${args.peer.host}`);
            await leave;
            one.isClosed = true;
            order.push(`left ${args.aor} at ${args.peer.host}`);
          },
        };
      },
    },
    mayReach,
    names,
    system,
    log: createLogger("silent"),
  });
  return {
    roster, made, order, asked, system, zone,
    /** Whoever is closed from now on has to wait for it. */
    slowly: (until: Promise<void>) => void (leave = until),
    /** Lets what was begun come to its end. */
    settled: async () => {
      for (let turn = 0; turn < 5; turn += 1) await nextTurn();
    },
  };
}

const ZONE: Zone = {
  "_sip._udp.sip.example.com": [{ name: "b.example.com", port: 5070 }, { name: "a.example.com", port: 5080 }],
  "_sips._tcp.sip.example.com": [{ name: "a.example.com", port: 5443 }],
  "sip.example.com": ["192.0.2.1", "192.0.2.2"],
  "a.example.com": ["192.0.2.10"],
  "b.example.com": ["192.0.2.20", "2001:db8::20"],
};

test("[SC50] a trunk's address follows DNS: SRV records in order, else the host with the default port", async () => {
  const { roster: _, ...world } = createWorld(ZONE);
  const names: Names = {
    addresses: (name) => Promise.resolve(world.zone[name] as string[]),
    services: (name) =>
      Promise.resolve((world.zone[name] ?? []) as { name: string; port: number }[]),
  };
  const where = async (changes: Partial<TrunkSetup>): Promise<string[]> =>
    (await resolveTrunk(trunkOf(changes), names)).map(({ host, port, transport, serverName }) =>
      [transport, host, port, ...(serverName === undefined ? [] : [serverName])].join(" "));
  assert.deepEqual(await where({}), [
    "udp 192.0.2.20 5070", "udp 2001:db8::20 5070", "udp 192.0.2.10 5080",
  ]);
  assert.deepEqual(await where({ transport: "tls" }), ["tls 192.0.2.10 5443 sip.example.com"]);
  assert.deepEqual(await where({ transport: "tcp" }), ["tcp 192.0.2.1 5060", "tcp 192.0.2.2 5060"]);
  assert.deepEqual(await where({ port: 5090 }), ["udp 192.0.2.1 5090", "udp 192.0.2.2 5090"]);
  assert.deepEqual(await where({ address: "192.0.2.9" }), ["udp 192.0.2.9 5060"]);
  assert.deepEqual(await where({ address: "192.0.2.9", transport: "tls" }), ["tls 192.0.2.9 5061"]);
  assert.deepEqual(await where({ address: "2001:db8::1", port: 5090 }), ["udp 2001:db8::1 5090"]);
});

test("[SC51] DNS results are cached for a minute, and longer while DNS does not answer", async () => {
  const world = createWorld({ "sip.example.com": ["192.0.2.1"] });
  const trunk = trunkOf({ inboundAuth: "ip", allowedNetworks: ["192.0.2.1"] });
  world.roster.set([trunk]);
  const host = async () => (await world.roster.find(1))?.peer.host;
  assert.equal(await host(), "192.0.2.1");
  world.zone["sip.example.com"] = ["192.0.2.2"];
  world.system.advance(59_000);
  assert.equal(await host(), "192.0.2.1");
  world.system.advance(2000);
  assert.equal(await host(), "192.0.2.2");
  delete world.zone["sip.example.com"];
  world.system.advance(61_000);
  assert.equal(await host(), "192.0.2.2");
  assert.equal(await world.roster.find(2), null);
});

test("[SC52] nothing is sent to forbidden addresses, whatever a name resolves to", async () => {
  const isPublic = (address: string): boolean => !address.startsWith("10.");
  const world = createWorld({ "sip.example.com": ["10.0.0.1", "192.0.2.2"], inside: ["10.0.0.1"] }, isPublic);
  world.roster.set([
    trunkOf(), trunkOf({ id: 2, address: "inside" }), trunkOf({ id: 3, address: "10.0.0.7" }),
  ]);
  await world.settled();
  assert.equal((await world.roster.find(1))?.peer.host, "192.0.2.2");
  assert.equal(await world.roster.find(2), null);
  assert.equal(await world.roster.find(3), null);
  assert.deepEqual(world.order, ["register sip:alice@sip.example.com at 192.0.2.2"]);
});

test("[SC53] trunks with a login are registered, changed ones again after unregistering, deleted ones no more", async () => {
  const world = createWorld({ "sip.example.com": ["192.0.2.1"] });
  const { roster, order } = world;
  const other = trunkOf({ id: 2, username: "bob@example.org" });
  const byIp = trunkOf({ id: 3, username: "carol", inboundAuth: "ip", allowedNetworks: [] });
  roster.set([trunkOf(), other, byIp]);
  await world.settled();
  const [first, second] = world.made;
  assert.deepEqual(first!.args, {
    peer: { host: "192.0.2.1", port: 5060, transport: "udp" },
    registrar: "sip:sip.example.com", aor: "sip:alice@sip.example.com", contactUser: "trunk-1",
    credentials: { username: "alice", password: "s3cret" }, expiresS: 300,
  });
  assert.deepEqual(
    [second!.args.registrar, second!.args.aor, second!.args.credentials.username],
    ["sip:example.org", "sip:bob@example.org", "bob"]);
  assert.equal(world.made.length, 2);
  // What its owner calls it is nothing to the registrar.
  roster.set([{ ...trunkOf(), nickname: "Desk" } as TrunkSetup, other, byIp]);
  await world.settled();
  assert.equal(world.made.length, 2);
  order.length = 0;
  const left = Promise.withResolvers<void>();
  world.slowly(left.promise);
  // The last version waits until the first has left, whatever came between.
  for (const now of [[trunkOf({ password: "n0" })], [], [trunkOf({ password: "n3w" })]]) roster.set([...now, other]);
  await world.settled();
  assert.deepEqual(order, ["leaving sip:alice@sip.example.com at 192.0.2.1"]);
  left.resolve();
  await world.settled();
  assert.deepEqual(order.slice(1), [
    "left sip:alice@sip.example.com at 192.0.2.1", "register sip:alice@sip.example.com at 192.0.2.1",
  ]);
  assert.equal(world.made[2]!.args.credentials.password, "n3w");
  assert.equal((await roster.find(1))?.trunk.password, "n3w");
  roster.set([trunkOf({ password: "n3w" })]);
  assert.equal(await roster.find(2), null);
  assert.equal(await roster.find(3), null);
  await roster.close();
  assert.ok(world.made.every(({ isClosed }) => isClosed));
  assert.equal(world.system.pending(), 0);
});

test("[SC54] a trunk deleted during its DNS lookup is never registered; a missing name is looked up again", async () => {
  const world = createWorld({});
  world.roster.set([trunkOf()]);
  world.roster.set([]);
  await world.settled();
  assert.deepEqual(world.made, []);
  world.roster.set([trunkOf()]);
  await world.settled();
  assert.deepEqual(world.made, []);
  world.zone["sip.example.com"] = ["192.0.2.1"];
  world.system.advance(30_000);
  await world.settled();
  assert.equal(world.made.length, 1);
  world.roster.set([]);
  await world.settled();
  assert.equal(world.system.pending(), 0);
});

test("[SC55] a silent registrar is tried at its other addresses, and where its name resolves to by then", async () => {
  const world = createWorld({ "sip.example.com": ["192.0.2.1", "192.0.2.2"] });
  world.roster.set([trunkOf()]);
  await world.settled();
  world.made[0]!.state("unreachable");
  world.system.advance(30_000);
  await world.settled();
  assert.deepEqual(world.order.slice(1), [
    "leaving sip:alice@sip.example.com at 192.0.2.1", "left sip:alice@sip.example.com at 192.0.2.1",
    "register sip:alice@sip.example.com at 192.0.2.2",
  ]);
  // Calls go where the registration is.
  assert.equal((await world.roster.find(1))?.peer.host, "192.0.2.2");
  world.made[1]!.state("registered");
  world.system.advance(120_000);
  await world.settled();
  assert.equal(world.made.length, 2);
  world.zone["sip.example.com"] = ["192.0.2.3"];
  world.made[1]!.state("unreachable");
  world.system.advance(30_000);
  await world.settled();
  assert.equal(world.made[2]!.args.peer.host, "192.0.2.3");
  // Where there is no other address the registration itself tries again, and is not disturbed.
  world.made[2]!.state("unreachable");
  world.system.advance(90_000);
  await world.settled();
  assert.equal(world.made.length, 3);
  await world.roster.close();
  assert.equal(world.system.pending(), 0);
});

test("[SC56] a call over a registration belongs to the trunk it names if a registrar has several", async () => {
  const world = createWorld({ "sip.example.com": ["192.0.2.1"] });
  const { roster } = world;
  const alice = trunkOf();
  const bob = trunkOf({ id: 2, username: "bob", phoneNumber: "+493012345678" });
  const at = (address: string, called: string | null) =>
    (roster.registeredAt(address, called) as TrunkSetup | null)?.id ?? null;
  roster.set([alice]);
  await world.settled();
  // Not before it was taken there.
  assert.equal(at("192.0.2.1", contactUserOf(alice)), null);
  world.made[0]!.state("registered");
  assert.equal(at("192.0.2.1", contactUserOf(alice)), 1);
  assert.equal(at("::ffff:192.0.2.1", "anything"), 1);
  assert.equal(at("192.0.2.9", contactUserOf(alice)), null);
  roster.set([alice, bob]);
  await world.settled();
  world.made[1]!.state("registered");
  assert.equal(at("192.0.2.1", "trunk-1"), 1);
  assert.equal(at("192.0.2.1", "trunk-2"), 2);
  assert.equal(at("192.0.2.1", "493012345678"), 2);
  assert.equal(at("192.0.2.1", "012345678"), 2);
  assert.equal(at("192.0.2.1", "anything"), null);
  assert.equal(at("192.0.2.1", "678"), null);
  assert.equal(at("192.0.2.1", null), null);
  world.made[1]!.state("refused");
  assert.equal(at("192.0.2.1", "trunk-2"), null);
  // Somebody else's calls come from there as well: they are not taken for alice's.
  roster.set([alice, trunkOf({ id: 3, inboundAuth: "ip", allowedNetworks: ["192.0.2.0/24"] })]);
  assert.equal(at("192.0.2.1", "anything"), null);
  assert.equal(at("192.0.2.1", "trunk-1"), 1);
  await roster.close();
});

test("[SC192] a call over a registration to a number that trunks of two accounts have rings nowhere", async () => {
  const world = createWorld({ "sip.example.com": ["192.0.2.1"] });
  const { roster } = world;
  const thief = trunkOf({
    id: 2, accountId: 2, inboundAuth: "ip", allowedNetworks: ["192.0.2.0/24"],
  });
  roster.set([trunkOf(), thief]);
  await world.settled();
  world.made[0]!.state("registered");
  assert.equal(roster.registeredAt("192.0.2.1", "+14155550100"), "tied");
  const digest = createDigestServer({ realm: "parley", system: world.system });
  const invite = { ...inviteOf({}), peer: { host: "192.0.2.1", port: 5060, transport: "udp" } as const };
  const told: unknown[] = [];
  const logTied = (...tie: unknown[]): void => void told.push(tie);
  assert.deepEqual(
    identify({ roster, digest, failures: noFailures(), logTied }, invite),
    { kind: "refused", status: 404, headers: [] });
  assert.deepEqual(told, [["+14155550100", "192.0.2.1"]]);
  // What it registered names it beyond doubt.
  assert.deepEqual(roster.registeredAt("192.0.2.1", "trunk-1"), trunkOf());
  roster.set([trunkOf(), { ...thief, id: 3, accountId: 1 }]);
  assert.deepEqual(roster.registeredAt("192.0.2.1", "+14155550100"), trunkOf());
  await roster.close();
});

test("[SC59] an admitted address must log in for a number whose trunk requires it, and for no other", async () => {
  const { roster } = createWorld({ "sip.example.com": ["192.0.2.1"] });
  const byIp: Partial<TrunkSetup> = { inboundAuth: "ip", allowedNetworks: ["192.0.2.0/24"] };
  roster.set([
    trunkOf({ phoneNumber: "+493012345678" }),
    trunkOf({ id: 2, ...byIp, phoneNumber: "+493012345679" }),
    trunkOf({ id: 3, ...byIp, phoneNumber: "+14155550177" }),
    trunkOf({ id: 4, phoneNumber: "+14155550177" }),
  ]);
  const admits = (called: string | null, address = "192.0.2.77") => roster.admits(address, called);
  assert.deepEqual([admits("+493012345679"), admits("anything"), admits(null)], [true, true, true]);
  assert.deepEqual([admits("+493012345678"), admits("03012345678")], [false, false]);
  assert.ok(admits("4155550177"));
  assert.deepEqual([admits("+493012345679", "192.0.3.1"), admits(null, "192.0.3.1")], [false, false]);
  await roster.close();
});

test("[SC214] a trunk's networks are parsed once, however many calls come", async () => {
  const { roster } = createWorld({});
  let reads = 0;
  const trunk = trunkOf({ inboundAuth: "ip" });
  Object.defineProperty(trunk, "allowedNetworks", {
    get: () => {
      reads += 1;
      return ["192.0.2.0/24"];
    },
  });
  roster.set([trunk]);
  reads = 0;
  for (const address of ["192.0.2.77", "198.51.100.1"]) {
    assert.equal(roster.admits(address, null), address === "192.0.2.77");
    assert.equal(roster.openFor(address, "+14155550100").length, address === "192.0.2.77" ? 1 : 0);
    assert.equal(roster.registeredAt(address, null), null);
  }
  assert.equal(reads, 0);
  await roster.close();
});

const noFailures = () => ({ record: () => 0, waitMs: () => 0 });

test("[SC193] wrong passwords from an address are logged for fail2ban, then delayed; those for another request prove nothing", async () => {
  const { roster, system } = createWorld({ "sip.example.com": ["192.0.2.1"] });
  roster.set([trunkOf()]);
  const lines: unknown[] = [];
  const log = { warn: (fields: unknown, message: string) => void lines.push([fields, message]) };
  const failures = createFailedAuthentications({
    log: log as unknown as Logger, system, slows: true,
  });
  const digest = createDigestServer({ realm: "parley", system });
  const uri = "sip:+14155550100@parley.example";
  const show = (password: string, named = uri) => {
    const authorization = answerChallenge({
      challenge: chooseChallenge(digest.challenges())!, method: "INVITE", uri: named,
      username: "alice", password, nonceCount: 1, cnonce: "c",
    });
    const invite = inviteOf({ Authorization: authorization });
    const sender = identify({ roster, digest, failures, logTied: () => undefined }, invite);
    return sender.kind === "known" ? sender.trunk!.id : sender.status;
  };
  assert.equal(show("s3cret"), 1);
  assert.equal(show("s3cret", "sip:+14155550199@parley.example"), 400);
  assert.deepEqual(lines, []);
  for (let tried = 0; tried < LIMITS.failedAuthenticationsMax; tried += 1) {
    assert.equal(show("wrong"), 403);
  }
  assert.deepEqual(lines, Array(LIMITS.failedAuthenticationsMax).fill(
    [{ address: "198.51.100.1", kind: "sip" }, "authentication failed"]));
  // Right or wrong cannot be known from here any more, for a while.
  assert.deepEqual([show("wrong"), show("s3cret")], [503, 503]);
  system.advance(120_000);
  assert.equal(show("s3cret"), 1);
  await roster.close();
});

function inviteOf(headers: Record<string, string>, uri = "sip:+14155550100@parley.example"): IncomingInvite {
  const all = {
    "Via": "SIP/2.0/UDP 198.51.100.1;branch=z9hG4bK1", "From": "<sip:x@example.org>;tag=1",
    "To": "<sip:y@example.org>", "Call-ID": "1", "CSeq": "1 INVITE", ...headers,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`).join("");
  const parsed = parseMessage(Buffer.from(`INVITE ${uri} SIP/2.0\r\n${lines}\r\n`));
  assert.ok(parsed.kind === "message" && parsed.message.kind === "request", JSON.stringify(parsed));
  const request: SipRequest = parsed.message;
  const peer = { host: "198.51.100.1", port: 5060, transport: "udp" } as const;
  return { request, peer, callId: "1" } as IncomingInvite;
}

test("[SC57] user and password identify the caller's trunk, even if two accounts use the same user", async () => {
  const world = createWorld({ "sip.example.com": ["192.0.2.1"] });
  world.roster.set([
    trunkOf(), trunkOf({ id: 2, password: "other" }), trunkOf({ id: 3, username: "bob@example.org", password: "third" }),
  ]);
  await world.settled();
  const digest = createDigestServer({ realm: "parley", system: world.system });
  const parts = { roster: world.roster, digest, failures: noFailures(), logTied: () => undefined };
  const who = (invite: IncomingInvite) => identify(parts, invite);
  const asked = who(inviteOf({}));
  assert.ok(asked.kind === "refused" && asked.status === 401);
  // The best algorithm first.
  assert.deepEqual(asked.headers.map(([, value]) => /algorithm=([^,]+)/.exec(value)?.[1]), ["SHA-256", "MD5"]);
  const challenge = () => chooseChallenge(digest.challenges())!;
  const uri = "sip:+14155550100@parley.example";
  const show = (username: string, password: string, made = challenge()) => inviteOf({
    Authorization: answerChallenge({
      challenge: made, method: "INVITE", uri, username, password, nonceCount: 1, cnonce: "c",
    }),
  });
  const idOf = (invite: IncomingInvite) => {
    const sender = who(invite);
    return sender.kind === "known" ? sender.trunk?.id : sender.status;
  };
  assert.equal(idOf(show("alice", "s3cret")), 1);
  assert.equal(idOf(show("alice", "other")), 2);
  assert.equal(idOf(show("bob", "third")), 3);
  assert.equal(idOf(show("bob@example.org", "third")), 3);
  assert.equal(idOf(show("alice", "third")), 403);
  assert.equal(idOf(show("mallory", "s3cret")), 403);
  // The same answer a second time is somebody who listened.
  const made = challenge();
  assert.equal(idOf(show("alice", "other", made)), 2);
  assert.equal(idOf(show("alice", "other", made)), 401);
  const old = challenge();
  world.system.advance(120_000);
  const stale = who(show("alice", "s3cret", old));
  assert.ok(stale.kind === "refused" && stale.status === 401);
  assert.ok(stale.headers.every(([, value]) => value.includes("stale=true")));
  await world.roster.close();
});

test("[SC58] called and calling numbers are read in the formats telephone systems use", () => {
  const trunk = trunkOf();
  const called = (uri: string, to: string, by: TrunkSetup | null = null) =>
    calledNumber(inviteOf({ To: to }, uri), by);
  assert.equal(called("sip:+4930123@x", "<sip:y@x>"), "+4930123");
  assert.equal(called("sip:trunk-1@x", "<sip:+4930123@x>", trunk), "+4930123");
  assert.equal(called("sip:trunk-1@x", "<sip:x>", trunk), "+14155550100");
  assert.equal(called("sip:trunk-1@x", "<sip:+4930123@x>"), "trunk-1");
  assert.equal(called("sip:x", "<sip:sales@x>"), "sales");
  assert.equal(called(`sip:${"9".repeat(500)}@x`, "<sip:y@x>").length, 64);
  const from = (headers: Record<string, string>) => callerNumber(inviteOf(headers));
  assert.equal(from({ From: "\"Eva\" <sip:+4930123@x>;tag=1" }), "+4930123");
  assert.equal(from({ "From": "<sip:anonymous@x>;tag=1", "P-Asserted-Identity": "<sip:+1@x>" }), "+1");
  assert.equal(from({ "From": "<sip:1@x>;tag=1", "P-Asserted-Identity": "<tel:+4930123>" }), "+4930123");
  assert.equal(from({ From: "\"Anonymous\" <sip:Anonymous@anonymous.invalid>;tag=1" }), null);
  assert.equal(from({ From: "<sip:x>;tag=1" }), null);
});

test("[SI190] parameters after a telephone number are not part of it", () => {
  const called = (uri: string) => calledNumber(inviteOf({ To: "<sip:y@x>" }, uri), null);
  assert.equal(called("sip:+4930123;npdi;rn=+4930999@x;user=phone"), "+4930123");
  assert.equal(called("sip:sales;x@x"), "sales;x");
  const from = (headers: Record<string, string>) => callerNumber(inviteOf(headers));
  assert.equal(from({ From: "<sip:+4930123;cpc=ordinary@x;user=phone>;tag=1" }), "+4930123");
  assert.equal(from({ "P-Asserted-Identity": "<sip:0301-23;phone-context=+49@x>" }), "0301-23");
});
