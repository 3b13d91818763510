// Words of what is said and recognised, also in languages that put no spaces between them. Used by
// recognisers and the taking of turns, which count words, and for how much of a text was heard.

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

/** As much of the text as fits into `chars` without cutting a word. */
export function wholeWords(text: string, chars: number): string {
  const end = Math.min(text.length, Math.floor(chars));
  const cut = text.slice(0, end);
  if (end >= text.length || /\s/.test(text[end] ?? "")) return cut.trim();
  const start = end - (cut.split(/\s/).at(-1) ?? "").length;
  const [piece = ""] = /^\S*/.exec(text.slice(start)) ?? [];
  const whole = UNSPACED.test(piece) ? segmenter.segment(piece).containing(end - start)?.index : 0;
  return text.slice(0, start + (whole ?? 0)).trim();
}
