// What a colleague who is asked to take a call has answered: yes, no, or neither. Plain words of
// the languages that most callers speak; in all others the colleague can press keys. Called by
// warm-session.ts.
import { listOf, wordsOf } from "#features/calls/voice/turns/wording.ts";

const YES = listOf(
  "yes|yeah|yep|yup|sure|okay|ok|accept|connect|absolutely|certainly|one|ja|jawohl|klar|gerne|gern"
  + "|verbinden|sí|si|sì|claro|vale|oui|d'accord|bien|certo|va|sim|tá|da|igen|tak|evet");
const NO = listOf(
  "no|nope|not|don't|can't|cannot|later|busy|decline|never|two|nein|nicht|später|beschäftigt"
  + "|ahora|non|pas|plus|occupé|não|nu|nem|nie|nee|hayır");

/** Null: it may be either. A no wins: a wordy refusal contains a yes more often than vice versa. */
export function takesCall(text: string): boolean | null {
  const words = wordsOf(text);
  if (words.some((word) => NO.has(word))) return false;
  return words.some((word) => YES.has(word)) ? true : null;
}
