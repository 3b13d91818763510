// The tools an assistant can be given without configuring an endpoint. Requests send them as flat
// objects that differ by `type`; answers have the form `{type, data}`, which is accepted too.
import { Type, type Static, type TProperties } from "@sinclair/typebox";
import {
  about, HttpUrl, named, NonBlank, Nullable, OneOf, prepared, TimeZone, withMessage,
} from "#core/schema.ts";
import { MASK } from "#core/secrets.ts";

const DESCRIPTION_CHARS_MAX = 1000;
const TEXT_CHARS_MAX = 1000;
const NAME_CHARS_MAX = 255;
const BOOKING_FIELDS_MAX = 50;
const OPTIONS_MAX = 100;
const ID_MAX = Number.MAX_SAFE_INTEGER;

const WHEN = "When the model should use it, as an instruction to the model; null leaves it to the "
  + "model.";
const Description = Type.Optional(Nullable(Type.String({
  maxLength: DESCRIPTION_CHARS_MAX, ...about(WHEN, "When the caller asks for it."),
})));
const Text = (text: string, description: string) =>
  Type.Optional(Type.String({ maxLength: TEXT_CHARS_MAX, default: text, ...about(description) }));
const Flag = (value: boolean, description: string) =>
  Type.Optional(Type.Boolean({ default: value, ...about(description) }));
const Line = (charsMax: number, description: string, example: string) =>
  Type.Optional(Nullable(Type.String({ maxLength: charsMax, ...about(description, example) })));
const Name = (description: string, example: string) =>
  NonBlank(NAME_CHARS_MAX, about(description, example));
/** E.164, or a SIP URI where the carrier supports it. */
const DIALLED = "^(\\+[1-9][0-9]{4,14}|sips?:[^\\s@]+@[^\\s@]+)$";
const Dialled = (description: string) => Type.String({
  maxLength: NAME_CHARS_MAX,
  pattern: DIALLED,
  ...about(description, "+4930123456"),
  ...withMessage("The phone number must be in E.164 format (e.g. +1234567890) or a SIP URI."),
});

const choice = <T extends string>(values: readonly [T, ...T[]], description: string) =>
  Type.Optional(OneOf(values, { default: values[0], ...about(description) }));

/** Flattens `{type, data: {...}}`. */
function flat(value: unknown): unknown {
  if (typeof value !== "object" || value === null || !("data" in value)) return value;
  const { data, type } = value as { data: unknown; type?: unknown };
  return typeof data === "object" && data !== null ? { ...data, type } : value;
}

const tool = <Name extends string, Fields extends TProperties>(
  type: Name, description: string, fields: Fields,
) => {
  const name = type.replaceAll(/(^|_)([a-z])/g, (_, _line, letter: string) => letter.toUpperCase());
  return Type.Object(
    { type: Type.Literal(type, about("Which built-in tool.")), ...fields },
    named(`${name}Tool`, description));
};

/** Default texts of a warm transfer. */
export const WARM_TEXTS = {
  hold_message: "Please hold while I connect you with a colleague.",
  summary_instructions:
    "Summarise in a few sentences who is calling, what they want and what was agreed so far.",
  briefing_initial_message: "Hello, I have a caller on the line who asks for a person.",
  connected_message: "You are now connected.",
} as const;
/** In percent. */
export const MUSIC_VOLUME = 80;

const CallTransfer = tool("call_transfer", "Transfers the caller to a number, optionally "
  + "announcing them first.",
  {
  phone_number: Dialled("The transfer target: E.164 or a SIP URI."),
  description: Description,
  custom: Flag(false, "Whether the number is a SIP URI; kept for older clients."),
  timezone: Type.Optional(Nullable({
    ...TimeZone("The timezone must be a valid time zone."),
    ...about(
      "The target's time zone, for dates and times in the announcement and the summary; null for "
      + "the assistant's.",
      "Europe/Berlin"),
  })),
  warm_transfer: Flag(
    false, "Whether the target is asked first whether to take the caller, as with "
      + "warm_call_transfer."),
  warm_transfer_message: Line(
    TEXT_CHARS_MAX, "With `warm_transfer`: what the target hears before the summary; null for a "
      + "default sentence.",
    "I have a caller for you."),
});

const WarmCallTransfer = tool("warm_call_transfer", "Calls and briefs a colleague, then connects "
  + "the caller.", {
  supervisor_phone: Dialled("The colleague to call and brief: E.164 or a SIP URI."),
  // Null in a stored tool once the number is deleted; the rest of the tool is kept.
  outbound_phone_id: Nullable(Type.Integer({
    minimum: 1, maximum: ID_MAX, examples: [7],
    description: "The number to call the colleague from; null in a response if that number no "
      + "longer exists",
  })),
  description: NonBlank(DESCRIPTION_CHARS_MAX, about(
    "When the model should use it, as an instruction to the model.",
    "When the caller wants a person.")),
  custom_sip: Flag(
    false, "Whether to dial the number exactly as written, for example a SIP URI or an extension."),
  caller_id_mode: choice(
    ["outbound_number", "customer_number", "custom"], "The caller ID the colleague sees."),
  custom_caller_id: Line(
    NAME_CHARS_MAX, "The number shown if `caller_id_mode` is custom.", "+4930123456"),
  hold_music: choice(["hold_music", "none"], "What the caller hears while waiting."),
  hold_music_volume: Type.Optional(Type.Integer({
    minimum: 0, maximum: 100, default: MUSIC_VOLUME, ...about("How loud that is, in percent."),
  })),
  hold_message: Text(
    WARM_TEXTS.hold_message, "What the caller hears before being put on hold."),
  summary_instructions: Text(
    WARM_TEXTS.summary_instructions,
    "How the model should summarise the call for the colleague."),
  briefing_initial_message: Text(
    WARM_TEXTS.briefing_initial_message, "What the colleague hears first."),
  connected_message: Text(WARM_TEXTS.connected_message, "What both hear once connected."),
});

const BookingField = Type.Object({
  slug: Name("The field's name at Cal.com.", "company"),
  type: Name("The field's type at Cal.com.", "text"),
  label: Name("What to ask the caller for.", "Your company"),
  required: Flag(false, "Whether a booking requires it."),
  options: Type.Optional(Nullable(Type.Array(
    Type.String({ maxLength: NAME_CHARS_MAX }),
    { maxItems: OPTIONS_MAX, ...about("The allowed answers; null for any.", ["Red", "Blue"]) }))),
}, named("CalComField", "A question Cal.com asks with every booking."));

const CalendarIntegration = tool("calendar_integration", "Books appointments at Cal.com.", {
  calcom_api_key: NonBlank(NAME_CHARS_MAX, {
    examples: ["cal_live_8f2c"],
    description: `The Cal.com API key. Encrypted at rest and always returned as ${MASK}; `
      + `send ${MASK} to keep the stored key.`,
  }),
  calcom_event_slug: Name("The event type to book.", "30min"),
  calcom_team_slug: Line(NAME_CHARS_MAX, "The team it belongs to; null for your own.", "sales"),
  calcom_endpoint: choice(["us", "eu", "custom"], "The Cal.com endpoint."),
  calcom_custom_endpoint: Type.Optional(Nullable({
    ...HttpUrl("The calcom custom endpoint must be a valid URL."),
    ...about("The endpoint's URL, if `calcom_endpoint` is custom.", "https://cal.example.com"),
  })),
  calcom_booking_fields: Type.Optional(Type.Array(BookingField, {
    maxItems: BOOKING_FIELDS_MAX, default: [], ...about("Additional fields a booking asks for."),
  })),
  description: Description,
});

const AssistantTransfer = tool("assistant_transfer", "Transfers the caller to another assistant.", {
  assistant_id: Type.Integer({
    minimum: 1, maximum: ID_MAX, ...about("The `id` of the assistant that takes over.", 2),
  }),
  description: Line(500, WHEN, "When the caller wants to buy something."),
  message_before_transfer: Line(500, "What the assistant says before the transfer; null for "
    + "nothing.",
    "One moment, please."),
  speak_transfer_greeting: Flag(true, "Whether the other assistant greets."),
});

export const BuiltInTool = Type.Union(
  [
    CallTransfer,
    WarmCallTransfer,
    tool("end_call", "Ends the call or the conversation.", { description: Description }),
    tool("dtmf_input", "Presses keys to navigate phone menus.", { description: Description }),
    tool("collect_keypad", "Collects the keys a caller presses.", {
      timeout: Type.Optional(Type.Integer({
        minimum: 1, maximum: 30, default: 5, ...about("Seconds to wait after the last key."),
      })),
      stop_key: choice(["#", "*"], "The key that ends the input."),
    }),
    CalendarIntegration,
    // Parley's own calendar: check_availability and book_appointment.
    tool("calendar", "Offers and books times in the assistant's own calendar.", {
      description: Description,
    }),
    AssistantTransfer,
  ],
  {
    ...prepared(flat),
    ...withMessage(
      "The tool type must be one of call_transfer, warm_call_transfer, end_call, dtmf_input, "
      + "collect_keypad, calendar_integration, calendar, assistant_transfer."),
  },
);
export type BuiltInTool = Static<typeof BuiltInTool>;

/** Rules within one tool that a schema cannot say; messages by member. */
export function toolErrors(item: BuiltInTool): Record<string, string> {
  switch (item.type) {
    case "warm_call_transfer":
      if (item.outbound_phone_id === null) {
        return { outbound_phone_id: "The outbound phone id field is required." };
      }
      return item.caller_id_mode === "custom" && !item.custom_caller_id
        ? { custom_caller_id: "The custom caller id field is required when caller id mode is custom." }
        : {};
    case "calendar_integration":
      return item.calcom_endpoint === "custom" && !item.calcom_custom_endpoint
        ? {
            calcom_custom_endpoint:
              "The calcom custom endpoint field is required when calcom endpoint is custom.",
          }
        : {};
    default:
      return {};
  }
}
