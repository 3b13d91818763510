// A voice that outlives its vendors: when one fails in the middle of a sentence, the same again or
// the next speaks on from the last word that was certainly spoken. Made by enduring.ts around the
// engines that are set up.
import type { Logger } from "#core/logger.ts";
import type { System } from "#core/system.ts";
import type {
  SynthesisEvent, SynthesisOptions, SynthesisStream, Synthesizer,
} from "#providers/speech/port.ts";
import { Attempts, type Candidate, type Resting } from "./candidates.ts";

interface FallbackOptions {
  /** All that can speak the language, best first. */
  candidates(options: SynthesisOptions): Candidate<Synthesizer>[];
  resting: Resting;
  system: System;
  log: Logger;
}

/** `code`: whose voice the options name; another engine speaks with its own of that gender. */
export function createSynthesizerFallback(
  first: Candidate<Synthesizer>, options: FallbackOptions,
): Synthesizer {
  return {
    name: first.engine.name,
    open: (wanted, publish) => new FallbackStream(first.code, options, wanted, publish),
  };
}

class FallbackStream implements SynthesisStream {
  readonly #voiceOf: string;
  readonly #options: FallbackOptions;
  readonly #wanted: SynthesisOptions;
  readonly #publish: (event: SynthesisEvent) => void;
  readonly #attempts: Attempts<Synthesizer>;
  #current: Candidate<Synthesizer>;
  #stream: SynthesisStream | null = null;
  #text = "";
  /** How much of the text was spoken before the current stream. */
  #base = 0;
  #spoken = 0;
  #hasAudio = false;
  #hasEnded = false;
  #isOver = false;

  constructor(
    voiceOf: string, options: FallbackOptions, wanted: SynthesisOptions,
    publish: (event: SynthesisEvent) => void,
  ) {
    this.#voiceOf = voiceOf;
    this.#options = options;
    this.#wanted = wanted;
    this.#publish = publish;
    const { resting, system } = options;
    this.#attempts = new Attempts(
      options.candidates(wanted), (code) => resting.rests(this.#keyOf(code)),
      () => system.monotonicMs());
    const first = this.#attempts.first();
    if (!first) throw new Error("a voice is opened where none speaks the language");
    this.#current = first;
    this.#open(first);
  }

  write(text: string): void {
    if (this.#isOver || this.#hasEnded) return;
    this.#text += text;
    this.#stream?.write(text);
  }

  end(): void {
    if (this.#isOver || this.#hasEnded) return;
    this.#hasEnded = true;
    this.#stream?.end();
  }

  cancel(): void {
    this.#isOver = true;
    this.#stream?.cancel();
  }

  #open({ code, engine }: Candidate<Synthesizer>): void {
    this.#base = this.#spoken;
    this.#hasAudio = false;
    const voice = code === this.#voiceOf ? this.#wanted.voice : null;
    let stream: SynthesisStream | null = null;
    // Events of an engine that fails while it is being opened count, too.
    this.#stream = null;
    stream = engine.open({ ...this.#wanted, voice }, (event) => {
      if (!this.#isOver && (this.#stream === stream || this.#stream === null)) this.#hear(event);
    });
    if (this.#isOver) stream.cancel();
    else this.#stream ??= stream;
  }

  #hear(event: SynthesisEvent): void {
    switch (event.kind) {
      case "audio":
        this.#hasAudio ||= event.pcm.length > 0;
        return this.#publish(event);
      case "spoken":
        this.#spoken = this.#base + event.chars;
        return this.#publish({ kind: "spoken", chars: this.#spoken });
      case "done":
        this.#isOver = true;
        return this.#publish(event);
      case "failed":
        return this.#goOn(event);
    }
  }

  #goOn(failure: Extract<SynthesisEvent, { kind: "failed" }>): void {
    const { log, resting } = this.#options;
    const lost = this.#current;
    const next = this.#attempts.after(
      lost, { hadWorked: this.#hasAudio, mayPass: failure.error.retryable });
    if (next !== lost) resting.failed(this.#keyOf(lost.code));
    if (!next) {
      this.#isOver = true;
      return this.#publish(failure);
    }
    log.warn({ err: failure.error, lost: lost.code, next: next.code }, "speech synthesis switched to another engine");
    this.#stream?.cancel();
    this.#current = next;
    this.#open(next);
    const stream = this.#stream;
    const rest = this.#text.slice(this.#base);
    if (rest !== "") stream?.write(rest);
    if (this.#hasEnded && this.#stream === stream) stream?.end();
  }

  /** Includes the voice: one that an account may not use says nothing about the vendor's others. */
  #keyOf(code: string): string {
    return code === this.#voiceOf ? `${code} ${this.#wanted.voice ?? ""}` : code;
  }
}
