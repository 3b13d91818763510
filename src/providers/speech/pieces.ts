// The pieces of one recognition: the text so far, and the final texts that the call asks for, each
// in time and only once. Used by the adaptors of vendors that finalise on request.
import type { System, Timer } from "#core/system.ts";
import { afterWords, countWords } from "#core/words.ts";
import type { TranscriptEvent } from "./port.ts";

/** How long the final text may take; then the text so far is taken for it. */
export const ANSWER_WAIT_MS = 1000;
const TEXT_CHARS_MAX = 8192;

interface PiecesOptions {
  system: System;
  publish(event: TranscriptEvent): void;
  /** Asks the vendor to finish what it has heard. */
  ask(): void;
}

export class Pieces {
  readonly #options: PiecesOptions;
  #partial = "";
  /** Audio was given since the last final text. */
  #isUnfinished = false;
  /** Words of the vendor's piece that were reported as final before it was. */
  #wordsTold = 0;
  #asked = 0;
  #timer: Timer | null = null;
  #isOver = false;

  constructor(options: PiecesOptions) {
    this.#options = options;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  audioGiven(): void {
    this.#isUnfinished = true;
  }

  finalize(): void {
    if (this.#isOver) return;
    if (!this.#isUnfinished && this.#asked === 0) return this.#publishFinal("");
    this.#isUnfinished = false;
    this.#asked += 1;
    this.#timer ??= this.#options.system.after(ANSWER_WAIT_MS, () => this.#giveUp());
    this.#options.ask();
  }

  /** All the vendor understands of its piece so far. */
  partial(text: string): void {
    const fresh = this.#freshOf(text);
    if (this.#isOver || fresh === this.#partial) return;
    this.#partial = fresh;
    this.#options.publish({ kind: "partial", text: fresh });
  }

  /** The vendor has closed its piece; `isAnswer`: because it was asked to. */
  final(text: string, isAnswer: boolean, language?: string): void {
    if (this.#isOver) return;
    const fresh = this.#freshOf(text);
    this.#wordsTold = 0;
    const answered = isAnswer && this.#asked > 0;
    if (answered) this.#answered();
    if (answered || fresh !== "" || this.#partial !== "") this.#publishFinal(fresh, language);
  }

  fail(error: Extract<TranscriptEvent, { kind: "failed" }>["error"]): void {
    if (this.#isOver) return;
    this.close();
    this.#options.publish({ kind: "failed", error });
  }

  close(): void {
    this.#isOver = true;
    this.#timer?.cancel();
  }

  /** The answers are late: the text so far is taken for them, and is not reported again. */
  #giveUp(): void {
    this.#timer = null;
    const text = this.#partial;
    this.#asked = 0;
    this.#wordsTold += countWords(text);
    this.#publishFinal(text);
  }

  #answered(): void {
    this.#asked -= 1;
    this.#timer?.cancel();
    this.#timer = this.#asked === 0
      ? null
      : this.#options.system.after(ANSWER_WAIT_MS, () => this.#giveUp());
  }

  #publishFinal(text: string, language?: string): void {
    this.#partial = "";
    this.#options.publish({ kind: "final", text, ...(language ? { language } : {}) });
  }

  #freshOf(text: string): string {
    return afterWords(text.slice(0, TEXT_CHARS_MAX), this.#wordsTold);
  }
}
