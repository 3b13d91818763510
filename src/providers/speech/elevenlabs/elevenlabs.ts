// Speech by ElevenLabs over its `multi-stream-input` WebSocket, sentence by sentence as the text
// comes. (The vendor does not serve its v3 models there.)
//
// Every utterance has a connection of its own: cancelling it is closing that, and nothing of it can
// reach the next one. As a reply opens its stream when its first sentence is there, the handshake
// would be waited for before every first audio. So once an utterance has audio, a connection for
// the next one in the same voice is opened and kept; it is there after an interruption, too. The
// vendor counts connections only while they speak. One for several utterances was rejected: the
// vendor takes five contexts at a time and goes on with those that were closed.
//
// Where the vendor sends no alignment, or one of another text, only the end of it all is reported
// as spoken: nothing else says which text the audio belongs to.
import { createResampler, type Resampler } from "#audio/resampler.ts";
import { ProviderError } from "#core/faults.ts";
import { jsonOf, recordOf, textOf } from "#core/values.ts";
import { errorText } from "#providers/error-text.ts";
import type { VendorArgs } from "#providers/speech/engines.ts";
import { messageCheck, SpokenWords, type Message } from "./elevenlabs-words.ts";
import type {
  Pcm, SynthesisEvent, SynthesisOptions, SynthesisStream, Synthesizer,
} from "#providers/speech/port.ts";
import { createLines, type Lines } from "#providers/speech/spare-lines.ts";
import {
  bytesOf, MESSAGE_BYTES_MAX, SynthesisLink, UTTERANCE_MS_MAX,
} from "#providers/speech/synthesis-link.ts";
import { elevenLabsIsTold, elevenLabsSpeaks } from "#providers/speech/vendor-models.ts";
import { assertKey, socketUrl, type VendorSocketLimits } from "#providers/speech/vendor-socket.ts";

/** The vendor closes after this long without a message from us; the most it allows. */
const INACTIVITY_S = 180;
/** Premade, and there for every account: Sarah and George. */
const DEFAULT_VOICES = { female: "EXAVITQu4vr4xnSDxMaL", male: "JBFqnCBsd6RMkjVDRZzb" } as const;
/** Rates that the vendor can send; for any other the last one is requested and resampled. */
const RATES = [8000, 16_000, 24_000];
const RESAMPLED_RATE = 24_000;
/** How far the voice exaggerates what the text calls for; 0 by default. */
const EMOTION_STYLE = 0.3;
/** Each connection has this one context. */
const CONTEXT = "utterance";
/** `error` of messages that end a connection for a reason that passes. */
const PASSING_ERRORS = new Set([
  "rate_limit_exceeded", "too_many_concurrent_requests", "concurrent_limit_exceeded",
  "system_busy", "max_active_conversations", "input_timeout_exceeded", "internal_server_error",
]);
const INTERNAL_ERROR = 1011;

export interface ElevenLabsOptions extends VendorArgs {
  limits?: Partial<VendorSocketLimits>;
}

export function createElevenLabs(args: ElevenLabsOptions): Synthesizer {
  assertKey(args.key);
  socketUrl(args.url, "/", []);
  const lines = createLines({
    ...args, vendor: "ElevenLabs", headers: args.key === null ? {} : { "xi-api-key": args.key },
    limits: { messageBytesMax: MESSAGE_BYTES_MAX, ...args.limits },
  });
  return {
    name: `ElevenLabs (${args.model})`,
    open: (options, publish) => new ElevenLabsStream(args, lines, options, publish),
  };
}

const wireRate = (rate: number): number => (RATES.includes(rate) ? rate : RESAMPLED_RATE);

function speakUrl({ url, model }: ElevenLabsOptions, options: SynthesisOptions): URL {
  const voice = options.voice ?? DEFAULT_VOICES[options.gender];
  const language = options.language === "tl" ? "fil" : options.language;
  const isTold = elevenLabsIsTold(model) && elevenLabsSpeaks(model, language);
  return socketUrl(url, `/v1/text-to-speech/${encodeURIComponent(voice)}/multi-stream-input`, [
    ["model_id", model],
    ...(isTold ? [["language_code", language] as [string, string]] : []),
    ["output_format", `pcm_${wireRate(options.rate)}`],
    // Whole sentences are written: none is held back for more to come.
    ["auto_mode", "true"],
    ["inactivity_timeout", String(INACTIVITY_S)],
    ["sync_alignment", "true"],
  ]);
}

class ElevenLabsStream implements SynthesisStream {
  readonly #args: ElevenLabsOptions;
  readonly #options: SynthesisOptions;
  readonly #publish: (event: SynthesisEvent) => void;
  readonly #resampler: Resampler;
  readonly #words: SpokenWords;
  readonly #link: SynthesisLink;
  #hasText = false;
  #hasEnded = false;
  #hasWarned = false;
  #isOver = false;
  /** Samples received from the vendor. */
  #samples = 0;
  /** A sample may be split between two messages. */
  #odd: Buffer | null = null;
  #spokenChars = 0;

  constructor(
    args: ElevenLabsOptions,
    lines: Lines,
    options: SynthesisOptions,
    publish: (event: SynthesisEvent) => void,
  ) {
    this.#args = args;
    this.#options = options;
    this.#publish = publish;
    this.#resampler = createResampler(wireRate(options.rate), options.rate);
    this.#words = new SpokenWords(wireRate(options.rate));
    this.#link = new SynthesisLink({
      lines, vendor: "ElevenLabs", url: speakUrl(args, options), system: args.system,
      onText: (text) => this.#receive(text),
      onFailed: (error) => this.#fail(error),
    });
  }

  write(text: string): void {
    if (this.#isOver || this.#hasEnded) return;
    this.#words.text += text;
    // An empty text would be a sign of life, and has no audio to wait for.
    if (text.trim() === "") return;
    if (!this.#hasText) {
      const { hasEmotion, similarity, speed, stability } = this.#options;
      const style = hasEmotion ? { style: EMOTION_STYLE } : {};
      const voice = { stability, similarity_boost: similarity, speed, ...style };
      this.#link.send({ text: " ", context_id: CONTEXT, voice_settings: voice });
    }
    this.#hasText = true;
    this.#link.send({ text: `${text.trimEnd()} `, context_id: CONTEXT, flush: true });
    this.#link.expectAnswer();
  }

  end(): void {
    if (this.#isOver || this.#hasEnded) return;
    this.#hasEnded = true;
    if (!this.#hasText) return this.#finish();
    this.#link.send({ context_id: CONTEXT, close_context: true });
    this.#link.expectAnswer();
  }

  cancel(): void {
    if (this.#isOver) return;
    if (this.#hasText) this.#link.send({ context_id: CONTEXT, close_context: true });
    this.#close();
  }

  #receive(text: string): void {
    const message = jsonOf(text);
    if (!messageCheck.Check(message)) return this.#complain(message);
    const { alignment, audio, contextId, error, isFinal } = message;
    if (textOf(error) !== "" || recordOf(error)) return this.#fail(this.#refusal(message));
    if ((contextId ?? CONTEXT) !== CONTEXT) return;
    if (typeof audio === "string") this.#audio(audio, alignment);
    if (isFinal === true && this.#hasEnded) this.#finish();
  }

  #audio(base64: string, alignment: unknown): void {
    const bytes = bytesOf(base64);
    if (!bytes) return this.#complain(null);
    const from = this.#samples;
    const pcm = this.#pcmOf(bytes);
    this.#samples += pcm.length;
    if (this.#samples * 1000 > UTTERANCE_MS_MAX * wireRate(this.#options.rate)) {
      return this.#fail(new ProviderError("ElevenLabs sent more audio than the text can need", {
        retryable: false,
      }));
    }
    if (pcm.length > 0) {
      this.#link.worked();
      // Until the end, nothing says whether more audio is to come.
      if (this.#hasEnded) this.#link.expectAnswer();
    }
    this.#words.align(alignment, from);
    let at = 0;
    for (const { sample, chars } of this.#words.due(this.#samples)) {
      const to = Math.min(Math.max(sample - from, at), pcm.length);
      this.#publishAudio(pcm.subarray(at, to));
      this.#publishSpoken(chars);
      at = to;
    }
    this.#publishAudio(pcm.subarray(at));
  }

  #pcmOf(received: Buffer): Pcm {
    const bytes = this.#odd ? Buffer.concat([this.#odd, received]) : received;
    // A copy, so that one byte does not keep them all.
    this.#odd = bytes.length % 2 === 1 ? Buffer.from(bytes.subarray(-1)) : null;
    const pcm = new Int16Array(bytes.length >> 1);
    Buffer.from(pcm.buffer).set(bytes.subarray(0, pcm.byteLength));
    return pcm;
  }

  #publishAudio(pcm: Pcm): void {
    const resampled = this.#resampler.process(pcm);
    if (resampled.length > 0 && !this.#isOver) this.#publish({ kind: "audio", pcm: resampled });
  }

  #publishSpoken(chars: number): void {
    if (this.#isOver || chars <= this.#spokenChars) return;
    this.#spokenChars = chars;
    this.#publish({ kind: "spoken", chars });
  }

  #finish(): void {
    this.#publishSpoken(this.#words.text.length);
    if (this.#isOver) return;
    this.#close();
    this.#publish({ kind: "done" });
  }

  #fail(error: ProviderError): void {
    if (this.#isOver) return;
    this.#close();
    const isHeard = this.#samples > 0 && error.retryable;
    this.#publish({
      kind: "failed",
      // A retry would repeat what was heard.
      error: isHeard ? new ProviderError(error.message, { retryable: false, cause: error }) : error,
    });
  }

  #close(): void {
    this.#isOver = true;
    this.#link.close();
  }

  #refusal({ code, error, message }: Message): ProviderError {
    const { key } = this.#args;
    const why = [errorText(error, key), errorText(message, key)].filter((text) => text !== "");
    const retryable = code === INTERNAL_ERROR || PASSING_ERRORS.has(textOf(error));
    return new ProviderError(["ElevenLabs refuses the text", ...why].join(": "), { retryable });
  }

  /** Logs the first invalid message; all are ignored. */
  #complain(message: unknown): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    const complaint = errorText(recordOf(message), this.#args.key);
    this.#args.log.warn(
      { vendor: "ElevenLabs", complaint }, "a speech synthesis service sent an unknown message");
  }
}
