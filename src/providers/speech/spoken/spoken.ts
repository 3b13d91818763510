// Wraps every synthesizer: turns written text into what people would say, in the language of the
// utterance, and reports progress in terms of the written text. So transcripts and records keep
// what was written, whatever a voice makes of it.
import type { SynthesisEvent, SynthesisOptions, Synthesizer } from "#providers/speech/port.ts";
import { dropMarkup, MARKUP_START, type MarkupState } from "./markup.ts";
import { sayInWords } from "./said.ts";
import { Spelling } from "./spelling.ts";

/** `signs`: everything but markup is passed on as it is written. */
export type Manner = "words" | "signs";

export function saidAsWritten(synthesizer: Synthesizer, manner: Manner): Synthesizer {
  return {
    name: synthesizer.name,
    open: (options, publish) => {
      const script = new Script(options, manner);
      const stream = synthesizer.open(options, (event) => {
        // Signs at the end, or a text of nothing but signs: no word of the voice reports them.
        if (event.kind === "done" && script.isUnreported) {
          publish({ kind: "spoken", chars: script.written });
        }
        publish(script.inWriting(event));
      });
      return {
        write: (text) => {
          const said = script.write(text);
          if (said !== "") stream.write(said);
        },
        end: () => stream.end(),
        cancel: () => stream.cancel(),
      };
    },
  };
}

interface PieceOptions {
  language: string;
  manner: Manner;
  state: MarkupState;
}

function pieceOf(
  text: string, { language, manner, state }: PieceOptions,
): { spelling: Spelling; state: MarkupState } {
  const spelling = new Spelling(text);
  const next = dropMarkup(spelling, state);
  if (manner === "words") sayInWords(spelling, language);
  // A new line is a pause.
  spelling.replace(/(?<=[\p{L}\p{N})])\s+(?=\S)/gu, ([space]) => (space.includes("\n") ? ", " : null));
  spelling.replace(/\s+/g, " ");
  spelling.replace(/^ | (?=[,;.!?…](?:\s|$))/g, "");
  return { spelling, state: next };
}

/** One utterance, in both forms. */
class Script {
  readonly #options: PieceOptions;
  /** Where each piece begins in what is said and in what is written. */
  readonly #pieces: { spelling: Spelling; said: number; written: number }[] = [];
  #said = 0;
  #written = 0;
  /** How much of what is written was last reported as spoken. */
  #reported = 0;

  constructor({ language }: SynthesisOptions, manner: Manner) {
    this.#options = { language, manner, state: MARKUP_START };
  }

  /** What is to be said; empty: nothing of it. */
  write(text: string): string {
    const { spelling, state } = pieceOf(text, this.#options);
    this.#options.state = state;
    const isSaid = /[\p{L}\p{N}]/u.test(spelling.text);
    const said = isSaid ? `${spelling.text.trimEnd()} ` : "";
    if (isSaid) this.#pieces.push({ spelling, said: this.#said, written: this.#written });
    this.#said += said.length;
    this.#written += text.length;
    return said;
  }

  get written(): number {
    return this.#written;
  }

  get isUnreported(): boolean {
    return this.#reported < this.#written;
  }

  inWriting(event: SynthesisEvent): SynthesisEvent {
    if (event.kind !== "spoken") return event;
    this.#reported = this.#writtenAt(event.chars);
    return { kind: "spoken", chars: this.#reported };
  }

  #writtenAt(said: number): number {
    if (said >= this.#said) return this.#written;
    const piece = this.#pieces.findLast((one) => one.said <= said);
    return piece ? piece.written + piece.spelling.writtenAt(said - piece.said) : 0;
  }
}
