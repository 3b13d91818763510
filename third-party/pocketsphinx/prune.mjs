// Makes Debian's language model and dictionary small enough for a repository. Words that are rare
// or have no pronunciation go, and so do n-grams whose loss changes the model little, measured as
// relative entropy (A. Stolcke, "Entropy-based pruning of backoff language models", 1998).
// build.sh runs it:
//   node prune.mjs en-us.lm.bin cmudict-en-us.dict WORDS THRESHOLD lm.bin dictionary
//
// The format is PocketSphinx's binary trie (sphinxbase, lm_trie.c), which goes from a word to those
// before it: below a word w stand its bigrams by the word h before it, with P(w|h) and the backoff
// weight of "h w"; below each of them its trigrams by the word before h.
import { readFileSync, writeFileSync } from "node:fs";

const HEADER = Buffer.from("Trie Language Model");
const ORDER = 3;
const LOG_BASE = Math.log(1.0001);
const CODE_BITS = 16;
const BINS = 1 << CODE_BITS;
const MARKS = new Set(["<s>", "</s>"]);

const [modelFile, dictionaryFile, wordsMax, threshold, outModel, outDictionary] = process.argv.slice(2);

const bitsFor = (max) => 32 - Math.clz32(max);
const bytesFor = (entries, bits) => Math.floor(((1 + entries) * bits + 7) / 8) + 8;

/** Fields of up to 25 bits, one after the other, lowest bit first. */
function bitReader(bytes) {
  let at = 0;
  return (count) => {
    const value = (bytes.readUInt32LE(at >> 3) >>> (at & 7)) & ((1 << count) - 1);
    at += count;
    return value;
  };
}

function bitWriter(bytes) {
  let at = 0;
  return (count, value) => {
    const word = bytes.readUInt32LE(at >> 3);
    bytes.writeUInt32LE((word | (value << (at & 7))) >>> 0, at >> 3);
    at += count;
  };
}

function read(file) {
  const bytes = readFileSync(file);
  let at = HEADER.length;
  if (!bytes.subarray(0, at).equals(HEADER) || bytes[at] !== ORDER) throw new Error(`not a trie: ${file}`);
  at += 1;
  const take = (length) => bytes.subarray(at, (at += length));
  const floats = (count) => new Float32Array(new Uint8Array(take(count * 4)).buffer);
  const counts = new Uint32Array(new Uint8Array(take(ORDER * 4)).buffer);
  const [words, pairs, triples] = counts;
  take(4);
  const tables = { prob: floats(BINS), backoff: floats(BINS), longest: floats(BINS) };
  const unigrams = { prob: new Float32Array(words + 1), backoff: new Float32Array(words + 1), next: new Uint32Array(words + 1) };
  for (let word = 0; word <= words; word += 1) {
    const entry = take(12);
    unigrams.prob[word] = entry.readFloatLE(0);
    unigrams.backoff[word] = entry.readFloatLE(4);
    unigrams.next[word] = entry.readUInt32LE(8);
  }
  const wordBits = bitsFor(words);
  const nextBits = bitsFor(triples);
  const bigrams = { before: new Uint32Array(pairs), prob: new Uint16Array(pairs), backoff: new Uint16Array(pairs), next: new Uint32Array(pairs + 1) };
  const field = bitReader(take(bytesFor(pairs, wordBits + 2 * CODE_BITS + nextBits)));
  for (let pair = 0; pair <= pairs; pair += 1) {
    const [before, backoff, prob] = [field(wordBits), field(CODE_BITS), field(CODE_BITS)];
    bigrams.next[pair] = field(nextBits);
    if (pair === pairs) break;
    bigrams.before[pair] = before;
    bigrams.backoff[pair] = backoff;
    bigrams.prob[pair] = prob;
  }
  const trigrams = { before: new Uint32Array(triples), prob: new Uint16Array(triples) };
  const last = bitReader(take(bytesFor(triples, wordBits + CODE_BITS)));
  for (let triple = 0; triple < triples; triple += 1) {
    trigrams.before[triple] = last(wordBits);
    trigrams.prob[triple] = last(CODE_BITS);
  }
  take(4);
  const names = bytes.subarray(at).toString().split("\0").slice(0, words);
  return { names, tables, unigrams, bigrams, trigrams };
}

const exp = (value) => Math.exp(value * LOG_BASE);
const log = (value) => Math.log(value) / LOG_BASE;

/** The place of the bigram "before word" in the trie, or -1. */
function findBigram({ unigrams, bigrams }, before, word) {
  let [low, high] = [unigrams.next[word], unigrams.next[word + 1]];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (bigrams.before[middle] < before) low = middle + 1;
    else high = middle;
  }
  return low < unigrams.next[word + 1] && bigrams.before[low] === before ? low : -1;
}

/** Whose words pronounce something and are common enough: a new number for each, or -1. */
function chooseWords({ names, unigrams }, pronounced) {
  const ranked = [...names.keys()].filter((word) => pronounced.has(names[word]) && !MARKS.has(names[word]))
    .sort((a, b) => unigrams.prob[b] - unigrams.prob[a]).slice(0, Number(wordsMax));
  const kept = new Set(ranked);
  let number = 0;
  return Int32Array.from(names, (name, word) => (kept.has(word) || MARKS.has(name) ? number++ : -1));
}

/**
 * One order of n-grams, grouped by context: `contextOf`, `probOf`, `lowerOf` (what the shorter
 * n-gram says) and `weightOf` (how probable the context is) say what they are. Returns for each
 * whether it stays, and for each context its new backoff weight.
 */
function prune(count, contexts, { isThere, mustStay, contextOf, probOf, lowerOf, weightOf, backoffOf }) {
  const sums = new Float64Array(contexts);
  const lowerSums = new Float64Array(contexts);
  for (let at = 0; at < count; at += 1) {
    if (!isThere(at)) continue;
    sums[contextOf(at)] += probOf(at);
    lowerSums[contextOf(at)] += lowerOf(at);
  }
  const stays = new Uint8Array(count);
  const keptSums = new Float64Array(contexts);
  const keptLowerSums = new Float64Array(contexts);
  for (let at = 0; at < count; at += 1) {
    if (!isThere(at)) continue;
    const context = contextOf(at);
    const [prob, lower, backoff] = [probOf(at), lowerOf(at), exp(backoffOf(context))];
    const left = Math.max(1 - sums[context], 1e-6);
    const leftLower = Math.max(1 - lowerSums[context], 1e-6);
    const without = (left + prob) / (leftLower + lower);
    const change = Math.log(without) - Math.log(backoff);
    const loss = -weightOf(context)
      * (prob * (Math.log(lower) + Math.log(without) - Math.log(prob)) + left * change);
    if (!mustStay(at) && Math.expm1(loss) < Number(threshold)) continue;
    stays[at] = 1;
    keptSums[context] += prob;
    keptLowerSums[context] += lower;
  }
  const backoffs = Float64Array.from(keptSums, (sum, context) =>
    log(Math.max(1 - sum, 1e-6) / Math.max(1 - keptLowerSums[context], 1e-6)));
  return { stays, backoffs };
}

function pruneModel(model, numbers) {
  const { tables, unigrams, bigrams, trigrams } = model;
  const [pairs, triples] = [bigrams.before.length, trigrams.before.length];
  const wordOf = new Uint32Array(pairs);
  for (let word = 0; word < numbers.length; word += 1) {
    wordOf.fill(word, unigrams.next[word], unigrams.next[word + 1]);
  }
  const pairOf = new Uint32Array(triples);
  for (let pair = 0; pair < pairs; pair += 1) pairOf.fill(pair, bigrams.next[pair], bigrams.next[pair + 1]);
  // The bigram whose backoff weight a trigram's absence would bring into play.
  const contextOf = Int32Array.from(pairOf, (pair, triple) =>
    findBigram(model, trigrams.before[triple], bigrams.before[pair]));
  const pairProb = (pair) => exp(tables.prob[bigrams.prob[pair]]);
  const isPair = (pair) => numbers[wordOf[pair]] >= 0 && numbers[bigrams.before[pair]] >= 0;
  const wordProb = (word) => exp(unigrams.prob[word]);
  const longer = prune(triples, pairs, {
    isThere: (triple) => contextOf[triple] >= 0 && numbers[trigrams.before[triple]] >= 0 && isPair(pairOf[triple]),
    mustStay: () => false,
    contextOf: (triple) => contextOf[triple],
    probOf: (triple) => exp(tables.longest[trigrams.prob[triple]]),
    lowerOf: (triple) => pairProb(pairOf[triple]),
    weightOf: (pair) => Math.min(1, wordProb(bigrams.before[pair])) * pairProb(pair),
    backoffOf: (pair) => tables.backoff[bigrams.backoff[pair]],
  });
  // Trigrams are reached through one bigram, and their context's weight stands at another.
  const needed = new Uint8Array(pairs);
  for (let triple = 0; triple < triples; triple += 1) {
    if (longer.stays[triple] === 1) needed[pairOf[triple]] = needed[contextOf[triple]] = 1;
  }
  const shorter = prune(pairs, numbers.length, {
    isThere: isPair,
    mustStay: (pair) => needed[pair] === 1,
    contextOf: (pair) => bigrams.before[pair],
    probOf: pairProb,
    lowerOf: (pair) => wordProb(wordOf[pair]),
    weightOf: wordProb,
    backoffOf: (word) => unigrams.backoff[word],
  });
  return { longer, shorter };
}

/** The code whose value is nearest. */
function encode(table, value) {
  let [low, high] = [0, table.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (table[middle] < value) low = middle + 1;
    else high = middle;
  }
  if (low === 0) return 0;
  if (low === table.length) return low - 1;
  return value - table[low - 1] < table[low] - value ? low - 1 : low;
}

function write(file, model, numbers, { longer, shorter }) {
  const { names, tables, unigrams, bigrams, trigrams } = model;
  const kept = names.filter((_, word) => numbers[word] >= 0);
  const count = (flags) => flags.reduce((sum, flag) => sum + flag, 0);
  const [words, pairs, triples] = [kept.length, count(shorter.stays), count(longer.stays)];
  const wordBits = bitsFor(words);
  const nextBits = bitsFor(triples);
  const first = Buffer.alloc((words + 1) * 12);
  const pairBytes = Buffer.alloc(bytesFor(pairs, wordBits + 2 * CODE_BITS + nextBits));
  const tripleBytes = Buffer.alloc(bytesFor(triples, wordBits + CODE_BITS));
  const [pairField, tripleField] = [bitWriter(pairBytes), bitWriter(tripleBytes)];
  let [pairsWritten, triplesWritten] = [0, 0];
  for (const [word, number] of numbers.entries()) {
    if (number < 0) continue;
    first.writeFloatLE(unigrams.prob[word], number * 12);
    first.writeFloatLE(shorter.backoffs[word], number * 12 + 4);
    first.writeUInt32LE(pairsWritten, number * 12 + 8);
    for (let pair = unigrams.next[word]; pair < unigrams.next[word + 1]; pair += 1) {
      if (shorter.stays[pair] === 0) continue;
      pairField(wordBits, numbers[bigrams.before[pair]]);
      pairField(CODE_BITS, encode(tables.backoff, longer.backoffs[pair]));
      pairField(CODE_BITS, bigrams.prob[pair]);
      pairField(nextBits, triplesWritten);
      pairsWritten += 1;
      for (let triple = bigrams.next[pair]; triple < bigrams.next[pair + 1]; triple += 1) {
        if (longer.stays[triple] === 0) continue;
        tripleField(wordBits, numbers[trigrams.before[triple]]);
        tripleField(CODE_BITS, trigrams.prob[triple]);
        triplesWritten += 1;
      }
    }
  }
  // Behind the last word and the last pair stands where the next would begin.
  first.writeUInt32LE(pairsWritten, words * 12 + 8);
  pairField(wordBits, 0);
  pairField(CODE_BITS, 0);
  pairField(CODE_BITS, 0);
  pairField(nextBits, triplesWritten);
  const number = (value) => Buffer.from(Uint32Array.of(value).buffer);
  const text = Buffer.from(kept.map((name) => `${name}\0`).join(""));
  const raw = (values) => Buffer.from(values.buffer);
  writeFileSync(file, Buffer.concat([
    HEADER, Buffer.of(ORDER), ...[words, pairs, triples].map(number),
    number(1), raw(tables.prob), raw(tables.backoff), raw(tables.longest),
    first, pairBytes, tripleBytes, number(text.length), text,
  ]));
  console.log(`${words} words, ${pairs} bigrams, ${triples} trigrams`);
}

const lines = readFileSync(dictionaryFile, "utf8").trimEnd().split("\n");
/** "read(2)" is another way to say "read". */
const wordIn = (line) => line.slice(0, line.search(/\s/)).replace(/\(\d+\)$/, "");
const model = read(modelFile);
const numbers = chooseWords(model, new Set(lines.map(wordIn)));
write(outModel, model, numbers, pruneModel(model, numbers));
const known = new Set(model.names.filter((_, word) => numbers[word] >= 0));
writeFileSync(outDictionary, `${lines.filter((line) => known.has(wordIn(line))).join("\n")}\n`);
