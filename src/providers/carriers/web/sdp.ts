// Validates a page's offer and builds the answer (SDP, RFC 8866; WebRTC, RFC 8829): one audio
// stream, Opus, everything over one port. The server is an ICE-lite agent: it names its addresses,
// and the page alone sends checks, so that the page's candidates are not needed. Pure.
import { isIPv6 } from "node:net";
import type { Place } from "./stun.ts";

const LINES_MAX = 400;
const LINE_CHARS_MAX = 2000;
const OPUS = /^opus\/48000\/2$/i;
/** SHA-256, 32 bytes. */
const FINGERPRINT = /^sha-256 ((?:[0-9a-f]{2}:){31}[0-9a-f]{2})$/i;
/** A token of RFC 8866, as short as browsers make them. */
const MID = /^[\w.-]{1,32}$/;

export interface PageOffer {
  mid: string;
  payloadType: number;
  /** SHA-256 of the page's certificate, without colons. */
  fingerprint: string;
}

/** A string says why the offer cannot be accepted, as a sentence. */
export function readOffer(sdp: string): PageOffer | string {
  const lines = sdp.split(/\r?\n/, LINES_MAX + 1);
  if (lines.length > LINES_MAX || lines.some((line) => line.length > LINE_CHARS_MAX)) {
    return "The offer is too long.";
  }
  if (lines[0] !== "v=0") return "The offer is not a session description.";
  const media = lines.filter((line) => line.startsWith("m="));
  const [kind, port, profile, ...types] = (media[0] ?? "").slice(2).split(" ");
  if (media.length !== 1 || kind !== "audio" || port === "0") {
    return "The offer must have exactly one stream, of audio.";
  }
  if (profile !== "UDP/TLS/RTP/SAVPF") return "The offered audio must be encrypted (DTLS-SRTP).";
  const values = (name: string): string[] => lines.filter((line) => line.startsWith(`a=${name}`))
    .map((line) => line.slice(2 + name.length));
  const opus = values("rtpmap:").map((value) => value.split(" "))
    .find(([type = "", codec = ""]) => types.includes(type) && OPUS.test(codec));
  const payloadType = Number(opus?.[0]);
  if (!(payloadType >= 0 && payloadType <= 127)) return "Opus is not among the offered codecs.";
  if (!values("rtcp-mux").includes("")) return "The offer must multiplex RTCP (rtcp-mux).";
  const [setup] = values("setup:");
  if (setup !== "actpass" && setup !== "passive") {
    return "The offer must let the server start DTLS (setup:actpass or passive).";
  }
  if (["sendonly", "recvonly", "inactive"].some((way) => values(way).includes(""))) {
    return "The offered audio must be sendrecv.";
  }
  const found = values("fingerprint:").map((value) => FINGERPRINT.exec(value)?.[1]);
  const fingerprint = found.find((value) => value !== undefined);
  if (fingerprint === undefined) return "The offer has no SHA-256 fingerprint.";
  const [mid = "0"] = values("mid:");
  if (!MID.test(mid)) return "The offered stream has no usable name.";
  return { mid, payloadType, fingerprint: fingerprint.replaceAll(":", "").toLowerCase() };
}

interface AnswerFacts {
  offer: PageOffer;
  /** Where the server is reached, best first. */
  places: readonly Place[];
  username: string;
  password: string;
  /** SHA-256 of the server's certificate, with colons. */
  fingerprint: string;
  ssrc: number;
  cname: string;
  sessionId: string;
}

/** RFC 8445, 5.1.2.1: host candidates of one component, in descending order. */
const priority = (index: number): number => 2 ** 24 * 126 + 2 ** 8 * (65_535 - index) + 255;

export function buildAnswer(facts: AnswerFacts): string {
  const { offer, places, username, password, fingerprint, ssrc, cname, sessionId } = facts;
  const { mid, payloadType } = offer;
  const [first = { address: "0.0.0.0", port: 9 }] = places;
  return [
    "v=0",
    `o=- ${sessionId} 1 IN IP4 0.0.0.0`,
    "s=-",
    "t=0 0",
    "a=ice-lite",
    `a=group:BUNDLE ${mid}`,
    "a=msid-semantic: WMS *",
    `m=audio ${first.port} UDP/TLS/RTP/SAVPF ${payloadType}`,
    `c=IN ${isIPv6(first.address) ? "IP6" : "IP4"} ${first.address}`,
    `a=mid:${mid}`,
    "a=sendrecv",
    "a=rtcp-mux",
    `a=ice-ufrag:${username}`,
    `a=ice-pwd:${password}`,
    "a=ice-options:ice2",
    `a=fingerprint:sha-256 ${fingerprint}`,
    "a=setup:active",
    `a=rtpmap:${payloadType} opus/48000/2`,
    // In-band FEC repeats the packet before, and DTX is off so that background noise is sent as
    // well: when packets stop, the peer is lost.
    `a=fmtp:${payloadType} minptime=20;useinbandfec=1;usedtx=0;maxplaybackrate=16000;stereo=0`,
    "a=ptime:20",
    "a=msid:parley parley",
    `a=ssrc:${ssrc} cname:${cname}`,
    ...places.map(({ address, port }, index) =>
      `a=candidate:${index + 1} 1 udp ${priority(index)} ${address} ${port} typ host`),
    "a=end-of-candidates",
    "",
  ].join("\r\n");
}
