// Which words the audio of ElevenLabs speaks, and the format of its messages. Used by
// elevenlabs.ts.
//
// A message with audio may bring an `alignment`: characters and when each begins, counted from the
// first sample of that message. Both occur: one per message, and one for a whole sentence with
// its first audio while the rest comes without. So words wait here until their audio is there.
import { Type, type Static, type TSchema } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";

/** Far more than one sentence has. */
export const ALIGNMENT_CHARS_MAX = 10_000;
/** The vendor's times are rounded and need not end with the audio they are about. */
const ROUNDING_MS = 50;

const Nullable = <Schema extends TSchema>(schema: Schema) =>
  Type.Optional(Type.Union([schema, Type.Null()]));

const Message = Type.Object({
  contextId: Nullable(Type.String()),
  audio: Nullable(Type.String()),
  alignment: Type.Optional(Type.Unknown()),
  isFinal: Nullable(Type.Boolean()),
  // The vendor sends these before it closes: the error as a word, a sentence and a number.
  error: Type.Optional(Type.Unknown()),
  message: Type.Optional(Type.Unknown()),
  code: Type.Optional(Type.Unknown()),
});
export type Message = Static<typeof Message>;
export const messageCheck = TypeCompiler.Compile(Message);

const Times = Type.Array(Type.Number({ minimum: 0 }), { maxItems: ALIGNMENT_CHARS_MAX });
const Alignment = Type.Object({
  // A character may be more than one unit, but not a text.
  chars: Type.Array(Type.String({ maxLength: 16 }), { maxItems: ALIGNMENT_CHARS_MAX }),
  charStartTimesMs: Times,
  charDurationsMs: Times,
});
type Alignment = Static<typeof Alignment>;
const alignmentCheck = TypeCompiler.Compile(Alignment);

/** Null: there is none, or none that can be used. */
function alignmentOf(value: unknown): Alignment | null {
  if (!alignmentCheck.Check(value)) return null;
  const { chars, charStartTimesMs: starts, charDurationsMs: durations } = value;
  return chars.length === starts.length && chars.length === durations.length ? value : null;
}

/** The audio before this sample speaks the first `chars` units of the text. */
interface WordMark {
  sample: number;
  chars: number;
}

const isSpace = (unit: string | undefined): boolean => unit !== undefined && /\s/.test(unit);

export class SpokenWords {
  /** All that was written. */
  text = "";
  readonly #rate: number;
  #marks: WordMark[] = [];
  /** How far alignments have covered the text. */
  #cursor = 0;
  /** The alignment does not match the text written, so it says nothing about it. */
  #isLost = false;

  /** `rate`: that of the samples that are counted. */
  constructor(rate: number) {
    this.#rate = rate;
  }

  /** Takes the alignment of audio whose first sample has the number `from`. */
  align(value: unknown, from: number): void {
    const alignment = this.#isLost ? null : alignmentOf(value);
    if (!alignment) return;
    // Marks still due are moved here: the audio they were for has not come.
    for (const mark of this.#marks) mark.sample = Math.min(mark.sample, from);
    const sampleAt = (ms: number): number => from + Math.round((ms * this.#rate) / 1000);
    let endMs = 0;
    for (const [number, char] of alignment.chars.entries()) {
      const startMs = alignment.charStartTimesMs[number] ?? 0;
      for (const unit of char.split("")) {
        if (isSpace(unit)) continue;
        const at = this.#next();
        if (this.text[at] !== unit) {
          this.#isLost = true;
          return;
        }
        if (isSpace(this.text[at - 1])) this.#marks.push({ sample: sampleAt(startMs), chars: at });
        this.#cursor = at + 1;
        endMs = startMs + (alignment.charDurationsMs[number] ?? 0);
      }
    }
    const end = this.#next();
    // Otherwise the word goes on in the next message.
    const isWhole = end > this.#cursor || end === this.text.length;
    if (isWhole) this.#marks.push({ sample: sampleAt(endMs), chars: end });
  }

  /** The marks before the sample with the number `to`, in the order of the text, each once. */
  due(to: number): WordMark[] {
    const latest = to + (this.#rate * ROUNDING_MS) / 1000;
    const later = this.#marks.findIndex(({ sample }) => sample > latest);
    return this.#marks.splice(0, later < 0 ? this.#marks.length : later);
  }

  /** The next position that is not white space, which alignments treat as they like. */
  #next(): number {
    let at = this.#cursor;
    while (isSpace(this.text[at])) at += 1;
    return at;
  }
}
