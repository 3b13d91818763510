// Speech from a vendor that answers a request for each piece of text with its audio; the next is
// requested while the one before is still being played, so that no gap opens. Used by the adaptors
// that synthesise over HTTP.
import { createResampler, type Resampler } from "#audio/resampler.ts";
import { ProviderError } from "#core/faults.ts";
import type { Pcm, SynthesisEvent, SynthesisOptions, SynthesisStream } from "./port.ts";
import { asProviderError } from "./vendor-http.ts";

/** Pieces requested at a time. */
const AHEAD = 2;
const ATTEMPTS = 2;

interface RequestedVoice {
  /** The name in messages for operators. */
  vendor: string;
  /** Samples per second of what it answers with: 16-bit mono. */
  rate: number;
  /** `text`: without white space around it. Throws as `VendorHttp.post` does. */
  request(
    text: string, wanted: SynthesisOptions, signal: AbortSignal,
  ): Promise<AsyncIterable<Buffer>>;
}

interface Piece {
  text: string;
  /** Audio that came before the piece's turn. */
  waiting: Pcm[];
  isWhole: boolean;
}

export class RequestedSpeech implements SynthesisStream {
  readonly #voice: RequestedVoice;
  readonly #wanted: SynthesisOptions;
  readonly #publish: (event: SynthesisEvent) => void;
  readonly #resampler: Resampler;
  readonly #abort = new AbortController();
  /** Pieces not yet reported in full, in order; the first one is reported as it arrives. */
  #pieces: Piece[] = [];
  #unasked: Piece[] = [];
  #running = 0;
  #chars = 0;
  #hasEnded = false;
  #isOver = false;

  constructor(
    voice: RequestedVoice, wanted: SynthesisOptions, publish: (event: SynthesisEvent) => void,
  ) {
    this.#voice = voice;
    this.#wanted = wanted;
    this.#publish = publish;
    this.#resampler = createResampler(voice.rate, wanted.rate);
  }

  write(text: string): void {
    if (this.#isOver || this.#hasEnded) return;
    const piece: Piece = { text, waiting: [], isWhole: false };
    this.#pieces.push(piece);
    this.#unasked.push(piece);
    this.#ask();
  }

  end(): void {
    this.#hasEnded = true;
    this.#advance();
  }

  cancel(): void {
    this.#isOver = true;
    this.#abort.abort();
  }

  #ask(): void {
    while (this.#running < AHEAD) {
      const piece = this.#unasked.shift();
      if (!piece) return;
      this.#running += 1;
      void this.#speak(piece);
    }
  }

  /** Never rejects. */
  async #speak(piece: Piece): Promise<void> {
    const { signal } = this.#abort;
    for (let attempt = 1; !this.#isOver; attempt += 1) {
      let hasAudio = false;
      try {
        for await (const pcm of this.#audio(piece.text, signal)) {
          if (this.#isOver) return;
          hasAudio = true;
          this.#receive(piece, pcm);
        }
        break;
      } catch (thrown) {
        const error = asProviderError(this.#voice.vendor, thrown, signal);
        if (this.#isOver) return;
        if (!(error instanceof ProviderError)) throw error;
        if (!hasAudio && error.retryable && attempt < ATTEMPTS) continue;
        this.cancel();
        // A retry would repeat what was heard.
        const isFinal = hasAudio && error.retryable;
        return this.#publish({
          kind: "failed",
          error: isFinal
            ? new ProviderError(error.message, { retryable: false, cause: error })
            : error,
        });
      }
    }
    this.#running -= 1;
    piece.isWhole = true;
    this.#advance();
    this.#ask();
  }

  async *#audio(text: string, signal: AbortSignal): AsyncGenerator<Pcm> {
    const body = await this.#voice.request(text.trim(), this.#wanted, signal);
    let odd: Buffer | null = null;
    for await (const chunk of body) {
      const bytes: Buffer = odd ? Buffer.concat([odd, chunk]) : chunk;
      odd = bytes.length % 2 === 1 ? bytes.subarray(-1) : null;
      const pcm = new Int16Array(bytes.length >> 1);
      if (pcm.length === 0) continue;
      Buffer.from(pcm.buffer).set(bytes.subarray(0, pcm.byteLength));
      yield pcm;
    }
  }

  #receive(piece: Piece, pcm: Pcm): void {
    if (piece === this.#pieces[0]) this.#publishAudio(pcm);
    else piece.waiting.push(pcm);
  }

  #publishAudio(pcm: Pcm): void {
    const resampled = this.#resampler.process(pcm);
    if (resampled.length > 0) this.#publish({ kind: "audio", pcm: resampled });
  }

  /** Reports what it can: complete pieces, and what has come of the one after them. */
  #advance(): void {
    for (let piece = this.#pieces[0]; piece && !this.#isOver; piece = this.#pieces[0]) {
      for (const pcm of piece.waiting.splice(0)) this.#publishAudio(pcm);
      if (!piece.isWhole) return;
      this.#pieces.shift();
      this.#chars += piece.text.length;
      this.#publish({ kind: "spoken", chars: this.#chars });
    }
    if (this.#isOver || !this.#hasEnded) return;
    this.#isOver = true;
    this.#publish({ kind: "done" });
  }
}
