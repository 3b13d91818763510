// Splits questions and texts into words, for every engine's word index.
import { LIMITS } from "#core/limits.ts";

/** Scripts written without spaces, in which each character counts as a word. */
const UNSPACED = /[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}]/gu;
const WORD = /[\p{L}\p{N}][\p{L}\p{N}\p{M}]*/gu;
/** Words at least this long also match as prefixes: "opening" finds "openings", too. */
const PREFIX_CHARS_MIN = 4;

// Words of questions that say nothing about the subject: BM25 gives them little weight, yet in a
// small knowledgebase even a rare "what" would count.
const CHATTER = new Set((
  "a about an and any are as at be by can could do does did for from get give has have how i if in "
  + "is it its me much many my of on or our please should so tell than that the their there these "
  + "this to was we what when where which who why will with would you your "
  + "der die das ein eine und oder ist sind wie was wer wo wann warum ich sie es mit von zu im in "
  + "el la los las un una y o es son como que quien donde cuando por para con de del en mi su "
  + "le les et ou est sont comment quoi qui quand pourquoi pour avec des du dans je vous"
).split(" "));

/** The text with each character of such scripts set apart. */
export const indexable = (text: string): string => text.replace(UNSPACED, " $& ");

export const wordsOf = (text: string): string[] =>
  [...indexable(text.toLowerCase()).matchAll(WORD)].map(([word]) => word);

interface Term {
  word: string;
  /** The word also matches as a prefix. */
  isPrefix: boolean;
}

/** The words of a question that carry its meaning, each once. */
export function termsOf(query: string): Term[] {
  const words = wordsOf(query);
  const telling = words.filter((word) => !CHATTER.has(word));
  const terms = [...new Set(telling.length > 0 ? telling : words)].slice(0, LIMITS.searchTermsMax);
  return terms.map((word) => ({ word, isPrefix: word.length >= PREFIX_CHARS_MIN }));
}
