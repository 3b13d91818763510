// Speech by Cartesia over `/tts/websocket`, sentence by sentence as the text comes. Every utterance
// has a connection of its own with one context, and the next one's is ready meanwhile (see
// spare-lines.ts). The vendor says when each word is spoken.
import { Type } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { ProviderError } from "#core/faults.ts";
import { jsonOf } from "#core/values.ts";
import type { VendorArgs } from "#providers/speech/engines.ts";
import type {
  Pcm, SynthesisEvent, SynthesisOptions, SynthesisStream, Synthesizer,
} from "#providers/speech/port.ts";
import { createLines, type Lines } from "#providers/speech/spare-lines.ts";
import {
  bytesOf, MESSAGE_BYTES_MAX, SynthesisLink, UTTERANCE_MS_MAX,
} from "#providers/speech/synthesis-link.ts";
import { assertKey, socketUrl } from "#providers/speech/vendor-socket.ts";
import { CARTESIA, cartesiaErrorCheck, cartesiaFault, cartesiaHeaders } from "./cartesia.ts";

const WORDS_MAX = 10_000;
/** How far after the previous word a word is searched for. */
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

export function createCartesiaVoice(args: VendorArgs): Synthesizer {
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
  readonly #args: VendorArgs;
  readonly #options: SynthesisOptions;
  readonly #publish: (event: SynthesisEvent) => void;
  readonly #link: SynthesisLink;
  #text = "";
  #hasText = false;
  #hasEnded = false;
  #isOver = false;
  #samples = 0;
  /** How far timed words have covered the text, and those whose audio has not come. */
  #cursor = 0;
  #marks: { sample: number; chars: number }[] = [];

  constructor(
    args: VendorArgs, line: { lines: Lines; url: URL }, options: SynthesisOptions,
    publish: (event: SynthesisEvent) => void,
  ) {
    this.#args = args;
    this.#options = options;
    this.#publish = publish;
    this.#link = new SynthesisLink({
      ...line, vendor: CARTESIA, system: args.system,
      onText: (text) => this.#receive(text),
      onFailed: (error) => this.#fail(error),
    });
  }

  write(text: string): void {
    if (this.#isOver || this.#hasEnded) return;
    this.#text += text;
    if (text.trim() === "") return;
    this.#hasText = true;
    this.#send({ transcript: `${text.trimEnd()} `, continue: true });
    this.#link.expectAnswer();
  }

  end(): void {
    if (this.#isOver || this.#hasEnded) return;
    this.#hasEnded = true;
    if (!this.#hasText) return this.#finish();
    this.#send({ transcript: "", continue: false });
    this.#link.expectAnswer();
  }

  cancel(): void {
    if (this.#isOver) return;
    this.#link.send({ context_id: CONTEXT, cancel: true });
    this.#close();
  }

  #send(input: { transcript: string; continue: boolean }): void {
    const { gender, language, rate, speed, voice } = this.#options;
    this.#link.send({
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
  }

  #receive(text: string): void {
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
      return this.#fail(new ProviderError(`${CARTESIA} sent more audio than the text can need`, {
        retryable: false,
      }));
    }
    this.#link.worked();
    if (this.#hasEnded) this.#link.expectAnswer();
    this.#publish({ kind: "audio", pcm });
    this.#tellSpoken();
  }

  #time({ end, words }: { end: number[]; words: string[] }): void {
    for (const [number, word] of words.entries()) {
      const at = this.#text.indexOf(word, this.#cursor);
      // A word that is spelt differently gets no mark: the next one or the end covers it.
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
    this.#link.close();
  }
}
