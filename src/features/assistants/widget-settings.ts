// How the chat widget looks and what it says. One member of an assistant's settings (settings.ts).
import { Type } from "@sinclair/typebox";
import { LIMITS } from "#core/limits.ts";
import { about, NonBlank, OneOf, prepared, withMessage } from "#core/schema.ts";
import { UNSAFE_KEY } from "#core/values.ts";

const LANGUAGE = "^[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*$";
const LANGUAGES_MAX = 30;
const TEXTS_MAX = 200;
const TEXT_CHARS_MAX = 300;

const Words = Type.Record(
  Type.String({ pattern: "^[a-z_]{1,40}$" }), Type.String({ maxLength: TEXT_CHARS_MAX }),
  { maxProperties: TEXTS_MAX, additionalProperties: false },
);

const AVATAR_CHARS_MAX = 24_000;

/** Small enough to be sent along with its owner's name. */
export const AvatarImage = Type.String({
  pattern: "^data:image/(png|jpeg|webp);base64,[A-Za-z0-9+/]+=*$", maxLength: AVATAR_CHARS_MAX,
  ...about("A small picture (PNG, JPEG or WebP) as a data URL.", "data:image/png;base64,iVBORw0KGgo="),
  ...withMessage("The picture must be a PNG, JPEG or WebP of at most 18 KB, as a data URL."),
});

const WidgetQuestions = {
  enabled: Type.Optional(Type.Boolean(about(
    "Whether pages with the widget's tag show it. Default: yes.", true))),
  avatar: Type.Optional(AvatarImage),
  transcripts: Type.Optional(Type.Boolean(about(
    "Whether visitors can have the chat sent to them by e-mail, if the server can send mail."
    + " Default: no."))),
  ratings: Type.Optional(Type.Boolean(about(
    "Whether visitors can rate each reply with a thumb. Default: yes."))),
  attachments: Type.Optional(Type.Boolean(about(
    "Whether visitors can attach images and PDF to their messages. Default: no."))),
  satisfaction: Type.Optional(Type.Boolean(about(
    "Whether visitors are asked to rate the chat when it ends. Default: yes."))),
};

const FIELDS_MAX = 10;
const FIELD_TYPES = ["text", "email", "tel", "textarea"] as const;
const AFTER_SECONDS_MAX = 3600;
const AGAIN_DAYS_MAX = 365;
const PAGES_MAX = 50;

const FormField = Type.Object({
  name: Type.String({
    // These names are refused as keys in every body, so such a question could not be answered.
    pattern: `^(?!(${UNSAFE_KEY})$)[A-Za-z0-9_]{1,50}$`,
    ...about("The variable that gets the answer.", "email"),
  }),
  label: NonBlank(100, about("The question's label.", "Your e-mail")),
  type: Type.Optional(OneOf(FIELD_TYPES, {
    default: "text", ...about("The type of the answer.", "email"),
  })),
  required: Type.Optional(Type.Boolean({
    default: false, ...about("Whether an answer is required to start the chat."),
  })),
});

/** What the widget asks and says before a chat begins. */
export const WidgetBeginning = {
  form: Type.Optional(Type.Object({
    title: Type.Optional(Type.String({
      maxLength: 100, ...about("The title above the questions.", "Before we start"),
    })),
    text: Type.Optional(Type.String({
      maxLength: 500, ...about("Below the title.", "So that we can call you back."),
    })),
    fields: Type.Array(FormField, { maxItems: FIELDS_MAX, ...about("The questions.") }),
  }, about("Questions before the chat. The answers become the conversation's variables; without"
    + " the required ones the server starts no conversation."))),
  greeting: Type.Optional(Type.Object({
    text: NonBlank(300, about("The text beside the button.", "May we help?")),
    after_seconds: Type.Optional(Type.Integer({
      minimum: 0, maximum: AFTER_SECONDS_MAX, default: 10,
      ...about("Seconds after the page was opened.", 10),
    })),
    pages: Type.Optional(Type.Array(Type.String({ pattern: "^/", maxLength: 300 }), {
      maxItems: PAGES_MAX,
      ...about("Paths it is shown on; `*` at the end includes all paths below. Default: all.", ["/shop/*"]),
    })),
    again_days: Type.Optional(Type.Integer({
      minimum: 0, maximum: AGAIN_DAYS_MAX, default: 7,
      ...about("Days until the same visitor sees it again.", 7),
    })),
  }, about("A greeting that appears by itself. Default: none."))),
};

const WidgetLanguage = {
  language: Type.Optional(Type.String({
    pattern: LANGUAGE, maxLength: 35,
    ...about("The language of the widget's texts. Default: the page's.", "de"),
  })),
  texts: Type.Optional(Type.Record(Type.String({ pattern: LANGUAGE }), Words, {
    maxProperties: LANGUAGES_MAX, additionalProperties: false,
    ...about("Texts that replace the widget's own, by language and name. Languages that the"
      + " widget lacks can be added.", { en: { person: "Ask our shop" } }),
  })),
};

const POSITIONS = [
  "bottom-right", "bottom-left", "bottom-center", "middle-right", "middle-left",
  "top-right", "top-left", "top-center",
] as const;

/** Older pages spell it `right-bottom`. */
function preparePosition(value: unknown): unknown {
  if (typeof value !== "string") return value;
  const reversed = value.split("-").reverse().join("-");
  return POSITIONS.find((position) => position === reversed) ?? value;
}

export const WidgetSettings = Type.Object(
  {
    theme: Type.Optional(NonBlank(50, { default: "modern", ...about("The look of the widget.") })),
    color: Type.Optional(Type.String({
      pattern: "^#([0-9A-Fa-f]{3}|[0-9A-Fa-f]{6})$",
      default: "#2563eb",
      ...about("The colour of the button and of the visitor's messages."),
      ...withMessage("The color must be a hex colour such as #2563eb."),
    })),
    position: Type.Optional(OneOf(POSITIONS, {
      default: "bottom-right",
      ...about("The position of the button on the page."),
      ...prepared(preparePosition),
    })),
    remember_days: Type.Optional(Type.Integer({
      minimum: 0,
      maximum: LIMITS.widgetRememberDaysMax,
      description: "Days a visitor's browser keeps the conversation for all its tabs"
        + ` (default: ${LIMITS.widgetRememberDays}); 0: each tab keeps its own`,
      examples: [7],
    })),
    ...WidgetLanguage,
    ...WidgetQuestions,
    ...WidgetBeginning,
  },
  { default: {}, ...about("The look of the chat widget. Replaced as a whole.") },
);
