// The message formats of hosted carriers' media sockets: one entry per dialect, read by
// dialects.ts. Twilio's, Telnyx', Plivo's and Vonage's follow their documentation and were not
// tried with a live account. Asterisk's was observed.
import { jsonOf } from "#core/values.ts";

export type DialectName = "twilio" | "signalwire" | "telnyx" | "plivo" | "vonage" | "asterisk";

export type SocketRate = 8000 | 16000;
/** How sound is encoded on the wire; 16 bits are little-endian. */
export type WireEncoding = "PCMU" | "PCMA" | "PCM16";

/** A JSON message. */
export type Message = Record<string, unknown>;
export type MessageKind = "start" | "media" | "dtmf" | "mark" | "cleared" | "stop";

export interface Dialect {
  /** Samples per second of the stream, as we ask for it. */
  rate: SocketRate;
  /** The encoding of the sound we send. */
  sends: WireEncoding;
  /** Audio is in binary messages, both ways; otherwise it is base64 in JSON. */
  isBinary: boolean;
  /** Marks that are outstanding at a clear are never reported. */
  forgetsMarks: boolean;
  /** Media messages may overtake each other. */
  isUnordered: boolean;
  /** Keyed by a message's `event`. */
  kinds: Record<string, MessageKind>;
  /** Keyed by the encoding's name in the start message, in lower case. */
  encodings: Record<string, WireEncoding>;
  /** Paths in a message; the first that exists is used. */
  paths: {
    streamId: string[];
    callSid: string[];
    from: string[];
    to: string[];
    encoding: string[];
    rate: string[];
    channels: string[];
    digit: string[];
    mark: string[];
  };
  /** Reads the parameters we passed along from the start message. */
  parameters: (start: Message) => unknown;
  /** Null if the carrier has no such message. `payload` is base64; unused when audio is binary. */
  write: {
    audio(payload: string, streamId: string | null): Message;
    clear(streamId: string | null): Message | null;
    mark(name: string, streamId: string | null): Message | null;
    dtmf(digits: string, streamId: string | null): Message | null;
  };
}

export function at(message: unknown, path: string): unknown {
  let value = message;
  for (const name of path.split(".")) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return undefined;
    value = (value as Message)[name];
  }
  return value;
}

const objectOf = (value: unknown): object => (typeof value === "object" && value ? value : {});

/** We send `client_state` with the dial or the answer, and it comes back unchanged. */
export const encodeClientState = (parameters: Record<string, string>): string =>
  Buffer.from(JSON.stringify(parameters)).toString("base64");

export const decodeClientState = (text: unknown): unknown =>
  (typeof text === "string" ? jsonOf(Buffer.from(text, "base64").toString()) ?? null : null);

/**
 * Parses `a=1;b=2`, as Plivo returns extra headers; also with commas, braces and its own prefix. A
 * pair is not matched by one regular expression: on a long run of blanks it would take minutes.
 */
function extraHeaders(text: unknown): unknown {
  if (typeof text !== "string") return text;
  return Object.fromEntries(text.replace(/^\{|\}$/g, "").split(/[;,]/).flatMap((pair) => {
    const end = pair.search(/[=:]/);
    const name = pair.slice(0, Math.max(end, 0)).trim().replace(/^X-PH-/i, "");
    return name === "" ? [] : [[name, pair.slice(end + 1).trim()]];
  }));
}

/** Twilio's names, which several carriers share. */
const COMMON: Record<string, MessageKind> = {
  start: "start", media: "media", dtmf: "dtmf", mark: "mark", stop: "stop",
};

const TWILIO: Dialect = {
  rate: 8000,
  sends: "PCMU",
  isBinary: false,
  forgetsMarks: false,
  isUnordered: false,
  kinds: COMMON,
  encodings: { "audio/x-mulaw": "PCMU" },
  paths: {
    streamId: ["start.streamSid", "streamSid"],
    callSid: ["start.callSid"],
    from: ["start.from"],
    to: ["start.to"],
    encoding: ["start.mediaFormat.encoding"],
    rate: ["start.mediaFormat.sampleRate"],
    channels: ["start.mediaFormat.channels"],
    digit: ["dtmf.digit"],
    mark: ["mark.name"],
  },
  parameters: (start) => at(start, "start.customParameters"),
  write: {
    audio: (payload, streamSid) => ({ event: "media", streamSid, media: { payload } }),
    // The carrier replies with every outstanding mark, and with no message of its own.
    clear: (streamSid) => ({ event: "clear", streamSid }),
    mark: (name, streamSid) => ({ event: "mark", streamSid, mark: { name } }),
    dtmf: () => null,
  },
};

const TELNYX: Dialect = {
  ...TWILIO,
  isUnordered: true,
  // Received audio is in the codec of the call if that could not be changed; sent audio is always
  // PCMU. L16 would give 16 kHz, but sources differ on its byte order, so it is not asked for.
  encodings: { pcmu: "PCMU", pcma: "PCMA" },
  paths: {
    streamId: ["stream_id"],
    callSid: ["start.call_control_id"],
    from: ["start.from"],
    to: ["start.to"],
    encoding: ["start.media_format.encoding"],
    rate: ["start.media_format.sample_rate"],
    channels: ["start.media_format.channels"],
    digit: ["dtmf.digit"],
    mark: ["mark.name"],
  },
  parameters: (start) => ({
    ...objectOf(decodeClientState(at(start, "start.client_state"))),
    ...objectOf(at(start, "start.custom_parameters")),
  }),
  write: {
    audio: (payload) => ({ event: "media", media: { payload } }),
    clear: () => ({ event: "clear" }),
    mark: (name) => ({ event: "mark", mark: { name } }),
    dtmf: () => null,
  },
};

const PLIVO: Dialect = {
  ...TWILIO,
  kinds: { ...COMMON, playedStream: "mark", clearedAudio: "cleared" },
  paths: {
    ...TWILIO.paths,
    streamId: ["start.streamId"],
    callSid: ["start.callId"],
    mark: ["name"],
  },
  parameters: (start) => extraHeaders(at(start, "extra_headers")),
  write: {
    audio: (payload, streamId) => ({
      event: "playAudio", streamId,
      media: { contentType: "audio/x-mulaw", sampleRate: 8000, payload },
    }),
    clear: (streamId) => ({ event: "clearAudio", streamId }),
    mark: (name, streamId) => ({ event: "checkpoint", streamId, name }),
    dtmf: (dtmf) => ({ event: "sendDTMF", dtmf }),
  },
};

const VONAGE: Dialect = {
  ...TWILIO,
  rate: 16_000,
  sends: "PCM16",
  isBinary: true,
  kinds: {
    "websocket:connected": "start", "websocket:dtmf": "dtmf", "websocket:notify": "mark",
    "websocket:cleared": "cleared",
  },
  encodings: { "audio/l16": "PCM16" },
  paths: {
    streamId: [],
    // Present only when we passed it along ourselves.
    callSid: ["call_uuid"],
    from: ["from"],
    to: ["to"],
    encoding: ["content-type"],
    rate: [],
    channels: [],
    digit: ["digit", "dtmf.digit", "dtmf"],
    mark: ["payload.name"],
  },
  // The headers of the NCCO are fields beside `event`.
  parameters: (start) => start,
  write: {
    audio: (payload) => ({ payload }),
    clear: () => ({ action: "clear" }),
    mark: (name) => ({ action: "notify", payload: { name } }),
    dtmf: () => null,
  },
};

/** chan_websocket with JSON control messages. A message of over 65,500 bytes ends the call. */
const ASTERISK: Dialect = {
  ...VONAGE,
  forgetsMarks: true,
  kinds: { MEDIA_START: "start", DTMF_END: "dtmf", MEDIA_MARK_PROCESSED: "mark" },
  encodings: { slin16: "PCM16" },
  paths: {
    streamId: ["connection_id"],
    // `channel_id` is the media channel's own.
    callSid: [],
    from: [],
    to: [],
    encoding: ["format"],
    rate: [],
    channels: [],
    digit: ["digit"],
    mark: ["correlation_id"],
  },
  parameters: (start) => at(start, "channel_variables"),
  write: {
    audio: (payload) => ({ payload }),
    clear: () => ({ command: "FLUSH_MEDIA" }),
    mark: (name) => ({ command: "MARK_MEDIA", correlation_id: name }),
    dtmf: () => null,
  },
};

export const DIALECTS: Record<DialectName, Dialect> = {
  twilio: TWILIO,
  signalwire: TWILIO,
  telnyx: TELNYX,
  plivo: PLIVO,
  vonage: VONAGE,
  asterisk: ASTERISK,
};
