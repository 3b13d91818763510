// A voice of the server's own in a channel: says a text to everybody in it, in place of the text
// before it, and puts on record what was heard. Used where no turns are taken: on the leg to a
// colleague, and for a caller who is on hold.
import type { Pcm, SynthesisOptions, Synthesizer } from "#providers/speech/port.ts";
import { Speech } from "./speech.ts";
import type { Voice } from "./voices.ts";
import type { Channel } from "./channel.ts";

interface AnnouncerOptions {
  channel: Pick<Channel, "join" | "rate" | "scribe">;
  synthesizer: Synthesizer;
  voice: Omit<SynthesisOptions, "rate">;
}

interface Saying {
  speech: Speech;
  hasBegun: boolean;
  /** No sound will come any more. */
  hasFailed: boolean;
  then: () => void;
}

export class Announcer {
  readonly #options: AnnouncerOptions;
  readonly #leave: () => void;
  #saying: Saying | null = null;

  constructor(options: AnnouncerOptions) {
    this.#options = options;
    const voice: Voice = { gain: 1, next: (samples) => this.#next(samples) };
    this.#leave = options.channel.join(voice);
  }

  /** Replaces what is being said; `then` runs when the text was heard, or could not be said. */
  say(text: string, then: () => void): void {
    this.hush();
    const { channel: { rate }, synthesizer, voice } = this.#options;
    const fail = (): void => {
      saying.hasFailed = true;
    };
    const speech = new Speech({
      kind: "note", turn: null, rate,
      voice: () => ({ synthesizer, options: { ...voice, rate } }),
      handlers: {
        onAudio: () => undefined,
        onComplete: (isEmpty) => isEmpty && fail(),
        onFailed: fail,
      },
    });
    const saying: Saying = { speech, hasBegun: false, hasFailed: false, then };
    this.#saying = saying;
    speech.write(text);
    speech.end();
  }

  /** Stops what is being said, and records what was heard of it. */
  hush(): void {
    const saying = this.#saying;
    this.#saying = null;
    if (!saying) return;
    saying.speech.cancel();
    if (saying.hasBegun) this.#options.channel.scribe?.assistantSaid(saying.speech, true);
  }

  close(): void {
    this.hush();
    this.#leave();
  }

  #next(samples: number): Pcm | null {
    const saying = this.#saying;
    if (!saying) return null;
    const { utterance } = saying.speech;
    if (utterance.hasAudio) {
      if (!saying.hasBegun) this.#options.channel.scribe?.assistantBegan(saying.speech);
      saying.hasBegun = true;
      const frame = new Int16Array(samples);
      utterance.read(frame);
      return frame;
    }
    if (!utterance.ended && !saying.hasFailed) return null;
    this.#saying = null;
    if (saying.hasBegun) this.#options.channel.scribe?.assistantSaid(saying.speech, false);
    saying.then();
    return null;
  }
}
