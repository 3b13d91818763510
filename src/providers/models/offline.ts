// The embedded model: needs no account, no network and no weights. It looks the last question up in
// what it was given (system prompt, knowledgebase, tool results) and repeats the sentences that
// fit, with the document they are from, or says that there are none. It makes nothing up, and the
// only function it calls is the search of a knowledgebase. Made by the catalog.
import { ProviderError } from "#core/faults.ts";
import { LIMITS } from "#core/limits.ts";
import { wait, type System } from "#core/system.ts";
import { jsonOf, recordOf, textOf, wholeStart } from "#core/values.ts";
import {
  REFERENCE_HEAD, type LanguageModel, type ModelDelta, type ModelMessage, type ModelRequest,
} from "./port.ts";

const PACE_MS = 15;
const WORDS_PER_DELTA = 3;
const FACTS_MAX = 4000;
const SENTENCES_PER_REPLY = 3;
const REPLY_CHARS_MAX = 800;
/** Less of the question than this is a chance hit. */
const SHARE_MIN = 0.34;
/** Sentences this much weaker than the best one would only blur the reply. */
const SHARE_OF_BEST = 0.6;

const NOTHING_FOUND =
  "I am the offline model of this assistant: I can only answer from its instructions and " +
  "documents, and I found nothing about that in them.";

const WORD = /[\p{L}\p{N}][\p{L}\p{N}\p{M}]*/gu;

// Words that say nothing about the subject, for the languages most asked for.
const STOP_WORDS = wordSet(
  "a about all also am an and any are as at be been but by can could did do does for from get give",
  "had has have he her here him his how i if in into is it its just let like many may me much my no not of",
  "on one or our please s say she should so some t tell than that the their them then there these",
  "they this to too up us was we were what when where which who why will with would you your",
  "der die das den dem des ein eine einen und oder aber ist sind war wie was wer wo wann warum ich",
  "du er sie es wir ihr mir mich mit von zu im in auf für kann können gibt es bitte haben habe hat",
  "el la los las un una y o pero es son cómo qué quién dónde cuándo por para con de del en me mi su",
  "tiene tienen hay puede puedo le les et ou mais est sont comment quoi qui où quand pourquoi pour",
  "avec des du dans je tu il elle nous vous mon votre il lo gli i e ma che chi come dove quando per",
  "con di da nel o a os as e mas é são como onde quando com do da em no na eu você",
);

const THANKS = wordSet(
  "thanks thank thx cheers danke dank gracias merci grazie obrigado obrigada mulțumesc");
const FAREWELLS = wordSet(
  "bye goodbye tschüss tschüß tschau wiedersehen wiederhören adiós revoir bientôt arrivederci",
  "adeus tchau revedere",
);
const FAREWELL_PHRASE =
  /\b(?:see you|hasta luego|bis (?:bald|dann)|good night|gute nacht|have an? \p{L}+ (?:day|evening|night|weekend|one))\b/giu;
/** Words of thanks and farewells, beside stop words. */
const CHATTER = wordSet(
  "ok okay great good fine perfect cool nice lovely wonderful super very lot well now then later soon else",
  "nothing help time ve tomorrow gut alles viel vielen sehr hilfe schönen tag abend muchas bien todo ayuda",
  "beaucoup bonne journée aide au mille buona giornata buen día bom dia molto aiuto muito ajuda",
);

const GREETING =
  /^\W*(hi|hello|hey|hola|hallo|bonjour|salut|ciao|olá|buna|bună|good (morning|day|afternoon|evening)|guten (morgen|tag|abend)|buenos días|buenas tardes)(?!\p{L})(?:[^\p{L}?]+[\p{L}'’-]+){0,3}[^\p{L}?]*$/iu;
/** Sentences that tell the assistant how to behave: no answer to anybody, and not to be recited. */
const INSTRUCTION =
  /^(you|your|always|never|do not|don't|be|keep|answer|reply|respond|speak|talk|ask|use|avoid|if the (user|caller|customer)|when the (user|caller|customer)|greet|make sure|remember)\b/iu;
const NAME =
  /\b(?:[Yy]ou are|[Yy]our name is|[Yy]ou're) (\p{Lu}[\p{L}'-]*(?: \p{Lu}[\p{L}'-]*){0,2})/u;
const WRITTEN_GREETING = /^\W*(?:greeting|welcome message|first message)\s*:\s*(.+)$/imu;

const SEARCH_FUNCTION = "search_knowledgebase";
/** How reference text begins a passage: `[document (page 3)] Heading:` */
const SOURCE_LINE = /^\[([^\]]{1,400})\](?: (.{1,400}):)?$/u;

/** Scripts that are written without spaces, or glue particles to words. */
const UNSPACED =
  /[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Hang}\p{sc=Thai}\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}]/u;

interface Fact {
  text: string;
  /** The document it is from; empty for the assistant's own instructions. */
  source: string;
  terms: Set<string>;
}

interface OfflineModelOptions {
  system: System;
  /** Pause between deltas, so that what listens to a stream can be tried; 0 for none. */
  paceMs?: number | undefined;
}

export function createOfflineModel(options: OfflineModelOptions): LanguageModel {
  const { system, paceMs = PACE_MS } = options;
  async function* stream(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelDelta[]> {
    refuseIfAborted(signal);
    const query = searchFor(request);
    if (query !== null) {
      const argumentsJson = JSON.stringify({ query });
      const call = { id: "search_1", name: SEARCH_FUNCTION, argumentsJson };
      yield [{ kind: "function_call", call }, { kind: "finish", reason: "function_calls", usage: null }];
      return;
    }
    const words = replyTo(request.messages).match(/\s*\S+/gu) ?? [];
    const said = words.slice(0, Math.max(0, request.tokensMax));
    for (let at = 0; at < said.length; at += WORDS_PER_DELTA) {
      if (at > 0 && paceMs > 0) await wait(system, paceMs, signal);
      refuseIfAborted(signal);
      yield [{ kind: "text", text: said.slice(at, at + WORDS_PER_DELTA).join("") }];
    }
    refuseIfAborted(signal);
    const reason = said.length < words.length ? "length" : "stop";
    yield [{ kind: "finish", reason, usage: null }];
  }
  return { stream };
}

function refuseIfAborted(signal: AbortSignal): void {
  if (!signal.aborted) return;
  const { reason } = signal;
  throw new ProviderError("the model request was aborted", { retryable: false, cause: reason });
}

/** The query to search for before answering; null when nothing can be, or has been, searched. */
function searchFor({ functions, messages }: ModelRequest): string | null {
  const last = messages.at(-1);
  if (last?.role !== "user" || !functions.some(({ name }) => name === SEARCH_FUNCTION)) return null;
  const question = wholeStart(last.content, LIMITS.messageCharsMax).trim();
  const isChat = question === "" || courtesyTo(question) !== null || GREETING.test(question);
  return isChat ? null : question;
}

/** Passages of a search as reference text; other results of functions as they are. */
function foundText(content: string): string {
  const { results } = recordOf(jsonOf(content)) ?? {};
  if (!Array.isArray(results)) return content;
  return results.map((item: unknown) => {
    const { document, heading, page, url, text } = recordOf(item) ?? {};
    const place = [page === undefined ? "" : `page ${textOf(page) || Number(page)}`, textOf(url)]
      .filter((part) => part !== "").join(", ");
    const head = textOf(heading) === "" ? "" : ` ${textOf(heading)}:`;
    return `[${textOf(document)}${place === "" ? "" : ` (${place})`}]${head}\n${textOf(text)}`;
  }).join("\n\n");
}

function replyTo(messages: ModelMessage[]): string {
  const prompt = messages.filter(({ role }) => role === "system").map(({ content }) => content);
  const questionAt = messages.findLastIndex(({ role }) => role === "user");
  const question = wholeStart(messages[questionAt]?.content ?? "", LIMITS.messageCharsMax).trim();
  const courtesy = courtesyTo(question);
  if (courtesy !== null) return courtesy;
  if (question === "" || GREETING.test(question)) return greeting(prompt.join("\n"));
  const found = messages.slice(questionAt).filter(({ role }) => role === "function");
  const before = messages[questionAt - 1]?.content ?? "";
  const reference = before.startsWith(REFERENCE_HEAD) ? [before.slice(REFERENCE_HEAD.length)] : [];
  const given = [...prompt, ...reference, ...found.map(({ content }) => foundText(content))];
  const facts = factsOf(given.join("\n\n").slice(0, LIMITS.promptCharsMax));
  return bestFacts(facts, termsOf(question)) ?? NOTHING_FOUND;
}

/** The reply to thanks, a farewell or both and no more; null: something else is said. */
function courtesyTo(question: string): string | null {
  if (/[?？]/u.test(question)) return null;
  const words = wordsOf(question.replace(FAREWELL_PHRASE, " bye "));
  const isThanks = words.some((word) => THANKS.has(word));
  const isFarewell = words.some((word) => FAREWELLS.has(word));
  if (!isThanks && !isFarewell) return null;
  const known = [STOP_WORDS, THANKS, FAREWELLS, CHATTER];
  if (!words.every((word) => known.some((some) => some.has(word)))) return null;
  const welcome = isThanks ? "You are welcome." : "";
  return `${welcome} ${isFarewell ? "Goodbye!" : "What else would you like to know?"}`.trim();
}

function greeting(prompt: string): string {
  const written = WRITTEN_GREETING.exec(prompt)?.[1]?.trim();
  if (written) return shortened(written.replace(/^["“](.+)["”]$/u, "$1"));
  const name = NAME.exec(prompt)?.[1];
  return `Hello!${name ? ` This is ${name}.` : ""} What would you like to know?`;
}

/** Sentences, each with its terms and those of the heading or question above it. */
function factsOf(text: string): Fact[] {
  const facts: Fact[] = [];
  let heading: string[] = [];
  let source = "";
  for (const line of text.split(/\r?\n/u)) {
    const trimmed = line.replace(/^[\s>*•-]+/u, "").trim();
    const from = SOURCE_LINE.exec(trimmed);
    if (from) {
      source = from[1] ?? "";
      heading = termsOf(from[2] ?? "");
      continue;
    }
    if (trimmed === "") heading = [];
    if (!/[\p{L}\p{N}]/u.test(trimmed) || /^<[^>]*>$/u.test(trimmed)) continue;
    if (/^#|[:?：？]$/u.test(trimmed)) {
      heading = termsOf(trimmed);
      continue;
    }
    for (const sentence of trimmed.split(/(?<=[.!?])\s+|(?<=[。！？।])/u)) {
      if (facts.length === FACTS_MAX) return facts;
      if (INSTRUCTION.test(sentence)) continue;
      const terms = new Set([...heading, ...termsOf(sentence)]);
      facts.push({ text: sentence.trim(), source, terms });
    }
  }
  return facts;
}

/** The few facts that hold most of the question, in their own order; null when none does. */
function bestFacts(facts: Fact[], question: string[]): string | null {
  const asked = [...new Set(question)].map((term) => {
    const holders = facts.filter(({ terms }) => terms.has(term)).length;
    // A rare word says more than one in every fact; one in no fact may be chatter.
    return { term, weight: Math.log(1 + (facts.length + 1) / Math.max(1, holders)) };
  });
  const whole = asked.reduce((sum, { weight }) => sum + weight, 0);
  const scored = facts.map((fact, at) => {
    const held = asked.filter(({ term }) => fact.terms.has(term));
    return { fact, at, share: held.reduce((sum, { weight }) => sum + weight, 0) / whole };
  });
  scored.sort((one, other) => other.share - one.share || one.at - other.at);
  const best = scored[0]?.share ?? 0;
  if (!(best >= SHARE_MIN)) return null;
  const chosen = scored
    .slice(0, SENTENCES_PER_REPLY)
    .filter(({ share }) => share >= best * SHARE_OF_BEST)
    .sort((one, other) => one.at - other.at);
  const sources = new Set(chosen.map(({ fact }) => fact.source).filter((source) => source !== ""));
  const cited = sources.size === 0 ? "" : ` (Source: ${[...sources].join("; ")})`;
  return shortened(chosen.map(({ fact }) => fact.text).join(" ")) + cited;
}

/** Never ends inside a surrogate pair. */
function shortened(text: string): string {
  return wholeStart(text, REPLY_CHARS_MAX);
}

/** The terms of a text: folded, stemmed words without stop words; pairs where no spaces are. */
function termsOf(text: string): string[] {
  const terms: string[] = [];
  for (const word of wordsOf(text)) {
    if (STOP_WORDS.has(word)) continue;
    if (!UNSPACED.test(word)) terms.push(stem(word));
    else if (word.length < 3) terms.push(word);
    else for (let at = 0; at + 2 <= word.length; at += 1) terms.push(word.slice(at, at + 2));
  }
  return terms;
}

/** Enough that "opens", "opening" and "open" meet; languages without these endings lose nothing. */
function stem(word: string): string {
  if (word.length <= 4) return word.replace(/(?<=\p{L}{3})s$/u, "");
  return word.replace(/ies$/u, "y").replace(/(?:ings?|ed|es|s)$/u, "").replace(/e$/u, "");
}

/** In small letters, without their accents. */
function wordsOf(text: string): string[] {
  const folded = text.normalize("NFKD").replace(/[\u0300-\u036f]/gu, "").normalize("NFC");
  return folded.toLowerCase().match(WORD) ?? [];
}

function wordSet(...lines: string[]): Set<string> {
  return new Set(wordsOf(lines.join(" ")));
}
