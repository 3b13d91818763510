// What the words of a caller mean for taking turns: whether they interrupt, whether a sentence is
// over, how a filler should sound, whether a machine is talking. Plain rules over text, no model.
import { countWords as wordsCounted } from "#core/words.ts";

export const listOf = (text: string): Set<string> => new Set(text.split("|"));

/** Said while listening; they do not ask for the floor. */
const BACKCHANNELS = listOf(
  "uh|uhm|um|uh-huh|uhhuh|mhm|mm|mmm|mm-hmm|hmm|hm|ah|oh|ok|okay|yeah|yep|yes|right|sure|i see|got it"
  + "|alright|all right|good|great|cool|fine|true|exactly|aha|ja|genau|gut|ach so|achso|klar|stimmt"
  + "|sí|si|claro|vale|bueno|ya|oui|d'accord|bien|ouais|certo|va bene|sim|tá|da|bine|hai");

/** Said to stop somebody; they interrupt regardless of how many words are required otherwise. */
const STOPPERS = listOf(
  "stop|wait|no|actually|hold on|hang on|excuse me|sorry|listen|halt|warte|moment|nein"
  + "|espera|para|attends|attendez|non|aspetta|ferma|pare|stai|așteaptă|nu");

const SMALL = listOf(
  "at|by|up|in|on|it|he|she|was|be|as|from|am|ha|eh|huh|her|him|his|oh|or|off|had|has|have|they|them");

const UNFINISHED = listOf(
  "and|or|but|so|because|if|when|that|the|a|an|to|of|for|with|my|your|is|are|um|uh|like|well|then"
  + "|i|we|it's|i'm|und|oder|aber|weil|wenn|dass|der|die|das|ein|eine|zu|mit|für|mein|ähm|äh|also"
  + "|y|o|pero|porque|que|el|la|un|una|de|con|mi|et|ou|mais|parce que|le|les|une|avec|mon|ma");

const MACHINE_PHRASES = [
  /leave (me |us )?(a|your) (message|name)/, /after the (tone|beep)/, /at the (tone|beep)/,
  /voice ?mail/, /(not|n't) (available|able to (take|answer))/, /can'?t (take|come to|answer)/,
  /(has|have) been forwarded/, /(the )?(person|number|party|subscriber) you (are|have|'re) (calling|dialed|trying)/,
  /record your message/, /press (one|1|pound|hash)/, /mailbox/,
  /nach dem (signal)?ton/, /nachricht (hinterlassen|auf)/, /nicht erreichbar/,
  /después (de la|del) (señal|tono)/, /deje (su|un) mensaje/, /après le (bip|signal)/, /laissez (un|votre) message/,
];

const normal = (text: string): string =>
  text.toLowerCase().replaceAll(/[^\p{L}\p{M}\p{N}'\s-]\p{M}*/gu, " ")
    .replaceAll(/\s+/g, " ").trim();

export const wordsOf = (text: string): string[] =>
  normal(text) === "" ? [] : normal(text).split(" ");

/** Compares words regardless of case and punctuation. */
export const sameWords = (one: string, other: string): boolean => normal(one) === normal(other);

const countIn = (list: Set<string>, words: string[], at: number): number => {
  const [one = "", two] = [words[at], words[at + 1]];
  if (two !== undefined && list.has(`${one} ${two}`)) return 2;
  return list.has(one) ? 1 : 0;
};

/** Nothing but listening noises, at most four words of them. */
export function isBackchannel(text: string): boolean {
  const words = wordsOf(text);
  if (words.length === 0 || words.length > 4) return false;
  for (let at = 0; at < words.length;) {
    const count = countIn(BACKCHANNELS, words, at);
    if (count === 0) return false;
    at += count;
  }
  return true;
}

const BACKCHANNEL_STARTS = new Set([...BACKCHANNELS]
  .filter((phrase) => phrase.includes(" "))
  .map((phrase) => phrase.slice(0, phrase.indexOf(" "))));

/** Whether a further word may make it a backchannel: "I" may become "I see". */
export function isOpenPhrase(text: string): boolean {
  const words = wordsOf(text);
  return BACKCHANNEL_STARTS.has(words.at(-1) ?? "")
    && (words.length === 1 || isBackchannel(words.slice(0, -1).join(" ")));
}

/** The assistant is told to stop, whatever else is said. */
export const stops = (text: string): boolean => countIn(STOPPERS, wordsOf(text), 0) > 0;

/** What "stop" is recognised as over telephone lines, which lose its hiss. */
const HALF_STOPS = new Set(["top", "op", "stole", "stopped", "stops"]);

export const soundsLikeStop = (text: string): boolean => HALF_STOPS.has(normal(text));

export const countWords = (text: string): number => wordsCounted(normal(text));

/** Only small words, or one word repeated, as recognisers write for noises of the mouth. */
export function saysNothing(text: string): boolean {
  const words = wordsOf(text);
  const isRepeated = words.length > 1 && new Set(words).size === 1;
  return isRepeated || words.every((word) =>
    UNFINISHED.has(word) || SMALL.has(word) || BACKCHANNELS.has(word));
}

export type FillerTone = "neutral" | "negative" | "positive" | "question";

const QUESTION = /^(what|when|where|who|why|how|which|can|could|do|does|is|are|will|would|was|wie|was|wer|wo|wann|warum|können|kann|haben|gibt|qué|cómo|cuándo|dónde|quién|puede|comment|quand|où|qui|pourquoi|est-ce)(?!\p{L})/u;
const NEGATIVE = /(?<!\p{L})(not|no|never|n't|bad|wrong|problem|broken|angry|complain|terrible|unfortunately|nicht|kein|falsch|schlecht|kaputt|problema|mal|pas|mauvais)(?!\p{L})/u;
const POSITIVE = /(?<!\p{L})(yes|thanks|thank|great|perfect|good|please|love|sure|ja|danke|super|gern|sí|gracias|oui|merci)(?!\p{L})/u;

export function fillerTone(text: string): FillerTone {
  const words = normal(text);
  if (/\?\s*$/.test(text) || QUESTION.test(words)) return "question";
  if (NEGATIVE.test(words)) return "negative";
  return POSITIVE.test(words) ? "positive" : "neutral";
}

export const soundsLikeMachine = (text: string): boolean =>
  MACHINE_PHRASES.some((phrase) => phrase.test(normal(text)));

/** A sentence shorter than this is spoken together with the next one. */
const SENTENCE_CHARS_MIN = 12;
/** A clause this long is spoken at a comma rather than waited for. */
const CLAUSE_CHARS_MIN = 80;
/** Text without any stop is spoken at a space. */
const PIECE_CHARS_MAX = 240;

const SENTENCE_END = /[.!?…。！？]["'”’)\]*_~]*(?=\s)|[。！？]|\n+/gu;
const ABBREVIATION = /(?:^|\s)(?:mr|mrs|ms|dr|st|no|vs|etc|e\.g|i\.e|z\.b|bzw|ca|approx|\p{L}|\d+)\.$/iu;

/** Where the first piece worth speaking ends, with the white space behind it; 0: wait for more. */
export function pieceEnd(text: string): number {
  const end = stopIn(text.slice(0, PIECE_CHARS_MAX + 1));
  return end === 0 ? 0 : end + (/^\s+/.exec(text.slice(end))?.[0].length ?? 0);
}

function stopIn(text: string): number {
  for (const match of text.matchAll(SENTENCE_END)) {
    const end = match.index + match[0].length;
    if (end < SENTENCE_CHARS_MIN || ABBREVIATION.test(text.slice(0, end))) continue;
    return end;
  }
  if (text.length >= CLAUSE_CHARS_MIN) {
    const clause = Math.max(text.lastIndexOf(", "), text.lastIndexOf("; "), text.lastIndexOf(": "));
    if (clause >= SENTENCE_CHARS_MIN) return clause + 1;
  }
  if (text.length < PIECE_CHARS_MAX) return 0;
  const space = text.lastIndexOf(" ", PIECE_CHARS_MAX);
  return space > 0 ? space : PIECE_CHARS_MAX;
}
