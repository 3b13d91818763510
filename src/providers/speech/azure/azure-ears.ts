// Recognition by Azure's service for conversations, over the protocol its Speech SDK speaks. A turn
// of that protocol goes from its first audio to an audio message without any, which is how the
// service is asked for the final text; the audio after it waits until the service has ended the
// turn, and begins the next on the same connection.
import { monoWav } from "#audio/wav.ts";
import { ProviderError } from "#core/faults.ts";
import type { System, Timer } from "#core/system.ts";
import { errorText } from "#providers/error-text.ts";
import type { VendorArgs } from "#providers/speech/engines.ts";
import { Pieces } from "#providers/speech/pieces.ts";
import { localeOf } from "#providers/speech/locales.ts";
import type {
  Pcm, Transcriber, TranscriberStream, TranscriptEvent, TranscriptionOptions,
} from "#providers/speech/port.ts";
import {
  askedStream, boundedHints, bytesOfPcm, createComplaints, RecognitionLink,
} from "#providers/speech/recognition-link.ts";
import { assertKey, socketUrl } from "#providers/speech/vendor-socket.ts";
import { messageCheck, messageOf, soundMessage, textMessage, type AzureMessage } from "./azure-wire.ts";

const VENDOR = "Azure";
const PATH = "/speech/recognition/conversation/cognitiveservices/v1";
const CHUNK_MS = 60;
const KEEP_ALIVE_MS = 8000;
/** How long the service may take to end a turn on request. */
const END_MS = 5000;
const TEXT_CHARS_MAX = 8192;
/** The entry that ends a turn. */
const END = "end";
const NEWS = new Set(["turn.start", "speech.startdetected", "speech.enddetected", "telemetry"]);
/** Statuses without any words. */
const EMPTY = new Set([
  "NoMatch", "InitialSilenceTimeout", "BabbleTimeout", "EndOfDictation", "EndSilenceTimeout",
]);

type AzureEarsOptions = Omit<VendorArgs, "model">;

export function createAzureEars(args: AzureEarsOptions): Transcriber {
  assertKey(args.key);
  listenUrl(args, "en");
  return {
    name: VENDOR,
    detectsTurns: false,
    open: (options, publish) => new AzureStream(args, options, publish),
  };
}

const listenUrl = ({ url }: AzureEarsOptions, language: string): URL =>
  socketUrl(url, PATH, [
    ["language", localeOf(language)], ["format", "simple"], ["profanity", "raw"],
  ]);

const idOf = (system: System): string => system.uuid().replaceAll("-", "");

/** Encodes entries in the order of sending: only then is it known which turn they belong to. */
class Sender {
  readonly #system: System;
  readonly #rate: number;
  readonly #context: object;
  /** Null: the next audio begins another. */
  turn: string | null = null;

  constructor(system: System, { hints, language, rate }: TranscriptionOptions) {
    this.#system = system;
    this.#rate = rate;
    const items = boundedHints(hints).map((text) => ({ text }));
    this.#context = {
      // Masked with asterisks, words could not be understood.
      phraseDetection: { language: localeOf(language), enrichment: { profanity: "Raw" } },
      phraseOutput: {},
      ...(items.length > 0 ? { dgi: { groups: [{ type: "Generic", items }], bias: 1 } } : {}),
    };
  }

  #headers(path: string, turn: string): Record<string, string> {
    const at = new Date(this.#system.now() / 1000).toISOString();
    return { "Path": path, "X-RequestId": turn, "X-Timestamp": at };
  }

  /** The first message of a connection. */
  hello(): string {
    const system = { name: "Parley", version: "1.0.0", build: "JavaScript", lang: "JavaScript" };
    return textMessage(this.#headers("speech.config", idOf(this.#system)), { context: { system } });
  }

  audio(pcm: Pcm): (string | Uint8Array)[] {
    const begins = this.turn === null;
    const turn = (this.turn ??= idOf(this.#system));
    const audio = soundMessage(this.#headers("audio", turn), bytesOfPcm(pcm));
    if (!begins) return [audio];
    const wave = { ...this.#headers("audio", turn), "Content-Type": "audio/x-wav" };
    return [
      textMessage(this.#headers("speech.context", turn), this.#context),
      soundMessage(wave, monoWav([], this.#rate)),
      audio,
    ];
  }

  end(): Uint8Array[] {
    return this.turn === null
      ? []
      : [soundMessage(this.#headers("audio", this.turn), new Uint8Array(0))];
  }
}

const joined = (before: string, text: string): string =>
  `${before} ${text}`.trim().slice(0, TEXT_CHARS_MAX);

class AzureStream implements TranscriberStream {
  readonly #args: AzureEarsOptions;
  readonly #sender: Sender;
  readonly #pieces: Pieces;
  readonly #link: RecognitionLink;
  readonly #stream: TranscriberStream;
  readonly #complain: (message: unknown) => void;
  /** Words of the turn that is being ended. */
  #said = "";
  #ending: Timer | null = null;

  constructor(
    args: AzureEarsOptions, options: TranscriptionOptions,
    publish: (event: TranscriptEvent) => void,
  ) {
    this.#args = args;
    this.#complain = createComplaints(args, VENDOR, NEWS);
    this.#sender = new Sender(args.system, options);
    this.#pieces = new Pieces({
      system: args.system, publish, ask: () => this.#link.control(END),
    });
    this.#link = this.#connect(options);
    this.#stream = askedStream(this.#link, this.#pieces);
  }

  write(pcm: Pcm): void {
    this.#stream.write(pcm);
  }

  finalize(): void {
    this.#stream.finalize();
  }

  close(): void {
    this.#ending?.cancel();
    this.#stream.close();
  }

  #connect({ language, rate }: TranscriptionOptions): RecognitionLink {
    const { key, system } = this.#args;
    const link: RecognitionLink = new RecognitionLink({
      ...this.#args,
      vendor: VENDOR,
      listenUrl: listenUrl(this.#args, language),
      headers: {
        "x-connectionid": idOf(system),
        ...(key === null ? {} : { "ocp-apim-subscription-key": key }),
      },
      rate,
      chunkMs: CHUNK_MS,
      hello: this.#sender.hello(),
      farewell: null,
      keepAlive: {
        afterMs: KEEP_ALIVE_MS,
        send: () => link.audio(new Int16Array((rate * CHUNK_MS) / 1000)),
      },
      encode: (entry) => (typeof entry === "string" ? this.#end() : this.#sender.audio(entry)),
      decode: messageOf,
      onMessage: (message) => this.#receive(message),
      onFailed: (error) => {
        this.#ending?.cancel();
        this.#pieces.fail(error);
      },
    });
    return link;
  }

  #end(): Uint8Array[] {
    const messages = this.#sender.end();
    // The service may have ended the turn already.
    if (messages.length === 0) this.#pieces.final("", true);
    else {
      this.#link.hold();
      this.#ending = this.#args.system.after(END_MS, () => {
        const text = `${VENDOR} did not end a turn within ${END_MS} ms`;
        this.#link.fail(new ProviderError(text, { retryable: true }));
      });
    }
    return messages;
  }

  #receive(message: unknown): void {
    if (!messageCheck.Check(message)) return this.#complain(message);
    const { body, path, turn } = message;
    // A late message belongs to a turn that is over.
    if (turn !== this.#sender.turn) return;
    if (path === "speech.hypothesis") {
      return this.#pieces.partial(joined(this.#said, body.Text ?? ""));
    }
    if (path === "speech.phrase") return this.#hearPhrase(body);
    if (path === "turn.end") return this.#turnIsOver();
    this.#complain({ ...body, type: path });
  }

  #hearPhrase({ DisplayText: text = "", RecognitionStatus: status = "" }: AzureMessage["body"]): void {
    if (EMPTY.has(status)) return;
    if (status !== "Success") {
      const message = `${VENDOR} ended the recognition: ${errorText(status, this.#args.key)}`;
      return this.#link.fail(new ProviderError(message, { retryable: true }));
    }
    if (this.#ending) this.#said = joined(this.#said, text);
    else this.#pieces.final(text, false);
  }

  #turnIsOver(): void {
    this.#sender.turn = null;
    if (!this.#ending) return;
    this.#ending.cancel();
    this.#ending = null;
    const text = this.#said;
    this.#said = "";
    this.#pieces.final(text, true);
    this.#link.release();
  }
}
