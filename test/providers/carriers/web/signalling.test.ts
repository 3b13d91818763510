// What comes in before a page is known: checks (STUN) and offers (SDP), also from those who mean
// harm; nothing throws, and nobody without the password of a call is answered.
import assert from "node:assert/strict";
import { createHmac, randomBytes } from "node:crypto";
import { test } from "node:test";
import fc from "fast-check";
import { buildAnswer, readOffer, type PageOffer } from "#providers/carriers/web/sdp.ts";
import { buildCheckAnswer, parseCheck } from "#providers/carriers/web/stun.ts";
import { pageOffer } from "#support/pages/offers.ts";

/** RFC 5769, 2.1: a request of a short-term credential. */
const PASSWORD = "VOkJxbRl1RmTxUk/WvJxBt";
const REQUEST = Buffer.from(
  "000100582112a442b7e7a701bc34d686fa87dfae80220010535455"
  + "4e207465737420636c69656e74002400046e0001ff80290008932ff9b151263b36"
  + "00060009657674"
  + "6a3a68367659202020000800149aeaa70cbfd8cb56781ef2b5b2d3f249c1b571a280280004e57a3bcf", "hex");
/** RFC 5769, 2.2: the answer, but for the SOFTWARE we do not send. */
const PLACE = { address: "192.0.2.1", port: 32_853 };

test("[VL203] STUN checks are verified and answered like the RFC's own examples", () => {
  const check = parseCheck(REQUEST);
  assert.ok(check);
  assert.equal(check.username, "evtj");
  assert.equal(check.isSignedWith(PASSWORD), true);
  assert.equal(check.isSignedWith("another password, long"), false);
  assert.equal(check.isChosen, false);
  const answer = buildCheckAnswer(check, PLACE, PASSWORD);
  assert.equal(answer.subarray(20, 32).toString("hex"), "002000080001a147e112a643");
  const signed = Buffer.from(answer.subarray(0, 32));
  signed.writeUInt16BE(12 + 24, 2);
  assert.deepEqual(answer.subarray(36, 56), createHmac("sha1", PASSWORD).update(signed).digest());
  assert.equal(answer.readUInt16BE(2), answer.length - 20);
  const v6 = { address: "2001:db8:1234:5678:11:2233:4455:6677", port: 32_853 };
  assert.equal(buildCheckAnswer(check, v6, PASSWORD).subarray(24, 44).toString("hex"),
    "0002a1470113a9faa5d3f179bc25f4b5bed2b9d9");
});

test("[VL204] malformed STUN checks are ignored and throw nothing", () => {
  assert.equal(parseCheck(REQUEST.subarray(0, 60)), null);
  fc.assert(fc.property(
    fc.array(fc.tuple(fc.nat(REQUEST.length - 1), fc.nat(255)), { maxLength: 8 }), (changes) => {
      const bytes = Buffer.from(REQUEST);
      for (const [at, value] of changes) bytes[at] = value;
      const check = parseCheck(bytes);
      if (check?.isSignedWith(PASSWORD)) assert.equal(check.username, "evtj");
    }), { numRuns: 2000 });
  for (let length = 0; length < 700; length += 7) parseCheck(randomBytes(length));
});

const ANSWER = {
  places: [{ address: "203.0.113.5", port: 8080 }, { address: "2001:db8::1", port: 8080 }],
  username: "ours", password: "p".repeat(36), fingerprint: "AA:BB", ssrc: 7, cname: "c",
  sessionId: "1",
};

test("[VL205] an audio offer is answered with Opus with FEC, one port and every address", () => {
  const offer = readOffer(pageOffer());
  assert.ok(typeof offer !== "string", String(offer));
  assert.equal(offer.payloadType, 111);
  assert.match(offer.fingerprint, /^[0-9a-f]{64}$/);
  const answer = buildAnswer({ ...ANSWER, offer }).split("\r\n");
  for (const line of [
    "a=ice-lite", "m=audio 8080 UDP/TLS/RTP/SAVPF 111", "a=setup:active", "a=rtcp-mux", "a=mid:0",
    "a=candidate:1 1 udp 2130706431 203.0.113.5 8080 typ host",
    "a=candidate:2 1 udp 2130706175 2001:db8::1 8080 typ host", "a=end-of-candidates",
  ]) assert.ok(answer.includes(line), line);
  assert.ok(answer.some((line) => line.startsWith("a=fmtp:111") && line.includes("useinbandfec=1")));
});

test("[VL206] an offer that cannot be accepted is refused with its reason", () => {
  const refused = (instead: Record<string, string>): string => {
    const offer = readOffer(pageOffer(instead));
    assert.equal(typeof offer, "string", JSON.stringify(offer));
    return offer as string;
  };
  const audio = "m=audio 9 UDP/TLS/RTP/SAVPF 111 63 9 0 8";
  assert.match(refused({ [audio]: "m=video 9 UDP/TLS/RTP/SAVPF 96" }), /of audio/);
  assert.match(refused({ [audio]: `${audio}\r\n${audio}` }), /one stream/);
  assert.match(refused({ [audio]: "m=audio 9 RTP/AVP 111" }), /encrypted/);
  assert.match(refused({ "a=rtpmap:111 opus/48000/2": "a=rtpmap:111 speex/8000" }), /Opus/);
  assert.match(refused({ "a=rtcp-mux": "a=x" }), /rtcp-mux/);
  assert.match(refused({ "a=sendrecv": "a=recvonly" }), /sendrecv/);
  assert.match(refused({ "a=setup:actpass": "a=setup:active" }), /let the server start DTLS/);
  assert.match(refused({ "a=mid:0": `a=mid:${"x".repeat(200)}` }), /name/);
  assert.match(refused({ "s=-": "s=\r\n".repeat(500) }), /too long/);
  assert.equal(typeof readOffer(""), "string");
  const edits = fc.array(fc.tuple(fc.nat(), fc.string({ maxLength: 3 })), { maxLength: 20 });
  fc.assert(fc.property(edits, (changes) => {
    let sdp = pageOffer();
    for (const [at, text] of changes) {
      const place = at % sdp.length;
      sdp = sdp.slice(0, place) + text + sdp.slice(place + text.length);
    }
    const offer: PageOffer | string = readOffer(sdp);
    if (typeof offer !== "string") {
      assert.equal(buildAnswer({ ...ANSWER, offer }).match(/^m=/gm)?.length, 1);
    }
  }), { numRuns: 1000 });
});
