// Speaks one thing the assistant says: cuts text into pieces worth speaking as it arrives, has them
// synthesized, and fills the utterance the mixer plays. Made by both kinds of session and by
// announcer.ts.
import type { ProviderError } from "#core/faults.ts";
import type {
  SynthesisEvent, SynthesisOptions, SynthesisStream, Synthesizer,
} from "#providers/speech/port.ts";
import { Utterance } from "./utterance.ts";
import { pieceEnd } from "./turns/wording.ts";

/** The call ends after this many failures in a row of synthesis or of the model. */
export const FAILURES_MAX = 3;
/** How many texts of operators may be queued in one call. */
export const SAYS_MAX = 20;

/** Why something is said; decides what happens to it and whether the model gets to see it. */
export type SpeechKind = "greeting" | "reply" | "filler" | "note";

interface SpeechHandlers {
  /** The first audio is there. */
  onAudio(): void;
  /** All audio has been received; `isEmpty`: there was none. */
  onComplete(isEmpty: boolean): void;
  onFailed(error: ProviderError): void;
}

export class Speech {
  readonly kind: SpeechKind;
  /** The turn it answers; null for what is said unasked. */
  readonly turn: number | null;
  readonly utterance: Utterance;
  readonly #handlers: SpeechHandlers;
  readonly #open: () => SynthesisStream;
  #stream: SynthesisStream | null = null;
  #pending = "";
  #hasAudio = false;
  #isHeld = false;
  #isEnded = false;
  #isComplete = false;

  constructor(args: {
    kind: SpeechKind;
    turn: number | null;
    rate: number;
    /** Called when there is something to say: the language may have changed by then. */
    voice(): { synthesizer: Synthesizer; options: SynthesisOptions };
    handlers: SpeechHandlers;
  }) {
    this.kind = args.kind;
    this.turn = args.turn;
    this.#handlers = args.handlers;
    this.utterance = new Utterance(args.rate);
    this.#open = () => {
      const { synthesizer, options } = args.voice();
      return synthesizer.open(options, (event) => this.#receive(event));
    };
  }

  /** Nothing is reported, and no more than the first piece synthesized, until `release`. */
  hold(): void {
    this.#isHeld = true;
  }

  release(): void {
    this.#isHeld = false;
    if (this.#hasAudio) this.#handlers.onAudio();
    if (this.#isComplete) return this.#handlers.onComplete(!this.#hasAudio);
    this.write("");
    if (this.#isEnded) this.end();
  }

  get hasText(): boolean {
    return this.#pending !== "" || this.utterance.text !== "";
  }

  write(text: string): void {
    this.#pending += text;
    for (let end = pieceEnd(this.#pending); end > 0; end = pieceEnd(this.#pending)) {
      if (this.#isFull) return;
      this.#speak(this.#pending.slice(0, end));
      this.#pending = this.#pending.slice(end);
    }
  }

  /** No more text: what is left is spoken as it is. */
  end(): void {
    this.#isEnded = true;
    if (this.#pending.trim() !== "") {
      if (this.#isFull) return;
      this.#speak(this.#pending);
    }
    this.#pending = "";
    if (this.#stream) this.#stream.end();
    else this.#complete();
  }

  writeWhole(text: string): void {
    this.write(text);
    this.end();
  }

  get #isFull(): boolean {
    return this.#isHeld && this.#stream !== null;
  }

  cancel(): void {
    this.#pending = "";
    this.#stream?.cancel();
  }

  /** Passed on as written, so that the record has it so; the synthesizer decides how to say it. */
  #speak(piece: string): void {
    this.#stream ??= this.#open();
    this.utterance.text += piece;
    this.#stream.write(piece);
  }

  #receive(event: SynthesisEvent): void {
    switch (event.kind) {
      case "audio":
        this.utterance.push(event.pcm);
        if (!this.#hasAudio && event.pcm.length > 0) {
          this.#hasAudio = true;
          if (!this.#isHeld) this.#handlers.onAudio();
        }
        return;
      case "spoken":
        return this.utterance.mark(event.chars);
      case "done":
        return this.#complete();
      case "failed":
        this.utterance.ended = true;
        return this.#handlers.onFailed(event.error);
    }
  }

  #complete(): void {
    this.utterance.ended = true;
    this.#isComplete = true;
    if (!this.#isHeld) this.#handlers.onComplete(!this.#hasAudio);
  }
}
