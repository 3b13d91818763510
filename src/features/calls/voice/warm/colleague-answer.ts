// What a colleague who is asked to take a call has answered: yes, no, or neither. Plain words of
// the languages that most callers speak; in all others the colleague can press keys. Called by
// warm-session.ts.
import { listOf, wordsOf } from "#features/calls/voice/turns/wording.ts";

const YES = listOf(
  "yes|yeah|yep|yup|sure|okay|ok|accept|connect|absolutely|certainly|ja|jawohl|klar|gerne|gern"
  + "|verbinden|sí|si|sì|claro|vale|oui|d'accord|bien|certo|va|sim|tá|igen|tak|evet");
const NO = listOf(
  "no|nope|not|don't|can't|cannot|later|busy|decline|never|nein|nicht|später|beschäftigt"
  + "|non|pas|plus tard|occupé|não|nem|nie|nee|hayır");
/** These mean something else in another language, unless the answer begins with them. */
const FIRST = new Map([["da", true], ["nu", false]]);
/** The keys, spoken: the whole answer, as in none of "one moment" and "which one". */
const KEYS = new Map([["one", true], ["1", true], ["two", false], ["2", false]]);
/** They contain a no, and mean a yes. */
const GLADLY = new RegExp(`(?<![\\p{L}'])(?:${[
  "no problem", "not a problem", "no bother", "no trouble", "no worries", "why not", "kein problem",
  "warum nicht", "no hay problema", "por qué no", "pas de (?:problème|souci)", "pourquoi pas",
  "nessun problema", "perché no", "sem problemas?", "geen probleem", "waarom niet",
].join("|")})(?!\\p{L})`, "giu");

const isOf = (list: Set<string>, words: string[]): boolean =>
  words.some((word, at) => list.has(word) || list.has(`${word} ${words[at + 1] ?? ""}`));

/** Null: it may be either. A no wins: a wordy refusal contains a yes more often than vice versa. */
export function takesCall(text: string): boolean | null {
  const words = wordsOf(text.replaceAll(GLADLY, "yes"));
  const [key = "", ...more] = words[0] === "press" ? words.slice(1) : words;
  const pressed = more.length === 0 ? KEYS.get(key) : undefined;
  if (pressed !== undefined) return pressed;
  const first = FIRST.get(words[0] ?? "");
  if (first === false || isOf(NO, words)) return false;
  return first === true || isOf(YES, words) ? true : null;
}
