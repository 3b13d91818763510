// Descriptions of media as telephones, exchanges and providers write them, and what is answered.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  buildAnswer,
  buildOffer,
  parseSdp,
  readAnswer,
  SDP_LIMITS,
  type Direction,
  type LocalMedia,
  type RemoteSdp,
  type SrtpKey,
} from "#providers/carriers/sip/grammar/sdp.ts";
import { NARROWBAND, type Codec } from "#providers/carriers/sip/grammar/codec-names.ts";
import { assertLinear } from "#support/growth.ts";

const KEY_TEXT = "PS1uQCVeeCFCanVmcjkpPywjNWhcYD0mXXtxaVBR";
const keyOf = (suite: SrtpKey["suite"], tag: number, fill = 7): SrtpKey =>
  ({ suite, tag, key: Buffer.alloc(30, fill) });
const STRONG = "AES_CM_128_HMAC_SHA1_80";
const SHORT = "AES_CM_128_HMAC_SHA1_32";

const localOf = (changes: Partial<LocalMedia> = {}): LocalMedia => ({
  host: "192.0.2.1", port: 40_000, sessionId: "1", version: 1, direction: "sendrecv",
  codecs: ["PCMU", "PCMA"], crypto: null, ...changes,
});
const sdp = (...lines: string[]) =>
  ["v=0", "o=- 1 1 IN IP4 192.0.2.9", "s=-", "c=IN IP4 192.0.2.9", "t=0 0", ...lines, ""].join("\r\n");
const parse = (text: string): RemoteSdp => parseSdp(Buffer.from(text)) ?? assert.fail(text);
const audioOf = (...lines: string[]) => parse(sdp(...lines)).audio;
const answer = (text: string, changes: Partial<LocalMedia> = {}) =>
  buildAnswer(parse(text), localOf(changes));
const mediaOf = (text: string) => text.split("\r\n").filter((line) => line.startsWith("m="));

/** What each begins a call with, shortened only in what repeats itself. */
const OFFERS: Record<
  string,
  { text: string; codecs: [Codec, number][]; event: number | null; wide?: number; noise?: number }
> = {
  baresip: {
    text: "v=0\r\no=- 3838370421 2096783405 IN IP4 10.0.0.5\r\ns=-\r\nc=IN IP4 10.0.0.5\r\nt=0 0\r\na=tool:baresip 3.10\r\nm=audio 10018 RTP/AVP 96 0 8 101\r\nb=AS:128\r\na=rtpmap:96 opus/48000/2\r\na=fmtp:96 stereo=1;sprop-stereo=1\r\na=rtpmap:0 PCMU/8000\r\na=rtpmap:8 PCMA/8000\r\na=rtpmap:101 telephone-event/8000\r\na=fmtp:101 0-15\r\na=rtcp:10019\r\na=sendrecv\r\na=label:1\r\na=rtcp-rsize\r\na=ssrc:3123 cname:sip:a@b\r\na=ptime:20\r\n",
    codecs: [["OPUS", 96], ["PCMU", 0], ["PCMA", 8]], event: 101,
  },
  Asterisk: {
    text: "v=0\r\no=- 1109519133 1109519133 IN IP4 10.0.0.5\r\ns=Asterisk\r\nc=IN IP4 10.0.0.5\r\nt=0 0\r\nm=audio 10018 RTP/AVP 8 0 107 101\r\na=rtpmap:8 PCMA/8000\r\na=rtpmap:0 PCMU/8000\r\na=rtpmap:107 opus/48000/2\r\na=fmtp:107 useinbandfec=1\r\na=rtpmap:101 telephone-event/8000\r\na=fmtp:101 0-16\r\na=ptime:20\r\na=maxptime:140\r\na=sendrecv\r\n",
    codecs: [["PCMA", 8], ["PCMU", 0], ["OPUS", 107]], event: 101,
  },
  FreeSWITCH: {
    text: "v=0\r\no=FreeSWITCH 1577881432 1577881433 IN IP4 10.0.0.5\r\ns=FreeSWITCH\r\nc=IN IP4 10.0.0.5\r\nt=0 0\r\nm=audio 10018 RTP/AVP 102 9 0 8 103 101 13\r\na=rtpmap:102 opus/48000/2\r\na=rtpmap:9 G722/8000\r\na=rtpmap:0 PCMU/8000\r\na=rtpmap:8 PCMA/8000\r\na=rtpmap:103 telephone-event/48000\r\na=fmtp:103 0-15\r\na=rtpmap:101 telephone-event/8000\r\na=fmtp:101 0-15\r\na=rtpmap:13 CN/8000\r\na=ptime:20\r\n",
    codecs: [["OPUS", 102], ["G722", 9], ["PCMU", 0], ["PCMA", 8]], event: 101, wide: 103,
    noise: 13,
  },
  Twilio: {
    text: "v=0\r\no=root 1733862321 1733862321 IN IP4 10.0.0.5\r\ns=Twilio Media Gateway\r\nc=IN IP4 10.0.0.5\r\nt=0 0\r\nm=audio 10018 RTP/AVP 0 101\r\na=rtpmap:0 PCMU/8000\r\na=rtpmap:101 telephone-event/8000\r\na=fmtp:101 0-16\r\na=silenceSupp:off - - - -\r\na=ptime:20\r\na=sendrecv\r\n",
    codecs: [["PCMU", 0]], event: 101,
  },
  Cisco: {
    text: "v=0\r\no=CiscoSystemsSIP-GW-UserAgent 7201 3540 IN IP4 10.0.0.5\r\ns=SIP Call\r\nc=IN IP4 10.0.0.5\r\nt=0 0\r\nm=audio 10018 RTP/AVP 18 8 100 19\r\nc=IN IP4 10.0.0.5\r\na=rtpmap:18 G729/8000\r\na=fmtp:18 annexb=no\r\na=rtpmap:8 PCMA/8000\r\na=rtpmap:100 telephone-event/8000\r\na=fmtp:100 0-15\r\na=rtpmap:19 CN/8000\r\na=ptime:20\r\n",
    codecs: [["PCMA", 8]], event: 100, noise: 19,
  },
  sipp: {
    text: "v=0\no=user1 53655765 2353687637 IN IP4 10.0.0.5\ns=-\nc=IN IP4 10.0.0.5\nt=0 0\nm=audio 10018 RTP/AVP 0\na=rtpmap:0 PCMU/8000\na=ptime:20\n",
    codecs: [["PCMU", 0]], event: null,
  },
};

for (const [name, { text, codecs, event, wide, noise }] of Object.entries(OFFERS)) {
  test(`[SI17] an offer of ${name} is parsed and answered with its first codec`, () => {
    const { audio, mediaLines } = parse(text);
    assert.deepEqual(audio, {
      host: "10.0.0.5", port: 10_018, codecs: codecs.map(([name, payloadType]) => ({ name, payloadType })),
      telephoneEvent: event, wideTelephoneEvent: wide ?? null, comfortNoise: noise ?? null,
      direction: "sendrecv", isHeld: false,
      profile: "RTP/AVP", crypto: [], rtcpPort: name === "baresip" ? 10_019 : null,
    });
    assert.equal(mediaLines.length, 1);
    const { sdp: answered, agreed } = answer(text)!;
    const [codec, payloadType] = codecs.find(([name]) => NARROWBAND.includes(name))!;
    assert.deepEqual(agreed, {
      codec, payloadType, telephoneEvent: event, eventRate: 8000, comfortNoise: noise ?? null,
      isHeld: false, srtp: null,
      remote: { host: "10.0.0.5", port: 10_018, rtcpPort: name === "baresip" ? 10_019 : null },
    });
    assert.deepEqual(mediaOf(answered), [`m=audio 40000 RTP/AVP ${payloadType}${event === null ? "" : ` ${event}`}`]);
    const read = parse(answered).audio;
    assert.deepEqual([read.host, read.port, read.telephoneEvent], ["192.0.2.1", 40_000, event]);
    assert.match(answered, /^a=ptime:20\r$/m);
    assert.equal(answer(text, { codecs: [] }), null);
  });
}

test("[SI120] wideband is used if the trunk prefers it and the other side supports it, with keys at its clock rate", () => {
  const wide = ["OPUS", "G722", "PCMU", "PCMA"] as const;
  const chosen = (text: string, codecs: readonly Codec[]) => {
    const { agreed } = answer(text, { codecs })!;
    return [agreed.codec, agreed.payloadType, agreed.telephoneEvent, agreed.eventRate];
  };
  const { FreeSWITCH, Asterisk, Twilio } = OFFERS;
  assert.deepEqual(chosen(FreeSWITCH!.text, wide), ["OPUS", 102, 103, 48_000]);
  assert.deepEqual(chosen(FreeSWITCH!.text, ["G722", "OPUS"]), ["G722", 9, 101, 8000]);
  assert.deepEqual(chosen(FreeSWITCH!.text, ["PCMA", "G722"]), ["PCMA", 8, 101, 8000]);
  // Events at another clock than the sound's are better than none.
  assert.deepEqual(chosen(Asterisk!.text, wide), ["OPUS", 107, 101, 8000]);
  // Which law of G.711 is theirs to say.
  assert.deepEqual(chosen(Asterisk!.text, ["G722", "PCMU", "PCMA"]), ["PCMA", 8, 101, 8000]);
  assert.deepEqual(chosen(Twilio!.text, wide), ["PCMU", 0, 101, 8000]);
  assert.equal(answer(Twilio!.text, { codecs: ["OPUS"] }), null);
  const answered = answer(FreeSWITCH!.text, { codecs: wide })!.sdp.split("\r\n");
  for (const line of ["m=audio 40000 RTP/AVP 102 103", "a=rtpmap:102 opus/48000/2", "a=rtpmap:103 telephone-event/48000"]) {
    assert.ok(answered.includes(line), line);
  }
  const offer = buildOffer(localOf({ codecs: wide })).split("\r\n");
  assert.ok(offer.includes("m=audio 40000 RTP/AVP 96 9 0 8 102 101"), offer.join("\n"));
  for (const line of ["a=rtpmap:96 opus/48000/2", "a=rtpmap:9 G722/8000", "a=rtpmap:102 telephone-event/48000", "a=rtpmap:101 telephone-event/8000"]) {
    assert.ok(offer.includes(line), line);
  }
  assert.ok(offer.some((line) => /^a=fmtp:96 .*useinbandfec=1/.test(line)));
  const narrow = buildOffer(localOf());
  assert.ok(narrow.includes("m=audio 40000 RTP/AVP 0 8 101\r\n"), narrow);
});

test("[SI17] types, addresses and attributes are parsed in all their forms", () => {
  const codecs = (...lines: string[]) =>
    audioOf(...lines).codecs.map(({ name, payloadType }) => `${name} ${payloadType}`);
  assert.deepEqual(codecs("m=audio 4000 RTP/AVP 8 0"), ["PCMA 8", "PCMU 0"]);
  assert.deepEqual(codecs("m=audio 4000 RTP/AVP 97 96 97", "a=rtpmap:96 pcmu/8000", "a=rtpmap:97 PcmA/8000/1"), ["PCMA 97", "PCMU 96"]);
  assert.deepEqual(codecs("m=audio 4000 RTP/AVP 96 97 98 0", "a=rtpmap:96 PCMU/16000", "a=rtpmap:97 PCMA/8000/2", "a=rtpmap:0 G722/8000", "a=rtpmap:98 opus/48000"), ["G722 0"]);
  assert.deepEqual(codecs("m=audio 4000 RTP/AVP 9 111", "a=rtpmap:111 OPUS/48000/2"), ["G722 9", "OPUS 111"]);
  assert.deepEqual(codecs("m=audio 4000 RTP/AVP 3 18 x -8 999 *"), []);
  assert.equal(audioOf("m=audio 4000 RTP/AVP 0 101 102", "a=rtpmap:101 telephone-event/16000", "a=rtpmap:102 TELEPHONE-EVENT/8000").telephoneEvent, 102);
  assert.equal(audioOf("m=audio 4000 RTP/AVP 0", "a=rtpmap:101 telephone-event/8000").telephoneEvent, null);
  assert.equal(audioOf("m=audio 4000 RTP/AVP 0 13").comfortNoise, 13);
  assert.equal(audioOf("m=audio 4000/2 RTP/AVP 0", "c=IN IP4 198.51.100.7/127").host, "198.51.100.7");
  assert.equal(audioOf("m=audio 4000 RTP/AVP 0", "c=IN IP6 2001:DB8::7").host, "2001:db8::7");
  assert.equal(audioOf("m=audio 4000 RTP/AVP 0", "a=rtcp:4711 IN IP4 192.0.2.3").rtcpPort, 4711);
  for (const name of ["IN IP4 Media.example.com", "IN IP6 gateway", "IN IP4 a_b.example.com./127"]) {
    assert.match(parseSdp(`v=0\r\nc=${name}\r\nm=audio 4000 RTP/AVP 0\r\n`)!.audio.host, /^[a-z._]+$/);
  }
  const numbers = ["127.1", "2130706433", "0x7f000001", "999.1.1.1", "1.2.3.4.5"];
  const odd = ["a,b", "a;b", "-", ".", "a..b", "ex@mple.com", "a".repeat(64), "a.".repeat(127) + "com"];
  for (const name of [...numbers, ...odd]) {
    assert.equal(parseSdp(`v=0\r\nc=IN IP4 ${name}\r\nm=audio 4000 RTP/AVP 0\r\n`), null, name);
  }
  for (const where of ["IN IP4 2001:db8::1", "IN IP6 192.0.2.1", "IN IP6 fe80::1%eth0", "IN IP4 239.1.1.1", "IN IP4 255.255.255.255", "IN IP6 ff02::1", "ATM NSAP 1", ""]) {
    assert.equal(parseSdp(`v=0\r\nc=${where}\r\nm=audio 4000 RTP/AVP 0\r\n`), null, where);
  }
  for (const media of ["m=audio x RTP/AVP 0", "m=audio -1 RTP/AVP 0", "m=audio 65536 RTP/AVP 0", "m=audio 4000 RTP/AVP", "m=", "m=audio 4000 UDP/TLS/RTP/SAVPF 0", "m=video 4000 RTP/AVP 31", "m=image 4000 udptl t38"]) {
    assert.equal(parseSdp(sdp(media)), null, media);
  }
  assert.equal(parseSdp(sdp(...Array<string>(17).fill("m=audio 4000 RTP/AVP 0"))), null);
  assert.equal(parseSdp(sdp(...Array<string>(SDP_LIMITS.linesMax).fill("a=x"), "m=audio 4000 RTP/AVP 0")), null);
  assert.equal(parseSdp(sdp("m=audio 4000 RTP/AVP 0", "a=x".repeat(SDP_LIMITS.bytesMax))), null);
  const piece = fc.oneof(
    fc.constantFrom("m=audio 4000 RTP/AVP 0 8", "m=video 1 RTP/AVP 31", "c=IN IP4 192.0.2.1", "a=crypto:1 ", "a=rtpmap:", "a=", "\r\n", "\n", " ", "|", "/", "inline:", "m=", "c="),
    fc.string({ unit: "binary", maxLength: 20 }),
  );
  fc.assert(fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
    const offer = parseSdp(`v=0\r\n${pieces.join("")}`);
    const answered = offer && buildAnswer(offer, localOf());
    if (!answered) return;
    assert.equal(mediaOf(answered.sdp).length, offer.mediaLines.length);
    assert.match(answered.sdp, /^([!-~][ -~]*\r\n)+$/);
  }), { numRuns: 3000 });
  const bytes = fc.uint8Array({ maxLength: 300 });
  fc.assert(fc.property(bytes, (input) => void parseSdp(input)), { numRuns: 1000 });
});

test("[SI17] parsing and answering the worst 32 KB takes time linear in their length", async () => {
  const worst = {
    "many formats": `m=audio 4000 RTP/AVP ${"0 ".repeat(16_000)}`,
    "many types": ["m=audio 4000 RTP/AVP 0", ...Array<string>(1000).fill("a=rtpmap:0 PCMU/8000")].join("\r\n"),
    "many keys": ["m=audio 4000 RTP/SAVP 0", ...Array<string>(1000).fill(`a=crypto:1 ${STRONG} i`)].join("\r\n"),
    "a long key": `m=audio 4000 RTP/SAVP 0\r\na=crypto:1 ${STRONG} inline:${"|".repeat(32_000)}`,
    "spaces": `m=audio 4000 RTP/AVP 0\r\nc=IN IP4${" ".repeat(32_000)}1`,
    "a long address": `m=audio 4000 RTP/AVP 0\r\nc=IN IP4 ${"1.".repeat(16_000)}`,
  };
  for (const [name, text] of Object.entries(worst)) {
    await assertLinear(name, SDP_LIMITS.bytesMax, (bytes) => {
      const input = Buffer.from(sdp(text).slice(0, bytes));
      return () => {
        const offer = parseSdp(input);
        if (offer) buildAnswer(offer, localOf());
      };
    });
  }
});

test("[SI18] our own side can answer our offer, over IPv4 and IPv6", () => {
  assert.equal(buildOffer(localOf()), [
    "v=0", "o=- 1 1 IN IP4 192.0.2.1", "s=-", "c=IN IP4 192.0.2.1", "t=0 0", "m=audio 40000 RTP/AVP 0 8 101",
    "a=rtpmap:0 PCMU/8000", "a=rtpmap:8 PCMA/8000", "a=rtpmap:101 telephone-event/8000", "a=fmtp:101 0-15",
    "a=ptime:20", "a=sendrecv", "",
  ].join("\r\n"));
  const ours = localOf({ codecs: ["PCMA", "PCMU"], host: "2001:db8::1" });
  const theirs = answer(buildOffer(ours), { host: "2001:db8::2", port: 50_000 })!;
  assert.match(theirs.sdp, /\r\nc=IN IP6 2001:db8::2\r\n/);
  assert.deepEqual(readAnswer(parse(theirs.sdp), ours), {
    codec: "PCMA", payloadType: 8, telephoneEvent: 101, eventRate: 8000, comfortNoise: null, isHeld: false, srtp: null,
    remote: { host: "2001:db8::2", port: 50_000, rtcpPort: null },
    offered: { payloadType: 8, telephoneEvent: 101 },
  });
  assert.equal(theirs.agreed.codec, "PCMA");
  assert.equal(readAnswer({ audio: audioOf("m=audio 0 RTP/AVP 0") }, ours), null);
  assert.equal(readAnswer({ audio: audioOf("m=audio 4000 RTP/AVP 18") }, ours), null);
  assert.equal(readAnswer({ audio: audioOf("m=audio 4000 RTP/AVP 18 0") }, localOf({ codecs: ["PCMA"] })), null);
});

test("[SI18] every media line is answered in its place, all but the audio refused with port 0", () => {
  const answered = answer(sdp(
    "m=video 5000 RTP/AVP 31 34", "a=rtpmap:31 H261/90000", "m=audio 0 RTP/AVP 0",
    "m=audio 4000/2 RTP/AVPF 97 8", "a=rtpmap:97 L16/8000", "m=audio 4002 RTP/AVP 0",
    "m=application 6000 UDP/BFCP *", "m=image 0 udptl t38",
  ))!;
  assert.deepEqual(mediaOf(answered.sdp), [
    "m=video 0 RTP/AVP 31 34", "m=audio 0 RTP/AVP 0", "m=audio 40000 RTP/AVPF 8", "m=audio 0 RTP/AVP 0",
    "m=application 0 UDP/BFCP *", "m=image 0 udptl t38",
  ]);
  assert.equal(answered.agreed.remote.port, 4000);
  assert.equal(answer(sdp("m=audio 0 RTP/AVP 0", "m=image 4000 udptl t38")), null);
  assert.equal(answer(sdp("m=audio 4000 RTP/AVP 18 9")), null);
});

test("[SI18] a hold is recognised in each of its forms, and the answer's direction matches the offer's", () => {
  const fits = (lines: string[], direction: Direction = "sendrecv") => {
    const answered = answer(sdp("m=audio 4000 RTP/AVP 0", ...lines), { direction })!;
    return [answered.agreed.isHeld, parse(answered.sdp).audio.direction];
  };
  assert.deepEqual(fits([]), [false, "sendrecv"]);
  assert.deepEqual(fits(["a=sendonly"]), [true, "recvonly"]);
  assert.deepEqual(fits(["a=inactive"]), [true, "inactive"]);
  assert.deepEqual(fits(["c=IN IP4 0.0.0.0"]), [true, "recvonly"]);
  assert.deepEqual(fits(["c=IN IP6 ::", "a=sendrecv"]), [true, "recvonly"]);
  assert.deepEqual(fits(["a=recvonly"]), [false, "sendonly"]);
  assert.deepEqual(fits([], "sendonly"), [false, "sendonly"]);
  assert.deepEqual(fits(["a=sendonly"], "sendonly"), [true, "inactive"]);
  const session = (line: string, ...more: string[]) =>
    parse(sdp(line, "m=audio 4000 RTP/AVP 0", ...more)).audio;
  assert.equal(session("a=sendonly").isHeld, true);
  assert.equal(session("a=sendonly", "a=sendrecv").isHeld, false);
  assert.equal(session("a=x", "c=IN IP4 0.0.0.0").isHeld, true);
});

test("[SI19] keys are accepted with a lifetime, not with an identifier or weakening parameters", () => {
  const read = (line: string) => audioOf("m=audio 4000 RTP/SAVP 0", `a=crypto:${line}`).crypto[0];
  const key = Buffer.from(KEY_TEXT, "base64");
  assert.deepEqual(read(`1 ${STRONG} inline:${KEY_TEXT}`), { suite: STRONG, key, tag: 1 });
  for (const more of ["|2^20", "|1048576", "|2^48 WSH=64", " -X=1"]) {
    assert.deepEqual(read(`2 aes_cm_128_hmac_sha1_32 inline:${KEY_TEXT}${more}`), { suite: SHORT, key, tag: 2 }, more);
  }
  for (const wrong of [
    `1 ${STRONG} inline:${KEY_TEXT}|2^20|1:4`, `1 ${STRONG} inline:${KEY_TEXT}|1:4`, `1 ${STRONG} inline:${KEY_TEXT};inline:${KEY_TEXT}`,
    `1 ${STRONG} inline:${KEY_TEXT} UNENCRYPTED_SRTP`, `1 ${STRONG} inline:${KEY_TEXT} UNAUTHENTICATED_SRTP`, `1 ${STRONG} inline:${KEY_TEXT} KDR=1`,
    `1 ${STRONG} inline:${KEY_TEXT}A`, `1 ${STRONG} inline:${KEY_TEXT.slice(1)}`, `1 ${STRONG} inline:${KEY_TEXT.slice(1)}=`, `1 ${STRONG} ${KEY_TEXT}`,
    `x ${STRONG} inline:${KEY_TEXT}`, `-1 ${STRONG} inline:${KEY_TEXT}`, `1 F8_128_HMAC_SHA1_80 inline:${KEY_TEXT}`, `1 AEAD_AES_256_GCM inline:${KEY_TEXT}`, `1 ${STRONG}`, "1", "",
  ]) assert.equal(read(wrong), undefined, wrong);
});

test("[SI172] keys under RTP/AVP are accepted if one is usable, else the audio is unencrypted", () => {
  const offered = sdp("m=audio 4000 RTP/AVP 0", `a=crypto:5 ${SHORT} inline:${KEY_TEXT}`);
  const taken = answer(offered, { crypto: [keyOf(SHORT, 2)] })!;
  assert.deepEqual(taken.agreed.srtp?.local, keyOf(SHORT, 5));
  assert.deepEqual(mediaOf(taken.sdp), ["m=audio 40000 RTP/AVP 0"]);
  assert.deepEqual(parse(taken.sdp).audio.crypto, [keyOf(SHORT, 5)]);
  const clear = answer(offered, { crypto: [keyOf(STRONG, 2)] })!;
  assert.deepEqual([clear.agreed.srtp, clear.sdp.includes("crypto")], [null, false]);
  assert.equal(answer(offered, { crypto: [keyOf(STRONG, 2)], requiresSrtp: true }), null);
});

test("[SI19] SRTP is used where it is required", () => {
  const offered = sdp(
    "m=audio 4000 RTP/SAVP 0", `a=crypto:1 AEAD_AES_256_GCM inline:${KEY_TEXT}`,
    `a=crypto:5 ${SHORT} inline:${KEY_TEXT}`, `a=crypto:6 ${STRONG} inline:${KEY_TEXT}|2^31`,
  );
  const ours = [keyOf(STRONG, 1), keyOf(SHORT, 2)];
  const { sdp: answered, agreed } = answer(offered, { crypto: ours })!;
  assert.deepEqual(agreed.srtp, {
    local: keyOf(SHORT, 5), remote: { suite: SHORT, tag: 5, key: Buffer.from(KEY_TEXT, "base64") },
  });
  assert.deepEqual(mediaOf(answered), ["m=audio 40000 RTP/SAVP 0"]);
  assert.deepEqual(parse(answered).audio.crypto, [keyOf(SHORT, 5)]);
  assert.equal(answer(offered, { crypto: [keyOf(STRONG, 1)] })?.agreed.srtp?.local.tag, 6);
  assert.equal(answer(offered), null);
  assert.equal(answer(sdp("m=audio 4000 RTP/SAVP 0"), { crypto: ours }), null);

  const secure = localOf({ crypto: ours });
  assert.deepEqual(mediaOf(buildOffer(secure)), ["m=audio 40000 RTP/SAVP 0 8 101"]);
  const theirs = answer(buildOffer(secure), { crypto: [keyOf(SHORT, 1, 9)] })!;
  assert.deepEqual(readAnswer(parse(theirs.sdp), secure)?.srtp, {
    local: keyOf(SHORT, 2), remote: keyOf(SHORT, 2, 9),
  });
  const without = (text: string) => readAnswer(parse(text), secure);
  assert.equal(without(theirs.sdp.replace("SAVP", "AVP")), null);
  assert.equal(without(theirs.sdp.replace("crypto:2", "crypto:1")), null);
  assert.equal(without(theirs.sdp.replace("a=crypto", "a=x-crypto")), null);
  assert.equal(readAnswer(parse(theirs.sdp), localOf()), null);
});
