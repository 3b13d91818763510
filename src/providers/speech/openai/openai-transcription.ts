// Recognition by any server with OpenAI's `/audio/transcriptions`, which takes whole recordings:
// what was said since the last pause is sent when the call asks for its final text (after a fifth
// of a second of silence, well before the end of the turn). While somebody goes on talking, what
// there is so far is sent after 1, 2, 4 … seconds, so that words can interrupt: together less than
// twice the audio. Silence is never sent, as models of this kind hear words in it.
import { Type } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { FormData } from "undici/lib/web/fetch/formdata.js";
import { createResampler } from "#audio/resampler.ts";
import { monoWav } from "#audio/wav.ts";
import { ProviderError } from "#core/faults.ts";
import { createOpenAiHttp, type OpenAiAudioOptions } from "./openai-http.ts";
import type {
  Pcm, Transcriber, TranscriberStream, TranscriptEvent, TranscriptionOptions,
} from "#providers/speech/port.ts";
import type { VendorHttp } from "#providers/speech/vendor-http.ts";

const RATE = 16_000;
const PRE_ROLL_MS = 400;
/** Less than this is no speech. */
const SPEECH_MS_MIN = 80;
const SPEECH_PROBABILITY = 0.5;
const FIRST_INTERIM_MS = 1000;
/** Longer speech without a pause is recognised in parts. */
const PIECE_MS_MAX = 30_000;
const ATTEMPTS = 2;
/** The stream fails after this many pieces have failed in a row. */
const FAILURES_MAX = 3;
const TEXT_CHARS_MAX = 8192;
const HINTS_CHARS_MAX = 800;

const Answer = TypeCompiler.Compile(Type.Object({ text: Type.String() }));

export function createOpenAiTranscription(options: OpenAiAudioOptions): Transcriber {
  const http = createOpenAiHttp(options);
  return {
    name: `OpenAI-compatible (${options.model})`,
    detectsTurns: false,
    open: (wanted, publish) => new OpenAiTranscriptionStream(options, http, wanted, publish),
  };
}

class OpenAiTranscriptionStream implements TranscriberStream {
  readonly #options: OpenAiAudioOptions;
  readonly #http: VendorHttp;
  readonly #wanted: TranscriptionOptions;
  readonly #publish: (event: TranscriptEvent) => void;
  readonly #abort = new AbortController();
  /** Audio since the last pause, with what came just before the speech; at the call's rate. */
  #heard: Pcm[] = [];
  #heardSamples = 0;
  #speechMs = 0;
  #interimMs = FIRST_INTERIM_MS;
  #interim: AbortController | null = null;
  /** Final texts come in the order they were asked for. */
  #finals: Promise<void> = Promise.resolve();
  #failures = 0;

  constructor(
    options: OpenAiAudioOptions,
    http: VendorHttp,
    wanted: TranscriptionOptions,
    publish: (event: TranscriptEvent) => void,
  ) {
    this.#options = options;
    this.#http = http;
    this.#wanted = wanted;
    this.#publish = publish;
  }

  write(pcm: Pcm): void {
    if (this.#isOver) return;
    this.#heard.push(pcm.slice());
    this.#heardSamples += pcm.length;
    if (this.#speechMs < SPEECH_MS_MIN) return this.#forgetSilence();
    if (this.#heardMs >= PIECE_MS_MAX) return this.finalize();
    if (this.#heardMs >= this.#interimMs) void this.#recogniseSoFar();
  }

  voiced(probability: number, frameMs: number): void {
    if (probability >= SPEECH_PROBABILITY) this.#speechMs += frameMs;
    // A click is not the beginning of what is said later.
    else if (this.#speechMs < SPEECH_MS_MIN) this.#speechMs = 0;
  }

  finalize(): void {
    if (this.#isOver) return;
    const isSpeech = this.#speechMs >= SPEECH_MS_MIN;
    const heard = isSpeech ? this.#heard : [];
    this.#heard = isSpeech ? [] : this.#heard;
    this.#heardSamples = isSpeech ? 0 : this.#heardSamples;
    this.#speechMs = 0;
    this.#interimMs = FIRST_INTERIM_MS;
    this.#interim?.abort();
    this.#interim = null;
    const recognised = isSpeech ? this.#recognise(heard) : Promise.resolve("");
    this.#finals = this.#finals.then(() => this.#publishFinal(recognised));
  }

  close(): void {
    this.#abort.abort();
    this.#interim?.abort();
    this.#heard = [];
  }

  get #isOver(): boolean {
    return this.#abort.signal.aborted;
  }

  get #heardMs(): number {
    return (this.#heardSamples * 1000) / this.#wanted.rate;
  }

  #forgetSilence(): void {
    for (let first = this.#heard[0]; first; first = this.#heard[0]) {
      if (this.#heardMs - (first.length * 1000) / this.#wanted.rate < PRE_ROLL_MS) return;
      this.#heard.shift();
      this.#heardSamples -= first.length;
    }
  }

  async #recogniseSoFar(): Promise<void> {
    this.#interimMs *= 2;
    if (this.#interim) return;
    const asked = (this.#interim = new AbortController());
    const heard = [...this.#heard];
    try {
      const text = await this.#ask(heard, asked.signal);
      if (!asked.signal.aborted && text !== "") this.#publish({ kind: "partial", text });
    } catch (error) {
      if (asked.signal.aborted) return;
      this.#options.log.warn({ err: error }, "could not recognise the speech so far");
    } finally {
      if (this.#interim === asked) this.#interim = null;
    }
  }

  /** Null: recognition failed; never rejects. */
  async #recognise(heard: Pcm[]): Promise<string | null> {
    const { signal } = this.#abort;
    for (let attempt = 1; ; attempt += 1) {
      try {
        const text = await this.#ask(heard, signal);
        this.#failures = 0;
        return text;
      } catch (error) {
        if (this.#isOver) return null;
        if (!(error instanceof ProviderError)) throw error;
        if (error.retryable && attempt < ATTEMPTS) continue;
        this.#failures += 1;
        this.#options.log.warn({ err: error }, "could not recognise a piece of speech");
        if (!error.retryable || this.#failures >= FAILURES_MAX) this.#fail(error);
        return null;
      }
    }
  }

  #fail(error: ProviderError): void {
    if (this.#isOver) return;
    this.close();
    this.#publish({ kind: "failed", error });
  }

  async #publishFinal(recognised: Promise<string | null>): Promise<void> {
    const text = await recognised;
    if (!this.#isOver) this.#publish({ kind: "final", text: text ?? "" });
  }

  async #ask(heard: Pcm[], signal: AbortSignal): Promise<string> {
    const { model } = this.#options;
    const form = new FormData();
    const { process } = createResampler(this.#wanted.rate, RATE);
    const sound = monoWav(heard.map((pcm) => process(pcm).slice()), RATE);
    form.set("file", new Blob([sound], { type: "audio/wav" }), "speech.wav");
    form.set("model", model);
    // A model that is given one language hears every other as that one.
    if (this.#wanted.languages.length < 2) form.set("language", this.#wanted.language);
    form.set("response_format", "json");
    const prompt = this.#wanted.hints.join(", ").slice(0, HINTS_CHARS_MAX);
    if (prompt !== "") form.set("prompt", prompt);
    const answer = await this.#http.ask("/audio/transcriptions", form, signal);
    if (Answer.Check(answer)) return answer.text.trim().slice(0, TEXT_CHARS_MAX);
    throw new ProviderError("the speech server sent an unexpected answer", { retryable: false });
  }
}
