// The chat widget's words, as an assistant puts them. Members of its settings (settings.ts).
import { Type } from "@sinclair/typebox";
import { about } from "#core/schema.ts";

const LANGUAGE = "^[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*$";
const LANGUAGES_MAX = 30;
const TEXTS_MAX = 200;
const TEXT_CHARS_MAX = 300;

const Words = Type.Record(
  Type.String({ pattern: "^[a-z_]{1,40}$" }), Type.String({ maxLength: TEXT_CHARS_MAX }),
  { maxProperties: TEXTS_MAX, additionalProperties: false },
);

export const WidgetQuestions = {
  ratings: Type.Optional(Type.Boolean({
    default: true, ...about("Whether visitors can rate each reply by a thumb."),
  })),
  satisfaction: Type.Optional(Type.Boolean({
    default: true, ...about("Whether visitors are asked how the chat was when it is over."),
  })),
};

export const WidgetLanguage = {
  language: Type.Optional(Type.String({
    pattern: LANGUAGE, maxLength: 35,
    ...about("The language of the widget's words; left out: that of the page it is on.", "de"),
  })),
  texts: Type.Optional(Type.Record(Type.String({ pattern: LANGUAGE }), Words, {
    maxProperties: LANGUAGES_MAX, additionalProperties: false,
    ...about("Words to show in place of the widget's own, by language and name; a language the "
      + "widget has not may be added.", { en: { person: "Ask our shop" } }),
  })),
};
