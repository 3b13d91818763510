// Words of what is said and recognised, also in languages that put no spaces between them. Used by
// recognisers and by the taking of turns, which count words.

const UNSPACED =
  /[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}]/u;
const segmenter = new Intl.Segmenter("en", { granularity: "word" });

/** Where each word begins. */
const startsIn = (text: string): number[] =>
  [...text.matchAll(/\S+/g)].flatMap(({ 0: piece, index: at }) => UNSPACED.test(piece)
    ? [...segmenter.segment(piece)].flatMap(({ isWordLike, index }) =>
        isWordLike === true ? [at + index] : [])
    : [at]);

export const countWords = (text: string): number => startsIn(text).length;

/** The text after its first `count` words. */
export const afterWords = (text: string, count: number): string =>
  (count === 0 ? text : text.slice(startsIn(text)[count] ?? text.length)).trim();
