// What differs between languages in how signs and quantities are said. A language without an entry
// has its addresses, currencies, units and dates said in its own words, and leaves the digits to
// the engine, which knows the cases and genders of its numbers.
import { toCardinal as englishCardinal, toOrdinal as englishOrdinal } from "n2words/en-US";
import { toCardinal as frenchCardinal, toOrdinal as frenchOrdinal } from "n2words/fr-FR";
import { toCardinal as germanCardinal, toOrdinal as germanOrdinal } from "n2words/de-DE";
import { toCardinal as spanishCardinal, toOrdinal as spanishOrdinal } from "n2words/es-ES";

type Said = string | ((match: RegExpExecArray) => string | null);
type Abbreviations = readonly (readonly [RegExp, Said])[];

export interface LanguageWords {
  underscore: string;
  dash: string;
  slash: string;
  plus: string;
  minus: string;
  times: string;
  equals: string;
  and: string;
  /** Between the two ends of a range. */
  to: string;
  /** Said with the slash where a word follows, or a whole number precedes. */
  fractions: Readonly<Record<string, string>>;
  /** Before a number, for `#`. */
  number: string;
  decimal: string;
  /** The separators of whole and fraction, and of thousands. */
  decimalMark: "." | ",";
  thousands: RegExp;
  cardinal(digits: string): string;
  /** Endings after digits that make an ordinal; null: only dates have ordinals. */
  ordinalEnding: RegExp | null;
  ordinal(day: number, before: string): string;
  /** Per currency: the unit and its plural, the hundredth and its plural. */
  currencies: Record<string, readonly [string, string, string, string]>;
  /** Thousands and the like behind an amount, before its currency: one of them, and several. */
  scales: Record<string, readonly [string, string]>;
  /** `12:30` as a time; null: it is said like other numbers. */
  clock(hour: number, minute: number): string;
  abbreviations(): Abbreviations;
  /** Whether a four-digit year is said in hundreds. */
  isYearInHundreds(year: number): boolean;
  inHundreds(year: number): string;
  /** Whether all-digit dates put the month before the day. */
  monthFirst: boolean;
}

const spelt = (cardinal: (digits: string) => string) => (year: number): string => {
  const rest = year % 100;
  const hundreds = cardinal(String(Math.floor(year / 100)));
  if (rest === 0) return `${hundreds} hundred`;
  return `${hundreds} ${rest < 10 ? "oh " : ""}${cardinal(String(rest))}`;
};

/** Made for the first text in the language. */
const once = (make: () => Abbreviations): (() => Abbreviations) => {
  let made: Abbreviations | null = null;
  return () => (made ??= make());
};

/**
 * `Dr.` and the like, at the beginning of a word. One pattern: with one for each, all calls heard a
 * gap while the first text in a language was said.
 */
function short(saidBy: Record<string, string>): readonly [RegExp, Said] {
  const saidOf = new Map(
    Object.entries(saidBy).map(([text, said]) => [text.replaceAll(" ", ""), said]));
  const texts = Object.keys(saidBy)
    .map((text) => text.replaceAll(".", String.raw`\.`).replaceAll(" ", String.raw`\s?`));
  return [
    new RegExp(String.raw`(?<![\p{L}\p{N}.])(?:${texts.join("|")})(?![\p{L}\p{N}])`, "gu"),
    ([text]) => saidOf.get(text.replaceAll(/\s/g, "")) ?? null,
  ];
}

const scaled = (
  scale: readonly [string, string], ...written: string[]
): Record<string, readonly [string, string]> =>
  Object.fromEntries(written.map((text) => [text, scale]));

const ENGLISH: LanguageWords = {
  underscore: "underscore", dash: "dash", slash: "slash", plus: "plus", minus: "minus",
  times: "times", equals: "equals", and: "and", to: "to", number: "number", decimal: "point",
  decimalMark: ".", thousands: /,(?=\d{3}(?!\d))/g,
  cardinal: englishCardinal,
  ordinalEnding: /(?:st|nd|rd|th)/,
  ordinal: (day) => englishOrdinal(day),
  currencies: {
    USD: ["dollar", "dollars", "cent", "cents"], EUR: ["euro", "euros", "cent", "cents"],
    GBP: ["pound", "pounds", "penny", "pence"],
  },
  scales: {
    ...scaled(["one thousand", "thousand"], "thousand", "k", "K"),
    ...scaled(["one million", "million"], "million", "M", "m", "mn"),
    ...scaled(["one billion", "billion"], "billion", "B", "bn"),
    ...scaled(["one trillion", "trillion"], "trillion", "tn"),
  },
  clock: (hour, minute) => minute === 0
    ? `${hour} o'clock`
    : `${hour} ${minute < 10 ? `oh ${minute}` : minute}`,
  fractions: {
    "1/2": "one half", "1/3": "one third", "2/3": "two thirds", "1/4": "one quarter",
    "3/4": "three quarters",
  },
  abbreviations: once(() => [
    short({
      "Mr.": "Mister", "Mrs.": "Missus", "Ms.": "Miss", "Dr.": "Doctor", "Prof.": "Professor",
      "e.g.": "for example", "i.e.": "that is", "etc.": "et cetera", "vs.": "versus",
      "approx.": "approximately", "Ave.": "Avenue", "Blvd.": "Boulevard", "Rd.": "Road",
      "Inc.": "Incorporated", "Ltd.": "Limited", "min.": "minutes", "hrs.": "hours",
      "w/o": "without", "w/": "with",
    }),
    [/(?<![\p{L}\p{N}.])No\.\s?(?=\d)/gu, "number "],
    [/(?<=\d\s?)(?:a\.m\.|am|AM)(?![\p{L}.])/gu, "A M"],
    [/(?<=\d\s?)(?:p\.m\.|pm|PM)(?![\p{L}.])/gu, "P M"],
  ]),
  isYearInHundreds: (year) => (year >= 1100 && year < 2000) || (year >= 2010 && year < 2100),
  inHundreds: spelt(englishCardinal),
  monthFirst: true,
};

const GERMAN: LanguageWords = {
  underscore: "Unterstrich", dash: "Bindestrich", slash: "Schrägstrich", plus: "plus",
  minus: "minus", times: "mal", equals: "gleich", and: "und", to: "bis", number: "Nummer",
  decimal: "Komma", decimalMark: ",", thousands: /[.'’\u202f\u00a0](?=\d{3}(?!\d))/g,
  cardinal: germanCardinal,
  ordinalEnding: null,
  ordinal: (day, before) => {
    const ending = /(?<!\p{L})(?:am|vom|zum|bis|dem|den|des|seit|ab|nach|vor)\s*$/iu.test(before)
      ? "n"
      : /(?<!\p{L})(?:der|die|das)\s*$/iu.test(before) ? "" : "r";
    return `${germanOrdinal(day)}${ending}`;
  },
  currencies: {
    USD: ["Dollar", "Dollar", "Cent", "Cent"], EUR: ["Euro", "Euro", "Cent", "Cent"],
    GBP: ["Pfund", "Pfund", "Penny", "Pence"], CHF: ["Franken", "Franken", "Rappen", "Rappen"],
  },
  scales: {
    ...scaled(["eintausend", "tausend"], "tausend", "Tsd."),
    ...scaled(["eine Million", "Millionen"], "Million", "Millionen", "Mio.", "Mio"),
    ...scaled(["eine Milliarde", "Milliarden"], "Milliarde", "Milliarden", "Mrd.", "Mrd"),
  },
  clock: (hour, minute) =>
    `${hour === 1 ? "ein" : hour} Uhr${minute === 0 ? "" : ` ${minute}`}`,
  fractions: {
    "1/2": "ein halb", "1/3": "ein Drittel", "2/3": "zwei Drittel", "1/4": "ein Viertel",
    "3/4": "drei Viertel",
  },
  abbreviations: once(() => [
    short({
      "z. B.": "zum Beispiel", "d. h.": "das heißt", "u. a.": "unter anderem",
      "usw.": "und so weiter", "bzw.": "beziehungsweise", "ca.": "circa", "Nr.": "Nummer",
      "Tel.": "Telefon", "inkl.": "inklusive", "evtl.": "eventuell", "ggf.": "gegebenenfalls",
      "Dr.": "Doktor", "Prof.": "Professor", "Std.": "Stunden", "Min.": "Minuten",
      "zzgl.": "zuzüglich", "vgl.": "vergleiche", "St.": "Sankt", "Str.": "Straße",
    }),
    [/(?<=\p{L})str\.(?=\s*\d|\s*$)/gu, "straße"],
    // The clock says it already.
    [/(?<=\d:\d\d)\s?Uhr(?!\p{L})/gu, ""],
  ]),
  isYearInHundreds: (year) => year >= 1100 && year < 2000,
  inHundreds: (year) => {
    const hundreds = `${germanCardinal(String(Math.floor(year / 100)))}hundert`;
    return year % 100 === 0 ? hundreds : hundreds + germanCardinal(String(year % 100));
  },
  monthFirst: false,
};

const SPANISH: LanguageWords = {
  underscore: "guion bajo", dash: "guion", slash: "barra", plus: "más", minus: "menos",
  times: "por", equals: "igual a", and: "y", to: "a", number: "número", decimal: "coma",
  decimalMark: ",", thousands: /[.\u202f\u00a0](?=\d{3}(?!\d))/g,
  cardinal: spanishCardinal,
  ordinalEnding: /\.?[ºª°]/,
  ordinal: (day) => spanishOrdinal(day),
  currencies: {
    USD: ["dólar", "dólares", "centavo", "centavos"], EUR: ["euro", "euros", "céntimo", "céntimos"],
    GBP: ["libra", "libras", "penique", "peniques"], MXN: ["peso", "pesos", "centavo", "centavos"],
  },
  scales: {
    ...scaled(["mil", "mil"], "mil"),
    ...scaled(["un millón de", "millones de"], "millón", "millones", "M"),
  },
  clock: (hour, minute) => `${hour === 1 ? "una" : hour}${minute === 0 ? "" : ` y ${minute}`}`,
  fractions: {
    "1/2": "medio", "1/3": "un tercio", "2/3": "dos tercios", "1/4": "un cuarto",
    "3/4": "tres cuartos",
  },
  abbreviations: once(() => [
    short({
      "Sr.": "señor", "Sra.": "señora", "Srta.": "señorita", "Dr.": "doctor", "Dra.": "doctora",
      "Ud.": "usted", "Uds.": "ustedes", "p. ej.": "por ejemplo", "etc.": "etcétera",
      "Av.": "avenida", "Avda.": "avenida", "núm.": "número", "tel.": "teléfono",
      "Tel.": "teléfono", "aprox.": "aproximadamente", "EE. UU.": "Estados Unidos",
    }),
  ]),
  isYearInHundreds: () => false,
  inHundreds: (year) => spanishCardinal(String(year)),
  monthFirst: false,
};

const FRENCH: LanguageWords = {
  underscore: "tiret bas", dash: "tiret", slash: "barre oblique", plus: "plus", minus: "moins",
  times: "fois", equals: "égale", and: "et", to: "à", number: "numéro", decimal: "virgule",
  decimalMark: ",", thousands: /[ \u202f\u00a0](?=\d{3}(?!\d))/g,
  cardinal: frenchCardinal,
  ordinalEnding: /(?:er|re|ère|ème|e)/,
  ordinal: (day) => (day === 1 ? "premier" : frenchOrdinal(day)),
  currencies: {
    USD: ["dollar", "dollars", "cent", "cents"], EUR: ["euro", "euros", "centime", "centimes"],
    GBP: ["livre", "livres", "penny", "pence"], CHF: ["franc", "francs", "centime", "centimes"],
  },
  scales: {
    ...scaled(["mille", "mille"], "mille", "k"),
    ...scaled(["un million de", "millions de"], "million", "millions", "M"),
    ...scaled(["un milliard de", "milliards de"], "milliard", "milliards", "Md"),
  },
  clock: (hour, minute) =>
    `${hour === 1 ? "une" : hour} heure${hour > 1 ? "s" : ""}${minute === 0 ? "" : ` ${minute}`}`,
  fractions: {
    "1/2": "un demi", "1/3": "un tiers", "2/3": "deux tiers", "1/4": "un quart",
    "3/4": "trois quarts",
  },
  abbreviations: once(() => [
    short({
      "M.": "monsieur", Mme: "madame", Mlle: "mademoiselle", Dr: "docteur",
      "p. ex.": "par exemple", "etc.": "et cetera", "env.": "environ", "av.": "avenue",
      bd: "boulevard", "tél.": "téléphone", "Tél.": "téléphone", "c.-à-d.": "c'est-à-dire",
    }),
    [/(?<!\p{L})n[°º]\s?(?=\d)/giu, "numéro "],
    [/(?<![\d/])24 ?h ?\/ ?24(?![\d/])/gi, "24 heures sur 24"],
    [/(?<![\d/])7 ?j ?\/ ?7(?![\d/])/gi, "7 jours sur 7"],
  ]),
  isYearInHundreds: () => false,
  inHundreds: (year) => frenchCardinal(String(year)),
  monthFirst: false,
};

export const WORDS: Readonly<Record<string, LanguageWords>> = {
  en: ENGLISH, de: GERMAN, es: SPANISH, fr: FRENCH,
};

/** `@` and `.` of addresses. */
const ADDRESS_WORDS: Readonly<Record<string, readonly [string, string]>> = {
  ar: ["آت", "نقطة"], bg: ["маймунско а", "точка"], ca: ["arrova", "punt"], cs: ["zavináč", "tečka"],
  da: ["snabel-a", "punktum"], de: ["ät", "Punkt"], el: ["παπάκι", "τελεία"], en: ["at", "dot"],
  es: ["arroba", "punto"], et: ["ät", "punkt"], fi: ["ät", "piste"], fr: ["arobase", "point"],
  he: ["שטרודל", "נקודה"], hi: ["ऐट", "डॉट"], hr: ["et", "točka"], hu: ["kukac", "pont"],
  id: ["at", "titik"], it: ["chiocciola", "punto"], ja: ["アットマーク", "ドット"], ko: ["골뱅이", "점"],
  lt: ["eta", "taškas"], lv: ["et", "punkts"], ms: ["at", "titik"], nl: ["apenstaartje", "punt"],
  no: ["krøllalfa", "punktum"], pl: ["małpa", "kropka"], pt: ["arroba", "ponto"],
  ro: ["a rond", "punct"], ru: ["собака", "точка"], sk: ["zavináč", "bodka"], sl: ["afna", "pika"],
  sr: ["et", "tačka"], sv: ["snabel-a", "punkt"], ta: ["அட்", "டாட்"], th: ["แอท", "ดอท"],
  tl: ["at", "tuldok"], tr: ["et", "nokta"], uk: ["собачка", "крапка"], vi: ["a còng", "chấm"],
  zh: ["艾特", "点"],
};

export const addressWords = (language: string): readonly [string, string] =>
  ADDRESS_WORDS[language] ?? ["at", "dot"];
