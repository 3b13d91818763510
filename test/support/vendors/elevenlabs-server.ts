// A server that speaks ElevenLabs' `multi-stream-input` protocol and sends what a test tells it to;
// it has no voice. Whatever is sent to it must parse with the vendor's own SDK (its `serialization`
// of the messages, as the SDK has no client for this WebSocket): it closes with 1008 otherwise, as
// it does for a context that does not begin with a single space. It also lists voices over HTTP.
// And helpers that speak utterances over it, for tests that check the results.
import type { IncomingHttpHeaders } from "node:http";
import { SendMessageMulti } from "@elevenlabs/elevenlabs-js/serialization/index.js";
import { createLogger } from "#core/logger.ts";
import { createSystem } from "#core/system.ts";
import { createElevenLabs, type ElevenLabsOptions } from "#providers/speech/elevenlabs/elevenlabs.ts";
import type {
  SynthesisEvent, SynthesisOptions, SynthesisStream, Synthesizer,
} from "#providers/speech/port.ts";
import { createReceived, type Received } from "#support/received.ts";
import { startVendorServer, type VendorPeer, type VendorServer } from "./vendor-socket-server.ts";

export interface Alignment {
  chars: string[];
  charStartTimesMs: number[];
  charDurationsMs: number[];
}

/** A message as it comes over the wire. */
export interface ClientMessage {
  text?: string;
  context_id?: string;
  voice_settings?: { stability?: number; similarity_boost?: number; speed?: number };
  flush?: boolean;
  close_context?: boolean;
}

/** One connection. */
export interface ElevenLabsPeer extends VendorPeer {
  messages: ClientMessage[];
  /** Audio for the context in use. */
  audio(bytes: Uint8Array, alignment?: Alignment | null): void;
  final(): void;
}

/** The sound and timing of `text` on this server: every character takes 50 ms. */
export function speechOf(text: string, rate: number): { bytes: Buffer; alignment: Alignment } {
  const chars = text.split("");
  const samples = new Int16Array((chars.length * rate) / 20);
  for (let at = 0; at < samples.length; at += 1) samples[at] = ((at * 31) % 60_000) - 30_000;
  return {
    bytes: Buffer.from(samples.buffer),
    alignment: {
      chars,
      charStartTimesMs: chars.map((_, number) => number * 50),
      charDurationsMs: chars.map(() => 50),
    },
  };
}

/** The first connection, once it has been asked to speak something. */
export async function askedPeer(server: ElevenLabsServer): Promise<ElevenLabsPeer> {
  const peer = await server.peer(0);
  await peer.until(({ messages }) => messages.length > 1);
  return peer;
}

/** The connection of that number, once it has been asked to close its context. */
export async function closingPeer(server: ElevenLabsServer, number = 0): Promise<ElevenLabsPeer> {
  const peer = await server.peer(number);
  await peer.until(({ messages }) => messages.some((message) => message.close_context));
  return peer;
}

export function audioOf({ events }: Received<SynthesisEvent>): Buffer {
  return Buffer.concat(events.flatMap((event) => event.kind === "audio"
    ? [Buffer.from(event.pcm.buffer, event.pcm.byteOffset, event.pcm.byteLength)]
    : []));
}

/** Milliseconds of audio at 16 kHz before each `spoken`, and what it says is spoken. */
export function spokenAt({ events }: Received<SynthesisEvent>, text: string): [number, string][] {
  let samples = 0;
  return events.flatMap((event): [number, string][] => {
    if (event.kind === "audio") samples += event.pcm.length;
    return event.kind === "spoken" ? [[samples / 16, text.slice(0, event.chars)]] : [];
  });
}

export interface ElevenLabsServer extends VendorServer<ElevenLabsPeer> {
  /** All that was sent to clients, in order. */
  sent: string[];
}

const ROUTE = /^\/v1\/text-to-speech\/[^/]+\/multi-stream-input$/;

/** Accepts only clients that have the key. Its address is `http://…`. */
export async function startElevenLabsServer(key: string): Promise<ElevenLabsServer> {
  const sent: string[] = [];
  const refusal = (headers: IncomingHttpHeaders, isKnown: boolean): number | null => {
    if (headers["xi-api-key"] !== key) return 401;
    return isKnown ? null : 404;
  };
  const server = await startVendorServer<ElevenLabsPeer>({
    made: (bare) => peerOf(bare, sent),
    refuses: (path, headers) => refusal(headers, ROUTE.test(path)),
    onPost: ({ path, headers, response }) => {
      const status = refusal(headers, path === "/v1/voices");
      response.writeHead(status ?? 200, { "content-type": "application/json" });
      response.end(JSON.stringify(status === null ? VOICES : { detail: { status: "refused" } }));
    },
    onText: (peer, text) => {
      const message = JSON.parse(text) as ClientMessage;
      const isFirst = peer.messages.length === 0;
      peer.messages.push(message);
      const parsed = SendMessageMulti.parse(message);
      if (!parsed.ok || (isFirst && message.text !== " ")) peer.end(1008, "No such message");
    },
  });
  return { ...server, url: server.url.replace("ws:", "http:"), sent };
}

function peerOf(bare: VendorPeer, sent: string[]): ElevenLabsPeer {
  const messages: ClientMessage[] = [];
  const send = (message: object): void => {
    sent.push(JSON.stringify(message));
    bare.send(message);
  };
  const context = (): string | undefined => messages[0]?.context_id;
  return Object.assign(bare, {
    messages,
    audio: (bytes: Uint8Array, alignment: Alignment | null = null) => {
      const audio = Buffer.from(bytes).toString("base64");
      send({ audio, alignment, normalizedAlignment: null, contextId: context() });
    },
    final: () => send({ isFinal: true, contextId: context() }),
  });
}

const VOICES = {
  voices: [
    { voice_id: "EXAVITQu4vr4xnSDxMaL", name: "Sarah", category: "premade", labels: {} },
    { voice_id: "JBFqnCBsd6RMkjVDRZzb", name: "George", category: "premade", labels: {} },
  ],
};

/** Messages that are none of the protocol's, or say nothing. */
export const HOSTILE: (string | Buffer)[] = [
  "", "null", "[]", "{", '"audio"', "[".repeat(10_000), "7", '{"audio":7}', '{"audio":{}}',
  '{"audio":"!!!!"}', '{"audio":"AAA"', '{"audio":"A A A"}', '{"audio":"=AAA"}', '{"audio":["AAAA"]}',
  '{"isFinal":"true"}', '{"isFinal":1}', '{"isFinal":false}', '{"isFinal":true,"contextId":"x"}',
  '{"audio":"AAAA","contextId":7}', '{"contextId":"constructor","audio":"AAAA"}',
  '{"error":null}', '{"error":""}', '{"error":7}', '{"alignment":{"chars":["x"]}}',
  '{"__proto__":{"audio":"AAAA"},"audio":false}', '{"audio":"","alignment":{"chars":[null]}}',
  '{"audio":"","alignment":{"chars":["x"],"charStartTimesMs":[1e999],"charDurationsMs":[0]}}',
  '{"audio":"","alignment":[[],[],[]]}', Buffer.from('{"audio":"AAAA"}'), Buffer.alloc(10_000),
];

export const KEY = "a-key-of-the-vendor";

export const VOICE: SynthesisOptions = {
  rate: 16_000, voice: null, gender: "female", language: "en", speed: 1, stability: 0.5,
  similarity: 0.75, hasEmotion: false,
};

const closings: (() => Promise<void> | void)[] = [];

/** Ends all that `serving`, `speaking` and `opened` began. */
export async function closeServing(): Promise<void> {
  for (const close of closings.splice(0).reverse()) await close();
}

export const createFor = (url: string, args: Partial<ElevenLabsOptions> = {}): Synthesizer =>
  createElevenLabs({
    url, key: KEY, model: "eleven_flash_v2_5", system: createSystem(),
    log: createLogger("silent"), ...args,
  });

export async function serving(
  args: Partial<ElevenLabsOptions> = {},
): Promise<{ server: ElevenLabsServer; synthesizer: Synthesizer }> {
  const server = await startElevenLabsServer(KEY);
  closings.push(() => server.close());
  return { server, synthesizer: createFor(server.url, args) };
}

export interface Speaking {
  stream: SynthesisStream;
  received: Received<SynthesisEvent>;
}

export function speaking(
  synthesizer: Synthesizer, wanted: Partial<SynthesisOptions> = {},
): Speaking {
  const received = createReceived<SynthesisEvent>();
  const stream = synthesizer.open({ ...VOICE, ...wanted }, received.receive);
  closings.push(() => stream.cancel());
  return { stream, received };
}

/** A server, and an utterance opened over it. */
export async function opened(
  args: Partial<ElevenLabsOptions> = {}, wanted: Partial<SynthesisOptions> = {},
) {
  const served = await serving(args);
  return { ...served, ...speaking(served.synthesizer, wanted) };
}

/** The same, given all its text; `peer` has been asked for it and for the end. */
export async function asked(
  text: string, args: Partial<ElevenLabsOptions> = {}, wanted: Partial<SynthesisOptions> = {},
) {
  const utterance = await opened(args, wanted);
  utterance.stream.write(text);
  utterance.stream.end();
  return { ...utterance, peer: await closingPeer(utterance.server) };
}

/** An utterance from its opening to `done`, over the connection of that number. */
export async function speakWhole(
  server: ElevenLabsServer, synthesizer: Synthesizer, number: number, voice: string | null = null,
): Promise<void> {
  const { stream, received } = speaking(synthesizer, { voice });
  stream.write("Yes. ");
  stream.end();
  const peer = await closingPeer(server, number);
  peer.audio(speechOf("Yes. ", 16_000).bytes);
  peer.final();
  await received.event("done");
}
