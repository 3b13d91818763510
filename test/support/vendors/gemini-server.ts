// A server that speaks Gemini's Live interface over a pipeline of its own: it hears the end of
// speech by silence and interrupts by sound, asks a function for the words and sound of the reply,
// and sends them, in binary messages as the original does. `@google/genai` connects to it in the
// tests.
import { setImmediate as nextTurn, setTimeout as delay } from "node:timers/promises";
import type { LiveClientMessage, LiveServerMessage } from "@google/genai";
import { startVendorServer, type VendorPeer, type VendorServer } from "./vendor-socket-server.ts";

const SAMPLES_PER_MS_IN = 16;
const CHUNK_OUT = 2400;
const LOUD = 1000;
const SILENCE_MS = 300;

export interface GeminiReply {
  text: string;
  pcm?: Int16Array;
  calls?: { id: string; name: string; args: Record<string, unknown> }[];
  /** The second half of the reply waits for it. */
  hold?: Promise<void>;
}

interface GeminiScript {
  /** `text`: what was heard or written since the last reply; `outputs`: what functions returned. */
  reply(text: string, outputs: unknown[]): GeminiReply;
  hear?(): string;
  /** A reply's turn lasts as long as its sound does, as the original's. */
  isHeardOut?: boolean;
}

/** One connection. */
export interface GeminiPeer {
  vendor: VendorPeer;
  /** What came, without the audio. */
  messages: LiveClientMessage[];
  /** Mime types of the audio. */
  audioTypes: Set<string>;
  send(message: Partial<LiveServerMessage> | object): void;
  /** Sends the handle with which the session may be resumed. */
  handle(newHandle: string): void;
}

export interface GeminiServer extends Pick<VendorServer, "refuse" | "close"> {
  /** `http://…` */
  url: string;
  peer(number: number): Promise<GeminiPeer>;
}

export async function startGeminiServer(script: GeminiScript): Promise<GeminiServer> {
  const peers = new Map<VendorPeer, Talk>();
  const server = await startVendorServer({
    onOpen: (vendor) => void peers.set(vendor, new Talk(vendor, script)),
    onText: (vendor, text) => peers.get(vendor)?.take(JSON.parse(text) as LiveClientMessage),
  });
  return {
    url: server.url.replace("ws", "http"),
    refuse: server.refuse,
    close: () => server.close(),
    peer: async (number) => peers.get(await server.peer(number))!,
  };
}

class Talk implements GeminiPeer {
  readonly vendor: VendorPeer;
  readonly messages: LiveClientMessage[] = [];
  readonly audioTypes = new Set<string>();
  readonly #script: GeminiScript;
  #running: { isCut: boolean } | null = null;
  #isSpeech = false;
  #quietMs = 0;
  #outputs: unknown[] = [];

  constructor(vendor: VendorPeer, script: GeminiScript) {
    this.vendor = vendor;
    this.#script = script;
  }

  send(message: object): void {
    this.vendor.send(Buffer.from(JSON.stringify(message)));
  }

  handle(newHandle: string): void {
    this.send({ sessionResumptionUpdate: { newHandle, resumable: true } });
  }

  take(message: LiveClientMessage): void {
    const { data, mimeType } = message.realtimeInput?.audio ?? {};
    if (data) {
      this.audioTypes.add(mimeType ?? "");
      return this.#hear(Buffer.from(data, "base64"));
    }
    this.messages.push(message);
    if (message.realtimeInput?.audioStreamEnd && this.#isSpeech) this.#speechEnds();
    if (message.setup) this.send({ setupComplete: {} });
    if (message.clientContent?.turnComplete) {
      this.#cut();
      void this.#respond(message.clientContent.turns?.[0]?.parts?.[0]?.text ?? "");
    }
    if (message.toolResponse) {
      const { functionResponses = [] } = message.toolResponse;
      this.#outputs = functionResponses.map(({ response }) => response);
      void this.#respond("");
    }
  }

  #hear(bytes: Buffer): void {
    const isLoud = bytes.some((_, at) =>
      at % 2 === 0 && at + 1 < bytes.length && Math.abs(bytes.readInt16LE(at)) >= LOUD);
    if (isLoud && !this.#isSpeech) {
      this.#isSpeech = true;
      this.#cut();
    }
    if (!this.#isSpeech) return;
    this.#quietMs = isLoud ? 0 : this.#quietMs + bytes.length / 2 / SAMPLES_PER_MS_IN;
    if (this.#quietMs >= SILENCE_MS) this.#speechEnds();
  }

  #speechEnds(): void {
    this.#isSpeech = false;
    this.#quietMs = 0;
    const heard = this.#script.hear?.() ?? "hello there";
    for (const text of heard.match(/\s*\S+/g) ?? []) {
      this.send({ serverContent: { inputTranscription: { text } } });
    }
    void this.#respond(heard);
  }

  #cut(): void {
    if (!this.#running) return;
    this.#running.isCut = true;
    this.#running = null;
    this.send({ serverContent: { interrupted: true } });
    this.send({ serverContent: { turnComplete: true } });
  }

  async #respond(heard: string): Promise<void> {
    const running = { isCut: false };
    this.#running = running;
    const { calls, hold, pcm = new Int16Array(0), text } = this.#script.reply(heard, this.#outputs);
    this.#outputs = [];
    const words = text.match(/\s*\S+/g) ?? [];
    const steps = Math.max(words.length, Math.ceil(pcm.length / CHUNK_OUT));
    for (let step = 0; step < steps && !running.isCut; step += 1) {
      if (step === steps >> 1) await hold;
      if (running.isCut) return;
      this.#part(words[step], pcm.subarray(step * CHUNK_OUT, (step + 1) * CHUNK_OUT));
      await nextTurn();
    }
    if (running.isCut) return;
    if (calls) this.send({ toolCall: { functionCalls: calls } });
    else this.send({ serverContent: { generationComplete: true } });
    if (this.#script.isHeardOut) await delay(pcm.length / 24, undefined, { ref: false });
    if (running.isCut) return;
    this.#running = null;
    if (!calls) this.send({ serverContent: { turnComplete: true } });
  }

  #part(word: string | undefined, pcm: Int16Array): void {
    const bytes = Buffer.from(pcm.buffer, pcm.byteOffset, pcm.byteLength);
    const inlineData = { mimeType: "audio/pcm;rate=24000", data: bytes.toString("base64") };
    if (bytes.length > 0) this.send({ serverContent: { modelTurn: { parts: [{ inlineData }] } } });
    if (word !== undefined) {
      this.send({ serverContent: { outputTranscription: { text: word } } });
    }
  }
}
