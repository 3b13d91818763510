// Recognition by Deepgram's streaming interface (`/v1/listen`). Its endpointing is off: the
// call's own turn taking asks for the final text when it wants it.
import { Type, type Static } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import type { Timer } from "#core/system.ts";
import type { VendorArgs } from "#providers/speech/engines.ts";
import type {
  Pcm, Transcriber, TranscriberStream, TranscriptEvent, TranscriptionOptions,
} from "#providers/speech/port.ts";
import {
  boundedHints, createComplaints, RecognitionLink,
} from "#providers/speech/recognition-link.ts";
import { deepgramHearsSeveral } from "#providers/speech/vendor-models.ts";
import { assertKey, socketUrl } from "#providers/speech/vendor-socket.ts";

/** Deepgram hangs up after 10 s without audio or a sign of life. */
const KEEP_ALIVE_MS = 4000;
/** How long the final text may take; then the text so far is taken for it. */
export const FINALIZE_WAIT_MS = 1000;
/** Deepgram rounds its times. */
const ROUNDING_S = 0.03;
/** How far before the request an answer to it may end. */
const ANSWER_SLACK_S = 0.25;
const TEXT_CHARS_MAX = 8192;

const Results = Type.Object({
  type: Type.Literal("Results"),
  start: Type.Number({ minimum: 0 }),
  duration: Type.Number({ minimum: 0 }),
  is_final: Type.Optional(Type.Boolean()),
  from_finalize: Type.Optional(Type.Boolean()),
  channel: Type.Object({
    alternatives: Type.Array(Type.Object({
      transcript: Type.String(),
      // Models that hear several name the most spoken first.
      languages: Type.Optional(Type.Array(Type.String())),
      words: Type.Optional(Type.Array(Type.Object({
        word: Type.String(),
        punctuated_word: Type.Optional(Type.String()),
        start: Type.Number(),
      }))),
    })),
  }),
});
type Results = Static<typeof Results>;
const resultsCheck = TypeCompiler.Compile(Results);

/** Messages of both interfaces that are no transcripts. */
export const DEEPGRAM_NEWS: ReadonlySet<string> = new Set([
  "Metadata", "SpeechStarted", "UtteranceEnd", "Connected", "ConfigureSuccess", "ConfigureFailure",
]);
export const CLOSE_STREAM = JSON.stringify({ type: "CloseStream" });

export const keyHeader = (key: string | null): Record<string, string> =>
  key === null ? {} : { authorization: `Token ${key}` };

export function createDeepgram(args: VendorArgs): Transcriber {
  assertKey(args.key);
  listenUrl(args, { rate: 8000, language: "en", languages: ["en"], hints: [] });
  return {
    name: `Deepgram (${args.model})`,
    detectsTurns: false,
    open: (options, publish) => new DeepgramStream(args, options, publish),
  };
}

function listenUrl({ url, model }: VendorArgs, options: TranscriptionOptions): URL {
  // Models before nova-3 name the hints differently.
  const hintName = /^(nova-3|flux)/.test(model) ? "keyterm" : "keywords";
  const hearsSeveral = options.languages.length > 1 && deepgramHearsSeveral(model);
  return socketUrl(url, "/v1/listen", [
    ["model", model],
    ["language", hearsSeveral ? "multi" : options.language],
    ...(hearsSeveral
      ? options.languages.map((language): [string, string] => ["language_hint", language])
      : []),
    ["encoding", "linear16"],
    ["sample_rate", String(options.rate)],
    ["channels", "1"],
    ["interim_results", "true"],
    ["punctuate", "true"],
    ["smart_format", "true"],
    // Numbers and dates are otherwise held back for seconds, in case they go on.
    ["no_delay", "true"],
    ["endpointing", "false"],
    ["vad_events", "false"],
    ...boundedHints(options.hints).map((hint): [string, string] => [hintName, hint]),
  ]);
}

class DeepgramStream implements TranscriberStream {
  readonly #args: VendorArgs;
  readonly #publish: (event: TranscriptEvent) => void;
  readonly #link: RecognitionLink;
  #isOpen = true;
  #partial = "";
  #partialEndS = 0;
  /** Unanswered requests for the final text, and abandoned ones whose answer may still come. */
  #asked = 0;
  #givenUp = 0;
  #askedAtS = 0;
  /** Where the audio of the reported final texts ends: results before it are stale. */
  #coveredS = 0;
  #timer: Timer | null = null;

  constructor(
    args: VendorArgs, options: TranscriptionOptions,
    publish: (event: TranscriptEvent) => void,
  ) {
    this.#args = args;
    this.#publish = publish;
    const complain = createComplaints(args, "Deepgram", DEEPGRAM_NEWS);
    const link = new RecognitionLink({
      ...args,
      vendor: "Deepgram",
      rate: options.rate,
      listenUrl: listenUrl(args, options),
      headers: keyHeader(args.key),
      chunkMs: 0,
      farewell: CLOSE_STREAM,
      keepAlive: { afterMs: KEEP_ALIVE_MS, send: () => link.control(controlOf("KeepAlive")) },
      onMessage: (message) => {
        if (resultsCheck.Check(message)) this.#result(message);
        else complain(message);
      },
      onFailed: (error) => {
        this.#settle(this.#asked);
        if (!this.#isOpen) return;
        this.#isOpen = false;
        this.#publish({ kind: "failed", error });
      },
    });
    this.#link = link;
  }

  get coveredMs(): number {
    return this.#coveredS * 1000;
  }

  write(pcm: Pcm): void {
    // An empty message would end the stream.
    if (this.#isOpen && pcm.length > 0) this.#link.audio(pcm);
  }

  finalize(): void {
    if (!this.#isOpen) return;
    this.#askedAtS = this.#link.positionS;
    const openS = this.#askedAtS - this.#coveredS;
    // Deepgram does not answer a Finalize that finds nothing to finish.
    if (this.#asked === 0 && this.#partial === "" && openS <= ROUNDING_S) {
      return this.#closePiece("");
    }
    this.#asked += 1;
    this.#timer ??= this.#args.system.after(FINALIZE_WAIT_MS, () => this.#giveUp());
    this.#link.control(controlOf("Finalize"));
  }

  close(): void {
    this.#isOpen = false;
    this.#settle(this.#asked);
    this.#link.close();
  }

  #result(results: Results): void {
    const endS = Math.min(results.start + results.duration, this.#link.positionS);
    const text = freshText(results, this.#coveredS);
    if (results.is_final !== true) {
      if (text === this.#partial) return;
      this.#partial = text;
      this.#partialEndS = endS;
      return this.#publish({ kind: "partial", text });
    }
    const answered = this.#answeredBy(results.from_finalize === true, endS);
    this.#coveredS = Math.max(this.#coveredS, endS);
    this.#settle(answered);
    if (text === "" && this.#partial === "" && answered === 0) return;
    const [language] = results.channel.alternatives[0]?.languages ?? [];
    this.#closePiece(text, language);
  }

  /** How many requests for the final text a final result answers. */
  #answeredBy(isFromFinalize: boolean, endS: number): number {
    const isLate = isFromFinalize && this.#givenUp > 0 && endS < this.#askedAtS - ANSWER_SLACK_S;
    if (isLate) {
      this.#givenUp -= 1;
      return 0;
    }
    if (isFromFinalize) {
      this.#givenUp = 0;
      return Math.min(1, this.#asked);
    }
    // All that was written is final now; the request may still get an answer, or may not.
    if (endS < this.#askedAtS - ROUNDING_S) return 0;
    this.#givenUp += this.#asked;
    return this.#asked;
  }

  /** The answer is late: the text so far is taken for it, and is not reported again. */
  #giveUp(): void {
    this.#givenUp += this.#asked;
    if (this.#partial !== "") this.#coveredS = Math.max(this.#coveredS, this.#partialEndS);
    this.#settle(this.#asked);
    this.#closePiece(this.#partial);
  }

  #settle(answered: number): void {
    if (answered === 0) return;
    this.#asked -= answered;
    this.#timer?.cancel();
    this.#timer = this.#asked > 0
      ? this.#args.system.after(FINALIZE_WAIT_MS, () => this.#giveUp())
      : null;
  }

  #closePiece(text: string, language?: string): void {
    this.#partial = "";
    this.#publish({ kind: "final", text, ...(language ? { language } : {}) });
  }
}

const controlOf = (type: "Finalize" | "KeepAlive"): string => JSON.stringify({ type });

/** The part of a result about audio after `coveredS`. */
function freshText({ start, duration, channel }: Results, coveredS: number): string {
  const best = channel.alternatives[0];
  const text = best?.transcript.slice(0, TEXT_CHARS_MAX) ?? "";
  if (start >= coveredS - ROUNDING_S) return text;
  if (start + duration <= coveredS + ROUNDING_S) return "";
  const fresh = best?.words?.filter((word) => word.start >= coveredS - ROUNDING_S);
  const spoken = fresh?.map((word) => word.punctuated_word ?? word.word).join(" ");
  return spoken?.slice(0, TEXT_CHARS_MAX) ?? text;
}
