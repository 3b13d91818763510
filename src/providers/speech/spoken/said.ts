// How addresses, amounts, dates, times and numbers are said. Each pass writes what it finds in
// plainer signs; the last one turns the digits that are left into words, where the language has
// them.
import type { Spelling } from "./spelling.ts";
import { addressWords, WORDS, type LanguageWords } from "./words.ts";

const MAIL = /(?<![\w.+%@-])[\w.+%-]{1,64}@(?:[\w-]{1,63}\.){1,8}[a-z]{2,24}(?![\w-])/giu;
const WEB = /(?<![\w@/])(?:https?:\/\/|www\.)[^\s<>"'()[\]]{1,2000}/gi;
const HOST = /(?<![\w@./-])(?:[a-z0-9][a-z0-9-]{0,62}\.){1,6}(?:com|org|net|info|io|ai|app|dev|edu|gov|eu|de|at|ch|fr|es|it|pt|nl|be|pl|cz|sk|hu|ro|bg|gr|se|no|dk|fi|ee|lv|lt|ie|uk|us|ca|mx|br|ar|in|jp|cn|kr|ru|ua|tr|shop|store|online|biz|me|tv)(?:\/[^\s<>"'()[\]]{0,500})?(?![\w-])/gi;

/** The length of an address without the punctuation that ends the sentence. */
const addressEnd = (address: string): number => address.search(/[.,;:!?…]*$/);

function sayAddress(address: string, language: string): string {
  const [at, dot] = addressWords(language);
  const words = WORDS[language];
  const end = addressEnd(address);
  const said = address.slice(0, end)
    .replace(/^(?:https?:\/\/|mailto:)/i, "")
    // Nobody can make use of what comes behind these when hearing it.
    .replace(/[?#].*$/, "")
    .replace(/\/$/, "")
    .replace(/^www(?=\.)/i, "w w w")
    .replaceAll("@", ` ${at} `)
    .replaceAll(".", ` ${dot} `)
    .replaceAll("_", words ? ` ${words.underscore} ` : " _ ")
    .replaceAll("-", words ? ` ${words.dash} ` : " - ")
    .replaceAll("/", words ? ` ${words.slash} ` : " / ")
    .replaceAll("+", words ? ` ${words.plus} ` : " + ")
    .replaceAll(/[%&=:~]/g, " ")
    .replaceAll(/\d+/g, (digits) => ` ${[...digits].join(" ")} `)
    .replaceAll(/ {2,}/g, " ")
    .trim();
  return said + address.slice(end);
}

const SIGNS: Readonly<Record<string, string>> = {
  $: "USD", "US$": "USD", "€": "EUR", "£": "GBP", "¥": "JPY", "₹": "INR", "₽": "RUB", "₩": "KRW",
  "₺": "TRY", "₴": "UAH", "₪": "ILS", "zł": "PLN", "Kč": "CZK", "₫": "VND", "฿": "THB", "₱": "PHP",
};
const CODES = "USD|EUR|GBP|CHF|JPY|INR|RUB|KRW|TRY|UAH|ILS|PLN|CZK|VND|THB|PHP|SEK|NOK|DKK|HUF|RON|BGN|MXN|BRL|CAD|AUD|CNY|IDR|MYR";
const SIGN = String.raw`US\$|[$€£¥₹₽₩₺₴₪₫฿₱]|zł|Kč|(?<!\p{L})(?:${CODES})(?!\p{L})`;
const AMOUNT = String.raw`\d(?:[\d.,'’\u202f\u00a0]{0,20}\d)?`;
/** Written behind an amount, with the currency before it. */
const SCALE = "[kKmMB]|mn|bn|tn|thousand|[mb]illion|trillion|milliards?|millions|millón|millones|mil|[Mm]io|[Mm]ln|[Mm]rd|[Mm]ld|Md|Tsd|Million(?:en)?|Milliarden?|tausend";
const MONEY = new RegExp(
  String.raw`(?<![A-Za-z\d.,])(?:(${SIGN})\s?(${AMOUNT})(?!\d|[.,]\d|\s?(?:${SCALE})(?!\p{L}))|(${AMOUNT})\s?(${SIGN})(?!\p{L}))`, "gu");

/** Whole and fraction of a number as this language writes it; null: it is no such number. */
function partsOf(written: string, words: LanguageWords | undefined): [string, string] | null {
  const mark = words?.decimalMark ?? (/,\d{1,2}$/.test(written) ? "," : ".");
  const plain = written.replace(words?.thousands ?? /[.,'’\u202f\u00a0 ](?=\d{3}(?!\d))/g, "");
  const [whole = "", fraction = "", ...more] = plain.split(mark);
  if (more.length > 0 || !/^\d+$/.test(whole)) {
    return /^\d+[.,]\d+$/.test(plain) ? otherMark(plain) : null;
  }
  return fraction === "" || /^\d+$/.test(fraction) ? [whole, fraction] : null;
}

const otherMark = (plain: string): [string, string] => {
  const [whole = "", fraction = ""] = plain.split(/[.,]/);
  return [whole, fraction];
};

function sayMoney(
  sign: string, amount: string, language: string, words: LanguageWords | undefined,
): string | null {
  const code = SIGNS[sign] ?? sign;
  const parts = partsOf(amount, words);
  if (!parts) return null;
  const [whole, fraction] = parts;
  const names = words?.currencies[code];
  if (!words || !names || fraction.length > 2) {
    return named(Number(`${whole}.${fraction || 0}`), language, {
      style: "currency", currency: code, currencyDisplay: "name",
      minimumFractionDigits: fraction.length, maximumFractionDigits: fraction.length,
    });
  }
  const hundredths = Number(fraction.padEnd(2, "0"));
  const main = `${articled(whole, words)} ${names[Number(whole) === 1 ? 0 : 1]}`;
  if (hundredths === 0) return main;
  const rest = `${articled(String(hundredths), words)} ${names[hundredths === 1 ? 2 : 3]}`;
  return Number(whole) === 0 ? rest : `${main} ${words.and} ${rest}`;
}

const MONEY_RANGE = new RegExp(
  String.raw`(?<![\p{L}\d.,–-])(?:(${SIGN})\s?(${AMOUNT})\s?[–-]\s?(?:\1\s?)?(${AMOUNT})|(${AMOUNT})\s?(?:${SIGN})?\s?[–-]\s?(${AMOUNT})\s?(${SIGN}))(?![\d–-]|(?!\s?(?:${SCALE})(?!\p{L}))\p{L})`, "gu");

/** `$10-20` as `10 to $20`, so that the currency is said once, behind both. */
function sayMoneyRanges(spelling: Spelling, words: LanguageWords): void {
  spelling.replace(MONEY_RANGE, ([, sign = "", low, high, first, second, behind = ""]) => {
    const [from, to] = [low ?? first ?? "", high ?? second ?? ""];
    const [least, most] = [partsOf(from, words), partsOf(to, words)];
    // A smaller number behind is subtracted.
    if (!least || !most || Number(least[0]) > Number(most[0])) return null;
    const whole = least[1] === "" ? from : `${sign}${from}${behind}`;
    return `${whole} ${words.to} ${sign}${to}${behind}`;
  });
}

const scaledPatterns = new Map<LanguageWords, RegExp>();

function scaledPattern(words: LanguageWords): RegExp {
  const known = scaledPatterns.get(words);
  if (known) return known;
  const scale = Object.keys(words.scales).map((text) => text.replace(".", String.raw`\.`))
    .sort((one, other) => other.length - one.length).join("|");
  const made = new RegExp(
    String.raw`(?<![A-Za-z\d.,])(?:(${SIGN})\s?(${AMOUNT})\s?(${scale})(?!\p{L})|(${AMOUNT})\s?(${scale})\s?(${SIGN})(?!\p{L}))`, "gu");
  scaledPatterns.set(words, made);
  return made;
}

/** `$2.5 million` as `2.5 million dollars`. */
function sayScaled(spelling: Spelling, words: LanguageWords): void {
  spelling.replace(scaledPattern(words), ([, sign, amount, scale, first, firstScale, behind]) => {
    const digits = amount ?? first ?? "";
    const names = words.currencies[SIGNS[sign ?? behind ?? ""] ?? sign ?? behind ?? ""];
    const [one, several] = words.scales[scale ?? firstScale ?? ""] ?? ["", ""];
    if (!names) return null;
    const said = `${digits === "1" ? one : `${digits} ${several}`} ${names[1]}`;
    return words === WORDS.fr ? said.replace(/ de (?=[aeiou])/, " d'") : said;
  });
}

/** Longer numbers are said digit by digit. */
const CARDINAL_DIGITS_MAX = 15;

/** A one before a noun is an article in most languages. */
function articled(digits: string, words: LanguageWords): string {
  if (Number(digits) !== 1) {
    return digits.length > CARDINAL_DIGITS_MAX ? digits : words.cardinal(digits);
  }
  if (words === WORDS.de) return "ein";
  return words === WORDS.en ? "one" : "un";
}

function named(
  value: number, language: string, options: Intl.NumberFormatOptions,
): string | null {
  try {
    return new Intl.NumberFormat(language, {
      useGrouping: false, maximumFractionDigits: 6, numberingSystem: "latn", ...options,
    }).format(value);
  } catch (error) {
    // A name Intl does not know is left to the engine.
    if (error instanceof RangeError) return null;
    throw error;
  }
}

const UNITS: Readonly<Record<string, string>> = {
  "%": "percent", km: "kilometer", cm: "centimeter", mm: "millimeter", kg: "kilogram",
  "°C": "celsius", "°F": "fahrenheit", "km/h": "kilometer-per-hour", mph: "mile-per-hour",
  GB: "gigabyte", MB: "megabyte", TB: "terabyte", kB: "kilobyte", KB: "kilobyte", ml: "milliliter",
  lb: "pound", lbs: "pound", ft: "foot",
};
const MEASURE = /(?<![\p{L}\d.,])(\d(?:[\d.,]{0,20}\d)?)\s?(%|km\/h|km|cm|mm|kg|°C|°F|mph|GB|MB|TB|kB|KB|ml|lbs|lb|ft)(?![\p{L}\d/])/gu;
const ISO_DATE = /(?<![\d-])(\d{4})-(\d\d)-(\d\d)(?![\d-])/g;
const DOT_DATE = /(?<![\d.])(\d{1,2})\.(\d{1,2})\.(\d{4})(?![\d.]\d)/g;
const SLASH_DATE = /(?<![\d/])(\d{1,2})\/(\d{1,2})\/(\d{4})(?![\d/])/g;
const CLOCK = /(?<![\d:.,])([01]?\d|2[0-3]|24(?=:00)):([0-5]\d)(?![\d:])(\s?[AP] M)?/g;
/** `9am-5pm`, `9h-17h`. */
const HOUR_RANGE = /(?<=\d ?(?:[AP] M|h(?:[0-5]\d)?)) ?[–-] ?(?=\d)/g;
const FRENCH_CLOCK = /(?<![\d:.,])([01]?\d|2[0-3])\s?h\s?([0-5]\d)?(?!\p{L})/gu;

const FRENCH_GROUPS = /(?<![\d.,+] ?)[1-9]\d{0,2}(?: \d{3}){1,4}(?! ?\d)/g;

const DAY_MS = 86_400_000;

/** Days since 1970, in the Gregorian calendar. */
function dayNumber(year: number, month: number, day: number): number {
  const shifted = month <= 2 ? year - 1 : year;
  const ofYear = Math.floor((153 * ((month + 9) % 12) + 2) / 5) + day - 1;
  return 365 * shifted + Math.floor(shifted / 4) - Math.floor(shifted / 100)
    + Math.floor(shifted / 400) + ofYear - 719_468;
}

function sayDate(language: string, year: number, month: number, day: number): string | null {
  if (month < 1 || month > 12 || day < 1) return null;
  const next = month === 12 ? dayNumber(year + 1, 1, 1) : dayNumber(year, month + 1, 1);
  if (day > next - dayNumber(year, month, 1)) return null;
  const locale = `${language}-u-ca-gregory-nu-latn`;
  const format = new Intl.DateTimeFormat(locale, { dateStyle: "long", timeZone: "UTC" });
  return format.format(dayNumber(year, month, day) * DAY_MS);
}

function sayDates(spelling: Spelling, language: string, words: LanguageWords | undefined): void {
  const date = (year: unknown, month: unknown, day: unknown): string | null =>
    sayDate(language, Number(year), Number(month), Number(day));
  spelling.replace(ISO_DATE, ([, year, month, day]) => date(year, month, day));
  spelling.replace(DOT_DATE, ([, day, month, year]) => date(year, month, day));
  spelling.replace(SLASH_DATE, ([, first, second, year]) =>
    (words?.monthFirst && Number(first) <= 12
      ? date(year, first, second)
      : date(year, second, first)));
}

const monthPatterns = new Map<string, { before: RegExp; behind: RegExp }>();

/** Patterns for a day before or after the name of a month. */
function dayPatterns(language: string): { before: RegExp; behind: RegExp } {
  const known = monthPatterns.get(language);
  if (known) return known;
  const format = new Intl.DateTimeFormat(language, { month: "long", timeZone: "UTC" });
  const names = Array.from({ length: 12 }, (_, month) =>
    format.format((month * 30.4 + 15) * DAY_MS)).join("|");
  const made = {
    before: new RegExp(String.raw`(?<![\p{L}\d])(${names})\s(\d{1,2})(?!\d|[.,]\d)`, "gu"),
    behind: new RegExp(String.raw`(?<![\p{L}\d.,])(\d{1,2})(\.?)\s(${names})(?!\p{L})`, "gu"),
  };
  monthPatterns.set(language, made);
  return made;
}

function sayDays(spelling: Spelling, language: string, words: LanguageWords): void {
  const { before, behind } = dayPatterns(language);
  if (language === "en") {
    spelling.replace(before, ([, month, day]) => `${month} ${words.ordinal(Number(day), "")}`);
    spelling.replace(behind, ([, day, , month]) => `${words.ordinal(Number(day), "")} ${month}`);
  }
  if (language === "de") {
    spelling.replace(behind, ({ 1: day, 2: dot, 3: month, index }) => (dot === ""
      ? null
      : `${words.ordinal(Number(day), spelling.text.slice(0, index))} ${month}`));
  }
  if (language === "fr") {
    spelling.replace(behind, ([, day, , month]) => (day === "1" ? `premier ${month}` : null));
  }
}

const PHONE = /(?<![\p{L}\d.,:/-])(?:\+\s?\d|\(\d|\d)[\d\s().-]{5,22}\d(?![\d:]|[.,/-]\d)/gu;

/** Digits one by one, a pause between groups; null: it is an amount. */
function sayDigits(text: string, words: LanguageWords | undefined): string | null {
  const digits = text.replaceAll(/\D/g, "");
  const isGrouped = /[\s()-]/.test(text) || /^\d{2,4}(?:\.\d{2,4}){2,}$/.test(text);
  if (digits.length < 7 || digits.length > 17) return null;
  if (!text.startsWith("+") && isGrouped && words) {
    const plain = text.replace(words.thousands, "");
    if (/^\d+$/.test(plain) && !plain.startsWith("0") && plain !== text) return null;
  }
  if (!isGrouped && /[.,]/.test(text)) return null;
  const groups = text.split(/\D+/).filter((group) => group !== "");
  const plus = text.startsWith("+") ? `${words?.plus ?? "+"} ` : "";
  return plus + groups.map((group) => [...group].join(" ")).join(", ");
}

const VERSION = /(?<![\d.,])\d{1,4}(?:\.\d{1,4}){2,5}(?![\d])/g;
const RANGE = /(?<![\d–-])(\d{1,4}) ?[–-] ?(\d{1,4})(?![\d–-])/g;
const MINUS = /(?<=^|[\s(])[-−](?=\d)/g;
const DIGITS_SPOKEN_SINGLY = 7;

function sayNumbers(spelling: Spelling, words: LanguageWords): void {
  const { cardinal, decimal } = words;
  const singly = (digits: string): string => [...digits].map((digit) => cardinal(digit)).join(" ");
  const whole = (digits: string, isPlain: boolean): string => {
    const isCode = isPlain && digits.length >= DIGITS_SPOKEN_SINGLY;
    if (/^0\d/.test(digits) || isCode) return singly(digits);
    if (isPlain && digits.length === 4 && words.isYearInHundreds(Number(digits))) {
      return words.inHundreds(Number(digits));
    }
    return digits.length > CARDINAL_DIGITS_MAX ? singly(digits) : cardinal(digits);
  };
  // Letters and digits of a code are said apart.
  spelling.replace(/(?<=\p{L})(?=\d)|(?<=\d)(?=\p{L})/gu, " ");
  spelling.replace(/(?<!\d)\d{1,15}[.,]\d{1,15}(?!\d)/g, ([text]) => {
    const [before = "", after = ""] = text.split(/[.,]/);
    const isList = words.decimalMark === "." && text.includes(",");
    return isList
      ? `${whole(before, true)}, ${whole(after, true)}`
      : `${whole(before, false)} ${decimal} ${singly(after)}`;
  });
  // A one before a noun has its gender, which the engine may know.
  const digits = words === WORDS.en ? /\d+/g : /(?<!\d)1(?! \p{L}|\d)|\d{2,}|[02-9]/gu;
  spelling.replace(digits, ([text]) => whole(text, true));
}

function sayThousands(spelling: Spelling, words: LanguageWords): void {
  const { cardinal, decimal, decimalMark, thousands } = words;
  const grouped = String.raw`(?<![\d.,])\d{1,3}(?:${thousands.source}\d{3}){1,4}`;
  const pattern = new RegExp(String.raw`(${grouped})(?:[${decimalMark}](\d{1,9}))?(?![\d])`, "g");
  spelling.replace(pattern, ([, whole = "", fraction]) => {
    const said = cardinal(whole.replaceAll(/\D/g, ""));
    if (fraction === undefined) return said;
    return `${said} ${decimal} ${[...fraction].map((digit) => cardinal(digit)).join(" ")}`;
  });
}

/** `on 3/4` and `3/4 at noon`, `3/4 a las 10`, `3/4 à 10h` are days. */
const FRACTION = /(?<![\d.,/:])(?:(\d{1,3}) ([1-3]\/[2-4])|(?<!\bon )([1-3]\/[2-4])(?= \p{L})(?! (?:at|a|à) ))(?![\d/])/giu;

function saySigns(spelling: Spelling, words: LanguageWords): void {
  spelling.replace(FRACTION, ([, whole, rest, alone]) => {
    const said = words.fractions[rest ?? alone ?? ""];
    if (said === undefined) return null;
    return whole === undefined ? said : `${words.cardinal(whole)} ${words.and} ${said}`;
  });
  spelling.replace(/(?<![\d/])24 ?\/ ?7(?![\d/])/g, "24 7");
  spelling.replace(/(?<=\d) ?[*×] ?(?=\d)/g, ` ${words.times} `);
  spelling.replace(/(?<=\d) ?\+ ?(?=\d)/g, ` ${words.plus} `);
  spelling.replace(/(?<=[\p{L}\d])\+(?![\p{L}\d+])/gu, ` ${words.plus}`);
  spelling.replace(/(?<=[\p{L}\d]) ?= ?(?=[\p{L}\d])/gu, ` ${words.equals} `);
  spelling.replace(/(?<=\d) [-−] (?=\d)/g, ` ${words.minus} `);
  spelling.replace(/(?<=\d) ?\/ ?(?=\d)/g, ` ${words.slash} `);
  spelling.replace(RANGE, ([, from, to]) => `${from} ${words.to} ${to}`);
  spelling.replace(MINUS, `${words.minus} `);
  spelling.replace(/(?<=[\p{L}\d] ?)&(?= ?[\p{L}\d])/gu, ` ${words.and} `);
  spelling.replace(/#(?=\d)/g, `${words.number} `);
}

/** Needs no words of the language: Intl has them. */
function sayQuantities(
  spelling: Spelling, language: string, words: LanguageWords | undefined,
): void {
  sayDates(spelling, language, words);
  // A narrow space never stands in a telephone number.
  if (language === "fr") {
    spelling.replace(FRENCH_GROUPS, ([text]) => text.replaceAll(" ", "\u202F"));
  }
  if (words) sayMoneyRanges(spelling, words);
  if (words) sayScaled(spelling, words);
  spelling.replace(MONEY, ([, sign, amount, amountFirst, signBehind]) =>
    sayMoney(sign ?? signBehind ?? "", amount ?? amountFirst ?? "", language, words));
  spelling.replace(MEASURE, ([, amount = "", unit = ""]) => {
    const parts = partsOf(amount, words);
    return parts && named(Number(`${parts[0]}.${parts[1] || 0}`), language, {
      style: "unit", unit: UNITS[unit] ?? unit, unitDisplay: "long",
    });
  });
  spelling.replace(PHONE, ([text]) => sayDigits(text, words));
}

function sayTimes(spelling: Spelling, language: string, words: LanguageWords): void {
  sayDays(spelling, language, words);
  spelling.replace(HOUR_RANGE, ` ${words.to} `);
  spelling.replace(CLOCK, ([, hour, minute, half = ""]) => (half === ""
    ? words.clock(Number(hour), Number(minute))
    : `${Number(hour)}${minute === "00" ? "" : ` ${minute}`}${half}`));
  if (language === "fr") {
    spelling.replace(FRENCH_CLOCK, ([, hour, minute = 0]) =>
      words.clock(Number(hour), Number(minute)));
  }
  if (!words.ordinalEnding) return;
  const ordinals = String.raw`(?<![\p{L}\d.,])(\d{1,4})${words.ordinalEnding.source}(?!\p{L})`;
  spelling.replace(new RegExp(ordinals, "gu"), ([, digits]) =>
    (Number(digits) > 0 ? words.ordinal(Number(digits), "") : null));
}

export function sayInWords(spelling: Spelling, language: string): void {
  const words = WORDS[language];
  for (const pattern of [MAIL, WEB, HOST]) {
    spelling.replace(pattern, ([address]) => sayAddress(address, language));
  }
  for (const [pattern, said] of words?.abbreviations() ?? []) spelling.replace(pattern, said);
  sayQuantities(spelling, language, words);
  if (words) {
    sayTimes(spelling, language, words);
    sayThousands(spelling, words);
    const [, dot] = addressWords(language);
    spelling.replace(VERSION, ([text]) => text.replaceAll(".", ` ${dot} `));
    saySigns(spelling, words);
    sayNumbers(spelling, words);
  }
  spelling.replace(/ ?\| ?/g, ", ");
}
