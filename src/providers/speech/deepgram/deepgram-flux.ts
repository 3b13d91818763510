// Recognition by Deepgram Flux (`/v2/listen`), which finds the ends of turns itself. It transcribes
// whole turns and the port wants pieces, so what was published as final is counted in words.
import { Type, type Static } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { OneOf } from "#core/schema.ts";
import type { Timer } from "#core/system.ts";
import { afterWords, countWords } from "#core/words.ts";
import type { VendorArgs } from "#providers/speech/engines.ts";
import type {
  Pcm, Transcriber, TranscriberStream, TranscriptEvent, TranscriptionOptions,
} from "#providers/speech/port.ts";
import {
  boundedHints, createComplaints, RecognitionLink,
} from "#providers/speech/recognition-link.ts";
import { assertKey, socketUrl } from "#providers/speech/vendor-socket.ts";
import { CLOSE_STREAM, DEEPGRAM_NEWS, keyHeader } from "./deepgram.ts";

/** The chunk length that Flux is made for. */
const CHUNK_MS = 80;
/** Without audio time stands still for Flux, and a turn would never end. */
const STALL_MS = 500;
const KEEP_ALIVE_MS = 4000;
const END_THRESHOLD = 0.7;
/** From here on a reply is worth preparing: half of the threshold's documented range. */
const LIKELY_THRESHOLD = 0.4;
const TEXT_CHARS_MAX = 8192;

const TurnInfo = Type.Object({
  type: Type.Literal("TurnInfo"),
  event: OneOf(["StartOfTurn", "Update", "EagerEndOfTurn", "TurnResumed", "EndOfTurn"]),
  transcript: Type.String(),
  audio_window_end: Type.Optional(Type.Number({ minimum: 0 })),
  languages: Type.Optional(Type.Array(Type.String())),
});
type TurnInfo = Static<typeof TurnInfo>;
const turnInfoCheck = TypeCompiler.Compile(TurnInfo);

export function createDeepgramFlux(args: VendorArgs): Transcriber {
  assertKey(args.key);
  listenUrl(args, { rate: 8000, language: "en", languages: ["en"], hints: [] });
  return {
    name: `Deepgram Flux (${args.model})`,
    detectsTurns: true,
    open: (options, publish) => new FluxStream(args, options, publish),
  };
}

function listenUrl({ url, model }: VendorArgs, options: TranscriptionOptions): URL {
  const query: [string, string][] = [
    ["model", model],
    ["encoding", "linear16"],
    ["sample_rate", String(options.rate)],
    ["eot_threshold", String(END_THRESHOLD)],
    ["eager_eot_threshold", String(LIKELY_THRESHOLD)],
  ];
  // The models of one language refuse the hint.
  const languages = options.languages.length > 1 ? options.languages : [options.language];
  if (/-multi$/.test(model)) {
    for (const language of languages) query.push(["language_hint", language]);
  }
  for (const hint of boundedHints(options.hints)) query.push(["keyterm", hint]);
  return socketUrl(url, "/v2/listen", query);
}

class FluxStream implements TranscriberStream {
  readonly #args: VendorArgs;
  readonly #publish: (event: TranscriptEvent) => void;
  readonly #link: RecognitionLink;
  readonly #silence: Pcm;
  readonly #stalls: Timer;
  #writtenMs: number;
  #isOpen = true;
  #inTurn = false;
  #partial = "";
  /** Words of the turn that were reported as final. */
  #wordsTold = 0;
  /** The end of the audio that the newest message covers. */
  #windowEndS = 0;
  coveredMs = 0;

  constructor(
    args: VendorArgs, options: TranscriptionOptions,
    publish: (event: TranscriptEvent) => void,
  ) {
    this.#args = args;
    this.#publish = publish;
    const complain = createComplaints(args, "Deepgram", DEEPGRAM_NEWS);
    this.#silence = new Int16Array((options.rate * CHUNK_MS) / 1000);
    this.#writtenMs = args.system.monotonicMs();
    this.#stalls = args.system.every(STALL_MS, () => this.#fillStall());
    this.#link = new RecognitionLink({
      ...args,
      vendor: "Deepgram",
      rate: options.rate,
      listenUrl: listenUrl(args, options),
      headers: keyHeader(args.key),
      chunkMs: CHUNK_MS,
      farewell: CLOSE_STREAM,
      keepAlive: { afterMs: KEEP_ALIVE_MS, send: () => this.#sendSilence(1) },
      onMessage: (message) => {
        if (turnInfoCheck.Check(message)) this.#turn(message);
        else complain(message);
      },
      onFailed: (error) => {
        if (this.#end()) this.#publish({ kind: "failed", error });
      },
    });
  }

  write(pcm: Pcm): void {
    if (!this.#isOpen) return;
    this.#writtenMs = this.#args.system.monotonicMs();
    this.#link.audio(pcm);
  }

  /** Flux cannot be asked to finalise: what it has recognised by now closes the piece. */
  finalize(): void {
    if (!this.#isOpen) return;
    this.#link.flush();
    this.#closePiece(this.#partial);
  }

  close(): void {
    this.#end();
    this.#link.close();
  }

  #turn({ event, transcript, languages, audio_window_end: endS }: TurnInfo): void {
    this.#windowEndS = Math.min(endS ?? this.#link.positionS, this.#link.positionS);
    const text = transcript.slice(0, TEXT_CHARS_MAX);
    const isStart = !this.#inTurn && event !== "EndOfTurn";
    // A turn whose end got lost.
    if (event === "StartOfTurn" && this.#inTurn) this.#turnLost();
    if (event === "StartOfTurn" || (isStart && text !== "")) {
      this.#inTurn = true;
      this.#wordsTold = 0;
    }
    if (!this.#isOpen) return;
    const fresh = afterWords(text, this.#wordsTold);
    if (event === "EndOfTurn") return this.#turnEnded(fresh, languages?.[0]);
    if (fresh !== this.#partial) {
      this.#partial = fresh;
      this.#publish({ kind: "partial", text: fresh });
    }
    if (event === "EagerEndOfTurn" && this.#isOpen) this.#publish({ kind: "end_of_turn_likely" });
  }

  #turnEnded(fresh: string, language?: string): void {
    const isHeard = this.#inTurn || fresh !== "";
    this.#inTurn = false;
    if (fresh !== "" || this.#partial !== "") this.#closePiece(fresh, language);
    this.#wordsTold = 0;
    if (isHeard && this.#isOpen) this.#publish({ kind: "end_of_turn" });
  }

  /** Keeps what was recognised of a turn whose end is missing. */
  #turnLost(): void {
    this.#inTurn = false;
    if (this.#partial !== "") this.#closePiece(this.#partial);
    this.#wordsTold = 0;
  }

  #closePiece(text: string, language?: string): void {
    this.#partial = "";
    this.coveredMs = this.#windowEndS * 1000;
    this.#wordsTold += countWords(text);
    this.#publish({ kind: "final", text, ...(language ? { language } : {}) });
  }

  #fillStall(): void {
    const stalledMs = this.#args.system.monotonicMs() - this.#writtenMs;
    if (this.#inTurn && stalledMs >= STALL_MS) this.#sendSilence(Math.ceil(STALL_MS / CHUNK_MS));
  }

  #sendSilence(chunks: number): void {
    this.#link.flush();
    for (let count = 0; count < chunks; count += 1) this.#link.audio(this.#silence);
  }

  /** False when it is over already. */
  #end(): boolean {
    const wasOpen = this.#isOpen;
    this.#isOpen = false;
    this.#stalls.cancel();
    return wasOpen;
  }
}
