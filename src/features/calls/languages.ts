// Which language a customer speaks, among those the assistant may follow them into: as the
// recogniser reports it, or else judged by the words. Called by replies.ts for every turn.

/** Fewer words may be a name or a greeting: then two such turns in a row are needed. */
const WORDS_MIN = 3;
/** The same limit for scripts that do not separate words. */
const UNPARTED_CHARS_MIN = 6;
/** How much another language's score (0 to 1) must exceed that of the present one. */
const MARGIN = 0.12;
const SCORE_MIN = 0.4;
/** Languages that the detector reports under another code. */
const DETECTED_AS: Readonly<Record<string, string>> = { id: "ms" };
const UNPARTED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/gu;

export interface SpokenLanguage {
  /** `iso_2`. */
  current: string;
  /** The language the last turn seemed to be in, when it was too short to decide; else null. */
  doubt: string | null;
}

/** Null: the language is not known, or is the present one. */
async function otherLanguage(
  text: string, detected: string | null, current: string, among: string[],
): Promise<string | null> {
  const base = detected?.slice(0, 2) ?? null;
  if (base !== null && among.includes(base)) return base === current ? null : base;
  if (text.startsWith("[") || !/\p{L}/u.test(text)) return null;
  // Loaded here, so that its tables are read only when an assistant has several languages.
  const { eld } = await import("eld/small");
  const scores = eld.detect(text).getScores() as Record<string, number>;
  const scoreOf = (code: string): number => scores[DETECTED_AS[code] ?? code] ?? 0;
  const [best] = among.toSorted((one, other) => scoreOf(other) - scoreOf(one));
  if (best === undefined || best === current || scoreOf(best) < SCORE_MIN) return null;
  return scoreOf(best) - scoreOf(current) >= MARGIN ? best : null;
}

function isLong(text: string): boolean {
  const words = text.match(/[\p{L}\p{M}'’]+/gu)?.length ?? 0;
  return words >= WORDS_MIN || (text.match(UNPARTED)?.length ?? 0) >= UNPARTED_CHARS_MIN;
}

/** The language spoken after this turn. `detected`: by the recogniser; null: it reports none. */
export async function languageAfter(
  spoken: SpokenLanguage, turn: { text: string; detected: string | null }, among: string[],
): Promise<SpokenLanguage> {
  const other = await otherLanguage(turn.text, turn.detected, spoken.current, among);
  if (other === null) return { current: spoken.current, doubt: null };
  return isLong(turn.text) || spoken.doubt === other
    ? { current: other, doubt: null }
    : { current: spoken.current, doubt: other };
}
