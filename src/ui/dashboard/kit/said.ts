// The server's English (refusals, field errors, what a command did) in the reader's language.
// ../../codes.ts lists whole sentences; field errors consist of a subject and one of the rules
// below. What neither covers stays in English.
import { words } from "./format.ts";
import { fill, LANGUAGE, LOCALE, t } from "./texts.ts";

const SUBJECT = "^(?:The (?:selected )?(?<name>.+?)|“(?<label>.+?)”)(?: field| format)? ";

/**
 * What edge/http/validation.ts says of a field, and the text for it, with the same placeholders.
 */
const RULES: [says: string, text: string][] = [
  ["is required", t("“{field}” is required.")],
  ["(?:format )?(?:is|are) invalid(?:: it is one of .+)?", t("“{field}” is not valid.")],
  ["has already been taken", t("“{field}” is taken already.")],
  ["has a duplicate value", t("“{field}” has something twice.")],
  ["must be an? (?:integer|number)", t("“{field}” must be a number.")],
  ["may not be greater than (?<bound>[\\d.]+)", t("“{field}” may not be greater than {bound}.")],
  ["may not be greater than (?<bound>\\d+) characters",
    t("“{field}” may not be longer than {bound} characters.")],
  ["may not have more than (?<bound>\\d+) items", t("“{field}” may not have more than {bound}.")],
  ["must be at least (?<bound>[\\d.-]+)", t("“{field}” must be at least {bound}.")],
  ["must be at least (?<bound>\\d+) characters", t("“{field}” must have at least {bound} characters.")],
  ["must have at least (?<bound>\\d+) items", t("“{field}” must have at least {bound}.")],
  ["must be between (?<least>[\\d.-]+) and (?<bound>[\\d.]+)",
    t("“{field}” must be between {least} and {bound}.")],
];

function faultOf(message: string): string | null {
  for (const [says, text] of RULES) {
    const found = new RegExp(`${SUBJECT}${says}\\.$`).exec(message)?.groups;
    if (!found) continue;
    const { name = "", label = words(name), bound = "", least = "" } = found;
    return fill(text, { field: label, bound, least });
  }
  return null;
}

/** Separates what happens from the reason why. */
const SENTENCE_END = /(?<=\.) (?=\p{Lu})/u;
/** Sentences with a value in them, and their texts with the same placeholders. */
const FILLED: [says: RegExp, text: string][] = [
  // Something other than the server answered, such as a proxy.
  [/^the server answered (?<status>\d+)$/, t("The server answered {status}.")],
  [/^The page answered (?<status>\d+)\.$/, t("The page answered {status}.")],
  [/^The setting (?<setting>\w+) is not set on this server\.$/,
    t("The setting {setting} is not set on this server.")],
  [/^The setting (?<setting>\w+) is missing\.?$/i, t("The setting {setting} is missing.")],
  [/^Phone numbers of the country (?<country>\w+) cannot be called\.$/,
    t("Phone numbers of the country {country} cannot be called.")],
  [/^The number (?<number>\S+) belongs to (?<carrier>\w+): colleagues can be called and briefed only from a number of a SIP trunk\.$/,
    t("The number {number} belongs to {carrier}: colleagues can be called and briefed only from a number of a SIP trunk.")],
  [/^No speech engine of this server can speak (?<language>.+)\.$/,
    t("No speech engine of this server can speak {language}.")],
  [/^No speech engine of this server can understand (?<language>.+)\.$/,
    t("No speech engine of this server can understand {language}.")],
  [/^The other side answered (?<status>\d+)\.$/, t("The other side answered {status}.")],
  [/^The other side reported no result within (?<seconds>\d+) seconds\.$/,
    t("The other side reported no result within {seconds} seconds.")],
  [/^the trunk answered (?<answer>.+)$/, t("the trunk answered {answer}")],
];
const LETTERS = [..."abcdefghijklmnopqrstuvwxyz"];
const LANGUAGE_CODES = LETTERS.flatMap((one) => LETTERS.map((other) => one + other));

/** The server says English names; one that no code has in English is left as it is. */
function languageSaid(name = ""): string {
  const english = new Intl.DisplayNames("en", { type: "language" });
  const code = LANGUAGE_CODES.find((one) => english.of(one) === name);
  return (code && new Intl.DisplayNames(LOCALE, { type: "language" }).of(code)) ?? name;
}

/** A sentence of the list, and after the colon why it is so. */
const REASONED = /^(?<what>.+?): (?<why>.+)\.$/s;

export function said(message: string): string {
  if (LANGUAGE === "en") return message;
  const whole = t(message);
  if (whole !== message) return whole;
  const sentences = message.split(SENTENCE_END);
  if (sentences.length > 1) return sentences.map(said).join(" ");
  for (const [says, text] of FILLED) {
    const values = says.exec(message)?.groups;
    if (values) return fill(text, { ...values, language: languageSaid(values.language) });
  }
  return reasoned(message) ?? faultOf(message) ?? message;
}

function reasoned(message: string): string | null {
  const { what, why = "" } = REASONED.exec(message)?.groups ?? {};
  const sentence = `${what}.`;
  const known = t(sentence);
  return known === sentence
    ? null
    : t("{what}: {why}.", { what: known.replace(/\.$/, ""), why: said(why) });
}
