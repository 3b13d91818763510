// One codec for the media sockets of all hosted carriers, driven by the table of dialects: messages
// to audio frames and signals, and back. Pure but for the state of a stream. No input from the wire
// makes it throw, and every field of its output is bounded.
import { jsonOf, recordOf } from "#core/values.ts";
import type { Pcm } from "#providers/speech/port.ts";
import { encodeG711, LAWS } from "#providers/carriers/sip/media/g711.ts";
import { createChunkOrder } from "./chunk-order.ts";
import {
  at, DIALECTS, type Dialect, type DialectName, type Message, type MessageKind, type SocketRate,
  type WireEncoding,
} from "./dialect-table.ts";

export const DIALECT_LIMITS = {
  /** A message longer than this is ignored; the longest meant is 100 KB of sound in base64. */
  messageCharsMax: 256 * 1024,
  /** Sound taken from one message; the rest is dropped. */
  audioBytesMax: 128 * 1024,
  idCharsMax: 512,
  parametersMax: 64,
  parameterNameCharsMax: 128,
  parameterCharsMax: 1024,
  markCharsMax: 256,
  /** Outstanding marks; further ones are not remembered. */
  marksMax: 64,
} as const;

export type CarrierFrame =
  | {
    kind: "start";
    /** Null where the dialect has none. */
    streamId: string | null;
    callSid: string | null;
    from?: string;
    to?: string;
    parameters: Record<string, string>;
  }
  /** Comes instead of `start` for audio in a format we did not ask for; only `stop` may follow. */
  | { kind: "unusable"; format: string }
  /** Audio of the far end, any number of samples. */
  | { kind: "audio"; pcm: Pcm }
  | { kind: "dtmf"; digit: string }
  /** The audio sent before the mark has been heard or cleared. */
  | { kind: "mark"; name: string }
  | { kind: "cleared" }
  /** Nothing follows. Some carriers only close the socket. */
  | { kind: "stop" }
  | { kind: "ignored" };

/** Messages to write are null before the start, and when the carrier has no such message. */
interface Codec {
  readonly rate: SocketRate;
  /** Takes a message; a text message as a string. */
  receive(data: string | Uint8Array): CarrierFrame[];
  audio(pcm: Pcm): string | Uint8Array | null;
  /** The message that drops audio sent but not heard yet. */
  clear(): string | null;
  mark(name: string): string | null;
  /** Null when keys are sent by the carrier's HostedCalls, or as tones. */
  dtmf(digits: string): string | null;
}

const IGNORED: CarrierFrame[] = [{ kind: "ignored" }];
const BYTES_PER_SAMPLE = { PCMU: 1, PCMA: 1, PCM16: 2 } satisfies Record<WireEncoding, number>;

function parse(text: string): Message | null {
  return text.length > DIALECT_LIMITS.messageCharsMax ? null : recordOf(jsonOf(text));
}

/** A string or a number as text, since carriers send either; null for others and if too long. */
function textOf(value: unknown, charsMax: number): string | null {
  const text = typeof value === "number" ? String(value) : value;
  return typeof text === "string" && text.length <= charsMax ? text : null;
}

/** The first of the paths that exists and is not empty. */
function first(message: Message, paths: string[], charsMax: number): string | null {
  for (const path of paths) {
    const text = textOf(at(message, path), charsMax);
    if (text) return text;
  }
  return null;
}

function parametersOf(value: unknown): Record<string, string> {
  if (typeof value !== "object" || value === null) return {};
  const { parametersMax, parameterNameCharsMax, parameterCharsMax } = DIALECT_LIMITS;
  const kept = Object.entries(value).flatMap(([name, content]): [string, string][] => {
    const text = textOf(content, parameterCharsMax);
    return text === null || name.length > parameterNameCharsMax ? [] : [[name, text]];
  });
  return Object.fromEntries(kept.slice(0, parametersMax));
}

/** Decodes the bytes whatever their alignment in the buffer. */
function decode(bytes: Uint8Array, encoding: WireEncoding): Int16Array {
  if (encoding === "PCM16") {
    const pcm = new Int16Array(Math.floor(bytes.length / BYTES_PER_SAMPLE.PCM16));
    new Uint8Array(pcm.buffer).set(bytes.subarray(0, pcm.byteLength));
    return pcm;
  }
  const { samples } = LAWS[encoding];
  const pcm = new Int16Array(bytes.length);
  for (let index = 0; index < pcm.length; index += 1) pcm[index] = samples[bytes[index] ?? 0] ?? 0;
  return pcm;
}

/** Returns a copy, because the message may outlive the frame it is made from. */
function encode(pcm: Pcm, encoding: WireEncoding): Uint8Array {
  if (encoding !== "PCM16") return encodeG711(LAWS[encoding], pcm);
  return new Uint8Array(pcm.buffer, pcm.byteOffset, pcm.byteLength).slice();
}

type Format = { kind: "usable"; encoding: WireEncoding } | { kind: "unusable"; format: string };

/** The format that the start message names; what it omits is as we asked for. */
function formatOf(start: Message, { encodings, paths, sends, rate }: Dialect): Format {
  const { idCharsMax } = DIALECT_LIMITS;
  const said = (first(start, paths.encoding, idCharsMax) ?? "").toLowerCase();
  const [name = "", ...options] = said.split(";");
  const written = options.map((one) => /^\s*rate\s*=\s*(\d+)\s*$/.exec(one)?.[1]).find(Boolean);
  const hertz = first(start, paths.rate, idCharsMax) ?? written ?? String(rate);
  const channels = first(start, paths.channels, idCharsMax) ?? "1";
  const named = Object.hasOwn(encodings, name) ? encodings[name] : undefined;
  const encoding = name === "" ? sends : named;
  const isUsable = encoding && Number(hertz) === rate && channels === "1";
  return isUsable
    ? { kind: "usable", encoding }
    : { kind: "unusable", format: `${name || sends} at ${hertz} Hz, channels: ${channels}` };
}

function startOf(start: Message, { paths, parameters }: Dialect): CarrierFrame {
  const { idCharsMax } = DIALECT_LIMITS;
  const from = first(start, paths.from, idCharsMax);
  const to = first(start, paths.to, idCharsMax);
  return {
    kind: "start",
    streamId: first(start, paths.streamId, idCharsMax),
    callSid: first(start, paths.callSid, idCharsMax),
    ...(from === null ? {} : { from }),
    ...(to === null ? {} : { to }),
    parameters: parametersOf(parameters(start)),
  };
}

const CHUNK = /^\d{1,15}$/;

/** Reads audio in JSON: only the far end's, in order. */
function createMedia({ isUnordered }: Dialect) {
  const order = createChunkOrder<Int16Array>();
  return {
    read: (message: Message, encoding: WireEncoding): Int16Array[] => {
      // `outbound` is what we sent ourselves.
      const track = at(message, "media.track");
      const payload = at(message, "media.payload");
      if (typeof payload !== "string" || (track !== undefined && track !== "inbound")) return [];
      const bytes = Buffer.from(payload, "base64").subarray(0, DIALECT_LIMITS.audioBytesMax);
      const pcm = decode(bytes, encoding);
      const chunk = textOf(at(message, "media.chunk"), DIALECT_LIMITS.idCharsMax) ?? "";
      return isUnordered && CHUNK.test(chunk) ? order.push(Number(chunk), pcm) : [pcm];
    },
    flush: () => order.flush(),
  };
}

const framesOf = (sounds: Int16Array[]): CarrierFrame[] =>
  sounds.filter(({ length }) => length > 0).map((pcm) => ({ kind: "audio", pcm }));

const DIGIT = /^[0-9*#A-D]$/;

/** The frame for a message that is neither start, audio nor stop. */
function signalOf(kind: MessageKind, message: Message, { paths }: Dialect): CarrierFrame {
  if (kind === "cleared") return { kind };
  if (kind === "dtmf") {
    const digit = first(message, paths.digit, 1)?.toUpperCase() ?? "";
    return DIGIT.test(digit) ? { kind, digit } : { kind: "ignored" };
  }
  const name = first(message, paths.mark, DIALECT_LIMITS.markCharsMax);
  return kind === "mark" && name !== null ? { kind, name } : { kind: "ignored" };
}

type State =
  | { kind: "waiting" }
  | { kind: "started"; encoding: WireEncoding; streamId: string | null }
  | { kind: "unusable" }
  | { kind: "over" };

function kindOf(message: Message, { kinds }: Dialect): MessageKind | null {
  const name = textOf(message.event, DIALECT_LIMITS.idCharsMax) ?? "";
  return Object.hasOwn(kinds, name) ? kinds[name] ?? null : null;
}

function createReader(dialect: Dialect) {
  const media = createMedia(dialect);
  let state: State = { kind: "waiting" };
  const start = (message: Message): CarrierFrame[] => {
    const format = formatOf(message, dialect);
    if (format.kind === "unusable") {
      state = { kind: "unusable" };
      return [format];
    }
    const frame = startOf(message, dialect);
    const streamId = frame.kind === "start" ? frame.streamId : null;
    state = { kind: "started", encoding: format.encoding, streamId };
    return [frame];
  };
  const readText = (text: string): CarrierFrame[] => {
    const message = parse(text);
    const kind = message && kindOf(message, dialect);
    if (!message || !kind || state.kind === "over") return IGNORED;
    if (kind === "stop") {
      state = { kind: "over" };
      return [...framesOf(media.flush()), { kind }];
    }
    // Only the first start counts.
    if (kind === "start") return state.kind === "waiting" ? start(message) : IGNORED;
    if (state.kind !== "started") return IGNORED;
    if (kind !== "media") return [signalOf(kind, message, dialect)];
    return dialect.isBinary ? IGNORED : framesOf(media.read(message, state.encoding));
  };
  const readBinary = (bytes: Uint8Array): CarrierFrame[] => {
    if (!dialect.isBinary || state.kind !== "started") return IGNORED;
    return framesOf([decode(bytes.subarray(0, DIALECT_LIMITS.audioBytesMax), state.encoding)]);
  };
  return {
    receive: (data: string | Uint8Array): CarrierFrame[] => {
      const frames = typeof data === "string" ? readText(data) : readBinary(data);
      return frames.length > 0 ? frames : IGNORED;
    },
    /** Undefined unless the stream has started. */
    streamId: () => (state.kind === "started" ? state.streamId : undefined),
  };
}

/** For carriers that forget marks: cleared ones are reported as heard, with the next message. */
function createMarks({ forgetsMarks }: Dialect) {
  const waiting = new Set<string>();
  let cleared: CarrierFrame[] = [];
  return {
    sent: (name: string): void => {
      if (forgetsMarks && waiting.size < DIALECT_LIMITS.marksMax) waiting.add(name);
    },
    clear: (): void => {
      for (const name of waiting) cleared.push({ kind: "mark", name });
      waiting.clear();
    },
    /** The frames, preceded by the marks that were cleared. */
    received: (frames: CarrierFrame[]): CarrierFrame[] => {
      for (const frame of frames) if (frame.kind === "mark") waiting.delete(frame.name);
      const all = cleared.length > 0 ? [...cleared, ...frames] : frames;
      cleared = [];
      return all;
    },
  };
}

/** Samples per second, as we ask for them. */
export const rateOfDialect = (name: DialectName): SocketRate => DIALECTS[name].rate;

/** Makes the codec of one socket. */
export function openCodec(name: DialectName): Codec {
  const dialect = DIALECTS[name];
  const { write, sends, isBinary } = dialect;
  const reader = createReader(dialect);
  const marks = createMarks(dialect);
  const written = (make: (streamId: string | null) => Message | null): string | null => {
    const streamId = reader.streamId();
    const message = streamId === undefined ? null : make(streamId);
    return message && JSON.stringify(message);
  };
  return {
    rate: dialect.rate,
    receive: (data) => marks.received(reader.receive(data)),
    audio: (pcm) => {
      if (reader.streamId() === undefined) return null;
      const bytes = encode(pcm, sends);
      if (isBinary) return bytes;
      const payload = Buffer.from(bytes.buffer, 0, bytes.length).toString("base64");
      return written((streamId) => write.audio(payload, streamId));
    },
    clear: () => {
      marks.clear();
      return written(write.clear);
    },
    mark: (mark) => {
      const message = written((streamId) => write.mark(mark, streamId));
      if (message !== null) marks.sent(mark);
      return message;
    },
    dtmf: (digits) => written((streamId) => write.dtmf(digits, streamId)),
  };
}
