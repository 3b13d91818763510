// The vendors that are asked for final texts, each as one row: how its recogniser is made, and what
// a server in its place sends. The SDK of each accepts what is sent here
// (providers/speech/vendor-ears.test.ts).
import { createAssemblyAi } from "#providers/speech/assemblyai/assemblyai.ts";
import { createAzureEars } from "#providers/speech/azure/azure-ears.ts";
import { createCartesiaEars } from "#providers/speech/cartesia/cartesia-ears.ts";
import { CLOSING_SILENCE_MS, createGladia } from "#providers/speech/gladia/gladia.ts";
import type { Transcriber } from "#providers/speech/port.ts";
import type { VendorArgs } from "#providers/speech/engines.ts";
import { createSoniox } from "#providers/speech/soniox/soniox.ts";
import type { VendorPeer, VendorScript } from "./vendor-socket-server.ts";

export const KEY = "a-key-of-the-vendor";

export interface HearingVendor {
  name: string;
  model: string;
  /** The vendor's name as people read it. */
  title: string;
  create(options: VendorArgs): Transcriber;
  script: VendorScript;
  path: string;
  /** Sends the words of a piece so far; `isFinal`: it is complete. */
  say(peer: VendorPeer, text: string, isFinal: boolean): void;
  /** Sizes of the audio messages that came, without what only asks for the final text. */
  heard(peer: VendorPeer): number[];
  /** The end of a second of audio that is too short for a message of its own; absent: none is. */
  keptBytes?: number;
  /** Whether it is asked for the final text. */
  isAsked(peer: VendorPeer): boolean;
  /** What an operator reads about a wrong key. */
  refusal: RegExp;
  failure: { send(peer: VendorPeer): void; text: RegExp; retryable: boolean };
}

const chunkBytes = (peer: VendorPeer): number[] => peer.chunkBytes;
const isTold = (text: string) => (peer: VendorPeer): boolean => peer.texts.includes(text);

let turn = 0;
const assemblyTurn = (text: string, isFinal: boolean): object => ({
  type: "Turn", turn_order: turn, turn_is_formatted: false, end_of_turn: isFinal,
  end_of_turn_confidence: isFinal ? 1 : 0.1, transcript: text, utterance: isFinal ? text : "",
  words: text.split(" ").filter((word) => word !== "").map((word, at) => ({
    text: word, start: at * 100, end: at * 100 + 80, confidence: 0.9, word_is_final: isFinal,
  })),
});

export const ASSEMBLYAI: HearingVendor = {
  name: "AssemblyAI", model: "universal-streaming-multilingual", title: "AssemblyAI (universal-streaming-multilingual)", create: createAssemblyAi,
  path: "/v3/ws",
  script: {},
  say: (peer, text, isFinal) => {
    peer.send(assemblyTurn(text, isFinal));
    if (isFinal) turn += 1;
  },
  heard: chunkBytes,
  keptBytes: 1280,
  isAsked: isTold('{"type":"ForceEndpoint"}'),
  refusal: /^AssemblyAI refuses the key \(401\)$/,
  failure: {
    send: (peer) => peer.send({ type: "Error", error_code: 1008, error: `Not authorized: ${KEY}` }),
    text: /^AssemblyAI ended the recognition: Not authorized: (?!.*a-key)/, retryable: false,
  },
};

export const CARTESIA: HearingVendor = {
  name: "Cartesia", model: "ink-2", title: "Cartesia (ink-2)", create: createCartesiaEars, path: "/stt/websocket",
  script: {},
  say: (peer, text, isFinal) => {
    const about = { request_id: "r", duration: 1, language: "en" };
    peer.send({ type: "transcript", is_final: isFinal, text, ...about });
    if (isFinal) peer.send({ type: "flush_done", request_id: "r" });
  },
  heard: chunkBytes,
  isAsked: isTold("finalize"),
  refusal: /^Cartesia refuses the key \(401\)$/,
  failure: {
    send: (peer) => peer.send(
      { type: "error", status_code: 500, message: `Broken ${KEY}`, request_id: "r" }),
    text: /^Cartesia reported an error: Broken (?!.*a-key)/, retryable: true,
  },
};

const sonioxTokens = (text: string, isFinal: boolean): object => ({
  tokens: [
    { text, start_ms: 0, end_ms: 900, confidence: 0.9, is_final: isFinal },
    ...(isFinal ? [{ text: "<fin>", is_final: true, confidence: 1 }] : []),
  ],
  final_audio_proc_ms: 900, total_audio_proc_ms: 1000,
});

export const SONIOX: HearingVendor = {
  name: "Soniox", model: "stt-rt-v5", title: "Soniox (stt-rt-v5)", create: createSoniox, path: "/transcribe-websocket",
  script: {},
  say: (peer, text, isFinal) => peer.send(sonioxTokens(text, isFinal)),
  heard: chunkBytes,
  isAsked: isTold('{"type":"finalize"}'),
  refusal: /^Soniox refuses the key \(401\)$/,
  failure: {
    send: (peer) => peer.send(
      { tokens: [], error_code: 503, error_message: `Cannot continue ${KEY}` }),
    text: /^Soniox ended the recognition \(503\): Cannot continue (?!.*a-key)/, retryable: true,
  },
};

const GLADIA_TOKEN = "a-token-of-the-session";
const SILENCE_BYTES = (16_000 * 2 * CLOSING_SILENCE_MS) / 1000;
/** The digital silence at the end of what came. */
function silentBytes({ chunks }: VendorPeer): number {
  const all = Buffer.concat(chunks);
  let from = all.length;
  while (from > 0 && all[from - 1] === 0) from -= 1;
  return all.length - from;
}
const isSilenced = (peer: VendorPeer): boolean => silentBytes(peer) >= SILENCE_BYTES;

export const GLADIA: HearingVendor = {
  name: "Gladia", model: "solaria-1", title: "Gladia (solaria-1)", create: createGladia, path: "/v2/live",
  script: {
    onPost: ({ path, response }, url) => {
      if (path !== "/v2/live") return void response.writeHead(404).end();
      const created_at = "2026-01-01T00:00:00.000Z";
      const session = { id: "s", created_at, url: `${url}/v2/live?token=${GLADIA_TOKEN}` };
      response.writeHead(201, { "content-type": "application/json" }).end(JSON.stringify(session));
    },
  },
  say: (peer, text, isFinal) => {
    const about = { session_id: "s", created_at: "2026-01-01T00:00:00.000Z" };
    const channel = { channel: 0 };
    const words = text.split(" ").map((word, at) =>
      ({ word, start: at / 10, end: at / 10 + 0.08, confidence: 0.9 }));
    const times = { start: 0, end: 1, confidence: 0.9 };
    if (!isFinal) peer.send({ type: "speech_start", ...about, data: { time: 0, ...channel } });
    peer.send({
      type: "transcript", ...about,
      data: {
        id: "00_1", is_final: isFinal,
        utterance: { ...times, ...channel, language: "en", text, words },
      },
    });
    if (isFinal) peer.send({ type: "speech_end", ...about, data: { time: 1, ...channel } });
  },
  heard: (peer) => isSilenced(peer)
    ? [...peer.chunkBytes, -SILENCE_BYTES]
    : peer.chunkBytes,
  isAsked: isSilenced,
  refusal: /^Gladia answered 401$/,
  failure: {
    send: (peer) => peer.end(4500, `Cannot continue ${KEY}`),
    text: /^Gladia closed the connection \(4500: Cannot continue (?!.*a-key)/, retryable: true,
  },
};

/** The parts of one of Azure's binary messages. */
export function azureSound(message: Buffer): { headers: string; bytes: number } {
  const length = message.readUInt16BE(0);
  const headers = message.subarray(2, 2 + length).toString("latin1");
  return { headers, bytes: message.length - 2 - length };
}
const azureTurn = ({ chunks }: VendorPeer): string =>
  /X-RequestId: (\w+)/.exec(azureSound(chunks.at(-1)!).headers)![1]!;

export const AZURE: HearingVendor = {
  name: "Azure", model: "", title: "Azure", create: createAzureEars,
  path: "/speech/recognition/conversation/cognitiveservices/v1",
  script: {},
  // A turn begins with its first audio; the current turn is that of the last message.
  say: (peer, text, isFinal) => void peer.until(({ chunks }) =>
    chunks.length > 0 && (isFinal || azureSound(chunks.at(-1)!).bytes > 0)).then(() => {
    const tell = (path: string, body: object): void => peer.send(
      `X-RequestId:${azureTurn(peer)}\r\nContent-Type:application/json; charset=utf-8\r\n`
        + `Path:${path}\r\n\r\n${JSON.stringify(body)}`);
    const times = { Offset: 100_000, Duration: 5_000_000 };
    if (!isFinal) return tell("speech.hypothesis", { Text: text, ...times });
    tell("speech.phrase", { RecognitionStatus: "Success", DisplayText: text, ...times });
    tell("turn.end", {});
  }),
  heard: ({ chunks }) => chunks.map(azureSound)
    .filter(({ bytes, headers }) => bytes > 0 && !headers.includes("audio/x-wav"))
    .map(({ bytes }) => bytes),
  isAsked: ({ chunks }) => chunks.some((chunk) => azureSound(chunk).bytes === 0),
  refusal: /^Azure refuses the key \(401\)$/,
  failure: {
    send: (peer) => peer.end(1011, `Internal error ${KEY}`),
    text: /^Azure closed the connection \(1011: Internal error (?!.*a-key)/, retryable: true,
  },
};

export const HEARING_VENDORS: HearingVendor[] = [ASSEMBLYAI, CARTESIA, SONIOX, GLADIA, AZURE];
