// What is read from SIP peers and written to them: messages, addresses, digests. The odd
// messages are in test/support/sip/sip-torture.ts, descriptions of media in sdp.test.ts.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  answerChallenge,
  chooseChallenge,
  createDigestServer,
  DIGEST_LIMITS,
  type Challenge,
} from "#providers/carriers/sip/grammar/digest.ts";
import {
  formatNameAddr, formatVia, parseCseq, parseNameAddr, parseVia, SipHeaders,
} from "#providers/carriers/sip/grammar/headers.ts";
import {
  createFramer, parseMessage, responseTo, serialise, SIP_LIMITS, type SipMessage, type SipRequest,
} from "#providers/carriers/sip/grammar/message.ts";
import { parseUri } from "#providers/carriers/sip/grammar/uri.ts";
import { assertLinear } from "#support/growth.ts";
import { createManualSystem } from "#support/manual-clock.ts";
import {
  anyText, bytes, INVALID, message, mutated, nasty, options, SHORT_TORTUOUS, VALID,
} from "#support/sip/sip-torture.ts";
import { formatUri } from "#support/sip/sip-uris.ts";

const read = (text: string | Uint8Array): SipMessage => {
  const parsed = parseMessage(Buffer.from(text));
  assert.equal(parsed.kind, "message", JSON.stringify(parsed));
  return parsed.kind === "message" ? parsed.message : assert.fail();
};
const request = (text: string): SipRequest => {
  const parsed = read(text);
  return parsed.kind === "request" ? parsed : assert.fail("a response");
};
/** All of it but the length, which is written anew. */
const seen = (parsed: SipMessage) => ({
  ...parsed,
  headers: [...parsed.headers.entries()].filter(([name]) => name.toLowerCase() !== "content-length"),
});

/** What is wrong with a request stays in its refusal; the sender still has to know it by these. */
const assertRefusal = (answer: SipRequest, status: number): void => {
  const [line, ...lines] = serialise(responseTo(answer, status)).toString().split("\r\n");
  assert.ok(line?.startsWith(`SIP/2.0 ${status} `), line);
  for (const name of ["Via", "From", "To", "Call-ID", "CSeq"]) {
    const first = lines.find((candidate) => candidate.startsWith(`${name}: `));
    assert.equal(first?.slice(name.length + 2).trim(), answer.headers.get(name));
  }
};

test("[SI1] a message is parsed whole: folded lines, compact header names, lists by element", () => {
  const invite = request(SHORT_TORTUOUS);
  assert.equal(invite.method, "INVITE");
  assert.equal(invite.headers.get("to"), "sip:vivekg@chair-dnrc.example.com ;   tag    = 1918181833n");
  assert.deepEqual(parseNameAddr(invite.headers.get("f")!), {
    display: 'J Rosenberg \\"',
    uri: "sip:jdrosen@example.com",
    params: new Map([["tag", "98asjd8"]]),
  });
  assert.deepEqual(invite.headers.all("VIA").map((via) => parseVia(via)), [
    { transport: "UDP", host: "192.0.2.2", port: null, branch: "390skdjuw", params: new Map() },
    { transport: "TCP", host: "spindle.example.com", port: null, branch: "z9hG4bK9ikj8", params: new Map() },
    { transport: "UDP", host: "192.168.255.111", port: null, branch: "z9hG4bK30239", params: new Map() },
  ]);
  assert.deepEqual(parseCseq(invite.headers.get("cseq")), { number: 9, method: "INVITE" });
  assert.equal(invite.headers.get("newfangledheader"), "newfangled value continued newfangled value");
  assert.equal(invite.headers.get("UnknownHeaderWithUnusualValue"), ";;,,;;,;");
  assert.equal(invite.headers.get("Subject"), "");
  assert.equal(invite.body.length, 150);
  const listed = request(options({}, undefined, [
    'm: "Smith, \\"J\\"," <sip:a@b?x=1,2>;q=1, <sip:c@d;x=1,2>;y="," , sip:e@f',
    "k: replaces,, timer ,", "Authorization: Digest a=\"1, 2\", b=3",
  ]));
  assert.deepEqual(listed.headers.all("Contact"), [
    '"Smith, \\"J\\"," <sip:a@b?x=1,2>;q=1', '<sip:c@d;x=1,2>;y=","', "sip:e@f",
  ]);
  assert.deepEqual(listed.headers.all("supported"), ["replaces", "timer"]);
  assert.deepEqual(listed.headers.all("authorization"), ['Digest a="1, 2", b=3']);
});

test("[SI2] headers keep their order, and are found, set and removed in any case", () => {
  const headers = new SipHeaders().add("Via", "a, b").add("X-One", "1").add("x-one", "2");
  headers.prepend("v", "top").set("X-ONE", "3").set("New", "4");
  assert.deepEqual([...headers.entries()], [
    ["Via", "top"], ["Via", "a"], ["Via", "b"], ["X-ONE", "3"], ["New", "4"],
  ]);
  assert.deepEqual(headers.removeFirst("via").all("Via"), ["a", "b"]);
  assert.deepEqual([headers.get("new"), headers.size], ["4", 4]);
});

for (const [name, text] of Object.entries(VALID)) {
  test(`[SI3] an unusual but valid message is accepted: ${name}`, () => {
    const parsed = read(text);
    assert.deepEqual(seen(read(serialise(parsed))), seen(parsed));
  });
}

for (const [name, { text, status, isAnswered }] of Object.entries(INVALID)) {
  test(`[SI4] a malformed message is refused with ${status}: ${name}`, () => {
    const parsed = parseMessage(Buffer.from(text));
    assert.ok(parsed.kind === "bad");
    assert.deepEqual([parsed.status, parsed.answer !== null], [status, isAnswered], parsed.reason);
    if (parsed.answer) assertRefusal(parsed.answer, status);
  });
}

test("[SI5] no bytes make the parser throw, and an accepted message has all its mandatory parts", () => {
  const holds = (input: Uint8Array | string) => {
    const parsed = parseMessage(Buffer.from(input));
    if (parsed.kind === "message") {
      const { headers } = parsed.message;
      assert.ok(parseVia(headers.get("via")!) && parseCseq(headers.get("cseq")));
      assert.ok(parseNameAddr(headers.get("from")!) && parseNameAddr(headers.get("to")!));
      if (parsed.message.kind === "request") assert.ok(parseUri(parsed.message.uri));
    } else if (parsed.kind === "bad") {
      assert.ok(parsed.status >= 400 && parsed.status < 600);
      if (parsed.answer) assertRefusal(parsed.answer, parsed.status);
    }
    createFramer().push(Buffer.from(input));
  };
  fc.assert(fc.property(bytes, holds), { numRuns: 2000 });
  fc.assert(fc.property(mutated, holds), { numRuns: 3000 });
  fc.assert(fc.property(nasty, (text) => {
    for (const parse of [parseUri, parseVia, parseNameAddr, parseCseq]) parse(text);
  }), { numRuns: 3000 });
  for (const idle of ["", "\r\n", "\r\n\r\n", "\0", "\0\0\0\0"]) {
    assert.deepEqual(parseMessage(Buffer.from(idle)), { kind: "keepalive" });
  }
  assert.equal(read(`\r\n\r\n${options()}`).kind, "request");
  const latin = Buffer.from(options({ from: 'From: "J\u00fcrgen" <sip:j@example.com>;tag=1' }), "latin1");
  assert.equal(parseNameAddr(read(latin).headers.get("from")!)?.display, "J\u00fcrgen");
});

test("[SI6] parsing the worst 65,535 bytes takes time linear in their length", async () => {
  const fill = (piece: string, before: string, after = "\r\n\r\n") => (size: number) => {
    const times = Math.ceil(size / piece.length);
    return before + piece.repeat(times).slice(0, size - before.length - after.length) + after;
  };
  const head = options().slice(0, -4);
  const worst = {
    spaces: fill(" ", "OPTIONS "),
    "spaces in a header": fill(" ", `${head}\r\nA:`),
    "line ends": fill("\r\n", ""),
    folds: fill("\r\n ", `${head}\r\nA: b`),
    "long folds": fill(`\r\n ${"a".repeat(60)}`, `${head}\r\nA: b`),
    "short headers": fill("\r\nA:b", head),
    commas: fill(`\r\nVia: ${",".repeat(8000)}`, head),
    "lists of long values": fill(`\r\nRoute: ${"<sip:p;lr>,".repeat(700)}`, head),
    quotes: fill(`\r\nContact: ${'"\\"'.repeat(2000)}`, head),
    brackets: fill(`\r\nContact: ${"<".repeat(8000)}`, head),
    parameters: fill(`\r\nVia: SIP/2.0/UDP h${";a".repeat(4000)}`, head),
    "many Via": fill("\r\nVia: SIP/2.0/UDP h;branch=z9hG4bK;received=192.0.2.1;rport=5060", head),
    "percent signs": fill("%41", "OPTIONS sip:", "@h SIP/2.0\r\n\r\n"),
    colons: fill(":", "OPTIONS sip:", "@h SIP/2.0\r\n\r\n"),
    "no end": fill("a", ""),
    "a body": fill("\r\n", `${head}\r\n\r\n`),
    zeros: fill("\0", "", ""),
    "latin letters": fill("\u00fc", "OPTIONS "),
  };
  for (const [name, ofSize] of Object.entries(worst)) {
    await assertLinear(name, 65_535, (bytes) => {
      const input = Buffer.from(ofSize(bytes), "latin1");
      assert.equal(input.length, bytes, name);
      return () => parseMessage(input);
    });
  }
  assert.equal(parseMessage(Buffer.alloc(65_536, "a")).kind, "bad");
});

test("[SI7] no value that is written can inject a line or a header", () => {
  const lines = (sip: SipMessage) => serialise(sip).toString().split("\r\n\r\n", 1)[0]!.split(/[\r\n]+/);
  fc.assert(fc.property(nasty, nasty, nasty, nasty, (name, value, uri, user) => {
    const headers = new SipHeaders().add("Via", value).set("X-A", value).prepend(name, value)
      .add("From", formatNameAddr({ display: value, uri, params: new Map([[name, value], ["tag", value]]) }))
      .add("Via", formatVia({ transport: value, host: value, port: 5060, branch: value, params: new Map([[name, value]]) }))
      .add("Contact", formatUri({ scheme: "sip", user, host: value, port: null, params: new Map([[name, value]]), headers: value }))
      .add("Content-Length", "99999");
    const body = Buffer.from("body\r\n\r\n");
    for (const sip of [
      { kind: "request", method: name, uri, headers, body } as const,
      { kind: "response", status: 200, reason: value, headers, body } as const,
    ]) {
      const [, ...written] = lines(sip);
      assert.equal(written.length, headers.size - headers.all("content-length").length + 1);
      assert.equal(written.at(-1), "Content-Length: 8");
      assert.ok(serialise(sip).toString().endsWith("\r\n\r\nbody\r\n\r\n"));
    }
  }), { numRuns: 2000 });
  const split = request(options({}, undefined, ["X: a\r\n Injected: b"]));
  assert.equal(split.headers.get("Injected"), null);
  assert.deepEqual(split.headers.get("X"), "a Injected: b");
});

test("[SI8] an accepted message survives writing and reading again", () => {
  fc.assert(fc.property(mutated, (text) => {
    const parsed = parseMessage(Buffer.from(text));
    if (parsed.kind !== "message") return;
    const again = read(serialise(parsed.message));
    assert.deepEqual(seen(again), seen(parsed.message));
    assert.deepEqual(again.headers.all("l"), [String(parsed.message.body.length)]);
  }), { numRuns: 3000 });
});

test("[SI9] Content-Length says where the body ends, and only a datagram may omit it", () => {
  const body = (length: string | null, text: string) => {
    const parsed = parseMessage(Buffer.from(options({ length }, undefined, [], text)));
    return parsed.kind === "message" ? parsed.message.body.toString() : parsed.kind;
  };
  assert.equal(body(null, "to the end\r\n\r\n"), "to the end\r\n\r\n");
  assert.equal(body("Content-Length: 4", "body and more"), "body");
  assert.equal(body("l: 0004\r\nContent-Length:\r\n 0004", "body"), "body");
  assert.equal(body("l: 4\r\nContent-Length: 04", "body"), "bad");
  for (const wrong of ["5", "-1", "+4", "4 4", "4, 4", "0x4", "4.0", "1e0", "", "9".repeat(400), "18446744073709551616"]) {
    assert.equal(body(`Content-Length: ${wrong}`, "body"), "bad", wrong);
  }
});

test("[SI10] a stream cut anywhere gives the same messages", async () => {
  const framed = Object.values(VALID).filter((text) => /^Content-Length *:/m.test(text)).map(read).map(serialise);
  const stream = fc.array(fc.tuple(fc.constantFrom(...framed), fc.constantFrom("", "\r\n")), { minLength: 1, maxLength: 5 });
  fc.assert(fc.property(stream, fc.array(fc.nat(), { maxLength: 12 }), (messages, cuts) => {
    const whole = Buffer.concat(messages.flatMap(([sip, gap]) => [sip, Buffer.from(gap)]));
    const inside = cuts.map((cut) => cut % whole.length).sort((a, b) => a - b);
    const places = [0, ...inside, whole.length];
    const framer = createFramer();
    const frames = places.slice(1).flatMap((end, at) => {
      const { frames, isBad } = framer.push(whole.subarray(places[at], end));
      assert.equal(isBad, false);
      return frames;
    });
    assert.deepEqual(frames, messages.map(([sip]) => sip));
  }), { numRuns: 500 });
  const framer = createFramer();
  const large = (size: number) => Buffer.from(
    options({ length: `Content-Length: ${size}` }, undefined, [], "\n".repeat(size)));
  const byBytes = (message: Buffer) =>
    Array.from(message, (byte) => framer.push(Uint8Array.of(byte)).frames).flat();
  assert.deepEqual(byBytes(large(30_000)), [large(30_000)]);
  await assertLinear("one byte at a time", 30_000, (size) => {
    const message = large(size);
    return () => byBytes(message);
  });
});

test("[SI11] a stream that cannot be framed is bad and stays bad; a keep-alive ping is a frame", () => {
  const isBad = (text: string) => createFramer().push(Buffer.from(text)).isBad;
  assert.equal(isBad(options({ length: null })), true);
  for (const length of ["-1", "x", "65535", "5\r\nl: 6", "9".repeat(30)]) {
    assert.equal(isBad(options({ length: `Content-Length: ${length}` })), true, length);
  }
  assert.equal(isBad("a".repeat(SIP_LIMITS.messageBytesMax + 1)), true);
  assert.equal(isBad("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), true);
  const closed = createFramer();
  const first = closed.push(Buffer.from(`${options()}BAD\r\n\r\n`));
  assert.deepEqual([first.frames.length, first.isBad], [1, true]);
  assert.deepEqual(closed.push(Buffer.from(options())), { frames: [], isBad: true });
  const pings = (pieces: string[]) => {
    const framer = createFramer();
    const frames = pieces.flatMap((piece) => framer.push(Buffer.from(piece)).frames);
    return frames.map((frame) => parseMessage(frame).kind);
  };
  assert.deepEqual(pings(["\r\n\r\n"]), ["keepalive"]);
  assert.deepEqual(pings(["\r", "\n\r", "\n", "\r\n"]), ["keepalive"]);
  assert.deepEqual(pings([`\r\n${options()}\r\n`, `${options()}\r\n\r\n`]), ["message", "message", "keepalive"]);
  assert.deepEqual(pings(["\r\n".repeat(30_000)]), ["keepalive"]);
  fc.assert(fc.property(fc.array(fc.oneof(bytes, mutated)), (pieces) => {
    const framer = createFramer();
    for (const piece of pieces) framer.push(Buffer.from(piece));
  }), { numRuns: 500 });
});

test("[SI12] addresses, Via and CSeq are parsed in all their forms and written back", () => {
  const address = (text: string) => parseNameAddr(text);
  const plain = { display: null, uri: "sip:a@b", params: new Map<string, string | null>() };
  assert.deepEqual(address("<sip:a@b>"), plain);
  assert.deepEqual(address("sip:a@b;tag=1"), { ...plain, params: new Map([["tag", "1"]]) });
  assert.deepEqual(address("<sip:a@b;lr>;tag=1"), { ...plain, uri: "sip:a@b;lr", params: new Map([["tag", "1"]]) });
  assert.deepEqual(address("Bell, A. M\u00fcller <sip:a@b>"), { ...plain, display: "Bell, A. M\u00fcller" });
  assert.deepEqual(address('"<sip:x@y>;" <sip:a@b> ;Q="1;\\"2" ; flag'), {
    display: "<sip:x@y>;", uri: "sip:a@b", params: new Map([["q", '1;"2'], ["flag", null]]),
  });
  assert.equal(address("*")?.uri, "*");
  for (const wrong of ["", '"a', '"a"', "<>", "<sip:a@b", "a <sip:a@b> b", '"a" b <sip:a@b>', "a@b", "sip:a@b, sip:c@d", "<sip:a b>", '<sip:a@b>;x="', "<sip:a@b>;=1"]) {
    assert.equal(address(wrong), null, wrong);
  }
  fc.assert(fc.property(nasty, fc.option(nasty), (text, value) => {
    const display = text.replace(/[\r\n]/g, " ") || null;
    const params = new Map([["tag", "x"], ["p", value?.replace(/[\r\n]/g, " ") ?? null]]);
    const given = { display, uri: "sip:a@b", params };
    assert.deepEqual(parseNameAddr(formatNameAddr(given)), given);
  }), { numRuns: 2000 });
  const via = "SIP/2.0/TLS [2001:db8::9:1]:5061;rport;received=\"2001:db8::1\";branch=z9hG4bK1";
  assert.deepEqual(parseVia(via), {
    transport: "TLS", host: "2001:db8::9:1", port: 5061, branch: "z9hG4bK1",
    params: new Map([["rport", null], ["received", "2001:db8::1"]]),
  });
  assert.equal(formatVia(parseVia(via)!), via.replaceAll('"', ""));
  for (const wrong of ["", "SIP/2.0", "SIP/2.0/UDP", "SIP/2.0/UDP ;", "SIP/3.0/UDP h", "SIP/2.0/UDP h:0", "SIP/2.0/UDP h:65536", "SIP/2.0/UDP [::1", "SIP/2.0/UDP [1.2.3.4]", "SIP/2.0/UDP a b", "SIP/2.0/UDP/x h"]) {
    assert.equal(parseVia(wrong), null, wrong);
  }
  assert.deepEqual(parseCseq("2147483647 \t INVITE"), { number: 2_147_483_647, method: "INVITE" });
  for (const wrong of [null, "", "1", "INVITE", "-1 INVITE", "2147483648 INVITE", "1 IN VITE", "1e3 INVITE"]) {
    assert.equal(parseCseq(wrong), null);
  }
});

test("[SI13] URIs are parsed in all their forms and written back", () => {
  const none = { params: new Map<string, string | null>(), headers: null, port: null };
  assert.deepEqual(parseUri("sip:%2B49301234@Example.COM:5070;transport=tcp;lr?Subject=a%20b"), {
    scheme: "sip", user: "+49301234", host: "example.com", port: 5070,
    params: new Map([["transport", "tcp"], ["lr", null]]), headers: "Subject=a%20b",
  });
  assert.deepEqual(parseUri("SIPS:[2001:DB8::1]"), { ...none, scheme: "sips", user: null, host: "2001:db8::1" });
  assert.deepEqual(parseUri("sip:a:secret@h"), { ...none, scheme: "sip", user: "a", password: "secret", host: "h" });
  assert.deepEqual(parseUri("tel:+1-(201)-555.0123;ext=7"), {
    ...none, scheme: "tel", user: "+12015550123", host: "", params: new Map([["ext", "7"]]),
  });
  assert.equal(parseUri("sip:user;par=u%40example.net@example.com")?.user, "user;par=u@example.net");
  for (const wrong of ["", "sip:", "sip:@h", "sip:a@", "sip:a@b@c", "sip:a@h:", "sip:a@h:0", "sip:a@h:99999", "sip:a@h i", "sip:%zz@h", "sip:%ff@h", "sip:%@h", "sip:a@[::1", "sip:a@[fe80::1%1]", "sip:a@::1", "http://h", "tel:", "tel:xyz;x", "tel:+", "tel:+12ab", `sip:a@${"h".repeat(300)}`, "sip:a@h;=x", "a@h"]) {
    assert.equal(parseUri(wrong), null, wrong);
  }
  const name = fc.string({ minLength: 1, maxLength: 20 }).map((text) => text.toLowerCase());
  const tails = fc.webPath().map((path) => path.replaceAll("@", "%40"));
  const value = fc.option(anyText.map((text) => text.toWellFormed()));
  const values = fc.dictionary(name, value).map((entries) => new Map(Object.entries(entries)));
  fc.assert(fc.property(value, fc.option(tails), values, (user, headers, params) => {
    const scheme = "sips" as const;
    const uri = { scheme, user: user || null, host: "::1", port: 5061, headers, params };
    assert.deepEqual(parseUri(formatUri(uri)), uri);
  }), { numRuns: 2000 });
});

test("[SI14] a response copies the headers that identify its request", () => {
  const invite = request(message([
    "INVITE sip:a@b SIP/2.0", "v: SIP/2.0/UDP p1;branch=z9hG4bK1, SIP/2.0/UDP p2;branch=z9hG4bK2",
    "Record-Route: <sip:p1;lr>,<sip:p2;lr>", "f: <sip:x@y>;tag=1", "t: <sip:a@b>", "i: 1", "CSeq: 5 INVITE", "l: 0",
  ]));
  assert.equal(serialise(responseTo(invite, 180, undefined, "mine")).toString(), message([
    "SIP/2.0 180 Ringing", "Via: SIP/2.0/UDP p1;branch=z9hG4bK1", "Via: SIP/2.0/UDP p2;branch=z9hG4bK2",
    "Record-Route: <sip:p1;lr>", "Record-Route: <sip:p2;lr>", "From: <sip:x@y>;tag=1",
    "To: <sip:a@b>;tag=mine", "Call-ID: 1", "CSeq: 5 INVITE", "Content-Length: 0",
  ]));
  const to = (status: number, tag?: string) => responseTo(invite, status, "x", tag).headers;
  assert.deepEqual([to(100, "t").get("to"), to(486, "t").get("to")], ["<sip:a@b>", "<sip:a@b>;tag=t"]);
  assert.deepEqual([to(100).all("record-route"), to(486).all("record-route"), to(200).all("record-route").length], [[], [], 2]);
  invite.headers.set("To", "<sip:a@b>;tag=theirs");
  assert.equal(to(200, "mine").get("To"), "<sip:a@b>;tag=theirs");
});

const challengeOf = (changes: Partial<Challenge> = {}): Challenge => ({
  scheme: "Digest", realm: "r", nonce: "n", algorithm: "MD5", qop: "auth", opaque: null, stale: false, ...changes,
});
const field = (header: string, name: string) => new RegExp(`[ ,]${name}="?([^",]*)"?(,|$)`).exec(header)?.[1];

test("[SI15] digests match RFC 2617, 7616 and 8760, and the strongest challenge is chosen", () => {
  const answer = (challenge: Challenge, password: string, cnonce: string, method = "GET", uri = "/dir/index.html") =>
    answerChallenge({ challenge, method, uri, username: "Mufasa", password, nonceCount: 1, cnonce });
  const old = challengeOf({ realm: "testrealm@host.com", nonce: "dcd98b7102dd2f0e8b11d0f600bfb0c093", opaque: "5ccc069c403ebaf9f0171e9517f40e41" });
  assert.equal(answer(old, "Circle Of Life", "0a4f113b"),
    'Digest username="Mufasa", realm="testrealm@host.com", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093", ' +
    'uri="/dir/index.html", response="6629fae49393a05397450978507c4ef1", algorithm=MD5, qop=auth, ' +
    'nc=00000001, cnonce="0a4f113b", opaque="5ccc069c403ebaf9f0171e9517f40e41"');
  const plain = answer({ ...old, qop: null }, "Circle Of Life", "unused");
  assert.equal(field(plain, "response"), "670fd8c2df070c60b045671b8b24ff02");
  assert.deepEqual([field(plain, "qop"), field(plain, "nc"), field(plain, "cnonce")], [undefined, undefined, undefined]);
  const values = (["SHA-256", "MD5"] as const).map((algorithm) =>
    `Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm=${algorithm}, ` +
    'nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"');
  const response = (header: string) =>
    field(answer(chooseChallenge([header])!, "Circle of Life", "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ"), "response");
  assert.deepEqual(values.map(response), [
    "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1",
    "8ca523f5e9506fed4657c9700eebdbec",
  ]);
  assert.equal(chooseChallenge(values.toReversed())?.algorithm, "SHA-256");
  assert.deepEqual(chooseChallenge(['DIGEST  realm = "a, \\"b\\"=", nonce=plain ,algorithm="md5",, stale=TRUE']),
    challengeOf({ realm: 'a, "b"=', nonce: "plain", qop: null, stale: true }));
  assert.equal(chooseChallenge(['Digest realm="a", nonce="b", algorithm=sha-256'])?.algorithm, "SHA-256");
  const refused = [
    'Basic realm="a"', "Digest", 'Digest realm="a"', 'Digest realm="a, nonce="b"', 'Digest realm="a" x, nonce="b"',
    'Digest realm="a", nonce="b", algorithm=SHA-512-256', 'Digest realm="a", nonce="b", qop="auth-int"',
    'Digest realm="a", realm="c", nonce="b"', `Digest realm="a", nonce="${"b".repeat(5000)}"`, "",
  ];
  assert.deepEqual(refused.map((value) => chooseChallenge([value])), refused.map(() => null));
  assert.equal(chooseChallenge([...refused, 'Digest realm="a", nonce="b"'])?.realm, "a");
});

test("[SI16] the server accepts the client's digest, each nonce and count once, for a minute, in bounded memory", () => {
  const system = createManualSystem();
  const server = createDigestServer({ realm: 'pbx "one"', system });
  const passwordOf = (name: string) => name === "anna" ? "secret" : null;
  const answer = (challenge: Challenge, nonceCount = 1, username = "anna", password = "secret") =>
    answerChallenge({ challenge, method: "INVITE", uri: "sip:a@b", username, password, nonceCount, cnonce: "c" });
  const verify = (header: string | null, method = "INVITE") => server.verify(header, { method, uri: "sip:a@b" }, passwordOf).kind;
  const [strong, weak] = server.challenges().map((value) => chooseChallenge([value])!);
  assert.deepEqual([strong!.algorithm, weak!.algorithm, strong!.qop, strong!.stale], ["SHA-256", "MD5", "auth", false]);
  assert.deepEqual(server.verify(answer(strong!), { method: "INVITE", uri: "sip:a@b" }, passwordOf), { kind: "ok", username: "anna" });
  assert.equal(verify(answer(strong!)), "stale");
  assert.equal(verify(answer(weak!)), "stale");
  assert.deepEqual([verify(answer(weak!, 2)), verify(answer(strong!, 4)), verify(answer(strong!, 3))], ["ok", "ok", "stale"]);

  const fresh = () => chooseChallenge(server.challenges())!;
  const good = answer(fresh());
  const wrong = [
    answer(fresh(), 1, "anna", "Secret"), answer(fresh(), 1, "otto", "secret"), answer(fresh(), 1, "otto", ""),
    good.replace("INVITE", "BYE").replace("sip:a@b", "sip:c@d"), good.replace("qop=auth", "qop=auth-int"),
    good.replace("nc=00000001", "nc=00000002"), good.replace("nc=00000001", "nc=1"), good.replace(/cnonce="c"/, "x=1"),
    good.replace("SHA-256", "MD5"), good.replace(/response="\w+"/, 'response=""'), good.replace("SHA-256", "SHA-1"), "Digest", "Digest x",
  ].map((header) => verify(header));
  assert.deepEqual(wrong, wrong.map((_, at) => at === 11 ? "absent" : at === 3 ? "mismatched" : "wrong"));
  assert.equal(verify(good, "BYE"), "wrong");
  assert.deepEqual([null, "", 'Basic x="y"', good.replace("one", "two")].map((header) => verify(header)), Array(4).fill("absent"));
  assert.equal(verify(good.replace("algorithm=SHA-256", 'algorithm="sha-256"').replace("qop=auth", 'qop="auth"').replace("Digest", "dIGEST")), "ok");

  const foreign = challengeOf({ realm: 'pbx "one"' });
  const spelt = fresh();
  assert.deepEqual([verify(answer(foreign)), verify(answer({ ...spelt, nonce: `${spelt.nonce}=` }))], ["stale", "stale"]);
  const uncounted = answer({ ...spelt, qop: null });
  assert.deepEqual([verify(uncounted), verify(uncounted)], ["ok", "stale"]);
  const late = fresh();
  system.advance(DIGEST_LIMITS.nonceLifeMs - 1);
  assert.equal(verify(answer(late)), "ok");
  system.advance(1);
  assert.equal(verify(answer(late, 2)), "stale");
  assert.equal(chooseChallenge(server.challenges(true))?.stale, true);

  const remembered = fresh();
  assert.equal(verify(answer(remembered)), "ok");
  for (let count = 0; count < DIGEST_LIMITS.noncesMax; count++) assert.equal(verify(answer(fresh())), "ok");
  assert.equal(verify(answer(remembered)), "stale", "forgotten is not unused");
  system.advance(1);
  assert.equal(verify(answer(fresh())), "ok");
  const odd = fc.array(fc.oneof(fc.constantFrom("Digest ", 'username="anna"', ",", "=", '"', "realm=", "nonce=", "\\"), nasty))
    .map((pieces) => `Digest ${pieces.join("")}`);
  fc.assert(fc.property(odd, (header) => {
    assert.ok(["absent", "wrong"].includes(verify(header)));
    chooseChallenge([header]);
  }), { numRuns: 2000 });
});
