// How written text is said, and that what was said is found again in what was written.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { createLoopbackSynthesizer, createWordDecoder } from "#providers/speech/loopback.ts";
import type { SynthesisEvent, Synthesizer } from "#providers/speech/port.ts";
import { saidAsWritten, type Manner } from "#providers/speech/spoken/spoken.ts";
import { createManualSystem } from "#support/manual-clock.ts";

const SAID: Record<string, [written: string, said: string][]> = {
  en: [
    ["Write to john_doe_x@example.com.", "Write to john underscore doe underscore x at example dot com."],
    ["See https://www.example.com/a-b?x=1.", "See w w w dot example dot com slash a dash b."],
    ["2*3*4 is 24.", "two times three times four is twenty-four."],
    ["It costs $12.50 or €5, or $1,234.56.", "It costs twelve dollars and fifty cents or five euros, or one thousand two hundred thirty-four dollars and fifty-six cents."],
    ["Call +1 555-010-0199.", "Call plus one, five five five, zero one zero, zero one nine nine."],
    ["On 2026-11-22 at 3:30 PM.", "On November twenty-second, twenty twenty-six at three thirty PM."],
    ["Dr. Smith, e.g. in 1987.", "Doctor Smith, for example in nineteen eighty-seven."],
    ["3.14, 1,234,567 and order 12345678.", "three point one four, one million two hundred thirty-four thousand five hundred sixty-seven and order one two three four five six seven eight."],
    ["15% of 5 km, 10-12 people & more.", "fifteen percent of five kilometers, ten to twelve people and more."],
    ["The 21st, version 1.2.3, #5.", "The twenty-first, version one dot two dot three, number five."],
  ],
  de: [
    ["Schreiben Sie an max.muster@beispiel.de.", "Schreiben Sie an max Punkt muster ät beispiel Punkt de."],
    ["Am 22.11.2026 um 15:30 Uhr.", "Am zweiundzwanzigsten November zweitausendsechsundzwanzig um fünfzehn Uhr dreißig."],
    ["Es kostet 12,50 € oder 1.234,56 Euro, z. B. 15 %.", "Es kostet zwölf Euro und fünfzig Cent oder eintausendzweihundertvierunddreißig Komma fünf sechs Euro, zum Beispiel fünfzehn Prozent."],
    ["Der 3. Mai 1987.", "Der dritte Mai neunzehnhundertsiebenundachtzig."],
    ["Tel. 030 1234567", "Telefon null drei null, eins zwei drei vier fünf sechs sieben"],
  ],
  es: [
    ["Cuesta 12,50 € o 1 €.", "Cuesta doce euros y cincuenta céntimos o un euro."],
    ["El 22/11/2026 a las 15:30.", "El veintidós de noviembre de dos mil veintiséis a las quince y treinta."],
    ["Sr. Ruiz: ana_b@ejemplo.es", "señor Ruiz: ana guion bajo b arroba ejemplo punto es"],
    ["1.234.567 personas", "un millón doscientos treinta y cuatro mil quinientos sesenta y siete personas"],
  ],
  fr: [
    ["Ça coûte 12,50 € ou 1 234 €.", "Ça coûte douze euros et cinquante centimes ou mille deux cent trente-quatre euros."],
    ["Le 22/11/2026 à 15h30.", "Le vingt-deux novembre deux mille vingt-six à quinze heures trente."],
    ["Le 1er mai, M. Dupont, n°5.", "Le premier mai, monsieur Dupont, numéro cinq."],
    ["01 23 45 67 89", "zéro un, deux trois, quatre cinq, six sept, huit neuf"],
  ],
};

const MARKUP: [written: string, said: string][] = [
  ["**Hello**, *you* _there_: `code`!", "Hello, you there: code!"],
  ["# Title\n- one\n- two", "Title, one, two"],
  ["> a quote\n\n```js\nlet go\n```\n---\nend", "a quote, let go, end"],
  ["[the page](https://x.org/y) and ![a picture](p.png)", "the page and a picture"],
  ["| a | b |\n|---|---|\n| c | d |", "a, b. c, d."],
  ["Fine 😀 👨‍👩‍👧 done", "Fine done"],
  ["snake_case_name and 2*3*4 and a_b_c@d.org", "snake_case_name and 2*3*4 and a_b_c@d.org"],
  ["5 * 3, x > y, #1, ~5, a|b, C#", "5 * 3, x > y, #1, ~5, a|b, C#"],
  [String.raw`\*not bold\*`, "*not bold*"],
];

/** What a synthesizer that stands behind it gets of one text. */
function spokenForm(text: string, language: string, manner: Manner = "words"): string {
  let said = "";
  const behind: Synthesizer = {
    name: "behind",
    open: () => ({
      write: (piece) => void (said += piece), end: () => undefined, cancel: () => undefined,
    }),
  };
  saidAsWritten(behind, manner).open({
    rate: 8000, voice: null, gender: "female", language, speed: 1, stability: 1, similarity: 1,
    hasEmotion: false,
  }, () => undefined).write(text);
  return said.trim();
}

test("[SP122] markup is not spoken, and meaningful symbols are left alone", () => {
  for (const [written, said] of MARKUP) {
    assert.equal(spokenForm(written, "en", "signs"), said);
  }
});

test("[SP123] numbers, amounts, dates, times, addresses and abbreviations are spoken in four languages", () => {
  for (const [language, texts] of Object.entries(SAID)) {
    for (const [written, said] of texts) assert.equal(spokenForm(written, language), said);
  }
});

const SCALED: [language: string, written: string, said: string][] = [
  ["en", "It costs $2.5 million.", "It costs two point five million dollars."],
  ["en", "A $5k budget, $3M or US$1 billion.", "A five thousand dollars budget, three million dollars or one billion dollars."],
  ["en", "From $1,200k to €10 bn, $20 bills.", "From one thousand two hundred thousand dollars to ten billion euros, twenty dollars bills."],
  ["de", "2,5 Mio. € oder € 3 Mrd., 1 Million €.", "zwei Komma fünf Millionen Euro oder drei Milliarden Euro, eine Million Euro."],
  ["es", "$2,5 millones o 3 mil €.", "dos coma cinco millones de dólares o tres mil euros."],
  ["fr", "2,5 M€ ou 3 k€.", "deux virgule cinq millions d'euros ou trois mille euros."],
  ["it", "$5k o 2,5 milioni €", "$5k o 2,5 milioni €"],
];

test("[SP288] an amount in thousands or millions is said with its unit behind them", () => {
  for (const [language, written, said] of SCALED) {
    assert.equal(spokenForm(written, language), said);
  }
});

const RANGES: [language: string, written: string, said: string][] = [
  ["en", "It costs $10-20.", "It costs ten to twenty dollars."],
  ["en", "It costs $10–$20, or $1,500-2,000.", "It costs ten to twenty dollars, or one thousand five hundred to two thousand dollars."],
  ["en", "$9.99-19.99 or $10-15k.", "nine dollars and ninety-nine cents to nineteen dollars and ninety-nine cents or ten to fifteen thousand dollars."],
  ["en", "Open 9am-5pm or 10:30-11:00.", "Open nine A M to five P M or ten thirty to eleven o'clock."],
  ["de", "Es kostet 10-20 €, also 10 € – 20 €.", "Es kostet zehn bis zwanzig Euro, also zehn bis zwanzig Euro."],
  ["es", "Cuesta 10-20 €.", "Cuesta diez a veinte euros."],
  ["fr", "Ça coûte 10-20 €, 9h-17h.", "Ça coûte dix à vingt euros, neuf heures à dix-sept heures."],
  ["it", "10-20 €", "10-20 euro"],
];

test("[SP375] ranges of amounts and hours are said with the word between their ends", () => {
  for (const [language, written, said] of RANGES) assert.equal(spokenForm(written, language), said);
});

const FRACTIONS: [language: string, written: string, said: string][] = [
  ["en", "Add 1/2 cup, 3/4 of it for 3 1/2 hours.", "Add one half cup, three quarters of it for three and one half hours."],
  ["en", "Page 1/2, room 5/6.", "Page one slash two, room five slash six."],
  ["en", "Closed on 3/4 all day.", "Closed on three slash four all day."],
  ["en", "Come 3/4 at noon.", "Come three slash four at noon."],
  ["de", "3/4 davon, 1 1/2 Tassen.", "drei Viertel davon, eins und ein halb Tassen."],
  ["es", "3/4 de hora", "tres cuartos de hora"],
  ["fr", "1/3 du prix", "un tiers du prix"],
];

test("[SP376] halves, thirds and quarters of something are said as fractions", () => {
  for (const [language, written, said] of FRACTIONS) {
    assert.equal(spokenForm(written, language), said);
  }
});

test("[SP377] a plus behind a number or a letter is said", () => {
  assert.equal(spokenForm("50%+ of 100+ got an A+.", "en"),
    "fifty percent plus of one hundred plus got an A plus.");
  assert.equal(spokenForm("über 50+ Leute", "de"), "über fünfzig plus Leute");
});

test("[SP289] 24/7, 24h/24 and 24:00 are said as people say them", () => {
  assert.equal(spokenForm("We are open 24/7.", "en"), "We are open twenty-four seven.");
  assert.equal(spokenForm("24/7 erreichbar", "de"), "vierundzwanzig sieben erreichbar");
  assert.equal(spokenForm("24h/24 et 7j/7", "fr"),
    "vingt-quatre heures sur vingt-quatre et sept jours sur sept");
  assert.equal(spokenForm("bis 24:00 Uhr", "de"), "bis vierundzwanzig Uhr");
});

test("[SP292] a date that does not exist is not said as another", () => {
  assert.equal(
    spokenForm("On 02/30/2026.", "en"), "On zero two slash thirty slash twenty twenty-six.");
  assert.equal(spokenForm("On 02/29/2028.", "en"), "On February twenty-ninth, twenty twenty-eight.");
});

test("[SP124] other languages get addresses, amounts, units and dates as words, and keep digits for the engine", () => {
  assert.equal(
    spokenForm("Costa 12,50 € il 2026-11-22, 15% di 5 km: a.b@esempio.it.", "it"),
    "Costa 12,50 euro il 22 novembre 2026, 15 percento di 5 chilometri: a punto b chiocciola esempio punto it.");
  assert.equal(spokenForm("a@b.ru", "ru"), "a собака b точка ru");
  assert.equal(spokenForm("x@y.com $5", "xx"), "x at y dot com 5 US dollars");
});

/** Each word that was said, and how much of the written text was spoken when it had been. */
function spoken(
  pieces: string[], manner: Manner,
): { words: string[]; told: number[]; isDone: boolean } {
  const loopback = createLoopbackSynthesizer({ system: createManualSystem() });
  const synthesizer = saidAsWritten(loopback, manner);
  const events: SynthesisEvent[] = [];
  const stream = synthesizer.open({
    rate: 8000, voice: null, gender: "male", language: "en", speed: 1, stability: 1, similarity: 1, hasEmotion: false,
  }, (event) => events.push(event));
  for (const piece of pieces) stream.write(piece);
  stream.end();
  const words: string[] = [];
  const ear = createWordDecoder(8000, ({ text }) => words.push(text));
  for (const event of events) if (event.kind === "audio") ear.write(event.pcm);
  ear.end();
  return {
    words,
    told: events.flatMap((event) => (event.kind === "spoken" ? [event.chars] : [])),
    isDone: events.at(-1)?.kind === "done",
  };
}

test("[SP125] spoken marks count in the written text", () => {
  const pieces = ["Write to **a_b@c.org**. ", "😀 ", "It is 25 now. "];
  const { words, told, isDone } = spoken(pieces, "words");
  assert.deepEqual(words, "Write to a underscore b at c dot org. It is twenty-five now.".split(" "));
  const [first = "", picture = "", last = ""] = pieces;
  const inWritten = (text: string): number => pieces.join("").indexOf(text) + text.length;
  // While the address is being said none of it is spoken; with its last word all of it is.
  assert.ok(told.includes(inWritten("to")));
  assert.ok(told.every((chars) => chars <= inWritten("to **") || chars >= inWritten(".org")));
  assert.ok(told.includes(inWritten("25")));
  assert.equal(told.at(-1), first.length + picture.length + last.length);
  assert.deepEqual(told, told.toSorted((one, other) => one - other));
  assert.ok(isDone);
});

test("[SP125] a text of symbols only is spoken when the voice is done", () => {
  const { words, told, isDone } = spoken(["~~~~a x. "], "words");
  assert.deepEqual(words, []);
  assert.deepEqual(told, [9]);
  assert.ok(isDone);
});

test("[SP125] for any text, spoken marks never go back and reach its end", () => {
  const sign = fc.constantFrom(
    "a", "Bo", "1", "22", ".", ",", " ", "\n", "*", "**", "_", "`", "|", "#", "-", "@", "$", "€", "%",
    "(", ")", "[", "](", "😀", "www.", ".com", "é", ":", "/", "\\", "~~", ">");
  const piece = fc.array(sign, { minLength: 1, maxLength: 30 }).map((signs) => `${signs.join("")} x. `);
  fc.assert(fc.property(fc.array(piece, { minLength: 1, maxLength: 4 }), (pieces) => {
    const { told, isDone } = spoken(pieces, "words");
    assert.equal(told.at(-1), pieces.join("").length);
    assert.deepEqual(told, told.toSorted((one, other) => one - other));
    assert.ok(isDone);
  }), { numRuns: 300 });
});
