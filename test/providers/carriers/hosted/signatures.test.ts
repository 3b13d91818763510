// What hosted carriers sign and what they receive: signatures of webhooks and WebSockets, TwiML.
// Twilio's own SDK says what is right; the others' schemes are written out as documented.
import assert from "node:assert/strict";
import { createHash, createHmac, generateKeyPairSync, sign } from "node:crypto";
import { test } from "node:test";
import fc from "fast-check";
import { Parser } from "htmlparser2";
import twilio from "twilio";
import {
  isFromPlivo, isFromTelnyx, isFromTwilio, isFromVonage, SIGNATURE_AGE_MS_MAX, type SignedBody,
} from "#providers/carriers/hosted/signatures.ts";
import {
  connectTwiml, dialTwiml, PARAMETER_CHARS_MAX, rejectTwiml,
} from "#providers/carriers/hosted/twiml.ts";

const TOKEN = "a token of the account";

const none: SignedBody = { kind: "none" };
const formOf = (params: Record<string, string | string[]>): SignedBody => ({
  kind: "form",
  fields: new URLSearchParams(Object.entries(params).flatMap(([key, value]) =>
    [value].flat().map((one): [string, string] => [key, one]))),
});
const bytesOf = (text: string) => Buffer.from(text);

// Signatures

const anyParams = fc.dictionary(
  fc.string({ unit: "binary", minLength: 1, maxLength: 12 }),
  fc.oneof(fc.string({ unit: "binary" }), fc.array(fc.string({ maxLength: 4 }), { minLength: 2, maxLength: 4 })),
  { maxKeys: 8, noNullPrototype: true },
);
const anyUrl = fc.tuple(
  fc.constantFrom("https", "http"), fc.constantFrom("", ":8443", ":443", ":80"),
  fc.array(fc.stringMatching(/^[\w.-]{0,8}$/), { maxLength: 4 }), fc.option(fc.stringMatching(/^\w{1,5}=[\w%+]{0,9}$/)),
).map(([scheme, port, path, query]) =>
  `${scheme}://calls.example.com${port}/${path.join("/")}${query === null ? "" : `?${query}`}`);

test("[TW20] a form is genuine exactly if Twilio's SDK says so", () => {
  let genuine = 0;
  fc.assert(fc.property(
    anyParams, anyUrl, fc.constantFrom("nothing", "url", "token", "value", "key", "signature"),
    (params, url, forged) => {
      const signature = twilio.getExpectedTwilioSignature(TOKEN, url, params);
      const [first] = Object.keys(params);
      const changed = { ...params };
      if (forged === "value" && first !== undefined) changed[first] = `${String(params[first])}x`;
      if (forged === "key") changed.More = "";
      const seen = {
        token: forged === "token" ? `${TOKEN}x` : TOKEN,
        url: forged === "url" ? `${url}x` : url,
        signature: forged === "signature" ? signature.replace(/^./, (one) => (one === "A" ? "B" : "A")) : signature,
      };
      // The SDK parses the URL; one it cannot parse is not one that Twilio calls.
      const expected = twilio.validateRequest(seen.token, seen.signature, seen.url, changed);
      const isOurs = isFromTwilio({
        authToken: seen.token, signature: seen.signature, url: seen.url, body: formOf(changed),
      });
      assert.equal(isOurs, expected);
      genuine += Number(expected);
    },
  ), { numRuns: 1000 });
  assert.ok(genuine > 50 && genuine < 900, String(genuine));
});

test("[TW21] the signed URL may omit its port or have the default one, for WebSocket upgrades too", () => {
  const signedAs = (url: string) => twilio.getExpectedTwilioSignature(TOKEN, url, {});
  const check = (url: string, signed: string) =>
    isFromTwilio({ authToken: TOKEN, signature: signedAs(signed), url, body: none });
  for (const scheme of ["https", "wss"]) {
    const of = (port: string) => `${scheme}://a.example${port}/media/x?y=1`;
    const [bare, usual, own] = [of(""), of(":443"), of(":8443")];
    const accepted = [[bare, bare], [bare, usual], [usual, bare], [own, own], [own, bare]];
    const refused = [[bare, own], [own, usual]];
    for (const [url, signed] of accepted) assert.equal(check(url!, signed!), true, `${url} ${signed}`);
    for (const [url, signed] of refused) assert.equal(check(url!, signed!), false, `${url} ${signed}`);
  }
  const wss = "wss://a.example/media";
  assert.ok(twilio.validateRequest(TOKEN, signedAs(wss), wss, {}));
  assert.ok(check(wss, wss));
  assert.equal(check("https://a.example/media", wss), false);
  assert.ok(check("wss://[2001:db8::1]:8443/media", "wss://[2001:db8::1]/media"));
  assert.ok(check("https://a.example/a'b?c=d e", "https://a.example/a'b?c=d%20e"), "escaped before it was signed");
});

test("[TW22] a body that is not a form needs its hash in the URL, and the SDK agrees", () => {
  const hashOf = (text: string) => createHash("sha256").update(text).digest("hex");
  fc.assert(fc.property(fc.json(), fc.boolean(), (text, isForged) => {
    const url = `https://a.example/json?bodySHA256=${hashOf(text)}&b=2`;
    const signature = twilio.getExpectedTwilioSignature(TOKEN, url, {});
    const body = isForged ? `${text} ` : text;
    const isOurs = isFromTwilio({
      authToken: TOKEN, signature, url, body: { kind: "raw", bytes: bytesOf(body) },
    });
    assert.equal(isOurs, twilio.validateRequestWithBody(TOKEN, signature, url, body));
    assert.equal(isOurs, !isForged);
  }));
  const url = "https://a.example/json";
  const signature = twilio.getExpectedTwilioSignature(TOKEN, url, {});
  const raw: SignedBody = { kind: "raw", bytes: bytesOf("{}") };
  assert.equal(isFromTwilio({ authToken: TOKEN, signature, url, body: raw }), false);
  assert.equal(isFromTwilio({ authToken: TOKEN, signature: null, url, body: none }), false);
  const unsigned = createHmac("sha1", "").update(url).digest("base64");
  assert.equal(isFromTwilio({ authToken: "", signature: unsigned, url, body: none }), false, "no secret");
});

const { publicKey, privateKey } = generateKeyPairSync("ed25519");
const TELNYX_KEY = publicKey.export({ format: "der", type: "spki" }).subarray(-32).toString("base64");

test("[TW23] Telnyx signs time and body with Ed25519", () => {
  const nowMs = Date.UTC(2026, 0, 15, 12);
  const timestamp = String(nowMs / 1000);
  const body = bytesOf('{"data":{"event_type":"call.hangup"}}');
  const signed = (time: string, bytes: Uint8Array) =>
    sign(null, Buffer.concat([bytesOf(`${time}|`), bytes]), privateKey).toString("base64");
  const signature = signed(timestamp, body);
  const genuine = { publicKey: TELNYX_KEY, signature, timestamp, body, nowMs };
  assert.equal(isFromTelnyx(genuine), true);
  for (const forged of [
    { body: bytesOf("{}") }, { timestamp: String(nowMs / 1000 + 1) }, { signature: null },
    { signature: "AAAA" }, { timestamp: null }, { timestamp: `${timestamp}|` }, { publicKey: "AAAA" },
    { publicKey: Buffer.alloc(32, 1).toString("base64") },
    { nowMs: nowMs + SIGNATURE_AGE_MS_MAX + 1 }, { nowMs: nowMs - SIGNATURE_AGE_MS_MAX - 1 },
  ]) assert.equal(isFromTelnyx({ ...genuine, ...forged }), false, JSON.stringify(forged));
  assert.equal(isFromTelnyx({ ...genuine, nowMs: nowMs + SIGNATURE_AGE_MS_MAX }), true);
});

test("[TW24] Plivo signs address, query, form and nonce", () => {
  const nonce = "12345";
  const sha = (text: string) => createHmac("sha256", TOKEN).update(text).digest("base64");
  // What is signed, written out as Plivo's SDK puts it together.
  const cases: ["GET" | "POST", string, Record<string, string | string[]>, string][] = [
    ["GET", "https://a.example/media", {}, "https://a.example/media.12345"],
    ["GET", "https://a.example/x?b=2&a=1&a=0", {}, "https://a.example/x?a=0&a=1&b=2.12345"],
    ["GET", "https://a.example/x?a=b%20c", {}, "https://a.example/x?a=b c.12345"],
    ["POST", "https://a.example/x", { To: "1", From: "2" }, "https://a.example/x?From2To1.12345"],
    ["POST", "https://a.example:8443/x?z=1", { To: ["2", "1"] }, "https://a.example:8443/x?z=1.To1To2.12345"],
    ["POST", "https://a.example/x", {}, "https://a.example/x.12345"],
  ];
  for (const [method, url, params, text] of cases) {
    const body = formOf(params);
    const form = body.kind === "form" ? body.fields : null;
    const genuine = { authToken: TOKEN, signature: sha(text), nonce, method, url, form };
    assert.equal(isFromPlivo(genuine), true, text);
    assert.equal(isFromPlivo({ ...genuine, signature: `AAAA, ${sha(text)}` }), true, "while a token is replaced");
    for (const forged of [
      { url: `${url}x` }, { nonce: "12346" }, { nonce: null }, { signature: "" }, { authToken: "" },
      { authToken: `${TOKEN}x` }, ...(method === "POST" ? [{ form: new URLSearchParams("To=9") }] : []),
    ]) assert.equal(isFromPlivo({ ...genuine, ...forged }), false, JSON.stringify(forged));
  }
});

test("[TW25] Vonage signs with a JWT that carries the hash of the body", () => {
  const nowMs = Date.UTC(2026, 0, 15, 12);
  const body = bytesOf('{"status":"answered"}');
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const bearer = (claims: object, head: object = { alg: "HS256", typ: "JWT" }, secret = TOKEN) => {
    const text = `${part(head)}.${part(claims)}`;
    return `Bearer ${text}.${createHmac("sha256", secret).update(text).digest("base64url")}`;
  };
  const claims = {
    iat: nowMs / 1000, exp: nowMs / 1000 + 60, jti: "1", iss: "Vonage", api_key: "a", application_id: "b",
    payload_hash: createHash("sha256").update(body).digest("hex"),
  };
  const check = (authorization: string | null, more: object = {}) =>
    isFromVonage({ signatureSecret: TOKEN, authorization, body, nowMs, ...more });
  const { payload_hash: _hash, ...unhashed } = claims;
  assert.equal(check(bearer(claims)), true);
  assert.equal(check(bearer(unhashed), { body: bytesOf("") }), true, "the opening of a WebSocket");
  assert.equal(check(bearer(unhashed)), false, "a body without a hash");
  assert.equal(check(bearer(claims), { body: bytesOf("{}") }), false);
  assert.equal(check(bearer(claims), { nowMs: nowMs + SIGNATURE_AGE_MS_MAX + 1 }), false);
  assert.equal(check(bearer({ ...claims, exp: nowMs / 1000 - 1 })), false);
  assert.equal(check(bearer({ ...claims, iat: undefined })), false);
  assert.equal(check(bearer(claims, { alg: "none" })), false);
  assert.equal(check(bearer(claims, { alg: "HS256" }, "another")), false);
  assert.equal(check(bearer(claims, { alg: "HS256" }, ""), { signatureSecret: "" }), false);
  assert.equal(check(`Bearer ${part({ alg: "none" })}.${part(claims)}.`), false);
  assert.equal(check(null), false);
});

test("[TW26] no malformed signature throws or is accepted", () => {
  const text = fc.oneof(fc.string(), fc.string({ unit: "binary" }), fc.base64String(), fc.constant("Bearer a.b.c"));
  fc.assert(fc.property(text, text, text, fc.uint8Array(), (signature, url, other, bytes) => {
    const body = Buffer.from(bytes);
    const twilios: SignedBody[] = [{ kind: "raw", bytes }, formOf({ [url]: other }), none];
    for (const one of twilios) {
      assert.equal(isFromTwilio({ authToken: TOKEN, signature, url, body: one }), false);
    }
    const telnyx = { publicKey: other, signature, timestamp: url, body, nowMs: 0 };
    assert.equal(isFromTelnyx(telnyx), false);
    const noise = Buffer.alloc(64, bytes[0] ?? 1).toString("base64");
    const signedAtRandom = { publicKey: TELNYX_KEY, signature: noise, timestamp: "0" };
    assert.equal(isFromTelnyx({ ...telnyx, ...signedAtRandom }), false);
    assert.equal(isFromPlivo({
      authToken: TOKEN, signature, nonce: other, method: "POST", url, form: new URLSearchParams(other),
    }), false);
    const vonage = { signatureSecret: TOKEN, authorization: signature, body, nowMs: 0 };
    assert.equal(isFromVonage(vonage), false);
  }));
});

// TwiML

interface Node { name: string; attributes: Record<string, string>; text: string; children: Node[] }

/** The one element of a document. */
function parseXml(text: string): Node {
  const root: Node = { name: "", attributes: {}, text: "", children: [] };
  const open = [root];
  const parser = new Parser({
    onopentag: (name, attributes) => {
      const node: Node = { name, attributes, text: "", children: [] };
      open.at(-1)!.children.push(node);
      open.push(node);
    },
    ontext: (piece) => (open.at(-1)!.text += piece),
    onclosetag: () => open.pop(),
  }, { xmlMode: true, decodeEntities: true });
  parser.end(text);
  assert.equal(open.length, 1);
  assert.equal(root.children.length, 1);
  return root.children[0]!;
}

/** The characters of a text that XML can hold at all. */
const holdable = (text: string) =>
  text.toWellFormed().replace(/[\u0000-\u0008\u000B\u000C\u000E-\u001F\uFFFE\uFFFF]/g, "");

test("[TW30] any text survives a document unchanged, except for what XML cannot hold", () => {
  const hostile = fc.constantFrom("</Stream><Hangup/>", '"/><Dial>1</Dial>', "&amp;", "]]>", "a\nb\tc\rd", "\ud800");
  const anyText = fc.oneof(fc.string({ unit: "binary", maxLength: 80 }), fc.string({ maxLength: 80 }), hostile);
  fc.assert(fc.property(anyText, anyText, anyText, (url, name, value) => {
    const connected = parseXml(connectTwiml(url, { [name]: value }));
    assert.deepEqual(connected, {
      name: "Response", attributes: {}, text: "", children: [
        { name: "Connect", attributes: {}, text: "", children: [
          { name: "Stream", attributes: { url: holdable(url) }, text: "", children: [
            { name: "Parameter", attributes: { name: holdable(name), value: holdable(value) }, text: "", children: [] },
          ] },
        ] },
      ],
    });
    const dialled = parseXml(dialTwiml(url, value, 30)).children[0]!;
    assert.equal(dialled.attributes.callerId, holdable(value));
    assert.equal(dialled.children[0]?.text ?? "", holdable(url));
  }), { numRuns: 1000 });
});

test("[TW31] the documents match those Twilio's SDK writes", () => {
  const { VoiceResponse } = twilio.twiml;
  const connect = new VoiceResponse();
  const stream = connect.connect().stream({ url: "wss://a.example/media" });
  stream.parameter({ name: "token", value: "<&\">'" });
  stream.parameter({ name: "b", value: "2" });
  const reject = new VoiceResponse();
  reject.reject({ reason: "busy" });
  const dial = new VoiceResponse();
  dial.dial({ callerId: "+15005550006", timeout: 60, answerOnBridge: true }).number("+14155550100");
  const sip = new VoiceResponse();
  sip.dial({ timeout: 20, answerOnBridge: true }).sip("sip:a@b.example;x=1&y");
  const pairs: [string, InstanceType<typeof VoiceResponse>][] = [
    [connectTwiml("wss://a.example/media", { token: "<&\">'", b: "2" }), connect],
    [rejectTwiml("busy"), reject],
    [dialTwiml("+14155550100", "+15005550006", 60), dial],
    [dialTwiml("sip:a@b.example;x=1&y", null, 20), sip],
  ];
  for (const [ours, theirs] of pairs) assert.deepEqual(parseXml(ours), parseXml(theirs.toString()));
  assert.throws(() => connectTwiml("wss://a", { a: "x".repeat(PARAMETER_CHARS_MAX) }), /too long/);
});
