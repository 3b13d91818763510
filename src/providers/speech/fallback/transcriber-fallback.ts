// A recogniser that outlives its vendors: when one fails in the middle of a call, the same again or
// the next hears a replay of all audio since the last final text, so that no word is lost. Made by
// enduring.ts around the engines that are set up.
import type { Logger } from "#core/logger.ts";
import type { System } from "#core/system.ts";
import type {
  Pcm, Transcriber, TranscriberStream, TranscriptEvent, TranscriptionOptions,
} from "#providers/speech/port.ts";
import { AudioTail } from "./audio-tail.ts";
import { Attempts, type Candidate, type Resting } from "./candidates.ts";

/** Audio kept while the engine has reported words of it that are not final. */
const REPLAY_MS_MAX = 30_000;
/** Audio kept while it has reported none: speech it may not have noticed yet. */
const UNHEARD_MS_MAX = 5000;
/** How long before an unrequested final its audio may end, where the engine does not say. */
const FINAL_SLACK_MS = 500;
/** A stream that has lasted this long had a connection. */
const WORKED_MS = 2000;
/** A frame as likely as this is speech. */
const SPEECH_PROBABILITY = 0.5;
/** Vendors take no messages longer than a second. */
const REPLAY_CHUNK_MS = 100;

interface FallbackOptions {
  /** All that can hear the language, best first. */
  candidates(options: TranscriptionOptions): Candidate<Transcriber>[];
  resting: Resting;
  system: System;
  log: Logger;
}

export function createTranscriberFallback(
  first: Transcriber, options: FallbackOptions,
): Transcriber {
  return {
    name: first.name,
    detectsTurns: first.detectsTurns,
    open: (wanted, publish) => new FallbackStream(options, wanted, publish),
  };
}

class FallbackStream implements TranscriberStream {
  readonly #options: FallbackOptions;
  readonly #wanted: TranscriptionOptions;
  readonly #publish: (event: TranscriptEvent) => void;
  readonly #attempts: Attempts<Transcriber>;
  readonly #tail = new AudioTail();
  #current: Candidate<Transcriber>;
  #stream: TranscriberStream | null = null;
  /** Where the audio of the current stream begins. */
  #base = 0;
  #openedMs = 0;
  #hasReported = false;
  #partial = "";
  /** The end of the audio of each final text that was requested and has not come. */
  #asked: number[] = [];
  /** Speech frames in the kept audio, each with the end of the audio when it was reported. */
  #voiced: { position: number; frameMs: number }[] = [];
  #isOver = false;

  constructor(
    options: FallbackOptions, wanted: TranscriptionOptions,
    publish: (event: TranscriptEvent) => void,
  ) {
    this.#options = options;
    this.#wanted = wanted;
    this.#publish = publish;
    const { resting, system } = options;
    const candidates = options.candidates(wanted);
    this.#attempts = new Attempts(
      candidates, (code) => resting.rests(this.#keyOf(code)), () => system.monotonicMs());
    const first = this.#attempts.first();
    if (!first) throw new Error("a recogniser is opened where none can hear the language");
    this.#current = first;
    this.#open(first);
    if (first !== candidates[0]) this.#tellReplaced(first);
  }

  write(pcm: Pcm): void {
    if (this.#isOver) return;
    this.#tail.push(pcm, this.#samples(this.#partial === "" ? UNHEARD_MS_MAX : REPLAY_MS_MAX));
    this.#stream?.write(pcm);
  }

  voiced(probability: number, frameMs: number): void {
    if (this.#isOver) return;
    if (probability >= SPEECH_PROBABILITY) {
      this.#voiced = this.#voiced.filter(({ position }) => position > this.#tail.start);
      this.#voiced.push({ position: this.#tail.end, frameMs });
    }
    this.#stream?.voiced?.(probability, frameMs);
  }

  finalize(): void {
    if (this.#isOver) return;
    this.#asked.push(this.#tail.end);
    this.#stream?.finalize();
  }

  close(): void {
    this.#isOver = true;
    this.#stream?.close();
  }

  #open({ engine }: Candidate<Transcriber>): void {
    this.#base = this.#tail.start;
    this.#openedMs = this.#options.system.monotonicMs();
    this.#hasReported = false;
    let stream: TranscriberStream | null = null;
    // Events of an engine that fails while it is being opened count, too.
    this.#stream = null;
    stream = engine.open(this.#wanted, (event) => {
      if (!this.#isOver && (this.#stream === stream || this.#stream === null)) this.#hear(event);
    });
    if (this.#isOver) stream.close();
    else this.#stream ??= stream;
  }

  #hear(event: TranscriptEvent): void {
    if (event.kind === "failed") return this.#goOn(event);
    if (event.kind === "partial") this.#partial = event.text;
    if (event.kind === "final") {
      this.#partial = "";
      this.#cover();
    }
    this.#hasReported = true;
    this.#publish(event);
  }

  /** Drops the audio that the final text covers. */
  #cover(): void {
    const toldMs = this.#stream?.coveredMs;
    if (toldMs === undefined) {
      const asked = this.#asked.shift();
      return this.#tail.dropBefore(asked ?? this.#tail.end - this.#samples(FINAL_SLACK_MS));
    }
    const position = this.#base + this.#samples(toldMs);
    this.#asked.shift();
    this.#tail.dropBefore(position);
  }

  #goOn(failure: Extract<TranscriptEvent, { kind: "failed" }>): void {
    const { log, resting, system } = this.#options;
    const lost = this.#current;
    const livedMs = system.monotonicMs() - this.#openedMs;
    const mayPass = failure.error.retryable;
    const hadWorked = mayPass && (this.#hasReported || livedMs >= WORKED_MS);
    const next = this.#attempts.after(lost, { hadWorked, mayPass });
    if (next !== lost) resting.failed(this.#keyOf(lost.code));
    if (!next) return this.#fail(failure);
    log.warn(
      { err: failure.error, lost: lost.code, next: next.code }, "speech recognition switched to another engine");
    this.#stream?.close();
    this.#current = next;
    this.#open(next);
    if (next !== lost) this.#tellReplaced(next);
    this.#replay();
  }

  #replay(): void {
    const stream = this.#stream;
    const pcm = this.#tail.copy();
    const size = this.#samples(REPLAY_CHUNK_MS);
    // Reported before the audio, so that none of it is taken for silence and dropped.
    for (const { position, frameMs } of this.#voiced) {
      if (position > this.#tail.start) stream?.voiced?.(1, frameMs);
    }
    for (let at = 0; at < pcm.length && this.#stream === stream; at += size) {
      stream?.write(pcm.subarray(at, at + size));
    }
    if (this.#asked.length === 0 || this.#stream !== stream) return;
    // One final text answers all requests.
    this.#asked = [this.#tail.end];
    stream?.finalize();
  }

  #tellReplaced({ engine: { detectsTurns } }: Candidate<Transcriber>): void {
    if (!this.#isOver) this.#publish({ kind: "replaced", detectsTurns });
  }

  /** What was understood is kept. */
  #fail(failure: TranscriptEvent): void {
    this.#isOver = true;
    if (this.#partial !== "") this.#publish({ kind: "final", text: this.#partial });
    this.#publish(failure);
  }

  #keyOf(code: string): string {
    return `${code} ${this.#wanted.language}`;
  }

  #samples(ms: number): number {
    return Math.round((ms * this.#wanted.rate) / 1000);
  }
}
