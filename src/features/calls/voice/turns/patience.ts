// Endpointing: how long a silence must be to end a turn, by the words before it. Plain rules over
// text, no model: a complete question needs half the patience of a sentence whose end is unclear,
// and one that breaks off half as much again. Questions are recognised in English only; full stops
// and small words at the end in four languages. The rules were tuned on
// `test/support/calls/pauses.ts`.
import { isBackchannel, listOf, wordsOf } from "./wording.ts";

/** The patience, as a share of the configured silence. */
export const SHARES = { whole: 0.5, likely: 0.6, usual: 1, open: 1.5 } as const;

type Ending = keyof typeof SHARES;

/** Something follows these. */
const UNFINISHED = listOf(
  "and|or|but|so|because|if|when|that|the|a|an|to|of|for|with|my|your|is|are|um|uh|like|well|then"
  + "|i|we|it's|i'm|your|his|her|our|their|this|these|those|some|any|every|no|very|really|just|also"
  + "|be|been|am|was|were|has|had|does|did|can|could|will|would|should|may|might|must|i've|i'd|i'll"
  + "|don't|doesn't|didn't|can't|into|from|at|by|between|until|during|since|per|under|without|than"
  + "|rather|either|whether|although|while|unless|as|they|he|she|you're|there's|let's|named|called"
  + "|und|oder|aber|weil|wenn|dass|der|die|das|ein|eine|einen|zu|mit|für|mein|meine|ähm|äh|also|ich"
  + "|wir|sie|mir|gern|gerne|von|bei|nach|im|am|zum|zur|kostet|y|o|pero|porque|que|el|la|un|una|de"
  + "|con|mi|para|por|quiero|reservar|et|ou|mais|parce que|le|les|une|avec|mon|ma|pour|voudrais");
/** Something follows these, unless they end a question. */
const STRANDED = listOf("in|on|about|up|with|for|to|from|at|of|like|next|around|near|off|over");
/** Verbs that need an object, and openings that need anything. */
const OPEN_VERBS = listOf(
  "book|change|want|need|have|get|give|send|buy|order|cancel|make|take|find|bring|leave|say|think"
  + "|guess|know|said|sent|got|bought|tell|ask|put|use|move|rent|wondering|wanted|needed|add|live");
const OPEN_PHRASES = /(?:^| )(?:(?:tell|give|show|send|let|bring|get) (?:me|us)|want you|what about|how about|what time|how much|how many|how long|next to|the other|the same|and then|thing is|(?:can|could|would|will) you(?: please)?|excuse me|possible|like to)$/;
const QUESTION = listOf(
  "what|what's|when|when's|where|where's|who|who's|why|how|how's|which|whose|can|could|do|does|did"
  + "|is|are|will|would|should|may|have|has|am");
/** People say these when they are done. */
const CLOSING = /(?:^| )(?:please|thanks|thank you(?: so| very)?(?: much)?|good ?bye|bye(?: bye)?|that is all|that's all|that is it|that's it|bitte|danke|gracias|merci|grazie)$/;

const QUESTION_WORDS_MIN = 4;
const SENTENCE_WORDS_MIN = 5;

const SPOKEN_DIGITS = listOf("zero|oh|one|two|three|four|five|six|seven|eight|nine|double|null|eins"
  + "|zwei|drei|vier|fünf|sechs|sieben|acht|neun|uno|dos|tres|cuatro|cinco|seis|siete|ocho|nueve");
const isDigits = (word: string): boolean => /\d$/.test(word) || SPOKEN_DIGITS.has(word);

/**
 * A number may go on: a telephone number is read out in groups, and recognisers put a full stop
 * after any of them.
 */
function endOfNumber(words: string[]): Ending | null {
  const digits = words.length - 1 - words.findLastIndex((word) => !isDigits(word));
  if (digits === 0) return null;
  // "The blue one", "at 7".
  const isCount = digits === 1 && !/\d{3}$/.test(words.at(-1) ?? "");
  return isCount && words.length > 1 ? "usual" : "open";
}

export function endingOf(text: string): Ending {
  const words = wordsOf(text);
  const last = words.at(-1) ?? "";
  const spoken = words.join(" ");
  const isStopped = /[.!?…。！？]["')\]]*\s*$/.test(text);
  const number = endOfNumber(words);
  const opening = words.findIndex((word) => !isBackchannel(word) && !GREETINGS.has(word));
  const isQuestion = QUESTION.has(words[opening] ?? "");
  if (/[,–—-]\s*$/.test(text)) return "open";
  if (number !== null) return number === "open" || !isStopped ? number : "whole";
  if (isStopped && (/[?？]/.test(text.slice(-3)) || !UNFINISHED.has(last))) return "whole";
  const isLong = words.length - opening >= QUESTION_WORDS_MIN;
  if (OPEN_PHRASES.test(spoken)) return "open";
  // "How long does that take", "who is it for".
  if (isQuestion && isLong && (STRANDED.has(last) || OPEN_VERBS.has(last))) return "usual";
  if (last === "that" && STRANDED.has(words.at(-2) ?? "")) return "usual";
  if (UNFINISHED.has(last) || STRANDED.has(last) || OPEN_VERBS.has(last)) return "open";
  if (CLOSING.test(spoken)) return "whole";
  if (isQuestion && isLong) return "whole";
  return words.length >= SENTENCE_WORDS_MIN ? "likely" : "usual";
}

/** Below this the customer sounds like going on, and is waited for whatever the words are. */
const GOES_ON = 0.5;

/**
 * Combines the words with how they sounded (`judged`: the probability of an end): a turn that ended
 * by both is answered soonest; when the two disagree, patience is as usual or longer.
 */
export function judgedEnding(ending: Ending, judged: number | null): Ending {
  if (judged === null) return ending;
  if (judged < GOES_ON) return "open";
  return ending === "open" ? "usual" : "whole";
}

const GREETINGS = listOf("hello|hi|hey|good|morning|afternoon|evening|and|so|but|well|then|please");
