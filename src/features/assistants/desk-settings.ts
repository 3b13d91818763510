// When an assistant lets a person be asked for. One member of its settings (settings.ts).
import { Type } from "@sinclair/typebox";
import { about, Nullable } from "#core/schema.ts";

const FAILURES_MAX = 10;
const WORDS_MAX = 50;
const WORD_CHARS_MAX = 80;

const After = (description: string) => Type.Optional(Nullable(
  Type.Integer({ minimum: 1, maximum: FAILURES_MAX }),
  { default: null, ...about(description, 2) },
));
const Flag = (description: string) =>
  Type.Optional(Type.Boolean({ default: false, ...about(description) }));

export const DeskSettings = Type.Object({
  visitor_may_ask: Flag("Whether visitors can ask for a person."),
  assistant_may_ask: Flag(
    "Whether the assistant can ask for a person itself, by the function `request_human`."),
  after_tool_failures: After(
    "A person is asked for after this many function calls in a row have failed; null: never."),
  after_unanswered: After(
    "A person is asked for after this many replies in a row have failed; null: never."),
  words: Type.Optional(Type.Array(Type.String({ pattern: "\\S", maxLength: WORD_CHARS_MAX }), {
    maxItems: WORDS_MAX, default: [],
    ...about("A person is asked for when a visitor's message has one of these words.",
      ["human", "complaint"]),
  })),
}, {
  default: {},
  ...about("When a person is asked for, who takes the conversation over in the inbox. Replaced as "
    + "a whole; members left out are at their defaults.", { visitor_may_ask: true }),
});
