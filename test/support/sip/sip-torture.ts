// Messages after RFC 4475, "SIP Torture Test Messages": odd but valid ones that have to be
// accepted, and invalid ones that have to be refused. Shortened where the length was not the point.
// And arbitrary input made of them.
import fc from "fast-check";

/** Lines as on the wire; the blank line after the head is written by `message`. */
export function message(head: string[], body = ""): string {
  return `${head.join("\r\n")}\r\n\r\n${body}`;
}

const NAMES = {
  via: "Via: SIP/2.0/UDP 192.0.2.15;branch=z9hG4bKkdjuw",
  from: "From: sip:j.user@example.com;tag=8j3d",
  to: "To: sip:user@example.com",
  callId: "Call-ID: torture.0ha0isndaksdj@192.0.2.1",
  cseq: "CSeq: 8 OPTIONS",
  forwards: "Max-Forwards: 70",
  length: "Content-Length: 0",
};

/** An OPTIONS request with some of its lines replaced; null leaves one out. */
export function options(
  changes: Partial<Record<keyof typeof NAMES, string | null>> = {},
  line = "OPTIONS sip:user@example.com SIP/2.0",
  more: string[] = [],
  body = "",
): string {
  const lines = Object.values({ ...NAMES, ...changes }).filter((text) => text !== null);
  return message([line, ...more, ...lines], body);
}

const ODD_USER =
  "sip:1_unusual.URI~(to-be!sure)&isn't+it$/crazy?,/;;*:&it+has=1,weird!*pas$wo~d_too.(doesn't-it)@example.com";
const ODD_METHOD = "!interesting-Method0123456789_*+`.%indeed'~";

export const SHORT_TORTUOUS = message([
  "INVITE sip:vivekg@chair-dnrc.example.com;unknownparam SIP/2.0",
  "TO :",
  " sip:vivekg@chair-dnrc.example.com ;   tag    = 1918181833n",
  'from   : "J Rosenberg \\\\\\""       <sip:jdrosen@example.com>',
  "  ;",
  "  tag = 98asjd8",
  "MaX-fOrWaRdS: 0068",
  "Call-ID: wsinv.ndaksdj@192.0.2.1",
  "Content-Length   : 150",
  "cseq: 0009",
  "  INVITE",
  "Via  : SIP  /   2.0",
  " /UDP",
  "    192.0.2.2;branch=390skdjuw",
  "s :",
  "NewFangledHeader:   newfangled value",
  " continued newfangled value",
  "UnknownHeaderWithUnusualValue: ;;,,;;,;",
  "Content-Type: application/sdp",
  "Route:",
  " <sip:services.example.com;lr;unknownwith=value;unknown-no-value>",
  "v:  SIP  / 2.0  / TCP     spindle.example.com   ;",
  "  branch  =   z9hG4bK9ikj8  ,",
  " SIP  /    2.0   / UDP  192.168.255.111   ; branch=",
  " z9hG4bK30239",
  'm:"Quoted string \\"\\"" <sip:jdrosen@example.com> ; newparam =',
  "      newvalue ;",
  "  secondparam ; q = 0.33",
], `v=0\r\no=mhandley 29739 7272939 IN IP4 192.0.2.3\r\ns=-\r\n${"x".repeat(98)}\r\n`);

/** Each has to be accepted as it stands. */
export const VALID: Record<string, string> = {
  "wsinv: white space, folds, compact and odd names": SHORT_TORTUOUS,
  "intmeth: every character a method and a user may have": options({
    cseq: `CSeq: 139122385 ${ODD_METHOD}`,
    to: 'To: "BEL:\\\x07 NUL:\\\x00 DEL:\\\x7f" <sip:1_unusual.URI~(to-be!sure)@example.com>',
    from: "From: token1~` token2'+_ token3*%!.- <sip:mundane@example.com>;fromParam''~+*_!.-%=\"\u0440\u0430\u0431\u043e\u0442\u0430\u044e\u0449\u0438\u0439\";tag=_token~1'+`*%!-.",
    callId: "Call-ID: intmeth.word%ZK-!.*_+'@word`~)(><:\\/\"][?}{",
  }, `${ODD_METHOD} ${ODD_USER} SIP/2.0`),
  "esc01: an escaped at and colon": options({}, "INVITE sip:sips%3Auser%40example.com@example.net SIP/2.0")
    .replace("8 OPTIONS", "8 INVITE"),
  "escnull: an escaped zero byte": options({ to: "To: sip:null-%00-null@example.com" }),
  "esc02: a percent sign in a method is only that": options(
    { cseq: "CSeq: 29344 RE%47IST%45R" }, "RE%47IST%45R sip:registrar.example.com SIP/2.0"),
  "lwsdisp: no space between name and address": options({ from: "From: caller<sip:caller@example.com>;tag=323" }),
  "longreq: long values": options({
    to: `To: "I have a user name of ${"extreme".repeat(10)} proportion"<sip:user@example.com:6000;unknownparam1=very${"long".repeat(10)}value;longparam${"name".repeat(10)}=shortvalue>`,
    callId: `Call-ID: longreq.one${"really".repeat(20)}longcallid`,
    via: `Via: ${Array.from({ length: 34 }, (_, at) => `SIP/2.0/UDP sip${at}.example.com;branch=z9hG4bK${at}`).join(", ")}`,
  }),
  "dblreq: what follows the body is not looked at": options({}, undefined, [], options()),
  "semiuri: a semicolon in the user": options({}, "OPTIONS sip:user;par=u%40example.net@example.com SIP/2.0"),
  "transports: transports nobody knows": options({
    via: ["UDP", "SCTP", "TLS", "UNKNOWN"].map((name, at) =>
      `Via: SIP/2.0/${name} t${at}.example.com;branch=z9hG4bK${at}`).join("\r\n"),
  }),
  "mpart01: a body of bytes": options({ length: "Content-Length: 9" }, undefined, ["Content-Type: multipart/mixed;boundary=7a9cbec02ceef655"], "\x00\x01\r\n\r\n\x7f\x00\r"),
  "unreason: a reason in Russian": options(
    { cseq: "CSeq: 35 INVITE" },
    "SIP/2.0 200 = 2**3 * 5**2 \u043d\u043e \u0441\u0442\u043e \u0434\u0435\u0432\u044f\u043d\u043e\u0441\u0442\u043e \u0434\u0435\u0432\u044f\u0442\u044c"),
  "noreason: no reason": options({}, "SIP/2.0 100 "),
  "no reason and no space either": options({}, "SIP/2.0 100"),
  "unksm2: unknown schemes outside the request line": options({ to: "To: isbn:2983792873", from: "From: <http://www.example.com>;tag=3234233" }),
  "cparam01: an unbracketed contact": options({}, undefined, ["Contact: sip:+19725552222@gw1.example.net;unknownparam"]),
  "regescrt: an escaped header in a contact": options({}, undefined, ["Contact: <sip:user@example.com?Route=%3Csip:sip.example.com%3E>"]),
  "regaut01: a scheme of authentication nobody knows": options({}, undefined, ["Authorization: NoOneKnowsThisScheme opaque-data=here"]),
  "bcast: a response by way of a broadcast address": options({ via: "Via: SIP/2.0/UDP 192.0.2.198;branch=z9hG4bK1324923\r\nVia: SIP/2.0/UDP 255.255.255.255;branch=z9hG4bK1saber23" }, "SIP/2.0 200 OK"),
  "zeromf: no hops left": options({ forwards: "Max-Forwards: 0" }),
  "inv2543: as before RFC 3261": message([
    "INVITE sip:UserB@example.com SIP/2.0",
    "Via: SIP/2.0/UDP iftgw.example.com",
    "From: <sip:+13035551111@ift.client.example.net;user=phone>",
    "Record-Route: <sip:UserB@example.com;maddr=ss1.example.com>",
    "To: sip:+16505552222@ss1.example.net;user=phone",
    "Call-ID: inv2543.1717@ift.client.example.com",
    "CSeq: 56 INVITE",
  ], "v=0\r\n"),
  "bext01: extensions nobody knows": options({}, undefined, ["Require: nothingSupportsThis, nothingSupportsThisEither", "Proxy-Require: noProxiesSupportThis"]),
  "badauth date and expiry are somebody else's": options({}, undefined, ["Date: Fri, 01 Jan 2010 16:00:00 EST", "Expires: 1000000000000000000000"]),
};

/** Each has to be refused: with which status, and whether the sender can be answered. */
export const INVALID: Record<string, { text: string; status: number; isAnswered: boolean }> = {};

const refuse = (name: string, text: string, status = 400, isAnswered = true): void => {
  INVALID[name] = { text, status, isAnswered };
};
const requestLine = (name: string, line: string, status = 400): void =>
  refuse(name, options({}, line), status);

refuse("badinv01: separators without anything between", options({ via: "Via: SIP/2.0/UDP 192.0.2.15;;,;,," }));
refuse("clerr: a length beyond the datagram", options({ length: "Content-Length: 9999" }, undefined, [], "v=0\r\n"));
refuse("ncl: a negative length", options({ length: "Content-Length: -999" }));
refuse("mcl01: two lengths", options({ length: "Content-Length: 5\r\nContent-Length: 3" }, undefined, [], "12345"));
refuse("scalar02: a CSeq beyond all bounds", options({ cseq: "CSeq: 36893488147419103232 OPTIONS" }));
refuse("a CSeq of 2**31", options({ cseq: "CSeq: 2147483648 OPTIONS" }));
refuse("Max-Forwards of 256", options({ forwards: "Max-Forwards: 256" }));
refuse("Max-Forwards below zero", options({ forwards: "Max-Forwards: -1" }));
refuse("scalarlg: the same in a response", options({ cseq: "CSeq: 9292394834772304023312 OPTIONS" }, "SIP/2.0 503 Service Unavailable"), 400, false);
refuse("quotbal: a quote that is not closed", options({ to: 'To: "Mr. J. User <sip:j.user@example.com>' }));
requestLine("ltgtruri: brackets around the request URI", "OPTIONS <sip:user@example.com> SIP/2.0");
requestLine("lwsruri: spaces in the request URI", "OPTIONS sip:user@example.com; lr SIP/2.0");
requestLine("lwsstart: two spaces in the request line", "OPTIONS  sip:user@example.com  SIP/2.0");
requestLine("trws: spaces after the request line", "OPTIONS sip:remote-target@example.com SIP/2.0  ");
requestLine("badvers: another version", "OPTIONS sip:t.watson@example.org SIP/7.0", 505);
requestLine("unkscm: a scheme nobody knows", "OPTIONS nobodyKnowsThisScheme:totallyopaquecontent SIP/2.0", 416);
requestLine("novelsc: a scheme of something else", "OPTIONS soap.beep://192.0.2.103:3002 SIP/2.0", 416);
requestLine("no scheme", "OPTIONS user@example.com SIP/2.0");
requestLine("a URI of 3000 characters", `OPTIONS sip:${"u".repeat(3000)}@example.com SIP/2.0`, 414);
requestLine("no version", "OPTIONS sip:user@example.com");
requestLine("HTTP", "OPTIONS sip:user@example.com HTTP/1.1");
refuse("mismatch01: another method in CSeq", options({ cseq: "CSeq: 8 INVITE" }));
refuse("mismatch02: the same with an unknown method", options({ cseq: "CSeq: 8 OPTIONS" }, "NEWMETHOD sip:user@example.com SIP/2.0"));
refuse("bigcode: a status beyond all bounds", options({}, "SIP/2.0 4294967301 better not break the receiver"), 400, false);
refuse("a status of 99", options({}, "SIP/2.0 099 Low"), 400, false);
refuse("a response of another version", options({}, "SIP/3.0 200 OK"), 400, false);
refuse("badaspec: spaces in an address", options({ to: 'To: "Watson, Thomas" < sip:t.watson@example.org >' }));
refuse("regbadct: a question mark in an unbracketed contact", options({}, undefined, ["Contact: sip:user@example.com?Route=%3Csip:sip.example.com%3E"]));
refuse("insuf: hardly a header", message(["INVITE sip:user@example.com SIP/2.0", "CSeq: 193942 INVITE", "Via: SIP/2.0/UDP 192.0.2.95;branch=z9hG4bKkdj", "Content-Length: 0"]), 400, false);
refuse("no Call-ID", options({ callId: null }), 400, false);
refuse("no Via", options({ via: null }), 400, false);
refuse("a Via nobody can send to", options({ via: "Via: nonsense" }), 400, false);
refuse("an ACK is never answered", options({ cseq: "CSeq: x ACK" }, "ACK sip:user@example.com SIP/2.0"), 400, false);
refuse("multi01: headers twice that are there once", options({ callId: "Call-ID: a@b\r\nCall-ID: c@d" }));
refuse("two From in one header", options({ from: "From: <sip:a@example.com>;tag=1, <sip:b@example.com>;tag=2" }));
refuse("a header without a colon", options({}, undefined, ["Subject"]));
refuse("a header without a name", options({}, undefined, [": value"]));
refuse("a lone line feed in a header", options({}, undefined, ["Subject: a\nContact: <sip:x@y>"]));
refuse("a lone carriage return in a header", options({}, undefined, ["Subject: a\rContact: <sip:x@y>"]));
refuse("a lone carriage return in a reason", options({}, "SIP/2.0 200 O\rK"), 400, false);
refuse("a head that does not end", options().slice(0, -2));
refuse("70 parameters", options({ from: `From: <sip:a@b>${Array.from({ length: 70 }, (_, at) => `;p${at}`).join("")}` }));
refuse("71 Via", options({ via: Array.from({ length: 71 }, () => NAMES.via).join("\r\n") }));
refuse("33 routes", options({}, undefined, [`Route: ${Array.from({ length: 33 }, () => "<sip:p;lr>").join(",")}`]));
refuse("a body beyond the bound", options({ length: null }, undefined, [], "x".repeat(40_000)), 413);
refuse("a header beyond the bound", options({}, undefined, [`Subject: ${"x".repeat(9000)}`]));
refuse("a folded header beyond the bound", options({}, undefined, [`Subject: ${"x\r\n ".repeat(5000)}x`]));
refuse("300 headers", options({}, undefined, Array.from({ length: 300 }, () => "X: y")), 400, false);
refuse("not SIP at all", "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n", 400, false);

export const bytes = fc.uint8Array({ maxLength: 400 });
export const anyText = fc.string({ unit: "binary", maxLength: 60 });
/** Text full of characters that have a meaning in headers. */
export const nasty = fc.array(
  fc.oneof(fc.constantFrom("\r\n", "\r", "\n", '"', "\\", "<", ">", ",", ";", "=", " ", "\0", "@", "%"), anyText),
  { maxLength: 8 },
).map((pieces) => pieces.join(""));
const invalid = Object.values(INVALID).map(({ text }) => text);
const known = fc.constantFrom(...Object.values(VALID), ...invalid)
  .filter((text) => text.length < 4000);
/** A known message with a few stretches replaced, left out or doubled. */
export const mutated = fc.tuple(
  known,
  fc.array(fc.tuple(fc.nat(), fc.nat(20), fc.oneof(nasty, fc.constantFrom("", "\r\n", "\r\n ", "Via: ,,"))), { minLength: 1, maxLength: 6 }),
).map(([text, changes]) => changes.reduce((changed, [place, length, instead]) => {
  const at = place % (changed.length + 1);
  return changed.slice(0, at) + instead + changed.slice(at + length);
}, text));
