// Speech by Cartesia over `/tts/websocket`, sentence by sentence as the text comes. Every utterance
// has a connection of its own with one context, and the next one's is ready meanwhile (see
// spare-lines.ts). The vendor says when each word is spoken.
import { Type } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { ProviderError } from "#core/faults.ts";
import type { Logger } from "#core/logger.ts";
import type { System, Timer } from "#core/system.ts";
import { jsonOf } from "#core/values.ts";
import { bytesOf } from "#providers/speech/elevenlabs/elevenlabs-words.ts";
import type {
  Pcm, SynthesisEvent, SynthesisOptions, SynthesisStream, Synthesizer,
} from "#providers/speech/port.ts";
import { createLines, type Lines } from "#providers/speech/spare-lines.ts";
import { assertKey, socketUrl, type VendorSocket } from "#providers/speech/vendor-socket.ts";
import { CARTESIA, cartesiaErrorCheck, cartesiaFault, cartesiaHeaders } from "./cartesia.ts";

/** From text sent, or from its end, until something of it must have come. */
export const ANSWER_MS = 8000;
const UTTERANCE_MS_MAX = 360_000;
const MESSAGE_BYTES_MAX = 8 * 1024 * 1024;
const WORDS_MAX = 10_000;
/** A word is looked for no further behind the one before. */
const WORD_REACH_CHARS = 40;
const CONTEXT = "utterance";
/** There for every account: Jacqueline and the one of the vendor's examples. */
const DEFAULT_VOICES = {
  female: "9626c31c-bec5-4cca-baa8-f8ba9e84c8bc", male: "a0e99841-438c-4a64-b679-ae501e7d6091",
} as const;

const chunkCheck = TypeCompiler.Compile(
  Type.Object({ type: Type.Literal("chunk"), data: Type.String() }));
const timesCheck = TypeCompiler.Compile(Type.Object({
  type: Type.Literal("timestamps"),
  word_timestamps: Type.Object({
    words: Type.Array(Type.String(), { maxItems: WORDS_MAX }),
    end: Type.Array(Type.Number({ minimum: 0 }), { maxItems: WORDS_MAX }),
  }),
}));
const doneCheck = TypeCompiler.Compile(Type.Object({ type: Type.Literal("done") }));

interface CartesiaVoiceOptions {
  /** Base such as `https://api.cartesia.ai`; `wss:` means the same. */
  url: string;
  key: string | null;
  model: string;
  system: System;
  log: Logger;
}

export function createCartesiaVoice(args: CartesiaVoiceOptions): Synthesizer {
  assertKey(args.key);
  const url = socketUrl(args.url, "/tts/websocket", []);
  const lines = createLines({
    ...args, vendor: CARTESIA, headers: cartesiaHeaders(args.key),
    limits: { messageBytesMax: MESSAGE_BYTES_MAX },
  });
  return {
    name: `${CARTESIA} (${args.model})`,
    open: (options, publish) => new CartesiaStream(args, { lines, url }, options, publish),
  };
}

class CartesiaStream implements SynthesisStream {
  readonly #args: CartesiaVoiceOptions;
  readonly #line: { lines: Lines; url: URL };
  readonly #options: SynthesisOptions;
  readonly #publish: (event: SynthesisEvent) => void;
  #socket: VendorSocket;
  #isSpare: boolean;
  /** All that was sent, for when the connection opens or another is needed; null: it has worked. */
  #script: string[] | null = [];
  #text = "";
  #hasText = false;
  #hasEnded = false;
  #isOver = false;
  #samples = 0;
  /** How far words with times have covered the text, and those whose audio has not come. */
  #cursor = 0;
  #marks: { sample: number; chars: number }[] = [];
  #answer: Timer | null = null;

  constructor(
    args: CartesiaVoiceOptions, line: { lines: Lines; url: URL }, options: SynthesisOptions,
    publish: (event: SynthesisEvent) => void,
  ) {
    this.#args = args;
    this.#line = line;
    this.#options = options;
    this.#publish = publish;
    ({ socket: this.#socket, isSpare: this.#isSpare } = this.#connect());
  }

  write(text: string): void {
    if (this.#isOver || this.#hasEnded) return;
    this.#text += text;
    if (text.trim() === "") return;
    this.#hasText = true;
    this.#send({ transcript: `${text.trimEnd()} `, continue: true });
    this.#expectAnswer();
  }

  end(): void {
    if (this.#isOver || this.#hasEnded) return;
    this.#hasEnded = true;
    if (!this.#hasText) return this.#finish();
    this.#send({ transcript: "", continue: false });
    this.#expectAnswer();
  }

  cancel(): void {
    if (this.#isOver) return;
    this.#socket.send(JSON.stringify({ context_id: CONTEXT, cancel: true }));
    this.#close();
  }

  #connect(): { socket: VendorSocket; isSpare: boolean } {
    return this.#line.lines.take(this.#line.url, {
      onOpen: () => {
        for (const message of this.#script ?? []) this.#socket.send(message);
      },
      onText: (text) => this.#receive(text),
      onClose: (error) => this.#lost(error),
    });
  }

  #send(input: { transcript: string; continue: boolean }): void {
    const { gender, language, rate, speed, voice } = this.#options;
    const text = JSON.stringify({
      model_id: this.#args.model,
      voice: { mode: "id", id: voice ?? DEFAULT_VOICES[gender] },
      language,
      output_format: { container: "raw", encoding: "pcm_s16le", sample_rate: rate },
      generation_config: { speed },
      context_id: CONTEXT,
      add_timestamps: true,
      // Whole sentences are written: none is held back for more to come.
      max_buffer_delay_ms: 0,
      ...input,
    });
    this.#script?.push(text);
    // Without effect while it is not open.
    this.#socket.send(text);
  }

  #lost(error: ProviderError): void {
    if (this.#isOver) return;
    // A connection that was kept may have died unnoticed; a new one's failure is the truth.
    if (!this.#isSpare || this.#script === null) return this.#fail(error);
    ({ socket: this.#socket, isSpare: this.#isSpare } = this.#connect());
  }

  #receive(text: string): void {
    if (this.#isOver) return;
    const message = jsonOf(text);
    if (chunkCheck.Check(message)) return this.#audio(message.data);
    if (timesCheck.Check(message)) return this.#time(message.word_timestamps);
    if (cartesiaErrorCheck.Check(message)) {
      return this.#fail(cartesiaFault(message, this.#args.key));
    }
    if (doneCheck.Check(message) && this.#hasEnded) this.#finish();
  }

  #audio(base64: string): void {
    const bytes = bytesOf(base64);
    // Half a sample would turn all that follows into noise.
    if (!bytes || bytes.length === 0 || bytes.length % 2 === 1) return;
    const pcm: Pcm = new Int16Array(bytes.length / 2);
    Buffer.from(pcm.buffer).set(bytes);
    this.#samples += pcm.length;
    if (this.#samples * 1000 > UTTERANCE_MS_MAX * this.#options.rate) {
      return this.#fail(new ProviderError(`${CARTESIA} sends more audio than any text can have`, {
        retryable: false,
      }));
    }
    this.#worked();
    this.#publish({ kind: "audio", pcm });
    this.#tellSpoken();
  }

  #time({ end, words }: { end: number[]; words: string[] }): void {
    for (const [number, word] of words.entries()) {
      const at = this.#text.indexOf(word, this.#cursor);
      // A text that is written in another way is spoken when all of it is.
      if (at < 0 || at > this.#cursor + WORD_REACH_CHARS) continue;
      this.#cursor = at + word.length;
      const sample = Math.round((end[number] ?? Infinity) * this.#options.rate);
      this.#marks.push({ sample, chars: this.#cursor });
    }
    this.#tellSpoken();
  }

  #tellSpoken(): void {
    const later = this.#marks.findIndex(({ sample }) => sample > this.#samples);
    const due = this.#marks.splice(0, later < 0 ? this.#marks.length : later).at(-1);
    if (due && !this.#isOver) this.#publish({ kind: "spoken", chars: due.chars });
  }

  /** There is audio: nothing is sent twice from now on, and there is time to open another. */
  #worked(): void {
    if (this.#script) this.#line.lines.prepare(this.#line.url);
    this.#script = null;
    this.#answer?.cancel();
    this.#answer = null;
    if (this.#hasEnded) this.#expectAnswer();
  }

  #expectAnswer(): void {
    this.#answer ??= this.#args.system.after(ANSWER_MS, () => {
      const text = `${CARTESIA} sent no speech for ${ANSWER_MS} ms`;
      this.#fail(new ProviderError(text, { retryable: true }));
    });
  }

  #finish(): void {
    this.#close();
    if (this.#text !== "") this.#publish({ kind: "spoken", chars: this.#text.length });
    this.#publish({ kind: "done" });
  }

  #fail(error: ProviderError): void {
    if (this.#isOver) return;
    this.#close();
    this.#publish({ kind: "failed", error });
  }

  #close(): void {
    this.#isOver = true;
    this.#answer?.cancel();
    this.#script = null;
    this.#socket.close();
  }
}
