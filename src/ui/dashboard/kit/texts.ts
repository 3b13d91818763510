// The texts of the page in the reader's language. The English text is the key; the script
// /dashboard/texts.js, which runs before the dashboard, brings the translations. Text in JSX, and
// strings that read as text, are wrapped when the page is bundled (../../translatable.ts); modules
// call `t` and `plural` themselves for the rest. Texts are never markup.
import type { ComponentChildren } from "preact";
import { amongOurs } from "#ui/characters.ts";

/** One form, or one for each plural the language has (`Intl.PluralRules`). */
type Translation = string | Record<string, string>;

interface Given {
  language: string;
  /** The codes of the available languages. */
  languages: string[];
  texts: Record<string, Translation>;
  /** How the operator calls `parley`. */
  command: string;
}

type Values = Record<string, string | number>;

const NONE: Given = { language: "en", languages: ["en"], texts: {}, command: "parley" };
export const { language: LANGUAGE, languages: LANGUAGES, texts: TEXTS, command: COMMAND } =
  (globalThis as { parleyTexts?: Given }).parleyTexts ?? NONE;

const isOf = (locale: string): boolean => `${locale.toLowerCase()}-`.startsWith(`${LANGUAGE}-`);

/** The regional variant of the language, where the browser names one. */
export const LOCALE = globalThis.navigator?.languages?.find(isOf) ?? LANGUAGE;

const PLURALS = new Intl.PluralRules(LOCALE);
const COUNT = new Intl.NumberFormat(LOCALE);
const PLACE = /\{(\w+)\}/;

const lookUp = (text: string): string => {
  const found = Object.hasOwn(TEXTS, text) ? TEXTS[text] : undefined;
  return typeof found === "string" ? found : text;
};

/** `{name}` in a text is filled with the value of that name. */
export function fill(text: string, values: Values): string {
  return text.replaceAll(/\{(\w+)\}/g, (place, name: string) =>
    Object.hasOwn(values, name) ? amongOurs(String(values[name] ?? "")) : place);
}

export const t = (text: string, values?: Values): string =>
  (values ? fill(lookUp(text), values) : lookUp(text));

/** `one` and `more` are the English forms; `{count}` in them is the number. */
export function plural(number: number, one: string, more: string, values: Values = {}): string {
  const found = Object.hasOwn(TEXTS, more) ? TEXTS[more] : undefined;
  const forms = typeof found === "object" ? found : { one, other: more };
  const form = forms[PLURALS.select(number)] ?? forms.other ?? more;
  return fill(form, { count: COUNT.format(number), ...values });
}

/** A sentence with elements in it. */
export const filled = (
  text: string, values: Record<string, ComponentChildren>,
): ComponentChildren => lookUp(text).split(PLACE).map((part, index) =>
  (index % 2 === 0 ? part : Object.hasOwn(values, part) ? turnedBack(values[part]) : `{${part}}`));

const turnedBack = (value: ComponentChildren): ComponentChildren =>
  typeof value === "string" ? amongOurs(value) : value;

/** Marks a string as code, though it reads as a text. */
export const asIs = (text: string): string => text;

/** As it is typed on the server's machine. */
export const commandOf = (words: string): string => `${COMMAND} ${words}`;
