// When visitors may ask an assistant for a person. One member of its settings (settings.ts).
import { Type } from "@sinclair/typebox";
import { WEEKDAYS, type Weekday } from "#core/days.ts";
import { about, NonBlank, Nullable, TimeOfDay, TimeZone, withMessage } from "#core/schema.ts";

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
  from: TimeOfDay("When people start.", "09:00"),
  to: TimeOfDay("When people leave; if not later than `from`, on the next day.", "17:00"),
}), { maxItems: PERIODS_MAX, ...about(`When people are available on a ${day}. Default: never.`) }));
const Hours = Type.Object(
  Object.fromEntries(WEEKDAYS.map((day) => [day, Periods(day)])) as Record<
    Weekday, ReturnType<typeof Periods>>,
  about("When people are available, by weekday.", { monday: [{ from: "09:00", to: "17:00" }] }));

const OfficeHours = Type.Object({
  time_zone: Type.Optional(Nullable({
    ...TimeZone("The time zone must be a valid time zone."),
    ...about("The IANA time zone of the hours; null for the assistant's.", "Europe/Berlin"),
  })),
  hours: Hours,
  holidays: Type.Optional(Type.Array(Type.String({
    pattern: "^\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])$",
    ...withMessage("The holiday must be a date such as 2026-12-25."),
  }), {
    maxItems: HOLIDAYS_MAX, default: [],
    ...about("Days on which nobody is available, whatever the weekday.", ["2026-12-25"]),
  })),
  message: Type.Optional(Type.String({
    maxLength: AWAY_CHARS_MAX, default: "",
    ...about("The message for visitors who ask for a person outside these hours.", "We are back on Monday."),
  })),
  callback: Flag("Whether visitors can then request a callback."),
}, about("When people are available to answer."));

export const DeskSettings = Type.Object({
  visitor_may_ask: Flag("Whether visitors can ask for a person."),
  assistant_may_ask: Flag(
    "Whether the assistant can request a person itself, with the function `request_human`."),
  after_tool_failures: After(
    "Requests a person after this many failed function calls in a row; null for never."),
  after_unanswered: After(
    "Requests a person after this many failed replies in a row; null for never."),
  office_hours: Type.Optional(Nullable(OfficeHours, {
    default: null, ...about("When people are available to answer; null if not set."),
  })),
  notify_emails: Type.Optional(Type.Array(Type.String({
    pattern: "^[^\\s@<>\"]+@[^\\s@<>\"]+$", maxLength: ADDRESS_CHARS_MAX,
    ...withMessage("The address must be a mail address."),
  }), {
    maxItems: NOTIFIED_MAX, default: [],
    ...about("Addresses that get a mail when a visitor waits for a person or requests a"
      + " callback, if the server can send mail.", ["desk@example.com"]),
  })),
  words: Type.Optional(Type.Array(NonBlank(WORD_CHARS_MAX), {
    maxItems: WORDS_MAX, default: [],
    ...about("Requests a person when a visitor's message contains one of these words.",
      ["human", "complaint"]),
  })),
}, {
  default: {},
  ...about("When a person is requested to take over the conversation in the inbox. Replaced as"
    + " a whole; omitted members get their defaults.", { visitor_may_ask: true }),
});
