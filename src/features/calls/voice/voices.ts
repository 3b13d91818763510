// The voices in a call beside the customer and the assistant, any number of them: a person with a
// microphone, a colleague on another line, music. Each has a gain of its own and hears all but
// itself. Held by mixer.ts, which takes one frame of each at every tick.
import { mixInto } from "#audio/mix.ts";
import type { Pcm } from "#providers/speech/port.ts";

export interface Voice {
  /** How loud it is to everybody else; 1: unchanged. It may change at any time. */
  gain: number;
  /** Its next frame, at the rate of the call; null: it is silent. The array is not kept. */
  next(samples: number): Pcm | null;
  /** Receives a frame of the customer, the assistant and the other voices; it may be kept. */
  hears?(frame: Pcm): void;
}

export class Voices {
  readonly #joined = new Set<Voice>();
  /** What they say in this frame; silent ones are missing. */
  readonly #saying = new Map<Voice, Pcm>();

  /** Adds a voice, until the result is called. */
  join(voice: Voice): () => void {
    this.#joined.add(voice);
    return () => {
      this.#joined.delete(voice);
      this.#saying.delete(voice);
    };
  }

  /** Whether any of the voices also hears. */
  get areListening(): boolean {
    for (const voice of this.#joined) if (voice.hears) return true;
    return false;
  }

  /** Takes the next frame of everybody; false: all are silent. */
  pull(samples: number): boolean {
    this.#saying.clear();
    for (const voice of this.#joined) {
      const frame = voice.next(samples);
      if (frame !== null) this.#saying.set(voice, frame);
    }
    return this.#saying.size > 0;
  }

  /** The frame mixed with the voices, for the customer; the same array when all are silent. */
  over(frame: Pcm): Pcm {
    return this.#saying.size === 0 ? frame : this.#mixed(frame, null);
  }

  /** Gives every voice that hears its mix of this frame. */
  deliver(customer: Pcm, assistant: Pcm): void {
    for (const voice of [...this.#joined]) {
      if (!voice.hears) continue;
      const heard = this.#mixed(customer, voice);
      mixInto(heard, assistant, 1);
      voice.hears(heard);
    }
  }

  #mixed(frame: Pcm, without: Voice | null): Pcm {
    const mixed = frame.slice();
    for (const [voice, said] of this.#saying) {
      if (voice !== without) mixInto(mixed, said, voice.gain);
    }
    return mixed;
  }
}
