// Session descriptions (RFC 8866, offer and answer RFC 3264, SRTP keys RFC 4568) for audio calls:
// parses those of the far end and builds ours. The input may come from anybody: it is read line by
// line, once, and any part that is copied into an answer has its characters checked.
import { isUtf8 } from "node:buffer";
import { isIPv4, isIPv6 } from "node:net";
import { codecOf, CODECS, NARROWBAND, type Codec } from "./codec-names.ts";
import { parseUint } from "./uri.ts";

export interface SrtpKey {
  suite: (typeof SUITES)[number];
  /** The key's 16 or 32 bytes and the salt's 14. */
  key: Buffer;
  tag: number;
}

/** From the point of view of the description's sender. */
export type Direction = "sendrecv" | "sendonly" | "recvonly" | "inactive";

/** The audio of the far end's description. */
interface RemoteMedia {
  /** An IP address or a name; empty when the line is refused and has neither. */
  host: string;
  /** 0 when the line is refused. */
  port: number;
  /** In the far end's order. */
  codecs: { name: Codec; payloadType: number }[];
  /** Payload types of telephone events, at 8 kHz and at the 48 kHz of Opus. */
  telephoneEvent: number | null;
  wideTelephoneEvent: number | null;
  comfortNoise: number | null;
  direction: Direction;
  /** They do not listen: sendonly, inactive, or the address 0.0.0.0 of RFC 2543. */
  isHeld: boolean;
  profile: "RTP/AVP" | "RTP/SAVP";
  /** Those that can be used: known suite, no master key identifier, nothing left unencrypted. */
  crypto: SrtpKey[];
  /** The port in a=rtcp, or null. */
  rtcpPort: number | null;
}

export interface RemoteSdp {
  audio: RemoteMedia;
  /** The m= lines in order, without `m=`. */
  mediaLines: string[];
}

export interface LocalMedia {
  /** An IP address. */
  host: string;
  port: number;
  sessionId: string;
  version: number;
  direction: Direction;
  /** Best first. */
  codecs: readonly Codec[];
  /** Keys to send with: an offer with keys demands SRTP, an answer uses them when asked to. */
  crypto: SrtpKey[] | null;
  /** The profile of their offer, which may have keys under RTP/AVP (RFC 8643); else by `crypto`. */
  profile?: RemoteMedia["profile"];
  /** Unencrypted audio is never agreed on. */
  requiresSrtp?: boolean;
}

export interface Agreed {
  codec: Codec;
  payloadType: number;
  telephoneEvent: number | null;
  /** Ticks of an event's duration in a second. */
  eventRate: number;
  comfortNoise: number | null;
  /** The payload types of our offer, which the far end may send besides its own (RFC 3264 6.1). */
  offered?: { payloadType: number; telephoneEvent: number };
  /** `host`: an IP address or a name. */
  remote: { host: string; port: number; rtcpPort: number | null };
  isHeld: boolean;
  srtp: { local: SrtpKey; remote: SrtpKey } | null;
}

export const SDP_LIMITS = {
  bytesMax: 32_768,
  linesMax: 1024,
  mediaMax: 16,
  formatsMax: 64,
  cryptoMax: 16,
} as const;

const NARROW_RATE = 8000;
const WIDE_RATE = 48_000;
/** The payload types we offer. */
const EVENT_TYPES = { [NARROW_RATE]: 101, [WIDE_RATE]: 102 } as const;
const PTIME_MS = 20;
const CRYPTO_TAG_MAX = 999_999_999;
/** Best first. */
export const SUITES = [
  "AES_256_CM_HMAC_SHA1_80", "AES_CM_128_HMAC_SHA1_80",
  "AES_256_CM_HMAC_SHA1_32", "AES_CM_128_HMAC_SHA1_32",
] as const;
/** The bytes of the key and its salt together. */
export const masterBytesOf = (suite: SrtpKey["suite"]): number =>
  suite.startsWith("AES_256") ? 46 : 30;
const DIRECTIONS = ["sendrecv", "sendonly", "recvonly", "inactive"] as const;

interface MediaLine {
  media: string;
  port: number;
  profile: string;
  formats: string[];
}

interface Section {
  line: string;
  /** The lines after it. */
  lines: string[];
}

/** Null when it does not describe a session with audio over RTP. */
export function parseSdp(body: Uint8Array | string): RemoteSdp | null {
  if (body.length > SDP_LIMITS.bytesMax) return null;
  const lines = textOf(body).split("\n", SDP_LIMITS.linesMax + 1);
  if (lines.length > SDP_LIMITS.linesMax || lines[0]?.trim() !== "v=0") return null;
  const session: string[] = [];
  const sections: Section[] = [];
  for (const untrimmed of lines) {
    const line = untrimmed.trim();
    if (line.startsWith("m=")) sections.push({ line: line.slice(2).trim(), lines: [] });
    else (sections.at(-1)?.lines ?? session).push(line);
  }
  if (sections.length > SDP_LIMITS.mediaMax) return null;
  const mediaLines = sections.map(({ line }) => line);
  const index = audioIndex(mediaLines);
  const section = index === null ? undefined : sections[index];
  const audio = section ? readAudio(section, session) : null;
  return audio && { audio, mediaLines };
}

function textOf(body: Uint8Array | string): string {
  if (typeof body === "string") return body;
  const buffer = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  return buffer.toString(isUtf8(buffer) ? "utf8" : "latin1");
}

function readMediaLine(line: string): MediaLine | null {
  const [media = "", ports = "", profile = "", ...formats] = line.split(/[ \t]+/);
  const port = parseUint(ports.split("/", 1)[0], 65_535);
  // Refused lines are sent back, so nothing but visible ASCII may be in them.
  if (port === null || formats.length === 0 || !/^[!-~ \t]+$/.test(line)) return null;
  return { media, port, profile, formats };
}

/** Profiles with feedback (AVPF) are accepted as well, because sending feedback is optional. */
function profileOf(line: MediaLine): RemoteMedia["profile"] | null {
  const profile = line.profile.toUpperCase();
  if (profile === "RTP/AVP" || profile === "RTP/AVPF") return "RTP/AVP";
  return profile === "RTP/SAVP" || profile === "RTP/SAVPF" ? "RTP/SAVP" : null;
}

/**
 * The audio line to use: the first with a port, else the first. Null when there is none, or when
 * any line cannot be parsed, because an answer has to repeat every line.
 */
function audioIndex(mediaLines: string[]): number | null {
  const lines = mediaLines.map(readMediaLine);
  if (lines.includes(null)) return null;
  const isAudio = (line: MediaLine | null): line is MediaLine =>
    line?.media.toLowerCase() === "audio" && profileOf(line) !== null;
  const on = lines.findIndex((line) => isAudio(line) && line.port > 0);
  const any = on >= 0 ? on : lines.findIndex(isAudio);
  return any >= 0 ? any : null;
}

function readAudio(section: Section, session: string[]): RemoteMedia | null {
  const line = readMediaLine(section.line);
  const profile = line && profileOf(line);
  if (!line || !profile) return null;
  const host = readHost(section.lines) ?? readHost(session);
  // A line with a port needs an address, and not a multicast one.
  if (line.port > 0 && (host === null || isMulticast(host))) return null;
  const direction = directionOf(section.lines) ?? directionOf(session) ?? "sendrecv";
  const isNowhere = host === "0.0.0.0" || host === "::";
  return {
    host: host ?? "",
    port: line.port,
    ...readFormats(line, section.lines),
    direction,
    isHeld: isNowhere || direction === "sendonly" || direction === "inactive",
    profile,
    crypto: attributes(section.lines, "crypto")
      .slice(0, SDP_LIMITS.cryptoMax)
      .flatMap((value) => readCrypto(value) ?? []),
    rtcpPort: parseUint(attributes(section.lines, "rtcp")[0]?.split(" ", 1)[0], 65_535) || null,
  };
}

/** Values of `a=name:value`, in order; empty for `a=name`. */
function attributes(lines: string[], name: string): string[] {
  const start = `a=${name}`;
  return lines
    .filter((line) => line.startsWith(start) && [undefined, ":"].includes(line[start.length]))
    .map((line) => line.slice(start.length + 1).trim());
}

const directionOf = (lines: string[]): Direction | undefined =>
  DIRECTIONS.find((direction) => lines.includes(`a=${direction}`));

/** A name; the last label has to begin with a letter, so that no number passes for one. */
const NAME = /^(?:[a-z0-9_-]{1,63}\.)*[a-z][a-z0-9-]{0,62}\.?$/;
const NAME_LENGTH_MAX = 253;

function readHost(lines: string[]): string | null {
  const line = lines.find((candidate) => candidate.startsWith("c="));
  const [net, family, address = ""] = (line ?? "").slice(2).trim().split(/[ \t]+/, 3);
  const host = address.slice(0, NAME_LENGTH_MAX + 1).split("/", 1)[0]?.toLowerCase() ?? "";
  if (net?.toUpperCase() !== "IN" || host.includes("%")) return null;
  const isAddress = { IP4: isIPv4, IP6: isIPv6 }[family?.toUpperCase() ?? ""];
  if (isAddress?.(host)) return host;
  return isAddress && host.length <= NAME_LENGTH_MAX && NAME.test(host) ? host : null;
}

const isMulticast = (host: string): boolean => host.includes(":")
  ? host.startsWith("ff")
  : isIPv4(host) && Number(host.split(".", 1)[0]) >= 224;

function readFormats(
  line: MediaLine,
  lines: string[],
): Pick<RemoteMedia, "codecs" | "telephoneEvent" | "wideTelephoneEvent" | "comfortNoise"> {
  const names = new Map<number, string>([
    [0, "PCMU/8000"], [8, "PCMA/8000"], [9, "G722/8000"], [13, "CN/8000"],
  ]);
  for (const value of attributes(lines, "rtpmap").slice(0, SDP_LIMITS.formatsMax)) {
    const [type, encoding = ""] = value.split(/[ \t]+/, 2);
    const payloadType = parseUint(type, 127);
    // Without a number of channels, one is meant, so `/1` is removed.
    const name = encoding.toUpperCase().replace(/^([^/]*\/[^/]*)\/1$/, "$1");
    if (payloadType !== null) names.set(payloadType, name);
  }
  const types = line.formats
    .slice(0, SDP_LIMITS.formatsMax)
    .map((format) => parseUint(format, 127))
    .filter((type) => type !== null);
  const typeOf = (name: string): number | null =>
    types.find((type) => names.get(type) === name) ?? null;
  const codecs: RemoteMedia["codecs"] = [];
  for (const payloadType of new Set(types)) {
    const name = codecOf(names.get(payloadType) ?? "");
    if (name) codecs.push({ name, payloadType });
  }
  return {
    codecs,
    telephoneEvent: typeOf("TELEPHONE-EVENT/8000"),
    wideTelephoneEvent: typeOf("TELEPHONE-EVENT/48000"),
    comfortNoise: typeOf("CN/8000"),
  };
}

/** `1 AES_CM_128_HMAC_SHA1_80 inline:key|lifetime|mki:length parameters`; null if unusable. */
function readCrypto(value: string): SrtpKey | null {
  const [tagText, suiteText = "", inline = "", ...parameters] = value.split(/[ \t]+/);
  const tag = parseUint(tagText, CRYPTO_TAG_MAX);
  const suite = SUITES.find((name) => name === suiteText.toUpperCase());
  const [key = "", lifetime = "", ...more] = inline.slice(0, 128).split("|");
  // A master key identifier would have to be in every packet, and session parameters other than
  // hints change the packet format.
  const isOrdinary = more.length === 0 && /^(2\^[0-9]{1,2}|[0-9]{1,15})?$/.test(lifetime) &&
    parameters.every((parameter) => parameter.startsWith("WSH=") || parameter.startsWith("-"));
  const base64 = /^inline:([A-Za-z0-9+/]{40}|[A-Za-z0-9+/]{62}(?:==)?)$/i.exec(key)?.[1];
  if (tag === null || suite === undefined || base64 === undefined || !isOrdinary) return null;
  const master = Buffer.from(base64, "base64");
  return master.length === masterBytesOf(suite) ? { suite, key: master, tag } : null;
}

const sends = (direction: Direction) => direction === "sendrecv" || direction === "sendonly";
const receives = (direction: Direction) => direction === "sendrecv" || direction === "recvonly";

function directionFor(isSending: boolean, isReceiving: boolean): Direction {
  if (isSending) return isReceiving ? "sendrecv" : "sendonly";
  return isReceiving ? "recvonly" : "inactive";
}

function sessionLines(local: LocalMedia): string[] {
  const address = `IN ${local.host.includes(":") ? "IP6" : "IP4"} ${local.host}`;
  return [
    "v=0",
    `o=- ${local.sessionId} ${local.version} ${address}`,
    "s=-",
    `c=${address}`,
    "t=0 0",
  ];
}

function audioLines(args: {
  port: number;
  profile: string;
  codecs: { name: Codec; payloadType: number }[];
  telephoneEvents: { payloadType: number; rate: number }[];
  direction: Direction;
  crypto: SrtpKey[];
}): string[] {
  const types = [...args.codecs, ...args.telephoneEvents].map(({ payloadType }) => payloadType);
  return [
    `m=audio ${args.port} ${args.profile} ${types.join(" ")}`,
    ...args.codecs.flatMap(({ name, payloadType: type }) => {
      const { written, format } = CODECS[name];
      return [`a=rtpmap:${type} ${written}`, ...(format === null ? [] : [`a=fmtp:${type} ${format}`])];
    }),
    ...args.telephoneEvents.flatMap(({ payloadType: type, rate }) =>
      [`a=rtpmap:${type} telephone-event/${rate}`, `a=fmtp:${type} 0-15`]),
    `a=ptime:${PTIME_MS}`,
    `a=${args.direction}`,
    ...args.crypto.map(({ tag, suite, key }) =>
      `a=crypto:${tag} ${suite} inline:${key.toString("base64")}`),
  ];
}

const join = (lines: string[]): string => lines.map((line) => `${line}\r\n`).join("");

const profileFor = ({ crypto, profile }: LocalMedia): RemoteMedia["profile"] =>
  profile ?? (crypto ? "RTP/SAVP" : "RTP/AVP");

/** Comfort noise is not offered: the ends of words are easier to detect in silence that is sent. */
export function buildOffer(local: LocalMedia): string {
  const rates = new Set(local.codecs.map((name) => CODECS[name].clockRate));
  return join([
    ...sessionLines(local),
    ...audioLines({
      port: local.port,
      profile: profileFor(local),
      codecs: local.codecs.map((name) => ({ name, payloadType: CODECS[name].payloadType })),
      telephoneEvents: [...rates].map((rate) => ({ payloadType: EVENT_TYPES[rate], rate })),
      direction: local.direction,
      crypto: local.crypto ?? [],
    }),
  ]);
}

/**
 * The first of our codecs that the far end has, too; between the two of G.711 the far end's order
 * decides. Null when there is none in common.
 */
export function codecFor(
  theirs: RemoteMedia["codecs"], ours: readonly Codec[],
): RemoteMedia["codecs"][number] | null {
  const shared = theirs.filter(({ name }) => ours.includes(name));
  const best = ours.find((name) => shared.some((one) => one.name === name));
  const isNarrow = best !== undefined && NARROWBAND.includes(best);
  return shared.find(({ name }) => (isNarrow ? NARROWBAND.includes(name) : name === best)) ?? null;
}

/** Events at the codec's clock, as RFC 4733 requires, or at 8 kHz for peers that have no others. */
function eventsFor(
  { telephoneEvent, wideTelephoneEvent }: RemoteMedia, codec: Codec,
): Pick<Agreed, "telephoneEvent" | "eventRate"> {
  const isWide = CODECS[codec].clockRate === WIDE_RATE && wideTelephoneEvent !== null;
  return isWide
    ? { telephoneEvent: wideTelephoneEvent, eventRate: WIDE_RATE }
    : { telephoneEvent, eventRate: NARROW_RATE };
}

/** Null when no codec is in common or the line is refused. */
function agree(audio: RemoteMedia, local: LocalMedia, srtp: Agreed["srtp"]): Agreed | null {
  const codec = codecFor(audio.codecs, local.codecs);
  if (audio.port === 0 || !codec) return null;
  return {
    codec: codec.name,
    payloadType: codec.payloadType,
    ...eventsFor(audio, codec.name),
    comfortNoise: audio.comfortNoise,
    remote: { host: audio.host, port: audio.port, rtcpPort: audio.rtcpPort },
    isHeld: audio.isHeld,
    srtp,
  };
}

/** Null: nothing in common (488). Other media lines of the offer are answered with port 0. */
export function buildAnswer(
  offer: RemoteSdp,
  local: LocalMedia,
): { sdp: string; agreed: Agreed } | null {
  const { audio, mediaLines } = offer;
  const srtp = answerCrypto(audio.crypto, local.crypto ?? []);
  const agreed = agree(audio, local, srtp);
  const index = audioIndex(mediaLines);
  if (!agreed || index === null || (audio.profile === "RTP/SAVP" && !srtp)) return null;
  if (local.requiresSrtp && !srtp) return null;
  const isListening = receives(audio.direction) && !audio.isHeld;
  const lines = mediaLines.flatMap((text, at) => {
    const line = readMediaLine(text);
    if (!line) return [];
    if (at !== index) return [`m=${line.media} 0 ${line.profile} ${line.formats.join(" ")}`];
    return audioLines({
      port: local.port,
      profile: line.profile,
      codecs: [{ name: agreed.codec, payloadType: agreed.payloadType }],
      telephoneEvents: agreed.telephoneEvent === null
        ? []
        : [{ payloadType: agreed.telephoneEvent, rate: agreed.eventRate }],
      direction: directionFor(
        isListening && sends(local.direction),
        sends(audio.direction) && receives(local.direction),
      ),
      crypto: srtp ? [srtp.local] : [],
    });
  });
  return { sdp: join([...sessionLines(local), ...lines]), agreed };
}

/** The first of their keys whose suite we have, too; the answer repeats its tag. */
function answerCrypto(theirs: SrtpKey[], ours: SrtpKey[]): Agreed["srtp"] {
  for (const remote of theirs) {
    const local = ours.find(({ suite }) => suite === remote.suite);
    if (local) return { local: { ...local, tag: remote.tag }, remote };
  }
  return null;
}

/**
 * Null when the answer accepts nothing or does not fit the offer (no key for an SRTP offer). Keys
 * offered under RTP/AVP may be left unanswered.
 */
export function readAnswer(answer: { audio: RemoteMedia }, local: LocalMedia): Agreed | null {
  const { audio } = answer;
  if (audio.profile !== profileFor(local)) return null;
  const srtp = local.crypto && acceptedCrypto(audio.crypto, local.crypto);
  const mayBeClear = local.crypto === null
    || (audio.profile === "RTP/AVP" && audio.crypto.length === 0 && !local.requiresSrtp);
  const agreed = srtp || mayBeClear ? agree(audio, local, srtp) : null;
  return agreed && {
    ...agreed,
    offered: {
      payloadType: CODECS[agreed.codec].payloadType,
      telephoneEvent: EVENT_TYPES[agreed.eventRate === WIDE_RATE ? WIDE_RATE : NARROW_RATE],
    },
  };
}

function acceptedCrypto(theirs: SrtpKey[], ours: SrtpKey[]): Agreed["srtp"] {
  for (const remote of theirs) {
    const local = ours.find(({ suite, tag }) => suite === remote.suite && tag === remote.tag);
    if (local) return { local, remote };
  }
  return null;
}
