// One thing the assistant says: its audio as it arrives, how far it is played, and which words that
// was. Made by speech.ts and realtime-session.ts, played by mixer.ts.
import { wholeWords } from "#core/words.ts";
import type { Pcm } from "#providers/speech/port.ts";

/** How far back a clear may reach; older audio is let go. */
const REWIND_SECONDS = 2;
/** Engines that do not time their words are taken to need this long for one. */
const WORD_MS_MAX = 900;

export class Utterance {
  /** All the text that was given to the synthesizer. */
  text = "";
  /** No more audio will come. */
  ended = false;
  /** Its first sound was played; engines begin with silence. */
  isAudible = false;
  readonly #rate: number;
  #chunks: Pcm[] = [];
  /** Samples before the first chunk kept. */
  #base = 0;
  #pushed = 0;
  #played = 0;
  #cursor = 0;
  #cursorOffset = 0;
  readonly #marks: { samples: number; chars: number }[] = [];

  constructor(rate: number) {
    this.#rate = rate;
  }

  push(pcm: Pcm): void {
    if (pcm.length === 0) return;
    this.#chunks.push(pcm);
    this.#pushed += pcm.length;
  }

  /** All audio pushed so far speaks the first `chars` of the text. */
  mark(chars: number): void {
    this.#marks.push({ samples: this.#pushed, chars });
  }

  /**
   * For engines that do not report which words their audio speaks, while text and audio still grow:
   * takes all audio so far to speak all text so far.
   */
  markEvenly(): void {
    this.#marks.splice(0, Infinity, { samples: this.#pushed, chars: this.text.length });
  }

  get hasAudio(): boolean {
    return this.#pushed > this.#played;
  }

  get isPlayedOut(): boolean {
    return this.ended && !this.hasAudio;
  }

  get wasHeard(): boolean {
    return this.#played > 0;
  }

  get playedMs(): number {
    return (this.#played * 1000) / this.#rate;
  }

  /** Copies the next samples; fewer than `into` holds when there are no more. */
  read(into: Pcm): number {
    let count = 0;
    while (count < into.length) {
      const chunk = this.#chunks[this.#cursor];
      if (!chunk) break;
      const take = Math.min(chunk.length - this.#cursorOffset, into.length - count);
      into.set(chunk.subarray(this.#cursorOffset, this.#cursorOffset + take), count);
      count += take;
      this.#cursorOffset += take;
      if (this.#cursorOffset === chunk.length) {
        this.#cursor += 1;
        this.#cursorOffset = 0;
      }
    }
    this.#played += count;
    this.#letGo();
    return count;
  }

  /** The last `ms` that were read have not been heard. */
  rewind(ms: number): void {
    const wanted = this.#played - Math.round((ms * this.#rate) / 1000);
    this.#played = Math.max(this.#base, Math.min(wanted, this.#played), 0);
    let left = this.#played - this.#base;
    this.#cursor = 0;
    while (left > 0 && left >= (this.#chunks[this.#cursor]?.length ?? Infinity)) {
      left -= this.#chunks[this.#cursor]?.length ?? 0;
      this.#cursor += 1;
    }
    this.#cursorOffset = left;
  }

  /** Rewinds to the start of the word that was cut, so that it is heard whole on resuming. */
  rewindToWord(): void {
    const last = this.#marks.findLast(({ samples }) => samples <= this.#played)?.samples ?? 0;
    const sinceMs = ((this.#played - last) * 1000) / this.#rate;
    this.rewind(Math.min(sinceMs, WORD_MS_MAX));
  }

  /** The text up to the last word whose end has been played. */
  heardText(): string {
    if (this.isPlayedOut) return this.text.trim();
    let before = { samples: 0, chars: 0 };
    for (const mark of this.#marks) {
      if (mark.samples > this.#played) {
        const share = (this.#played - before.samples) / (mark.samples - before.samples);
        return wholeWords(this.text, before.chars + (mark.chars - before.chars) * share);
      }
      before = mark;
    }
    return wholeWords(this.text, before.chars);
  }

  #letGo(): void {
    const keep = this.#rate * REWIND_SECONDS;
    for (let first = this.#chunks[0]; first && this.#cursor > 0; first = this.#chunks[0]) {
      if (this.#base + first.length > this.#played - keep) return;
      this.#chunks.shift();
      this.#base += first.length;
      this.#cursor -= 1;
    }
  }
}
