// When visitors may ask an assistant for a person. One member of its settings (settings.ts).
import { Type } from "@sinclair/typebox";
import { WEEKDAYS, type Weekday } from "#core/days.ts";
import { about, Nullable, TimeOfDay, TimeZone, withMessage } from "#core/schema.ts";

const FAILURES_MAX = 10;
const WORDS_MAX = 50;
const WORD_CHARS_MAX = 80;

const After = (description: string) => Type.Optional(Nullable(
  Type.Integer({ minimum: 1, maximum: FAILURES_MAX }),
  { default: null, ...about(description, 2) },
));
const Flag = (description: string) =>
  Type.Optional(Type.Boolean({ default: false, ...about(description) }));

const NOTIFIED_MAX = 10;
const ADDRESS_CHARS_MAX = 254;
const HOLIDAYS_MAX = 100;
const PERIODS_MAX = 10;
const AWAY_CHARS_MAX = 500;

const Periods = (day: string) => Type.Optional(Type.Array(Type.Object({
  from: TimeOfDay("When they come.", "09:00"),
  to: TimeOfDay("When they go; not after `from`: on the next day.", "17:00"),
}), { maxItems: PERIODS_MAX, ...about(`When people are there on a ${day}; left out: never.`) }));
const Hours = Type.Object(
  Object.fromEntries(WEEKDAYS.map((day) => [day, Periods(day)])) as Record<
    Weekday, ReturnType<typeof Periods>>,
  about("When people are there, by weekday.", { monday: [{ from: "09:00", to: "17:00" }] }));

const OfficeHours = Type.Object({
  time_zone: Type.Optional(Nullable({
    ...TimeZone("The time zone must be a valid time zone."),
    ...about("IANA time zone of the hours; null: the assistant's.", "Europe/Berlin"),
  })),
  hours: Hours,
  holidays: Type.Optional(Type.Array(Type.String({
    pattern: "^\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])$",
    ...withMessage("The holiday must be a date such as 2026-12-25."),
  }), {
    maxItems: HOLIDAYS_MAX, default: [],
    ...about("Days on which nobody is there, whatever the weekday.", ["2026-12-25"]),
  })),
  message: Type.Optional(Type.String({
    maxLength: AWAY_CHARS_MAX, default: "",
    ...about("What who asks for a person outside of them reads.", "We are back on Monday."),
  })),
  callback: Flag("Whether visitors can then leave how to be reached."),
}, about("When people are there to answer."));

export const DeskSettings = Type.Object({
  visitor_may_ask: Flag("Whether visitors can ask for a person."),
  assistant_may_ask: Flag(
    "Whether the assistant can ask for a person itself, by the function `request_human`."),
  after_tool_failures: After(
    "A person is asked for after this many function calls in a row have failed; null: never."),
  after_unanswered: After(
    "A person is asked for after this many replies in a row have failed; null: never."),
  office_hours: Type.Optional(Nullable(OfficeHours, {
    default: null, ...about("When people are there to answer; null: nobody has said."),
  })),
  notify_emails: Type.Optional(Type.Array(Type.String({
    pattern: "^[^\\s@<>\"]+@[^\\s@<>\"]+$", maxLength: ADDRESS_CHARS_MAX,
    ...withMessage("The address must be a mail address."),
  }), {
    maxItems: NOTIFIED_MAX, default: [],
    ...about("Who gets a mail when somebody waits for a person or leaves a callback, where the "
      + "server has a mail server.", ["desk@example.com"]),
  })),
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
